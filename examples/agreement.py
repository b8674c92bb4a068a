"""Compares what an example computes with NumPy, on the CPU and on two emulated GPUs. Each example's ``main`` calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import weft

MACHINES = ("cpu", "sm_80", "sm_90")


def machine(name: str, memory: Sequence[Any] = ()) -> AbstractContextManager[Any]:
    """Run the launches inside the ``with`` on the CPU, or as PTX in the emulator of a GPU; ``memory`` is `weft.emulate`'s."""
    return nullcontext() if name == "cpu" else weft.emulate(name, memory=memory)


def compare(what: str, run: Callable[[], Any], expected: Any, tolerance: float, memory: Sequence[Any] = ()) -> None:
    """Print the greatest difference of ``run()`` from ``expected`` on each machine, in units of the greatest expected value.
    Both are an array or a tuple of arrays.

    Raises: AssertionError where the difference is more than ``tolerance``, or a shape is another.
    """
    for name in MACHINES:
        with machine(name, memory):
            found = run()
        apart = max(map(difference, *map(arrays, (found, expected))))
        print(f"{what:40} {name:6} differs from NumPy by at most {apart:.1e}")
        if apart > tolerance:
            raise AssertionError(f"{what} on {name} differs from NumPy by {apart:.1e}, more than {tolerance:.1e}")


def arrays(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def difference(found: Any, expected: Any) -> float:
    """The greatest difference, in units of the greatest expected value. A NaN in one array only is an infinite difference."""
    found, expected = (np.asarray(array).astype(np.float64) for array in (found, expected))
    if found.shape != expected.shape:
        raise AssertionError(f"shape {found.shape}, expected {expected.shape}")
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    apart = np.where(same, 0, np.abs(found - expected))
    return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0) / (np.abs(expected).max(initial=0) or 1))
