"""tcgen05.mma.sp, and .ws with A in tensor memory and masks of columns, against integer products.

A is made sparse here, compressed element by element, and its metadata put bit by bit where CUTLASS's layouts have them: for kinds
of 16 bits ``((8, 2, 8), (16, 2)) : ((1, 2048, 16), (128, 8))`` of (row, k) with 128 lanes to a bit.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_tcgen05 import bits, descriptor, execute, execute_pair, instruction, mma, place_k_major
from weft.emulator.arith.tcgen05_sparse import meaning
from weft.emulator.errors import Fault, Undefined

Numbers = NDArray[Any]
START = 32768
AT_A, AT_B = descriptor(0, 0, 1024, "128B"), descriptor(START, 0, 1024, "128B")
FOUR = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])

PLACES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]

# kind, code, type, K
SPARSE = [
    ("f16", 0, np.float16, 32),
    ("f16", 1, ml_dtypes.bfloat16, 32),
    ("tf32", 2, np.float32, 16),
    ("f8f6f4", 0, ml_dtypes.float8_e4m3fn, 64),
    ("i8", 1, np.int8, 64),
]


def sparse(seed: int, rows: int, k: int, dtype: Any, kind: str) -> tuple[Numbers, Numbers, list[list[int]]]:
    """A dense A, what is stored of it, and the four bits of each group of each row."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((rows, k), dtype)
    stored = np.zeros((rows, k // 2), dtype)
    metadata: list[list[int]] = []
    for r in range(rows):
        fields: list[int] = []
        for group in range(k // (2 if kind == "tf32" else 4)):
            if kind == "tf32":
                place = int(rng.integers(2))
                value = rng.integers(-4, 5)
                dense[r, 2 * group + place] = stored[r, group] = value
                fields.append((0b0100, 0b1110)[place])
            else:
                first, second = PLACES[rng.integers(6)]
                for i, place in enumerate((first, second)):
                    dense[r, 4 * group + place] = stored[r, 2 * group + i] = rng.integers(-4, 5)
                fields.append(first | second << 2)
        metadata.append(fields)
    return dense, stored, metadata


def metadata_cells(metadata: list[list[int]], wide: bool) -> NDArray[np.uint32]:
    """Columns of 128 rows' metadata: one of 32 bits a row, or two."""
    cells = np.zeros((128, 1 if wide else 2), np.uint32)
    for r, fields in enumerate(metadata):
        for group, field in enumerate(fields):
            if wide:  # bit 4 group is of k = 4 group of 32: r0 + 16 r2 + 8 k1 lanes, k0 + 16 r1 bits
                half, low = divmod(4 * group, 16)
                cells[r % 8 + 16 * (r // 16) + 8 * half, 0] |= np.uint32(field << (low + 16 * (r // 8 % 2)))
            else:
                cells[r, group // 8] |= np.uint32(field << 4 * (group % 8))
    return cells


def image(a: Numbers, b: Numbers) -> NDArray[np.uint8]:
    """A from 0 on, rows of 32 bytes; B from `START` on, rows of up to 64."""
    first, second = (place_k_major(bits(m), "128B", 0, 1024) for m in (a, b))
    whole = np.zeros(START + second.size, np.uint8)
    whole[: first.size], whole[START:] = first, second
    return whole


def garbage(columns: int = 96) -> NDArray[np.uint32]:
    return np.random.default_rng(9).integers(0, 1 << 32, (128, columns), np.uint32)


def dense_b(seed: int, n: int, k: int, dtype: Any) -> Numbers:
    return np.random.default_rng(seed).integers(-4, 5, (n, k)).astype(dtype)


def product(a: Numbers, b: Numbers) -> Numbers:
    return a.astype(np.int64) @ b.astype(np.int64).T


SPARSITY = 4
"""The bit of the instruction descriptor."""


@pytest.mark.parametrize(
    ("kind", "code", "dtype", "k", "selector"),
    [(*case, selector) for case in SPARSE for selector in ((0, 1) if case[0] in ("f16", "tf32") else (0,))],
)
def test_sparse(kind: str, code: int, dtype: Any, k: int, selector: int) -> None:
    a, stored, metadata = sparse(1, 128, k, dtype, kind)
    wide = kind in ("f16", "tf32")
    b = dense_b(2, 32, k, dtype)
    before = garbage()
    cells = metadata_cells(metadata, wide)
    before[:, 64 + selector : 64 + selector + cells.shape[1]] = cells
    idesc = instruction(128, 32, code, code, 2 if kind == "i8" else 1) | SPARSITY | selector
    text = mma(kind, AT_A, AT_B, idesc, modifiers=".sp", metadata="%t + 64")
    found = execute(text, image(stored, b), before)[:, :32]
    np.testing.assert_array_equal(found.view(np.int32 if kind == "i8" else np.float32), product(a, b))


def test_sparse_in_tensor_memory() -> None:
    a, stored, metadata = sparse(3, 128, 32, np.float16, "f16")
    b = dense_b(4, 32, 32, np.float16)
    before = garbage()
    before[:, 64:65], before[:, 72:80] = metadata_cells(metadata, True), stored.view(np.uint32)
    idesc = instruction(128, 32) | SPARSITY
    text = mma("f16", "[%t + 72]", AT_B, idesc, modifiers=".sp", metadata="%t + 64", more="%yes")
    d = np.arange(128 * 32, dtype=np.float32).reshape(128, 32)
    before[:, :32] = d.view(np.uint32)
    found = execute(text, image(stored, b), before)[:, :32].view(np.float32)
    np.testing.assert_array_equal(found, product(a, b) + d)


def test_sparse_of_64_rows() -> None:
    """Rows and their metadata have 16 of each 32 lanes."""
    a, stored, metadata = sparse(5, 64, 32, np.float16, "f16")
    b = dense_b(6, 32, 32, np.float16)
    before = garbage()
    cells = metadata_cells(metadata, True)
    for lane in range(64):
        before[32 * (lane // 16) + lane % 16, 64] = cells[lane, 0]
    idesc = instruction(64, 32) | SPARSITY
    text = mma("f16", AT_A, AT_B, idesc, modifiers=".sp", metadata="%t + 64")
    found = execute(text, image(stored, b), before)[:, :32].view(np.float32)
    np.testing.assert_array_equal(found.reshape(4, 32, 32)[:, :16].reshape(64, 32), product(a, b))


@pytest.mark.parametrize("m", [128, 256])
def test_sparse_in_two_blocks(m: int) -> None:
    """D of 128 rows is not folded: a block's 64 rows have 16 of each 32 lanes."""
    a, stored, metadata = sparse(7, m, 32, np.float16, "f16")
    b = dense_b(8, 32, 32, np.float16)
    before = np.stack([garbage(), garbage()])
    half = m // 2
    both = [image(stored[i * half : (i + 1) * half], b[16 * i : 16 * i + 16]) for i in range(2)]
    lanes = np.arange(128) if m == 256 else np.arange(64) % 16 + 32 * (np.arange(64) // 16)
    for i in range(2):
        before[i, lanes, 64] = metadata_cells(metadata[i * half : (i + 1) * half], True)[:half, 0]
    text = mma("f16", AT_A, AT_B, instruction(m, 32) | SPARSITY, modifiers=".sp", metadata="%t + 64")
    found = execute_pair(text, both, before)[:, lanes, :32].view(np.float32)
    np.testing.assert_array_equal(found.reshape(m, 32), product(a, b))


@pytest.mark.parametrize(("modifier", "block"), [(".scale_vec::2X", 64), (".scale_vec::4X", 32)])
def test_sparse_with_scales(modifier: str, block: int) -> None:
    """mxf4nvf4: of eight elements two pairs are stored, and a scale is for 64 or 32."""
    rng = np.random.default_rng(10)
    a, b = np.zeros((128, 128)), rng.choice(FOUR, (32, 128))
    codes = np.zeros((128, 64), np.uint8)
    metadata: list[list[int]] = []
    for r in range(128):
        fields: list[int] = []
        for group in range(16):
            places = PLACES[rng.integers(6)]
            for i, place in enumerate(places):
                pair = rng.choice(FOUR, 2)
                a[r, 8 * group + 2 * place : 8 * group + 2 * place + 2] = pair
                at = 4 * group + 2 * i
                codes[r, at : at + 2] = pair.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
            fields.append(places[0] | places[1] << 2)
        metadata.append(fields)
    b_codes = b.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    halved = [c[:, ::2] + 16 * c[:, 1::2] for c in (codes, b_codes)]
    wide = modifier.endswith("4X")
    kind = ml_dtypes.float8_e4m3fn if wide else ml_dtypes.float8_e8m0fnu
    by_a, by_b = (rng.choice(np.array([0.5, 1, 2, 4]), (rows, 4)).astype(kind) for rows in (128, 32))
    before = garbage()
    before[:, 64:66] = metadata_cells(metadata, False)
    for lane in range(128):
        for r in range(lane % 32, 128, 32):
            before[lane, 72 + r // 32] = by_a[r].view(np.uint32)[0]
        before[lane, 80] = by_b[lane % 32].view(np.uint32)[0]
    idesc = instruction(128, 32, 1, 1, 0) | SPARSITY | (not wide) << 23
    text = mma(
        "mxf4nvf4",
        AT_A,
        AT_B,
        idesc,
        more="[%t + 72], [%t + 80], %no",
        modifiers=f".sp.block_scale{modifier}",
        metadata="%t + 64",
    )
    found = execute(text, image(*halved), before)[:, :32].view(np.float32)
    left, right = (
        m * np.repeat(s[:, : 128 // block].astype(np.float64), block, axis=1) for m, s in ((a, by_a), (b, by_b))
    )
    np.testing.assert_array_equal(found, left @ right.T)


@pytest.mark.parametrize("m", [32, 64])
def test_sparse_and_stationary(m: int) -> None:
    """Each part of the columns has stored elements and metadata of its own, in the lanes of that part."""
    parts = 128 // m
    each = [sparse(20 + i, m, 32, np.float16, "f16") for i in range(parts)]
    b = dense_b(12, 64, 32, np.float16)
    before = garbage()
    before[:, 64:65] = np.concatenate([metadata_cells(metadata, True)[:m] for _, _, metadata in each])
    before[:, 72:80] = np.concatenate([stored for _, stored, _ in each]).view(np.uint32)
    idesc = instruction(m, 64) | SPARSITY
    text = mma("f16", "[%t + 72]", AT_B, idesc, modifiers=".ws.sp", metadata="%t + 64")
    found = unfolded(execute(text, image(each[0][1], b), before), m, 64)
    wanted = np.hstack([product(a, part) for (a, _, _), part in zip(each, np.split(b, parts), strict=True)])
    np.testing.assert_array_equal(found, wanted)


def test_what_metadata_mean_something() -> None:
    """The values that 9.7.16.10.8 lists."""
    two = [0b0100, 0b0110, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110]
    for kind in ("f16", "i8", "f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"):
        assert meaning(kind).nonzero()[0].tolist() == two
    assert meaning("tf32").nonzero()[0].tolist() == [0b0100, 0b1110]


# ---- weight stationary -----------------------------------------------------------------------------------------------------


def unfolded(cells: NDArray[np.uint32], m: int, n: int) -> NDArray[np.float32]:
    """D (m, n), whose columns are in 128 / m parts of the lanes."""
    parts = 128 // m
    return np.hstack([cells[m * i : m * i + m, : n // parts] for i in range(parts)]).view(np.float32)


@pytest.mark.parametrize("m", [32, 64, 128])
def test_each_part_of_the_columns_has_an_a(m: int) -> None:
    """In tensor memory: lanes m i to m i + m - 1 are A for the i-th part of the columns."""
    parts = 128 // m
    each = [np.random.default_rng(i).integers(-4, 5, (m, 16)).astype(np.float16) for i in range(parts)]
    b = dense_b(11, 64, 16, np.float16)
    before = garbage()
    before[:, 72:80] = np.concatenate(each).view(np.uint32)
    text = mma("f16", "[%t + 72]", AT_B, instruction(m, 64), modifiers=".ws")
    found = unfolded(execute(text, image(each[0], b), before), m, 64)
    wanted = np.hstack([product(a, part) for a, part in zip(each, np.split(b, parts), strict=True)])
    np.testing.assert_array_equal(found, wanted)


def mask(starts: list[int], firsts: list[int], skip: int, use: int, shift: int = 0, nonzero: int = 1) -> int:
    """A zero-column mask descriptor; spans as the ISA's tables of examples have them."""
    value = nonzero << 39 | skip << 40 | use << 48 | shift << 56
    for i, (start, first) in enumerate(zip(starts, firsts, strict=True)):
        value |= start << 8 * i | first << 32 + i
    return value


def masked(m: int, descriptor_bits: int, idesc: int = 0) -> tuple[Numbers, Numbers]:
    """D of a product with a mask of 64 columns, and of the product of all 96 columns that there are."""
    a, b = dense_b(12, m, 16, np.float16), dense_b(13, 96, 16, np.float16)
    text = f"mov.b64 %l5, {descriptor_bits};"
    text += mma("f16", AT_A, AT_B, instruction(m, 64) | idesc, more="%no, %l5", modifiers=".ws")
    return unfolded(execute(text, image(a, b), garbage()), m, 64), product(a, b)


# The examples of 9.7.16.4.3, masks written from column 0 on, and a start beyond the first span, which leaves a column of it.
EXAMPLES = [
    (128, mask([0] * 4, [0] * 4, 4, 3, nonzero=0), ["0" * 64]),
    (128, mask([0] * 4, [0] * 4, 2, 3), ["0000111" * 10]),
    (128, mask([200] * 4, [0] * 4, 2, 3), ["0" + "1110000" * 10]),
    (64, mask([0] * 4, [1, 0, 0, 0], 2, 3), ["1110000" * 5, "0000111" * 5]),
    (
        32,
        mask([0, 1, 2, 1], [1, 1, 0, 0], 2, 3),
        ["1110000" * 3, "11" + "0000111" * 3, "00" + "1110000" * 3, "000" + "1110000" * 3],
    ),
]


@pytest.mark.parametrize(("m", "bits_of_mask", "parts"), EXAMPLES)
def test_masks_of_columns(m: int, bits_of_mask: int, parts: list[str]) -> None:
    found, whole = masked(m, bits_of_mask)
    width = 64 * m // 128
    zero = "".join(part[:width] for part in parts)
    wanted = whole[:, :64] * np.array([c == "0" for c in zero])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("m", "shift", "most"), [(128, 32, 3), (64, 9, 2), (32, 2, 1)])
def test_columns_are_shifted(m: int, shift: int, most: int) -> None:
    """By up to 8, 16 or 32 columns, as the instruction descriptor says."""
    found, whole = masked(m, mask([0] * 4, [0] * 4, 0, 0, shift, 0), most << 30)
    np.testing.assert_array_equal(found, whole[:, shift : shift + 64])


# ---- what is wrong ---------------------------------------------------------------------------------------------------------


def says(text: str) -> str:
    stored = np.ones((128, 16), np.float16)
    before = garbage()
    before[:, 64:66] = 0x44444444
    with pytest.raises(Fault) as raised:
        execute(text, image(stored, np.ones((64, 32), np.float16)), before)
    assert isinstance(raised.value, Undefined)
    return raised.value.message


NAME = "tcgen05.mma.sp.cta_group::1.kind::f16"


@pytest.mark.parametrize(
    ("kind", "idesc", "what"),
    [
        ("f16", instruction(128, 32), "is of a dense A, with .sp"),
        ("f16", instruction(128, 32) | SPARSITY | 2, "has sparsity selector 2, which kind::f16 does not have"),
        ("i8", instruction(128, 32, d=2) | SPARSITY | 1, "has sparsity selector 1, which kind::i8 does not have"),
    ],
)
def test_sparse_descriptors(kind: str, idesc: int, what: str) -> None:
    said = says(mma(kind, AT_A, AT_B, idesc, modifiers=".sp", metadata="%t + 64"))
    assert said == f"the instruction descriptor of tcgen05.mma.sp.cta_group::1.kind::{kind} {what}"


def test_metadata_without_meaning() -> None:
    text = mma("f16", AT_A, AT_B, instruction(128, 32) | SPARSITY, modifiers=".sp", metadata="%t + 80")
    before = garbage()
    before[:, 80] = 0x44444444
    before[17, 80] = 0x44544444  # row 25 (the high half of lane 17), bits 20 to 23: group 1
    with pytest.raises(Undefined) as raised:
        execute(text, image(np.ones((128, 16), np.float16), np.ones((32, 32), np.float16)), before)
    assert raised.value.message == (
        "the sparsity metadata of row 25, group 1 of a block are 0b0101, which mean nothing"
    )


@pytest.mark.parametrize(
    ("m", "most", "descriptor_bits", "what"),
    [
        (128, 1, 1 << 36, "has reserved bits set"),
        (128, 1, 9 << 56, "shifts columns by 9, and the instruction descriptor allows 8"),
        (32, 3, 17 << 56, "shifts columns by 17, and the instruction descriptor allows 16"),
    ],
)
def test_masks_that_there_are_not(m: int, most: int, descriptor_bits: int, what: str) -> None:
    text = f"mov.b64 %l5, {descriptor_bits};"
    text += mma("f16", AT_A, AT_B, instruction(m, 64) | most << 30, more="%no, %l5", modifiers=".ws")
    assert says(text) == f"the mask of columns of tcgen05.mma.ws.cta_group::1.kind::f16 {what}"


def test_a_shift_of_an_mn_major_b() -> None:
    text = f"mov.b64 %l5, {1 << 56};"
    idesc = instruction(128, 64, turn=(0, 1)) | 1 << 30
    text += mma("f16", AT_A, AT_B, idesc, more="%no, %l5", modifiers=".ws")
    name = "tcgen05.mma.ws.cta_group::1.kind::f16"
    assert says(text) == f"{name} shifts the columns of an MN-major B, which the emulator does not know"


def test_k_of_96() -> None:
    idesc = instruction(128, 32, 1, 1, 0) | 1 << 31
    said = says(mma("mxf4", AT_A, AT_B, idesc, more="[%t], [%t], %no", modifiers=".block_scale"))
    name = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale"
    assert said == f"the instruction descriptor of {name} is of K = 96, which the emulator does not know"
