"""A launch's plain loads and stores of shared memory, as `weft.emulator.native.shared` does them.

An instruction takes part whose registers are as wide as its elements; the others, and accesses in doubt, go the usual way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.clocks import ALL, Times
from weft.emulator.memory.cluster import RANK
from weft.emulator.native.arrays import address_of, values_of
from weft.emulator.native.shared import WIDEST, Common, Site
from weft.emulator.ptx.syntax import Address, Operand, Register, Symbol

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution
    from weft.emulator.memory.order import Order
    from weft.emulator.memory.shadow import History, LastWrites
    from weft.emulator.native.code import Native
    from weft.emulator.ptx.types import Type

_SHARED: Final = 3
"""The number of `shared_access` at the interpreter's entry."""

_BANKS: Final = 32 + 32 * 32


class SharedMemory:
    """The shared memory of a launch's resident blocks."""

    def __init__(self, native: Native, execution: Execution, order: Order) -> None:
        self._call = native.call
        self._execution = execution
        self._order = order
        order.owned = True
        memory = execution.memory
        self._banks = np.zeros(_BANKS, np.int64)
        self._blocks = order.clocks.block_of
        self._words: NDArray[np.int64] = np.zeros(len(Common), np.int64)
        words = self._words
        words[Common.WARPS], words[Common.BLOCKS] = execution.warps, address_of(self._blocks)
        words[Common.STRIDE] = memory.shared_stride
        words[Common.BYTES] = address_of(memory.shared.bytes)
        words[Common.WRITTEN] = 0 if memory.shared.written is None else address_of(memory.shared.written)
        words[Common.LOW], words[Common.SHIFT] = address_of(order.low), order.shift
        words[Common.BANKS] = address_of(self._banks)
        clusters = self._clusters = memory.clusters
        self._homes: NDArray[np.intp] = np.repeat(np.arange(execution.blocks), execution.block_warps)
        size = execution.grid.cluster_size
        self._firsts: NDArray[np.intp] = self._homes // size * size
        words[Common.HOMES], words[Common.FIRSTS] = address_of(self._homes), address_of(self._firsts)
        words[Common.CLUSTER], words[Common.RANK] = 0 if clusters is None else size, RANK
        self._ended = np.zeros(execution.blocks, np.bool_)
        words[Common.ENDED] = address_of(self._ended)
        self._seen: Times | None = None
        self._address = address_of(words)
        self._writes: LastWrites | None = None
        self._strong: tuple[History | None, History | None] = (None, None)
        self._floor = -1
        self._stamps: NDArray[np.int32]

    def access(self, site: SharedSite, active: Active) -> bool:
        """Makes an access of the active threads, if all of them are clean; whether it did."""
        order = self._order
        if order.writes is not self._writes and not self._tables():
            return False
        if order.reads.floor != self._floor or (order.strong_writes, order.strong_reads) != self._strong:
            self._histories()
        if order.clocks.seen is not self._seen:
            self._clocks()
        if self._clusters is not None and site.words[Site.REACHES]:
            self._ended[...] = self._clusters.ended()
        flat = np.empty(active.count, np.intp)
        made = self._call(_SHARED, site.address, self._address, active.address, order.clocks.now + 1, address_of(flat))
        if not made:
            return False
        order.made(site.access, active, flat)
        requests, wavefronts, ideal = site.words[Site.REQUESTS : Site.IDEAL + 1].tolist()
        amounts = flat.size * site.access.size, requests, wavefronts, ideal
        self._execution.counters.counted(Space.SHARED, site.access.kind, site.access.site, amounts)
        return True

    def _tables(self) -> bool:
        """Another batch of blocks has other tables; False where they have no owners."""
        writes, reads = self._order.writes, self._order.reads
        if not writes.owned:
            return False
        self._writes = writes
        words = self._words
        words[Common.WRITE_LINES], words[Common.GENERIC_LINES] = address_of(writes.latest), address_of(writes.generic)
        words[Common.READ_LINES] = address_of(reads.latest)
        words[Common.WRITERS] = 0 if writes.owners is None else address_of(writes.owners)
        self._stamps = np.zeros(reads.granules, np.int32)
        words[Common.STAMPS] = address_of(self._stamps)
        words[Common.SEEN] = address_of(self._order.clocks.floors[ALL])
        self._histories()
        return True

    def _clocks(self) -> None:
        """The clocks have more columns."""
        clocks = self._order.clocks
        self._seen, self._rows = clocks.seen, clocks.bases()
        self._words[Common.CLOCKS], self._words[Common.ROWS] = address_of(self._seen), address_of(self._rows)

    def _histories(self) -> None:
        order, words = self._order, self._words
        self._floor, self._strong = order.reads.floor, (order.strong_writes, order.strong_reads)
        words[Common.SEEN_READS] = address_of(order.clocks.floors[self._floor])
        words[Common.READERS] = 0 if order.reads.owners is None else address_of(order.reads.owners)
        for word, history in zip((Common.STRONG_WRITES, Common.STRONG_READS), self._strong, strict=True):
            words[word] = 0 if history is None else address_of(history.latest)


