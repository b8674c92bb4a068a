"""Dot nests over panels.

A loop that multiplies tile by tile reads and writes its accumulator for each tile, and computes addresses, masks and casts of
operands for each program. A nest (`weft.transforms.nests`) needs neither: the operands' tiles of many iterations go into two
panels (`weft.ir.cpu`), and one multiplication goes through their whole depth, with sums in registers. A panel that the thread
still has from an earlier program is not made again. Where masks cut off the end of the last tiles, so that both are zeros there,
the multiplication ends soon behind the first of these zeros.

    for k: acc += load(a, k) @ load(b, k)     ->     for block of iterations:
                                                         left, stale = claim(keys of a, block);  if stale: for k: pack load(a, k)
                                                         right, stale = claim(keys of b, block); if stale: for k: pack load(b, k)
                                                         acc = multiply(left, right, acc)

Other dots, as those of attention, get panels of one step: where the right operand is a function of scalars, so that iterations of
other programs find it, and where the machine has an instruction that takes only panels.

The pass runs on laid-out IR whose invariant loads are marked. Dots whose tiles are narrower than a vector stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.ir import tile
from weft.ir.cpu import ClaimOp, MultiplyOp, PackOp
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, scalar, shape_of
from weft.transforms.factors import Factors, Operand, factors_of, factors_of_one
from weft.transforms.nests import Level, Nest, Slice, nest_of, slice_of
from weft.transforms.stored_part import Limit, limits_of, limits_of_zeros

LIKELY_RUNS: Final = "likely_runs"
"""On a load that packs an operand: addresses that are not known to be runs are likely to be, as with ``offsets % M``."""


@dataclass(frozen=True)
class PackDots(ModulePass):
    """Makes multiplications of panels of dot nests. ``vector_bits`` is a vector register's width, and ``features`` are those of
    LLVM that the machine has, by commas."""

    name = "pack-dots"

    vector_bits: int = 512
    features: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        features = frozenset(self.features.split(","))
        erased: set[scf.ForOp] = set()
        for loop in [inner for inner in ops_in(op) if isinstance(inner, scf.ForOp)]:
            nest = nest_of(loop) if loop not in erased else None
            if nest is None:
                continue
            factors = factors_of(nest, self.vector_bits, features)
            if factors is not None:
                _Rewriting(nest, factors).run()
                erased.update(level.loop for level in nest.levels)
        for dot in [inner for inner in ops_in(op) if isinstance(inner, tile.DotOp)]:
            factors = factors_of_one(dot, self.vector_bits, features)
            if factors is not None:
                _rewrite_one(dot, factors)


def _rewrite_one(dot: tile.DotOp, factors: Factors) -> None:
    """Makes a dot in no nest a multiplication of panels of one step. A panel that others may have filled is claimed as soon as
    its scalars are known: what fills another one then stands beside the ops that compute its tile."""
    panels: list[SSAValue] = []
    here = _Inserter(InsertPoint.before(dot), dot)
    fresh: list[tuple[Operand, SSAValue]] = []
    for operand in (factors.right, factors.left):
        keys = operand.slice.keys
        if keys is None:
            claim = ClaimOp((), operand.bytes, 1)
            here.add(claim)
            panels.append(claim.address)
            fresh.append((operand, claim.address))
            continue
        early = _Inserter(_after(operand.slice.scalars, dot), dot)
        claim = ClaimOp(keys or [early.number(0)], operand.bytes, operand.slots)
        early.add(claim)
        panels.append(claim.address)
        then = Block()
        early.add(scf.IfOp(claim.stale, [], Region(then)))
        filling = _Inserter(InsertPoint.at_end(then), dot)
        values: dict[SSAValue, SSAValue] = {}
        filling.clone(operand.slice.outside, values)
        value = values.get(operand.value, operand.value)
        filling.add(PackOp(value, claim.address, filling.number(0), filling.number(operand.size), operand.panel))
        filling.add(scf.YieldOp())
    for operand, address in fresh:
        here.add(PackOp(operand.value, address, here.number(0), here.number(operand.size), operand.panel))
    right, left = panels
    k = shape_of(dot.a)[1]
    places = factors.left.panel, factors.right.panel
    wanted = here.number(factors.left.size), here.number(factors.right.size)
    new = MultiplyOp(left, right, here.number(k), wanted, dot.acc, places, k, factors.instruction.name)
    new.location = dot.location
    Rewriter.replace_op(dot, new)


def _after(scalars: Sequence[SSAValue], dot: tile.DotOp) -> InsertPoint:
    """The first place in the dot's block where all scalars are known."""
    block = dot.parent_block()
    assert block is not None, "a dot stands in a block"
    makers = {
        value.owner for value in scalars if isinstance(value.owner, Operation) and value.owner.parent_block() is block
    }
    latest = next((op for op in reversed(list(block.ops)) if op in makers), None)
    return InsertPoint.at_start(block) if latest is None else InsertPoint.after(latest)


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
                if isinstance(copied, tile.LoadOp):
                    copied.attributes[LIKELY_RUNS] = UnitAttr()
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

    def __init__(self, nest: Nest, factors: dict[int, Factors]):
        self._nest = nest
        self._loop = nest.loop
        self._factors = factors
        some = next(iter(factors.values())).left
        self._k = shape_of(some.value)[1]
        self._steps = some.panel.depth // self._k
        self._whole = max(1, *(each.chunk // self._k for each in factors.values()))
        """The least number of steps that are whole tiles of every instruction."""

    def _at(self, block: Block) -> _Inserter:
        return _Inserter(InsertPoint.at_end(block), self._loop)

    def run(self) -> None:
        """Rewrites the loop."""
        loop, positions = self._loop, list(self._factors)
        before = _Inserter(InsertPoint.before(loop), loop)
        trips = [self._trips(before, level) for level in self._nest.levels]
        total = trips[0]
        for each in trips[1:]:
            total = before.binary("mul", total, each)
        zero, steps = before.number(0), before.number(self._steps)
        wanted = {i: self._wanted(before, i) for i in positions}
        sizes = self._sizes(before, wanted)
        initial = [loop.iter_args[i] for i in positions]
        known = self._nest.constant_trips
        if known is not None and 0 < known <= self._steps:  # one panel has all
            sums = self._block(before, trips, zero, total, wanted, sizes, initial)
        else:
            body = Block(arg_types=[scalar(dtypes.int64), *(value.type for value in initial)])
            for i, argument in zip(positions, body.args[1:], strict=True):
                argument.name_hint = loop.body.block.args[1 + i].name_hint
            inside = self._at(body)
            inside.add(
                scf.YieldOp(*self._block(inside, trips, body.args[0], total, wanted, sizes, list(body.args[1:])))
            )
            sums = list(before.add(scf.ForOp(zero, total, steps, initial, Region(body))).results)
        for i, result in zip(positions, sums, strict=True):
            result.name_hint = loop.res[i].name_hint
            loop.res[i].replace_all_uses_with(result)
        outermost = self._nest.levels[0]
        for i in outermost.growth:
            if loop.res[i].first_use is not None:
                loop.res[i].replace_all_uses_with(_carried(before, outermost, i, trips[0], {}))
        Rewriter.erase_op(loop)

    def _block(
        self,
        inside: _Inserter,
        trips: list[SSAValue],
        start: SSAValue,
        total: SSAValue,
        wanted: dict[int, tuple[SSAValue, SSAValue]],
        sizes: dict[int, SSAValue],
        initial: list[SSAValue],
    ) -> list[SSAValue]:
        """The sums after the iterations that panels have from ``start`` on; ``initial`` are those before."""
        count = inside.binary("min", inside.binary("sub", total, start), inside.number(self._steps))
        padded = count
        if self._whole > 1:
            up = inside.binary("add", count, inside.number(self._whole - 1))
            padded = inside.binary("and", up, inside.number(-self._whole))
        panels: dict[int, SSAValue] = {}
        for each in self._factors.values():
            for operand in (each.left, each.right):
                if id(operand) not in panels:
                    size = sizes[id(operand)]
                    panels[id(operand)] = self._panel(inside, operand, trips, start, count, padded, size)
        sums: list[SSAValue] = []
        for (i, each), argument in zip(self._factors.items(), initial, strict=True):
            depth = inside.binary("mul", padded if each.chunk > 1 else count, inside.number(self._k))
            left_out = self._left_out(inside, each, start, count)
            depth = depth if left_out is None else inside.binary("sub", depth, left_out)
            left, right = panels[id(each.left)], panels[id(each.right)]
            places = each.left.panel, each.right.panel
            op = MultiplyOp(left, right, depth, wanted[i], argument, places, self._k, each.instruction.name)
            sums.append(inside.add(op).results[0])
            op.location = self._nest.dots[i].location
        return sums

    def _left_out(self, at: _Inserter, each: Factors, start: SSAValue, count: SSAValue) -> SSAValue | None:
        """How much of the depth need not be multiplied: the end of the last step, where masks make both operands zeros. One
        product of them stays, which may make a sum 0.0 that was -0.0; more change nothing. None where no masks are known to."""
        left, right = (limits_of_zeros(each.value).get(each.panel.axis) for each in (each.left, each.right))
        if left is None or right is None or len(self._nest.levels) > 1 or self._k <= each.unit:
            return None
        trip = at.binary("sub", at.binary("add", start, count), at.number(1))
        values: dict[SSAValue, SSAValue] = {}
        numbers = at.binary("max", self._below(at, left, trip, values), self._below(at, right, trip, values))
        least = at.binary("and", at.binary("add", numbers, at.number(each.unit)), at.number(-each.unit))
        return at.binary("max", at.binary("sub", at.number(self._k), least), at.number(0))

    def _below(self, at: _Inserter, limit: Limit, trip: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
        """How many of a step's coordinates are below a limit in an iteration, which has ``values`` in place of the loop's."""
        for value in (limit.first, limit.limit):
            if isinstance(value, SSAValue) and value not in values:
                part = slice_of(value, self._loop.parent_block(), self._nest)
                self._enter(at, part, value, self._nest.levels[0], trip, values)
        first, end = (each if isinstance(each, int) else values.get(each, each) for each in (limit.first, limit.limit))
        return self._extent(at, self._k, Limit(limit.axis, first, end))

    def _wanted(self, before: _Inserter, i: int) -> tuple[SSAValue, SSAValue]:
        """How many rows and columns of the result of a dot are stored."""
        result = self._loop.res[i]
        limits = limits_of(result, self._loop)
        rows, columns = (self._extent(before, size, limits.get(axis)) for axis, size in enumerate(shape_of(result)))
        return rows, columns

    def _extent(self, before: _Inserter, size: int, limit: Limit | None) -> SSAValue:
        """How many of ``size`` coordinates are below a limit: all where ``first + coordinate`` may exceed 32 bits."""
        if limit is None:
            return before.number(size)
        all_ = before.number(size)
        first, end = (
            before.number(value) if isinstance(value, int) else before.cast(value, scalar(dtypes.int64))
            for value in (limit.first, limit.limit)
        )
        count = before.binary("sub", end, first)
        over = before.binary(
            "sub", first, before.number((1 << 31) - size)
        )  # positive where the last offset wraps around
        count = before.binary("max", count, before.binary("mul", over, all_))
        return before.binary("max", before.binary("min", count, all_), before.number(0))

    def _sizes(self, before: _Inserter, wanted: dict[int, tuple[SSAValue, SSAValue]]) -> dict[int, SSAValue]:
        """How much of each operand is packed, across: as much as all of its dots want, if that is one number; else all, as of a
        left one whose columns are contiguous."""
        found: dict[int, SSAValue] = {}
        for i, each in self._factors.items():
            for operand, size in ((each.left, wanted[i][0]), (each.right, wanted[i][1])):
                whole = operand.panel.axis == 1 and operand.panel.width or found.get(id(operand), size) is not size
                found[id(operand)] = before.number(operand.size) if whole else size
        return found

    def _trips(self, before: _Inserter, level: Level) -> SSAValue:
        """The iterations of a loop."""
        wide = scalar(dtypes.int64)
        trips = before.binary("sub", before.cast(level.loop.ub, wide), before.cast(level.loop.lb, wide))
        if level.step > 1:
            up = before.binary("add", trips, before.number(level.step - 1))
            trips = before.binary("div", up, before.number(level.step))
        return before.binary("max", trips, before.number(0))

    def _panel(
        self,
        at: _Inserter,
        operand: Operand,
        trips: list[SSAValue],
        start: SSAValue,
        count: SSAValue,
        padded: SSAValue,
        wanted: SSAValue,
    ) -> SSAValue:
        """The panel with ``count`` tiles of an operand from iteration ``start`` on, then zeros up to ``padded`` tiles; filled
        where it is not there. The other axis goes as far as is ``wanted``."""
        keys = operand.slice.keys
        length = [] if self._nest.same_trips else [count, *trips[1:]]
        across = [] if isinstance(wanted.owner, tile.ConstantOp) else [wanted]
        claim = ClaimOp([] if keys is None else [*keys, start, *length, *across], operand.bytes, operand.slots)
        at.add(claim)
        then = Block()
        at.add(scf.IfOp(claim.stale, [], Region(then)))
        filling = self._at(then)
        values: dict[SSAValue, SSAValue] = {}
        filling.clone(operand.slice.outside, values)
        outer, begin, first, last = self._segments(filling, operand, trips, start, count, values)
        body = Block(arg_types=[scalar(dtypes.int64)])
        outer.add(scf.ForOp(first, last, outer.number(1), [], Region(body)))
        packing = self._at(body)
        trip = packing.binary("add", begin, body.args[0])
        self._enter(packing, operand.slice, operand.value, self._nest.levels[-1], trip, values)
        value = values.get(operand.value, operand.value)
        packing.add(PackOp(value, claim.address, body.args[0], wanted, operand.panel))
        packing.add(scf.YieldOp())
        if outer is not filling:
            outer.add(scf.YieldOp())
        if self._whole > 1:
            rest = Block(arg_types=[scalar(dtypes.int64)])
            filling.add(scf.ForOp(count, padded, filling.number(1), [], Region(rest)))
            ending = self._at(rest)
            zeros = ending.add(tile.ConstantOp(0, operand.value.type)).results[0]
            ending.add(PackOp(zeros, claim.address, rest.args[0], wanted, operand.panel))
            ending.add(scf.YieldOp())
        filling.add(scf.YieldOp())
        return claim.address

    def _segments(
        self,
        filling: _Inserter,
        operand: Operand,
        trips: list[SSAValue],
        start: SSAValue,
        count: SSAValue,
        values: dict[SSAValue, SSAValue],
    ) -> tuple[_Inserter, SSAValue, SSAValue, SSAValue]:
        """A loop over the iterations of the loops around the innermost one, with what these compute; which iteration of the
        innermost loop the panel's first step would be; and which of its steps are there. Where there is one loop, all are."""
        if len(trips) == 1:
            return filling, start, filling.number(0), count
        one, zero = filling.number(1), filling.number(0)
        inner = trips[-1]
        end = filling.binary("add", start, count)
        up = filling.binary("sub", filling.binary("add", end, inner), one)
        first, last = (filling.binary("div", number, inner) for number in (start, up))
        body = Block(arg_types=[scalar(dtypes.int64)])
        filling.add(scf.ForOp(first, last, one, [], Region(body)))
        outer, rest = self._at(body), body.args[0]
        numbers: list[SSAValue] = [rest]
        for each in reversed(trips[1:-1]):
            numbers[:1] = [outer.binary("div", rest, each), outer.binary("rem", rest, each)]
            rest = numbers[0]
        for level, trip in zip(self._nest.levels, numbers, strict=False):
            self._enter(outer, operand.slice, operand.value, level, trip, values)
        begin = outer.binary("sub", start, outer.binary("mul", body.args[0], inner))
        stop = outer.binary("sub", inner, begin)
        return (
            outer,
            begin,
            outer.binary("max", outer.binary("sub", zero, begin), zero),
            outer.binary("min", stop, count),
        )

    def _enter(
        self,
        at: _Inserter,
        part: Slice,
        wanted: SSAValue,
        level: Level,
        trip: SSAValue,
        values: dict[SSAValue, SSAValue],
    ) -> None:
        """What an iteration of a loop computes for a value that is wanted."""
        loop, arguments = level.loop, level.body.args
        used = {value for op in part.inside for inner in op.walk() for value in inner.operands}
        used |= {wanted, *(level.loop.iter_args[i] for level in self._nest.levels for i in level.growth)}
        if arguments[0] in used:
            ahead = at.binary("mul", trip, at.number(level.step))
            number = at.binary("add", at.cast(loop.lb, scalar(dtypes.int64)), ahead)
            values[arguments[0]] = at.cast(number, arguments[0].type)
        for i in level.growth:
            if arguments[1 + i] in used:
                values[arguments[1 + i]] = _carried(at, level, i, trip, values)
        at.clone([op for op in part.inside if op.parent_block() is level.body], values)


def _carried(at: _Inserter, level: Level, i: int, trip: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
    """A scalar that a loop carries, in an iteration. ``values`` are read in place of their keys."""
    initial, grown = level.loop.iter_args[i], level.growth[i]
    initial = values.get(initial, initial)
    if grown is None:
        return initial
    return at.binary("add", initial, at.binary("mul", at.cast(trip, initial.type), values.get(grown, grown)))
