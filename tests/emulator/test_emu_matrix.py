"""ldmatrix, stmatrix, movmatrix: element by element against the ISA's figures, as loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import execute, kernel, run
from weft.emulator import Checks, Misaligned, OutOfBounds, PTXError, Race, Undefined, Uninitialised
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse

WARPS = 3
THREADS = 32 * WARPS
ROW = 48
"""Bytes between the rows of a warp's matrices in shared memory here: a multiple of 16 that is no power of two."""

SPAN = 32 * ROW
"""Bytes of a warp."""

SHARED = f".shared .align 16 .b8 buffer[{WARPS * SPAN}];"

ADDRESS = f"""
    mov.u32 %base, buffer; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31;
    mad.lo.u32 %base, %w, {SPAN}, %base;
    mad.lo.u32 %at, %row, {ROW}, %base;
"""
"""%at: the row of its warp's memory that each thread names by %row."""

DECLARE = ".reg .b32 %base, %t, %w, %l, %at; .reg .b64 %g;"


def vector(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def fill() -> str:
    """Writes 16-bit word i of the first 16 bytes of each row: row * 8 + i, plus 1000 for each warp. A lane fills a row."""
    lines = ["mul.lo.u32 %at, %l, 48; add.u32 %at, %at, %base; mad.lo.u32 %v, %w, 1000, 0; mad.lo.u32 %v, %l, 8, %v;"]
    for i in range(8):
        lines.append(f"add.u32 %x, %v, {i}; mov.b32 {{%h, %h2}}, %x; st.shared.u16 [%at+{2 * i}], %h;")
    lines.append("bar.warp.sync -1;")
    return "\n".join(lines)


def load(instruction: str, count: int, rows: NDArray[np.uint32], generic: bool = False) -> list[NDArray[np.uint32]]:
    """The registers after an ldmatrix of rows that `fill` wrote."""
    where = "cvta.shared.u64 %g, %wide;" if generic else ""
    setup = ADDRESS.replace("mad.lo.u32 %at", fill() + "\nmad.lo.u32 %at")
    text = f"{setup} mov.b64 %wide, {{%at, 0}}; {where} {instruction} {vector('d', count)}, [{'%g' if generic else '%at'}];"
    outputs = {f"d{i}": "b32" for i in range(count)}
    declare = DECLARE + ".reg .b32 %v, %x; .reg .b16 %h, %h2; .reg .b64 %wide;" + SHARED
    results = execute(text, {"row": ("u32", rows)}, outputs, declare, block=THREADS)
    return [results[f"d{i}"] for i in range(count)]


def row_numbers(rng: np.random.Generator) -> NDArray[np.uint32]:
    """Which row each thread gives: any of its warp's 32, with repetitions."""
    return rng.integers(0, 32, THREADS).astype(np.uint32)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_ldmatrix(count: int, transposed: bool, space: str) -> None:
    rows = row_numbers(np.random.default_rng(1))
    instruction = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}{space}.b16"
    found = load(instruction, count, rows, generic=space == "")
    for warp in range(WARPS):
        for matrix in range(count):
            # Element (i, j) of matrix m is 16-bit word j of the row that lane 8 m + i gives.
            element = [
                [1000 * warp + 8 * int(rows[32 * warp + 8 * matrix + i]) + j for j in range(8)] for i in range(8)
            ]
            for lane in range(32):
                i, j = lane // 4, lane % 4 * 2
                low, high = (element[j][i], element[j + 1][i]) if transposed else (element[i][j], element[i][j + 1])
                assert found[matrix][32 * warp + lane] == low | high << 16


