"""Reductions inside a register loop.

The registers along the axis are combined in accumulators, one for each unrolled copy of the loop body, so that consecutive
iterations do not wait for each other. Then the accumulators are combined into one, and its lanes by a butterfly of shuffles. That
leaves the result in every lane that the axis covered: exactly the duplicates that the result's layout declares.

    registers r0 r1 r2 r3 ..   ->  acc0 = r0 . r4 . .., acc1 = r1 . r5 . ..   ->  acc   ->  acc . shuffle(acc) . ..

Accumulators begin with the identity of the combine function, where it is one operation that has one (`_IDENTITIES`). Else the
first iteration *sets* them (a select on the loop counter): a user's combine function has none to offer, and -inf is not one for
max in the presence of NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.sum_order import ACCUMULATORS, order_of
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.regions import commutes, evaluate
from weft.codegen.llvm.types import I32, constant, shuffle
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout.families.distributed import without_axis

_IDENTITIES: Final[dict[str, float]] = {"add": 0, "or": 0, "xor": 0, "mul": 1, "and": -1}
"""The number that an operation of two equal types leaves any other as it is with; for a sum of floats it is -0.0."""


def _identity(op: tile.ReduceOp) -> ir.Constant | None:
    """The identity of a reduction, in every lane of a register; None where it has none."""
    single = op.single_op
    if single is None or single.kind.data not in _IDENTITIES or len(op.sources) != 1:
        return None
    dtype, number = dtype_of(op.sources[0]), _IDENTITIES[single.kind.data]
    if dtype.is_float and not dtype.has_negative_zero:
        return None
    lanes = layout_of(op.sources[0]).in_size("lane")
    return constant(dtype, -0.0 if dtype.is_float and not number else number, lanes)


def begins_with_zero(op: tile.ReduceOp) -> bool:
    """Whether a reduction is a sum, which zeros may be left out of."""
    single = op.single_op
    return single is not None and single.kind.data == "add" and _identity(op) is not None


class Reduction:
    """One reduction being carried out by a register loop: `start`, then `step` for each register along the axis, then
    `finish`, for each register of the result."""

    def __init__(self, registers: Registers, op: tile.ReduceOp, buffer_of: Callable[[SSAValue], Buffer]):
        self.op = op
        self._registers = registers
        self._buffers = [buffer_of(r) if shape_of(r) else None for r in op.results_]
        self._scalars = [
            None if shape_of(r) else registers.entry.alloca(self._lane_type(s)[0])
            for r, s in zip(op.results_, op.sources, strict=True)
        ]
        self._slots: list[list[ir.Value]] = []
        self._direct: list[list[ir.Value]] = []
        self._looped = False
        self._identity = self._begin = _identity(op)

    def ends(self, before: ir.Value) -> None:
        """Notes whether the loop ends ``before`` zeros at the end of a sum. If so, accumulators begin with 0."""
        assert self._identity is not None, "a sum has an identity"
        zero = ir.Constant(self._identity.type, None)
        self._begin = self._registers.builder.select(before, zero, self._identity)

    def start(self, copies: int, *, looped: bool) -> None:
        """Begins a result register; ``copies`` accumulators, kept across a loop if ``looped``."""
        self._looped = looped
        self._direct = []
        if looped:
            types = [ir.VectorType(e, n) for e, n in (self._lane_type(s) for s in self.op.sources)]
            self._slots = [[self._registers.entry.alloca(t) for t in types] for _ in range(copies)]
            if self._begin is not None:
                for (slot,) in self._slots:
                    self._registers.builder.store(self._begin, slot)
                return
            for slot, type_ in ((slot, t) for slots in self._slots for slot, t in zip(slots, types, strict=True)):
                # The first iteration combines this before it discards the result; undefined bits could divide by zero.
                self._registers.builder.store(ir.Constant(type_, None), slot)

    def _lane_type(self, source: SSAValue) -> tuple[ir.Type, int]:
        return element_of_value(source).register_type(None), layout_of(source).in_size("lane")

    def step(self, elements: Sequence[ir.Value], copy: int, first: ir.Value | None) -> None:
        """Combines one register with accumulator ``copy``; ``first`` is whether this is the loop's first iteration."""
        builder = self._registers.builder
        if not self._looped or first is None:
            self._direct.append(list(elements))
            return
        slots = self._slots[copy]
        combined = evaluate(self._registers, self.op.combine.block, [*self._load(slots), *elements])
        if self._identity is not None:
            self._registers.builder.store(combined[0], slots[0])
            return
        for slot, element, new in zip(slots, elements, combined, strict=True):
            builder.store(builder.select(first, element, new), slot)

    def finish(self, index: RegisterIndex) -> None:
        """Completes the result's register at the (outer) index of the source's registers."""
        registers, op = self._registers, self.op
        groups = [self._load(slots) for slots in self._slots] if self._looped else self._direct
        if registers.paired and not self._looped:
            groups = self._in_turns(groups)
        registers.orders.setdefault(op, set()).add(order_of(op, len(groups)))
        while len(groups) > 1:
            pairs = zip(groups[::2], groups[1::2], strict=True)
            groups = [evaluate(registers, op.combine.block, [*left, *right]) for left, right in pairs]
        values = self._reduce_lanes(groups[0])
        for value, result, buffer, slot in zip(values, op.results_, self._buffers, self._scalars, strict=True):
            if slot is not None:
                registers.builder.store(registers.builder.extract_element(value, ir.Constant(I32, 0)), slot)
            elif buffer is not None:
                buffer.store(registers.builder, index.through(self._result_columns(result)), value)

    def _in_turns(self, registers: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """Combines registers as a loop does: in turns with each accumulator."""
        groups = registers[:ACCUMULATORS]
        for at, values in enumerate(registers[ACCUMULATORS:]):
            groups[at % ACCUMULATORS] = evaluate(
                self._registers, self.op.combine.block, [*groups[at % ACCUMULATORS], *values]
            )
        return groups

    def _load(self, slots: Sequence[ir.Value]) -> list[ir.Value]:
        types = (ir.VectorType(*self._lane_type(source)) for source in self.op.sources)
        return [self._registers.builder.load(slot, typ=type_) for slot, type_ in zip(slots, types, strict=True)]

    def publish(self) -> None:
        """Makes the results available, once every version of the loop has been emitted."""
        registers = self._registers
        for result, source, buffer, slot in zip(
            self.op.results_, self.op.sources, self._buffers, self._scalars, strict=True
        ):
            if slot is not None:
                registers.scalars[result] = registers.builder.load(slot, typ=self._lane_type(source)[0])
            elif buffer is not None:
                registers.buffers[result] = buffer

    def _reduce_lanes(self, values: list[ir.Value]) -> list[ir.Value]:
        registers, op = self._registers, self.op
        layout = layout_of(op.sources[0])
        lanes = layout.in_size("lane")
        kept = without_axis(layout, op.axis.value.data).columns("lane")
        reduced = 0
        for j, column in enumerate(layout.columns("lane")):
            if not column or kept[j]:
                continue
            others = [shuffle(registers.builder, v, [lane ^ (1 << j) for lane in range(lanes)]) for v in values]
            values = evaluate(registers, op.combine.block, [*values, *others])
            reduced |= 1 << j
        if reduced and not commutes(op):
            # Lanes i and j have combined i . j and j . i: all take the lowest lane's, so that duplicates are equal.
            values = [shuffle(registers.builder, v, [lane & ~reduced for lane in range(lanes)]) for v in values]
        return values

    def _result_columns(self, result: SSAValue) -> tuple[int, ...]:
        """Columns from the source's registers to the result's."""
        layout, target = layout_of(self.op.sources[0]), layout_of(result)
        kept = without_axis(layout, self.op.axis.value.data)
        lanes = kept.columns("lane")
        assert lanes == target.columns("lane"), f"tile.reduce: the result's lanes are {target}, expected {lanes}"
        where = {column: 1 << j for j, column in enumerate(target.columns("register")) if column}
        return tuple(where[c] if c else 0 for c in kept.columns("register"))
