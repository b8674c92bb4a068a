"""Colours for lanes, warps and registers: all different, and in a visible order.

An index has a hue and a shade: of 32, index // 4 is the hue and index % 4 the shade. Groups of four, of which fragments of
instructions consist, then have one hue. A list of ten repeated colours, or evenly spread hues, would make neighbours of 32
lanes look alike. Hues and shades are perceptually even (OKLCH); a light page and a dark one have their own shades.

    count      1..8   16    32    64    128   256
    hues       count   8     8    16     16    32
    shades     1       2     4     4      8     8

A colour's class in a style sheet names the colour, not the index: pictures on one page share their style.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

_LIGHT: Final = ((0.92, 0.055), (0.64, 0.125))
"""Lightness and chroma of the palest and of the strongest shade on a light page."""
_DARK: Final = ((0.52, 0.11), (0.29, 0.07))
"""The same on a dark page."""


@dataclass(frozen=True)
class Colour:
    """A hue in degrees and a shade from 0 (palest) to 7."""

    hue: int
    shade: int

    @property
    def name(self) -> str:
        """Its class in a style sheet."""
        return f"c{self.hue}-{self.shade}"

    @property
    def light(self) -> str:
        """``#rrggbb`` on a light page; dark text is legible on it."""
        return _hex(*_between(_LIGHT, self.shade / 7), self.hue)

    @property
    def dark(self) -> str:
        """``#rrggbb`` on a dark page; light text is legible on it."""
        return _hex(*_between(_DARK, self.shade / 7), self.hue)


def palette(count: int) -> tuple[Colour, ...]:
    """``count`` different colours, for ``count`` up to 2880."""
    shades = 1 if count <= 8 else 2 if count <= 16 else 4 if count <= 64 else 8
    levels = {1: (2,), 2: (1, 5), 4: (0, 2, 4, 7), 8: tuple(range(8))}[shades]
    hues = max(1, -(-count // shades))
    return tuple(Colour((235 + 360 * (i // shades) // hues) % 360, levels[i % shades]) for i in range(count))


def rules(colours: Iterable[Colour], dark: bool) -> str:
    """The style sheet's rules for these colours."""
    ordered = sorted(set(colours), key=lambda colour: (colour.hue, colour.shade))
    return "".join(f".weft .{c.name}{{fill:{c.dark if dark else c.light}}}" for c in ordered)


def _between(ends: tuple[tuple[float, float], tuple[float, float]], at: float) -> tuple[float, float]:
    (light, chroma), (light2, chroma2) = ends
    return light + (light2 - light) * at, chroma + (chroma2 - chroma) * at


@cache
def _hex(lightness: float, chroma: float, hue: int) -> str:
    """An OKLCH colour in sRGB."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, value)))):02x}" for value in linear)


def _gamma(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
