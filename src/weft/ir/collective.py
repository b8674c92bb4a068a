"""Ops whose result element depends on many elements of the operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, TypeAlias

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.dtypes import DType, lossless
from weft.ir.base import TileOp, check_axis, check_result
from weft.ir.classes import Collective
from weft.ir.elementwise import BinaryOp
from weft.ir.types import dtype_of, element_of, has_layout, is_pointer, layout_of, scalar, shape_of, tensor


@irdl_op_definition
class YieldOp(TileOp):
    """Ends a combine region."""

    name = "tile.yield"
    values = var_operand_def()
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ReduceOp, ScanOp), Pure()))
    assembly_format = "$values attr-dict `:` type($values)"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=values)


@irdl_op_definition
class ReduceOp(TileOp):
    """Reduces ``n`` tensors of one shape along ``axis`` with a combine region of ``2 n`` scalar arguments (accumulators,
    then elements) yielding ``n``. The region is associative; the order of combining is not specified. Results drop the
    axis."""

    name = "tile.reduce"
    axis = prop_def(IntegerAttr[I64])
    sources = var_operand_def()
    combine = region_def("single_block")
    results_ = var_result_def()
    traits = traits_def(RecursiveMemoryEffect(), Collective())
    assembly_format = "$sources `axis` $axis attr-dict `:` type($sources) `to` type($results_) $combine"

    def __init__(
        self, sources: Sequence[SSAValue], axis: int, combine: Region, result_types: Sequence[Attribute] | None = None
    ):
        if result_types is None:
            shape = list(shape_of(sources[0]))
            del shape[axis]
            result_types = [tensor(element_of(s), shape) for s in sources]
        super().__init__(
            operands=sources,
            properties={"axis": IntegerAttr(axis, i64)},
            regions=[combine],
            result_types=result_types,
        )

    @staticmethod
    def region(dtype: DType, kind: str) -> Region:
        """The combine region of a single `BinaryOp`."""
        block = Block(arg_types=[scalar(dtype), scalar(dtype)])
        op = BinaryOp(kind, block.args[0], block.args[1])
        block.add_ops([op, YieldOp(op.result)])
        return Region(block)

    @property
    def single_op(self) -> BinaryOp | None:
        """The op that the region is on its two arguments; None for any other region."""
        return _single_op(self.combine)

    @property
    def is_sum(self) -> bool:
        """Whether this is the sum of one tensor."""
        only = self.single_op
        return only is not None and only.kind.data == "add"

    def verify_(self) -> None:
        shape = _verify_axis(self)
        expected = list(shape)
        del expected[self.axis.value.data]
        _verify_combining(self, shape, expected)


@irdl_op_definition
class ScanOp(TileOp):
    """All prefixes of ``n`` tensors of one shape along ``axis``: element i of the results combines the elements 0 to i of the
    sources; with ``reverse`` the elements from the last down to i. The combine region is that of `ReduceOp`: its first ``n``
    arguments combine earlier elements than the others. It is associative; how elements are grouped is not specified."""

    name = "tile.scan"
    axis = prop_def(IntegerAttr[I64])
    reverse = opt_prop_def(UnitAttr)
    sources = var_operand_def()
    combine = region_def("single_block")
    results_ = var_result_def()
    traits = traits_def(RecursiveMemoryEffect(), Collective())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$sources `axis` $axis (`reverse` $reverse^)? attr-dict `:` type($sources) `to` type($results_) $combine"
    )

    def __init__(self, sources: Sequence[SSAValue], axis: int, combine: Region, *, reverse: bool = False):
        super().__init__(
            operands=sources,
            properties={"axis": IntegerAttr(axis, i64), "reverse": UnitAttr() if reverse else None},
            regions=[combine],
            result_types=[source.type for source in sources],
        )

    @property
    def single_op(self) -> BinaryOp | None:
        """As of `ReduceOp`."""
        return _single_op(self.combine)

    def verify_(self) -> None:
        shape = _verify_axis(self)
        _verify_combining(self, shape, shape)


CombiningOp: TypeAlias = ReduceOp | ScanOp
"""Ops with a combine region."""


def _single_op(combine: Region) -> BinaryOp | None:
    only, *rest = combine.block.ops
    if isinstance(only, BinaryOp) and len(rest) == 1 and set(only.operands) == set(combine.block.args):
        return only
    return None


def _verify_axis(op: CombiningOp) -> tuple[int, ...]:
    """The shape of the sources."""
    if not op.sources:
        raise VerifyException(f"{op.name} needs at least one tensor")
    shape = shape_of(op.sources[0])
    check_axis(op.name, op.axis.value.data, len(shape))
    return shape


def _verify_combining(op: CombiningOp, shape: Sequence[int], expected: Sequence[int]) -> None:
    """Sources have one shape, results the expected one; the region is of their elements."""
    if len(op.results_) != len(op.sources):
        raise VerifyException(f"{op.name} of {len(op.sources)} tensors gives {len(op.results_)} results")
    for source, result in zip(op.sources, op.results_, strict=True):
        if shape_of(source) != shape:
            raise VerifyException(f"{op.name}: shapes {shape} and {shape_of(source)} differ")
        check_result(op.name, source, result, expected)
    arguments = [a.type for a in op.combine.block.args]
    elements = [element_of(s) for s in op.sources]
    if arguments != elements + elements:
        raise VerifyException(f"{op.name}: the combine region takes the accumulators' types, then the elements'")
    end = op.combine.block.last_op
    if not isinstance(end, YieldOp) or [v.type for v in end.values] != elements:
        raise VerifyException(f"{op.name}: the combine region ends by yielding the accumulators' types")


@irdl_op_definition
class GatherOp(TileOp):
    """``result[.., i, ..] = source[.., index[.., i, ..], ..]`` along ``axis``: the result has the shape of the index, which
    differs from the source's at most along the axis. An index outside of the axis gives an unspecified value (the reference
    gives 0)."""

    name = "tile.gather"
    axis = prop_def(IntegerAttr[I64])
    source = operand_def()
    index = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Collective())
    assembly_format = "$source `,` $index `axis` $axis attr-dict `:` type($source) `,` type($index) `to` type($result)"

    def __init__(self, source: SSAValue, index: SSAValue, axis: int):
        layout = layout_of(index) if has_layout(index) else None
        super().__init__(
            operands=[source, index],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[tensor(element_of(source), shape_of(index), layout)],
        )

    def verify_(self) -> None:
        source, index, axis = shape_of(self.source), shape_of(self.index), self.axis.value.data
        check_axis("tile.gather", axis, len(source))
        if len(index) != len(source) or any(
            a != b for d, (a, b) in enumerate(zip(source, index, strict=True)) if d != axis
        ):
            raise VerifyException(f"tile.gather: shapes {source} and {index} differ in more than dimension {axis}")
        if is_pointer(self.index) or not dtype_of(self.index).is_integer:
            raise VerifyException(f"tile.gather: an index is an integer, found {element_of(self.index)}")
        check_result("tile.gather", self.source, self.result, index)


@irdl_op_definition
class HistogramOp(TileOp):
    """How often each of the values 0 to n - 1 occurs in a tensor of rank 1 of 32-bit integers, where the result has n elements.
    Other values are not counted, nor are elements whose mask is false."""

    name = "tile.histogram"
    source = operand_def()
    mask = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure(), Collective())
    assembly_format = "$source (`mask` $mask^ `:` type($mask))? attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, bins: int, mask: SSAValue | None = None):
        super().__init__(operands=[source, mask], result_types=[tensor(scalar(dtypes.int32), (bins,))])

    def verify_(self) -> None:
        shape = shape_of(self.source)
        if len(shape) != 1:
            raise VerifyException(f"tile.histogram is of tensors of rank 1, found {self.source.type}")
        if is_pointer(self.source) or not (dtype_of(self.source).is_integer and dtype_of(self.source).bits == 32):
            raise VerifyException(f"tile.histogram is of 32-bit integers, found {element_of(self.source)}")
        if self.mask is not None and (shape_of(self.mask) != shape or element_of(self.mask) != scalar(dtypes.bool_)):
            raise VerifyException(f"tile.histogram of {self.source.type}: the mask is {self.mask.type}")
        if len(shape_of(self.result)) != 1 or element_of(self.result) != scalar(dtypes.int32):
            raise VerifyException(f"tile.histogram: counts are int32 of rank 1, found {self.result.type}")


_ACCUMULATORS: Final = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32)


PRECISIONS: Final = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
"""How few bits of float32 operands a dot may multiply: all (``ieee``), one product of 19 bits (``tf32``), or the sum of several
products of narrower parts. A machine may always compute more precisely than the op permits."""


def _fits(dtype: DType, acc: DType) -> bool:
    """Whether every value of ``dtype`` is one of the accumulator's."""
    return dtype.kind is acc.kind and lossless(dtype, acc)


