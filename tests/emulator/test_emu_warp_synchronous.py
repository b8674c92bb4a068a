"""Code that counts on the lanes of a warp being in step: a sum through shared memory as it was written before __syncwarp.

    for (int n = 16; n; n /= 2) { if (lane < n) s[lane] += s[lane + n];  BETWEEN }

Each step reads what other lanes wrote in the one before. Only bar.warp.sync, or a barrier, orders that; being in one warp does
not, nor do instructions that lanes execute together.
"""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import Race

X = np.arange(64, dtype=np.uint32) ** 2

FULL = "bar.warp.sync 0xffffffff;"


def sums(between: str, access: str = "shared", last: str = FULL) -> list[int]:
    """The sum of each warp's numbers, by every lane."""
    steps = "".join(
        f"""setp.lt.u32 %p, %lane, {n}; @%p ld.{access}.u32 %a, [%own]; @%p ld.{access}.u32 %b, [%own+{4 * n}];
        add.u32 %a, %a, %b; @%p st.{access}.u32 [%own], %a; {between if n > 1 else last}\n"""
        for n in (16, 8, 4, 2, 1)
    )
    text = f"""
    .shared .align 16 .b8 room[256]; .reg .b32 %lane, %tid, %own, %first, %a, %b, %v; .reg .pred %p, %q;
    mov.u32 %tid, %tid.x; and.b32 %lane, %tid, 31; sub.u32 %v, %tid, %lane;
    mov.u32 %first, room; mad.lo.u32 %first, %v, 4, %first; mad.lo.u32 %own, %lane, 4, %first;
    st.{access}.u32 [%own], %x; {FULL}
    {steps} ld.{access}.u32 %y, [%first];"""
    return execute(text, {"x": ("u32", X)}, {"y": "u32"})["y"].tolist()


EXPECTED = [int(X[:32].sum())] * 32 + [int(X[32:].sum())] * 32


@pytest.mark.parametrize("between", [FULL, "bar.sync 0;", "bar.warp.sync -1;", "barrier.sync 0;"])
def test_what_orders_lanes(between: str) -> None:
    assert sums(between) == EXPECTED


@pytest.mark.parametrize(
    "between",
    [
        "",
        "shfl.sync.idx.b32 %v, %a, 0, 31, -1;",
        "vote.sync.ballot.b32 %v, %p, -1;",
        "redux.sync.add.u32 %v, %a, -1;",
        "match.any.sync.b32 %v, %a, -1;",
        "elect.sync %v|%q, -1;",
        "activemask.b32 %v;",
        "membar.cta;",
        "fence.acq_rel.cta;",
    ],
)
def test_what_does_not(between: str) -> None:
    """A fence orders a lane's own accesses."""
    with pytest.raises(Race, match="a bar.warp.sync or a barrier is missing between"):
        sums(between)


def test_the_last_step_is_ordered_too() -> None:
    with pytest.raises(Race, match="a bar.warp.sync or a barrier is missing between"):
        sums(FULL, last="")


SIXTEEN = "setp.lt.u32 %q, %lane, 16; @%q bar.warp.sync 0xffff;"


def test_a_mask_of_some_lanes_orders_those() -> None:
    """Lanes 0 to 15 are all that write after the first step; all lanes read the sum. Of a lane by itself none is ordered."""
    assert sums(SIXTEEN) == EXPECTED
    for between, last in ((FULL, SIXTEEN), ("mov.u32 %v, %lanemask_eq; bar.warp.sync %v;", FULL)):
        with pytest.raises(Race, match="a bar.warp.sync or a barrier is missing between"):
            sums(between, last=last)


def test_volatile_accesses_are_no_race() -> None:
    """They are strong, and have a value whatever the order: here that of lanes in step, which hardware does not promise."""
    assert sums("", "volatile.shared", "") == EXPECTED
