"""Blocks of an array: the pointers to their elements, and which elements lie inside the array.

For a block at ``offsets``, with ``i_d`` counting along dimension d of the block:

    pointers = (base + sum_d offsets_d * strides_d) + sum_d i_d * strides_d       scalar part, tile part
    inside   = and_d  unsigned(offsets_d + i_d) < clamp(shape_d, 0, 2**31)

The scalar part is all that changes when a block moves, so a loop carries scalars and its tiles are invariant. Addresses are
computed in int64. An unsigned comparison tests both bounds at once: a negative position is at least 2**31. Axis analysis sees
through the conversion where offsets are not negative. Positions are int32, as offsets are: of a checked dimension a block
reaches the first 2**31 elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend.arithmetic import add_pointer
from weft.frontend.builder import Builder
from weft.frontend.compound import Compound
from weft.frontend.values import Tensor
from weft.ir import tile
from weft.language.core import block_type, pointer_type

POSITIONS = 1 << 31


class BlockPointer(Compound):
    """A block of an array: ``base``, and of each dimension shape and stride (int64) and offset (int32), all run-time scalars."""

    attributes: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "type": lambda p: p.type,
        "dtype": lambda p: p.type,
    }
    methods: ClassVar[dict[str, Any]] = {"advance": tl.advance, "store": tl.store}

    def __init__(
        self, base: Tensor, shape: Sequence[Tensor], strides: Sequence[Tensor], offsets: Sequence[Tensor], block: Any
    ) -> None:
        self.base = base
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.offsets = tuple(offsets)
        self.block: tuple[int, ...] = tuple(block)

    @property
    def type(self) -> pointer_type:
        """Its type as kernels see it."""
        return pointer_type(block_type(self.base.dtype, self.block))

    @property
    def parts(self) -> tuple[Tensor, ...]:
        return (self.base, *self.shape, *self.strides, *self.offsets)

    def with_parts(self, parts: Sequence[Tensor]) -> BlockPointer:
        base, *rest = parts
        rank = len(self.block)
        return BlockPointer(base, rest[:rank], rest[rank : 2 * rank], rest[2 * rank :], self.block)

    def same_kind(self, other: object) -> bool:
        return isinstance(other, BlockPointer) and self.block == other.block

    def __str__(self) -> str:
        return f"block pointer to {self.base.dtype}{list(self.block)}"


def _aligned(b: Builder, x: Tensor, dimension: int, rank: int) -> Tensor:
    """A tile of one dimension as that dimension of a tile of ``rank``."""
    return b.reshape(x, tuple(x.shape[0] if d == dimension else 1 for d in range(rank)))


def _counts(b: Builder, size: int) -> Tensor:
    return Tensor(b.emit(tile.ArangeOp(0, size)).result, dtypes.int32, (size,))


def addresses(
    b: Builder, base: Tensor, strides: Sequence[Tensor], offsets: Sequence[Tensor], block: tuple[int, ...]
) -> Tensor:
    """The pointers to a block's elements. ``strides`` are int64 scalars, ``offsets`` int32 scalars."""
    first = base
    for offset, stride in zip(offsets, strides, strict=True):
        first = add_pointer(b, first, b.binary("mul", b.cast(offset, dtypes.int64), stride))
    within: Tensor | None = None
    for d, (size, stride) in enumerate(zip(block, strides, strict=True)):
        counts = b.cast(_counts(b, size), dtypes.int64)
        steps = _aligned(b, b.binary("mul", counts, b.broadcast_to(stride, (size,))), d, len(block))
        within = steps if within is None else b.binary("add", *b.broadcast(within, steps))
    return first if within is None else add_pointer(b, first, within)


def inside(
    b: Builder, shape: Sequence[Tensor], offsets: Sequence[Tensor], block: tuple[int, ...], checked: Sequence[int]
) -> Tensor | None:
    """Which elements of a block lie in the array along the dimensions ``checked``; None where none is checked."""
    mask: Tensor | None = None
    for d in checked:
        size = block[d]
        at = b.binary("add", b.broadcast_to(offsets[d], (size,)), _counts(b, size))
        holds = _aligned(b, within(b, at, shape[d]), d, len(block))
        mask = holds if mask is None else b.binary("and", *b.broadcast(mask, holds))
    return None if mask is None else b.broadcast_to(mask, block)


def within(b: Builder, at: Tensor, size: Tensor) -> Tensor:
    """Which positions, a tile of int32, are those of a dimension of ``size``."""
    least = b.binary("max", b.cast(size, dtypes.int64), b.constant(0, dtypes.int64))
    limit = b.cast(b.binary("min", least, b.constant(POSITIONS, dtypes.int64)), dtypes.uint32)
    return b.compare("lt", b.cast(at, dtypes.uint32), b.broadcast_to(limit, at.shape))


def padding(b: Builder, dtype: DType, option: str, shape: tuple[int, ...]) -> Tensor | None:
    """What a load gives outside the array: zeros, NaNs, or anything."""
    values = {"zero": 0, "nan": float("nan")}
    return b.constant(values[option], dtype, shape) if option in values else None
