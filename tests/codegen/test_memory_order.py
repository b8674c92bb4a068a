"""The order of memory accesses (`weft.ir.memory`) in register loops and in LLVM IR.

These tests need no luck: each looks at the code, where the tests of ``tests/concurrent`` look at what threads make of it.
"""

# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import re
from typing import Any

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

import weft.language as tl
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen.compile import lay_out
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.schedule import RegisterLoop
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, build_module
from weft.ir import tile
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.axis import analyse, base_argument

jit = KernelFunction
TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "", 128)
INTS = PointerArgument(dtypes.int32, aligned=True)


def module_of(kernel: KernelFunction, **constants: Any) -> ModuleOp:
    """The module of a kernel whose parameters are arrays of int32, but for the constants."""
    names = [p.name for p in kernel.parameters if p.name not in constants]
    return build_module(kernel, {n: INTS for n in names} | {n: ConstantArgument(c) for n, c in constants.items()})


def order(kernel: KernelFunction, **constants: Any) -> list[str]:
    """The accesses in the order of the kernel's schedule, those of a register loop in brackets; the arrays are disjoint."""
    module = module_of(kernel, **constants)
    lay_out(module, TARGET, Options(disjoint=False))  # no load is invariant: each has a place
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    bases = {op.pointer: base_argument(op.pointer) for op in module.walk() if isinstance(op, tile.Access)}
    fusion = Fusion(bases, True, analyse(function))

    def spelled(block: Block) -> list[str]:
        found: list[str] = []
        for item in fusion.items(block):
            if isinstance(item, RegisterLoop):
                accesses = [op.name.removeprefix("tile.") for op in item.roots if isinstance(op, tile.Access)]
                found += [f"[{', '.join(accesses)}]"] if accesses else []
            elif tile.ordering_of(item) is not None:
                found.append(item.name.removeprefix("tile."))
            elif not isinstance(item, tile.ReduceOp):
                found += [line for region in item.regions for inner in region.blocks for line in spelled(inner)]
        return found

    return spelled(function.body.block)


def llvm_of(kernel: KernelFunction, **constants: Any) -> list[str]:
    """What the program's code does to memory, line by line: the instruction with its order."""
    text = emit_llvm(module_of(kernel, **constants), TARGET, Options(disjoint=True))
    program = text.split("define ")[1]  # behind it stands the entry, which claims programs by an atomic of its own
    what = re.compile(r"atomicrmw \w+|cmpxchg|load atomic volatile|store atomic|fence|store <")
    words = re.compile(r"\b(monotonic|acquire|release|acq_rel)\b")
    found: list[str] = []
    for line in program.splitlines():
        if match := what.search(line):
            found.append(" ".join(dict.fromkeys([match.group(), *words.findall(line)])))
    return found


# ---- an atomic ------------------------------------------------------------------------------------------------------


