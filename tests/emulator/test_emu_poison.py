"""Values read from memory that has not been written: dropped without a word, faults where they are used, word for word."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import run
from weft.emulator import Checks, OutOfBounds, Uninitialised

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry test(.param .u64 out, .param .u64 x)
{
.reg .pred %p, %q; .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .f32 %f<4>; .reg .b16 %h;
.shared .align 16 .b8 room[256]; .local .align 16 .b8 mine[32];
ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd0, %rd0, %rd2;
mad.lo.u32 %r1, %r0, 4, 0; mov.u32 %r9, room; add.u32 %r1, %r1, %r9; setp.lt.u32 %p, %r0, 16; mov.u32 %r2, 5;
"""
"""Threads below 16 have %p; each has a word of shared memory at %r1."""

END = "\nst.global.u32 [%rd0], %r2;\nret;\n}\n"


def launch(text: str, checks: Checks | None = None) -> np.ndarray:
    out = np.zeros(32, np.uint32)
    run(HEAD + text + END, [out, np.arange(32, dtype=np.uint32)], checks=checks)
    return out


DROPPED = {
    "never used": "ld.shared.u32 %r3, [%r1];",
    "written over": "ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, 1; mov.u32 %r2, 5;",
    "loaded again": "ld.shared.u32 %r2, [%r1]; st.shared.u32 [%r1], 5; ld.shared.u32 %r2, [%r1];",
    "not chosen": "@%p st.shared.u32 [%r1], 5; ld.shared.u32 %r3, [%r1]; selp.u32 %r2, %r3, 5, %p;",
    "chosen after arithmetic": "@%p st.shared.u32 [%r1], 4; ld.shared.u32 %r3, [%r1]; add.u32 %r3, %r3, 1;"
    "selp.u32 %r2, %r3, 5, %p;",
    "of a guarded instruction": "@%p st.shared.u32 [%r1], 5; ld.shared.u32 %r3, [%r1]; @%p mov.u32 %r2, %r3;",
    "stored by those that have it": "@%p st.shared.u32 [%r1], 5; ld.shared.u32 %r3, [%r1]; @%p st.global.u32 [%rd0], %r3;",
    "stored to shared memory": "ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r1], %r3;",
    "stored and written over": "ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r1], %r3; st.shared.u32 [%r1], 5;"
    "ld.shared.u32 %r2, [%r1];",
    "a part of a vector": "st.local.u32 [mine], 5; ld.local.v2.u32 {%r2, %r3}, [mine];",
    "spilled": "ld.shared.u32 %r3, [%r1]; st.local.u32 [mine+8], %r3; ld.local.u32 %r4, [mine+8];",
    "read ahead in a loop": """mov.u32 %r4, 0; st.shared.u32 [%r1], 5; mov.u32 %r6, %r1; ld.shared.u32 %r5, [%r6];
        L: mov.u32 %r2, %r5; add.u32 %r6, %r6, 128; ld.shared.u32 %r5, [%r6]; add.u32 %r4, %r4, 1;
        setp.lt.u32 %q, %r4, 1; @%q bra L;""",
    "written over by what is no arithmetic": "ld.shared.u32 %r2, [%r1]; activemask.b32 %r2; mov.u32 %r2, 5;",
    "added by halves": "ld.shared.u32 %r3, [%r1]; vadd2.u32.u32.u32 %r4, %r3, %r3, %r3;",
    "a prefix sum of a warp of which few lanes have a value": """@%p st.shared.u32 [%r1], 0;
        ld.shared.u32 %r3, [%r1]; mov.u32 %r6, 1; mov.u32 %r7, 0; shfl.sync.up.b32 %r4|%q, %r3, %r6, %r7, -1;
        selp.u32 %r4, %r4, 0, %q; add.u32 %r3, %r3, %r4; @%p add.u32 %r2, %r3, 5;""",
    "shuffled to lanes that do not use it": "@%p st.shared.u32 [%r1], 5;"
    "ld.shared.u32 %r3, [%r1]; shfl.sync.idx.b32 %r2, %r3, 7, 31, -1;",
    "shuffled over the lane's number": "@%p st.shared.u32 [%r1], 5; ld.shared.u32 %r3, [%r1];"
    "mov.u32 %r2, 7; shfl.sync.idx.b32 %r2, %r3, %r2, 31, -1;",
    "whether a shuffle was in range": "ld.shared.u32 %r3, [%r1];"
    "shfl.sync.bfly.b32 %r3|%q, %r3, 1, 31, -1; @%q mov.u32 %r2, 5;",
    "a generic address": "cvta.local.u64 %rd3, mine; ld.u32 %r3, [%rd3]; st.u32 [%rd3+4], %r3; st.u32 [%rd3+4], 5;"
    "ld.u32 %r2, [%rd3+4];",
}


