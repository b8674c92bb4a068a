"""Axis analysis of a function, and which argument a pointer comes from.

`analyse` walks the function once in program order; loops are repeated until what is known of their carried values holds
in the first and every later iteration (optimistically: it starts from the initial values and only ever forgets).
`weft.transforms.axis_info` says what the facts mean, `weft.transforms.axis_rules` how ops pass them on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import is_pointer
from weft.transforms.axis_info import AxisInfo, lowest_bit, unknown
from weft.transforms.axis_rules import transfer
from weft.transforms.constants import number_of

__all__ = ["DIVISIBILITY", "AxisInfo", "analyse", "base_argument", "base_arguments", "is_parameter"]

DIVISIBILITY: Final = "tile.divisibility"
"""The argument attribute (i64) that promises a divisor of an integer or, in bytes, of an address."""

_PATIENCE: Final = 3
"""Rounds after which a loop's carried value that is still changing counts as unknown."""


def analyse(function: func.FuncOp) -> Mapping[SSAValue, AxisInfo]:
    """What is known of every value in the function."""
    analysis = _Analysis(function.body.block)
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    for i, argument in enumerate(function.body.block.args):
        info = unknown(argument.type)
        promise = attributes[i].data.get(DIVISIBILITY) if i < len(attributes) else None
        if isinstance(promise, IntegerAttr):
            info = info._replace(divisibility=(lowest_bit(promise.value.data),))
        analysis.infos[argument] = info
    analysis.block(function.body.block)
    return analysis.infos


@dataclass(frozen=True)
class _Analysis:
    """The facts found so far; ``entry`` is the function's block, where every op is executed. ``before`` has what was known of an
    op's operands and results in the round before."""

    entry: Block
    infos: dict[SSAValue, AxisInfo] = field(default_factory=dict[SSAValue, AxisInfo])
    before: dict[Operation, tuple[list[AxisInfo], list[AxisInfo]]] = field(
        default_factory=dict[Operation, tuple[list[AxisInfo], list[AxisInfo]]]
    )

    def block(self, block: Block) -> None:
        """Adds what follows for each op of the block."""
        infos = self.infos
        for op in block.ops:
            if not op.regions and type(op) is not tile.AssumeOp:
                given = [infos[value] for value in operands_of(op)]
                before = self.before.get(op)
                found = transfer(op, given) if before is None or before[0] != given else before[1]
                self.before[op] = given, found
                for result, info in zip(op.results, found, strict=True):
                    infos[result] = info
                continue
            match op:
                case scf.IfOp():
                    self._if(op)
                case scf.ForOp():
                    self._for(op)
                case scf.WhileOp():
                    self._while(op)
                case tile.ReduceOp() | tile.ScanOp():
                    self._enter(op.combine.block, [unknown(a.type) for a in op.combine.block.args])
                    self._set(op.results, transfer(op, ()))
                case tile.AssumeOp() if block is self.entry:
                    self._assume(op.condition)
                case _:
                    self._set(op.results, transfer(op, self._get(op.operands)))

    def _get(self, values: Sequence[SSAValue]) -> list[AxisInfo]:
        return [self.infos[value] for value in values]

    def _set(self, values: Sequence[SSAValue], infos: Sequence[AxisInfo]) -> None:
        self.infos.update(zip(values, infos, strict=True))

    def _enter(self, block: Block, arguments: Sequence[AxisInfo]) -> list[AxisInfo]:
        """What the block's terminator hands on, given its arguments."""
        self._set(block.args, arguments)
        self.block(block)
        end = block.last_op
        return self._get(end.operands) if end is not None else []

    def _if(self, op: scf.IfOp) -> None:
        branches = [self._enter(region.block, ()) for region in (op.true_region, op.false_region) if region.blocks]
        if op.results:
            self._set(op.results, [a.join(b) for a, b in zip(*branches, strict=True)])

    def _for(self, op: scf.ForOp) -> None:
        start, _, step = self._get((op.lb, op.ub, op.step))
        induction = unknown(op.lb.type)._replace(
            divisibility=(min(start.divisibility[0], step.divisibility[0]),),
            nonnegative=start.nonnegative,
        )
        carried = self._get(op.iter_args)
        for round_ in count():
            after = self._enter(op.body.block, [induction, *carried])
            merged = _merge(carried, after, round_ < _PATIENCE)
            if merged == carried:
                break
            carried = merged
        self._set(op.results, carried)

    def _while(self, op: scf.WhileOp) -> None:
        carried = self._get(op.arguments)
        for round_ in count():
            _, *passed = self._enter(op.before_region.block, carried)
            merged = _merge(carried, self._enter(op.after_region.block, passed), round_ < _PATIENCE)
            if merged == carried:
                self._set(op.results, passed)
                break
            carried = merged

    def _assume(self, condition: SSAValue) -> None:
        """Learns from ``x % n == 0`` and ``x >= 0``, for what is computed from here on."""
        test = condition.owner
        if not isinstance(test, tile.CompareOp):
            return
        kind, bound, tested = test.kind.data, number_of(test.rhs), test.lhs.owner
        if (kind, bound) in (("ge", 0), ("gt", 0), ("gt", -1)):
            self.infos[test.lhs] = self.infos[test.lhs]._replace(nonnegative=True)
        if (kind, bound) == ("eq", 0) and isinstance(tested, tile.BinaryOp) and tested.kind.data == "rem":
            divisor, info = number_of(tested.rhs), self.infos[tested.lhs]
            if isinstance(divisor, int) and divisor:
                better = max(info.divisibility[0], lowest_bit(divisor))
                self.infos[tested.lhs] = info._replace(divisibility=(better,))


