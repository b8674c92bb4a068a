"""Gather plans (paper 5.5): ``out[.., i, ..] = source[.., index[.., i, ..], ..]`` along one axis, results laid out as indices.

Two ways are planned and priced: shuffles, where a warp holds all that its threads may ask for, and shared memory.

Shuffles. Let A be the source's layout, B the index's, ``B'`` the same without the axis, and a the index itself. Thread
(l, w) of block b needs, for its register r, the element ``e = B'(r, l, w, b) + a u`` (u the axis's units). It is in its own warp
iff ``e + A(0, 0, w, b)`` lies in ``span(A_register, A_lane)`` for all r, l, w, b and a: one linear system for all their bits,

    M (lane; register) = (B'_register, B'_lane, B'_warp + A_warp, B'_block + A_block, u),    M = (A_lane, A_register)

Its solution says which lane to ask, and for which of that lane's registers, both as XORs of what each bit contributes. A
shuffle reads one register for all lanes. The register's part that differs between lanes or with the index takes ``2^v``
rounds for each r, where v is the rank of the register parts of (l, w, b, a); a thread keeps what it receives in the round that
is its own. Lanes are preferred to registers where the source has copies, which makes v least.

    source [2, 8]: {register: [(0,1)], lane: [(0,2),(0,4)], warp: [(1,0)]}, axis 1:  v = 1 (bit 0 of the index is in a
    register): each result takes 2 shuffles, from lane ``index >> 1``, of registers 0 and 1, and one select

Memory. The source is stored once and each result is one load: see `gather_memory`, also for tensors larger than scratch.

Law: `GatherPlan.simulate` equals direct evaluation for every index.

Elements have 1, 2, 4, .. 64 bits; those below a byte take a byte of memory. Blocks share no memory: a gather along an axis
that is split among blocks is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from weft.layout.algebra import f2
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP, why_not_distributed
from weft.layout.memory.banks import BLOCK
from weft.layout.planning.gather_memory import GatherMemory, memory_ways, through_memory
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.price import clocks, memory_price
from weft.layout.planning.steps import Cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WIDEST = 64


@dataclass(frozen=True)
class Where:
    """What the bits of the result's place and of the index contribute to the place asked for: for each bit the lane and the
    register, as XOR masks."""

    register: tuple[tuple[int, int], ...]
    lane: tuple[tuple[int, int], ...]
    warp: tuple[tuple[int, int], ...]
    block: tuple[tuple[int, int], ...]
    index: tuple[tuple[int, int], ...]

    @property
    def varying(self) -> f2.Matrix:
        """A basis of the register parts that differ between threads or with the index."""
        parts = [register for _, register in (*self.lane, *self.warp, *self.block, *self.index)]
        return f2.reduced_basis(parts)


@dataclass(frozen=True)
class GatherPlan:
    """How each thread gets its results: by shuffles (``where``) or through memory (``memory``); the other is None.

    ``alternative`` is the cost of the other way, where there is one."""

    kind: Literal["shuffles", "memory"]
    source: LinearLayout
    index: LinearLayout
    axis: int
    where: Where | None
    memory: GatherMemory | None
    cost: Cost
    alternative: Cost | None
    reason: str

    @property
    def rounds(self) -> int:
        """Shuffles for each result, of 32 bits or fewer; 0 through memory."""
        return 1 << len(self.where.varying) if self.where is not None else 0

    def simulate(self, labels: NDArray[Any], indices: NDArray[Any], block: int = 0) -> NDArray[Any]:
        """The results, for what the threads of a block hold of the source and of the index: arrays of shape (warps, lanes,
        registers)."""
        if self.memory is not None:
            return through_memory(self.memory, labels, indices, block)
        if self.where is None:
            raise ValueError("GatherPlan: neither shuffles nor memory")
        return _by_shuffles(self.where, labels, indices, block)


@lru_cache(maxsize=1024)
def plan_gather(source: LinearLayout, index: LinearLayout, axis: int, bits: int, machine: MachineModel) -> GatherPlan:
    """The cheaper of shuffles and memory for a gather of elements of ``bits`` along output dimension ``axis``.

    Both layouts are distributed, on as many warps and blocks, with the machine's lanes, of tensors that differ at most along the
    axis. ``bits`` is a power of two from 1 to 64. `ValueError` says which of these fails, or that a block needs the elements of
    another.
    """
    _check(source, index, axis, bits, machine)
    warps = _size(source, WARP)
    where = _where(source, index, axis)
    local = not isinstance(where, str)
    ways = memory_ways(source, index, axis, bits, machine, local)

    def through_memory(way: GatherMemory) -> float:
        return memory_price(way.cost, machine, warps, local=way.scope == "warp", rounds=way.rounds)

    memory = min(ways, key=through_memory) if ways else None
    if isinstance(where, str):
        if memory is None:
            raise ValueError(f"plan_gather: {where}, and {machine.name} has no shared memory")
        reason = f"through memory: {where}{_in_rounds(memory)}"
        return GatherPlan("memory", source, index, axis, None, memory, memory.cost, None, reason)
    shuffles = _shuffle_cost(index, where, bits, machine)
    # Results do not wait for each other.
    price = clocks(shuffles, machine, warps) + machine.latency.shuffle
    if memory is None:
        return GatherPlan("shuffles", source, index, axis, where, None, shuffles, None, "within each warp: no memory")
    other = through_memory(memory)
    compared = f"{price:.0f} clocks by {shuffles.shuffles} shuffles, {other:.0f} through memory for random indices"
    if price <= other:
        reason = f"within each warp: {compared}"
        return GatherPlan("shuffles", source, index, axis, where, None, shuffles, memory.cost, reason)
    reason = f"through memory though within each warp: {compared}{_in_rounds(memory)}"
    return GatherPlan("memory", source, index, axis, None, memory, memory.cost, shuffles, reason)


def _in_rounds(memory: GatherMemory) -> str:
    rounds = memory.rounds
    return f"; in {rounds} rounds, as a block may have {memory.machine.scratch} bytes" if rounds > 1 else ""


def _check(source: LinearLayout, index: LinearLayout, axis: int, bits: int, machine: MachineModel) -> None:
    if log2_exact(bits) is None or bits > _WIDEST:
        raise ValueError(f"plan_gather: bits is {bits}, expected a power of two from 1 to {_WIDEST}")
    for role, layout in (("source", source), ("index", index)):
        if reason := why_not_distributed(layout):
            raise ValueError(f"plan_gather: the {role} layout is not distributed: {reason}")
        unknown = [d for d in layout.in_dims if d not in (REGISTER, LANE, WARP, BLOCK)]
        what = f"plan_gather: the {role} layout has"
        if unknown:
            raise ValueError(f"{what} input dimension {unknown[0]}, expected register, lane, warp or block")
        if _size(layout, LANE) != machine.lanes:
            raise ValueError(f"{what} {_size(layout, LANE)} lanes, {machine.name} has {machine.lanes}")
    if source.out_dims != index.out_dims or not 0 <= axis < len(source.out_dims):
        raise ValueError(
            f"plan_gather: axis {axis} of a source with [{', '.join(source.out_dims)}] and an index with "
            f"[{', '.join(index.out_dims)}]"
        )
    for at, (a, b) in enumerate(zip(source.shape, index.shape, strict=True)):
        if at != axis and a != b:
            raise ValueError(
                f"plan_gather: dim{at} is {a} in the source and {b} in the index; only dim{axis} may differ"
            )
    for dim in (WARP, BLOCK):
        if _size(source, dim) != _size(index, dim):
            raise ValueError(f"plan_gather: the source has {_size(source, dim)} {dim}s, the index {_size(index, dim)}")
    asked = _asked(source, index, axis)
    own = f2.Echelon((*_columns(source, REGISTER), *_columns(source, LANE), *_columns(source, WARP)))
    for dim, vectors in asked.items():
        for bit, vector in enumerate(vectors):
            if vector not in own:
                what = f"bit {bit} of {dim}" if dim != "index" else f"bit {bit} along dim{axis}"
                raise ValueError(f"plan_gather: {what} leads to another block, and blocks share no memory")


def _size(layout: LinearLayout, dim: str) -> int:
    return layout.in_size(dim) if dim in layout.in_dims else 1


def _columns(layout: LinearLayout, dim: str) -> f2.Matrix:
    return layout.columns(dim) if dim in layout.in_dims else ()


def _flatten(layout: LinearLayout, coordinates: Sequence[int]) -> int:
    flat = 0
    for coordinate, (_, bits) in zip(coordinates, layout.outputs, strict=True):
        flat = flat << bits | coordinate
    return flat


def _off_axis(source: LinearLayout, index: LinearLayout, axis: int, column: int) -> int:
    """A column of the index without its part along the axis, flattened as the source's are."""
    basis = list(index.unflatten(column))
    basis[axis] = 0
    return _flatten(source, basis)


