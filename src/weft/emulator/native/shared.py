"""Accesses to shared memory, natively, where nothing is wrong with them.

The checks of an access, its race detection and its counters are some forty calls of NumPy. Nearly always all lanes are in bounds,
aligned, find written bytes, and come behind a barrier or touch what is the thread's own. `shared_access` looks for that, and then
does all of it in one go. In any doubt it has changed nothing and says so, and the access goes the usual way
(`weft.emulator.memory`), which decides and words the fault. So there is one place for verdicts.

What is the thread's own: beside the times of lines (`weft.emulator.memory.shadow`) there is an *owner* for each granule, who
accessed it last, in the form of a mark. `MANY` says that others did, too, whom the last one had not seen. Whoever has seen the
owner of a mark without it, says the clocks' table, has seen all before.

In a cluster an address has the rank of a block above its byte (`weft.emulator.memory.cluster`).
"""

from __future__ import annotations

import enum
from typing import Final

from weft.emulator.native.scalar import i32, i64, put8, put16, put32, put64, u8, u16, u32

WIDEST: Final = 16
"""Bytes of the widest access: it lies in one line of 16 bytes."""


class Site(enum.IntEnum):
    """The words of an instruction, and from `REQUESTS` on what it answers."""

    BASE = 0
    """The register with the addresses, ``BITS`` wide."""
    BITS = 1
    STEP = 2
    """Bytes from one thread's address to the next's; 0 where all have the same."""
    OFFSET = 3
    SIZE = 4
    ELEMENT = 5
    PARTS = 6
    WRITES = 7
    VECTOR = 8
    """log2 of the bytes that a bank group serves a lane."""
    LOW = 9
    """The access is of the bytes from here on (of a variable),"""
    HIGH = 10
    """to here."""
    REACHES = 11
    """Whether it may access memory of other blocks of the cluster."""
    REQUESTS = 12
    WAVEFRONTS = 13
    IDEAL = 14
    DATA = 15
    """The registers of the parts."""


class Common(enum.IntEnum):
    """The words of a batch of blocks."""

    WARPS = 0
    BLOCKS = 1
    """The block of each warp: a cluster is one."""
    STRIDE = 2
    BYTES = 3
    WRITTEN = 4
    LOW = 5
    """The mark of each thread, without time."""
    SHIFT = 6
    SEEN = 7
    """Times up to which all of a block have seen everything, by block."""
    SEEN_READS = 8
    WRITE_LINES = 9
    GENERIC_LINES = 10
    READ_LINES = 11
    STRONG_WRITES = 12
    STRONG_READS = 13
    WRITERS = 14
    """Owners, or 0 where there are none: then only lines that all have seen are clean."""
    READERS = 15
    STAMPS = 16
    BANKS = 17
    """Room to count in."""
    HOMES = 18
    """The resident block of each warp, where clusters count as blocks too."""
    CLUSTER = 19
    """Blocks of a cluster; 0 where addresses are bytes alone."""
    RANK = 20
    """The bit of an address from which on it has a rank."""
    FIRSTS = 21
    """The first block of each warp's cluster."""
    ENDED = 22
    """Whether a resident block has no threads any more, a byte each."""
    CLOCKS = 23
    """`Clocks.seen`,"""
    ROWS = 24
    """and where each warp's row begins in it."""


