"""Questions to a distributed layout (paper 5.1): contiguity, vector widths, copies, sectors of global memory.

The answers are computed from a layout's columns, for all families alike and across dimensions. They do not use a family's
parameters ("size per thread along the fastest dimension"), and enumerate no elements.

Global memory. The address of element (i0, i1, ..) is ``i0 * stride0 + i1 * stride1 + ..``, in elements; that is linear over F2 if
the strides are powers of two that keep the dimensions' bits apart (or 0). The default is a row-major tensor without gaps. For
rows that are any number of elements apart, take the next power of two as their stride and give the alignment they leave.

    512x2 float8, {register: [(0,1),(1,0),(2,0),(4,0)], lane: [(8,0), ..]}: the registers' address bits are 1 2 4 8, so a thread's
    16 elements are one vector of 128 bits, although a row has only two. With rows 4 elements apart they are 1 4 8 16: 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.layout.algebra import f2
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.memory.banks import BLOCK, OFFSET, vector_size, vectors

SECTOR_BITS = 256
"""The unit in which global memory is moved: 32 bytes."""
LINE_BITS = 1024
"""A cache line: 128 bytes."""
_HARDWARE_ORDER = (REGISTER, LANE, WARP, BLOCK)


def address_map(layout: LinearLayout, strides: Sequence[int] | None = None) -> LinearLayout:
    """(register, lane, warp, ..) -> ``offset``: the address of each register's element, in elements; see the module.

    ``strides`` has one entry per dimension of the tensor. `ValueError` where addresses would not be linear.
    """
    shape = layout.shape
    if strides is None:
        return LinearLayout.from_columns(dict(layout.inputs), ((OFFSET, layout.out_bits),))
    if len(strides) != len(shape):
        raise ValueError(
            f"address_map: strides {tuple(strides)} has {len(strides)} entries, the shape has {len(shape)}"
        )
    used = 0
    for axis, (stride, (_, bits)) in enumerate(zip(strides, layout.outputs, strict=True)):
        if not bits or not stride:
            continue
        if log2_exact(stride) is None:
            raise ValueError(f"address_map: the stride of dim{axis} is {stride}, expected a power of two or 0")
        span = ((1 << bits) - 1) * stride
        if used & span:
            raise ValueError(
                f"address_map: strides {tuple(strides)} of shape {shape} make dim{axis} overlap another dimension, "
                "expected address bits of its own"
            )
        used |= span

    def address(basis: Sequence[int]) -> int:
        return sum(coordinate * stride for coordinate, stride in zip(basis, strides, strict=True))

    columns = {dim: tuple(address(basis) for basis in layout.bases(dim)) for dim in layout.in_dims}
    return LinearLayout.from_columns(columns, ((OFFSET, used.bit_length()),))


def contiguity(layout: LinearLayout, strides: Sequence[int] | None = None) -> int:
    """How many consecutive elements registers 0, 1, 2, .. of a thread hold, in this order: the largest u for which the inverse
    of the layout is the identity from the addresses below u to registers."""
    access = address_map(layout, strides)
    registers = access.columns(REGISTER) if REGISTER in access.in_dims else ()
    size = 1
    while size.bit_length() <= len(registers) and registers[size.bit_length() - 1] == size:
        size *= 2
    return min(size, vector_size(access, size))


def vector_bits(
    layout: LinearLayout, bits: int, alignment: int = 16, strides: Sequence[int] | None = None, widest: int = 128
) -> int:
    """The width of the widest accesses to global memory by which each thread can move its elements of ``bits``: whole
    vectors, aligned, of its own registers in any order (the same in all threads).

    ``alignment`` is that of the tensor in bytes: every address is a multiple of it, plus what strides add.
    """
    if log2_exact(bits) is None or log2_exact(widest) is None or bits > widest:
        raise ValueError(f"vector_bits: bits is {bits} and widest {widest}, expected powers of two, bits the smaller")
    if alignment < 1 or (alignment & -alignment) * 8 < bits:
        raise ValueError(f"vector_bits: alignment is {alignment}, expected a multiple of an element's {bits} bits")
    limit = min(widest, (alignment & -alignment) * 8)
    return bits * vector_size(address_map(layout, strides), limit // bits)


def elements_per_thread(layout: LinearLayout, distinct: bool = False) -> int:
    """How many registers a thread has; ``distinct``: how many different elements they hold."""
    if REGISTER not in layout.in_dims:
        return 1
    return 1 << f2.rank(layout.columns(REGISTER)) if distinct else layout.in_size(REGISTER)


def copies(layout: LinearLayout) -> dict[str, int]:
    """For each input dimension a mask: what has none of its bits set is the first copy.

    A bit is in the mask if its column is a sum of earlier ones, of this dimension or of a faster one (register before lane before
    warp before block). For distributed layouts these are the zero columns. Indices that have no bit of their
    dimension's mask hold each of the layout's elements exactly once. ``1 << mask.bit_count()`` threads (lanes, ..) hold the same.
    """
    dims = [d for d in _HARDWARE_ORDER if d in layout.in_dims] + [d for d in layout.in_dims if d not in _HARDWARE_ORDER]
    echelon = f2.Echelon()
    masks = {dim: 0 for dim in layout.in_dims}
    for dim in dims:
        for bit, column in enumerate(layout.columns(dim)):
            if not echelon.add(column):
                masks[dim] |= 1 << bit
    return masks


@dataclass(frozen=True)
class Coalescing:
    """What moving a tensor once between global memory and registers costs; the tensor begins at a line."""

    vector_bits: int
    """Bits per lane and instruction."""
    requests: int
    """Instructions, over all warps."""
    sectors: int
    """Sectors of 32 bytes that one request touches."""
    ideal: int
    """The fewest sectors that could hold what one request moves."""
    lines: int
    """Cache lines of 128 bytes that one request touches."""

    @property
    def efficiency(self) -> float:
        """The part of what is moved that was asked for."""
        return self.ideal / self.sectors


def coalescing(
    layout: LinearLayout, bits: int, vector: int | None = None, strides: Sequence[int] | None = None
) -> Coalescing:
    """Sectors per request of a tensor of elements of ``bits``; each thread moves ``vector`` elements per instruction, by
    default the most that `vector_bits` allows. Duplicate registers move once, duplicate lanes touch no further sectors."""
    most = vector_bits(layout, bits, 16, strides) // bits
    size = most if vector is None else vector
    if log2_exact(size) is None or size > most:
        raise ValueError(f"coalescing: vector is {size}, expected a power of two up to {most} for this layout")
    access = address_map(layout, strides)
    lanes = access.columns(LANE) if LANE in access.in_dims else ()
    warps = access.columns(WARP) if WARP in access.in_dims else ()
    distinct = 1 << f2.rank([offset // size for offset in lanes])

    def touched(unit: int) -> int:
        return 1 << f2.rank([offset // (unit // bits) for offset in lanes])

    return Coalescing(
        vector_bits=size * bits,
        requests=1 << (len(vectors(access, size).across) + len(warps)),
        sectors=touched(SECTOR_BITS),
        ideal=max(1, distinct * size * bits // SECTOR_BITS),
        lines=touched(LINE_BITS),
    )
