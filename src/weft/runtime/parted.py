"""A grid of fewer programs than threads, whose programs sum long rows: the sums are added up in parts, by all threads.

The kernel sums in the same parts where one thread runs a program (`weft.transforms.split_sums`), so results have the same bits
however it is run, and the time of the launch before may decide. Where programs took long, two more kernels are compiled, which
is once for each signature: one adds up a part, and as many programs as there are parts run it; the other does the rest. Should
the first of them add up in another order than the whole kernel, the kernel is not run in parts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from weft.options import Phase
from weft.runtime.arguments import Slot
from weft.runtime.binding import Grid

if TYPE_CHECKING:
    from weft.runtime.artifacts import Artifact
    from weft.runtime.executable import Executable

MOST_PARTS: Final = 16
"""The most parts of a sum; `weft.transforms.split_sums` says so. A test compares the two."""

_LONG: int = 300_000
"""Nanoseconds of a launch whose programs are run in parts the next time."""

_SHORT: int = 60_000
"""Nanoseconds of a launch in parts, after which programs are run as a whole again: waking threads takes a good part of it."""


class Parted:
    """A kernel that sums, in parts. ``whole`` is its code, ``compiled`` gives the code of a phase."""

    def __init__(self, whole: Artifact, compiled: Callable[[str], Executable]):
        self._sums, self._order = whole.sums, whole.order
        self._compiled = compiled
        self.is_worth = False
        """Whether the next launch shall be run in parts."""

    def note(self, nanoseconds: int) -> None:
        """Decides for the next launch, given how long this one took."""
        self.is_worth = nanoseconds >= (_SHORT if self.is_worth else _LONG)

    def run(self, slots: Sequence[Slot], grid: Grid, threads: int | None, kept: object) -> bool:
        """As `Executable.run`; False, and nothing runs, where the kernel is not to be run in parts."""
        if self._halves is None:
            return False
        x, y, z = grid
        memory = (ctypes.c_int64 * (x * y * z * MOST_PARTS * self._sums))()
        given = (*slots, ctypes.addressof(memory))
        parts, totals = self._halves
        parts.run(given, (x * MOST_PARTS, y, z), threads, (kept, memory))
        totals.run(given, grid, 1, (kept, memory))
        return True

    @cached_property
    def _halves(self) -> tuple[Executable, Executable] | None:
        """The code of both phases; None where parts have other bits than the whole kernel's."""
        parts = self._compiled(Phase.PARTS)
        return (parts, self._compiled(Phase.TOTALS)) if parts.artifact.order == self._order else None
