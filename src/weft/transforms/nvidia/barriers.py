"""Barriers where hazards are.

The threads of a block run apart. The IR's order of accesses is that of the program, so the block has to wait where an access of
one thread must come after an access of another:

    shared memory   scratch or a buffer's slot is written while others may still read what was there before
    slots           a slot is read that other threads have written, or copied into and waited for
    global memory   two accesses of the program that may touch one address, of which one writes, by different threads
    order           an access that releases comes after all that the block did; what follows one that acquires, after it

Two accesses are of the same threads if they have one pointer, whose elements are known to differ (`_distinct`), and one layout in
which no threads hold copies. They touch no address in common if their ranges behind one start are apart
(`weft.transforms.nvidia.places`).

The pass walks the kernel in order with what the block has done since it last waited. At a loop's head that includes what an
iteration leaves behind, whose pointers are those of another iteration. Behind a loop it includes what came before, since a loop
may have no iteration.

Limit: barriers stand between ops. Where only one branch waits, the other is taken not to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import target
from weft.ir import gpu, tile
from weft.ir.types import layout_of, shape_of
from weft.target import GpuTarget
from weft.transforms.axis import AxisInfo, analyse, base_argument
from weft.transforms.nvidia.places import Place, place_of
from weft.transforms.nvidia.scratch import scratch_of, use_of


@dataclass(frozen=True)
class Access:
    """An access to global memory since the block last waited: which ``base`` it goes through (None: any), by which pointer and
    threads (None: not those of any other access), by which pointer and mask (None: those of another iteration)."""

    writes: bool
    base: BlockArgument | None
    threads: tuple[SSAValue, object] | None
    through: tuple[SSAValue, SSAValue | None] | None


@dataclass(frozen=True)
class Bytes:
    """Bytes of shared memory that were used since the block last waited. Of a read of a buffer in the same iteration ``slot`` is
    the buffer and the operand that names its slot. ``written``: by stores, or by copies for which only their threads have
    waited."""

    low: int
    high: int
    slot: tuple[SSAValue, SSAValue] | None = None
    written: bool = False

    def meets(self, other: Bytes) -> bool:
        """Whether the two share a byte."""
        return self.low < other.high and other.low < self.high

    def reads_beside(self, buffer: SSAValue, slot: SSAValue) -> bool:
        """Whether this is a read of another slot of the same buffer: operands that differ name slots that differ."""
        return self.slot is not None and self.slot[0] is buffer and self.slot[1] is not slot


@dataclass
class Since:
    """What the block has done since it last waited."""

    shared: set[Bytes] = field(default_factory=set[Bytes])
    accesses: set[Access] = field(default_factory=set[Access])
    acquired: bool = False

    def copy(self) -> Since:
        """The same, to go on from twice."""
        return Since(set(self.shared), set(self.accesses), self.acquired)

    def join(self, other: Since) -> None:
        """Either has happened."""
        self.shared |= other.shared
        self.accesses |= other.accesses
        self.acquired |= other.acquired

    def earlier(self) -> Since:
        """The same, seen from the next iteration: its pointers and slots were others."""
        return Since(
            {replace(used, slot=None) for used in self.shared},
            {replace(access, threads=None, through=None) for access in self.accesses},
            self.acquired,
        )

    def wait(self) -> None:
        """The block waits."""
        self.shared.clear()
        self.accesses.clear()
        self.acquired = False


@dataclass(frozen=True)
class PlaceBarriers(ModulePass):
    """Inserts `gpu.BarrierOp` where a hazard is. ``disjoint`` promises that the kernel's arrays do not overlap."""

    name = "place-barriers"

    target: str = "sm_90"
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.block.ops:
            if isinstance(kernel, func.FuncOp):
                _Walk(kernel, target.gpu(self.target), self.disjoint).block(kernel.body.block, Since())


