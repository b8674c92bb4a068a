"""What weft is timed beside: packages that may be there, and what runs one of them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from machine import Array


def optional(name: str) -> Any:
    """The module, or None where it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


torch, jax, numba = optional("torch"), optional("jax"), optional("numba")


@dataclass(frozen=True)
class Runner:
    """``run()`` computes; ``result()`` shows what the last run left, as a NumPy array: ``out``, if there is one."""

    run: Callable[[], object]
    result: Callable[[], Array]
    out: Array | None = None
