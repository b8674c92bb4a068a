"""Launches of these tests run twice: on NumPy alone, which is the reference, and with the native interpreter. Memory, counters,
what was printed and faults must be the same.

In ``make nightly`` all do. In ``make test`` those of tests without parameters, of the first case of each parametrised test, and
of one case in `DAILY`; the others run natively alone. Every handler is compared daily, however these are chosen:
`test_emu_native.py` launches both ways itself."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import emulator_harness
from sampling import at_night
from weft.emulator import DeviceMemory, module
from weft.emulator.machine.launch import Outcome, launch
from weft.emulator.machine.symbols import Symbols
from weft.emulator.native import code

DAILY = 8
"""One case in so many of parametrised tests is compared in ``make test``."""


def arrays_in(value: Any, depth: int = 3) -> Iterator[NDArray[Any]]:
    """The arrays that an argument holds, as their own memory."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, DeviceMemory):
        yield from (placed.array for placed in value.placed)
    elif isinstance(value, Symbols):
        yield from value.values()
    elif depth and isinstance(value, list | tuple):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        for each in items:
            yield from arrays_in(each, depth - 1)
    elif isinstance(value, DeviceMemory):
        yield from (placed.array for placed in value.placed)
    elif isinstance(value, Symbols):
        yield from (value[name] for name in value)
    elif depth and hasattr(value, "array"):
        yield from arrays_in(value.array, depth - 1)


def shown(outcome: Outcome | Exception) -> object:
    """What must be the same: counters and text, or the fault."""
    if isinstance(outcome, Exception):
        return type(outcome), str(outcome)
    return outcome.counters.rows(), outcome.output


def alike(one: bytes, other: bytes) -> bool:
    """Whether memory is the same, but for the bits of f64's NaNs, which the ISA leaves open."""
    if one == other:
        return True
    whole = len(one) // 8 * 8
    if len(one) != len(other) or one[whole:] != other[whole:]:
        return False
    words, others = (np.frombuffer(data[:whole], np.uint64) for data in (one, other))
    differ = words != others
    return bool(np.isnan(words[differ].view(np.float64)).all() and np.isnan(others[differ].view(np.float64)).all())


def both(program: Any, kernel: str, grid: Any, block: Any, arguments: Any, *rest: Any, **named: Any) -> Outcome:
    """`launch`, on NumPy and natively."""
    arrays = [a for a in arrays_in([list(arguments), *rest, *named.values()]) if a.flags.writeable]
    before = [a.copy() for a in arrays]
    heaps = [(symbols, copy.deepcopy(symbols.heap)) for symbols in rest if isinstance(symbols, Symbols)]

    def run() -> tuple[Outcome | Exception, list[bytes]]:
        outcome: Outcome | Exception
        try:
            outcome = launch(program, kernel, grid, block, arguments, *rest, **named)
        except Exception as error:
            outcome = error
        return outcome, [a.tobytes() for a in arrays]

    with code.only_numpy():
        expected, memory = run()
    for array, old in zip(arrays, before, strict=True):
        array[...] = old
    for symbols, heap in heaps:
        symbols.heap = heap
    found, now = run()
    assert shown(found) == shown(expected)
    assert all(alike(one, other) for one, other in zip(now, memory, strict=True))
    if isinstance(found, Exception):
        raise found
    return found


@pytest.fixture(scope="session")
def interpreter() -> None:
    """Where there is no LLVM, NumPy is compared with itself."""
    code.compiled()


def compared(item: pytest.Item) -> bool:
    """Whether the launches of a test run both ways in ``make test``: always the same tests, whoever runs them."""
    call: Any = getattr(item, "callspec", None)
    return call is None or not any(call.indices.values()) or zlib.crc32(item.nodeid.encode()) % DAILY == 0


@pytest.fixture(autouse=True)
def twice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, interpreter: None) -> None:
    """Lets launches run both ways."""
    if at_night() or compared(request.node):
        monkeypatch.setattr(module, "launch", both)
        monkeypatch.setattr(emulator_harness, "launch", both)
