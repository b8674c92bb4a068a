"""Votes, matches, reductions, elections and barriers of warps, against models that go lane by lane."""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import execute
from emulator_integers import array, wrap
from weft.emulator import BarrierFault, PTXError, Race, Undefined
from weft.emulator.arith.total_order import ordered

EVERYONE = 0xFFFFFFFF
RNG = np.random.default_rng(7)
COUNT = 128


def groups(active: NDArray[np.bool_], members: NDArray[np.uint32]) -> list[list[int]]:
    """For each thread, the threads its answer is over: those its mask names and that are there."""
    found: list[list[int]] = []
    for t in range(active.size):
        first = t // 32 * 32
        found.append([first + i for i in range(32) if members[t] >> i & 1 and active[first + i]])
    return found


def lanes(threads: Sequence[int]) -> int:
    return sum(1 << (t % 32) for t in threads)


def cases() -> list[tuple[str, NDArray[np.bool_], NDArray[np.uint32]]]:
    """Who is there, and with which masks: everyone; a random half, named by all of the warp's lanes; lanes by residue."""
    everyone = np.ones(COUNT, np.bool_)
    half = RNG.random(COUNT) < 0.5
    named = np.array([sum(1 << i for i in range(32) if half[w * 32 + i]) for w in range(COUNT // 32)], np.uint32)
    residue = np.array([sum(1 << i for i in range(32) if i % 3 == t % 32 % 3) for t in range(COUNT)], np.uint32)
    return [
        ("everyone", everyone, np.full(COUNT, EVERYONE, np.uint32)),
        ("half", half, np.repeat(named, 32)),
        ("thirds", everyone, residue),
        ("thirds of half", half, residue & np.repeat(named, 32)),
    ]


CASES = cases()


def ask(text: str, inputs: dict[str, tuple[str, Any]], outputs: dict[str, str], case: int) -> dict[str, NDArray[Any]]:
    """Runs the text, with masks in %m and for everyone also as a constant."""
    _, active, members = CASES[case]
    inputs = {**inputs, "m": ("u32", members)}
    got = execute(text, inputs, outputs, active=active, block=64)
    if case == 0:
        constant = execute(text.replace("%m", "0xFFFFFFFF"), inputs, outputs, block=64)
        assert all(np.array_equal(constant[name], got[name]) for name in outputs)
    return got


VOTES: dict[str, Callable[[list[bool]], bool]] = {
    "all": all,
    "any": any,
    "uni": lambda said: all(said) or not any(said),
}


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("likely", (0.5, 0.02, 0.98))
def test_votes(case: int, likely: float) -> None:
    said = np.random.default_rng(case).random(COUNT) < likely
    said[64:96] = likely > 0.5
    text = "".join(f"vote.sync.{mode}.pred %{mode}, %p, %m;" for mode in VOTES)
    text += "vote.sync.ballot.b32 %d, %p, %m; vote.sync.ballot.b32 %e, !%p, %m; vote.sync.all.pred %none, !%p, %m;"
    outputs = {**dict.fromkeys((*VOTES, "none"), "pred"), "d": "u32", "e": "u32"}
    got = ask(text, {"p": ("pred", said.astype(np.uint8))}, outputs, case)
    _, active, members = CASES[case]
    for t, group in enumerate(groups(active, members)):
        if active[t]:
            answers = [bool(said[i]) for i in group]
            assert [got[mode][t] for mode in VOTES] == [VOTES[mode](answers) for mode in VOTES]
            assert got["none"][t] == (not any(answers))
            assert got["d"][t] == lanes([i for i in group if said[i]])
            assert got["e"][t] == lanes([i for i in group if not said[i]])
        else:
            assert not any(got[name][t] for name in outputs)


def test_votes_without_waiting_are_of_whoever_is_there() -> None:
    said = np.arange(64) % 3 == 0
    active = np.arange(64) % 2 == 0
    text = "vote.ballot.b32 %d, %p; vote.all.pred %q, !%p; activemask.b32 %e;"
    got = execute(text, {"p": ("pred", said.astype(np.uint8))}, {"d": "u32", "q": "pred", "e": "u32"}, active=active)
    for t in range(64):
        here = [i for i in range(t // 32 * 32, t // 32 * 32 + 32) if active[i]]
        want = (lanes([i for i in here if said[i]]), lanes(here)) if active[t] else (0, 0)
        assert (got["d"][t], got["e"][t], got["q"][t]) == (*want, False)


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("kind", ("b32", "b64"))
def test_matches(kind: str, case: int) -> None:
    """Few values, so that many are the same; in the upper half of 64 bits; one warp with all the same."""
    values = np.random.default_rng(case).integers(0, 4, COUNT) << (40 if kind == "b64" else 3)
    values[64:96] = values[64]
    unsigned = f"u{kind[1:]}"
    text = f"match.any.sync.{kind} %d, %a, %m; match.all.sync.{kind} %e|%p, %a, %m; match.all.sync.{kind} %f, %a, %m;"
    outputs = {"d": "u32", "e": "u32", "f": "u32", "p": "pred"}
    got = ask(text, {"a": (unsigned, array(values.tolist(), unsigned))}, outputs, case)
    _, active, members = CASES[case]
    agreed = 0
    for t, group in enumerate(groups(active, members)):
        if active[t]:
            same = [i for i in group if values[i] == values[t]]
            assert got["d"][t] == lanes(same)
            assert got["e"][t] == got["f"][t] == (lanes(group) if same == group else 0)
            assert got["p"][t] == (same == group)
            agreed += same == group
    assert agreed


REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "min": min,
    "max": max,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize(
    ("op", "kind"),
    [
        *((op, kind) for op in ("add", "min", "max") for kind in ("u32", "s32")),
        ("and", "b32"),
        ("or", "b32"),
        ("xor", "b32"),
    ],
)
def test_reductions(op: str, kind: str, case: int) -> None:
    words = np.random.default_rng(case + 10).integers(0, 1 << 32, COUNT, dtype=np.uint64)
    if op in ("and", "or"):
        words = words | 0xFFFF0000 if op == "and" else words & 0x10101010
    a = array(words.tolist(), "u32")
    got = ask(f"redux.sync.{op}.{kind} %d, %a, %m;", {"a": ("u32", a)}, {"d": "u32"}, case)["d"]
    _, active, members = CASES[case]
    for t, group in enumerate(groups(active, members)):
        values = [wrap(int(a[i]), kind) for i in group]
        want = functools.reduce(REDUCTIONS[op], values) & EVERYONE if active[t] else 0
        assert got[t] == want


def bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


FLOATS = [0.0, -0.0, 1.0, -1.0, 3.5, -2.5e38, 2.5e38, 1e-45, -1e-45, float("inf"), -float("inf")]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("op", ("min", "max"))
@pytest.mark.parametrize("absolute", (False, True))
@pytest.mark.parametrize("nan", (False, True))
def test_reductions_of_floats(op: str, absolute: bool, nan: bool, case: int) -> None:
    """-0.0 is below 0.0. A NaN counts only with .NaN; where there is nothing but NaNs the result is one."""
    rng = np.random.default_rng(case + 20)
    chosen = [bits(FLOATS[int(i)]) for i in rng.integers(0, len(FLOATS), COUNT)]
    chosen[:32] = [bits(v) for v in (0.0, -0.0)] * 16
    for t in (70, 75, 80, *range(96, 128)):
        chosen[t] = (0x7FC00001, 0xFF812345)[t % 2]
    name = f"redux.sync.{op}{'.abs' if absolute else ''}{'.NaN' if nan else ''}.f32"
    got = ask(f"{name} %d, %a, %m;", {"a": ("u32", array(chosen, "u32"))}, {"d": "u32"}, case)["d"]
    _, active, members = CASES[case]

    def key(word: int) -> tuple[float, int]:
        value = struct.unpack("<f", struct.pack("<I", word))[0]
        return (value, 0 if word >> 31 else 1)

    for t, group in enumerate(groups(active, members)):
        words = [chosen[i] & (0x7FFFFFFF if absolute else EVERYONE) for i in group]
        numbers = [w for w in words if w & 0x7FFFFFFF <= 0x7F800000]
        spoiled = not numbers or (nan and len(numbers) < len(words))
        want = 0x7FFFFFFF if spoiled else {"min": min, "max": max}[op](numbers, key=key)
        assert got[t] == (want if active[t] else 0)


def test_floats_as_ordered_integers() -> None:
    values = sorted(FLOATS, key=lambda v: (v, str(v)[0] != "-"))
    numbers = ordered(array([bits(v) for v in values], "u32"))
    assert (np.diff(numbers.astype(np.int64)) > 0).all()
    assert np.array_equal(ordered(numbers).view(np.uint32), array([bits(v) for v in values], "u32"))
    assert ordered(array([bits(-0.0)], "u32")).tolist() == [-1]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_elections(case: int) -> None:
    """The leader is the lowest lane; the lane may go to the sink."""
    got = ask("elect.sync %d|%p, %m; elect.sync _|%q, %m;", {}, {"d": "u32", "p": "pred", "q": "pred"}, case)
    _, active, members = CASES[case]
    for t, group in enumerate(groups(active, members)):
        if active[t]:
            assert (got["d"][t], got["p"][t], got["q"][t]) == (group[0] % 32, group[0] == t, group[0] == t)


def test_votes_of_a_warp_that_is_not_full() -> None:
    got = execute("vote.sync.ballot.b32 %d, %p, -1;", {"p": ("pred", np.ones(40, np.uint8))}, {"d": "u32"}, block=40)
    assert got["d"].tolist() == [EVERYONE] * 32 + [0xFF] * 8


EXCHANGE = """
    mov.u32 %t, %tid.x;
    shl.b32 %at, %t, 2;
    st.shared.u32 [%at], %a;
    BARRIER
    xor.b32 %at, %at, 4;
    ld.shared.u32 %d, [buffer+%at];
""".replace("[buffer+%at]", "[%at]")


@pytest.mark.parametrize("mask", ("0xFFFFFFFF", "%m"))
def test_what_lanes_write_before_the_barrier_others_read_after_it(mask: str) -> None:
    a = np.arange(64, dtype=np.uint32) * 3
    inputs = {"a": ("u32", a), "m": ("u32", np.full(64, EVERYONE, np.uint32))}
    text = EXCHANGE.replace("BARRIER", f"bar.warp.sync {mask};")
    got = execute(text, inputs, {"d": "u32"}, ".reg .b32 %t, %at; .shared .align 4 .b32 buffer[64];")["d"]
    assert np.array_equal(got, a[np.arange(64) ^ 1])


def test_without_the_barrier_they_race() -> None:
    a = np.arange(64, dtype=np.uint32) * 3
    with pytest.raises(Race):
        execute(
            EXCHANGE.replace("BARRIER", ""),
            {"a": ("u32", a)},
            {"d": "u32"},
            ".reg .b32 %t, %at; .shared .align 4 .b32 buffer[64];",
        )


def test_lanes_at_two_barriers_release_each_other() -> None:
    """Lanes below 16 write and wait at one, the others at another; then each reads what the other half wrote."""
    text = """
        mov.u32 %t, %tid.x; shl.b32 %at, %t, 2; and.b32 %l, %t, 31;
        setp.lt.u32 %p, %l, 16;
        st.shared.u32 [%at], %a;
        @%p bra LOW;
        bar.warp.sync 0xFFFFFFFF;
        bra END;
        LOW: bar.warp.sync 0xFFFFFFFF;
        END: xor.b32 %at, %at, 64;
        ld.shared.u32 %d, [%at];
    """
    declarations = ".reg .b32 %t, %at, %l; .reg .pred %p; .shared .align 4 .b32 buffer[64];"
    a = np.arange(64, dtype=np.uint32) + np.uint32(7)
    got = execute(text, {"a": ("u32", a)}, {"d": "u32"}, declarations)["d"]
    assert np.array_equal(got, a[np.arange(64) ^ 16])


def test_a_barrier_of_some_lanes_does_not_wait_for_the_others() -> None:
    text = """
        mov.u32 %t, %tid.x;
        setp.lt.u32 %p, %t, 16;
        @%p bar.warp.sync 0x0000FFFF;
        @!%p bar.warp.sync 0xFFFF0000;
        mov.u32 %d, 1;
    """
    got = execute(text, {"a": ("u32", np.zeros(32, np.uint32))}, {"d": "u32"}, ".reg .b32 %t; .reg .pred %p;")["d"]
    assert got.tolist() == [1] * 32


def test_a_barrier_many_times_over() -> None:
    """Half of the lanes are back at the barrier each time before the others have written: they wait, and read what is new."""
    text = """
        mov.u32 %t, %tid.x; and.b32 %l, %t, 31; shl.b32 %at, %t, 2; xor.b32 %other, %at, 64;
        setp.lt.u32 %p, %l, 16;
        mov.u32 %n, 0; mov.u32 %d, 0;
        st.shared.u32 [%at], %n;
        HEAD:
        bar.warp.sync %m;
        ld.shared.u32 %x, [%other];
        setp.ne.u32 %q, %x, %n;
        @%q add.u32 %d, %d, 1;
        bar.warp.sync %m;
        add.u32 %n, %n, 1;
        setp.eq.u32 %q, %n, 5;
        @%q bra END;
        @%p st.shared.u32 [%at], %n;
        @%p bra HEAD;
        add.u32 %d, %d, 100;
        st.shared.u32 [%at], %n;
        bra HEAD;
        END:
    """
    declarations = ".reg .b32 %t, %l, %at, %other, %n, %x; .reg .pred %p, %q; .shared .align 4 .b32 buffer[64];"
    members = np.full(64, EVERYONE, np.uint32)
    got = execute(text, {"m": ("u32", members)}, {"d": "u32"}, declarations)["d"]
    assert got.tolist() == [0 if t % 32 < 16 else 400 for t in range(64)]


def test_a_barrier_whose_lanes_exit() -> None:
    some = np.arange(32) < 8
    got = execute(
        "bar.warp.sync 0xFFFFFFFF; mov.u32 %d, %a;",
        {"a": ("u32", np.full(32, 9, np.uint32))},
        {"d": "u32"},
        active=some,
    )
    assert got["d"].tolist() == [9 if on else 0 for on in some]


def test_a_barrier_whose_lanes_never_come() -> None:
    text = """
        mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 4;
        @%p bar.warp.sync 0x000000FF;
        @!%p vote.sync.all.pred %p, %p, 0xFFFFFFFF;
        mov.u32 %d, 1;
    """
    with pytest.raises(BarrierFault) as caught:
        execute(text, {"a": ("u32", np.zeros(32, np.uint32))}, {"d": "u32"}, ".reg .b32 %t; .reg .pred %p;")
    assert caught.value.message == (
        "threads wait for what will never come:\n"
        "    lane 0 of a warp waits at bar.warp.sync with the mask 0x000000ff; lanes 0x000000f0 of it never come\n"
        "    lanes 0xfffffff0 of a warp wait at vote.sync.all.pred for lanes that its mask names and that never come"
    )


@pytest.mark.parametrize(
    "text",
    [
        "vote.sync.any.pred %p, %p, 0xFFFFFFF0",
        "match.any.sync.b32 %d, %a, 0xFFFFFFF0",
        "redux.sync.add.u32 %d, %a, 0xFFFFFFF0",
        "elect.sync %d|%p, 0xFFFFFFF0",
        "bar.warp.sync 0xFFFFFFF0",
    ],
)
def test_a_lane_must_be_in_its_own_mask(text: str) -> None:
    with pytest.raises(Undefined) as caught:
        execute(f"{text};", {"a": ("u32", np.zeros(32, np.uint32))}, {"d": "u32", "p": "pred"})
    assert caught.value.message == "lane 0 executes it with the mask 0xfffffff0, which does not name that lane"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vote.sync.ballot.pred %p, %p, -1", "vote.ballot does not give .pred"),
        ("vote.sync.all.b32 %d, %p, -1", "vote.all does not give .b32"),
        ("match.any.sync.b32 %d|%p, %a, -1", "match.any.sync has one result"),
        ("redux.sync.add.b32 %d, %a, -1", "redux.sync.add is not for .b32"),
        ("redux.sync.xor.u32 %d, %a, -1", "redux.sync.xor is not for .u32"),
        ("redux.sync.add.f32 %d, %a, -1", "redux.sync.add is not for .f32"),
        ("redux.sync.min.abs.u32 %d, %a, -1", ".abs and .NaN are for .f32 only"),
        ("elect.sync %d, -1", "elect.sync has two results, d|p"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("u32", np.zeros(32, np.uint32))}, {"d": "u32", "p": "pred"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
