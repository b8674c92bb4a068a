"""Programs with one mistake in how their threads share global memory, and the same programs without it.

Each rule of `weft.emulator.memory.global_order` has a program that races and one that does not: barriers of a block, flags of two
blocks, fences, scopes, widths, chains of atomics, values that agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from weft.emulator import Checks, Module
from weft.emulator.errors import Race
from weft.emulator.machine import launch as machine

HEAD = """.version 8.4
.target sm_90
.address_size 64
.visible .entry test(.param .u64 data, .param .u64 flags, .param .u64 out) {
  .reg .b64 %x, %f, %o, %own, %next, %a, %l<4>; .reg .b32 %t, %k, %n, %v, %w, %i, %d;
  .reg .b16 %h; .reg .pred %p<4>, %q;
  .shared .b32 told;
  ld.param.u64 %x, [data]; ld.param.u64 %f, [flags]; ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x; mov.u32 %k, %ctaid.x; mov.u32 %n, %ntid.x; setp.eq.u32 %q, %t, 0;
  mad.lo.u32 %i, %k, %n, %t; mul.wide.u32 %l0, %i, 4; add.u64 %own, %x, %l0; add.u64 %o, %o, %l0;
  xor.b32 %i, %i, 1; mul.wide.u32 %l0, %i, 4; add.u64 %next, %x, %l0;
"""
"""%own is the address of the thread's own word of data, %next of its neighbour's, %x of the first; %f that of a flag, %o a word
for its result. %t is the thread, %k the block, %q whether the thread is the block's first. The text begins with line 12."""


@dataclass(frozen=True)
class Seeded:
    """A program, at HERE with the ``mistake`` or with the ``repair``, and what is said of the mistake."""

    name: str
    text: str
    repair: str
    message: str
    mistake: str = ""
    grid: int = 1
    threads: int = 64


def who(block: int, thread: int) -> str:
    return f"thread ({thread}, 0, 0) of block ({block}, 0, 0)"


LANES = "a bar.warp.sync or a barrier is missing between"
BARRIER = "a barrier is missing between"
BLOCKS = "blocks are ordered by a release and an acquire at .gpu scope"
SCOPE = "the scope .cta does not reach another block"
DATA, FLAGS = "argument 0", "argument 1"

WAIT = "\nPOLL: ld.acquire.gpu.global.u32 %v, [%f]; setp.eq.u32 %p0, %v, 0; @%p0 bra POLL;\n"
"""Waits for the flag; one line, the second after this text begins."""

READER = "READER:" + WAIT + "ld.global.u32 %d, [%x]; st.global.u32 [%o], %d; DONE: ret;"
"""Block 1, a single thread, waits for the flag and reads the first word: line 16 where the text before has two lines."""

WRITER = "setp.eq.u32 %p1, %k, 1; @%p1 bra READER;\nst.global.u32 [%x], 7; "
"""Block 0 writes it."""

SEEDED = [
    Seeded(
        "lanes of a warp",
        "st.global.u32 [%own], %t; HERE ld.global.u32 %d, [%next];",
        "bar.warp.sync 0xffffffff;",
        f"{who(0, 0)} reads bytes 4 to 7 of '{DATA}', which {who(0, 1)} wrote at PTX line 12; nothing orders them: {LANES}",
    ),
    Seeded(
        "warps of a block, a read after a write",
        "st.global.u32 [%own], %t; HERE xor.b32 %i, %t, 32; mul.wide.u32 %l0, %i, 4; add.u64 %l0, %x, %l0;\n"
        "ld.global.u32 %d, [%l0];",
        "bar.sync 0;",
        f"{who(0, 0)} reads bytes 128 to 131 of '{DATA}', which {who(0, 32)} wrote at PTX line 12; "
        f"nothing orders them: {BARRIER}",
    ),
    Seeded(
        "a bar.warp.sync does not order warps",
        "st.global.u32 [%own], %t; HERE xor.b32 %i, %t, 32; mul.wide.u32 %l0, %i, 4; add.u64 %l0, %x, %l0;\n"
        "ld.global.u32 %d, [%l0];",
        "bar.sync 0;",
        f"{who(0, 0)} reads bytes 128 to 131 of '{DATA}', which {who(0, 32)} wrote at PTX line 12; "
        f"nothing orders them: {BARRIER}",
        mistake="bar.warp.sync 0xffffffff;",
    ),
    Seeded(
        "a write after a read",
        "ld.global.u32 %d, [%next]; HERE\nst.global.u32 [%own], %t;",
        "bar.sync 0;",
        f"{who(0, 0)} writes bytes 0 to 3 of '{DATA}', which {who(0, 1)} read at PTX line 12; nothing orders them: {LANES}",
    ),
    Seeded(
        "the second barrier of a loop",
        "mov.u32 %i, 0;\nLOOP: add.u32 %v, %t, %i; st.global.u32 [%own], %v; bar.sync 0;\n"
        "ld.global.u32 %w, [%next]; HERE\nadd.u32 %i, %i, 1; setp.lt.u32 %p0, %i, 3; @%p0 bra LOOP;",
        "bar.sync 0;",
        f"{who(0, 0)} writes bytes 0 to 3 of '{DATA}', which {who(0, 1)} read at PTX line 14; nothing orders them: {LANES}",
    ),
    Seeded(
        "the second barrier of a loop, in the second iteration",
        "mov.u32 %i, 0;\nLOOP: add.u32 %v, %t, %i; st.global.u32 [%own], %v; bar.sync 0; ld.global.u32 %w, [%next];\n"
        "setp.eq.u32 %p1, %i, 0; HERE\nadd.u32 %i, %i, 1; setp.lt.u32 %p0, %i, 3; @%p0 bra LOOP;",
        "bar.sync 0;",
        f"{who(0, 0)} writes bytes 0 to 3 of '{DATA}', which {who(0, 1)} read at PTX line 13; nothing orders them: {LANES}",
        mistake="@%p1 bar.sync 0;",
    ),
    Seeded(
        "a loop over a thread's own word, and a neighbour that reads it",
        "mov.u32 %i, 0;\nLOOP: ld.global.u32 %v, [%own]; add.u32 %v, %v, 1;\n"
        "st.global.u32 [%own], %v; add.u32 %i, %i, 1; setp.lt.u32 %p0, %i, 3; @%p0 bra LOOP; HERE\nld.global.u32 %d, [%next];",
        "bar.sync 0;",
        f"{who(0, 0)} reads bytes 4 to 7 of '{DATA}', which {who(0, 1)} wrote at PTX line 14; nothing orders them: {LANES}",
    ),
    Seeded(
        "a loop over a thread's own word, and a neighbour that writes it",
        "mov.u32 %i, 0;\nLOOP: add.u32 %v, %t, %i; st.global.u32 [%own], %v;\n"
        "ld.global.u32 %d, [%own]; add.u32 %i, %i, 1; setp.lt.u32 %p0, %i, 3; @%p0 bra LOOP; HERE\nst.global.u32 [%next], 99;",
        "bar.sync 0;",
        f"{who(0, 0)} writes bytes 4 to 7 of '{DATA}', which {who(0, 1)} read at PTX line 14; nothing orders them: {LANES}",
    ),
    Seeded(
        "a barrier of two warps of three",
        "@%q ld.global.u32 %d, [%x];\nsetp.eq.u32 %p2, %t, 32; @%p2 ld.global.u32 %d, [%x]; setp.lt.u32 %p0, %t, 32;\n"
        "HERE\nsetp.eq.u32 %p3, %t, 64; @%p3 st.global.u32 [%x], 1;",
        "bar.sync 0;",
        f"{who(0, 64)} writes bytes 0 to 3 of '{DATA}', which {who(0, 0)} read at PTX line 12; nothing orders them: {BARRIER}",
        mistake="@!%p0 bar.sync 1, 64;",
        threads=96,
    ),
    Seeded(
        "bytes of a word",
        "cvt.u64.u32 %l0, %t; add.u64 %l0, %x, %l0; cvt.u16.u32 %h, %t; st.global.u8 [%l0], %h; HERE\n"
        "setp.lt.u32 %p0, %t, 16; @%p0 ld.global.u32 %d, [%own];",
        "bar.sync 0;",
        f"{who(0, 0)} reads byte 1 of '{DATA}', which {who(0, 1)} wrote at PTX line 12; nothing orders them: {LANES}",
    ),
    Seeded(
        "a vector and a word of it",
        "mul.wide.u32 %l0, %t, 16; add.u64 %l0, %x, %l0; setp.lt.u32 %p0, %t, 8; mov.u32 %d, 0;\n"
        "@%p0 st.global.v4.u32 [%l0], {%t, %t, %t, %t}; HERE\nld.global.u32 %d, [%own];",
        "bar.sync 0;",
        f"{who(0, 1)} reads bytes 4 to 7 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {LANES}",
    ),
    Seeded(
        "different values in one instruction",
        "HERE st.global.u32 [%x], %v;",
        "mov.u32 %v, 3;",
        f"{who(0, 0)} and {who(0, 1)} write different values to bytes 0 to 3 of '{DATA}' in one instruction",
        mistake="mov.u32 %v, %t;",
    ),
    Seeded(
        "different values in two instructions",
        "setp.lt.u32 %p0, %t, 32; @%p0 st.global.u32 [%x], 1;\nHERE @!%p0 st.global.u32 [%x], %v;",
        "mov.u32 %v, 1;",
        f"{who(0, 32)} writes bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 12; nothing orders them: {BARRIER}",
        mistake="mov.u32 %v, 2;",
    ),
    Seeded(
        "an atomic and a plain write",
        "@%q st.global.u32 [%x], 0; HERE\nred.global.add.u32 [%x], 1;",
        "bar.sync 0;",
        f"{who(0, 1)} updates bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 12; nothing orders them: {LANES}",
    ),
    Seeded(
        "an atomic and a plain read",
        "red.global.add.u32 [%x], 1; HERE\nld.global.u32 %d, [%x];",
        "bar.sync 0;",
        f"{who(0, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 1)} updated at PTX line 12; nothing orders them: {LANES}",
    ),
    Seeded(
        "atomics of two widths",
        "red.global.add.u32 [%x], 1; HERE\nred.global.add.u64 [%x], 1;",
        "bar.sync 0;",
        f"{who(0, 0)} updates bytes 0 to 3 of '{DATA}', which {who(0, 1)} updated at PTX line 12; "
        "nothing orders them: strong accesses of 8 and of 4 bytes are not atomic to each other",
    ),
    Seeded(
        "two blocks, of which one reads what the other writes",
        "HERE add.u64 %l0, %x, %l0; st.global.u32 [%l0], 1; ld.global.u32 %d, [%l0];",
        "mul.wide.u32 %l0, %k, 4;",
        f"{who(0, 0)} reads bytes 0 to 3 of '{DATA}', which {who(1, 0)} wrote at PTX line 12; nothing orders them: {BLOCKS}",
        mistake="mov.u64 %l0, 0; mul.lo.u32 %v, %k, 9;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a flag raised by a plain store",
        WRITER + "HERE bra DONE;\n" + READER,
        "st.release.gpu.global.u32 [%f], 1;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{FLAGS}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="st.global.u32 [%f], 1;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a flag raised by a relaxed store",
        WRITER + "HERE bra DONE;\n" + READER,
        "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%f], 1;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="st.relaxed.gpu.global.u32 [%f], 1;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a fence of the block only",
        WRITER + "HERE st.volatile.global.u32 [%f], 1; bra DONE;\n" + READER,
        "membar.gl;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="membar.cta;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a release that comes too early",
        "setp.eq.u32 %p1, %k, 1; @%p1 bra READER;\nHERE bra DONE;\n" + READER,
        "st.global.u32 [%x], 7; st.release.gpu.global.u32 [%f], 1;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="st.release.gpu.global.u32 [%f], 1; st.global.u32 [%x], 7;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a flag that is overwritten without a release",
        WRITER + "st.release.gpu.global.u32 [%f], 1; bra DONE;\nREADER: HERE\n" + READER[len("READER:") :],
        "nanosleep.u32 1;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="""
        SPIN: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %p0, %v, 0; @%p0 bra SPIN; st.relaxed.gpu.global.u32 [%f], 2;""",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a flag that is overwritten behind a fence that had seen nothing",
        WRITER + "st.release.gpu.global.u32 [%f], 1; bra DONE;\nREADER: HERE\n" + READER[len("READER:") :],
        "nanosleep.u32 1;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="""fence.acq_rel.gpu;
        SPIN: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %p0, %v, 0; @%p0 bra SPIN; st.relaxed.gpu.global.u32 [%f], 2;""",
        grid=2,
        threads=1,
    ),
    Seeded(
        "an arrival at a barrier, of which the other warp tells",
        "setp.eq.u32 %p1, %k, 1; @%p1 bra READER; setp.ge.u32 %p2, %t, 32; @%p2 bra SECOND;\nHERE bra DONE;\n"
        "SECOND: fence.acq_rel.gpu; bar.sync 1, 64; setp.eq.u32 %p3, %t, 32; @%p3 st.release.gpu.global.u32 [%f], 1; bra DONE;\n"
        + READER,
        "@%q st.global.u32 [%x], 7; bar.arrive 1, 64;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="bar.arrive 1, 64; @%q st.global.u32 [%x], 7;",
        grid=2,
    ),
    Seeded(
        "a relaxed load of the flag",
        WRITER
        + "st.release.gpu.global.u32 [%f], 1; bra DONE;\nREADER:\n"
        + "POLL: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %p0, %v, 0; @%p0 bra POLL; HERE\n"
        + "ld.global.u32 %d, [%x]; DONE: ret;",
        "fence.acq_rel.gpu;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a fence of the block only after a relaxed load",
        WRITER
        + "st.release.gpu.global.u32 [%f], 1; bra DONE;\nREADER:\n"
        + "POLL: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %p0, %v, 0; @%p0 bra POLL; HERE\n"
        + "ld.global.u32 %d, [%x]; DONE: ret;",
        "fence.acq_rel.sys;",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="fence.acq_rel.cta;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a plain store behind which a relaxed one hides",
        "setp.eq.u32 %p1, %k, 1; @%p1 bra READER;\nHERE.global.u32 [%f], 2; st.relaxed.gpu.global.u32 [%f], 1; bra DONE;\n"
        + READER,
        "st.relaxed.gpu",
        f"{who(1, 0)} reads bytes 0 to 3 of '{FLAGS}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="st",
        grid=2,
        threads=1,
    ),
    Seeded(
        "atomics of two blocks at .cta scope",
        "HERE",
        "red.relaxed.gpu.global.add.u32 [%x], 1;",
        f"{who(0, 0)} and {who(1, 0)} update bytes 0 to 3 of '{DATA}' in one instruction; nothing orders them: {SCOPE}",
        mistake="red.relaxed.cta.global.add.u32 [%x], 1;",
        grid=2,
        threads=1,
    ),
    Seeded(
        "atomics of two blocks at .cta scope, in two instructions",
        "setp.eq.u32 %p0, %k, 0; @%p0 HERE [%x], 1;\n@!%p0 red.relaxed.gpu.global.add.u32 [%x], 1;",
        "red.relaxed.gpu.global.add.u32",
        f"{who(1, 0)} updates bytes 0 to 3 of '{DATA}', which {who(0, 0)} updated at PTX line 12; nothing orders them: {SCOPE}",
        mistake="red.relaxed.cta.global.add.u32",
        grid=2,
        threads=1,
    ),
    Seeded(
        "the last block adds up",
        "st.global.u32 [%own], %t; HERE\n@%q atom.acq_rel.gpu.global.add.u32 %v, [%f], 1;\n@%q st.shared.u32 [told], %v;\n"
        "bar.sync 0; ld.shared.u32 %v, [told]; setp.ne.u32 %p0, %v, 2; @%p0 ret;\n"
        "ld.global.u32 %d, [%x+128]; st.global.u32 [%o], %d;",
        "bar.sync 0;",
        f"{who(2, 0)} reads bytes 128 to 131 of '{DATA}', which {who(0, 32)} wrote at PTX line 12; "
        f"nothing orders them: {BLOCKS}",
        grid=3,
    ),
    Seeded(
        "the count of blocks, not in order",
        "st.global.u32 [%own], %t; bar.sync 0;\n@%q atom.HERE.gpu.global.add.u32 %v, [%f], 1;\n@%q st.shared.u32 [told], %v;\n"
        "bar.sync 0; ld.shared.u32 %v, [told]; setp.ne.u32 %p0, %v, 2; @%p0 ret;\n"
        "ld.global.u32 %d, [%x+128]; st.global.u32 [%o], %d;",
        "acq_rel",
        f"{who(2, 0)} reads bytes 128 to 131 of '{DATA}', which {who(0, 32)} wrote at PTX line 12; "
        f"nothing orders them: {BLOCKS}",
        mistake="relaxed",
        grid=3,
    ),
    Seeded(
        "what another block released, behind a store that is no atomic",
        "setp.eq.u32 %p1, %k, 1; @%p1 bra MIDDLE; setp.eq.u32 %p1, %k, 2; @%p1 bra READER;\n"
        "st.global.u32 [%x], 7; st.release.gpu.global.u32 [%f], 1; bra DONE;\n"
        "MIDDLE: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %p0, %v, 0; @%p0 bra MIDDLE;\n"
        "atom.HERE.gpu.global.add.u32 %v, [%f], 1; st.relaxed.gpu.global.u32 [%f], 3; bra DONE;\n"
        "READER: ld.relaxed.gpu.global.u32 %v, [%f]; setp.ne.u32 %p0, %v, 3; @%p0 bra READER;\n"
        "ld.acquire.gpu.global.u32 %v, [%f]; ld.global.u32 %d, [%x]; st.global.u32 [%o], %d; DONE: ret;",
        "acq_rel",
        f"{who(2, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="release",
        grid=3,
        threads=1,
    ),
    Seeded(
        "what the block itself released, behind a later store",
        "setp.eq.u32 %p1, %k, 1; @%p1 bra READER;\nst.global.u32 [%x], 7; st.HERE.gpu.global.u32 [%f], 1;"
        "atom.relaxed.gpu.global.add.u32 %v, [%f], 1; st.relaxed.gpu.global.u32 [%f], 3; bra DONE;\n"
        "READER: ld.relaxed.gpu.global.u32 %v, [%f]; setp.ne.u32 %p0, %v, 3; @%p0 bra READER;\n"
        "ld.acquire.gpu.global.u32 %v, [%f]; ld.global.u32 %d, [%x]; st.global.u32 [%o], %d; DONE: ret;",
        "release",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}",
        mistake="relaxed",
        grid=2,
        threads=1,
    ),
    Seeded(
        "a spin lock that is not released",
        "LOCK: atom.acquire.gpu.global.cas.b32 %v, [%f], 0, 1; setp.ne.u32 %p0, %v, 0; @%p0 bra LOCK;\n"
        "ld.global.u32 %d, [%x]; add.u32 %d, %d, 1;\nst.global.u32 [%x], %d;\natom.HERE.gpu.global.exch.b32 %v, [%f], 0;",
        "release",
        f"{who(1, 0)} reads bytes 0 to 3 of '{DATA}', which {who(0, 0)} wrote at PTX line 14; nothing orders them: {BLOCKS}",
        mistake="relaxed",
        grid=4,
        threads=1,
    ),
]


def launch(text: str, grid: int, threads: int, checks: Checks | None = None) -> list[Any]:
    """The arrays afterwards."""
    arrays = [np.zeros(256, np.uint32) for _ in range(3)]
    Module(HEAD + text + "\nret;\n}\n").launch("test", grid, threads, arrays, checks=checks)
    return arrays


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda seeded: seeded.name)
def test_a_mistake_is_found(seeded: Seeded) -> None:
    with pytest.raises(Race) as caught:
        launch(seeded.text.replace("HERE", seeded.mistake), seeded.grid, seeded.threads)
    assert caught.value.message == seeded.message


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda seeded: seeded.name)
def test_the_same_program_without_it_is_clean(seeded: Seeded) -> None:
    launch(seeded.text.replace("HERE", seeded.repair), seeded.grid, seeded.threads)


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda seeded: seeded.name)
def test_the_check_can_be_switched_off(seeded: Seeded) -> None:
    launch(seeded.text.replace("HERE", seeded.mistake), seeded.grid, seeded.threads, Checks(global_races=False))


@pytest.mark.parametrize("order", ["ld.global.u32 %d, [%l0]", "st.global.u32 [%l0], 1", "st.global.u32 [%l0], 2"])
def test_blocks_of_two_batches_race(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block is resident at a time: threads of the next have the same numbers and go to the same places. To write the same is
    no race."""
    monkeypatch.setattr(machine, "RESIDENT", 32)
    text = (
        "mul.wide.u32 %l0, %t, 4; add.u64 %l0, %x, %l0; setp.ne.u32 %p0, %k, 0; @%p0 bra SECOND;\n"
        "st.global.u32 [%l0], 1; st.global.u32 [%l0], 1; bra DONE;\n"
        f"SECOND: {order}; DONE: ret;"
    )
    if order.endswith("1"):
        launch(text, 2, 32)
        return
    with pytest.raises(Race) as caught:
        launch(text, 2, 32)
    assert f"which {who(0, 0)} wrote at PTX line 13; nothing orders them: {BLOCKS}" in caught.value.message


def test_an_access_of_an_earlier_batch_stays_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks 0 and 1, each resident alone, read one word by the same instruction; block 1 tells block 2, which writes it: it is
    ordered behind the second read only."""
    monkeypatch.setattr(machine, "RESIDENT", 32)
    text = (
        "setp.eq.u32 %p1, %k, 2; @%p1 bra WRITER;\nld.global.u32 %d, [%x];\n"
        "setp.eq.u32 %p2, %k, 1; @%p2 st.release.gpu.global.u32 [%f], 1; bra DONE;\n"
        "WRITER: ld.acquire.gpu.global.u32 %v, [%f]; st.global.u32 [%x], 3; DONE: ret;"
    )
    with pytest.raises(Race) as caught:
        launch(text, 3, 1)
    assert f"which {who(0, 0)} read at PTX line 13; nothing orders them: {BLOCKS}" in caught.value.message
