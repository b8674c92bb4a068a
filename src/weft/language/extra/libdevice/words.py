"""Integers and their bits. Exact; int32 and int64 unless a function says so."""

# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.dtypes import DType, float32, float64, int32, int64, uint32, uint64
from weft.language.compiletime import static_assert, to_tensor
from weft.language.core import Tile, composite, constexpr, tensor, variant
from weft.language.elementwise import abs, div_rn, umulhi, where

PAIRS = constexpr((0x55555555, 0x5555555555555555))
QUADS = constexpr((0x33333333, 0x3333333333333333))
NIBBLES = constexpr((0x0F0F0F0F, 0x0F0F0F0F0F0F0F0F))
BYTES = constexpr((0x00FF00FF, 0x00FF00FF00FF00FF))
HALVES = constexpr((0x0000FFFF, 0x0000FFFF0000FFFF))
ONES = constexpr((0x01010101, 0x0101010101010101))
LEAST_NORMAL = constexpr(2.0**-1022)


@composite
def _bits(x: Tile) -> tensor:
    """The word as an unsigned one."""
    value = to_tensor(x)
    static_assert(value.dtype.is_int() and value.dtype.primitive_bitwidth >= 32, "takes integers of 32 or 64 bits")
    return value.to(uint64 if value.dtype.primitive_bitwidth == 64 else uint32, bitcast=True)


@composite
def popc(arg0: Tile) -> tensor:
    """How many bits are 1; int32."""
    x = _bits(arg0)
    wide: constexpr = x.dtype == uint64
    x = x - ((x >> 1) & PAIRS[wide])
    x = (x & QUADS[wide]) + ((x >> 2) & QUADS[wide])
    x = (x + (x >> 4)) & NIBBLES[wide]
    return ((x * ONES[wide]) >> (56 if wide else 24)).to(int32)


@composite
def clz(arg0: Tile) -> tensor:
    """How many bits stand before the first 1; all of them in 0. int32."""
    x = _bits(arg0)
    x = x | (x >> 1)
    x = x | (x >> 2)
    x = x | (x >> 4)
    x = x | (x >> 8)
    x = x | (x >> 16)
    if x.dtype == uint64:
        x = x | (x >> 32)
    return popc(~x)


@composite
def ffs(arg0: Tile) -> tensor:
    """The place of the lowest 1, counted from 1; 0 where there is none. int32."""
    x = _bits(arg0)
    return where(x == 0, 0, popc((x & (~x + 1)) - 1) + 1)


@composite
def brev(arg0: Tile) -> tensor:
    """The bits from the last to the first."""
    x = _bits(arg0)
    wide: constexpr = x.dtype == uint64
    x = ((x >> 1) & PAIRS[wide]) | ((x & PAIRS[wide]) << 1)
    x = ((x >> 2) & QUADS[wide]) | ((x & QUADS[wide]) << 2)
    x = ((x >> 4) & NIBBLES[wide]) | ((x & NIBBLES[wide]) << 4)
    x = ((x >> 8) & BYTES[wide]) | ((x & BYTES[wide]) << 8)
    x = ((x >> 16) & HALVES[wide]) | ((x & HALVES[wide]) << 16)
    if wide:
        x = (x >> 32) | (x << 32)
    return x.to(to_tensor(arg0).dtype, bitcast=True)


@composite
def byte_perm(arg0: Tile, arg1: Tile, arg2: Tile) -> tensor:
    """Four of the eight bytes of ``arg0`` (0 to 3) and ``arg1`` (4 to 7): 3 bits of each nibble of ``arg2`` say which."""
    both = _bits(arg0).to(uint64) | (_bits(arg1).to(uint64) << 32)
    chosen = _bits(arg2).to(uint64)
    low = ((both >> ((chosen & 7) * 8)) & 255) | (((both >> (((chosen >> 4) & 7) * 8)) & 255) << 8)
    high = ((both >> (((chosen >> 8) & 7) * 8)) & 255) | (((both >> (((chosen >> 12) & 7) * 8)) & 255) << 8)
    return (low | (high << 16)).to(uint32).to(int32, bitcast=True)


