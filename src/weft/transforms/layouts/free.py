"""Free values: computed from constants, ranges and scalars alone, so that they are computed again in any layout."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from xdsl.ir import Operation, SSAValue

from weft.ir import gpu, tile
from weft.ir.types import dtype_of, is_tile, shape_of

INSTRUCTIONS: Final[dict[str, int]] = {
    "exp": 5, "exp2": 4, "sqrt": 4, "rsqrt": 4, "div": 6, "log": 22, "log2": 20, "log10": 22, "log1p": 24, "cbrt": 24,
    "sin": 40, "cos": 40, "tan": 50, "tanh": 30, "erf": 30, "pow": 60, "atan2": 40, "rem": 20,
}  # fmt: skip
"""Instructions of a thread for one element, by kind; 1 for others. From the PTX that weft emits for float32, rounded; an
instruction of the special unit counts as 4, as it takes a quarter of the lanes in a clock."""


def instructions_of(op: Operation) -> int:
    """The instructions of an elementwise op for one element."""
    match op:
        case tile.UnaryOp() | tile.BinaryOp():
            return INSTRUCTIONS.get(op.kind.data, 1)
        case _:
            return 1


Path = tuple[Hashable, ...]
"""Shape ops, by what they do."""


class Computed(NamedTuple):
    """A free operand, by its number: instructions for each element, and bits for each that are read from buffers."""

    operand: int
    cone: float
    read_bits: int


class Free:
    """Which values are free, and what it costs to compute them for one user; answers are kept."""

    def __init__(self) -> None:
        self._free: dict[SSAValue, bool] = {}
        self._cones: dict[SSAValue, float] = {}
        self._reads: dict[SSAValue, int] = {}
        self._operands: dict[Operation, Sequence[Computed]] = {}

    def operands(self, op: Operation) -> Sequence[Computed]:
        """The operands of an op that cost something where they are read."""
        found = self._operands.get(op)
        if found is None:
            every = [Computed(at, self.cone(value), self.read_bits(value)) for at, value in enumerate(op.operands)]
            found = self._operands[op] = [each for each in every if each.cone or each.read_bits]
        return found

    def is_free(self, value: SSAValue) -> bool:
        """Whether a tile depends on no other tile than constants and ranges."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._free:
                pending.pop()
                continue
            op = current.owner
            if isinstance(op, Operation) and (tile.is_a(op, tile.Elementwise) or tile.is_a(op, tile.Shape)):
                sources = [operand for operand in op.operands if is_tile(operand)]
                if missing := [source for source in sources if source not in self._free]:
                    pending += missing
                    continue
                self._free[current] = all(self._free[source] for source in sources)
            else:
                self._free[current] = isinstance(op, Operation) and tile.is_a(op, tile.Generator)
            pending.pop()
        return self._free[value]

    def cone(self, value: SSAValue) -> float:
        """The instructions for one element of a free value, all that it is computed from included; what a broadcast repeats is
        computed once. 0 for a value that is not free."""
        if not is_tile(value) or not self.is_free(value):
            return 0
        if value not in self._cones:
            self._cones[value] = self._cone(value)
        return self._cones[value]

    def read_bits(self, value: SSAValue) -> int:
        """The bits for each element of a free value that are read from buffers in shared memory: every reader reads anew."""
        if not is_tile(value) or not self.is_free(value):
            return 0
        if value not in self._reads:
            seen: set[SSAValue] = set()
            pending = [value]
            while pending:
                current = pending.pop()
                op = current.owner
                if current not in seen and isinstance(op, Operation):
                    seen.add(current)
                    pending += [operand for operand in op.operands if is_tile(operand)]
            loads = [each for each in seen if isinstance(each.owner, gpu.LocalLoadOp)]
            self._reads[value] = sum(8 * dtype_of(each).itemsize for each in loads)
        return self._reads[value]

    def _cone(self, value: SSAValue) -> float:
        """Ops count once for each path of shape ops to them: each path asks for a layout of its own."""
        seen: set[tuple[SSAValue, Path]] = set()
        pending: list[tuple[SSAValue, Path]] = [(value, ())]
        elements = _elements(value)
        total = 0.0
        while pending:
            current, path = key = pending.pop()
            op = current.owner
            if key in seen or not isinstance(op, Operation):
                continue
            seen.add(key)
            if tile.is_a(op, tile.Elementwise):
                total += instructions_of(op) * min(1.0, _elements(current) / elements)
            elif tile.is_a(op, tile.Shape):
                path = (*path, (op.name, shape_of(current), *sorted(op.properties.items())))
            pending += [(operand, path) for operand in op.operands if is_tile(operand)]
        return total


def _elements(value: SSAValue) -> int:
    count = 1
    for size in shape_of(value):
        count *= size
    return count
