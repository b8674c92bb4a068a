"""Routes: the second and later launches of a kind find what the first found, and notice whatever has changed."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import weft
import weft.language as tl
from launch_values import LAUNCHES, MEMORY, PARAMETERS, START, changed
from sampling import examples
from weft.runtime import addresses, shortcuts
from weft.runtime.arguments import Parameter, bind, disjoint
from weft.runtime.jit import Lesson
from weft.runtime.shortcuts import Route, route

# ---- facts decide what `bind` says ----------------------------------------------------------------------------------


def bits(slots: Any) -> list[Any]:
    """Numbers that can be compared: floats by their bits, with their types."""
    return [(type(v), struct.pack("=d", v)) if isinstance(v, float) else (type(v), v) for v in slots]


@examples(600)
@given(LAUNCHES)
def test_equal_facts_are_bound_equally(launches: list[tuple[Any, ...]]) -> None:
    """Launches through one route: where facts are equal, so are `bind`'s tokens and whether arrays are apart, and the slots of
    each launch are `bind`'s."""
    routes: dict[Any, Route | None] = {}
    bound_by: dict[Any, Any] = {}
    for values in launches:
        kinds = tuple(map(type, values))
        if kinds not in routes:
            routes[kinds] = route("k", PARAMETERS, values)
        if (found := routes[kinds]) is None:
            continue
        looked = found.look(*values)
        if looked is None:
            continue
        facts, slots = looked
        bound = bind("k", PARAMETERS, values)
        assert not bound.read_only
        meaning = (disjoint(bound.extents), bound.key)
        assert bound_by.setdefault((kinds, facts), meaning) == meaning
        found.learn(facts, "code", bound.key)  # pyright: ignore[reportArgumentType]
        code, pick = found.known[facts].executable, found.known[facts].pick
        assert code == "code"
        assert bits(slots if pick is None else pick(slots)) == bits(bound.slots)


@pytest.mark.parametrize(
    "values",
    [
        (MEMORY, 5, 2.5, True, None),
        (MEMORY[:16].view(ml_dtypes.bfloat16), MEMORY[64:], MEMORY[:0], 0.5, "text"),
        (2**31 - 1, 1, -(2**31), False, 1.5),
    ],
)
def test_what_routes_take(values: tuple[Any, ...]) -> None:
    """The test above holds of a route that takes nothing."""
    found = route("k", PARAMETERS, values)
    assert found is not None
    assert found.look(*values) is not None


PAIR = (Parameter("a"), Parameter("b"), Parameter("n"))
BYTES = MEMORY[START : START + 128]
DIFFERENT: dict[str, tuple[Any, Any, Any]] = {
    "a dtype": (BYTES[:32], BYTES[64:96].view(np.int8), 5),
    "an address": (BYTES[:32], BYTES[72:96], 5),
    "the arrays overlap": (BYTES[:33], BYTES[32:64], 5),
    "in the other order": (BYTES[32:64], BYTES[:33], 5),
    "one in another": (BYTES[:128], BYTES[32:64], 5),
    "1": (BYTES[:32], BYTES[64:96], 1),
    "a multiple of 16": (BYTES[:32], BYTES[64:96], 48),
}
REFUSED: dict[str, tuple[Any, Any, Any]] = {
    "an int of 64 bits": (BYTES[:32], BYTES[64:96], 2**31),
    "a negative one": (BYTES[:32], BYTES[64:96], -(2**31) - 1),
    "a view": (BYTES[:32], BYTES[64:96:2], 5),
    "read-only": (BYTES[:32], changed(BYTES[64:96], "read-only"), 5),
}