@jit
def announce(data: Any, flag: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    """A tile, then the atomic that says it is there: which takes nothing from the loop, and so could come first."""
    tl.store(data + tl.arange(0, N), 7)
    tl.atomic_add(flag, 1, sem=SEM)


@jit
def after_atomic(data: Any, out: Any, flag: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    """The tile loop is open when the atomic comes; what follows it could join that loop."""
    i = tl.arange(0, N)
    x = tl.load(data + i)
    tl.atomic_add(flag, 1, sem=SEM)
    tl.store(out + i, x + tl.load(data + i))


@jit
def tile_atomic(data: Any, counts: Any, out: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(data + i, 7)
    tl.atomic_add(counts + i, 1, sem=SEM)
    tl.store(out + i, 8)


@jit
def tile_swap(data: Any, locks: Any, out: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(data + i, 7)
    tl.atomic_cas(locks + i, 0, 1, sem=SEM)
    tl.store(out + i, 8)


@jit
def in_place(status: Any, N: tl.constexpr) -> None:
    p = status + tl.arange(0, N)
    tl.store(p, tl.load(p, volatile=True) + 1)


def test_order_goes_before_equal_pointers() -> None:
    """Plain accesses through the same pointers share a loop; what acquires lets none in."""
    assert order(in_place, N=1024) == ["[load]", "[store]"]


@pytest.mark.parametrize("n", [16, 64, 1024])
@pytest.mark.parametrize(
    ("kernel", "sem", "expected"),
    [
        (announce, "relaxed", ["atomic_rmw", "[store]"]),
        (announce, "acquire", ["atomic_rmw", "[store]"]),
        (announce, "release", ["[store]", "atomic_rmw"]),
        (announce, None, ["[store]", "atomic_rmw"]),
        (after_atomic, "relaxed", ["atomic_rmw", "[load, load, store]"]),
        (after_atomic, "acquire", ["atomic_rmw", "[load, load, store]"]),
        (after_atomic, "release", ["[load]", "atomic_rmw", "[load, store]"]),
        (after_atomic, None, ["[load]", "atomic_rmw", "[load, store]"]),
        (tile_atomic, "relaxed", ["[store, atomic_rmw, store]"]),
        (tile_atomic, "acquire", ["[store, atomic_rmw]", "[store]"]),
        (tile_atomic, "release", ["[store]", "[atomic_rmw, store]"]),
        (tile_atomic, "acq_rel", ["[store]", "[atomic_rmw]", "[store]"]),
        (tile_swap, "relaxed", ["[store, atomic_cas, store]"]),
        (tile_swap, "acquire", ["[store, atomic_cas]", "[store]"]),
        (tile_swap, "release", ["[store]", "[atomic_cas, store]"]),
        (tile_swap, None, ["[store]", "[atomic_cas]", "[store]"]),
    ],
    ids=lambda value: getattr(value, "name", str(value) if isinstance(value, str) else None),
)
def test_accesses_keep_their_side_of_an_atomic(kernel: KernelFunction, sem: str, expected: list[str], n: int) -> None:
    assert order(kernel, N=n, SEM=sem) == expected


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_atomics_have_the_order_they_ask_for(sem: str) -> None:
    word = "monotonic" if sem == "relaxed" else sem
    assert f"atomicrmw add {word}" in llvm_of(announce, N=16, SEM=sem)
    failed = {"relaxed": "", "acquire": "", "release": " monotonic", "acq_rel": " acquire"}[sem]
    assert f"cmpxchg {word}{failed}" in llvm_of(tile_swap, N=16, SEM=sem)


@jit
def scattered(x: Any, at: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    tl.atomic_add(x + tl.load(at + tl.arange(0, N)), 1, sem=SEM)


@jit
def consecutive(x: Any, at: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(x + i, 1, mask=tl.load(at + i) > 0, sem=SEM)


@jit
def swapped(x: Any, at: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    tl.atomic_cas(x + tl.load(at + tl.arange(0, N)), 0, 1, sem=SEM)


@jit
def some_scattered(x: Any, at: Any, N: tl.constexpr, SEM: tl.constexpr) -> None:
    to = tl.load(at + tl.arange(0, N))
    tl.atomic_add(x + to, 1, mask=to > 0, sem=SEM)


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("kernel", [scattered, consecutive, swapped, some_scattered], ids=lambda k: k.__name__)
def test_plain_updates_stand_between_barriers(kernel: KernelFunction, sem: str) -> None:
    """A thread that has all atomics to itself updates memory without them (`weft.codegen.cpu.exclusive`): two registers, each
    with a barrier before its updates where the atomic releases, and one behind where it acquires."""
    text = emit_llvm(module_of(kernel, N=32, SEM=sem), TARGET, Options(disjoint=True)).split("define ")[1]
    words = re.findall(r"fence acq_rel|store i32|store\.masked|atomicrmw|cmpxchg", text)
    sides = [sem in ("release", "acq_rel"), sem in ("acquire", "acq_rel")]
    assert words.count("fence acq_rel") == 2 * sum(sides)
    if kernel is some_scattered:  # its two ways of updating a register are blocks, which stand in any order
        return
    plain = [w for w in words if w not in ("atomicrmw", "cmpxchg")]
    before, after = (["fence acq_rel"] * side for side in sides)
    updates = (len(plain) - 2 * sum(sides)) // 2
    assert updates >= 1
    for register in (plain[: len(plain) // 2], plain[len(plain) // 2 :]):
        assert register == [*before, *[w for w in register if "store" in w], *after]
        assert len(register) == updates + sum(sides)


@jit
def extremes(x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_min(x + i, tl.full((N,), 5, x.dtype.element_ty))
    tl.atomic_max(x + i, tl.full((N,), 7, x.dtype.element_ty))


@pytest.mark.parametrize(
    ("dtype", "expected"), [(dtypes.int32, ["min", "max"]), (dtypes.uint32, ["umin", "umax"])], ids=str
)
def test_atomics_compare_as_their_type_does(dtype: dtypes.DType, expected: list[str]) -> None:
    module = build_module(extremes, {"x": PointerArgument(dtype), "N": ConstantArgument(4)})
    text = emit_llvm(module, TARGET, Options(disjoint=True)).split("define ")[1]
    assert re.findall(r"atomicrmw (\w+)", text) == expected


# ---- flags, volatile loads, barriers ---------------------------------------------------------------------------------


@jit
def hand_on(data: Any, flags: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    while tl.load(flags, volatile=True) == 0:
        pass
    tl.store(data + i, 7)
    tl.store(flags + 1, 1)


@jit
def no_wait(data: Any, flags: Any, N: tl.constexpr) -> None:
    tl.store(data + tl.arange(0, N), 7)
    tl.store(flags + 1, 1)


@jit
def separated(data: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(data + i, 7)
    tl.debug_barrier()
    tl.store(out + i, 8)


@jit
def volatile_tiles(status: Any, data: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    seen = tl.load(status + i, volatile=True)
    tl.store(out + i, seen + tl.load(data + i))


def test_a_flag_is_raised_after_what_it_announces() -> None:
    assert order(hand_on, N=1024) == ["load", "[store]", "store"]
    assert order(no_wait, N=1024) == ["store", "[store]"]
    assert llvm_of(hand_on, N=4) == ["load atomic volatile acquire", "store <", "store atomic release"]


def test_a_barrier_separates() -> None:
    assert order(separated, N=1024) == ["[store]", "barrier", "[store]"]
    assert llvm_of(separated, N=4) == ["store <", "fence acq_rel", "store <"]


def test_a_volatile_tile_is_read_before_what_follows() -> None:
    assert order(volatile_tiles, N=1024) == ["[load]", "[load, store]"]
    assert "load atomic volatile acquire" in llvm_of(volatile_tiles, N=16)


def test_the_loop_that_waits_reads_each_time() -> None:
    """In the optimised code the volatile load stands in a loop: some block branches back to the load's."""
    text = emit_llvm(module_of(hand_on, N=16), TARGET, Options(disjoint=True))
    load = text.index("load atomic volatile")
    head = re.findall(r"^\"?([\w.]+)\"?:", text[:load], re.MULTILINE)[-1]
    assert re.search(rf"br label %\"{re.escape(head)}\"", text[load:])
