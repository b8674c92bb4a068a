"""ldmatrix and stmatrix of bytes and of packed elements: byte by byte, as loops over lanes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import kernel, run
from weft.emulator import Misaligned, PTXError, Uninitialised

WARPS = 2
THREADS = 32 * WARPS

DECLARE = ".reg .b32 %base, %l, %w, %at; .reg .b64 %g; .shared .align 16 .b8 buffer[1024];"

START = """
    mov.u32 %base, buffer; mov.u32 %w, %tid.x; and.b32 %l, %w, 31; shr.u32 %w, %w, 5; shl.b32 %w, %w, 9;
    add.u32 %base, %base, %w; shl.b32 %at, %l, 4; add.u32 %at, %at, %base;
"""
"""%at: the 16 bytes of the lane. A warp has 512 bytes."""

WORDS = "{%v0, %v1, %v2, %v3}"

PACKED = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
"""Bits of an element in memory."""

LOADS = [
    *((f"m16n16.x{count}.trans", kind) for count in (1, 2) for kind in PACKED),
    *((f"m8n16.x{count}", kind) for count in (1, 2, 4) for kind in PACKED if kind != "b8"),
]


def vector(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def load(instruction: str, count: int, data: NDArray[np.uint8], rows: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The registers' bytes, (THREADS, count, 4), after an ldmatrix where row r of a warp's memory is ``data[warp, r]``."""
    text = f"{START} st.shared.v4.b32 [%at], {WORDS}; bar.warp.sync -1; shl.b32 %at, %row, 4; add.u32 %at, %at, %base;"
    text += f"{instruction} {vector('d', count)}, [%at];"
    inputs = {"row": "u32"} | {f"v{i}": "b32" for i in range(4)}
    ptx = kernel(text, inputs, {f"d{i}": "b32" for i in range(count)}, DECLARE, target="sm_100a")
    words = np.ascontiguousarray(data.reshape(THREADS, 16).view(np.uint32).T)
    results = [np.zeros(THREADS, np.uint32) for _ in range(count)]
    run(ptx, [rows, *words, *results], block=THREADS)
    return np.stack(results, axis=1).view(np.uint8).reshape(THREADS, count, 4)


def elements(row: NDArray[np.uint8], bits: int) -> list[int]:
    """The 16 elements of a row: little-endian, the first in the lowest bits."""
    number = int.from_bytes(row.tobytes(), "little")
    return [number >> bits * i & (1 << bits) - 1 for i in range(16)]


@pytest.mark.parametrize(("shape", "kind"), LOADS)
def test_ldmatrix(shape: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, (WARPS, 32, 16)).astype(np.uint8)
    rows = np.concatenate([rng.permutation(32) for _ in range(WARPS)]).astype(np.uint32)
    count = int(shape.split(".x")[1][0]) * (2 if "m16n16" in shape else 1)
    found = load(f"ldmatrix.sync.aligned.{shape}.shared.{kind}", count, data, rows)
    for thread in range(THREADS):
        warp, group, member = thread // 32, thread % 32 // 4, thread % 4
        row = [elements(data[warp, r], PACKED[kind]) for r in rows[32 * warp : 32 * warp + 32]]
        for register in range(count):
            if "m16n16" in shape:  # four columns of the transposed matrix, in rows g and g + 8
                matrix, column = register // 2, group + 8 * (register % 2)
                expected = [row[16 * matrix + 4 * member + i][column] for i in range(4)]
            else:
                expected = [row[8 * register + group][4 * member + i] for i in range(4)]
            assert found[thread, register].tolist() == expected


