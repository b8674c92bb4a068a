"""Runs of consecutive addresses in a register, against the addresses themselves."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import runs_of, vector

SIZE = st.sampled_from([1, 2, 4, 8, 32])


@examples(200)
@given(st.lists(SIZE, min_size=1, max_size=3), st.sampled_from([1, 2, 4, 16]), st.data())
def test_runs_of_against_addresses(sizes: list[int], lanes: int, data: st.DataObject) -> None:
    """For addresses with just the contiguity promised, every lane's element is where the shape says: ``run`` elements on
    from the first of its run, in the place ``lane_of`` names. Each different element is in exactly one run."""
    order = data.draw(st.permutations(range(len(sizes))))
    contiguity = [data.draw(st.sampled_from([1 << k for k in range(size.bit_length())])) for size in sizes]
    layout = vector(sizes, lanes, order)
    shape = runs_of(layout, contiguity)
    along = data.draw(st.integers(0, len(sizes) - 1))

    def address(flat: int) -> int:
        """A number for each element: consecutive along one dimension within groups of the contiguity, far apart elsewhere."""
        coordinates = layout.unflatten(flat)
        group, inside = divmod(coordinates[along], contiguity[along])
        others = [c for axis, c in enumerate(coordinates) if axis != along]
        return hash((group, *others)) % 10**9 * 1000 + inside

    register = data.draw(st.integers(0, layout.in_size("register") - 1))
    elements = [layout.flat(register=register, lane=lane) for lane in range(lanes)]
    in_runs = [elements[start + j] for start in shape.starts for j in range(shape.run)]
    assert sorted(in_runs) == sorted(set(elements))
    assert shape.elements == len(set(elements))
    assert [in_runs[place] for place in shape.lane_of] == elements
    assert shape.identity == (list(shape.lane_of) == list(range(shape.elements)))
    dimension = next((d for d in reversed(range(len(sizes))) if walks(layout.unflatten, elements, d)), None)
    if along == dimension and shape.run > 1:
        for start in shape.starts:
            first = address(elements[start])
            assert [address(elements[start + j]) for j in range(shape.run)] == list(range(first, first + shape.run))
    assert shape.run <= max(min(c, n) for c, n in zip(contiguity, sizes, strict=True))


def walks(unflatten: Any, elements: list[int], dimension: int) -> bool:
    """Whether the second lane is the next element along a dimension."""
    if len(elements) < 2:
        return False
    here, there = unflatten(elements[0]), unflatten(elements[1])
    return there[dimension] == here[dimension] + 1
