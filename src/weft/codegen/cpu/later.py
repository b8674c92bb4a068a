"""What comes behind a register loop in the same block: what other register loops compute again, and what they store.

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
        for at, loop in enumerate(loops):
            self._last.update(dict.fromkeys(_computed(loop, buffered), at))
        self._stores = [(at, op) for at, loop in enumerate(loops) for op in loop.roots if isinstance(op, tile.StoreOp)]

    def begin(self) -> None:
        """The next loop begins."""
        self._begun += 1

    def computes(self, value: SSAValue) -> bool:
        """Whether a loop that has not begun computes a value."""
        return self._last.get(value, -1) >= self._begun

    @property
    def stores(self) -> list[tile.StoreOp]:
        """The stores of loops that have not begun."""
        return [op for at, op in self._stores if at >= self._begun]


def _computed(loop: RegisterLoop, buffered: Collection[SSAValue]) -> Collection[SSAValue]:
    needs: dict[SSAValue, set[Columns]] = {}
    for root in loop.roots:
        trace_root(root, loop.layout, needs, buffered)
    trace(loop.kept, loop.layout, needs, buffered)
    return needs
