"""The problem: variables, each with a choice of layouts to be made, and the values that pass between them.

A *variable* is an op with tiles that are not free, or a carried value: a loop's argument with the loop's result, both blocks of a
while loop, the result of a branch. A *held* value is a variable's result. Shape ops carry a layout from a held value to
the operand that reads it (a path), free values follow whatever is asked for: neither is a variable.

A *choice* gives each operand and result of a variable a layout. A user that wants a held value in another layout than its own
pays a conversion; users that want the same layout share it. A conversion stands where the value is defined, so it is executed as
often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import tile
from weft.ir.types import is_tile
from weft.layout import LinearLayout
from weft.transforms.layouts.free import Free
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts
from weft.transforms.layouts.solve.trips import Trips, ops_of


@dataclass(frozen=True)
class Input:
    """A held value that a variable reads as its operand ``index``, through the shape ops of ``path``; the op that reads is the
    variable's, or the one that begins or ends the block of a carried value."""

    value: SSAValue
    path: tuple[tile.ShapeOp, ...]
    index: int
    reader: Operation
    kept: dict[LinearLayout, LinearLayout] = field(
        default_factory=dict[LinearLayout, LinearLayout], compare=False, repr=False
    )

    def wanted(self, layout: LinearLayout) -> LinearLayout:
        """The held value's layout under which the operand has ``layout`` and nothing moves; answers are kept."""
        if not self.path:
            return layout
        found = self.kept.get(layout)
        if found is None:
            found = layout
            for op in reversed(self.path):
                found = op.source_layout(found)
            self.kept[layout] = found
        return found


@dataclass
class Variable:
    """``op`` is None for a carried value, whose operands are then the values that it takes on."""

    number: int
    op: Operation | None
    results: tuple[SSAValue, ...]
    inputs: tuple[Input, ...]
    preferred: OperandLayouts
    trips: float


@dataclass
class Problem:
    """The variables of a function; of each held value the variable that defines it, and its readers."""

    variables: list[Variable] = field(default_factory=list[Variable])
    owner: dict[SSAValue, Variable] = field(default_factory=dict[SSAValue, Variable])
    readers: dict[SSAValue, list[tuple[Variable, Input]]] = field(
        default_factory=dict[SSAValue, list[tuple[Variable, Input]]]
    )
    trips: Trips = field(default_factory=Trips)
    free: Free = field(default_factory=Free)

    def add(
        self,
        op: Operation | None,
        results: Sequence[SSAValue],
        operands: Sequence[tuple[SSAValue, Operation]],
        preferred: OperandLayouts,
        trips: float,
    ) -> None:
        """Enters a variable; ``operands`` come with the ops that read them."""
        inputs = [found for i, (value, by) in enumerate(operands) if (found := self._input(value, i, by)) is not None]
        variable = Variable(len(self.variables), op, tuple(results), tuple(inputs), preferred, trips)
        self.variables.append(variable)
        self.owner.update(dict.fromkeys(results, variable))
        for found in inputs:
            self.readers.setdefault(found.value, []).append((variable, found))

    def _input(self, value: SSAValue, index: int, reader: Operation) -> Input | None:
        if not is_tile(value) or self.free.is_free(value):
            return None
        path: list[tile.ShapeOp] = []
        while isinstance(value.owner, tile.ShapeOp | tile.ConvertLayoutOp):
            if isinstance(value.owner, tile.ShapeOp):
                path.append(value.owner)
            value = value.owner.source
        return Input(value, tuple(reversed(path)), index, reader)


def state(function: func.FuncOp, facts: LayoutFacts, chosen: dict[Operation, OperandLayouts]) -> Problem:
    """The problem of a function, whose tiles have the layouts of the preference order in ``facts`` and ``chosen``."""
    problem = Problem()
    for op in ops_of(function.body.block):
        match op:
            case scf.ForOp():
                end = _end(op.body.block)
                rows = zip(op.res, op.body.block.args[1:], op.iter_args, end.operands, strict=True)
                for result, argument, initial, passed in rows:
                    _carry(problem, facts, (argument, result), [(initial, op), (passed, end)])
            case scf.WhileOp():
                before, after = op.before_region.block, op.after_region.block
                asked, end = _end(before), _end(after)
                assert isinstance(asked, scf.ConditionOp), "the verifier asks for it"
                for argument, initial, passed in zip(before.args, op.arguments, end.operands, strict=True):
                    _carry(problem, facts, (argument,), [(initial, op), (passed, end)])
                for argument, result, passed in zip(after.args, op.res, asked.args, strict=True):
                    _carry(problem, facts, (argument, result), [(passed, asked)])
            case scf.IfOp():
                blocks = [region.block for region in (op.true_region, op.false_region) if region.blocks]
                for i, result in enumerate(op.output):
                    _carry(problem, facts, (result,), [(_end(block).operands[i], _end(block)) for block in blocks])
            case _ if op in chosen:
                _enter(problem, op, chosen[op])
            case _:
                pass
    return problem


def _enter(problem: Problem, op: Operation, preferred: OperandLayouts) -> None:
    if isinstance(op, tile.ShapeOp) or (len(op.results) == 1 and _is_free(problem, op.results[0])):
        return
    results = [result for result in op.results if is_tile(result)]
    problem.add(op, results, [(value, op) for value in op.operands], preferred, problem.trips.of(op))


def _is_free(problem: Problem, value: SSAValue) -> bool:
    return is_tile(value) and problem.free.is_free(value)


def _carry(
    problem: Problem, facts: LayoutFacts, results: Sequence[SSAValue], operands: Sequence[tuple[SSAValue, Operation]]
) -> None:
    if is_tile(results[0]):
        layout = facts.layouts[results[0]]
        choice = carried(layout, len(operands))
        problem.add(None, results, operands, choice, 1.0)


def carried(layout: LinearLayout, operands: int) -> OperandLayouts:
    """The choice of a carried value."""
    return OperandLayouts((layout,) * operands, (layout,))


def _end(block: Block) -> Operation:
    end = block.last_op
    assert end is not None, "the verifier asks structured control flow for terminators"
    return end
