"""Launches without Python that native code shares with workers, which a function of Python stands for here."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planned import Code, planned
from weft.codegen import compile as compiler
from weft.codegen import kernel as abi
from weft.runtime import direct, direct_words, executor, spinning
from weft.runtime.arguments import Parameter, bind
from weft.runtime.executor import Pool
from weft.runtime.plans import Call
from weft.runtime.workspace import TICKET, Workspace

pytestmark = pytest.mark.jit

assert compiler is not None  # the code is compiled where the compiler has been loaded

PARAMETERS = (Parameter("n"),)
CALL = Call((5,), {}, PARAMETERS, bind("k", PARAMETERS, (5,)).key)
SHARE = 3
_WORKERS: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)


class Workers:
    """Stand for native code's function of workers: ``outcome`` is what sharing a launch gives. ``asked`` has the arguments,
    ``seen`` words of the launch: shares, what claims, chunk, the sum of the counters, whether the main thread leads, whether it
    stops."""

    def __init__(self) -> None:
        self.outcome = abi.DONE
        self.asked: list[tuple[int, ...]] = []
        self.seen: list[tuple[Any, ...]] = []
        self.function = _WORKERS(self._work)
        self.address: int = ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def _work(self, *asked: int) -> int:
        self.asked.append(asked)
        space, watch = shared().workspace, executor.pool().watch
        words = words_of(space.launch, abi.SLOTS)
        leads = words_of(watch.address_of_leading, 1)[0]
        self.seen.append(
            (
                words[abi.SHARES],
                words[abi.CLAIMS],
                words[abi.CHUNK],
                sum(words[: abi.RECORD]),
                leads,
                space.fault()[abi.STOP],
            )
        )
        return self.outcome


def words_of(address: int, count: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * count).from_address(address)


def shared() -> direct.Process:
    found = direct.process()
    assert found is not None
    return found


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Workers that look, of three threads. Launches of more than 50 ms are worth them."""
    found, pool, block = Workers(), executor.pool(), shared().block
    words = words_of(pool.address_of_words, len(executor.WORDS))
    before, said = list(block), list(words)
    shared().set(threads=3, looking=50_000_000, sleeping=50_000_000)
    words[1:] = found.address, 77, 99, 55
    yield found
    words[:] = said
    for at, name in enumerate(direct_words.PROCESS):
        if name in ("threads", "looking", "sleeping", "clock"):
            block[at] = before[at]


def launched(code: Code, programs: int = 100) -> None:
    plans, slow = planned(code, CALL)
    plans.function((programs, 1, 1), 5)
    assert not slow


