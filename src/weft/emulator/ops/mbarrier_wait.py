"""Waiting for an mbarrier's phase: test_wait and try_wait (PTX ISA 9.7.15.16.19).

try_wait suspends its threads until the phase is complete, and then answers true; it never answers false, as hardware may. A
wait that never ends is therefore found at once, and the fault says what the phase lacks. The time limit of a try_wait is
ignored. test_wait answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.mbarrier_word import Counts, Object, parity, valid
from weft.emulator.machine.active import Active, IndexArray, Mask
from weft.emulator.memory.access_batch import Kind
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import (
    LOCAL,
    SCOPE,
    U32,
    U64,
    Phase,
    fault,
    keys,
    load,
    per_thread,
    phases,
    shared_address,
)
from weft.emulator.ops.registry import Destinations, Step, Transfer, instruction
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_WAIT: Final = {
    "op": "test_wait try_wait",
    "parity": "? parity",
    "phase": "? phase_type::primary phase_type::conditional",
    "semantics": "? acquire relaxed",
    "scope": SCOPE,
    "space": LOCAL,
    "type": "b64",
}


class _Waits:
    """What test_wait and try_wait have in common: which phase is meant, and whether it is complete."""

    def __init__(self, b: Binding) -> None:
        f = form(b, **_WAIT)
        self.by_parity = bool(f["parity"])
        self.execution, self.site = b.execution, b.site
        self.locate = shared_address(b, 1, f["space"])
        self.wanted = b.read(2, U32 if self.by_parity else U64)
        self.acquires = f["semantics"] != "relaxed"
        self.result = b.write(0, TYPES["pred"])

    def ask(self, threads: IndexArray) -> tuple[IndexArray, NDArray[np.uint64], Counts, Mask]:
        """Of each thread: its object's place, its address, the parity of the phase meant, and whether that is complete."""
        addresses = self.locate(threads)
        flat, words = load(self.execution, self.site, threads, addresses, Kind.READ)
        if self.by_parity:
            meant = per_thread(self.wanted, threads) & 1
        else:
            tokens = np.broadcast_to(self.wanted, (self.execution.threads,))[threads]
            if not (good := valid(tokens)).all():
                message = "a state that no arrival at an mbarrier has given"
                raise fault(self.execution, message, self.site, threads, addresses, int((~good).argmax()))
            meant = parity(tokens)
        return flat, addresses, meant, parity(words) != meant

    def acquire(self, threads: IndexArray, addresses: NDArray[np.uint64], meant: Counts) -> None:
        """These threads have waited for these phases."""
        order = self.execution.order
        if order.active and threads.size:
            learn = order.acquire if self.acquires else order.note
            for key, which in keys(Phase(addresses, meant)):
                learn(key, np.unique(self.execution.warp[threads[which]]))


@instruction("mbarrier.test_wait", polls=True)
def _test_wait(b: Binding) -> Step:
    b.count(3)
    waits = _Waits(b)

    def step(active: Active) -> None:
        threads = active.index
        _, addresses, meant, done = waits.ask(threads)
        waits.result[threads] = done
        waits.acquire(threads[done], addresses[done], meant[done])

    return step


@instruction("mbarrier.try_wait", transfer=True)
def _try_wait(b: Binding) -> Transfer:
    b.count(3, 4)
    waits = _Waits(b)
    execution, site, following = b.execution, b.site, b.next

    def run(active: Active) -> Destinations:
        threads = active.index
        flat, addresses, meant, done = waits.ask(threads)
        waits.result[threads] = True  # of those who wait, when they go on
        waits.acquire(threads[done], addresses[done], meant[done])
        if done.all():
            return [(following, active)]
        waiting = _Suspended(waits, threads[~done], flat[~done], addresses[~done], meant[~done])
        mask = np.zeros(execution.threads, np.bool_)
        mask[waiting.threads] = True
        execution.park(Active(mask, full=False), following, waiting.why, waiting.ready, site)
        if not done.any():
            return []
        return [(following, active.narrow(~mask))]

    return run


class _Suspended:
    """Threads of a try_wait until their phases complete; they are woken even if further phases do before they run."""

    def __init__(
        self, waits: _Waits, threads: IndexArray, flat: IndexArray, addresses: NDArray[np.uint64], meant: Counts
    ) -> None:
        self.waits = waits
        self.execution = waits.execution
        self.threads = threads
        self.places = flat // 8
        self.addresses = addresses
        self.meant = meant
        self.phase = phases(self.execution)[self.places]
        self.woken = np.zeros(threads.size, np.bool_)

    def ready(self) -> Mask:
        """Who may go on, (T,); whoever it is has seen what the phase's completion shows."""
        complete = phases(self.execution)[self.places] != self.phase
        fresh = complete & ~self.woken
        self.waits.acquire(self.threads[fresh], self.addresses[fresh], self.meant[fresh])
        self.woken |= fresh
        mask = np.zeros(self.execution.threads, np.bool_)
        mask[self.threads[complete]] = True
        return mask

    def why(self) -> str:
        """What those still waiting wait for."""
        places, first = np.unique(np.where(self.woken, -1, self.places), return_index=True)
        lines: list[str] = []
        for place, which in zip(places.tolist(), first.tolist(), strict=True):
            if place >= 0:
                word = int(self.execution.memory.shared.gather(np.array([place * 8]), 8, 8)[0])
                lacks = Object.unpack(word).lacks()
                phase = int(phases(self.execution)[place])
                name = self.execution.memory.shared_name(int(self.addresses[which]))
                lines.append(f"mbarrier at shared {name}: phase {phase} lacks {lacks}")
        return "\n    ".join(dict.fromkeys(lines))
