"""Every claim of axis analysis, checked against the values that the reference computes for many programs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sampling import every
from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, pointer, scalar, shape_of
from weft.reference.interpreter import Program
from weft.reference.memory import Memory
from weft.reference.programs import finish
from weft.transforms import axis
from weft.transforms.axis import AxisInfo
from weft.transforms.axis_boxes import box_of
from weft.transforms.axis_info import Box

Array = NDArray[Any]
EXACT = ("add", "sub", "mul", "shl")


class OverflowedError(Exception):
    """An operation of signed 32 or 64 bits overflowed, which the analysis takes not to happen."""


class Checked(dict[SSAValue, Array]):
    """The values of one program; each assignment is held against the analysis."""

    def __init__(self, claims: Mapping[SSAValue, AxisInfo]):
        super().__init__()
        self.claims = claims

    def update(self, *pairs: Any, **named: Any) -> None:
        for value, array in cast(list[tuple[SSAValue, Array]], list(*pairs)):
            if not dtype_of(value).is_float or is_pointer(value):
                owner = value.owner
                if isinstance(owner, tile.BinaryOp):
                    self.check_overflow(owner)
                check(value, np.atleast_1d(array), self.claims[value])
            self[value] = array

    def check_overflow(self, op: tile.BinaryOp) -> None:
        dtype = dtype_of(op.lhs)
        if op.kind.data not in EXACT or not dtype.signed or dtype.bits < 32:
            return
        lhs, rhs = (self[v].astype(object) for v in (op.lhs, op.rhs))
        if op.kind.data == "shl":
            exact = lhs * 2 ** (rhs % 2**dtype.bits % 128)
        else:
            exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op.kind.data](lhs, rhs)
        if not np.all((exact >= dtype.min) & (exact <= dtype.max)):
            raise OverflowedError


def exact(array: Array) -> Array:
    """In a type where sums, differences and products of what claims speak of do not overflow."""
    return array.astype(np.int64 if array.itemsize < 8 else object)


def groups_of(array: Array, dimension: int, size: int) -> Array:
    """Groups of ``size`` along a dimension, as the last axis."""
    return array.swapaxes(dimension, -1).reshape(-1, size)


def check(value: SSAValue, array: Array, info: AxisInfo) -> None:
    def where() -> str:
        return f"{value} = {array}: {info}"

    numbers = exact(array)
    for d in range(info.rank):
        runs = groups_of(numbers, d, info.contiguity[d])
        assert (runs[:, 1:] - runs[:, :-1] == info.unit).all(), f"contiguity along {d} of {where()}"
        assert (runs[:, 0] % info.divisibility[d] == 0).all(), f"divisibility along {d} of {where()}"
        steady = groups_of(numbers, d, info.constancy[d])
        assert (steady == steady[:, :1]).all(), f"constancy along {d} of {where()}"
    box = box_of(info)
    for d, (step, group) in enumerate(box.along):
        inner = groups_of(numbers, d, group)
        assert (inner[:, 1:] - inner[:, :-1] == step * box.unit).all(), f"box along {d} of {where()}"
    firsts = numbers.reshape(array.shape or (1,))[tuple(slice(None, None, group) for group in box.groups)]
    assert (firsts % box.divisor == 0).all(), f"divisor of boxes of {where()}"
    if info.constant is not None:
        assert (array == info.constant).all(), f"constant of {where()}"
    if info.nonnegative:
        assert (array >= 0).all(), f"sign of {where()}"


def run_checked(module: ModuleOp, arguments: list[Array], numbers: list[int], grid: int) -> Mapping[SSAValue, AxisInfo]:
    """Executes every program, checking each value it computes; pointers come before numbers among the parameters."""
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    claims = axis.analyse(function)
    parameters = function.body.block.args
    values = [np.array(a.__array_interface__["data"][0], np.int64) for a in arguments]
    values += [np.array(n, dtype_of(p).numpy) for n, p in zip(numbers, parameters[len(arguments) :], strict=True)]
    with np.errstate(all="ignore"):
        for index in range(grid):
            program = Program(Memory(arguments), (grid, 1, 1), (index, 0, 0), Checked(claims))
            finish(program.run(function.body.block, values))
            assert all(result in program.values for op in function.body.block.ops for result in op.results)
    return claims


class Generator:
    """Random straight-line and looping integer code over scalars and tensors of up to two dimensions."""

    SHAPES = ((), (16,), (1, 16), (8, 1), (8, 16), (16, 8), (128,), (12,))
    TYPES = (dtypes.int32, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.int8, dtypes.uint8, dtypes.int16)
    BINARY = ("add", "add", "sub", "mul", "div", "rem", "and", "or", "xor", "shl", "shr", "min", "max")
    NUMBERS = (0, 1, 2, 3, 4, 7, 8, 12, 16, 31, 64, 127, -1, -4, -8, -3)

    def __init__(self, seed: int, block: Block):
        self.random = random.Random(seed)
        self.block = block
        self.values: list[SSAValue] = list(block.args)

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        self.values.extend(op.results)
        return op.results[0]

    def integers(self) -> list[SSAValue]:
        return [v for v in self.values if not is_pointer(v) and dtype_of(v).is_integer]

    def constant(self, dtype: DType, shape: tuple[int, ...]) -> SSAValue:
        number = (self.random.choice(self.NUMBERS) - dtype.min) % (1 << dtype.bits) + dtype.min
        one = self.add(tile.ConstantOp(number, scalar(dtype)))
        return self.add(tile.SplatOp(one, shape)) if shape else one

    def like(self, value: SSAValue) -> SSAValue:
        """Another value of the same type, or a constant."""
        same = [v for v in self.values if v.type == value.type]
        if self.random.random() < 0.4:
            return self.constant(dtype_of(value), shape_of(value))
        return self.random.choice(same)

    def step(self) -> None:
        """One more op (or few)."""
        choose = self.random.choice
        match choose(
            ("binary",) * 6
            + ("compare", "cast", "cast", "shape", "shape", "rearranged", "arange", "select", "pointer", "unary")
        ):
            case "binary":
                lhs = choose(self.integers())
                self.add(tile.BinaryOp(choose(self.BINARY), lhs, self.like(lhs)))
            case "compare":
                lhs = choose(self.integers())
                self.add(tile.CompareOp(choose(tile.COMPARE), lhs, self.like(lhs)))
            case "cast":
                self.add(tile.CastOp(choose(self.integers()), choose(self.TYPES)))
            case "unary":
                self.add(tile.UnaryOp(choose(("neg", "not", "abs")), choose(self.integers())))
            case "arange":
                size = choose((8, 12, 16, 128))
                start = choose((0, 0, 0, 4, 16, 1))
                self.add(tile.ArangeOp(start, start + size))
            case "shape":
                self.shape(choose(self.values))
            case "rearranged":
                self.rearranged()
            case "select":
                self.select()
            case _:
                self.address()

    def shape(self, value: SSAValue) -> None:
        choose, shape = self.random.choice, shape_of(value)
        if not shape:
            self.add(tile.SplatOp(value, choose(self.SHAPES[1:])))
        elif len(shape) == 1:
            other = choose([s for s in (*self.SHAPES, (4, 32), (2, 1, 8), (3, 4)) if np.prod(s) == shape[0] and s])
            self.add(choose((tile.ExpandDimsOp(value, choose((0, 1))), tile.ReshapeOp(value, other))))
        elif 1 in shape:
            grown = tuple(choose((8, 16)) if size == 1 else size for size in shape)
            self.add(choose((tile.BroadcastOp(value, grown), tile.ReshapeOp(value, (int(np.prod(shape)),)))))
        elif len(shape) == 2:
            flat = tile.ReshapeOp(value, choose(((int(np.prod(shape)),), (4, int(np.prod(shape)) // 4))))
            self.add(choose((tile.TransOp(value, (1, 0)), flat)))

    def rearranged(self) -> None:
        """Join with a value of the type, split where it ends in a pair, or flip."""
        value = self.random.choice([v for v in self.values if shape_of(v)])
        shape, same = shape_of(value), [v for v in self.values if v.type == value.type]
        ops: list[Operation] = [tile.FlipOp(value, self.random.randrange(len(shape)))]
        if len(shape) < 3:
            ops.append(tile.JoinOp(value, self.random.choice(same)))
        if len(shape) > 1 and shape[-1] == 2:
            ops.append(tile.SplitOp(value))
        self.add(self.random.choice(ops))

    def select(self) -> None:
        conditions = [v for v in self.values if not is_pointer(v) and dtype_of(v).is_bool]
        pairs = [(c, v) for c in conditions for v in self.values if shape_of(c) == shape_of(v)]
        if pairs:
            condition, lhs = self.random.choice(pairs)
            same = [v for v in self.values if v.type == lhs.type]
            self.add(tile.SelectOp(condition, lhs, self.random.choice(same)))

    def address(self) -> None:
        pointers = [v for v in self.values if is_pointer(v)]
        base = self.random.choice(pointers)
        offsets = [v for v in self.integers() if shape_of(v) == shape_of(base)]
        if not offsets and not shape_of(base):
            return
        if offsets:
            self.add(tile.AddPtrOp(base, self.random.choice(offsets)))
        wide = [v for v in self.integers() if shape_of(v)]
        if wide and not shape_of(base):
            offset = self.random.choice(wide)
            self.add(tile.AddPtrOp(self.add(tile.SplatOp(base, shape_of(offset))), offset))

    def loop(self, steps: int) -> None:
        """A loop of up to four iterations that carries two values."""
        low, high, step = (
            self.add(tile.ConstantOp(n, scalar(dtypes.int32))) for n in (self.random.choice((0, 4)), 13, 4)
        )
        carried = self.random.sample(self.values, 2)
        body = Block(arg_types=[scalar(dtypes.int32), *(v.type for v in carried)])
        outer, visible = self.block, len(self.values)
        self.block = body
        self.values.extend(body.args)
        for _ in range(steps):
            self.step()
        results = [
            self.random.choice([v for v in self.values[-steps - 5 :] + list(body.args) if v.type == c.type] or [c])
            for c in carried
        ]
        body.add_op(scf.YieldOp(*results))
        self.block = outer
        del self.values[visible:]
        self.add(scf.ForOp(low, high, step, carried, Region(body)))


POINTER = pointer(dtypes.float32)
PARAMETERS: tuple[Attribute, ...] = (POINTER, pointer(dtypes.int8), scalar(dtypes.int32), scalar(dtypes.int32))


def build(seed: int) -> ModuleOp:
    """A random function of two pointers (at 16 and 8), a multiple of 16 and any number."""
    promises = [{axis.DIVISIBILITY: IntegerAttr(n, i64)} for n in (16, 8, 16)]
    function = func.FuncOp("k", (PARAMETERS, []), arg_attrs=ArrayAttr([DictionaryAttr(p) for p in (*promises, {})]))
    generator = Generator(seed, function.body.block)
    generator.add(tile.ProgramIdOp(0))
    generator.add(tile.ArangeOp(0, 16))
    for _ in range(12):
        generator.step()
    generator.loop(6)
    for _ in range(6):
        generator.step()
    function.body.block.add_op(func.ReturnOp())
    module = ModuleOp([function])
    module.verify()
    return module


def aligned(dtype: DType, alignment: int) -> Array:
    """An array whose address is a multiple of ``alignment`` and of nothing larger."""
    memory = np.zeros(4096, np.uint8)
    offset = (alignment - memory.ctypes.data) % (2 * alignment)
    return memory[offset : offset + 1024].view(dtype.numpy)


@pytest.mark.parametrize("block", every(4, range(8)))
def test_random_functions(block: int) -> None:
    checked = 0
    for seed in range(block * 40, block * 40 + 40):
        module = build(seed)
        rng = random.Random(seed)
        try:
            numbers = [16 * rng.randrange(-3, 40), rng.randrange(-20, 200)]
            run_checked(module, [aligned(dtypes.float32, 16), aligned(dtypes.int8, 8)], numbers, grid=5)
            checked += 1
        except OverflowedError:
            continue
    assert checked > 20


def grid_of_numbers(generator: Generator) -> SSAValue:
    """A tile of 8 x 16: an index along one of its dimensions, partly constant, or with gaps, times and plus constants."""
    choose = generator.random.choice
    dimension = choose((0, 1))
    size = (8, 16)[dimension]
    start = choose((0, 0, 4, 3, -8))
    index = generator.add(tile.ArangeOp(0, size))
    if start:
        index = generator.add(tile.BinaryOp("add", index, splat_of(generator, start, (size,))))
    for kind, numbers in (("div", (2, 4)), ("rem", (2, 4)), ("mul", (2, 8, 16, 3, -4)), ("shl", (1, 4))):
        if generator.random.random() < 0.35:
            index = generator.add(tile.BinaryOp(kind, index, splat_of(generator, choose(numbers), (size,))))
    if generator.random.random() < 0.2:
        index = generator.add(tile.CastOp(generator.add(tile.CastOp(index, dtypes.uint32)), dtypes.int64))
        index = generator.add(tile.CastOp(index, dtypes.int32))
    wide = generator.add(tile.ExpandDimsOp(index, 1 - dimension))
    return generator.add(tile.BroadcastOp(wide, (8, 16)))


def splat_of(generator: Generator, number: int, shape: tuple[int, ...]) -> SSAValue:
    return generator.add(tile.SplatOp(generator.add(tile.ConstantOp(number, scalar(dtypes.int32))), shape))


@pytest.mark.parametrize("block", range(2))
def test_random_addresses_of_two_dimensions(block: int) -> None:
    """Sums of rows and columns, transposed and reshaped: what is claimed of several dimensions together holds."""
    large = 0
    for seed in range(block * 100, block * 100 + 100):
        function = func.FuncOp(
            "k", ([POINTER], []), arg_attrs=ArrayAttr([DictionaryAttr({axis.DIVISIBILITY: IntegerAttr(16, i64)})])
        )
        generator = Generator(seed, function.body.block)
        total = grid_of_numbers(generator)
        for _ in range(generator.random.choice((1, 1, 2))):
            total = generator.add(
                tile.BinaryOp(generator.random.choice(("add", "add", "sub")), total, grid_of_numbers(generator))
            )
        base = generator.add(tile.SplatOp(function.body.block.args[0], (8, 16)))
        value = generator.add(tile.AddPtrOp(base, total)) if generator.random.random() < 0.7 else total
        if generator.random.random() < 0.3:
            value = generator.add(tile.TransOp(value, (1, 0)))
        for shape in generator.random.sample([(128,), (4, 32), (2, 4, 16), (16, 1, 8), (64, 2), (8, 16)], 2):
            value = generator.add(tile.ReshapeOp(value, shape))
        function.body.block.add_op(func.ReturnOp())
        module = ModuleOp([function])
        module.verify()
        try:
            claims = run_checked(module, [aligned(dtypes.float32, 16)], [], grid=1)
        except OverflowedError:
            continue
        large += sum(sum(g > 1 for g in box_of(info).groups) > 1 for info in claims.values())
    assert large > 50


def rows_and_columns(generator: Generator, dtype: DType) -> tuple[SSAValue, SSAValue]:
    """0 to 63 along the first dimension, 0 to 3 along the second; tiles of 64 x 4."""
    tiles: list[SSAValue] = []
    for size, other in ((64, 1), (4, 0)):
        index = generator.add(tile.CastOp(generator.add(tile.ArangeOp(0, size)), dtype))
        tiles.append(generator.add(tile.BroadcastOp(generator.add(tile.ExpandDimsOp(index, other)), (64, 4))))
    return tiles[0], tiles[1]


def number(generator: Generator, value: int, dtype: DType) -> SSAValue:
    one = generator.add(tile.ConstantOp(value, scalar(dtype)))
    return generator.add(tile.SplatOp(one, (64, 4)))


def claims_of(block: Block) -> Mapping[SSAValue, AxisInfo]:
    """The claims of a function without parameters; they hold."""
    block.add_op(func.ReturnOp())
    module = ModuleOp([func.FuncOp("k", ([], []), Region(block))])
    module.verify()
    return run_checked(module, [], [], grid=1)


WRAPPING = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint64)


@pytest.mark.parametrize("dtype", WRAPPING, ids=str)
def test_boxes_end_where_numbers_wrap(dtype: DType) -> None:
    """In the tile's own type, and where a tile of another type becomes this one: rows lie up to a fourth of the type apart."""
    generator = Generator(0, Block())
    for source in (dtype, dtypes.int32, dtypes.int64):
        rows, columns = rows_and_columns(generator, source)
        for step in (4, 1 << min(source.bits - 2, 22), -8 if source.signed else source.max - 7):
            total = generator.add(tile.BinaryOp("mul", rows, number(generator, step, source)))
            total = generator.add(tile.BinaryOp("add", total, columns))
            generator.add(tile.CastOp(total, dtype))
            generator.add(tile.CastOp(generator.add(tile.BinaryOp("sub", columns, total)), dtype))
    claims_of(generator.block)


