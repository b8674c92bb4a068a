"""Neighbouring programs of narrow tiles become one program of wide tiles.

A tile of 16 floats is one cache line. A program that goes down a matrix with it reads a line of each row, and the next program
the line beside it, long after the page and the lines that were fetched ahead have gone. With tiles of 256 floats it is one row
after the other:

    columns = program_id(0) * 16 + arange(0, 16)             programs x, x + 1, ..
    columns = program_id(0) * 16 + arange(0, 16 * 16)        the same programs together, from x on

The pass adds a second function to the module, which runs `COUNT` programs at once, and says so in its attribute `JOINED`, as
the numbers of a `Joined`. The first function stays, for the programs at the end of a row of the grid.

Programs are joined where nothing can tell:

1. *No effects but loads, stores and atomics.* A kernel that waits, prints, checks or asserts, and one that uses what an atomic
   found in memory, is left alone. With atomics programs keep their order, x fastest; those of one group come element by
   element. So floats that atomics add to one place are rounded in another order, as they are with several threads.
2. *One pattern.* All uses of the program's id along the axis are ``id * B`` with a constant B, to which ``arange(0, B)`` is
   added, as integers of 32 bits and more: a longer range has numbers that a narrower type has not. What moves with it is then a
   dimension of tiles, which becomes wider everywhere. Every atomic has it: one without would happen once for all programs.
3. *Nothing crosses the dimension*: no reduction or scan along it, no reshape or dot of it, and no tile has it twice.
4. *Lines.* Each access that has the dimension is consecutive along it, over less than `ROW` bytes, or `LOOP_ROW` in loops. Or,
   without a loop, each store is, over less than `ACROSS` bytes, and loads are consecutive along another: a transpose that writes
   a line of each of 32 rows and more takes 1 or 7 ms where one takes 1 that writes four. A processor fetches no more rows ahead
   than that. Where loads across take less than a line of a row, as 16 bytes are, programs *beside* each other, along the other
   axis of the grid, are joined first, until they take one. Programs without loops whose tiles all have one dimension have no
   other rows to walk: they are joined up to `FLAT` bytes, however they load and store. Those that compute `ENOUGH` by themselves
   are not: all that joining them saves is the way to the next program, and a second function takes as long to compile as the
   first.
5. *The same bits.* Sums are rounded in an order that the layout of their tile decides, and in a loop its schedule. Floats are
   added up down the columns of a tile whose rows are registers, or programs are not joined. Both functions then take the same
   order wherever they can (`weft.codegen.cpu.sum_order`). Where they do not, `weft.codegen.cpu.machine` finds it and leaves the
   joined function out.

Programs of several rows that compute each element by itself are joined to whole rows of the grid instead of rule 4's widths
(`weft.transforms.join_rows`).

Which programs are joined depends on the grid, and for whole rows on the threads; results, but for those atomics, on neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple, TypeAlias

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.direct import defining_op, operands_of, ops_in, set_type
from weft.ir.types import dtype_of, element_of, is_pointer, is_tile, shape_of, tensor
from weft.transforms.axis import analyse
from weft.transforms.flags import waits
from weft.transforms.join_rows import SUMMED_ROW, keep_to_present, rows_together
from weft.transforms.join_scalars import LANES, join_scalars

JOINED: Final = "tile.joined"

ROW: Final = 512
"""The bytes of a row of a joined tile: a processor fetches ahead along the few rows of a tall tile that are this long."""

LOOP_ROW: Final = 256
"""As `ROW`, where a loop walks rows: it comes back to a row's neighbours soon enough, and four programs of a line are joined."""

FLAT: Final = 4096
"""The bytes of a joined tile of programs whose tiles have one dimension: walking more of them at once gains nothing."""

ENOUGH: Final = 32768
"""The bytes that a program of tiles of one dimension computes, element by element, beside which the next program begins at no
cost: so many and more take 0.99 to 1.03 of the time when they are joined, of 4,096 numbers and of 2,097,152."""

ACROSS: Final = 256
"""The bytes of a row that a joined tile stores, where it loads across."""

