"""A kernel for one signature, launched with numbers alone: addresses and scalars, in the order of its parameters.

`JITFunction` looks at each argument of each launch, which costs more than a small grid. Whoever knows the arguments' types
already (`weft.array`) states the signature once, and each launch then packs its slots and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from weft.frontend.signature import Argument
from weft.runtime.arguments import Slot, specialised
from weft.runtime.binding import Grid
from weft.runtime.executable import Executable
from weft.runtime.jit import JITFunction
from weft.runtime.place import CURRENT


class Prepared:
    """``kernel`` for ``signature``, which has no constants; no two of its arrays share a byte that the kernel writes."""

    def __init__(self, kernel: JITFunction, signature: Mapping[str, Argument]) -> None:
        self.kernel = kernel
        self._signature = signature

    @cached_property
    def executable(self) -> Executable:
        """The code, compiled when it is first asked for."""
        return self.kernel.executable_for(specialised(self.kernel.name, self._signature, True))

    @property
    def is_direct(self) -> bool:
        """Whether launches here may leave out what `JITFunction` does: nothing is emulated, and accesses are not checked."""
        return not self.kernel.checked and CURRENT.get() is None

    def brief(self, grid: Grid) -> Callable[[Sequence[Slot]], None]:
        """`launch` for one grid in the calling thread alone; see `Executable.brief`."""
        return self.executable.brief(grid)

    def launch(self, slots: Sequence[Slot], grid: Grid, threads: int | None, kept: object) -> None:
        """Runs the kernel on the CPU, with one slot for each parameter; ``kept`` is held until no thread runs it."""
        self.executable.run(slots, grid, threads, kept)
