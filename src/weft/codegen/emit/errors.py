"""What the emitter raises."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir.location import positions


class EmissionError(NotImplementedError):
    """The emitter met an op it has no code for. Names the op and where it stands."""

    def __init__(self, op: Operation, why: str):
        at = positions(op)
        where = f"{at[0].file}:{at[0].line}: " if at else ""
        super().__init__(f"{where}{op.name}: {why}")
