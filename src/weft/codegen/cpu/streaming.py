"""Stores past the caches, for outputs that no cache holds.

A plain store first reads the line that it writes. Where a launch stores as much as the last cache holds, lines are evicted before
they are read again. Then its stores are *streamed*: they are non-temporal, read nothing and leave the caches to the inputs.
Copies, transposes, additions and products of short rows take 0.5 to 0.8 of the time (docs/benchmarks/memory.md).

The kernel knows its stores, the launch the size of the grid. So a program compares the number of programs with the least for
which their stores fill the cache (`CpuTarget.cache`), and each store branches on the answer. Masks count as true, loops of
unknown length as one iteration.

A store streams if

1. *Order.* All accesses of the kernel are plain loads and stores, and it prints nothing. Non-temporal stores are not ordered with
   others, and nothing in such a kernel may ask for an order. The entry point has a fence before it returns.
2. *Not read again.* The kernel loads nothing through the argument that is stored to, the arguments' arrays do not overlap, and
   the store does not ask to be kept (``evict_last``).
3. *Lines.* Its tile has runs of at least `RUN` bytes in memory. A line of which one program stores a part is written twice.
4. *Always.* It is in no branch and no ``while`` loop: there the number of programs does not tell how much is stored.

Addresses that are no multiple of 16 are stored to plainly: the store looks. So are rows of less than `SHORT_ROW` that end within
a line. The masked store at a row's end is plain, and the next row begins in its line: the processor then waits for the line to be
read, written back and written again, 0.3 to 0.4 us a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final, NamedTuple

from llvmlite import ir
from xdsl.dialects import func, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.codegen.cpu.masks import bound_of
from weft.codegen.emit.context import Facts, Grid
from weft.codegen.llvm.types import I64, declare
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, is_tile, shape_of
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.constants import constant_trips

RUN: Final = 128
"""The bytes of memory without a gap that a tile has at least: two lines, of which an array off a line still fills one."""

LINE: Final = 64

SHORT_ROW: Final = 6144
"""The bytes of a row for which a stream saves as much time as an end within a line costs."""


class Streamed(NamedTuple):
    """The stores of a kernel that stream in launches of ``programs`` and more."""

    stores: frozenset[tile.StoreOp]
    programs: int


def streamed(
    kernel: func.FuncOp, facts: Facts, options: Options, target: CpuTarget, together: int = 1
) -> Streamed | None:
    """The stores of a kernel that may stream; None where it has none. It runs so many programs ``together``."""
    if "streaming-stores" not in target.enabled or not options.disjoint or not all(map(_is_plain, ops_in(kernel))):
        return None
    loaded = {facts.base_of[op.pointer] for op in ops_in(kernel) if isinstance(op, tile.LoadOp)}
    stores = [op for op in ops_in(kernel) if isinstance(op, tile.StoreOp) and _may_stream(op, facts, loaded)]
    sizes = [_bytes(op) for op in stores]
    if not sum(size or 0 for size in sizes):
        return None
    found = frozenset(op for op, size in zip(stores, sizes, strict=True) if size)
    total = sum(size or 0 for size in sizes)
    return Streamed(found, -(-target.cache * together // total))


def _is_plain(op: Operation) -> bool:
    """Whether an op orders nothing and is not seen by others while the program runs (rule 1)."""
    ordering = tile.ordering_of(op)
    plain = ordering is None or (tile.is_access(op) and not ordering.acquires and not ordering.releases)
    return plain and not isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp | tile.PrintOp)


def _may_stream(op: tile.StoreOp, facts: Facts, loaded: set[BlockArgument | None]) -> bool:
    """Rules 2 and 3."""
    base = facts.base_of[op.pointer]
    if base is None or base in loaded or None in loaded or op.evict.data == "evict_last" or not is_tile(op.pointer):
        return False
    return max(facts.axis[op.pointer].contiguity, default=1) * dtype_of(op.value).itemsize >= RUN


def _bytes(op: tile.StoreOp) -> int | None:
    """The bytes that a program stores by an op; None where the kernel does not tell (rule 4)."""
    size = prod(shape_of(op.value)) * dtype_of(op.value).itemsize
    around = op.parent_op()
    while not isinstance(around, func.FuncOp):
        if not isinstance(around, scf.ForOp):
            return None
        trips = constant_trips(around)
        size *= 1 if trips is None else trips
        around = around.parent_op()
    return size


def does_stream(builder: ir.IRBuilder, found: Streamed, grid: Grid) -> ir.Value:
    """Whether the launch has so many programs that the stores stream."""
    x, y, z = (builder.zext(size, I64) for size in grid.sizes)
    programs = builder.mul(builder.mul(x, y), z)
    return builder.icmp_unsigned(">=", programs, ir.Constant(I64, found.programs))


def row_bounds(op: tile.StoreOp, facts: Facts) -> list[SSAValue]:
    """The tiles, of equal elements, with which a store's mask compares the positions in a row: how long a row is."""
    contiguity = facts.axis[op.pointer].contiguity
    return [] if op.mask is None else list(_bounds(op.mask, facts, contiguity.index(max(contiguity))))


def _bounds(mask: SSAValue, facts: Facts, along: int | None) -> Iterator[SSAValue]:
    """The bounds in a mask's conjuncts; with ``along``, in those that are not constant along this dimension."""
    if along is not None and facts.axis[mask].constancy[along] == shape_of(mask)[along]:
        return
    match mask.owner:
        case tile.BinaryOp() as op if op.kind.data == "and":
            for each in op.operands:
                yield from _bounds(each, facts, along)
        case tile.CompareOp() as op if (bound := bound_of(op, facts.axis)) is not None:
            yield bound
        case Operation() as op if tile.is_a(op, tile.View):
            yield from _bounds(op.operands[0], facts, None)
        case _:
            pass


def is_long_row(builder: ir.IRBuilder, bound: ir.Value, size: int) -> ir.Value:
    """Whether rows of so many elements of ``size`` bytes end where a line does, or are long."""
    ends = builder.and_(bound, ir.Constant(bound.type, LINE // size - 1))
    whole = builder.icmp_unsigned("==", ends, ir.Constant(bound.type, 0))
    return builder.or_(whole, builder.icmp_signed(">=", bound, ir.Constant(bound.type, SHORT_ROW // size)))


def fence(builder: ir.IRBuilder) -> None:
    """Orders the streamed stores so far before what follows."""
    builder.call(declare(builder.module, "llvm.x86.sse.sfence", ir.VoidType(), []), [])
