"""Questions a warp asks all its lanes: vote, match, redux (PTX ISA, parallel synchronization instructions).

The answer for a lane is over the lanes that its mask names and that execute the instruction with it. Within a warp there may be
several masks, of lanes that have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.total_order import ordered
from weft.emulator.machine.active import ALL_LANES, WARP, Active
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, Transfer, instruction, masked
from weft.emulator.ops.warp import Words, collective, member_mask, one_mask, per_warp
from weft.emulator.ptx.syntax import Pair
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

VOTES: Final[dict[str, Callable[[Words, Words], Any]]] = {
    "all": lambda yes, asked: yes == asked,
    "any": lambda yes, asked: yes != 0,
    "uni": lambda yes, asked: (yes == 0) | (yes == asked),
    "ballot": lambda yes, asked: yes,
}
"""What comes out of the lanes that say yes and the lanes that are asked."""


def _vote(b: Binding, f: dict[str, str], members: Words, constant: int | None) -> Step:
    b.require((f["mode"] == "ballot") == (f["type"] == "b32"), f"vote.{f['mode']} does not give .{f['type']}")
    d, predicate = b.write(0, TYPES[f["type"]]), b.predicate(1)
    decide = VOTES[f["mode"]]

    def step(active: Active) -> None:
        yes = Active(active.mask & predicate(), full=False).ballots
        if constant == ALL_LANES:
            masked(d, per_warp(decide(yes, active.ballots)), active)
        else:
            masked(d, decide(per_warp(yes) & members, per_warp(active.ballots) & members), active)

    return step


@instruction("vote.sync", transfer=True)
def vote_sync(b: Binding) -> Transfer:
    f = form(b, sync="sync", mode=" ".join(VOTES), type="pred b32")
    b.count(3)
    return collective(b, 2, _vote(b, f, *member_mask(b, 2)))


@instruction("vote")
def vote(b: Binding) -> Step:
    """Without waiting: whoever is there (targets below sm_70)."""
    f = form(b, mode=" ".join(VOTES), type="pred b32")
    b.count(2)
    return _vote(b, f, np.full(b.execution.threads, np.uint32(ALL_LANES)), ALL_LANES)


def _pack(flags: NDArray[np.bool_]) -> Words:
    """(..., 32) flags as words."""
    return np.packbits(flags, axis=-1, bitorder="little").view(np.uint32)[..., 0]


@instruction("match", transfer=True)
def match(b: Binding) -> Transfer:
    """any: the lanes with the same value. all: the lanes asked, and true, if they all have the same value, else 0 and false."""
    f = form(b, mode="any all", sync="sync", type="b32 b64")
    b.count(3)
    execution, kind = b.execution, TYPES[f["type"]]
    results = b.operand(0)
    first, second = (results.first, results.second) if isinstance(results, Pair) else (results, None)
    b.require(second is None or f["mode"] == "all", "match.any.sync has one result")
    d, p = b.write(first, TYPES["b32"]), None if second is None else b.write(second, TYPES["pred"])
    a = np.broadcast_to(b.read(1, kind), execution.threads)
    members, _ = member_mask(b, 2)

    def step(active: Active) -> None:
        rows = a.reshape(-1, WARP)
        equal = (rows[:, :, None] == rows[:, None, :]) & active.lanes[:, None, :]
        same = _pack(equal).reshape(-1) & members
        if f["mode"] == "any":
            masked(d, same, active)
            return
        asked = per_warp(active.ballots) & members
        masked(d, np.where(same == asked, asked, np.uint32(0)), active)
        if p is not None:
            masked(p, same == asked, active)

    return collective(b, 2, step)


class Reduction:
    """A commutative operation over lanes; absent ones count as its neutral element."""

    def __init__(self, ufunc: Any, neutral: int, kind: str) -> None:
        self.ufunc = ufunc
        self.neutral = np.array(neutral).astype(TYPES[kind].numpy)

    def __call__(self, values: NDArray[Any], active: Active, members: Words) -> NDArray[Any]:
        """Of (T,) values, what each thread gets."""
        rows = values.reshape(-1, WARP)
        if one_mask(active, members):
            whole = self.ufunc.reduce(np.where(active.lanes, rows, self.neutral), axis=1, dtype=self.neutral.dtype)
            return np.repeat(whole, WARP)
        bits = (members.reshape(-1, WARP, 1) >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1)
        asked = (bits != 0) & active.lanes[:, None, :]
        chosen = np.where(asked, rows[:, None, :], self.neutral)
        return self.ufunc.reduce(chosen, axis=2, dtype=self.neutral.dtype).reshape(-1)


def _reduction(op: str, kind: str) -> Reduction:
    limits = np.iinfo(TYPES[kind].numpy)
    table = {
        "add": (np.add, 0),
        "min": (np.minimum, int(limits.max)),
        "max": (np.maximum, int(limits.min)),
        "and": (np.bitwise_and, -1),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
    }
    return Reduction(*table[op], kind)


@instruction("redux.sync", transfer=True)
def redux(b: Binding) -> Transfer:
    f = form(b, sync="sync", op="add min max and or xor", abs="? abs", nan="? NaN", type="u32 s32 b32 f32")
    b.count(3)
    if f["type"] == "f32":
        return _redux_f32(b, f)
    bitwise = f["op"] in ("and", "or", "xor")
    b.require(not f["abs"] and not f["nan"], ".abs and .NaN are for .f32 only")
    b.require(bitwise == (f["type"] == "b32"), f"redux.sync.{f['op']} is not for .{f['type']}")
    kind = TYPES[f["type"]]
    a, d = np.broadcast_to(b.read(1, kind), b.execution.threads), b.write(0, kind)
    members, _ = member_mask(b, 2)
    reduce = _reduction(f["op"], f["type"])
    return collective(b, 2, lambda active: masked(d, reduce(a, active, members), active))


CANONICAL_NAN: Final = 0x7FFFFFFF


def _redux_f32(b: Binding, f: dict[str, str]) -> Transfer:
    """Minimum or maximum, -0.0 below +0.0. NaNs do not count; with ``.NaN`` one makes the result a NaN."""
    b.require(f["op"] in ("min", "max"), f"redux.sync.{f['op']} is not for .f32")
    a, d = np.broadcast_to(b.read(1, TYPES["u32"]), b.execution.threads), b.write(0, TYPES["u32"])
    members, _ = member_mask(b, 2)
    reduce, count = _reduction(f["op"], "s32"), _reduction("add", "s32")
    bits = np.uint32(0x7FFFFFFF if f["abs"] else 0xFFFFFFFF)

    def step(active: Active) -> None:
        values = a & bits
        nan = (values & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
        extreme = reduce(np.where(nan, reduce.neutral, ordered(values)), active, members)
        spoilers = count((nan if f["nan"] else ~nan).astype(np.int32), active, members)
        spoiled = spoilers > 0 if f["nan"] else spoilers == 0
        masked(d, np.where(spoiled, np.uint32(CANONICAL_NAN), ordered(extreme).view(np.uint32)), active)

    return collective(b, 2, step)
