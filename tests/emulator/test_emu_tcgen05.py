"""tcgen05.mma: every kind, major, swizzle, place of A, and scale, against integer products; operands are placed as the ISA draws
them (`emulator_tcgen05`). All sums are exact in float32."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_tcgen05 import (
    SPANS,
    bits,
    descriptor,
    execute,
    instruction,
    kernel,
    mma,
    place_k_major,
    place_mn_major,
)
from weft.emulator import Module, PTXError, Uninitialised
from weft.emulator.errors import Fault, Race

Numbers = NDArray[Any]

# kind, code in the instruction descriptor, NumPy's type, K, numbers of it
DENSE = [
    ("f16", 0, np.float16, 16),
    ("f16", 1, ml_dtypes.bfloat16, 16),
    ("tf32", 2, np.float32, 8),
    ("f8f6f4", 0, ml_dtypes.float8_e4m3fn, 32),
    ("f8f6f4", 1, ml_dtypes.float8_e5m2, 32),
    ("i8", 0, np.uint8, 32),
    ("i8", 1, np.int8, 32),
]
NARROW = [
    (3, ml_dtypes.float6_e2m3fn, 6),
    (4, ml_dtypes.float6_e3m2fn, 6),
    (5, ml_dtypes.float4_e2m1fn, 4),
]
FOUR = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])


def sample(dtype: Any, shape: tuple[int, int], seed: int) -> Numbers:
    """Numbers that the type has, small enough for exact sums."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype is np.uint8 else -4
    return rng.integers(low, 5, shape).astype(dtype)


