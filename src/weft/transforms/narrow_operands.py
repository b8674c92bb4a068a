"""Operands of instructions that take narrow types, in the layouts that panels are packed from.

`weft.transforms.widen_dot` casts operands to the type of the sums before layouts are assigned. Layout assignment then converts
the wide tile, and leaves a left operand whose columns are contiguous as it is. Where the machine has an instruction for the
narrow type (`weft.target.PRODUCTS`), this pass converts the narrow tile to row-major vectors, and casts it afterwards:

    b = convert_layout(cast(narrow))     ->     b = cast(convert_layout(narrow))

An instruction may take a type between that of the operands and that of the sums: then they are cast to it first.

Then `weft.transforms.pack_dots` finds the narrow tile behind the cast.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout import vector
from weft.target import packed_type


@dataclass(frozen=True)
class NarrowOperands(ModulePass):
    """Converts layouts of dot operands before they are cast, where an instruction takes a narrow type. ``features`` are
    those of LLVM that the machine has, by commas."""

    name = "narrow-operands"

    features: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        features = frozenset(self.features.split(","))
        for dot in [inner for inner in ops_in(op) if isinstance(inner, tile.DotOp)]:
            narrow = [_narrow(operand) for operand in (dot.a, dot.b)]
            a, b = (dtype_of(value) for value in narrow)
            packed = packed_type(features, a.name, dtype_of(dot.acc).name)
            if a == b and packed is not None:
                for i, value in enumerate(narrow):
                    _convert(dot, i, value, dtypes.parse(packed))


def _narrow(value: SSAValue) -> SSAValue:
    """An operand before it was cast to a wider type."""
    op = value.owner
    cast = op.source.owner if isinstance(op, tile.ConvertLayoutOp) else op
    if isinstance(cast, tile.CastOp) and dtype_of(cast.source).bits < dtype_of(cast.result).bits:
        return cast.source
    return value


def _convert(dot: tile.DotOp, i: int, narrow: SSAValue, packed: DType) -> None:
    """Makes operand ``i`` of a dot the cast of ``narrow`` in row-major vectors, by way of the type ``packed``; leaves it where
    it is that already."""
    wanted = vector(shape_of(narrow), layout_of(dot.acc).in_size("lane"))
    if layout_of(narrow) == wanted and dtype_of(narrow) == packed:
        return
    rewriter = _Before(dot)
    value = narrow if layout_of(narrow) == wanted else rewriter.add(tile.ConvertLayoutOp(narrow, wanted))
    if dtype_of(narrow) != packed:
        value = rewriter.add(tile.CastOp(value, packed))
    dot.operands[i] = rewriter.add(tile.CastOp(value, dtype_of(dot.operands[i])))


@dataclass(frozen=True)
class _Before:
    """Adds ops before a dot."""

    dot: tile.DotOp

    def add(self, op: tile.ConvertLayoutOp | tile.CastOp) -> SSAValue:
        op.location = self.dot.location
        Rewriter.insert_op(op, InsertPoint.before(self.dot))
        return op.result
