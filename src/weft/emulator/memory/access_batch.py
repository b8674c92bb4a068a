"""One instruction's accesses to memory, as arrays: what the checks and the counters look at.

An access has an agent: the thread that executes the instruction, even where the hardware's copy engine or tensor core does the
work (proxy `Proxy.ASYNC`). Lanes that are predicated off do not appear.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray

if TYPE_CHECKING:
    from weft.emulator.memory.order import Agent


class _Named(enum.Enum):
    """Members are themselves: their hash is their identity, which is much faster than Enum's."""

    __hash__ = object.__hash__


class Space(_Named):
    """A state space (PTX ISA 5.1)."""

    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    CONST = "const"
    PARAM = "param"


class Kind(_Named):
    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"


class Proxy(_Named):
    """Which path to memory (PTX ISA, memory consistency model, proxies). ld, st, atom, cp.async (not bulk), ldmatrix are
    GENERIC; cp.async.bulk, tensor copies and wgmma's shared-memory operands are ASYNC."""

    GENERIC = "generic"
    ASYNC = "async"


@dataclass
class AccessBatch:
    """``N`` accesses of ``size`` bytes each, by one instruction.

    ``threads`` (N,) are resident threads (their block is the block whose shared memory is meant), ``addresses`` (N,) uint64
    within the space: bytes from the start of the block's shared memory, of the thread's local memory, or a global virtual
    address. ``values`` (N, size) uint8 is what a write writes: writing what is there already is no race.
    """

    site: int
    """Index of the instruction in the program."""
    space: Space
    kind: Kind
    threads: IndexArray
    addresses: NDArray[np.uint64]
    size: int
    proxy: Proxy = Proxy.GENERIC
    values: NDArray[np.uint8] | None = None
    alignment: int | None = None
    """What addresses must be a multiple of, if that is not ``size``."""
    strong: bool = False
    """volatile, relaxed, acquire, release or atomic: never a race with another strong access of the same bytes in its scope."""
    wide: bool = True
    """Whether the scope of a strong access has threads of other blocks."""
    element: int | None = None
    """Bytes of an element, if not ``size``: strong accesses of vectors are accesses of their elements."""
    flat: NDArray[np.intp] | None = None
    """Filled in by the memory: each access's first byte in the space's arena."""
    span: tuple[int, int] | None = None
    """Filled in by the memory, for global memory: the least and the greatest of ``flat``."""
    agent: Agent | None = None
    """The asynchronous operation that accesses (`weft.emulator.memory.order`), if the threads themselves do not."""
