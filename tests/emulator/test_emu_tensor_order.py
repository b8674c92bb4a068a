"""The order of accesses to tensor memory: what has to be waited for, and how. tcgen05.shift stands for operations of the tensor
core: it reads and writes the lanes of warp 1, and thread 0 begins it, of warp 0.

What is ordered by relaxed synchronisation is the ISA's table of patterns (9.7.16.6.4): each must be clean as it is written there,
and a race without any one of its lines.
"""

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
  .shared .align 4 .b32 slot, flag; .shared .align 8 .b64 bar[2];
  mov.u32 %i, %tid.x; mov.u32 %v, %i;
  setp.eq.u32 %first, %i, 0; setp.eq.u32 %second, %i, 32; setp.lt.u32 %zero, %i, 32;
  @%first mbarrier.init.shared::cta.b64 [bar], 1; @%first st.relaxed.cta.shared::cta.b32 [flag], 0;
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
        (STORE, STORED, MEET, SHIFT, SHIFT, COMMIT, WAIT, STORE, STORED, LOAD, LOADED, STORE, STORED),
        (STORE, STORED, LOAD, LOADED, MEET, SHIFT, COMMIT, WAIT, LOAD, LOADED),
        (STORE, STORED, MEET, SHIFT, COMMIT, WAIT, OTHER),
        # What a warp has waited for, its threads' operations come behind.
        (STORE, STORED, MEET, "@%zero bra ON;", LOAD, LOADED, OTHER, "ON:"),
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
            "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between, or "
            "tcgen05.fence::before_thread_sync and a barrier",
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
    # A shift reads lanes 33 to 63, and writes lanes 32 to 62; one behind another meets what that has written at 33.
    shifts = past.startswith("shift")
    lane = 32 if (body[-1] == LOAD and shifts) or (verb == "writes" and not shifts) else 33
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
        "reads lane 33, column 0 of tensor memory, which tcgen05.st of thread (32, 0, 0) of block (0, 0, 0) wrote at PTX line "
        "16; no tcgen05.wait::st follows it"
    )


# ---- loads and stores of one warp ------------------------------------------------------------------------------------

ADDED = "add.u32 %v, %w0, %w7;"


@pytest.mark.parametrize(
    ("body", "verb", "past", "which"),
    [
        ((STORE, LOAD), "reads", "st", "st"),
        ((STORE, STORE), "writes", "st", "st"),
        # A dependency of registers orders no accesses to memory.
        ((STORE, STORED, LOAD, ADDED, STORE), "writes", "ld", "ld"),
        ((STORE, STORED, LOAD, STORED, STORE), "writes", "ld", "ld"),
    ],
)
def test_loads_and_stores_of_a_warp_are_in_order_after_a_wait(
    body: tuple[str, ...], verb: str, past: str, which: str
) -> None:
    with pytest.raises(Race) as raised:
        launch(*body)
    done = "wrote" if past == "st" else "read"
    line = 15 + max(i for i, text in enumerate(body[:-1]) if f"tcgen05.{past}." in text)
    assert raised.value.message == (
        f"{verb} lane 0, column 0 of tensor memory, which tcgen05.{past} of thread (0, 0, 0) of block (0, 0, 0) {done} at PTX "
        f"line {line + 1}; no tcgen05.wait::{which} follows it"
    )
    wait = STORED if which == "st" else LOADED
    launch(*body[:-1], wait, body[-1])


def test_a_register_may_be_read_before_the_wait() -> None:
    """The ISA respects its dependency (9.7.16.6.4.5)."""
    launch(STORE, STORED, LOAD, ADDED, "setp.ne.u32 %p, %v, %i; @%p trap;".replace("%v", "%w0"), LOADED)


def test_a_wait_behind_the_barrier_is_too_late() -> None:
    """Though warp 1 executes it before the shift."""
    late = "@%zero bra SHIFT; tcgen05.wait::st.sync.aligned; SHIFT: @%zero nanosleep.u32 1;"
    with pytest.raises(Race, match="nothing orders them: a barrier is missing between"):
        launch(STORE, MEET, late, "bar.warp.sync -1; bar.warp.sync -1;", SHIFT)


# ---- relaxed synchronisation, and tcgen05.fence ----------------------------------------------------------------------

BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
ARRIVE = "@%second mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [bar];"
RELAXED = "W: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p, [bar], 0; @!%p bra W;"
ARRIVED = "@%second mbarrier.arrive.shared::cta.b64 _, [bar];"
RAISE = "@%second st.relaxed.cta.shared::cta.b32 [flag], 1;"
SEEN = "R: ld.relaxed.cta.shared::cta.b32 %v, [flag]; setp.ne.u32 %p, %v, 1; @%p bra R;"
HAND = "@%second st.release.cta.shared::cta.b32 [flag], 1;"
TAKEN = SEEN.replace("relaxed", "acquire")
FENCE = "fence.acq_rel.cta;"

NO_BEFORE = "what orders them is relaxed, and no tcgen05.fence::before_thread_sync stands before it"
NO_AFTER = "what orders them is relaxed, and no tcgen05.fence::after_thread_sync stands behind it"
NOTHING = "nothing orders them: a barrier is missing between"
NOT_WAITED = "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between"
PIPELINE = f"{NOT_WAITED}, or tcgen05.fence::before_thread_sync and a barrier"


