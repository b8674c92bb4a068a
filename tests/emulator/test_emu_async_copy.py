"""cp.async: what is copied, against slices of bytes; groups, against what each thread has waited for; and what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator_harness import kernel, run
from weft.emulator import Checks, Fault, Misaligned, OutOfBounds, PTXError, Race, Undefined
from weft.emulator.machine.active import Active
from weft.emulator.ops.async_groups import Groups

DECLARATIONS = """.shared .align 16 .b8 data[4096]; .shared .align 8 .b64 bar[4];
  .reg .b64 %s<8>; .reg .pred %q<8>; .reg .b32 %x<16>; .reg .b64 %y<8>;"""

PLACES = """
  mov.u32 %x0, %tid.x; ld.param.u64 %y0, [p_src]; ld.param.u64 %y1, [p_dst]; mov.u32 %x9, data;
  mul.wide.u32 %y2, %x0, 16; add.u64 %y0, %y0, %y2; add.u64 %y1, %y1, %y2; shl.b32 %x1, %x0, 4; add.u32 %x1, %x1, %x9;
"""
"""%y0, %y1, %x1: each thread's 16 bytes of the source, of the destination, and of shared memory."""

OUT = """
  ld.shared.v4.b32 {%x4, %x5, %x6, %x7}, [%x1]; st.global.v4.b32 [%y1], {%x4, %x5, %x6, %x7};
"""


def program(text: str) -> str:
    """A kernel of two pointers whose text is surrounded by nothing."""
    ptx = kernel("BODY", {}, {"src": "u64", "dst": "u64"}, DECLARATIONS)
    head, rest = ptx.split("BODY")
    return head + PLACES + text + "\n  ret;\n}\n" + rest[:0]


def source(threads: int = 32) -> np.ndarray[Any, Any]:
    return np.random.default_rng(threads).integers(0, 256, 16 * threads).astype(np.uint8)


def copied(text: str, threads: int = 32, before: int = 0xEE) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The source, and what each thread's 16 bytes of shared memory hold after the text; they held ``before``."""
    given, found = source(threads), np.zeros(16 * threads, np.uint8)
    word = before * 0x01010101
    fill = f"mov.u32 %x8, {word}; st.shared.v4.b32 [%x1], {{%x8, %x8, %x8, %x8}};\n"
    run(program(fill + text + OUT), [given, found], block=threads)
    return given.reshape(-1, 16), found.reshape(-1, 16)


WAIT = "cp.async.wait_all;"

COPIES = [
    ("cp.async.ca.shared.global [%x1], [%y0], 4;", 4),
    ("cp.async.ca.shared::cta.global [%x1], [%y0], 8;", 8),
    ("cp.async.ca.shared.global.L2::128B [%x1], [%y0], 16;", 16),
    ("cp.async.cg.shared.global [%x1], [%y0], 16;", 16),
    ("mov.b64 %s0, 0; cp.async.cg.shared.global.L2::cache_hint.L2::64B [%x1], [%y0], 16, %s0;", 16),
    ("mov.b64 %s0, 0; cp.async.ca.shared.global.L2::cache_hint [%x1], [%y0], 8, 8, %s0;", 8),
]


@pytest.mark.parametrize(("copy", "size"), COPIES)
@pytest.mark.parametrize("threads", [32, 96])
def test_sizes(copy: str, size: int, threads: int) -> None:
    given, found = copied(copy + WAIT, threads)
    expected = np.full((threads, 16), 0xEE)
    expected[:, :size] = given[:, :size]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_source_sizes(size: int) -> None:
    """Lane i reads i % (size + 1) bytes; the rest of what is copied is zero, the rest of the destination as it was."""
    text = f"rem.u32 %x2, %x0, {size + 1}; cp.async.ca.shared.global [%x1], [%y0], {size}, %x2; {WAIT}"
    given, found = copied(text)
    for lane in range(32):
        n = lane % (size + 1)
        expected = [*given[lane, :n].tolist(), *[0] * (size - n), *[0xEE] * (16 - size)]
        assert found[lane].tolist() == expected


@pytest.mark.parametrize(("predicate", "kept"), [("%q0", 1), ("!%q0", 0)])
def test_ignored_sources(predicate: str, kept: int) -> None:
    """Even lanes have %q0: with it their source is ignored, and zeros are copied."""
    text = (
        f"and.b32 %x2, %x0, 1; setp.eq.u32 %q0, %x2, 0; cp.async.cg.shared.global [%x1], [%y0], 16, {predicate}; {WAIT}"
    )
    given, found = copied(text)
    expected = np.where((np.arange(32) % 2 == kept)[:, None], given, 0)
    np.testing.assert_array_equal(found, expected)