def padded(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Rows of codes as shared memory has them: 16 in each 16 bytes, packed from the first bit on."""
    rows = np.zeros((codes.shape[0], codes.shape[1]), np.uint8)
    for r, row in enumerate(codes):
        for unit in range(0, codes.shape[1], 16):
            word = sum(int(code) << width * i for i, code in enumerate(row[unit : unit + 16]))
            rows[r, unit : unit + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
    return rows


def halved(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows of 4-bit codes, two to a byte."""
    return codes[:, ::2] + 16 * codes[:, 1::2]


def side_by_side(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
    """An image with A and B, and where B begins: at a multiple of 1024, where all swizzles begin."""
    start = -(-a.size // 1024) * 1024
    image = np.zeros(start + b.size, np.uint8)
    image[: a.size], image[start:] = a, b
    return image, start


def placed(a: NDArray[np.uint8], b: NDArray[np.uint8], mode: str = "128B") -> tuple[NDArray[np.uint8], str, str]:
    """An image with rows of 32 bytes of A and B, K-major, and their descriptors."""
    stride = 8 * (SPANS[mode] if mode != "none" else 32)
    leading = 128 if mode == "none" else 0
    image, start = side_by_side(*(place_k_major(m, mode, leading, stride) for m in (a, b)))
    return image, descriptor(0, leading, stride, mode), descriptor(start, leading, stride, mode)


def garbage(columns: int = 64) -> NDArray[np.uint32]:
    return np.random.default_rng(9).integers(0, 1 << 32, (128, columns), np.uint32)


def floats(cells: NDArray[np.uint32]) -> NDArray[np.float32]:
    return cells.view(np.float32)


# ---- kinds, majors, swizzles -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(("kind", "code", "dtype", "k"), DENSE)
def test_k_major(kind: str, code: int, dtype: Any, k: int, mode: str) -> None:
    a, b = sample(dtype, (128, k), 1), sample(dtype, (32, k), 2)
    image, at_a, at_b = placed(bits(a), bits(b), mode)
    d = 2 if kind == "i8" else 1
    before = garbage()
    after = execute(mma(kind, at_a, at_b, instruction(128, 32, code, code, d)), image, before)
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    found = after[:, :32].view(np.int32) if kind == "i8" else floats(after[:, :32])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(after[:, 32:], before[:, 32:])


@pytest.mark.parametrize(("a_code", "a_type", "a_width"), NARROW)
@pytest.mark.parametrize(("b_code", "b_type", "b_width"), NARROW)
def test_narrow_elements(a_code: int, a_type: Any, a_width: int, b_code: int, b_type: Any, b_width: int) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.choice(FOUR, shape).astype(kind) for shape, kind in (((128, 32), a_type), ((16, 32), b_type)))
    image, at_a, at_b = placed(padded(a.view(np.uint8), a_width), padded(b.view(np.uint8), b_width))
    after = execute(mma("f8f6f4", at_a, at_b, instruction(128, 16, a_code, b_code)), image, garbage())
    np.testing.assert_array_equal(floats(after[:, :16]), a.astype(np.float64) @ b.astype(np.float64).T)


@pytest.mark.parametrize(
    ("kind", "code", "dtype", "k", "mode"),
    [
        (*case, mode)
        for case in DENSE
        for mode in (["128B_32B"] if case[0] == "tf32" else ["none", "32B", "64B", "128B"])
    ],
)
def test_mn_major(kind: str, code: int, dtype: Any, k: int, mode: str) -> None:
    """tf32 has the swizzle with atoms of 32 bytes, and no other."""
    a, b = sample(dtype, (128, k), 4), sample(dtype, (64, k), 5)
    size = a.itemsize
    span = {**SPANS, "128B_32B": 128}[mode]
    images: list[NDArray[np.uint8]] = []
    offsets: list[tuple[int, int]] = []
    for matrix in (a, b):
        groups = max(1, k // (4 if mode == "128B_32B" else 8))
        width = matrix.shape[0] * size
        if mode == "none":
            leading, stride = 128 * width // 16, 128
        else:
            stride = 8 * span
            leading = stride * groups
        images.append(place_mn_major(bits(np.ascontiguousarray(matrix.T)), mode, leading, stride))
        offsets.append((leading, stride))
    image, start = side_by_side(*images)
    text = mma(
        kind,
        descriptor(0, *offsets[0], mode),
        descriptor(start, *offsets[1], mode),
        instruction(128, 64, code, code, 2 if kind == "i8" else 1, turn=(1, 1)),
    )
    after = execute(text, image, garbage())
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    np.testing.assert_array_equal(after.view(np.int32) if kind == "i8" else floats(after), wanted)


# ---- D -----------------------------------------------------------------------------------------------------------------


def halves(seed: int = 6, rows: int = 128, columns: int = 32) -> tuple[Numbers, Numbers, NDArray[np.uint8], str, str]:
    a, b = sample(np.float16, (rows, 16), seed), sample(np.float16, (columns, 16), seed + 1)
    return a, b, *placed(bits(a), bits(b))


@pytest.mark.parametrize("scale", [0, 3])
@pytest.mark.parametrize(("negate", "sign"), [((0, 0), 1), ((1, 0), -1), ((0, 1), -1), ((1, 1), 1)])
def test_accumulation(negate: tuple[int, int], sign: int, scale: int) -> None:
    a, b, image, at_a, at_b = halves()
    d = np.random.default_rng(7).integers(-100, 100, (128, 64)).astype(np.float32) * 8
    more = f"%yes, {scale}" if scale else "%yes"
    text = mma("f16", at_a, at_b, instruction(128, 32, negate=negate), d="%t + 32", more=more)
    after = floats(execute(text, image, d.view(np.uint32)))
    wanted = sign * (a.astype(np.float64) @ b.astype(np.float64).T) + d[:, 32:] / 2**scale
    np.testing.assert_array_equal(after[:, 32:], wanted)
    np.testing.assert_array_equal(after[:, :32], d[:, :32])


def test_products_in_a_row() -> None:
    a, b, image, at_a, at_b = halves()
    idesc = instruction(128, 32)
    text = mma("f16", at_a, at_b, idesc) + mma("f16", at_a, at_b, idesc, more="%yes")
    after = floats(execute(text, image, garbage()))
    np.testing.assert_array_equal(after[:, :32], 2 * (a.astype(np.float64) @ b.astype(np.float64).T))


def test_f16_results() -> None:
    """In the lower halves of cells."""
    a, b, image, at_a, at_b = halves()
    after = execute(mma("f16", at_a, at_b, instruction(128, 32, d=0)), image, garbage())[:, :32]
    wanted = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float16)
    np.testing.assert_array_equal(after, wanted.view(np.uint16).astype(np.uint32))


@pytest.mark.parametrize("saturate", [0, 1])
def test_integers_wrap_or_saturate(saturate: int) -> None:
    a, b = sample(np.int8, (128, 32), 1), sample(np.int8, (16, 32), 2)
    image, at_a, at_b = placed(bits(a), bits(b))
    d = np.where(np.arange(128)[:, None] % 2 == 0, 2**31 - 1, -(2**31)) * np.ones((1, 32), np.int64)
    idesc = instruction(128, 16, 1, 1, 2) | saturate << 3
    found = execute(mma("i8", at_a, at_b, idesc, more="%yes"), image, d.astype(np.int32).view(np.uint32))
    exact = d[:, :16] + a.astype(np.int64) @ b.astype(np.int64).T
    wanted = np.clip(exact, -(2**31), 2**31 - 1) if saturate else (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(found[:, :16].view(np.int32), wanted)


def test_lanes_that_are_left_out() -> None:
    a, b, image, at_a, at_b = halves()
    masks = (0x0000FFFF, 0x80000001, 0, 0xFFFFFFFF)
    names = ", ".join(str(mask) for mask in masks)
    text = mma("f16", at_a, at_b, instruction(128, 32), more=f"{{{names}}}, %no")
    before = garbage()
    after = execute(text, image, before)[:, :32]
    out = np.array([masks[lane // 32] >> lane % 32 & 1 for lane in range(128)], bool)
    wanted = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32)
    np.testing.assert_array_equal(floats(after)[~out], wanted[~out])
    np.testing.assert_array_equal(after[out], before[out, :32])


@pytest.mark.parametrize("upper", [0, 16])
def test_64_rows(upper: int) -> None:
    """16 rows in each 32 lanes, the lower or the upper ones."""
    a, b, image, at_a, at_b = halves(rows=64)
    before = garbage()
    text = f"add.u32 %w1, %t, {upper << 16};" + mma("f16", at_a, at_b, instruction(64, 32), d="%w1")
    after = execute(text, image, before)
    wanted = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32)
    for row in range(64):
        np.testing.assert_array_equal(floats(after)[32 * (row // 16) + row % 16 + upper, :32], wanted[row])
    other = [lane for lane in range(128) if lane % 32 // 16 != upper // 16]
    np.testing.assert_array_equal(after[other], before[other])


@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary(m: int) -> None:
    """The columns of fewer than 128 rows lie beside each other in lanes."""
    a, b, image, at_a, at_b = halves(rows=m, columns=64)
    after = floats(execute(mma("f16", at_a, at_b, instruction(m, 64), modifiers=".ws"), image, garbage()))
    wanted = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32)
    parts = 128 // m
    for part in range(parts):
        width = 64 // parts
        rows = after[part * m : (part + 1) * m, :width]
        np.testing.assert_array_equal(rows, wanted[:, part * width : (part + 1) * width])


# ---- A in tensor memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "code", "dtype", "k"), DENSE)
def test_a_in_tensor_memory(kind: str, code: int, dtype: Any, k: int) -> None:
    a, b = sample(dtype, (128, k), 1), sample(dtype, (16, k), 2)
    image, _, at_b = placed(bits(b), bits(b))
    before = garbage()
    before[:, 32:40] = bits(a).view(np.uint32)
    text = mma(kind, "[%t + 32]", at_b, instruction(128, 16, code, code, 2 if kind == "i8" else 1))
    after = execute(text, image, before)[:, :16]
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    np.testing.assert_array_equal(after.view(np.int32) if kind == "i8" else floats(after), wanted)


@pytest.mark.parametrize(("kind", "code", "dtype", "k"), DENSE)
def test_a_is_shifted_behind_the_product(kind: str, code: int, dtype: Any, k: int) -> None:
    """The next product of the same A finds each row's follower, the last row of each 32 lanes itself, as NVIDIA's example for it
    (CUTLASS 4.7, tcgen05/1cta_mma_a_from_tmem.py) has it."""
    a, b = sample(dtype, (128, k), 1), sample(dtype, (16, k), 2)
    image, _, at_b = placed(bits(b), bits(b))
    before = garbage()
    before[:, 32:40] = bits(a).view(np.uint32)
    idesc = instruction(128, 16, code, code, 2 if kind == "i8" else 1)
    first = mma(kind, "[%t + 32]", at_b, idesc, modifiers=".ashift.collector::a::lastuse")
    second = "add.u32 %w1, %t, 16;" + mma(kind, "[%t + 32]", at_b, idesc, d="%w1")
    after = execute(first + second, image, before)
    shifted = np.concatenate((a[1:], a[-1:]))
    shifted[31::32] = a[31::32]
    for found, left in ((after[:, :16], a), (after[:, 16:32], shifted)):
        wanted = left.astype(np.int64) @ b.astype(np.int64).T
        np.testing.assert_array_equal(found.view(np.int32) if kind == "i8" else floats(found), wanted)
    np.testing.assert_array_equal(after[:, 32:40], bits(shifted).view(np.uint32))
    np.testing.assert_array_equal(after[:, 40:], before[:, 40:])


@pytest.mark.parametrize(("code", "dtype", "width"), NARROW)
def test_narrow_a_in_tensor_memory(code: int, dtype: Any, width: int) -> None:
    """A byte each: 4 bits in bits 2 to 5."""
    a = np.random.default_rng(1).choice(FOUR, (128, 32)).astype(dtype)
    b = sample(ml_dtypes.float8_e4m3fn, (16, 32), 2)
    image, _, at_b = placed(bits(b), bits(b))
    before = garbage()
    before[:, 32:40] = (a.view(np.uint8) << (2 if width == 4 else 0)).view(np.uint32)
    after = execute(mma("f8f6f4", "[%t + 32]", at_b, instruction(128, 16, code, 0)), image, before)
    np.testing.assert_array_equal(floats(after[:, :16]), a.astype(np.float64) @ b.astype(np.float64).T)


# ---- block scaling -----------------------------------------------------------------------------------------------------

# kind, modifier, type of the elements, type of the scales, elements of a scale
SCALED = [
    ("mxf8f6f4", "", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, 32),
    ("mxf8f6f4", ".block32", ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu, 32),
    ("mxf8f6f4", ".scale_vec::1X", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, 32),
    ("mxf4", "", ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu, 32),
    ("mxf4", ".scale_vec::2X", ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu, 32),
    ("mxf4nvf4", ".block32", ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu, 32),
    ("mxf4nvf4", ".block16", ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, 16),
    ("mxf4nvf4", ".scale_vec::4X", ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, 16),
]


def scale_cells(scales: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Scales (rows, 4) as columns of tensor memory: row r in lane r % 32 of each quarter, column r / 32."""
    cells = np.zeros((128, -(-scales.shape[0] // 32)), np.uint32)
    words = np.ascontiguousarray(scales).view(np.uint32)[:, 0]
    for row, word in enumerate(words):
        cells[row % 32 :: 32, row // 32] = word
    return cells


@pytest.mark.parametrize(
    ("kind", "modifier", "dtype", "scale_type", "block", "first"),
    [(*case, first) for case in SCALED for first in range(0, 4, (32 if case[0] == "mxf8f6f4" else 64) // case[4])],
)
def test_block_scaling(kind: str, modifier: str, dtype: Any, scale_type: Any, block: int, first: int) -> None:
    k = 32 if kind == "mxf8f6f4" else 64
    count = k // block
    rng, n = np.random.default_rng(8), 40
    four = dtype is ml_dtypes.float4_e2m1fn
    a, b = (rng.choice(FOUR, (rows, k)).astype(dtype) for rows in (128, n))
    rows_a, rows_b = (halved(m.view(np.uint8)) if four else bits(m) for m in (a, b))
    image, at_a, at_b = placed(rows_a, rows_b)
    numbers = np.array([0.5, 1, 2, 4]) if scale_type is ml_dtypes.float8_e8m0fnu else np.array([0.5, 1, 1.5, 3])
    by_a, by_b = (rng.choice(numbers, (rows, 4)).astype(scale_type) for rows in (128, n))
    before = garbage(96)
    before[:, 64:68] = scale_cells(by_a.view(np.uint8))
    before[:, 80:82] = scale_cells(by_b.view(np.uint8))
    code = {ml_dtypes.float8_e5m2: 1, ml_dtypes.float8_e4m3fn: 0}.get(dtype, 1)
    idesc = instruction(128, n, code, code, 0) | first << 4 | first << 29
    idesc |= (scale_type is ml_dtypes.float8_e8m0fnu) << 23
    more = "[%t + 64], [%t + 80], %no"
    after = execute(mma(kind, at_a, at_b, idesc, more=more, modifiers=f".block_scale{modifier}"), image, before)
    scaled = (
        m.astype(np.float64) * np.repeat(s[:, first : first + count].astype(np.float64), block, axis=1)
        for m, s in ((a, by_a), (b, by_b))
    )
    left, right = scaled
    np.testing.assert_array_equal(floats(after[:, :n]), left @ right.T)


def test_each_quarter_has_scales_of_its_own() -> None:
    a, b = (np.ones((rows, 32), ml_dtypes.float8_e4m3fn) for rows in (128, 32))
    image, at_a, at_b = placed(bits(a), bits(b))
    before = garbage()
    before[:, 32:36] = 0x7F7F7F7F
    before[:, 40] = np.repeat(np.array([127, 128, 129, 130], np.uint32), 32)
    idesc = instruction(128, 32, d=0) | 1 << 23
    text = mma("mxf8f6f4", at_a, at_b, idesc, more="[%t + 32], [%t + 40], %no", modifiers=".block_scale")
    after = floats(execute(text, image, before))[:, :32]
    np.testing.assert_array_equal(after, np.repeat(32.0 * 2.0 ** np.arange(4), 32)[:, None] * np.ones((1, 32)))


# ---- copies ------------------------------------------------------------------------------------------------------------

LANES: dict[str, Callable[[int], int | None]] = {
    "128x256b": lambda lane: lane,
    "4x256b": lambda lane: lane // 32 if lane % 32 == 0 else None,
    "128x128b": lambda lane: lane,
    "64x128b.warpx2::02_13": lambda lane: lane % 64,
    "64x128b.warpx2::01_23": lambda lane: lane % 32 + 32 * (lane // 64),
    "32x128b.warpx4": lambda lane: lane % 32,
}
"""The row that goes to a lane."""


def copy(shape: str, at: str, suffix: str = "") -> str:
    return f"mov.b64 %a, {at}; add.u64 %a, %a, %base; tcgen05.cp.cta_group::1.{shape}{suffix} [%t + 8], %a;"


@pytest.mark.parametrize("shape", LANES)
def test_copies(shape: str) -> None:
    rows, width = int(shape.partition("x")[0]), 32 if "256b" in shape else 16
    data = np.random.default_rng(1).integers(0, 256, (max(rows, 8), width)).astype(np.uint8)
    image = place_k_major(data, "none", 128, 256)
    before = garbage(32)
    after = execute(copy(shape, descriptor(0, 128, 256, "none")), image, before)
    wanted = before.copy()
    for lane in range(128):
        if (row := LANES[shape](lane)) is not None:
            wanted[lane, 8 : 8 + width // 4] = data[row].view(np.uint32)
    np.testing.assert_array_equal(after, wanted)


@pytest.mark.parametrize(("suffix", "width", "place"), [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 0)])
def test_copies_that_widen(suffix: str, width: int, place: int) -> None:
    codes = np.random.default_rng(2).integers(0, 1 << width, (128, 32)).astype(np.uint8)
    image = place_k_major(padded(codes, width), "none", 128, 256)
    at = descriptor(0, 128, 256, "none")
    after = execute(copy("128x256b", at, f".b8x16.{suffix}"), image, garbage(32))
    np.testing.assert_array_equal(after[:, 8:16].view(np.uint8).reshape(128, 32), codes << place)


def test_shift() -> None:
    before = garbage(32)
    after = execute("add.u32 %w0, %t, 2097156; tcgen05.shift.cta_group::1.down [%w0];", np.zeros(16, np.uint8), before)
    wanted = before.copy()
    wanted[32:63, 4:12] = before[33:64, 4:12]
    np.testing.assert_array_equal(after, wanted)


# ---- order and counters ------------------------------------------------------------------------------------------------


def test_operands_belong_to_the_product_until_it_is_waited_for() -> None:
    """A write to shared memory before the mbarrier is waited for is a race; behind it there is none."""
    _, _, image, at_a, at_b = halves()
    product = mma("f16", at_a, at_b, instruction(128, 32))
    write = "mov.u32 %w2, image; st.shared.b32 [%w2], 0;"
    with pytest.raises(Race) as raised:
        execute(product + write, image, garbage())
    assert raised.value.message.startswith("thread (0, 0, 0) of block (0, 0, 0) writes shared 0x0..0x3, ")
    assert "an asynchronous operation of thread (0, 0, 0)" in raised.value.message
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
    wait = "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra AGAIN;"
    ptx = kernel(product + commit + wait + write, image.size, 32, commit=False)
    before = garbage(32)
    Module(ptx).launch("test", 1, 128, [image, before, np.zeros_like(before)])


def test_operands_that_no_fence_passed_on() -> None:
    _, _, image, at_a, at_b = halves()
    ptx = kernel(mma("f16", at_a, at_b, instruction(128, 32)), image.size, 32)
    before = garbage(32)
    with pytest.raises(Race) as raised:
        Module(ptx.replace("fence.proxy.async.shared::cta;", "")).launch(
            "test", 1, 128, [image, before, np.zeros_like(before)]
        )
    assert raised.value.message.endswith("a generic write that no fence.proxy.async follows")


def test_each_block_of_a_cluster_has_its_own() -> None:
    """Operands and tensor memory; the rank in addresses of shared memory is no part of a descriptor."""
    both = [halves(seed) for seed in (6, 20)]
    _, _, image, at_a, at_b = both[0]
    ptx = kernel(mma("f16", at_a, at_b, instruction(128, 32)), image.size, 32)
    before = garbage(32)
    out = np.zeros((256, 32), np.uint32)
    text = ptx.replace(".param .u64 p_out) {", ".param .u64 p_out) .reqnctapercluster 2, 1, 1 {")
    assert text != ptx
    images = np.concatenate([found[2] for found in both])
    Module(text).launch("test", 2, 128, [images, np.concatenate([before, before]), out])
    for rank, (a, b, *_) in enumerate(both):
        found = floats(out[128 * rank : 128 * rank + 128])
        np.testing.assert_array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T)


def test_counters() -> None:
    _, _, image, at_a, at_b = halves()
    before = garbage(32)
    ptx = kernel(mma("f16", at_a, at_b, instruction(128, 32)), image.size, 32)
    profile = Module(ptx).launch("test", 1, 128, [image, before, np.zeros_like(before)])
    assert profile.total("tcgen05") == 1
    assert profile.total("matrix_flops") == 2 * 128 * 32 * 16
    assert profile.total("async_shared_load_bytes") == (128 + 32) * 32


# ---- what is wrong -----------------------------------------------------------------------------------------------------


def says(text: str, columns: int = 64, fault: type[Fault] = Fault) -> str:
    _, _, image, _, _ = halves()
    with pytest.raises(fault) as raised:
        execute(text, image, garbage(columns))
    return raised.value.message


@pytest.mark.parametrize(
    ("kind", "idesc", "what"),
    [
        ("f16", instruction(128, 24), "is of 128 rows and 24 columns, which kind::f16 does not have"),
        ("f16", instruction(96, 32), "is of 96 rows and 32 columns, which kind::f16 does not have"),
        ("f16", instruction(128, 32, a=2), "has type 2 of A, which kind::f16 does not have"),
        ("f16", instruction(128, 32, b=3), "has type 3 of B, which kind::f16 does not have"),
        ("f16", instruction(128, 32, d=2), "has type 2 of D, which kind::f16 does not have"),
        ("f16", instruction(128, 32, a=1, b=1, d=0), "has D of f16 and operands of bf16"),
        ("f16", instruction(128, 32) | 4, "is of a sparse A, without .sp"),
        ("f8f6f4", instruction(128, 32, a=5, turn=(1, 0)), "has an MN-major A of e2m1, which is K-major only"),
        ("tf32", instruction(128, 32, 2, 2, 0), "has type 0 of D, which kind::tf32 does not have"),
        ("i8", instruction(64, 40, d=2), "is of 64 rows and 40 columns, which kind::i8 does not have"),
    ],
)
def test_instruction_descriptors(kind: str, idesc: int, what: str) -> None:
    _, _, _, at_a, at_b = halves()
    assert (
        says(mma(kind, at_a, at_b, idesc))
        == f"the instruction descriptor of tcgen05.mma.cta_group::1.kind::{kind} {what}"
    )


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (3 << 61, "has swizzle 3, which there is not"),
        (1 << 52, "has an absolute leading address (bit 52), which the emulator does not know"),
    ],
)
def test_matrix_descriptors(more: int, what: str) -> None:
    at = descriptor(0, 128, 256, "none")
    name = "tcgen05.mma.cta_group::1.kind::f16"
    assert says(mma("f16", str(int(at) | more), at, instruction(128, 32))) == f"the matrix descriptor of {name} {what}"
    said = says(copy("128x256b", str(int(at) | more)))
    assert said == f"the matrix descriptor of tcgen05.cp.cta_group::1.128x256b {what}"


@pytest.mark.parametrize(("first", "kind"), [(1, 1), (2, 0)])
def test_scales_that_there_are_not(first: int, kind: int) -> None:
    _, _, _, at_a, at_b = halves()
    idesc = instruction(128, 32, 1, 1, 0) | first << 29 | kind << 23
    said = says(mma("mxf4", at_a, at_b, idesc, more="[%t], [%t], %no", modifiers=".block_scale"))
    name = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale"
    assert said == f"scales of .{('ue4m3', 'ue8m0')[kind]} from byte {first} on, of which {name} has none"


def test_a_in_tensor_memory_that_there_is_not() -> None:
    _, _, _, _, at_b = halves()
    turned = instruction(128, 32, turn=(1, 0))
    assert says(mma("f16", "[%t]", at_b, turned)) == "A in tensor memory is MN-major, which there is not"


def test_a_shift_at_another_lane() -> None:
    text = "add.u32 %w0, %t, 65536; tcgen05.shift.cta_group::1.down [%w0];"
    assert says(text) == "tcgen05.shift at lane 1, which is no multiple of 32"


def test_a_shift_of_what_is_too_small() -> None:
    text = mma("f16", "[%t + 32]", "0", instruction(64, 32), modifiers=".ashift")
    assert says(text) == "tcgen05.mma.cta_group::1.kind::f16.ashift shifts A of 64 rows, expected 128 of a block"


@pytest.mark.parametrize(
    "text",
    [
        "tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::fill [%t], [%t], %b, %w0, %no;",
        "tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::use [%t], [%t], %b, %w0, %no;",
        "tcgen05.mma.cta_group::1.kind::f16.ashift [%t], %a, %b, %w0, %no;",
        "tcgen05.mma.ws.cta_group::1.kind::f16.ashift [%t], [%t], %b, %w0, %no;",
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.ashift [%t], [%t], %b, %w0, [%t], [%t], %no;",
    ],
)
def test_shifts_that_there_are_not(text: str) -> None:
    with pytest.raises(PTXError, match="'.ashift'"):
        execute(text, np.zeros(16, np.uint8), garbage(32))


def test_results_that_were_never_written() -> None:
    _, _, image, at_a, at_b = halves()
    ptx = kernel(mma("f16", at_a, at_b, instruction(128, 32), more="%yes"), image.size, 32)
    start, end = ptx.index("tcgen05.st"), ptx.index("tcgen05.wait::st")
    before = garbage(32)
    with pytest.raises(Uninitialised) as raised:
        Module(ptx[:start] + ptx[end:]).launch("test", 1, 128, [image, before, np.zeros_like(before)])
    assert raised.value.message == "D: lane 0, column 0 of tensor memory has not been written"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%t], %a, %b, %w0, [%t], [%t], %no;",
            "'.no block size' of tcgen05.mma.kind::mxf4nvf4",
        ),
    ],
)
def test_what_is_refused(text: str, what: str) -> None:
    with pytest.raises(ValueError, match="the emulator does not know") as raised:
        execute(text, np.zeros(16, np.uint8), garbage(32))
    first = str(raised.value).splitlines()[0]
    assert first.partition(": ")[2] == f"the emulator does not know {what}"


@pytest.mark.skipif(
    shutil.which("ptxas") is None, reason="ptxas, which is asked whether it takes the kernel, is not on the PATH"
)
def test_ptxas_takes_the_kernel(tmp_path: Path) -> None:
    _, _, image, at_a, at_b = halves()
    text = mma("f16", at_a, at_b, instruction(128, 32)) + copy("128x256b", at_a)
    source = tmp_path / "k.ptx"
    source.write_text(kernel(text, image.size, 64))
    command = ["ptxas", "-arch=sm_100a", "-o", str(tmp_path / "k.cubin"), str(source)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