def two(one: tuple[str, ...], other: tuple[str, ...], before: tuple[str, ...] = (STORE, STORED, MEET)) -> None:
    """Warp 1 executes the first text, warp 0 the other one."""
    launch(*before, "@%zero bra ZERO;", *one, "bra MET;", "ZERO:", *other, "MET:")


@pytest.mark.parametrize(
    ("one", "other", "missing"),
    [
        # Non-pipelined instructions, different threads: what each line is for.
        ((LOAD, LOADED, BEFORE, ARRIVE), (RELAXED, AFTER, SHIFT), {BEFORE: NO_BEFORE, AFTER: NO_AFTER, RELAXED: NOTHING}),
        ((LOAD, LOADED, BEFORE, RAISE), (SEEN, AFTER, SHIFT), {BEFORE: NO_BEFORE, AFTER: NO_AFTER, SEEN: NOTHING}),
        ((STORE, STORED, BEFORE, ARRIVE), (RELAXED, AFTER, SHIFT), {BEFORE: NO_BEFORE, AFTER: NO_AFTER, RELAXED: NOTHING}),
        # Fences of all memory do, too.
        ((LOAD, LOADED, FENCE, ARRIVE), (RELAXED, "fence.sc.cta;", SHIFT), {FENCE: NO_BEFORE, "fence.sc.cta;": NO_AFTER}),
        # What releases and acquires needs no fence; of two sides that are relaxed or not, the relaxed one does.
        ((LOAD, LOADED, ARRIVED), (WAIT, SHIFT), {WAIT: NOTHING}),
        ((LOAD, LOADED, HAND), (TAKEN, SHIFT), {TAKEN: NOTHING}),
        ((LOAD, LOADED, BEFORE, ARRIVE), (WAIT, SHIFT), {BEFORE: NO_BEFORE}),
        ((LOAD, LOADED, ARRIVED), (RELAXED, AFTER, SHIFT), {AFTER: NO_AFTER}),
        # Pipelined instructions, different threads.
        ((OTHER, BEFORE, ARRIVE), (RELAXED, AFTER, SHIFT), {BEFORE: NO_BEFORE, AFTER: NO_AFTER, RELAXED: PIPELINE}),
        ((OTHER, BEFORE, ARRIVED), (WAIT, SHIFT), {BEFORE: PIPELINE, WAIT: PIPELINE}),
    ],
)  # fmt: skip
def test_fences_around_relaxed_synchronisation(
    one: tuple[str, ...], other: tuple[str, ...], missing: dict[str, str]
) -> None:
    two(one, other)
    for line, why in missing.items():
        with pytest.raises(Race) as raised:
            two(tuple(text for text in one if text != line), tuple(text for text in other if text != line))
        assert raised.value.message.partition("; ")[2] == why, line


def test_a_commit_and_a_relaxed_wait() -> None:
    """The same thread and another: the commit is a fence before, the fence after must stand."""
    commit = COMMIT.replace("%first", "%second")
    two((OTHER, commit), (RELAXED, AFTER, SHIFT))
    two((OTHER, commit, RELAXED.replace("W", "V"), AFTER, LOAD, LOADED), ())
    for one, other in (
        ((OTHER, commit), (RELAXED, SHIFT)),
        ((OTHER, commit, RELAXED.replace("W", "V"), LOAD, LOADED), ()),
    ):
        with pytest.raises(Race) as raised:
            two(one, other)
        assert raised.value.message.partition("; ")[2] == NO_AFTER


def test_a_completion_is_handed_on() -> None:
    """Thread 32 shifts, warp 0 waits for the commit and hands it on, warp 1 loads: the ISA's composed example."""
    commit = COMMIT.replace("%first", "%second")
    hand = ARRIVE.replace("%second", "%first").replace("[bar]", "[bar+8]")
    take = RELAXED.replace("W", "V").replace("[bar]", "[bar+8]")
    one, other = (OTHER, commit, take, AFTER, LOAD, LOADED), (RELAXED, AFTER, BEFORE, hand)
    two(one, other)
    for first, second, why in (
        (one, (RELAXED, BEFORE, hand), NOT_WAITED),
        (one, (RELAXED, AFTER, hand), NO_BEFORE),
        ((OTHER, commit, take, LOAD, LOADED), other, NO_AFTER),
    ):
        with pytest.raises(Race) as raised:
            two(first, second)
        assert raised.value.message.partition("; ")[2] == why


def test_what_was_before_in_the_pipeline_is_complete_with_what_comes_behind() -> None:
    """Thread 32 shifts columns 8 to 15, hands the pipeline on, and warp 0's commit is of both."""
    first = OTHER.replace("[%upper]", "[%upper+8]")
    commit = COMMIT.replace("[bar]", "[bar+8]")
    take = WAIT.replace("W", "V").replace("[bar]", "[bar+8]")
    high = LOAD.replace("[%mine]", "[%mine+8]")
    filled = (STORE, STORE.replace("[%mine]", "[%mine+8]"), STORED, MEET)
    two((first, BEFORE, ARRIVE, take, high, LOADED), (RELAXED, AFTER, SHIFT, commit), filled)
    with pytest.raises(Race, match="its completion is not waited for"):
        two((first, BEFORE, ARRIVE, take, high, LOADED), (RELAXED, SHIFT, commit), filled)
