"""Every tile gets a layout; conversions become explicit.

Most tiles have no layout of their own to begin with, so few conversions are made in the first place (the engine of section 4.4 of
the linear-layouts paper). The machine's rules propose layouts for each op (`rules`); the pass takes the first proposal, in
program order. For a CPU (`vectors`) that is a preference order, of which rules 1 to 3 are the machine's and 4 and 5 the pass's:

1. *Anchors* decide: a load takes the layout that makes its lanes consecutive in memory (from axis analysis), a dot's result is
   row-major.
2. *Shape ops carry*: trans, reshape, expand_dims and reduce give their result the layout under which nothing moves.
3. *Elementwise ops follow the heaviest operand*: the one with the most elements that came from memory or a reduction; a
   broadcast weighs what its source weighs.
4. *Free values follow their users*: what is computed from constants, ranges and scalars alone is cloned in whatever layout
   is asked for (backward rematerialisation); a shape op asks its source for the layout that makes it free. So does a load
   that is only wanted as one element per register, repeated.
5. Only what is left is a `tile.convert_layout`.

A loop's carried tile that starts free takes the layout its body yields. The pass first infers all layouts without changing
anything (loops twice, for rule 5's sake), then retypes the values, then inserts what rules 4 and 5 require.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from weft.ir import tile
from weft.ir.types import shape_of, with_layout
from weft.layout import LinearLayout
from weft.transforms.axis import analyse
from weft.transforms.layouts.rules import LayoutFacts, LayoutRules, OperandLayouts
from weft.transforms.layouts.vectors import VectorRules


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Gives every tensor type a layout, from ``register`` and ``lane`` (of ``lanes``) to its dimensions. Operands of one
    elementwise op get one layout."""

    name = "assign-layouts"

    lanes: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                assignment = _Assignment(VectorRules(self.lanes), LayoutFacts(dict(analyse(function))))
                assignment.infer(function.body.block)
                assignment.retype(function.body.block)
                assignment.convert(function.body.block)


def is_tile(value: SSAValue) -> bool:
    return bool(shape_of(value))


