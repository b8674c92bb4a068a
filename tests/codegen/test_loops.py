"""Which register loops kernels become, and which values are kept in buffers.

A schedule is written as a list: ``loop[load v, reduce e] keeps x`` is a register loop with its roots in order and the values it
writes to buffers, ``dot acc`` an op between loops, ``a in b`` says that a's buffer is b's.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.ir import SSAValue

import weft.language as tl
from weft import dtypes
from weft.codegen.compile import lay_out
from weft.codegen.cpu.cost import Costs
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.placement import BufferPlacement
from weft.codegen.cpu.schedule import Item, RegisterLoop, Root, WriteBack, moves_data
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.target import CpuTarget
from weft.transforms.axis import analyse, base_argument
from weft.transforms.invariant_loads import MarkInvariantLoads

jit = KernelFunction
TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "", 128)
F32, I32 = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32)


def module_of(kernel: KernelFunction, **arguments: Any) -> Any:
    """The frontend's module; arguments that are not of a signature are constants."""
    signature: dict[str, Argument] = {
        name: a if isinstance(a, PointerArgument | ScalarArgument) else ConstantArgument(a)
        for name, a in arguments.items()
    }
    return build_module(kernel, signature)


# ---- schedules ------------------------------------------------------------------------------------------------------


def name(value: SSAValue) -> str:
    return value.name_hint or "_"


def spell_root(root: Root) -> str:
    match root:
        case WriteBack():
            return f"{'stage' if root.staged else 'write'} {name(root.carried)}"
        case tile.StoreOp():
            return f"store {name(root.value)}"
        case _:
            return f"{root.name.removeprefix('tile.')} {name(root.results[0])}"


def spell(item: Item) -> str | None:
    """None for scalar ops."""
    if isinstance(item, RegisterLoop):
        roots = f"loop[{', '.join(map(spell_root, item.roots))}]"
        return roots + (f" keeps {', '.join(map(name, item.kept))}" if item.kept else "")
    if item.regions or moves_data(item):
        return " ".join([item.name.split(".")[1], *map(name, item.results)])
    return None


def schedules(kernel: KernelFunction, disjoint: bool = False, **arguments: Any) -> list[list[str]]:
    """The schedules of a kernel's blocks, outermost first."""
    module = module_of(kernel, **arguments)
    lay_out(module, TARGET)
    if disjoint:
        MarkInvariantLoads().apply(Context(), module)
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    accesses = (op for op in module.walk() if isinstance(op, tile.Access))
    axis = analyse(function)
    fusion = Fusion({op.pointer: base_argument(op.pointer) for op in accesses}, disjoint, axis)
    placement = BufferPlacement(Costs(axis))
    found: list[list[str]] = []
    for op in module.walk():
        for region in op.regions if not isinstance(op, tile.ReduceOp | tile.ScanOp) and op is not module else ():
            for block in region.blocks:
                schedule = placement.place(block, fusion.items(block))
                shared = [f"{name(a)} in {name(b)}" for a, b in schedule.shared.items()]
                found.append([*filter(None, map(spell, schedule.items)), *shared])
    return found


@jit
def softmax(x: Any, y: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=-float("inf"))
    top = tl.max(v, 0)
    e = tl.exp(v - top)
    total = tl.sum(e, 0)
    tl.store(y + i, e / total, mask=i < n)


def test_softmax_is_three_loops() -> None:
    """The maximum before the exponentials, their sum before the quotients; exponentials are kept, cheap differences not.
    With the promise that arrays are disjoint the row is read again instead of kept."""
    arguments = {"x": F32, "y": F32, "n": I32, "N": 1024}
    assert schedules(softmax, **arguments) == [
        ["loop[load v, reduce top] keeps v", "loop[reduce total] keeps e", "loop[store _]"]
    ]
    assert schedules(softmax, True, **arguments) == [
        ["loop[reduce top]", "loop[reduce total] keeps e", "loop[store _]"]
    ]