@composite
def mulhi(arg0: Tile, arg1: Tile) -> tensor:
    """The upper half of the exact product, of signed or unsigned integers."""
    x = to_tensor(arg0)
    y = to_tensor(arg1).to(x.dtype)
    static_assert(x.dtype.is_int() and x.dtype.primitive_bitwidth >= 32, "takes integers of 32 or 64 bits")
    if x.dtype == int32:
        return ((x.to(int64) * y.to(int64)) >> 32).to(int32)
    upper = umulhi(x, y)
    if x.dtype == int64:  # read as unsigned, a negative number is 2**64 too large
        upper = upper - where(x < 0, y, 0) - where(y < 0, x, 0)
    return upper


@composite
def mul24(arg0: Tile, arg1: Tile) -> tensor:
    """The lower 32 bits of the product of the lower 24 bits, which are signed if the type is."""
    x, y = to_tensor(arg0), to_tensor(arg1)
    return ((x << 8) >> 8) * ((y << 8) >> 8)


@composite
def sad(arg0: Tile, arg1: Tile, arg2: Tile) -> tensor:
    """``abs(x - y) + z``."""
    x = to_tensor(arg0)
    y, z = to_tensor(arg1).to(x.dtype), to_tensor(arg2).to(x.dtype)
    return where(x < y, y - x, x - y) + z


@composite
def hadd(arg0: Tile, arg1: Tile) -> tensor:
    """``(x + y) / 2`` rounded down, of int32 or uint32; the sum does not overflow."""
    x = to_tensor(arg0)
    return ((x.to(int64) + to_tensor(arg1).to(int64)) >> 1).to(x.dtype)


@composite
def rhadd(arg0: Tile, arg1: Tile) -> tensor:
    """``(x + y) / 2`` rounded up, of int32 or uint32; the sum does not overflow."""
    x = to_tensor(arg0)
    return ((x.to(int64) + to_tensor(arg1).to(int64) + 1) >> 1).to(x.dtype)


@composite
def _viewed(dtype: Any, arg0: Any) -> Any:
    """The same bits as another type."""
    return to_tensor(arg0).to(dtype, bitcast=True)


def _view(name: str, doc: str, dtype: DType) -> Callable[[Any], Any]:
    return variant(_viewed, dtype, name, doc)


int_as_float = _view("int_as_float", "The bits of int32 as float32.", float32)
uint_as_float = _view("uint_as_float", "The bits of uint32 as float32.", float32)
float_as_int = _view("float_as_int", "The bits of float32 as int32.", int32)
float_as_uint = _view("float_as_uint", "The bits of float32 as int32, as Triton has it.", int32)
longlong_as_double = _view("longlong_as_double", "The bits of int64 as float64.", float64)
double_as_longlong = _view("double_as_longlong", "The bits of float64 as int64.", int64)


@composite
def hiloint2double(arg0: Tile, arg1: Tile) -> tensor:
    """The float64 of an upper and a lower word."""
    return ((_bits(arg0).to(uint64) << 32) | _bits(arg1).to(uint64)).to(float64, bitcast=True)


@composite
def rcp64h(arg0: Tile) -> tensor:
    """The upper word of ``1 / x`` of float64, as float64 whose lower word is 0: 20 bits of its fraction. Subnormal numbers
    are taken for 0, and so are results."""
    x = to_tensor(arg0)
    static_assert(x.dtype == float64, "takes float64")
    one = to_tensor(1.0).to(float64)
    least = one * LEAST_NORMAL
    r = div_rn(one, where(abs(x) < least, x * 0.0, x))
    r = where(abs(r) < least, r * 0.0, r)
    return (r.to(int64, bitcast=True) >> 32 << 32).to(float64, bitcast=True)


@composite
def double2hiint(arg0: Tile) -> tensor:
    """The upper word of float64, as int32."""
    return (to_tensor(arg0).to(int64, bitcast=True) >> 32).to(int32)


@composite
def double2loint(arg0: Tile) -> tensor:
    """The lower word of float64, as int32."""
    return to_tensor(arg0).to(int64, bitcast=True).to(int32)
