"""A solution as the facts and choices by which `weft.transforms.layouts.rewrite` changes the IR.

Held values take the layouts of their variables. A free value or a shape op takes the layout that the first reader to be met, from
the end of the function, wants of it. Other readers get clones.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.types import is_tile
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts
from weft.transforms.layouts.solve.search import Solution


def enter(
    solution: Solution, function: func.FuncOp, facts: LayoutFacts, chosen: dict[Operation, OperandLayouts]
) -> None:
    """Changes ``facts`` and ``chosen`` from the preference order's to the solution's."""
    facts.spelling = solution.forms.spelling
    for variable, choice in zip(solution.problem.variables, solution.choices, strict=True):
        held = next((layout for layout in choice.results if layout is not None), None)
        if held is not None:
            for value in variable.results:
                facts.layouts[value] = held
        if variable.op is not None:
            chosen[variable.op] = choice
    _Following(facts, chosen, {op for v in solution.problem.variables if (op := v.op) is not None}).run(function)


class _Following:
    """Gives values that are no variable's the layouts that are wanted of them."""

    def __init__(self, facts: LayoutFacts, chosen: dict[Operation, OperandLayouts], decided: set[Operation]):
        self._facts = facts
        self._chosen = chosen
        self._decided = decided
        self._wanted: dict[SSAValue, LinearLayout] = {}

    def run(self, function: func.FuncOp) -> None:
        """Readers come after what they read, so ops are visited from the last to the first."""
        for op in reversed(list(function.walk())):
            if op not in self._decided and op in self._chosen:
                self._follow(op)
            for value, layout in zip(op.operands, self._wants(op), strict=False):
                if layout is not None and is_tile(value):
                    self._wanted.setdefault(value, self._facts.spelled(layout))

    def _follow(self, op: Operation) -> None:
        """A free op or a shape op computes what is wanted of it; what nothing reads keeps its layout."""
        (result,) = op.results
        layout = self._wanted.get(result, self._facts.spelled(self._facts.layouts[result]))
        self._facts.layouts[result] = layout
        source = self._facts.spelled(op.source_layout(layout)) if isinstance(op, tile.ShapeOp) else layout
        operands = [source if is_tile(value) else None for value in op.operands]
        self._chosen[op] = OperandLayouts(tuple(operands), (layout,))

    def _wants(self, op: Operation) -> Sequence[LinearLayout | None]:
        if op in self._chosen:
            return self._chosen[op].operands
        layouts = self._facts.layouts
        match op:
            case scf.ForOp():
                return [None, None, None, *(layouts.get(argument) for argument in op.body.block.args[1:])]
            case scf.WhileOp():
                return [layouts.get(argument) for argument in op.before_region.block.args]
            case scf.YieldOp() | scf.ConditionOp():
                return self._ends(op)
            case _:
                return []

    def _ends(self, op: Operation) -> Sequence[LinearLayout | None]:
        layouts = self._facts.layouts
        parent = op.parent_op()
        match parent:
            case scf.ForOp():
                return [layouts.get(argument) for argument in parent.body.block.args[1:]]
            case scf.WhileOp() if isinstance(op, scf.ConditionOp):
                return [None, *(layouts.get(argument) for argument in parent.after_region.block.args)]
            case scf.WhileOp():
                return [layouts.get(argument) for argument in parent.before_region.block.args]
            case scf.IfOp():
                return [layouts.get(result) for result in parent.output]
            case _:
                return []