@jit
def two_sums(x: Any, y: Any, z: Any, n: Any, HOW: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    mean = tl.sum(v, 0) / n
    if HOW == "alone":
        power = tl.sum(v * v, 0) / n
    elif HOW == "of the first":
        power = tl.sum((v - mean) * (v - mean), 0) / n
    elif HOW == "of a tile of it":
        power = tl.sum(v * tl.full((N,), mean, tl.float32), 0) / n
    elif HOW == "loaded":
        power = tl.sum(v * tl.load(z + mean.to(tl.int32)), 0)
    else:
        tl.store(z, mean)
        power = tl.sum(v * v, 0) / n
    tl.store(y + i, v * mean + power)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("alone", ["loop[reduce _, reduce _]", "loop[store _]"]),
        ("of the first", ["loop[reduce _]", "loop[reduce _]", "loop[store _]"]),
        ("of a tile of it", ["loop[reduce _]", "loop[reduce _]", "loop[store _]"]),
        ("loaded", ["loop[reduce _]", "loop[reduce power]", "loop[store _]"]),
        ("stored", ["loop[reduce _]", "loop[reduce _]", "loop[store _]"]),
    ],
)
def test_arithmetic_on_scalars_keeps_no_loops_apart(how: str, expected: list[str]) -> None:
    """The mean is divided after a loop of both sums, unless the second sum is computed from it, or it is stored between."""
    arguments = {"x": F32, "y": F32, "z": F32, "n": ScalarArgument(dtypes.float32)}
    assert schedules(two_sums, True, **arguments, HOW=how, N=1024) == [expected]


@jit
def scale_and_count(x: Any, y: Any, z: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    w = v * 2
    tl.store(y + i, w)
    u = tl.load(z + i)
    tl.store(z + i, u + w)
    total = tl.sum(u, 0)
    tl.store(y + N, total)


def test_an_access_joins_a_loop_unless_it_may_meet_another() -> None:
    """Without the promise, what is stored through y may be what is loaded through x or z. z's own store follows its load at
    the same addresses, all different, so register by register."""
    arguments = {"x": F32, "y": F32, "z": F32, "N": 1024}
    apart = ["loop[load v] keeps v", "loop[store w]", "loop[load u, store _, reduce total]"]
    assert schedules(scale_and_count, **arguments) == [apart]
    assert schedules(scale_and_count, True, **arguments) == [["loop[store w, load u, store _, reduce total]"]]


@jit
def scans(x: Any, y: Any, HOW: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    a = tl.cumsum(v * 2, 1)
    if HOW == "again":
        b = tl.cumsum(a, 1)
    elif HOW == "reverse":
        b = a + tl.cumsum(v, 1, reverse=True)
    elif HOW == "across":
        b = a + tl.cumsum(v, 0)
    elif HOW == "sum":
        b = a + tl.sum(a, 1)[:, None]
    else:
        b = tl.trans(a)
    tl.store(y + i, b)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("again", ["loop[scan a, scan b, store b]"]),
        ("reverse", ["loop[scan a] keeps a", "loop[scan _, store b]"]),
        ("across", ["loop[scan a] keeps a", "loop[scan _, store b]"]),
        ("sum", ["loop[scan a, reduce _] keeps a", "loop[store b]"]),
        ("trans", ["loop[scan a] keeps a", "convert_layout a", "loop[store b]"]),
    ],
)
def test_a_scan_is_in_the_loop_of_what_it_reads_and_what_reads_it(how: str, expected: list[str]) -> None:
    """Along one axis in one direction; a sum is complete only after the loop."""
    assert schedules(scans, True, x=F32, y=F32, HOW=how, N=64) == [expected]


