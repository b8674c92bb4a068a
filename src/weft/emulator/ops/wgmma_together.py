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
from weft.emulator.machine.active import WARP, Active, Index, Mask
from weft.emulator.ops.fragments import Warps

if TYPE_CHECKING:
    from weft.emulator.machine.machine import Machine

WARPS: Final = 4
"""Of a warpgroup."""

THREADS: Final = WARPS * WARP
"""Of a warpgroup."""


class Together:
    """The threads at one instruction."""

    def __init__(self, machine: Machine, site: int) -> None:
        self.machine = machine
        self.site = site
        self.whole = machine.block_warps % WARPS == 0
        self.key = f"{machine.program.instructions[site].opcode} {site}"

    def who(self, active: Active) -> tuple[Active, Warps]:
        """The threads of warpgroups that are complete now, and their warps (None for all there are); the others are parked."""
        machine = self.machine
        if active.full and self.whole:
            return active, None
        waiting = machine.extra(self.key, dict[str, Mask]).get("waiting")
        known = machine.extra("wgmma whole", dict[str, Active])
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
        machine = self.machine
        blocks: Any = here.reshape(-1, machine.block_warps, WARP).all(axis=2)
        usable = machine.block_warps // WARPS * WARPS
        whole = np.zeros_like(blocks)
        groups: Any = blocks[:, :usable].reshape(-1, WARPS).all(axis=1)
        whole[:, :usable] = np.repeat(groups, WARPS).reshape(-1, usable)
        return np.repeat(whole.ravel(), WARP)

    def _park(self, active: Active) -> None:
        machine, site = self.machine, self.site
        machine.counters.executed(site, -active.warp_count, -active.count)
        state = machine.extra(self.key, dict[str, Mask])
        state["waiting"] = state.get("waiting", False) | active.mask
        nobody = np.zeros(machine.threads, np.bool_)
        machine.park(active, site, self._why, lambda: nobody, site)

    def _leave(self, joining: Mask) -> None:
        machine = self.machine
        state = machine.extra(self.key, dict[str, Mask])
        staying = state.pop("waiting") & ~joining
        if staying.any():
            state["waiting"] = staying
        taken = Active(joining)
        machine.counters.executed(self.site, taken.warp_count, taken.count)
        for parked in machine.parked:
            if parked.site == self.site:
                parked.active = parked.active.narrow(~joining)
        machine.parked = [parked for parked in machine.parked if parked.active]

    def _why(self) -> str:
        machine = self.machine
        name = machine.program.instructions[self.site].name
        waiting = Active(machine.extra(self.key, dict[str, Mask])["waiting"])
        warp = int(waiting.warps[0])
        same = [
            int(w) % machine.block_warps
            for w in waiting.warps
            if w // machine.block_warps == warp // machine.block_warps
        ]
        return f"warps {', '.join(map(str, same))} of a block wait at {name} for all 128 threads of their warpgroup"


def first_threads(machine: Machine, warps: Warps) -> Index:
    """The first thread of each warpgroup made of these warps, ascending."""
    return np.arange(0, machine.threads, THREADS) if warps is None else warps[::WARPS] * WARP


def uniform(machine: Machine, site: int, values: NDArray[Any], warps: Warps, first: Index, what: str) -> NDArray[Any]:
    """The value that all threads of each warpgroup have, of (T,) values; a fault where they differ."""
    own = values if warps is None else values.reshape(-1, WARP)[warps]
    own = own.reshape(-1, THREADS)
    chosen = own[:, 0]
    differs = own != chosen[:, None]
    if differs.any():
        group, thread = (int(axis[0]) for axis in differs.nonzero())
        message = f"{what} must be the same in all threads of a warpgroup; this thread's differs from its first's"
        raise machine.fault(Undefined, message, site, int(first[group]) + thread)
    return chosen