def test_a_launch_is_shared_without_python(workers: Workers) -> None:
    """What is asked of workers, what of the launch they find, and what is written down: its end and its pace."""
    code, pool = Code(1), executor.pool()
    pool.ended = 0
    ctypes.memset(shared().workspace.launch, 255, 8 * abi.SHARES)
    launched(code)
    assert (code.seen, code.spreads, code.rejoined, code.ended) == ([], [], [], [])
    space = shared().workspace
    assert workers.asked == [(SHARE, 77, 2, code.address, space.launch, 0, space.address + TICKET, 99)]
    assert workers.seen == [(3, 55, 100 // (3 * abi.CHUNKS_PER_THREAD), 0, 1, 0)]
    assert pool.ended > 0
    assert 0 <= code.pace[0] < 1e9
    assert not shared().is_busy
    assert not words_of(pool.watch.address_of_leading, 1)[0]


def test_workers_need_scratch_memory(workers: Workers) -> None:
    code = Code(1)
    code.scratch = 4096
    launched(code)
    assert workers.asked[0][5] == 4096


def test_there_are_at_most_so_many_shares(workers: Workers) -> None:
    shared().set(threads=200)
    for programs in (150, 2):
        launched(Code(1), programs)
    assert [seen[0] for seen in workers.seen] == [abi.MOST_SHARES, 2]
    assert [asked[2] for asked in workers.asked] == [149, 1]


def test_launches_that_were_short_are_not_shared(workers: Workers) -> None:
    code = Code(1, pace=10)
    launched(code)
    assert (len(code.seen), workers.asked) == (1, [])
    code.pace[0] = 1_000_000
    launched(code)
    assert (len(code.seen), len(workers.asked)) == (1, 1)
    assert code.pace[0] < 1_000_000


def test_python_wakes_workers_that_sleep(workers: Workers) -> None:
    """And where there are none yet, or there is no clock."""
    code = Code(1)
    workers.outcome = spinning.FEW
    launched(code)
    assert (len(workers.asked), code.spreads, code.pace[0]) == (1, [(100,)], float("inf"))
    shared().set(clock=0)
    launched(code)
    words_of(executor.pool().address_of_words, 2)[1] = 0
    launched(code)
    assert (len(workers.asked), code.spreads, code.rejoined) == (1, [(100,)] * 3, [])


@pytest.mark.parametrize("outcome", [spinning.WAITS, abi.PAUSED, abi.FAULT, abi.STOPPED])
def test_python_ends_a_launch_that_goes_on(workers: Workers, outcome: int) -> None:
    """The time that it took is known where the caller's part has ended."""
    code, watch = Code(1), executor.pool().watch
    workers.outcome = outcome
    rejoin, led = code.rejoin, list[int]()

    def spying(workspace: Workspace, status: int) -> None:
        led.append(words_of(watch.address_of_leading, 1)[0])
        assert workspace is shared().workspace
        assert shared().is_busy
        rejoin(workspace, status)

    code.rejoin = spying
    launched(code)
    assert (code.rejoined, led, code.spreads, shared().is_busy) == ([outcome], [0], [], False)
    assert (code.pace[0] < float("inf")) is (outcome == spinning.WAITS)


def test_a_launch_that_an_exception_ends_is_stopped_and_waited_for(workers: Workers) -> None:
    """By native code: one worker has not begun, and one leaves later."""
    code, boxes, stops = Code(1), spinning.Boxes(2), list[int]()
    words_of(executor.pool().address_of_words, 4)[1:] = boxes.native
    states = [words_of(boxes.native[1] + 64 * number, 1) for number in (1, 2)]
    states[0][0] = states[1][0] = spinning.READY
    code.statuses = [abi.PAUSED]
    space = shared().workspace
    ticket = words_of(space.address + TICKET, 1)

    def leaves() -> None:
        time.sleep(0.05)
        stops.append(space.fault()[abi.STOP])
        ticket[0] -= 1

    leaving = threading.Thread(target=leaves)

    def raises(workspace: Workspace, status: int) -> None:
        assert [status, shared().is_busy, ticket[0], states[0][0]] == [abi.PAUSED, True, 2, spinning.POSTED]
        states[1][0] = spinning.RUNNING
        leaving.start()
        raise KeyboardInterrupt

    code.rejoin = raises
    with pytest.raises(KeyboardInterrupt):
        launched(code)
    assert (stops, ticket[0], states[0][0], shared().is_busy) == ([1], 0, spinning.READY, False)


def test_a_pause_that_came_late_is_seen_to(workers: Workers) -> None:
    """The watch may have asked for a pause when all programs had begun, and have put its handler in place."""
    code = Code(1)
    work = workers.function

    def late(*asked: int) -> int:
        shared().workspace.pause()
        return work(*asked)

    function = _WORKERS(late)
    address = ctypes.cast(function, ctypes.c_void_p).value
    words_of(executor.pool().address_of_words, 2)[1] = address or 0
    launched(code)
    assert (code.ended, code.rejoined) == ([abi.DONE], [])


# ---- the end in Python ----------------------------------------------------------------------------------------------


def rejoined(status: int, outcomes: int = 0, then: Callable[[], int] = lambda: abi.DONE) -> int:
    """`Pool.rejoin` after native code gave ``status`` and workers ``outcomes``; the caller's part goes on as ``then``."""
    space = Workspace()
    words_of(space.address + TICKET, 2)[1] = outcomes
    return Pool(3).rejoin(lambda launch, thread: then(), space, status)


def test_the_end_of_a_launch_is_that_of_all_its_threads() -> None:
    done, fault, stopped = (1 << status for status in (abi.DONE, abi.FAULT, abi.STOPPED))
    assert rejoined(spinning.WAITS, done) == rejoined(abi.PAUSED, done) == executor.DONE
    assert rejoined(spinning.WAITS, done | fault) == rejoined(abi.FAULT, stopped) == executor.FAULT
    assert rejoined(abi.PAUSED, done, lambda: abi.FAULT) == executor.FAULT
    for status, outcomes in ((abi.STOPPED, done), (spinning.WAITS, stopped)):
        with pytest.raises(KeyboardInterrupt):
            rejoined(status, outcomes)


def test_a_paused_launch_goes_on_until_it_is_done() -> None:
    statuses = [abi.PAUSED, abi.PAUSED, abi.DONE]
    assert rejoined(abi.PAUSED, then=lambda: statuses.pop(0)) == executor.DONE
    assert statuses == []
