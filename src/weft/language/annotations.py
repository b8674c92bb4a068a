"""What a function, class or module annotates, on every version of Python.

Until Python 3.13 annotations are evaluated where they are written, and stand in ``__annotations__``. Since 3.14 they are
evaluated when they are asked for (PEP 649): a module's globals hold ``__annotate__`` instead, and a name that is not defined
then is an error. Such a name is left as an `annotationlib.ForwardRef`, since only few annotations mean something to weft.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

_VALUES: Final = 1
"""``annotationlib.Format.VALUE``."""


def annotations_of(owner: FunctionType | type) -> dict[str, Any]:
    """The annotations of a function's parameters, or of a class's own fields."""
    try:
        return owner.__annotations__ if isinstance(owner, FunctionType) else inspect.get_annotations(owner)
    except NameError:
        if sys.version_info < (3, 14):
            raise
        import annotationlib

        return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)


def annotations_in(module: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of a module's globals, by its namespace."""
    found: Mapping[str, Any] | None = module.get("__annotations__")
    annotate: Callable[[int], dict[str, Any]] | None = module.get("__annotate__")
    if found is not None or annotate is None:
        return found or {}
    try:
        return annotate(_VALUES)
    except NameError:
        if sys.version_info < (3, 14):
            raise
        import annotationlib

        return annotationlib.call_annotate_function(annotate, annotationlib.Format.FORWARDREF)