class _Assignment:
    def __init__(self, rules: LayoutRules, facts: LayoutFacts):
        self._rules = rules
        self._facts = facts
        self._chosen: dict[Operation, OperandLayouts] = {}
        self._clones: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}

    # -- inference: layouts and weights of values, nothing changed -----------------------------------------------------

    def infer(self, block: Block) -> None:
        """Layouts and weights of all tiles a block defines, its inner regions included."""
        for op in block.ops:
            match op:
                case scf.ForOp():
                    self._infer_loop(op.iter_args, op.body.block.args[1:], [op.body.block], op.res)
                case scf.WhileOp():
                    blocks = [op.before_region.block, op.after_region.block]
                    self._infer_loop(op.arguments, op.before_region.block.args, blocks, op.res)
                case scf.IfOp():
                    self._infer_if(op)
                case _:
                    self._infer_op(op)

    def _infer_op(self, op: Operation) -> None:
        if op.has_trait(IsTerminator) or not any(map(is_tile, (*op.operands, *op.results))):
            return
        chosen = self._chosen[op] = self._rules.candidates(op, self._facts)[0]
        for result, layout in zip(op.results, chosen.results, strict=True):
            if layout is not None:
                self._facts.set(result, layout, self._weight(op, result))

    def _weight(self, op: Operation, result: SSAValue) -> int:
        """How many elements of the result came from memory, a dot or a reduction; a broadcast weighs what its source weighs."""
        if tile.is_a(op, tile.Generator):
            return 0
        if tile.is_a(op, tile.Elementwise) or tile.is_a(op, tile.Shape):
            return max(self._facts.weights[value] for value in op.operands if is_tile(value))
        return prod(shape_of(result))

    def _infer_loop(
        self,
        initial: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        blocks: Sequence[Block],
        results: Sequence[SSAValue],
    ) -> None:
        for value, argument in zip(initial, carried, strict=True):
            if is_tile(argument):
                self._facts.set(argument, self._facts.layouts[value], self._facts.weights[value])
        passed = self._infer_body(carried, blocks)
        weights, layouts = self._facts.weights, self._facts.layouts
        taken = [
            (argument, layouts[value if weights[value] else argument])
            for value, argument in zip(passed, carried, strict=True)
            if is_tile(argument) and not weights[argument]
        ]
        for argument, layout in taken:
            self._facts.set(argument, layout, prod(shape_of(argument)))
        if taken:  # only then: repeating every body would take time exponential in the depth of the nest
            self._infer_body(carried, blocks)
        outgoing = carried if len(blocks) == 1 else _terminator_values(blocks[0])
        self._pass_on(outgoing, results)

    def _infer_body(self, carried: Sequence[SSAValue], blocks: Sequence[Block]) -> Sequence[SSAValue]:
        """Infers a loop's blocks, each given what the one before passes on; returns what the last passes on."""
        passed = carried
        for block in blocks:
            if block is not blocks[0]:
                self._pass_on(passed, block.args)
            self.infer(block)
            passed = _terminator_values(block)
        return passed

    def _pass_on(self, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        for value, target in zip(values, targets, strict=True):
            if is_tile(target):
                self._facts.set(target, self._facts.layouts[value], prod(shape_of(target)))

    def _infer_if(self, op: scf.IfOp) -> None:
        branches = [region.block for region in (op.true_region, op.false_region) if region.blocks]
        for block in branches:
            self.infer(block)
        for i, result in enumerate(op.output):
            if is_tile(result):
                heaviest = self._facts.heaviest([_terminator_values(block)[i] for block in branches])
                self._facts.set(result, self._facts.layouts[heaviest], prod(shape_of(result)))

    # -- rewriting ---------------------------------------------------------------------------------------------------------

    def retype(self, block: Block) -> None:
        """Puts the inferred layouts into the types of a block's values and its inner regions'."""
        for argument in block.args:
            self._retype(argument)
        for op in block.ops:
            for result in op.results:
                self._retype(result)
            for region in op.regions:
                if isinstance(op, tile.ReduceOp):
                    continue
                for inner in region.blocks:
                    self.retype(inner)

    def _retype(self, value: SSAValue) -> None:
        if value in self._facts.layouts:
            layout, weight = self._facts.layouts.pop(value), self._facts.weights.pop(value)
            name = value.name_hint
            axis = self._facts.axis.pop(value, None)
            value = Rewriter.replace_value_with_new_type(value, with_layout(value.type, layout))
            value.name_hint = name
            self._facts.set(value, layout, weight)
            if axis is not None:
                self._facts.axis[value] = axis

    def convert(self, block: Block) -> None:
        """Makes the operands of every op agree with what the op needs, and wraps what cannot."""
        for op in list(block.ops):
            for i, layout in enumerate(self._wanted(op)):
                if layout is not None:
                    op.operands[i] = self._in_layout(op.operands[i], layout)
            for region in op.regions:
                if isinstance(op, tile.ReduceOp):
                    continue
                for inner in region.blocks:
                    self.convert(inner)

    def _wanted(self, op: Operation) -> Sequence[LinearLayout | None]:
        """For each operand the layout the op needs it in; None for scalars."""
        match op:
            case scf.ForOp():
                return [None, None, None, *self._as(op.body.block.args[1:])]
            case scf.WhileOp():
                return self._as(op.before_region.block.args)
            case scf.YieldOp() | scf.ConditionOp():
                return self._wanted_by_end(op)
            case _:
                return self._chosen[op].operands if op in self._chosen else [None] * len(op.operands)

    def _as(self, values: Sequence[SSAValue]) -> list[LinearLayout | None]:
        return [self._facts.layouts[value] if is_tile(value) else None for value in values]

    def _wanted_by_end(self, op: Operation) -> list[LinearLayout | None]:
        parent = op.parent_op()
        match parent:
            case scf.ForOp():
                return self._as(parent.body.block.args[1:])
            case scf.WhileOp() if isinstance(op, scf.ConditionOp):
                return [None, *self._as(parent.after_region.block.args)]
            case scf.WhileOp():
                return self._as(parent.before_region.block.args)
            case scf.IfOp():
                return self._as(parent.output)
            case _:
                return [None] * len(op.operands)

    def _in_layout(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        """The value in a layout: itself, a clone of a free value or shape op (rule 4), or a conversion. Clones what it is
        computed from first, not by recursion: an unrolled loop makes chains longer than Python's stack."""
        pending = [(value, layout)]
        while pending:
            key = pending[-1]
            if self._found(key) is None:
                missing = [source for source in self._cloned_from(*key) if self._found(source) is None]
                if missing:
                    pending.extend(missing)
                    continue
                self._clones[key] = self._insert(*key)
            pending.pop()
        return value if self._facts.layouts[value] == layout else self._clones[value, layout]

    def _found(self, key: tuple[SSAValue, LinearLayout]) -> SSAValue | None:
        value, layout = key
        return value if self._facts.layouts[value] == layout else self._clones.get(key)

    def _cloned_from(self, value: SSAValue, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
        """The tiles, and their layouts, from which a clone of the value is computed; none where it is converted."""
        op = value.owner
        if not isinstance(op, Operation) or not self._is_cloned(op, value, layout):
            return []
        source = op.source_layout(layout) if isinstance(op, tile.ShapeOp) else layout
        return [(operand, source) for operand in op.operands if is_tile(operand)]

    def _is_cloned(self, op: Operation, value: SSAValue, layout: LinearLayout) -> bool:
        free = not self._facts.weights[value] and (tile.is_a(op, tile.Generator) or tile.is_a(op, tile.Elementwise))
        return free or isinstance(op, tile.ShapeOp) or _splats(op, layout)

    def _insert(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        """A clone or conversion of the value, put right after it."""
        op = value.owner
        if isinstance(op, Operation) and self._is_cloned(op, value, layout):
            new = self._clone(op, value, layout)
        else:
            new = tile.ConvertLayoutOp(value, layout)
        if isinstance(op, Operation):
            new.location = op.location
        result = new.results[0]
        result.name_hint = value.name_hint
        self._facts.set(result, layout, self._facts.weights[value])
        if value in self._facts.axis:
            self._facts.axis[result] = self._facts.axis[value]
        Rewriter.insert_op(new, InsertPoint.after(op) if isinstance(op, Operation) else InsertPoint.at_start(op))
        return result

    def _clone(self, op: Operation, value: SSAValue, layout: LinearLayout) -> Operation:
        found = {source: self._found((source, wanted)) for source, wanted in self._cloned_from(value, layout)}
        return type(op).create(
            operands=[found.get(operand) or operand for operand in op.operands],
            result_types=[with_layout(value.type, layout)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )


def _splats(op: Operation, layout: LinearLayout) -> bool:
    """Whether the op is a plain load that nothing else reads and that the layout wants one element a register of:
    better loaded and repeated element by element than loaded as vectors and taken apart."""
    if not isinstance(op, tile.LoadOp) or op.volatile is not None:
        return False
    return not any(layout.columns("lane")) and op.result.has_one_use()


def _terminator_values(block: Block) -> Sequence[SSAValue]:
    """What a block hands on: the operands of its terminator, a condition's flag excluded."""
    last = block.last_op
    if isinstance(last, scf.ConditionOp):
        return last.args
    return () if last is None else last.operands