def store(instruction: str, values: list[NDArray[np.uint32]], rows: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """(warps, 32 rows, 8) 16-bit words of shared memory after an stmatrix; rows that were not written are 0xFFFF."""
    count = len(values)
    clear = "mul.lo.u32 %at, %l, 48; add.u32 %at, %at, %base; mov.b64 %g, -1;"
    clear += "st.shared.b64 [%at], %g; st.shared.b64 [%at+8], %g; bar.warp.sync -1;"
    setup = ADDRESS.replace("mad.lo.u32 %at", clear + "\nmad.lo.u32 %at")
    text = f"{setup} {instruction} [%at], {vector('v', count)}; bar.warp.sync -1;"
    text += "mul.lo.u32 %at, %l, 48; add.u32 %at, %at, %base; ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%at];"
    inputs: dict[str, tuple[str, Any]] = {"row": ("u32", rows)}
    inputs |= {f"v{i}": ("b32", value) for i, value in enumerate(values)}
    results = execute(text, inputs, {f"d{i}": "b32" for i in range(4)}, DECLARE + SHARED, block=THREADS)
    words = np.stack([results[f"d{i}"] for i in range(4)], axis=1)
    return words.view(np.uint16).reshape(WARPS, 32, 8)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix(count: int, transposed: bool) -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.permutation(32) for _ in range(WARPS)]).astype(np.uint32)
    values = [rng.integers(0, 1 << 32, THREADS, dtype=np.uint32) for _ in range(count)]
    instruction = f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16"
    found = store(instruction, values, rows)
    expected = np.full((WARPS, 32, 8), 0xFFFF)
    for warp in range(WARPS):
        for matrix in range(count):
            for lane in range(32):
                word = int(values[matrix][32 * warp + lane])
                for part, half in enumerate((word & 0xFFFF, word >> 16)):
                    i, j = lane // 4, lane % 4 * 2 + part
                    if transposed:
                        i, j = j, i
                    expected[warp, rows[32 * warp + 8 * matrix + i], j] = half
    np.testing.assert_array_equal(found, expected)


