"""The memory layout of a buffer that one register layout fills and others read.

A conversion through memory chooses its memory's layout for one store and one load (`ways.memory`). A buffer is filled by stores,
or by copies from global memory (``cp.async``), whose vectors are those of global memory too. It is read by any number of
layouts, often by ``ldmatrix``. Each pair of the writer and a reader proposes the memories of its best ways. `plan_buffer`
takes one with the widest copies, since narrower ones touch the sectors of global memory several times; of these the one in
which the copies and all reads together are cheapest.

Law: the copies and reads of the plan move every element to its place (`AccessPlan.store`, `AccessPlan.load`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.memory.banks import OFFSET
from weft.layout.planning.access import AccessPlan, plan_access, plan_vectors
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.matrix import Rows, Side
from weft.layout.planning.needs import Places
from weft.layout.planning.price import clocks
from weft.layout.planning.steps import Cost, total
from weft.layout.planning.ways.access_pairs import Division, Task, Way, all_ways, estimate
from weft.layout.planning.ways.memory import memory_columns

_TRIED: Final = 6
"""Memories that each reader proposes. More gave no cheaper buffer on the operands of any matrix instruction."""


Reader: TypeAlias = tuple[LinearLayout, int]
"""A layout, and the register bits that number its instructions last (`plan_access`)."""


@dataclass(frozen=True)
class BufferPlan:
    """A buffer's memory layout, the stores or copies into it, and the reads of each reader, in their order."""

    memory: LinearLayout
    stores: AccessPlan
    reads: tuple[AccessPlan, ...]

    @property
    def cost(self) -> Cost:
        """The tile is written once and read once by each reader."""
        return total([plan.cost for plan in (self.stores, *self.reads)])

    @property
    def addresses(self) -> int:
        """The registers of a thread for the addresses of all reads: one for each XOR (`AccessPlan.xors`)."""
        return sum(1 << sum(map(bool, plan.xors)) for plan in self.reads)


@lru_cache(maxsize=512)
def plan_buffer(
    writer: LinearLayout,
    readers: tuple[Reader, ...],
    bits: int,
    machine: MachineModel,
    copied: f2.Matrix | None = None,
    least: int = 0,
) -> BufferPlan:
    """The cheapest buffer for elements of ``bits``.

    ``copied``, for copies from global memory, are the register masks of the writer that move inside what a thread may copy at
    once, lowest address first; copies of fewer than ``least`` bits do not exist. `ValueError` where no memory allows a copy of
    that size.
    """
    warps = 1 << len(Places.of(writer).warp)
    best: tuple[int, float, int, int, BufferPlan] | None = None
    for memory in _memories(writer, copied, readers, bits, machine):
        stores = (
            plan_access(writer, memory, bits, machine, stores=True)
            if copied is None
            else plan_vectors(writer, memory, bits, machine, copied)
        )
        if stores.width < least:
            continue
        reads = tuple(plan_access(reader, memory, bits, machine, late=late) for reader, late in readers)
        found = BufferPlan(memory, stores, reads)
        price = clocks(found.cost, machine, warps)
        rank = 0 if copied is None else -stores.width, price, found.cost.instructions, found.addresses
        if best is None or rank < best[:4]:
            best = *rank, found
    if best is None:
        raise ValueError(f"plan_buffer: no memory layout lets a thread of {writer} copy {least} bits at once")
    return best[4]


def _memories(
    writer: LinearLayout,
    copied: f2.Matrix | None,
    readers: Sequence[Reader],
    bits: int,
    machine: MachineModel,
) -> Iterator[LinearLayout]:
    """Memory layouts worth trying: those of the best ways from the writer to each reader."""
    seen: set[f2.Matrix] = set()
    source = Side(*Places.of(writer))
    for reader, _ in readers or ((writer, 0),):
        destination = Side(*Places.of(reader))
        task = Task(source, destination, bits, machine, local=False, scratch=machine.scratch)
        ways = [way for way in all_ways(task) if copied is None or way.store == "vector"]
        best = sorted(ways, key=lambda one: _rank(task, one))[:_TRIED]
        if copied is not None:
            best = [_by_vectors(task, f2.compose(source.registers, copied)), *best]
        for way in best:
            columns = memory_columns(task, way)
            if columns not in seen:
                seen.add(columns)
                yield _memory(columns, writer)


def _by_vectors(task: Task, wanted: f2.Matrix) -> Way:
    """Copies of the full width, and loads of as much of it as a thread of the reader has in a row."""
    taken = next((at for at, bit in enumerate(wanted) if bit not in task.destination.registers), len(wanted))
    rows = Rows(wanted, len(wanted), taken)
    return Way("vector", "vector", rows, (), task.bits, Division(), task.source, task.destination)


def _rank(task: Task, way: Way) -> tuple[float, int]:
    cost = estimate(task, way)
    return clocks(cost, task.machine, task.warps), cost.instructions


def _memory(columns: f2.Matrix, tensor: LinearLayout) -> LinearLayout:
    return LinearLayout.from_columns({OFFSET: columns}, tensor.outputs)
