"""What several register loops of a block load or compute, and what those store that do so again.

Each loop is traced once, so that blocks may be long.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import SSAValue

from weft.codegen.cpu.schedule import Columns, RegisterLoop, trace, trace_root
from weft.ir import tile


class Later:
    """The register loops of a block, in order, of which some have begun: none at first. They compute what is not ``buffered``."""

    def __init__(self, loops: Sequence[RegisterLoop] = (), buffered: Collection[SSAValue] = ()):
        self._begun = 0
        self._last: dict[SSAValue, int] = {}
        """The last loop that computes a value."""
        self.writes: set[tile.StoreOp] = set()
        """Stores of loops that load again what a loop before has loaded."""
        for at, loop in enumerate(loops):
            computed = _computed(loop, buffered)
            if any(isinstance(value.owner, tile.LoadOp) and value in self._last for value in computed):
                self.writes.update(op for op in loop.roots if isinstance(op, tile.StoreOp))
            self._last.update(dict.fromkeys(computed, at))

    def begin(self) -> None:
        """The next loop begins."""
        self._begun += 1

    def computes(self, value: SSAValue) -> bool:
        """Whether a loop that has not begun computes a value."""
        return self._last.get(value, -1) >= self._begun


def _computed(loop: RegisterLoop, buffered: Collection[SSAValue]) -> Collection[SSAValue]:
    needs: dict[SSAValue, set[Columns]] = {}
    for root in loop.roots:
        trace_root(root, loop.layout, needs, buffered)
    trace(loop.kept, loop.layout, needs, buffered)
    return needs
