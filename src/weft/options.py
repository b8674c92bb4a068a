"""What changes a kernel's code besides the kernel itself, its signature and the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


class Phase:
    """Which part of a kernel is compiled: all of it; of one that sums in parts (`weft.transforms.split_sums`), what adds up a
    part, or what comes behind."""

    WHOLE: Final = ""
    PARTS: Final = "parts"
    TOTALS: Final = "totals"


@dataclass(frozen=True)
class Options:
    """The options of one compilation; the cache puts all of them into its key.

    ``checked`` tests every access against the argument arrays. ``disjoint`` promises that the arrays passed do not overlap,
    so that a load may move past a store to another argument. ``launch`` holds the launch options by name and value
    (``num_warps``, ``num_stages``, ...) that differ from their defaults; a machine uses those that concern it. ``phase`` is one
    of `Phase`'s.
    """

    checked: bool = False
    disjoint: bool = False
    launch: tuple[tuple[str, Any], ...] = ()
    phase: str = Phase.WHOLE

    @property
    def warps(self) -> int:
        """The warps of a block."""
        return dict(self.launch).get("num_warps", 4)

    @property
    def stages(self) -> int:
        """The iterations of a loop that are under way together; of a loop that says nothing else."""
        return dict(self.launch).get("num_stages", 3)

    @property
    def blocks(self) -> int:
        """The blocks of a cluster, which run one program together."""
        return dict(self.launch).get("num_ctas", 1)

    @property
    def asserts(self) -> bool | None:
        """Whether assertions are compiled; None: as the kernel says."""
        return dict(self.launch).get("debug")

    @property
    def overflow(self) -> bool:
        """Whether kernels with assertions also assert that no sum, difference or product of integers overflows."""
        return dict(self.launch).get("sanitize_overflow", True)

    @property
    def fusion(self) -> bool | None:
        """Whether a product may be added without being rounded first; None: as is usual on the machine, yes on a GPU, no on a
        CPU."""
        return dict(self.launch).get("enable_fp_fusion")

    @property
    def reassociation(self) -> bool:
        """Whether sums of floats may be added up in any order, also in one that depends on threads. On a GPU atomics do so in any
        case."""
        return dict(self.launch).get("enable_fp_reassociation", False)

    @property
    def most_registers(self) -> int | None:
        """The registers that a thread may have at most; None: as many as the machine has."""
        return dict(self.launch).get("maxnreg")
