"""Layouts of join, split and flip, for every machine.

    join     operands of one layout give pairs in registers (`weft.layout.families.transfer.join`)
    split    a source whose pairs are in registers; else the bit of the pairs and a register's trade places first
    flip     any layout whose flipped bits are in registers and lanes; those in warps trade places with others

What trades places costs a conversion. Here it is of one bit for each bit that is in the wrong place.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import tile
from weft.ir.rearranging import flipped_bits
from weft.ir.types import shape_of
from weft.layout import LinearLayout
from weft.layout.families import transfer
from weft.transforms.layouts.rules import OperandLayouts

_WITHIN = ("register", "lane")


def join_of(layout: LinearLayout) -> OperandLayouts:
    """A join of operands under ``layout``."""
    return OperandLayouts((layout, layout), (transfer.join(layout),))


def join_to(layout: LinearLayout) -> Sequence[OperandLayouts]:
    """A join whose result has ``layout``; none where its pairs are not in registers."""
    if 1 not in layout.columns("register"):
        return []
    operand = transfer.join_back(layout)
    return [OperandLayouts((operand, operand), (layout,))]


def split_of(layout: LinearLayout) -> OperandLayouts:
    """A split of a source under ``layout``, or under one that differs in the place of the pairs."""
    source = paired(layout)
    half = transfer.split(source)
    return OperandLayouts((source,), (half, half))


def split_to(layout: LinearLayout) -> OperandLayouts:
    """A split whose results have ``layout``."""
    return OperandLayouts((transfer.split_back(layout),), (layout, layout))


def paired(layout: LinearLayout) -> LinearLayout:
    """The layout with the bit of the last dimension, of size 2, in registers: in place of the highest register's, which takes
    the place where the bit was."""
    registers = list(layout.columns("register"))
    if 1 in registers:
        return layout
    columns = {name: list(layout.columns(name)) for name in layout.in_dims}
    name = next(name for name in layout.in_dims if 1 in columns[name])
    given = registers.pop() if registers else 0
    columns[name][columns[name].index(1)] = given
    columns["register"] = [1, *registers]
    return LinearLayout.from_columns({name: tuple(each) for name, each in columns.items()}, layout.outputs)


def flip_of(op: tile.FlipOp, layout: LinearLayout) -> OperandLayouts:
    """A flip under ``layout``, or under one in which the bits that are flipped are not in warps."""
    within = _within_warps(layout, flipped_bits(shape_of(op.source), op.axis.value.data))
    return OperandLayouts((within,), (within,))


def flips(op: tile.FlipOp, layout: LinearLayout) -> bool:
    """Whether a flip is possible under ``layout`` as it is."""
    bits = flipped_bits(shape_of(op.source), op.axis.value.data)
    return not any(column & bits for name in layout.in_dims if name not in _WITHIN for column in layout.columns(name))


def _within_warps(layout: LinearLayout, bits: int) -> LinearLayout:
    """Bits of warps that are flipped trade places with registers, else lanes, that are not; where none is left, warps hold
    copies."""
    columns = {name: list(layout.columns(name)) for name in layout.in_dims}
    free = [(name, place) for name in _WITHIN for place in reversed(range(len(columns.get(name, ()))))]
    free = [(name, place) for name, place in free if not columns[name][place] & bits]
    for name in (name for name in layout.in_dims if name not in _WITHIN):
        for place, column in enumerate(columns[name]):
            if not column & bits:
                continue
            if free:
                other, at = free.pop(0)
                columns[name][place], columns[other][at] = columns[other][at], column
            else:
                columns[name][place] = 0
                columns["register"].append(column)
    return LinearLayout.from_columns({name: tuple(each) for name, each in columns.items()}, layout.outputs)
