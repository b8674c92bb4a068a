"""Who has seen whose writes to shared memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Index
from weft.emulator.memory.access import Access
from weft.emulator.ptx.syntax import Instruction

Coordinates: TypeAlias = Callable[[int], tuple[tuple[int, int, int], tuple[int, int, int]]]
"""Block and thread coordinates of a resident thread."""


class Agent:
    """Asynchronous operations that one instruction began: one for each warp (or warpgroup) that executed it."""


class NullOrder:
    """Sees nothing and orders nothing: what a program has whose races are not checked. `Order` has the same methods.

    Warps are numbers over all resident blocks (thread // 32). One call may serve warps of many blocks: each block is on its
    own, and a key stands for an object of each block (two blocks that use one key share nothing).
    """

    active = False
    """Whether there is anything to tell: an instruction may save itself the work of describing what it does."""

    def reset(self) -> None:
        """Other blocks take the place of the resident ones."""

    def observe(self, access: Access, agent: Agent | None = None) -> None:
        """Checks an access to shared memory against those before it, and records it; before its values are written.
        ``agent``: who accesses, if not the threads themselves (each access is its thread's warp's operation of the agent).

        Raises: Race."""

    def barrier(self, arriving: Index, leaving: Index) -> None:
        """In each block, the leaving warps have seen what the arriving ones did (and their lanes each other)."""

    def synchronise(self, warps: Index) -> None:
        """The lanes of each warp have seen each other's accesses (bar.warp.sync)."""

    def release(self, key: Hashable, warps: Index) -> None:
        """What these warps have seen and done is added to the key, for those who acquire it."""

    def acquire(self, key: Hashable, warps: Index) -> None:
        """These warps have seen whatever was released to the key in their block."""

    def forget(self, key: Hashable) -> None:
        """The key is not used any more (the phase of an mbarrier two phases ago)."""

    def communicate(self, access: Access, semantics: str = "relaxed") -> None:
        """Strong accesses to flags, in shared or global memory: ``semantics`` relaxed (volatile too), acquire, release or
        acq_rel. A release write and an acquire read of one address order what is around them; so do relaxed ones with fences."""

    def fence(self, warps: Index) -> None:
        """membar, fence: relaxed accesses after it release, those before it acquire."""

    def fence_async(self, warps: Index) -> None:
        """fence.proxy.async: what these warps did and have seen, the async proxy may see."""

    def start(self, warps: Index, together: int = 1) -> Agent:
        """These warps begin asynchronous operations: each warp one of its own (cp.async, bulk copies), or with ``together`` 4
        each warpgroup one (wgmma). An operation has seen what its warps have seen."""
        return Agent()

    def finish(self, agent: Agent, key: Hashable = None, warps: Index | None = None) -> None:
        """The accesses of operations are complete: those that know of it have seen them. ``key``: whoever acquires the key;
        ``warps``: those of the warps that began them (wait_group); only the operations of these warps, if both are given."""


class Order(NullOrder):
    """The happens-before detector of one launch."""

    def __init__(
        self,
        contents: NDArray[np.uint8],
        block_threads: int,
        granule: int,
        instructions: Sequence[Instruction],
        coordinates: Coordinates,
        kernel: str = "",
    ) -> None:
        """``contents`` (blocks, bytes): the resident blocks' shared memory itself, of which addresses are the second index;
        ``granule``: the size of the smallest access to shared memory in the program: 1, 2 or 4."""
        self._contents: Any = contents
