"""What wgmma.mma_async multiplies: A from registers or shared memory, B from shared memory.

The units of 16 bytes of both operands, of all warpgroups, are read as one access, because the checks cost the same for many
accesses as for few. A sparse A is expanded to a dense matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import warpgroup
from weft.emulator.arith.descriptors import UNIT, Descriptor
from weft.emulator.arith.products import ELEMENTS
from weft.emulator.arith.swizzle import Swizzle
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.memory.order import Agent
from weft.emulator.ops.fragments import Warps, registers
from weft.emulator.ops.mma_sparse import dense_left
from weft.emulator.ops.wgmma_forms import Form
from weft.emulator.ops.wgmma_together import first_threads, uniform
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Numbers: TypeAlias = NDArray[Any]

Operands: TypeAlias = Callable[[Warps, IndexArray, Agent | None], tuple[Numbers, Numbers]]
"""A, (G, 64, K), and B, (G, N, K), of the warpgroups of these warps, whose first threads are given; for the agent that reads."""


@dataclass(frozen=True)
class Shared:
    """A matrix in shared memory, of ``rows`` rows along M or N."""

    operand: int
    name: str
    kind: str
    rows: int
    depth: int
    """Bytes of a row, along K."""
    transposed: bool

    @property
    def count(self) -> int:
        """Units of 16 bytes."""
        return self.rows * self.depth // UNIT

    def numbers(self, words: NDArray[np.uint64]) -> Numbers:
        """(G, rows, K), of its units' words (G, count, 2)."""
        if self.transposed:
            return warpgroup.transposed(words.reshape(len(words), self.depth // 2, -1), self.kind)
        return warpgroup.numbers(words.reshape(len(words), self.rows, -1), self.kind)


@lru_cache(maxsize=4096)
def units(bits: int, matrix: Shared) -> NDArray[np.uint64]:
    """Addresses of the units of a matrix with this descriptor: K-major row by row, MN-major line by line."""
    descriptor = Descriptor.decode(bits)
    if matrix.transposed:
        found = descriptor.mn_major(matrix.rows, matrix.depth // 2)
    else:
        found = descriptor.k_major(matrix.rows, matrix.depth // UNIT)
    return found.ravel().astype(np.uint64)


def operands(b: Binding, f: Form) -> Operands:
    """Reads A and B."""
    right = Shared(2, "B", f.b, f.n, 64 if f.sparse else 32, f.b_transposed)
    whole = _whole(b, f)
    if not f.in_registers:
        both = _reader(b, (Shared(1, "A", f.a, warpgroup.M, 32, f.a_transposed), right))

        def read_both(warps: Warps, first: IndexArray, agent: Agent | None) -> tuple[Numbers, Numbers]:
            left, right = both(warps, first, agent)
            return whole(left, warps), right

        return read_both

    views, shared = registers(b, 1, 4, 32, write=False), _reader(b, (right,))

    def read_right(warps: Warps, first: IndexArray, agent: Agent | None) -> tuple[Numbers, Numbers]:
        left = warpgroup.fragment(warpgroup.collect(views, warps))
        return whole(warpgroup.numbers(left, f.a), warps), shared(warps, first, agent)[0]

    return read_right


def _whole(b: Binding, f: Form) -> Callable[[Numbers, Warps], Numbers]:
    """A sparse A with its zeros, a dense one as it is. Each warp's 16 rows have their metadata as those of an mma.sp."""
    if not f.sparse:
        return lambda left, warps: left
    dense = dense_left(b, f.k, ELEMENTS[f.a].bits, 3)

    def whole(left: Numbers, warps: Warps) -> Numbers:
        groups, _, stored = left.shape
        return dense(left.reshape(-1, 1, 16, stored), warps).reshape(groups, warpgroup.M, f.k)

    return whole


def _reader(b: Binding, matrices: Sequence[Shared]) -> Callable[[Warps, IndexArray, Agent | None], list[Numbers]]:
    """Reads these matrices, by their descriptors."""
    execution, site = b.execution, b.site
    memory, counters = execution.memory, execution.counters
    descriptors = [np.broadcast_to(b.read(m.operand, TYPES["b64"]), (execution.threads,)) for m in matrices]
    names = [f"the matrix descriptor of {m.name}" for m in matrices]
    count = sum(m.count for m in matrices)
    starts = np.cumsum([0, *(m.count for m in matrices)]).tolist()
    all_threads = np.repeat(first_threads(execution, None), count)

    def _fits(matrix: Shared, descriptors: list[int], first: IndexArray) -> None:
        for thread, bits in zip(first, descriptors, strict=True):
            swizzle = Descriptor.decode(bits).swizzle
            if swizzle is Swizzle.B32:
                message = (
                    f"a row of {matrix.name} has {matrix.depth} bytes, more than the 32B swizzle of its descriptor"
                )
                raise execution.fault(Undefined, message, site, int(thread))

    def read(warps: Warps, first: IndexArray, agent: Agent | None) -> list[Numbers]:
        chosen = [
            uniform(execution, site, values, warps, first, name).tolist()
            for values, name in zip(descriptors, names, strict=True)
        ]
        for m, bits in zip(matrices, chosen, strict=True):
            if m.depth > 32 and not m.transposed:
                _fits(m, bits, first)
        parts = [units(bits, m) for group in zip(*chosen, strict=True) for bits, m in zip(group, matrices, strict=True)]
        threads = all_threads if warps is None else np.repeat(first, count)
        addresses = memory.own_shared(threads, np.concatenate(parts))
        access = AccessBatch(site, Space.SHARED, Kind.READ, threads, addresses, UNIT, Proxy.ASYNC, agent=agent)
        counters.access(access)
        words: NDArray[np.uint64] = memory.load(access, 8).reshape(first.size, count, 2)
        return [
            m.numbers(np.ascontiguousarray(words[:, start : start + m.count]))
            for m, start in zip(matrices, starts, strict=False)
        ]

    return read
