"""The paper's worked examples that have no place in another file: figure 1 and proposition 4.12."""

from __future__ import annotations

import pytest

from weft.layout import LinearLayout, blocked, mma_swizzled
from weft.layout.memory.queries import coalescing

# Figure 1: a 16 x 16 tensor in two warps. A: 2 x 2 registers, 4 x 8 threads, 2 x 1 warps, columns first; B: the same tile
# with rows first.
A = blocked((16, 16), (2, 2), (4, 8), (2, 1), (1, 0))
B = blocked((16, 16), (2, 2), (8, 4), (1, 2), (0, 1))


def test_figure_1_threads_of_layout_a() -> None:
    # Warp 0, thread 0 has the 2 x 2 corner, thread 1 the next two columns, thread 8 the next two rows; warp 1 begins at row 8.
    def place(register: int, lane: int, warp: int) -> tuple[int, ...]:
        return tuple(A.apply({"register": register, "lane": lane, "warp": warp}).values())

    assert [place(r, 0, 0) for r in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [place(0, lane, 0) for lane in (1, 7, 8, 31)] == [(0, 2), (0, 14), (2, 0), (6, 14)]
    assert place(0, 0, 1) == (8, 0)


def test_figure_1_row_major_loads_of_a_touch_fewer_lines() -> None:
    """float32, row-major: a row is 64 bytes, half a line. Each thread loads two adjacent floats. A warp's 8 threads of A cover
    a row, its 4 rows of threads (rows 0, 2, 4, 6) 4 lines of 128 bytes; B's warp goes down 8 rows (0, 2, .. 14), 8 lines."""
    a, b = (coalescing(layout, 32) for layout in (A, B))
    assert (a.vector_bits, a.sectors, a.ideal, a.lines) == (64, 8, 8, 4)
    assert (b.vector_bits, b.sectors, b.ideal, b.lines) == (64, 8, 8, 8)


@pytest.mark.parametrize(
    ("rows", "columns", "vec", "per_phase", "max_phase"),
    [(3, 3, 1, 1, 8), (3, 4, 2, 1, 8), (4, 3, 2, 2, 4), (4, 5, 4, 2, 4), (2, 2, 1, 1, 1), (4, 2, 1, 1, 16)],
)
def test_proposition_4_12(rows: int, columns: int, vec: int, per_phase: int, max_phase: int) -> None:
    """The matrix is [[I_n, C], [0, I_m]], row i of C being (vec * (2**i / per_phase mod max_phase)) mod 2**n; and it is
    definition 4.11, evaluated at every place."""
    layout = mma_swizzled((1 << rows, 1 << columns), vec, per_phase, max_phase)
    expected = [(0, 1 << bit) for bit in range(columns)]
    for bit in range(rows):
        moved = vec * (((1 << bit) // per_phase) % max_phase) % (1 << columns)
        expected.append((1 << bit, moved))
    assert layout == LinearLayout({"offset": expected}, {"dim0": 1 << rows, "dim1": 1 << columns})
    place = layout.inverse()
    for i in range(1 << rows):
        for j in range(1 << columns):
            phase = i // per_phase % max_phase
            swizzled = ((phase ^ (j // vec)) * vec ^ (j % vec)) % (1 << columns)
            assert place.apply({"dim0": i, "dim1": j})["offset"] == (i << columns) + swizzled