def test_sources_that_are_not_read_need_not_exist() -> None:
    text = f"mov.u64 %y0, 0; mov.u32 %x2, 0; cp.async.cg.shared.global [%x1], [%y0], 16, %x2; {WAIT}"
    assert not copied(text)[1].any()


def test_a_part_of_the_threads() -> None:
    text = f"setp.ge.u32 %q0, %x0, 20; @%q0 cp.async.cg.shared.global [%x1], [%y0], 16; {WAIT}"
    given, found = copied(text)
    np.testing.assert_array_equal(found[20:], given[20:])
    assert (found[:20] == 0xEE).all()


@pytest.mark.parametrize("checks", [Checks.none(), Checks(races=False)])
def test_the_same_without_checks(checks: Checks) -> None:
    given, found = source(), np.zeros(512, np.uint8)
    text = "cp.async.ca.shared.global [%x1], [%y0], 8; cp.async.ca.shared.global [%x1+8], [%y0+8], 8; cp.async.commit_group;"
    run(program(text + "cp.async.wait_group 0;" + WAIT + OUT), [given, found], checks=checks)
    np.testing.assert_array_equal(found, given)


def test_counters() -> None:
    given, found = source(), np.zeros(512, np.uint8)
    outcome = run(program("cp.async.cg.shared.global [%x1], [%y0], 16;" + WAIT + OUT), [given, found])
    (site,) = (i for i, counts in enumerate(outcome.counters.rows()) if counts.get("shared_store_bytes"))
    counts = outcome.counters.rows()[site]
    expected = {
        "executions": 1,
        "threads": 32,
        "shared_store_requests": 1,
        "shared_store_bytes": 512,
        "shared_store_wavefronts": 4,
        "shared_store_ideal_wavefronts": 4,
        "global_load_requests": 1,
        "global_load_bytes": 512,
        "global_load_sectors": 16,
        "global_load_ideal_sectors": 16,
    }
    assert counts == expected


# ---- groups -------------------------------------------------------------------------------------------------------------

TWO_GROUPS = """
  cp.async.ca.shared.global [%x1], [%y0], 4; cp.async.ca.shared.global [%x1+4], [%y0+4], 4; cp.async.commit_group;
  cp.async.ca.shared.global [%x1+8], [%y0+8], 8; cp.async.commit_group;
"""

READ = "ld.shared.u32 %x4, [%x1+{}]; st.global.u32 [%y1], %x4;"


def races(text: str, threads: int = 32) -> str:
    """The race a text has; "" if none."""
    try:
        run(program(text), [source(threads), np.zeros(16 * threads, np.uint8)], block=threads)
    except Race as race:
        return race.message
    return ""


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (TWO_GROUPS + "cp.async.wait_group 1;" + READ.format(4), True),
        (TWO_GROUPS + "cp.async.wait_group 1;" + READ.format(8), False),
        (TWO_GROUPS + "cp.async.wait_group 0;" + READ.format(8), True),
        (TWO_GROUPS + "cp.async.wait_group 2;" + READ.format(0), False),
        (TWO_GROUPS + "cp.async.commit_group; cp.async.wait_group 1;" + READ.format(12), True),
        ("cp.async.ca.shared.global [%x1], [%y0], 4; cp.async.wait_group 0;" + READ.format(0), False),
        ("cp.async.ca.shared.global [%x1], [%y0], 4; cp.async.wait_all;" + READ.format(0), True),
        ("cp.async.ca.shared.global [%x1], [%y0], 4;" + READ.format(0), False),
        ("cp.async.ca.shared.global [%x1], [%y0], 4; mov.u32 %x4, 0; st.shared.u32 [%x1], %x4;", False),
        (WAIT + "cp.async.wait_group 3;" + READ.replace("ld.shared", "mov.u32 %x4, 1; //"), True),
    ],
)
def test_who_may_read_what(text: str, clean: bool) -> None:
    assert (races(text) == "") == clean


def test_the_race_of_a_copy_not_waited_for() -> None:
    assert races("cp.async.ca.shared.global [%x1], [%y0], 4;\n" + READ.format(0)) == (
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, which an asynchronous operation of thread (0, 0, 0) "
        "wrote at PTX line 17; nothing orders them: its completion is not waited for"
    )


