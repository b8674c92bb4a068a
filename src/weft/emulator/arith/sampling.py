"""What a texture fetch computes (CUDA C++ Programming Guide, texture fetching): which texels, with which weights.

Along an axis of N texels, a coordinate x counts texels, or with normalized coordinates is a fraction of N. What lies outside:

    clamp     the nearest texel              wrap      x - floor(x)                   normalized coordinates only
    border    the border's colour            mirror    x - floor(x), or 1 less that where floor(x) is odd    likewise

A point fetch is of texel floor(x). A linear one is between texels i = floor(x - 0.5) and i + 1, of weights 1 - a and a. Here a
is the fraction of x - 0.5 in 9-bit fixed point with 8 bits of fraction, so that 1.0 is exact: rounded to the nearest multiple of
1/256, halves up. (The guide does not say how it is rounded.) The weighted sum is in float64, and rounded once.

    x = 2.75, linear:    i = 2, a = 0.25:    0.75 T[2] + 0.25 T[3]

An offset of a fetch counts texels, and moves i. A gather takes one channel of the four texels that a linear fetch is between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MODES: Final = ("clamp", "border", "wrap", "mirror")

STEPS: Final = 256
"""Weights are multiples of 1 / STEPS."""


class Tap(NamedTuple):
    """A texel of each fetch, along one axis."""

    texel: NDArray[np.intp]
    inside: NDArray[np.bool_]
    weight: NDArray[np.float64]


def taps(
    x: NDArray[np.float64],
    size: int,
    mode: str,
    linear: bool,
    normalized: bool,
    offset: NDArray[np.int64] | int = 0,
) -> list[Tap]:
    """The texels along an axis that fetches at x (N,) use: one each, or two of a linear fetch."""
    if mode in ("wrap", "mirror"):
        turns = np.floor(x)
        x = x - turns
        if mode == "mirror":
            x = np.where(turns % 2 != 0, 1 - x, x)
            offset = np.where(turns % 2 != 0, -offset, offset)
    if normalized:
        x = x * size
    x = np.where(np.isnan(x), 0.0, np.clip(x, -(2.0**40), 2.0**40))
    if not linear:
        first = np.floor(x)
        if mode in ("wrap", "mirror"):
            first = np.minimum(first, size - 1)
        return [_tap(first.astype(np.intp) + offset, size, mode, np.ones(x.shape))]
    first = np.floor(x - 0.5)
    weight = np.floor((x - 0.5 - first) * STEPS + 0.5) / STEPS
    index = first.astype(np.intp) + offset
    return [_tap(index, size, mode, 1 - weight), _tap(index + 1, size, mode, weight)]


def _tap(index: NDArray[np.intp], size: int, mode: str, weight: NDArray[np.float64]) -> Tap:
    inside = (index >= 0) & (index < size)
    if mode == "wrap":
        return Tap(index % size, np.ones_like(inside), weight)
    if mode == "mirror":
        around = index % (2 * size)
        return Tap(np.where(around < size, around, 2 * size - 1 - around), np.ones_like(inside), weight)
    if mode == "clamp":
        return Tap(np.clip(index, 0, size - 1), np.ones_like(inside), weight)
    return Tap(np.clip(index, 0, size - 1), inside, weight)


def fetch(texels: NDArray[np.float64], axes: Sequence[list[Tap]], border: NDArray[np.float64]) -> NDArray[np.float64]:
    """What fetches find, (N, channels): the sum over the texels of all axes. ``texels`` (..., channels) has its axes in the order
    of ``axes``."""
    count = axes[0][0].texel.size
    total = np.zeros((count, texels.shape[-1]))
    places: list[tuple[Tap, ...]] = [()]
    for taps_of in axes:
        places = [(*place, tap) for place in places for tap in taps_of]
    for place in places:
        inside = np.logical_and.reduce([tap.inside for tap in place])
        weight = np.multiply.reduce([tap.weight for tap in place])
        found = texels[tuple(tap.texel for tap in place)]
        with np.errstate(invalid="ignore"):
            part = np.where(inside[:, None], found, border) * weight[:, None]
        total += np.where(weight[:, None] == 0, 0.0, part)
    return total


def cube_face(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> tuple[NDArray[np.intp], list[NDArray[np.float64]]]:
    """The face of a cube map that each direction (N,) meets, and where, from 0 to 1 along the face's x and y.

    The face belongs to the longest of the axes, of equal ones to the last (the Programming Guide leaves that open). Its place is
    (s / m + 1) / 2, (t / m + 1) / 2 with the guide's table, where m is that axis' length:

        face  0: +x   1: -x   2: +y   3: -y   4: +z   5: -z
        s       -z      z       x       x       x      -x
        t       -y     -y       z      -z      -y      -y

    A direction without length has the middle of face 4.
    """
    x, y, z = (a.astype(np.float64) for a in (x, y, z))
    lengths = np.abs([x, y, z])
    axis = 2 - lengths[::-1].argmax(axis=0)
    length = lengths.max(axis=0)
    face = 2 * axis + np.where(np.choose(axis, [x, y, z]) < 0, 1, 0)
    s, t = np.choose(face, [-z, z, x, x, x, -x]), np.choose(face, [-y, -y, z, -z, -y, -y])
    divisor = np.where(length == 0, 1, length)
    return face.astype(np.intp), [(s / divisor + 1) / 2, (t / divisor + 1) / 2]
