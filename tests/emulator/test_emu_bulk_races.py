"""Bulk copies and reductions that share global memory with other threads: a program with a mistake, and without it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from emulator.test_emu_bulk import COPY_IN, STORE, WAIT, launched
from weft.emulator import Race

STORE_16 = STORE.format(size=16, read="")
BLOCK = "mov.u32 %x4, %ctaid.x; setp.eq.u32 %q4, %x4, 0; selp.b32 %x5, 8, 7, %q4;"
"""%q4: block 0. %x5: a number of the block's own."""
FILL = "@!%q0 st.shared.v4.b32 [%x9], {%x5, %x5, %x5, %x5};"

WAITED = f"{COPY_IN.format(size=256)} HERE\n@%q0 st.global.b32 [%y0], 1;"
LOADED = f"{BLOCK}\n@!%q4 bra LOAD; @%q0 bra END; st.global.b32 [%y0{{}}], 1; bra END;\nLOAD:{COPY_IN.format(size=16)}{WAIT}END:"
ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%y1], [%x9], 16;"
REDUCED = f"""{BLOCK} {FILL} fence.proxy.async.shared::cta; @%q0 bra END;
  @%q4 bra OTHER;
  {ADD}
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; bra END;
  OTHER: HERE
END:"""
OWN = "mul.wide.u32 %y2, %x4, 16; add.u64 %y1, %y1, %y2;"

PASSED = f"""{BLOCK} @!%q4 bra OTHER; {COPY_IN.format(size=256)} {WAIT}
  setp.ne.u32 %q5, %x0, 32; @%q5 bra END; HERE [%y1], 1; bra END;
  OTHER: @%q0 bra END;
  SPIN: ld.acquire.gpu.global.u32 %x6, [%y1]; setp.eq.u32 %q6, %x6, 0; @%q6 bra SPIN; st.global.b32 [%y0], 1;
END:"""
"""A thread of another warp than the one that copies tells another block that the copy is over."""

CHAIN = f"""{BLOCK} @!%q4 bra OTHER; @%q0 bra GO;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
  SPIN: HERE.gpu.global.u32 %x6, [%y1]; setp.eq.u32 %q6, %x6, 0; @%q6 bra SPIN;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x9], [%y0], 16, [%x10];
  GO: {WAIT}
  setp.ne.u32 %q5, %x0, 32; @%q5 bra END; ld.global.u32 %x7, [%y0+128]; bra END;
  OTHER: @%q0 bra END; st.global.b32 [%y0+128], 1; st.release.gpu.global.u32 [%y1], 1;
END:"""
"""What the copying thread has seen of another block, the threads that wait for its copy have seen."""

CASES = {
    "two blocks store to one place": (
        f"{BLOCK} {FILL} HERE {STORE_16}",
        "",
        OWN,
        r"block \(1, 0, 0\) write different values to bytes 0 to 15 of 'argument 1' in one instruction",
    ),
    "a load of what another block stores": (
        LOADED.replace("{}", "HERE"),
        "+4",
        "+32",
        r"reads bytes 4 to 7 of 'argument 0', which .* wrote at PTX line \d+; nothing orders them: blocks are ordered by",
    ),
    "a store to the source of a load under way": (
        WAITED,
        "",
        WAIT,
        r"writes bytes 0 to 3 of 'argument 0', which .* read at PTX line \d+; nothing orders them",
    ),
    "a store to the source of another block's load": (
        PASSED,
        "st.relaxed.gpu.global.u32",
        "st.release.gpu.global.u32",
        r"writes bytes 0 to 3 of 'argument 0', which .* read at PTX line \d+; nothing orders them: blocks are ordered by",
    ),
    "a load of what another block stored before the copy": (
        CHAIN,
        "ld.relaxed",
        "ld.acquire",
        r"reads bytes 128 to 131 of 'argument 0', which .* wrote at PTX line \d+; nothing orders them: blocks are ordered by",
    ),
    "a store to what another block adds to": (
        REDUCED,
        "st.global.b32 [%y1+4], 1;",
        "red.global.add.u32 [%y1+4], 1;",
        r"'argument 1', which .*; nothing orders them: blocks are ordered by",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bulk_copy_races(name: str) -> None:
    text, mistake, repair, message = CASES[name]
    grid = 1 if text is WAITED else 2
    source, target = np.arange(256, dtype=np.uint8), np.zeros(64, np.uint8)
    launched(text.replace("HERE", repair), source.copy(), target.copy(), grid=grid)
    with pytest.raises(Race) as raised:
        launched(text.replace("HERE", mistake), source, target, grid=grid)
    assert re.search(message, str(raised.value)), raised.value


def test_blocks_add_to_one_place() -> None:
    text = f"mov.u32 %x5, 7; {FILL} fence.proxy.async.shared::cta; @%q0 bra END;\n{ADD} END:"
    target = np.zeros(4, np.uint32)
    launched(text, np.zeros(16, np.uint8), target, grid=3)
    assert target.tolist() == [21] * 4
