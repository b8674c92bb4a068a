"""bar, barrier, barrier.cluster: who waits for whom, what is reduced, and what is said of those who never meet."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import kernel, run
from weft.emulator.errors import BarrierFault, PTXError, Race

SHARED = ".reg .b32 %t, %b, %r<9>; .reg .pred %p<9>; .shared .align 8 .b8 data[4096];"


def program(text: str, declarations: str = "") -> str:
    """%t is the thread, %b the address of 4 bytes of shared memory that are the thread's."""
    start = "mov.u32 %t, %tid.x; mov.u32 %b, data; mad.lo.u32 %b, %t, 4, %b; mov.u32 %d, 0;"
    return kernel(start + "\n" + text, {}, {"d": "u32"}, SHARED + declarations)


def result(text: str, block: int = 64, grid: int = 1) -> list[int]:
    out = np.zeros(block * grid, np.uint32)
    run(program(text), [out], grid=grid, block=block)
    return out.tolist()


def fault(text: str, block: int = 64, grid: int = 1) -> BarrierFault:
    with pytest.raises(BarrierFault) as caught:
        result(text, block, grid)
    return caught.value


# ---- who waits for whom ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bar.sync", "bar.cta.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync"]
)
@pytest.mark.parametrize("operands", ["0", "15", "3, 96"])
def test_everyone_waits(name: str, operands: str) -> None:
    # Thread t writes t + 1, and reads what thread 95 - t wrote.
    text = f"""
    add.u32 %r1, %t, 1; st.shared.u32 [%b], %r1; {name} {operands};
    sub.u32 %r2, 95, %t; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    """
    assert result(text, 96, grid=2) == [96 - t for t in range(96)] * 2


def test_a_register_names_the_barrier() -> None:
    # Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2; their partner's value is the neighbouring warp's.
    text = """
    shr.u32 %r1, %t, 6; add.u32 %r1, %r1, 1; st.shared.u32 [%b], %t; bar.sync %r1, 64;
    xor.b32 %r2, %t, 32; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    """
    assert result(text, 128) == [t ^ 32 for t in range(128)]


def test_a_warp_may_arrive_and_then_wait_at_one_barrier() -> None:
    """Both count: a barrier for 64 threads that warp 0 comes to twice is complete, and the next phase begins with none."""
    text = """
    setp.ge.u32 %p0, %t, 32; @%p0 bra OTHER;
    bar.arrive 1, 64; bar.sync 1, 64; bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %d, [%b+128]; bra END;
    OTHER: bar.sync 2, 64; mov.u32 %d, 6; st.shared.u32 [%b], 5; bar.sync 1, 64;
    END: bar.sync 0;
    """
    assert result(text) == [5] * 32 + [6] * 32


def test_one_barrier_orders_its_own_threads_only() -> None:
    text = """
    shr.u32 %r1, %t, 6; add.u32 %r1, %r1, 1; st.shared.u32 [%b], %t; bar.sync %r1, 64;
    xor.b32 %r2, %t, 64; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    """
    with pytest.raises(Race) as caught:
        result(text, 128)
    assert caught.value.message == (
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0x100..0x103, which thread (64, 0, 0) wrote at PTX line 14; "
        "nothing orders them: a barrier is missing between"
    )


def test_producers_arrive_and_consumers_wait() -> None:
    # Warp 0 produces twice, warp 1 consumes: full is barrier 1, empty is barrier 2.
    text = """
    mov.u32 %r4, data; setp.ge.u32 %p1, %t, 32; mov.u32 %r5, 0;
    @%p1 bra CONSUME;
    PRODUCE:
    add.u32 %r1, %t, %r5; st.shared.u32 [%b], %r1; bar.arrive 1, 64; bar.sync 2, 64;
    add.u32 %r5, %r5, 100; setp.lt.u32 %p2, %r5, 200; @%p2 bra PRODUCE;
    bra END;
    CONSUME:
    bar.sync 1, 64;
    sub.u32 %r2, %t, 32; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %r4; ld.shared.u32 %r3, [%r2]; add.u32 %d, %d, %r3;
    bar.arrive 2, 64;
    add.u32 %r5, %r5, 100; setp.lt.u32 %p2, %r5, 200; @%p2 bra CONSUME;
    END:
    """
    assert result(text, 64) == [0] * 32 + [2 * t + 100 for t in range(32)]


