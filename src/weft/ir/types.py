"""Types of tile IR: scalars, pointers, and tensors of them; each tensor may carry its layout.

Element types keep their signedness (``i32`` is int32, ``ui32`` is uint32), unlike arith's signless integers, so that an
op's meaning is a function of its operand types alone: ``tile.binary "div"`` on ``ui32`` *is* the unsigned division. One
table relates the IR's spelling to `weft.dtypes`.

A tensor type's encoding is its layout (`LayoutAttr`) once the layout pass has run, and absent before.

Every pass asks for the types of every value, so these functions are fast. Types are immutable, and equal ones are made once: xDSL
checks each new attribute. Its hash of an attribute goes through all that the attribute is made of, in Python and each time, so
functions of a type are remembered by its identity (`by_identity`). xDSL's classes are abstract, which makes ``isinstance`` slow
where the answer is no: the exact class is asked for where nothing derives from it, and the most frequent one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, Data, OpResult, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.dtypes import DType
from weft.ir.direct import by_identity
from weft.layout import LinearLayout


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """``!tile.ptr<f32>``: the address of one element; arithmetic on it counts elements."""

    name = "tile.ptr"

    pointee: Attribute

    def verify(self) -> None:
        if self.pointee not in _FROM_IR:
            raise VerifyException(f"tile.ptr points to numbers, found {self.pointee}")


@irdl_attr_definition
class LayoutAttr(Data[LinearLayout]):
    """``#tile.layout<"...">``: a tensor type's encoding, the LinearLayout from machine dimensions to ``dim0``,
    ``dim1``, and so on."""

    name = "tile.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LinearLayout:
        with parser.in_angle_brackets():
            return LinearLayout.parse(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


@irdl_attr_definition
class Float8E4M3B15Type(ParametrizedAttribute, TypeAttribute):
    """``!tile.f8E4M3B15``: Triton's float8e4b15, which MLIR does not have."""

    name = "tile.f8E4M3B15"


Tensor: TypeAlias = TensorType[Attribute]

_TO_IR: dict[DType, Attribute] = {
    dtypes.bool_: IntegerType(1),
    **{
        dtypes.parse(f"{'' if signed else 'u'}int{bits}"): IntegerType(
            bits, Signedness.SIGNLESS if signed else Signedness.UNSIGNED
        )
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    },
    dtypes.float8_e4m3fn: Float8E4M3FNType(),
    dtypes.float8_e5m2: Float8E5M2Type(),
    dtypes.float8_e4m3b15: Float8E4M3B15Type(),
    dtypes.float8_e4m3fnuz: Float8E4M3FNUZType(),
    dtypes.float8_e5m2fnuz: Float8E5M2FNUZType(),
    dtypes.float16: Float16Type(),
    dtypes.bfloat16: BFloat16Type(),
    dtypes.float32: Float32Type(),
    dtypes.float64: Float64Type(),
}
_FROM_IR: dict[Attribute, DType] = {attribute: dtype for dtype, attribute in _TO_IR.items()}


def scalar(dtype: DType) -> Attribute:
    """The IR type of one element."""
    return _TO_IR[dtype]


@cache
def pointer(dtype: DType) -> PointerType:
    """The IR type of a pointer to elements of ``dtype``."""
    return PointerType(_TO_IR[dtype])


def tensor(element: DType | Attribute, shape: Sequence[int], layout: LinearLayout | None = None) -> Attribute:
    """A tensor type; an empty shape gives the element type itself, since a rank-0 tile *is* a scalar."""
    element_type = _TO_IR[element] if isinstance(element, DType) else element
    if not shape:
        return element_type
    return _tensor(element_type, tuple(shape), _NO_LAYOUT if layout is None else LayoutAttr(layout))


@lru_cache(maxsize=4096)
def _tensor(element: Attribute, shape: tuple[int, ...], encoding: Attribute) -> Tensor:
    return TensorType(element, shape, encoding)


_NO_LAYOUT: Final = NoneAttr()


