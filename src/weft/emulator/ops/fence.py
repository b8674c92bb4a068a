"""membar and fence (PTX ISA 9.7.13.5): what they order here.

Accesses are made one after the other, so a fence never changes a value. It matters to the race detector alone: relaxed accesses
with fences around them order what they surround, for other blocks if the scope has them. Plain writes to shared memory need a
fence before an operation of the async proxy meets them. fence.mbarrier_init counts as a fence of all that the warp has done in
shared memory: what it is for, a relaxed arrival at the cluster's barrier behind it, releases that. The other proxies order
nothing that could be out of order here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.ops.registry import Step, instruction

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_SCOPES: Final = ("cta", "cluster", "gpu", "sys")

NOTHING: Final = frozenset({"fence.proxy.alias", "membar.proxy.alias", "fence.proxy.async.global"})
"""Fences of what is in order here: constants, aliases of one address, global memory."""

ASYNC: Final = frozenset(
    {"fence.proxy.async", "fence.proxy.async.shared::cta", "fence.proxy.async.shared::cluster", "membar.proxy.async"}
)
"""Fences between the generic proxy and the asynchronous one, on shared memory."""

BOTH: Final = frozenset(
    f"fence.proxy.async::generic.{semantics}.sync_restrict::shared::{space}.cluster"
    for semantics, space in (("acquire", "cluster"), ("release", "cta"))
)
"""Fences of memory and proxies at once."""

INITIAL: Final = "fence.mbarrier_init.release.cluster"

MEMORY: Final = frozenset(
    {f"membar.{level}" for level in ("cta", "gl", "sys")}
    | {f"fence.{scope}" for scope in _SCOPES}
    | {f"fence.{semantics}.{scope}" for semantics in ("sc", "acq_rel", "acquire", "release") for scope in _SCOPES}
    | {"fence.acquire.sync_restrict::shared::cluster.cluster", "fence.release.sync_restrict::shared::cta.cluster"}
)
"""Fences of memory."""


@instruction("fence", "membar")
def fence(b: Binding) -> Step:
    """Orders what the table says."""
    name, order = b.instruction.name, b.execution.order
    b.count(0)
    if name in NOTHING:
        return lambda active: None
    if name not in ASYNC | BOTH | MEMORY and name != INITIAL:
        b.unknown(f"'{name}'")
    if not order.active:
        return lambda active: None
    if name == INITIAL:
        return lambda active: order.fence_shared(active.warps)
    memory, proxy = name not in ASYNC, name not in MEMORY
    wide = not name.endswith((".cta", ".cluster"))
    every_warp: IndexArray = np.arange(b.execution.warps)

    def step(active: Active) -> None:
        warps = every_warp if active.full else active.warps
        if memory:
            order.fence(warps, wide)
        if proxy:
            order.fence_async(warps)

    return step