NEIGHBOUR = """
  cp.async.cg.shared.global [%x1], [%y0], 16; cp.async.wait_all;
  {between}
  xor.b32 %x3, %x1, 512; ld.shared.u32 %x4, [%x3]; st.global.u32 [%y1], %x4;
"""


def test_copies_of_another_warp_need_a_barrier_too() -> None:
    """Each warp waits for its own copies: what the other one copied it has not seen."""
    assert races(NEIGHBOUR.format(between=""), 64)
    assert races(NEIGHBOUR.format(between="bar.sync 0;"), 64) == ""


def test_threads_that_commit_apart() -> None:
    """Odd lanes commit once, even lanes twice: ``wait_group 1`` completes the first group of even lanes only."""
    text = """
    cp.async.ca.shared.global [%x1], [%y0], 4; cp.async.commit_group;
    and.b32 %x2, %x0, 1; setp.eq.u32 %q0, %x2, 0; @!%q0 bra MEET;
    cp.async.commit_group;
    MEET: cp.async.wait_group 1;
    """
    assert races(text + "@%q0 ld.shared.u32 %x4, [%x1];") == ""
    text_of_a_warp_apart = text.replace("and.b32 %x2, %x0, 1", "shr.u32 %x2, %x0, 5")
    assert races(text_of_a_warp_apart + "@%q0 ld.shared.u32 %x4, [%x1];", 64) == ""
    assert races(text_of_a_warp_apart + "@!%q0 ld.shared.u32 %x4, [%x1];", 64)


