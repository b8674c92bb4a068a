"""How a register's lanes meet memory: runs of lanes whose addresses ascend by one element.

A run is as long as the layout walks one dimension and the pointers are known to be contiguous along it. Layout rules price
accesses by it, and the code generator emits one vector access a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from weft.layout.algebra.linear_layout import LinearLayout


@dataclass(frozen=True)
class Runs:
    """How a register's lanes meet memory: ``run`` consecutive elements from each lane of ``starts``; ``lane_of`` says where
    each of the register's lanes finds its element among those, run after run."""

    run: int
    starts: tuple[int, ...]
    lane_of: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many different elements the register has."""
        return self.run * len(self.starts)

    @property
    def identity(self) -> bool:
        """Whether lane i is element i."""
        return self.lane_of == tuple(range(self.elements))


def runs_of(layout: LinearLayout, contiguity: Sequence[int]) -> Runs:
    """The runs of a register under a layout, given the pointers' contiguity along each dimension (powers of two)."""
    return _runs_of(layout, tuple(contiguity))


@lru_cache(maxsize=1024)
def _runs_of(layout: LinearLayout, contiguity: tuple[int, ...]) -> Runs:
    lanes = layout.columns("lane")
    run_bits = 0
    stride = 1
    for size, contiguous in zip(reversed(layout.shape), reversed(contiguity), strict=True):
        bits = 0
        while bits < len(lanes) and lanes[bits] == stride << bits and 2 << bits <= min(size, contiguous):
            bits += 1
        run_bits = max(run_bits, bits)
        stride *= size
    rest = [j for j in range(run_bits, len(lanes)) if lanes[j]]
    starts = tuple(sum(1 << j for i, j in enumerate(rest) if k >> i & 1) for k in range(1 << len(rest)))
    low = (1 << run_bits) - 1
    where = {start: i << run_bits for i, start in enumerate(starts)}
    keep = sum(1 << j for j in rest)
    lane_of = tuple(where[lane & keep] + (lane & low) for lane in range(1 << len(lanes)))
    return Runs(1 << run_bits, starts, lane_of)
