"""tcgen05 with .cta_group::2: two blocks of a cluster, against integer products.

The layouts are those of PTX ISA 9.7.16.10.5, written down another way: D's rows and columns are collected from the cells that
thread 32 w + l of a block would load with 32x32b.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_tcgen05 import (
    bits,
    descriptor,
    execute_pair,
    instruction,
    kernel,
    mma,
    place_k_major,
    place_mn_major,
)
from weft.emulator import Module
from weft.emulator.errors import BarrierFault, Fault, OutOfBounds, Race, Undefined

Numbers = NDArray[Any]
START = 32768
"""Where B begins in each image."""


def halves(seed: int, m: int, n: int, dtype: Any = np.float16, k: int = 16) -> tuple[Numbers, Numbers]:
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (n, k)).astype(dtype)


def images(a: Numbers, b: Numbers) -> list[NDArray[np.uint8]]:
    """Of each block: its half of A's rows from 0 on, its half of B's rows from `START` on."""
    found: list[NDArray[np.uint8]] = []
    for left, right in zip(np.split(a, 2), np.split(b, 2), strict=True):
        first, second = (place_k_major(bits(half), "128B", 0, 1024) for half in (left, right))
        image = np.zeros(START + second.size, np.uint8)
        image[: first.size], image[START:] = first, second
        found.append(image)
    return found


AT_A, AT_B = descriptor(0, 0, 1024, "128B"), descriptor(START, 0, 1024, "128B")


def garbage(columns: int = 64) -> NDArray[np.uint32]:
    return np.random.default_rng(9).integers(0, 1 << 32, (2, 128, columns), np.uint32)


def result(cells: NDArray[np.uint32], m: int, n: int) -> NDArray[np.uint32]:
    """D (m, n): with M = 256 a block has 128 rows, with 128 it has 64, and the columns' second half 64 lanes below."""
    if m == 256:
        return cells[:, :, :n].reshape(256, n)
    return np.concatenate([np.hstack([block[:64, : n // 2], block[64:, : n // 2]]) for block in cells])


def cells_of(d: Numbers) -> NDArray[np.uint32]:
    """The opposite, for D of 32 bits: (2, 128, columns)."""
    m, n = d.shape
    words = np.ascontiguousarray(d).view(np.uint32)
    if m == 256:
        return words.reshape(2, 128, n)
    return np.stack([np.vstack([half[:, : n // 2], half[:, n // 2 :]]) for half in np.split(words, 2)])


@pytest.mark.parametrize("issuer", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(256, 32), (256, 64), (128, 32), (128, 64)])
def test_products(m: int, n: int, issuer: int) -> None:
    a, b = halves(1, m, n)
    before = garbage()
    after = execute_pair(mma("f16", AT_A, AT_B, instruction(m, n)), images(a, b), before, issuer)
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    np.testing.assert_array_equal(result(after, m, n).view(np.float32), wanted)
    used = n if m == 256 else n // 2
    np.testing.assert_array_equal(after[:, :, used:], before[:, :, used:])


@pytest.mark.parametrize(
    ("kind", "code", "dtype", "k"),
    [("tf32", 2, np.float32, 8), ("f8f6f4", 0, ml_dtypes.float8_e4m3fn, 32), ("i8", 1, np.int8, 32)],
)
def test_kinds(kind: str, code: int, dtype: Any, k: int) -> None:
    a, b = halves(2, 256, 32, dtype, k)
    text = mma(kind, AT_A, AT_B, instruction(256, 32, code, code, 2 if kind == "i8" else 1))
    found = result(execute_pair(text, images(a, b), garbage()), 256, 32)
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    np.testing.assert_array_equal(found.view(np.int32 if kind == "i8" else np.float32), wanted)


@pytest.mark.parametrize("m", [128, 256])
def test_accumulation(m: int) -> None:
    a, b = halves(3, m, 64)
    d = np.random.default_rng(4).integers(-50, 50, (m, 64)).astype(np.float32)
    before = garbage()
    cells = cells_of(d)
    before[:, :, : cells.shape[2]] = cells
    after = execute_pair(mma("f16", AT_A, AT_B, instruction(m, 64), more="%yes"), images(a, b), before)
    np.testing.assert_array_equal(result(after, m, 64).view(np.float32), a.astype(int) @ b.astype(int).T + d)


def test_mn_major() -> None:
    a, b = halves(5, 256, 128)
    both: list[NDArray[np.uint8]] = []
    for left, right in zip(np.split(a, 2), np.split(b, 2), strict=True):
        image = np.zeros(START + 16384, np.uint8)
        for start, half in ((0, left), (START, right)):
            lines = place_mn_major(bits(np.ascontiguousarray(half.T)), "128B", 2048, 1024)
            image[start : start + lines.size] = lines
        both.append(image)
    at_a, at_b = (descriptor(start, 2048, 1024, "128B") for start in (0, START))
    after = execute_pair(mma("f16", at_a, at_b, instruction(256, 128, turn=(1, 1))), both, garbage(128))
    np.testing.assert_array_equal(result(after, 256, 128).view(np.float32), a.astype(int) @ b.astype(int).T)


@pytest.mark.parametrize("m", [128, 256])
def test_masks_of_lanes(m: int) -> None:
    """Eight words: four for the lanes of each block."""
    a, b = halves(6, m, 32)
    words = np.random.default_rng(7).integers(0, 1 << 32, 8, np.uint64).tolist()
    names = ", ".join(f"%o{i}" for i in range(8))
    text = "".join(f".reg .b32 %o{i}; mov.b32 %o{i}, {word};" for i, word in enumerate(words))
    text += mma("f16", AT_A, AT_B, instruction(m, 32), more=f"{{{names}}}, %no")
    before = garbage()
    after = execute_pair(text, images(a, b), before)
    whole = before.copy()
    cells = cells_of((a.astype(int) @ b.astype(int).T).astype(np.float32))
    whole[:, :, : cells.shape[2]] = cells
    for rank in range(2):
        for lane in range(128):
            off = words[4 * rank + lane // 32] >> lane % 32 & 1
            np.testing.assert_array_equal(after[rank, lane], (before if off else whole)[rank, lane])


def test_a_in_tensor_memory_of_256_rows() -> None:
    a, b = halves(8, 256, 32)
    before = garbage()
    before[:, :, 32:40] = a.view(np.uint32).reshape(2, 128, 8)
    after = execute_pair(mma("f16", "[%t + 32]", AT_B, instruction(256, 32)), images(a, b), before)
    np.testing.assert_array_equal(result(after, 256, 32).view(np.float32), a.astype(int) @ b.astype(int).T)


def test_a_of_both_is_shifted() -> None:
    a, b = halves(8, 256, 32)
    before = garbage()
    before[:, :, 32:40] = a.view(np.uint32).reshape(2, 128, 8)
    product = mma("f16", "[%t + 32]", AT_B, instruction(256, 32), modifiers=".ashift")
    after = execute_pair(product, images(a, b), before)
    np.testing.assert_array_equal(result(after, 256, 32).view(np.float32), a.astype(int) @ b.astype(int).T)
    before[:, np.arange(128) % 32 != 31, 32:40] = before[:, np.arange(128) % 32 != 0, 32:40]
    np.testing.assert_array_equal(after[:, :, 32:], before[:, :, 32:])


def test_a_in_tensor_memory_of_128_rows() -> None:
    """Lanes 64 to 127 have another copy of A's rows, with which the second half of the columns is computed."""
    (a, b), (other, _) = halves(10, 128, 32), halves(11, 128, 32)
    before = garbage()
    for rank in range(2):
        rows = slice(64 * rank, 64 * rank + 64)
        before[rank, :, 32:40] = np.concatenate([a[rows], other[rows]]).view(np.uint32)
    after = execute_pair(mma("f16", "[%t + 32]", AT_B, instruction(128, 32)), images(a, b), before)
    found = result(after, 128, 32).view(np.float32)
    np.testing.assert_array_equal(found[:, :16], a.astype(int) @ b[:16].astype(int).T)
    np.testing.assert_array_equal(found[:, 16:], other.astype(int) @ b[16:].astype(int).T)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(("m", "n"), [(256, 64), (128, 64)])
def test_block_scaling(m: int, n: int, in_memory: bool) -> None:
    """Each block has the scales of its rows of A and, where they are multiplied, of all columns of B: with M = 128 those of the
    columns' second half are in the second half of the lanes."""
    rng = np.random.default_rng(12)
    a, b = halves(13, m, n, ml_dtypes.float8_e4m3fn, 32)
    by_a, by_b = (rng.integers(120, 135, rows).astype(np.uint32) for rows in (m, n))
    before = garbage(128)
    before[:, :, 64:128] = 0xFFFFFFFF  # NaN as a scale
    for rank in range(2):
        mine = by_a[rank * m // 2 : (rank + 1) * m // 2]
        for lane in range(128):
            for column, scale in enumerate(mine[lane % 32 :: 32]):
                before[rank, lane, 64 + column] = scale
            columns = by_b if m == 256 else np.split(by_b, 2)[lane // 64]
            for column, scale in enumerate(columns[lane % 32 :: 32]):
                before[rank, lane, 80 + column] = scale
        if in_memory:
            rows = a[rank * m // 2 : (rank + 1) * m // 2].view(np.uint32)
            before[rank, :, 96:104] = (
                rows if m == 256 else np.concatenate([rows, (-rows.view(a.dtype)).view(np.uint32)])
            )
    more = "[%t + 64], [%t + 80], %no"
    idesc = instruction(m, n, d=0) | 1 << 23
    at_a = "[%t + 96]" if in_memory else AT_A
    text = mma("mxf8f6f4", at_a, AT_B, idesc, more=more, modifiers=".block_scale")
    found = result(execute_pair(text, images(a, b), before), m, n).view(np.float32)
    scaled = (x.astype(np.float64) * 2.0 ** (s.astype(int)[:, None] - 127) for x, s in ((a, by_a), (b, by_b)))
    left, right = scaled
    if in_memory and m == 128:  # the second half of the columns has an A of its own, -A here
        right[n // 2 :] *= -1
    np.testing.assert_array_equal(found, left @ right.T)


def test_copies_and_shifts_are_of_both() -> None:
    rng = np.random.default_rng(14)
    data = [rng.integers(0, 256, (128, 32)).astype(np.uint8) for _ in range(2)]
    both = [place_k_major(rows, "none", 128, 256) for rows in data]
    before = garbage(32)
    at = descriptor(0, 128, 256, "none")
    text = f"mov.b64 %a, {at}; add.u64 %a, %a, %base; tcgen05.cp.cta_group::1.128x256b [%t + 8], %a;"
    text += "add.u32 %w0, %t, 2097176; tcgen05.shift.cta_group::1.down [%w0];"
    wanted = before.copy()
    wanted[:, :, 8:16] = np.stack(data).view(np.uint32)
    wanted[:, 32:63, 24:32] = wanted[:, 33:64, 24:32]
    np.testing.assert_array_equal(execute_pair(text, both, before), wanted)


# ---- order, and what is wrong --------------------------------------------------------------------------------------------


def test_operands_of_the_other_block_belong_to_the_product() -> None:
    """The other block writes to its operand before it has waited for the mbarrier."""
    a, b = halves(15, 256, 32)
    both = images(a, b)
    size = -(-both[0].size // 1024) * 1024
    ptx = kernel(mma("f16", AT_A, AT_B, instruction(256, 32)), size, 32, issuer=0)
    write = "@!%p1 bra KEPT; mov.u32 %w2, image; st.shared.b32 [%w2], 0; KEPT:"
    padded = np.zeros((2, size), np.uint8)
    for rank, image in enumerate(both):
        padded[rank, : image.size] = image
    before = np.zeros((2, 128, 32), np.uint32)

    def launch(text: str) -> None:
        Module(text).launch("test", 2, 128, [padded, before, np.zeros_like(before)])

    with pytest.raises(Race) as raised:
        launch(ptx.replace("DONE:", f"DONE: {write}"))
    assert "an asynchronous operation of thread (0, 0, 0)" in raised.value.message
    assert "of block (1, 0, 0)" in raised.value.message
    launch(ptx.replace("WAITED:", f"WAITED: {write}"))


def says(text: str, kind: type[Fault] = Fault) -> str:
    a, b = halves(16, 256, 32)
    with pytest.raises(kind) as raised:
        execute_pair(text, images(a, b), garbage(32))
    return raised.value.message


def test_the_other_block_s_columns() -> None:
    """Allocated in this block and not in the other."""
    a, b = halves(17, 256, 32)
    padded = np.stack([np.resize(image, 65536) for image in images(a, b)])
    ptx = kernel(mma("f16", AT_A, AT_B, instruction(256, 32), d="%t + 32"), 65536, 32, issuer=0)
    before = np.zeros((2, 128, 32), np.uint32)
    with pytest.raises(OutOfBounds) as raised:
        Module(ptx).launch("test", 2, 128, [padded, before, np.zeros_like(before)])
    assert raised.value.message == "columns 32 to 63 of tensor memory; the block has not allocated column 32"


@pytest.mark.parametrize(
    ("m", "n", "what"),
    [
        (64, 32, "is of 64 rows and 32 columns, which kind::f16 in two blocks does not have"),
        (256, 24, "is of 256 rows and 24 columns, which kind::f16 in two blocks does not have"),
    ],
)
def test_sizes(m: int, n: int, what: str) -> None:
    said = says(mma("f16", AT_A, AT_B, instruction(m, n)))
    assert said == f"the instruction descriptor of tcgen05.mma.cta_group::2.kind::f16 {what}"


ALLOC = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"


def alone(body: str, blocks: int = 2, cluster: int = 2) -> str:
    """What a launch of warps that execute the body says; %r is the rank of the block."""
    text = f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry test() .reqnctapercluster {cluster}, 1, 1 {{
  .reg .b32 %r; .reg .b32 %n; .reg .b32 %t; .reg .pred %p;
  .shared .align 4 .b32 slot;
  mov.u32 %r, %cluster_ctarank;
  setp.eq.u32 %p, %r, 0;
  {body}
  ret;
}}
"""
    with pytest.raises(Fault) as raised:
        Module(text).launch("test", blocks, 32, [])
    return f"{type(raised.value).__name__}: {raised.value.message}"


def test_a_pair_allocates_together() -> None:
    said = alone(f"@!%p bra OUT; {ALLOC} [slot], 32; OUT:")
    assert said.splitlines()[0] == f"{BarrierFault.__name__}: threads wait for what will never come:"
    why = f"block (0, 0, 0): {ALLOC} waits for a warp of the pair's other block"
    assert said.splitlines()[1].strip() == why
    wrong = alone(
        f"shl.b32 %n, 32, %r; {ALLOC} [slot], %n;".replace("shl.b32 %n, 32, %r", "mov.b32 %n, 32; shl.b32 %n, %n, %r")
    )
    assert wrong == f"{Undefined.__name__}: {ALLOC} of 32 columns in one block of a pair and 64 in the other"


def test_a_block_without_a_pair() -> None:
    said = alone(f"{ALLOC} [slot], 32;", 1, 1)
    assert said == f"{Undefined.__name__}: {ALLOC} needs pairs of blocks; the clusters of this launch have 1 block"
    said = alone(f"{ALLOC} [slot], 32;", 3, 3)
    assert said == f"{Undefined.__name__}: {ALLOC} needs pairs of blocks; the clusters of this launch have 3 blocks"


def test_a_second_warp() -> None:
    text = f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry test() .reqnctapercluster 2, 1, 1 {{
  .shared .align 4 .b32 slot;
  {ALLOC} [slot], 32;
  ret;
}}
"""
    with pytest.raises(Undefined) as raised:
        Module(text).launch("test", 2, 64, [])
    assert raised.value.message == (
        f"{ALLOC} by a second warp of the block, while one waits for the pair's other block"
    )


def test_a_kernel_has_one_group() -> None:
    other = ALLOC.replace("::2", "::1")
    said = alone(f"{ALLOC} [slot], 32; {other} [slot], 32;")
    assert said == (
        f"{Undefined.__name__}: {other} in a kernel that has executed .cta_group::2; all of its tcgen05 must have the same"
    )


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
def test_ptxas_takes_the_kernel(tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(kernel(mma("f16", AT_A, AT_B, instruction(256, 32)), 4096, 64, issuer=0))
    command = ["ptxas", "-arch=sm_100a", "-o", str(tmp_path / "k.cubin"), str(source)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
