"""What a conversion between distributed layouts needs: the only place that classifies the bits of two layouts.

Definition. Source A and destination B send register, lane and warp bits to bits of the tensor, each column a unit vector or
zero (definition 4.10). With S = span(A_register, A_lane), what a warp holds, the conversion stays within warps iff

    span(B_register, B_lane) is within S,  and for each warp bit i: A_warp[i] + B_warp[i] is in S

and within threads iff the same holds with S = span(A_register), lanes among the bits i. Columns are units, so a span is a
mask and membership an AND; warps that hold copies need no rule of their own.

Where a tensor bit goes decides everything:

    B \\ A     register                        lane
    register   common: packs words, or rounds  leaves the lanes (e)
    lane       enters the lanes (f)            lanes are permuted
    warp       selected by the warp            half of the lanes are read

Each entering f is paired with a lane position of A that has a leaving e, or copies (`pair`).

Bounds. A thread needs 2^|B_register| elements and has, of these, none or 2^|A_register and B_register|. It has none
in some lane iff a lane or warp bit's A + B is outside span(A_register, B_register). What it lacks has to be received, a word a
shuffle. And each element that a lane lacks has to be sent by a lane that holds it, while each sends a word a shuffle; where
the warp's number takes the place of a lane bit, half of the lanes hold nothing that the warp needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP

Needs: TypeAlias = Literal["nothing", "registers", "lanes", "warps"]


class Places(NamedTuple):
    """A distributed layout as columns: the tensor bit, a unit vector or 0, of each register, lane and warp bit."""

    register: f2.Matrix
    lane: f2.Matrix
    warp: f2.Matrix

    @classmethod
    def of(cls, layout: LinearLayout) -> Places:
        """The columns of a layout; dimensions it lacks have no bits."""
        columns = dict(layout.inputs)
        return cls(columns.get(REGISTER, ()), columns.get(LANE, ()), columns.get(WARP, ()))

    @property
    def first_copies(self) -> Places:
        """Without the registers that hold copies."""
        return self._replace(register=tuple(column for column in self.register if column))


@lru_cache(maxsize=1 << 14)
def _mask(columns: f2.Matrix) -> int:
    mask = 0
    for column in columns:
        mask |= column
    return mask


@lru_cache(maxsize=1 << 14)
def _differ(a: f2.Matrix, b: f2.Matrix) -> int:
    """The bits in which columns of the same places differ."""
    differ = 0
    for x, y in zip(a, b, strict=True):
        differ |= x ^ y
    return differ


def crossing(a: Places, b: Places) -> int:
    """The tensor bits, as a mask, for which the conversion crosses warps: no warp need hold all the elements it is to have that
    differ in them. 0 iff it stays within warps."""
    held = _mask(a.register) | _mask(a.lane)
    wanted = _mask(b.register) | _mask(b.lane)
    return (wanted | _differ(a.warp, b.warp)) & ~held


def crosses_lanes(a: Places, b: Places) -> bool:
    """Whether a thread lacks elements that it is to have; of a conversion within warps."""
    held = _mask(a.register)
    return bool((_mask(b.register) | _differ(a.lane, b.lane) | _differ(a.warp, b.warp)) & ~held)


def needs(a: Places, b: Places) -> Needs:
    """What the conversion needs, exactly: nothing, its own registers, lanes of the warp, or other warps."""
    if a == b:
        return "nothing"
    if crossing(a, b):
        return "warps"
    return "lanes" if crosses_lanes(a, b) else "registers"


def received_words(a: Places, b: Places, bits: int, width: int) -> int:
    """The least shuffles of ``width`` bits in which the worst thread receives what it lacks; see the module."""
    mine = _mask(a.register)
    wanted = _mask(b.register)
    elements = 1 << wanted.bit_count()
    moved = _differ(a.lane, b.lane) | _differ(a.warp, b.warp)
    if not moved & ~(mine | wanted):
        elements -= 1 << (mine & wanted).bit_count()
    return -(-elements * bits // width)


def sent_words(a: Places, b: Places, bits: int, width: int) -> int:
    """The least shuffles of ``width`` bits in which the lanes that hold what the warp needs send what others lack; see the
    module. Requires that the conversion stays within warps."""
    wanted = _mask(b.register) | _mask(b.lane)
    fixed = _mask(a.lane) & ~wanted  # half of the lanes for each: the warp's number says which
    moving = [(x & wanted, y) for x, y in zip(a.lane, b.lane, strict=True) if x and x != y]
    elements = 1 << wanted.bit_count()
    if all(y for _, y in moving):
        # An element stays if its lane agrees in each bit that moves, else all of its copies are where it was not.
        elements -= elements >> f2.rank([x ^ y for x, y in moving])
    senders = 1 << (len(a.lane) - fixed.bit_count())
    return -(-elements * bits // (width * senders))


def least_shuffles(a: Places, b: Places, bits: int, width: int) -> int:
    """What no sequence of shuffles can do better, by ranks; for a conversion within warps."""
    return max(received_words(a, b, bits, width), sent_words(a, b, bits, width))


def pair(
    entering: Sequence[int],
    leaving: Collection[int],
    source: Sequence[int],
    destination: Sequence[int],
    *,
    copies_first: bool,
) -> dict[int, int]:
    """The lane position of the source that each entering bit takes, as {position: bit}; some bits may have none.

    Positions that hold copies or leaving bits are free. A bit whose position in the destination is free takes that one. The
    others take copies before leaving bits, since copies need nothing put back. With ``copies_first`` all positions of
    copies are taken before any of a leaving bit: each halves what later steps work on.
    """
    copies = [position for position, bit in enumerate(source) if not bit]
    left = [position for position, bit in enumerate(source) if bit in leaving]
    waiting = list(entering)
    pairs: dict[int, int] = {}
    for free in (copies, left) if copies_first else (copies + left,):
        direct = [bit for bit in waiting if destination.index(bit) in free]
        chosen = (direct + [bit for bit in waiting if bit not in direct])[: len(free)]
        remaining = [position for position in free if destination[position] not in direct]
        for bit in chosen:
            pairs[destination.index(bit) if bit in direct else remaining.pop(0)] = bit
            waiting.remove(bit)
    return pairs
