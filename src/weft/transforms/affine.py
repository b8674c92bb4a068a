"""By what number a tile's neighbours differ along a dimension, where that is known only when the kernel runs.

The pointers ``x + (id * 1024 + arange(0, 1024)) * stride``, of float32, differ by 4 bytes times ``stride``. The number is a sum
of products. Each has a factor, and scalars, which are tiles of equal elements.

    arange(0, 1024)                 1
    id * 1024 + arange(0, 1024)     1
    that * stride                   1 * stride
    x + that                        4 * stride

Axis analysis knows such numbers where they are constants (`weft.transforms.axis_boxes`). As there, sums and products of signed
integers of 32 bits and more are taken not to overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from xdsl.ir import SSAValue

from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, shape_of
from weft.transforms.axis_boxes import box_of
from weft.transforms.axis_info import AxisInfo

_MOST: Final = 64
"""The tiles that are looked at: unrolled loops make long chains, and sums in which a tile is twice."""


class Product(NamedTuple):
    """A factor times the elements of ``uniform`` tiles, in each of which all elements are equal."""

    factor: int
    uniform: tuple[SSAValue, ...] = ()


Step: TypeAlias = tuple[Product, ...]
"""The sum of products."""


def step_along(value: SSAValue, dimension: int, axis: Mapping[SSAValue, AxisInfo]) -> Step | None:
    """What each index along a dimension of a tile adds to it, in bytes for pointers; None where that is not one number."""
    return _Steps(axis).of(value, dimension)


@dataclass
class _Steps:
    """The steps of tiles, as many of them as there is patience ``left`` for."""

    axis: Mapping[SSAValue, AxisInfo]
    left: int = _MOST

    def of(self, value: SSAValue, dimension: int) -> Step | None:
        """As `step_along`."""
        info, self.left = self.axis.get(value), self.left - 1
        if info is None or self.left < 0:
            return None
        step, group = box_of(info).along[dimension]
        if group == shape_of(value)[dimension]:
            unit = info.unit if is_pointer(value) else 1
            return (Product(step * unit),) if step else ()
        match value.owner:
            case tile.AddPtrOp() as op:
                return _sum(self.of(op.pointer, dimension), _times(self.of(op.offset, dimension), info.unit))
            case tile.BinaryOp() as op if _is_wide(op.lhs):
                return self._of_binary(op, dimension)
            case tile.CastOp() as op if _is_wide(op.source) and _is_wide(op.result):
                grows = dtype_of(op.result).bits >= dtype_of(op.source).bits
                return self.of(op.source, dimension) if grows else None
            case tile.ExpandDimsOp() as op:
                return self.of(op.source, dimension - (dimension > op.axis.value.data))
            case tile.TransOp() as op:
                return self.of(op.source, op.permutation[dimension])
            case tile.BroadcastOp() | tile.HintOp() | tile.ConvertLayoutOp() as op:
                return self.of(op.source, dimension)
            case _:
                return None

    def _of_binary(self, op: tile.BinaryOp, dimension: int) -> Step | None:
        match op.kind.data:
            case "add":
                return _sum(self.of(op.lhs, dimension), self.of(op.rhs, dimension))
            case "sub":
                return _sum(self.of(op.lhs, dimension), _times(self.of(op.rhs, dimension), -1))
            case "mul" if self._is_uniform(op.rhs):
                return _times(self.of(op.lhs, dimension), 1, op.rhs)
            case "mul" if self._is_uniform(op.lhs):
                return _times(self.of(op.rhs, dimension), 1, op.lhs)
            case _:
                return None

    def _is_uniform(self, value: SSAValue) -> bool:
        info = self.axis.get(value)
        return info is not None and info.constancy == shape_of(value)


def _sum(x: Step | None, y: Step | None) -> Step | None:
    return None if x is None or y is None else x + y


def _times(x: Step | None, factor: int, *uniform: SSAValue) -> Step | None:
    return None if x is None else tuple([Product(each.factor * factor, each.uniform + uniform) for each in x])


def _is_wide(value: SSAValue) -> bool:
    """Whether it has signed integers of 32 bits or more."""
    dtype = dtype_of(value)
    return not is_pointer(value) and dtype.is_integer and dtype.signed and dtype.bits >= 32
