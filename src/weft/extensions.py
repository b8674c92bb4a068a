"""Extension points: functions that a lower package offers and a higher package implements.

`weft.semantics.compare` traces arrays. `Diff`, `Comparison` and `LinearLayout` are drawn by `weft.report`. The modules that
offer these stand below their implementations, so they may not import them. They ask `extension` for the implementation, by
the name of the point.

`weft/__init__.py` holds the table of implementations, because Python imports the root package before any module in it. An
implementation is imported when it is asked for: ``import weft.layout`` loads no code that draws.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final

_IMPLEMENTATIONS: Final[dict[str, tuple[str, str]]] = {}
"""Of each extension point, the module and the attribute that implement it."""


def implement(implementations: Mapping[str, tuple[str, str]]) -> None:
    """Register the module and the attribute that implement each extension point; imports none of them."""
    _IMPLEMENTATIONS.update(implementations)


def is_at_hand(point: str) -> bool:
    """Whether the package that implements an extension point has been imported, so that `extension` imports little."""
    return point in _IMPLEMENTATIONS and _IMPLEMENTATIONS[point][0].rpartition(".")[0] in sys.modules


def extension(point: str) -> Any:
    """Import and return what implements the extension point. `ImportError` where its module is missing, `LookupError` where no
    implementation is registered."""
    if point not in _IMPLEMENTATIONS:
        raise LookupError(f"nothing implements the extension point '{point}'")
    module, attribute = _IMPLEMENTATIONS[point]
    return getattr(importlib.import_module(module), attribute)
