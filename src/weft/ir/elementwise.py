"""Elementwise ops: one scalar meaning, applied to every element of equally shaped, equally laid-out operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, DenseArrayBase, StringAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.dtypes import DType
from weft.ir.base import BINARY, COMPARE, UNARY, TileOp, check_kind, word
from weft.ir.classes import Addressing, Elementwise, View
from weft.ir.types import dtype_of, element_of, is_pointer, like, shape_of


@irdl_op_definition
class UnaryOp(TileOp):
    """``kind(operand)``, elementwise, in the operand's type. Kinds: `UNARY`."""

    name = "tile.unary"
    T: ClassVar = VarConstraint("T", AnyAttr())
    kind = prop_def(StringAttr)
    operand = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure(), Elementwise())
    assembly_format = "$kind $operand attr-dict `:` type($result)"

    def __init__(self, kind: str, operand: SSAValue):
        super().__init__(operands=[operand], properties={"kind": word(kind)}, result_types=[operand.type])

    def verify_(self) -> None:
        check_kind("tile.unary", self.kind.data, UNARY, self.operand)


@irdl_op_definition
class BinaryOp(TileOp):
    """``kind(lhs, rhs)``, elementwise; operands and result have one type. Kinds: `BINARY`."""

    name = "tile.binary"
    T: ClassVar = VarConstraint("T", AnyAttr())
    kind = prop_def(StringAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$kind $lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, kind: str, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], properties={"kind": word(kind)}, result_types=[lhs.type])

    def verify_(self) -> None:
        check_kind("tile.binary", self.kind.data, BINARY, self.lhs)


@irdl_op_definition
class CompareOp(TileOp):
    """``lhs predicate rhs`` as bools. Predicates: `COMPARE`. Pointers compare as addresses."""

    name = "tile.compare"
    T: ClassVar = VarConstraint("T", AnyAttr())
    kind = prop_def(StringAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$kind $lhs `,` $rhs attr-dict `:` type($lhs) `to` type($result)"

    def __init__(self, kind: str, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], properties={"kind": word(kind)}, result_types=[like(lhs, dtypes.bool_)])

    def verify_(self) -> None:
        if self.kind.data not in COMPARE:
            raise VerifyException(
                f"tile.compare: unknown kind '{self.kind.data}', expected one of {', '.join(COMPARE)}"
            )
        if self.result.type != like(self.lhs, dtypes.bool_):
            raise VerifyException(
                f"tile.compare of {self.lhs.type} gives {like(self.lhs, dtypes.bool_)}, found {self.result.type}"
            )


@irdl_op_definition
class SelectOp(TileOp):
    """``condition ? lhs : rhs``, elementwise; all three have one shape. Also selects pointers."""

    name = "tile.select"
    T: ClassVar = VarConstraint("T", AnyAttr())
    condition = operand_def()
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($result)"

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[condition, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if self.condition.type != like(self.lhs, dtypes.bool_):
            raise VerifyException(
                f"tile.select: the condition is {self.condition.type}, expected {like(self.lhs, dtypes.bool_)}"
            )


@irdl_op_definition
class FmaOp(TileOp):
    """``a * b + c`` rounded once, elementwise on floats."""

    name = "tile.fma"
    T: ClassVar = VarConstraint("T", AnyAttr())
    a = operand_def(T)
    b = operand_def(T)
    c = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure(), Elementwise())
    assembly_format = "$a `,` $b `,` $c attr-dict `:` type($result)"

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue):
        super().__init__(operands=[a, b, c], result_types=[a.type])

    def verify_(self) -> None:
        if is_pointer(self.a) or not dtype_of(self.a).is_float:
            raise VerifyException(f"tile.fma takes floats, found {self.a.type}")


@irdl_op_definition
class CastOp(TileOp):
    """Conversion of values between any two element types.

    Integer to integer wraps (two's complement; a bool is 0 or 1; to bool is ``!= 0``). Integer to float and float to
    float round once, to nearest even (overflow to infinity; into a finite-only format: NaN). Float to integer truncates
    toward zero and saturates; NaN gives 0. Float to bool is ``!= 0``, so NaN gives true.
    """

    name = "tile.cast"
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, dtype: DType):
        super().__init__(operands=[source], result_types=[like(source, dtype)])

    def verify_(self) -> None:
        if is_pointer(self.source) or is_pointer(self.result):
            raise VerifyException("tile.cast converts numbers; use tile.bitcast for pointers")
        if like(self.source, dtype_of(self.result)) != self.result.type:
            raise VerifyException(f"tile.cast keeps shape and layout, found {self.source.type} to {self.result.type}")


@irdl_op_definition
class BitcastOp(TileOp):
    """The same bits under another type of the same width; pointers are 64 bits wide."""

    name = "tile.bitcast"
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, element: DType | Attribute):
        super().__init__(operands=[source], result_types=[like(source, element)])

    def verify_(self) -> None:
        if like(self.source, element_of(self.result)) != self.result.type:
            raise VerifyException(
                f"tile.bitcast keeps shape and layout, found {self.source.type} to {self.result.type}"
            )
        widths = [64 if is_pointer(v) else dtype_of(v).bits for v in (self.source, self.result)]
        if widths[0] != widths[1]:
            raise VerifyException(f"tile.bitcast: {widths[0]} bits cannot become {widths[1]}")


@irdl_op_definition
class HintOp(TileOp):
    """The user's word about an integer or pointer tile, one number a dimension (one for a scalar): ``divisibility`` (of
    the first element of each contiguous run; in bytes for pointers), ``contiguity``, ``constancy``. The value passes
    unchanged."""

    name = "tile.hint"
    T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(T)
    result = result_def(T)
    divisibility = opt_prop_def(DenseArrayBase[I64])
    contiguity = opt_prop_def(DenseArrayBase[I64])
    constancy = opt_prop_def(DenseArrayBase[I64])
    traits = traits_def(Pure(), Elementwise(), View())
    assembly_format = (
        "$source (`divisibility` $divisibility^)? (`contiguity` $contiguity^)? (`constancy` $constancy^)? "
        "attr-dict `:` type($result)"
    )

    def __init__(self, source: SSAValue, **hints: Sequence[int]):
        super().__init__(
            operands=[source],
            properties={name: DenseArrayBase.from_list(i64, values) for name, values in hints.items()},
            result_types=[source.type],
        )

    @property
    def hints(self) -> dict[str, tuple[int, ...]]:
        """The hints given, by name."""
        named = {"divisibility": self.divisibility, "contiguity": self.contiguity, "constancy": self.constancy}
        return {name: tuple(numbers.get_values()) for name, numbers in named.items() if numbers is not None}

    def verify_(self) -> None:
        if not is_pointer(self.source) and not dtype_of(self.source).is_integer:
            raise VerifyException(f"tile.hint takes integers or pointers, found {self.source.type}")
        if not self.hints:
            raise VerifyException("tile.hint says nothing; it needs divisibility, contiguity or constancy")
        rank = max(len(shape_of(self.source)), 1)
        for name, values in self.hints.items():
            if len(values) != rank or min(values) < 1:
                raise VerifyException(f"tile.hint: {name} is {rank} positive numbers, found {values}")
