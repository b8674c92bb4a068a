"""Special registers (PTX ISA 10): their values in the emulator.

Clocks count instructions of the warp, so they are deterministic. A block is on the SM of its resident slot. The ISA does not
say what is where in the system's part of shared memory: %reserved_smem_offset_0 is its begin here, %reserved_smem_offset_1 its
middle. %envreg1 and %envreg2 have the address of a cooperative launch's workspace, the high half first, as CUDA's driver has
it; the other %envreg are 0, and so are performance counters (%pm) and %current_graph_exec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution

_AXES: Final = "xyz"

CLOCKS: Final = {"%clock": (np.uint32, 0), "%clock_hi": (np.uint32, 32), "%clock64": (np.uint64, 0)}
CLOCKS_GLOBAL: Final = {
    "%globaltimer": (np.uint64, 0),
    "%globaltimer_lo": (np.uint32, 0),
    "%globaltimer_hi": (np.uint32, 32),
}


VECTORS: Final = (
    *("%tid", "%ntid", "%ctaid", "%nctaid"),
    *("%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"),
)
"""Registers of four components, the last of which is 0."""

_ZEROS: Final[dict[str, np.generic]] = {
    **dict.fromkeys((*(f"{name}.w" for name in VECTORS), *(f"%envreg{i}" for i in range(32))), np.uint32(0)),
    **dict.fromkeys((f"%pm{i}" for i in range(8)), np.uint32(0)),
    **dict.fromkeys((*(f"%pm{i}_64" for i in range(8)), "%current_graph_exec"), np.uint64(0)),
}


class Special:
    """The values of the special registers, by name: arrays over the threads, or scalars."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        reserved = execution.memory.reserved_shared
        grid, clusters = execution.grid, execution.memory.clusters
        base = np.uint32(0) if clusters is None else clusters.base.astype(np.uint32)
        self.values: dict[str, NDArray[Any] | np.generic] = {
            **_ZEROS,
            **execution.geometry.special,
            "%nwarpid": np.uint32(64),
            "%nsmid": np.uint32(execution.blocks),
            "%gridid": np.uint64(0),
            "%dynamic_smem_size": np.uint32(execution.memory.dynamic_shared),
            "%total_smem_size": np.uint32(execution.memory.shared_bytes - reserved),
            "%aggr_smem_size": np.uint32(execution.memory.shared_bytes),
            "%reserved_smem_offset_begin": base,
            "%reserved_smem_offset_end": base + np.uint32(reserved),
            "%reserved_smem_offset_cap": np.uint32(reserved),
            "%reserved_smem_offset_0": base,
            "%reserved_smem_offset_1": base + np.uint32(reserved // 2),
            "%cluster_nctarank": np.uint32(grid.cluster_size),
            "%is_explicit_cluster": np.bool_(grid.explicit),
        }
        for i, axis in enumerate(_AXES):
            self.values[f"%ntid.{axis}"] = np.uint32(execution.block_shape[i])
            self.values[f"%nctaid.{axis}"] = np.uint32(grid.shape[i])
            self.values[f"%nclusterid.{axis}"] = np.uint32(grid.clusters[i])
            self.values[f"%cluster_nctaid.{axis}"] = np.uint32(grid.cluster[i])
            self.values[f"%ctaid.{axis}"] = np.zeros(execution.threads, np.uint32)
            self.values[f"%clusterid.{axis}"] = np.zeros(execution.threads, np.uint32)

    def set_workspace(self, address: int) -> None:
        """A cooperative launch has its workspace here."""
        self.values["%envreg1"], self.values["%envreg2"] = np.uint32(address >> 32), np.uint32(address & 0xFFFF_FFFF)

    def place(self, first_block: int) -> None:
        """Sets the block indices of a batch that starts at a block of this number."""
        blocks, grid = self.execution.blocks, self.execution.grid
        numbers = np.arange(first_block, first_block + blocks)
        for name, found in (("ctaid", grid.index(numbers)), ("clusterid", grid.cluster_of(numbers))):
            for axis, values in zip(_AXES, found, strict=True):
                array = self.values[f"%{name}.{axis}"]
                assert isinstance(array, np.ndarray)
                array.reshape(blocks, -1)[...] = values[:, None]

    def clock(self, name: str) -> NDArray[Any] | None:
        """A clock's value now, (T,); None if ``name`` is no clock. A global timer counts the instructions of all warps."""
        if name in CLOCKS:
            kind, shift = CLOCKS[name]
            return (self.execution.issued >> shift)[self.execution.warp].astype(kind)
        if name in CLOCKS_GLOBAL:
            kind, shift = CLOCKS_GLOBAL[name]
            total = int(self.execution.issued.sum()) >> shift
            return np.full(self.execution.threads, total & np.iinfo(kind).max, kind)
        return None
