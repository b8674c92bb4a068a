"""Part of a loop that runs ahead of it: what computes some of its values, iteration by iteration.

A `Slice` is a list of the body's ops, and the carried values that they need from one iteration to the next. `Ahead` is the state
of its execution: the induction variable, whether the loop has that iteration, and the carried values there. The state consists
of values of the IR, so that an iteration can be computed anywhere: before the loop, or in it with the state carried.

Whether there is a next iteration is asked without overflow: ``ub - iv``, taken unsigned, is more than the step. The induction
variable may then wrap, but no iteration that it numbers is enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, shape_of

Add = Callable[[tile.TileOp], tile.TileOp]
"""Inserts an op and returns it."""


@dataclass(frozen=True)
class Slice:
    """What computes some values of a loop's body: ``ops`` in order, and the positions of the carried values among the loop's."""

    loop: scf.ForOp
    ops: tuple[tile.TileOp, ...]
    carried: tuple[int, ...]


def slice_of(loop: scf.ForOp, values: Sequence[SSAValue]) -> Slice | None:
    """What computes values in a loop's body, from one iteration to the next. None where that is more than tile ops that only
    compute or load: a reduction, a dot, a nested loop, an access that is observed."""
    block = loop.body.block
    end = block.last_op
    assert end is not None, "the verifier asks scf.for for a terminator"
    ops: set[Operation] = set()
    carried: set[int] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        owner = value.owner
        if owner is block:
            position = block.args.index(value) - 1
            if position >= 0 and position not in carried:
                carried.add(position)
                pending.append(end.operands[position])
        elif isinstance(owner, Operation) and owner.parent_block() is block and owner not in ops:
            if not _repeatable(owner):
                return None
            ops.add(owner)
            pending += owner.operands
    ordered = tuple(op for op in block.ops if op in ops and isinstance(op, tile.TileOp))
    return Slice(loop, ordered, tuple(sorted(carried)))


def _repeatable(op: Operation) -> bool:
    """Whether an op may be executed a second time, in an earlier iteration."""
    if isinstance(op, tile.LoadOp):
        return op.volatile is None
    kinds = (tile.Elementwise, tile.Shape, tile.Generator, tile.GridFact)
    return isinstance(op, tile.TileOp) and any(tile.is_a(op, kind) for kind in kinds)


@dataclass(frozen=True)
class Ahead:
    """An iteration of a slice's loop: its induction variable, whether it is ``enabled``, and the carried values of the slice."""

    part: Slice
    induction: SSAValue
    enabled: SSAValue
    carried: tuple[SSAValue, ...]

    @staticmethod
    def first(part: Slice, add: Add) -> Ahead:
        """The loop's first iteration."""
        loop = part.loop
        enabled = add(tile.CompareOp("lt", loop.lb, loop.ub)).results[0]
        return Ahead(part, loop.lb, enabled, tuple(loop.iter_args[i] for i in part.carried))

    @property
    def values(self) -> tuple[SSAValue, ...]:
        """The state, in an order of its own."""
        return (self.induction, self.enabled, *self.carried)

    def at(self, values: Sequence[SSAValue]) -> Ahead:
        """The iteration whose state these `values` are."""
        induction, enabled, *carried = values
        return replace(self, induction=induction, enabled=enabled, carried=tuple(carried))

    def compute(self, add: Add) -> dict[SSAValue, SSAValue]:
        """Inserts the slice's ops for this iteration; returns what stands for each of the body's values. Loads read nothing where
        the iteration is not enabled."""
        part = self.part
        block = part.loop.body.block
        found: dict[SSAValue, SSAValue] = {block.args[0]: self.induction}
        found |= {block.args[1 + i]: value for i, value in zip(part.carried, self.carried, strict=True)}
        for op in part.ops:
            clone = self._load(op, found, add) if isinstance(op, tile.LoadOp) else op.clone(found)
            add(clone).location = op.location
            found.update(zip(op.results, clone.results, strict=True))
        return found

    def _load(self, op: tile.LoadOp, found: dict[SSAValue, SSAValue], add: Add) -> tile.LoadOp:
        pointer, mask, other = (None if v is None else found.get(v, v) for v in (op.pointer, op.mask, op.other))
        assert pointer is not None, "a load has a pointer"
        shape = shape_of(pointer)
        enabled = add(tile.SplatOp(self.enabled, shape)).results[0] if shape else self.enabled
        both = enabled if mask is None else add(tile.BinaryOp("and", mask, enabled)).results[0]
        return tile.LoadOp(pointer, both, other, cache=op.cache.data, evict=op.evict.data)

    def following(self, found: dict[SSAValue, SSAValue], add: Add) -> Ahead:
        """The next iteration, after `compute` has found this one's values."""
        loop = self.part.loop
        end = loop.body.block.last_op
        assert end is not None, "the verifier asks scf.for for a terminator"
        left = add(tile.BinaryOp("sub", loop.ub, self.induction)).results[0]
        sizes = [add(tile.BitcastOp(value, _unsigned(dtype_of(value)))).results[0] for value in (left, loop.step)]
        more = add(tile.CompareOp("gt", *sizes)).results[0]
        enabled = add(tile.BinaryOp("and", self.enabled, more)).results[0]
        induction = add(tile.BinaryOp("add", self.induction, loop.step)).results[0]
        yielded = [end.operands[i] for i in self.part.carried]
        return Ahead(self.part, induction, enabled, tuple(found.get(value, value) for value in yielded))


def _unsigned(dtype: DType) -> DType:
    return dtypes.parse(f"uint{dtype.bits}")
