"""Sums over lanes leave loops.

A loop that adds the sum of a tile to what it carries combines the lanes of every register in every iteration: four shuffles and
four additions for one addition that is needed. The sum of all iterations is the same if the loop adds tiles and the lanes are
combined once, behind it:

    before                                       after
    for total = init:                            for part = -0.0:                      (one vector for each element of total)
        yield total + sum(x, last axis)              yield part + sum(vectors of x)
                                                 result: init + sum(part, last axis)

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
from typing import Final, NamedTuple

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.direct import defining_op, operands_of, ops_in
from weft.ir.types import dtype_of, element_of, shape_of, tensor
from weft.transforms.axis import AxisInfo, analyse

IN_ORDER: Final = "tile.in_order"
"""The attribute of a loop whose sums are added one after the other."""

MOST_BYTES: Final = 16384
"""The size of what a loop may carry for a total: it is read and written in each iteration, and shares the first cache."""


class _Sum(NamedTuple):
    """``yielded = argument + reduce``, of which nothing else uses ``argument`` and ``reduce``."""

    yielded: tile.BinaryOp
    reduce: tile.ReduceOp


@dataclass(frozen=True)
class DelaySums(ModulePass):
    """Carries vectors of partial sums through loops; ``lanes`` is how many elements a vector has."""

    name = "delay-sums"

    lanes: int = 16

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
                if self._is_worth(sum_.reduce.sources[0], axis):
                    self._delay(loop, i, sum_)

    def _is_worth(self, source: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
        *rows, columns = shape_of(source)
        carried = prod(rows) * min(columns, self.lanes) * dtype_of(source).itemsize
        return columns > 1 and carried <= MOST_BYTES and (not rows or _walks_last_axis(source, axis))

    def _delay(self, loop: scf.ForOp, i: int, found: _Sum) -> None:
        body, reduce = loop.body.block, found.reduce
        argument, initial, result = body.args[1 + i], loop.iter_args[i], loop.res[i]
        *rows, columns = shape_of(reduce.sources[0])
        part = tensor(element_of(argument), (*rows, min(columns, self.lanes)))
        dtype = dtype_of(argument)
        zero = _insert(tile.ConstantOp(-0.0 if dtype.is_float else 0, part), InsertPoint.before(loop), loop)
        carried = body.insert_arg(part, 1 + i)
        carried.name_hint = argument.name_hint
        here = InsertPoint.before(found.yielded)
        added = reduce.sources[0]
        if columns > self.lanes:
            vectors = _insert(tile.ReshapeOp(added, (*rows, columns // self.lanes, self.lanes)), here, reduce)
            added = _insert(tile.ReduceOp([vectors], len(rows), tile.ReduceOp.region(dtype, "add")), here, reduce)
        new = _insert(tile.BinaryOp("add", carried, added), here, found.yielded)
        end = body.last_op
        assert end is not None, "the verifier asks loops to end by yielding"
        end.operands[i] = new
        Rewriter.erase_op(found.yielded)
        Rewriter.erase_op(reduce)
        body.erase_arg(argument)
        loop.operands[3 + i] = zero
        partial = Rewriter.replace_value_with_new_type(result, part)
        uses = list(partial.uses)
        total = tile.ReduceOp([partial], len(rows), tile.ReduceOp.region(dtype, "add"))
        _insert(total, InsertPoint.after(loop), reduce)
        final = _insert(tile.BinaryOp("add", initial, total.results[0]), InsertPoint.after(total), found.yielded)
        final.name_hint = result.name_hint
        for use in uses:
            use.operation.operands[use.index] = final


def _sum(loop: scf.ForOp, i: int) -> _Sum | None:
    """What the loop adds to its carried value ``i``, if that is the sum of a tile along its last axis and nothing more."""
    argument, end = loop.body.block.args[1 + i], loop.body.block.last_op
    yielded = defining_op(end.operands[i]) if end is not None else None
    if not isinstance(yielded, tile.BinaryOp) or yielded.kind.data != "add" or argument not in yielded.operands:
        return None
    reduce = defining_op(yielded.rhs if yielded.lhs is argument else yielded.lhs)
    if not isinstance(reduce, tile.ReduceOp) or len(reduce.sources) != 1 or reduce.parent is not loop.body.block:
        return None
    single = reduce.single_op
    dtype = dtype_of(argument)
    alone = argument.has_one_use() and reduce.results[0].has_one_use() and yielded.result.has_one_use()
    last = reduce.axis.value.data == len(shape_of(reduce.sources[0])) - 1
    exact = dtype.bits >= 32 if dtype.is_float else dtype.is_integer
    if single is None or single.kind.data != "add" or not (alone and last and exact):
        return None
    return _Sum(yielded, reduce)


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
