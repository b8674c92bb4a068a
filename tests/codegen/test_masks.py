"""Masks decided by their last element: the law, over random masks whose values the reference computes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft import dtypes, reference
from weft.codegen.cpu.masks import decided_by_last
from weft.ir import tile
from weft.ir.tile import COMPARE
from weft.ir.types import dtype_of, pointer, scalar, shape_of, tensor
from weft.transforms.axis import analyse

SHAPE = (4, 8)


class RandomMask:
    """A function of an array of bools and two scalars that stores one random mask of `SHAPE`."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.block = Block(arg_types=[pointer(dtypes.bool_), scalar(dtypes.int32), scalar(dtypes.int32)])
        self.mask = self._mask(2)
        size = SHAPE[0] * SHAPE[1]
        index = self.emit(tile.ReshapeOp(self.emit(tile.ArangeOp(0, size)), SHAPE))
        base = self.emit(tile.SplatOp(self.block.args[0], SHAPE))
        self.block.add_op(tile.StoreOp(self.emit(tile.AddPtrOp(base, index)), self.mask))
        self.block.add_op(func.ReturnOp())
        results: list[Attribute] = []
        function = func.FuncOp("kernel", (list(self.block.arg_types), results), Region(self.block))
        self.module = ModuleOp([function])
        self.module.verify()
        self.decided = decided_by_last(self.mask, analyse(function))

    def emit(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _number(self) -> SSAValue:
        """Integers of `SHAPE`: a vector along a row or a column, or one number, changed a few times."""
        kind = self.random.choice(["row", "column", "both", "scalar", "constant"])
        if kind == "scalar":
            value = self.emit(tile.SplatOp(self.random.choice(self.block.args[1:]), SHAPE))
        elif kind == "constant":
            value = self.emit(tile.ConstantOp(self.random.randint(-4, 12), tensor(dtypes.int32, SHAPE)))
        elif kind == "both":
            value = self.emit(tile.ReshapeOp(self.emit(tile.ArangeOp(0, 32)), SHAPE))
        else:
            axis = 1 if kind == "row" else 0
            start = self.random.choice([0, 0, 3, 8])
            vector = self.emit(tile.ArangeOp(start, start + SHAPE[axis]))
            value = self.emit(tile.ExpandDimsOp(self._changed(vector), 1 - axis))
            value = self.emit(tile.BroadcastOp(value, SHAPE))
        return self._changed(value)

    def _changed(self, value: SSAValue) -> SSAValue:
        """The number after up to two operations, and as int32 again."""
        for _ in range(self.random.randint(0, 2)):
            shape = shape_of(value)
            other = self.emit(tile.SplatOp(self.random.choice(self.block.args[1:]), shape))
            if self.random.random() < 0.6:
                other = self.emit(
                    tile.ConstantOp(self.random.choice([-1, 1, 2, 3, 4, 7, 8]), tensor(dtypes.int32, shape))
                )
            operands = [value, other]
            if self.random.random() < 0.3:
                operands.reverse()
            kind = self.random.choice(
                ["add", "add", "sub", "mul", "div", "rem", "and", "or", "shl", "shr", "min", "max"]
            )
            value = self.emit(tile.BinaryOp(kind, *operands))
        if self.random.random() < 0.3:
            narrow = self.random.choice([dtypes.int8, dtypes.uint8, dtypes.uint32, dtypes.int64])
            value = self.emit(tile.CastOp(value, narrow))
            if self.random.random() < 0.5:
                one = self.emit(tile.ConstantOp(self.random.choice([1, 3, 100]), value.type))
                value = self.emit(tile.BinaryOp(self.random.choice(["add", "sub"]), value, one))
            if self.random.random() < 0.7 or dtype_of(value) != dtypes.int32:
                value = self.emit(tile.CastOp(value, dtypes.int32))
        return value

    def _mask(self, depth: int) -> SSAValue:
        if depth and self.random.random() < 0.5:
            kind = self.random.choice(["and", "and", "and", "or", "xor"])
            return self.emit(tile.BinaryOp(kind, self._mask(depth - 1), self._mask(depth - 1)))
        if self.random.random() < 0.5:
            return self.emit(tile.CompareOp(self.random.choice(COMPARE), self._number(), self._number()))
        kind, flipped = self.random.choice(
            [("lt", "gt"), ("le", "ge"), ("lt", "gt"), ("le", "ge"), ("ne", "ne"), ("gt", "lt")]
        )
        axis = self.random.choice([0, 1])
        ascending = self.emit(tile.ExpandDimsOp(self.emit(tile.ArangeOp(0, SHAPE[axis])), 1 - axis))
        bound = self.emit(tile.SplatOp(self.random.choice(self.block.args[1:]), shape_of(ascending)))
        pair = (kind, ascending, bound) if self.random.random() < 0.5 else (flipped, bound, ascending)
        return self.emit(tile.BroadcastOp(self.emit(tile.CompareOp(*pair)), SHAPE))

    def values(self, m: int, n: int) -> Any:
        """What the mask is for these scalars."""
        out = np.zeros(SHAPE, np.bool_)
        reference.run(self.module, [out, m, n], (1,))
        return out


def test_the_last_element_decides() -> None:
    """If it is true, all are; over many masks and scalars, of both signs. Recognised are enough of them to mean something,
    and among these are some that are sometimes partly true."""
    recognised = partly = 0
    for seed in range(600):
        mask = RandomMask(seed)
        if not mask.decided:
            continue
        recognised += 1
        for m, n in ((0, 0), (5, 3), (-2, 7), (8, 32), (31, -5)):
            values = mask.values(m, n)
            assert values.all() or not values[-1, -1], f"seed {seed}, scalars {m}, {n}:\n{mask.module}"
            partly += bool(values.any() and not values.all())
    assert recognised > 50
    assert partly > 20
