"""Memory that is kept from one launch to the next, and what the next finds in it."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from weft.emulator import Checks, Fault, Module, OutOfBounds
from weft.emulator.memory import spare
from weft.emulator.memory.arena import PAGE, Heap, layout


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    spare.forget()
    yield
    spare.forget()


def test_the_last_is_kept() -> None:
    one, two = np.ones(spare.LEAST, np.uint8), np.ones(2 * spare.LEAST, np.uint8)
    assert spare.take(spare.LEAST) is None
    spare.give(one)
    spare.give(two)
    taken = spare.take(spare.LEAST + 3)
    assert taken is not None and taken.base is two and taken.size == spare.LEAST + 3
    assert spare.take(spare.LEAST) is None  # it is the taker's
    spare.give(taken)
    again = spare.take(2 * spare.LEAST)
    assert again is not None and again.size == 2 * spare.LEAST  # whole again


def test_what_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "MOST", 2 * spare.LEAST)
    spare.give(np.ones(spare.LEAST - 1, np.uint8))
    spare.give(np.ones(spare.MOST + 1, np.uint8))
    assert spare.take(spare.LEAST) is None
    spare.give(np.ones(spare.LEAST, np.uint8))
    assert spare.take(64) is None  # small launches leave it to others
    assert spare.take(spare.LEAST + 1) is None


def test_all_but_what_is_filled_is_zero() -> None:
    spare.give(np.full(2 * spare.LEAST, 7, np.uint8))
    placed = layout([("symbol", 100, 0), ("x", spare.LEAST, 12), ("y", 1000, 0), ("workspace", 8, 0)])
    heap = Heap(1 << 36, placed, track=False, filled=placed[1:3])
    old = np.flatnonzero(heap.bytes)
    x, y = placed[1:3]
    assert (heap.bytes[old] == 7).all()
    assert old.tolist() == [*range(x.start, x.start + x.size), *range(y.start, y.start + y.size)]
    assert heap.bytes.size == placed[-1].start // PAGE * PAGE + 3 * PAGE
    fresh = Heap(1 << 36, placed, track=False)
    assert not fresh.bytes.any()


READ = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 out, .param .u64 x, .param .u64 offset)
{
  .reg .b32 %r<2>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [offset];
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r0, [%rd3];
  st.global.u32 [%rd0], %r0;
  ret;
}
"""


def test_launches_do_not_see_each_other() -> None:
    """Without checks, what lies behind an array is zeros, whatever the launch before had there; a fault keeps nothing."""
    module = Module(READ)
    ones = np.full(spare.LEAST, 0x01010101, np.uint32)
    out = np.zeros(1, np.uint32)
    module.launch("read", 1, 1, [out, ones, 0])
    assert out[0] == 0x01010101
    few = np.zeros(spare.LEAST // 2, np.uint32)
    for offset in (0, few.nbytes):
        module.launch("read", 1, 1, [out, few, offset], checks=Checks.none())
        assert out[0] == 0
    module.launch("read", 1, 1, [out, ones, 4])
    with pytest.raises(OutOfBounds):
        module.launch("read", 1, 1, [out, few, few.nbytes])
    assert spare.take(spare.LEAST) is None
    assert issubclass(OutOfBounds, Fault)


FRESH = """
import resource, sys
import numpy as np
from weft.emulator.memory.spare import keep_temporaries

if sys.argv[1] == "keep":
    keep_temporaries()
for _ in range(20):
    temporaries = [np.ones(1 << 20, np.uint8) for _ in range(20)]
    del temporaries
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc learns what to keep from what is freed")
def test_temporaries_have_the_pages_of_those_before() -> None:
    """Twenty rounds of temporaries touch the pages of one: 5,120 of 4 KiB."""
    given, kept = (
        int(subprocess.run([sys.executable, "-c", FRESH, how], capture_output=True, text=True, check=True).stdout)
        for how in ("give", "keep")
    )
    assert given - kept > 15 * 5120
