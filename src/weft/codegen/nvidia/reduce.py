"""Reductions: the steps of a `ReducePlan`, each combining whole files.

A combine function that does not commute is called with the lower lane's values first. So all threads with copies of a result
compute it from the same operands in the same order, and have equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from llvmlite import ir

from weft.codegen.emit.regions import commutes
from weft.codegen.llvm.types import I32
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.combine import Combining
from weft.codegen.nvidia.files import (
    WORD,
    File,
    count_of,
    of_scalars,
    scalar,
    scalars,
    take,
)
from weft.codegen.nvidia.threads import Threads
from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.layout.algebra import f2
from weft.layout.planning.combining import CombineStep, Convert
from weft.layout.planning.reduce import Butterfly, Halve, InThread, Redux
from weft.transforms.nvidia.scratch import reduce_plan


class Reduction(Combining[tile.ReduceOp]):
    """One reduction being carried out; the state is one file for each tensor."""

    def __init__(self, threads: Threads, op: tile.ReduceOp):
        super().__init__(threads, op)
        self._ordered = not (commutes(op) or _is_extreme(op))

    def run(self) -> None:
        """Emits the reduction and enters its results."""
        files = [self._threads.files[source] for source in self._op.sources]
        for step in reduce_plan(self._op, self._threads.target.model).steps:
            files = _RUN[type(step)](self, step, files)
        for result, file in zip(self._op.results_, files, strict=True):
            if shape_of(result):
                self._threads.files[result] = file
            else:
                self._threads.scalars[result] = scalar(self._threads.builder, file, 0)

    def in_thread(self, step: InThread, files: list[File]) -> list[File]:
        """Each thread combines its own registers."""
        builder = self._threads.builder
        place = {register: register for register in range(count_of(files[0]))}
        # Neighbours first: partial results come about as soon as a few registers are there.
        for column in sorted(step.combined):
            pairs = dict.fromkeys((place[r], place[r ^ column]) for r in sorted(place) if r < r ^ column)
            low, high = ([take(builder, file, [pair[i] for pair in pairs]) for file in files] for i in (0, 1))
            files = self.combined(low, high)
            numbers = {each: at for at, pair in enumerate(pairs) for each in pair}
            place = {register: numbers[at] for register, at in place.items()}
        kept = [place[f2.apply(step.kept, r)] for r in range(1 << len(step.kept))]
        return [take(builder, file, kept) for file in files]

    def butterfly(self, step: Butterfly, files: list[File]) -> list[File]:
        """All registers are combined with those of the lane across a bit."""
        return self._combine_lanes(step.lane, files, self.across_lanes(files, step.lane))

    def _combine_lanes(self, lane: int, mine: list[File], other: list[File]) -> list[File]:
        """Combines with the partner's, the lower lane's values first where that matters."""
        if not self._ordered:
            return self.combined(mine, other)
        builder, upper = self._threads.builder, self._threads.thread_bit(lane)
        pairs = list(zip(mine, other, strict=True))
        first = [tuple(builder.select(upper, b, a) for a, b in zip(x, y, strict=True)) for x, y in pairs]
        second = [tuple(builder.select(upper, a, b) for a, b in zip(x, y, strict=True)) for x, y in pairs]
        return self.combined(first, second)

    def redux(self, step: Redux, files: list[File]) -> list[File]:
        """All lanes' registers are combined by one instruction each."""
        only = self._op.single_op
        assert only is not None, "the plan has redux.sync for single ops only"
        dtype, builder = dtype_of(only.result), self._threads.builder
        found: list[ir.Value] = []
        for value in scalars(builder, files[0]):
            word = value if dtype.bits == WORD else (builder.sext if dtype.signed else builder.zext)(value, I32)
            reduced = instructions.reduce_lanes(builder, only.kind.data, word, signed=dtype.signed)
            found.append(reduced if dtype.bits == WORD else builder.trunc(reduced, value.type))
        return [of_scalars(builder, found)]

    def halve(self, step: Halve, files: list[File]) -> list[File]:
        """Half of the registers are kept and combined with what the lane across a bit has of them."""
        builder, upper = self._threads.builder, self._threads.thread_bit(step.lane)
        low = [r for r in range(step.registers) if not r >> step.bit & 1]
        kept: list[File] = []
        sent: list[File] = []
        for file in files:
            halves = take(builder, file, low), take(builder, file, [r | 1 << step.bit for r in low])
            kept.append(tuple(builder.select(upper, b, a) for a, b in zip(*halves, strict=True)))
            sent.append(tuple(builder.select(upper, a, b) for a, b in zip(*halves, strict=True)))
        return self._combine_lanes(step.lane, kept, self.across_lanes(sent, step.lane))


def _is_extreme(op: tile.ReduceOp) -> bool:
    """Whether the region is one minimum or maximum that PTX has an instruction for: it takes -0 to be below +0, so that its
    operands may be exchanged."""
    only = op.single_op
    if only is None:
        return False
    return only.kind.data in ("min", "max") or (only.kind.data in tile.TIED_ZEROS and dtype_of(only.result).bits < 64)


_RUN: Final[Mapping[type[CombineStep], Callable[[Reduction, Any, list[File]], list[File]]]] = {
    InThread: Reduction.in_thread,
    Butterfly: Reduction.butterfly,
    Halve: Reduction.halve,
    Redux: Reduction.redux,
    Convert: Reduction.convert,
}