def look(*values: Any) -> Any:
    """What a route that was made for two arrays, the first in front, and a number says of others."""
    found = route("k", PAIR, (BYTES[:32], BYTES[64:96], 5))
    assert found is not None
    return found.look(*values)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_facts_tell_apart(name: str) -> None:
    usual, slots = look(BYTES[:32], BYTES[64:96], 5)
    assert look(BYTES[64:96], BYTES[:32], 7) == (usual, (slots[1], slots[0], 7))
    facts, slots = look(*DIFFERENT[name])
    assert facts != usual
    assert slots == (DIFFERENT[name][0].ctypes.data, DIFFERENT[name][1].ctypes.data, DIFFERENT[name][2])


@pytest.mark.parametrize("name", REFUSED)
def test_what_routes_leave_to_the_long_way(name: str) -> None:
    assert look(*REFUSED[name]) is None


@pytest.mark.parametrize("value", [np.float32(1), [1], (1, 2), tl.constexpr(3), np.ma.zeros(3), object()])
def test_what_has_no_route(value: Any) -> None:
    assert route("k", [Parameter("a")], [value]) is None


def test_without_addresses_arrays_have_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "WORDS", None)
    assert route("k", [Parameter("a")], [MEMORY]) is None
    assert route("k", [Parameter("a")], [5]) is not None


def test_a_route_forgets_when_it_knows_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "_MOST_FACTS", 3)
    found = route("k", [Parameter("n", constexpr=True)], [5])
    assert found is not None
    for n in range(10):
        found.learn((n,), "code", [(int, n)])  # pyright: ignore[reportArgumentType]
        assert 1 <= len(found.known) <= 3
        assert (n,) in found.known


# ---- launches -------------------------------------------------------------------------------------------------------

OFFSET = tl.constexpr(100)
SEVEN = tl.constexpr(7)


@weft.jit
def note(out: Any, other: Any, n: Any, scale: Any, flag: Any, B: tl.constexpr, C: tl.constexpr = SEVEN) -> None:
    """Writes what it was given, for each program."""
    at = out + 8 * tl.program_id(0)
    tl.store(at, n + OFFSET)
    tl.store(at + 1, B)
    tl.store(at + 2, C)
    tl.store(at + 3, scale)
    tl.store(at + 4, flag)
    tl.store(at + 5, tl.load(other))


def launched(*rest: Any, out: Any = None, other: Any = None, grid: Any = (1,), **keywords: Any) -> list[float]:
    """What a launch writes."""
    out = np.zeros(16, np.float32) if out is None else out
    other = np.full(4, 9, np.int32) if other is None else other
    note[grid](out, other, *rest, **keywords)
    return [float(x) for x in out[:6]]


def depending(meta: dict[str, Any]) -> tuple[int]:
    return (2 * meta["B"] - 5,)


pytestmark = pytest.mark.jit

