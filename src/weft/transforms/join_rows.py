"""Programs of tiles of several rows become one program of whole rows of the grid.

A tile of 64 rows of 64 floats takes 256 bytes of each row, and the next tile continues each of them. A processor fetches ahead
along a row, in vain at the end of each part. So where each element is computed by itself, programs side by side run row by row.
The numbers are the order in which parts of rows are read, of three programs of two rows:

    program   0  1  2             program   0  1  2
    row 0     0  2  4             row 0     0  1  2
    row 1     1  3  5             row 1     3  4  5
                  one by one                    as rows

Their tiles become one as `weft.transforms.join_programs` has it, with two differences. The tile is as long as a row may be
(`ROW`), and how many programs it holds is known when the grid is (`weft.ir.cpu.PresentOp`): all accesses are masked so that they
end with the last program. So a tile costs nothing where it has no program, if the loops over its registers end there, too
(`weft.codegen.cpu.extents`). That is the case if

1. *Elements alone.* The kernel has nothing but loads, stores, elementwise ops and views that keep dimensions, and loops that do
   nothing but add sums of columns to rows of totals (`weft.transforms.column_sums`);
2. *Rows.* Each store has the dimension, each access that has it is consecutive along it, and it is the last one there. At
   least one access has several rows;
3. *Other arrays.* The kernel stores to no array that it loads from, so that an element may be stored before the next is loaded;
4. *No buffers.* What is the same for all rows, such as a row of weights, is loaded, or cheap to compute again for each row
   (`CHEAP`). Else it would be computed once, in a buffer as long as the tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.ir import cpu, tile
from weft.ir.direct import operands_of, ops_in
from weft.ir.types import dtype_of, is_tile, scalar, shape_of
from weft.transforms.axis import analyse, base_arguments
from weft.transforms.column_sums import adds_columns

ROW: Final = 1 << 15
"""The bytes of the longest row of a joined tile."""

SUMMED_ROW: Final = 512
"""The bytes of a row that programs which sum columns take at least: threads read parts of the same rows, for all of the rows. Two
threads took 0.54 of the time of one for 16384x256 float32 by parts of 512 bytes, 0.67 by 256."""

CHEAP: Final = 5
"""The most operations that are as well repeated for each row as kept in a buffer (`weft.codegen.cpu.cost`), beside a load."""

_LIGHT: Final = frozenset({"add", "sub", "mul", "and", "or", "xor", "min", "max", "shl", "shr"})
"""The kinds of binary operations that take an instruction."""

_PLAIN: Final = (
    func.ReturnOp,
    tile.ProgramIdOp,
    tile.NumProgramsOp,
    tile.ConstantOp,
    tile.SplatOp,
    tile.ArangeOp,
    tile.ExpandDimsOp,
    tile.BroadcastOp,
)


def rows_together(function: func.FuncOp, along: Mapping[SSAValue, int], width: int) -> int:
    """How many programs at most become one, of which each has ``width`` elements ``along`` a dimension of the pointers that it
    accesses; 0 where the rules do not hold."""
    if not all(_is_plain(op) or _adds_columns(op) for op in function.body.block.ops):
        return 0
    stores = [op.pointer for op in ops_in(function) if isinstance(op, tile.StoreOp)]
    tall = any(size > 1 for pointer in along for size in shape_of(pointer)[:-1])
    if not stores or not tall or not all(pointer in along for pointer in stores):
        return 0
    facts, longest = analyse(function), 0
    for pointer, axis in along.items():
        shape = shape_of(pointer)
        if axis != len(shape) - 1 or facts[pointer].contiguity[axis] < width:
            return 0
        longest = max(longest, width * dtype_of(pointer).itemsize)
    rows = [op.source for op in ops_in(function) if isinstance(op, tile.BroadcastOp) and shape_of(op.source)[-1] > 1]
    if any(_operations(row) > CHEAP for row in rows) or not _is_apart(function):
        return 0
    return ROW // longest


def _is_plain(op: Operation) -> bool:
    """Rule 1."""
    if isinstance(op, tile.LoadOp):
        return op.volatile is None
    if isinstance(op, tile.StoreOp):
        return op.release is None
    return isinstance(op, _PLAIN) or tile.is_a(op, tile.Elementwise)


def _adds_columns(op: Operation) -> bool:
    """Rule 1, for a loop."""
    if not isinstance(op, scf.ForOp) or not adds_columns(op):
        return False
    inside = list(op.body.block.ops)
    plain = all(isinstance(each, tile.ReduceOp | scf.YieldOp) or _is_plain(each) for each in inside)
    return plain and not any(isinstance(each, tile.StoreOp) for each in inside)


def _operations(value: SSAValue) -> int:
    """How many operations of tiles a value takes, each time that it is computed; more than `CHEAP` where one is not light."""
    op, found = value.owner, 0
    if not isinstance(op, Operation) or not is_tile(value) or isinstance(op, tile.LoadOp):
        return 0
    if tile.is_a(op, tile.Elementwise):
        light = isinstance(op, tile.AddPtrOp | tile.CompareOp | tile.SelectOp | tile.CastOp) or (
            isinstance(op, tile.BinaryOp) and op.kind.data in _LIGHT
        )
        found = 1 if light else CHEAP + 1
    for operand in operands_of(op):
        if found > CHEAP:
            break
        found += _operations(operand)
    return found


def _is_apart(function: func.FuncOp) -> bool:
    """Rule 3."""
    loads, stores = (
        [op.operands[0] for op in ops_in(function) if isinstance(op, kind)] for kind in (tile.LoadOp, tile.StoreOp)
    )
    bases = base_arguments([*loads, *stores])
    loaded, stored = ({bases[pointer] for pointer in pointers} for pointers in (loads, stores))
    return None not in loaded | stored and not loaded & stored


def keep_to_present(function: func.FuncOp, along: Mapping[SSAValue, int], width: int, count: int) -> None:
    """Masks the accesses of a function that runs up to ``count`` programs, so that they end with the last one."""
    start = function.body.block.first_op
    assert start is not None, "a function returns"
    present = _before(start, cpu.PresentOp()).results[0]
    elements = _before(start, tile.BinaryOp("mul", present, _number(start, width))).results[0]
    for op in list(ops_in(function)):
        if isinstance(op, tile.LoadOp | tile.StoreOp) and op.pointer in along:
            mask = _present(op, elements, along[op.pointer], width * count)
            if op.mask is not None:
                mask = _before(op, tile.BinaryOp("and", op.mask, mask)).results[0]
            _before(op, _masked(op, mask))
            last = op.prev_op
            assert last is not None, "the masked op stands before it"
            for old, new in zip(op.results, last.results, strict=True):
                old.replace_all_uses_with(new)
            Rewriter.erase_op(op)


def _present(op: tile.LoadOp | tile.StoreOp, elements: SSAValue, axis: int, length: int) -> SSAValue:
    """A mask of the first ``elements`` along an axis of so many."""
    bound = _before(op, tile.SplatOp(elements, (length,)))
    each = _before(op, tile.ArangeOp(0, length))
    mask = _before(op, tile.CompareOp("lt", each.results[0], bound.results[0])).results[0]
    shape = shape_of(op.pointer)
    for at in range(len(shape)):
        if at != axis:
            mask = _before(op, tile.ExpandDimsOp(mask, at)).results[0]
    return mask if shape_of(mask) == shape else _before(op, tile.BroadcastOp(mask, shape)).results[0]


def _number(op: Operation, number: int) -> SSAValue:
    return _before(op, tile.ConstantOp(number, scalar(dtypes.int32))).results[0]


def _before(op: Operation, new: tile.TileOp) -> tile.TileOp:
    """Inserts an op, with the location of the one that it stands before."""
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    return new


def _masked(op: tile.LoadOp | tile.StoreOp, mask: SSAValue) -> tile.LoadOp | tile.StoreOp:
    """The access under another mask."""
    cache, evict = op.cache.data, op.evict.data
    if isinstance(op, tile.LoadOp):
        return tile.LoadOp(op.pointer, mask, op.other, cache=cache, evict=evict)
    return tile.StoreOp(op.pointer, op.value, mask, cache=cache, evict=evict)
