"""``tl.meaning`` in compiled kernels does what `weft.semantics.evaluate` defines: every elementwise meaning, every dtype.

All pairs of values for types of 8 bits and less; otherwise all pairs of edge values and some drawn ones. Integers, bools,
comparisons and everything that is exact or rounded once agree to the bit (zeros to their value); the functions that are not
correctly rounded are within 4 units in the last place of float32 and float64, and of narrow types within one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from sampling import at_night, grid, some
from weft import dtypes
from weft.dtypes import DType
from weft.frontend import meanings
from weft.ir.tile import class_of
from weft.semantics.evaluate import convert, evaluate
from weft.semantics.meanings import MEANINGS, TRUTHS

Array = NDArray[Any]
TILE = 1024

APPROXIMATE = frozenset(
    ("rsqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "erf", "sigmoid")
    + ("power", "power_xla", "power_units", "power_checked", "atan2", "logaddexp", "rsqrt_newton", "exp_flushed")
    + (
        "exp2_xla",
        "sigmoid_xla",
        "logaddexp_xla",
        "logaddexp2_xla",
        "power_flushed",
        "cbrt_flushed",
        "sinh_xla",
        "cosh_xla",
    )
)
"""The meanings whose results may differ in the last places."""


FLUSHED = frozenset(
    f"{name}_flushed"
    for name in (
        "divide",
        "multiply_reciprocal",
        "floor_divide_xla",
        "floor_remainder",
        "less",
        "minimum_nan",
        "sign",
        "exp",
        "identity",
        "power",
        "cbrt",
        "minimum",
        "maximum",
        "floor_remainder_fused",
        "floor_divide_quotient",
        "less_unordered",
    )
)
"""The forms without subnormal numbers that are tested: one function makes the others too."""


@weft.jit
def unary(X: Any, OUT: Any, NAMES: tl.constexpr, TILE: tl.constexpr) -> None:
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(X + i)
    for k in tl.static_range(len(NAMES)):
        tl.store(OUT + k * tl.num_programs(0) * TILE + i, tl.meaning(NAMES[k], x))


@weft.jit
def binary(X: Any, Y: Any, OUT: Any, NAMES: tl.constexpr, TILE: tl.constexpr) -> None:
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x, y = tl.load(X + i), tl.load(Y + i)
    for k in tl.static_range(len(NAMES)):
        tl.store(OUT + k * tl.num_programs(0) * TILE + i, tl.meaning(NAMES[k], x, y))


@weft.jit
def ternary(X: Any, Y: Any, Z: Any, OUT: Any, NAMES: tl.constexpr, TILE: tl.constexpr) -> None:
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x, y, z = tl.load(X + i), tl.load(Y + i), tl.load(Z + i)
    for k in tl.static_range(len(NAMES)):
        tl.store(OUT + k * tl.num_programs(0) * TILE + i, tl.meaning(NAMES[k], x, y, z))


@weft.jit
def conversions(
    X: Any, OUT: Any, NAMES: tl.constexpr, TO: tl.constexpr, BITS: tl.constexpr, TILE: tl.constexpr
) -> None:
    """Every conversion to every type; the bits of the results as int64."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(X + i)
    for t in tl.static_range(len(TO)):
        for k in tl.static_range(len(NAMES)):
            bits = tl.meaning(NAMES[k], x, TO[t]).to(BITS[t], bitcast=True)  # pyright: ignore[reportArgumentType]
            tl.store(OUT + (t * len(NAMES) + k) * tl.num_programs(0) * TILE + i, bits.to(tl.int64))


