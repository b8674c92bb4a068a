"""Tensor memory: what each register of tcgen05.ld and st has, allocation, and what is wrong with an address.

Registers are compared with the formulas of PTX ISA 9.7.16.2.3.1, with the layouts of `weft.layout.families.tcgen05` (which are
Triton's), and with each other.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import run
from weft.emulator.arith.tensor_memory import COUNTS, REGISTERS, picture
from weft.emulator.errors import Fault, OutOfBounds, Undefined, Uninitialised
from weft.layout import tensor_memory
from weft.layout.families.tcgen05 import tcgen05_registers

WIDTHS = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}
"""Columns of .x1. Triton's layout has 16x32bx2 for 64 rows only: `test_halves_of_a_row`."""

SHAPES = [(shape, count) for shape in REGISTERS for count in COUNTS if REGISTERS[shape] * count <= 128]


def module(body: str, declarations: str = "", before: str = "") -> str:
    """A kernel ``test`` with an allocation of 512 columns at %t, %mine the first lane of the warp, %out its row of results."""
    return f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry test(.param .u64 p_out) {{
  .reg .b32 %i<4>; .reg .b32 %t; .reg .b32 %mine; .reg .b64 %out; .reg .b64 %l; .reg .pred %first; .reg .pred %p;
  {declarations}
  .shared .align 4 .b32 slot;
  mov.u32 %i0, %tid.x;
  setp.lt.u32 %first, %i0, 32;
  {before}
  @%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;
  bar.sync 0;
  ld.shared.b32 %t, [slot];
  shr.u32 %i1, %i0, 5;
  shl.b32 %i1, %i1, 21;
  add.u32 %mine, %t, %i1;
  ld.param.u64 %out, [p_out];
  {body}
  bar.sync 0;
  @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 512;
  ret;
}}
"""


def numbered() -> str:
    """Column c of lane l becomes 65536 l + c."""
    lines = ["shl.b32 %i2, %i0, 16;"]
    for column in range(0, 512, 64):
        lines += [f"add.u32 %n{i}, %i2, {column + i};" for i in range(64)]
        names = ", ".join(f"%n{i}" for i in range(64))
        lines.append(f"tcgen05.st.sync.aligned.32x32b.x64.b32 [%mine + {column}], {{{names}}};")
    return "\n".join([*lines, "tcgen05.wait::st.sync.aligned;"])


def loaded(shape: str, count: int, suffix: str = "", at: str = "%mine + 4", extra: str = "") -> NDArray[np.uint32]:
    """(threads, registers) of a load of numbered cells."""
    size = REGISTERS[shape] * count
    names = ", ".join(f"%v{i}" for i in range(size))
    lines = [numbered(), f"tcgen05.ld.sync.aligned.{shape}.x{count}{suffix}.b32 {{{names}}}, [{at}]{extra};"]
    lines += ["tcgen05.wait::ld.sync.aligned;", f"mul.wide.u32 %l, %i0, {4 * size}; add.u64 %out, %out, %l;"]
    lines += [f"st.global.b32 [%out + {4 * i}], %v{i};" for i in range(size)]
    out = np.zeros((128, size), np.uint32)
    run(module("\n".join(lines), f".reg .b32 %n<64>; .reg .b32 %v<{size}>;"), [out], block=128)
    return out


def formula(shape: str, thread: int, i: int) -> tuple[int, int]:
    """Lane and column, as the ISA's figures have them."""
    match shape:
        case "32x32b":
            return thread, i
        case "16x64b":  # each pair of columns: threads 0, 1 have row 0 and 8, threads 2, 3 the second column of them
            return thread // 4 + 8 * (thread & 1), 2 * i + (thread >> 1 & 1)
        case "16x128b":
            return thread // 4 + 8 * (i & 1), thread % 4 + 4 * (i >> 1)
        case _:
            return thread // 4 + 8 * (i >> 1 & 1), 2 * (thread % 4) + (i & 1) + 8 * (i >> 2)


