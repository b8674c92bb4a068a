"""The order of memory accesses in LLVM IR, for small random kernels.

A kernel is a list of accesses to tiles and scalars, in tile IR. Each array belongs to at most one load and one other access, so
every instruction of the LLVM IR is known by its array and by whether it is a plain load. The test finds the array by walking
back from the instruction's address. No kernel runs, so the tests need no luck.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import builtin, func, scf
from xdsl.parser import Parser

from sampling import grid
from weft.codegen import emit_llvm
from weft.ir.tile import Tile
from weft.options import Options
from weft.target import CpuTarget

TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "", 128)
KINDS = ("load", "load", "volatile", "store", "store", "rmw", "rmw", "cas", "barrier")
ORDERS = ("relaxed", "acquire", "release", "acq_rel")


@dataclass(frozen=True)
class Made:
    """An access of a random kernel. ``array`` is the number of the argument; ``size`` is 0 for a scalar."""

    kind: str
    array: int
    size: int
    order: str = "relaxed"

    @property
    def key(self) -> tuple[int, bool]:
        """What its instructions are known by."""
        return self.array, self.kind == "load"


def random_kernel(rng: random.Random) -> list[Made]:
    """3 to 7 accesses of tiles of one size and of scalars."""
    size = rng.choice((4, 16, 64, 128))
    found: list[Made] = []
    for number in range(rng.randint(3, 7)):
        kind = rng.choice(KINDS)
        scalar = kind == "barrier" or rng.random() < 0.3
        order = rng.choice(ORDERS) if kind in ("rmw", "cas") else "acq_rel" if kind == "barrier" else "relaxed"
        found.append(Made(kind, number, 0 if scalar else size, order))
        alone = [a for a in found if a.kind == "load" and all(b is a or b.array != a.array for b in found)]
        if kind in ("store", "rmw") and not scalar and rng.random() < 0.5:
            same = [a for a in alone if a.size == size]
            if same:  # the same pointers as the load
                found[-1] = Made(kind, same[-1].array, size, order)
    return found


def text_of(made: Sequence[Made], size: int) -> str:
    """The kernel in tile IR. Atomics have the scope that always makes them instructions.

    Each load is kept alive by a store behind all accesses, to an array of its own."""
    count = len(made)
    pointers = f"tensor<{size}x!tile.ptr<i32>>"
    lines = [f"%i = tile.arange 0 {size} : tensor<{size}xi32>", "%one = tile.constant 1 : i32"]
    lines += [f"%ones = tile.constant 1 : tensor<{size}xi32>"]
    for n in range(2 * count):
        lines += [f"%s{n} = tile.splat %a{n} : !tile.ptr<i32> to {pointers}"]
        lines += [f"%p{n} = tile.addptr %s{n}, %i : {pointers}, tensor<{size}xi32> to {pointers}"]
    kept: list[str] = []
    for n, a in enumerate(made):
        at, one, p, t = (
            ("p", "%ones", pointers, f"tensor<{size}xi32>") if a.size else ("a", "%one", "!tile.ptr<i32>", "i32")
        )
        address = f"%{at}{a.array}"
        match a.kind:
            case "load" | "volatile":
                word = " volatile" if a.kind == "volatile" else ""
                lines += [f"%x{n} = tile.load {address}{word} : {p} to {t}"]
                kept += [f"tile.store %{at}{count + n}, %x{n} : {p}, {t}"]
            case "store":
                lines += [f"tile.store {address}, {one} : {p}, {t}"]
            case "rmw":
                lines += [
                    f'%x{n} = tile.atomic_rmw "add" {address}, {one} sem "{a.order}" scope "sys" : {p}, {t} to {t}'
                ]
            case "cas":
                lines += [f'%x{n} = tile.atomic_cas {address}, {one}, {one} sem "{a.order}" scope "sys" : {p}, {t}']
            case _:
                lines += ["tile.barrier"]
    parameters = ", ".join(f'%a{n}: !tile.ptr<i32> {{tile.name = "a{n}"}}' for n in range(2 * count))
    body = "\n".join([*lines, *kept])
    return f"builtin.module {{ func.func @k({parameters}) {{ {body}\n func.return }} }}"


def program_of(text: str, disjoint: bool) -> list[str]:
    """The lines of the program's LLVM IR; the entry, which claims programs by an atomic of its own, is left out."""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, scf.Scf, Tile):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return emit_llvm(module, TARGET, Options(disjoint=disjoint)).split("define ")[1].splitlines()


