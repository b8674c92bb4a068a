"""Every tile gets a layout; conversions become explicit.

One would fix a layout per op and convert between them, then hunt for conversions to remove. Here most tiles have no
layout of their own to begin with (the engine of paper section 4.4, on a machine with registers and lanes only):

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
anything (loops twice, for rule 5's sake), then retypes the values, then inserts what rule 4 and 5 require.
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

from weft.ir import tile
from weft.ir.types import shape_of, with_layout
from weft.layout import LinearLayout, vector
from weft.layout.families import transfer
from weft.transforms.axis import AxisInfo, analyse


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Gives every tensor type a layout, from ``register`` and ``lane`` (of ``lanes``) to its dimensions. Operands of one
    elementwise op get one layout."""

    name = "assign-layouts"

    lanes: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                assignment = _Assignment(self.lanes, dict(analyse(function)))
                assignment.infer(function.body.block)
                assignment.retype(function.body.block)
                assignment.convert(function.body.block)


def _is_tile(value: SSAValue) -> bool:
    return bool(shape_of(value))


class _Assignment:
    def __init__(self, lanes: int, axis: dict[SSAValue, AxisInfo]):
        self._lanes = lanes
        self._axis = axis
        self._layouts: dict[SSAValue, LinearLayout] = {}
        self._weights: dict[SSAValue, int] = {}
        self._clones: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}

    # -- inference: layouts and weights of values, nothing changed -----------------------------------------------------

    def _set(self, value: SSAValue, layout: LinearLayout, weight: int) -> None:
        self._layouts[value] = layout
        self._weights[value] = weight

    def _default(self, shape: Sequence[int]) -> LinearLayout:
        return vector(shape, self._lanes)

    def _heaviest(self, values: Sequence[SSAValue]) -> SSAValue:
        return max(values, key=lambda v: self._weights[v])

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
        tiles = [value for value in op.operands if _is_tile(value)]
        for result in op.results:
            if not _is_tile(result):
                continue
            shape = shape_of(result)
            match op:
                case tile.LoadOp():
                    self._set(result, self.anchor(op.pointer), prod(shape))
                case tile.AtomicRmwOp():
                    self._set(result, self._access_layout(op.pointer, op.value), prod(shape))
                case tile.DotOp():
                    self._set(result, self._default(shape), prod(shape))
                case tile.ReduceOp():
                    source = self._heaviest(op.sources)
                    self._set(result, transfer.reduce(self._layouts[source], op.axis.value.data), prod(shape))
                case _ if tile.is_a(op, tile.Generator):
                    self._set(result, self._default(shape), 0)
                case tile.ShapeOp():
                    weight = self._weights[op.source]
                    grown = isinstance(op, tile.BroadcastOp) and shape != shape_of(op.source)
                    free = grown or not weight
                    self._set(
                        result, self._default(shape) if free else op.result_layout(self._layouts[op.source]), weight
                    )
                case _ if tile.is_a(op, tile.Elementwise):
                    heaviest = self._heaviest(tiles)
                    self._set(result, self._layouts[heaviest], self._weights[heaviest])
                case tile.ConvertLayoutOp():
                    raise ValueError("assign-layouts: the module has conversions already")
                case _:
                    raise NotImplementedError(f"assign-layouts: no rule for {op.name}")

    def _infer_loop(
        self,
        initial: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        blocks: Sequence[Block],
        results: Sequence[SSAValue],
    ) -> None:
        for value, argument in zip(initial, carried, strict=True):
            if _is_tile(argument):
                self._set(argument, self._layouts[value], self._weights[value])
        for last in (False, True):
            passed: Sequence[SSAValue] = carried
            for block in blocks:
                if block is not blocks[0]:
                    self._pass_on(passed, block.args)
                self.infer(block)
                passed = _terminator_values(block)
            if not last:
                for value, argument in zip(passed, carried, strict=True):
                    if _is_tile(argument) and not self._weights[argument]:
                        layout = self._layouts[value if self._weights[value] else argument]
                        self._set(argument, layout, prod(shape_of(argument)))
        outgoing = carried if len(blocks) == 1 else _terminator_values(blocks[0])
        self._pass_on(outgoing, results)

    def _pass_on(self, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        for value, target in zip(values, targets, strict=True):
            if _is_tile(target):
                self._set(target, self._layouts[value], prod(shape_of(target)))

    def _infer_if(self, op: scf.IfOp) -> None:
        branches = [region.block for region in (op.true_region, op.false_region) if region.blocks]
        for block in branches:
            self.infer(block)
        for i, result in enumerate(op.output):
            if _is_tile(result):
                heaviest = self._heaviest([_terminator_values(block)[i] for block in branches])
                self._set(result, self._layouts[heaviest], prod(shape_of(result)))

    # -- accesses ----------------------------------------------------------------------------------------------------------

    def anchor(self, pointer: SSAValue) -> LinearLayout:
        """The layout whose lanes walk the dimension along which the pointers are most contiguous; where they are not at
        all, the pointers' own."""
        shape = shape_of(pointer)
        info = self._axis.get(pointer)
        runs = [1] * len(shape) if info is None else [min(c, n) for c, n in zip(info.contiguity, shape, strict=True)]
        if max(runs) == 1 and self._weights[pointer]:
            return self._layouts[pointer]
        order = sorted(range(len(shape)), key=lambda d: (-min(runs[d], self._lanes), -d))
        return vector(shape, self._lanes, order)

    def _access_layout(self, pointer: SSAValue, value: SSAValue) -> LinearLayout:
        """The layout in which to write ``value``: its own if its lanes suit the memory (or hold one element each), else
        the anchor."""
        anchor = self.anchor(pointer)
        if not self._weights[value]:
            return anchor
        own = self._layouts[value]
        lanes = own.columns("lane")
        return own if lanes == anchor.columns("lane") or not any(lanes) else anchor

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
        if value in self._layouts:
            layout, weight = self._layouts.pop(value), self._weights.pop(value)
            name = value.name_hint
            axis = self._axis.pop(value, None)
            value = Rewriter.replace_value_with_new_type(value, with_layout(value.type, layout))
            value.name_hint = name
            self._set(value, layout, weight)
            if axis is not None:
                self._axis[value] = axis

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

    def _wanted(self, op: Operation) -> list[LinearLayout | None]:
        """For each operand the layout the op needs it in; None for scalars."""

        def each(layout: LinearLayout) -> list[LinearLayout | None]:
            return [layout if _is_tile(operand) else None for operand in op.operands]

        match op:
            case tile.LoadOp() if _is_tile(op.result):
                return each(self._layouts[op.result])
            case tile.AtomicRmwOp() if _is_tile(op.result):
                return each(self._layouts[op.result])
            case tile.StoreOp() if _is_tile(op.pointer):
                return each(self._access_layout(op.pointer, op.value))
            case tile.ReduceOp():
                return each(self._layouts[self._heaviest(op.sources)])
            case tile.DotOp():
                a, b, _ = (shape_of(operand) for operand in op.operands)
                by_rows, by_columns = self._default(a), vector(a, self._lanes, (0, 1))
                left = by_columns if self._layouts[op.a] == by_columns else by_rows
                return [left, self._default(b), self._layouts[op.result]]
            case scf.ForOp():
                return [None, None, None, *self._as(op.body.block.args[1:])]
            case scf.WhileOp():
                return self._as(op.before_region.block.args)
            case scf.YieldOp() | scf.ConditionOp():
                return self._wanted_by_end(op)
            case tile.ShapeOp():
                return [op.source_layout(self._layouts[op.result]) if _is_tile(op.source) else None]
            case _ if tile.is_a(op, tile.Elementwise) and _is_tile(op.results[0]):
                return each(self._layouts[op.results[0]])
            case _:
                return [None] * len(op.operands)

    def _as(self, values: Sequence[SSAValue]) -> list[LinearLayout | None]:
        return [self._layouts[value] if _is_tile(value) else None for value in values]

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
        return value if self._layouts[value] == layout else self._clones[value, layout]

    def _found(self, key: tuple[SSAValue, LinearLayout]) -> SSAValue | None:
        value, layout = key
        return value if self._layouts[value] == layout else self._clones.get(key)

    def _cloned_from(self, value: SSAValue, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
        """The tiles, and their layouts, from which a clone of the value is computed; none where it is converted."""
        op = value.owner
        if not isinstance(op, Operation) or not self._is_cloned(op, value, layout):
            return []
        source = op.source_layout(layout) if isinstance(op, tile.ShapeOp) else layout
        return [(operand, source) for operand in op.operands if _is_tile(operand)]

    def _is_cloned(self, op: Operation, value: SSAValue, layout: LinearLayout) -> bool:
        free = not self._weights[value] and (tile.is_a(op, tile.Generator) or tile.is_a(op, tile.Elementwise))
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
        self._set(result, layout, self._weights[value])
        if value in self._axis:
            self._axis[result] = self._axis[value]
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
    """Whether the op is a load that nothing else reads and that the layout wants one element a register of: better loaded
    and repeated element by element than loaded as vectors and taken apart."""
    return isinstance(op, tile.LoadOp) and not any(layout.columns("lane")) and op.result.has_one_use()


def _terminator_values(block: Block) -> Sequence[SSAValue]:
    """What a block hands on: the operands of its terminator, a condition's flag excluded."""
    last = block.last_op
    if isinstance(last, scf.ConditionOp):
        return last.args
    return () if last is None else last.operands
