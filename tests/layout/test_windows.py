"""Windows onto elements that lie apart, against the law and by brute force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout.memory.windows import PAGE, Window, Windows, distances_of_lanes, windows_of


def test_every_second_element() -> None:
    """The example of the module: the last window ends with the last element."""
    lanes = [0, 1, 2, 3]
    first = Window(0, tuple(zip(lanes, [0, 2, 4, 6], strict=True)))
    second = Window(7, tuple(zip([4, 5, 6, 7], [1, 3, 5, 7], strict=True)))
    assert windows_of(tuple(range(0, 16, 2)), 4, 8) == Windows(0, 8, (first, second))


def test_elements_in_falling_order_and_duplicates() -> None:
    """One vector, from the last lane's element on."""
    assert windows_of((3, 2, 1, 0), 4, 16) == Windows(3, 4, (Window(0, ((0, 3), (1, 2), (2, 1), (3, 0))),))
    assert windows_of((0, 0, 1, 1), 4, 16) == Windows(0, 2, (Window(0, ((0, 0), (1, 0), (2, 1), (3, 1))),))


def test_distances_of_lanes_add_up() -> None:
    assert distances_of_lanes([2, 0, -16]) == (0, 2, 0, 2, -16, -14, -16, -14)


def test_windows_of_single_elements_are_no_gain() -> None:
    """Two elements a window are the least."""
    assert windows_of(tuple(range(0, 16 * 15, 15)), 4, 16) is not None
    assert windows_of(tuple(range(0, 16 * 16, 16)), 4, 16) is None
    assert windows_of((5,) * 16, 4, 16) is None


def test_elements_are_a_page_apart_at_most() -> None:
    """Else a whole page might lie between them that cannot be read."""
    far = PAGE // 4
    assert windows_of((0, 1, far + 1, far + 2), 4, 2) is not None
    assert windows_of((0, 1, far + 2, far + 3), 4, 2) is None


@examples(300)
@given(st.lists(st.integers(-40, 40), min_size=2, max_size=16), st.sampled_from([2, 4, 8, 16]))
def test_each_lane_is_in_one_window_between_the_first_element_and_the_last(places: list[int], most: int) -> None:
    found, low, high = windows_of(tuple(places), 4, most), min(places), max(places) + 1
    if found is None:
        return
    assert found.width in (2, 4, 8, 16)
    assert found.width <= most
    assert places[found.lowest] == low
    assert all(0 <= window.start <= high - low - found.width for window in found.windows)
    seen = [(lane, low + window.start + place) for window in found.windows for lane, place in window.places]
    assert sorted(seen) == list(enumerate(places))
    assert all(0 <= place < found.width for window in found.windows for _, place in window.places)
    assert 2 * len(found.windows) <= len(set(places))
    starts = [window.start for window in found.windows]
    assert starts == sorted(starts)
