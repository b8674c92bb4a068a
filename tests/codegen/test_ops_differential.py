"""Every tile op, compiled as a kernel of its own kind and run against the reference.

`test_arith` checks the arithmetic of single vectors against exact oracles; here whole kernels pass through layouts,
register loops and memory. Integers, conversions and elementwise float arithmetic agree bit for bit; transcendental
functions, `rsqrt` and folds of inexact values within bounds stated below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.tile import BINARY, COMPARE, UNARY, class_of
from weft.ir.types import dtype_of, pointer, shape_of

if TYPE_CHECKING:
    from conftest import Differential

pytestmark = pytest.mark.jit

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


EXACT_UNARY = {"neg", "not", "abs", "sqrt", "floor", "ceil"}
EXTREMA = {"min", "max", "minnan", "maxnan"}
ULPS = {"float64": 3, "float32": 2}
"""How far a transcendental function or `rsqrt` may be from the reference, which is itself rounded from float64 arithmetic:
by 1 unless said here."""


def elementwise(m: Maker, a: SSAValue, b: SSAValue, c: SSAValue) -> tuple[list[SSAValue], list[SSAValue]]:
    """All that is defined on three values of one type: exact results, and others."""
    dtype = dtype_of(a)
    kind_class = class_of(dtype)
    exact: list[SSAValue] = []
    near: list[SSAValue] = []
    for kind, classes in UNARY.items():
        if kind_class in classes:
            (exact if kind in EXACT_UNARY else near).append(m.emit(tile.UnaryOp(kind, a)))
    for kind, classes in BINARY.items():
        if kind_class in classes:
            result = m.emit(tile.BinaryOp(kind, a, b))
            if kind in EXTREMA and dtype.is_float:  # the sign of a zero is open; adding +0 makes it +
                result = m.emit(tile.BinaryOp("add", result, m.emit(tile.ConstantOp(0.0, result.type))))
            exact.append(result)
    compared = [m.emit(tile.CompareOp(kind, a, b)) for kind in COMPARE]
    exact += compared
    exact.append(m.emit(tile.SelectOp(compared[2], c, b)))
    exact += [m.emit(tile.CastOp(a, target)) for target in dtypes.ALL]
    exact += [m.emit(tile.BitcastOp(c, target)) for target in dtypes.ALL if target.bits == dtype.bits]
    if dtype.is_float:
        exact.append(m.emit(tile.FmaOp(a, b, c)))
    return exact, near


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_elementwise(differ: Differential, dtype: DType) -> None:
    inputs = pairs(dtype)
    for exact in (True, False):
        m = Maker()
        a, b, c = (m.load(x) for x in inputs)
        results = elementwise(m, a, b, c)[0 if exact else 1]
        for result in results:
            m.store(result)
        if results:
            ulps = 0 if exact else ULPS.get(dtype.name, 1)
            differ.module(m.module(), m.arguments, ulps=ulps, promises=[True])


SHAPES: list[Shape] = [(1,), (2,), (8,), (16,), (32,), (1, 1), (4, 2), (2, 4, 8), (1, 64), (64, 1)]


@pytest.mark.parametrize("shape", [(), *SHAPES], ids=str)
def test_elementwise_in_every_shape(differ: Differential, shape: Shape) -> None:
    """The same ops on scalars, on fewer elements than lanes, and on several dimensions; three types stand for all."""
    m = Maker()
    for dtype in (dtypes.int16, dtypes.bool_, dtypes.float32):
        start = 37 if np.prod(shape) < 16 else 0
        a, b, c = (m.load(np.resize(np.roll(x, -start), shape)) for x in pairs(dtype))
        for result in elementwise(m, a, b, c)[0]:
            if not isinstance(result.owner, tile.CastOp) or dtype_of(result).bits in (1, 32):
                m.store(result)
    differ.module(m.module(), m.arguments, promises=[True])
