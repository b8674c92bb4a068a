"""Launches without Python: which launches fit a plan, what native code hands to the kernel, and where Python takes over."""

from __future__ import annotations

import copy
import ctypes
import gc
import inspect
import math
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import weft
import weft.language as tl
from launch_values import LAUNCHES, PARAMETERS
from planned import GRID, Code, planned
from sampling import examples
from weft.codegen import compile as compiler
from weft.codegen import kernel as abi
from weft.frontend.source import MISSING, References
from weft.runtime import direct, direct_words, executor
from weft.runtime.arguments import Parameter, bind, disjoint, slot_format, to_float32
from weft.runtime.executable import Executable
from weft.runtime.plans import MOST_PLANS, Call

pytestmark = pytest.mark.jit

assert compiler is not None  # the code is compiled where the compiler has been loaded

# ---- which launches fit ---------------------------------------------------------------------------------------------


@examples(600)
@given(LAUNCHES)
def test_a_launch_that_fits_is_bound_as_the_plans_was(launches: list[tuple[Any, ...]]) -> None:
    """Where native code takes a launch, `bind` gives it the tokens of the plan's, says the same of overlapping arrays, and its
    slots are those that native code handed on. The plan's own launch is always taken."""
    first = launches[0]
    bound = bind("k", PARAMETERS, first)
    code = Code(len(bound.slots))
    plans, slow = planned(code, Call(first, {}, PARAMETERS, bound.key))
    if not plans.count or {*bound.read_only} & {*code.written}:
        return
    meaning = disjoint(bound.extents), bound.key
    for values in launches:
        code.seen.clear()
        slow.clear()
        plans.function(GRID, *values)
        assert len(code.seen) + len(slow) == 1
        if slow:
            assert values is not first
            continue
        now = bind("k", PARAMETERS, values)
        assert not {*now.read_only} & {*code.written}
        assert (disjoint(now.extents), now.key) == meaning
        assert code.seen[-1] == struct.pack(f"={slot_format(now.key)}", *to_float32(now.slots))


ARRAY = np.zeros(64, np.float32)
BESIDE = ARRAY[16:32]


class Other(np.ndarray[Any, Any]):
    """A class of arrays that may do anything."""


FROZEN = ARRAY[:16].view()
FROZEN.flags.writeable = False
ASTRAY = ARRAY.view(np.int8)[2:].view(np.int16)[:32].view(np.float32)
BASE = (ARRAY[:16], 5, 2.5, True, 7)


def base(*values: Any) -> Call:
    return Call(values, {}, PARAMETERS, bind("k", PARAMETERS, values).key)


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        (BASE, True),
        ((BESIDE, 5, 2.5, True, 7), True),  # elsewhere
        ((ARRAY[:0], 5, 2.5, True, 7), True),
        ((ARRAY[:16].reshape(4, 2, 2), 5, 2.5, True, 7), True),
        ((ARRAY[1:16], 5, 2.5, True, 7), False),  # 16 does not divide the address
        ((ARRAY[:16:2], 5, 2.5, True, 7), True),
        ((ARRAY[:16].reshape(4, 4).T, 5, 2.5, True, 7), True),
        ((ARRAY[:16].reshape(4, 4)[:, None, 1:][:, :, ::-1], 5, 2.5, True, 7), False),  # 16 does not divide the address
        ((FROZEN, 5, 2.5, True, 7), False),
        ((ASTRAY, 5, 2.5, True, 7), False),
        ((ARRAY[:16].view(np.int32), 5, 2.5, True, 7), False),
        ((ARRAY[:16].astype(">f4"), 5, 2.5, True, 7), False),
        ((ARRAY[:16].view(np.recarray), 5, 2.5, True, 7), False),
        ((None, 5, 2.5, True, 7), False),
        ((ARRAY[:16], -(2**31), 2.5, True, 7), True),
        ((ARRAY[:16], 2**31 - 1, 2.5, True, 7), True),
        ((ARRAY[:16], 2**31, 2.5, True, 7), False),
        ((ARRAY[:16], -(2**31) - 1, 2.5, True, 7), False),
        ((ARRAY[:16], 2**70, 2.5, True, 7), False),
        ((ARRAY[:16], 1, 2.5, True, 7), False),
        ((ARRAY[:16], 16, 2.5, True, 7), True),  # the parameter says nothing of 16
        ((ARRAY[:16], True, 2.5, True, 7), False),
        ((ARRAY[:16], 5.0, 2.5, True, 7), False),
        ((ARRAY[:16], np.int32(5), 2.5, True, 7), False),
        ((ARRAY[:16], 5, -0.0, True, 7), True),
        ((ARRAY[:16], 5, math.nan, True, 7), True),
        ((ARRAY[:16], 5, 1e300, True, 7), True),
        ((ARRAY[:16], 5, 2, True, 7), False),
        ((ARRAY[:16], 5, np.float64(2.5), True, 7), False),
        ((ARRAY[:16], 5, 2.5, False, 7), True),
        ((ARRAY[:16], 5, 2.5, 1, 7), False),
        ((ARRAY[:16], 5, 2.5, None, 7), False),
        ((ARRAY[:16], 5, 2.5, True, 8), False),
        ((ARRAY[:16], 5, 2.5, True, 7.0), False),
        ((ARRAY[:16], 5, 2.5, True, None), False),
        ((ARRAY[:16], 5, 2.5, True), False),
        ((ARRAY[:16], 5, 2.5, True, 7, 7), False),
    ],
)
def test_what_fits(values: tuple[Any, ...], fits: bool) -> None:
    """Parameters: an array, two ints (for the second neither 1 nor 16 matters), a float64 (here True), a constant."""
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    plans.function(GRID, *values)
    assert (len(code.seen), len(slow)) == (int(fits), int(not fits))


