"""Random distributed layouts, for the property tests of this directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest
from hypothesis import strategies as st

from weft.layout import LinearLayout


class Distributed(Protocol):
    """A strategy for distributed layouts of a tensor on a machine with ``2**lane_bits`` lanes."""

    def __call__(
        self, shape_bits: Sequence[int], lane_bits: int, max_register_bits: int = 6
    ) -> st.SearchStrategy[LinearLayout]: ...


@st.composite
def _distributed(
    draw: st.DrawFn, shape_bits: Sequence[int], lane_bits: int, max_register_bits: int = 6
) -> LinearLayout:
    """A shuffle of the tensor's unit vectors and some zero columns, cut into registers and lanes."""
    sizes = [1 << bits for bits in shape_bits]
    units = [
        tuple((1 << bit) if axis == other else 0 for other in range(len(sizes)))
        for axis, bits in enumerate(shape_bits)
        for bit in range(bits)
    ]
    fewest = max(0, len(units) - lane_bits)
    register_bits = draw(st.integers(fewest, max(fewest, max_register_bits)))
    zeros = [(0,) * len(sizes)] * (register_bits + lane_bits - len(units))
    columns = draw(st.permutations(units + zeros))
    return LinearLayout(
        {"register": columns[:register_bits], "lane": columns[register_bits:]},
        {f"dim{axis}": size for axis, size in enumerate(sizes)},
    )


@pytest.fixture(scope="session")
def distributed() -> Distributed:
    return _distributed
