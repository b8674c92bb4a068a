"""Memory that native code works in: what a launch hands to it, and what comes back. One thread uses a workspace at a time."""

from __future__ import annotations

import ctypes
import mmap
import struct
import threading
from typing import Final

MOST_SHARES: Final = 64
"""The most shares of a grid (`weft.codegen.kernel`). A test compares the two."""

THREAD: Final = 0
SHARE: Final = THREAD + 32
TICKET: Final = THREAD + 40
LAUNCH: Final = 64
RECORD: Final = LAUNCH + 8 * MOST_SHARES
SHARES: Final = RECORD + 64
CLAIMS: Final = SHARES + 8
PROGRAMS: Final = CLAIMS + 8
ARGUMENTS: Final = PROGRAMS + 40
"""Byte offsets in a workspace: the thread's words, the launch's ticket (`weft.runtime.spinning`), and the launch's words, which
are the counters, the record, the grid and the slots of arguments (`weft.codegen.kernel`). Those that are written while a launch
runs have cache lines of their own."""

HEAD: Final = f"=24xQ{PROGRAMS - 32}x5q"
"""The `struct` code of all before the arguments: the address of scratch memory, the number of programs, how many are claimed at
a time, and the three sizes of the grid. Everything else becomes 0."""

STOP: Final = RECORD + 8 * 6
"""The offset of the word that stops the launch."""
_PRINTER: Final = RECORD + 8 * 7
_ALIGNMENT: Final = 64
_enter: Final = struct.Struct("=24xQ").pack_into


def _pages(size: int) -> mmap.mmap:
    """Memory of this process alone, which the system gives as it is touched: a kernel of matrix products asks for 34 MiB and
    touches 0.1 for small matrices. To clear all took its first launch 18 ms. Raises `MemoryError` where the system refuses.

    NumPy's arrays would ask for huge pages, in which products of 512^3 took 1.02 of the time.
    """
    try:
        if hasattr(mmap, "MAP_PRIVATE"):  # not on Windows, which has no fork either
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return mmap.mmap(-1, size)
    except OSError as error:
        raise MemoryError(f"no {size} bytes of scratch memory for a thread: {error}") from error


class Workspace:
    """Memory for one native call: what ``thread`` and ``launch`` are the addresses of, with room for ``slots`` arguments, in
    ``block``, which a launch packs at ``offset``; and scratch memory, grown on demand. All 64-byte aligned. ``main`` says
    whether it belongs to the main thread, ``taken`` some nanoseconds that the caller's part of the last launch took on several
    threads, with its waits for workers that looked."""

    __slots__ = (
        "block",
        "offset",
        "address",
        "thread",
        "launch",
        "slots",
        "main",
        "taken",
        "_scratch",
        "_scratch_address",
        "_size",
    )

    def __init__(self, slots: int = 64):
        self.slots = slots
        self.block = ctypes.create_string_buffer(ARGUMENTS + 8 * slots + _ALIGNMENT)
        self.offset = -ctypes.addressof(self.block) % _ALIGNMENT
        self.address = ctypes.addressof(self.block) + self.offset
        self.thread = self.address + THREAD
        self.launch = self.address + LAUNCH
        self.main = threading.get_ident() == threading.main_thread().ident
        self.taken = 0
        self._scratch: ctypes.c_char | None = None
        self._scratch_address = 0
        self._size = 0

    def scratch(self, size: int) -> int:
        """The address of ``size`` bytes; 0 for none. Valid until a larger size is asked for."""
        if size > self._size:
            self._scratch = ctypes.c_char.from_buffer(_pages(size))
            self._scratch_address = ctypes.addressof(self._scratch)
            self._size = size
        return self._scratch_address

    @property
    def scratch_size(self) -> int:
        """How many bytes of scratch memory there are."""
        return self._size

    def enter(self, scratch: int) -> None:
        """Makes the thread's words ready for a launch that another workspace describes, and needs ``scratch`` bytes."""
        _enter(self.block, self.offset, self.scratch(scratch))

    def fault(self) -> tuple[int, ...]:
        """The launch's record: whether an access failed, its site, three program ids, the address, stop, and
        what prints."""
        return tuple((ctypes.c_int64 * 8).from_address(self.address + RECORD))

    @property
    def programs(self) -> int:
        """How many programs the launch has."""
        return ctypes.c_int64.from_address(self.address + PROGRAMS).value

    @property
    def outcomes(self) -> int:
        """A bit for each status that native code returned to workers that looked for the launch."""
        return ctypes.c_int64.from_address(self.address + TICKET + 8).value

    @property
    def stop_word(self) -> int:
        """The address of the word that stops the launch."""
        return self.address + STOP

    def stop(self) -> None:
        """Stops the launch: no program is claimed any more, and running ones end at the next place where they look."""
        ctypes.c_int64.from_address(self.stop_word).value = 1

    def share_out(self, shares: int, claims: int) -> None:
        """Has so many threads begin in shares of their own of the launch that is packed, or as many as there may be. They claim
        by the function at an address (`weft.runtime.shares`); where that is 0, there is one share."""
        (ctypes.c_int64 * 2).from_address(self.address + SHARES)[:] = min(shares, MOST_SHARES), claims

    def begin_at(self, share: int) -> None:
        """Has this thread begin in that share of any launch that another workspace describes."""
        ctypes.c_int64.from_address(self.address + SHARE).value = share

    def set_printer(self, address: int) -> None:
        """Tells native code what prints, until arguments are packed again."""
        ctypes.c_int64.from_address(self.address + _PRINTER).value = address

    def pause(self) -> None:
        """Asks native code that this thread runs to return at the next program boundary."""
        ctypes.c_int64.from_address(self.thread).value = 1


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
