"""Sums over lanes leave loops.

A loop that adds the sum of a tile to what it carries combines the lanes of every register in every iteration: four shuffles and
four additions for one addition that is needed. The sum of all iterations is the same if the loop adds tiles and the lanes are
combined once, behind it:

    before                                       after
    for total = init:                            for part = -0.0:                      (one vector for each element of total)
        yield total + sum(x, last axis)              yield part + sum(vectors of x)
                                                 result: init + sum(part, last axis)

Where the loop adds up tiles, and only the sum of the result is used, it carries fewer columns:

    for total = zeros:        (1,024 columns)    for part = zeros:                (128 columns)
        yield total + x                              yield part + sum(128 columns each of x)
    sum(total, last axis)                        sum(part, last axis)

Else a row of many accumulators is read in groups of registers, each from its beginning to its end: 512 bytes of each page.

The order of the additions changes, as in any sum (docs/architecture.md, "Meaning"). -0.0 is the number whose addition changes no
float, a zero's sign included.

The pass leaves a sum alone

- where lanes are not likely to lie along its axis: the loads that it adds up are not consecutive there,
- where the loop uses the total otherwise,
- of floats of 16 bits and less, since their total is rounded in each iteration,
- where the loop would carry more than `MOST_BYTES`,
- in loops over the parts of a sum (`IN_ORDER`): they run in another kernel, too, which must add up in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple, TypeGuard

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.direct import defining_op, operands_of, ops_in
from weft.ir.types import dtype_of, element_of, is_tile, shape_of, tensor
from weft.transforms.axis import AxisInfo, analyse

IN_ORDER: Final = "tile.in_order"
"""The attribute of a loop whose sums are added one after the other."""

MOST_BYTES: Final = 16384
"""The size of what a loop may carry for a total: it is read and written in each iteration, and shares the first cache."""


MOST_VECTORS: Final = 8
"""The vectors of which tiles that only their sums are used of keep as many: enough to hide the latency of additions."""


class _Sum(NamedTuple):
    """``yielded = argument + x``, of which nothing else uses ``argument`` and ``x``. ``reduce`` is ``x``, the sum of the tile
    ``added``, or if not ``inside`` it is behind the loop, sums what that carries, and ``x`` is ``added``."""

    yielded: tile.BinaryOp
    reduce: tile.ReduceOp
    added: SSAValue
    inside: bool


@dataclass(frozen=True)
class DelaySums(ModulePass):
    """Carries vectors of partial sums through loops; ``lanes`` is how many elements a vector has, and ``sum_bytes`` how many
    bytes of the machine's registers sums may take."""

    name = "delay-sums"

    lanes: int = 16
    sum_bytes: int = 1024

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [f for f in op.ops if isinstance(f, func.FuncOp) and f.body.blocks]:
            loops = [
                inner for inner in ops_in(kernel) if isinstance(inner, scf.ForOp) and IN_ORDER not in inner.attributes
            ]
            found = [(loop, i, sum_) for loop in loops for i in range(len(loop.iter_args)) if (sum_ := _sum(loop, i))]
            if not found:
                continue
            axis = analyse(kernel)
            for loop, i, sum_ in found:
                if self._is_worth(sum_, axis):
                    self._delay(loop, i, sum_)

    def _is_worth(self, found: _Sum, axis: Mapping[SSAValue, AxisInfo]) -> bool:
        *rows, columns = shape_of(found.added)
        carried = prod(rows) * self._columns(found) * dtype_of(found.added).itemsize
        smaller = columns > 1 if found.inside else columns > self._columns(found)
        return smaller and carried <= MOST_BYTES and (not rows or _walks_last_axis(found.added, axis))

    def _columns(self, found: _Sum) -> int:
        """How many columns the loop carries."""
        *rows, columns = shape_of(found.added)
        fitting = min(MOST_VECTORS, self.sum_bytes // (self.lanes * dtype_of(found.added).itemsize))
        return min(columns, self.lanes if found.inside else self.lanes * max(1, fitting // prod(rows)))

    def _delay(self, loop: scf.ForOp, i: int, found: _Sum) -> None:
        body = loop.body.block
        argument, initial, result = body.args[1 + i], loop.iter_args[i], loop.res[i]
        *rows, columns = shape_of(found.added)
        kept = self._columns(found)
        dtype = dtype_of(argument)
        carried_type = tensor(element_of(argument), (*rows, kept))
        before = InsertPoint.before(loop)
        if found.inside:
            start = _insert(tile.ConstantOp(-0.0 if dtype.is_float else 0, carried_type), before, loop)
        elif isinstance(constant := defining_op(initial), tile.ConstantOp) and constant.number == 0:
            start = _insert(tile.ConstantOp(constant.number, carried_type), before, loop)
        else:
            start = _folded(initial, kept, before, loop)
        carried = body.insert_arg(carried_type, 1 + i)
        carried.name_hint = argument.name_hint
        here = InsertPoint.before(found.yielded)
        added = _folded(found.added, kept, here, found.reduce) if columns > kept else found.added
        new = _insert(tile.BinaryOp("add", carried, added), here, found.yielded)
        end = body.last_op
        assert end is not None, "the verifier asks loops to end by yielding"
        end.operands[i] = new
        Rewriter.erase_op(found.yielded)
        if found.inside:
            Rewriter.erase_op(found.reduce)
        body.erase_arg(argument)
        loop.operands[3 + i] = start
        partial = Rewriter.replace_value_with_new_type(result, carried_type)
        if not found.inside:
            return
        uses = list(partial.uses)
        total = _sum_of(partial)
        _insert(total, InsertPoint.after(loop), found.reduce)
        final = _insert(tile.BinaryOp("add", initial, total.results[0]), InsertPoint.after(total), found.yielded)
        final.name_hint = result.name_hint
        for use in uses:
            use.operation.operands[use.index] = final


def _folded(value: SSAValue, kept: int, point: InsertPoint, template: Operation) -> SSAValue:
    """The sums of every ``kept``-th column."""
    *rows, columns = shape_of(value)
    vectors = _insert(tile.ReshapeOp(value, (*rows, columns // kept, kept)), point, template)
    return _insert(tile.ReduceOp([vectors], len(rows), tile.ReduceOp.region(dtype_of(value), "add")), point, template)


def _sum_of(value: SSAValue) -> tile.ReduceOp:
    """The sum along the last axis."""
    return tile.ReduceOp([value], len(shape_of(value)) - 1, tile.ReduceOp.region(dtype_of(value), "add"))


def _sum(loop: scf.ForOp, i: int) -> _Sum | None:
    """What the loop adds to its carried value ``i``, if it does nothing else with that: the sum of a tile along its last axis,
    or a tile of which the loop's result is summed so."""
    argument, end = loop.body.block.args[1 + i], loop.body.block.last_op
    yielded = defining_op(end.operands[i]) if end is not None else None
    if not isinstance(yielded, tile.BinaryOp) or yielded.kind.data != "add" or argument not in yielded.operands:
        return None
    dtype = dtype_of(argument)
    if not dtype.holds_sums or not (argument.has_one_use() and yielded.result.has_one_use()):
        return None
    added = yielded.rhs if yielded.lhs is argument else yielded.lhs
    reduce = defining_op(added)
    if _sums_last_axis(reduce) and reduce.parent is loop.body.block and added.has_one_use():
        return _Sum(yielded, reduce, reduce.sources[0], inside=True)
    if not is_tile(argument) or not loop.res[i].has_one_use():
        return None
    (use,) = loop.res[i].uses
    behind = use.operation
    if not _sums_last_axis(behind) or behind.parent is not loop.parent or dtype_of(behind.results_[0]) is not dtype:
        return None
    return _Sum(yielded, behind, added, inside=False)


def _sums_last_axis(op: Operation | None) -> TypeGuard[tile.ReduceOp]:
    return isinstance(op, tile.ReduceOp) and op.is_sum and op.axis.value.data == len(shape_of(op.sources[0])) - 1


def _walks_last_axis(source: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    """Whether the loads of the source's shape that it is computed from, of which there is one, are consecutive along its last
    axis."""
    loads = [load for load in _loads(source) if shape_of(load.result) == shape_of(source)]
    return bool(loads) and all(
        axis[load.pointer].contiguity[-1] == max(axis[load.pointer].contiguity) > 1 for load in loads
    )


def _loads(value: SSAValue) -> Iterator[tile.LoadOp]:
    """The loads from which elementwise ops compute a value."""
    pending, seen = [value], set[Operation]()
    while pending:
        op = defining_op(pending.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if isinstance(op, tile.LoadOp):
            yield op
        elif tile.is_a(op, tile.Elementwise):
            pending.extend(operands_of(op))


def _insert(op: Operation, point: InsertPoint, template: Operation) -> SSAValue:
    op.location = template.location
    Rewriter.insert_op(op, point)
    return op.results[0]
