"""Launches of one function of libdevice on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from weft.language.extra import libdevice

Array = NDArray[Any]


@weft.jit
def one(x: Any, out: Any, F: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, F(tl.load(x + i)))


@weft.jit
def two(x: Any, y: Any, out: Any, F: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i)))


@weft.jit
def three(x: Any, y: Any, z: Any, out: Any, F: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, F(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


def applied(name: str, operands: list[Array], out: type[Any] | np.dtype[Any], target: str | None = None) -> Array:
    """libdevice's function of arrays of one length."""
    kernel: Any = (one, two, three)[len(operands) - 1]
    result = np.zeros(len(operands[0]), out)
    on(kernel, target)[(1,)](*operands, result, F=getattr(libdevice, name), B=len(result))
    return result