class SharedSite:
    """An instruction that loads or stores registers."""

    def __init__(self, access: AccessBatch, words: NDArray[np.int64], held: list[NDArray[Any]]) -> None:
        self.access = access
        """What is the same in all its accesses: the threads and addresses are not its own."""
        self.words = words
        self.address = address_of(words)
        self._held = held


def site_of(b: Binding, place: Operand, parts: tuple[Operand, ...], kind: Type, writes: bool) -> SharedSite | None:
    """The instruction, if it can take part: ``parts`` are the registers, elements of ``kind``."""
    size = kind.bytes * len(parts)
    if size > WIDEST or kind.bytes > 8 or not isinstance(place, Address):
        return None
    words: NDArray[np.int64] = np.zeros(Site.DATA + len(parts), np.int64)
    clusters = b.execution.memory.clusters
    words[Site.REACHES] = clusters is not None and clusters.reaches(b.site)
    held: list[NDArray[Any]] = []
    if isinstance(place.base, Register):
        declared = b.register_type(place.base)
        if declared is None or declared.bits not in (32, 64):
            return None
        base = b.read(place.base, declared)
        words[Site.BITS], words[Site.STEP], words[Site.OFFSET] = declared.bits, declared.bytes, place.offset
    elif isinstance(place.base, Symbol) and not b.variable_map.is_dynamic(b.function, place.base.name):
        symbol = Symbol(place.base.name, place.base.offset + place.offset)
        base = np.array([b.variable_map.address(b.function, symbol, b.instruction)], np.int64)
        words[Site.BITS] = 64
        if clusters is not None:
            base, words[Site.STEP] = base + clusters.base.view(np.int64), 8
    else:
        return None
    held.append(base)
    words[Site.BASE] = address_of(base)
    for i, part in enumerate(parts):
        values = values_of(b, part, kind, writes, widest=8 * kind.bytes)
        if values is None:
            return None
        held.append(values)
        words[Site.DATA + i] = address_of(values)
    words[Site.SIZE], words[Site.ELEMENT], words[Site.PARTS], words[Site.WRITES] = size, kind.bytes, len(parts), writes
    memory = b.execution.memory
    variable = memory.variables.get(b.site)
    words[Site.LOW], words[Site.HIGH] = (variable.start, variable.end) if variable else (0, memory.shared_bytes)
    words[Site.VECTOR] = max(size, 4).bit_length() - 1
    nobody, nowhere = np.zeros(0, np.intp), np.zeros(0, np.uint64)
    sort = Kind.WRITE if writes else Kind.READ
    return SharedSite(AccessBatch(b.site, Space.SHARED, sort, nobody, nowhere, size, element=kind.bytes), words, held)
