"""Equal ops are computed once.

Two ops are equal when class, operands, properties, attributes, result types and regions are; where they come from in
the source (locations, name hints) does not matter. Only ops without effects count: two loads may see different memory.
A value found in a block is known in the regions nested in it, not beside it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.transforms.effects import Effect, effect_of

_Scope: TypeAlias = dict[Hashable, Operation]
_Numbering: TypeAlias = dict[SSAValue, int]

_CONTROL = frozenset({scf.IfOp, scf.ForOp, scf.WhileOp})
"""Left alone even where they have no effects; their regions are entered."""


@dataclass(frozen=True)
class Cse(ModulePass):
    """Replaces each op that an equal one dominates."""

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in op.regions:
            for block in region.blocks:
                _visit(block, {})


def _visit(block: Block, known: _Scope) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        for region in op.regions:
            for inner in region.blocks:
                _visit(inner, dict(known))
        if op.results and type(op) not in _CONTROL and effect_of(op) is Effect.NONE:
            existing = known.setdefault(_key(op, {}), op)
            if existing is not op:
                for old, new in zip(op.results, existing.results, strict=True):
                    old.replace_all_uses_with(new)
                block.erase_op(op)
        op = following


def _key(op: Operation, inner: _Numbering) -> Hashable:
    """What two equal ops agree in; ``inner`` numbers the values defined inside the op that is looked at."""
    operands = tuple([inner.get(v, v) for v in op.operands] if inner else op.operands)
    exchangeable = type(op) is tile.BinaryOp and op.kind.data in tile.COMMUTATIVE
    return (
        type(op),
        frozenset(operands) if exchangeable else operands,
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()) if op.attributes else None,
        tuple([result.type for result in op.results]),
        tuple(_block_key(block, inner) for region in op.regions for block in region.blocks) if op.regions else None,
    )


def _block_key(block: Block, inner: _Numbering) -> Hashable:
    for argument in block.args:
        inner[argument] = len(inner)
    keys: list[Hashable] = []
    for op in block.ops:
        keys.append(_key(op, inner))
        for result in op.results:
            inner[result] = len(inner)
    return tuple(a.type for a in block.args), tuple(keys)