def test_read_only_arrays_fit_where_kernels_only_read() -> None:
    code = Code(4)
    code.written = ("b",)
    plans, slow = planned(code, base(*BASE))
    for array in (FROZEN, ARRAY[:16]):
        plans.function(GRID, array, *BASE[1:])
    assert (len(code.seen), len(slow)) == (2, 0)


@pytest.mark.parametrize("number", [1000, 2**63 - 1, 2**63, -(2**63), 2**100])
def test_constants_of_any_size(number: int) -> None:
    """Small ints are compared by value, others have to be the same object."""
    values = (*BASE[:4], number)
    code = Code(4)
    plans, slow = planned(code, base(*values))
    plans.function(GRID, *values)
    plans.function(GRID, *BASE[:4], number - 1)
    assert (len(code.seen), len(slow)) == (1, 1)
    plans.function(GRID, *BASE[:4], int(str(number)))
    assert len(code.seen) + len(slow) == 3


def test_ints_that_16_divides_and_1() -> None:
    """Where the parameter says so, an int is one of three: 1, a multiple of 16, or neither."""
    parameters = (Parameter("n"),)
    values = (1, 16, 0, -32, 5, -1, 17)
    for first in values:
        bound = bind("k", parameters, (first,))
        code = Code(len(bound.slots))
        plans, slow = planned(code, Call((first,), {}, parameters, bound.key))
        for value in values:
            plans.function(GRID, value)
        taken = [value for value in values if (GRID, value) not in [args for args, _ in slow]]
        assert taken == [value for value in values if bind("k", parameters, (value,)).key == bound.key]


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        ((0, 4), (8, 12), True),
        ((0, 4), (4, 8), True),
        ((0, 8), (7, 12), False),
        ((8, 12), (0, 4), True),  # in another order
        ((4, 12), (0, 4), True),
        ((4, 12), (0, 5), False),
        ((4, 4), (0, 8), True),  # empty ones share nothing
        ((0, 8), (4, 4), True),
        ((4, 8), (4, 8), False),
        ((0, 0), (0, 8), True),
    ],
)
def test_arrays_that_are_apart(first: tuple[int, int], second: tuple[int, int], fits: bool) -> None:
    parameters = Parameter("a", align=False), Parameter("b", align=False)
    arrays = np.zeros(32, np.int8), np.zeros(32, np.int8)
    low, high = sorted(arrays, key=lambda array: array.ctypes.data)
    code = Code(2)
    plans, slow = planned(code, Call((low, high), {}, parameters, bind("k", parameters, (low, high)).key))
    one = np.zeros(32, np.int8)
    plans.function(GRID, *(one[begin:][: end - begin] for begin, end in (first, second)))
    assert (len(code.seen), len(slow)) == (int(fits), int(not fits))


def test_arrays_that_share_bytes() -> None:
    """Three arrays, of which the last two overlap: other launches fit in which these do."""
    parameters = tuple(Parameter(name, align=False) for name in "abc")
    one = np.zeros(64, np.int8)
    values = (one[:8], one[16:32], one[24:40])
    code = Code(3)
    plans, slow = planned(code, Call(values, {}, parameters, bind("k", parameters, values).key))
    for others, fits in (
        (values, True),
        ((one[50:60], one[:8], one[7:20]), True),
        ((one[50:60], one[:8], one[8:20]), False),
        ((one[:8], one[4:20], one[30:40]), True),  # others share bytes
        ((one[30:40], one[:8], one[39:]), True),
        ((one[30:40], one[4:4], one[:8]), False),
        ((one[4:][:0], one[:8], one[30:40]), False),
        ((one[50:60], one[:8][::-1], one[:4]), True),
        ((one[50:60], one[:8][::-1], one[8:16:2]), False),
        ((one[50:60], one[:8:3], one[6:7]), True),
        ((one[50:60], one[:8:3], one[7:8]), False),
        ((one[50:60], one[:32].reshape(4, 8).T[:, :2], one[15:16]), True),
    ):
        code.seen.clear()
        plans.function(GRID, *others)
        assert len(code.seen) == fits
    assert len(slow) == 5


def test_bounds_that_kernels_ask_for() -> None:
    """Behind the slots stand the first byte and the one past the last of the arrays that the code measures."""
    parameters = Parameter("a"), Parameter("N", constexpr=True), Parameter("b"), Parameter("c")
    values = (ARRAY[:16], 3, ARRAY[16:20], ARRAY[32:64].reshape(2, 16))
    code = Code(3 + 4, measured=(2, 0))
    plans, _ = planned(code, Call(values, {}, parameters, bind("k", parameters, values).key))
    plans.function(GRID, *values)
    begin = ARRAY.ctypes.data
    addresses = [begin, begin + 64, begin + 128]
    assert struct.unpack("=7Q", code.seen[0]) == (*addresses, begin + 128, begin + 256, begin, begin + 64)


