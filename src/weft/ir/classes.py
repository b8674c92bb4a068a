"""Classes of ops by behaviour, as traits: passes and machines ask for a trait and never list ops.

| trait | each element of the result | ops |
|---|---|---|
| `Generator` | is made of scalars and of its own position: any layout is free | constant, arange, splat, local_load |
| `Elementwise` | is a function of the operands' elements at its position: all have one layout | unary, binary, ... |
| `Shape` | is an element of the source at another position: a layout exists under which nothing moves | trans, reshape, ... |
| `Rearranging` | is an operand's at another position: of several operands or results, or out of order | join, split, flip |
| `Collective` | depends on many elements | reduce, scan, gather, histogram, dot |
| `Conversion` | is the source's, under another layout | convert_layout |
| `GridFact` | is a scalar of the launch | program_id, num_programs |

Every op of the dialect is in exactly one of these classes, or has an effect on memory, or ends a block. Two traits say more:
`View` (under the right layouts, each register of the result is a register of the source) and `Addressing` (addresses and masks
are made of such ops, so that one lane alone may be worth computing).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.ir import Operation
from xdsl.traits import OpTrait


@dataclass(frozen=True)
class OpClass(OpTrait):
    """Base of the traits of which an op has at most one."""


@dataclass(frozen=True)
class Generator(OpClass):
    """Tiles made of scalars and constants."""


@dataclass(frozen=True)
class Elementwise(OpClass):
    """One scalar meaning, applied at every position."""


@dataclass(frozen=True)
class Shape(OpClass):
    """The same elements under another shape; the op is a `ShapeOp`, which maps layouts."""


@dataclass(frozen=True)
class Rearranging(OpClass):
    """Elements of the operands under another shape or order, of several operands or results, or exchanged between places."""


@dataclass(frozen=True)
class Collective(OpClass):
    """An element of the result depends on many elements of the operands."""


@dataclass(frozen=True)
class Conversion(OpClass):
    """The same tensor under another layout."""


@dataclass(frozen=True)
class GridFact(OpClass):
    """A scalar that the launch decides."""


@dataclass(frozen=True)
class View(OpTrait):
    """With the right layouts, each register of the result is a register of the first operand."""


@dataclass(frozen=True)
class Addressing(OpTrait):
    """Offsets, addresses and masks are made of such ops."""


@cache
def _has(kind: type, trait: type[OpTrait]) -> bool:
    return issubclass(kind, Operation) and kind.has_trait(trait)


def is_a(op: object, trait: type[OpTrait]) -> bool:
    """Whether an op has a trait; False for what is no op, such as the block that owns an argument. Remembered by class,
    because xDSL searches the traits at every ask."""
    return _has(type(op), trait)
