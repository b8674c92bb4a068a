"""Sums along rows: which loops walk rows one after the other, each from its beginning to its end.

    side by side                                     one after the other
    for k:                                           for each row r:
        for each row r: total[r] += x(r, k)              for k, four at a time:
                                                             total0 += x(r, k), total1 += x(r, k + 1), ..
                                                         total[r] = (total0 + total1) + (total2 + total3)

Side by side, eight rows hide the latency of additions, but a processor fetches ahead along a few rows only, and begins with eight
new ones each time. Rows of a matrix lie one behind the other in memory: row by row, it never stops fetching. So a loop that
only accumulates (`weft.codegen.cpu.accumulate`) has several accumulators for each row instead. Where an iteration has fewer
registers of a row than that, several iterations are one.

Such a loop

1. only adds to what it carries, and only the sums of that along the rows are used, behind it. The order of the additions is then
   free (docs/architecture.md, "Meaning");
2. carries tiles whose lanes lie along the rows, in few registers each;
3. goes on in a row where the iteration before has ended: its loads move by what a row has of a tile. Where they go elsewhere,
   row by row comes back to memory for each row.

Where all rows need the same registers from memory, as a matrix times a vector does, several rows are walked side by side: else
each load of the matrix would take another load. They share the accumulators, too. Some CPUs are faster row by row where rows have
a certain length, which is known when the kernel runs (`weft.codegen.cpu.lone_rows`). The loop is then there twice.

Rows that are known to lie whole cache lines apart are read and added by halves of registers, on CPUs where that is faster
(`weft.codegen.cpu.halved_loads`), unless they are walked side by side.

Rows that no store behind the loop keeps (`weft.transforms.stored_part`) are left out, unless numbers that the loop carries are
used behind it: it may have no row. `weft.codegen.cpu.walk_rows` emits such loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.codegen.cpu.accumulate import BUDGET, GROUP_BITS, Accumulation, loads_of
from weft.codegen.cpu.cost import work
from weft.codegen.cpu.halved_loads import BYTES
from weft.codegen.cpu.lone_rows import LINE, rows_apart
from weft.codegen.cpu.loops import axis_bits
from weft.codegen.cpu.order import steps_in
from weft.codegen.cpu.schedule import WHOLE, RegisterLoop, identity, is_recomputable
from weft.codegen.cpu.side_sums import along_registers, to_source
from weft.codegen.cpu.views import register_bits
from weft.ir import tile
from weft.ir.direct import defining_op
from weft.ir.types import dtype_of, is_tile, layout_of, shape_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.target import CpuTarget
from weft.transforms.axis import AxisInfo
from weft.transforms.stored_part import Limit, limits_of

CHAINS: Final = 8
"""The most registers of the machine that are added to in turns: an addition takes three or four cycles, and machines begin two in
each."""

ACCUMULATORS: Final = 4
"""The most accumulators of one register of a tile."""


@dataclass(frozen=True)
class Walk:
    """How a loop walks rows. ``sources``: what is added to each carried tile, register by register. ``sums``: the reductions that
    do so in the body, if any; ``behind``: those of the carried tiles behind the loop.

    ``along`` are the register bits of a source that are added to one register of the carried tile, whose own become the
    ``columns`` of the source. Registers that differ by the bits ``beside`` are walked together, by the ``rest`` one after the
    other. 2 to the ``accumulators`` add up each register, and 2 to the ``iterations`` are one. An iteration takes so many
    ``bytes`` of a row. ``halved``: registers are loaded and added by halves. ``lone`` is how to walk rows of some lengths one by
    one, where this walk does not. ``singly``: registers of a step that masks cut off are added one by one.
    """

    scalars: Sequence[Operation]
    loop: RegisterLoop
    layout: LinearLayout
    sources: Sequence[SSAValue]
    sums: Sequence[tile.ReduceOp]
    behind: Sequence[tile.ReduceOp]
    along: Sequence[int]
    columns: Sequence[int]
    within: Sequence[int]
    beside: Sequence[int]
    rest: Sequence[int]
    limit: Limit | None
    accumulators: int
    iterations: int
    bytes: int
    halved: bool
    lone: Walk | None = None
    singly: bool = False


def walk_of(
    loop: scf.ForOp, found: Accumulation, target: CpuTarget, axis_of: Mapping[SSAValue, AxisInfo]
) -> Walk | None:
    """How to walk the rows of a loop that accumulates, on a machine; None if it does not add up rows."""
    layout, registers = found.layout, found.summing or found.adding
    arguments = [argument for argument in loop.body.block.args[1:] if is_tile(argument)]
    behind = [_sum_behind(loop, loop.res[argument.index - 1]) for argument in arguments]
    sums = [op for op in behind if op is not None]
    sources = [_source(loop, argument, found) for argument in arguments]
    added = [source for source in sources if source is not None]
    if len(sums) < len(behind) or len(added) < len(sources) or len({op.axis.value.data for op in sums}) != 1:
        return None
    axis = sums[0].axis.value.data
    lanes, within = (axis_bits(layout, dim, axis) for dim in ("lane", "register"))
    if len(lanes) != layout.in_bits("lane") or not _goes_on(loop, registers, added[0], sums[0], found):
        return None
    rows = [bit for bit in register_bits(layout) if bit not in within]
    size = max(dtype_of(source).itemsize for source in added)
    chains = max(CHAINS * target.vector_bits // (8 * size * layout.in_size("lane")), 1).bit_length() - 1
    along = along_registers(found.sums[0]) if found.sums else []
    columns = to_source(found.sums[0]) if found.sums else identity(layout)[:-1]
    tiles = [load for load in loads_of(registers) if is_tile(load.result)]
    lines = all(rows_apart(load, axis, axis_of) % LINE == 0 for load in tiles)
    whole = all(dtype_of(load.result).itemsize * layout.in_size("lane") == BYTES for load in tiles)
    halved = lines and whole and target.vector_bits == 8 * BYTES and "halved-loads" in target.enabled
    allowed = (BUDGET // max(work(registers.needs), 1)).bit_length() - 1

    def walk(beside: Sequence[int]) -> Walk | None:
        if len(beside) > GROUP_BITS or len(beside) > allowed:
            return None
        accumulators = max(min(chains, ACCUMULATORS.bit_length() - 1, allowed) - len(beside), 0)
        iterations = max(accumulators - len(along), 0)
        if iterations and not _counts(loop, 1 << iterations):
            accumulators, iterations = accumulators - iterations, 0
        if not accumulators and not rows:
            return None
        rest = [bit for bit in rows if bit not in beside]
        return Walk(
            found.scalars,
            registers,
            layout,
            added,
            found.sums,
            sums,
            along,
            columns,
            within,
            beside,
            rest,
            _limit(loop, sums) if _is_in_order(sums[0], rest) and not _gives_numbers(loop) else None,
            accumulators,
            iterations,
            _length(added[0], sums[0], found) * size,
            halved and len(beside) == len(within),
        )

    if not _shares_registers(registers, [f2.apply(columns, bit) for bit in rows]):
        return walk(within)
    together = walk([*within, *rows[: max(chains - len(within), 0)]])
    if together is None or not lines or "lone-rows" not in target.enabled or not _counts(loop, 1):
        return together
    lone = walk(within)
    return together if lone is None else replace(together, lone=replace(lone, singly=True))


def _sum_behind(loop: scf.ForOp, result: SSAValue) -> tile.ReduceOp | None:
    """The sum that is the only use of a loop's result."""
    uses = list(result.uses)
    op = uses[0].operation if len(uses) == 1 else None
    return op if isinstance(op, tile.ReduceOp) and op.parent is loop.parent and op.is_sum else None


