"""A launch's plain loads and stores of global memory, as `weft.emulator.native.global_memory` does them.

An instruction takes part whose addresses are in a 64-bit register, in a launch that checks bounds and alignment and whose arrays
are all arguments. The others, and accesses in doubt, go the usual way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.native.arrays import address_of, values_of
from weft.emulator.native.global_memory import WIDEST, Common, Site
from weft.emulator.ptx.syntax import Address, Operand, Register

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution
    from weft.emulator.native.code import Native
    from weft.emulator.ptx.types import Type

_PLACES: Final = 4
_COPY: Final = 5
"""The numbers of `global_places` and `global_copy` at the interpreter's entry."""

_NOWHERE: Final[NDArray[np.uint64]] = np.zeros(0, np.uint64)
_NOTHING: Final[NDArray[np.uint8]] = np.zeros((1, 1), np.uint8)


class GlobalMemory:
    """The global memory of a launch."""

    def __init__(self, native: Native, execution: Execution) -> None:
        self._call = native.call
        self._execution = execution
        self._watched = execution.memory.watch_global
        heap = execution.memory.heaps[Space.GLOBAL]
        words: NDArray[np.int64] = np.zeros(len(Common), np.int64)
        words[Common.WARPS], words[Common.HEAP] = execution.warps, heap.base
        words[Common.BYTES], words[Common.COUNT] = address_of(heap.bytes), heap.bytes.size
        words[Common.BEGINS], words[Common.ENDS] = address_of(heap.begins), address_of(heap.ends)
        words[Common.WRITTEN] = 0 if heap.written is None else address_of(heap.written)
        self._words = words
        self._address = address_of(words)

    def access(self, site: GlobalSite, active: Active) -> bool:
        """Makes an access of the active threads, if all of them are clean; whether it did. Raises: Race."""
        execution = self._execution
        flat = np.empty(active.count, np.intp)
        values = np.empty((active.count, site.size), np.uint8) if site.kind is Kind.WRITE else _NOTHING
        given = site.address, self._address, active.address, address_of(flat), address_of(values)
        if not self._call(_PLACES, *given):
            return False
        requests, sectors, ideal, least, greatest = site.answers.tolist()
        if self._watched:
            access = AccessBatch(
                site.number, Space.GLOBAL, site.kind, active.index, _NOWHERE, site.size, element=site.element
            )
            access.flat, access.span = flat, (least, greatest)
            if values is not _NOTHING:
                access.values = values
            execution.order.observe(access)
        self._call(_COPY, *given)
        count = execution.counters.counted
        count(Space.GLOBAL, site.kind, site.number, (flat.size * site.size, requests, sectors, ideal))
        return True


class GlobalSite:
    """An instruction that loads or stores registers."""

    def __init__(self, b: Binding, kind: Kind, words: NDArray[np.int64], held: list[NDArray[Any]]) -> None:
        self.number = b.site
        self.kind = kind
        self.size, self.element = int(words[Site.SIZE]), int(words[Site.ELEMENT])
        self.address = address_of(words)
        self.answers = words[Site.REQUESTS : Site.GREATEST + 1]
        self._held = words, held


def takes_part(execution: Execution) -> bool:
    """Whether a launch's accesses may be made natively."""
    checks, memory = execution.checks, execution.memory
    return checks.bounds and checks.alignment and not memory.host


def site_of(b: Binding, place: Operand, parts: tuple[Operand, ...], kind: Type, writes: bool) -> GlobalSite | None:
    """The instruction, if it can take part: ``parts`` are the registers, elements of ``kind``."""
    size = kind.bytes * len(parts)
    if size > WIDEST or kind.bytes > 8 or not isinstance(place, Address) or not isinstance(place.base, Register):
        return None
    declared = b.register_type(place.base)
    if declared is None or declared.bits != 64:
        return None
    base = b.read(place.base, declared)
    words: NDArray[np.int64] = np.zeros(Site.DATA + len(parts), np.int64)
    words[Site.BASE], words[Site.STEP], words[Site.OFFSET] = address_of(base), 8, place.offset
    held: list[NDArray[Any]] = [base]
    widths: set[int] = set()
    for i, part in enumerate(parts):
        values = values_of(b, part, kind, writes, widest=64)
        if values is None:
            return None
        held.append(values)
        widths.add(values.itemsize)
        words[Site.DATA + i] = address_of(values)
    if len(widths) != 1:
        return None
    words[Site.SIZE], words[Site.ELEMENT], words[Site.PARTS], words[Site.WRITES] = size, kind.bytes, len(parts), writes
    words[Site.WIDTH], words[Site.SIGNED] = widths.pop(), kind.signed
    return GlobalSite(b, Kind.WRITE if writes else Kind.READ, words, held)