def test_ldmatrix_gives_back_what_stmatrix_stored_as_cutlass_uses_it() -> None:
    """CUTLASS exchanges bytes 2 and 3 of the first register of m16n16 with bytes 0 and 1 of the second: then rows of the
    stmatrix, which are 2 t, 2 t + 1 and those 8 further, are given by lanes 4 t to 4 t + 3."""
    rng = np.random.default_rng(2)
    values = rng.integers(0, 256, (THREADS, 2, 4)).astype(np.uint8)
    rows = stored("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8", values)
    lane = np.arange(32)
    source = lane % 2 + lane % 4 // 2 * 8 + lane % 16 // 4 * 2
    given = np.tile(source, WARPS).astype(np.uint32)
    found = load("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 2, rows, given)
    exchanged = np.concatenate((found[:, :, :2], found[:, :, 2:]), axis=1)
    np.testing.assert_array_equal(exchanged.reshape(THREADS, 2, 4), values)


def stored(instruction: str, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(WARPS, 32 rows, 16) bytes of memory after a stmatrix of registers (THREADS, count, 4), lane i giving row i; what was not
    written is 0xEE."""
    count = values.shape[1]
    text = f"{START} mov.b64 %g, 0xEEEEEEEEEEEEEEEE; st.shared.v2.b64 [%at], {{%g, %g}}; bar.warp.sync -1;"
    text += f"{instruction} [%at], {vector('v', count)}; bar.warp.sync -1; ld.shared.v4.b32 {vector('d', 4)}, [%at];"
    inputs, outputs = {f"v{i}": "b32" for i in range(count)}, {f"d{i}": "b32" for i in range(4)}
    ptx = kernel(text, inputs, outputs, DECLARE, target="sm_100a")
    words = np.ascontiguousarray(values.view(np.uint32)[:, :, 0].T)
    results = [np.zeros(THREADS, np.uint32) for _ in range(4)]
    run(ptx, [*words, *results], block=THREADS)
    return np.stack(results, axis=1).view(np.uint8).reshape(WARPS, 32, 16)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix(count: int) -> None:
    values = np.random.default_rng(3).integers(0, 256, (THREADS, count, 4)).astype(np.uint8)
    found = stored(f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8", values)
    expected = np.full((WARPS, 32, 16), 0xEE, np.uint8)
    for thread in range(THREADS):
        warp, group, member = thread // 32, thread % 32 // 4, thread % 4
        for register in range(count):
            e0, e1, e2, e3 = values[thread, register]
            # The 16 x 8 matrix has them at (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1); a row of memory is a column.
            expected[warp, 8 * register + 2 * member, [group, group + 8]] = e0, e2
            expected[warp, 8 * register + 2 * member + 1, [group, group + 8]] = e1, e3
    np.testing.assert_array_equal(found, expected)


def written(bytes_written: int, text: str) -> Any:
    """Runs ``text`` where each lane has written only the first bytes of its row."""
    stores = "".join(f"st.shared.b32 [%at+{i}], %l;" for i in range(0, bytes_written, 4))
    ptx = kernel(f"{START} {stores} bar.warp.sync -1; {text}", {}, {}, DECLARE + ".reg .b32 %d<4>;", target="sm_100a")
    return run(ptx, [])


@pytest.mark.parametrize(("kind", "size"), [("b6x16_p32", 12), ("b4x16_p64", 8)])
def test_padding_is_not_read_and_is_counted(kind: str, size: int) -> None:
    text = f"ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{kind} {vector('d', 4)}, [%at];"
    rows = written(size, text).counters.rows()
    (row,) = [row for row in rows if row.get("shared_load_requests")]
    assert (row["shared_load_bytes"], row["shared_load_wavefronts"]) == (512, 4)
    with pytest.raises(Uninitialised) as caught:
        written(size - 4, text)
    assert caught.value.message == f"read of {size} bytes of shared memory that has not been written"


def test_rows_of_packed_elements_are_aligned_to_16_bytes() -> None:
    with pytest.raises(Misaligned) as caught:
        written(16, "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%d0}, [%at+8];")
    assert caught.value.message == "read of 8 bytes at an address that is no multiple of 16"


REFUSALS = [
    (
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%d0, %d1}, [%at]",
        "ldmatrix of .m16n16 is with .trans",
    ),
    (
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%d0}, [%at]",
        "ldmatrix of .m8n16 is without .trans",
    ),
    (
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%d0, %d1, %d2, %d3}, [%at]",
        "ldmatrix of .m16n16 goes with .x1, .x2",
    ),
    (
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%at], {%d0}",
        "stmatrix of .m16n8 is with .trans",
    ),
    (
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b16 [%at], {%d0}",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b16 has none of .m8n8.b16, .m16n8.b8",
    ),
    (
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16 {%d0}, [%at]",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16 has none of .m8n8.b16, .m16n16.b8, .m16n16.b8x16.b6x16_p32, "
        ".m16n16.b8x16.b4x16_p64, .m8n16.b8x16.b6x16_p32, .m8n16.b8x16.b4x16_p64",
    ),
]


@pytest.mark.parametrize(("instruction", "message"), REFUSALS)
def test_refusals(instruction: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        written(16, instruction + ";")
    first, second = str(caught.value).splitlines()
    assert first.split(": ", 1)[1] == message
    assert second.strip() == instruction


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
def test_ptxas_takes_what_is_executed_and_refuses_what_is_refused(tmp_path: Path) -> None:
    accepted = [
        f"ldmatrix.sync.aligned.{shape}.shared.{kind} "
        f"{vector('d', int(shape.split('.x')[1][0]) * (2 if 'm16n16' in shape else 1))}, [%at];"
        for shape, kind in LOADS
    ]
    accepted += [f"stmatrix.sync.aligned.m16n8.x{n}.trans.shared.b8 [%at], {vector('d', n)};" for n in (1, 2, 4)]

    def verdict(text: str) -> int:
        source = tmp_path / "k.ptx"
        source.write_text(kernel(START + text, {}, {}, DECLARE + ".reg .b32 %d<4>;", target="sm_100a"))
        command = ["ptxas", "-arch=sm_100a", "-o", str(tmp_path / "k.cubin"), str(source)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert verdict("\n".join(accepted)) == 0
    assert all(verdict(instruction + ";") != 0 for instruction, _ in REFUSALS)
