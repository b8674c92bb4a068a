"""The labelled matrix: the paper's picture, its integers, and its text."""

from __future__ import annotations

from hypothesis import given

from layout_strategies import layouts
from sampling import examples
from weft.layout import LinearLayout

parse = LinearLayout.parse


def test_the_papers_matrix() -> None:
    # Paper 4.1: layout A, with j = dim1 the fast dimension.
    layout = parse(
        "{register: [(0,1),(1,0)], lane: [(0,2),(0,4),(0,8),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 16]"
    )
    assert str(layout.matrix()) == (
        "          register  lane           warp\n"
        "          0  1      0  1  2  3  4  0\n"
        "dim0  0   .  1      .  .  .  .  .  .\n"
        "      1   .  .      .  .  .  1  .  .\n"
        "      2   .  .      .  .  .  .  1  .\n"
        "      3   .  .      .  .  .  .  .  1\n"
        "dim1  0   1  .      .  .  .  .  .  .\n"
        "      1   .  .      1  .  .  .  .  .\n"
        "      2   .  .      .  1  .  .  .  .\n"
        "      3   .  .      .  .  1  .  .  ."
    )


def test_the_modules_example() -> None:
    view = parse("{register: [(0,1),(1,0)], lane: [(0,2),(0,0)]} -> [dim0: 2, dim1: 4]").matrix()
    assert view.rows == (0b0010, 0b0001, 0b0100)
    assert view.columns == (0b010, 0b001, 0b100, 0b000)
    assert view.entries == ((0, 1, 0, 0), (1, 0, 0, 0), (0, 0, 1, 0))
    assert view.row_dims == (("dim0", 1), ("dim1", 2))
    assert view.column_dims == (("register", 2), ("lane", 2))


def test_bits_of_two_digits_align() -> None:
    text = str((LinearLayout.identity(1 << 11, "i", "o") * LinearLayout.identity(2, "warp", "dim0")).matrix())
    lines = text.splitlines()
    assert lines[1] == "            0   1   2   3   4   5   6   7   8   9  10   0"
    assert lines[2] == "o      0    1   .   .   .   .   .   .   .   .   .   .   ."
    assert lines[-1] == "dim0   0    .   .   .   .   .   .   .   .   .   .   .   1"
    assert lines[0].index("warp") == lines[1].rindex(" 0")


def test_matrices_without_rows_or_columns() -> None:
    assert str(LinearLayout({}, {}).matrix()) == "\n"
    assert str(LinearLayout({"lane": [()]}, {}).matrix()) == "      lane\n      0"
    assert str(LinearLayout({"lane": []}, {"x": 2}).matrix()) == "       lane\n\nx  0"


@given(layouts())
@examples(60)
def test_entries_are_the_bits_of_the_bases(layout: LinearLayout) -> None:
    view = layout.matrix()
    bases = [basis for dim in layout.in_dims for basis in layout.bases(dim)]
    expected = [
        tuple(basis[axis] >> bit & 1 for basis in bases)
        for axis, (_, bits) in enumerate(layout.outputs)
        for bit in range(bits)
    ]
    assert list(view.entries) == expected
    for j, column in enumerate(view.columns):
        assert [column >> i & 1 for i in range(len(view.rows))] == [row[j] for row in expected]