def is_tile(value: SSAValue) -> bool:
    """Whether the value is a tensor, and so has elements and a layout (rank 0 is a scalar)."""
    return type(value.type) is TensorType


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element's IR type: the type itself for a scalar."""
    type_ = value.type if isinstance(value, (OpResult, SSAValue)) else value
    return type_.element_type if type(type_) is TensorType else type_


@by_identity
def _shape(type_: Tensor) -> tuple[int, ...]:
    return type_.get_shape()


def shape_of(value: SSAValue | Attribute) -> tuple[int, ...]:
    """A tensor's shape; ``()`` for a scalar."""
    type_ = value.type if isinstance(value, (OpResult, SSAValue)) else value
    return _shape(type_) if type(type_) is TensorType else ()


def is_pointer(value: SSAValue | Attribute) -> bool:
    """Whether the elements are pointers."""
    return type(element_of(value)) is PointerType


@by_identity
def _dtype(type_: Attribute) -> DType:
    element = element_of(type_)
    if type(element) is PointerType:
        element = element.pointee
    try:
        return _FROM_IR[element]
    except KeyError:
        raise TypeError(f"{element} is not an element type of tile IR") from None


def dtype_of(value: SSAValue | Attribute) -> DType:
    """The element's dtype; of a pointer, the dtype pointed to. `TypeError` for anything that is neither."""
    return _dtype(value.type if isinstance(value, (OpResult, SSAValue)) else value)


def defect(type_: Attribute) -> str | None:
    """Why a type is not one of tile IR: None for a number, a pointer, or a tensor of them whose layout, if any, fits."""
    element = element_of(type_)
    if element not in _FROM_IR and not isinstance(element, PointerType):
        return f"{element} is not an element type of tile IR"
    if not isinstance(type_, TensorType):
        return None
    shape = type_.get_shape()
    if not shape:
        return f"{type_} has no dimensions; a rank-0 tile is the scalar {element}"
    if min(shape) < 1:
        return f"{type_} has a size below 1"
    encoding: Attribute = type_.encoding
    if isinstance(encoding, NoneAttr):
        return None
    if not isinstance(encoding, LayoutAttr):
        return f"the encoding of {type_} is not a layout"
    outputs = dict(zip(encoding.data.out_dims, encoding.data.shape, strict=True))
    return (
        None if outputs == {f"dim{i}": n for i, n in enumerate(shape)} else f"the layout of {type_} has another shape"
    )


def has_layout(value: SSAValue | Attribute) -> bool:
    """Whether a tensor type carries a layout."""
    type_ = value.type if isinstance(value, (OpResult, SSAValue)) else value
    return type(type_) is TensorType and type(type_.encoding) is LayoutAttr


def layout_of(value: SSAValue | Attribute) -> LinearLayout:
    """The layout a tensor type carries; `TypeError` where the layout pass has not put one."""
    type_ = value.type if isinstance(value, (OpResult, SSAValue)) else value
    encoding = type_.encoding if type(type_) is TensorType else None
    if type(encoding) is not LayoutAttr:
        raise TypeError(f"{type_} carries no layout; run the layout pass first")
    return encoding.data


def like(value: SSAValue | Attribute, element: DType | Attribute) -> Attribute:
    """The type with the same shape and layout and another element type."""
    type_ = value.type if isinstance(value, (OpResult, SSAValue)) else value
    element_type = _TO_IR[element] if isinstance(element, DType) else element
    return _with_element(type_, element_type) if type(type_) is TensorType else element_type


@by_identity
def _with_element(type_: Tensor, element: Attribute) -> Tensor:
    return _tensor(element, type_.get_shape(), type_.encoding)


@by_identity
def _with_layout(type_: Tensor, layout: LinearLayout) -> Tensor:
    return _tensor(type_.element_type, type_.get_shape(), LayoutAttr(layout))


def with_layout(type_: Attribute, layout: LinearLayout) -> Attribute:
    """The same tensor type, laid out as told; scalars are returned as they are."""
    return _with_layout(type_, layout) if type(type_) is TensorType else type_
