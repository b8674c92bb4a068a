"""Conversions against exact arithmetic: narrow floats by search among all their values, integers by Python's."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sampling import some
from weft import dtypes
from weft.codegen.llvm import arith
from weft.codegen.llvm.convert import is_narrow
from weft.dtypes import DType

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

Array = NDArray[Any]
NARROW = [d for d in dtypes.ALL if is_narrow(d)]


@functools.cache
def magnitudes(dtype: DType) -> Array:
    """Every finite magnitude of a narrow float type, ascending, index = bits; then where the next one would be."""
    values = np.arange(1 << (dtype.bits - 1), dtype=f"u{dtype.itemsize}").view(dtype.numpy).astype(np.float64)
    finite = values[np.isfinite(values)]
    return np.append(finite, 2 * finite[-1] - finite[-2])


def nearest(x: Array, dtype: DType) -> Array:
    """Exact ``x`` (float64, or Python ints as objects) rounded to a narrow type by comparing with midpoints."""
    table = magnitudes(dtype)
    bounds = table.astype(x.dtype) if x.dtype == object else table
    size = np.where(x != x, 0, abs(x))  # noqa: PLR0124 (NaN)
    above = np.clip(np.searchsorted(bounds, size), 1, len(table) - 1)
    midpoint = (table[above - 1] + table[above]) / 2
    tie = size == midpoint
    up = (size > midpoint) | (tie & (above % 2 == 0))
    index = np.where(up.astype(bool), above, above - 1)
    overflow = np.nan if dtype.finite_only else np.inf
    found = np.where(index == len(table) - 1, overflow, table[index])
    return np.where(x != x, np.nan, np.copysign(found, x.astype(np.float64)))  # noqa: PLR0124 (NaN)


def exact(x: Array, source: DType) -> Array:
    """Values without loss: float64, or Python ints as objects for 64-bit integers."""
    return x.astype(object) if source.is_integer and source.bits == 64 else x.astype(np.float64)


def to_integer(x: Array, source: DType, target: DType) -> Array:
    """Python's own ``int``, saturated (from floats) or wrapped (from integers)."""

    def one(value: Any) -> int:
        if not source.is_float:
            wrapped = int(value) % (1 << target.bits)
            return wrapped - (1 << target.bits) if target.signed and wrapped > target.max else wrapped
        if value != value:  # noqa: PLR0124 (NaN)
            return 0
        if abs(value) == np.inf:
            return target.max if value > 0 else target.min
        return min(max(int(value), target.min), target.max)

    return np.array([one(v) for v in exact(x, source).tolist()], target.numpy)


def expected(x: Array, source: DType, target: DType) -> Array:
    """The cast by its definition."""
    if target.is_bool:
        return x.astype(source.compute.numpy) != 0
    if target.is_integer:
        return to_integer(x, source, target)
    if is_narrow(target):
        return nearest(exact(x, source), target).astype(target.numpy)
    return (x.astype(source.compute.numpy) if source.is_float else x).astype(target.numpy)


@functools.cache
def inputs(source: DType) -> Array:
    """Every value of up to 16 bits; of wider types random bits, ends, powers of two, and the traps of double
    rounding: midpoints of each narrow type and the numbers next to them."""
    unsigned = f"u{source.itemsize}"
    if source.bits <= 16:
        bits = np.arange(1 << source.bits, dtype=unsigned)
        return bits.astype(np.bool_) if source.is_bool else bits.view(source.numpy)
    rng = np.random.default_rng(source.bits)
    randoms = (
        rng.integers(0, 1 << source.bits, 1500, dtype=np.uint64, endpoint=False)
        if source.bits < 64
        else (rng.integers(0, (1 << 64) - 1, 1500, dtype=np.uint64, endpoint=True))
    )
    parts = [randoms.astype(unsigned).view(source.numpy)]
    halves = np.concatenate([(t := magnitudes(d))[:-1][:: 1 + len(t) // 300] + np.diff(t)[:: 1 + len(t) // 300] / 2
                             for d in NARROW])  # fmt: skip
    if source.is_float:
        halves = halves.astype(source.numpy)
        near = [halves, np.nextafter(halves, np.inf, dtype=source.numpy), np.nextafter(halves, 0, dtype=source.numpy)]
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 2.0**31, 2.0**63, 2.0**64, 255.5], source.numpy)
        parts += [
            *near,
            *(-n for n in near),
            special,
            np.nextafter(np.float64(2.0) ** np.arange(64), 0).astype(source.numpy),
        ]
    else:
        whole = [int(h) + k for h in halves if h < source.max for k in (-1, 0, 1)]
        powers = [(1 << p) + k for p in range(source.bits) for k in (-1, 0, 1)]
        ends = [source.min, source.max]
        numbers = {s * v for s in (1, -1) for v in (*whole, *powers)} | set(ends)
        parts.append(np.array(sorted(v for v in numbers if source.min <= v <= source.max), source.numpy))
    return np.concatenate(parts)


