"""Programs with one mistake in how their threads share memory, and the same programs without it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from emulator_harness import kernel, run
from weft.emulator import Checks
from weft.emulator.errors import Race

BLOCK = 64

DECLARATIONS = """
.reg .b32 %t, %b, %n, %m, %v, %w, %i; .reg .b16 %h; .reg .b64 %x<4>; .reg .pred %p<4>;
.shared .align 128 .b8 data[1024]; .shared .align 8 .b64 bar;
"""

START = """
mov.u32 %t, %tid.x; mov.u32 %b, data; mad.lo.u32 %b, %t, 4, %b; mov.u32 %d, 0; mov.u32 %m, data; mov.u32 %v, 0;
xor.b32 %n, %t, 1; mad.lo.u32 %n, %n, 4, %m;
"""
"""%b is the address of the thread's own word, %n of its neighbour's, %m of the first."""


@dataclass(frozen=True)
class Seeded:
    """A program, at HERE with the ``mistake``, or with the ``repair``. Its first line is line 18 of the PTX."""

    name: str
    text: str
    repair: str
    message: str
    mistake: str = ""


NEIGHBOUR = "a bar.warp.sync or a barrier is missing between"
BARRIER = "a barrier is missing between"

SEEDED = [
    Seeded(
        "lanes of a warp read each other's words",
        "st.shared.u32 [%b], %t; HERE ld.shared.u32 %d, [%n];",
        "bar.warp.sync 0xffffffff;",
        f"thread (0, 0, 0) of block (0, 0, 0) reads shared 0x4..0x7, which thread (1, 0, 0) wrote at PTX line 18; "
        f"nothing orders them: {NEIGHBOUR}",
    ),
    Seeded(
        "a shuffle orders no memory",
        "st.shared.u32 [%b], %t; shfl.sync.bfly.b32 %v, %t, 1, 31, 0xffffffff; HERE ld.shared.u32 %d, [%n];",
        "bar.warp.sync 0xffffffff;",
        f"thread (0, 0, 0) of block (0, 0, 0) reads shared 0x4..0x7, which thread (1, 0, 0) wrote at PTX line 18; "
        f"nothing orders them: {NEIGHBOUR}",
    ),
    Seeded(
        "the second barrier of a loop",
        """mov.u32 %i, 0;
        LOOP: add.u32 %v, %t, %i; st.shared.u32 [%b], %v; bar.sync 0; ld.shared.u32 %w, [%n]; add.u32 %d, %d, %w; HERE
        add.u32 %i, %i, 1; setp.lt.u32 %p0, %i, 3; @%p0 bra LOOP;""",
        "bar.sync 0;",
        f"thread (0, 0, 0) of block (0, 0, 0) writes shared 0x0..0x3, which thread (1, 0, 0) read at PTX line 19; "
        f"nothing orders them: {NEIGHBOUR}",
    ),
    Seeded(
        "bytes of one word",
        """add.u32 %i, %m, %t; cvt.u16.u32 %h, %t; st.shared.u8 [%i], %h; HERE
        setp.lt.u32 %p0, %t, 16; @%p0 ld.shared.u32 %d, [%b];""",
        "bar.sync 0;",
        f"thread (0, 0, 0) of block (0, 0, 0) reads shared 0x1, which thread (1, 0, 0) wrote at PTX line 18; "
        f"nothing orders them: {NEIGHBOUR}",
    ),
    Seeded(
        "a barrier for half of the threads",
        """st.shared.u32 [%b], %t; HERE
        sub.u32 %v, 63, %t; mad.lo.u32 %v, %v, 4, %m; ld.shared.u32 %d, [%v];""",
        "bar.sync 0;",
        f"thread (0, 0, 0) of block (0, 0, 0) reads shared 0xfc..0xff, which thread (63, 0, 0) wrote at PTX line 18; "
        f"nothing orders them: {BARRIER}",
        "shr.u32 %w, %t, 5; bar.sync %w, 32;",
    ),
    Seeded(
        "each thread writes a word of its own value",
        "HERE bar.sync 0; ld.shared.u32 %d, [%m];",
        "st.shared.u32 [%m], 7;",
        "threads (0, 0, 0) and (63, 0, 0) of block (0, 0, 0) write different values to shared 0x0..0x3 in one instruction",
        "st.shared.u32 [%m], %t;",
    ),
    Seeded(
        "a copy that is not waited for",
        """ld.param.u64 %x1, [p_a]; mul.wide.u32 %x2, %t, 4; add.s64 %x1, %x1, %x2;
        cp.async.ca.shared.global [%b], [%x1], 4; cp.async.commit_group; HERE ld.shared.u32 %d, [%b];""",
        "cp.async.wait_group 0;",
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, which an asynchronous operation of thread (0, 0, 0) "
        "wrote at PTX line 19; nothing orders them: its completion is not waited for",
        "cp.async.wait_group 1;",
    ),
    Seeded(
        "a copy that others do not know of",
        """ld.param.u64 %x1, [p_a]; mul.wide.u32 %x2, %t, 4; add.s64 %x1, %x1, %x2;
        cp.async.ca.shared.global [%b], [%x1], 4; cp.async.wait_all; HERE
        sub.u32 %v, 63, %t; mad.lo.u32 %v, %v, 4, %m; ld.shared.u32 %d, [%v];""",
        "bar.sync 0;",
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0xfc..0xff, which an asynchronous operation of thread (63, 0, 0) "
        "wrote at PTX line 19; nothing orders them: its completion is not waited for",
    ),
    Seeded(
        "a buffer that is filled again while it is read",
        """ld.param.u64 %x1, [p_a]; setp.eq.u32 %p0, %t, 0;
        @%p0 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
        @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
        @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%m], [%x1], 128, [bar];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;
        and.b32 %v, %t, 31; mad.lo.u32 %v, %v, 4, %m; ld.shared.u32 %d, [%v]; HERE
        @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
        @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%m], [%x1], 128, [bar];""",
        "bar.sync 0;",
        "an asynchronous operation of thread (0, 0, 0) of block (0, 0, 0) writes shared 0x0..0x3, which thread (32, 0, 0) "
        f"read at PTX line 23; nothing orders them: {BARRIER}",
    ),
    Seeded(
        "a copy out of what was just written",
        """ld.param.u64 %x1, [p_a]; setp.eq.u32 %p0, %t, 0; st.shared.u32 [%b], 5; HERE bar.sync 0;
        @%p0 cp.async.bulk.global.shared::cta.bulk_group [%x1], [%m], 256;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;""",
        "fence.proxy.async.shared::cta;",
        "an asynchronous operation of thread (0, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, which thread (0, 0, 0) "
        "wrote at PTX line 18: a generic write that no fence.proxy.async follows",
        "fence.acq_rel.cta;",
    ),
]


def launch(seeded: Seeded, what: str, checks: Checks | None = None) -> None:
    text = START + seeded.text.replace("HERE", what)
    ptx = kernel(text, {}, {"d": "u32"}, DECLARATIONS)
    ptx = ptx.replace("test(", "test(.param .u64 p_a, ", 1)
    given, out = np.arange(BLOCK, dtype=np.uint32), np.zeros(2 * BLOCK, np.uint32)
    run(ptx, [given, out], grid=2, block=BLOCK, checks=checks)


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda s: s.name)
def test_the_mistake_is_reported(seeded: Seeded) -> None:
    with pytest.raises(Race) as caught:
        launch(seeded, seeded.mistake)
    assert caught.value.message == seeded.message
    assert caught.value.where.kernel == "test"
    assert caught.value.where.block == (0, 0, 0)
    assert "of the block's shared memory" in caught.value.where.address


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda s: s.name)
def test_the_right_program_is_not(seeded: Seeded) -> None:
    launch(seeded, seeded.repair)


@pytest.mark.parametrize("seeded", SEEDED, ids=lambda s: s.name)
def test_nothing_is_reported_when_races_are_not_looked_for(seeded: Seeded) -> None:
    launch(seeded, seeded.mistake, Checks(races=False))
