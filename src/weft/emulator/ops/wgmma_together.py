"""How the warps of a warpgroup wait for each other at wgmma.mma_async.

Threads wait at the instruction until all 128 threads of their warpgroup are there. The ISA demands that the four warps execute
it together (``.aligned``), but warps that waited for different things reach it at different times, and hardware lets them wait.
Threads that never arrive are a deadlock, whose message names the instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray, Mask
from weft.emulator.ops.fragments import Warps

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution

WARPS: Final = 4
"""Of a warpgroup."""

THREADS: Final = WARPS * WARP
"""Of a warpgroup."""


class Together:
    """The threads at one instruction."""

    def __init__(self, execution: Execution, site: int) -> None:
        self.execution = execution
        self.site = site
        self.whole = execution.block_warps % WARPS == 0
        self.key = f"{execution.program.instructions[site].opcode} {site}"

    def who(self, active: Active) -> tuple[Active, Warps]:
        """The threads of warpgroups that are complete now, and their warps (None for all there are); the others are parked."""
        execution = self.execution
        if active.full and self.whole:
            return active, None
        waiting = execution.extra(self.key, dict[str, Mask]).get("waiting")
        known = execution.extra("wgmma whole", dict[str, Active])
        if waiting is None and known.get("last") is active:  # as in a loop
            return active, active.warps
        here = active.mask if waiting is None else active.mask | waiting
        complete = self._complete(here)
        if waiting is not None and (joining := waiting & complete).any():
            self._leave(joining)
        if (late := active.mask & ~complete).any():
            self._park(active.narrow(late))
        chosen = here & complete
        found = active if (chosen == active.mask).all() else Active(chosen)
        known["last"] = found
        return found, None if found.full and self.whole else found.warps

    def _complete(self, here: Mask) -> Mask:
        """Threads all of whose warpgroup are here."""
        execution = self.execution
        blocks: Any = here.reshape(-1, execution.block_warps, WARP).all(axis=2)
        usable = execution.block_warps // WARPS * WARPS
        whole = np.zeros_like(blocks)
        groups: Any = blocks[:, :usable].reshape(-1, WARPS).all(axis=1)
        whole[:, :usable] = np.repeat(groups, WARPS).reshape(-1, usable)
        return np.repeat(whole.ravel(), WARP)

    def _park(self, active: Active) -> None:
        execution, site = self.execution, self.site
        execution.counters.executed(site, -active.warp_count, -active.count)
        state = execution.extra(self.key, dict[str, Mask])
        state["waiting"] = state.get("waiting", False) | active.mask
        no_thread = np.zeros(execution.threads, np.bool_)
        execution.park(active, site, self._why, lambda: no_thread, site)

    def _leave(self, joining: Mask) -> None:
        execution = self.execution
        state = execution.extra(self.key, dict[str, Mask])
        staying = state.pop("waiting") & ~joining
        if staying.any():
            state["waiting"] = staying
        taken = Active(joining)
        execution.counters.executed(self.site, taken.warp_count, taken.count)
        for parked in execution.parked:
            if parked.site == self.site:
                parked.active = parked.active.narrow(~joining)
        execution.parked = [parked for parked in execution.parked if parked.active]

    def _why(self) -> str:
        execution = self.execution
        name = execution.program.instructions[self.site].name
        waiting = Active(execution.extra(self.key, dict[str, Mask])["waiting"])
        warp = int(waiting.warps[0])
        same = [
            int(w) % execution.block_warps
            for w in waiting.warps
            if w // execution.block_warps == warp // execution.block_warps
        ]
        return f"warps {', '.join(map(str, same))} of a block wait at {name} for all 128 threads of their warpgroup"


def first_threads(execution: Execution, warps: Warps) -> IndexArray:
    """The first thread of each warpgroup made of these warps, ascending."""
    return np.arange(0, execution.threads, THREADS) if warps is None else warps[::WARPS] * WARP


def uniform(
    execution: Execution, site: int, values: NDArray[Any], warps: Warps, first: IndexArray, what: str
) -> NDArray[Any]:
    """The value that all threads of each warpgroup have, of (T,) values; a fault where they differ."""
    own = values if warps is None else values.reshape(-1, WARP)[warps]
    own = own.reshape(-1, THREADS)
    chosen = own[:, 0]
    differs = own != chosen[:, None]
    if differs.any():
        group, thread = (int(axis[0]) for axis in differs.nonzero())
        message = f"{what} must be the same in all threads of a warpgroup; this thread's differs from its first's"
        raise execution.fault(Undefined, message, site, int(first[group]) + thread)
    return chosen
