"""Lanes that come to a .sync instruction by different ways and at different times: what they get does not depend on it.

And what is written under a mask, whatever the mask and however many threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import execute, kernel, run
from weft.emulator.machine.active import Active
from weft.emulator.machine.program import Program
from weft.emulator.ops.registry import MANY, masked
from weft.emulator.ptx import parse

DECLARATIONS = ".reg .b32 %k, %x, %y, %v, %w; .reg .pred %true, %p, %q, %over;"

# Each time round, a generator of each thread's own decides which of three ways of different length it takes back.
LOOP = """
    setp.eq.u32 %true, 0, 0;
    mov.u32 %k, 0;
    mov.u32 %x, %a;
    mov.u32 %d, 0;
    HEAD:
    BODY
    add.u32 %k, %k, 1;
    setp.ge.u32 %over, %k, %n;
    @%over bra END;
    mad.lo.u32 %x, %x, 1664525, 1013904223;
    shr.u32 %y, %x, 30;
    setp.eq.u32 %p, %y, 0;
    @%p bra HEAD;
    setp.eq.u32 %q, %y, 1;
    @%q bra LONG;
    add.u32 %d, %d, 0;
    bra HEAD;
    LONG:
    add.u32 %y, %y, 1;
    setp.lt.u32 %q, %y, 9;
    @%q bra LONG;
    bra HEAD;
    END:
"""


def lanes(threads: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """For each thread, the lanes of its warp that are in a set."""
    words = (threads.reshape(-1, 32) << np.arange(32, dtype=np.uint64)).sum(axis=1)
    return np.repeat(words, 32)


@pytest.mark.parametrize("seed", range(3))
def test_ballots_while_lanes_leave_one_by_one(seed: int) -> None:
    """Threads that have left have ended and are not waited for; all others are in the ballot, in each iteration."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 32, 128, dtype=np.uint32)
    n = rng.integers(1, 12, 128, dtype=np.uint32)
    body = "vote.sync.ballot.b32 %v, %true, -1; mad.lo.u32 %d, %d, 31, %v;"
    got = execute(LOOP.replace("BODY", body), {"a": ("u32", a), "n": ("u32", n)}, {"d": "u32"}, DECLARATIONS)["d"]
    want = np.zeros(128, np.uint64)
    for k in range(12):
        want = np.where(n > k, (want * 31 + lanes(n > k)) % (1 << 32), want)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("groups", (1, 2, 5))
def test_shuffles_among_groups(groups: int, seed: int) -> None:
    """The lanes of a group go round a ring, all equally often; groups do not wait for each other."""
    rng = np.random.default_rng(seed + 10)
    a = rng.integers(0, 1 << 32, 96, dtype=np.uint32)
    group = np.arange(96) % 32 % groups
    members = np.array([sum(1 << i for i in range(32) if i % groups == g) for g in group], np.uint32)
    following = np.array(
        [next(j for j in range(t % 32 + 1, 64) if j % 32 % groups == group[t]) % 32 for t in range(96)]
    )
    body = "add.u32 %w, %a, %k; shfl.sync.idx.b32 %v, %w, %s, 31, %m; mad.lo.u32 %a, %v, 5, %k;"
    inputs = {
        "a": ("u32", a),
        "n": ("u32", (7 + group).astype(np.uint32)),
        "m": ("u32", members),
        "s": ("u32", following.astype(np.uint32)),
    }
    got = execute(LOOP.replace("BODY", body) + "mov.u32 %d, %a;", inputs, {"d": "u32"}, DECLARATIONS, 96)["d"]
    values = a.astype(np.uint64)
    source = np.arange(96) // 32 * 32 + following
    for k in range(7 + groups):
        values = np.where(k < 7 + group, ((values + k)[source] * 5 + k) % (1 << 32), values)
    assert np.array_equal(got, values)