LINE: Final = 64
"""The bytes of a cache line, and of the widest register."""

REGISTER_LANES: Final = 16
"""The most lanes of a register of numbers that are added up."""

MOST: Final = 16
"""The most programs that are joined."""

MOST_BYTES: Final = 65536
"""The size of a joined tile."""

MOST_CARRIED: Final = 8192
"""The size of what a loop of a joined program may carry: it shares the first cache."""

WHOLE: Final = frozenset(
    {
        tile.AtomicCasOp,
        tile.PrintOp,
        tile.AssertOp,
        tile.AssemblyOp,
        tile.BarrierOp,
        tile.ClockOp,
        tile.ProcessorOp,
        tile.DotOp,
        scf.WhileOp,
    }
)
"""What a program does as a whole: effects whose order or number can be seen, and dots, which are nests of their own. Kernels with
them are neither joined nor divided (`weft.transforms.split_sums`)."""

_ACCESSES: Final = (tile.LoadOp, tile.StoreOp, tile.AtomicRmwOp)

_Place: TypeAlias = tuple[SSAValue, int]
"""A dimension of a tile."""


class Joined(NamedTuple):
    """How a function runs programs: so many along an axis of the grid, and so many of these ``beside`` each other, along the
    other one of x and y. If ``least`` is not 0, it runs any number up to that (`weft.ir.cpu.PresentOp`), and so many or more
    where a row of the grid has them."""

    axis: int
    programs: int
    least: int = 0
    beside: int = 1


@dataclass(frozen=True)
class JoinPrograms(ModulePass):
    """Adds a function that runs several programs at once, where that is worth it. ``disjoint``: the arguments' arrays do not
    overlap."""

    name = "join-programs"

    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [f for f in op.ops if isinstance(f, func.FuncOp) and f.body.blocks]:
            atomics = [inner for inner in ops_in(kernel) if isinstance(inner, tile.AtomicRmwOp)]
            if waits(kernel) or any(type(inner) in WHOLE for inner in ops_in(kernel)):
                continue
            if any(atomic.result.first_use is not None for atomic in atomics):
                continue
            if (alone := join_scalars(kernel)) is not None:
                _name(alone, kernel, 0, LANES)
                Rewriter.insert_op(alone, InsertPoint.after(kernel))
                continue
            for axis in (0,) if atomics else (0, 1):
                if any(
                    isinstance(inner, tile.ProgramIdOp) and inner.axis.value.data == axis for inner in ops_in(kernel)
                ):
                    joined = _joined(kernel, axis, self.disjoint)
                    if joined is not None:
                        Rewriter.insert_op(joined, InsertPoint.after(kernel))
                        break


def joined_of(kernel: func.FuncOp) -> tuple[func.FuncOp, Joined] | None:
    """The function that runs several programs of a kernel at once, and how; None if there is none."""
    following = kernel.next_op
    if not isinstance(following, func.FuncOp) or not isinstance(text := following.attributes.get(JOINED), StringAttr):
        return None
    return following, Joined(*map(int, text.data.split()))