def test_arriving_is_not_waiting() -> None:
    # The producer overwrites what the consumer may not have read: nothing orders the second store after the load.
    text = """
    setp.ge.u32 %p1, %t, 32; @%p1 bra CONSUME;
    st.shared.u32 [%b], %t; bar.arrive 1, 64; add.u32 %r1, %t, 9; st.shared.u32 [%b], %r1; bra END;
    CONSUME: bar.sync 1, 64; ld.shared.u32 %d, [%b+-128];
    END:
    """
    with pytest.raises(Race, match="nothing orders them"):
        result(text, 64)


def test_threads_that_have_returned_are_not_waited_for() -> None:
    # Threads from 40 on return; a partial warp and one that is gone altogether. Whoever is left meets twice.
    text = """
    setp.ge.u32 %p1, %t, 40; @%p1 bra END;
    st.shared.u32 [%b], %t; bar.sync 0;
    sub.u32 %r2, 39, %t; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    bar.sync 0; st.shared.u32 [%b], %d;
    END:
    """
    assert result(text, 96, grid=3) == ([39 - t for t in range(40)] + [0] * 56) * 3


def test_threads_that_return_later_are_not_waited_for_either() -> None:
    # Warp 1 spins until warp 0 is at the barrier, as far as it can know, and returns.
    text = """
    setp.lt.u32 %p1, %t, 32; @%p1 bra WAIT; mov.u32 %r1, 0;
    LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 50; @%p2 bra LOOP; bra END;
    WAIT: bar.sync 0; mov.u32 %d, 5;
    END:
    """
    assert result(text, 64) == [5] * 32 + [0] * 32


def test_lanes_of_a_warp_may_come_one_after_the_other() -> None:
    # Lane 0 waits for the other warp first; the rest of its warp is at the barrier before it.
    text = """
    setp.eq.u32 %p1, %t, 0; setp.eq.u32 %p2, %t, 32;
    @%p1 st.shared.u32 [%b+256], 0; bar.sync 0;
    @%p2 bra RELEASE; @!%p1 bra MEET;
    SPIN: ld.acquire.cta.shared.u32 %r1, [%b+256]; setp.eq.u32 %p3, %r1, 0; @%p3 bra SPIN; bra MEET;
    RELEASE: mov.u32 %r2, data; st.release.cta.shared.u32 [%r2+256], 1;
    MEET: bar.sync 0; mov.u32 %d, 1;
    """
    assert result(text, 64) == [1] * 64


def test_barriers_of_partial_warps() -> None:
    # 40 threads: the second warp has 8 and counts as 32.
    assert result("bar.sync 2, 64; mov.u32 %d, 1;", 40) == [1] * 40


def test_a_barrier_without_aligned_may_be_met_at_different_places() -> None:
    text = """
    and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; st.shared.u32 [%b], %t;
    @%p1 bra EVEN; barrier.sync 0; bra READ;
    EVEN: barrier.sync 0;
    READ: xor.b32 %r2, %t, 63; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    """
    assert result(text, 64) == [63 - t for t in range(64)]


# ---- reductions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", ["bar", "barrier", "bar.cta"])
def test_reductions_of_all_threads(opcode: str) -> None:
    # Two blocks of 80: in block 0 threads below 7, in block 1 all threads have the predicate.
    text = f"""
    mov.u32 %r1, %ctaid.x; setp.lt.u32 %p1, %t, 7; setp.eq.u32 %p2, %r1, 1; or.pred %p1, %p1, %p2;
    {opcode}.red.popc.u32 %r2, 0, %p1; {opcode}.red.and.pred %p3, 0, %p1; {opcode}.red.or.pred %p4, 1, %p1;
    {opcode}.red.or.pred %p5, 1, !%p1;
    shl.b32 %d, %r2, 4; @%p3 or.b32 %d, %d, 1; @%p4 or.b32 %d, %d, 2; @%p5 or.b32 %d, %d, 4;
    """
    assert result(text, 80, grid=2) == [7 << 4 | 2 | 4] * 80 + [80 << 4 | 1 | 2] * 80


