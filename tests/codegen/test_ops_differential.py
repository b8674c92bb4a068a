"""Every tile op, compiled as a kernel of its own kind and run against the reference.

`test_arith` checks the arithmetic of single vectors against exact oracles; here whole kernels pass through layouts,
register loops and memory. Integers, conversions and elementwise float arithmetic agree bit for bit; transcendental
functions, `rsqrt` and reductions of inexact values within bounds stated below.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import accuracy
from codegen.conftest import MACHINES, Differential
from sampling import grid, some
from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.tile import BINARY, COMPARE, UNARY, class_of
from weft.ir.types import dtype_of, pointer, shape_of

pytestmark = pytest.mark.jit


@pytest.fixture(scope="module", params=["native", "sm_90", pytest.param("sm_80", marks=pytest.mark.nightly)])
def differ(request: pytest.FixtureRequest) -> Differential:
    """Every op as PTX, too."""
    return MACHINES[request.param]


Array = NDArray[Any]
Shape = tuple[int, ...]
Named = tuple[str, SSAValue]


class Maker:
    """Builds a function op by op: arguments are arrays, each loaded or stored as one tile in row-major order."""

    def __init__(self, aligned: bool = False):
        self.block = Block()
        self.arguments: list[Any] = []
        self._attributes: list[DictionaryAttr] = []
        promise: dict[str, Attribute] = {"tile.divisibility": IntegerAttr(16, i64)} if aligned else {}
        self._promise = DictionaryAttr(promise)

    def emit(self, op: Operation) -> SSAValue:
        """Adds an op; returns its first result."""
        self.block.add_op(op)
        return op.results[0]

    def pointers(self, array: Array, shape: Shape) -> SSAValue:
        """A new argument, and the pointers to its elements in row-major order in ``shape``."""
        dtype = dtypes.from_numpy(array.dtype)
        base = self.block.insert_arg(pointer(dtype), len(self.block.args))
        self.arguments.append(array)
        self._attributes.append(self._promise)
        if not shape:
            return base
        index = self.emit(tile.ArangeOp(0, array.size))
        if len(shape) > 1:
            index = self.emit(tile.ReshapeOp(index, shape))
        return self.emit(tile.AddPtrOp(self.emit(tile.SplatOp(base, shape)), index))

    def load(self, array: Array) -> SSAValue:
        """The whole array as a tile of its shape."""
        return self.emit(tile.LoadOp(self.pointers(array, array.shape)))

    def store(self, value: SSAValue) -> None:
        """A new argument that takes the value."""
        out = np.zeros(shape_of(value), dtype_of(value).numpy)
        self.block.add_op(tile.StoreOp(self.pointers(out, shape_of(value)), value))

    def module(self) -> ModuleOp:
        """The finished module."""
        self.block.add_op(ReturnOp())
        arguments, results = list(self.block.arg_types), list[Attribute]()
        attributes = ArrayAttr(self._attributes)
        module = ModuleOp([FuncOp("kernel", (arguments, results), Region(self.block), arg_attrs=attributes)])
        module.verify()
        return module


def edges(dtype: DType) -> Array:
    """Sixteen values at which the meaning of an op may turn."""
    if dtype.is_bool:
        return np.arange(16) % 2 == 1
    if dtype.is_integer:
        numbers = [
            0,
            1,
            2,
            3,
            7,
            8,
            dtype.bits - 1,
            dtype.bits,
            dtype.bits + 1,
            100,
            dtype.max,
            dtype.max - 1,
            dtype.max // 2,
        ]
        small = [-1, -2, dtype.min] if dtype.signed else [dtype.max // 3, 5, 6]
        return np.array([n if n <= dtype.max else n % (dtype.max + 1) for n in numbers + small], dtype.numpy)
    tiny = 2.0 ** (1 - dtype.bias)
    least = 2.0 ** (1 - dtype.bias - dtype.mantissa)
    numbers = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 3.0, 0.3, -77.7, 1e-2, tiny, -least, dtype.largest, -dtype.largest]
    return np.array([*numbers, np.nan if dtype.finite_only else np.inf, np.nan], np.float64).astype(dtype.numpy)


def pairs(dtype: DType) -> tuple[Array, Array, Array]:
    """256 triples: all pairs of edge values, and a third that turns about."""
    values = edges(dtype)
    return np.repeat(values, 16), np.tile(values, 16), np.tile(np.roll(values, 5), 16)[::-1].copy()


EXACT_UNARY = {"neg", "not", "abs", "sqrt", "sqrt_rn", "floor", "ceil"}
EXTREMA = {"min", "max", "minnan", "maxnan"}
INEXACT_BINARY = {"pow", "atan2"}
"""Functions of two floats that are not exact."""
ULPS = {"float64": 3, "float32": 2}
"""How far a transcendental function or `rsqrt` may be from the reference, which is itself rounded from float64 arithmetic:
by 1 unless said here."""


def elementwise(
    m: Maker, a: SSAValue, b: SSAValue, c: SSAValue, without: frozenset[str]
) -> tuple[list[SSAValue], list[SSAValue]]:
    """All that is defined on three values of one type: exact results, and others. ``without`` these functions of floats."""
    dtype = dtype_of(a)
    kind_class = class_of(dtype)
    exact: list[SSAValue] = []
    near: list[SSAValue] = []
    for kind, classes in UNARY.items():
        if kind_class in classes and not (dtype.is_float and kind in without):
            (exact if kind in EXACT_UNARY else near).append(m.emit(tile.UnaryOp(kind, a)))
    for kind, classes in BINARY.items():
        if kind_class in classes and not (dtype.is_float and kind in without):
            result = m.emit(tile.BinaryOp(kind, a, b))
            if kind in EXTREMA and dtype.is_float:  # the sign of a zero is open; adding +0 makes it +
                result = m.emit(tile.BinaryOp("add", result, m.emit(tile.ConstantOp(0.0, result.type))))
            (near if dtype.is_float and kind in INEXACT_BINARY else exact).append(result)
    compared = [m.emit(tile.CompareOp(kind, a, b)) for kind in COMPARE]
    exact += compared
    exact.append(m.emit(tile.SelectOp(compared[2], c, b)))
    exact += [m.emit(tile.CastOp(a, target)) for target in dtypes.ALL]
    exact += [m.emit(tile.BitcastOp(c, target)) for target in dtypes.ALL if target.bits == dtype.bits]
    if dtype.is_float:
        exact.append(m.emit(tile.FmaOp(a, b, c)))
    return exact, near


def test_arithmetic_on_bitcasts(differ: Differential) -> None:
    """Stored as it is, a bitcast needs no instruction; what is computed of it has the other type."""
    m = Maker()
    bits = m.emit(tile.BitcastOp(m.load(pairs(dtypes.float32)[0]), dtypes.int32))
    one = m.emit(tile.BinaryOp("xor", bits, m.emit(tile.ConstantOp(1, bits.type))))
    back = m.emit(tile.BitcastOp(one, dtypes.float32))
    m.store(m.emit(tile.BinaryOp("add", back, m.emit(tile.ConstantOp(1.0, back.type)))))
    differ.module(m.module(), m.arguments, promises=[True])


RARE = (dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint8, dtypes.float8_e5m2, dtypes.bfloat16)
"""Types whose arithmetic has that of another type of their kind; they are tested nightly."""


@pytest.mark.parametrize("dtype", some(dtypes.ALL, *RARE), ids=str)
def test_elementwise(differ: Differential, dtype: DType) -> None:
    inputs = pairs(dtype)
    for exact in (True, False):
        m = Maker()
        a, b, c = (m.load(x) for x in inputs)
        results = elementwise(m, a, b, c, differ.approximated(dtype))[0 if exact else 1]
        for result in results:
            m.store(result)
        if results:
            ulps = 0 if exact else ULPS.get(dtype.name, 1)
            differ.module(m.module(), m.arguments, ulps=ulps, promises=[True])


@pytest.mark.parametrize("dtype", some((d for d in dtypes.ALL if d.is_float), dtypes.float8_e5m2), ids=str)
def test_approximations(differ: Differential, dtype: DType) -> None:
    """Within the bounds that are documented, on edge values and on numbers of every size."""
    random = np.random.default_rng(3)
    spread = (random.choice([-1, 1], (2, 512)) * 2.0 ** random.uniform(-140, 140, (2, 512))).astype(dtype.numpy)
    ordinary = random.uniform(-100, 100, (2, 256)).astype(dtype.numpy)
    inputs = [np.concatenate(parts) for parts in zip(pairs(dtype)[:2], spread, ordinary, strict=True)]
    for kind in sorted(differ.approximated(dtype)):
        m = Maker()
        operands = [m.load(x) for x in inputs]
        unary = kind in UNARY
        m.store(m.emit(tile.UnaryOp(kind, operands[0]) if unary else tile.BinaryOp(kind, *operands)))
        differ.native(m.module(), m.arguments)
        wrong = accuracy.wrong(kind, dtype, inputs[:1] if unary else inputs, m.arguments[-1])
        shown = [(*(x[i] for x in inputs), m.arguments[-1][i]) for i in np.flatnonzero(wrong)[:4]]
        assert not shown, f"{kind}: {wrong.sum()} of {wrong.size} are wrong: {shown}"


SHAPES: list[Shape] = [(1,), (2,), (8,), (16,), (32,), (1, 1), (4, 2), (2, 4, 8), (1, 64), (64, 1)]


@pytest.mark.parametrize("shape", some([(), *SHAPES], (2,), (8,), (32,), (1, 1), (4, 2), (1, 64)), ids=str)
def test_elementwise_in_every_shape(differ: Differential, shape: Shape) -> None:
    """The same ops on scalars, on fewer elements than lanes, and on several dimensions; three types stand for all."""
    m = Maker()
    for dtype in (dtypes.int16, dtypes.bool_, dtypes.float32):
        start = 37 if np.prod(shape) < 16 else 0
        a, b, c = (m.load(np.resize(np.roll(x, -start), shape)) for x in pairs(dtype))
        for result in elementwise(m, a, b, c, differ.approximated(dtype))[0]:
            if not isinstance(result.owner, tile.CastOp) or dtype_of(result).bits in (1, 32):
                m.store(result)
    differ.module(m.module(), m.arguments, promises=[True])


# ---- shapes ---------------------------------------------------------------------------------------------------------


def counting(shape: Shape, dtype: DType = dtypes.int32) -> Array:
    """Different numbers, as far as the type goes, in an order that is none of the layouts'."""
    size = int(np.prod(shape))
    return (np.arange(size) * 37 % 251 + np.arange(size) // 251).reshape(shape).astype(dtype.numpy)


@pytest.mark.parametrize(
    "shape",
    some(
        [(1, 1), (2, 8), (8, 2), (16, 16), (64, 2), (4, 128), (2, 4, 8), (8, 1, 4), (16, 2, 2), (4, 8, 16)],
        (4, 8, 16),
        (2, 8),
        (64, 2),
        (8, 1, 4),
    ),
    ids=str,
)
def test_trans_and_reshape(differ: Differential, shape: Shape) -> None:
    """All orders of dimensions, alone, beside a tile in the natural order, and flattened afterwards."""
    m = Maker()
    x = m.load(counting(shape))
    for order in itertools.permutations(range(len(shape))):
        turned = m.emit(tile.TransOp(x, order))
        other = m.load(counting(shape_of(turned))[::-1].copy())
        m.store(turned)
        m.store(m.emit(tile.BinaryOp("sub", turned, other)))
        flat = m.emit(tile.ReshapeOp(turned, (int(np.prod(shape)),)))
        m.store(flat)
        m.store(m.emit(tile.ReshapeOp(flat, shape[::-1])))
    differ.module(m.module(), m.arguments, promises=[True])


@pytest.mark.parametrize("dtype", [dtypes.bool_, dtypes.int8, dtypes.float16, dtypes.int64], ids=str)
def test_a_conversion_moves_elements_of_every_width(differ: Differential, dtype: DType) -> None:
    m = Maker()
    for shape in ((4, 4), (16, 32), (32, 4)):
        turned = m.emit(tile.TransOp(m.load(counting(shape, dtype)), (1, 0)))
        m.store(m.emit(tile.BinaryOp("add", turned, m.load(counting(shape[::-1], dtype)))))
    differ.module(m.module(), m.arguments, promises=[True])


@pytest.mark.parametrize("sizes", [(1, 1), (2, 4), (16, 8), (4, 64), (64, 16)], ids=str)
def test_expand_dims_and_broadcast(differ: Differential, sizes: tuple[int, int]) -> None:
    """Rows and columns of vectors from memory, from a range and from a reduction, and sizes of 1 in the middle."""
    rows, columns = sizes
    m = Maker()
    a, b = m.load(counting((rows,))), m.load(counting((columns,)))
    r = m.emit(tile.ArangeOp(5, 5 + rows))
    for column in (a, r, m.emit(tile.BinaryOp("mul", a, r))):
        for row in (b, m.emit(tile.ArangeOp(0, columns))):
            pair = (m.emit(tile.ExpandDimsOp(column, 1)), m.emit(tile.ExpandDimsOp(row, 0)))
            wide = [m.emit(tile.BroadcastOp(x, (rows, columns))) for x in pair]
            m.store(m.emit(tile.BinaryOp("sub", *wide)))
    deep = m.emit(tile.BroadcastOp(m.emit(tile.ExpandDimsOp(m.emit(tile.ExpandDimsOp(a, 1)), 0)), (2, rows, columns)))
    m.store(deep)
    m.store(m.emit(tile.TransOp(deep, (2, 0, 1))))
    differ.module(m.module(), m.arguments, promises=[True])


# ---- reductions -----------------------------------------------------------------------------------------------------

REDUCTIONS = ("add", "mul", "min", "max", "minnan", "maxnan", "and", "or", "xor")
REDUCED: list[Shape] = [
    (1,),
    (4,),
    (16,),
    (64,),
    (512,),
    (4, 4),
    (1, 16),
    (16, 1),
    (8, 64),
    (64, 8),
    (2, 4, 8),
    (16, 4, 32),
]


def exact_to_reduce(shape: Shape, dtype: DType, kind: str) -> Array:
    """Values whose sums and products are exact in any order and do not all vanish: multiples of 1/2, few of them not 1
    in size; any integers, for a product odd ones. The extrema of floats get a few NaNs."""
    rng = np.random.default_rng(0)
    if not dtype.is_float:
        wide = np.int64 if dtype.signed else np.uint64
        numbers = rng.integers(dtype.min, dtype.max, shape, wide, endpoint=True).astype(dtype.numpy)
        return numbers | numbers.dtype.type(1) if kind == "mul" else numbers
    zero = 1.0 if kind == "mul" else 0.0
    numbers = rng.choice(np.array([zero, 1.0, -1.0, 0.5, 2.0]), shape, p=[0.1, 0.6, 0.28, 0.01, 0.01])
    if kind in EXTREMA:
        numbers.reshape(-1)[:: max(3, numbers.size // 7)] = np.nan
    return numbers.astype(dtype.numpy)


WIDTHS = (dtypes.int8, dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.uint32, dtypes.float64)
"""Types of every width."""


@pytest.mark.parametrize(("shape", "dtype"), grid(6, REDUCED, WIDTHS), ids=str)
def test_reduce(differ: Differential, shape: Shape, dtype: DType) -> None:
    """Every kind along every axis."""
    m = Maker()
    for kind in REDUCTIONS:
        if class_of(dtype) not in BINARY[kind]:
            continue
        source = m.load(exact_to_reduce(shape, dtype, kind))
        for axis in range(len(shape)):
            result = m.emit(tile.ReduceOp([source], axis, tile.ReduceOp.region(dtype, kind)))
            if dtype.is_float:  # the sign of a zero depends on the order
                result = m.emit(tile.BinaryOp("add", result, m.emit(tile.ConstantOp(0.0, result.type))))
            m.store(result)
    differ.module(m.module(), m.arguments, promises=[True])


@pytest.mark.parametrize("shape", [(2, 16), (4, 64), (8, 8), (32, 4)], ids=str)
@pytest.mark.parametrize("kind", ["min", "maxnan"])
def test_all_copies_of_a_result_have_the_same_bits(differ: Differential, shape: Shape, kind: str) -> None:
    """Zeros of both signs tie, NaNs differ in their bits: what a row has found must not depend on where it is read."""
    zeros = np.where(np.random.default_rng(0).integers(0, 2, shape), 0.0, -0.0).astype(np.float32)
    nans = np.arange(int(np.prod(shape)), dtype=np.uint32).reshape(shape) % 77 + 0x7FC00000
    for values in (zeros, nans.view(np.float32)):
        for axis in (0, 1):
            m = Maker()
            x = m.load(values)
            found = m.emit(tile.ReduceOp([x], axis, tile.ReduceOp.region(dtypes.float32, kind)))
            wide = m.emit(tile.BroadcastOp(m.emit(tile.ExpandDimsOp(found, axis)), shape))
            m.store(m.emit(tile.BitcastOp(wide, dtypes.uint32)))
            differ.native(m.module(), m.arguments)
            bits = m.arguments[1]
            assert (bits == bits.take([0], axis)).all()


# ---- products -------------------------------------------------------------------------------------------------------

PRODUCTS = [
    (1, 1, 1),
    (1, 8, 1),
    (2, 2, 2),
    (4, 1, 16),
    (1, 16, 4),
    (16, 16, 16),
    (8, 64, 2),
    (64, 4, 8),
    (32, 32, 64),
    (2, 64, 32),
]
"""Rows, depth, columns: fewer elements than lanes, single rows and columns, blocks and several of them."""

OPERANDS = {
    dtypes.float32: (dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2),
    dtypes.float64: (dtypes.float64, dtypes.float32),
    dtypes.float16: (dtypes.float16, dtypes.float8_e5m2),
    dtypes.int32: (dtypes.int8, dtypes.uint8, dtypes.int32),
}


@pytest.mark.parametrize(("sizes", "total"), grid(4, PRODUCTS, [*OPERANDS]), ids=str)
def test_dot(differ: Differential, sizes: tuple[int, int, int], total: DType) -> None:
    """Small integers, whose products are exact in any order; operands as they are and transposed; an accumulator from
    memory, a constant one, and one that another use keeps from being overwritten."""
    rows, depth, columns = sizes
    rng = np.random.default_rng(0)
    m = Maker()
    kinds = OPERANDS[total]
    acc = rng.integers(-9, 9, (rows, columns)).astype(total.numpy)
    for dtype in kinds:
        a, b = (
            rng.integers(0 if not dtype.signed else -3, 4, s).astype(dtype.numpy)
            for s in ((rows, depth), (depth, columns))
        )
        first = m.emit(tile.DotOp(m.load(a), m.load(b), m.load(acc)))
        m.store(first)
        if dtype is not kinds[0]:
            continue
        turned = [m.emit(tile.TransOp(m.load(x.T.copy()), (1, 0))) for x in (a, b)]
        second = m.emit(tile.DotOp(turned[0], turned[1], m.emit(tile.ConstantOp(0, first.type))))
        third = m.emit(tile.DotOp(turned[0], m.load(b), second))
        m.store(m.emit(tile.BinaryOp("sub", third, second)))
    differ.module(m.module(), m.arguments, promises=[True])


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_product_smaller_than_a_vector_fills_all_lanes(differ: Differential, size: int) -> None:
    """Broadcast, its copies in the other lanes become elements of their own."""
    m = Maker()
    a, b, acc = (m.load(counting((size, size), dtypes.float32) + k) for k in range(3))
    product = m.emit(tile.DotOp(a, b, acc))
    for axis in range(3):
        wide = [size, size]
        wide.insert(axis, 16)
        m.store(m.emit(tile.BroadcastOp(m.emit(tile.ExpandDimsOp(product, axis)), wide)))
    differ.module(m.module(), m.arguments, promises=[True])


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_dot_of_inexact_values(differ: Differential, dtype: DType) -> None:
    """Positive terms: each of K + 1 roundings errs by half a unit of the total at most."""
    rng = np.random.default_rng(0)
    m = Maker()
    a, b, acc = (m.load(rng.random(s).astype(dtype.numpy)) for s in ((16, 64), (64, 32), (16, 32)))
    m.store(m.emit(tile.DotOp(a, b, acc)))
    differ.module(m.module(), m.arguments, ulps=33, promises=[True])
