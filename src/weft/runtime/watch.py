"""Signals while the main thread runs native code.

Python runs signal handlers in the main thread, between two bytecodes, so a launch of the main thread would delay them
until the whole grid has run. A `Watch` is a thread that helps in two ways:

1. Every ``seconds`` it asks the launch to return to Python at the next program boundary. Handlers run, and the launch goes on
   where it was, or ends with what a handler raises. This works for every signal and on every system.
2. Until the launch returns, SIGINT stops it at once (`weft.runtime.sigint`), where the handler of SIGINT is Python's own, which
   raises KeyboardInterrupt: programs are left inside their loops. With any other handler the launch may have to go on, so
   programs are not left.

The second is for POSIX, and begins ``seconds`` after the launch at the latest. A SIGINT that comes before is seen at the next
program boundary; where there is none, the next SIGINT stops the launch.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.runtime.sigint import StopOnSignal

if TYPE_CHECKING:
    from weft.runtime.workspace import Workspace

_LEADING, _ASLEEP = range(2)
"""What the words of a watch say."""

_IDLE_LOOKS: Final = 20
"""Looks without a launch after which the thread sleeps until the next one."""


def release(lock: _thread.LockType) -> None:
    """Release a lock that stands for an event, if it is not released already."""
    with contextlib.suppress(RuntimeError):
        lock.release()


class Watch:
    """Looks every ``seconds`` whether ``leading``, the workspace of the main thread's launch, is in native code. Or that which
    ``direct`` gives is, where a word says so that native code writes (`weft.runtime.plans`).

    The thread starts with the first launch, and sleeps while nothing is launched (``asleep``). While
    ``handler`` is installed, SIGINT stops the launch; the main thread then calls `disarm` when it is back.
    """

    def __init__(self, seconds: float = 0.05):
        self.seconds = seconds
        self.leading: Workspace | None = None
        self.direct: Callable[[], Workspace] | None = None
        self._words = (ctypes.c_int64 * 2)(0, True)
        self.address_of_leading, self.address_of_asleep = (
            ctypes.addressof(self._words) + 8 * word for word in (_LEADING, _ASLEEP)
        )
        self._wakeup = _thread.allocate_lock()
        self._wakeup.acquire()
        self._started = False
        self.handler = StopOnSignal()

    def wake(self) -> None:
        """Have the thread look."""
        if not self._started:
            _thread.start_new_thread(self._work, ())
            self._started = True
        self.asleep = False
        release(self._wakeup)

    @property
    def asleep(self) -> bool:
        return self._words[_ASLEEP] != 0

    @asleep.setter
    def asleep(self, asleep: bool) -> None:
        self._words[_ASLEEP] = asleep

    def _watched(self) -> Workspace | None:
        if self.direct is not None and self._words[_LEADING]:
            return self.direct()
        return self.leading  # after an exception that of a launch which has ended, until the next one

    def disarm(self) -> None:
        """Have SIGINT do what it did before."""
        self.handler.remove()

    def _work(self) -> None:
        idle = 0
        while True:
            if (workspace := self._watched()) is not None:
                idle = 0
                if os.name == "posix":
                    self.handler.install(workspace.stop_word)
                workspace.pause()
                if self._watched() is None:  # the main thread may have looked at the handler before
                    self.disarm()
            elif (idle := idle + 1) > _IDLE_LOOKS:
                idle = 0
                self.asleep = True
                if self._watched() is None:  # a launch that begins from here on finds the thread asleep
                    self._wakeup.acquire()
            time.sleep(self.seconds)
