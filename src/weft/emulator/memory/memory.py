"""All memory of the resident blocks, behind one set of checks.

Addresses. Each space has a window of generic addresses (PTX ISA 5.1: ``cvta``): the numbers below are ours, and a program that
depends on them is wrong. Inside its window shared memory starts anew for each block, local memory for each thread.

    0x01_0000_0000  shared      0x03_0000_0000  constants
    0x02_0000_0000  local       0x04_0000_0000  kernel parameters
    0x10_0000_0000  global, one allocation after the other with a gap between
    0x20_0000_0000  global, what a `DeviceMemory` has: the first use translates it (`weft.emulator.memory.host`)
    0x30_0000_0000  multicast objects, for multimem alone (`weft.emulator.memory.multicast`)

Addresses of shared memory in a cluster name a block, too (`weft.emulator.memory.cluster`).

The checks of an access, in order: bounds, alignment, for reads that the bytes were written, and for shared and global
memory that other threads' accesses are ordered (`weft.emulator.memory.order`, `weft.emulator.memory.global_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Fault, Misaligned, OutOfBounds, Undefined, Uninitialised
from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.arena import PAGE, Arena, Heap, width_of
from weft.emulator.memory.cluster import BYTE, RANK, Clusters
from weft.emulator.memory.device_heap import HeapUse
from weft.emulator.memory.host import DEVICE, DEVICE_END, HostAddresses
from weft.emulator.memory.multicast import MULTICAST, MULTICAST_END, Multicast
from weft.emulator.memory.order import NullOrder
from weft.emulator.texture import Images

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Checks
    from weft.emulator.machine.provenance import SharedVariable

WINDOW: Final[dict[Space, int]] = {
    Space.SHARED: 0x1_0000_0000,
    Space.LOCAL: 0x2_0000_0000,
    Space.CONST: 0x3_0000_0000,
    Space.PARAM: 0x4_0000_0000,
    Space.GLOBAL: 0x10_0000_0000,
}
"""Where each space's generic addresses begin."""

FAR: Final = 1 << 40
"""How many bytes behind the begin of global memory an address is that no index can have meant."""

_BY_WINDOW: Final = {base >> 32: space for space, base in WINDOW.items() if space is not Space.GLOBAL}

_VERB: Final = {Kind.READ: "read", Kind.WRITE: "write", Kind.ATOMIC: "atomic access"}