NAME = re.compile(r'%"[^"]+"')
ACCESS = re.compile(r"(?:load atomic|atomicrmw|cmpxchg|store|load|fence)\b")


def places_of(lines: Sequence[str]) -> Iterator[tuple[tuple[int, bool] | None, int]]:
    """The key and the line of each instruction that touches an array; the key of a fence is None."""
    made_of: dict[str, list[str]] = {}
    for line in lines:
        head, equals, right = line.strip().partition(" = ")
        if equals:
            made_of[head] = NAME.findall(right)
    arguments: dict[str, int] = {}
    for line, following in zip(lines, lines[1:], strict=False):
        if found := re.search(r'^  (%"[^"]+") = getelementptr i8, ptr %"\.1", i64 (\d+)$', line):
            arguments[following.split()[0]] = int(found[2]) // 8
    for number, line in enumerate(lines):
        body = line.strip().partition(" = ")[2] if " = " in line else line.strip()
        if not (word := ACCESS.match(body)):
            continue
        if word.group() == "fence":
            yield None, number
            continue
        array = _array(_address(body), made_of, arguments)
        if array is not None:
            yield (array, word.group() == "load"), number


def _address(body: str) -> str:
    """The name behind the first ``ptr`` of an instruction; empty for a stack slot, which llvmlite spells as a typed pointer."""
    found = re.search(r'\bptr (%"[^"]+")', body)
    return found[1] if found else ""


def _array(name: str, made_of: dict[str, list[str]], arguments: dict[str, int]) -> int | None:
    """The argument from which an address is computed."""
    pending, seen = [name], set[str]()
    while pending:
        one = pending.pop()
        if one in arguments:
            return arguments[one]
        if one not in seen:
            seen.add(one)
            pending.extend(made_of.get(one, ()))
    return None


def loops_of(lines: Sequence[str]) -> list[range]:
    """The lines of each loop: from a block to a branch back to it."""
    heads = {found[1]: n for n, line in enumerate(lines) if (found := re.match(r'"?([\w.]+)"?:$', line))}
    loops: list[range] = []
    for n, line in enumerate(lines):
        for label in re.findall(r'label %"([^"]+)"', line):
            if heads[label] < n:
                loops.append(range(heads[label], n))
    return loops


def must_keep_order(first: Made, second: Made, waits: bool, disjoint: bool) -> bool:
    """The memory model's rules, spelled by hand: acquire, release, one address."""
    acquires = first.kind in ("volatile", "barrier") or (first.kind in ("rmw", "cas") and "acq" in first.order)
    flag = second.kind == "store" and second.size == 0 and waits
    releases = (
        flag or second.kind == "barrier" or (second.kind in ("rmw", "cas") and second.order in ("release", "acq_rel"))
    )
    if acquires or releases:
        return True
    if "barrier" in (first.kind, second.kind):
        return False
    only_read = {first.kind, second.kind} <= {"load", "volatile"}
    return not only_read and (not disjoint or first.array == second.array)


@pytest.mark.parametrize(("disjoint", "seed"), grid(2, [False, True], range(60)), ids=str)
def test_llvm_keeps_the_order_of_the_memory_model(seed: int, disjoint: bool) -> None:
    made = random_kernel(random.Random(seed))
    size = max((a.size for a in made), default=0) or 16
    lines = program_of(text_of(made, size), disjoint)
    places, loops = list(places_of(lines)), loops_of(lines)
    fences = [line for key, line in places if key is None]
    barriers = [a for a in made if a.kind == "barrier"]
    assert len(fences) == len(barriers)
    where = {a: [line for key, line in places if key == a.key] for a in made if a.kind != "barrier"}
    where |= {a: [fence] for a, fence in zip(barriers, fences, strict=True)}
    assert all(where.values()), "each access is found"
    waits = any(a.kind == "volatile" or (a.kind in ("rmw", "cas") and "acq" in a.order) for a in made)
    if disjoint:  # no order can be seen of loads from arrays that the kernel does not write
        written = {a.array for a in made if a.kind in ("store", "rmw", "cas")}
        made = [a for a in made if a.kind != "load" or a.array in written]
    for n, second in enumerate(made):
        for first in made[:n]:
            if not must_keep_order(first, second, waits, disjoint):
                continue
            if first.array == second.array and second.kind == "store":
                # the same pointers, no two of which meet: it is enough that each register keeps the order
                assert where[first][0] < where[second][0], (first, second)
                continue
            assert max(where[first]) < min(where[second]), (first, second)
            assert not any(where[first][0] in loop and where[second][0] in loop for loop in loops), (first, second)
