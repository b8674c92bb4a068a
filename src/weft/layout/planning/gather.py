"""Gather plans (paper 5.5): ``out[.., i, ..] = source[.., index[.., i, ..], ..]`` along one axis, results laid out as indices.

One would send every gather through shared memory, since nobody knows where the index points. But it points along one axis
only: where all that lies along the axis is held by the threads of one warp, the warp can look it up in its own registers.

Definition. Let A be the source's layout, B the index's, ``B'`` the same without the axis, and a the index itself. Thread
(l, w) needs, for its register r, the element ``e = B'(r, l, w) + a u`` (u the axis's units). It is in its own warp iff
``e + A(0, 0, w)`` lies in ``span(A_register, A_lane)`` for all r, l, w and a: one linear system for all their bits together,

    M (lane; register) = (B'_register, B'_lane, B'_warp + A_warp, u),    M = (A_lane, A_register)

Its solution says which lane to ask, and for which of that lane's registers, both as XORs of what each bit contributes. A
shuffle reads one register for all lanes, so the register's part that differs between lanes or with the index has to be gone
through: ``2^v`` rounds for each r, where v is the rank of the register parts of (l, w, a); a thread keeps what it receives in
the round that is its own. Lanes are preferred to registers where the source has copies, which makes v least.

    source [2, 8]: {register: [(0,1)], lane: [(0,2),(0,4)], warp: [(1,0)]}, axis 1:  v = 1 (bit 0 of the index is in a
    register): each result takes 2 shuffles, from lane ``index >> 1``, of registers 0 and 1, and one select

Law: `GatherPlan.simulate` equals direct evaluation for every index. Through memory, each result is one load from an address
that depends on data; its conflicts do too, so their least number is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP, why_not_distributed
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.price import clocks
from weft.layout.planning.steps import Cost

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Where:
    """What the bits of the result's place and of the index contribute to the place asked for: for each bit the lane and the
    register, as XOR masks."""

    register: tuple[tuple[int, int], ...]
    lane: tuple[tuple[int, int], ...]
    warp: tuple[tuple[int, int], ...]
    index: tuple[tuple[int, int], ...]

    @property
    def varying(self) -> f2.Matrix:
        """A basis of the register parts that differ between threads or with the index."""
        parts = [register for _, register in (*self.lane, *self.warp, *self.index)]
        return f2.reduced_basis(parts)


@dataclass(frozen=True)
class GatherPlan:
    """How each thread gets its results. ``where`` is None for a plan through memory. ``alternative`` is the cost of the other
    way, where there is one."""

    kind: Literal["shuffles", "memory"]
    source: LinearLayout
    index: LinearLayout
    axis: int
    where: Where | None
    cost: Cost
    alternative: Cost | None
    reason: str

    @property
    def rounds(self) -> int:
        """Shuffles for each result, of 32 bits or fewer; 0 through memory."""
        return 1 << len(self.where.varying) if self.where is not None else 0

    def simulate(self, labels: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
        """The results, for what the threads hold of the source and of the index: arrays of shape (warps, lanes, registers)."""
        if self.where is None:
            return _through_memory(self, labels, indices)
        return _by_shuffles(self.where, labels, indices)


@lru_cache(maxsize=1024)
def plan_gather(source: LinearLayout, index: LinearLayout, axis: int, bits: int, machine: MachineModel) -> GatherPlan:
    """The cheaper of shuffles and memory for a gather of elements of ``bits`` along output dimension ``axis``.

    Both layouts are distributed, on as many warps, with the machine's lanes, of tensors that differ at most along the axis;
    `ValueError` says which of these fails.
    """
    _check(source, index, axis, machine)
    warps = source.in_size(WARP) if WARP in source.in_dims else 1
    memory = _memory_cost(source, index, bits, machine, warps)
    where = _where(source, index, axis)
    if isinstance(where, str):
        return GatherPlan("memory", source, index, axis, None, memory, None, f"through memory: {where}")
    shuffles = _shuffle_cost(index, where, bits, machine)
    prices = clocks(shuffles, machine, warps), clocks(memory, machine, warps)
    compared = f"{prices[0]:.0f} clocks by {shuffles.shuffles} shuffles, {prices[1]:.0f} or more through memory"
    if prices[0] <= prices[1]:
        return GatherPlan("shuffles", source, index, axis, where, shuffles, memory, f"within each warp: {compared}")
    return GatherPlan(
        "memory", source, index, axis, None, memory, shuffles, f"through memory though within each warp: {compared}"
    )


def _check(source: LinearLayout, index: LinearLayout, axis: int, machine: MachineModel) -> None:
    for role, layout in (("source", source), ("index", index)):
        if reason := why_not_distributed(layout):
            raise ValueError(f"plan_gather: the {role} layout is not distributed: {reason}")
        unknown = [d for d in layout.in_dims if d not in (REGISTER, LANE, WARP)]
        what = f"plan_gather: the {role} layout has"
        if unknown:
            raise ValueError(f"{what} input dimension {unknown[0]}, expected register, lane, warp")
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
    if _size(source, WARP) != _size(index, WARP):
        raise ValueError(f"plan_gather: the source has {_size(source, WARP)} warps, the index {_size(index, WARP)}")


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


def _where(source: LinearLayout, index: LinearLayout, axis: int) -> Where | str:
    """Where each thread finds what it needs; or why that is in another warp."""
    lanes = _columns(source, LANE)
    matrix = (*lanes, *_columns(source, REGISTER))
    unit = [0] * len(source.out_dims)
    asked: dict[str, list[int]] = {"index": []}
    for bit in range(source.shape[axis].bit_length() - 1):
        unit[axis] = 1 << bit
        asked["index"].append(_flatten(source, unit))
    for dim in (REGISTER, LANE, WARP):
        asked[dim] = [_off_axis(source, index, axis, column) for column in _columns(index, dim)]
    asked[WARP] = [a ^ b for a, b in zip(asked[WARP], _columns(source, WARP), strict=True)]
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for dim, vectors in asked.items():
        solved = f2.solve_all(matrix, vectors)
        if solved is None:
            bad = next(i for i, v in enumerate(vectors) if f2.solve(matrix, v) is None)
            what = f"bit {bad} of {dim}" if dim != "index" else f"bit {bad} along dim{axis}"
            return f"{what} leads to another warp"
        found[dim] = tuple((s & ((1 << len(lanes)) - 1), s >> len(lanes)) for s in solved)
    return Where(found[REGISTER], found[LANE], found[WARP], found["index"])


def _shuffle_cost(index: LinearLayout, where: Where, bits: int, machine: MachineModel) -> Cost:
    results = _size(index, REGISTER)
    rounds = 1 << len(where.varying)
    words = -(-bits // machine.shuffle_bits)
    # The lane to ask is computed once for each result (a shift and a mask of the index, an XOR), then each round but the
    # first compares and selects.
    return Cost(shuffles=results * rounds * words, permutes=results * (2 + 2 * (rounds - 1) * words))


def _memory_cost(source: LinearLayout, index: LinearLayout, bits: int, machine: MachineModel, warps: int) -> Cost:
    registers = 1 << sum(column != 0 for column in _columns(source, REGISTER))
    stores = -(-registers * bits // (machine.widest * 8))
    results = _size(index, REGISTER)
    scratch = -(-(1 << source.out_bits) * bits // 8)
    written = -(-scratch // (machine.banks * machine.bank_bytes))
    return Cost(stores=stores, loads=results, wavefronts=written + results * warps, barriers=1, scratch=scratch)


def _xor(parts: Sequence[tuple[int, int]], number: int) -> tuple[int, int]:
    lane, register = 0, 0
    for bit, (a, b) in enumerate(parts):
        if number >> bit & 1:
            lane, register = lane ^ a, register ^ b
    return lane, register


def _by_shuffles(where: Where, labels: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
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


def _through_memory(plan: GatherPlan, labels: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
    """The source stored row-major, then one load for each result."""
    import numpy as np

    memory = np.empty_like(labels, shape=(1 << plan.source.out_bits,))
    out = np.empty_like(labels, shape=indices.shape)
    for warp, lane, register in np.ndindex(labels.shape):
        memory[_flat(plan.source, warp, lane, register)] = labels[warp, lane, register]
    for warp, lane, register in np.ndindex(indices.shape):
        place = list(plan.index.unflatten(_flat(plan.index, warp, lane, register)))
        place[plan.axis] = int(indices[warp, lane, register])
        out[warp, lane, register] = memory[_flatten(plan.source, place)]
    return out


def _flat(layout: LinearLayout, warp: int, lane: int, register: int) -> int:
    flat = 0
    for dim, number in ((WARP, warp), (LANE, lane), (REGISTER, register)):
        flat ^= f2.apply(_columns(layout, dim), number)
    return flat
