"""Flattened indices: moves of bit fields against coordinates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout.algebra import fields


def test_the_modules_example() -> None:
    dims = (("dim0", 1), ("dim1", 2), ("dim2", 1))
    assert fields.flatten((1, 2, 0), dims) == 12
    assert fields.unflatten(12, dims) == (1, 2, 0)
    assert fields.positions(dims) == {"dim2": (0, 1), "dim1": (1, 2), "dim0": (3, 1)}
    assert fields.flatten((), ()) == 0
    assert fields.unflatten(0, ()) == ()


def test_bits_that_shift_alike_move_together() -> None:
    # Two fields of 3 and 4 bits change places: one mask goes up, one down.
    old, new = fields.positions((("a", 3), ("b", 4))), fields.positions((("b", 4), ("a", 3)))
    assert fields.repacking(old, new) == ((0b1111, 3, 0), (0b1110000, 0, 4))
    # Only the slowest is dropped: one mask, in place. Nothing is left: no moves.
    assert fields.repacking(old, fields.positions((("b", 4),))) == ((0b1111, 0, 0),)
    assert fields.repacking(old, fields.positions((("c", 1),))) == ()
    assert fields.move((0b1010101, 3), ()) == (0, 0)


@st.composite
def field_lists(draw: st.DrawFn) -> fields.Fields:
    names = draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=4))
    return tuple((name, draw(st.integers(0, 3))) for name in names)


@given(field_lists(), st.data())
@examples(200)
def test_repacking_moves_each_coordinate(old: fields.Fields, data: st.DataObject) -> None:
    widths = dict(old)
    new = tuple(
        (name, widths.get(name, 0) + data.draw(st.integers(0, 2)))
        for name in data.draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=5))
    )
    steps = fields.repacking(fields.positions(old), fields.positions(new))
    indices = range(1 << sum(widths.values()))
    for index, moved in zip(indices, fields.move(indices, steps), strict=True):
        coordinates = dict(zip(widths, fields.unflatten(index, old), strict=True))
        assert fields.flatten(fields.unflatten(index, old), old) == index
        assert fields.unflatten(moved, new) == tuple(coordinates.get(name, 0) for name, _ in new)


def test_log2_exact() -> None:
    assert [fields.log2_exact(size) for size in (1, 2, 4, 1 << 40)] == [0, 1, 2, 40]
    assert [fields.log2_exact(size) for size in (0, 3, -1, -4, 6)] == [None] * 5
    assert fields.log2_exact(np.int64(8)) == 3  # pyright: ignore[reportArgumentType]
    assert fields.log2_exact(2.0) is None  # pyright: ignore[reportArgumentType]