@pytest.mark.parametrize(
    ("shape", "count"), [case for case in SHAPES if case[0] != "16x32bx2" and case[1] in (1, 2, 32)]
)
def test_loads(shape: str, count: int) -> None:
    found = loaded(shape, count)
    for thread in range(128):
        for i in range(found.shape[1]):
            lane, column = formula(shape, thread % 32, i)
            assert found[thread, i] == (32 * (thread // 32) + lane) << 16 | 4 + column


def test_the_upper_half_of_lanes() -> None:
    found = loaded("16x256b", 2, at="%mine + 1048576")
    assert found[33, 0] == (32 + 16) << 16 | 2
    np.testing.assert_array_equal(found - (16 << 16), loaded("16x256b", 2, at="%mine"))


@pytest.mark.parametrize("count", [1, 4])
def test_halves_of_a_row(count: int) -> None:
    found = loaded("16x32bx2", count, extra=", 40")
    for thread in range(128):
        for i in range(count):
            lane = 32 * (thread // 32) + thread % 16
            assert found[thread, i] == lane << 16 | 4 + i + (40 if thread % 32 >= 16 else 0)


@pytest.mark.parametrize(("shape", "count"), [("32x32b", 4), ("16x64b", 2), ("16x128b", 2), ("16x256b", 1)])
def test_packed_loads(shape: str, count: int) -> None:
    """Each column of the picture is the lower halves of two."""
    found = loaded(shape, count, ".pack::16b")
    for thread in range(128):
        for i in range(found.shape[1]):
            _, column = formula(shape, thread % 32, i)
            assert found[thread, i] == (4 + 2 * column + 1) << 16 | 4 + 2 * column


@pytest.mark.parametrize(("shape", "count"), [case for case in SHAPES if case[0] in WIDTHS])
def test_pictures_are_the_layouts_of_triton(shape: str, count: int) -> None:
    """Of 128 rows by as many columns as four warps' instructions move, where a warp has its 16 or 32 rows at once."""
    columns = WIDTHS[shape] * count
    layout = tcgen05_registers(tensor_memory((128, columns), (128, columns)), shape)
    cells = picture(shape, count)
    for register in (0, 1, REGISTERS[shape] * count // 2, REGISTERS[shape] * count - 1):
        if register >= REGISTERS[shape] * count:
            continue
        for lane in range(32):
            found = layout.apply({"register": register, "lane": lane, "warp": 0})
            assert (found["dim0"], found["dim1"]) == (cells.lanes[register, lane], cells.columns[register, lane])


@pytest.mark.parametrize(
    ("shape", "count"), [("32x32b", 4), ("16x64b", 4), ("16x128b", 2), ("16x256b", 2), ("16x32bx2", 4)]
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_store_is_undone_by_a_load(shape: str, count: int, packed: bool) -> None:
    size = REGISTERS[shape] * count
    names = ", ".join(f"%v{i}" for i in range(size))
    back = ", ".join(f"%w{i}" for i in range(size))
    split = ", 16" if shape == "16x32bx2" else ""
    lines = [f"mad.lo.u32 %v{i}, %i0, 1000003, {i * 65599 + 7};" for i in range(size)]
    store, load = (".unpack::16b", ".pack::16b") if packed else ("", "")
    lines += [
        f"tcgen05.st.sync.aligned.{shape}.x{count}{store}.b32 [%mine + 3]{split}, {{{names}}};",
        "tcgen05.wait::st.sync.aligned;",
        f"tcgen05.ld.sync.aligned.{shape}.x{count}{load}.b32 {{{back}}}, [%mine + 3]{split};",
        f"mul.wide.u32 %l, %i0, {4 * size}; add.u64 %out, %out, %l;",
    ]
    lines += [f"st.global.b32 [%out + {4 * i}], %w{i};" for i in range(size)]
    out = np.zeros((128, size), np.uint32)
    run(module("\n".join(lines), f".reg .b32 %v<{size}>; .reg .b32 %w<{size}>;"), [out], block=128)
    threads, registers = np.arange(128, dtype=np.uint32)[:, None], np.arange(size, dtype=np.uint32)
    np.testing.assert_array_equal(out, threads * 1000003 + registers * 65599 + 7)


NAN = 0x7FC00000
ROW = np.array([3, -7, 0, 5, -2, 1, 4, 6], np.float32).view(np.uint32)


@pytest.mark.parametrize(
    ("suffix", "with_nan", "wanted"),
    [
        ("min.f32", True, np.float32(-7).view(np.uint32)),
        ("max.f32", False, np.float32(6).view(np.uint32)),
        ("max.abs.f32", True, np.float32(7).view(np.uint32)),
        ("min.NaN.f32", True, 0x7FFFFFFF),
        ("f32.min.abs.NaN", False, 0),
        ("min.u32", False, ROW.min()),
        ("max.u32", False, ROW.max()),
        ("min.s32", False, ROW.view(np.int32).min().view(np.uint32)),
        ("max.s32", False, ROW.view(np.int32).max().view(np.uint32)),
    ],
)
def test_reduced_loads(suffix: str, with_nan: bool, wanted: int) -> None:
    """Each lane's columns, and the extreme of them."""
    row = ROW.tolist() + ([NAN] if with_nan else [ROW[1]]) + ROW[1:].tolist()
    row = row[:16]
    names, back = (", ".join(f"%{letter}{i}" for i in range(16)) for letter in "vw")
    lines = [f"mov.b32 %v{i}, {value};" for i, value in enumerate(row)]
    lines += [
        f"tcgen05.st.sync.aligned.32x32b.x16.b32 [%mine], {{{names}}};",
        "tcgen05.wait::st.sync.aligned;",
        f"tcgen05.ld.red.sync.aligned.32x32b.x16.{suffix} {{{back}}}, %w16, [%mine];",
        "tcgen05.wait::ld.sync.aligned;",
        "mul.wide.u32 %l, %i0, 68; add.u64 %out, %out, %l;",
    ]
    lines += [f"st.global.b32 [%out + {4 * i}], %w{i};" for i in range(17)]
    out = np.zeros((128, 17), np.uint32)
    run(module("\n".join(lines), ".reg .b32 %v<16>; .reg .b32 %w<17>;"), [out], block=128)
    np.testing.assert_array_equal(out[:, :16], np.tile(np.array(row, np.uint32), (128, 1)))
    np.testing.assert_array_equal(out[:, 16], np.uint32(wanted))


# ---- what is wrong ---------------------------------------------------------------------------------------------------------

ONE = ".reg .b32 %v<4>;"


def says(body: str, kind: type[Fault], block: int = 128, before: str = "", declarations: str = ONE) -> str:
    with pytest.raises(kind) as raised:
        run(module(body, declarations, before), [np.zeros(1024, np.uint32)], block=block)
    return raised.value.message


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%mine + 5];",
            Uninitialised,
            "lane 0, column 5 of tensor memory has not been written",
        ),
        (
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine + 512], {%i0};",
            OutOfBounds,
            "columns 512 to 512 of tensor memory; there are 512",
        ),
        (
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%t], {%i0};",
            OutOfBounds,
            "lanes 0 to 31 of tensor memory; this warp reaches lanes 32 to 63",
        ),
        (
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine + 65536], {%i0};",
            OutOfBounds,
            "lanes 1 to 32 of tensor memory; this warp reaches lanes 0 to 31",
        ),
        (
            "add.u32 %mine, %mine, %i0; tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine], {%i0};",
            Undefined,
            "an address of tensor memory must be the same in all threads of a warp",
        ),
        (
            "@%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;",
            OutOfBounds,
            "32 columns of tensor memory, of which the block holds 512 of 512",
        ),
        (
            "@%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 48;",
            Undefined,
            "48 columns of tensor memory, expected a power of two from 32 to 512",
        ),
        (
            "@%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 256;",
            Undefined,
            "256 columns from 0x0 on are given back; 512 were allocated there",
        ),
        (
            "@%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 512; "
            "@%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 512;",
            Undefined,
            "512 columns from 0x0 on are given back; nothing was allocated there",
        ),
        (
            "@%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 512; bar.sync 0; "
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine + 7], {%i0};",
            OutOfBounds,
            "columns 7 to 7 of tensor memory; the block has not allocated column 7",
        ),
    ],
)
def test_faults(body: str, kind: type[Fault], message: str) -> None:
    assert says(body, kind) == message


