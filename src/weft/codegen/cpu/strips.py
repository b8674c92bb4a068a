"""Sums of the columns of long rows: strip by strip, with totals in the nearest caches.

    piece by piece                                  strip by strip
    for each piece of 256 bytes of the columns:     for each strip of 8 rows:
        for each row: sums += x(row, piece)             for each piece of 256 bytes of the columns:
                                                            for each row of the strip: sums += x(row, piece)

Piece by piece, a loop comes back to each row for each piece, after the row's page and the lines that were fetched ahead have
gone. By strips, a processor fetches ahead along 8 rows at once. Sums are in registers for the rows of a strip, and in memory
between strips: a load and a store for 8 rows. Pieces of whole rows, and strips of more rows, were slower
(docs/benchmarks/memory.md): lines that are a multiple of a page apart share the places of the first cache.

The rows of a tile are added one after the other, and their sum to the total. So the bits depend neither on strips nor on pieces.
A loop of a function that runs any number of programs ends with the programs that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, NamedTuple

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.cost import work
from weft.codegen.cpu.extents import Extent
from weft.codegen.cpu.loops import UNROLL_BUDGET, Terms, axis_bits
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.cpu.side_sums import along_registers, nothing, register_type, to_source
from weft.codegen.cpu.sum_order import order_of
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import mask_versions
from weft.codegen.cpu.views import slots
from weft.codegen.emit.control import counted
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import I64
from weft.ir import tile
from weft.ir.types import is_tile
from weft.layout import LinearLayout
from weft.layout.algebra import f2

STRIP_BITS: Final = 3
"""How many rows a strip has, as a power of two."""

PIECE: Final = 256
"""The most bytes of a row that are added up at a time."""

ACCUMULATORS: Final = 8
"""The most of the processor's registers that hold sums."""

UNROLLED: Final = 8
"""How many registers of the rows one iteration adds up."""


class _Sum(NamedTuple):
    """A reduction, the buffer of what it is added to, and one for what is added up of it."""

    op: tile.ReduceOp
    total: Buffer
    part: Buffer


@dataclass(frozen=True)
class Strips:
    """A loop that adds up the columns of tiles: the scalar ops of its body, the reductions, one for each tile that it carries,
    their register loop, and the layout of what it carries."""

    scalars: Sequence[Operation]
    sums: Sequence[tile.ReduceOp]
    summing: RegisterLoop
    layout: LinearLayout


def emit_strips(registers: Registers, loop: scf.ForOp, found: Strips) -> None:
    """Emits the loop, and makes its results available."""
    arguments, end, layout = loop.body.block.args[1:], loop.body.block.last_op, found.layout
    assert end is not None, "the verifier asks scf.for for a terminator"
    rows = list(zip(arguments, loop.iter_args, loop.res, end.operands, strict=True))
    numbers = [(row, registers.slot(row[0])) for row in rows if not is_tile(row[0])]
    totals = {each[0]: registers.pool.allocate(element_of_value(each[0]), layout) for each in rows if is_tile(each[0])}
    added: dict[SSAValue, Buffer] = {value: totals[argument] for argument, _, _, value in rows if argument in totals}
    sums = [_Sum(op, added[_total(op)], _like(registers, added[_total(op)])) for op in found.sums]
    strips = _Emission(registers, found, sums)
    with strips.pieces() as places:
        for (argument, initial, _, _), place in product([row for row in rows if row[0] in totals], places):
            totals[argument].store(registers.builder, place, registers.vector(initial, place))
    for (_, initial, _, _), slot in numbers:
        slot.put(initial)

    def iteration() -> None:
        for (argument, _, _, _), slot in numbers:
            slot.get(argument)
        for op in found.scalars:
            registers.lower(op)
        strips.emit()
        for (_, _, _, value), slot in numbers:
            slot.put(value)

    counted(registers, loop, iteration)
    for (_, _, result, _), slot in numbers:
        slot.get(result)
    registers.buffers.update({result: totals[argument] for argument, _, result, _ in rows if argument in totals})


def _total(op: tile.ReduceOp) -> SSAValue:
    """What a sum becomes with what it is added to."""
    (use,) = op.results_[0].uses
    return use.operation.results[0]


def _like(registers: Registers, buffer: Buffer) -> Buffer:
    return registers.pool.allocate(buffer.element, buffer.layout)


