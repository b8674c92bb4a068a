"""Equal ops are computed once.

Two ops are equal when class, operands, properties, attributes, result types and regions are; where they come from in
the source (locations, name hints) does not matter. Only ops without effects count: two loads may see different memory.
A value found in a block is known in the regions nested in it, not beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.direct import operands_of
from weft.transforms.effects import Effect, effect_of

_Scope: TypeAlias = dict[Hashable, Operation]
_Properties: TypeAlias = Mapping[str, Attribute]
_Numbering: TypeAlias = dict[SSAValue, int]

_CONTROL = frozenset({scf.IfOp, scf.ForOp, scf.WhileOp})
"""Left alone even where they have no effects; their regions are entered."""


@dataclass(frozen=True)
class Cse(ModulePass):
    """Replaces each op that an equal one dominates."""

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        numbers = _Attributes()
        for region in op.regions:
            for block in region.blocks:
                _visit(block, {}, numbers)


class _Attributes:
    """Numbers for attributes, one for all equal ones. xDSL takes long to hash an attribute, so each object is hashed once."""

    def __init__(self) -> None:
        self._of_objects: dict[int, tuple[Attribute, int]] = {}
        """By identity, which is the attribute's own as long as the entry holds it."""
        self._of_values: dict[Attribute, int] = {}

    def number(self, attribute: Attribute) -> int:
        """The attribute's number."""
        found = self._of_objects.get(id(attribute))
        if found is None:
            number = self._of_values.setdefault(attribute, len(self._of_values))
            found = self._of_objects[id(attribute)] = (attribute, number)
        return found[1]

    def named(self, attributes: _Properties) -> Hashable:
        """What two dictionaries of equal attributes agree in."""
        if not attributes:
            return None
        return frozenset([(name, self.number(attribute)) for name, attribute in attributes.items()])


def _visit(block: Block, known: _Scope, numbers: _Attributes) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        for region in op.regions:
            for inner in region.blocks:
                _visit(inner, dict(known), numbers)
        if op.results and type(op) not in _CONTROL and effect_of(op) is Effect.NONE:
            existing = known.setdefault(_key(op, {}, numbers), op)
            if existing is not op:
                for old, new in zip(op.results, existing.results, strict=True):
                    old.replace_all_uses_with(new)
                block.erase_op(op)
        op = following


def _key(op: Operation, inner: _Numbering, numbers: _Attributes) -> Hashable:
    """What two equal ops agree in; ``inner`` numbers the values defined inside the op that is looked at."""
    operands = operands_of(op)
    values = tuple([inner.get(v, v) for v in operands] if inner else operands)
    exchangeable = type(op) is tile.BinaryOp and op.kind.data in tile.COMMUTATIVE
    return (
        type(op),
        frozenset(values) if exchangeable else values,
        numbers.named(op.properties),
        numbers.named(op.attributes),
        tuple([numbers.number(result.type) for result in op.results]),
        tuple(_block_key(block, inner, numbers) for region in op.regions for block in region.blocks)
        if op.regions
        else None,
    )


def _block_key(block: Block, inner: _Numbering, numbers: _Attributes) -> Hashable:
    for argument in block.args:
        inner[argument] = len(inner)
    keys: list[Hashable] = []
    for op in block.ops:
        keys.append(_key(op, inner, numbers))
        for result in op.results:
            inner[result] = len(inner)
    return tuple(a.type for a in block.args), tuple(keys)