@jit
def gathers(x: Any, y: Any, n: Any, HOW: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if HOW == "computed":
        a = tl.gather(v * 2 + v, v, 0)
        tl.store(y + i, a + v)
    elif HOW == "twice":
        a = tl.gather(v, v, 0)
        b = tl.gather(v, v + 1, 0)
        tl.store(y + i, a + b)
    elif HOW == "chain":
        a = tl.gather(v, v, 0)
        b = tl.gather(a, v, 0)
        tl.store(y + i, b)
    else:
        for _ in range(n):
            v = tl.gather(v, v, 0)
        tl.store(y + i, v)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("computed", [["loop[load v] keeps v", "loop[] keeps _", "loop[gather a, store _]"]]),
        ("twice", [["loop[load v] keeps v", "loop[gather a, gather b, store _]"]]),
        ("chain", [["loop[load v] keeps v", "loop[gather a] keeps a", "loop[gather b, store b]"]]),
        ("carried", [["loop[load v] keeps v", "for v", "loop[store v]"], ["loop[gather v] keeps v", "loop[write v]"]]),
    ],
)
def test_what_a_gather_reads_is_complete_before_its_loop(how: str, expected: list[list[str]]) -> None:
    """Not so its index. What a loop carries is not written while it is read."""
    index = PointerArgument(dtypes.int32, aligned=True)
    assert schedules(gathers, x=index, y=index, n=I32, HOW=how, N=256) == expected


@jit
def in_place(x: Any, index: Any, HOW: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    if HOW == "run":
        p = x + i
    elif HOW == "shifted":
        p = x + i
        tl.store(p + 1, tl.load(p))
    elif HOW == "gather":
        p = x + tl.load(index + i)
    elif HOW == "rows":
        p = x + i[:, None] * 2 + tl.arange(0, 4)[None, :]
    else:
        p = x + i * 0
    v = tl.load(p)
    tl.store(p, v + 1)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("run", ["loop[load v, store _]"]),
        ("shifted", ["loop[load _] keeps _", "loop[store _]", "loop[load v, store _]"]),
        ("gather", ["loop[load _, load v] keeps v", "loop[store _]"]),  # indices may repeat
        ("rows", ["loop[load v] keeps v", "loop[store _]"]),  # rows overlap
        ("same", ["loop[load v] keeps v", "loop[store _]"]),
    ],
)
def test_a_store_joins_the_load_of_its_pointers_only_if_no_two_meet(how: str, expected: list[str]) -> None:
    index = PointerArgument(dtypes.int32, aligned=True)
    (found,) = schedules(in_place, x=F32, index=index, HOW=how, N=64)
    if how == "gather":  # the indices may lie in the array itself
        expected = [line.replace("keeps v", "keeps v, _") for line in expected]
    assert found == expected


@jit
def carried(x: Any, out: Any, n: Any, HOW: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + i[None, :])
    b = a + 1
    for _ in range(n):
        if HOW == "swap":
            a, b = b, a
        elif HOW == "turn":
            a, b = tl.trans(b), a
        elif HOW == "rows":
            a = a - tl.sum(a, 1)[:, None]
        elif HOW == "dot":
            a = tl.dot(b, b, a)
        elif HOW == "scaled":
            a = tl.dot(b, b, a * 0.5)
        elif HOW == "read":
            new = tl.dot(b, b, a * 0.5)
            b = b + a
            a = new
        elif HOW == "operand":
            a = tl.dot(a, b, a)
    tl.store(out + i[:, None] * N + i[None, :], a + b)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        # both are read before either is written, register by register
        ("swap", ["loop[write a, write b]"]),
        # b, turned, is converted before anything is written
        ("turn", ["convert_layout b", "loop[write a, write b]"]),
        # a is read again after the sums
        ("rows", ["loop[reduce _]", "loop[write a]"]),
        # the product is added to the carried tile itself
        ("dot", ["dot a", "a in a"]),
        # what is added to is written over the carried tile, which nothing reads any more
        ("scaled", ["loop[] keeps _", "dot a", "_ in a", "a in a"]),
        # here something does
        ("read", ["loop[] keeps _", "dot new", "loop[write a, write b]", "_ in new"]),
        ("operand", ["dot a", "loop[write a]"]),
    ],
)
def test_when_carried_tiles_are_written(how: str, expected: list[str]) -> None:
    assert schedules(carried, x=F32, out=F32, n=I32, HOW=how, N=32)[1] == expected