class _Emission:
    """The code of one loop's iteration."""

    def __init__(self, registers: Registers, found: Strips, sums: Sequence[_Sum]):
        self._registers, self._sums, self._layout = registers, sums, found.layout
        self._columns = to_source(found.sums[0])
        found.summing.settle(registers.buffers)
        copies = _bits_of(UNROLL_BUDGET // max(work(found.summing.needs), 1))
        along, beside = along_registers(found.sums[0]), axis_bits(found.layout, "register", 0)
        piece = min(len(beside), _bits_of(self._most()), copies)
        unrolled = min(len(along), STRIP_BITS, max(_bits_of(UNROLLED) - piece, 0), copies - piece)
        self._piece, self._pieces = beside[:piece], beside[piece:]
        self._strip, self._strips = along[:STRIP_BITS], along[STRIP_BITS:]
        self._unrolled = along[:unrolled]
        self._versions = mask_versions(registers, found.summing)
        for sum_ in sums:
            registers.orders.setdefault(sum_.op, set()).add(order_of(sum_.op, 1))

    def _most(self) -> int:
        """How many registers of each sum are added up at a time."""
        lanes, size = self._layout.in_size("lane"), max(sum_.total.element.size for sum_ in self._sums)
        held = ACCUMULATORS * self._registers.target.vector_bits // 8 // len(self._sums)
        return max(1, min(PIECE, held) // (lanes * size))

    @contextmanager
    def _along(self, bits: Sequence[int], within: Terms = ()) -> Generator[Terms]:
        """A loop over registers of the totals as far as programs are present. They differ by consecutive ``bits``, ``within``
        what outer loops give."""
        registers, builder, layout = self._registers, self._registers.builder, self._layout
        if not bits:
            with registers.scope():
                yield within
            return
        if registers.most > 1:
            each = layout.columns("register")[bits[0].bit_length() - 1]
            present = builder.zext(registers.present, I64)
            wanted = builder.mul(present, ir.Constant(I64, layout.shape[0] // registers.most))
            if within:
                slot = RegisterIndex(0, within).through(slots(layout)).value(builder)
                before = builder.mul(slot, ir.Constant(I64, layout.in_size("lane")))
                wanted = builder.sub(wanted, before)
            loop = Extent(registers, wanted).loop(each, 1 << len(bits))
        else:
            registers.note_walk(layout)
            loop = registers.loop(1 << len(bits))
        with loop as position:
            yield (*within, (Counter(position, len(bits)), tuple(bits)))

    @contextmanager
    def pieces(self) -> Generator[list[RegisterIndex]]:
        """A loop over the pieces of the totals; gives the registers of one."""
        with self._along(self._pieces) as terms:
            yield [RegisterIndex(f2.apply(self._piece, copy), terms) for copy in range(1 << len(self._piece))]

    def emit(self) -> None:
        """Adds the tiles of one iteration."""
        builder, bits, trips = self._registers.builder, self._strips, 1 << len(self._strips)
        if not bits:
            self._over_pieces((), None, None)
            return
        with self._registers.loop(trips) as position:
            first, last = (builder.icmp_unsigned("==", position, ir.Constant(I64, at)) for at in (0, trips - 1))
            self._over_pieces(((Counter(position, len(bits)), tuple(bits)),), first, last)

    def _over_pieces(self, strip: Terms, first: ir.Value | None, last: ir.Value | None) -> None:
        """Adds the rows of a strip. A piece in which masks cut off elements is added register by register."""

        def add(places: Sequence[RegisterIndex], unrolled: Sequence[int]) -> None:
            self._add(places, strip, unrolled, first, last)

        def one_by_one(terms: Terms) -> None:
            with self._along(self._piece, terms) as inner:
                in_versions([RegisterIndex(0, inner)], lambda: add([RegisterIndex(0, inner)], []))

        def in_versions(places: Sequence[RegisterIndex], ragged: Callable[[], None]) -> None:
            whole = partial(add, places, self._unrolled)
            if self._versions is None:
                whole()
            else:
                self._versions(self._index(places[-1], RegisterIndex(sum(self._strip), strip)), whole, ragged)

        with self.pieces() as places:
            in_versions(places, partial(one_by_one, places[0].terms))

    def _add(
        self,
        places: Sequence[RegisterIndex],
        strip: Terms,
        unrolled: Sequence[int],
        first: ir.Value | None,
        last: ir.Value | None,
    ) -> None:
        """Adds the rows of a strip at ``places``, to what is there unless it is the first, and to the totals if it is the last.
        So many rows as differ by the bits ``unrolled`` are added in one iteration."""
        registers, builder = self._registers, self._registers.builder
        sums = [
            (place, sum_, registers.entry.alloca(register_type(sum_.op.sources[0])))
            for place, sum_ in product(places, self._sums)
        ]
        for place, sum_, slot in sums:
            value: ir.Value = nothing(sum_.op.sources[0])
            if first is not None:
                value = builder.select(first, value, sum_.part.load(builder, place))
            builder.store(value, slot)
        looped = [bit for bit in self._strip if bit not in unrolled]
        with registers.loop(1 << len(looped)) if looped else nullcontext() as position:
            terms: Terms = () if position is None else ((Counter(position, len(looped)), tuple(looped)),)
            for row, (place, sum_, slot) in product(range(1 << len(unrolled)), sums):
                at = self._index(place, RegisterIndex(f2.apply(unrolled, row), (*strip, *terms)))
                value = registers.vector(sum_.op.sources[0], at)
                builder.store(self._added(sum_.op, builder.load(slot, typ=value.type), value), slot)

        def finish() -> None:
            for place, sum_, slot in sums:
                value = builder.load(slot, typ=register_type(sum_.op.sources[0]))
                sum_.total.store(builder, place, self._added(sum_.op, sum_.total.load(builder, place), value))

        if last is None:
            finish()
            return
        with builder.if_else(last) as (then, otherwise):
            with then:
                finish()
            with otherwise:
                for place, sum_, slot in sums:
                    sum_.part.store(builder, place, builder.load(slot, typ=register_type(sum_.op.sources[0])))

    def _index(self, place: RegisterIndex, row: RegisterIndex) -> RegisterIndex:
        """The register of a tile in a row, at a place of the totals."""
        at = place.through(self._columns)
        return RegisterIndex(at.const ^ row.const, (*row.terms, *at.terms))

    def _added(self, op: tile.ReduceOp, total: ir.Value, value: ir.Value) -> ir.Value:
        return evaluate(self._registers, op.combine.block, [total, value])[0]


def _bits_of(number: int) -> int:
    """The highest power of two that is not above a number, at least 1."""
    return max(number, 1).bit_length() - 1
