"""The register layout for an access to global memory: wide vectors, neighbouring lanes on neighbouring vectors.

The bits of a tensor's index are dealt in the order of addresses, across dimensions: first to the vector that a thread moves
at once, then to lanes, then to warps; what is left goes to registers. So a [512, 2] tensor vectorises like a line of 1,024,
where a rule that looks at the last dimension alone would move 2 elements at a time.

    vector   the widest access, what is contiguous, what the alignment allows, and no more than each thread's part

A thread's part is the tensor's elements by the number of threads: wider vectors leave threads without elements of their own,
which load copies. ``copies`` allows it: 2 lets two threads hold the same. It adds traffic, so the default is 1.

    [512, 2] float8, 4 warps: 1,024 elements for 128 threads, vectors of 8: {register: [(0,1),(1,0),(2,0)], lane: [(4,0), ..]}

Laws: no two threads hold an element, unless there are fewer elements than threads or ``copies`` allows it; requests touch
no more sectors than hold what they move.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import Bases, Deal, check_order, size_bits
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.memory.shared import Part


def coalesced(
    shape: Sequence[int],
    bits: int,
    warps: int,
    order: Sequence[int] | None = None,
    contiguity: int | None = None,
    alignment: int = 16,
    lanes: int = 32,
    widest: int = 128,
    copies: int = 1,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The layout for loading or storing a tensor of elements of ``bits``, from register, lane and warp (and block).

    ``order`` lists the dimensions, the one with consecutive addresses first (default: row-major). ``contiguity`` is how many
    elements follow one another in this order (default: all), ``alignment`` that of the first in bytes. ``copies`` is how many
    threads may hold the same elements for the sake of wider accesses. `ValueError` says which argument is wrong.

        coalesced((64, 2), bits=16, warps=1)

        {register: [(0,1),(1,0)], lane: [(2,0),(4,0),(8,0),(16,0),(32,0)], warp: []} -> [dim0: 64, dim1: 2]
    """
    order = tuple(reversed(range(len(shape)))) if order is None else tuple(order)
    check_order("coalesced", len(shape), order)
    part = Part("coalesced", shape, cga_layout).shape
    left = {axis: size_bits("coalesced", "a block's part", part[axis]) for axis in order}
    lane_bits, warp_bits = size_bits("coalesced", "lanes", lanes), size_bits("coalesced", "warps", warps)
    shared = size_bits("coalesced", "copies", copies)
    if log2_exact(bits) is None or log2_exact(widest) is None or bits > widest:
        raise ValueError(f"coalesced: bits is {bits} and widest {widest}, expected powers of two, bits the smaller")
    if alignment < 1 or (alignment & -alignment) * 8 < bits:
        raise ValueError(f"coalesced: alignment is {alignment}, expected a multiple of an element's {bits} bits")
    if contiguity is not None and contiguity < 1:
        raise ValueError(f"coalesced: contiguity is {contiguity}, expected at least 1")
    held = sum(left.values())
    vector = min(
        (min(widest, (alignment & -alignment) * 8) // bits).bit_length() - 1,
        held if contiguity is None else (contiguity & -contiguity).bit_length() - 1,
        max(0, held + shared - lane_bits - warp_bits),
    )
    deal = Deal("coalesced", shape, cga_layout)
    for dim, wanted in ((REGISTER, min(vector, held)), (LANE, lane_bits), (WARP, warp_bits)):
        rest = wanted
        for axis in order:
            taken = min(rest, left[axis])
            deal.steps([(dim, axis, taken)])
            left[axis] -= taken
            rest -= taken
        deal.copies(dim, rest)
    deal.rest(order)
    return deal.layout()
