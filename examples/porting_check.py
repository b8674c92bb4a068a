"""Where a port to another system will differ, before porting: an image's preprocessing under JAX, DALI and NumPy.

``python examples/porting_check.py`` prints the report. In a test, ``check().raise_for_divergence()`` fails with the lines at
fault as long as the systems disagree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import semantics
from weft.array.comparing.comparison import Comparison


def preprocess(image: Any, mean: float) -> Any:
    """As one writes it with all systems' types in mind, or none."""
    brighter = image + 40
    centred = brighter - 128
    coarse = centred // 3
    return coarse * 0.1 - mean


def portable(image: Any, mean: float) -> Any:
    """The same with what the report asks for: signed integers before the sum, a remainder whose sign no system chooses,
    so that the division is exact, and float32 before the literals."""
    brighter = image.astype("int32") + 40
    centred = brighter - 128
    coarse = (centred - (centred % 3 + 3) % 3) // 3
    return coarse.astype("float32") * 0.1 - mean


def image() -> Any:
    """Bytes from 0 to 240."""
    return np.arange(0, 256, 16, dtype=np.uint8).reshape(4, 4)


def check(function: Any = preprocess) -> Comparison:
    """The function under three systems."""
    return semantics.compare(function, (image(), 0.5), systems=("jax", "dali", "numpy"))


if __name__ == "__main__":
    print(check(), check(portable), sep="\n\n")
