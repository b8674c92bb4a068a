"""Where an op comes from: a chain of source positions, innermost first.

xDSL's ops carry MLIR locations, and its passes keep them. We use three forms: a position is a
`FileLineColLoc` under the name of the function it stands in (`NameLoc`), and an inlined call is a
`CallSiteLoc` from the position in the helper to the position of the call. An error raised anywhere after the frontend
can so still show the user's lines; comparisons between ops (CSE) ignore locations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation

from weft.ir.direct import by_identity
from weft.ir.position import Position

__all__ = ["Position", "describe", "inside", "location", "positions"]


_text = lru_cache(maxsize=256)(StringAttr)
"""The attribute of a file's or function's name, made once."""


def location(chain: Sequence[Position]) -> LocationAttr:
    """The MLIR location of a chain of positions, innermost first."""
    result: LocationAttr | None = None
    for position in reversed(chain):
        result = inside(position, result)
    return UnknownLoc() if result is None else result


def inside(position: Position, caller: LocationAttr | None) -> LocationAttr:
    """The location of a position, in a helper that is called from the location ``caller``, or in the kernel itself."""
    place = FileLineColLoc(_text(position.file), IntAttr(position.line), IntAttr(position.column))
    here = NameLoc(_text(position.function), place)
    return here if caller is None else CallSiteLoc(here, caller)


def positions(op: Operation) -> tuple[Position, ...]:
    """The op's chain of positions, innermost first; empty where none is known."""
    return _positions(op.location)


def describe(op: Operation) -> str:
    """The op's positions as text, lines and columns from 1: ``k.py:12:5 in helper, called from k.py:3:9 in kernel``."""
    chain = positions(op)
    if not chain:
        return "an unknown position"
    return ", called from ".join(f"{p.file}:{p.line}:{p.column + 1} in {p.function}" for p in chain)


@by_identity
def _positions(loc: Attribute) -> tuple[Position, ...]:
    match loc:
        case CallSiteLoc():
            return _positions(loc.callee) + _positions(loc.caller)
        case NameLoc() if isinstance(loc.location, FileLineColLoc):
            at = loc.location
            return (Position(at.filename.data, at.line.data, at.column.data, loc.desc.data),)
        case FileLineColLoc():
            return (Position(loc.filename.data, loc.line.data, loc.column.data, "?"),)
        case _:
            return ()
