"""Which register loops a block becomes.

A tile of many registers is not unrolled. Each root gets a loop over the registers of its layout, and everything else is
emitted inside the loops that need it, on demand. So all ops are fused by default. A root gets a loop of its own for three
reasons:

1. *Same registers.* A root joins the open loop only if both range over the same layout, and if what it needs of that
   loop is needed at the same register (not through a broadcast or permutation of it).
   Reductions and scans of one loop go along one axis, scans in one direction. A scan's results are there register by register.
   Arithmetic on scalars between two roots does not keep them apart: what is computed from the loop's results comes after it.
2. *No result of an unfinished reduction.* The result of a reduction or histogram exists only after its loop. What a gather
   reads is complete before its loop.
3. *Memory order.* In one loop a later access happens at some registers before an earlier one at others. So an access joins a
   loop only if it may exchange places with every access in it (`weft.ir.memory.may_exchange`). Two accesses are *apart* if
   they go through different arguments that the launch has promised are disjoint, or if both use the very same pointers,
   no two of which meet: then each element's accesses stay in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.codegen.cpu.schedule import (
    Columns,
    Item,
    RegisterLoop,
    Root,
    WriteBack,
    axis_of,
    ends_with_loop,
    identity,
    is_recomputable,
    is_root,
    moves_data,
    space_of,
    trace_root,
)
from weft.ir import tile
from weft.ir.types import is_tile, shape_of
from weft.transforms.axis import AxisInfo


class Fusion:
    """Forms the register loops of blocks; see the module."""

    def __init__(
        self, base_of: Mapping[SSAValue, BlockArgument | None], disjoint: bool, axis: Mapping[SSAValue, AxisInfo]
    ):
        self._base_of = base_of
        self._disjoint = disjoint
        self._axis = axis

    def items(self, block: Block) -> list[Item]:
        """The register loops of a block, in order with its other ops."""
        items: list[Item] = []
        current: RegisterLoop | None = None
        written_by: dict[Operation, RegisterLoop] = {}
        later: list[Operation] = []

        def close() -> None:
            nonlocal current
            if current is not None:
                items.append(current)
                current = None
            items.extend(later)
            later.clear()

        for root in self._roots(block):
            if isinstance(root, Operation) and not is_root(root):
                if root.results and all(is_tile(result) and is_recomputable(result) for result in root.results):
                    continue  # emitted where it is needed
                if current is not None and self._must_follow(root, current, written_by, later):
                    if _is_scalar(root):
                        later.append(root)
                        continue
                    close()
                items.append(root)
                continue
            if current is None or not self._joins(root, current, written_by, later):
                close()
                current = RegisterLoop(space_of(root))
            self._add(root, current)
            if isinstance(root, Operation):
                written_by[root] = current
        close()
        return items

    def _roots(self, block: Block) -> Iterator[Root]:
        """The block's ops in order; before a terminator stand the write-backs that it causes."""
        parent = block.parent_op()
        for op in block.ops:
            if isinstance(op, scf.YieldOp) and isinstance(parent, scf.ForOp):
                carried = block.args[1:]
                for i, (value, argument) in enumerate(zip(op.operands, carried, strict=True)):
                    if is_tile(value) and value is not argument:
                        yield WriteBack(op, i, value, argument)
            yield op

    def _add(self, root: Root, loop: RegisterLoop) -> None:
        loop.roots.append(root)
        if tile.is_access(root):
            loop.accesses.append(root)
        trace_root(root, loop.layout, loop.needs)

    def _joins(
        self, root: Root, loop: RegisterLoop, written_by: dict[Operation, RegisterLoop], later: Sequence[Operation]
    ) -> bool:
        if space_of(root) != loop.layout:
            return False
        if axis_of(root) is not None and loop.axis not in (None, axis_of(root)):
            return False
        if isinstance(root, tile.ScanOp) and loop.reverse not in (None, root.reverse is not None):
            return False
        if isinstance(root, Operation) and self._conflicts(root, loop):
            return False
        needs: dict[SSAValue, set[Columns]] = {}
        trace_root(root, loop.layout, needs)
        for value, at in needs.items():
            owner = value.owner
            if owner in later:
                return False
            if not isinstance(owner, Operation) or written_by.get(owner) is not loop:
                continue
            if ends_with_loop(owner) or at != {identity(loop.layout)}:
                return False
        if isinstance(root, WriteBack):
            return not self._clobbers(root, loop, needs)
        return True

    def _clobbers(self, root: WriteBack, loop: RegisterLoop, needs: dict[SSAValue, set[Columns]]) -> bool:
        """Whether writing the carried tile register by register destroys what the loop still reads of it."""
        at = loop.needs.get(root.carried, set()) | needs.get(root.carried, set())
        return bool(at - {identity(loop.layout)})

    def _must_follow(
        self, op: Operation, loop: RegisterLoop, written_by: dict[Operation, RegisterLoop], later: Sequence[Operation]
    ) -> bool:
        """Whether an op outside register loops must come after the open one rather than before it."""
        if op.regions or moves_data(op) or not isinstance(op, tile.TileOp):
            return True
        for operand in op.operands:
            owner = operand.owner
            if owner in later or (isinstance(owner, Operation) and written_by.get(owner) is loop):
                return True
        return self._conflicts(op, loop)

    def _conflicts(self, op: Operation, loop: RegisterLoop) -> bool:
        """Whether an op must keep its order with one of the loop's accesses (rule 3)."""
        after = tile.ordering_of(op)
        if after is None:
            return False
        for access in loop.accesses:
            before = tile.ordering_of(access)
            if before is not None and not tile.may_exchange(before, after, apart=self._apart(access, op)):
                return True
        return False

    def _apart(self, a: tile.Access, b: Operation) -> bool:
        """Whether two accesses are known not to touch one address at different registers."""
        if not tile.is_access(b):
            return True
        plain = isinstance(a, tile.LoadOp | tile.StoreOp) and isinstance(b, tile.LoadOp | tile.StoreOp)
        if a.pointer is b.pointer and plain and self._distinct(a.pointer):
            return True
        bases = self._base_of.get(a.pointer), self._base_of.get(b.pointer)
        return self._disjoint and None not in bases and bases[0] is not bases[1]

    def _distinct(self, pointer: SSAValue) -> bool:
        """Whether no two elements of the tile are known to point at one address: there is one, or they are one run."""
        info = self._axis.get(pointer)
        long = [d for d, size in enumerate(shape_of(pointer)) if size > 1]
        return not long or (
            len(long) == 1 and info is not None and info.contiguity[long[0]] == shape_of(pointer)[long[0]]
        )


def _is_scalar(op: Operation) -> bool:
    """Whether an op only computes numbers from numbers, so that it may come later."""
    if any(map(is_tile, (*op.operands, *op.results))):
        return False
    return isinstance(op, tile.TileOp) and not op.regions and tile.is_a(op, tile.Elementwise)