def _merge(carried: list[AxisInfo], after: list[AxisInfo], patient: bool) -> list[AxisInfo]:
    """What holds before and after an iteration; in impatience nothing where that is less than before."""
    joined = [a.join(b) for a, b in zip(carried, after, strict=True)]
    if patient:
        return joined
    return [new if new == old else new.forgotten for new, old in zip(joined, carried, strict=True)]


def base_arguments(values: Iterable[SSAValue]) -> dict[SSAValue, BlockArgument | None]:
    """For each of the values, and for those they are derived from one by one, its `base_argument`."""
    known: dict[SSAValue, BlockArgument | None] = {}
    for value in values:
        chain: list[SSAValue] = []
        current = value
        while current not in known:
            chain.append(current)
            sources = _sources(current)
            if sources is None or len(sources) != 1:
                known[current] = base_argument(current)
            else:
                current = sources[0]
        known.update(dict.fromkeys(chain, known[current]))
    return known


def base_argument(value: SSAValue) -> BlockArgument | None:
    """The function argument that every element of a pointer is derived from; None if unknown or several."""
    roots: set[SSAValue | None] = set()
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        sources = _sources(current)
        if sources is None:
            roots.add(current if isinstance(current, BlockArgument) and is_parameter(current) else None)
        else:
            pending.extend(sources)
    root = roots.pop() if len(roots) == 1 else None
    return root if isinstance(root, BlockArgument) and is_pointer(root) else None


_PASS_ON: Final = frozenset(
    {
        tile.SplatOp,
        tile.BroadcastOp,
        tile.ExpandDimsOp,
        tile.ReshapeOp,
        tile.TransOp,
        tile.ConvertLayoutOp,
        tile.SplitOp,
        tile.FlipOp,
        tile.BitcastOp,
        tile.HintOp,
        tile.AddPtrOp,
    }
)
"""Ops whose first operand is the pointer that their result is derived from."""


def is_parameter(argument: BlockArgument) -> bool:
    """Whether it is an argument of a function, and not of a loop."""
    return isinstance(argument.block.parent_op(), func.FuncOp)


def _sources(value: SSAValue) -> Sequence[SSAValue] | None:
    """The values one of which a value is derived from; None where it begins or that is not known."""
    owner = value.owner
    if isinstance(value, OpResult):
        if type(value.op) in _PASS_ON:
            return operands_of(value.op)[:1]
        match value.op:
            case tile.SelectOp() | tile.JoinOp() as op:
                return (op.lhs, op.rhs)
            case scf.IfOp() as op:
                return [_yielded(region.block, value.index) for region in op.regions if region.blocks]
            case scf.ForOp() as op:
                return (op.iter_args[value.index], _yielded(op.body.block, value.index))
            case scf.WhileOp() as op:
                return (_yielded(op.before_region.block, value.index + 1),)
            case _:
                return None
    if not isinstance(owner, Block) or not isinstance(value, BlockArgument):
        return None
    match owner.parent_op():
        case scf.ForOp() as op if value.index > 0:
            return (op.iter_args[value.index - 1], _yielded(owner, value.index - 1))
        case scf.WhileOp() as op if owner is op.before_region.block:
            return (op.arguments[value.index], _yielded(op.after_region.block, value.index))
        case scf.WhileOp() as op:
            return (_yielded(op.before_region.block, value.index + 1),)
        case _:
            return None


def _yielded(block: Block, index: int) -> SSAValue:
    end = block.last_op
    assert end is not None, "the verifier asks structured control flow for terminators"
    return end.operands[index]
