"""What computing a register costs, in units of one cheap vector instruction: enough to choose between again and once.

The numbers are rough throughputs of vector code on current x86 and AArch64 cores; only their order matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.schedule import WHOLE, Columns, is_recomputable
from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import dtype_of, is_tile, layout_of
from weft.layout import runs_of
from weft.transforms.axis import AxisInfo

COST_OF_READING = 8
"""What reading a value back from its buffer is worth, in units of one cheap vector instruction."""

COST_OF_CONTIGUOUS_LOAD = 3
"""A vector load with its scalar address arithmetic."""

_HEAVY: Mapping[str, int] = {
    **dict.fromkeys(("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf"), 20),
    **dict.fromkeys(("sqrt", "sqrt_rn", "rsqrt", "div", "div_rn"), 10),
    "rem": 40,
    **dict.fromkeys(("cbrt", "log10", "log1p", "tan", "pow", "atan2"), 200),
}


class Costs:
    """The costs of a kernel's values, remembered."""

    def __init__(self, axis: Mapping[SSAValue, AxisInfo]):
        self._axis = axis
        self._known: dict[SSAValue, int] = {}

    def of(self, value: SSAValue) -> int:
        """Vector instructions to compute one register of the value from what is in registers or buffers."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current not in self._known:
                missing = [operand for operand in _computed_from(current) if operand not in self._known]
                if missing:  # first: by recursion, a long chain of ops would overflow Python's stack
                    pending.extend(missing)
                    continue
                self._known[current] = self._of(current)
            pending.pop()
        return self._known[value]

    def _of(self, value: SSAValue) -> int:
        op = value.owner
        if not is_tile(value) or not is_recomputable(value) or not isinstance(op, tile.TileOp):
            return 1
        if isinstance(op, tile.LoadOp):
            return self._cost_of_load(op)
        return weight(op) + sum([self._known[operand] for operand in operands_of(op) if is_tile(operand)])

    def _cost_of_load(self, op: tile.LoadOp) -> int:
        """A run's address is scalar arithmetic; a gather takes the vector of all addresses, and an instruction a lane."""
        info = self._axis.get(op.pointer)
        layout = layout_of(op.pointer)
        shape = runs_of(layout, (1,) * len(layout.shape) if info is None else info.contiguity)
        if len(shape.starts) == 1:
            return COST_OF_CONTIGUOUS_LOAD
        return COST_OF_CONTIGUOUS_LOAD * len(shape.starts) + self._known[op.pointer]


def work(needs: Mapping[SSAValue, Set[Columns]]) -> int:
    """Instructions for the values that a loop's body needs: at least one each, for what is read and for addresses too."""
    return sum(_work(value) for value, at in needs.items() if at != {WHOLE})


def _work(value: SSAValue) -> int:
    return max(1, weight(value.owner)) if isinstance(value.owner, Operation) else 1


def _computed_from(value: SSAValue) -> list[SSAValue]:
    """The tiles whose costs are part of the value's."""
    op = value.owner
    if not is_tile(value) or not is_recomputable(value) or not isinstance(op, tile.TileOp):
        return []
    return [op.pointer] if type(op) is tile.LoadOp else [operand for operand in operands_of(op) if is_tile(operand)]


def weight(op: Operation) -> int:
    """What the op itself costs for a register."""
    match op:
        case tile.UnaryOp() | tile.BinaryOp():
            weight = _HEAVY.get(op.kind.data, 1)
            integer_division = op.kind.data == "div" and not dtype_of(op.results[0]).is_float
            return 40 if integer_division else weight
        case tile.CastOp():
            return 4 if dtype_of(op.source).bits < 32 or dtype_of(op.result).bits < 32 else 1
        case tile.SplatOp() | tile.ConstantOp():
            return 0
        case _ if tile.is_a(op, tile.View):
            return 0
        case _:
            return 1