def test_reductions_of_some_warps_that_come_one_after_the_other() -> None:
    # Warp 2 does something else. Warp 1 comes later, by another way; both instructions are the same reduction.
    text = """
    setp.ge.u32 %p1, %t, 64; @%p1 bra END; and.b32 %r1, %t, 3; setp.eq.u32 %p2, %r1, 0;
    setp.ge.u32 %p1, %t, 32; @%p1 bra LATER;
    bar.red.popc.u32 %d, 4, 64, %p2; bra END;
    LATER: barrier.red.popc.aligned.u32 %d, 4, 64, !%p2;
    END:
    """
    assert result(text, 96) == [8 + 24] * 64 + [0] * 32


# ---- clusters ----------------------------------------------------------------------------------------------------------


def test_a_cluster_of_one_block() -> None:
    text = """
    st.shared.u32 [%b], %t; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    xor.b32 %r2, %t, 63; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    barrier.cluster.arrive.release; add.u32 %d, %d, 1; barrier.cluster.wait.acquire; st.shared.u32 [%b], %d;
    """
    assert result(text, 64, grid=2) == [64 - t for t in range(64)] * 2


def test_warps_that_arrive_late_at_the_cluster() -> None:
    text = """
    setp.lt.u32 %p1, %t, 32; st.shared.u32 [%b], %t; @%p1 bra WAIT; mov.u32 %r1, 0;
    LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 50; @%p2 bra LOOP;
    WAIT: barrier.cluster.arrive; barrier.cluster.wait;
    xor.b32 %r2, %t, 63; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    """
    assert result(text, 64) == [63 - t for t in range(64)]


def test_a_relaxed_arrival_releases_nothing() -> None:
    text = """
    st.shared.u32 [%b], %t; barrier.cluster.arrive.relaxed; barrier.cluster.wait;
    xor.b32 %r2, %t, 63; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r2, %r2, %r3; ld.shared.u32 %d, [%r2];
    """
    with pytest.raises(Race, match="a barrier is missing between"):
        result(text, 64)


# ---- counts ------------------------------------------------------------------------------------------------------------


def test_what_is_counted() -> None:
    out = np.zeros(192, np.uint32)
    outcome = run(program("bar.sync 0; bar.sync 1, 96; mov.u32 %d, 1;"), [out], grid=2, block=96)
    counted = [outcome.counters.value(s, "barriers") for s in range(outcome.counters.sites)]
    assert [n for n in counted if n] == [6, 6]


# ---- what is wrong -------------------------------------------------------------------------------------------------------


def test_a_warp_that_never_comes() -> None:
    text = "setp.ge.u32 %p1, %t, 32; @%p1 bra OTHER; bar.sync 0; bra END; OTHER: bar.sync 1; END:"
    error = fault(text)
    first, *others = error.message.split("\n")
    assert first == "threads wait for what will never come:"
    assert sorted(others) == [
        f"    block (0, 0, 0): 32 of 64 threads have come to barrier {n}; 32 wait at bar.sync, PTX line 13"
        for n in (0, 1)
    ]
    assert error.where.block == (0, 0, 0)
    assert error.where.kernel == "test"


def test_more_threads_expected_than_come() -> None:
    error = fault("setp.ge.u32 %p1, %t, 32; @%p1 bra END; bar.sync 3, 64; END:", grid=3)
    assert error.message == (
        "threads wait for what will never come:\n"
        "    block (0, 0, 0): 32 of 64 threads have come to barrier 3; 32 wait at bar.sync, PTX line 13; "
        "2 more blocks wait so"
    )