class _Walk:
    def __init__(self, kernel: func.FuncOp, machine: GpuTarget, disjoint: bool):
        self._kernel = kernel
        self._target = machine
        self._disjoint = disjoint
        self._places: dict[tuple[SSAValue, SSAValue | None], Place | None] = {}

    def block(self, block: Block, since: Since) -> None:
        """Goes through a block, inserting barriers; ``since`` becomes what is left at its end."""
        for op in list(block.ops):
            match op:
                case scf.ForOp():
                    self._for(op, since)
                case scf.WhileOp():
                    self._while(op, since)
                case scf.IfOp():
                    self._branches(op, since)
                case _:
                    self._op(op, since)

    def _for(self, op: scf.ForOp, since: Since) -> None:
        without = since.copy()
        since.join(self._all(op.body.block).earlier())
        self.block(op.body.block, since)
        since.shared = since.earlier().shared
        since.join(without)

    def _while(self, op: scf.WhileOp, since: Since) -> None:
        """The loop is left from its first block, whose barriers are always passed."""
        for block in (op.before_region.block, op.after_region.block):
            since.join(self._all(block).earlier())
        self.block(op.before_region.block, since)
        self.block(op.after_region.block, since.copy())

    def _branches(self, op: scf.IfOp, since: Since) -> None:
        ends = [since.copy()]
        for region in (op.true_region, op.false_region):
            if region.blocks:
                end = since.copy()
                self.block(region.block, end)
                ends.append(end)
        if all(region.blocks for region in (op.true_region, op.false_region)):
            ends = ends[1:]
        since.wait()
        for end in ends:
            since.join(end)

    def _all(self, block: Block) -> Since:
        """All that a block may leave behind, as if it never waited."""
        found = Since()
        for op in block.walk():
            found.join(self._after(op))
        return found

    def _op(self, op: Operation, since: Since) -> None:
        reason = self._hazard(op, since)
        if reason is not None:
            barrier = gpu.BarrierOp(reason)
            barrier.location = op.location
            Rewriter.insert_op(barrier, InsertPoint.before(op))
            since.wait()
        use = use_of(op, self._target)
        if isinstance(op, tile.BarrierOp) or (use is not None and use.waits):
            since.wait()
        since.join(self._after(op))

    def _after(self, op: Operation) -> Since:
        """What an op leaves behind."""
        found = Since()
        use = use_of(op, self._target)
        if use is not None:
            found.shared.add(Bytes(scratch_of(op), scratch_of(op) + use.bytes))
        match op:
            case gpu.LocalStoreOp():
                found.shared.add(replace(_bytes(op.buffer), written=True))
            case gpu.WaitOp():
                found.shared.update(replace(_bytes(buffer), written=True) for buffer in op.buffers)
            case gpu.LocalLoadOp():
                found.shared.add(replace(_bytes(op.buffer), slot=(op.buffer, op.slot)))
            case _:
                pass
        ordering = tile.ordering_of(op)
        told = use is not None  # an access that uses scratch does so to tell its value, and waits
        if ordering is not None and isinstance(op, tile.Access) and not told:
            found.acquired = ordering.acquires
            found.accesses.add(_access(op, writes=ordering.writes))
        return found

    def _hazard(self, op: Operation, since: Since) -> str | None:
        """Why the block has to wait before an op."""
        use = use_of(op, self._target)
        if use is not None:
            own = Bytes(scratch_of(op), scratch_of(op) + use.bytes)
            if any(own.meets(other) for other in since.shared):
                return "scratch is still read"
        match op:
            case gpu.AsyncCopyOp() | gpu.LocalStoreOp():
                own = _bytes(op.buffer)
                if any(own.meets(other) and not other.reads_beside(op.buffer, op.slot) for other in since.shared):
                    return "the slot is still read"
            case gpu.LocalLoadOp():
                own = _bytes(op.buffer)
                if any(own.meets(other) and other.written for other in since.shared):
                    return "other threads have written the slot"
            case _:
                pass
        ordering = tile.ordering_of(op)
        if ordering is None or not isinstance(op, tile.Access):
            return None
        if since.acquired:
            return "after an access that acquires"
        if ordering.releases and since.accesses:
            return "before an access that releases"
        access = _access(op, writes=ordering.writes)
        if any(self._meet(access, other) for other in since.accesses):
            return "one address, different threads"
        return None

    def _meet(self, one: Access, other: Access) -> bool:
        """Whether two accesses may touch one address from different threads, and one of them writes."""
        if not (one.writes or other.writes):
            return False
        if self._disjoint and one.base is not None and other.base is not None and one.base is not other.base:
            return False
        if one.threads is not None and one.threads == other.threads and self._distinct(one.threads[0]):
            return False
        return not self._apart(one, other)

    def _apart(self, one: Access, other: Access) -> bool:
        """Whether two accesses are known to touch no address in common."""
        first, second = (None if a.through is None else self._place(*a.through) for a in (one, other))
        return first is not None and second is not None and first.apart(second)

    def _place(self, pointer: SSAValue, mask: SSAValue | None) -> Place | None:
        if (pointer, mask) not in self._places:
            self._places[pointer, mask] = place_of(pointer, mask)
        return self._places[pointer, mask]

    @cached_property
    def _axis(self) -> Mapping[SSAValue, AxisInfo]:
        return analyse(self._kernel)

    def _distinct(self, pointer: SSAValue) -> bool:
        """Whether the elements of a tile of pointers are known to be different addresses: they are one contiguous run."""
        return max(self._axis[pointer].contiguity) >= prod(shape_of(pointer))


def _bytes(buffer: SSAValue) -> Bytes:
    """The bytes of all slots of a buffer."""
    alloc = buffer.owner
    assert isinstance(alloc, gpu.AllocOp), "a buffer is the result of an alloc"
    return Bytes(scratch_of(alloc), scratch_of(alloc) + gpu.buffer_of(buffer).bytes)


def _access(op: tile.Access, *, writes: bool) -> Access:
    threads = None
    if shape_of(op.pointer):
        layout = layout_of(op.pointer)
        if not any(layout.duplicate_mask(dim) for dim in layout.in_dims if dim != "register"):
            threads = (op.pointer, layout)
    return Access(writes, base_argument(op.pointer), threads, (op.pointer, op.mask))