def test_bounds_of_arrays_that_are_named_in_another_order() -> None:
    parameters = Parameter("a"), Parameter("b"), Parameter("c")
    arrays = ARRAY[:16], ARRAY[16:20], ARRAY[32:64]
    code = Code(3 + 2, measured=(1,))
    key = bind("k", parameters, arrays).key
    keywords = {"c": arrays[2], "b": arrays[1]}
    plans, _ = planned(code, Call(arrays[:1], keywords, parameters, key))
    plans.function(GRID, arrays[0], **keywords)
    begin = ARRAY.ctypes.data
    assert struct.unpack("=5Q", code.seen[0]) == (begin, begin + 64, begin + 128, begin + 64, begin + 80)


def test_names_and_options() -> None:
    """A plan is for one way to write a call: the same names in the same order, and the same options."""
    bound = bind("k", PARAMETERS, BASE)
    call = Call(BASE[:3], {"e": 7, "d": True, "num_warps": 8}, PARAMETERS, bound.key)
    code = Code(4)
    plans, slow = planned(code, call)
    plans.function(GRID, *BASE[:3], e=7, d=False, num_warps=8)
    assert struct.unpack("=QqqQ", code.seen[0][:32])[3] == 0
    for keywords in ({"d": True, "e": 7, "num_warps": 8}, {"e": 7, "d": True}, {"e": 7, "d": True, "num_warps": 4}, {}):
        plans.function(GRID, *BASE[:3], **keywords)
    plans.function(GRID, *BASE[:2], c=BASE[2], e=7, d=True, num_warps=8)
    assert (len(code.seen), len(slow)) == (1, 5)


def test_a_plan_keeps_constants_and_no_arrays() -> None:
    """An object that is compared has to exist: another might get its address."""

    def constant_function() -> None:
        pass

    constant, array = constant_function, np.zeros(16, np.float32)
    values = (array, 5, 2.5, True, constant)
    plans, _ = planned(Code(4), base(*values))
    gone = weakref.ref(constant), weakref.ref(array)
    del constant, constant_function, array, values
    gc.collect()
    assert plans.count == 1
    assert gone[0]() is not None
    assert gone[1]() is None


@pytest.mark.parametrize("value", [tl.constexpr(3), (1, tl.constexpr(3)), object()])
def test_constants_that_may_change_have_no_plan(value: Any) -> None:
    """The value of a `constexpr` may be assigned."""
    assert planned(Code(4), base(*BASE[:4], value))[0].count == 0
    assert planned(Code(4), base(*BASE[:4], (1, "a", None, tl.int8, 2.5)))[0].count == 1


def test_other_threads_make_no_plans() -> None:
    """The main thread's launch may begin at any moment."""
    made: list[int] = []
    thread = threading.Thread(target=lambda: made.append(planned(Code(4), base(*BASE))[0].count))
    thread.start()
    thread.join()
    assert made == [0]


def test_forgotten_plans() -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    plans.clear()
    plans.function(GRID, *BASE)
    assert (len(code.seen), len(slow), plans.count) == (0, 1, 0)


def test_floats_of_64_bits() -> None:
    parameters = (Parameter("x", wide=True),)
    code = Code(1)
    plans, slow = planned(code, Call((0.1,), {}, parameters, bind("k", parameters, (0.1,)).key))
    for value in (0.1, 1e300, 5, True, np.float64(1)):
        plans.function(GRID, value)
    assert [struct.unpack("=d", seen)[0] for seen in code.seen] == [0.1, 1e300]
    assert len(slow) == 3


def test_names_are_kept() -> None:
    """They are compared by where they are."""
    name = "".join(["na", "me"])
    before = sys.getrefcount(name)
    parameters = (Parameter(name),)
    plans, _ = planned(Code(1), Call((), {name: 5}, parameters, bind("k", parameters, (5,)).key))
    del parameters
    assert plans.count == 1
    assert sys.getrefcount(name) > before


def test_names_that_are_exchanged() -> None:
    parameters = Parameter("n"), Parameter("m")
    code = Code(2)
    plans, slow = planned(code, Call((), {"n": 5, "m": 6}, parameters, bind("k", parameters, (5, 6)).key))
    plans.function(GRID, m=5, n=6)
    plans.function(GRID, n=7, m=9)
    assert (len(code.seen), len(slow)) == (1, 1)
    assert struct.unpack("=2q", code.seen[0]) == (7, 9)


def test_defaults_without_slots_are_left_out_and_others_are_not_planned() -> None:
    bound = bind("k", PARAMETERS, BASE)
    assert planned(Code(4), Call(BASE[:4], {}, PARAMETERS, bound.key))[0].count == 1
    assert planned(Code(4), Call(BASE[:3], {"e": 7}, PARAMETERS, bound.key))[0].count == 0


@pytest.mark.parametrize("value", [np.int32(5), Other(4, np.float32), 2**40])
def test_values_that_have_no_plan(value: Any) -> None:
    values = (value, 5, 2.5, True, 7)
    assert planned(Code(4), base(*values))[0].count == 0


# ---- what else is asked ---------------------------------------------------------------------------------------------


def test_globals_are_looked_at() -> None:
    names: dict[str, Any] = {"__name__": "user", "a": object(), "b": object(), "c": None}
    references = References()
    references.look_at(
        (names, "a", names["a"]), (names, "b", names["b"]), (names, "range", MISSING), (names, "c", None)
    )
    code = Code(4)
    plans, slow = planned(code, base(*BASE), references)
    before = names["b"]
    for value, fits in ((before, 1), (object(), 0), (before, 1)):
        names["b"] = value
        code.seen.clear()
        plans.function(GRID, *BASE)
        assert len(code.seen) == fits
    for name in ("a", "c"):
        value = names.pop(name)
        plans.function(GRID, *BASE)
        names[name] = value
    names["range"] = range
    plans.function(GRID, *BASE)
    assert len(slow) == 4
    del names["range"]
    plans.function(GRID, *BASE)
    assert len(slow) == 4