@pytest.mark.parametrize("step", [4, 8])
def test_boxes_of_products_shifts_and_other_shapes(step: int) -> None:
    """Rows of 4 follow one another, or lie 8 apart."""
    generator = Generator(0, Block())
    rows, columns = rows_and_columns(generator, dtypes.int32)
    factor, power = (number(generator, n, dtypes.int32) for n in (step, step.bit_length() - 1))
    ways = [tile.BinaryOp("mul", rows, factor), tile.BinaryOp("mul", factor, rows), tile.BinaryOp("shl", rows, power)]
    sums = [generator.add(tile.BinaryOp("add", generator.add(way), columns)) for way in ways]
    expected = {
        (1, 64, 1, 4): [(0, 1), (step, 64), (0, 1), (1, 4)],
        (64, 1, 4): [(step, 64), (0, 1), (1, 4)],
        (256,): [(1, 256)] if step == 4 else [(1, 4)],
        (32, 8): [(8, 32), (1, 8)] if step == 4 else [(0, 1), (1, 4)],
        (64, 2, 2): [(4, 64), (2, 2), (1, 2)] if step == 4 else [(0, 1), (2, 2), (1, 2)],
    }
    shaped = {shape: generator.add(tile.ReshapeOp(sums[0], shape)) for shape in expected}
    claims = claims_of(generator.block)
    assert [box_of(claims[value]).along for value in sums] == [[(step, 64), (1, 4)]] * 3
    assert {shape: box_of(claims[value]).along for shape, value in shaped.items()} == expected


