"""Ops that only rearrange elements, and are no `ShapeOp`: two operands, two results, or elements of one tile that trade places.

With the layouts that the rules choose, join and split rename registers: a pair is in two registers of one thread. A flip is one
exchange between registers and lanes, whatever the layout is, since the index of the element wanted is the own one with bits
complemented: ``i ^ (n - 1)``. A conversion of layouts cannot say that, because layouts are linear and a complement is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.ir.base import TileOp, check_axis, check_result
from weft.ir.classes import Rearranging
from weft.ir.types import element_of, has_layout, layout_of, shape_of, tensor
from weft.layout import LinearLayout
from weft.layout.families import transfer


def _layout(value: SSAValue) -> LinearLayout | None:
    return layout_of(value) if has_layout(value) else None


@irdl_op_definition
class JoinOp(TileOp):
    """Two tensors of one shape as the pairs of a new last dimension of size 2: ``result[.., 0]`` is ``lhs``, ``[.., 1]`` is
    ``rhs``."""

    name = "tile.join"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Rearranging())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `to` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        layout = _layout(lhs)
        wanted = None if layout is None else transfer.join(layout)
        super().__init__(operands=[lhs, rhs], result_types=[tensor(element_of(lhs), (*shape_of(lhs), 2), wanted)])

    def verify_(self) -> None:
        if not shape_of(self.lhs):
            raise VerifyException(f"tile.join takes tensors, found the scalar {self.lhs.type}")
        if shape_of(self.lhs) != shape_of(self.rhs) or element_of(self.lhs) != element_of(self.rhs):
            raise VerifyException(f"tile.join: {self.lhs.type} and {self.rhs.type} differ")
        check_result("tile.join", self.lhs, self.result, (*shape_of(self.lhs), 2))


@irdl_op_definition
class SplitOp(TileOp):
    """The two halves of the last dimension, of size 2, which both lack: ``first`` is ``source[.., 0]``, ``second`` is
    ``source[.., 1]``."""

    name = "tile.split"
    source = operand_def()
    first = result_def()
    second = result_def()
    traits = traits_def(Pure(), Rearranging())
    assembly_format = "$source attr-dict `:` type($source) `to` type($first) `,` type($second)"

    def __init__(self, source: SSAValue):
        layout = _layout(source)
        wanted = None if layout is None else transfer.split(layout)
        half = tensor(element_of(source), shape_of(source)[:-1], wanted)
        super().__init__(operands=[source], result_types=[half, half])

    def verify_(self) -> None:
        shape = shape_of(self.source)
        if len(shape) < 2 or shape[-1] != 2:
            raise VerifyException(
                f"tile.split takes two or more dimensions, the last of size 2, found {self.source.type}"
            )
        for half in (self.first, self.second):
            check_result("tile.split", self.source, half, shape[:-1])


@irdl_op_definition
class FlipOp(TileOp):
    """The elements along ``axis`` in the opposite order: ``result[.., i, ..] = source[.., n - 1 - i, ..]``."""

    name = "tile.flip"
    axis = prop_def(IntegerAttr[I64])
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Rearranging())
    assembly_format = "$source `axis` $axis attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, axis: int):
        super().__init__(operands=[source], properties={"axis": IntegerAttr(axis, i64)}, result_types=[source.type])

    def verify_(self) -> None:
        shape, axis = shape_of(self.source), self.axis.value.data
        check_axis("tile.flip", axis, len(shape))
        if shape_of(self.result) != shape or element_of(self.result) != element_of(self.source):
            raise VerifyException(
                f"tile.flip keeps shape and element type, found {self.source.type} to {self.result.type}"
            )


def flipped_bits(shape: Sequence[int], axis: int) -> int:
    """The bits of a flattened, row-major position that a flip along ``axis`` complements."""
    low = 1
    for size in shape[axis + 1 :]:
        low *= size
    return (shape[axis] - 1) * low