@weft.jit
def comparisons(X: Any, Y: Any, OUT: Any, NAMES: tl.constexpr, TYPES: tl.constexpr, TILE: tl.constexpr) -> None:
    """Comparisons with the numbers ``Y``, converted to each type."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x, y = tl.load(X + i), tl.load(Y + i)
    for t in tl.static_range(len(TYPES)):
        for k in tl.static_range(len(NAMES)):
            holds = tl.meaning(NAMES[k], x, y.to(TYPES[t]))  # pyright: ignore[reportArgumentType]
            tl.store(OUT + (t * len(NAMES) + k) * tl.num_programs(0) * TILE + i, holds)


def padded(x: Array) -> Array:
    """``x`` repeated to a multiple of the tile."""
    size = -(-x.size // TILE) * TILE
    return np.resize(x, size)


def edges(dtype: DType) -> Array:
    """Every value of 8 bits; of wider types what matters, and some drawn."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.bits == 8:
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    rng = np.random.default_rng(dtype.bits)
    if dtype.is_float:
        least = 2.0 ** (1 - dtype.bias - dtype.mantissa) if dtype.bits < 64 else 5e-324
        sizes = [0.0, least, 2.0 ** (1 - dtype.bias), 0.1, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 100.3, 1e4]
        sizes += [dtype.largest, np.inf, np.nan]
        values = np.array([*sizes, *(-v for v in sizes), *(rng.standard_normal(30) * 5)])
        return values.astype(dtype.numpy)
    near = [
        dtype.min,
        dtype.min + 1,
        -2,
        -1,
        0,
        1,
        2,
        3,
        5,
        7,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        dtype.max - 1,
        dtype.max,
    ]
    drawn: list[int] = rng.integers(dtype.min, dtype.max, 20, dtype=dtype.numpy, endpoint=True).tolist()
    return np.array([v for v in (*near, *drawn) if dtype.min <= v <= dtype.max], dtype.numpy)


def pairs(dtype: DType) -> tuple[Array, Array]:
    """All values beside all; of 8 bits ``make test`` has every fifth code and those at the ends as second operands."""
    values = edges(dtype)
    second = np.arange(values.size)
    if dtype.bits == 8 and not dtype.is_bool and not at_night():
        second = np.unique(
            [*second[::5], *(end + d for end in (0, 128, 256) for d in (-2, -1, 0, 1) if 0 <= end + d < 256)]
        )
    x, y = np.meshgrid(np.arange(values.size), second, indexing="ij")
    return padded(values[x.ravel()]), padded(values[y.ravel()])


def taking(count: int, dtype: DType, *, comparing: bool = False) -> tuple[str, ...]:
    """The meanings of ``count`` operands that take a dtype; `FLUSHED` where the dtype's subnormals can be lost."""
    table = meanings.TABLES[count]
    loses = dtype.is_float and dtype.bias == dtype.compute.bias
    names = [m for m in table if not m.endswith("_flushed") or (m in FLUSHED and loses)]
    return tuple(m for m in names if class_of(dtype) in table[m] and (m in TRUTHS) is comparing)


def ordered(x: Array, dtype: DType) -> Array:
    """Floats as integers in their order, neighbours one apart, both zeros 0."""
    bits = x.view(f"i{dtype.itemsize}").astype(object)
    sign = 1 << (dtype.bits - 1)
    return np.where(bits >= 0, bits, -(bits + sign))


def assert_same(meaning: str, dtype: DType, got: Array, want: Array, *operands: Array) -> None:
    if not dtype.is_float:
        wrong = got != want
    else:
        units = (4 if dtype.bits >= 32 else 1) if meaning in APPROXIMATE else 0
        with np.errstate(invalid="ignore"):  # casting a signalling NaN
            nans = np.isnan(got.astype(np.float64)), np.isnan(want.astype(np.float64))
        far = np.abs(ordered(got, dtype) - ordered(want, dtype)) > units
        if meaning.startswith("logaddexp"):  # near 0 the sum cancels: the error is one of the operands
            size = np.maximum(*(np.abs(x.astype(np.float64)) for x in operands))
            with np.errstate(invalid="ignore"):
                far &= ~(np.abs(got.astype(np.float64) - want) <= units * 2.0**-dtype.mantissa * size)
        wrong = (nans[0] != nans[1]) | (far & ~nans[1])
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        shown = ", ".join(str(x[i]) for x in operands)
        pytest.fail(f"{meaning}({shown}) of {dtype} is {got[i]}, not {want[i]} ({int(wrong.sum())} wrong)")