class _Told:
    """A machine of which only the race detector's calls matter: which warps were told of which operations."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.order = self
        self.told: list[tuple[int, Any, list[int]]] = []
        self.agents = 0

    def start(self, warps: Any, together: int = 1, agent: int | None = None) -> int:
        self.agents += agent is None
        return agent or self.agents

    def finish(self, agent: int, key: Any = None, warps: Any = None) -> None:
        self.told.append((agent, key, warps.tolist()))


def test_groups_are_per_thread() -> None:
    """Against lists of groups kept for each of 64 threads."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        machine: Any = _Told(64)
        groups = Groups(machine)
        opened: list[list[int]] = [[] for _ in range(64)]
        closed: list[list[list[int]]] = [[] for _ in range(64)]
        for _ in range(40):
            mask = np.repeat(rng.integers(0, 2, 2) > 0, 32) if rng.random() < 0.5 else rng.random(64) < 0.7
            if not mask.any():
                continue
            active, members = Active(mask), mask.nonzero()[0].tolist()
            machine.told.clear()
            match int(rng.integers(0, 3)):
                case 0:
                    agent: Any = groups.begin(active)
                    for t in members:
                        opened[t].append(agent)
                case 1:
                    groups.commit(active)
                    for t in members:
                        closed[t].append(opened[t])
                        opened[t] = []
                case _:
                    pending = int(rng.integers(0, 3))
                    groups.wait(active, pending)
                    expected: set[tuple[int, int]] = set()
                    for t in members:
                        done = closed[t][: max(len(closed[t]) - pending, 0)]
                        expected |= {(agent, t // 32) for group in done for agent in group}
                        for group in done:
                            group.clear()
                    told = {(agent, warp) for agent, _, warps in machine.told for warp in warps}
                    assert told == expected


# ---- mbarriers -----------------------------------------------------------------------------------------------------------

TRACKED = """
  setp.eq.u32 %q0, %x0, 0;
  @%q0 mbarrier.init.shared.b64 [bar], {count};
  bar.sync 0;
  cp.async.cg.shared.global [%x1], [%y0], 16;
  cp.async.mbarrier.arrive{noinc}.shared.b64 [bar];
  {arrive}
  WAIT: mbarrier.{wait}.parity.shared.b64 %q1, [bar], 0; @!%q1 bra WAIT;
  xor.b32 %x1, %x1, 512;
"""


@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
@pytest.mark.parametrize(
    ("noinc", "count", "arrive"), [(".noinc", 64, ""), ("", 64, "mbarrier.arrive.shared.b64 _, [bar];")]
)
def test_copies_tracked_by_an_mbarrier(noinc: str, count: int, arrive: str, wait: str) -> None:
    text = TRACKED.format(noinc=noinc, count=count, arrive=arrive, wait=wait)
    given, found = source(64), np.zeros(1024, np.uint8)
    run(program(text + OUT), [given, found], block=64)
    np.testing.assert_array_equal(found.reshape(2, 512), given.reshape(2, 512)[::-1])


def test_copies_after_the_arrival_are_not_tracked() -> None:
    late = "cp.async.ca.shared.global [%x1+2048], [%y0], 4;"
    text = TRACKED.format(noinc=".noinc", count=64, arrive=late, wait="try_wait")
    assert races(text + "ld.shared.u32 %x4, [%x1];", 64) == ""
    assert races(text + "ld.shared.u32 %x4, [%x1+2048];", 64)


def test_a_group_that_an_mbarrier_tracks_in_part() -> None:
    """A wait for the group completes what came before the arrival, and what came after it."""
    text = """
    setp.eq.u32 %q0, %x0, 0;
    @%q0 mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    cp.async.ca.shared.global [%x1], [%y0], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    cp.async.ca.shared.global [%x1+4], [%y0+4], 4;
    cp.async.commit_group;
    """
    for place in (0, 4):
        read = f"ld.shared.u32 %x4, [%x1+{place}];"
        assert races(text + "cp.async.wait_group 1;" + read)
        assert races(text + "cp.async.wait_group 0;" + read) == ""


def test_a_loop_that_only_waits_for_mbarriers() -> None:
    """Two hundred rounds of copies that no group is ever committed for."""
    text = """
    setp.eq.u32 %q0, %x0, 0;
    @%q0 mbarrier.init.shared.b64 [bar], 64;
    bar.sync 0;
    mov.u32 %x2, 0;
    LOOP: and.b32 %x3, %x2, 1;
    cp.async.cg.shared.global [%x1], [%y0], 16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    WAIT: mbarrier.try_wait.parity.shared.b64 %q1, [bar], %x3; @!%q1 bra WAIT;
    ld.shared.u32 %x4, [%x1];
    bar.sync 0;
    add.u32 %x2, %x2, 1; setp.lt.u32 %q2, %x2, 200; @%q2 bra LOOP;
    """
    assert races(text, 64) == ""


# ---- what is wrong ------------------------------------------------------------------------------------------------------


def fault_of(text: str, kind: type[Fault], checks: Checks | None = None) -> Fault:
    with pytest.raises(kind) as caught:
        run(program(text), [source(), np.zeros(512, np.uint8)], checks=checks)
    return caught.value


def test_faults() -> None:
    some = "setp.lt.u32 %q0, %x0, 31; @%q0 "
    error = fault_of(some + "cp.async.cg.shared.global [%x1], [%y0+8], 16;", Misaligned)
    assert error.message == "read of 16 bytes at an address that is no multiple of 16"
    error = fault_of("cp.async.cg.shared.global [%x1+4], [%y0], 16;", Misaligned)
    assert error.message == "write of 16 bytes at an address that is no multiple of 16"
    error = fault_of(some + "cp.async.ca.shared.global [%x1], [%y0+1], 4, 1;", Misaligned)
    assert error.message == "read of 1 bytes at an address that is no multiple of 4"
    error = fault_of("cp.async.cg.shared.global [%x1], [%y0+496], 16;", OutOfBounds)
    assert (error.message, error.where.thread) == ("read of 16 bytes of global memory", (1, 0, 0))
    error = fault_of("cp.async.cg.shared.global [%x1+8192], [%y0], 16;", OutOfBounds)
    assert error.message == "write of 16 bytes of shared memory"
    error = fault_of("mov.u32 %x2, 9; cp.async.ca.shared.global [%x1], [%y0], 8, %x2;", Undefined)
    assert error.message == "cp.async of 8 bytes with a src-size of 9"


REFUSED = [
    ("cp.async.cg.shared.global [%x1], [%y0], 8;", "cp.async.cg copies 16 bytes, not 8"),
    ("cp.async.ca.shared.global [%x1], [%y0], 2;", "cp.async.ca copies 4 or 8 or 16 bytes, not 2"),
    ("cp.async.ca.shared.global [%x1], [%y0], %x2;", "an operand of cp must be an integer constant"),
    (
        "cp.async.ca.shared.global.L2::cache_hint [%x1], [%y0], 4;",
        "a cache policy is given where there is .L2::cache_hint, and only there",
    ),
    (
        "cp.async.ca.shared.global [%x1], [%y0], 4, %x2, %s0;",
        "a cache policy is given where there is .L2::cache_hint, and only there",
    ),
    ("cp.async.wait_group -1;", "cp.async.wait_group of -1 groups"),
    ("cp.async.shared.global [%x1], [%y0], 4;", "cp has none of .ca, .cg"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        run(program(text), [source(), source()])
    assert str(caught.value).startswith(f"PTX line {caught.value.line}: {message}\n")
