"""Tiles that are laid out anew between what loads and what stores them: group by group, in registers.

    load 64x64 into a buffer; turn it into another, 16x16 by 16x16; store 64x64     before
    for each 16x16: load 16 registers, turn them, store 16 registers                now

A tile of 64x64 float32 and its turned copy are as large as the first cache, and while one of three loops waits for memory the
others have nothing to do. Transposes of float32 took 0.6 to 0.75 of the time that they took through buffers
(docs/benchmarks/memory.md). The conversion counts groups so that those which follow one another store to the same rows.

A conversion goes group by group, together with the register loop before and the one behind it, if

1. *Nothing else.* The first loop does nothing but compute the tile, of what it loads and the kernel does not change, the second
   nothing but store. Nothing else reads the tile or the turned one.
2. *Lines.* Each register of the accesses is one run of memory, of at least a cache line. Rows that lie a power of two apart
   share few sets of a cache, and the other half of a line is gone when the next group wants it: 2048x2048 int16 took 1.2 times as
   long.
3. *Registers.* The CPU's vectors have a line. With smaller ones a group goes through memory anyway, and with all of its loads
   before its stores: with AVX2 float64 took 1.3 times as long, and float32 0.5 to 2.
4. *Short bodies.* All registers of a group are within the budget of unrolled loops (`weft.codegen.cpu.loops.UNROLL_BUDGET`).
5. *One test.* Scalar tests tell whether all masks of a group are true (`weft.codegen.cpu.versions`).

A group at the end of rows, where they are not, is loaded and stored by the loops of its registers, through the buffers. Turned
tiles are not stored past the caches (`weft.codegen.cpu.streaming`): that took 0.86 to 1.04 of the time for 4096x4096 float32, and
1.07 to 1.6 for 4100x4100, whose lines groups do not fill.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import Final, Self

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.cost import work
from weft.codegen.cpu.exchange import shuffled, shuffles_of
from weft.codegen.cpu.loops import UNROLL_BUDGET, Terms
from weft.codegen.cpu.placement import reads
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.runs import runs
from weft.codegen.cpu.schedule import Item, RegisterLoop, Schedule, identity
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import mask_versions
from weft.codegen.emit.element import element_of_value
from weft.ir import tile
from weft.ir.types import dtype_of, is_tile, layout_of
from weft.layout import RegisterMap, Shuffles

LINE: Final = 64
"""The bytes of a cache line."""


@dataclass(frozen=True)
class Turn:
    """A conversion and the loops around it: one computes what it reads, one stores what it gives."""

    before: RegisterLoop
    op: tile.ConvertLayoutOp
    behind: RegisterLoop
    step: Shuffles

    @property
    def loops(self) -> tuple[RegisterLoop, RegisterLoop]:
        """Both loops, in their order."""
        return self.before, self.behind

    @property
    def stores(self) -> list[tile.StoreOp]:
        """What stores the turned tile."""
        return [root for root in self.behind.roots if isinstance(root, tile.StoreOp)]


def items_or_turns(registers: Registers, schedule: Schedule) -> Iterator[tuple[Item | Turn, list[Item]]]:
    """The items of a schedule, each with the items behind it. A `Turn` takes the place of three items."""
    at, items = 0, schedule.items
    while at < len(items):
        found = _turn(registers, schedule, items[at : at + 3])
        one = items[at]
        at += 1 if found is None else 3
        yield found or one, items[at:]


def _turn(registers: Registers, schedule: Schedule, three: list[Item]) -> Turn | None:
    if len(three) < 3 or registers.target.vector_bits < 8 * LINE:
        return None
    before, op, behind = three
    if not (isinstance(before, RegisterLoop) and isinstance(behind, RegisterLoop)):
        return None
    if not isinstance(op, tile.ConvertLayoutOp) or not _is_alone(schedule, before, op, behind):
        return None
    step = shuffles_of(layout_of(op.source), layout_of(op.result), element_of_value(op.result))
    sides = (before, step.source.offsets), (behind, step.destination.offsets)
    for loop, _ in sides:
        loop.settle(registers.buffers)
    if any(len(each) > 1 for _, offsets in sides for each in offsets):
        return None
    if any(len(offsets) * work(loop.needs) > UNROLL_BUDGET for loop, offsets in sides):
        return None
    for loop, _ in sides:
        accesses, versions = _accesses(loop, registers.buffers), mask_versions(registers, loop)
        known = () if versions is None else versions.masks
        if any(runs(registers, each.pointer).run * dtype_of(each.pointer).itemsize < LINE for each in accesses):
            return None
        if any(each.mask is not None and each.mask not in known for each in accesses):
            return None
    return Turn(before, op, behind, step)


def _is_alone(schedule: Schedule, before: RegisterLoop, op: tile.ConvertLayoutOp, behind: RegisterLoop) -> bool:
    """Rule 1."""
    if before.roots or before.kept != [op.source] or behind.kept:
        return False
    if not all(isinstance(root, tile.StoreOp) and root.release is None for root in behind.roots):
        return False
    if behind.needs.get(op.result) != {identity(behind.layout)}:
        return False
    allowed = ((op.source, (before, op)), (op.result, (behind,)))
    return all(
        item in readers or not reads(item, value, schedule.buffered)
        for value, readers in allowed
        for item in schedule.items
    )


def _accesses(loop: RegisterLoop, buffered: Container[SSAValue]) -> list[tile.LoadOp | tile.StoreOp]:
    """What a loop loads and stores."""
    loads = [value.owner for value in loop.needs if is_tile(value) and value not in buffered]
    return [op for op in (*loads, *loop.roots) if isinstance(op, tile.LoadOp | tile.StoreOp)]


def emit_turn(registers: Registers, turn: Turn) -> None:
    """Emits a turn."""
    step, streams = turn.step, registers.streams
    registers.streams = {}
    for loop in turn.loops:
        loop.settle(registers.buffers)
        registers.note_walk(loop.layout)
    with registers.loop(step.groups) if step.groups > 1 else nullcontext() as counter:
        source, target = (_Side.of(maps, counter) for maps in (step.source, step.destination))
        with _unless_beyond(registers, turn, target):
            _emit_group(registers, turn, source, target)
    registers.streams = streams


@dataclass(frozen=True)
class _Side:
    """The registers of a group on one side of the conversion: they differ by ``bits``."""

    at: Sequence[RegisterIndex]
    bits: int
    within: Terms

    @classmethod
    def of(cls, registers: RegisterMap, counter: ir.Value | None) -> Self:
        """Those of the group that a loop counts, or of the only one."""
        columns = registers.group_columns
        within = () if counter is None else ((Counter(counter, len(columns)), columns),)
        offsets = [offset for (offset,) in registers.offsets]
        return cls([RegisterIndex(offset, within) for offset in offsets], reduce(int.__or__, offsets), within)


@contextmanager
def _unless_beyond(registers: Registers, turn: Turn, target: _Side) -> Generator[None]:
    """Emits code that is skipped for a group of which nothing is stored."""
    versions = mask_versions(registers, turn.behind)
    if versions is None or versions.deciding is None:
        yield
        return
    with registers.builder.if_then(versions.begins(RegisterIndex(0, target.within)), likely=True), registers.scope():
        yield


def _emit_group(registers: Registers, turn: Turn, source: _Side, target: _Side) -> None:
    """Loads, turns and stores a group."""
    builder, op, step = registers.builder, turn.op, turn.step
    element = element_of_value(op.result)
    tests: list[ir.Value] = []
    masks: set[SSAValue] = set()
    for loop, side in ((turn.before, source), (turn.behind, target)):
        if (versions := mask_versions(registers, loop)) is not None:
            tests += versions.tests(RegisterIndex(side.bits, side.within))
            masks.update(versions.masks)

    def load() -> list[ir.Value]:
        return [registers.vector(op.source, at) for at in source.at]

    def load_ragged() -> list[ir.Value]:
        registers.item(turn.before, source.bits, source.within)
        del registers.buffers[op.source]  # nothing else reads it, and whole groups do not
        buffer = registers.home(op.source)
        return [buffer.load(builder, at) for at in source.at]

    def store(vectors: Sequence[ir.Value]) -> None:
        for at, vector in zip(target.at, vectors, strict=True):
            registers.remember(op.result, at, vector)
            for root in turn.stores:
                registers.store_register(root, at)

    def store_ragged(vectors: Sequence[ir.Value]) -> None:
        buffer = registers.home(op.result)
        for at, vector in zip(target.at, vectors, strict=True):
            buffer.store(builder, at, vector)
        registers.buffers[op.result] = buffer
        registers.item(turn.behind, target.bits, target.within)
        del registers.buffers[op.result]

    if not tests:
        with registers.scope():
            store(shuffled(builder, step, load(), element))
        return
    whole = reduce(builder.and_, tests)
    ways: list[tuple[list[ir.Value], ir.Block]] = []
    with builder.if_else(whole, likely=True) as (plain, ragged):
        with plain, registers.knowing(true=frozenset(masks)):
            ways.append((load(), builder.block))
        with ragged, registers.scope():
            ways.append((load_ragged(), builder.block))
    loaded: list[ir.Value] = []
    for pair in zip(*(vectors for vectors, _ in ways), strict=True):
        phi = builder.phi(pair[0].type)
        for value, (_, block) in zip(pair, ways, strict=True):
            phi.add_incoming(value, block)
        loaded.append(phi)
    turned = shuffled(builder, step, loaded, element)
    with builder.if_else(whole, likely=True) as (plain, ragged):
        with plain, registers.knowing(true=frozenset(masks)):
            store(turned)
        with ragged, registers.scope():
            store_ragged(turned)
