"""CuTe's layouts: evaluated by their definition, and to and from linear layouts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.layout import LinearLayout, mma_swizzled, nvidia_mma
from weft.layout.interop.cute import CuteLayout, Swizzle, from_linear, to_linear


@st.composite
def compact(draw: st.DrawFn) -> CuteLayout:
    """A layout whose bits are a permutation of the offset's, cut into nested modes; maybe swizzled."""
    bits = draw(st.integers(0, 9))
    order = draw(st.permutations(range(bits)))
    cuts = sorted(draw(st.lists(st.integers(0, bits), max_size=3)))
    edges = [0, *cuts, bits]
    modes = [order[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    shape = tuple(tuple(2 for _ in mode) or 1 for mode in modes)
    stride = tuple(tuple(1 << bit for bit in mode) or 0 for mode in modes)
    swizzle = None
    if bits >= 2 and draw(st.booleans()):
        count = draw(st.integers(1, bits // 2))
        base = draw(st.integers(0, bits - 2 * count))
        swizzle = Swizzle(count, base, draw(st.integers(count, bits - base - count)))
    return CuteLayout(shape, stride, swizzle)


def extents(layout: CuteLayout) -> list[int]:
    return [n if isinstance(n, int) else prod(int(str(m)) for m in n) for n in layout.shape]


def same(layout: CuteLayout, linear: LinearLayout) -> None:
    """The two give every coordinate the same offset."""
    for coordinates in product(*(range(n) for n in extents(layout))):
        index = {f"mode{axis}": c for axis, c in enumerate(coordinates)}
        assert layout(*coordinates) == linear.apply(index)["offset"]


@settings(deadline=None)
@given(compact())
def test_linear_layouts_agree_with_the_definition(layout: CuteLayout) -> None:
    same(layout, to_linear(layout))


@settings(deadline=None)
@given(compact())
def test_there_and_back(layout: CuteLayout) -> None:
    linear = to_linear(layout)
    back = from_linear(linear)
    assert to_linear(back).equal(linear)
    same(back, linear)
    assert CuteLayout.parse(str(back)) == back


def test_a_worked_swizzle() -> None:
    # 4 rows of 4: offset 4i + j, whose bits 2 and 3 (i) are XORed onto bits 0 and 1.
    layout = CuteLayout.parse("Sw<2,0,2> o (4,4):(4,1)")
    assert [[layout(i, j) for j in range(4)] for i in range(4)] == [
        [0, 1, 2, 3],
        [5, 4, 7, 6],
        [10, 11, 8, 9],
        [15, 14, 13, 12],
    ]
    assert str(from_linear(to_linear(layout))) == "Sw<2,0,2> o (4,4):(4,1)"


def test_shared_memory_for_mma_is_cutes_swizzle() -> None:
    """64 x 64 halves, vec 8, one row a phase, 8 phases: the 128-byte atom, on 16-byte units of 8 elements."""
    memory = mma_swizzled((64, 64), 8, 1, 8)
    to_offset = memory.inverse()
    assert str(from_linear(to_offset)) == "Sw<3,3,3> o (64,64):(64,1)"


def test_threads_and_values_of_mma() -> None:
    """SM80_16x8_Row's C: ((4,8),(2,2)):((32,1),(16,8)), a column-major 16 x 8 tile."""
    fragment = nvidia_mma((16, 8), 2, (1, 1), (16, 8))
    offset = LinearLayout({"dim0": [(1,), (2,), (4,), (8,)], "dim1": [(16,), (32,), (64,)]}, {"offset": 128})
    threads = fragment.compose(offset).sublayout(("lane", "register"), ("offset",))
    assert str(from_linear(threads)) == "((4,8),(2,2)):((32,1),(16,8))"


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (lambda: CuteLayout.parse("(4,4):(4"), "not a CuTe layout: expected a number, found 'the end' in '(4,4):(4'"),
        (lambda: CuteLayout.parse("(4,4)"), "not a CuTe layout: expected ':', found 'the end' in '(4,4)'"),
        (lambda: CuteLayout.parse("4:1 x"), "not a CuTe layout: expected the end, found 'x' in '4:1 x'"),
        (
            lambda: CuteLayout.parse("Sw<1,2> o 4:1"),
            "not a CuTe layout: expected ',', found '> o 4:1' in 'Sw<1,2> o 4:1'",
        ),
        (lambda: CuteLayout.parse("(4,4):4"), "shape (4,4) and stride (4) differ: 2 modes beside 1"),
        (lambda: CuteLayout((4,), ((1, 2),)), "shape (4) and stride ((1,2)) differ: 4 beside (1,2)"),
        (lambda: CuteLayout((0,), (1,)), "shape (0) and stride (1) differ: extent 0 is below 1"),
        (lambda: CuteLayout.parse("(4,4):(4,1)")(3), "(4,4):(4,1) takes 2 coordinates, found 1"),
        (lambda: to_linear(CuteLayout.parse("3:1")), "3:1: extent 3 of mode 0 is not a power of two"),
        (
            lambda: to_linear(CuteLayout.parse("4:3")),
            "4:3: stride 3 of mode 0 carries into another, so sums are no XORs",
        ),
        (
            lambda: to_linear(CuteLayout.parse("(4,4):(1,2)")),
            "(4,4):(1,2): stride 2 of mode 1 carries into another, so sums are no XORs",
        ),
        (
            lambda: from_linear(LinearLayout({"a": [(1, 0)]}, {"dim0": 2, "dim1": 1})),
            "a CuTe layout gives one offset, this one has the outputs [dim0, dim1]; flatten them first",
        ),
        (
            lambda: from_linear(LinearLayout({"a": [(1,), (3,), (7,)]}, {"offset": 8})),
            "{a: [1,3,7]} -> [offset: 8] is no shape:stride under one Swizzle<B,M,S>",
        ),
    ],
)
def test_refusals(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message


def test_degenerate_layouts() -> None:
    assert to_linear(CuteLayout.parse("1:0")).shape == (1,)
    assert str(from_linear(LinearLayout({"a": []}, {"offset": 1}))) == "1:0"
    assert CuteLayout.parse("(2,2):(0,1)")(1, 1) == 1
