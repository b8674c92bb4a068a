"""The matrix of a layout with its labels: what the paper draws (4.1).

Definition. One column for each bit of the input dimensions, one row for each bit of the output dimensions; dimensions in their
order, lowest bits first.

    {register: [(0,1),(1,0)], lane: [(0,2),(0,0)]} -> [dim0: 2, dim1: 4]

              register  lane
              0  1      0  1
    dim0  0   .  1      .  .      rows     (0b0010, 0b0001, 0b0100)
    dim1  0   1  .      .  .      columns  (0b010, 0b001, 0b100, 0b000)
          1   .  .      1  .

Law: bit j of ``rows[i]`` is bit i of ``columns[j]``. A layout's own columns are other integers: there, as in a row-major
position, the *last* output dimension has the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from weft.layout.algebra import f2, fields

if TYPE_CHECKING:
    from weft.layout.algebra.linear_layout import LinearLayout

Dims: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class MatrixView:
    """A matrix over F2 with named groups of rows and columns; ``str`` draws it."""

    rows: f2.Matrix
    columns: f2.Matrix
    row_dims: Dims
    """Names of the output dimensions, each with its number of rows."""
    column_dims: Dims
    """Names of the input dimensions, each with its number of columns."""

    @property
    def entries(self) -> tuple[tuple[int, ...], ...]:
        """The zeros and ones, row by row."""
        return tuple([tuple([row >> j & 1 for j in range(len(self.columns))]) for row in self.rows])

    def __str__(self) -> str:
        width = max([1, *[len(str(max(bits - 1, 0))) for _, bits in (*self.row_dims, *self.column_dims)]])
        names = max([0, *[len(name) for name, _ in self.row_dims]])

        def line(label: str, bit: str, cells: Sequence[str]) -> str:
            """A row's label and bit, and a cell for each column, those of a dimension together and as wide as its name."""
            parts, at = [f"{label:<{names}}  {bit:>{width}} "], 0
            for name, bits in self.column_dims:
                part = "  ".join([f"{cell:>{width}}" for cell in cells[at : at + bits]])
                parts.append(f"{part:<{len(name)}}")
                at += bits
            return "  ".join(parts).rstrip()

        rooms = [max(len(name), (width + 2) * bits - 2) for name, bits in self.column_dims]
        titles = [f"{name:<{room}}" for (name, _), room in zip(self.column_dims, rooms, strict=True)]
        lines = ["  ".join([" " * (names + width + 3), *titles]).rstrip()]
        lines.append(line("", "", [str(bit) for _, bits in self.column_dims for bit in range(bits)]))
        labels = [(name if bit == 0 else "", str(bit)) for name, bits in self.row_dims for bit in range(bits)]
        for (label, bit), entries in zip(labels, self.entries, strict=True):
            lines.append(line(label, bit, ["1" if entry else "." for entry in entries]))
        return "\n".join(lines)


def matrix_view(layout: LinearLayout) -> MatrixView:
    """The matrix of a layout."""
    places = fields.positions(layout.outputs)
    flat = f2.transpose(layout.all_columns, layout.out_bits)
    rows = tuple([flat[places[name][0] + bit] for name, bits in layout.outputs for bit in range(bits)])
    return MatrixView(
        rows,
        f2.transpose(rows, len(layout.all_columns)),
        layout.outputs,
        tuple([(name, len(columns)) for name, columns in layout.inputs]),
    )