def test_cells_are_looked_at() -> None:
    """Variables of an enclosing function; one may have no value."""
    full, empty, value = types.CellType(3), types.CellType(), object()
    references = References()
    references.look_at((None, full, 3), (None, empty, MISSING))
    code = Code(4)
    plans, slow = planned(code, base(*BASE), references)
    plans.function(GRID, *BASE)
    for cell, other, before in ((full, 4, 3), (empty, value, None)):
        cell.cell_contents = other
        plans.function(GRID, *BASE)
        if before is None:
            del cell.cell_contents
        else:
            cell.cell_contents = before
        plans.function(GRID, *BASE)
    assert (len(code.seen), len(slow)) == (3, 2)


def test_names_of_other_mappings_are_not_looked_at() -> None:
    """A class's names are a view of a dict."""

    class Sizes:
        N = 3

    references = References()
    references.look_at((vars(Sizes), "N", 3))
    assert planned(Code(4), base(*BASE), references)[0].count == 0


def test_the_pool_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    with monkeypatch.context() as patch:
        patch.setattr(executor, "pool", lambda: None)
        plans.function(GRID, *BASE)
    plans.function(GRID, *BASE)
    assert (len(code.seen), len(slow)) == (1, 1)


def test_other_threads_go_to_python() -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    thread = threading.Thread(target=plans.function, args=(GRID, *BASE))
    thread.start()
    thread.join()
    assert (len(code.seen), len(slow)) == (0, 1)


def test_emulated_launches_go_to_python() -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    with weft.emulate("sm_90"):
        plans.function(GRID, *BASE)
    assert (len(code.seen), len(slow)) == (0, 1)


@pytest.mark.parametrize(
    "grid", [(1, 1), (1, 1, 1, 1), [1, 1, 1], 1, (0, 1, 1), (1, -1, 1), (1.0, 1, 1), (2**40, 2**40, 1)]
)
def test_what_is_no_grid_goes_to_python(grid: Any) -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    plans.function(grid, *BASE)
    assert (len(code.seen), len(slow)) == (0, 1)


def test_a_launch_within_a_launch_goes_to_python() -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE))
    code.statuses = [abi.FAULT]
    code.end = lambda workspace, status: plans.function(GRID, *BASE)
    plans.function(GRID, *BASE)
    assert (len(code.seen), len(slow)) == (1, 1)
    plans.function(GRID, *BASE)
    assert len(code.seen) == 2


def test_what_python_raises_arrives_and_the_next_launch_works() -> None:
    code = Code(4)
    plans, _ = planned(code, base(*BASE))

    def end(workspace: Any, status: int) -> None:
        raise RuntimeError(f"ended with {status}")

    code.end = end
    code.statuses = [abi.STOPPED]
    with pytest.raises(RuntimeError, match="ended with 2"):
        plans.function(GRID, *BASE)
    plans.function(GRID, *BASE)
    assert len(code.seen) == 2
    before = sys.getrefcount(abi.STOPPED)
    for _ in range(1000):
        code.statuses = [abi.STOPPED]
        with pytest.raises(RuntimeError):
            plans.function(GRID, *BASE)
    assert sys.getrefcount(abi.STOPPED) < before + 500


def test_a_pause_that_came_late_is_seen_to() -> None:
    """The watch may ask for a pause when the last program has begun: it may have put its handler in place."""
    code = Code(4)
    plans, _ = planned(code, base(*BASE))
    shared = direct.process()
    assert shared is not None
    entry = code.enter

    def enter(launch: int, thread: int) -> int:
        entry(launch, thread)
        ctypes.c_int64.from_address(thread).value = 1
        return abi.DONE

    code.entry = executor.ENTRY(enter)
    code.address = ctypes.cast(code.entry, ctypes.c_void_p).value
    plans, _ = planned(code, base(*BASE))
    plans.function(GRID, *BASE)
    assert code.ended == [abi.DONE]


def test_the_handler_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, removed = executor.pool().watch, list[int]()
    monkeypatch.setattr(watch.handler, "installed", True)
    monkeypatch.setattr(watch, "disarm", lambda: removed.append(1))
    monkeypatch.setattr(watch, "leading", object())
    code = Code(4)
    plans, _ = planned(code, base(*BASE))
    for statuses in ([], [abi.PAUSED]):
        code.statuses = statuses
        plans.function(GRID, *BASE)
    assert (removed, code.ended, watch.leading) == ([1, 1], [abi.DONE, abi.PAUSED], None)


def test_the_watch_is_woken_and_reads_the_word(monkeypatch: pytest.MonkeyPatch) -> None:
    code = Code(4)
    plans, _ = planned(code, base(*BASE))
    watch, watched = executor.pool().watch, list[Any]()
    enter = code.enter

    def spying(launch: int, thread: int) -> int:
        watched.append(watch._watched())  # pyright: ignore[reportPrivateUsage]
        return enter(launch, thread)

    code.entry = executor.ENTRY(spying)
    code.address = ctypes.cast(code.entry, ctypes.c_void_p).value
    plans, _ = planned(code, base(*BASE))
    woken: list[int] = []
    monkeypatch.setattr(watch, "wake", lambda: woken.append(1))
    monkeypatch.setattr(watch, "leading", None)
    monkeypatch.setattr(watch, "asleep", True)
    plans.function(GRID, *BASE)
    watch.asleep = False
    plans.function(GRID, *BASE)
    shared = direct.process()
    assert shared is not None
    assert (woken, watched) == ([1], [shared.workspace] * 2)
    assert watch._watched() is None  # pyright: ignore[reportPrivateUsage]


