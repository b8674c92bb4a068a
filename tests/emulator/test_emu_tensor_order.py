"""The order of accesses to tensor memory: what has to be waited for, and how. tcgen05.shift stands for operations of the tensor
core: it reads and writes the lanes of warp 1, and thread 0 begins it, of warp 0."""

from __future__ import annotations

import pytest

from weft.emulator import Checks, Module, Race

STORE = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%mine], {%v, %v, %v, %v, %v, %v, %v, %v};"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}, [%mine];"
STORED, LOADED = "tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"
MEET = "bar.sync 0;"
SHIFT = "@%first tcgen05.shift.cta_group::1.down [%upper];"
COMMIT = "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra W;"
OTHER = SHIFT.replace("%first", "%second")


def launch(*body: str, checks: Checks | None = None) -> None:
    lines = "\n  ".join(body)
    text = f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry test() {{
  .reg .b32 %i, %t, %mine, %upper, %v, %w<8>; .reg .pred %first, %second, %zero, %p;
  .shared .align 4 .b32 slot; .shared .align 8 .b64 bar[2];
  mov.u32 %i, %tid.x; mov.u32 %v, %i;
  setp.eq.u32 %first, %i, 0; setp.eq.u32 %second, %i, 32; setp.lt.u32 %zero, %i, 32;
  @%first mbarrier.init.shared::cta.b64 [bar], 1;
  @%first mbarrier.init.shared::cta.b64 [bar+8], 1;
  @%zero tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
  bar.sync 0;
  ld.shared.b32 %t, [slot];
  shr.u32 %mine, %i, 5; shl.b32 %mine, %mine, 21; add.u32 %mine, %mine, %t;
  add.u32 %upper, %t, 2097152;
  {lines}
  bar.sync 0;
  @%zero tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;
  ret;
}}
"""
    Module(text).launch("test", 1, 64, [], checks=checks)


@pytest.mark.parametrize(
    "body",
    [
        (STORE, STORED, MEET, SHIFT, COMMIT, WAIT, LOAD, LOADED),
        (STORE, STORED, MEET, SHIFT, SHIFT, COMMIT, WAIT, STORE, LOAD, LOADED, STORED),
        (STORE, STORED, LOAD, LOADED, MEET, SHIFT, COMMIT, WAIT, LOAD, LOADED),
        (STORE, STORED, MEET, SHIFT, COMMIT, WAIT, OTHER),
        # A third commit, to another mbarrier, is of all that the thread has begun.
        (
            STORE,
            STORED,
            MEET,
            SHIFT,
            COMMIT,
            COMMIT,
            COMMIT.replace("[bar]", "[bar+8]"),
            WAIT.replace("[bar]", "[bar+8]"),
            LOAD,
        ),
    ],
)
def test_what_is_ordered(body: tuple[str, ...]) -> None:
    launch(*body)


@pytest.mark.parametrize(
    ("body", "verb", "past", "why"),
    [
        (
            (STORE, STORED, MEET, SHIFT, COMMIT, LOAD),
            "reads",
            "shift of thread (0, 0, 0) of block (0, 0, 0) wrote",
            "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between",
        ),
        (
            (STORE, STORED, MEET, SHIFT, MEET, STORE),
            "writes",
            "shift of thread (0, 0, 0) of block (0, 0, 0) read",
            "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between",
        ),
        (
            (STORE, STORED, MEET, SHIFT, MEET, OTHER),
            "reads",
            "shift of thread (0, 0, 0) of block (0, 0, 0) wrote",
            "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between",
        ),
        (
            (STORE, MEET, SHIFT),
            "reads",
            "st of thread (32, 0, 0) of block (0, 0, 0) wrote",
            "no tcgen05.wait::st follows it",
        ),
        (
            (STORE, LOADED, MEET, SHIFT),
            "reads",
            "st of thread (32, 0, 0) of block (0, 0, 0) wrote",
            "no tcgen05.wait::st follows it",
        ),
        (
            (STORE, STORED, SHIFT),
            "reads",
            "st of thread (32, 0, 0) of block (0, 0, 0) wrote",
            "nothing orders them: a barrier is missing between",
        ),
        (
            (STORE, STORED, LOAD, MEET, SHIFT),
            "writes",
            "ld of thread (32, 0, 0) of block (0, 0, 0) read",
            "no tcgen05.wait::ld follows it",
        ),
        (
            (STORE, STORED, MEET, LOAD, LOADED, SHIFT),
            "writes",
            "ld of thread (32, 0, 0) of block (0, 0, 0) read",
            "nothing orders them: a barrier is missing between",
        ),
    ],
)
def test_what_is_not_ordered(body: tuple[str, ...], verb: str, past: str, why: str) -> None:
    with pytest.raises(Race) as raised:
        launch(*body)
    # A shift reads lanes 32 to 62, and writes lanes 33 to 63.
    lane = 33 if past.startswith("shift") and past.endswith("wrote") or verb == "writes" and "ld" in past else 32
    message = raised.value.message
    assert message.startswith(f"{verb} lane {lane}, column 0 of tensor memory, which tcgen05.{past} at PTX line ")
    assert message.partition("; ")[2] == why
    launch(*body, checks=Checks(races=False))


def test_columns_that_are_given_back_are_forgotten() -> None:
    """What the tensor core did to them is no matter of who allocates them next."""
    again = (
        "@%zero tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;"
        "@%zero tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"
    )
    launch(STORE, STORED, MEET, SHIFT, MEET, again, MEET, STORE)


def test_the_whole_message() -> None:
    with pytest.raises(Race) as raised:
        launch(STORE, MEET, SHIFT)
    assert raised.value.message == (
        "reads lane 32, column 0 of tensor memory, which tcgen05.st of thread (32, 0, 0) of block (0, 0, 0) wrote at PTX line "
        "16; no tcgen05.wait::st follows it"
    )
