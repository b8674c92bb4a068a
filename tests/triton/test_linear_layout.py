"""``triton.tools.LinearLayout``. What is expected was printed by Triton 3.9's own class, or follows from the definition."""

from __future__ import annotations

from itertools import product

import pytest

from weft.triton.tools import LinearLayout

TILE = LinearLayout.from_bases([("in0", [[0, 1], [0, 2]]), ("in1", [[1, 0], [2, 0]])], ["o0", "o1"])


def test_dimensions_and_bases() -> None:
    assert TILE.bases == [("in0", [[0, 1], [0, 2]]), ("in1", [[1, 0], [2, 0]])]
    assert TILE.out_dims == [("o0", 4), ("o1", 4)]
    assert (TILE.num_in_dims, TILE.num_out_dims) == (2, 2)
    assert (TILE.get_in_dim_names(), TILE.get_out_dim_names()) == (["in0", "in1"], ["o0", "o1"])
    assert LinearLayout.from_bases(TILE.bases, ["o0", "o1"]) == TILE and LinearLayout.identity_1d(4, "a", "b") != TILE


def test_text() -> None:
    assert repr(TILE) == (
        "\n - in0=1 -> (0, 1)\n   in0=2 -> (0, 2)\n - in1=1 -> (1, 0)\n   in1=2 -> (2, 0)\n"
        "where out dims are: [o0 (size 4), o1 (size 4)]"
    )
    assert str(LinearLayout.identity_1d(1, "a", "b")) == (
        "\n - a is a size 1 dimension\nwhere out dims are: [b (size 1)]"
    )


def test_strided_and_zeros() -> None:
    strided = LinearLayout.strided_1d(4, 2, "i", "o")
    assert (strided.bases, strided.out_dims) == ([("i", [[2], [4]])], [("o", 8)])
    assert strided.is_injective() and not strided.is_surjective() and not strided.is_invertible()
    assert strided.get_matrix_view() == [[0, 0], [1, 0], [0, 1]]
    zeros = LinearLayout.zeros_1d(8, "i", "z", outDimSize=4)
    assert {zeros.apply({"i": i})["z"] for i in range(8)} == {0} and not zeros.is_surjective()
    assert (LinearLayout.identity_1d(4, "a", "b") * LinearLayout.zeros_1d(2, "a", "b")).bases == [
        ("a", [[1], [2], [0]])
    ]


def test_values() -> None:
    """in0 is o1, and in1 is o0; bits beyond a dimension's size do not count."""
    for a, b in product(range(4), range(4)):
        assert TILE.apply({"in0": a, "in1": b}) == {"o0": b, "o1": a} == TILE.apply({"in0": a + 4, "in1": b})
        out = TILE.invert().apply({"o0": b, "o1": a})
        assert out == {"in0": a, "in1": b}
    outer = LinearLayout.identity_1d(4, "o0", "p") * LinearLayout.identity_1d(4, "o1", "q")
    assert TILE.compose(outer).bases == TILE.bases and TILE.compose(outer).get_out_dim_names() == ["p", "q"]
    other = LinearLayout.from_bases([("x", [[2, 0], [1, 0], [0, 2], [0, 1]])], ["o0", "o1"])
    moved = TILE.invert_and_compose(other)
    assert all(other.apply(moved.apply(at)) == TILE.apply(at) for at in ({"in0": a, "in1": 3 - a} for a in range(4)))
    strided = LinearLayout.strided_1d(4, 2, "i", "o")
    assert strided.compose(strided.pseudoinvert()) == LinearLayout.identity_1d(4, "i", "i")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearLayout.identity_1d(6, "a", "b"), "identity: size 6 is not a power of two"),
        (
            lambda: LinearLayout.from_bases([("a", [[1]])], ["o"], [4]),
            "from_bases: {a: [1]} -> [o: 4] is not surjective: its matrix has 2 rows, 1 columns and rank 1",
        ),
        (
            lambda: LinearLayout.from_bases([("a", [[3]])], ["o"], None, False),
            "from_bases: {a: [3]} -> [o: 4] is not surjective: its matrix has 2 rows, 1 columns and rank 1",
        ),
        (
            lambda: TILE.apply({"in0": 1}),
            "Dimensions must match, ignoring order, but they don't. Got dims: ['in0'] and ['in0', 'in1']",
        ),
    ],
)
def test_what_ends_the_process_in_triton_is_an_error(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message