@pytest.mark.parametrize("seed", range(2))
def test_sums_of_a_warp_each_time_round(seed: int) -> None:
    rng = np.random.default_rng(seed + 20)
    a = rng.integers(0, 1 << 20, 64, dtype=np.uint32)
    body = "redux.sync.add.u32 %v, %a, -1; add.u32 %a, %a, %k; add.u32 %d, %d, %v; bar.warp.sync -1;"
    inputs = {"a": ("u32", a), "n": ("u32", np.full(64, 9, np.uint32))}
    got = execute(LOOP.replace("BODY", body), inputs, {"d": "u32"}, DECLARATIONS)["d"]
    sums = np.repeat(a.reshape(-1, 32).sum(axis=1, dtype=np.uint64), 32)
    want = sum(sums + 32 * (k * (k - 1) // 2) for k in range(9))
    assert np.array_equal(got, np.asarray(want) % (1 << 32))


PATTERNS: dict[str, Callable[[NDArray[np.intp]], NDArray[np.bool_]]] = {
    "none": lambda i: i < 0,
    "one": lambda i: i == 5,
    "most": lambda i: i % 32 != 31,
    "odd": lambda i: i % 2 == 1,
    "random": lambda i: np.random.default_rng(3).random(i.size) < 0.5,
}


@pytest.mark.parametrize("count", (64, MANY, 2 * MANY))
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", ("?", "u1", "i2", "f2", "u4", "f4", "i8", "f8"))
def test_writing_under_a_mask(dtype: str, pattern: str, count: int) -> None:
    rng = np.random.default_rng(1)
    before, values = (rng.integers(0, 256, count * 8, dtype=np.uint8).view("u8") % 251 for _ in range(2))
    mask: NDArray[np.bool_] = PATTERNS[pattern](np.arange(count))
    for given in (
        values.astype(dtype),
        values.astype(dtype)[7],
        np.asarray(values.astype(dtype)[9]),
        values.astype("i8"),
    ):
        target = before.astype(dtype)
        masked(target, given, Active(mask))
        converted = np.broadcast_to(np.asarray(given).astype(dtype), count)
        assert [x for x, on in zip(target, mask, strict=True) if on] == [
            x for x, on in zip(converted, mask, strict=True) if on
        ]
        assert np.array_equal(target[~mask], before.astype(dtype)[~mask])


@pytest.mark.parametrize("count", (64, MANY))
def test_writing_halves_and_every_other_element(count: int) -> None:
    mask = np.arange(count) % 3 == 0
    pairs, values = (
        np.zeros((count, 2), np.uint64),
        np.arange(2 * count, dtype=np.uint64).reshape(count, 2) + np.uint64(1),
    )
    masked(pairs, values, Active(mask))
    assert np.array_equal(pairs, values * mask[:, None])
    wide = np.zeros(count, np.uint64)
    masked(wide.view(np.uint32)[::2], values[:, 0].astype(np.uint32), Active(mask))
    assert np.array_equal(wide, values[:, 0] * mask)


def test_nans_are_written_as_they_are() -> None:
    """Bits of a signalling NaN stay."""
    target, values = np.zeros(MANY, np.float32), np.full(MANY, 0x7F800001, np.uint32).view(np.float32)
    masked(target, values, Active(np.arange(MANY) % 2 == 0))
    assert target.view(np.uint32).tolist()[:2] == [0x7F800001, 0]


def test_each_execution_is_counted_once() -> None:
    """However often its lanes had to wait: a warp executes the vote as often as its most patient lane, a thread as often as it
    goes round."""
    rng = np.random.default_rng(4)
    a, n, d = (
        rng.integers(0, 1 << 32, 128, dtype=np.uint32),
        rng.integers(1, 12, 128, dtype=np.uint32),
        np.zeros(128, np.uint32),
    )
    for guard in ("", "@%true "):
        body = f"{guard}vote.sync.ballot.b32 %v, %true, -1; mad.lo.u32 %d, %d, 31, %v;"
        ptx = kernel(LOOP.replace("BODY", body), {"a": "u32", "n": "u32"}, {"d": "u32"}, DECLARATIONS)
        outcome = run(ptx, [a, n, d], block=128)
        program = Program(parse(ptx))
        site = next(i for i, instruction in enumerate(program.instructions) if instruction.opcode == "vote")
        counted = outcome.counters.rows()[site]
        assert (counted["executions"], counted["threads"]) == (int(n.reshape(4, 32).max(axis=1).sum()), int(n.sum()))


def test_a_complete_group_does_not_wait_for_another() -> None:
    """Lanes 24 to 31 come only when lane 0 has gone on; lanes 16 to 23, which their mask names too, wait for them."""
    text = """
        mov.u32 %t, %tid.x;
        setp.eq.u32 %true, 0, 0;
        setp.eq.u32 %first, %t, 0;
        setp.gt.u32 %p, %t, 23;
        @%first st.volatile.shared.u32 [flag], 0;
        bar.warp.sync -1;
        @%p bra SPIN;
        HERE:
        vote.sync.ballot.b32 %d, %true, %m;
        @%first st.volatile.shared.u32 [flag], 1;
        bra END;
        SPIN:
        ld.volatile.shared.u32 %f, [flag];
        setp.eq.u32 %q, %f, 0;
        @%q bra SPIN;
        bra HERE;
        END:
    """
    declarations = ".reg .b32 %t, %f; .reg .pred %true, %first, %p, %q; .shared .align 4 .b32 flag;"
    members = np.where(np.arange(32) < 16, 0x0000FFFF, 0xFFFF0000).astype(np.uint32)
    got = execute(text, {"m": ("u32", members)}, {"d": "u32"}, declarations)["d"]
    assert np.array_equal(got, members)