def shared_access(site: int, common: int, mask: int, now: int, flat: int) -> int:
    """1 if the access was made: ``flat`` has its first bytes then, and the site its counts. 0: nothing was done."""
    if not shared_is_clean(site, common, mask, now, flat):
        return 0
    warps = i64(common, Common.WARPS)
    size = i64(site, Site.SIZE)
    element = i64(site, Site.ELEMENT)
    parts = i64(site, Site.PARTS)
    writes = i64(site, Site.WRITES)
    memory = i64(common, Common.BYTES)
    written = i64(common, Common.WRITTEN)
    low = i64(common, Common.LOW)
    shift = i64(common, Common.SHIFT)
    seen = i64(common, Common.SEEN_READS)
    blocks = i64(common, Common.BLOCKS)
    clocks = i64(common, Common.CLOCKS)
    rows = i64(common, Common.ROWS)
    lines = i64(common, Common.WRITE_LINES) if writes else i64(common, Common.READ_LINES)
    generic = i64(common, Common.GENERIC_LINES)
    writers = i64(common, Common.WRITERS)
    readers = i64(common, Common.READERS)
    each = size >> shift
    n = 0
    for warp in range(warps):
        floor = i64(seen, i64(blocks, warp))
        row = i64(rows, warp)
        for thread in range(warp * 32, warp * 32 + 32):
            if u8(mask, thread):
                first = i64(flat, n)
                n += 1
                put32(lines, first >> 4, now)
                mark = (now << 32) + i64(low, thread)
                if writes:
                    put32(generic, first >> 4, now)
                    if written:
                        if size >= 8:
                            put64(written + first, 0, 0x0101010101010101)
                            if size == 16:
                                put64(written + first, 1, 0x0101010101010101)
                        else:
                            for byte in range(first, first + size):
                                put8(written, byte, 1)
                for granule in range(first >> shift, (first >> shift) + each):
                    if writes and writers:
                        put64(writers, granule, mark)
                    if readers:
                        many = 0
                        if not writes and unseen(i64(readers, granule), i64(low, thread), floor, clocks, row):
                            many = 0x80000000
                        put64(readers, granule, mark | many)
                for part in range(parts):
                    data = i64(site, Site.DATA + part)
                    place = memory + first + part * element
                    if element == 4:
                        if writes:
                            put32(place, 0, u32(data, thread))
                        else:
                            put32(data, thread, u32(place, 0))
                    elif element == 8:
                        if writes:
                            put64(place, 0, i64(data, thread))
                        else:
                            put64(data, thread, i64(place, 0))
                    elif element == 2:
                        if writes:
                            put16(place, 0, u16(data, thread))
                        else:
                            put16(data, thread, u16(place, 0))
                    elif writes:
                        put8(place, 0, u8(data, thread))
                    else:
                        put8(data, thread, u8(place, 0))
    count_wavefronts(site, common, mask, flat)
    return 1


def unseen(mark: int, mine: int, floor: int, clocks: int, row: int) -> int:
    """Whether an owner's access may be one that a thread with the mark ``mine`` has not seen: after what all have seen, of
    another thread, and of several or after what the row of clocks says."""
    time = mark >> 32
    if time <= floor or (mark & 0xFFFFFFFF) == mine:
        return 0
    if mark & 0x80000000:
        return 1
    return 1 if time > i64(clocks, row + (mark >> 20 & 0x7FF)) else 0


