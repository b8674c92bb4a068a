"""Memory that native code works in: what a launch hands to it, and what comes back. One thread uses a workspace at a time."""

from __future__ import annotations

import ctypes
import threading
from typing import Final

RECORD: Final = 64
THREAD: Final = 128
ARGUMENTS: Final = 192
"""Byte offsets in a workspace of the launch's record, the thread's words and the arguments. The counter is at 0. Each has
cache lines of its own."""
_STOP: Final = RECORD + 8 * 6
_PRINTER: Final = RECORD + 8 * 7
_NONE_LEFT: Final = 2**62
_ALIGNMENT: Final = 64


class Workspace:
    """Memory for one native call: the counter, the launch's record, the thread's words and ``slots`` arguments in
    ``block``, which a launch packs at ``offset``; and scratch memory, grown on demand. All 64-byte aligned. ``main`` says
    whether it belongs to the main thread."""

    __slots__ = ("block", "offset", "address", "slots", "main", "_scratch", "_scratch_address", "_scratch_size")

    def __init__(self, slots: int = 64):
        self.slots = slots
        self.block = ctypes.create_string_buffer(ARGUMENTS + 8 * slots + _ALIGNMENT)
        self.offset = -ctypes.addressof(self.block) % _ALIGNMENT
        self.address = ctypes.addressof(self.block) + self.offset
        self.main = threading.get_ident() == threading.main_thread().ident
        self._scratch = ctypes.create_string_buffer(_ALIGNMENT)
        self._scratch_address = 0
        self._scratch_size = 0

    def scratch(self, size: int) -> int:
        """The address of ``size`` bytes; 0 for none. Valid until a larger size is asked for."""
        if size > self._scratch_size:
            self._scratch = (ctypes.c_char * (size + _ALIGNMENT))()
            self._scratch_address = (ctypes.addressof(self._scratch) + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            self._scratch_size = size
        return self._scratch_address

    def fault(self) -> tuple[int, ...]:
        """The launch's record: whether an access failed, its site, three program ids, the address, stop, and
        what prints."""
        return tuple((ctypes.c_int64 * 8).from_address(self.address + RECORD))

    @property
    def stop_word(self) -> int:
        """The address of the word that stops the launch."""
        return self.address + _STOP

    def stop(self) -> None:
        """Stops the launch: no program is left to claim, and running ones end at the next place where they look."""
        ctypes.c_int64.from_address(self.stop_word).value = 1
        ctypes.c_int64.from_address(self.address).value = _NONE_LEFT

    def set_printer(self, address: int) -> None:
        """Tells native code what prints, until arguments are packed again."""
        ctypes.c_int64.from_address(self.address + _PRINTER).value = address

    def pause(self) -> None:
        """Asks native code that this thread runs to return at the next program boundary."""
        ctypes.c_int64.from_address(self.address + THREAD).value = 1


class _Workspaces(threading.local):
    """This thread's idle workspaces: one, or more where launches nest (signal handlers, finalisers)."""

    def __init__(self) -> None:
        self.idle: list[Workspace] = []


_workspaces: Final = _Workspaces()


def take(slots: int) -> Workspace:
    """A workspace of this thread with room for ``slots`` arguments; `give` it back once no thread uses it."""
    idle = _workspaces.idle
    if idle and idle[-1].slots >= slots:
        return idle.pop()
    return Workspace(max(64, slots))


def give(workspace: Workspace) -> None:
    """Ends the use of a workspace taken by this thread."""
    _workspaces.idle.append(workspace)