def test_a_box_begins_where_a_run_along_any_dimension_does() -> None:
    """What divides the first number of each run divides that of each box."""
    assert box_of(AxisInfo((1, 4), (4, 16), (1, 1))) == Box((0, 1), (1, 4), 16)
    assert box_of(AxisInfo((4, 1), (16, 4), (1, 1))) == Box((1, 0), (4, 1), 16)


@pytest.mark.parametrize(
    ("steps", "groups", "sizes", "flat"),
    [
        ((4, 1), (512, 4), (512, 4), ([1, 0], 2048)),
        ((4, 1), (8, 4), (512, 4), ([1, 0], 32)),
        ((8, 1), (512, 4), (512, 4), ([1], 4)),  # gaps between rows
        ((1, 64), (2, 16), (64, 16), ([0], 2)),
        ((2, 1), (16, 2), (16, 4), ([1], 2)),  # rows break off before the next begins
        ((0, 1), (16, 4), (16, 4), ([1], 4)),
        ((3, 0), (16, 4), (16, 4), (list[int](), 1)),
    ],
)
def test_dimensions_that_continue_one_another(
    steps: tuple[int, ...], groups: tuple[int, ...], sizes: tuple[int, ...], flat: tuple[list[int], int]
) -> None:
    assert Box(steps, groups, 16).flat(sizes) == flat


