"""How long a batch of blocks may run: an endless loop ends with its lines, and the lanes that are in it.

A *step* executes one instruction for all threads that are at it together. When a batch has taken as many as are allowed, it goes
on for `WINDOW` segments that are written down. What runs then is the loop: the lines that were executed, and who executed them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from weft.emulator.errors import Endless
from weft.emulator.machine.active import WARP, Active, Mask
from weft.emulator.machine.execution import Execution

WINDOW: Final = 2048
"""Segments that are written down."""

WARPS_NAMED: Final = 4

ANY: Final = 1 << 62
"""More steps than there will be."""


class Steps:
    """The steps of a batch."""

    def __init__(self, execution: Execution, allowed: int | None) -> None:
        self._execution = execution
        self._allowed = allowed
        self.begin()

    def begin(self) -> None:
        """Another batch."""
        self.taken = 0
        self._left = WINDOW
        self._sites: set[int] = set()
        self._inside: Mask = np.zeros(self._execution.threads, np.bool_)

    @property
    def ended(self) -> bool:
        """Whether all have been taken."""
        return self._allowed is not None and self.taken >= self._allowed

    @property
    def left(self) -> int:
        """How many may still be taken."""
        return ANY if self._allowed is None else self._allowed - self.taken

    def write_down(self, sites: range, active: Active) -> None:
        """A segment that is executed after the end. Raises: Endless, when it is the last."""
        self._sites.update(sites)
        self._inside |= active.mask
        self._left -= 1
        if not self._left:
            raise self._endless()

    def _endless(self) -> Endless:
        execution = self._execution
        inside = Active(self._inside & ~execution.exited)
        instructions = execution.program.instructions
        sites = sorted(self._sites)
        lines = _ranges(sorted({instructions[site].line for site in sites}))
        sources = dict.fromkeys(str(i.source) for i in map(instructions.__getitem__, sites) if i.source is not None)
        written = f" ({', '.join(sources)})" if sources else ""
        who = "1 thread is" if inside.count == 1 else f"{inside.count} threads are"
        where = f"after {self._allowed:,} steps {who} still in PTX lines {lines}{written}"
        text = [f"{where}; Checks(steps=...) allows more"]
        for warp in inside.warps[:WARPS_NAMED].tolist():
            block = execution.block_of(warp * WARP)
            text.append(f"block {block}, warp {warp % execution.block_warps}: lanes 0x{int(inside.ballots[warp]):08x}")
        if (more := inside.warps.size - WARPS_NAMED) > 0:
            text.append(f"and {more} warps more")
        back = [site for site in sites if any(target <= site for target in execution.program.targets(site))]
        fault = execution.fault(Endless, "\n    ".join(text), (back or sites)[-1], int(inside.index[0]))
        assert isinstance(fault, Endless)
        return fault


def _ranges(lines: list[int]) -> str:
    """``3 to 6, 9``."""
    begins = [lines[0], *(b for a, b in pairwise(lines) if b > a + 1)]
    ends = [*(a for a, b in pairwise(lines) if b > a + 1), lines[-1]]
    return ", ".join(f"{a} to {b}" if a != b else str(a) for a, b in zip(begins, ends, strict=True))
