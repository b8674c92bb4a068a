"""Tiles out of nothing, and the same elements in another shape: neither computes, neither moves data by itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import I64, DenseArrayBase, FloatData, IntAttr, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.ir.base import TileOp
from weft.ir.classes import Conversion, Generator, GridFact, Shape, View
from weft.ir.types import defect, dtype_of, element_of, is_pointer, scalar, shape_of, tensor, with_layout
from weft.layout import LinearLayout
from weft.layout.families import transfer


@irdl_op_definition
class ConstantOp(TileOp):
    """One number in every element. Integers and bools are `IntAttr` in the type's range, floats `FloatData`
    already rounded to the type."""

    name = "tile.constant"
    value = prop_def(IntAttr | FloatData)
    result = result_def()
    traits = traits_def(Pure(), Generator())

    def __init__(self, value: int | float, type_: Attribute):
        number = FloatData(float(value)) if dtype_of(type_).is_float else IntAttr(int(value))
        super().__init__(properties={"value": number}, result_types=[type_])

    @property
    def number(self) -> int | float:
        """The Python number; bools are 0 or 1."""
        return self.value.data

    def print(self, printer: Printer) -> None:
        text = "ninf" if self.number == -math.inf else repr(self.number)
        mantissa, e, exponent = text.partition("e") if text[-1].isdigit() else (text, "", "")
        point = ".0" if e and "." not in mantissa else ""
        printer.print_string(f" {mantissa}{point}{e}{exponent}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        if (word := parser.parse_optional_identifier()) is None:
            number = parser.parse_number()
        elif (special := {"inf": math.inf, "ninf": -math.inf, "nan": math.nan}.get(word)) is not None:
            number = special
        else:
            parser.raise_error(f"expected a number, inf, ninf or nan, found '{word}'")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if reason := defect(type_):
            parser.raise_error(reason)
        op = cls(number, type_)
        op.attributes.update(attributes)
        return op

    def verify_(self) -> None:
        if is_pointer(self.result):
            raise VerifyException("tile.constant cannot make a pointer")
        dtype = dtype_of(self.result)
        if dtype.is_float != isinstance(self.value, FloatData):
            raise VerifyException(
                f"tile.constant: {self.number!r} is not {'a float' if dtype.is_float else 'an integer'}"
            )
        if isinstance(self.value, FloatData) and not dtype.represents(self.value.data):
            raise VerifyException(f"tile.constant: {self.value.data} is not a value of {dtype}; round it first")
        if isinstance(self.value, IntAttr) and not dtype.min <= self.value.data <= dtype.max:
            raise VerifyException(f"tile.constant: {self.value.data} is out of range for {dtype}")


class _GridOp(TileOp):
    """A fact about the grid along one of its three axes."""

    axis = prop_def(IntegerAttr[I64])
    result = result_def(scalar(dtypes.int32))
    traits = traits_def(Pure(), GridFact())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int):
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[scalar(dtypes.int32)])

    def verify_(self) -> None:
        if self.axis.value.data not in (0, 1, 2):
            raise VerifyException(f"{self.name}: axis must be 0, 1 or 2, found {self.axis.value.data}")


@irdl_op_definition
class ProgramIdOp(_GridOp):
    """This program's index along a grid axis, int32."""

    name = "tile.program_id"


@irdl_op_definition
class NumProgramsOp(_GridOp):
    """The grid's size along an axis, int32."""

    name = "tile.num_programs"


@irdl_op_definition
class ArangeOp(TileOp):
    """``[start, end)`` as a 1-d int32 tensor; ``end - start`` is its length."""

    name = "tile.arange"
    start = prop_def(IntegerAttr[I64])
    end = prop_def(IntegerAttr[I64])
    result = result_def()
    traits = traits_def(Pure(), Generator())
    assembly_format = "$start $end attr-dict `:` type($result)"

    def __init__(self, start: int, end: int, layout: LinearLayout | None = None):
        super().__init__(
            properties={"start": IntegerAttr(start, i64), "end": IntegerAttr(end, i64)},
            result_types=[tensor(dtypes.int32, (end - start,), layout)],
        )

    def verify_(self) -> None:
        if element_of(self.result) != scalar(dtypes.int32):
            raise VerifyException(f"tile.arange makes int32, found {self.result.type}")
        if shape_of(self.result) != (self.end.value.data - self.start.value.data,):
            raise VerifyException(
                f"tile.arange {self.start.value.data} {self.end.value.data} has shape {shape_of(self.result)}, "
                f"expected ({self.end.value.data - self.start.value.data},)"
            )


class _SpreadOp(TileOp):
    """One value in, its elements in another shape out."""

    source = operand_def()
    result = result_def()

    def _verify_element(self) -> None:
        if element_of(self.source) != element_of(self.result):
            raise VerifyException(f"{self.name} keeps the element type, found {self.source.type} to {self.result.type}")

    def _verify_tensors(self) -> None:
        self._verify_element()
        for value in (self.source, self.result):
            if not shape_of(value):
                raise VerifyException(f"{self.name} takes and gives tensors, found the scalar {value.type}")


@irdl_op_definition
class SplatOp(_SpreadOp):
    """A scalar in every element of a tensor."""

    name = "tile.splat"
    traits = traits_def(Pure(), Generator())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, shape: Sequence[int], layout: LinearLayout | None = None):
        super().__init__(operands=[source], result_types=[tensor(source.type, shape, layout)])

    def verify_(self) -> None:
        self._verify_element()
        if shape_of(self.source) or not shape_of(self.result):
            raise VerifyException(
                f"tile.splat takes a scalar to a tensor, found {self.source.type} to {self.result.type}"
            )