def test_more_threads_come_than_expected() -> None:
    # Warp 0 arrives; two warps then come at once to what is for two.
    text = """
    setp.lt.u32 %p1, %t, 32; @%p1 bar.arrive 2, 64; @%p1 bra END; bar.sync 2, 64; END:
    """
    error = fault(text, 96)
    assert error.message == "96 threads come to barrier 2, which is for 64"


def test_lanes_at_two_barriers() -> None:
    text = """
    setp.lt.u32 %p1, %t, 8; @%p1 bra FEW;
    bar.sync 0; bra END;
    FEW:
    bar.sync 0;
    END:
    """
    error = fault(text)
    lines = sorted((error.where.instruction.line, error.message) for _ in [0] if error.where.instruction is not None)
    # Whoever comes second finds the others: 24 lanes at line 15, or 8 at line 17.
    assert lines == [
        (17, "a warp is divided between two barriers: thread (8, 0, 0) and 23 more wait at the one at PTX line 15")
    ]


def test_lanes_that_never_come() -> None:
    # Lane 5 waits for a flag that lane 6 would set after the barrier.
    text = """
    setp.eq.u32 %p1, %t, 5; @!%p1 bra MEET;
    bar.warp.sync 0x60;
    MEET: bar.sync 0; mov.u32 %d, 1;
    """
    error = fault(text)
    assert "; of warp 0 only 31 of 32 threads have come" in error.message
    assert "block (0, 0, 0): 63 of 64 threads have come to barrier 0; 63 wait at bar.sync, PTX line 16" in error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bar.sync 0, 40;", "a barrier for 40 threads, which is no multiple of 32 above 0"),
        ("bar.sync 0, 0;", "a barrier for 0 threads, which is no multiple of 32 above 0"),
        ("bar.arrive 0, 16;", "a barrier for 16 threads, which is no multiple of 32 above 0"),
        ("bar.sync 0, 128;", "a barrier for 128 threads; the block has 64"),
        ("bar.sync 16;", "barrier 16; a block has barriers 0 to 15"),
        ("add.u32 %r1, %t, 15; bar.sync %r1, 32;", "barrier 16; a block has barriers 0 to 15"),
        (
            "setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 0; bra END; A: bar.arrive 0, 64; END:",
            "barrier 0 is for 64 threads here, and for all threads elsewhere",
        ),
        (
            "setp.lt.u32 %p1, %t, 32; @!%p1 bra END; bar.arrive 0, 64; bar.arrive 0, 64; END:",
            "a thread arrives at barrier 0 again before all others have come",
        ),
        (
            "setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 0, 64; bra END; A: bar.red.popc.u32 %d, 0, 64, %p1; END:",
            "barrier 0 is used for a reduction and for something else at once",
        ),
        ("barrier.cluster.wait;", "a thread waits at the cluster's barrier without having arrived"),
        (
            "barrier.cluster.arrive; barrier.cluster.arrive;",
            "a thread arrives at the cluster's barrier again before it has waited",
        ),
    ],
)
def test_wrong_barriers(text: str, message: str) -> None:
    assert fault(text).message == message


def test_a_cluster_that_is_never_complete() -> None:
    text = """
    setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 5; bra END;
    A: barrier.cluster.arrive; barrier.cluster.wait;
    END:
    """
    message = fault(text).message
    assert (
        "block (0, 0, 0): 32 of 64 threads have arrived at the cluster's barrier, others wait at barrier.cluster.wait, "
        "PTX line 15"
    ) in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bar.sync.aligned 0;", "bar is aligned, and has no modifier for it"),
        ("bar.arrive 0;", "bar has 1 operands, expected 2"),
        (
            "bar.red.popc.pred %p1, 0, %p2;",
            "bar.red.popc.pred: popc is of .u32, and and or are of .pred, the others have no type",
        ),
        ("bar.sync.popc.u32 %d, 0;", "popc, and, or belong to red, and red needs one of them"),
        ("bar.wait 0;", "the emulator does not know '.wait' of bar"),
        ("barrier.cluster.arrive.acquire;", "the emulator does not know '.acquire' of barrier"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        result(text)
    assert str(caught.value).split(": ", 1)[1].split("\n")[0] == message