@pytest.mark.parametrize("way", DROPPED)
def test_a_value_that_is_dropped(way: str) -> None:
    assert launch(DROPPED[way]).tolist() == [5] * 32


def test_a_lane_that_uses_what_another_has_read() -> None:
    """Lane 16 reads, lane 0 gets it."""
    text = "mov.u32 %r3, 1; @!%p ld.shared.u32 %r3, [%r1]; shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1;"
    with pytest.raises(Uninitialised) as raised:
        launch(text)
    assert raised.value.where.thread == (16, 0, 0)
    assert raised.value.where.address == "0x40 of the block's shared memory (256 bytes)"


def test_a_lane_that_is_chosen_by_what_was_never_written() -> None:
    text = "mov.u32 %r3, 1; ld.shared.u32 %r4, [%r1]; shfl.sync.idx.b32 %r2, %r3, %r4, 31, -1;"
    with pytest.raises(Uninitialised, match="an operand of PTX line"):
        launch(text)


READ = "ld.shared.u32 %r3, [%r1];\n"

STORED = ("an operand of", "st.global.u32 [%rd0], %r2")

USED = {
    "stored": ("mov.u32 %r2, %r3;", 12, *STORED),
    "computed with":
        ("cvt.rn.f32.u32 %f1, %r3; fma.rn.f32 %f2, %f1, %f1, %f1; mov.b32 %r2, %f2;", 12, *STORED),
    "an address": ("add.u32 %r4, %r3, %r1; st.shared.u32 [%r4], 1;", 11, "an address in", "st.shared.u32 [%r4], 1"),
    "an address of global memory":
        ("cvt.u64.u32 %rd3, %r3; ld.global.u32 %r2, [%rd3];", 11, "an address in", "ld.global.u32 %r2, [%rd3]"),
    "a branch": ("setp.eq.u32 %q, %r3, 0; @%q bra L; mov.u32 %r2, 1; L:", 11, "the condition of", "@%q bra L"),
    "a guard of a store":
        ("setp.eq.u32 %q, %r3, 0; @%q st.shared.u32 [%r1], 1;", 11, "the condition of", "@%q st.shared.u32 [%r1], 1"),
    "a guard of arithmetic": ("setp.eq.u32 %q, %r3, 0; @%q add.u32 %r2, %r2, 1;", 12, *STORED),
    "chosen": ("selp.u32 %r2, 5, %r3, %p;", 12, *STORED),
    "what chooses": ("setp.eq.u32 %q, %r3, 0; selp.u32 %r2, 5, 6, %q;", 12, *STORED),
    "shuffled": ("shfl.sync.bfly.b32 %r2, %r3, 1, 31, -1;", 12, *STORED),
    "slept for": ("nanosleep.u32 %r3;", 11, "an operand of", "nanosleep.u32 %r3"),
    "counted": ("atom.shared.add.u32 %r2, [%r1], %r3;", 11, "an operand of", "atom.shared.add.u32 %r2, [%r1], %r3"),
    "voted": ("setp.eq.u32 %q, %r3, 0; vote.sync.any.pred %q, %q, -1;", 11, "an operand of", "vote.sync.any.pred %q, %q, -1"),
}  # fmt: skip


@pytest.mark.parametrize("way", USED)
def test_a_value_that_is_used(way: str) -> None:
    text, line, how, use = USED[way]
    thread = 16 if way == "chosen" else 0
    with pytest.raises(Uninitialised) as raised:
        launch(READ + text)
    assert str(raised.value) == (
        "uninitialised read: read of 4 bytes of shared memory that has not been written\n"
        f"    its value is {how} PTX line {line}: {use}\n"
        "  kernel test\n"
        "  PTX line 10: ld.shared.u32 %r3, [%r1]\n"
        f"  block (0, 0, 0), thread ({thread}, 0, 0)\n"
        f"  address 0x{4 * thread:x} of the block's shared memory (256 bytes)"
    )


def test_memory_that_holds_poison_is_unwritten() -> None:
    """The read that is to blame is the last one."""
    with pytest.raises(Uninitialised) as raised:
        launch(READ + "st.shared.u32 [%r1+128], %r3;\nld.shared.u32 %r2, [%r1+128];")
    assert raised.value.message == (
        "read of 4 bytes of shared memory that has not been written\n"
        "    its value is an operand of PTX line 13: st.global.u32 [%rd0], %r2"
    )
    assert raised.value.where.address == "0x80 of the block's shared memory (256 bytes)"


def test_other_faults_come_as_they_did() -> None:
    with pytest.raises(OutOfBounds) as raised:
        launch(READ + "ld.shared.u32 %r4, [%r1+256];")
    assert raised.value.message == "read of 4 bytes of shared memory"


def test_without_the_check() -> None:
    assert launch(READ + "mov.u32 %r2, %r3;", Checks(uninitialised=False)).tolist() == [0] * 32