class ShapeOp(_SpreadOp):
    """One tensor in, the same elements in another shape out. Maps layouts so that no element moves (theorem 9.3 of the
    linear-layouts paper; `weft.layout.families.transfer`)."""

    traits = traits_def(Pure(), Shape(), View())

    @abstractmethod
    def result_layout(self, layout: LinearLayout) -> LinearLayout:
        """The result's layout for a source under ``layout``: every place keeps what it holds."""
        ...

    @abstractmethod
    def source_layout(self, layout: LinearLayout) -> LinearLayout:
        """The source's layout that gives the result ``layout`` the same way."""
        ...

    def read_layout(self, layout: LinearLayout) -> LinearLayout:
        """Which source element each place of the result holds; the source's layout but for duplicate registers."""
        return self.source_layout(layout)


@irdl_op_definition
class BroadcastOp(ShapeOp):
    """Sizes of 1 grow to the result's; the rank stays."""

    name = "tile.broadcast"
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, shape: Sequence[int], layout: LinearLayout | None = None):
        super().__init__(operands=[source], result_types=[tensor(element_of(source), shape, layout)])

    def result_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.broadcast(layout, shape_of(self.result))

    def source_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.broadcast_back(layout, shape_of(self.source))

    def read_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.project(layout, shape_of(self.source))

    def verify_(self) -> None:
        self._verify_tensors()
        old, new = shape_of(self.source), shape_of(self.result)
        if len(old) != len(new) or any(a not in (b, 1) for a, b in zip(old, new, strict=True)):
            raise VerifyException(f"tile.broadcast cannot take shape {old} to {new}")


@irdl_op_definition
class ExpandDimsOp(ShapeOp):
    """A new dimension of size 1 at ``axis``."""

    name = "tile.expand_dims"
    axis = prop_def(IntegerAttr[I64])
    assembly_format = "$source $axis attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, axis: int, layout: LinearLayout | None = None):
        shape = list(shape_of(source))
        shape.insert(axis, 1)
        super().__init__(
            operands=[source],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[tensor(element_of(source), shape, layout)],
        )

    def result_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.expand_dims(layout, self.axis.value.data)

    def source_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.expand_dims_back(layout, self.axis.value.data)

    def verify_(self) -> None:
        self._verify_tensors()
        shape = list(shape_of(self.source))
        if not 0 <= self.axis.value.data <= len(shape):
            raise VerifyException(
                f"tile.expand_dims: axis {self.axis.value.data} is out of range for rank {len(shape)}"
            )
        shape.insert(self.axis.value.data, 1)
        if tuple(shape) != shape_of(self.result):
            raise VerifyException(f"tile.expand_dims: expected shape {tuple(shape)}, found {shape_of(self.result)}")


@irdl_op_definition
class ReshapeOp(ShapeOp):
    """The same elements in row-major order under another shape."""

    name = "tile.reshape"
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, shape: Sequence[int], layout: LinearLayout | None = None):
        super().__init__(operands=[source], result_types=[tensor(element_of(source), shape, layout)])

    def result_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.reshape(layout, shape_of(self.result))

    def source_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.reshape(layout, shape_of(self.source))

    def verify_(self) -> None:
        self._verify_tensors()
        old, new = math.prod(shape_of(self.source)), math.prod(shape_of(self.result))
        if old != new:
            raise VerifyException(f"tile.reshape: {old} elements cannot become {new}")


@irdl_op_definition
class TransOp(ShapeOp):
    """Result dimension ``i`` is source dimension ``order[i]``."""

    name = "tile.trans"
    order = prop_def(DenseArrayBase[I64])
    assembly_format = "$source $order attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, order: Sequence[int], layout: LinearLayout | None = None):
        shape = shape_of(source)
        super().__init__(
            operands=[source],
            properties={"order": DenseArrayBase.from_list(i64, order)},
            result_types=[tensor(element_of(source), [shape[i] for i in order], layout)],
        )

    @property
    def permutation(self) -> tuple[int, ...]:
        """``order`` as Python ints."""
        return tuple(self.order.get_values())

    def result_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.trans(layout, self.permutation)

    def source_layout(self, layout: LinearLayout) -> LinearLayout:
        return transfer.trans_back(layout, self.permutation)

    def verify_(self) -> None:
        self._verify_tensors()
        shape, order = shape_of(self.source), self.permutation
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"tile.trans: {order} is not a permutation of {len(shape)} dimensions")
        if tuple(shape[i] for i in order) != shape_of(self.result):
            raise VerifyException(f"tile.trans: shape {shape} in order {order} is not {shape_of(self.result)}")


@irdl_op_definition
class ConvertLayoutOp(TileOp):
    """The same tensor under another layout: the only op that moves data between registers and lanes by itself."""

    name = "tile.convert_layout"
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Conversion(), View())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, layout: LinearLayout):
        super().__init__(operands=[source], result_types=[with_layout(source.type, layout)])

    def verify_(self) -> None:
        if element_of(self.source) != element_of(self.result) or shape_of(self.source) != shape_of(self.result):
            raise VerifyException(
                f"tile.convert_layout keeps shape and element type, found {self.source.type} to {self.result.type}"
            )