Kernel = Callable[[str, str], ModuleOp]
SIGNATURE = """
%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<i8>, %m: i32 {tile.divisibility = 16 : i64}, %n: i32
"""
HEAD = """
%pid = tile.program_id 0
%c0 = tile.constant 0 : i32
%c16 = tile.constant 16 : i32
%c64 = tile.constant 64 : i32
%base = tile.binary "mul" %pid, %c64 : i32
%r = tile.arange 0 64 : tensor<64xi32>
%b = tile.splat %base : i32 to tensor<64xi32>
%o = tile.binary "add" %b, %r : tensor<64xi32>
%ns = tile.splat %n : i32 to tensor<64xi32>
%ms = tile.splat %m : i32 to tensor<64xi32>
%s0 = tile.constant 0 : tensor<64xi32>
%s3 = tile.constant 3 : tensor<64xi32>
%s12 = tile.constant 12 : tensor<64xi32>
%s16 = tile.constant 16 : tensor<64xi32>
%neg = tile.binary "sub" %o, %s16 : tensor<64xi32>
"""
T = "tensor<64xi32>"


# name of the value, the lines that compute it; contiguity, divisibility, constancy. Derived from the definitions: %o is
# 64 pid .. 64 pid + 63, %neg starts at 64 pid - 16, so is negative in program 0; %m is a multiple of 16, %n any number.
@pytest.mark.parametrize(
    ("lines", "contiguity", "divisibility", "constancy"),
    [
        ("", 64, 64, 1),
        (f'%v = tile.binary "add" %o, %s16 : {T}', 64, 16, 1),
        (f'%v = tile.binary "add" %o, %s3 : {T}', 64, 1, 1),
        (f'%v = tile.binary "sub" %o, %ms : {T}', 64, 16, 1),
        (f'%v = tile.binary "sub" %ms, %o : {T}', 1, 1, 1),
        (f'%v = tile.binary "add" %o, %o : {T}', 1, 1, 1),
        (f'%v = tile.binary "mul" %o, %s12 : {T}', 1, 4, 1),
        (f'%v = tile.binary "mul" %ms, %s12 : {T}', 1, 64, 64),
        # x // 12: 12 = 3 * 4, so x in 4k .. 4k+3 gives one quotient; x // 16 sixteen of them
        (f'%v = tile.binary "div" %o, %s12 : {T}', 1, 1, 4),
        (f'%v = tile.binary "div" %o, %s16 : {T}', 1, 1, 16),
        (f'%v = tile.binary "div" %o, %ms : {T}', 1, 1, 16),
        (f'%v = tile.binary "div" %o, %ns : {T}', 1, 1, 1),
        (f'%v = tile.binary "div" %neg, %s16 : {T}', 1, 1, 1),  # -1 // 16 and -16 // 16 differ in C
        (f'%v = tile.binary "div" %o, %o : {T}', 1, 1, 1),  # a run of divisors is not one divisor
        (f'%v = tile.binary "div" %ms, %s16 : {T}', 1, 1, 64),
        (f'%v = tile.binary "div" %b, %s16 : {T}', 1, 4, 64),
        (f'%v = tile.binary "rem" %o, %s16 : {T}', 16, 16, 1),
        (f'%v = tile.binary "rem" %o, %s12 : {T}', 4, 4, 1),
        (f'%v = tile.binary "rem" %neg, %s16 : {T}', 1, 1, 1),  # -16 % 16 = 0, -15 % 16 = -15 in C
        (f'%v = tile.binary "rem" %o, %o : {T}', 1, 1, 1),
        (f'%k = tile.constant 15 : {T}\n%v = tile.binary "and" %neg, %k : {T}', 16, 16, 1),
        (f'%k = tile.constant -16 : {T}\n%v = tile.binary "and" %neg, %k : {T}', 1, 16, 16),
        # runs of 64 that start at 3 mod 16: rounding down to 16 changes inside a group of 16, and to 8 inside one of 8
        (f'%k = tile.constant -16 : {T}\n%w = tile.binary "add" %o, %s3 : {T}\n'
         f'%v = tile.binary "and" %w, %k : {T}', 1, 16, 1),
        (f'%k = tile.constant 2 : {T}\n%v = tile.binary "shr" %neg, %k : {T}', 1, 1, 4),
        (f'%k = tile.constant 2 : {T}\n%v = tile.binary "shl" %o, %k : {T}', 1, 4, 1),
        (f'%k = tile.constant 2 : {T}\n%v = tile.binary "shr" %b, %k : {T}', 1, 16, 64),
        (f'%v = tile.compare "lt" %o, %ms : {T} to tensor<64xi1>', 1, 1, 16),
        (f'%v = tile.compare "ge" %neg, %ms : {T} to tensor<64xi1>', 1, 1, 16),
        (f'%v = tile.compare "gt" %ms, %o : {T} to tensor<64xi1>', 1, 1, 16),
        (f'%v = tile.compare "le" %o, %ms : {T} to tensor<64xi1>', 1, 1, 1),  # changes after m, not at a multiple of 16
        (f'%v = tile.compare "lt" %ms, %o : {T} to tensor<64xi1>', 1, 1, 1),
        (f'%v = tile.compare "lt" %o, %ns : {T} to tensor<64xi1>', 1, 1, 1),
        # multiples of 16, but not one multiple: 0 < 0 is false, 1 < 16 true
        (f'%w = tile.binary "mul" %o, %s16 : {T}\n%v = tile.compare "lt" %o, %w : {T} to tensor<64xi1>', 1, 1, 1),
        (f'%v = tile.compare "eq" %ns, %ms : {T} to tensor<64xi1>', 1, 1, 64),
        # a condition constant on 16s chooses between runs
        (f'%c = tile.compare "lt" %o, %ms : {T} to tensor<64xi1>\n'
         f'%v = tile.select %c, %o, %neg : tensor<64xi1>, {T}', 16, 16, 1),
        (f'%c = tile.compare "lt" %o, %ns : {T} to tensor<64xi1>\n'
         f'%v = tile.select %c, %o, %neg : tensor<64xi1>, {T}', 1, 1, 1),
        (f'%c = tile.compare "lt" %o, %ms : {T} to tensor<64xi1>\n'
         f'%v = tile.select %c, %ms, %s0 : tensor<64xi1>, {T}', 1, 16, 16),
        (f'%v = tile.cast %neg : {T} to tensor<64xi64>', 64, 16, 1),
        (f'%v = tile.cast %neg : {T} to tensor<64xui32>', 16, 16, 1),  # wraps at 0
        (f'%v = tile.cast %o : {T} to tensor<64xui32>', 64, 64, 1),
        (f'%w = tile.binary "add" %o, %s3 : {T}\n%v = tile.cast %w : {T} to tensor<64xi8>', 1, 1, 1),
        (f'%v = tile.cast %o : {T} to tensor<64xi8>', 64, 64, 1),
        (f'%v = tile.unary "neg" %ms : {T}', 1, 16, 64),
        (f'%v = tile.unary "not" %ms : {T}', 1, 1, 64),
        (f'%p = tile.splat %x : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>>\n'
         f'%v = tile.addptr %p, %o : tensor<64x!tile.ptr<f32>>, {T} to tensor<64x!tile.ptr<f32>>', 64, 16, 1),
        (f'%p = tile.splat %x : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>>\n'
         f'%w = tile.binary "add" %o, %s3 : {T}\n'
         f'%v = tile.addptr %p, %w : tensor<64x!tile.ptr<f32>>, {T} to tensor<64x!tile.ptr<f32>>', 64, 4, 1),
        (f'%w = tile.binary "mul" %o, %ns : {T}\n%v = tile.hint %w divisibility [24] : {T}', 1, 8, 1),
    ],
)  # fmt: skip
def test_claims(kernel: Kernel, lines: str, contiguity: int, divisibility: int, constancy: int) -> None:
    module = kernel(SIGNATURE, HEAD + lines)
    hinted = "hint" in lines
    for m, n in ((0, 8), (48, 24), (-32, 40), (160, 16)) if hinted else ((0, 0), (48, 23), (-32, -5), (160, 77)):
        arrays = [aligned(dtypes.float32, 16), aligned(dtypes.int8, 1)]
        claims = run_checked(module, arrays, [m, n], grid=4)
        info = next(i for v, i in claims.items() if v.name_hint == ("v" if lines else "o"))
        assert (info.contiguity, info.divisibility, info.constancy) == ((contiguity,), (divisibility,), (constancy,))


