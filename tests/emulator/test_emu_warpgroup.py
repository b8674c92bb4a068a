"""The arithmetic of wgmma alone: fragments against the formulas of the PTX ISA, sums against exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator.arith import warpgroup
from weft.layout import nvidia_mma, nvidia_mma_operand

RNG = np.random.default_rng(20261121)


def d_register(row: int, column: int) -> tuple[int, int]:
    """(thread, index of the element among the thread's) of D, as figures of "Register Fragments" have it: for element i,
    row = 16 * (warp) + lane / 4 + (8 if i / 2 is odd), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2."""
    for lane, i in itertools.product(range(32), range(4)):
        if row % 16 == lane // 4 + 8 * (i // 2) and column % 8 == 2 * (lane % 4) + i % 2:
            return 32 * (row // 16) + lane, 4 * (column // 8) + i
    raise AssertionError


def in_order(rows: NDArray[Any], packed: bool) -> NDArray[Any]:
    """Columns in the order of packets: in each block of 8 the even ones, then the odd ones."""
    if packed:
        return rows
    order = [8 * block + column for block in range(rows.shape[-1] // 8) for column in (0, 2, 4, 6, 1, 3, 5, 7)]
    return np.ascontiguousarray(rows[..., order])


@pytest.mark.parametrize("n", [8, 24, 64])
@pytest.mark.parametrize("packed", [False, True])
def test_fragments_of_the_result(n: int, packed: bool) -> None:
    groups = 3
    dtype = np.uint16 if packed else np.uint32
    matrix = RNG.integers(0, 1 << 16, (groups, 64, n)).astype(dtype)
    elements = np.zeros((groups, 128, n // 2), dtype)
    for row, column in itertools.product(range(64), range(n)):
        thread, i = d_register(row, column)
        elements[:, thread, i] = matrix[:, row, column]
    registers = np.ascontiguousarray(elements).view(np.uint32).transpose(2, 0, 1)  # f16: elements 2j and 2j + 1 in one
    np.testing.assert_array_equal(warpgroup.to_registers(in_order(matrix, packed), packed), registers)
    back = warpgroup.from_registers(np.ascontiguousarray(registers), packed)
    np.testing.assert_array_equal(back.view(dtype), in_order(matrix, packed))


def test_fragments_of_the_result_agree_with_the_layouts() -> None:
    layout = nvidia_mma((64, 32), 3, (4, 1), (16, 32))
    matrix = np.arange(64 * 32, dtype=np.uint32).reshape(1, 64, 32)
    registers = warpgroup.to_registers(in_order(matrix, False), False)
    for register, warp, lane in itertools.product(range(16), range(4), range(32)):
        row, column = layout.apply({"register": register, "lane": lane, "warp": warp}).values()
        assert registers[register, 0, 32 * warp + lane] == matrix[0, row, column]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_fragments_of_a(size: int) -> None:
    """Of the layouts: k_width elements of a 32-bit register, the registers of a thread in order."""
    columns, per_register = 32 // size, 4 // size
    layout = nvidia_mma_operand((64, columns), 0, per_register, 3, (4, 1), (16, 8))
    matrix = np.arange(2 * 64 * columns).astype(f"u{size}").reshape(2, 64, columns)
    elements = np.zeros((4, 2, 128, per_register), matrix.dtype)
    for index, warp, lane in itertools.product(range(4 * per_register), range(4), range(32)):
        row, column = layout.apply({"register": index, "lane": lane, "warp": warp}).values()
        elements[index // per_register, :, 32 * warp + lane, index % per_register] = matrix[:, row, column]
    words = warpgroup.fragment(elements.view(np.uint32).reshape(4, 2, 128))
    np.testing.assert_array_equal(words.view(matrix.dtype), matrix)


def test_fragment_of_a_worked_by_hand() -> None:
    # The ISA, .m64nNk16, a0..a7 in four registers: warp 2, lane 13 (group 3, thread 1 of it): rows 35 and 43; columns
    # 2, 3 (registers 0: row 35, 1: row 43), then 10, 11 (registers 2 and 3).
    matrix = np.arange(64 * 16, dtype=np.uint16).reshape(1, 64, 16)
    registers = np.zeros((4, 1, 128), np.uint32)
    for register, (row, column) in enumerate([(35, 2), (43, 2), (35, 10), (43, 10)]):
        registers[register, 0, 64 + 13] = int(matrix[0, row, column]) | int(matrix[0, row, column + 1]) << 16
    found = warpgroup.fragment(registers).view(np.uint16)
    expected = np.zeros_like(matrix)
    for row, column in itertools.product((35, 43), (2, 3, 10, 11)):
        expected[0, row, column] = matrix[0, row, column]
    np.testing.assert_array_equal(found, expected)


NARROW = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


@pytest.mark.parametrize("kind", NARROW)
def test_numbers_of_every_pattern(kind: str) -> None:
    size = np.dtype(NARROW[kind]).itemsize
    patterns = np.arange(1 << 8 * size).astype(f"u{size}")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        found = warpgroup.numbers(patterns.view(np.uint64), kind)
        expected = patterns.view(NARROW[kind]).astype(np.float64)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


def test_numbers_of_the_other_types() -> None:
    byte = np.array([0, 1, 127, 128, 255, 7, 200, 100], np.uint8)
    assert warpgroup.numbers(byte.view(np.uint64), "s8").tolist() == [0, 1, 127, -128, -1, 7, -56, 100]
    assert warpgroup.numbers(byte.view(np.uint64), "u8").tolist() == [0, 1, 127, 128, 255, 7, 200, 100]
    bits = warpgroup.numbers(np.array([0x8000_0000_0000_0005], np.uint64), "b1")
    assert bits.nonzero()[0].tolist() == [0, 2, 63]
    assert bits.max() == 1
    # tf32 keeps sign, exponent and 10 bits of fraction: 1 + 2^-10 + 2^-11 loses the last.
    words = np.array([1 + 2**-10 + 2**-11, -(1 + 2**-23)], np.float32).view(np.uint64)
    assert warpgroup.numbers(words, "tf32").tolist() == [1 + 2**-10, -1.0]


def rounded(value: Fraction, kind: str) -> float:
    """To nearest even, of a value in the type's normal range."""
    digits = {"f32": 24, "f16": 11}[kind]
    if not value:
        return 0.0
    exponent = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - digits + 1)
    return float(round(value / unit) * unit)  # Fraction rounds halves to even


