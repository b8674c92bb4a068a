"""In which order the programs of a grid run: along memory.

Programs run in any order (docs/memory-model.md), and usually it is x fastest. If neighbours in x are rows apart and neighbours in
y lie side by side, each program touches new cache lines and pages, and their other parts are wanted long after they were evicted.
Then y runs fastest:

    offset of an access = x * BM * stride + y * BN + ..     x moves by a stride, y by BN: y first
    offset of an access = x * BN + y * BM * stride + ..     x first, as always

A *step* is how far an access moves with an axis of the grid: a number of elements, or `FAR` for a product with a number known at
run time only. y runs first if every access that moves with both axes moves less far with y. The others say nothing.

Programs whose order is seen (`order_is_seen`) run x fastest, and each thread takes the next one (`weft.codegen.kernel`). Programs
with products of matrices run x fastest, too: their operands lie along both axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, SSAValue

from weft.ir import tile
from weft.ir.direct import defining_op, operands_of, ops_in
from weft.options import Options
from weft.transforms.flags import waits

FAR: Final = inf

_SEEN: Final = frozenset({tile.AtomicRmwOp, tile.AtomicCasOp, tile.PrintOp, tile.AssertOp, tile.AssemblyOp})
_SAME: Final = (
    tile.SplatOp,
    tile.ExpandDimsOp,
    tile.BroadcastOp,
    tile.CastOp,
    tile.ReshapeOp,
    tile.TransOp,
    tile.ConvertLayoutOp,
)
"""Ops whose elements are their operand's, or that number in another type."""


def order_is_seen(kernel: func.FuncOp, options: Options) -> bool:
    """Whether one can tell in which order the programs of a kernel ran: it waits, prints, checks or asserts, or has assembly or
    atomics (sums of floats are rounded in that order). Such programs start in increasing order (docs/memory-model.md)."""
    return options.checked or waits(kernel) or any(type(op) in _SEEN for op in ops_in(kernel))


def y_first(kernel: func.FuncOp, options: Options) -> bool:
    """Whether the programs of a kernel shall run with y fastest."""
    if order_is_seen(kernel, options) or any(isinstance(op, tile.DotOp) for op in ops_in(kernel)):
        return False
    votes = [y < x for x, y in steps_of(kernel) if x and y]
    return bool(votes) and all(votes)


def steps_of(kernel: func.FuncOp) -> list[tuple[float | None, float | None]]:
    """How far each load and store of a kernel moves with x and with y, in program order; None where that is not known."""
    x, y = Steps(0), Steps(1)
    accesses = [op.pointer for op in ops_in(kernel) if isinstance(op, tile.LoadOp | tile.StoreOp)]
    return [(x.of(pointer), y.of(pointer)) for pointer in accesses]


def steps_in(loop: scf.ForOp) -> Steps:
    """How far values move from an iteration of a loop to the next."""
    counter, *carried = loop.body.block.args
    step = _number(loop.step)
    known: dict[SSAValue, float | None] = {counter: FAR if step is None else step}
    end = loop.body.block.last_op
    for argument, following in zip(carried, operands_of(end) if end is not None else (), strict=True):
        op = defining_op(following)
        if following is argument:
            known[argument] = 0
        elif isinstance(op, tile.AddPtrOp | tile.BinaryOp) and op.operands[0] is argument:
            added = isinstance(op, tile.AddPtrOp) or op.kind.data == "add"
            number = _number(op.operands[1])
            known[argument] = None if not added else FAR if number is None else number
        else:
            known[argument] = None
    return Steps(None, known, loop)


class Steps:
    """How far values move with an axis of the grid, or with values that are ``known`` to move; None where it is not known.
    What is defined outside of the loop ``inside`` does not move."""

    def __init__(
        self,
        axis: int | None,
        known: Mapping[SSAValue, float | None] | None = None,
        inside: scf.ForOp | None = None,
    ):
        self._axis = axis
        self._known: dict[SSAValue, float | None] = dict(known or {})
        self._inside = inside

    def of(self, value: SSAValue) -> float | None:
        """The step of a value, in elements. Not by recursion: an unrolled loop makes chains longer than Python's stack."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current not in self._known and self._inside is not None and not is_defined_in(current, self._inside):
                self._known[current] = 0
            missing = [] if current in self._known else [v for v in _sources(current) if v not in self._known]
            pending.extend(missing)
            if not missing:
                pending.pop()
                if current not in self._known:
                    self._known[current] = self._of(current)
        return self._known[value]

    def _of(self, value: SSAValue) -> float | None:
        op = defining_op(value)
        steps = [self._known[v] for v in _sources(value)]
        known = [step for step in steps if step is not None]
        if len(known) < len(steps):
            return None
        match op:
            case None if known:  # what a loop counts: its beginning and step
                return None if known[1] else known[0]
            case None:
                return 0 if isinstance(value.owner.parent_op(), func.FuncOp) else None
            case tile.ProgramIdOp():
                return int(op.axis.value.data == self._axis)
            case tile.AddPtrOp():
                return sum(known)
            case tile.BinaryOp() if op.kind.data in ("add", "sub"):
                return sum(known)
            case tile.BinaryOp() if op.kind.data == "mul" and 0 in known:
                moving, factor = (0, 1) if known[0] else (1, 0)
                number = _number(op.operands[factor])
                return 0 if not known[moving] else FAR if number is None else abs(known[moving] * number)
            case _ if isinstance(op, _SAME):
                return known[0]
            case _:
                return None if any(known) or not isinstance(op, tile.TileOp) or tile.is_access(op) else 0


def is_defined_in(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is defined in the body of a loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and block is not loop.body.block:
        outer = block.parent_op()
        block = None if outer is None else outer.parent
    return block is not None


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    """The values on which the step of a value depends."""
    op = defining_op(value)
    if op is not None:
        return operands_of(op)
    assert isinstance(value, BlockArgument), "a value without an op is an argument"
    loop = value.block.parent_op()
    return (loop.lb, loop.step) if isinstance(loop, scf.ForOp) and value.index == 0 else ()


def _number(value: SSAValue) -> int | None:
    """The number that is in all elements of a value, if it is known."""
    op = defining_op(value)
    while isinstance(op, _SAME):
        op = defining_op(op.operands[0])
    return op.number if isinstance(op, tile.ConstantOp) and isinstance(op.number, int) else None
