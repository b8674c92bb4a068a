"""What reductions and scans share: a combine region on whole files, files of other lanes, and conversions of partial results.

Several tensors combined together take the same steps. Their plan is that of the widest element; narrower ones travel in elements
of that width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from llvmlite import ir

from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import like
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.exchange import Exchange
from weft.codegen.nvidia.files import File, count_of, element_type, from_words, words_of
from weft.codegen.nvidia.threads import Threads
from weft.ir import tile
from weft.layout.planning.combining import Convert
from weft.layout.planning.steps import LaneExchange, Move, Parallel, Step
from weft.transforms.nvidia.scratch import combining_bits, scratch_of

Op = TypeVar("Op", tile.ReduceOp, tile.ScanOp)


class Combining(Generic[Op]):
    """An op with a combine region being carried out; the state is one file for each tensor."""

    def __init__(self, threads: Threads, op: Op):
        self._threads = threads
        self._op: Op = op
        self._elements = [element_of_value(source) for source in op.sources]
        self._base = scratch_of(op)
        self._used_scratch = False

    def combined(self, first: Sequence[File], second: Sequence[File]) -> list[File]:
        """The combine function on whole files, vector by vector."""
        chunks = [
            evaluate(self._threads, self._op.combine.block, [*accumulators, *elements])
            for accumulators, elements in zip(zip(*first, strict=True), zip(*second, strict=True), strict=True)
        ]
        return [tuple(file) for file in zip(*chunks, strict=True)]

    def across_lanes(self, files: Sequence[File], bit: int) -> list[File]:
        """The files of the lane whose number differs in one bit."""
        return self._moved(files, lambda builder, word: instructions.shuffle_bfly(builder, word, 1 << bit))

    def from_lane(self, files: Sequence[File], lane: ir.Value) -> list[File]:
        """The files of lane ``lane``; of its number the lowest five bits count."""
        return self._moved(files, lambda builder, word: instructions.shuffle_idx(builder, word, lane))

    def from_distance(
        self, files: Sequence[File], distance: int, width: int, above: bool
    ) -> tuple[list[File], ir.Value]:
        """The files of the lane ``distance`` below (or above) among ``width`` lanes, and whether there is one; else the own."""
        found: list[ir.Value] = []

        def shuffle(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
            moved, there = instructions.shuffle_along(builder, word, distance, width, above)
            found.append(there)
            return moved

        return self._moved(files, shuffle), found[0]

    def _moved(self, files: Sequence[File], shuffle: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> list[File]:
        builder = self._threads.builder
        found: list[File] = []
        for file, element in zip(files, self._elements, strict=True):
            stored = tuple(element.to_storage(builder, chunk) for chunk in file)
            words = [shuffle(builder, word) for word in words_of(builder, stored)]
            got = from_words(builder, words, element_type(stored), count_of(file))
            found.append(tuple(element.from_storage(builder, chunk) for chunk in got))
        return found

    def convert(self, step: Convert, files: list[File]) -> list[File]:
        """Partial results change places."""
        return [self._converted(step, file, element) for file, element in zip(files, self._elements, strict=True)]

    def _converted(self, step: Convert, file: File, element: Element) -> File:
        """One tensor after the conversion; narrower elements than the plan's travel in its width."""
        builder = self._threads.builder
        bits = combining_bits(self._op)
        if step.plan.scratch is not None:
            if self._used_scratch:
                instructions.barrier(builder, "block")
            self._used_scratch = True
        stored = tuple(element.to_storage(builder, chunk) for chunk in file)
        own, narrow, wide = element_type(stored), ir.IntType(8 * element.size), ir.IntType(bits)
        widens = 8 * element.size < bits
        if widens:
            stored = tuple(
                builder.zext(builder.bitcast(chunk, like(chunk, narrow)), like(chunk, wide)) for chunk in stored
            )
        words = Exchange(self._threads, self._base).run(step.plan.steps, words_of(builder, stored))
        moved = from_words(builder, words, element_type(stored), registers_after(step.plan.steps, count_of(file)))
        if widens:
            moved = tuple(
                builder.bitcast(builder.trunc(chunk, like(chunk, narrow)), like(chunk, own)) for chunk in moved
            )
        return tuple(element.from_storage(builder, chunk) for chunk in moved)


def registers_after(steps: Sequence[Step], registers: int) -> int:
    """How many registers a thread holds after the steps of a conversion, if it held ``registers`` before."""
    for step in steps:
        if isinstance(step, Move):
            registers = 1 << len(step.registers)
        elif isinstance(step, LaneExchange):
            registers = 1 << step.registers
        elif isinstance(step, Parallel):
            registers = 2 * registers_after(step.stays, registers // 2)
    return registers
