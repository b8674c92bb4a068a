"""Reductions inside a register loop.

The registers along the axis are folded into accumulators, one for each unrolled copy of the loop body, so that consecutive
iterations do not wait for each other; then the accumulators into one, and its lanes by a butterfly of shuffles, which leaves the
result in every lane that the axis covered: exactly the duplicates that the result's layout declares.

    registers r0 r1 r2 r3 ..   ->  acc0 = r0 . r4 . .., acc1 = r1 . r5 . ..   ->  acc   ->  acc . shuffle(acc) . ..

There is no identity element: the first iteration *sets* the accumulators (a select on the loop counter), since a user's
combine function has none to offer and -inf is not one for max in the presence of NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.buffers import Buffer
from weft.codegen.index import Index
from weft.codegen.llvm import I32, lanes_of
from weft.codegen.views import removal_projection
from weft.ir import tile
from weft.ir.types import layout_of, shape_of

if TYPE_CHECKING:
    from weft.codegen.emitter import Emitter


def combine(
    emitter: Emitter, op: tile.ReduceOp, accumulators: Sequence[ir.Value], elements: Sequence[ir.Value]
) -> list[ir.Value]:
    """The combine region, applied to scalars or vectors."""
    block = op.combine.block
    values: dict[SSAValue, ir.Value] = dict(zip(block.args, [*accumulators, *elements], strict=True))
    lanes = lanes_of(elements[0])

    def value_of(value: SSAValue) -> ir.Value:
        if value in values:
            return values[value]
        scalar = emitter.scalar(value)
        return scalar if lanes is None else emitter.splat(scalar, lanes)

    for inner in block.ops:
        if isinstance(inner, tile.YieldOp):
            return [value_of(v) for v in inner.values]
        if not isinstance(inner, tile.ConstantOp):
            values[inner.results[0]] = emitter.compute(inner, [value_of(v) for v in inner.operands])
    raise ValueError("tile.reduce: the combine region does not end in tile.yield")


class Fold:
    """One reduction being carried out by a register loop: `start`, then `step` for each register along the axis, then
    `finish`, for each register of the result."""

    def __init__(self, emitter: Emitter, op: tile.ReduceOp, buffer_of: Callable[[SSAValue], Buffer]):
        self.op = op
        self._emitter = emitter
        self._buffers = [buffer_of(r) if shape_of(r) else None for r in op.results_]
        self._slots: list[list[ir.Value]] = []
        self._direct: list[list[ir.Value]] = []
        self._looped = False

    def start(self, copies: int, *, looped: bool) -> None:
        """Begins a result register; ``copies`` accumulators, kept across a loop if ``looped``."""
        self._looped = looped
        self._direct = []
        if looped:
            types = [ir.VectorType(e, n) for e, n in (self._lane_type(s) for s in self.op.sources)]
            self._slots = [[self._emitter.entry.alloca(t) for t in types] for _ in range(copies)]

    def _lane_type(self, source: SSAValue) -> tuple[ir.Type, int]:
        from weft.codegen.emitter import element_of_value

        return element_of_value(source).register_type(None), layout_of(source).in_size("lane")

    def step(self, elements: Sequence[ir.Value], copy: int, first: ir.Value | None) -> None:
        """Folds one register into accumulator ``copy``; ``first`` says at run time whether it is the loop's first iteration."""
        builder = self._emitter.builder
        if not self._looped or first is None:
            self._direct.append(list(elements))
            return
        slots = self._slots[copy]
        old = [builder.load(slot, typ=e.type) for slot, e in zip(slots, elements, strict=True)]
        combined = combine(self._emitter, self.op, old, elements)
        for slot, element, new in zip(slots, elements, combined, strict=True):
            builder.store(builder.select(first, element, new), slot)

    def finish(self, index: Index) -> None:
        """Completes the result's register at the (outer) index of the source's registers."""
        emitter, op = self._emitter, self.op
        if self._looped:
            groups = [
                [
                    emitter.builder.load(s, typ=ir.VectorType(*self._lane_type(v)))
                    for s, v in zip(g, op.sources, strict=True)
                ]
                for g in self._slots
            ]
        else:
            groups = self._direct
        while len(groups) > 1:
            pairs = zip(groups[::2], groups[1::2], strict=True)
            groups = [combine(emitter, op, left, right) for left, right in pairs]
        values = self._fold_lanes(groups[0])
        source = layout_of(op.sources[0])
        for value, result, buffer in zip(values, op.results_, self._buffers, strict=True):
            if buffer is None:
                emitter.scalars[result] = emitter.builder.extract_element(value, ir.Constant(I32, 0))
                continue
            buffer.store(emitter.builder, index.through(self._result_columns(source, result)), value)
            emitter.buffers[result] = buffer

    def _fold_lanes(self, values: list[ir.Value]) -> list[ir.Value]:
        emitter, op = self._emitter, self.op
        layout = layout_of(op.sources[0])
        lanes = layout.in_size("lane")
        project = removal_projection(layout.shape, op.axis.value.data)
        for j, column in enumerate(layout.columns("lane")):
            if not column or project(column):
                continue
            mask = ir.Constant(ir.VectorType(I32, lanes), [ir.Constant(I32, lane ^ (1 << j)) for lane in range(lanes)])
            others = [emitter.builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), mask) for v in values]
            # lower element first, as the region may not commute
            low = ir.Constant(
                ir.VectorType(ir.IntType(1), lanes),
                [ir.Constant(ir.IntType(1), int(not lane >> j & 1)) for lane in range(lanes)],
            )
            if _commutes(op):
                values = combine(emitter, op, values, others)
            else:
                left = [emitter.builder.select(low, v, o) for v, o in zip(values, others, strict=True)]
                right = [emitter.builder.select(low, o, v) for v, o in zip(values, others, strict=True)]
                values = combine(emitter, op, left, right)
        return values

    def _result_columns(self, source: object, result: SSAValue) -> tuple[int, ...]:
        """Columns from the source's registers to the result's."""
        layout, target = layout_of(self.op.sources[0]), layout_of(result)
        project = removal_projection(layout.shape, self.op.axis.value.data)
        lanes = tuple(map(project, layout.columns("lane")))
        if lanes != target.columns("lane"):
            raise ValueError(f"tile.reduce: the result's lanes are {target}, expected {lanes}")
        where = {column: 1 << j for j, column in enumerate(target.columns("register")) if column}
        return tuple(where[c] if c else 0 for c in map(project, layout.columns("register")))


def _commutes(op: tile.ReduceOp) -> bool:
    """Whether the region is one commutative op, so that the order of its arguments cannot matter."""
    first = op.combine.block.first_op
    return isinstance(first, tile.BinaryOp) and first.kind.data in (
        "add", "mul", "min", "max", "minnan", "maxnan", "and", "or", "xor",
    )  # fmt: skip
