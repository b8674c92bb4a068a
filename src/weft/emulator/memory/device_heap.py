"""The heap of device malloc and free: a part of global memory, in which every allocation has pages of its own.

Hardware packs allocations, and lets a program read through a pointer that it has freed. Here a page is what the bounds check
looks at: an allocation is on pages that no other has in the same launch, with a free one behind, so that accesses past its end,
before its begin and after its free are out of bounds. The price is room: `ROOM` times the limit is set aside. Where that is used
up, memory is given again: what was freed longest ago first, so that accesses after a free are found while there is room.
What is allocated at the end of a launch is there in the next one, as on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.memory.arena import PAGE, Heap

LIMIT: Final = 8 << 20
"""Bytes of the heap, unless a module says otherwise: CUDA's own default."""

ROOM: Final = 4

ALIGNMENT: Final = 16
"""What malloc's addresses are multiples of, at least."""

NAME: Final = "the device's heap"


@dataclass
class Allocated:
    """What malloc gave: ``size`` bytes from byte ``start`` of the heap on; who asked, and who freed it, in words."""

    start: int
    size: int
    by: str
    freed: str = ""

    @property
    def room(self) -> int:
        """Bytes of its pages, and of the free one behind."""
        return (-(-self.size // PAGE) + 1) * PAGE

    @property
    def charge(self) -> int:
        """What it takes of the limit."""
        return max(-(-self.size // ALIGNMENT) * ALIGNMENT + ALIGNMENT, self.room // ROOM)


class DeviceHeap:
    """What of a module's heap is allocated, from launch to launch."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.live: dict[int, Allocated] = {}
        """By the first byte."""
        self.contents: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.written: NDArray[np.uint8] = np.zeros(0, np.uint8)

    @property
    def size(self) -> int:
        """Bytes of global memory that it needs."""
        return -(-ROOM * self.limit // PAGE) * PAGE

    def begin(self, arena: Heap, start: int) -> HeapUse:
        """A launch has it at byte ``start`` of its global memory."""
        return HeapUse(self, arena, start)


class HeapUse:
    """The heap during a launch: what this one allocates and frees is the heap's when it is over."""

    def __init__(self, heap: DeviceHeap, arena: Heap, start: int) -> None:
        self.heap = heap
        self.arena = arena
        self.start = start
        self.live = {begin: Allocated(a.start, a.size, a.by) for begin, a in heap.live.items()}
        self.gone: list[Allocated] = []
        self.next = max((a.start + a.room for a in self.live.values()), default=0)
        """Where the next allocation begins."""
        self.end_of_gap = heap.size
        """Where what is free from there on ends."""
        self.used = self.next
        """What lies behind has not been given in this launch."""
        self.charged = sum(a.charge for a in self.live.values())
        arena.ends[start // PAGE : (start + heap.size) // PAGE] = 0
        arena.bytes[start : start + heap.contents.size] = heap.contents
        if arena.written is not None:
            arena.written[start : start + heap.written.size] = heap.written
        for a in self.live.values():
            self._open(a)
        arena.describers.append(self.describe)

    def malloc(self, size: int, alignment: int, by: str) -> int | None:
        """Where ``size`` new bytes begin in global memory; None if the limit is reached. `MemoryError` if the room is."""
        found = Allocated(-(-self.next // alignment) * alignment, size, by)
        if size <= 0 or self.charged + found.charge > self.heap.limit:
            return None
        if found.start + found.room > self.end_of_gap:
            found.start, self.end_of_gap = self._gap(found.room, alignment)
        self.live[found.start] = found
        self.next = found.start + found.room
        self.charged += found.charge
        if found.start < self.used:
            first = self.start + found.start
            self.arena.given_again(first, first + found.room)
        self.used = max(self.used, self.next)
        self._open(found)
        return self.start + found.start

    def _gap(self, room: int, alignment: int) -> tuple[int, int]:
        """A place for so many bytes, and where what is free there ends. `MemoryError` if there is none."""
        while True:
            taken = sorted((a.start, a.start + a.room) for a in (*self.live.values(), *self.gone))
            place = 0
            for begin, end in (*taken, (self.heap.size, self.heap.size)):
                start = -(-place // alignment) * alignment
                if start + room <= begin:
                    return start, begin
                place = max(place, end)
            if not self.gone:
                raise MemoryError
            del self.gone[: -(-len(self.gone) // 4)]

    def free(self, place: int, by: str) -> str:
        """Gives back what begins at a byte of global memory; what is wrong with that, or ""."""
        found = self.live.pop(place - self.start, None)
        if found is None:
            for a in reversed(self.gone):
                if a.start == place - self.start:
                    return f"free of memory that is free already: {self._words(a)}"
            return "free of an address that malloc did not give"
        found.freed = by
        self.gone.append(found)
        self.charged -= found.charge
        first = self.start + found.start
        self.arena.ends[first // PAGE : (first + found.room) // PAGE] = 0
        return ""

    def end(self) -> None:
        """The launch is over, without a fault."""
        size = max((a.start + a.room for a in self.live.values()), default=0)
        heap, arena, start = self.heap, self.arena, self.start
        heap.live = self.live
        heap.contents = arena.bytes[start : start + size].copy()
        marks = np.ones(size, np.uint8) if arena.written is None else arena.written[start : start + size].copy()
        heap.written = marks

    def describe(self, flat: int) -> str:
        """Words for a byte of global memory that is the heap's; "" for another."""
        place = flat - self.start
        if not 0 <= place < self.heap.size:
            return ""
        here = f"0x{self.arena.base + flat:x}"
        near = [a for a in (*self.live.values(), *self.gone) if a.start <= place < a.start + a.room]
        if not near:
            return f"{here}: byte {place} of {NAME}, which malloc has not given"
        a = near[-1]
        past = place - a.start - a.size
        where = f"byte {place - a.start} of" if past < 0 else f"{past} bytes past the end of"
        return f"{here}: {where} {self._words(a)}"

    def _words(self, a: Allocated) -> str:
        return f"{a.size} bytes that malloc gave {a.by}" + (f", freed by {a.freed}" if a.freed else "")

    def _open(self, a: Allocated) -> None:
        first = self.start + a.start
        pages = slice(first // PAGE, (first + a.size - 1) // PAGE + 1)
        self.arena.begins[pages] = first
        self.arena.ends[pages] = first + a.size