def _source(loop: scf.ForOp, argument: BlockArgument, found: Accumulation) -> SSAValue | None:
    """What the loop adds to a carried tile, register by register, if it does nothing else with the tile."""
    end, dtype = loop.body.block.last_op, dtype_of(argument)
    if not argument.has_one_use() or end is None:
        return None
    (use,) = argument.uses
    total = use.operation
    if not isinstance(total, tile.BinaryOp) or total.kind.data != "add":
        return None
    if not dtype.holds_sums or not total.result.has_one_use() or end.operands[argument.index - 1] is not total.result:
        return None
    added = total.operands[1 - use.index]
    op = defining_op(added)
    if not isinstance(op, tile.ReduceOp) or op not in found.sums:
        return None if found.sums else added
    return op.sources[0] if added.has_one_use() and op.is_sum else None


def _goes_on(
    loop: scf.ForOp, registers: RegisterLoop, source: SSAValue, total: tile.ReduceOp, found: Accumulation
) -> bool:
    """Rule 3. Loads that follow loaded indices say nothing."""
    length, steps = _length(source, total, found), steps_in(loop)
    moved = [step for load in loads_of(registers) if (step := steps.of(load.pointer))]
    return bool(moved) and all(abs(step) == length for step in moved)


def _length(source: SSAValue, total: tile.ReduceOp, found: Accumulation) -> int:
    """The elements of a row that an iteration takes."""
    tiles = found.sums[0].sources[0] if found.sums else source
    return prod(shape_of(tiles)) // prod(shape_of(total.results_[0]))


def _gives_numbers(loop: scf.ForOp) -> bool:
    """Whether numbers that a loop carries are used behind it."""
    return any(result.first_use is not None for result in loop.res if not is_tile(result))


def _limit(loop: scf.ForOp, sums: Sequence[tile.ReduceOp]) -> Limit | None:
    """Up to which row all of the sums behind the loop are stored, where a mask says so."""
    limits = [limits_of(op.results_[0], loop).get(0) for op in sums]
    return limits[0] if len(set(limits)) == 1 else None


def _is_in_order(op: tile.ReduceOp, rest: Sequence[int]) -> bool:
    """Whether the registers of a sum's source that differ by these bits are the last of its rows, and in their order."""
    layout = layout_of(op.sources[0])
    if len(layout.shape) != 2 or op.axis.value.data != 1:
        return False
    moves = [layout.columns("register")[bit.bit_length() - 1] // layout.shape[1] for bit in rest]
    return moves == [layout.shape[0] >> len(rest) - at for at in range(len(rest))]


def _shares_registers(loop: RegisterLoop, rows: Sequence[int]) -> bool:
    """Whether an iteration reads registers of several elements that are the same for all rows, which differ by these bits."""
    for value, needed in loop.needs.items():
        if not rows or not is_tile(value) or not any(layout_of(value).columns("lane")):
            continue
        if is_recomputable(value) and not isinstance(value.owner, tile.LoadOp):
            continue
        if all(at is not WHOLE and not any(at[bit.bit_length() - 1] for bit in rows) for at in needed):
            return True
    return False


def _counts(loop: scf.ForOp, together: int) -> bool:
    """Whether so many iterations may be one: they carry nothing but tiles, and the counter moves by a known number."""
    step = defining_op(loop.step)
    known = isinstance(step, tile.ConstantOp) and step.number > 0 and step.number * together < 1 << 31
    return known and all(map(is_tile, loop.body.block.args[1:]))
