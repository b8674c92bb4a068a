"""Rewriting: the inferred layouts go into the types; operands are computed again or converted where they do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.types import is_tile, with_layout
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts


class Rewriting:
    """Changes a block as an inference has ``chosen``: `retype`, then `convert`."""

    def __init__(self, facts: LayoutFacts, chosen: Mapping[Operation, OperandLayouts]):
        self._facts = facts
        self._chosen = chosen
        self._clones: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}

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
                if layout is not None and self._facts.layouts[op.operands[i]] != layout:
                    op.operands[i] = self._in_layout(op.operands[i], layout)
            for region in op.regions:
                if isinstance(op, tile.ReduceOp):
                    continue
                for inner in region.blocks:
                    self.convert(inner)

    def _wanted(self, op: Operation) -> Sequence[LinearLayout | None]:
        """For each operand the layout the op needs it in; None for scalars."""
        chosen = self._chosen.get(op)
        if chosen is not None:
            return chosen.operands
        match op:
            case scf.ForOp():
                return [None, None, None, *self._as(op.body.block.args[1:])]
            case scf.WhileOp():
                return self._as(op.before_region.block.args)
            case scf.YieldOp() | scf.ConditionOp():
                return self._wanted_by_end(op)
            case _:
                return [None] * len(op.operands)

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
