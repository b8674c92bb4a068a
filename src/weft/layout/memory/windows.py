"""Elements that lie apart in memory by known distances, taken from a few vectors of neighbours.

A gather takes an instruction or two for each element. Whole vectors that begin at the elements, and shuffles that pick from them,
are fewer where elements are close. For 8 lanes of every second element, and vectors of 8:

    elements   0 2 4 6 8 10 12 14
    windows    0..7 with lanes 0 1 2 3, and 7..14 with lanes 4 5 6 7

Law: a window lies between the first element and the last, so that nothing behind them is touched. What it touches between two
elements is on a page of one of them, since they are at most a page apart (`PAGE`): it can be read wherever the elements can.

Limit: a window of a single element saves nothing. `windows_of` gives None where there would be more than one for two elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

PAGE: Final = 4096
"""The bytes of the smallest page of any machine."""


class Window(NamedTuple):
    """Neighbouring elements: the first one, counted from the lowest element of all, and where in the window ``lanes`` have
    theirs."""

    start: int
    places: tuple[tuple[int, int], ...]
    """Pairs of lane and place."""


class Windows(NamedTuple):
    """Windows of ``width`` elements. ``lowest`` is a lane whose element is the lowest."""

    lowest: int
    width: int
    windows: tuple[Window, ...]


def distances_of_lanes(bits: Sequence[int]) -> tuple[int, ...]:
    """How far each lane is from lane 0, given how far each bit of its number moves it."""
    found = [0]
    for bit in bits:
        found += [each + bit for each in found]
    return tuple(found)


@lru_cache(maxsize=256)
def windows_of(places: tuple[int, ...], size: int, most: int) -> Windows | None:
    """The fewest windows, of at most ``most`` elements of ``size`` bytes, for lanes whose elements are at ``places``: each holds
    as many elements as the first that is in none can begin. None where that is no gain."""
    elements = sorted(set(places))
    low, high = elements[0], elements[-1] + 1
    gaps = [after - before for before, after in zip(elements, elements[1:], strict=False)]
    width = min(most, 1 << (high - low).bit_length() - 1)
    if width < 2 or max(gaps) * size > PAGE:
        return None
    windows: list[Window] = []
    end = low
    for element in elements:
        if element < end:
            continue
        start = min(element, high - width)
        here = tuple([(lane, at - start) for lane, at in enumerate(places) if max(start, end) <= at < start + width])
        windows.append(Window(start - low, here))
        end = start + width
    if 2 * len(windows) > len(set(places)):
        return None
    return Windows(places.index(low), width, tuple(windows))
