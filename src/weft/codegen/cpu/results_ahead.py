"""Prefetches of the lines that sums of products are stored to, while they are added up.

    for blocks of the sums:  prefetch the block's lines of the result
                             multiply
    store the sums

A tile of a result is few lines of each of many rows. No processor fetches those ahead, and a store waits until its core has the
line: of products of 1024^3 in tiles of 16 the stores, and all writes that came behind them, took a tenth of the time.
A product prefetches if

1. the CPU gains by it (``prefetch-results`` of `weft.target.TUNING`);
2. its sums, or what is computed from them, are stored later in the same block, to rows of neighbours that are equally far apart;
3. the address of the first can be computed before the product begins, and nothing is loaded for that;
4. the stores go through the caches (`weft.codegen.cpu.streaming`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Final, NamedTuple

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from weft.codegen.cpu.far_ahead import bytes_of, fetch
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import Columns, Item, RegisterLoop, is_recomputable, trace, trace_root
from weft.codegen.cpu.values import Fetch, Registers
from weft.codegen.llvm.types import I8, I64, POINTER
from weft.ir import tile
from weft.ir.cpu import MultiplyOp
from weft.ir.direct import defining_op, operands_of
from weft.ir.types import dtype_of, is_tile, layout_of, shape_of
from weft.transforms.affine import Product, step_along
from weft.transforms.effects import Effect, effect_of

LINE: Final = 64

MOST: Final = 8
"""The ops, one behind the other, that compute a scalar of an address early."""


class Result(NamedTuple):
    """Where sums are stored: the address of the first, the bytes between rows, and those of an element. ``wanted``: whether the
    lines go through the caches; None where they always do."""

    first: ir.Value
    pitch: ir.Value
    size: int
    wanted: ir.Value | None


def results_of(registers: Registers, item: Item, later: Iterable[Item]) -> Iterator[tuple[MultiplyOp, Fetch]]:
    """The products of an item of a schedule, with what prefetches their results, by what the items behind it store."""
    if "prefetch-results" not in registers.target.enabled or registers.options.checked:
        return
    products = list(_products(item))
    if not products:
        return
    for store, needs in _stores(later, registers):
        for product, sums in products:
            if sums in needs and (found := _result(registers, store, shape_of(sums))) is not None:
                yield product, partial(fetch_block, registers, found)


def _products(item: Item) -> Iterator[tuple[MultiplyOp, SSAValue]]:
    """The products of an item, and where their sums are after it."""
    if isinstance(item, MultiplyOp):
        yield item, item.result
    elif isinstance(item, scf.ForOp):
        end = item.body.block.last_op
        assert end is not None, "the verifier asks scf.for for a terminator"
        for value, result in zip(end.operands, item.res, strict=True):
            if isinstance(value.owner, MultiplyOp):
                yield value.owner, result


def _stores(items: Iterable[Item], registers: Registers) -> Iterator[tuple[tile.StoreOp, dict[SSAValue, set[Columns]]]]:
    """Plain stores, and what they need."""
    for loop in items:
        if not isinstance(loop, RegisterLoop):
            continue
        for root in loop.roots:
            if isinstance(root, tile.StoreOp):
                needs: dict[SSAValue, set[Columns]] = {}
                trace_root(root, layout_of(root.pointer), needs, registers.buffers)
                yield root, needs


def _result(registers: Registers, store: tile.StoreOp, shape: tuple[int, ...]) -> Result | None:
    """Where a store goes, if rules 2 and 3 hold for it."""
    size, axis = dtype_of(store.value).itemsize, registers.facts.axis
    if shape_of(store.pointer) != shape or step_along(store.pointer, 1, axis) != (Product(size),):
        return None
    pitch = step_along(store.pointer, 0, axis)
    if pitch is None or not _is_known(registers, store):
        return None
    streams = registers.streams.get(store)
    return Result(
        registers.lane(store.pointer, RegisterIndex(), 0),
        bytes_of(registers, pitch),
        size,
        None if streams is None else registers.builder.not_(streams),
    )


def _is_known(registers: Registers, store: tile.StoreOp) -> bool:
    """Whether what a store's addresses are computed from is known, or was computed now."""
    needs: dict[SSAValue, set[Columns]] = {}
    trace([store.pointer], layout_of(store.pointer), needs, registers.buffers)
    return all(_is_computed(value) if is_tile(value) else _know(registers, value) for value in needs)


def _is_computed(value: SSAValue) -> bool:
    """Whether a value is computed from its operands alone: it is not loaded, and no clock's."""
    op = defining_op(value)
    return op is not None and is_recomputable(value) and effect_of(op) is Effect.NONE


def _know(registers: Registers, scalar: SSAValue, most: int = MOST) -> bool:
    """Computes a scalar that is not known, if a chain of so many ops does that; whether it is known then."""
    if scalar in registers.scalars:
        return True
    op = defining_op(scalar)
    if op is None or not most or not _is_computed(scalar):
        return False
    if not all(_know(registers, operand, most - 1) for operand in operands_of(op)):
        return False
    registers.item(op)
    return True


def fetch_block(
    registers: Registers, result: Result, row: ir.Value | None, column: ir.Value | None, block: tuple[int, int]
) -> None:
    """Prefetches the lines of a block of so many rows and columns, which begins at a row and a column; None is 0."""
    builder = registers.builder
    with nullcontext() if result.wanted is None else builder.if_then(result.wanted):
        place = builder.inttoptr(result.first, POINTER)
        for number, step in ((row, result.pitch), (column, ir.Constant(I64, result.size))):
            if number is not None:
                place = builder.gep(place, [builder.mul(number, step)], source_etype=I8)
        with registers.loop(block[0]) as beside:
            first = builder.gep(place, [builder.mul(beside, result.pitch)], source_etype=I8)
            for distance in range(0, block[1] * result.size, LINE):
                fetch(builder, builder.gep(first, [ir.Constant(I64, distance)], source_etype=I8))
