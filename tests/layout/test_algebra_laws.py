"""Laws between the operations, as equations of layouts: no element is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from layout_strategies import layouts
from sampling import examples
from weft.layout import LinearLayout, concat_ins, concat_outs, flatten_ins, flatten_outs, kernel, transpose_ins

EMPTY = LinearLayout({}, {})


def between(draw: st.DrawFn, ins: Sequence[tuple[str, int]], outs: Sequence[tuple[str, int]]) -> LinearLayout:
    """A random map between dimensions of these ``(name, bits)``."""
    columns = st.integers(0, (1 << sum(bits for _, bits in outs)) - 1)
    return LinearLayout.from_columns({dim: tuple(draw(columns) for _ in range(bits)) for dim, bits in ins}, outs)


def dims(draw: st.DrawFn, *names: str) -> list[tuple[str, int]]:
    return [(name, draw(st.integers(0, 3))) for name in draw(st.permutations(names))]


@st.composite
def chains(draw: st.DrawFn, length: int) -> list[LinearLayout]:
    """Layouts that compose, the first begins; from m0, n0 to m1, n1 and so on."""
    spaces = [dims(draw, f"m{i}", f"n{i}") for i in range(length + 1)]
    return [between(draw, spaces[i], spaces[i + 1]) for i in range(length)]


@st.composite
def squares(draw: st.DrawFn) -> LinearLayout:
    """An invertible map of one space to itself, as the product of triangular ones and a permutation."""
    bits = draw(st.integers(0, 6))
    columns = [1 << bit for bit in draw(st.permutations(range(bits)))]
    for _ in range(draw(st.integers(0, 8)) if bits > 1 else 0):
        a, b = draw(st.lists(st.integers(0, bits - 1), min_size=2, max_size=2, unique=True))
        columns[a] ^= columns[b]
    return LinearLayout.from_columns({"i": tuple(columns)}, (("i", bits),))


@given(chains(3))
@examples(100)
def test_composition_is_associative(chain: list[LinearLayout]) -> None:
    a, b, c = chain
    assert a.compose(b).compose(c) == a.compose(b.compose(c))


@given(chains(1))
@examples(60)
def test_the_identity_is_neutral(chain: list[LinearLayout]) -> None:
    (layout,) = chain
    before = layout.invert_and_compose(layout)
    # A layout agrees with itself in all dimensions, so what solves for it is the identity.
    assert before.compose(layout) == layout
    one = EMPTY
    for name, size in zip(layout.out_dims, layout.shape, strict=True):
        one = one * LinearLayout.identity(size, name, name)
    assert layout.compose(one) == layout


@given(layouts(("a", "b"), ("x", "y")), layouts(("b", "c"), ("y", "z")), layouts(("a", "c"), ("x", "z")))
@examples(100)
def test_the_product_is_associative_and_has_a_unit(a: LinearLayout, b: LinearLayout, c: LinearLayout) -> None:
    assert ((a * b) * c).equal(a * (b * c))
    assert a * EMPTY == EMPTY * a == a


@given(chains(2), chains(2))
@examples(100)
def test_products_compose_factor_by_factor(first: list[LinearLayout], second: list[LinearLayout]) -> None:
    (a, b), (c, d) = first, second
    assert (a * c).compose(b * d).equal(a.compose(b) * c.compose(d))


@given(layouts(("a", "b"), ("x", "y")), layouts(("b", "c"), ("y", "z")))
@examples(80)
def test_ranks(a: LinearLayout, b: LinearLayout) -> None:
    both = a * b
    assert both.rank == a.rank + b.rank
    assert len(kernel(both)) == len(kernel(a)) + len(kernel(b))
    assert both.is_surjective == (a.is_surjective and b.is_surjective)
    assert both.is_injective == (a.is_injective and b.is_injective)
    assert a.rank + len(kernel(a)) == len(a.all_columns)


@given(squares(), squares())
@examples(100)
def test_inverses(a: LinearLayout, b: LinearLayout) -> None:
    assert a.is_invertible
    assert a.inverse().inverse() == a
    identity = LinearLayout.identity(a.in_size("i"), "i", "i")
    assert a.compose(a.inverse()) == a.inverse().compose(a) == identity
    assert (a * b).inverse() == a.inverse() * b.inverse()
    if a.out_bits == b.out_bits:
        assert a.compose(b).inverse() == b.inverse().compose(a.inverse())
        # invert_and_compose is inverse(b) . a, and then where a and b are equal the identity, as it is here anyway.
        assert a.invert_and_compose(b) == a.compose(b.inverse())


@given(layouts(("a", "b"), ("x", "y")), layouts(("b", "c"), ("y", "z")))
@examples(60)
def test_left_and_right_division_take_turns(a: LinearLayout, b: LinearLayout) -> None:
    both = a * b
    left, right = both.divide_left(a), both.divide_right(b)
    assert left is not None
    assert right is not None
    # What remains of each is the other, so nothing remains of both.
    assert left.divide_right(b) == right.divide_left(a)
    nothing = left.divide_right(b)
    assert nothing is not None
    assert (nothing.out_bits, nothing.all_columns) == (0, ())


@given(layouts(("a", "b"), ("x", "y")), layouts(("c",), ("z",)))
@examples(60)
def test_a_product_without_common_dimensions_is_two_concatenations(a: LinearLayout, b: LinearLayout) -> None:
    wide = LinearLayout.from_columns({"c": (0,) * b.in_bits("c")}, a.outputs)
    tall = LinearLayout.from_columns({dim: (0,) * a.in_bits(dim) for dim in a.in_dims}, b.outputs)
    assert (a * b).equal(concat_outs(concat_ins(a, wide), concat_ins(tall, b)))


@given(chains(2), st.data())
@examples(60)
def test_relabelling_commutes_with_composition(chain: list[LinearLayout], data: st.DataObject) -> None:
    a, b = chain
    order = data.draw(st.permutations(a.out_dims))
    # How the inner space is listed does not matter; its names and sizes do.
    assert a.transpose_outs(order).compose(b) == a.compose(b)
    assert a.compose(transpose_ins(b, order)) == a.compose(b)
    assert flatten_ins(a.compose(b), "i") == flatten_ins(a, "i").compose(b)
    assert flatten_outs(a.compose(b), "o") == a.compose(flatten_outs(b, "o"))
    names = {name: f"{name}x" for name in a.out_dims}
    assert a.rename(outputs=names).compose(b.rename(inputs=names)) == a.compose(b)
