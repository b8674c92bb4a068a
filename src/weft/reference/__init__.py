"""What each tile op means, in NumPy: slow, obvious, and the definition that every other backend is tested against.

The compiler folds constants by the same functions. It does not wait for the interpreter, which is loaded at its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.reference.interpreter import run
    from weft.reference.memory import OutOfBoundsError
    from weft.reference.programs import UndefinedBehaviourError

__all__ = ["OutOfBoundsError", "UndefinedBehaviourError", "run"]

_HOMES = {
    "OutOfBoundsError": "weft.reference.memory",
    "UndefinedBehaviourError": "weft.reference.programs",
    "run": "weft.reference.interpreter",
}
"""Where each name lives."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value
