"""Memory for machine code: pages that are written once and then executed.

`place` copies code to whole pages and makes them executable. `Pages` gives them back when the last reference goes. Pages come
from mappings of 1 MiB, so that thousands of kernels need few mappings: a process may have 65,530 of them on Linux. No page is
ever writable and executable at a time, and code that runs never shares a page with code that is being written.

Finalisers may run anywhere, also while this thread holds the lock. So they only put pages on a list, and whoever holds the lock
next takes them from it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Final

SIZE: Final = mmap.PAGESIZE
"""The bytes of a page."""
_MAPPING: Final = 1 << 20
_READ, _WRITE, _EXECUTE = 1, 2, 4
_DONTNEED: Final = 4


class Pages:
    """Executable pages from ``address`` on; they are free when this object is gone."""

    __slots__ = ("_count", "_first", "_mapping", "address")

    def __init__(self, mapping: _Mapping, first: int, count: int):
        self._mapping, self._first, self._count = mapping, first, count
        self.address = mapping.address + first * SIZE

    def __del__(self) -> None:
        if not sys.is_finalizing():  # a thread may still be in the code
            _released.append((self._mapping, self._first, self._count))
            _collect()


class _Mapping:
    """A mapping of private memory, with a byte for each page: 1 where it is used."""

    def __init__(self, pages: int):
        self.used = bytearray(pages)
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address = _checked("mmap", _libc().mmap(None, pages * SIZE, _READ | _WRITE, kind, -1, 0))

    def close(self) -> None:
        _checked("munmap", _libc().munmap(self.address, len(self.used) * SIZE))


_lock: Final = threading.Lock()
_released: Final[deque[tuple[_Mapping, int, int]]] = deque()
_mappings: Final[list[_Mapping]] = []


def place(size: int, code_at: Callable[[int], bytes]) -> Pages:
    """Executable pages with code of ``size`` bytes. ``code_at`` makes the code for the address where it will stand. Raises
    `OSError` where the system gives no such memory."""
    count = -(-size // SIZE)
    pages = _taken(count)
    ctypes.memmove(pages.address, code_at(pages.address), size)
    _checked("mprotect", _libc().mprotect(pages.address, count * SIZE, _READ | _EXECUTE))
    return pages


def mapped() -> int:
    """The bytes of the mappings."""
    _collect()
    return sum(len(mapping.used) * SIZE for mapping in _mappings)


def used() -> int:
    """The bytes of the pages that hold code."""
    _collect()
    return sum(sum(mapping.used) * SIZE for mapping in _mappings)


def _taken(count: int) -> Pages:
    with _lock:
        _take_back()
        for mapping in _mappings:
            if (first := mapping.used.find(bytes(count))) >= 0:
                break
        else:
            mapping, first = _Mapping(max(count, _MAPPING // SIZE)), 0
            _mappings.append(mapping)
        mapping.used[first : first + count] = b"\1" * count
    return Pages(mapping, first, count)


def _collect() -> None:
    """Takes released pages back, unless someone holds the lock, who does it later."""
    if _lock.acquire(blocking=False):
        try:
            _take_back()
        finally:
            _lock.release()


def _take_back() -> None:
    while _released:
        mapping, first, count = _released.popleft()
        address, size = mapping.address + first * SIZE, count * SIZE
        _checked("mprotect", _libc().mprotect(address, size, _READ | _WRITE))
        _checked("madvise", _libc().madvise(address, size, _DONTNEED))
        mapping.used[first : first + count] = bytes(count)
        if not any(mapping.used) and len(_mappings) > 1:
            _mappings.remove(mapping)
            mapping.close()


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    address, size = ctypes.c_void_p, ctypes.c_size_t
    library.mmap.restype = address
    library.mmap.argtypes = [address, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    library.mprotect.argtypes = [address, size, ctypes.c_int]
    library.madvise.argtypes = [address, size, ctypes.c_int]
    library.munmap.argtypes = [address, size]
    return library


def _checked(call: str, result: int) -> int:
    """The result of a call of the C library; `OSError` where it failed."""
    if result in (-1, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


if hasattr(os, "register_at_fork"):  # another thread may hold the lock when this one forks
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
