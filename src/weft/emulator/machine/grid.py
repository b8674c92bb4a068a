"""Which block of the grid is which: blocks are counted cluster by cluster, so that those of a cluster follow each other.

grid (4, 2), clusters (2, 1):     blocks 0 1 are (0, 0) (1, 0), blocks 2 3 are (2, 0) (3, 0), blocks 4 5 are (0, 1) (1, 1), ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Dim3: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Grid:
    """A grid of blocks in clusters, whose shape divides the grid's."""

    shape: Dim3
    cluster: Dim3 = (1, 1, 1)
    explicit: bool = False
    """Whether the launch, or the kernel, asked for clusters."""

    @property
    def blocks(self) -> int:
        return self.shape[0] * self.shape[1] * self.shape[2]

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @property
    def clusters(self) -> Dim3:
        """Clusters along each axis."""
        x, y, z = (g // c for g, c in zip(self.shape, self.cluster, strict=True))
        return x, y, z

    def rank(self, number: Any) -> Any:
        """The rank in its cluster of a block (or of an array of them)."""
        return number % self.cluster_size

    def within(self, number: Any) -> tuple[Any, Any, Any]:
        """The place of a block (or of an array of them) in its cluster."""
        return _axes(self.rank(number), self.cluster)

    def cluster_of(self, number: Any) -> tuple[Any, Any, Any]:
        """The index of its cluster."""
        return _axes(number // self.cluster_size, self.clusters)

    def index(self, number: Any) -> tuple[Any, Any, Any]:
        """The index of a block (or of an array of them), %ctaid."""
        pairs = zip(self.cluster_of(number), self.cluster, self.within(number), strict=True)
        x, y, z = (place * size + within for place, size, within in pairs)
        return x, y, z


def _axes(number: Any, shape: Dim3) -> tuple[Any, Any, Any]:
    x, y, _ = shape
    return number % x, number // x % y, number // (x * y)