@jit
def read_late(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """The columns' sums of the old tile are needed where the new one is written; and the turned old one after that."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    s = tl.load(x + j)
    for _ in range(n):
        a, s = a + 1, s + tl.sum(a, 0)
    tl.store(out + i[:, None] * N + j[None, :], a + s[None, :])


def test_a_reduction_of_the_old_tile_comes_before_the_new_one() -> None:
    assert schedules(read_late, x=F32, out=F32, n=I32, M=16, N=32)[1] == ["loop[reduce _, write a]", "loop[write s]"]


@jit
def two_shapes(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, M * N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    b = tl.load(x + k)
    for _ in range(n):
        a, b = a + 1, b + tl.reshape(a, (M * N,))
    tl.store(out + k, tl.reshape(a, (M * N,)) + b)


def test_a_tile_that_a_later_loop_still_reads_is_staged() -> None:
    """b's layout has another shape, so its loop comes after a's, and reads the old a."""
    assert schedules(two_shapes, x=F32, out=F32, n=I32, M=16, N=32)[1] == ["loop[stage a]", "loop[write b]"]


# ---- what is kept, and what is computed again -------------------------------------------------------------------------


@jit
def spread(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    e = tl.exp(tl.load(x + j))
    tl.store(out + i[:, None] * N + j[None, :], e[None, :])


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # one loop reads each element of the row 64 times
        ((64, 16), ["loop[] keeps _", "loop[store _]"]),
        # a row of one register fills another: it is computed once either way
        ((1, 64), ["loop[store _]"]),
        ((4, 4), ["loop[store _]"]),
    ],
    ids=str,
)
def test_a_costly_value_is_kept_if_a_broadcast_repeats_it(sizes: tuple[int, int], expected: list[str]) -> None:
    assert schedules(spread, True, x=F32, out=F32, M=sizes[0], N=sizes[1]) == [expected]


@jit
def carried_later(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr, COSTLY: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + j)
    for k in range(n):
        new = tl.exp(a) if COSTLY else a + 1
        tl.store(out + j, new)
        tl.store(out + i[:, None] * N + j[None, :], k)
        a = new
    tl.store(out + j, a)


@pytest.mark.parametrize(("costly", "kept"), [(True, " keeps new"), (False, "")])
def test_the_write_of_a_carried_tile_is_a_second_reader(costly: bool, kept: str) -> None:
    """The store between is of another shape, so new is stored in one loop and carried on in another."""
    found = schedules(carried_later, x=F32, out=F32, n=I32, M=16, N=32, COSTLY=costly)
    assert found[1] == [f"loop[store new]{kept}", "loop[store _]", "loop[write a]"]


@jit
def used_by_an_inner_dot(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    d = tl.load(x + at) + 1
    acc = tl.zeros((N, N), tl.float32)
    for _ in range(n):
        acc = tl.dot(d, d, acc)
    tl.store(out + at, acc)


def test_what_a_dot_of_an_inner_loop_reads_is_kept_before_the_loop() -> None:
    """However little it costs: else each iteration would write it to a buffer of its own."""
    found = schedules(used_by_an_inner_dot, True, x=F32, out=F32, n=I32, N=16)
    assert found == [["loop[] keeps d", "for acc", "loop[store acc]"], ["dot acc", "acc in acc"]]


@jit
def accumulators(x: Any, out: Any, HOW: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    d = tl.load(x + at)
    if HOW == "loaded":
        e = tl.dot(d, d, tl.load(out + at))
    elif HOW == "product":
        e = tl.dot(d, d, tl.dot(d, d))
    elif HOW == "recipe":
        e = tl.dot(d, d, d + 1)
    else:
        e = tl.dot(d, d, d)
    tl.store(out + at, e)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("loaded", ["loop[load d, load _] keeps _, d", "dot e", "loop[store e]", "_ in e"]),
        # the inner product begins with zeros, which are written to its result
        ("product", ["loop[load d] keeps d", "dot _", "dot e", "loop[store e]", "_ in e"]),
        ("recipe", ["loop[load d] keeps d", "loop[] keeps _", "dot e", "loop[store e]", "_ in e"]),
        # the product reads it as an operand too
        ("operand", ["loop[load d] keeps d", "dot e", "loop[store e]"]),
    ],
)
def test_a_product_takes_over_the_buffer_of_what_it_adds_to(how: str, expected: list[str]) -> None:
    assert schedules(accumulators, x=F32, out=F32, HOW=how, N=16) == [expected]