def shared_is_clean(site: int, common: int, mask: int, now: int, flat: int) -> int:
    """Whether nothing is wrong with an access, or in doubt; fills in ``flat``."""
    warps = i64(common, Common.WARPS)
    blocks = i64(common, Common.BLOCKS)
    least = i64(site, Site.LOW)
    limit = i64(site, Site.HIGH)
    stride = i64(common, Common.STRIDE)
    written = i64(common, Common.WRITTEN)
    low = i64(common, Common.LOW)
    shift = i64(common, Common.SHIFT)
    seen = i64(common, Common.SEEN)
    seen_reads = i64(common, Common.SEEN_READS)
    write_lines = i64(common, Common.WRITE_LINES)
    read_lines = i64(common, Common.READ_LINES)
    strong_writes = i64(common, Common.STRONG_WRITES)
    strong_reads = i64(common, Common.STRONG_READS)
    writers = i64(common, Common.WRITERS)
    readers = i64(common, Common.READERS)
    stamps = i64(common, Common.STAMPS)
    homes = i64(common, Common.HOMES)
    cluster = i64(common, Common.CLUSTER)
    bit = i64(common, Common.RANK)
    below = (1 << bit) - 1
    firsts = i64(common, Common.FIRSTS)
    ended = i64(common, Common.ENDED)
    clocks = i64(common, Common.CLOCKS)
    rows = i64(common, Common.ROWS)
    reaches = i64(site, Site.REACHES)
    base = i64(site, Site.BASE)
    bits = i64(site, Site.BITS)
    step = i64(site, Site.STEP)
    offset = i64(site, Site.OFFSET)
    size = i64(site, Site.SIZE)
    writes = i64(site, Site.WRITES)
    each = size >> shift
    n = 0
    before = -1
    ascending = 1
    for warp in range(warps):
        block = i64(blocks, warp)
        floor = i64(seen, block)
        floor_reads = i64(seen_reads, block)
        row = i64(rows, warp)
        home = i64(homes, warp)
        start = home * stride
        leader = i64(firsts, warp)
        for thread in range(warp * 32, warp * 32 + 32):
            if u8(mask, thread):
                address = 0
                if bits == 32:
                    address = (u32(base + thread * step, 0) + offset) & 0xFFFFFFFF
                else:
                    address = i64(base + thread * step, 0) + offset
                place = start
                if cluster:
                    rank = address >> bit
                    address = address & below
                    where = leader + rank
                    if where != home:
                        if not reaches or rank < 0 or rank >= cluster:
                            return 0
                        if u8(ended, where):
                            return 0
                        place = where * stride
                if address < least or address > limit - size or address & (size - 1):
                    return 0
                first = address + place
                put64(flat, n, first)
                n += 1
                if first < before:
                    ascending = 0
                before = first + size
                line = first >> 4
                mine = i64(low, thread)
                if not writes and written:
                    if size == 4:
                        if u32(written + first, 0) != 0x01010101:
                            return 0
                    elif size >= 8:
                        if i64(written + first, 0) != 0x0101010101010101:
                            return 0
                        if size == 16 and i64(written + first, 1) != 0x0101010101010101:
                            return 0
                    else:
                        for byte in range(first, first + size):
                            if not u8(written, byte):
                                return 0
                if strong_writes and i32(strong_writes, line) > floor:
                    return 0
                if i32(write_lines, line) > floor:
                    if not writers:
                        return 0
                    for granule in range(first >> shift, (first >> shift) + each):
                        if unseen(i64(writers, granule), mine, floor, clocks, row):
                            return 0
                if writes:
                    if strong_reads and i32(strong_reads, line) > floor:
                        return 0
                    if i32(read_lines, line) > floor_reads:
                        if not readers:
                            return 0
                        for granule in range(first >> shift, (first >> shift) + each):
                            if unseen(i64(readers, granule), mine, floor_reads, clocks, row):
                                return 0
    if writes and not ascending:
        n = 0
        for thread in range(warps * 32):
            if u8(mask, thread):
                first = i64(flat, n)
                n += 1
                for granule in range(first >> shift, (first >> shift) + each):
                    if i32(stamps, granule) == now:
                        return 0
                    put32(stamps, granule, now)
    return 1


def count_wavefronts(site: int, common: int, mask: int, flat: int) -> int:
    """`weft.emulator.profile.counting.wavefronts`: of each phase the most distinct vectors of a bank group."""
    warps = i64(common, Common.WARPS)
    banks = i64(common, Common.BANKS)
    vector = i64(site, Site.VECTOR)
    lanes = 128 >> vector
    requests = 0
    wavefronts = 0
    ideal = 0
    n = 0
    for warp in range(warps):
        any = 0
        phase = 0
        while phase < 32:
            most = 0
            for thread in range(warp * 32 + phase, warp * 32 + phase + lanes):
                if u8(mask, thread):
                    place = i64(flat, n) >> vector
                    n += 1
                    group = place & (lanes - 1)
                    count = i64(banks, group)
                    fresh = 1
                    for other in range(count):
                        if i64(banks, 32 + group * 32 + other) == place:
                            fresh = 0
                            break
                    if fresh:
                        put64(banks, 32 + group * 32 + count, place)
                        put64(banks, group, count + 1)
                        if count >= most:
                            most = count + 1
            if most:
                any = 1
                ideal += 1
                wavefronts += most
                for group in range(lanes):
                    put64(banks, group, 0)
            phase += lanes
        requests += any
    put64(site, Site.REQUESTS, requests)
    put64(site, Site.WAVEFRONTS, wavefronts)
    put64(site, Site.IDEAL, ideal)
    return 0


FUNCTIONS: Final = (unseen, shared_is_clean, count_wavefronts, shared_access)
"""What is translated."""

NUMBERS: Final = {f"{words.__name__}.{word.name}": int(word) for words in (Site, Common) for word in words}
"""The numbers that the functions name."""