def multiplied(
    a: NDArray[Any], b: NDArray[Any], d: NDArray[Any] | None, kind: str, saturate: bool = False
) -> NDArray[Any]:
    """A B + D with columns in their natural order."""
    packed = kind == "f16"
    before = None if d is None else in_order(d, packed).view(np.uint32)
    result = warpgroup.multiply(a, warpgroup.by_packets(b, packed), before, kind, saturate)
    columns = in_order(np.array(range(b.shape[1]), np.intp), packed)
    return result[..., np.argsort(columns)]


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_one_rounding(kind: str) -> None:
    a, b = RNG.integers(-2048, 2048, (1, 64, 16)) / 512, RNG.integers(-2048, 2048, (1, 8, 16)) / 512
    d = (RNG.integers(-1000, 1000, (1, 64, 8)) / 128).astype(np.float16 if kind == "f16" else np.float32)
    expected = np.zeros((1, 64, 8))
    for row, column in itertools.product(range(64), range(8)):
        total = sum(
            (Fraction(x) * Fraction(y) for x, y in zip(a[0, row].tolist(), b[0, column].tolist(), strict=True)),
            Fraction(float(d[0, row, column])),
        )
        expected[0, row, column] = rounded(total, kind)
    np.testing.assert_array_equal(multiplied(a, b, d, kind), expected)


def test_a_sum_that_float32_would_lose() -> None:
    """2^24 + 1 - 2^24 is 1, in one instruction."""
    a, b = np.zeros((1, 64, 16)), np.zeros((1, 8, 16))
    a[0, :, :3] = [2.0**12, 1, -(2.0**12)]
    b[0, :, :3] = [2.0**12, 1, 2.0**12]
    assert (multiplied(a, b, None, "f32") == 1).all()


@pytest.mark.parametrize(("kind", "canonical"), [("f32", 0x7FFFFFFF), ("f16", 0x7FFF)])
def test_not_a_number_is_canonical_and_infinities_stay(kind: str, canonical: int) -> None:
    a, b = np.ones((1, 64, 16)), np.zeros((1, 8, 16))
    b[0, :, 3] = [np.nan, -np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 2.0]
    result = multiplied(a, b, None, kind)
    bits = result.view(f"u{result.dtype.itemsize}")
    assert (bits[0, :, :2] == canonical).all()
    assert result[0, 7, 2:].tolist() == [np.inf, -np.inf, np.inf, -np.inf, 0.0, 2.0]


@pytest.mark.parametrize("saturate", [False, True])
def test_integers_wrap_or_saturate(saturate: bool) -> None:
    limit = 2**31
    a, b = np.zeros((1, 64, 32), np.float32), np.zeros((1, 8, 32), np.float32)
    a[0, :, 5] = 1
    b[0, :, 5] = [1, -1, -7, 1, 3, 1, 0, 127]
    d = np.array([limit - 1, -limit, 5, limit - 2, 0, -1, limit - 1, limit - 127], np.int64)
    result = multiplied(a, b, np.broadcast_to(d.astype(np.int32), (1, 64, 8)), "s32", saturate)
    wrapped = [-limit, limit - 1, -2, limit - 1, 3, 0, limit - 1, -limit]
    limited = [limit - 1, -limit, -2, limit - 1, 3, 0, limit - 1, limit - 1]
    assert (result == np.array(limited if saturate else wrapped)).all()


def test_collect_and_spread_choose_warps() -> None:
    registers = [RNG.integers(0, 1 << 32, (12, 32)).astype(np.uint32) for _ in range(6)]
    whole = warpgroup.collect(registers, None)
    np.testing.assert_array_equal(whole[4, 2], registers[4][8:].ravel())
    warps = np.array([0, 1, 2, 3, 8, 9, 10, 11])
    some = warpgroup.collect(registers, warps)
    np.testing.assert_array_equal(some, whole[:, [0, 2]])
    before = [register.copy() for register in registers]
    warpgroup.spread(some + 1, registers, warps)
    for register, old in zip(registers, before, strict=True):
        np.testing.assert_array_equal(register[4:8], old[4:8])
        np.testing.assert_array_equal(register[warps], old[warps] + 1)
    warpgroup.spread(whole, registers, None)
    np.testing.assert_array_equal(np.stack(registers), np.stack(before))
