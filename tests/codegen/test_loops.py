"""Which register loops kernels become, the index algebra they run on, how registers meet memory, and what other targets get.

A schedule is written as a list: ``loop[load v, reduce e] keeps x`` is a register loop with its roots in order and the values it
writes to buffers, ``dot acc`` an op between loops, ``a in b`` says that a's buffer is b's.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportPrivateUsage=false

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import ir
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.ir import SSAValue

import weft.language as tl
from weft import dtypes
from weft.codegen import CompileOptions, emit_assembly, emit_llvm
from weft.codegen.access import access_shape
from weft.codegen.compile import lay_out
from weft.codegen.cost import Costs
from weft.codegen.fusion import Fusion
from weft.codegen.index import Counter, Index, apply_columns
from weft.codegen.microkernel import Block as RegisterBlock
from weft.codegen.microkernel import register_block
from weft.codegen.placement import Placement
from weft.codegen.schedule import Item, RegisterLoop, Root, WriteBack, moves_data
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.layout import vector
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
    accesses = (op for op in module.walk() if isinstance(op, tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp))
    axis = analyse(function)
    fusion = Fusion({op.pointer: base_argument(op.pointer) for op in accesses}, disjoint, axis)
    placement = Placement(Costs(axis))
    found: list[list[str]] = []
    for op in module.walk():
        for region in op.regions if not isinstance(op, tile.ReduceOp) and op is not module else ():
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


def test_a_fold_of_the_old_tile_comes_before_the_new_one() -> None:
    assert schedules(read_late, x=F32, out=F32, n=I32, M=16, N=32)[1] == ["loop[reduce _, write a]", "loop[write s]"]


# ---- indices --------------------------------------------------------------------------------------------------------

BITS = 6


def evaluate(index: Index, counters: dict[Counter, int]) -> int:
    """The definition: the constant, and each counter's set bits' columns."""
    result = index.const
    for counter, columns in index.terms:
        for bit, column in enumerate(columns):
            result ^= column * (counters[counter] >> bit & 1)
    return result


@st.composite
def indices(draw: st.DrawFn) -> tuple[Index, dict[Counter, int]]:
    """An index over two counters, and values for them."""
    counters = [Counter(ir.Constant(ir.IntType(64), 0), draw(st.integers(0, 4))) for _ in range(2)]
    column = st.integers(0, (1 << BITS) - 1)
    terms = tuple((c, tuple(draw(st.lists(column, min_size=c.bits, max_size=c.bits)))) for c in counters)
    return Index(draw(column), terms), {c: draw(st.integers(0, (1 << c.bits) - 1)) for c in counters}


columns_of_a_map = st.lists(st.integers(0, 255), min_size=BITS, max_size=BITS)


@settings(max_examples=100, deadline=None)
@given(indices(), columns_of_a_map, columns_of_a_map)
def test_through_is_the_linear_map(case: tuple[Index, dict[Counter, int]], first: list[int], second: list[int]) -> None:
    index, counters = case
    at = evaluate(index, counters)
    mapped = index.through(first)
    assert evaluate(mapped, counters) == apply_columns(first, at)
    both = [apply_columns(second + [0, 0], c) for c in first]
    assert evaluate(mapped.through(second + [0, 0]), counters) == apply_columns(both, at)
    assert all(any(columns) for _, columns in mapped.terms), "a counter that does not matter is not mentioned"


def test_equal_registers_have_equal_indices() -> None:
    """The broadcast that forgets bit 0 and the one that forgets bit 2 are different; applied where these bits are 0 they are
    the same value, with the same hash."""
    counter = Counter(ir.Constant(ir.IntType(64), 0), 1)
    index = Index(0, ((counter, (2,)),))
    assert index.through((0, 2, 4)) == index.through((1, 2, 0)) == index
    assert hash(index.through((0, 2, 4))) == hash(index)
    assert Index(0, ((counter, (1,)),)).through((0, 2, 4)) == Index()


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(BITS)), st.integers(0, BITS), st.data())
def test_emitted_indices_are_what_they_say(order: list[int], split: int, data: st.DataObject) -> None:
    """For two counters whose bits go to different places, with a constant in the places left: the emitted instructions are
    interpreted and compared with the definition."""
    used = data.draw(st.integers(split, BITS))
    places = [1 << place for place in order]
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 2), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    parts = (places[:split], places[split:used])
    counters = [Counter(argument, len(part)) for argument, part in zip(function.args, parts, strict=True)]
    const = sum(place for place in places[used:] if data.draw(st.booleans()))
    index = Index(const, tuple((c, tuple(part)) for c, part in zip(counters, parts, strict=True) if part))
    result = index.value(builder)
    for values in (
        (0, 0),
        (1, 1),
        *((1 << k, 1 << k) for k in range(BITS)),
        ((1 << split) - 1, (1 << used - split) - 1),
    ):
        inputs = {c: v & ((1 << c.bits) - 1) for c, v in zip(counters, values, strict=True)}
        environment = {argument: inputs[c] for argument, c in zip(function.args, counters, strict=True)}
        assert interpret(builder.block, result, environment) == evaluate(index, inputs)


MEANINGS: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_,
    "shl": operator.lshift,
    "lshr": operator.rshift,
    "add": operator.add,
}


def interpret(block: ir.Block, result: ir.Value, environment: dict[Any, int]) -> int:
    """Runs straight-line and, shl, lshr, add."""
    known = dict(environment)

    def value(operand: Any) -> int:
        return operand.constant if isinstance(operand, ir.Constant) else known[operand]

    for instruction in block.instructions:
        known[instruction] = MEANINGS[instruction.opname](*map(value, instruction.operands))
    return value(result)


def test_bits_that_meet_are_refused() -> None:
    counter = Counter(ir.Constant(ir.IntType(64), 0), 2)
    builder = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "f").append_basic_block())
    with pytest.raises(NotImplementedError, match="register index with overlapping bits"):
        Index(2, ((counter, (1, 2)),)).value(builder)
    with pytest.raises(NotImplementedError) as caught:
        Index(0, ((counter, (1, 6)),)).value(builder)
    assert str(caught.value) == "register index column 0b110 has several bits"


# ---- runs in memory -------------------------------------------------------------------------------------------------

SIZE = st.sampled_from([1, 2, 4, 8, 32])


@settings(max_examples=200, deadline=None)
@given(st.lists(SIZE, min_size=1, max_size=3), st.sampled_from([1, 2, 4, 16]), st.data())
def test_access_shape_against_addresses(sizes: list[int], lanes: int, data: st.DataObject) -> None:
    """For addresses with just the contiguity promised, every lane's element is where the shape says: ``run`` elements on
    from the first of its run, in the place ``lane_of`` names. Each different element is in exactly one run."""
    order = data.draw(st.permutations(range(len(sizes))))
    contiguity = [data.draw(st.sampled_from([1 << k for k in range(size.bit_length())])) for size in sizes]
    layout = vector(sizes, lanes, order)
    shape = access_shape(layout, contiguity)
    along = data.draw(st.integers(0, len(sizes) - 1))

    def address(flat: int) -> int:
        """A number for each element: consecutive along one dimension within groups of the contiguity, far apart elsewhere."""
        coordinates = layout.unflatten(flat)
        group, inside = divmod(coordinates[along], contiguity[along])
        others = [c for axis, c in enumerate(coordinates) if axis != along]
        return hash((group, *others)) % 10**9 * 1000 + inside

    register = data.draw(st.integers(0, layout.in_size("register") - 1))
    elements = [layout.flat(register=register, lane=lane) for lane in range(lanes)]
    in_runs = [elements[start + j] for start in shape.starts for j in range(shape.run)]
    assert sorted(in_runs) == sorted(set(elements))
    assert shape.elements == len(set(elements))
    assert [in_runs[place] for place in shape.lane_of] == elements
    assert shape.identity == (list(shape.lane_of) == list(range(shape.elements)))
    dimension = next((d for d in reversed(range(len(sizes))) if walks(layout.unflatten, elements, d)), None)
    if along == dimension and shape.run > 1:
        for start in shape.starts:
            first = address(elements[start])
            assert [address(elements[start + j]) for j in range(shape.run)] == list(range(first, first + shape.run))
    assert shape.run <= max(min(c, n) for c, n in zip(contiguity, sizes, strict=True))


def walks(unflatten: Any, elements: list[int], dimension: int) -> bool:
    """Whether the second lane is the next element along a dimension."""
    if len(elements) < 2:
        return False
    here, there = unflatten(elements[0]), unflatten(elements[1])
    return there[dimension] == here[dimension] + 1


# ---- targets --------------------------------------------------------------------------------------------------------

LINUX, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
TARGETS = {
    "x86-64": CpuTarget(LINUX, "x86-64", "+sse2", 128),
    "haswell": CpuTarget(LINUX, "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256),
    "skylake-avx512": CpuTarget(LINUX, "skylake-avx512", "+avx512f,+avx512vl,+avx512bw,+avx512dq,+fma,+avx2", 512),
    "aarch64": CpuTarget(ARM, "generic", "+neon", 128),
    "apple": CpuTarget("arm64-apple-macosx", "apple-m1", "+neon,+fullfp16", 128),
    "none": CpuTarget(LINUX, "x86-64", "", 64),
}


@pytest.mark.parametrize(
    ("target", "dtype", "m", "n", "expected"),
    [
        ("x86-64", dtypes.float32, 64, 64, RegisterBlock(4, 2, 4)),  # 8 of 16 registers
        ("haswell", dtypes.float32, 64, 64, RegisterBlock(4, 2, 8)),
        ("haswell", dtypes.float64, 64, 64, RegisterBlock(4, 2, 4)),
        ("skylake-avx512", dtypes.float32, 64, 64, RegisterBlock(8, 2, 16)),  # 16 of 32
        ("skylake-avx512", dtypes.int32, 64, 16, RegisterBlock(16, 1, 16)),
        ("skylake-avx512", dtypes.float32, 2, 64, RegisterBlock(2, 2, 16)),
        ("aarch64", dtypes.float32, 64, 64, RegisterBlock(8, 2, 4)),
        ("apple", dtypes.float64, 64, 64, RegisterBlock(8, 2, 2)),
        ("aarch64", dtypes.float32, 1, 1, RegisterBlock(1, 1, 1)),
        ("none", dtypes.float64, 4, 4, RegisterBlock(4, 2, 1)),
    ],
)
def test_register_block(target: str, dtype: Any, m: int, n: int, expected: RegisterBlock) -> None:
    assert register_block(TARGETS[target], dtype, m, n) == expected


@pytest.mark.parametrize("m", [1, 2, 16, 128])
@pytest.mark.parametrize("n", [1, 4, 16, 128])
@pytest.mark.parametrize("target", TARGETS)
def test_register_blocks_divide_the_tile(target: str, m: int, n: int) -> None:
    for dtype in (dtypes.float32, dtypes.float64, dtypes.int32):
        block = register_block(TARGETS[target], dtype, m, n)
        assert m % block.rows == 0
        assert n % (block.columns * block.lanes) == 0
        assert block.lanes * dtype.bits <= max(TARGETS[target].vector_bits, dtype.bits)


@jit
def everything(x: Any, h: Any, out: Any, flags: Any, n: Any, N: tl.constexpr) -> None:
    """Masked, strided and gathered accesses, a conversion between layouts, folds, a product, narrow floats, an atomic, a loop."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    v = tl.load(x + at, mask=i[None, :] < n, other=0.0)
    w = tl.load(h + at).to(tl.float32)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        acc = tl.dot(v, tl.trans(w), acc) + k
    best = tl.argmax(acc, axis=1)
    rest = tl.sum(tl.exp(acc - tl.max(acc, axis=1)[:, None]), axis=1)
    tl.store(out + at, acc, mask=i[:, None] < n)
    tl.store(out + N * N + i, tl.load(x + best) / rest)
    tl.atomic_add(out + best, rest)
    tl.store(flags + i, rest > 1)
    tl.store(h + at, (acc * v).to(h.dtype.element_ty))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("half", [dtypes.float16, dtypes.bfloat16, dtypes.float8_e5m2], ids=str)