CHANGES: dict[str, Callable[[], tuple[list[float], list[float]]]] = {
    "other numbers": lambda: (launched(6, 0.5, False, 8, 9), [106, 8, 9, 0.5, 0, 9]),
    "1": lambda: (launched(1, 0.5, True, 8, 9), [101, 8, 9, 0.5, 1, 9]),
    "a multiple of 16": lambda: (launched(32, 0.5, True, 8, 9), [132, 8, 9, 0.5, 1, 9]),
    "a long int": lambda: (launched(2**40, 0.5, True, 8, 9), [float(2**40), 8, 9, 0.5, 1, 9]),
    "by keyword": lambda: (launched(5, scale=0.5, flag=True, C=1, B=2), [105, 2, 1, 0.5, 1, 9]),
    "a default": lambda: (launched(5, 0.5, True, 3), [105, 3, 7, 0.5, 1, 9]),
    "an option": lambda: (launched(5, 0.5, True, 3, num_warps=8), [105, 3, 7, 0.5, 1, 9]),
    "an int for a float": lambda: (launched(5, 3, True, 3), [105, 3, 7, 3, 1, 9]),
    "a float beyond float32": lambda: (launched(5, -1e300, True, 3), [105, 3, 7, -math.inf, 1, 9]),
    "another dtype": lambda: (launched(5, 0.5, True, 3, other=np.full(4, -2, np.int8)), [105, 3, 7, 0.5, 1, -2]),
    "no multiple of 16": lambda: (
        launched(5, 0.5, True, 3, other=np.arange(8, dtype=np.int32)[3:]),
        [105, 3, 7, 0.5, 1, 3],
    ),
    "a strided view": lambda: (
        launched(5, 0.5, True, 3, other=np.arange(8, dtype=np.int32)[3::2]),
        [105, 3, 7, 0.5, 1, 3],
    ),
    "two programs": lambda: (launched(5, 0.5, True, 3, grid=2), [105, 3, 7, 0.5, 1, 9]),
    "a grid that depends": lambda: (launched(5, 0.5, True, 3, grid=depending), [105, 3, 7, 0.5, 1, 9]),
    "no program": lambda: (launched(5, 0.5, True, 3, grid=(0,)), [0, 0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_launch_that_differs_from_those_before(name: str) -> None:
    """After enough equal launches that a route knows them; and twice, the second time as a known launch itself."""
    for _ in range(3):
        assert launched(5, 1.5, True, 8) == [105, 8, 7, 1.5, 1, 9]
    for _ in range(4):
        found, expected = CHANGES[name]()
        assert found == expected
    assert launched(5, 1.5, True, 8) == [105, 8, 7, 1.5, 1, 9]


def test_known_launches_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        launched(5, 1.5, True, 8)
    monkeypatch.setattr(sys.modules["weft.runtime.jit"], "bind", None)
    assert launched(-9, 2.5, True, 8) == [91, 8, 7, 2.5, 1, 9]


def test_a_changed_global_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        launched(5, 1.5, True, 8)
    monkeypatch.setitem(globals(), "OFFSET", tl.constexpr(1000))
    for _ in range(3):
        assert launched(5, 1.5, True, 8)[0] == 1005
    monkeypatch.undo()
    assert launched(5, 1.5, True, 8)[0] == 105


def test_code_that_was_forgotten_while_it_was_found_is_not_learnt() -> None:
    """Another thread forgets the kernel between the look and the lesson."""
    values = (np.zeros(16, np.float32), np.zeros(4, np.int32), 5, 1.5, True, 8, 7)
    for _ in range(2):
        note[(1,)](*values)
    executable, bound, _ = note._prepared(None, (1, 1, 1), values, {})  # pyright: ignore[reportPrivateUsage]
    routes = [Route(lambda *_: None, (0, 1, 2, 3, 4)) for _ in range(2)]
    for found in routes:
        note._learn(Lesson(found, ()), executable, bound)  # pyright: ignore[reportPrivateUsage]
        note._executables.clear()  # pyright: ignore[reportPrivateUsage]
    assert [len(found.known) for found in routes] == [1, 0]


@weft.jit
def shift(out: Any, x: Any, n: Any) -> None:
    """``out[i] = x[i] + 1`` for overlapping arrays: what one iteration writes another reads."""
    for i in range(n):
        tl.store(out + i, tl.load(x + i) + 1)


def test_arrays_that_begin_to_overlap() -> None:
    """Code for arrays that are apart is not used for those that overlap, whatever the order in memory."""
    for _ in range(3):
        apart = np.zeros(32, np.int32)
        shift[(1,)](apart[16:], apart[:16], 16)
        assert apart[16:].tolist() == [1] * 16
    for _ in range(3):
        joined = np.zeros(32, np.int32)
        shift[(1,)](joined[4:20], joined[:16], 16)
        assert joined.tolist() == [0] * 4 + [1 + i // 4 for i in range(16)] + [0] * 12


def test_an_array_that_moves_within_the_function_of_the_grid() -> None:
    """The function is asked before the array's address."""

    def grid(meta: dict[str, Any]) -> tuple[int]:
        meta["out"].resize(2**20, refcheck=False)
        return (1,)

    for _ in range(4):
        out = np.zeros(4, np.float32)
        before = out.ctypes.data
        note[grid](out, np.full(4, 9, np.int32), 5, 1.5, True, 8)
        assert out.ctypes.data != before
        assert out[:2].tolist() == [105, 8]


def test_refusals_stay() -> None:
    frozen = np.zeros(16, np.float32)
    frozen.flags.writeable = False
    for _ in range(3):
        launched(5, 1.5, True, 8)
    for _ in range(2):
        with pytest.raises(ValueError, match="found a read-only array, but the kernel writes through it"):
            launched(5, 1.5, True, 8, out=frozen)
        with pytest.raises(TypeError, match=r"note\(\) missing 2 required arguments: 'flag' and 'B'"):
            launched(5, 1.5)
        with pytest.raises(TypeError, match=r"note\(\) takes 7 arguments but 8 were given"):
            launched(5, 1.5, True, 8, 9, 10)
        with pytest.raises(TypeError, match=r"note\(\) got multiple values for argument 'n'"):
            launched(5, 1.5, True, 8, n=3)
        with pytest.raises(TypeError, match=r"note\(\): num_warps must be a power of two, found 3"):
            launched(5, 1.5, True, 8, num_warps=3)
        with pytest.raises(TypeError, match=r"note\(\): num_warps must be a power of two, found True"):
            launched(5, 1.5, True, 8, num_warps=True)
        with pytest.raises(TypeError, match=r"note\(\): num_warps must be a power of two, found \[4\]"):
            launched(5, 1.5, True, 8, num_warps=[4])
        with pytest.raises(TypeError, match="expected a hashable compile-time value"):
            launched(5, 1.5, True, np.zeros(3))


def test_num_warps_of_1_is_not_true() -> None:
    """Equal values of different types are told apart among options."""
    for _ in range(3):
        launched(5, 1.5, True, 8, num_warps=1)
    with pytest.raises(TypeError, match="found True"):
        launched(5, 1.5, True, 8, num_warps=True)


def test_emulated_launches_do_not_take_the_short_way() -> None:
    for _ in range(3):
        launched(5, 1.5, True, 8)
    with weft.emulate("sm_80"):
        for _ in range(3):
            assert launched(6, 1.5, True, 8) == [106, 8, 7, 1.5, 1, 9]
        kinds = {type(code).__name__ for code in note._executables.values()}  # pyright: ignore[reportPrivateUsage]
        assert kinds == {"Executable", "EmulatedKernel"}
    assert launched(5, 1.5, True, 8) == [105, 8, 7, 1.5, 1, 9]


def test_parameters_with_the_names_of_everything() -> None:
    """Names of the generated functions do not hide parameters."""

    @weft.jit
    def named(words: Any, look: Any, apart: Any, v0: Any, a0: Any, _: Any, __: Any, num_warps: tl.constexpr) -> None:
        tl.store(words, look + 10 * apart + 100 * v0 + 1000 * a0 + 10000 * _ + 100000 * __ + num_warps * 1000000)

    out = np.zeros(1, np.int32)
    for _ in range(4):
        named[(1,)](out, 2, 3, 4, 5, 6, 7, num_warps=8)
        assert out[0] == 8765432
        out[0] = 0

    @weft.jit
    def short(_: Any, __: Any) -> None:
        tl.store(_, __)

    for _ in range(4):
        short[(1,)](out, 5, num_warps=8)
        assert out[0] == 5
        out[0] = 0
    assert short._executables.routes  # pyright: ignore[reportPrivateUsage]


def test_a_checked_kernel_has_no_route() -> None:
    @weft.jit(checked=True)
    def guarded(out: Any, n: Any) -> None:
        tl.store(out + n, 1.0)

    for _ in range(4):
        guarded[(1,)](np.zeros(4, np.float32), 3)
    with pytest.raises(weft.OutOfBoundsError):
        guarded[(1,)](np.zeros(4, np.float32), 4)
    assert not guarded._executables.routes  # pyright: ignore[reportPrivateUsage]
