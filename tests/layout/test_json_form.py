"""Layouts as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.layout import LinearLayout, blocked, mma_swizzled
from weft.layout.interop.json_form import from_json, to_json


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    sizes = draw(st.dictionaries(st.sampled_from(["dim0", "dim1", "x"]), st.sampled_from([1, 2, 8]), min_size=1))
    basis = st.tuples(*(st.integers(0, n - 1) for n in sizes.values()))
    return LinearLayout(draw(st.dictionaries(st.sampled_from("abc"), st.lists(basis, max_size=4))), sizes)


@settings(deadline=None)
@given(layouts())
def test_there_and_back(layout: LinearLayout) -> None:
    assert from_json(to_json(layout)) == layout


def test_the_text() -> None:
    # Two adjacent elements to a thread, four threads along the row of 8, two rows.
    layout = blocked((2, 8), (1, 2), (2, 4), (1, 1), (1, 0))
    assert json.loads(to_json(layout)) == {
        "bases": {"register": [[0, 1]], "lane": [[0, 2], [0, 4], [1, 0]], "warp": []},
        "sizes": {"dim0": 2, "dim1": 8},
    }
    assert from_json(to_json(mma_swizzled((8, 8), 1, 1, 4), indent=2)) == mma_swizzled((8, 8), 1, 1, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a layout in JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", 'not a layout in JSON: expected an object with "bases" and "sizes"'),
        ('{"bases": {}}', 'not a layout in JSON: expected an object with "bases" and "sizes"'),
        ('{"bases": {"a": 1}, "sizes": {}}', 'not a layout in JSON: "bases" maps names to lists of lists of integers'),
        ('{"bases": [], "sizes": {}}', 'not a layout in JSON: "bases" maps names to lists of lists of integers'),
        ('{"bases": {}, "sizes": {"x": "2"}}', 'not a layout in JSON: "sizes" maps names to integers'),
        (
            '{"bases": {}, "sizes": {"x": 3}}',
            "not a linear layout: output dimension x has size 3, expected a power of two",
        ),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_json(text)
    assert str(caught.value) == message