def _asked(source: LinearLayout, index: LinearLayout, axis: int) -> dict[str, list[int]]:
    """What each bit of a result's place, and of the index, adds to the element that is asked for; see the module."""
    unit = [0] * len(source.out_dims)
    asked: dict[str, list[int]] = {"index": []}
    for bit in range(source.shape[axis].bit_length() - 1):
        unit[axis] = 1 << bit
        asked["index"].append(_flatten(source, unit))
    for dim in (REGISTER, LANE, WARP, BLOCK):
        asked[dim] = [_off_axis(source, index, axis, column) for column in _columns(index, dim)]
    for dim in (WARP, BLOCK):
        asked[dim] = [a ^ b for a, b in zip(asked[dim], _columns(source, dim), strict=True)]
    return asked


def _where(source: LinearLayout, index: LinearLayout, axis: int) -> Where | str:
    """Where each thread finds what it needs; or why that is in another warp."""
    lanes = _columns(source, LANE)
    matrix = (*lanes, *_columns(source, REGISTER))
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for dim, vectors in _asked(source, index, axis).items():
        solved = f2.solve_all(matrix, vectors)
        if solved is None:
            bad = next(i for i, v in enumerate(vectors) if f2.solve(matrix, v) is None)
            what = f"bit {bad} of {dim}" if dim != "index" else f"bit {bad} along dim{axis}"
            return f"{what} leads to another warp"
        found[dim] = tuple((s & ((1 << len(lanes)) - 1), s >> len(lanes)) for s in solved)
    return Where(found[REGISTER], found[LANE], found[WARP], found[BLOCK], found["index"])


