"""Which system arrays made here belong to, where they do not say.

One would keep a global setting. A context variable instead: a block sets it for its own thread or task, nested blocks
restore what they found, and no library changes what another one's arrays mean.

Outside every block the system is `DEFAULT`, NumPy's: the data that comes in are NumPy arrays or convert to them, so an
expression means what it meant before weft touched it, and another system is always a choice that the program states.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from weft import semantics
from weft.semantics.core import Semantics

DEFAULT: Final = "numpy"
"""The system outside every `use` block."""

_CHOSEN: Final[ContextVar[Semantics | None]] = ContextVar("weft.semantics", default=None)


def current() -> Semantics:
    """The system of the innermost `use` block, else `DEFAULT`."""
    return _CHOSEN.get() or semantics.get(DEFAULT)


@contextmanager
def use(system: str | Semantics) -> Generator[Semantics]:
    """Arrays made in the ``with`` block belong to ``system``, unless they say otherwise; `ValueError` for an unknown one."""
    chosen = semantics.get(system)
    token = _CHOSEN.set(chosen)
    try:
        yield chosen
    finally:
        _CHOSEN.reset(token)
