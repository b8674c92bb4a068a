"""Prefetches of rows that lie where a processor does not look: rows at loaded indices, and rows far apart.

Rows at loaded indices: sums of rows of a table, sparse products, gathers before a product.

    for k:  at = load(index + k)                      for k:  at = load(index + k)
            total += load(table + at * columns)               prefetch(table + load(index + k + D) * columns)
                                                              total += load(table + at * columns)

A processor fetches ahead where addresses ascend. It cannot where each row is at an index from memory, but the indices of later
iterations lie in memory already. So each load of a row prefetches the row that the loop reads some iterations later.

The index D iterations ahead may lie behind its array's end. It is read where its address is in the 4 KiB that the present index
is in: memory is protected by pages of at least that size, so the read cannot fail. Elsewhere the present index is read again.
What is read wrongly decides only upon a prefetch, which never fails.

A load of rows prefetches if

1. its loop is the innermost one, and the indices that its address depends on are loaded there, from addresses that move by a
   constant number of elements in each iteration (`weft.codegen.cpu.order.Steps`), without masks that may be false;
2. nothing else in its address moves with the loop, and what computes it from the indices cannot fail, as a division can;
3. rows have `ROW` bytes. To look ahead takes some ten instructions a row, and longer ones the processor fetches itself.

Rows far apart: a program takes every eighth row, say, and its neighbours the others.

    for row in range(program, rows, 8):  prefetch(x + (row + 16) * columns)
                                         .. load(x + row * columns) ..

A processor fetches ahead until the row ends, and waits for memory where the next one begins. So loads prefetch a row that the
loop takes soon, `NEXT_BYTES` ahead, on CPUs where that is faster (``prefetch-rows`` of `weft.target.TUNING`), if

1. a row is all that an iteration loads there, and is at least `ROW`'s least bytes long;
2. its address follows the counter of the innermost loop, moves by a number of elements known at run time, and can be computed
   ahead, as above;
3. the loop does not count one by one: rows that follow one another the processor fetches itself, and the prefetches would cost
   a tenth of the time and more;
4. no later register loop of the iteration loads the row again. Where an iteration goes over a row twice, the first time reads
   from memory, and prefetches are in the way; the second time reads from a cache.

If the second time stores to such a row, and not past the caches, it fetches the next one, too: of 777 columns, layer norm
backward takes 0.84 to 0.93 of the time that it took where the first time fetched what the second one stores to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.order import FAR, Steps, is_defined_in, steps_in
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.values import Key, Registers
from weft.codegen.emit.element import Element
from weft.codegen.llvm.types import I32, I64, POINTER, intrinsic
from weft.ir import tile
from weft.ir.direct import defining_op, operands_of
from weft.ir.types import dtype_of, is_tile, layout_of, shape_of
from weft.layout.algebra import f2

ROW: Final = range(128, 2049)
AHEAD_ROWS: Final = 16
AHEAD_BYTES: Final = 8 << 10
"""So many rows, and bytes of rows, are fetched ahead at most: a quarter of a first cache."""

NEXT_BYTES: Final = 8 << 10
"""So many bytes of rows far apart are fetched ahead at most, into the second cache, but always the next row."""

LINE: Final = 64
PAGE: Final = 4096
_LONGEST: Final = 64
"""The most ops between indices and an address."""

_HARMLESS: Final = frozenset({"add", "sub", "mul", "and", "or", "xor", "min", "max"})
_LOCALITY: Final = 3
_NEXT_LOCALITY: Final = 2
"""LLVM's numbers for the first cache, and for the second (LLVM Language Reference, "llvm.prefetch")."""


@dataclass(frozen=True)
class Lead:
    """How to look ahead of a load: the values of its loop that its address depends on through indices or the loop's counter, the
    loads of indices, each with the bytes by which its address moves in an iteration, and how many iterations to look ahead if one
    has all rows. ``loop`` is the one whose counter tells where later rows are, if it does."""

    following: frozenset[SSAValue]
    indices: Mapping[tile.LoadOp, int]
    rows: int
    ahead: int
    loop: scf.ForOp | None = None


