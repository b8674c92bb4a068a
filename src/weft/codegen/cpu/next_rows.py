"""Prefetches of the rows that a product's next block reads, while the present one is multiplied.

The rows of a left panel by rows are as many streams, which end with the panel's depth. A processor fetches ahead along each, and
waits for the third-level cache where the next block's rows begin: the more often, the less deep panels are, which is in tall and
wide tiles. So each step of a block's depth prefetches the same stretch of the next block's rows. A line of a row has several
steps' elements, and these steps share the rows:

    8 rows, 16 bytes a step     step 0: lines 0 of rows 0 and 1    1: of 2 and 3    2: of 4 and 5    3: of 6 and 7
                                step 4: lines 1 of rows 0 and 1    and so on

They go to the second-level cache, since the right panel's group goes through the first one before the next block comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from weft.codegen.cpu.far_ahead import fetch
from weft.codegen.llvm.types import I8, I64

LINE: Final = 64


@dataclass(frozen=True)
class NextRows:
    """Blocks of so many ``rows``, 6 or a power of two, of which each begins ``pitch`` bytes behind the one before, at a line; a
    step reads ``stretch`` bytes of each, a power of two."""

    rows: int
    pitch: int
    stretch: int

    @property
    def _together(self) -> int:
        """Rows that a step prefetches."""
        return max(1, -(-self.rows * self.stretch // LINE))

    def after(self, builder: ir.IRBuilder, row: ir.Value, wanted: ir.Value) -> ir.Value:
        """The first row of the block that is multiplied after the one at a row: of the first block behind the last whole one of
        the ``wanted`` rows. What lies behind those was perhaps never written, and a page that is missing takes long to miss."""
        rows = ir.Constant(I64, self.rows)
        following = builder.add(row, rows)
        whole = builder.icmp_unsigned("<=", builder.add(following, rows), wanted)
        return builder.select(whole, following, ir.Constant(I64, 0))

    def fetch(self, builder: ir.IRBuilder, first: ir.Value, step: ir.Value) -> None:
        """Prefetches what a step has to of the rows, whose first begins at a pointer."""
        turn = builder.urem(step, ir.Constant(I64, self.rows // self._together))
        offset = builder.add(
            builder.mul(step, ir.Constant(I64, self.stretch)),
            builder.mul(turn, ir.Constant(I64, self._together * self.pitch)),
        )
        for row in range(self._together):
            place = builder.gep(first, [builder.add(offset, ir.Constant(I64, row * self.pitch))], source_etype=I8)
            fetch(builder, place)
