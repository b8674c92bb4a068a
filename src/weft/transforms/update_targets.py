"""Arrays that a kernel does nothing to but update: a thread may update a copy, and the array by the copy later.

    tl.atomic_add(counts + tl.load(bytes + i).to(tl.int32), 1)          counts: add, elements 0 to 255

An argument is a *target*, whatever its length, if these rules hold:

1. *Nothing else.* The kernel derives nothing from it but pointers of atomics of one kind, whose old values it does not use. The
   elements are integers. Or it adds up floats of 32 bits and more, and the launch says that the order of sums does not matter
   (`weft.options.Options.reassociation`).
2. *Not seen.* All accesses of the kernel that others may observe (`weft.ir.memory`) are updates of targets, and each access is
   derived from an argument. The caller knows that arguments do not overlap (`weft.options.Options.disjoint`).

Constants, types and masks limit the offsets of its elements (`weft.transforms.integer_ranges`), at worst to what an integer type
has. The array may be shorter or longer.

Then no program of the launch learns when another one's updates happened: none reads the target, and nothing else orders programs.
Plain accesses of two programs to one element, of which one writes, are a race whether or not updates come later. Other threads
may observe the target. They see an update later, and then all that preceded it, if the copy is merged with release order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import func
from xdsl.ir import BlockArgument, SSAValue

from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import defining_op, operands_of, ops_in
from weft.ir.types import dtype_of, is_pointer
from weft.transforms.axis import base_arguments
from weft.transforms.integer_ranges import Interval, Ranges

IDENTITIES: Final[Mapping[str, str]] = {
    "add": "zero",
    "or": "zero",
    "xor": "zero",
    "and": "ones",
    "max": "min",
    "min": "max",
}
"""The kinds whose updates may come in any order, and the operand that changes nothing: 0, all bits, the type's least or greatest
number. For sums of floats it is -0: ``-0 + 0`` is 0."""

_SAME: Final = (
    tile.SplatOp,
    tile.BroadcastOp,
    tile.ExpandDimsOp,
    tile.ReshapeOp,
    tile.TransOp,
    tile.ConvertLayoutOp,
)
"""Ops whose elements are their operand's. `tile.HintOp` is not among them: what it says of an address may not hold for a copy."""


@dataclass(frozen=True)
class Target:
    """Argument ``slot`` of a kernel, which updates by ``kind`` the elements from ``low`` to ``high``, both included, counted from
    where the argument points."""

    slot: int
    dtype: DType
    kind: str
    low: int
    high: int

    @property
    def identity(self) -> int:
        """The bits of the number that updates nothing."""
        if self.dtype.is_float:
            return 1 << self.dtype.bits - 1
        return {"zero": 0, "ones": -1, "min": self.dtype.min, "max": self.dtype.max}[IDENTITIES[self.kind]]


def targets_of(kernel: func.FuncOp, *, reassociate: bool = False) -> tuple[Target, ...]:
    """The targets of a kernel whose arguments do not overlap, in the order of its arguments; none where a rule fails.
    ``reassociate``: floats may be added up in any order."""
    ops = list(ops_in(kernel))
    observed = [op for op in ops if (ordering := tile.ordering_of(op)) is not None and ordering.observed]
    updates = [op for op in observed if isinstance(op, tile.AtomicRmwOp)]
    if not updates or len(updates) < len(observed):
        return ()
    bases = base_arguments(op.pointer for op in ops if tile.is_access(op))
    if any(bases[op.pointer] is None for op in ops if tile.is_access(op)):
        return ()
    ranges, found = Ranges(), list[Target]()
    for argument in dict.fromkeys(bases[op.pointer] for op in updates):
        target = None if argument is None else _target(argument, ranges, reassociate)
        if target is None:
            return ()
        found.append(target)
    return tuple(sorted(found, key=lambda target: target.slot))


def _target(argument: BlockArgument, ranges: Ranges, reassociate: bool) -> Target | None:
    """The argument as a target; None where it is none."""
    updates = _only_updates(argument)
    if not updates:
        return None
    kinds = {op.kind.data for op in updates}
    dtype = dtype_of(argument)
    sums = reassociate and dtype.is_float and dtype.bits >= 32 and kinds == {"add"}
    if len(kinds) != 1 or not kinds <= IDENTITIES.keys() or not (dtype.is_integer or sums):
        return None
    parts = [_elements(op, ranges) for op in updates]
    return Target(argument.index, dtype, kinds.pop(), min(low for low, _ in parts), max(high for _, high in parts))


def _only_updates(argument: BlockArgument) -> list[tile.AtomicRmwOp] | None:
    """The atomics of a pointer, if nothing else uses it, nor their results."""
    updates: list[tile.AtomicRmwOp] = []
    pending: list[SSAValue] = [argument]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, (*_SAME, tile.AddPtrOp)) and use.index == 0:
                pending.append(op.results[0])
            elif isinstance(op, tile.AtomicRmwOp) and use.index == 0 and op.result.first_use is None:
                updates.append(op)
            else:
                return None
    return updates


def _elements(op: tile.AtomicRmwOp, ranges: Ranges) -> Interval:
    """Which elements an atomic may update, counted from where its argument points."""
    low = high = 0
    value, bounds = op.pointer, {} if op.mask is None else _bounds(op.mask, ranges)
    while not isinstance(value, BlockArgument):
        made = defining_op(value)
        assert made is not None
        if isinstance(made, tile.AddPtrOp):
            first, last = ranges.of(made.offset)
            if value is op.pointer and made.offset in bounds:
                least, most = bounds[made.offset]
                first, last = max(first, least), min(last, most)
            low, high = low + first, high + last
        value = operands_of(made)[0]
    return low, high


def _bounds(mask: SSAValue, ranges: Ranges) -> dict[SSAValue, Interval]:
    """What a mask, where it is true, says of values of the same tile: they are between two numbers, if there are any."""
    found: dict[SSAValue, Interval] = {}
    pending = [mask]
    while pending:
        op = defining_op(pending.pop())
        if isinstance(op, tile.BinaryOp) and op.kind.data == "and":
            pending += operands_of(op)
        elif isinstance(op, tile.CompareOp) and not is_pointer(op.lhs) and dtype_of(op.lhs).is_integer:
            for value, other, kind in (
                (op.lhs, op.rhs, op.kind.data),
                (op.rhs, op.lhs, _MIRRORED.get(op.kind.data, "")),
            ):
                (low, high), (least, most) = found.get(value) or ranges.of(value), ranges.of(other)
                if kind in ("lt", "le", "eq"):
                    high = min(high, most - (kind == "lt"))
                if kind in ("gt", "ge", "eq"):
                    low = max(low, least + (kind == "gt"))
                found[value] = low, high
    return found


_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