def lead_of(op: tile.LoadOp | tile.StoreOp, contiguity: int, *, counted: bool = False) -> Lead | None:
    """How to look ahead of an access, of which so many elements are consecutive; None where it is not worth it or not possible.
    ``counted``: also to rows far apart, which a store is to."""
    loop, row = op.parent_op(), contiguity * dtype_of(op.pointer).itemsize
    loads = isinstance(op, tile.LoadOp)
    if not isinstance(loop, scf.ForOp) or (op.volatile if loads else op.release) is not None:
        return None
    found = _Found(loop)
    if loads and row in ROW and found.is_following(op.pointer) and found.possible:
        rows = max(prod(shape_of(index.result)) for index in found.indices)
        return Lead(frozenset(found.following), found.indices, rows, min(AHEAD_ROWS, AHEAD_BYTES // row))
    found = _Found(loop, counted=True)
    if not counted or row < ROW.start or not found.is_following(op.pointer) or not found.possible:
        return None
    if found.is_one_by_one() or steps_in(loop).of(op.pointer) != FAR or contiguity < prod(shape_of(op.pointer)):
        return None
    return Lead(frozenset(found.following), {}, 1, max(1, NEXT_BYTES // row if loads else 1), loop)


class _Found:
    """The values that an address depends on through indices which a loop loads, or through its counter if that is ``counted``."""

    def __init__(self, loop: scf.ForOp, *, counted: bool = False):
        self._counter = loop.body.block.args[0] if counted else None
        self._counted = counted
        self.following: set[SSAValue] = set()
        self.indices: dict[tile.LoadOp, int] = {}
        self.possible = True
        self._loop = loop
        self._steps: Steps = steps_in(loop)
        self._seen: dict[SSAValue, bool] = {}

    def is_following(self, value: SSAValue) -> bool:
        """Whether the value depends on indices; ``possible`` becomes false where it cannot be computed ahead."""
        if value in self._seen or not self.possible or not is_defined_in(value, self._loop):
            return self._seen.get(value, False)
        if value is self._counter:
            self._seen[value] = True
            self.following.add(value)
            return True
        op = defining_op(value)
        self.possible = op is not None and len(self._seen) < _LONGEST
        if op is None or not self.possible:
            return False
        if isinstance(op, tile.LoadOp):
            step = self._steps.of(op.pointer)
            self.possible = step is not None and 0 < step < FAR and not self._counted
            self.indices[op] = int(step or 0) * dtype_of(op.result).itemsize if self.possible else 0
            found = self.possible
        else:
            found = any([self.is_following(operand) for operand in operands_of(op)])
            self.possible = self.possible and (not found or _is_harmless(op))
        self._seen[value] = found
        if found:
            self.following.add(value)
        return found

    def is_one_by_one(self) -> bool:
        """Whether the loop takes rows that follow one another: it counts by 1, and nothing multiplies the number of a row. A loop
        whose step is known at run time only counts by 1, too, and multiplies by the step."""
        step = defining_op(self._loop.step)
        products = [
            op for value in self.following if isinstance(op := value.owner, tile.BinaryOp) and op.kind.data == "mul"
        ]
        return isinstance(step, tile.ConstantOp) and step.number == 1 and len(products) < 2


def _is_harmless(op: Operation) -> bool:
    """Whether an op that computes addresses may be given any numbers."""
    if isinstance(op, tile.BinaryOp):
        return op.kind.data in _HARMLESS and not dtype_of(op.result).is_float
    if isinstance(op, tile.CastOp):
        return not dtype_of(op.source).is_float and not dtype_of(op.result).is_float
    return isinstance(op, tile.AddPtrOp | tile.SplatOp | tile.SelectOp | tile.CompareOp) or tile.is_a(op, tile.View)


class RowsAhead:
    """Emits the prefetches of a kernel's loads."""

    def __init__(self, registers: Registers):
        self._registers = registers
        self._leads: dict[tile.LoadOp | tile.StoreOp, Lead | None] = {}

    def fetch(self, op: tile.LoadOp | tile.StoreOp, index: RegisterIndex, lane: int, run: int) -> None:
        """Prefetches what an access will reach some iterations later in one register, a ``run`` of elements from one lane on, if
        that begins a line of its row and the access looks ahead here."""
        registers = self._registers
        lead = self._lead(op)
        if lead is None or not _begins_line(op, index, lane):
            return
        if lead.loop is not None and not self._has_turn(op):
            return
        if any(each.mask is not None and each.mask not in registers.true_masks for each in lead.indices):
            return
        address = _Addresses(registers, lead).at(Key(op.pointer, index, lane, lead.ahead))
        first = lead.loop is None or isinstance(op, tile.StoreOp)
        self._prefetch(op, address, run, _LOCALITY if first else _NEXT_LOCALITY)

    def _has_turn(self, op: tile.LoadOp | tile.StoreOp) -> bool:
        """Whether the register loop that is being emitted is the one that looks ahead of an access to rows far apart."""
        later = self._registers.later
        if isinstance(op, tile.StoreOp):
            return op in later.writes and op not in self._registers.streams
        return not later.computes(op.result)

    def _lead(self, op: tile.LoadOp | tile.StoreOp) -> Lead | None:
        registers = self._registers
        if op not in self._leads:
            contiguity = max(registers.facts.axis[op.pointer].contiguity, default=1)
            counted = "prefetch-rows" in registers.target.enabled
            self._leads[op] = None if registers.options.checked else lead_of(op, contiguity, counted=counted)
        return self._leads[op]

    def _prefetch(self, op: tile.LoadOp | tile.StoreOp, address: ir.Value, run: int, locality: int) -> None:
        """Prefetches the lines of a run of elements."""
        builder, writes = self._registers.builder, isinstance(op, tile.StoreOp)
        how = [ir.Constant(I32, number) for number in (int(writes), locality, 1)]
        for distance in range(0, run * dtype_of(op.pointer).itemsize, LINE):
            place = builder.inttoptr(builder.add(address, ir.Constant(I64, distance)), POINTER)
            intrinsic(builder, "prefetch", [place, *how], ir.VoidType(), [POINTER])


@dataclass(frozen=True)
class _Addresses:
    """Computes values of later iterations."""

    registers: Registers
    lead: Lead

    def at(self, key: Key) -> ir.Value:
        """One lane, or a scalar, some iterations later."""
        return self.registers.demand(key, self._sources, self._emit)

    def _sources(self, key: Key) -> list[Key]:
        op = defining_op(key.value)
        if op is None or key.value not in self.lead.following or op in self.lead.indices:
            return []
        index = self.registers.through(op, key.at) if tile.is_a(op, tile.View) else key.at
        return [
            Key(operand, index, key.lane, key.ahead)
            if is_tile(operand)
            else Key(operand, RegisterIndex(), ahead=key.ahead)
            for operand in operands_of(op)
        ]

    def _emit(self, key: Key) -> ir.Value:
        registers, op = self.registers, defining_op(key.value)
        if self.lead.loop is not None and key.value is self.lead.loop.body.block.args[0]:
            return self._count(self.lead.loop)
        if op is None or key.value not in self.lead.following:
            return registers.lane(*key[:3]) if is_tile(key.value) else registers.scalar(key.value)
        if isinstance(op, tile.LoadOp):
            return self._index(op, key)
        operands = [self.at(each) for each in self._sources(key)]
        return (
            operands[0] if isinstance(op, tile.SplatOp) or tile.is_a(op, tile.View) else registers.compute(op, operands)
        )

    def _count(self, loop: scf.ForOp) -> ir.Value:
        """The counter of a loop some iterations later."""
        registers, builder = self.registers, self.registers.builder
        now, step = registers.scalar(loop.body.block.args[0]), registers.scalar(loop.step)
        return builder.add(now, builder.mul(step, ir.Constant(step.type, max(1, self.lead.ahead // self.lead.rows))))

    def _index(self, op: tile.LoadOp, key: Key) -> ir.Value:
        """An index, read ahead where that is in the page of the present one."""
        registers, builder, element = self.registers, self.registers.builder, Element(dtype_of(op.result))
        now = registers.lane(op.pointer, key.at, key.lane) if is_tile(op.pointer) else registers.scalar(op.pointer)
        iterations = max(1, self.lead.ahead * registers.parts // self.lead.rows)
        later = builder.add(now, ir.Constant(I64, iterations * self.lead.indices[op]))
        same = builder.icmp_unsigned("<", builder.xor(now, later), ir.Constant(I64, PAGE))
        place = builder.inttoptr(builder.select(same, later, now), POINTER)
        return element.from_storage(builder, builder.load(place, typ=element.storage_type(None), align=element.size))


def _begins_line(op: tile.LoadOp | tile.StoreOp, index: RegisterIndex, lane: int) -> bool:
    """Whether a lane of a register lies a number of lines behind the first element of its row, as far as the loops around the
    register do not decide."""
    layout = layout_of(op.pointer)
    offset = f2.apply(layout.columns("register"), index.const) ^ f2.apply(layout.columns("lane"), lane)
    return (offset & layout.shape[-1] - 1) * dtype_of(op.pointer).itemsize % LINE == 0
