"""What native code calls to print: a launch's `Printer`, which writes to ``sys.stdout``.

`weft.codegen.kernel` states the interface. Each call writes the lines of one value at once, so that those of programs on other
threads stand before or behind them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Final

from weft.ir.printing import POINTER, Print
from weft.runtime.workspace import Workspace

_FUNCTION: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p
)


class Printer:
    """Prints for a launch. What is raised while it prints (by ``sys.stdout``, or by a signal's handler) stops the launch; the
    caller then raises `error`."""

    def __init__(self, prints: Sequence[Print], workspace: Workspace):
        self._prints = prints
        self._workspace = workspace
        self._function = _FUNCTION(self._print)
        self.error: BaseException | None = None
        workspace.set_printer(ctypes.cast(self._function, ctypes.c_void_p).value or 0)

    def _print(self, number: int, x: int, y: int, z: int, address: int | None) -> None:
        try:
            if self.error is None:
                sys.stdout.write(_text(self._prints[number], (x, y, z), address))
        except BaseException as error:  # ctypes would drop it
            self.error = error
            self._workspace.stop()


def _text(what: Print, program: tuple[int, int, int], address: int | None) -> str:
    if address is None:
        return what.text(program, None)
    import numpy as np

    dtype = np.dtype(np.int64 if what.type == POINTER else what.type)
    count = 1 << len(what.columns)
    data = np.frombuffer(ctypes.string_at(address, count * dtype.itemsize), dtype)
    return what.text(program, what.placed(data))