def check(kernel: Any, names: Sequence[str], dtype: DType, *operands: Array) -> None:
    """The kernel's results (of type ``dtype``) against the definition."""
    size = operands[0].size
    out = np.zeros((len(names), size), dtype.numpy)
    if names:
        kernel[(size // TILE,)](*operands, out, tuple(names), TILE)
    for name, got in zip(names, out, strict=True):
        assert_same(name, dtype, got, evaluate(name.removesuffix("_checked"), *operands), *operands)


SELDOM = (
    *(dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint8),
    *(dtypes.float8_e5m2, dtypes.bfloat16),
)
"""Types that are tested nightly: another type of their kind is always."""


@pytest.mark.parametrize("dtype", some(dtypes.ALL, *SELDOM), ids=str)
def test_meanings_of_one_operand(dtype: DType) -> None:
    values = edges(dtype)
    if dtype.bits == 16:
        values = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    check(unary, taking(1, dtype), dtype, padded(values))


@pytest.mark.parametrize("dtype", some(dtypes.ALL, *SELDOM), ids=str)
def test_meanings_of_two_operands(dtype: DType) -> None:
    check(binary, taking(2, dtype), dtype, *pairs(dtype))


@pytest.mark.parametrize("dtype", some(dtypes.ALL, *SELDOM), ids=str)
def test_comparisons(dtype: DType) -> None:
    check(binary, taking(2, dtype, comparing=True), dtypes.bool_, *pairs(dtype))


@pytest.mark.parametrize("dtype", some(dtypes.ALL, *SELDOM), ids=str)
def test_meanings_of_three_operands(dtype: DType) -> None:
    values = edges(dtype)
    values = values[:: max(1, values.size // 20)]
    x, y, z = (padded(np.array(v)) for v in zip(*itertools.product(values, repeat=3), strict=True))
    names = [m for m in taking(3, dtype) if m != "select"]
    check(ternary, names, dtype, x, y, z)
    check(ternary, ["select"], dtype, padded(np.arange(x.size) % 3 == 0), y, z)


THIRDS = tuple(dtypes.ALL[first::3] for first in range(3))
"""The types in three groups."""


@pytest.mark.parametrize(("source", "targets"), grid(4, dtypes.ALL, THIRDS), ids=str)
def test_conversions(source: DType, targets: Sequence[DType]) -> None:
    values = edges(source)
    if source.is_float and source.bits > 8:
        ends = [s * 2.0**e for e in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1)]
        around = [end + d for end in ends for d in (-1, -0.5, 0, 0.5, 1)]
        halves = [0.49999997, 0.5, 1.5, 2.5, -0.49999997, -0.5, -1.5, -2.5]
        with np.errstate(over="ignore"):
            values = np.concatenate([values, np.array(around + halves).astype(source.numpy)])
    x, names = padded(values), tuple(meanings.CONVERSIONS)
    bits = tuple(d if d.is_bool else dtypes.parse(f"int{d.bits}") for d in targets)
    out = np.zeros((len(targets), len(names), x.size), np.int64)
    conversions[(x.size // TILE,)](x, out, names, targets, bits, TILE)
    for target, bit_type, results in zip(targets, bits, out, strict=True):
        for name, got in zip(names, results, strict=True):
            typed = got.astype(bit_type.numpy).view(target.numpy)
            assert_same(name, target, typed, padded(convert(name, values, target)), x)


INTEGRAL = tuple(d for d in dtypes.ALL if not d.is_float)


@pytest.mark.parametrize(
    ("dtype", "wide", "others"),
    grid(5, INTEGRAL, [dtypes.int64, dtypes.uint64], [INTEGRAL[first::3] for first in range(3)]),
    ids=str,
)
def test_integers_of_two_types_compare_by_value(dtype: DType, wide: DType, others: Sequence[DType]) -> None:
    """Each dtype with every other, whose numbers come from one of the widest."""
    left, right = edges(dtype)[::3], edges(wide)
    x, y = (padded(v.ravel()) for v in np.meshgrid(left, right, indexing="ij"))
    names = tuple(meanings.COMPARISONS)
    out = np.zeros((len(others), len(names), x.size), np.bool_)
    comparisons[(x.size // TILE,)](x, y, out, names, others, TILE)
    for other, results in zip(others, out, strict=True):
        numbers = padded(np.tile(convert("convert", right, other), left.size))
        for name, got in zip(names, results, strict=True):
            assert_same(name, dtypes.bool_, got, evaluate(name, x, numbers), x, numbers)


def test_every_meaning_is_somewhere() -> None:
    tables = [*meanings.TABLES.values(), meanings.CONVERSIONS, meanings.NOT_ELEMENTWISE, meanings.COMPOSED]
    assert sorted(name for table in tables for name in table) == sorted(MEANINGS)
