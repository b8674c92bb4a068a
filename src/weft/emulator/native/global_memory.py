"""Accesses to global memory, natively, where nothing is wrong with them.

As for shared memory (`weft.emulator.native.shared`), in any doubt an access goes the usual way, which decides and words faults.
Races are looked for between two halves, by `weft.emulator.memory.global_order`:

- `global_places` looks whether all lanes are in allocations, aligned, and read written bytes. It gives where each one's bytes
  begin, counts sectors (`weft.emulator.profile.counting`), and gathers what is to be written.
- `global_copy` moves the bytes.
"""

from __future__ import annotations

import enum
from typing import Final

from weft.emulator.native.scalar import ballot, i8, i16, i32, i64, put8, put16, put32, put64, room, u8, u16, u32

WIDEST: Final = 32
"""Bytes of the widest access: it lies in one sector."""


class Site(enum.IntEnum):
    """The words of an instruction, and from `REQUESTS` on what `global_places` answers."""

    BASE = 0
    """The 64-bit register with the addresses."""
    STEP = 1
    """Bytes from one thread's address to the next's; 0 where all have the same."""
    OFFSET = 2
    SIZE = 3
    ELEMENT = 4
    PARTS = 5
    WRITES = 6
    WIDTH = 7
    """Bytes of a part's register, which may be wider than the element."""
    SIGNED = 8
    """Whether a wider register gets the sign."""
    REQUESTS = 9
    SECTORS = 10
    IDEAL = 11
    LEAST = 12
    """The first of the places,"""
    GREATEST = 13
    """and the last."""
    DATA = 14
    """The registers of the parts."""


class Common(enum.IntEnum):
    """The words of a launch."""

    WARPS = 0
    HEAP = 1
    """The address that the first byte has for the kernel."""
    BYTES = 2
    COUNT = 3
    """How many bytes there are."""
    BEGINS = 4
    """Of each page, where its allocation begins,"""
    ENDS = 5
    """and where it ends."""
    WRITTEN = 6
    """Which bytes are written, or 0."""


def global_places(site: int, common: int, mask: int, flat: int, values: int) -> int:
    """Whether nothing is wrong with an access, or in doubt; fills in ``flat``, the counts, and ``values`` to be written."""
    warps = i64(common, Common.WARPS)
    heap = i64(common, Common.HEAP)
    count = i64(common, Common.COUNT)
    written = i64(common, Common.WRITTEN)
    base = i64(site, Site.BASE)
    step = i64(site, Site.STEP)
    offset = i64(site, Site.OFFSET)
    size = i64(site, Site.SIZE)
    writes = i64(site, Site.WRITES)
    begin = 0
    end = 0
    least = 1 << 62
    greatest = 0
    requests = 0
    sectors = 0
    ideal = 0
    ordered = room(32)
    n = 0
    for warp in range(warps):
        if not ballot(mask, warp):
            continue
        start = n
        for thread in range(warp * 32, warp * 32 + 32):
            if u8(mask, thread):
                first = i64(base + thread * step, 0) + offset - heap
                if first < begin or first > end - size:
                    if first < 0 or first >= count:
                        return 0
                    begin = i64(i64(common, Common.BEGINS), first >> 8)
                    end = i64(i64(common, Common.ENDS), first >> 8)
                    if first < begin or first > end - size:
                        return 0
                if first & (size - 1):
                    return 0
                if not writes and written and not all_written(written + first, size):
                    return 0
                put64(flat, n, first)
                n += 1
                least = first if first < least else least
                greatest = first if first > greatest else greatest
        found = distinct(flat + 8 * start, n - start)
        if found < 0:
            ascend(flat + 8 * start, n - start, ordered)
            found = distinct(ordered, n - start)
        requests += 1
        sectors += found >> 32
        ideal += ((found & 0xFFFFFFFF) * size + 31) >> 5
    put64(site, Site.REQUESTS, requests)
    put64(site, Site.SECTORS, sectors)
    put64(site, Site.IDEAL, ideal)
    put64(site, Site.LEAST, least)
    put64(site, Site.GREATEST, greatest)
    if writes:
        gather(site, common, mask, values)
    return 1


def all_written(place: int, size: int) -> int:
    """Whether so many bytes are."""
    if size == 4:
        return u32(place, 0) == 0x01010101
    if size < 4:
        for byte in range(size):
            if not u8(place, byte):
                return 0
        return 1
    for word in range(size >> 3):
        if i64(place, word) != 0x0101010101010101:
            return 0
    return 1


