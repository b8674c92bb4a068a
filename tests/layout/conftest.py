"""Random distributed layouts, for the property tests of this directory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
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


# Pairs of layouts with warps, for the plans of conversions on a GPU.

Pair = tuple[LinearLayout, LinearLayout]


def _gpu_layout(columns: Sequence[int], register_bits: int, lane_bits: int, tensor_bits: int) -> LinearLayout:
    dims = {
        "register": tuple(columns[:register_bits]),
        "lane": tuple(columns[register_bits : register_bits + lane_bits]),
        "warp": tuple(columns[register_bits + lane_bits :]),
    }
    return LinearLayout.from_columns(dims, (("dim0", tensor_bits),))


def _gpu_pair(rng: random.Random, lane_bits: int, warp_bits: int, register_bits: int = 4) -> Pair:
    """Two distributed layouts of one tensor with copies anywhere: the second is any other, or one whose warps keep what
    they hold, or the first with a few places exchanged."""
    places = register_bits + lane_bits + warp_bits
    units = [1 << bit for bit in range(rng.randint(0, places))]
    zeros = [0] * (places - len(units))
    columns = rng.sample(units + zeros, places)
    source = _gpu_layout(columns, register_bits, lane_bits, len(units))
    way = rng.choice(("any", "own", "own", "few"))
    if way == "few":
        for _ in range(rng.randint(0, 4) if places else 0):
            i, j = rng.randrange(places), rng.randrange(places)
            columns[i], columns[j] = columns[j], columns[i]
        return source, _gpu_layout(columns, register_bits, lane_bits, len(units))
    warps = list(source.columns("warp"))
    own = list(units)
    if way == "own":
        own = [unit for unit in units if unit not in warps]
        for i, unit in enumerate(warps):
            if not unit and own and rng.random() < 0.3:
                warps[i] = own.pop(rng.randrange(len(own)))
        registers = max(0, len(own) - lane_bits) + rng.randint(0, 2)
        columns = rng.sample(own + [0] * (registers + lane_bits - len(own)), registers + lane_bits) + warps
    else:
        registers = max(0, len(units) - lane_bits - warp_bits) + rng.randint(0, 2)
        places = registers + lane_bits + warp_bits
        columns = rng.sample(units + [0] * (places - len(units)), places)
    return source, _gpu_layout(columns, registers, lane_bits, len(units))


@pytest.fixture(scope="session")
def gpu_pair() -> Callable[..., Pair]:
    return _gpu_pair


def _held(layout: LinearLayout) -> Any:
    """The flattened element in each warp, lane and register, bit by bit from the bases."""
    shape = [layout.in_size(dim) for dim in ("warp", "lane", "register")]
    held = np.zeros(shape, dtype=np.int64)
    for axis, dim in enumerate(("warp", "lane", "register")):
        index = np.indices(shape)[axis]
        for bit, basis in enumerate(layout.bases(dim)):
            coordinate = 0
            for value, size in zip(basis, layout.shape, strict=True):
                coordinate = coordinate * size + value
            held ^= np.where(index >> bit & 1, coordinate, 0)
    return held


@pytest.fixture(scope="session")
def held() -> Callable[[LinearLayout], Any]:
    return _held