@irdl_op_definition
class DotOp(TileOp):
    """``acc + a @ b`` for ``a: [M, K]``, ``b: [K, N]``, ``acc: [M, N]``. Products and sums are in ``acc``'s type
    (float16, float32, float64 or int32) or a wider one; the order of summation is not specified and multiply-adds may be fused.

    ``input_precision`` is a word of `PRECISIONS`. ``max_num_imprecise_acc`` permits that many products of float8 to be summed
    in less than float32 before their sum is added; absent, the machine chooses."""

    name = "tile.dot"
    T: ClassVar = VarConstraint("T", AnyAttr())
    a = operand_def()
    b = operand_def()
    acc = operand_def(T)
    input_precision = prop_def(StringAttr, default_value=StringAttr("ieee"))
    max_num_imprecise_acc = opt_prop_def(IntegerAttr[I64])
    result = result_def(T)
    traits = traits_def(Pure(), Collective())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `to` type($result)"

    def __init__(
        self, a: SSAValue, b: SSAValue, acc: SSAValue, *, precision: str = "ieee", imprecise: int | None = None
    ):
        properties: dict[str, Attribute | None] = {
            "input_precision": StringAttr(precision),
            "max_num_imprecise_acc": None if imprecise is None else IntegerAttr(imprecise, i64),
        }
        super().__init__(operands=[a, b, acc], properties=properties, result_types=[acc.type])

    def verify_(self) -> None:
        if self.input_precision.data not in PRECISIONS:
            raise VerifyException(f"tile.dot: unknown input_precision '{self.input_precision.data}'")
        if self.max_num_imprecise_acc is not None and self.max_num_imprecise_acc.value.data < 0:
            raise VerifyException(
                f"tile.dot: max_num_imprecise_acc is at least 0, found {self.max_num_imprecise_acc.value.data}"
            )
        a, b, acc = shape_of(self.a), shape_of(self.b), shape_of(self.acc)
        if not (len(a) == len(b) == len(acc) == 2 and a[1] == b[0] and acc == (a[0], b[1])):
            raise VerifyException(f"tile.dot: shapes {a} @ {b} do not give {acc}")
        if is_pointer(self.acc) or dtype_of(self.acc) not in _ACCUMULATORS:
            raise VerifyException(
                f"tile.dot accumulates in float16, float32, float64 or int32, found {element_of(self.acc)}"
            )
        for operand in (self.a, self.b):
            if is_pointer(operand) or not _fits(dtype_of(operand), dtype_of(self.acc)):
                raise VerifyException(
                    f"tile.dot: {element_of(operand)} does not fit accumulators of {dtype_of(self.acc)}"
                )