def distinct(places: int, n: int) -> int:
    """How many different numbers ascending ones are, and from bit 32 on how many sectors; -1 if they do not ascend."""
    before = i64(places, 0)
    found = 1
    sectors = 1
    for i in range(1, n):
        place = i64(places, i)
        if place < before:
            return -1
        found += place != before
        sectors += place >> 5 != before >> 5
        before = place
    return found | sectors << 32


def ascend(places: int, n: int, ordered: int) -> None:
    """Numbers in ascending order."""
    for i in range(n):
        place = i64(places, i)
        j = i
        while j > 0 and i64(ordered, j - 1) > place:
            put64(ordered, j, i64(ordered, j - 1))
            j -= 1
        put64(ordered, j, place)


def gather(site: int, common: int, mask: int, values: int) -> None:
    """Puts what the threads of the mask write one after the other."""
    element = i64(site, Site.ELEMENT)
    parts = i64(site, Site.PARTS)
    width = i64(site, Site.WIDTH)
    size = i64(site, Site.SIZE)
    for part in range(parts):
        data = i64(site, Site.DATA + part)
        target = values + part * element
        for thread in range(i64(common, Common.WARPS) * 32):
            if u8(mask, thread):
                source = data + thread * width
                if element == 4:
                    put32(target, 0, u32(source, 0))
                elif element == 8:
                    put64(target, 0, i64(source, 0))
                elif element == 2:
                    put16(target, 0, u16(source, 0))
                else:
                    put8(target, 0, u8(source, 0))
                target += size


def global_copy(site: int, common: int, mask: int, flat: int, values: int) -> None:
    """Makes an access that was found clean: fills registers, or writes ``values``."""
    if i64(site, Site.WRITES):
        scatter(site, common, mask, flat, values)
        return
    memory = i64(common, Common.BYTES)
    element = i64(site, Site.ELEMENT)
    parts = i64(site, Site.PARTS)
    width = i64(site, Site.WIDTH)
    signed = i64(site, Site.SIGNED)
    for part in range(parts):
        data = i64(site, Site.DATA + part)
        start = memory + part * element
        n = 0
        for thread in range(i64(common, Common.WARPS) * 32):
            if u8(mask, thread):
                source = start + i64(flat, n)
                target = data + thread * width
                n += 1
                if element == 4 and width == 4:
                    put32(target, 0, u32(source, 0))
                elif element == 8:
                    put64(target, 0, i64(source, 0))
                else:
                    value = 0
                    if element == 4:
                        value = i32(source, 0) if signed else u32(source, 0)
                    elif element == 2:
                        value = i16(source, 0) if signed else u16(source, 0)
                    else:
                        value = i8(source, 0) if signed else u8(source, 0)
                    if width == 8:
                        put64(target, 0, value)
                    elif width == 4:
                        put32(target, 0, value)
                    else:
                        put16(target, 0, value)


def scatter(site: int, common: int, mask: int, flat: int, values: int) -> None:
    """Writes what was gathered; of several to one place the last stays."""
    memory = i64(common, Common.BYTES)
    written = i64(common, Common.WRITTEN)
    size = i64(site, Site.SIZE)
    n = 0
    for thread in range(i64(common, Common.WARPS) * 32):
        if u8(mask, thread):
            first = i64(flat, n)
            source = values + n * size
            target = memory + first
            n += 1
            if size >= 8:
                for word in range(size >> 3):
                    put64(target, word, i64(source, word))
                    if written:
                        put64(written + first, word, 0x0101010101010101)
            elif size == 4:
                put32(target, 0, u32(source, 0))
                if written:
                    put32(written + first, 0, 0x01010101)
            elif size == 2:
                put16(target, 0, u16(source, 0))
                if written:
                    put16(written + first, 0, 0x0101)
            else:
                put8(target, 0, u8(source, 0))
                if written:
                    put8(written + first, 0, 1)


FUNCTIONS: Final = (all_written, distinct, ascend, gather, scatter, global_places, global_copy)
"""What is translated."""

NUMBERS: Final = {f"{words.__name__}.{word.name}": int(word) for words in (Site, Common) for word in words}
"""The numbers that the functions name."""
