"""Where the registers of join, split and flip come from: maps of registers and lanes, read off the layouts.

    join     result register r  -> register ``columns(r)`` of the second operand where r has ``bit``, else of the first
    split    result register r  -> source register ``columns(r)``, of the second half with ``bit`` set too
    flip     place              -> the same place with bits of ``register`` and ``lane`` complemented

The layout rules see to it that these exist: the pair's bit is in registers, and a flip crosses no warps.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from weft.codegen.emit.views import match_registers
from weft.ir import tile
from weft.ir.rearranging import flipped_bits
from weft.ir.types import layout_of, shape_of
from weft.layout import LinearLayout


class Paired(NamedTuple):
    """See the module: ``bit`` is a bit of the result's registers for join, of the source's for split."""

    columns: tuple[int, ...]
    bit: int


class Crossed(NamedTuple):
    """Bits of registers and lanes that a flip complements."""

    register: int
    lane: int


def joined(op: tile.JoinOp) -> Paired:
    """Where a join's registers come from."""
    return _joined(layout_of(op.result), layout_of(op.lhs))


def halves(op: tile.SplitOp) -> Paired:
    """Where the registers of a split's results come from."""
    return _halves(layout_of(op.source), layout_of(op.first))


def crossed(op: tile.FlipOp) -> Crossed:
    """The places that a flip exchanges."""
    return _crossed(layout_of(op.source), flipped_bits(shape_of(op.source), op.axis.value.data))


@lru_cache(maxsize=1024)
def _joined(result: LinearLayout, operand: LinearLayout) -> Paired:
    return _paired(
        {name: tuple([column >> 1 for column in columns]) for name, columns in result.inputs}, operand, result
    )


@lru_cache(maxsize=1024)
def _halves(source: LinearLayout, result: LinearLayout) -> Paired:
    return _paired(
        {name: tuple([column << 1 for column in columns]) for name, columns in result.inputs}, source, source
    )


def _paired(read: Mapping[str, tuple[int, ...]], source: LinearLayout, pairs: LinearLayout) -> Paired:
    """Registers of ``source`` by the elements that are ``read``, and the bit of the registers of ``pairs``."""
    columns = match_registers(LinearLayout.from_columns(read, source.outputs), source)
    registers = pairs.columns("register")
    assert columns is not None and 1 in registers, "tile.join, tile.split: a pair is in registers of one thread"
    return Paired(columns, 1 << registers.index(1))


@lru_cache(maxsize=1024)
def _crossed(layout: LinearLayout, bits: int) -> Crossed:
    found = {"register": 0, "lane": 0}
    for name in found:
        for place, column in enumerate(layout.columns(name)):
            if column & bits:
                found[name] |= 1 << place
                bits &= ~column
    assert not bits, "tile.flip: elements trade places within a warp"
    return Crossed(**found)
