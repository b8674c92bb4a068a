"""The system of arrays that are made without naming one.

It is a context variable, not a global setting: a block sets it for its own thread or task, and restores the earlier value at
its end. A library therefore cannot change the meaning of another library's arrays. A thread that is started in the block has
its system where Python's new threads have their starter's context variables: by default in free-threaded builds from 3.14 on.

Outside every block the system is `DEFAULT`, NumPy's: the data that comes in are NumPy arrays or convert to them, so expressions
keep their meaning. The program must name any other system.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final

from weft import semantics
from weft.semantics.core import Semantics

DEFAULT: Final = "numpy"
"""The system outside every `use` block."""

_CHOSEN: Final[ContextVar[Semantics | None]] = ContextVar("weft.semantics", default=None)


def current() -> Semantics:
    """The system of the innermost `use` block, else `DEFAULT`."""
    return _CHOSEN.get() or _default()


@cache
def _default() -> Semantics:
    return semantics.get(DEFAULT)


@contextmanager
def use(system: str | Semantics) -> Generator[Semantics]:
    """Arrays made in the ``with`` block belong to ``system``, unless they say otherwise; `ValueError` for an unknown one."""
    chosen = semantics.get(system)
    token = _CHOSEN.set(chosen)
    try:
        yield chosen
    finally:
        _CHOSEN.reset(token)