def test_the_table_of_the_module(kernel: Kernel) -> None:
    text = """
        %pid = tile.program_id 0
        %c = tile.constant 1024 : i32
        %base = tile.binary "mul" %pid, %c : i32
        %splat = tile.splat %base : i32 to tensor<1024xi32>
        %range = tile.arange 0 1024 : tensor<1024xi32>
        %sum = tile.binary "add" %splat, %range : tensor<1024xi32>
        %p = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
        %a = tile.addptr %p, %sum : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32> to tensor<1024x!tile.ptr<f32>>
    """
    claims = run_checked(kernel(SIGNATURE, text), [aligned(dtypes.float32, 16), aligned(dtypes.int8, 1)], [0, 0], 3)
    found = {v.name_hint: (*i.contiguity, *i.constancy, *i.divisibility) for v, i in claims.items()}
    assert {k: found[k] for k in ("pid", "base", "splat", "range", "sum", "a")} == {
        "pid": (1, 1, 1),
        "base": (1, 1, 1024),
        "splat": (1, 1024, 1024),
        "range": (1024, 1, 2**62),
        "sum": (1024, 1, 1024),
        "a": (1024, 1, 16),
    }


# row-major offsets of an 8 x 16 tile with stride m, a multiple of 16
TILE = """
%r8 = tile.arange 0 8 : tensor<8xi32>
%r16 = tile.arange 0 16 : tensor<16xi32>
%rows = tile.expand_dims %r8 1 : tensor<8xi32> to tensor<8x1xi32>
%m8 = tile.splat %m : i32 to tensor<8x1xi32>
%starts = tile.binary "mul" %rows, %m8 : tensor<8x1xi32>
%wide = tile.broadcast %starts : tensor<8x1xi32> to tensor<8x16xi32>
%columns = tile.expand_dims %r16 0 : tensor<16xi32> to tensor<1x16xi32>
%tall = tile.broadcast %columns : tensor<1x16xi32> to tensor<8x16xi32>
%tile = tile.binary "add" %wide, %tall : tensor<8x16xi32>
%turned = tile.trans %tile [1, 0] : tensor<8x16xi32> to tensor<16x8xi32>
%flat = tile.reshape %tile : tensor<8x16xi32> to tensor<128xi32>
%steady = tile.reshape %wide : tensor<8x16xi32> to tensor<4x32xi32>
%third = tile.reshape %wide : tensor<8x16xi32> to tensor<32x4xi32>
%bar = tile.reshape %rows : tensor<8x1xi32> to tensor<1x8x1xi32>
%brick = tile.broadcast %bar : tensor<1x8x1xi32> to tensor<2x8x4xi32>
%laid = tile.reshape %brick : tensor<2x8x4xi32> to tensor<64xi32>
%cube = tile.reshape %tile : tensor<8x16xi32> to tensor<8x1x16xi32>
"""


