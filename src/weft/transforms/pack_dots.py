"""Dot nests over panels.

A loop that multiplies tile by tile reads and writes its accumulator for each tile, and computes addresses, masks and casts of
operands for each program. A nest (`weft.transforms.nests`) needs neither: the operands' tiles of many iterations go into two
panels (`weft.ir.cpu`), and one multiplication goes through their whole depth, with sums in registers. A panel that the thread
still has from an earlier program is not made again.

    for k: acc += load(a, k) @ load(b, k)     ->     for block of iterations:
                                                         left, stale = claim(keys of a, block);  if stale: for k: pack load(a, k)
                                                         right, stale = claim(keys of b, block); if stale: for k: pack load(b, k)
                                                         acc = multiply(left, right, acc)

The pass runs on laid-out IR whose invariant loads are marked. A nest whose tiles are narrower than a vector stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.ir import tile
from weft.ir.cpu import ClaimOp, MultiplyOp, PackOp, Panel
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, layout_of, scalar, shape_of
from weft.layout import vector
from weft.transforms.constants import constant_trips
from weft.transforms.nests import Nest, Slice, nest_of, same_trips, slice_of

PANEL_BYTES: Final = 1 << 18
"""What a panel takes at most, unless one step takes more: two are in the second-level cache while they are multiplied."""
DEEPEST: Final = 2048
"""The greatest depth of a panel, in elements, unless one step takes more."""
SLOTS_BYTES: Final = 1 << 23
MOST_SLOTS: Final = 64
"""A thread keeps as many panels of an operand as take `SLOTS_BYTES`, and at most so many. Memory is taken when one is filled.
Reading a panel from the third-level cache hides behind the multiplication. Packing it again does not: with a quarter of these
bytes a product of 1024^3 took 1.2 (tiles of 16) and 1.4 times (128) as long."""


@dataclass(frozen=True)
class PackDots(ModulePass):
    """Makes multiplications of panels of dot nests; ``vector_bits`` is a vector register's width."""

    name = "pack-dots"

    vector_bits: int = 512

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in ops_in(op) if isinstance(inner, scf.ForOp)]:
            nest = nest_of(loop)
            if nest is None:
                continue
            operands = _operands(nest, self.vector_bits)
            if operands is not None:
                _Rewriting(nest, operands).run()


@dataclass(frozen=True)
class Operand:
    """A dot's operand: its tiles, what they are computed from, and its panel."""

    value: SSAValue
    slice: Slice
    panel: Panel

    @property
    def bytes(self) -> int:
        """The bytes of a panel."""
        return self.panel.bytes(shape_of(self.value)[1 - self.panel.axis], dtype_of(self.value).itemsize)


Pair = tuple[Operand, Operand]