def assert_same(got: Array, want: Array, x: Array, dtype: DType) -> None:
    """Equal bits; any NaN equals any other."""
    unsigned = f"u{dtype.itemsize}"
    same = got.view(unsigned) == want.view(unsigned)
    if dtype.is_float:
        same |= np.isnan(got) & np.isnan(want)
    wrong = np.flatnonzero(~same)
    assert not wrong.size, (
        f"{wrong.size} wrong, the first: {x[wrong[0]]!r} gave {got[wrong[0]]!r}, not {want[wrong[0]]!r}"
    )


def check(compiler: Compiler, source: DType, target: DType, lanes: int | None) -> None:
    """Compares one cast on all `inputs`."""
    x = inputs(source)
    want = expected(x, source, target)
    got = compiler.run(lambda b, v: arith.cast(b, v[0], source, target), [source], target, [x], lanes)
    assert_same(got, want, x, target)


RARE = (dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint8, dtypes.float8_e5m2)
"""Sources that are tested nightly: another type of their kind is each time."""


@pytest.mark.parametrize("source", some(dtypes.ALL, *RARE), ids=str)
def test_cast_to_every_type(host: Compiler, source: DType) -> None:
    for target in dtypes.ALL:
        check(host, source, target, 16)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(NARROW, NARROW)), ids=str)
def test_cast_between_narrow_floats_without_instructions(plain: Compiler, source: DType, target: DType) -> None:
    check(plain, source, target, None)


@pytest.mark.parametrize("target", NARROW, ids=str)
@pytest.mark.parametrize("source", [dtypes.int64, dtypes.uint64, dtypes.float64], ids=str)
def test_wide_types_round_once_without_instructions(plain: Compiler, source: DType, target: DType) -> None:
    check(plain, source, target, 16)


def test_the_double_rounding_trap(host: Compiler) -> None:
    """The double above 1 + 2^-8, a midpoint of bfloat16: through float32 it would become the midpoint, then 1."""
    x = np.array([1 + 2.0**-8 + 2.0**-52, 1 + 2.0**-8])
    got = host.run(
        lambda b, v: arith.cast(b, v[0], dtypes.float64, dtypes.bfloat16), [dtypes.float64], dtypes.bfloat16, [x]
    )
    assert got.view(np.uint16).tolist() == [0x3F81, 0x3F80]


def test_overflow_of_float8(host: Compiler) -> None:
    """e4m3fn ends at 448 and has no infinity; 464 is halfway to the next step, the tie goes to the even 448. e5m2
    ends at 57344; 61440 is halfway to 65536, and infinity is the even one."""
    x = np.array([448, 464, 464.1, np.inf, 57344, 61439, 61440], np.float32)
    for target, want in (
        (dtypes.float8_e4m3fn, [0x7E, 0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F]),
        (dtypes.float8_e5m2, [0x5F, 0x5F, 0x5F, 0x7C, 0x7B, 0x7B, 0x7C]),
    ):
        got = host.run(lambda b, v, t=target: arith.cast(b, v[0], dtypes.float32, t), [dtypes.float32], target, [x])
        assert got.view(np.uint8).tolist() == want


@pytest.mark.parametrize(
    ("source", "target"),
    [(dtypes.float32, dtypes.int32), (dtypes.bfloat16, dtypes.int16), (dtypes.float8_e5m2, dtypes.uint8)],
    ids=str,
)
def test_bitcast_keeps_the_bits(host: Compiler, source: DType, target: DType) -> None:
    x = inputs(source)
    got = host.run(lambda b, v: arith.bitcast(b, v[0], target), [source], target, [x])
    assert (got == x.view(target.numpy)).all()