def test_claims_of_two_dimensions(kernel: Kernel) -> None:
    expected = {
        "wide": ((1, 1), (16, 16), (1, 16)),
        "tall": ((1, 16), (1, 2**62), (8, 1)),
        "tile": ((1, 16), (1, 16), (1, 1)),
        "turned": ((16, 1), (16, 1), (1, 1)),
        "flat": ((16,), (16,), (1,)),
        "steady": ((1, 1), (16, 16), (1, 16)),
        "third": ((1, 1), (16, 16), (4, 4)),  # four rows of 4 make one row of 16
        "brick": ((1, 8, 1), (1, 2**62, 1), (2, 1, 4)),
        "laid": ((1,), (1,), (4,)),  # not 8: the two halves are alike, their rows are not
        "cube": ((1, 1, 16), (1, 1, 16), (1, 1, 1)),
    }
    for m in (16, 48, -32):
        arrays = [aligned(dtypes.float32, 16), aligned(dtypes.int8, 1)]
        claims = run_checked(kernel(SIGNATURE, TILE), arrays, [m, 0], 1)
        found = {v.name_hint: (i.contiguity, i.divisibility, i.constancy) for v, i in claims.items()}
        assert {name: found[name] for name in expected} == expected


def test_a_loop_forgets_what_an_iteration_breaks(kernel: Kernel) -> None:
    """%p advances by 4 elements of 4 bytes each time; %q by m; %d halves; the induction value starts below 0."""
    text = """
        %lo = tile.constant -8 : i32
        %hi = tile.constant 8 : i32
        %c4 = tile.constant 4 : i32
        %c2 = tile.constant 2 : i32
        %r = tile.arange 0 16 : tensor<16xi32>
        %mm = tile.splat %m : i32 to tensor<16xi32>
        %q, %d = scf.for %i = %lo to %hi step %c4 iter_args(%o = %r, %h = %c4) -> (tensor<16xi32>, i32) : i32 {
          %next = tile.binary "add" %o, %mm : tensor<16xi32>
          %half = tile.binary "div" %h, %c2 : i32
          %s = tile.binary "rem" %i, %c4 : i32
          scf.yield %next, %half : tensor<16xi32>, i32
        }
        %w, %k = scf.while (%a = %r, %b = %c4) : (tensor<16xi32>, i32) -> (tensor<16xi32>, i32) {
          %more = tile.compare "gt" %b, %lo : i32 to i1
          scf.condition(%more) %a, %b : tensor<16xi32>, i32
        } do {
        ^b(%a1: tensor<16xi32>, %b1: i32):
          %a2 = tile.binary "sub" %a1, %mm : tensor<16xi32>
          %b2 = tile.binary "sub" %b1, %c4 : i32
          scf.yield %a2, %b2 : tensor<16xi32>, i32
        }
    """
    claims = run_checked(kernel(SIGNATURE, text), [aligned(dtypes.float32, 16), aligned(dtypes.int8, 1)], [48, 0], 1)
    found = {v.name_hint: (i.contiguity[0], i.divisibility[0], i.nonnegative) for v, i in claims.items()}
    assert {name: found[name] for name in ("q", "d", "i", "o", "w", "k")} == {
        "q": (16, 16, False),
        "d": (1, 1, True),
        "i": (1, 4, False),
        "o": (16, 16, False),
        "w": (16, 16, False),
        "k": (1, 4, False),
    }


