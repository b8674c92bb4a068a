"""The C handler that stops a launch, called as a function: as weft writes it down, and as LLVM makes it."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from typing import Any

import pytest

from weft.runtime import linker
from weft.runtime.loader import LoadedCode
from weft.runtime.sigint import StopOnSignal

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)

assembled = pytest.mark.skipif(
    not linker.SUPPORTED, reason="needs the handler of Linux on x86-64, which is assembled without LLVM"
)


@pytest.mark.jit
@pytest.mark.parametrize(
    "maker",
    [
        pytest.param("_code", marks=assembled),
        "_made_by_llvm",
    ],
)
def test_the_handler_writes_one_word_and_goes_on(maker: str) -> None:
    stop = StopOnSignal()
    made: Any = getattr(stop, maker)
    code = made if isinstance(made, LoadedCode) else made()
    seen: list[tuple[int, list[int]]] = []
    words = (ctypes.c_int64 * 3)(-1, -1, -1)

    def note(number: int) -> None:
        seen.append((number, list(words)))

    callback = CALLBACK(note)
    stop._previous.value = ctypes.cast(callback, ctypes.c_void_p).value  # pyright: ignore[reportPrivateUsage]
    handler = CALLBACK(code.address)
    handler(signal.SIGINT)
    stop._word.value = ctypes.addressof(words) + 8  # pyright: ignore[reportPrivateUsage]
    handler(signal.SIGTERM)
    stop._word.value = 0  # pyright: ignore[reportPrivateUsage]
    words[1] = 5
    handler(-7)
    assert seen == [(signal.SIGINT, [-1, -1, -1]), (signal.SIGTERM, [-1, 1, -1]), (-7, [-1, 5, -1])]


@assembled
def test_the_handler_needs_no_llvm() -> None:
    """Its import would take longer than a program may run before Ctrl-C is seen."""
    code = "import sys; from weft.runtime.sigint import StopOnSignal; StopOnSignal()._code; print('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
