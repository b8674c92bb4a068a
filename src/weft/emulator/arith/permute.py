"""Bytes picked from two words (PTX ISA, prmt).

The eight bytes of {b, a} are numbered from a's lowest. A selector of four bits names one, or with its top bit set that byte's
sign, eight times over. The modes are the selectors of the result's bytes, lowest first, for each value of c's lowest two bits:

    f4e  four bytes from byte c on, forward        b4e  four bytes from byte c on, backward (modulo 8)
    rc8  byte c, four times                        rc16 half-word c (of a), twice
    ecl  bytes of a, none below byte c             ecr  bytes of a, none above byte c
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

MODES: Final[dict[str, tuple[tuple[int, int, int, int], ...]]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def selectors(control: Array, mode: str) -> Array:
    """The four selectors, lowest byte's first, that words of control stand for: (T, 4) for (T,)."""
    words = np.asarray(control).reshape(-1, 1)
    if mode:
        return np.array(MODES[mode])[words[:, 0] & 3]
    return (words >> np.array([0, 4, 8, 12], np.uint32)) & np.uint32(15)


def gather(a: Array, b: Array, chosen: Array) -> Array:
    """The words that selectors (T, 4) pick from words a and b, (T,) each; any of them may be of length 1."""
    count = max(a.size, b.size, len(chosen))
    source = np.empty((count, 2), np.uint32)
    source[:, 0], source[:, 1] = a, b
    places = (chosen & 7).astype(np.intp) + np.arange(0, 8 * count, 8)[:, None]
    picked = source.reshape(-1).view(np.int8)[places]
    signed = (chosen & 8) != 0
    if signed.any():
        picked = np.where(signed, picked >> np.int8(7), picked)
    return np.ascontiguousarray(picked).view(np.uint32)[:, 0]


def runs(chosen: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """A constant choice without signs as shifted and masked words: (word, by, mask), word 0 or 1 shifted left by ``by`` bits
    (right if negative), then masked. Their ``or`` is the result."""
    masks: dict[tuple[int, int], int] = {}
    for place, selector in enumerate(chosen):
        key = (selector // 4, 8 * (place - selector % 4))
        masks[key] = masks.get(key, 0) | 0xFF << (8 * place)
    return [(word, by, mask) for (word, by), mask in masks.items()]
