"""``triton.tools.LinearLayout``: weft's layouts under the names of Triton's Python class.

The mathematics is `weft.layout.LinearLayout`. Where Triton ends the process (a size that is no power of two, a map that has no
inverse, other dimensions), weft raises `ValueError`. The texts ``get_shared_view`` and ``get_distributed_view`` are missing:
`weft.layout` draws layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft import layout

_Bases = Sequence[tuple[str, Sequence[Sequence[int]]]]


@dataclass(frozen=True)
class LinearLayout:
    """A linear map over F2 between named dimensions; ``linear`` is weft's own object."""

    linear: layout.LinearLayout

    @staticmethod
    def identity_1d(size: int, inDim: str, outDim: str) -> LinearLayout:
        """Each index to itself."""
        return LinearLayout(layout.LinearLayout.identity(size, inDim, outDim))

    @staticmethod
    def strided_1d(size: int, stride: int, inDim: str, outDim: str) -> LinearLayout:
        """Each index to ``stride`` times itself."""
        return LinearLayout(layout.LinearLayout.strided(size, stride, inDim, outDim))

    @staticmethod
    def zeros_1d(size: int, inDim: str, outDim: str, outDimSize: int = 1) -> LinearLayout:
        """Each index to 0."""
        return LinearLayout(layout.LinearLayout.zeros(size, inDim, outDim, outDimSize))

    @staticmethod
    def from_bases(
        bases: _Bases,
        out_dim_names: Sequence[str],
        out_dim_sizes: Sequence[int] | None = None,
        require_surjective: bool = True,
    ) -> LinearLayout:
        """The layout with these images of the bits of each input dimension.

        Without sizes the outputs are as small as they can be, and must all be reached, as in Triton. Raises: `ValueError`.
        """
        required = require_surjective or out_dim_sizes is None
        return LinearLayout(
            layout.LinearLayout.from_bases(dict(bases), out_dim_names, out_dim_sizes, require_surjective=required)
        )

    @property
    def bases(self) -> list[tuple[str, list[list[int]]]]:
        """The images of the bits of each input dimension."""
        return [(name, [list(basis) for basis in self.linear.bases(name)]) for name in self.linear.in_dims]

    @property
    def out_dims(self) -> list[tuple[str, int]]:
        """The output dimensions with their sizes."""
        return list(zip(self.linear.out_dims, self.linear.shape, strict=True))

    @property
    def num_in_dims(self) -> int:
        """The number of input dimensions."""
        return len(self.linear.in_dims)

    @property
    def num_out_dims(self) -> int:
        """The number of output dimensions."""
        return len(self.linear.out_dims)

    def get_in_dim_names(self) -> list[str]:
        """The input dimensions."""
        return list(self.linear.in_dims)

    def get_out_dim_names(self) -> list[str]:
        """The output dimensions."""
        return list(self.linear.out_dims)

    def is_surjective(self) -> bool:
        """Whether every output is reached."""
        return self.linear.is_surjective

    def is_injective(self) -> bool:
        """Whether two inputs never give the same output."""
        return self.linear.is_injective

    def is_invertible(self) -> bool:
        """Whether it is both."""
        return self.linear.is_invertible

    def apply(self, inputs: Mapping[str, int]) -> dict[str, int]:
        """The image of an index, which has all dimensions. Bits beyond the size of an input do not count, as in Triton."""
        if sorted(inputs) != sorted(self.linear.in_dims):
            raise ValueError(
                f"Dimensions must match, ignoring order, but they don't. Got dims: {list(inputs)} and {self.get_in_dim_names()}"
            )
        indices = {name: value & (self.linear.in_size(name) - 1) for name, value in inputs.items()}
        return self.linear.apply(indices)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """This layout, then the other."""
        return LinearLayout(self.linear.compose(outer.linear))

    def invert_and_compose(self, outer: LinearLayout) -> LinearLayout:
        """A layout whose images under ``outer`` are those of this."""
        return LinearLayout(self.linear.invert_and_compose(outer.linear))

    def invert(self) -> LinearLayout:
        """The inverse."""
        return LinearLayout(self.linear.inverse())

    def pseudoinvert(self) -> LinearLayout:
        """An inverse of what is reached."""
        return LinearLayout(self.linear.pseudo_inverse())

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """The direct sum: the other's bits come after this one's, dimension by dimension."""
        return LinearLayout(self.linear * other.linear)

    def get_matrix_view(self) -> list[list[int]]:
        """The matrix over F2: a row for each output bit, a column for each input bit, lowest bits first."""
        bits = [(i, b) for i, size in enumerate(self.linear.shape) for b in range(size.bit_length() - 1)]
        columns: list[Sequence[int]] = [basis for name in self.linear.in_dims for basis in self.linear.bases(name)]
        return [[column[i] >> b & 1 for column in columns] for i, b in bits]

    def __repr__(self) -> str:
        """As Triton prints it."""
        lines: list[str] = []
        for name, vectors in self.bases:
            if not vectors:
                lines.append(f" - {name} is a size 1 dimension")
            for bit, basis in enumerate(vectors):
                start = " - " if bit == 0 else "   "
                lines.append(f"{start}{name}={1 << bit} -> ({', '.join(map(str, basis))})")
        outputs = ", ".join(f"{name} (size {size})" for name, size in self.out_dims)
        return "\n" + "\n".join([*lines, f"where out dims are: [{outputs}]"])
