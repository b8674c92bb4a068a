"""Ops whose result element depends on many elements of the operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
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
from weft.dtypes import DType
from weft.ir.base import TileOp
from weft.ir.classes import Collective
from weft.ir.elementwise import BinaryOp
from weft.ir.types import dtype_of, element_of, is_pointer, scalar, shape_of, tensor


@irdl_op_definition
class YieldOp(TileOp):
    """Ends a combine region."""

    name = "tile.yield"
    values = var_operand_def()
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(ReduceOp), Pure()))
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
        only, *rest = self.combine.block.ops
        if isinstance(only, BinaryOp) and len(rest) == 1 and set(only.operands) == set(self.combine.block.args):
            return only
        return None

    def verify_(self) -> None:
        if not self.sources:
            raise VerifyException("tile.reduce needs at least one tensor")
        shape = shape_of(self.sources[0])
        if not 0 <= self.axis.value.data < len(shape):
            raise VerifyException(f"tile.reduce: axis {self.axis.value.data} is out of range for rank {len(shape)}")
        expected = list(shape)
        del expected[self.axis.value.data]
        if len(self.results_) != len(self.sources):
            raise VerifyException(f"tile.reduce of {len(self.sources)} tensors gives {len(self.results_)} results")
        for source, result in zip(self.sources, self.results_, strict=True):
            if shape_of(source) != shape:
                raise VerifyException(f"tile.reduce: shapes {shape} and {shape_of(source)} differ")
            if shape_of(result) != tuple(expected) or element_of(result) != element_of(source):
                wanted = tensor(element_of(source), expected)
                raise VerifyException(f"tile.reduce of {source.type}: expected {wanted}, found {result.type}")
        arguments = [a.type for a in self.combine.block.args]
        elements = [element_of(s) for s in self.sources]
        if arguments != elements + elements:
            raise VerifyException("tile.reduce: the combine region takes the accumulators' types, then the elements'")
        end = self.combine.block.last_op
        if not isinstance(end, YieldOp) or [v.type for v in end.values] != elements:
            raise VerifyException("tile.reduce: the combine region ends by yielding the accumulators' types")


_ACCUMULATORS: Final = (dtypes.float32, dtypes.float64, dtypes.int32)


PRECISIONS: Final = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
"""How few bits of float32 operands a dot may multiply: all (``ieee``), one product of 19 bits (``tf32``), or the sum of several
products of narrower parts. A machine may always compute more precisely than the op permits."""


def _fits(dtype: DType, acc: DType) -> bool:
    """Whether every value of ``dtype`` is one of the accumulator's."""
    return dtype.kind is acc.kind and dtype.bits + (acc.signed and not dtype.signed) <= acc.bits


@irdl_op_definition
class DotOp(TileOp):
    """``acc + a @ b`` for ``a: [M, K]``, ``b: [K, N]``, ``acc: [M, N]``. Products and sums are in ``acc``'s type
    (float32, float64 or int32); the order of summation is not specified and multiply-adds may be fused.

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
            raise VerifyException(f"tile.dot accumulates in float32, float64 or int32, found {element_of(self.acc)}")
        for operand in (self.a, self.b):
            if is_pointer(operand) or not _fits(dtype_of(operand), dtype_of(self.acc)):
                raise VerifyException(
                    f"tile.dot: {element_of(operand)} does not fit accumulators of {dtype_of(self.acc)}"
                )
