"""shfl and shfl.sync: registers of other lanes (PTX ISA, data movement instructions).

A lane that reads from one which does not execute the instruction with it, or which its mask does not name, gets an undefined
value: that is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.shuffle import MODES, sources
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import ALL_LANES, WARP, Active
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, Transfer, instruction, masked
from weft.emulator.ops.warp import Words, collective, member_mask
from weft.emulator.ptx.syntax import Pair
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


def _shuffle(b: Binding, mode: str, members: Words, constant: int | None) -> Step:
    execution = b.execution
    results = b.operand(0)
    first, second = (results.first, results.second) if isinstance(results, Pair) else (results, None)
    d = b.write(first, TYPES["b32"])
    p = None if second is None else b.write(second, TYPES["pred"])
    a, offset, control = b.read(1, TYPES["b32"]), b.read(2, TYPES["u32"]), b.read(3, TYPES["u32"])
    base = execution.warp * WARP

    def places() -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        lanes, valid = sources(mode, execution.lane, offset, control)
        return base + lanes, valid

    fixed = places() if offset.ndim == control.ndim == 0 else None

    def step(active: Active) -> None:
        source, valid = places() if fixed is None else fixed
        if constant != ALL_LANES or not active.full and (active.mask & ~active.mask[source]).any():
            _check(b, active, source, members)
        values: Any = a[source] if a.ndim else a
        masked(d, values, active)
        if p is not None:
            masked(p, valid, active)

    return step


def _check(b: Binding, active: Active, source: NDArray[np.intp], members: Words) -> None:
    execution = b.execution
    named = (members >> (source % WARP).astype(np.uint32)) & np.uint32(1) != 0
    wrong = active.mask & ~(active.mask[source] & named)
    if wrong.any():
        thread = int(wrong.nonzero()[0][0])
        lane, other = thread % WARP, int(source[thread]) % WARP
        if not named[thread]:
            reason = f"which its mask 0x{members[thread]:08x} does not name"
        elif execution.exited[source[thread]]:
            reason = "which has exited"
        else:
            reason = "which does not execute it with it"
        raise execution.fault(Undefined, f"lane {lane} reads from lane {other}, {reason}", b.site, thread)


@instruction("shfl.sync", transfer=True)
def shuffle_sync(b: Binding) -> Transfer:
    f = form(b, sync="sync", mode=" ".join(MODES), type="b32")
    b.count(5)
    return collective(b, 4, _shuffle(b, f["mode"], *member_mask(b, 4)))


@instruction("shfl")
def shuffle(b: Binding) -> Step:
    """Without waiting: whoever is there (targets below sm_70)."""
    f = form(b, mode=" ".join(MODES), type="b32")
    b.count(4)
    return _shuffle(b, f["mode"], np.full(b.execution.threads, np.uint32(ALL_LANES)), ALL_LANES)