def test_what_is_never_given_back() -> None:
    """Warp 1 gives nothing back, whose block is the second."""
    body = "mov.u32 %i3, %ctaid.x; setp.ne.u32 %p, %i3, 0; @%p ret;"
    with pytest.raises(Undefined) as raised:
        run(module(body), [np.zeros(1024, np.uint32)], grid=2, block=128)
    assert raised.value.message == "512 columns of tensor memory that the block never gave back"
    where = raised.value.where
    assert (where.block, where.thread) == ((1, 0, 0), (0, 0, 0))
    assert where.instruction is not None
    assert where.instruction.name.startswith("tcgen05.alloc")


def test_no_allocation_after_the_permit_is_given_up() -> None:
    before = "@%first tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    assert says("", Undefined, before=before) == "tcgen05.alloc after the block's tcgen05.relinquish_alloc_permit"


def test_a_warp_must_be_whole() -> None:
    body = "setp.eq.u32 %p, %i0, 3; @%p tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine], {%i0};"
    message = (
        "tcgen05.st.sync.aligned.32x32b.x1.b32 must be executed by all lanes of a warp together; this lane is elsewhere"
    )
    assert says(body, Undefined) == message


def test_places_are_given_again() -> None:
    """Two allocations, the first given back: the next that fits takes its place. Each block has its own."""
    text = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry test(.param .u64 out) {
  .reg .b32 %i<4>; .reg .b32 %a<4>; .reg .b64 %l<3>;
  .shared .align 4 .b32 slot[4];
  mov.u32 %i0, %ctaid.x;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], 32;
  ld.shared.b32 %a0, [slot];
  ld.shared.b32 %a1, [slot+4];
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a0, 64;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+8], 128;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+12], 32;
  ld.shared.b32 %a2, [slot+8];
  ld.shared.b32 %a3, [slot+12];
  ld.param.u64 %l0, [out];
  mul.wide.u32 %l1, %i0, 16;
  add.u64 %l0, %l0, %l1;
  st.global.v4.b32 [%l0], {%a0, %a1, %a2, %a3};
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a1, 32;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a2, 128;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a3, 32;
  ret;
}
"""
    out = np.zeros((3, 4), np.uint32)
    run(text, [out], grid=3, block=32)
    assert out.tolist() == [[0, 64, 96, 0]] * 3


LOAD = "tcgen05.ld.sync.aligned"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{LOAD}.16x256b.x64.b32 {{%v0}}, [%t];",
            f"{LOAD}.16x256b.x64.b32 has 256 registers; a thread has at most 128",
        ),
        (
            f"{LOAD}.32x32b.x2.b32 {{%v0}}, [%t];",
            f"{LOAD}.32x32b.x2.b32 has 1 registers in a vector result, expected 2",
        ),
        (
            "tcgen05.ld.red.sync.aligned.16x32bx2.x2.max.f32 {%v0, %v1}, %v2, [%t], 16;",
            "the emulator does not know '.16x32bx2' of tcgen05",
        ),
        (
            "tcgen05.ld.red.sync.aligned.32x32b.x2.max.abs.u32 {%v0, %v1}, %v2, [%t];",
            "'.u32' has neither '.abs' nor '.NaN'",
        ),
        (
            f"{LOAD}.32x32b.x1.b32 {{%v0}}, %t;",
            f"operand 1 of {LOAD}.32x32b.x1.b32 must be an address in brackets",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="PTX line") as raised:
        run(module(text, ONE), [np.zeros(16, np.uint32)], block=128)
    assert str(raised.value).splitlines()[0].partition(": ")[2] == message