class Memory:
    """The memory of a batch of blocks. Sizes in bytes: ``shared_bytes`` of a block (``dynamic_shared`` of them at the end,
    ``reserved_shared``, the system's, at the begin), ``local_bytes`` of a thread."""

    def __init__(
        self,
        heap: Heap,
        constants: Heap,
        parameters: Heap,
        shared_bytes: int,
        dynamic_shared: int,
        reserved_shared: int,
        local_bytes: int,
        blocks: int,
        block_threads: int,
        order: NullOrder,
        checks: Checks,
        host: HostAddresses | None = None,
        cluster: int = 1,
    ) -> None:
        self.checks = checks
        self.shared_bytes = shared_bytes
        self.dynamic_shared = dynamic_shared
        self.reserved_shared = reserved_shared
        self.local_bytes = local_bytes
        self.block_threads = block_threads
        self.order = order
        self.host = host or HostAddresses()
        self.multicasts: Sequence[Multicast] = ()
        """What addresses of multimem may be of."""
        self.images = Images()
        """Textures and surfaces."""
        self.device_heap: HeapUse | None = None
        """Of malloc and free, in a program that calls them."""
        self.watch_global = False
        """Whether the order checks accesses to global memory, too."""
        self.shared_stride = -(-shared_bytes // PAGE) * PAGE
        self.local_stride = -(-local_bytes // 16) * 16
        track = checks.uninitialised
        self.heaps = {Space.GLOBAL: heap, Space.CONST: constants, Space.PARAM: parameters}
        self.shared = Arena(self.shared_stride * blocks + PAGE, track)
        self.shared_starts: NDArray[np.int64] | None = None
        """Where each thread's block's shared memory begins, if there are several."""
        if blocks > 1:
            self.shared_starts = np.repeat(np.arange(blocks) * self.shared_stride, block_threads)
        self.clusters = Clusters(cluster, blocks, block_threads) if cluster > 1 else None
        """Whose shared memory addresses name, where clusters have several blocks."""
        self.local = Arena(self.local_stride * blocks * block_threads + PAGE, track)
        self.arenas: dict[Space, Arena] = {**self.heaps, Space.SHARED: self.shared, Space.LOCAL: self.local}
        self.variables: Mapping[int, SharedVariable] = {}
        """For instructions whose access is of a known shared variable: which."""
        self.deferred: list[AccessBatch] | None = None
        """Reads of memory that has not been written, which are no faults yet (`weft.emulator.machine.tracked`); None where they
        are."""
        self.may_defer: Callable[[int], bool] = lambda site: False
        """Whether an instruction's reads may be so."""
        self.fault: Callable[[type[Fault], str, int, int, str], Fault]
        """`Execution.fault`; the execution sets it."""

    def begin(self) -> None:
        """A new batch of blocks: shared and local memory are unwritten, but for what is the system's."""
        self.shared.forget()
        self.local.forget()
        if self.reserved_shared:
            for start in range(0, self.shared.bytes.size - PAGE, self.shared_stride):
                self.shared.mark(start, self.reserved_shared)

    # ---- access -----------------------------------------------------------------------------------------------------

    def check(self, access: AccessBatch) -> NDArray[np.intp]:
        """Checks an access and records it; each access's first byte in the arena (also in ``access.flat``).

        With bounds checks off, accesses outside use a dummy buffer.
        """
        if not access.threads.size:
            access.flat = np.zeros(0, np.intp)
            return access.flat
        flat = access.flat = self._flat(access)
        alignment = access.size if access.alignment is None else access.alignment
        if self.checks.alignment and int(np.bitwise_or.reduce(access.addresses)) & (alignment - 1):
            off = (access.addresses & np.uint64(alignment - 1)) != 0
            message = f"{_VERB[access.kind]} of {access.size} bytes at an address that is no multiple of {alignment}"
            raise self._fault(Misaligned, message, access, off)
        if access.kind is not Kind.WRITE and self.checks.uninitialised:
            width = width_of(access.size, alignment)
            bad = self.arenas[access.space].unwritten(flat, access.size, width)
            if bad is not None:
                if self.deferred is None or not self.may_defer(access.site):
                    verb = f"{_VERB[access.kind]} of {access.size} bytes of {access.space.value} memory"
                    raise self._fault(Uninitialised, f"{verb} that has not been written", access, bad)
                self.deferred.append(access)
        if self._watched(access, flat):
            self.order.observe(access, access.agent)
        return flat

    def _watched(self, access: AccessBatch, flat: NDArray[np.intp]) -> bool:
        """Whether the order has to see it: not what uses a dummy buffer, of which global memory has its own."""
        if access.space is Space.SHARED:
            return self.checks.bounds or int(flat.max()) < self.shared.bytes.size - PAGE
        return self.watch_global and access.space is Space.GLOBAL

    def load(self, access: AccessBatch, width: int) -> NDArray[Any]:
        """The words of ``width`` bytes that a checked read finds: (N,) unsigned integers, or (N, size // width)."""
        flat = self.check(access)
        arena = self.arenas[access.space]
        if width > 1 and not self.checks.alignment and (flat % width).any():
            words = arena.gather(flat, access.size, 1).view(f"u{width}")
            return words[:, 0] if words.shape[1] == 1 else words
        return arena.gather(flat, access.size, width)

    def store(self, access: AccessBatch, width: int, words: NDArray[Any]) -> None:
        """Writes words of ``width`` bytes, (N,) or (N, size // width) unsigned integers, after checking. Of several accesses to
        one place, the last in the array stays."""
        values = np.ascontiguousarray(words)
        access.values = values.view(np.uint8).reshape(values.shape[0], access.size)
        flat = self.check(access)
        if width > 1 and not self.checks.alignment and (flat % width).any():
            width, values = 1, access.values
        self.arenas[access.space].scatter(flat, width, values)

    def read(self, access: AccessBatch) -> NDArray[np.uint8]:
        """The bytes that a checked read finds, (N, size)."""
        width = width_of(access.size, access.size if access.alignment is None else access.alignment)
        words = np.ascontiguousarray(self.load(access, width))
        return words.view(np.uint8).reshape(access.addresses.size, access.size)

    def write(self, access: AccessBatch) -> None:
        """Writes ``access.values``, (N, size), after checking."""
        if access.values is None:
            raise ValueError("Memory.write: the access has no values")
        width = width_of(access.size, access.size if access.alignment is None else access.alignment)
        values = np.ascontiguousarray(access.values).view(f"u{width}").reshape(access.addresses.size, -1)
        self.store(access, width, values)

    def resolve(self, addresses: NDArray[np.uint64]) -> list[tuple[Space, NDArray[np.intp] | None, NDArray[np.uint64]]]:
        """Generic addresses (N,) by space: (space, positions in ``addresses`` or None for all, addresses within the space).

        A global address is its own; the others lose their window's base. Addresses in no window count as global, where they are
        out of bounds.
        """
        windows = addresses >> np.uint64(32)
        if windows.size == 0:
            return []
        first = int(windows[0])
        if int(windows.max()) == int(windows.min()):
            space = _BY_WINDOW.get(first, Space.GLOBAL)
            base = 0 if space is Space.GLOBAL else WINDOW[space]
            return [(space, None, addresses - np.uint64(base))]
        if int(windows.min()) >= WINDOW[Space.GLOBAL] >> 32:
            return [(Space.GLOBAL, None, addresses)]
        spaces = np.array([_BY_WINDOW.get(int(w), Space.GLOBAL).value for w in windows])
        found: list[tuple[Space, NDArray[np.intp] | None, NDArray[np.uint64]]] = []
        for space in Space:
            where = (spaces == space.value).nonzero()[0]
            if where.size:
                base = 0 if space is Space.GLOBAL else WINDOW[space]
                found.append((space, where, addresses[where] - np.uint64(base)))
        return found

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _flat(self, access: AccessBatch) -> NDArray[np.intp]:
        space = access.space
        if space in self.heaps:
            heap = self.heaps[space]
            base = np.uint64(heap.base if space is Space.GLOBAL else 0)
            if space is Space.GLOBAL and self.host:
                access.addresses = self.host.translate(access.addresses)
            flat = (access.addresses - base).view(np.int64)
            access.span = int(np.minimum.reduce(flat)), int(np.maximum.reduce(flat))
            bad = heap.outside(flat, access.size, access.span)
            spare = heap.bytes.size - PAGE
        elif space is Space.SHARED and self.clusters is not None:
            flat, bad = self._in_cluster(access, self.clusters)
            spare = self.shared.bytes.size - PAGE
        else:
            shared = space is Space.SHARED
            limit = self.shared_bytes if shared else self.local_bytes
            stride = self.local_stride
            arena = self.shared if shared else self.local
            bad = None
            if int(np.maximum.reduce(access.addresses)) + access.size > limit:
                last = limit - access.size
                bad = (
                    access.addresses > np.uint64(max(last, 0)) if last >= 0 else np.ones(access.threads.shape, np.bool_)
                )
            flat = access.addresses.view(np.int64)
            if shared and bad is None and (variable := self.variables.get(access.site)) is not None:
                self._check_variable(access, flat, variable)
            if not shared:
                flat = flat + access.threads * stride
            elif self.shared_starts is not None:
                flat = flat + self.shared_starts[access.threads]
            spare = arena.bytes.size - PAGE
        if bad is None:
            return flat
        if self.checks.bounds or access.size > PAGE:
            verb = _VERB[access.kind]
            raise self._fault(OutOfBounds, f"{verb} of {access.size} bytes of {space.value} memory", access, bad)
        access.span = None
        return np.where(bad, spare, flat)

    def _in_cluster(self, access: AccessBatch, clusters: Clusters) -> tuple[NDArray[np.intp], NDArray[np.bool_] | None]:
        """Where accesses to shared memory are whose addresses name blocks of the cluster; and which are nowhere."""
        ranks, within = clusters.split(access.addresses)
        bad = (within + access.size > self.shared_bytes) | (ranks < 0) | (ranks >= clusters.size)
        blocks = clusters.blocks(access.threads, np.where(bad, 0, ranks))
        away = (ranks != clusters.rank[access.threads]) & ~bad
        if away.any():
            verb = f"{_VERB[access.kind]} of {access.size} bytes of shared memory of another block of the cluster"
            if not clusters.reaches(access.site):
                raise self._fault(OutOfBounds, f"{verb}, by an instruction that has .shared::cta only", access, away)
            if (gone := away & clusters.ended()[blocks]).any():
                raise self._fault(Undefined, f"{verb}, which has ended", access, gone)
        return within + blocks * self.shared_stride, bad if bad.any() else None

    def shared_places(self, threads: IndexArray, addresses: NDArray[np.uint64], size: int) -> NDArray[np.intp]:
        """Where ``size`` bytes at addresses of shared memory are in its arena; some place in it, for addresses of none."""
        if self.clusters is None:
            blocks, within = threads // self.block_threads, addresses.view(np.int64)
        else:
            ranks, within = self.clusters.split(addresses)
            blocks = self.clusters.blocks(threads, ranks % self.clusters.size)
        inside = np.where(
            (within >= 0) & (within <= self.shared_bytes - size), within, max(self.shared_bytes - size, 0)
        )
        return blocks * self.shared_stride + inside

    def own_shared(self, threads: IndexArray, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The addresses of bytes of the threads' own block, where instructions name bytes alone (matrix descriptors)."""
        return addresses if self.clusters is None else addresses | self.clusters.base[threads]

    def _check_variable(self, access: AccessBatch, within: NDArray[np.int64], variable: SharedVariable) -> None:
        """An access that is in the window may be outside the variable that its address was computed from."""
        low, high = int(np.minimum.reduce(within)), int(np.maximum.reduce(within)) + access.size
        if low >= variable.start and high <= variable.end:
            return
        bad = (within < variable.start) | (within + access.size > variable.end)
        which = int(bad.nonzero()[0][0])
        address = int(within[which])
        others = {v.name: v for v in self.variables.values() if v.start <= address < v.end}
        beside = [f", {v.describe(address)}" for v in others.values() if v.name != variable.name]
        verb = f"{_VERB[access.kind]} of {access.size} bytes of shared memory"
        text = f"{verb} outside '{variable.name}', from which its address comes"
        place = f"0x{address:x} of the block's shared memory: {variable.describe(address)}{''.join(beside)}"
        raise self.fault(OutOfBounds, text, access.site, int(access.threads[which]), place)

    def _fault(self, kind: type[Fault], message: str, access: AccessBatch, bad: NDArray[np.bool_]) -> Fault:
        which = int(bad.nonzero()[0][0])
        address = int(access.addresses[which])
        return self.fault(kind, message, access.site, int(access.threads[which]), self.describe(access.space, address))

    def shared_name(self, address: int) -> str:
        """A byte of shared memory in a few words: whose, if there are clusters."""
        return (
            f"0x{address:x}"
            if self.clusters is None
            else f"0x{address & BYTE:x} of the cluster's block {address >> RANK}"
        )

    def describe(self, space: Space, address: int) -> str:
        """Words for an address within a space."""
        if space in self.heaps:
            heap = self.heaps[space]
            if space is not Space.GLOBAL:
                return heap.describe(address)
            if MULTICAST <= address < MULTICAST_END:
                return f"0x{address:x}: an address of multicast objects, which only multimem can use"
            if abs(address - heap.base) < FAR and not DEVICE <= address < DEVICE_END:
                return heap.describe(address - heap.base)
            if DEVICE <= address < DEVICE_END:
                return f"0x{address:x}: outside every array of the launch's DeviceMemory, which is what memory= gave it"
            return f"0x{address:x}: far from all arrays of the launch; if it is an address of the host, pass its array as memory="
        limit = self.shared_bytes if space is Space.SHARED else self.local_bytes
        if space is Space.SHARED and self.clusters is not None:
            whose = f"the shared memory of the cluster's block {address >> RANK}"
            return f"0x{address & BYTE:x} of {whose} ({limit} bytes)"
        owner = "block's shared" if space is Space.SHARED else "thread's local"
        return f"0x{address:x} of the {owner} memory ({limit} bytes)"
