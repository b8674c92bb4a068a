"""Plans of launches (`weft.runtime.plans`) with code that a test writes in Python."""

from __future__ import annotations

import ctypes
import math
import time
from typing import Any

from weft.codegen import kernel as abi
from weft.frontend.source import References
from weft.runtime import executor
from weft.runtime.plans import Call, Plans

GRID = (1, 1, 1)


class Code:
    """Stands for a kernel's executable: ``statuses`` are what its entry point returns, in turn; ``seen`` holds the slots and the
    words that it was given, ``ended``, ``spreads`` and ``rejoined`` what Python was asked to do."""

    is_plain = True
    scratch = 0
    written: tuple[str, ...] = ("a", "c")

    def __init__(self, slots: int, measured: tuple[int, ...] = (), least: int = 1, pace: float = math.inf):
        self.slots, self.measured, self.least = slots, measured, least
        self.pace = (ctypes.c_double * 2)(pace, 0)
        self.statuses: list[int] = []
        self.pauses: list[int] = []
        self.scratches: list[int] = []
        self.seen: list[bytes] = []
        self.words: list[tuple[int, ...]] = []
        self.ended: list[int] = []
        self.spreads: list[tuple[int, ...]] = []
        self.rejoined: list[int] = []
        self.takes = 0.0
        self.entry = executor.ENTRY(self.enter)
        self.address = ctypes.cast(self.entry, ctypes.c_void_p).value

    def enter(self, launch: int, thread: int) -> int:
        self.words.append(tuple((ctypes.c_int64 * (abi.SLOTS - abi.TOTAL)).from_address(launch + 8 * abi.TOTAL)))
        self.seen.append(ctypes.string_at(launch + 8 * abi.SLOTS, 8 * self.slots))
        pause = ctypes.c_int64.from_address(thread)
        self.scratches.append(ctypes.c_int64.from_address(thread + 8 * abi.SCRATCH).value)
        self.pauses.append(pause.value)
        pause.value = 0
        time.sleep(self.takes)
        return self.statuses.pop(0) if self.statuses else abi.DONE

    def end(self, workspace: Any, status: int) -> None:
        self.ended.append(status)

    def spread(self, workspace: Any, kept: Any) -> None:
        self.spreads.append((workspace.programs,))

    def rejoin(self, workspace: Any, status: int) -> None:
        self.rejoined.append(status)


def planned(
    code: Any, call: Call, references: References | None = None, held: tuple[Any, ...] = ()
) -> tuple[Plans, list[Any]]:
    """A kernel's plans with one for a call, and the launches that went to Python."""
    slow: list[Any] = []
    plans = Plans(lambda *args, **keywords: slow.append((args, keywords)), held)
    plans.add(code, references or References(), call)
    return plans, slow
