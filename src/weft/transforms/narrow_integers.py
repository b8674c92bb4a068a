"""Integers that end in 8 or 16 bits, computed in as few bits as give the same result.

Kernels widen bytes before they compute: the language's promotion, or the author, wants room for sums and products. Where the end
is cast to a narrow type again, the upper bits were never wanted:

    ((cast a to i32) * w + (cast b to i32) * v) >> 8, cast to u8      32 bits: 4 registers of 16 lanes
    ((cast a to u16) * w + (cast b to u16) * v) >> 8, cast to u8      16 bits: 2 registers

A tree of ops is rewritten in N bits if N bits *decide* its end. ``wanted(v, d)``: a number of N bits of which the lowest d are
those of v. ``whole(v)``: all numbers that v may have fit into N bits, signed or unsigned, and wanted(v, N).

| v | wanted(v, d) is computed from |
|---|---|
| constant, splat | the number or scalar, modulo 2^N |
| cast of an integer of up to N bits | that integer, extended to N bits by its sign |
| cast of a wider integer, a view | wanted(operand, d) |
| add, sub, mul, and, or, xor, neg, not | wanted(operands, d): bits depend on lower ones only |
| shl by a constant below N | wanted(operand, d) |
| shr by a constant c below N | wanted(operand, d + c) if d + c <= N, shifted without sign; else whole(operand) |
| min, max, abs | whole(operands) |
| select | wanted(both, d), the condition as it is |

Other values have no narrow form. Every wide value must serve this tree alone, so that it is computed no more. In 8 bits there are
neither products nor shifts, for which x86 has no instructions.

Which numbers a value may have, `weft.transforms.integer_ranges` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import defining_op, operands_of, ops_in
from weft.ir.types import dtype_of, is_tile, like, shape_of
from weft.transforms.integer_ranges import Ranges

WIDTHS: Final = (8, 16)
_BITWISE: Final = frozenset({"add", "sub", "mul", "and", "or", "xor"})
_SLOW_IN_BYTES: Final = frozenset({"mul", "shl", "shr"})
_MOST: Final = 256
"""The most ops of a tree."""


@dataclass(frozen=True)
class NarrowIntegers(ModulePass):
    """Rewrites tiles of integers before casts to 8 and 16 bits; for machines whose vectors hold more lanes of narrow integers."""

    name = "narrow-integers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for root in reversed([inner for inner in ops_in(op) if _is_root(inner)]):
            if root.result.first_use is None:
                continue  # it ended in a tree that has been rewritten
            for bits in WIDTHS:
                if bits < dtype_of(root.result).bits:
                    continue
                tree = Tree(bits, ranges)
                if tree.decides(root):
                    tree.rewrite(root)
                    break


def _is_root(op: Operation) -> TypeGuard[tile.CastOp]:
    """Whether an op casts a tile of integers to one of fewer bits, which are 8 or 16."""
    if not isinstance(op, tile.CastOp) or not is_tile(op.result):
        return False
    wide, narrow = dtype_of(op.source), dtype_of(op.result)
    return wide.is_integer and narrow.is_integer and narrow.bits in WIDTHS and narrow.bits < wide.bits


class Tree:
    """The values that an end is computed from, and how many of their lowest bits are wanted, in ``bits`` bits."""

    def __init__(self, bits: int, ranges: Ranges):
        self._bits = bits
        self._ranges = ranges
        self._wanted: dict[SSAValue, int] = {}
        self._unsigned, self._signed = dtypes.parse(f"uint{bits}"), dtypes.parse(f"int{bits}")

    # -- whether ---------------------------------------------------------------------------------------------------------

    def decides(self, root: tile.CastOp) -> bool:
        """Whether the bits decide the root's result, and it is worth it."""
        pending = [(root.source, dtype_of(root.result).bits)]
        while pending:
            value, wanted = pending.pop()
            if self._wanted.get(value, 0) >= wanted:
                continue
            self._wanted[value] = wanted
            needed = self._needed(value, wanted)
            if needed is None or len(self._wanted) > _MOST:
                return False
            pending.extend(needed)
        ops = {op for value in self._wanted if not self._is_leaf(op := defining_op(value))}
        return any(isinstance(op, tile.BinaryOp | tile.UnaryOp | tile.SelectOp) for op in ops) and all(
            use.operation in ops or use.operation is root for op in ops if op for use in op.results[0].uses
        )

    def _is_leaf(self, op: Operation | None) -> bool:
        """Whether a narrow form is made of something else than narrow forms, so that the op may have other users."""
        if isinstance(op, tile.CastOp):
            return dtype_of(op.source).bits <= self._bits
        return isinstance(op, tile.ConstantOp | tile.SplatOp)

    def _needed(self, value: SSAValue, wanted: int) -> Sequence[tuple[SSAValue, int]] | None:
        """What is wanted of other values for so many bits of one; None where it has no narrow form."""
        op = defining_op(value)
        match op:
            case tile.ConstantOp() | tile.SplatOp():
                return ()
            case tile.CastOp() if dtype_of(op.source).is_float:
                return None
            case tile.CastOp():
                return () if self._is_leaf(op) else ((op.source, wanted),)
            case tile.ExpandDimsOp() | tile.BroadcastOp():
                return ((operands_of(op)[0], wanted),)
            case tile.SelectOp():
                return (op.lhs, wanted), (op.rhs, wanted)
            case tile.UnaryOp():
                return self._whole(op.operand) if op.kind.data == "abs" else ((op.operand, wanted),)
            case tile.BinaryOp():
                return self._needed_of_two(op, wanted)
            case _:
                return None

    def _needed_of_two(self, op: tile.BinaryOp, wanted: int) -> Sequence[tuple[SSAValue, int]] | None:
        kind = op.kind.data
        if self._bits == 8 and kind in _SLOW_IN_BYTES:
            return None
        if kind in _BITWISE:
            return (op.lhs, wanted), (op.rhs, wanted)
        if kind in ("min", "max"):
            return self._whole(op.lhs, op.rhs)
        by = _number(op.rhs)
        if kind not in ("shl", "shr") or by is None or not 0 <= by < self._bits:
            return None
        if kind == "shl":
            return ((op.lhs, wanted),)
        return ((op.lhs, wanted + by),) if wanted + by <= self._bits else self._whole(op.lhs)

    def _whole(self, *values: SSAValue) -> Sequence[tuple[SSAValue, int]] | None:
        return None if self._type_of(*values) is None else [(value, self._bits) for value in values]

    def _type_of(self, *values: SSAValue) -> DType | None:
        """The narrow type that has all numbers that any of the values may have."""
        ends = [end for value in values for end in self._ranges.of(value)]
        fitting = (one for one in (self._unsigned, self._signed) if one.min <= min(ends) and max(ends) <= one.max)
        return next(fitting, None)

    # -- how -------------------------------------------------------------------------------------------------------------

    def rewrite(self, root: tile.CastOp) -> None:
        """Replaces the root, and erases what nothing uses any more."""
        new: dict[SSAValue, SSAValue] = {}
        pending = [root.source]
        while pending:
            value = pending[-1]
            missing = [v for v, _ in self._needed(value, self._wanted[value]) or () if v not in new]
            pending.extend(missing)
            if not missing:
                pending.pop()
                if value not in new:
                    new[value] = self._narrow(value, new)
                    new[value].name_hint = value.name_hint
        end = new[root.source]
        if dtype_of(end) != dtype_of(root.result):
            end = _before(root, tile.CastOp(end, dtype_of(root.result)))
        end.name_hint = root.result.name_hint
        root.result.replace_all_uses_with(end)
        dead: list[Operation] = [root]
        while dead:
            op = dead.pop()
            sources = [found for operand in operands_of(op) if operand in new and (found := defining_op(operand))]
            if op.parent is not None and op.results[0].first_use is None:
                Rewriter.erase_op(op)
                dead.extend(sources)

    def _narrow(self, value: SSAValue, new: dict[SSAValue, SSAValue]) -> SSAValue:
        """The unsigned narrow number whose lowest bits are the value's."""
        op = defining_op(value)
        match op:
            case tile.ConstantOp():
                return _before(op, tile.ConstantOp(int(op.number) % (1 << self._bits), like(value, self._unsigned)))
            case tile.SplatOp():
                return _before(op, tile.SplatOp(_before(op, tile.CastOp(op.source, self._unsigned)), shape_of(value)))
            case tile.CastOp():
                return _before(op, tile.CastOp(op.source, self._unsigned)) if self._is_leaf(op) else new[op.source]
            case tile.SelectOp():
                return _before(op, tile.SelectOp(op.condition, new[op.lhs], new[op.rhs]))
            case tile.UnaryOp() if op.kind.data == "abs":
                return self._typed(op, self._type_of(op.operand), new, op.operand)
            case tile.UnaryOp():
                return _before(op, tile.UnaryOp(op.kind.data, new[op.operand]))
            case tile.BinaryOp() if op.kind.data in ("min", "max"):
                return self._typed(op, self._type_of(op.lhs, op.rhs), new, op.lhs, op.rhs)
            case tile.BinaryOp() if op.kind.data in ("shl", "shr"):
                by = tile.ConstantOp(_number(op.rhs) or 0, like(value, self._unsigned))
                new = {**new, op.rhs: _before(op, by)}
                logical = op.kind.data == "shl" or self._wanted[value] + int(by.number) <= self._bits
                return self._typed(op, self._unsigned if logical else self._type_of(op.lhs), new, op.lhs, op.rhs)
            case tile.BinaryOp():
                return _before(op, tile.BinaryOp(op.kind.data, new[op.lhs], new[op.rhs]))
            case _:
                assert isinstance(op, tile.ExpandDimsOp | tile.BroadcastOp), f"{value} has no narrow form"
                types, operands = [like(value, self._unsigned)], [new[operands_of(op)[0]]]
                return _before(
                    op, type(op).create(operands=operands, result_types=types, properties=dict(op.properties))
                )

    def _typed(
        self, op: tile.BinaryOp | tile.UnaryOp, dtype: DType | None, new: dict[SSAValue, SSAValue], *values: SSAValue
    ) -> SSAValue:
        """An op whose result depends on the sign, computed in a narrow type."""
        assert dtype is not None, "the numbers fit"
        operands = [new[value] for value in values]
        if dtype == self._signed:
            operands = [_before(op, tile.CastOp(operand, dtype)) for operand in operands]
        computed = type(op).create(operands=operands, result_types=[operands[0].type], properties=dict(op.properties))
        result = _before(op, computed)
        return _before(op, tile.CastOp(result, self._unsigned)) if dtype == self._signed else result


def _number(value: SSAValue) -> int | None:
    """The number in all elements of an integer, if it is known."""
    op = defining_op(value)
    while isinstance(op, tile.SplatOp | tile.BroadcastOp | tile.ExpandDimsOp):
        op = defining_op(operands_of(op)[0])
    return int(op.number) if isinstance(op, tile.ConstantOp) else None


def _before(op: Operation, new: Operation) -> SSAValue:
    """Adds an op before another, at its place in the kernel's text."""
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    return new.results[0]
