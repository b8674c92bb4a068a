"""What each op of the language means in tile IR, by theme; importing this registers them all."""

from __future__ import annotations

from weft.frontend.library import (
    blocks,
    collective,
    compiletime,
    creation,
    debugging,
    descriptors,
    elementwise,
    linear,
    machinery,
    mapping,
    meaning,
    memory,
    reduction,
    shape,
)

__all__ = [
    "blocks",
    "collective",
    "compiletime",
    "creation",
    "debugging",
    "descriptors",
    "elementwise",
    "linear",
    "machinery",
    "mapping",
    "meaning",
    "memory",
    "reduction",
    "shape",
]