def test_movmatrix() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 1 << 32, THREADS, dtype=np.uint32)
    found = execute("movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;", {"a": ("b32", values)}, {"d": "b32"})["d"]
    for warp in range(WARPS):
        mine = values[32 * warp : 32 * warp + 32]
        element = [[int(mine[4 * i + j // 2]) >> 16 * (j % 2) & 0xFFFF for j in range(8)] for i in range(8)]
        for lane in range(32):
            i, j = lane // 4, lane % 4 * 2
            assert found[32 * warp + lane] == element[j][i] | element[j + 1][i] << 16


def test_movmatrix_may_overwrite_its_operand_and_skips_inactive_warps() -> None:
    values = np.arange(THREADS, dtype=np.uint32)
    active = np.repeat([False, True, True], 32)
    text = "movmatrix.sync.aligned.m8n8.trans.b16 %a, %a; movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;"
    found = execute(text, {"a": ("b32", values)}, {"d": "b32"}, active=active, block=THREADS)["d"]
    np.testing.assert_array_equal(found, np.where(active, values, 0))


# ---- counters -------------------------------------------------------------------------------------------------------------


def counted(text: str, stride: int, threads: int = 32) -> dict[str, int]:
    """The counts of the one instruction ldmatrix or stmatrix of a kernel with rows ``stride`` bytes apart."""
    clear = f"""
        mov.u32 %base, buffer; mov.u32 %t, %tid.x; and.b32 %l, %t, 31; mad.lo.u32 %at, %l, {stride}, %base; mov.b64 %g, 0;
        st.shared.b64 [%at], %g; st.shared.b64 [%at+8], %g; bar.warp.sync -1;
    """
    shared = f".shared .align 16 .b8 buffer[{32 * stride + 16}];"
    ptx = kernel(clear + text, {}, {}, DECLARE + ".reg .b32 %d<4>;" + shared)
    outcome = run(ptx, [], block=threads)
    opcodes = [instruction.opcode for instruction in Program(parse(ptx)).instructions]
    return outcome.counters.rows()[opcodes.index(text.split(".", maxsplit=1)[0])]


# Eight rows of a matrix, 16 bytes each, are a phase of the 32 banks. Rows 16, 144 or 80 bytes apart lie in different groups
# of four banks: a wavefront a matrix. 128 apart: all in the same four banks, eight wavefronts. 64 apart: two groups, four
# each. 32 apart: four groups, two each.
@pytest.mark.parametrize(("stride", "each"), [(16, 1), (144, 1), (80, 1), (128, 8), (64, 4), (32, 2), (256, 8)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_wavefronts(stride: int, each: int, count: int) -> None:
    registers = vector("d", count)
    found = counted(f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {registers}, [%at];", stride)
    assert found["shared_load_requests"] == 1
    assert found["shared_load_bytes"] == 128 * count
    assert found["shared_load_wavefronts"] == each * count
    assert found["shared_load_ideal_wavefronts"] == count
    found = counted(f"stmatrix.sync.aligned.m8n8.x{count}.trans.shared.b16 [%at], {registers};", stride)
    assert found["shared_store_requests"] == 1
    assert found["shared_store_bytes"] == 128 * count
    assert found["shared_store_wavefronts"] == each * count
    assert found["shared_store_ideal_wavefronts"] == count


# ---- faults ---------------------------------------------------------------------------------------------------------------


def shared_program(text: str) -> str:
    """A kernel of one warp with 512 bytes of shared memory, all written, %at the lane's 16 bytes."""
    setup = """
        mov.u32 %base, buffer; mov.u32 %l, %tid.x; mad.lo.u32 %at, %l, 16, %base; mov.b64 %g, 0;
        st.shared.b64 [%at], %g; st.shared.b64 [%at+8], %g; bar.warp.sync -1;
    """
    return kernel(setup + text, {}, {}, DECLARE + ".reg .b32 %d<4>; .reg .pred %p; .shared .align 16 .b8 buffer[512];")


def fault(text: str, block: int = 32) -> Any:
    with pytest.raises((Misaligned, OutOfBounds, Race, Undefined, Uninitialised)) as caught:
        run(shared_program(text), [], block=block)
    return caught.value


def test_a_misaligned_row_is_a_fault_of_the_lane_that_gave_it() -> None:
    found = fault(
        "setp.eq.u32 %p, %l, 11; @%p add.u32 %at, %at, 8; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0, %d1}, [%at];"
    )
    assert isinstance(found, Misaligned)
    assert found.message == "read of 16 bytes at an address that is no multiple of 16"
    assert found.where.thread == (11, 0, 0)


def test_lanes_that_give_no_row_need_no_address() -> None:
    text = "setp.ge.u32 %p, %l, 16; @%p mov.u32 %at, 3; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0, %d1}, [%at];"
    run(shared_program(text), [])


def test_a_row_outside_is_a_fault() -> None:
    found = fault("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%at+16];")
    assert isinstance(found, OutOfBounds)
    assert found.message == "read of 16 bytes of shared memory"
    assert found.where.thread == (31, 0, 0)


def test_a_row_of_another_lane_needs_a_barrier() -> None:
    text = """
        st.shared.b64 [%at], %g;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%at];
    """
    found = fault("st.shared.b32 [%at+4], %l; xor.b32 %at, %at, 16;" + text.replace("st.shared.b64 [%at], %g;", ""))
    assert isinstance(found, Race)
    run(
        shared_program("st.shared.b32 [%at+4], %l; xor.b32 %at, %at, 16; bar.warp.sync -1;" + text.split(";", 1)[1]), []
    )


def test_a_part_of_a_warp_is_a_fault() -> None:
    found = fault("setp.eq.u32 %p, %l, 7; @!%p ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%at];")
    assert isinstance(found, Undefined)
    assert found.message == (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 must be executed by all lanes of a warp together; this lane is elsewhere"
    )
    assert found.where.thread == (7, 0, 0)


def test_a_warp_that_is_not_whole_is_a_fault() -> None:
    found = fault("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%at], {%d0};", block=24)
    assert isinstance(found, Undefined)
    assert found.message == (
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 needs all 32 lanes of a warp; this lane has exited or never was"
    )


def test_a_generic_address_elsewhere_is_a_fault() -> None:
    ptx = kernel("ldmatrix.sync.aligned.m8n8.x1.b16 {%d}, [%at1];", {"x": "b64"}, {"d": "b32"})
    with pytest.raises(Undefined) as caught:
        run(ptx, [np.zeros(32, np.uint64), np.zeros(32, np.uint32)])
    assert caught.value.message == (
        "ldmatrix.sync.aligned.m8n8.x1.b16 at a generic address of global memory, expected shared memory"
    )


MISALIGNED = """
    mov.u32 %base, buffer; mov.u32 %l, %tid.x; mad.lo.u32 %at, %l, 16, %base; mov.b64 %g, {%l, 7};
    st.shared.b64 [%at], %g; mov.b64 %g, {%l, 9}; st.shared.b64 [%at+8], %g; bar.warp.sync -1;
"""
"""16-byte unit l of shared memory is the words l, 7, l, 9."""


def test_misaligned_rows_where_alignment_is_not_checked() -> None:
    text = """
        and.b32 %base, %l, 15; mad.lo.u32 %at, %base, 16, 8;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%at];
        add.u32 %at, %at, 256;
        stmatrix.sync.aligned.m8n8.x1.shared.b16 [%at], {%d0};
        bar.warp.sync -1;
        mad.lo.u32 %at, %l, 16, 0; ld.shared.v4.b32 {%d1, %d2, %d3, %d4}, [%at];
    """
    shared = ".reg .b32 %d0; .shared .align 16 .b8 buffer[512];"
    outputs = {f"d{i}": "b32" for i in range(1, 5)}
    ptx = kernel(MISALIGNED + text, {}, outputs, DECLARE + shared)
    results = [np.zeros(32, np.uint32) for _ in outputs]
    run(ptx, results, checks=Checks(alignment=False))
    words = np.array([[lane, 7, lane, 9] for lane in range(32)], np.uint32).reshape(-1)
    for row in range(8):  # bytes 16 row + 8 to 16 row + 23 go to 256 bytes further
        words[64 + 4 * row + 2 : 64 + 4 * row + 6] = words[4 * row + 2 : 4 * row + 6].copy()
    np.testing.assert_array_equal(np.stack(results, axis=1).reshape(-1), words)


def test_misaligned_rows_that_end_in_unwritten_memory() -> None:
    text = "add.u32 %at, %at, 8; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%at];"
    ptx = kernel(MISALIGNED + text, {}, {}, DECLARE + ".reg .b32 %d<4>; .shared .align 16 .b8 buffer[528];")
    with pytest.raises(Uninitialised) as caught:
        run(ptx, [], checks=Checks(alignment=False))
    assert caught.value.message == "read of 16 bytes of shared memory that has not been written"
    assert caught.value.where.thread == (31, 0, 0)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%d0}, [%at]", "the emulator does not know '.x3' of ldmatrix"),
        (
            "ldmatrix.sync.aligned.m16n8.x1.trans.shared.b16 {%d0, %d1}, [%at]",
            "the emulator does not know '.m16n8' of ldmatrix",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.shared.b16 {%d0}, [%at]",
            "ldmatrix.sync.aligned.m8n8.shared.b16 must have one of .x1, .x2, .x4",
        ),
        ("ldmatrix.aligned.m8n8.x1.shared.b16 {%d0}, [%at]", "ldmatrix.aligned.m8n8.x1.shared.b16 has no '.sync'"),
        (
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0}, [%at]",
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 has 1 registers in a vector result, expected 2",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, %at",
            "an operand of ldmatrix must be an address in brackets",
        ),
        ("movmatrix.sync.aligned.m8n8.b16 %d0, %d1", "movmatrix.sync.aligned.m8n8.b16 has no '.trans'"),
        ("movmatrix.sync.aligned.m8n8.x1.trans.b16 %d0, %d1", "the emulator does not know '.x1' of movmatrix"),
    ],
)
def test_refusals(instruction: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        run(shared_program(instruction + ";"), [])
    first, second = str(caught.value).splitlines()
    assert first.split(": ", 1)[1] == message
    assert second.strip() == instruction