@pytest.mark.parametrize(
    ("test", "divisibility", "nonnegative"),
    [
        ('%rem = tile.binary "rem" %n, %c : i32\n%t = tile.compare "eq" %rem, %z : i32 to i1', 32, False),
        ('%rem = tile.binary "rem" %n, %c : i32\n%t = tile.compare "ne" %rem, %z : i32 to i1', 1, False),
        ('%t = tile.compare "ge" %n, %z : i32 to i1', 1, True),
        ('%t = tile.compare "le" %n, %z : i32 to i1', 1, False),
    ],
)
def test_assumptions(kernel: Kernel, test: str, divisibility: int, nonnegative: bool) -> None:
    text = f"%c = tile.constant 32 : i32\n%z = tile.constant 0 : i32\n{test}\ntile.assume %t"
    function = next(op for op in kernel("%n: i32", text).ops if isinstance(op, func.FuncOp))
    info = axis.analyse(function)[function.body.block.args[0]]
    assert (info.divisibility, info.nonnegative) == ((divisibility,), nonnegative)


@pytest.mark.parametrize(
    ("number", "narrow", "expected"),
    [(300, "i8", 44), (-200, "i8", 56), (200, "i8", -56), (-1, "ui8", 255), (300, "ui8", 44)],
)
def test_a_constant_wraps_in_a_narrower_type(kernel: Kernel, number: int, narrow: str, expected: int) -> None:
    text = f"%c = tile.constant {number} : i32\n%v = tile.cast %c : i32 to {narrow}"
    function = next(op for op in kernel("%n: i32", text).ops if isinstance(op, func.FuncOp))
    value = next(r for op in function.walk() for r in op.results if r.name_hint == "v")
    assert int(np.array(number).astype({"i8": np.int8, "ui8": np.uint8}[narrow])) == expected
    assert axis.analyse(function)[value].constant == expected