def _shuffle_cost(index: LinearLayout, where: Where, bits: int, machine: MachineModel) -> Cost:
    results = _size(index, REGISTER)
    rounds = 1 << len(where.varying)
    words = -(-bits // machine.shuffle_bits)
    # The lane to ask is computed once for each result (a shift and a mask of the index, an XOR), then each round but the
    # first compares and selects.
    return Cost(shuffles=results * rounds * words, permutes=results * (2 + 2 * (rounds - 1) * words))


def _xor(parts: Sequence[tuple[int, int]], number: int) -> tuple[int, int]:
    lane, register = 0, 0
    for bit, (a, b) in enumerate(parts):
        if number >> bit & 1:
            lane, register = lane ^ a, register ^ b
    return lane, register


def _by_shuffles(where: Where, labels: NDArray[Any], indices: NDArray[Any], block: int) -> NDArray[Any]:
    """Every shuffle as the hardware does it: all lanes of a warp offer one register, each takes another lane's."""
    import numpy as np

    warps, lanes, results = indices.shape
    varying = [f2.apply(where.varying, mask) for mask in range(1 << len(where.varying))]
    out = np.empty_like(labels, shape=indices.shape)
    taken = np.zeros(indices.shape, bool)
    for warp in range(warps):
        for result in range(results):
            fixed = _xor(where.register, result)[1]
            for offset in varying:
                offered = labels[warp, :, fixed ^ offset].copy()
                for lane in range(lanes):
                    parts = (
                        _xor(where.register, result),
                        _xor(where.lane, lane),
                        _xor(where.warp, warp),
                        _xor(where.block, block),
                        _xor(where.index, int(indices[warp, lane, result])),
                    )
                    asked, register = 0, 0
                    for a, b in parts:
                        asked, register = asked ^ a, register ^ b
                    if register == fixed ^ offset:
                        out[warp, lane, result] = offered[asked]
                        taken[warp, lane, result] = True
    if not taken.all():
        raise AssertionError("a result was found in no round")
    return out
