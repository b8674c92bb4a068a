"""Bulk copies: runs of bytes between global and shared memory, begun by a thread, done by the copy engine (PTX ISA 9.7.10.28.4).

As with cp.async the copy is done when it is issued, and only threads that have waited for it have seen that: for a copy into
shared memory the threads that wait for the phase of the mbarrier that its bytes complete, for a copy out of shared memory
the thread itself in ``wait_group``. All accesses are of the asynchronous proxy, so that what threads wrote before must have
been passed on to it with fence.proxy.async.

A multicast is a copy to each block of its mask, at the same byte, which that block's mbarrier tracks; it reads once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.bulk_reduce import GLOBAL, SHARED, Reduction, reduction
from weft.emulator.arith.tensor_copy import CHUNK, touched_sectors
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.memory.arena import width_of
from weft.emulator.memory.cluster import BYTE, RANK
from weft.emulator.memory.order import Agent
from weft.emulator.ops.async_copy import check_policy
from weft.emulator.ops.async_groups import Groups
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import U32, Locate, Tracked, by_phase, per_thread, shared_address, update
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

KIND: Final = "bulk"

COMPLETE: Final = "mbarrier::complete_tx::bytes"
GROUP: Final = "bulk_group"
MULTICAST: Final = "multicast::cluster"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Transfer:
    """The copies that one execution of an instruction makes: who makes them, and in whose name."""

    execution: Execution
    site: int
    threads: IndexArray
    """A thread for each copy."""
    agent: Agent

    barriers: NDArray[np.uint64] | None = None
    """The mbarrier that tracks each copy, (N,); copies that have none belong to the next group that their threads commit."""

    @classmethod
    def begin(cls, b: Binding, active: Active, barrier: Locate | None = None) -> list[Transfer]:
        """These threads begin a copy each. Those that different phases track are not one operation, even of one warp."""
        execution, order, threads = b.execution, b.execution.order, active.index
        if barrier is None:
            agent = Groups.of(execution, KIND).begin(active) if order.active else order.start(active.warps)
            return [cls(execution, b.site, threads, agent)]
        barriers = barrier(threads)
        if not order.active:
            return [cls(execution, b.site, threads, order.start(active.warps), barriers)]
        tracked = Tracked.of(execution)
        return [
            cls(execution, b.site, threads[of], tracked.begin(threads[of], key), barriers[of])
            for key, of in by_phase(execution, threads, barriers)
        ]

    def access(
        self,
        space: Space,
        kind: Kind,
        of: Any,
        addresses: NDArray[np.uint64],
        size: int,
        alignment: int = CHUNK,
        element: int | None = None,
        counted: bool = True,
    ) -> AccessBatch:
        """The accesses of copies ``of`` (places in ``threads``, or a slice) at addresses of a space. ``element``: the bytes of
        what a reduction updates. ``counted``: a multicast reads once for all its blocks."""
        access = AccessBatch(
            self.site,
            space,
            kind,
            self.threads[of],
            addresses,
            size,
            proxy=Proxy.ASYNC,
            alignment=alignment,
            strong=kind is Kind.ATOMIC,
            element=element,
            agent=self.agent,
        )
        if not counted:
            return access
        counters = self.execution.counters
        counters.access(access)
        if space is Space.GLOBAL:
            metric = f"async_global_{'load' if kind is Kind.READ else 'store'}_sectors"
            counters.add(self.site, metric, touched_sectors(np.arange(len(self.threads))[of], addresses, size))
        return access

    def read(self, access: AccessBatch) -> Bytes:
        """What the copies read, (N, size)."""
        return self.execution.memory.read(access)

    def write(self, access: AccessBatch, values: Bytes) -> None:
        """Puts the copied values, (N, size), where they go."""
        access.values = values
        self.execution.memory.write(access)

    def reduce(self, access: AccessBatch, values: Bytes, how: Reduction) -> None:
        """Combines the copied values, (N, size), with what is there; copies to the same place come one after the other."""
        flat = self.execution.memory.check(access)
        arena = self.execution.memory.arenas[access.space]
        size, alignment = access.size, access.alignment or access.size
        width = width_of(size, alignment)
        order = np.argsort(flat, kind="stable")
        together = bool((flat[order][1:] - flat[order][:-1] >= size).all())
        for part in [slice(None)] if together else [slice(i, i + 1) for i in range(flat.size)]:
            old = np.ascontiguousarray(arena.gather(flat[part], size, width)).view(np.uint8).reshape(-1, size)
            arena.scatter(flat[part], width, how(old, values[part]).view(f"u{width}").reshape(len(old), -1))

    def complete(self, bytes_done: NDArray[np.int64] | int) -> None:
        """The copies are complete: mbarriers that track them have so many bytes less to wait for."""
        if self.barriers is not None:
            update(self.execution, self.site, self.threads, self.barriers, transactions=-bytes_done)


Aim: TypeAlias = Callable[[Active], "list[tuple[Active, int | None, bool]]"]


def aims(b: Binding, modifier: str, operand: int) -> Aim:
    """Where the copies of threads go: those that have one place, its rank, and whether it is their first. Without a multicast,
    which has an operand that is a mask of ranks, all have the place that their address names (None)."""
    if not modifier:
        return lambda active: [(active, None, True)]
    masks, execution, site = b.read(operand, TYPES["u16"]), b.execution, b.site
    size = execution.grid.cluster_size

    def found(active: Active) -> list[tuple[Active, int | None, bool]]:
        threads = active.index
        given = per_thread(masks, threads)
        if (bad := (given >> size != 0) | (given == 0)).any():
            which = int(bad.argmax())
            there = f"blocks 0 to {size - 1}, which are" if size > 1 else "block 0 only, which is"
            message = (
                f"a multicast to blocks 0x{given[which]:x} of the cluster; it has {there} mask 0x{(1 << size) - 1:x}"
            )
            raise execution.fault(Undefined, message, site, int(threads[which]))
        parts: list[tuple[Active, int | None, bool]] = []
        for mask in np.unique(given).tolist():
            some = np.zeros(execution.threads, np.bool_)
            some[threads[given == mask]] = True
            ranks = [rank for rank in range(size) if mask >> rank & 1]
            parts += [(Active(some, full=False), rank, rank == ranks[0]) for rank in ranks]
        return parts

    return found


def aimed(execution: Execution, locate: Locate, rank: int | None) -> Locate:
    """The same bytes of the block that a multicast goes to."""
    clusters = execution.memory.clusters
    if rank is None or clusters is None:
        return locate
    return lambda threads: clusters.at(locate(threads), rank)


def signalled(execution: Execution, locate: Locate, rank: int | None, pair: bool) -> Locate:
    """The mbarriers that track a multicast to the block of a rank: those of that block. Of a ``pair`` (``.cta_group::2``) they
    are those of the block of its pair whose rank is even or odd as that of the mbarrier that threads name."""
    clusters = execution.memory.clusters
    if not pair or rank is None or clusters is None:
        return aimed(execution, locate, rank)

    def found(threads: IndexArray) -> NDArray[np.uint64]:
        addresses = locate(threads)
        ranks = rank & ~1 | clusters.split(addresses)[0] & 1
        return (addresses & np.uint64(BYTE)) | ranks.astype(np.uint64) << np.uint64(RANK)

    return found


def sized(b: Binding, operand: int) -> Callable[[IndexArray], list[tuple[int, IndexArray]]]:
    """The operand size of a bulk copy: each size that threads give, and who gives it. Copies of nothing are left out."""
    sizes, execution, site = b.read(operand, U32), b.execution, b.site

    def read(threads: IndexArray) -> list[tuple[int, IndexArray]]:
        given = per_thread(sizes, threads)
        if (bad := given % CHUNK != 0).any():
            which = int(bad.argmax())
            message = f"a bulk copy of {given[which]} bytes, which is no multiple of {CHUNK}"
            raise execution.fault(Undefined, message, site, int(threads[which]))
        return [(size, (given == size).nonzero()[0]) for size in np.unique(given).tolist() if size]

    return read


@instruction("cp.async.bulk")
def _copy(b: Binding) -> Step:
    f = form(
        b,
        op="async",
        bulk="bulk",
        semantics="? weak",
        to="shared::cluster shared::cta global",
        source="global shared::cta",
        completion=f"{COMPLETE} {GROUP}",
        multicast=f"? {MULTICAST}",
        hint="? L2::cache_hint",
    )
    direction = (f["to"], f["source"], f["completion"])
    b.require(
        direction in _DIRECTIONS, f"there is no bulk copy from .{f['source']} to .{f['to']} with .{f['completion']}"
    )
    to_shared, from_shared = f["to"] != "global", f["source"] != "global"
    b.require(
        not f["multicast"] or direction[:2] == ("shared::cluster", "global"),
        "only copies to .shared::cluster multicast",
    )
    to, source = _end(b, 0, f["to"]), _end(b, 1, f["source"])
    sizes = sized(b, 2)
    barrier = shared_address(b, 3, f["to"]) if to_shared else None
    places = aims(b, f["multicast"], 4)
    check_policy(b, f["hint"], 3 + to_shared + bool(f["multicast"]))
    from_space = Space.SHARED if from_shared else Space.GLOBAL
    to_space = Space.SHARED if to_shared else Space.GLOBAL

    def step(active: Active) -> None:
        for some, rank, first in places(active):
            tracking = None if barrier is None else aimed(b.execution, barrier, rank)
            for copies in Transfer.begin(b, some, tracking):
                reads, writes = source(copies.threads), aimed(b.execution, to, rank)(copies.threads)
                total = np.zeros(copies.threads.size, np.int64)
                for size, of in sizes(copies.threads):
                    read = copies.access(from_space, Kind.READ, of, reads[of], size, counted=first)
                    values = copies.read(read)
                    copies.write(copies.access(to_space, Kind.WRITE, of, writes[of], size), values)
                    total[of] = size
                copies.complete(total)

    return step


_DIRECTIONS: Final = {
    ("shared::cluster", "global", COMPLETE),
    ("shared::cta", "global", COMPLETE),
    ("shared::cluster", "shared::cta", COMPLETE),
    ("global", "shared::cta", GROUP),
}
"""Where bulk copies go, from where, and how their end is known."""


def _end(b: Binding, operand: int, space: str) -> Locate:
    """How threads find one end of a copy."""
    if space != "global":
        return shared_address(b, operand, space)
    addresses = b.address(operand, Space.GLOBAL)
    return lambda threads: addresses()[threads]


@instruction("cp.reduce.async.bulk")
def _reduce(b: Binding) -> Step:
    f = form(
        b,
        op="reduce",
        how="async",
        bulk="bulk",
        semantics="? relaxed",
        scope="? cta cluster gpu sys",
        to="shared::cluster global",
        source="shared::cta",
        completion=f"{COMPLETE} {GROUP}",
        hint="? L2::cache_hint",
        operation=" ".join(GLOBAL),
        noftz="? noftz",
        type="b32 b64 u32 s32 u64 s64 f16 bf16 f32 f64",
    )
    to_shared = f["to"] != "global"
    b.require(
        to_shared == (f["completion"] == COMPLETE),
        f"a reduction in .{f['to']} memory is not complete by .{f['completion']}",
    )
    operation, kind = f["operation"], f["type"]
    known = (SHARED if to_shared else GLOBAL)[operation]
    b.require(kind in known, f".{operation} in .{f['to']} memory has types {', '.join(known)}, not {kind}")
    half_sum = operation == "add" and kind in ("f16", "bf16")
    b.require(not half_sum or f["noftz"], f".add of .{kind} needs .noftz")
    b.require(
        half_sum or not f["noftz"] or (operation, kind) == ("add", "f32"),
        ".noftz belongs to .add of .f16, .bf16 and .f32",
    )
    how = reduction(operation, kind)
    to, source = _end(b, 0, f["to"]), shared_address(b, 1, f["source"])
    sizes = sized(b, 2)
    barrier = shared_address(b, 3, f["to"]) if to_shared else None
    check_policy(b, f["hint"], 3 + to_shared)
    to_space = Space.SHARED if to_shared else Space.GLOBAL

    def step(active: Active) -> None:
        for copies in Transfer.begin(b, active, barrier):
            reads, writes = source(copies.threads), to(copies.threads)
            total = np.zeros(copies.threads.size, np.int64)
            for size, of in sizes(copies.threads):
                values = copies.read(copies.access(Space.SHARED, Kind.READ, of, reads[of], size))
                access = copies.access(to_space, Kind.ATOMIC, of, writes[of], size, element=TYPES[kind].bytes)
                copies.reduce(access, values, how)
                total[of] = size
            copies.complete(total)

    return step


@instruction("cp.async.bulk.prefetch")
def _prefetch(b: Binding) -> Step:
    """A hint, of which only the operands are checked."""
    f = form(b, op="async", bulk="bulk", what="prefetch", level="L2", source="global", hint="? L2::cache_hint")
    b.address(0, Space.GLOBAL)
    sizes = sized(b, 1)
    check_policy(b, f["hint"], 2)

    def step(active: Active) -> None:
        sizes(active.index)

    return step


@instruction("cp.async.bulk.commit_group")
def _commit(b: Binding) -> Step:
    form(b, op="async", bulk="bulk", what="commit_group")
    b.count(0)
    execution = b.execution
    return lambda active: Groups.of(execution, KIND).commit(active) if execution.order.active else None


@instruction("cp.async.bulk.wait_group")
def _wait(b: Binding) -> Step:
    """With ``.read`` only reads need be complete: the writes, to global memory, are not tracked, so it is the same here."""
    form(b, op="async", bulk="bulk", what="wait_group", reads="? read")
    b.count(1)
    pending, execution = b.constant(0), b.execution
    b.require(pending >= 0, f"cp.async.bulk.wait_group of {pending} groups")
    return lambda active: Groups.of(execution, KIND).wait(active, pending) if execution.order.active else None
