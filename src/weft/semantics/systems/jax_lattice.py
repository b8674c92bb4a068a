"""JAX's types as lattices: the document's, the one without 64-bit types, and the strict mode's.

The document draws the first. Its edges, and below the last line the narrow types it is silent on, which are leaves::

    bool -> i*                i* -> uint8, int8
    uint8 -> uint16, int16    uint16 -> uint32, int32    uint32 -> uint64, int64    uint64 -> f*
    int8 -> int16 -> int32 -> int64 -> f*
    f* -> bfloat16, float16, c*       bfloat16, float16 -> float32 -> float64, complex64
    float64 -> complex128             c* -> complex64 -> complex128

    i* -> int2, uint2, int4, uint4    f* -> float4_e2m1fn and the eight float8 types

``i*``, ``f*`` and ``c*`` are Python's numbers and the arrays that come of them alone. A chosen type lies above its weak one,
so a number never widens it, and the weak type of a kind lies above the strong types of a lower one: int64 and 2.5 meet in
f*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft import dtypes
from weft.dtypes import DType, Kind
from weft.semantics.core import Type
from weft.semantics.lattice import Lattice


@dataclass(frozen=True, slots=True)
class Node:
    """An element of the lattice: a dtype, or the weak type of a kind (then ``dtype`` is what arrays of it hold)."""

    dtype: DType
    weak: bool = False

    def __str__(self) -> str:
        return WEAK_NAMES[self.dtype.kind] if self.weak else str(self.dtype)

    @property
    def type(self) -> Type:
        return Type(self.dtype, self.weak)


WEAK_NAMES: Final[Mapping[Kind, str]] = {Kind.INTEGER: "i*", Kind.FLOAT: "f*", Kind.COMPLEX: "c*"}
"""How the document spells the weak types; a bool is never weak."""

WEAK: Final[Mapping[Kind, Node]] = {
    Kind.INTEGER: Node(dtypes.int64, weak=True),
    Kind.FLOAT: Node(dtypes.float64, weak=True),
    Kind.COMPLEX: Node(dtypes.complex128, weak=True),
}
"""The weak nodes of the lattice."""

TYPES: Final[tuple[DType, ...]] = (
    *(dtypes.bool_, dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128),
    *(dtypes.int2, dtypes.uint2, dtypes.int4, dtypes.uint4, dtypes.float4_e2m1fn),
    *(dtypes.float8_e3m4, dtypes.float8_e4m3, dtypes.float8_e4m3fn, dtypes.float8_e4m3b11fnuz),
    *(dtypes.float8_e4m3fnuz, dtypes.float8_e5m2, dtypes.float8_e5m2fnuz, dtypes.float8_e8m0fnu),
)
"""JAX's element types: the document's, then the narrow ones."""

NARROW_INTEGERS: Final = tuple(d for d in TYPES if d.is_integer and d.bits < 8)
NARROW_FLOATS: Final = tuple(d for d in TYPES if d.is_float and d.bits < 16)
"""The leaves of the lattice."""

X32: Final[Mapping[DType, DType]] = {
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.uint32,
    dtypes.float64: dtypes.float32,
    dtypes.complex128: dtypes.complex64,
}
"""What 64-bit types become where they are disabled."""


def _lattice(x64: bool) -> Lattice[Node]:
    """The document's lattice, with the narrow types as leaves. Without 64-bit types uint32 lies below int32."""
    i, f, c = WEAK.values()
    above: dict[DType | Node, Sequence[DType | Node]] = {
        dtypes.bool_: (i,),
        i: (dtypes.uint8, dtypes.int8, *NARROW_INTEGERS),
        dtypes.uint8: (dtypes.int16, dtypes.uint16),
        dtypes.uint16: (dtypes.int32, dtypes.uint32),
        dtypes.uint32: (dtypes.int64 if x64 else dtypes.int32, dtypes.uint64),
        dtypes.uint64: (f,),
        dtypes.int8: (dtypes.int16,),
        dtypes.int16: (dtypes.int32,),
        dtypes.int32: (dtypes.int64,),
        dtypes.int64: (f,),
        f: (dtypes.bfloat16, dtypes.float16, c, *NARROW_FLOATS),
        dtypes.bfloat16: (dtypes.float32,),
        dtypes.float16: (dtypes.float32,),
        dtypes.float32: (dtypes.float64, dtypes.complex64),
        dtypes.float64: (dtypes.complex128,),
        c: (dtypes.complex64,),
        dtypes.complex64: (dtypes.complex128,),
    }
    return Lattice({_as_node(lower): [_as_node(n) for n in upper] for lower, upper in above.items()})


def _strict_lattice() -> Lattice[Node]:
    """The strict mode's: no strong type lies below another, a weak one lies below what is at least of its kind."""
    edges = {Node(d): list[Node]() for d in TYPES}
    for kind, weak in WEAK.items():
        edges[weak] = [Node(d) for d in TYPES if d.kind is kind]
        edges[weak] += [WEAK[above] for above in WEAK if above == kind + 1]
    return Lattice(edges)


def _as_node(item: DType | Node) -> Node:
    return item if isinstance(item, Node) else Node(item)


LATTICE: Final = _lattice(x64=True)
"""The document's lattice."""

LATTICE_X32: Final = _lattice(x64=False)
"""The lattice where 64-bit types are disabled."""

STRICT_LATTICE: Final = _strict_lattice()
"""The lattice of ``jax_numpy_dtype_promotion='strict'``."""