def _joined(kernel: func.FuncOp, axis: int, disjoint: bool) -> func.FuncOp | None:
    copy = kernel.clone()
    beside = _beside(copy, axis)
    found = _widening(copy, axis)
    if found is None:
        return None
    dimensions, wide, width = found
    least = _count(copy, dimensions, wide, width)
    along = {pointer: axes[0] for pointer in _pointers(copy) if (axes := _along(pointer, dimensions, wide))}
    carried = [each for op in ops_in(copy) if isinstance(op, scf.ForOp) for each in op.iter_args if is_tile(each)]
    wider = all(_along(each, dimensions, wide) for each in carried)
    count = rows_together(copy, along, width) if disjoint and wider else 0
    if count > least:
        if carried:
            least = max(least, SUMMED_ROW // (width * max(dtype_of(pointer).itemsize for pointer in along)))
        _widen(copy, dimensions, wide, count)
        keep_to_present(copy, along, width, count)
        _name(copy, kernel, axis, count, least)
        return copy
    if max(least, beside) < 2:
        return None
    _widen(copy, dimensions, wide, least)
    _name(copy, kernel, axis, least, 0, beside)
    return copy


class _Widening(NamedTuple):
    """The dimensions of a function's tiles, those that move with an id of programs, and how long they are."""

    dimensions: _Dimensions
    wide: set[_Place]
    width: int


def _widening(function: func.FuncOp, axis: int) -> _Widening | None:
    """What becomes wider where programs along an axis are joined; None where it may not (rules 2, 3 and 5)."""
    ids = [op for op in ops_in(function) if isinstance(op, tile.ProgramIdOp) and op.axis.value.data == axis]
    _part_generators(function)
    ranges = _ranges(ids)
    widths = {op.end.value.data for op in ranges}
    if len(widths) != 1:
        return None
    dimensions = _Dimensions(function)
    wide = {dimensions.of((op.result, 0)) for op in ranges}
    (width,) = widths
    if not _may_widen(function, dimensions, wide, ranges):
        return None
    reductions = [op for op in ops_in(function) if isinstance(op, tile.ReduceOp)]
    same = all(_rounds_the_same(op, dimensions, wide, width) for op in reductions)
    return _Widening(dimensions, wide, width) if same else None


def _beside(function: func.FuncOp, axis: int) -> int:
    """How many programs lie beside each other, along the other axis than the one, in what is to be joined along the one (rule 4);
    makes the function's tiles as wide, and nothing for 1."""
    if any(isinstance(op, tile.AtomicRmwOp | scf.ForOp) for op in ops_in(function)):
        return 1
    found = _widening(function, 1 - axis)
    if found is None:
        return 1
    (dimensions, wide, width), facts = found, analyse(function)
    longest = largest = 0
    for op in ops_in(function):
        if not isinstance(op, tile.LoadOp | tile.StoreOp) or not (along := _along(op.pointer, dimensions, wide)):
            continue
        largest = max(largest, prod(shape_of(op.pointer)) * _itemsize(op))
        info = facts.get(op.pointer)
        if info is not None and info.contiguity[along[0]] >= width:
            if isinstance(op, tile.StoreOp):
                return 1
            longest = max(longest, width * _itemsize(op))
    count = LINE // longest if longest else 1
    if count < 2 or largest * count > MOST_BYTES:
        return 1
    _widen(function, dimensions, wide, count)
    return count


def _name(joined: func.FuncOp, kernel: func.FuncOp, *how: int) -> None:
    """Says what a function runs; see `Joined`."""
    joined.sym_name = StringAttr(f"{kernel.sym_name.data}.joined")
    joined.attributes[JOINED] = StringAttr(" ".join(map(str, how)))


def _part_generators(function: func.FuncOp) -> None:
    """Gives each use of a tile that is made of scalars a tile of its own: equal ones may become different."""
    for op in list(ops_in(function)):
        if not isinstance(op, tile.ArangeOp | tile.ConstantOp | tile.SplatOp) or not is_tile(op.result):
            continue
        for use in list(op.result.uses)[1:]:
            own = op.clone()
            own.location = op.location
            Rewriter.insert_op(own, InsertPoint.after(op))
            use.operation.operands[use.index] = own.result


def _ranges(ids: list[tile.ProgramIdOp]) -> list[tile.ArangeOp]:
    """The ranges that are added to ``id * B``, if these are all uses of the ids; else none."""
    found: list[tile.ArangeOp] = []
    for use in [use for op in ids for use in op.result.uses]:
        products = [use.operation]
        if isinstance(use.operation, tile.CastOp):
            if not _keeps_numbers(use.operation):
                return []
            products = [inner.operation for inner in use.operation.result.uses]
        for product in products:
            sums = _sums(product)
            if sums is None:
                return []
            found += sums
    return found


def _sums(product: Operation) -> list[tile.ArangeOp] | None:
    """The ranges that are added to a product of an id; None where it is used otherwise."""
    if not isinstance(product, tile.BinaryOp) or product.kind.data != "mul":
        return None
    numbers = [op.number for op in map(defining_op, operands_of(product)) if isinstance(op, tile.ConstantOp)]
    found: list[tile.ArangeOp] = []
    for use in product.result.uses:
        if not isinstance(use.operation, tile.SplatOp):
            return None
        for inner in use.operation.result.uses:
            other = inner.operation
            if not isinstance(other, tile.BinaryOp) or other.kind.data != "add":
                return None
            source = defining_op(other.operands[1 - inner.index])
            while isinstance(source, tile.CastOp) and source.result.has_one_use() and _keeps_numbers(source):
                source = defining_op(source.source)
            if not isinstance(source, tile.ArangeOp) or source.start.value.data or numbers != [source.end.value.data]:
                return None
            found.append(source)
    return found


def _keeps_numbers(cast: tile.CastOp) -> bool:
    """Whether a cast leaves the numbers of ids and of longer ranges as they are."""
    dtype = dtype_of(cast.result)
    return dtype.is_integer and dtype.bits >= 32


class _Dimensions:
    """Which dimensions of a function's tiles are one: those at which elements meet."""

    def __init__(self, function: func.FuncOp):
        self._parent: dict[_Place, _Place] = {}
        self.crossed: list[_Place] = []
        """Dimensions along which elements meet others."""
        for op in ops_in(function):
            self._enter(op)

    def of(self, place: _Place) -> _Place:
        """One dimension for all that are the same."""
        root = place
        while (above := self._parent.get(root, root)) != root:
            root = above
        while place != root:
            self._parent[place], place = root, self._parent.get(place, place)
        return root

    def _same(self, a: SSAValue, i: int, b: SSAValue, j: int) -> None:
        self._parent[self.of((a, i))] = self.of((b, j))

    def _equal(self, values: list[SSAValue]) -> None:
        tiles = [value for value in values if is_tile(value)]
        for value in tiles[1:]:
            for i in range(len(shape_of(value))):
                self._same(tiles[0], i, value, i)

    def _enter(self, op: Operation) -> None:
        match op:
            case tile.ArangeOp() | tile.ConstantOp() | tile.SplatOp():
                pass
            case tile.BroadcastOp():
                for i, (old, new) in enumerate(zip(shape_of(op.source), shape_of(op.result), strict=True)):
                    if old == new:
                        self._same(op.source, i, op.result, i)
            case tile.ExpandDimsOp():
                at = op.axis.value.data
                for i in range(len(shape_of(op.source))):
                    self._same(op.source, i, op.result, i + (i >= at))
            case tile.TransOp():
                for i, source in enumerate(op.permutation):
                    self._same(op.source, source, op.result, i)
            case tile.ReduceOp():
                at = op.axis.value.data
                self._equal(list(op.sources))
                self._equal(list(op.results_))
                self.crossed.append((op.sources[0], at))
                for i in range(len(shape_of(op.results_[0]))):
                    self._same(op.sources[0], i + (i >= at), op.results_[0], i)
            case scf.ForOp():
                for values in zip(op.iter_args, op.body.block.args[1:], op.res, strict=True):
                    self._equal(list(values))
            case scf.IfOp():
                pass
            case scf.YieldOp():
                outer = op.parent_op()
                if isinstance(outer, scf.ForOp | scf.IfOp):
                    for pair in zip(op.operands, outer.results, strict=True):
                        self._equal(list(pair))
            case tile.LoadOp() | tile.StoreOp() | tile.AtomicRmwOp():
                self._equal([*op.operands, *op.results])
            case _ if tile.is_a(op, tile.Elementwise):
                self._equal([*op.operands, *op.results])
            case _:
                values = [value for value in (*op.operands, *op.results) if is_tile(value)]
                self.crossed += [(value, i) for value in values for i in range(len(shape_of(value)))]


def _pointers(function: func.FuncOp) -> Iterator[SSAValue]:
    """What a function loads and stores through."""
    for op in ops_in(function):
        if isinstance(op, tile.LoadOp | tile.StoreOp):
            yield op.pointer


def _tiles(function: func.FuncOp) -> Iterator[SSAValue]:
    """The tiles that a function computes."""
    for op in ops_in(function):
        yield from filter(is_tile, op.results)
        for region in op.regions:
            for block in region.blocks:
                yield from filter(is_tile, block.args)


def _may_widen(function: func.FuncOp, dimensions: _Dimensions, wide: set[_Place], ranges: list[tile.ArangeOp]) -> bool:
    """Whether nothing crosses the dimensions, no tile has them twice, no other range lies along them, all atomics have them."""
    if any(dimensions.of(place) in wide for place in dimensions.crossed):
        return False
    for op in ops_in(function):
        if isinstance(op, tile.AtomicRmwOp) and not _along(op.pointer, dimensions, wide):
            return False
    for value in _tiles(function):
        along = _along(value, dimensions, wide)
        if len(along) > 1 or (along and isinstance(value.owner, tile.ArangeOp) and value.owner not in ranges):
            return False
    return True


def _along(value: SSAValue, dimensions: _Dimensions, wide: set[_Place]) -> list[int]:
    """The axes of a value that are to be wider; a scalar has none."""
    return [i for i in range(len(shape_of(value))) if dimensions.of((value, i)) in wide]


def _rounds_the_same(op: tile.ReduceOp, dimensions: _Dimensions, wide: set[_Place], width: int) -> bool:
    """Whether a reduction of a wider tile has the bits of the single ones (rule 5)."""
    source = op.sources[0]
    if not any(dtype_of(each).is_float for each in op.sources):
        return True
    last = len(shape_of(source)) - 1
    return (
        width >= REGISTER_LANES and width * dtype_of(source).itemsize >= LINE and dimensions.of((source, last)) in wide
    )


def _count(function: func.FuncOp, dimensions: _Dimensions, wide: set[_Place], width: int) -> int:
    """How many programs shall be joined; 1 for none."""
    loops = [op for op in ops_in(function) if isinstance(op, scf.ForOp)]
    if not loops and all(len(shape_of(value)) == 1 for value in _tiles(function)):
        if sum(_bytes(op.results[0]) for op in ops_in(function) if tile.is_a(op, tile.Elementwise)) >= ENOUGH:
            return 1
        widest = max((_itemsize(op) for op in ops_in(function) if isinstance(op, _ACCESSES)), default=FLAT)
        return min(max(FLAT // (width * widest), 1), MOST)
    facts = analyse(function)
    count, rows, across = MOST, 0, False
    for op in ops_in(function):
        if not isinstance(op, tile.LoadOp | tile.StoreOp):
            continue
        pointer, info = op.pointer, facts.get(op.pointer)
        along = _along(pointer, dimensions, wide)
        if not along:
            continue
        if info is None:
            return 1
        if info.contiguity[along[0]] >= width:
            rows = max(rows, width * _itemsize(op))
        elif isinstance(op, tile.StoreOp) or max(info.contiguity) * _itemsize(op) < LINE:
            return 1
        else:
            across = True
        count = min(count, MOST_BYTES // (prod(shape_of(pointer)) * _itemsize(op)))
    if not rows or (across and loops):
        return 1
    carried = sum(_bytes(argument) for op in loops for argument in op.iter_args)
    count = min(count, MOST_CARRIED // max(carried, 1), (ACROSS if across else LOOP_ROW if loops else ROW) // rows)
    return 1 << max(count, 1).bit_length() - 1


def _itemsize(op: tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp) -> int:
    """The bytes that an access moves for an element."""
    return dtype_of(op.result if isinstance(op, tile.LoadOp) else op.value).itemsize


def _bytes(value: SSAValue) -> int:
    size = 8 if is_pointer(value) else dtype_of(value).itemsize
    return prod(shape_of(value)) * size if is_tile(value) else 0


def _widen(function: func.FuncOp, dimensions: _Dimensions, wide: set[_Place], count: int) -> None:
    """Makes the dimensions ``count`` times as long in the types of all tiles."""
    for value in list(_tiles(function)):
        along = _along(value, dimensions, wide)
        if along:
            wider = [size * count if i in along else size for i, size in enumerate(shape_of(value))]
            set_type(value, tensor(element_of(value), wider))
            if isinstance(owner := value.owner, tile.ArangeOp):
                owner.properties["end"] = IntegerAttr(wider[0], i64)
