"""Addresses as a pointer and an immediate offset: the distances by brute force, and the code of accesses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.language as tl
from sampling import examples
from weft.layout import LinearLayout
from weft.transforms.axis_info import Box
from weft.transforms.distances import Distances, distances

BITS = (3, 4)
"""Of the two dimensions' sizes."""


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    groups = tuple(1 << draw(st.integers(0, bits)) for bits in BITS)
    steps = tuple(draw(st.integers(-9, 9)) if group > 1 else 0 for group in groups)
    return Box(steps, groups, 1, draw(st.sampled_from([1, 2, 4, 8])))


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    """Unit columns, and some that are XORs of several or move nothing."""
    units = draw(st.permutations([1 << bit for bit in range(sum(BITS))]))
    columns = [draw(st.integers(0, 127)) if draw(st.integers(0, 5)) == 0 else unit for unit in units] + [0]
    cut = draw(st.integers(2, 6))
    found = {"register": tuple(columns[:cut]), "lane": tuple(columns[cut:]), "warp": (draw(st.sampled_from(units)),)}
    return LinearLayout.from_columns(found, [("dim0", BITS[0]), ("dim1", BITS[1])])


@given(st.data())
@examples(150)
def test_offsets_lead_from_one_pointer_to_another(data: st.DataObject) -> None:
    """Pointers by the definition of a box: each group begins anywhere, and each index in it adds its step."""
    box, layout = data.draw(boxes()), data.draw(layouts())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = [1 << bits for bits in BITS]
    starts = rng.integers(-(1 << 20), 1 << 20, [size // group for size, group in zip(sizes, box.groups, strict=True)])

    def pointer(**place: int) -> int:
        index = layout.apply(place).values()
        start = starts[tuple(i // group for i, group in zip(index, box.groups, strict=True))]
        moved = sum(i % group * step for i, group, step in zip(index, box.groups, box.steps, strict=True))
        return int(start) + moved * box.unit

    found = distances(layout, box)
    for register in range(layout.in_size("register")):
        base, offset = found.split(register)
        for lane in range(layout.in_size("lane")):
            for warp in range(layout.in_size("warp")):
                thread = {"lane": lane, "warp": warp}
                assert pointer(register=register, **thread) == pointer(register=base, **thread) + offset


def test_what_is_known() -> None:
    """Rows of 128 elements of 2 bytes, 8 rows of a group: a register that moves 8 rows leaves it, one whose column a lane has too
    is not known to add, and what moves nothing is 0 bytes away."""
    box = Box((128, 1), (8, 16), 1, 2)
    columns = {"register": (1, 16 << 2, 16 << 3, 2, 0), "lane": (2, 4, 16), "warp": ()}
    layout = LinearLayout.from_columns(columns, [("dim0", 4), ("dim1", 4)])
    assert distances(layout, box).bytes == (2, 1024, None, None, 0)


def test_offsets_fit_an_instruction() -> None:
    """Signed 24 bits: of two bits that are 6 MiB away each, one is taken."""
    far = Distances((6 << 20, 6 << 20, -(6 << 20), 1 << 23))
    assert [far.split(register) for register in (1, 2, 3, 7, 8)] == [
        (0, 6 << 20),
        (0, 6 << 20),
        (2, 6 << 20),
        (2, 0),
        (8, 0),
    ]


@weft.jit
def rows(x: Any, out: Any, inside: Any, stride: Any, N: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr) -> None:
    at = tl.arange(0, N)[:, None] * D - tl.arange(0, D)[None, :]
    mask = tl.arange(0, N)[:, None] < inside if MASKED else None
    value = tl.load(x + stride + at, mask=mask, other=0 if MASKED else None)
    tl.store(out + tl.arange(0, N)[:, None] * D + tl.arange(0, D)[None, :], value)


@pytest.mark.jit
@pytest.mark.parametrize("masked", [False, True])
def test_one_pointer_for_all_accesses(masked: bool) -> None:
    """Rows backwards: the 16 loads of a thread share one register for their address, and so do its stores. Offsets are negative
    inside a row. The emulator reads what NumPy reads."""
    n, d = 32, 64
    x = np.arange(2 * n * d, dtype=np.int32)
    out = np.zeros(n * d, np.int32)
    kernel = rows.on("sm_80")
    kernel[(1,)](x, out, 20, 63, N=n, D=d, MASKED=masked)
    index = np.arange(n)[:, None] * d - np.arange(d)[None, :] + 63
    expected = np.where(np.arange(n)[:, None] < 20, x[index], 0) if masked else x[index]
    np.testing.assert_array_equal(out.reshape(n, d), expected)
    ptx = rows.compile(x, out, 20, 63, N=n, D=d, MASKED=masked, target="sm_80").ptx
    for name in ("ld", "st"):
        addresses = re.findall(rf"\b{name}\.global\S*\s.*\[(%rd\d+)", ptx)
        assert len(addresses) == {"ld": 16, "st": 4}[name]
        assert len(set(addresses)) == 1