def test_an_assumption_in_a_branch_holds_there_only(kernel: Kernel) -> None:
    text = """
        %z = tile.constant 0 : i32
        %t = tile.compare "ge" %n, %z : i32 to i1
        scf.if %b {
          tile.assume %t
        }
        """
    function = next(op for op in kernel("%n: i32, %b: i1", text).ops if isinstance(op, func.FuncOp))
    assert not axis.analyse(function)[function.body.block.args[0]].nonnegative


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("%v = tile.addptr %x, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>", "x"),
        ("%v = tile.select %b, %x, %x : i1, !tile.ptr<f32>", "x"),
        ("%v = tile.select %b, %x, %y : i1, !tile.ptr<f32>", None),
        ("%a = tile.addptr %y, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>\n"
         "%v = scf.for %i = %n to %n step %n iter_args(%p = %a) -> (!tile.ptr<f32>) : i32 {\n"
         "  %next = tile.addptr %p, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>\n"
         "  scf.yield %next : !tile.ptr<f32>\n}", "y"),
        ("%v = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (!tile.ptr<f32>) : i32 {\n"
         "  scf.yield %y : !tile.ptr<f32>\n}", None),
        ("%v, %w = scf.for %i = %n to %n step %n iter_args(%p = %x, %q = %y)"
         " -> (!tile.ptr<f32>, !tile.ptr<f32>) : i32 {\n"
         "  scf.yield %q, %p : !tile.ptr<f32>, !tile.ptr<f32>\n}", None),
        ("%v = scf.if %b -> (!tile.ptr<f32>) {\n  scf.yield %x : !tile.ptr<f32>\n} else {\n"
         "  scf.yield %x : !tile.ptr<f32>\n}", "x"),
        ("%v = scf.while (%p = %x) : (!tile.ptr<f32>) -> (!tile.ptr<f32>) {\n"
         "  scf.condition(%b) %p : !tile.ptr<f32>\n} do {\n^b(%p1: !tile.ptr<f32>):\n"
         "  %next = tile.addptr %p1, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>\n"
         "  scf.yield %next : !tile.ptr<f32>\n}", "x"),
        # the loop's condition hands on its values in another order
        ("%o, %v = scf.while (%p = %x, %q = %k) : (!tile.ptr<f32>, i64) -> (i64, !tile.ptr<f32>) {\n"
         "  scf.condition(%b) %q, %p : i64, !tile.ptr<f32>\n} do {\n^b(%q1: i64, %p1: !tile.ptr<f32>):\n"
         "  %next = tile.addptr %p1, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>\n"
         "  scf.yield %next, %q1 : !tile.ptr<f32>, i64\n}", "x"),
        ("%o, %v = scf.while (%p = %x, %q = %k) : (!tile.ptr<f32>, i64) -> (i64, !tile.ptr<f32>) {\n"
         "  scf.condition(%b) %q, %p : i64, !tile.ptr<f32>\n} do {\n^b(%q1: i64, %p1: !tile.ptr<f32>):\n"
         "  %next = tile.addptr %p1, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>\n"
         "  scf.yield %y, %q1 : !tile.ptr<f32>, i64\n}", None),
        ("%o, %v = scf.while (%p = %x, %q = %k) : (!tile.ptr<f32>, i64) -> (i64, !tile.ptr<f32>) {\n"
         "  scf.condition(%b) %q, %y : i64, !tile.ptr<f32>\n} do {\n^b(%q1: i64, %p1: !tile.ptr<f32>):\n"
         "  %next = tile.addptr %p1, %n : !tile.ptr<f32>, i32 to !tile.ptr<f32>\n"
         "  scf.yield %next, %q1 : !tile.ptr<f32>, i64\n}", "y"),
        ("%one = tile.splat %x : !tile.ptr<f32> to tensor<4x!tile.ptr<f32>>\n"
         "%v = tile.reshape %one : tensor<4x!tile.ptr<f32>> to tensor<2x2x!tile.ptr<f32>>", "x"),
        ("%v = tile.bitcast %k : i64 to !tile.ptr<f32>", None),
        ("%i = tile.bitcast %x : !tile.ptr<f32> to i64\n%j = tile.binary \"add\" %i, %k : i64\n"
         "%v = tile.bitcast %j : i64 to !tile.ptr<f32>", None),
    ],
)  # fmt: skip
def test_base_argument(kernel: Kernel, lines: str, expected: str | None) -> None:
    module = kernel("%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %b: i1, %k: i64", lines)
    value = next(r for op in module.walk() for r in op.results if r.name_hint == "v")
    found = axis.base_argument(value)
    assert (None if found is None else found.name_hint) == expected
    values = [result for op in module.walk() for result in op.results]
    assert {v: axis.base_arguments(values)[v] for v in values} == {v: axis.base_argument(v) for v in values}
    assert axis.base_arguments([value])[value] is found