# ---- several threads ------------------------------------------------------------------------------------------------


@pytest.fixture
def limits() -> Iterator[Callable[..., None]]:
    """Sets words of the process's block for a test, with three threads."""
    shared = direct.process()
    assert shared is not None
    before = list(shared.block)
    shared.set(threads=3, looking=50_000_000, sleeping=50_000_000)
    yield shared.set
    for at, name in enumerate(direct_words.PROCESS):
        if name in ("threads", "looking", "sleeping", "clock", "spin"):
            shared.block[at] = before[at]


def launched(code: Code, programs: int) -> None:
    plans, slow = planned(code, base(*BASE))
    plans.function((programs, 1, 1), *BASE)
    assert not slow


def test_grids_that_were_long_are_spread(limits: Callable[..., None]) -> None:
    """So are those whose length is not known."""
    code = Code(4)
    launched(code, 100)
    assert (code.seen, code.spreads) == ([], [(100,)])
    code.pace[0] = 600_000  # nanoseconds for a program
    launched(code, 100)
    assert (code.seen, code.spreads) == ([], [(100,)] * 2)
    launched(code, 10)
    assert (len(code.seen), len(code.spreads)) == (1, 2)


def test_short_grids_are_tried_first(limits: Callable[..., None]) -> None:
    """The first call is asked to pause after a program. Where it did not take long the rest follows, and is timed."""
    code = Code(4, pace=10)
    code.statuses = [abi.PAUSED, abi.DONE]
    executor.pool().ended = 0
    launched(code, 100)
    assert (code.pauses, code.spreads, code.ended) == ([1, 0], [], [])
    assert time.perf_counter_ns() - 10**9 < executor.pool().ended <= time.perf_counter_ns()
    assert 0 < code.pace[0] < 50_000_000 / 100
    assert code.pace[0] != 10
    assert code.words[0] == (100, 100 // (3 * abi.CHUNKS_PER_THREAD), 100, 1, 1)


def test_a_short_grid_that_ends_at_once_teaches_nothing(limits: Callable[..., None]) -> None:
    code = Code(4, pace=10)
    launched(code, 2)
    assert (code.pauses, code.spreads, code.pace[0], code.words[0][:2]) == ([1], [], 10, (2, 1))


def test_a_grid_that_was_short_and_is_not_is_spread(limits: Callable[..., None]) -> None:
    limits(looking=1_000_000, sleeping=1_000_000)
    code = Code(4, pace=10)
    code.takes = 0.002
    code.statuses = [abi.PAUSED]
    launched(code, 100)
    assert (len(code.seen), code.spreads) == (1, [(100,)])


def test_a_parameter_named_self(limits: Callable[..., None]) -> None:
    parameters = (Parameter("self"),)
    code = Code(1)
    plans, _ = planned(code, Call((), {"self": 5}, parameters, bind("k", parameters, (5,)).key))
    plans.function((9, 1, 1), self=5)
    assert code.spreads == [(9,)]


def test_a_grid_that_is_late_twice_is_no_longer_short(limits: Callable[..., None]) -> None:
    """Once, it may have waited for a core."""
    limits(looking=40_000_000, sleeping=40_000_000)
    code = Code(4, pace=10)
    code.takes = 0.025
    for pace, late in ((10, 1), (500_000, 1)):
        code.statuses = [abi.PAUSED, abi.DONE]
        launched(code, 100)
        assert code.pace[1] == late
        assert code.pace[0] == 10 if pace == 10 else code.pace[0] >= pace


def test_a_launch_soon_after_another_may_be_shorter(limits: Callable[..., None]) -> None:
    limits(looking=1_000, sleeping=50_000_000, spin=10**15)
    code = Code(4, pace=100)
    launched(code, 100)
    assert code.spreads
    limits(spin=0)
    launched(code, 100)
    assert len(code.seen) == 1


def test_without_a_clock_python_decides(limits: Callable[..., None]) -> None:
    limits(clock=0)
    code = Code(4, pace=10)
    launched(code, 100)
    assert (code.seen, code.spreads) == ([], [(100,)])


def test_grids_that_are_summed_in_parts_go_to_python(limits: Callable[..., None]) -> None:
    code = Code(4, least=3, pace=10)
    plans, slow = planned(code, base(*BASE))
    for programs in (1, 2, 3):
        plans.function((programs, 1, 1), *BASE)
    assert (len(code.seen), len(slow)) == (1, 2)


def test_a_workspace_that_workers_may_use_is_not_used_again(limits: Callable[..., None]) -> None:
    shared = direct.process()
    assert shared is not None
    code = Code(4)
    used: list[Any] = []

    def spread(workspace: Any, kept: Any) -> None:
        assert workspace is not shared.workspace
        used.append(workspace)
        if len(used) == 2:
            raise KeyboardInterrupt

    code.spread = spread
    launched(code, 9)
    with pytest.raises(KeyboardInterrupt):
        launched(code, 9)
    for _ in range(3):
        launched(code, 9)
    assert used[1] not in (used[0], *used[2:], shared.workspace)
    assert used[2] in (used[0], used[3], used[4])


def test_scratch_memory(limits: Callable[..., None]) -> None:
    """The workspace has as much as the plan's code needs, also after it was taken away."""
    shared = direct.process()
    assert shared is not None
    code = Code(4, pace=10)
    code.scratch = shared.workspace.scratch_size + 4096
    plans, _ = planned(code, base(*BASE))
    plans.function((2, 1, 1), *BASE)
    assert shared.workspace.scratch_size >= code.scratch
    code.pace[0] = math.inf
    plans.function((100, 1, 1), *BASE)
    assert code.spreads
    code.pace[0] = 10
    plans.function((2, 1, 1), *BASE)
    assert shared.workspace.scratch_size >= code.scratch
    assert code.scratches[0] != 0
    assert code.scratches[1] == shared.workspace.scratch(0)


def test_no_more_scratch_memory_while_a_launch_uses_it() -> None:
    shared = direct.process()
    assert shared is not None
    code = Code(4)
    code.scratch = shared.workspace.scratch_size + 4096
    shared.set(busy=1)
    try:
        assert planned(code, base(*BASE))[0].count == 0
    finally:
        shared.set(busy=0)
    assert planned(code, base(*BASE))[0].count == 1


def test_a_forked_child_forgets_the_launch_of_another_thread() -> None:
    """The thread that forked is the child's main thread. If another one was, its launch will never end."""
    shared = direct.process()
    assert shared is not None
    before = shared.workspace
    shared.set(busy=1, main=1, threads=77)
    direct._after_fork()  # pyright: ignore[reportPrivateUsage]
    assert not shared.is_busy
    assert shared.workspace is not before
    words = dict(zip(direct_words.PROCESS, shared.block, strict=True))
    assert (words["main"], words["threads"]) == (threading.get_ident(), executor.pool().threads)
    before = shared.workspace
    shared.set(busy=1)
    direct._after_fork()  # pyright: ignore[reportPrivateUsage]
    assert shared.is_busy  # a handler forked within a launch of this thread, which goes on in both processes
    assert shared.workspace is before
    shared.set(busy=0)


# ---- a repeated launch ----------------------------------------------------------------------------------------------


def test_a_held_launch() -> None:
    code = Code(4)
    plans, slow = planned(code, base(*BASE), held=(GRID, *BASE))
    plans.function()
    assert (len(code.seen), slow) == (1, [])
    plans.function(GRID, *BASE)
    assert (len(code.seen), slow) == (1, [((GRID, *BASE), {})])


def test_a_held_launch_of_an_array_that_moves() -> None:
    code = Code(4)
    x = np.zeros(16, np.float32)
    values = (x, *BASE[1:])
    plans, slow = planned(code, base(*values), held=(GRID, *values))
    plans.function()
    x.resize(200_000, refcheck=False)
    assert x.flags.carray
    plans.function()
    assert (len(code.seen), slow) == (1, [((), {})])


# ---- kernels --------------------------------------------------------------------------------------------------------

OFFSET = tl.constexpr(100)
EIGHT = tl.constexpr(8)


@weft.jit
def note(out: Any, n: Any, scale: Any, flag: Any, WIDTH: tl.constexpr = EIGHT) -> None:
    """Notes its arguments in ``out``, one row for each program."""
    row = out + (tl.program_id(0) + 2 * tl.program_id(1) + 4 * tl.program_id(2)) * WIDTH
    tl.store(row, n + OFFSET)
    tl.store(row + 1, (scale * 2).to(tl.int32))
    tl.store(row + 2, flag.to(tl.int32))
    tl.store(row + 3, tl.num_programs(0) * 100 + tl.num_programs(1) * 10 + tl.num_programs(2))


def expected(grid: tuple[int, ...], n: int, scale: float, flag: bool, offset: int = 100) -> list[list[int]]:
    x, y, z = (*grid, 1, 1)[:3]
    return [[n + offset, int(scale * 2), int(flag), x * 100 + y * 10 + z, 0, 0, 0, 0]] * (x * y * z)


def half(meta: dict[str, Any]) -> tuple[int]:
    return (meta["WIDTH"] // 4,)


GRIDS: list[Any] = [(1,), (2,), (2, 2), (2, 2, 2), 1, [2, 2], half]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("named", [False, True])
def test_grids_and_names(grid: Any, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = weft.jit(note.fn)
    sizes: tuple[int, ...] = (2,) if grid is half else (1,) if grid == 1 else tuple(grid)
    python = 0
    found = kernel._found  # pyright: ignore[reportPrivateUsage]

    def counting(*args: Any) -> Any:
        nonlocal python
        python += 1
        return found(*args)

    monkeypatch.setattr(kernel, "_found", counting)
    for turn in range(8):
        out = np.zeros((math.prod(sizes), 8), np.int32)
        if named:
            kernel[grid](out, flag=turn % 2 == 0, n=turn + 2, scale=turn + 0.5)
        else:
            kernel[grid](out, turn + 2, turn + 0.5, turn % 2 == 0, 8)
        assert out.tolist() == expected(sizes, turn + 2, turn + 0.5, turn % 2 == 0)
    assert python <= 4


def test_a_global_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = weft.jit(note.fn)
    for turn, offset in enumerate([100] * 6 + [7] * 6 + [100] * 6):
        if offset == 7:
            monkeypatch.setitem(globals(), "OFFSET", tl.constexpr(7))
        elif turn > 6:
            monkeypatch.undo()
        out = np.zeros((1, 8), np.int32)
        kernel[(1,)](out, 5, 1.5, True)
        assert out.tolist() == expected((1,), 5, 1.5, True, offset)


@weft.jit
def shift(out: Any, x: Any, n: Any) -> None:
    for i in range(n):
        tl.store(out + i, tl.load(x + i) + 1)


def test_arrays_that_overlap_now_and_then() -> None:
    kernel = weft.jit(shift.fn)
    memory = np.zeros(64, np.int32)
    for turn in range(24):
        memory[:] = 0
        if turn % 3:
            out, x = memory[17:33], memory[16:32]
            kernel[(1,)](out, x, 16)
            assert out.tolist() == list(range(1, 17))
        else:
            kernel[(1,)](memory[32:48], memory[16:32], 16)
            assert memory[32:48].tolist() == [1] * 16


def test_views_and_read_only_arrays_are_launched_directly() -> None:
    """They take no route, whose function looks at contiguous arrays alone."""
    kernel = weft.jit(shift.fn)
    x = np.zeros(16, np.int32)
    x.flags.writeable = False
    for _ in range(2):
        for _ in range(4):
            out = np.zeros((16, 2), np.int32)
            kernel[(1,)](out[::-1, 0], x, 1)
            assert out[:, 0].tolist() == [0] * 15 + [1]
        assert kernel._plans.count == 1  # pyright: ignore[reportPrivateUsage]
        kernel._executables.forget_ways()  # pyright: ignore[reportPrivateUsage]
        assert kernel._plans.count == 0  # pyright: ignore[reportPrivateUsage]
    assert not any(route.known for route in kernel._executables.routes.values())  # pyright: ignore[reportPrivateUsage]


@weft.jit
def sum_of_row(x: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    total = tl.zeros([B], tl.float32)
    for i in range(0, n, B):
        at = i + tl.arange(0, B)
        total += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out, tl.sum(total, 0))


def test_grids_of_long_rows_are_whole_from_a_program_for_each_thread_on() -> None:
    """Fewer programs may be run in parts, which Python decides."""
    x, out = np.ones(4096, np.float32), np.zeros(1, np.float32)
    executable = sum_of_row.compile(x, out, x.size, B=256).executable
    assert executable.artifact.sums
    assert executable.least == executor.pool().threads
    assert note.compile(np.zeros(8, np.int32), 5, 1.5, True).executable.least == 1


def test_more_kinds_than_plans() -> None:
    kernel = weft.jit(note.fn)
    for _ in range(4):
        for width in range(4, 4 + MOST_PLANS + 4):
            out = np.zeros((2, width), np.int32)
            kernel[(2,)](out, 5, 1.5, True, WIDTH=width)
            assert out[:, :4].tolist() == [row[:4] for row in expected((2,), 5, 1.5, True)]
    assert kernel._plans.count == MOST_PLANS  # pyright: ignore[reportPrivateUsage]


def none(meta: dict[str, Any]) -> tuple[int]:
    return (meta["n"] // 0,)


def native(kernel: Any, *values: Any) -> bool:
    """Whether a launch goes past `_found`, which all launches through Python call."""
    seen: list[Any] = []
    found = kernel._found

    def seeing(*args: Any) -> Any:
        seen.append(args)
        return found(*args)

    kernel._found = seeing
    kernel[(1,)](*values)
    del kernel._found
    return not seen


def test_launchers_that_are_older_than_the_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = weft.jit(note.fn)
    launcher = kernel[(1,)]
    values = np.zeros((1, 8), np.int32), 5, 1.5, True
    for _ in range(4):
        launcher(*values)
    assert kernel._plans.count == 1  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(kernel, "_found", None)  # what launches through Python call
    launcher(*values)


def test_launches_of_another_thread_do_not_stand_in_the_way() -> None:
    kernel = weft.jit(note.fn)
    values = np.zeros((1, 8), np.int32), 5, 1.5, True
    thread = threading.Thread(target=lambda: [kernel[(1,)](*values) for _ in range(6)])
    thread.start()
    thread.join()
    for _ in range(3):
        kernel[(1,)](*values)
    assert native(kernel, *values)


def test_an_equal_global_that_is_bound_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a cell of a notebook is run again: the code remains, and launches are direct again."""
    kernel = weft.jit(note.fn)
    values = np.zeros((1, 8), np.int32), 5, 1.5, True
    for _ in range(3):
        monkeypatch.setitem(globals(), "OFFSET", tl.constexpr(100))
        for _ in range(4):
            kernel[(1,)](*values)
        assert native(kernel, *values)
        assert kernel._plans.count == 1  # pyright: ignore[reportPrivateUsage]
    assert len(kernel._executables) == 1  # pyright: ignore[reportPrivateUsage]


def test_launchers_are_copied_and_pickled() -> None:
    values = np.zeros((2, 8), np.int32), 5, 1.5, True
    for _ in range(4):
        for again in (copy.copy(note[(2,)]), pickle.loads(pickle.dumps(note[(2,)]))):
            again(*values)
            again.bind(*values)()
            assert values[0].tolist() == expected((2,), 5, 1.5, True)


def test_python_on_this_system_launches_directly() -> None:
    """CPython with its lock and 64 bits; elsewhere launches go through Python, without a word."""
    if sys.implementation.name == "cpython" and sys.maxsize == 2**63 - 1 and object.__basicsize__ == 16:
        assert direct.process() is not None


def test_errors_are_those_of_python() -> None:
    kernel = weft.jit(note.fn)
    out = np.zeros((1, 8), np.int32)
    for _ in range(5):
        kernel[(1,)](out, 5, 1.5, True)
    frozen = out.view()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="parameter 'out': found a read-only array, but the kernel writes through it"):
        kernel[(1,)](frozen, 5, 1.5, True)
    with pytest.raises(TypeError, match="missing 1 required argument: 'flag'"):
        kernel[(1,)](out, 5, 1.5)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'm'"):
        kernel[(1,)](out, 5, 1.5, True, m=3)
    with pytest.raises(ZeroDivisionError):
        kernel[none](out, 5, 1.5, True)
    kernel[(0,)](out, 5, 1.5, True)


def test_references_are_counted() -> None:
    kernel = weft.jit(note.fn)
    out, n, scale = np.zeros((1, 8), np.int32), 123456, 1.25
    for _ in range(5):
        kernel[(1,)](out, n, scale, True)
    launcher = kernel[(1,)]
    assert inspect.isbuiltin(launcher.func)
    plan = kernel._plans._plans[0]  # pyright: ignore[reportPrivateUsage]
    counts = [sys.getrefcount(one) for one in (out, n, scale, True, None, out.dtype, plan)]
    for _ in range(1000):
        launcher(out, n, scale, True)
    again = [sys.getrefcount(one) for one in (out, n, scale, True, None, out.dtype, plan)]
    assert all(abs(a - b) < 50 for a, b in zip(counts, again, strict=True)), (counts, again)


def test_a_kernel_that_is_gone_is_unloaded() -> None:
    """A launcher keeps its kernel. Then plans and kernel go together."""
    kernel = weft.jit(note.fn)
    out = np.zeros((1, 8), np.int32)
    for _ in range(5):
        kernel[(1,)](out, 5, 1.5, True)
    function, gone = kernel[(1,)].func, weakref.ref(kernel)
    del kernel
    gc.collect()
    function((1, 1, 1), out, 6, 1.5, True)
    assert out[0, 0] == 106
    assert gone() is not None
    del function
    gc.collect()
    assert gone() is None


def test_code_that_was_forgotten_while_it_ran_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread forgets the kernel, or changes a global, between the launch and the plan."""
    for forgets in (False, True):
        kernel = weft.jit(note.fn)
        values = np.zeros((1, 8), np.int32), 5, 1.5, True
        kernel[(1,)](*values)
        executable, bound, _ = kernel._prepared(None, (1, 1, 1), values, {})  # pyright: ignore[reportPrivateUsage]
        assert isinstance(executable, Executable)
        call = Call(values, {}, bound.parameters, bound.key)
        with monkeypatch.context() as patch:
            if forgets:
                kernel._executables.clear()  # pyright: ignore[reportPrivateUsage]
            else:
                patch.setitem(globals(), "OFFSET", tl.constexpr(3))
            kernel._plan(executable, call)  # pyright: ignore[reportPrivateUsage]
        assert kernel._plans.count == 0  # pyright: ignore[reportPrivateUsage]
        if not forgets:
            kernel._plan(executable, call)  # pyright: ignore[reportPrivateUsage]
            assert kernel._plans.count == 1  # pyright: ignore[reportPrivateUsage]


def test_compiling_prepares_the_code_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pool of threads, whose number may be misspelt, in a process that only compiles."""
    monkeypatch.setattr(direct, "_found", [])
    monkeypatch.setattr(direct, "_loaded", dict[bool, Any]())
    monkeypatch.setattr(direct, "POOL", None)
    direct.prepare()
    assert direct._found == []  # pyright: ignore[reportPrivateUsage]
    assert direct._loaded[True] is not None  # pyright: ignore[reportPrivateUsage]


def test_where_objects_lie_otherwise_python_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_found", [])
    monkeypatch.setattr(direct, "_loaded", dict[bool, Any]())
    monkeypatch.setattr(direct_words, "DTYPE", 48)
    assert direct.process() is None
    kernel = weft.jit(note.fn)
    for turn in range(5):
        out = np.zeros((1, 8), np.int32)
        kernel[(1,)](out, turn + 2, 1.5, True)
        assert out.tolist() == expected((1,), turn + 2, 1.5, True)
    assert not inspect.isbuiltin(kernel[(1,)].func)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_launches(tmp_path: Any) -> None:
    """From the main thread, and from another, which is the child's main thread."""
    script = tmp_path / "forks.py"
    script.write_text(
        textwrap.dedent("""
        import os, sys, threading
        import numpy as np
        import weft, weft.language as tl

        @weft.jit
        def add(x, n):
            tl.store(x + tl.program_id(0), tl.load(x + tl.program_id(0)) + n)

        x = np.zeros(40, np.int32)
        for _ in range(6):
            add[(40,)](x, 3)

        def child():
            pid = os.fork()
            if pid == 0:
                before = x.copy()
                for _ in range(6):
                    add[(40,)](x, 3)
                os._exit(0 if (x == before + 18).all() else 1)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        codes = [child()]
        thread = threading.Thread(target=lambda: codes.append(child()))
        thread.start()
        thread.join()
        for _ in range(3):
            add[(40,)](x, 3)
        print(codes, (x == 27).all(), add[(40,)].func)
        """)
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("[0, 0] True <built-in"), done