def test_every_target_gets_code(target: str, half: Any) -> None:
    """LLVM accepts it and gets through its passes; it calls nothing but what every C library has."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    arguments = {"x": F32, "h": PointerArgument(half), "out": F32, "flags": PointerArgument(dtypes.bool_), "n": I32}
    module = module_of(everything, **arguments, N=16)
    llvm.parse_assembly(emit_llvm(module.clone(), TARGETS[target], CompileOptions())).verify()
    assembly = emit_assembly(module, TARGETS[target], CompileOptions())
    called = set(re.findall(r"^\s+(?:callq?|bl|b|jmpq?)\s+_?([A-Za-z][\w.]*)", assembly, re.MULTILINE))
    outside = {name for name in called if not name.startswith(("weft.", "LBB"))}
    assert outside <= {"expf", "memcpy", "memset", "bzero"}


# ---- big tiles ------------------------------------------------------------------------------------------------------


@jit
def big_accumulator(a: Any, b: Any, out: Any, n: Any, N: tl.constexpr, K: tl.constexpr) -> None:
    i, k = tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((N, N), tl.float32)
    for _ in range(n):
        acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + i[None, :]), acc)
    tl.store(out + i[:, None] * N + i[None, :], acc * 2)


def instructions(kernel: KernelFunction, **arguments: Any) -> int:
    """How many instructions LLVM is given."""
    text = emit_llvm(module_of(kernel, **arguments), TARGETS["skylake-avx512"], CompileOptions(disjoint=True))
    return sum(len(list(block.instructions)) for f in llvm.parse_assembly(text).functions for block in f.blocks)


def test_code_does_not_grow_with_the_tile() -> None:
    """From where nothing is unrolled completely: a thousand times the elements, the same code but for constants."""
    arguments = {"x": F32, "y": F32, "n": I32}
    row = [instructions(softmax, **arguments, N=n) for n in (512, 4096, 131072)]
    assert row[0] == row[1] == row[2] < 1500
    matrices = {"a": F32, "b": F32, "out": F32, "n": I32}
    block = [instructions(big_accumulator, **matrices, N=n, K=32) for n in (128, 256)]
    assert block[0] == block[1] < 1500