def _operands(nest: Nest, vector_bits: int) -> dict[int, Pair] | None:
    """The operands of a nest's dots; None where a tile does not have the layout that packing expects."""
    found: dict[int, Pair] = {}
    known: dict[tuple[SSAValue, int], Operand] = {}
    depths: list[int] = []
    for dot in nest.dots.values():
        (m, k), n = shape_of(dot.a), shape_of(dot.b)[1]
        depths.append(_depth(max(m, n), k, dtype_of(dot.acc).itemsize))
    depth = min(depths)
    trips, step = constant_trips(nest.loop), shape_of(next(iter(nest.dots.values())).a)[1]
    if trips is not None:
        depth = min(depth, step << max(trips - 1, 0).bit_length())
    for i, dot in nest.dots.items():
        lanes = layout_of(dot.acc).in_size("lane")
        (m, k), n = shape_of(dot.a), shape_of(dot.b)[1]
        by_rows, by_columns = (
            layout_of(dot.a) == vector((m, k), lanes),
            layout_of(dot.a) == vector((m, k), lanes, (0, 1)),
        )
        plain = layout_of(dot.b) == vector((k, n), lanes) and layout_of(dot.acc) == vector((m, n), lanes)
        if not plain or n < lanes or k != step:
            return None
        if by_rows and k >= lanes:
            left = Panel(1, depth, 0)
        elif by_columns and m >= lanes:
            left = Panel(1, depth, lanes)
        else:
            return None
        across = min(n, max(lanes, 2 * vector_bits // dtype_of(dot.acc).bits))
        pair: list[Operand] = []
        for value, panel in ((dot.a, left), (dot.b, Panel(0, depth, across))):
            if (value, panel.axis) not in known:
                known[value, panel.axis] = Operand(value, slice_of(value, nest), panel)
                if any(
                    isinstance(inner, tile.DotOp) for op in known[value, panel.axis].slice.inside for inner in op.walk()
                ):
                    return None
            pair.append(known[value, panel.axis])
        found[i] = (pair[0], pair[1])
    return found


def _depth(size: int, step: int, itemsize: int) -> int:
    """How deep panels of ``size`` elements across are, a power of two."""
    depth = step
    while 2 * depth <= DEEPEST and 2 * depth * size * itemsize <= PANEL_BYTES:
        depth *= 2
    return depth


class _Inserter:
    """Adds ops at one place."""

    def __init__(self, point: InsertPoint, template: Operation):
        self._point = point
        self._template = template

    def add(self, op: Operation) -> Operation:
        """Inserts the op."""
        op.location = self._template.location
        Rewriter.insert_op(op, self._point)
        return op

    def clone(self, ops: Sequence[Operation], values: dict[SSAValue, SSAValue]) -> None:
        """Inserts clones, which read ``values`` in place of its keys, and adds their results to it."""
        for op in ops:
            new = op.clone(values)
            for old, copied in zip(op.walk(), new.walk(), strict=True):
                copied.location = old.location
            Rewriter.insert_op(new, self._point)

    def number(self, number: int) -> SSAValue:
        """A constant int64."""
        return self.add(tile.ConstantOp(number, scalar(dtypes.int64))).results[0]

    def binary(self, kind: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An elementwise op on scalars."""
        return self.add(tile.BinaryOp(kind, lhs, rhs)).results[0]

    def cast(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """The scalar in another integer type."""
        if value.type == type_:
            return value
        return self.add(tile.CastOp(value, dtype_of(type_))).results[0]


class _Rewriting:
    """The rewriting of one nest."""

    def __init__(self, nest: Nest, operands: dict[int, Pair]):
        self._nest = nest
        self._loop = nest.loop
        self._operands = operands
        some = next(iter(operands.values()))[0]
        self._k = shape_of(some.value)[1]
        self._steps = some.panel.depth // self._k

    def _at(self, block: Block) -> _Inserter:
        return _Inserter(InsertPoint.at_end(block), self._loop)

    def run(self) -> None:
        """Rewrites the loop."""
        loop, positions = self._loop, list(self._operands)
        before = _Inserter(InsertPoint.before(loop), loop)
        total = self._trips(before)
        zero, steps = before.number(0), before.number(self._steps)
        initial = [loop.iter_args[i] for i in positions]
        body = Block(arg_types=[scalar(dtypes.int64), *(value.type for value in initial)])
        results = before.add(scf.ForOp(zero, total, steps, initial, Region(body))).results
        for i, argument, result in zip(positions, body.args[1:], results, strict=True):
            argument.name_hint = loop.body.block.args[1 + i].name_hint
            result.name_hint = loop.res[i].name_hint
            loop.res[i].replace_all_uses_with(result)
        inside = self._at(body)
        start = body.args[0]
        count = inside.binary("min", inside.binary("sub", total, start), inside.number(self._steps))
        panels: dict[int, SSAValue] = {}
        for pair in self._operands.values():
            for operand in pair:
                if id(operand) not in panels:
                    panels[id(operand)] = self._panel(inside, operand, start, count)
        depth = inside.binary("mul", count, inside.number(self._k))
        sums = [
            inside.add(
                MultiplyOp(panels[id(left)], panels[id(right)], depth, argument, (left.panel, right.panel), self._k)
            ).results[0]
            for (left, right), argument in zip(self._operands.values(), body.args[1:], strict=True)
        ]
        for i, value in zip(positions, sums, strict=True):
            value.op.location = self._nest.dots[i].location
        inside.add(scf.YieldOp(*sums))
        for i, grown in self._nest.growth.items():
            if loop.res[i].first_use is not None:
                loop.res[i].replace_all_uses_with(self._carried(before, i, grown, total))
        Rewriter.erase_op(loop)

    def _trips(self, before: _Inserter) -> SSAValue:
        """The iterations of the loop."""
        wide = scalar(dtypes.int64)
        span = before.binary("sub", before.cast(self._loop.ub, wide), before.cast(self._loop.lb, wide))
        trips = span
        if self._nest.step > 1:
            up = before.binary("add", span, before.number(self._nest.step - 1))
            trips = before.binary("div", up, before.number(self._nest.step))
        return before.binary("max", trips, before.number(0))

    def _carried(self, at: _Inserter, i: int, grown: SSAValue | None, trip: SSAValue) -> SSAValue:
        """A carried scalar in an iteration."""
        initial = self._loop.iter_args[i]
        if grown is None:
            return initial
        return at.binary("add", initial, at.binary("mul", at.cast(trip, initial.type), grown))

    def _panel(self, at: _Inserter, operand: Operand, start: SSAValue, count: SSAValue) -> SSAValue:
        """The panel with ``count`` tiles of an operand from iteration ``start`` on, filled where it is not there."""
        keys = operand.slice.keys
        slots = 1
        while keys is not None and slots < MOST_SLOTS and 2 * slots * operand.bytes <= SLOTS_BYTES:
            slots *= 2
        length = [] if same_trips(self._loop) else [count]
        claim = ClaimOp([] if keys is None else [*keys, start, *length], operand.bytes, slots)
        at.add(claim)
        then = Block()
        at.add(scf.IfOp(claim.stale, [], Region(then)))
        filling = self._at(then)
        values: dict[SSAValue, SSAValue] = {}
        filling.clone(operand.slice.outside, values)
        body = Block(arg_types=[scalar(dtypes.int64)])
        filling.add(scf.ForOp(filling.number(0), count, filling.number(1), [], Region(body)))
        filling.add(scf.YieldOp())
        packing = self._at(body)
        trip = packing.binary("add", start, body.args[0])
        arguments = self._loop.body.block.args
        used = {value for op in operand.slice.inside for inner in op.walk() for value in inner.operands} | {
            operand.value
        }
        if arguments[0] in used:
            ahead = packing.binary("mul", trip, packing.number(self._nest.step))
            number = packing.binary("add", packing.cast(self._loop.lb, scalar(dtypes.int64)), ahead)
            values[arguments[0]] = packing.cast(number, arguments[0].type)
        for i, grown in self._nest.growth.items():
            if arguments[1 + i] in used:
                values[arguments[1 + i]] = self._carried(packing, i, grown, trip)
        packing.clone(operand.slice.inside, values)
        packing.add(PackOp(values.get(operand.value, operand.value), claim.address, body.args[0], operand.panel))
        packing.add(scf.YieldOp())
        return claim.address
