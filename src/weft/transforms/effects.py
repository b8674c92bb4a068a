"""What executing an op does besides giving its results.

xDSL answers by collecting sets of effect instances, for every op and every ask. Our passes need one of three
answers. For an access to memory the memory model gives it (`weft.ir.memory`): a volatile load is observed, so it counts as
a write and no pass removes, repeats or moves it. For other ops the answer is a function of the class, unless the op has
regions, and is computed once a class.
"""

from __future__ import annotations

import enum
from functools import cache

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, MemoryEffectKind, RecursiveMemoryEffect, get_effects

from weft.ir import tile


class Effect(enum.IntEnum):
    """The worst an op does; a later one includes the earlier."""

    NONE = 0
    READ = 1
    WRITE = 2
    """Writes, is observed by other programs, or is unknown."""


_BY_CLASS: dict[type[Operation], Effect] = {}
"""The effects found so far of classes whose ops all have the same."""


def effect_of(op: Operation) -> Effect:
    """The op's effect, that of its regions included. An op that declares nothing is taken to write."""
    kind = type(op)
    known = _BY_CLASS.get(kind)
    if known is not None:
        return known
    ordering = tile.ordering_of(op)
    if ordering is not None:
        return Effect.WRITE if ordering.writes or ordering.observed else Effect.READ
    if not op.has_trait(RecursiveMemoryEffect):
        _BY_CLASS[kind] = _declared(op)
        return _BY_CLASS[kind]
    return max((effect_of(inner) for r in op.regions for b in r.blocks for inner in b.ops), default=Effect.NONE)


def is_terminator(op: Operation) -> bool:
    """Whether the op ends its block and so stays where it is."""
    return _ends_blocks(type(op))


@cache
def _ends_blocks(kind: type[Operation]) -> bool:
    return kind.has_trait(IsTerminator)


def _declared(op: Operation) -> Effect:
    effects = get_effects(op)
    if effects is None:
        return Effect.WRITE
    reads = all(effect.kind is MemoryEffectKind.READ for effect in effects)
    return Effect.NONE if not effects else Effect.READ if reads else Effect.WRITE
