"""Rewriting: the inferred layouts go into the types; operands are computed again or converted where they do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.direct import operands_of, set_type
from weft.ir.types import is_tile, with_layout
from weft.layout import LinearLayout
from weft.transforms.layouts.cloning import cloned_from, is_cloned
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts


class Rewriting:
    """Changes a block as an inference has ``chosen``: `retype`, then `convert`."""

    def __init__(self, facts: LayoutFacts, chosen: Mapping[Operation, OperandLayouts]):
        self._facts = facts
        self._chosen = chosen
        self._clones: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}
        self._originals: dict[SSAValue, SSAValue] = {}
        """What each clone and conversion stands for. Ops that are cloned have got clones as operands already; a clone of them is
        computed from the originals, one of which may have the layout."""

    def retype(self, block: Block) -> None:
        """Puts the inferred layouts into the types of a block's values and its inner regions'."""
        for argument in block.args:
            self._retype(argument)
        for op in block.ops:
            for result in op.results:
                self._retype(result)
            for region in op.regions:
                if isinstance(op, tile.CombiningOp):
                    continue
                for inner in region.blocks:
                    self.retype(inner)

    def _retype(self, value: SSAValue) -> None:
        layout = self._facts.layouts.get(value)
        if layout is not None:
            set_type(value, with_layout(value.type, layout))

    def convert(self, block: Block) -> None:
        """Makes the operands of every op agree with what the op needs, and wraps what cannot."""
        for op in list(block.ops):
            for i, (layout, operand) in enumerate(zip(self._wanted(op), operands_of(op), strict=True)):
                if layout is not None and self._facts.layouts[operand] != layout:
                    op.operands[i] = self._in_layout(operand, layout)
            for region in op.regions:
                if isinstance(op, tile.CombiningOp):
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
                return [None] * len(operands_of(op))

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
                return [None] * len(operands_of(op))

    def _in_layout(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        """The value in a layout: itself, a clone of a free value or shape op (rule 4), or a conversion. Clones what it is
        computed from first, not by recursion: an unrolled loop makes chains longer than Python's stack."""
        value = self._original(value)
        pending = [(value, layout)]
        while pending:
            key = pending[-1]
            if self._found(key) is None:
                missing = [source for source in self._sources(*key) if self._found(source) is None]
                if missing:
                    pending.extend(missing)
                    continue
                self._clones[key] = self._insert(*key)
            pending.pop()
        return value if self._facts.layouts[value] == layout else self._clones[value, layout]

    def _original(self, value: SSAValue) -> SSAValue:
        return self._originals.get(value, value)

    def _sources(self, value: SSAValue, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
        return [(self._original(source), wanted) for source, wanted in cloned_from(value, layout, self._facts)]

    def _found(self, key: tuple[SSAValue, LinearLayout]) -> SSAValue | None:
        value, layout = key
        return value if self._facts.layouts[value] == layout else self._clones.get(key)

    def _insert(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        """A clone or conversion of the value, put right after it."""
        op = value.owner
        if isinstance(op, Operation) and is_cloned(value, layout, self._facts):
            new = self._clone(op, value, layout)
        else:
            new = tile.ConvertLayoutOp(value, layout)
        if isinstance(op, Operation):
            new.location = op.location
        result = new.results[0]
        self._originals[result] = value
        result.name_hint = value.name_hint
        self._facts.set(result, layout, self._facts.weights[value])
        if value in self._facts.axis:
            self._facts.axis[result] = self._facts.axis[value]
        Rewriter.insert_op(new, InsertPoint.after(op) if isinstance(op, Operation) else InsertPoint.at_start(op))
        return result

    def _clone(self, op: Operation, value: SSAValue, layout: LinearLayout) -> Operation:
        found = {source: self._found((source, wanted)) for source, wanted in self._sources(value, layout)}
        return type(op).create(
            operands=[found.get(self._original(operand)) or operand for operand in op.operands],
            result_types=[with_layout(value.type, layout)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
