"""`LinearLayout`: worked examples, laws against tables of all elements, text, messages."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_strategies import by_definition, indices, layouts
from sampling import examples
from weft.layout import LinearLayout

# Worked examples

PAPER_4_1 = LinearLayout(
    # Columns of layout A, with j = dim1 the fast dimension: 2x2 registers, 4x8 threads, 2x1 warps on 16x16.
    {
        "register": [(0, 1), (1, 0)],
        "lane": [(0, 2), (0, 4), (0, 8), (2, 0), (4, 0)],
        "warp": [(8, 0)],
    },
    {"dim0": 16, "dim1": 16},
)


@pytest.mark.parametrize(
    ("register", "lane", "element"), [(0, 1, (0, 2)), (1, 9, (2, 3)), (0, 10, (2, 4)), (3, 31, (7, 15))]
)
def test_the_papers_example(register: int, lane: int, element: tuple[int, int]) -> None:
    # The first three are the paper's own. The fourth: register 3 is (1,1), lane 31 is (2+4, 2+4+8), together (7,15).
    assert PAPER_4_1.apply({"register": register, "lane": lane}) == {"dim0": element[0], "dim1": element[1]}
    assert PAPER_4_1.flat(register=register, lane=lane) == element[0] * 16 + element[1]
    assert PAPER_4_1.flat(register=register, lane=lane, warp=1) == (element[0] ^ 8) * 16 + element[1]


def test_the_papers_example_has_an_inverse() -> None:
    assert PAPER_4_1.is_invertible
    inverse = PAPER_4_1.inverse()
    assert inverse.apply({"dim0": 2, "dim1": 3}) == {"register": 1, "lane": 9, "warp": 0}
    assert str(inverse) == (
        "{dim0: [(2,0,0),(0,8,0),(0,16,0),(0,0,1)], dim1: [(1,0,0),(0,1,0),(0,2,0),(0,4,0)]} "
        "-> [register: 4, lane: 32, warp: 2]"
    )


def test_the_modules_table() -> None:
    layout = LinearLayout.parse("{register: [(0,1),(1,0)], lane: [(0,2),(0,0)]} -> [dim0: 2, dim1: 4]")
    table = [[tuple(layout.apply({"register": r, "lane": lane}).values()) for lane in range(4)] for r in range(4)]
    assert table == [
        [(0, 0), (0, 2), (0, 0), (0, 2)],
        [(0, 1), (0, 3), (0, 1), (0, 3)],
        [(1, 0), (1, 2), (1, 0), (1, 2)],
        [(1, 1), (1, 3), (1, 1), (1, 3)],
    ]
    assert layout.zero_columns("lane") == (1,)
    assert layout.duplicate_mask("lane") == 2
    assert layout.zero_columns("register") == ()


def test_what_a_layout_knows() -> None:
    layout = LinearLayout({"register": [(1, 2), (0, 0)], "lane": []}, {"dim0": 2, "dim1": 4})
    assert layout.in_dims == ("register", "lane")
    assert layout.out_dims == ("dim0", "dim1")
    assert layout.shape == (2, 4)
    assert (layout.in_bits("register"), layout.in_size("register"), layout.in_size("lane")) == (2, 4, 1)
    assert (layout.out_size("dim1"), layout.out_bits) == (4, 3)
    assert layout.columns("register") == (0b110, 0)
    assert layout.bases("register") == ((1, 2), (0, 0))
    assert (layout.rank, layout.is_surjective, layout.is_injective) == (1, False, False)


def test_degenerate_layouts() -> None:
    empty = LinearLayout({}, {})
    assert str(empty) == "{} -> []"
    assert empty.is_invertible
    assert empty.inverse() == empty
    scalar = LinearLayout({"lane": [(), ()]}, {})
    assert scalar.flat(lane=3) == 0
    assert scalar.apply({"lane": 3}) == {}
    assert str(scalar) == "{lane: [(),()]} -> []"
    assert scalar.right_inverse() == LinearLayout({}, {"lane": 4})
    assert LinearLayout.identity(1, "lane", "dim0") == LinearLayout({"lane": []}, {"dim0": 1})


def test_identity_and_zeros() -> None:
    assert str(LinearLayout.identity(8, "lane", "dim0")) == "{lane: [1,2,4]} -> [dim0: 8]"
    assert str(LinearLayout.zeros(4, "lane", "dim0")) == "{lane: [0,0]} -> [dim0: 1]"
    assert str(LinearLayout.zeros(2, "lane", "dim0", 4)) == "{lane: [0]} -> [dim0: 4]"


def test_strided() -> None:
    assert str(LinearLayout.strided(4, 8, "lane", "dim0")) == "{lane: [8,16]} -> [dim0: 32]"
    assert LinearLayout.strided(8, 1, "lane", "dim0") == LinearLayout.identity(8, "lane", "dim0")
    assert LinearLayout.strided(1, 4, "lane", "dim0") == LinearLayout({"lane": []}, {"dim0": 4})


def test_from_bases_finds_the_sizes() -> None:
    # The largest dim0 coordinate is 4, so 8; dim1's is 1, so 2; together 4 bits, and there are 4 independent bases.
    bases = {"register": [(0, 1), (2, 0)], "lane": [(4, 0), (1, 1)]}
    assert LinearLayout.from_bases(bases, ["dim0", "dim1"]) == LinearLayout(bases, {"dim0": 8, "dim1": 2})
    assert LinearLayout.from_bases({}, []) == LinearLayout({}, {})
    assert LinearLayout.from_bases({"lane": [(0,)]}, ["dim0"]) == LinearLayout.zeros(2, "lane", "dim0")
    assert LinearLayout.from_bases({"lane": []}, ["dim0", "dim1"]) == LinearLayout({"lane": []}, {"dim0": 1, "dim1": 1})
    assert LinearLayout.from_bases({"lane": [(1,)]}, ["dim0"], [4], require_surjective=False).shape == (4,)


def test_integers_of_other_types_become_pythons() -> None:
    layout = LinearLayout({"lane": np.array([[1, 0], [0, 2]])}, {"dim0": np.int32(2), "dim1": 4})  # pyright: ignore[reportArgumentType]
    assert layout == LinearLayout({"lane": [(1, 0), (0, 2)]}, {"dim0": 2, "dim1": 4})
    assert [type(column) for column in layout.all_columns] == [int, int]
    assert {type(bits) for _, bits in layout.outputs} == {int}


# Laws, by enumeration


@given(layouts(), st.data())
@examples(60)
def test_application_is_the_xor_of_bases(layout: LinearLayout, data: st.DataObject) -> None:
    reached: set[tuple[int, ...]] = set()
    count = 0
    for point in indices(layout):
        image = layout.apply(point)
        assert image == by_definition(layout, point)
        reached.add(tuple(image.values()))
        count += 1
    assert layout.is_surjective == (len(reached) == 1 << layout.out_bits)
    assert layout.is_injective == (len(reached) == count)
    assert layout.is_invertible == (layout.is_surjective and layout.is_injective)
    for dim in layout.in_dims:
        mask = layout.duplicate_mask(dim)
        assert mask == sum(1 << bit for bit, basis in enumerate(layout.bases(dim)) if not any(basis))


@given(layouts(), st.data())
@examples(60)
def test_composition(inner: LinearLayout, data: st.DataObject) -> None:
    sizes = [1 << data.draw(st.integers(0, 2)) for _ in range(2)]
    basis = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    bases = {
        name: data.draw(st.lists(basis, min_size=bits, max_size=bits + 1))
        for name, bits in data.draw(st.permutations(inner.outputs))
    }
    outer = LinearLayout(bases, {"u": sizes[0], "v": sizes[1]})
    composed = inner.compose(outer)
    for point in indices(inner):
        assert composed.apply(point) == outer.apply(inner.apply(point))


@given(layouts(("a", "b"), ("x", "y")), layouts(("b", "c"), ("y", "z")))
@examples(60)
def test_product_is_block_diagonal_and_division_undoes_it(low: LinearLayout, high: LinearLayout) -> None:
    both = low * high
    for p, q in itertools.product(itertools.islice(indices(low), 16), itertools.islice(indices(high), 16)):
        shifted = {dim: index << (low.in_bits(dim) if dim in low.in_dims else 0) for dim, index in q.items()}
        point = {dim: p.get(dim, 0) | shifted.get(dim, 0) for dim in both.in_dims}
        x, y = low.apply(p), high.apply(q)
        expected = {
            name: x.get(name, 0) + y.get(name, 0) * (low.out_size(name) if name in low.out_dims else 1)
            for name in both.out_dims
        }
        assert both.apply(point) == expected
    quotient = both.divide_left(low)
    assert quotient is not None
    assert (low * quotient).equal(both)
    for dim in high.in_dims:
        names = high.out_dims
        assert [b for b in quotient.sublayout([dim], names).bases(dim)] == list(high.bases(dim))


@given(layouts(("a",), ("x",)), layouts(("a",), ("x",)))
@examples(100)
def test_division_refuses_exactly_what_no_quotient_gives_back(whole: LinearLayout, part: LinearLayout) -> None:
    quotient = whole.divide_left(part)
    # By the definition: part's bases first, the others multiples of part's size.
    n = part.in_bits("a")
    size = part.out_size("x")
    divides = (
        whole.bases("a")[:n] == part.bases("a")
        and whole.in_bits("a") >= n
        and whole.out_size("x") >= size
        and all(basis[0] % size == 0 for basis in whole.bases("a")[n:])
    )
    assert (quotient is not None) == divides


def test_division_needs_the_divisors_dimensions() -> None:
    whole = LinearLayout.identity(4, "lane", "dim0")
    assert whole.divide_left(LinearLayout.identity(2, "lane", "dim1")) is None
    assert whole.divide_left(LinearLayout.identity(2, "warp", "dim0")) is None
    assert whole.divide_left(LinearLayout.identity(8, "lane", "dim0")) is None
    assert whole.divide_left(LinearLayout.identity(2, "lane", "dim0")) == LinearLayout.identity(2, "lane", "dim0")


@given(layouts())
@examples(100)
def test_right_inverse(layout: LinearLayout) -> None:
    if not layout.is_surjective:
        with pytest.raises(ValueError, match="has no right inverse"):
            layout.right_inverse()
        return
    inverse = layout.right_inverse()
    assert inverse.in_dims == layout.out_dims
    assert inverse.out_dims == layout.in_dims
    for point in indices(inverse):
        assert layout.apply(inverse.apply(point)) == point
    if layout.is_invertible:
        assert layout.inverse() == inverse
        for point in indices(layout):
            assert inverse.apply(layout.apply(point)) == point


@given(layouts(), st.data())
@examples(60)
def test_relabelling_keeps_the_map(layout: LinearLayout, data: st.DataObject) -> None:
    turned = layout.transpose_outs(data.draw(st.permutations(layout.out_dims)))
    renamed = layout.rename({"a": "lane"}, {"x": "dim9"})
    part = layout.sublayout(["b"], ["y"])
    for point in indices(layout):
        image = layout.apply(point)
        assert turned.apply(point) == image
        assert renamed.apply({"lane": point["a"], "b": point["b"]}) == {"dim9": image["x"], "y": image["y"]}
        if not point["a"]:
            assert part.apply({"b": point["b"]}) == {"y": image["y"]}
    assert layout.equal(turned)
    assert turned.equal(layout)
    assert (turned == layout) == (turned.out_dims == layout.out_dims)


@given(layouts(), layouts())
@examples(100)
def test_equal_means_the_same_table(first: LinearLayout, second: LinearLayout) -> None:
    same = (
        {dim: first.in_size(dim) for dim in first.in_dims} == {dim: second.in_size(dim) for dim in second.in_dims}
        and dict(first.outputs) == dict(second.outputs)
        and all(first.apply(point) == second.apply(point) for point in indices(first))
    )
    assert first.equal(second) == same
    bases = {dim: first.bases(dim) for dim in reversed(first.in_dims)}
    assert first.equal(LinearLayout(bases, dict(zip(first.out_dims, first.shape, strict=True))))


@given(layouts())
@examples(60)
def test_values_are_immutable_hashable_and_print_as_they_parse(layout: LinearLayout) -> None:
    again = LinearLayout.parse(str(layout))
    assert again == layout
    assert again.in_dims == layout.in_dims
    assert hash(again) == hash(layout)
    assert eval(repr(layout), {"LinearLayout": LinearLayout}) == layout
    assert LinearLayout.parse(str(layout).replace(",", " , ").replace("[", "  [ ")) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    with pytest.raises(AttributeError):
        layout.outputs = ()  # pyright: ignore[reportAttributeAccessIssue]


# Messages

L = LinearLayout({"lane": [(1, 0), (0, 1)]}, {"dim0": 2, "dim1": 2})


@pytest.mark.parametrize(
    ("bases", "out_dims", "reason"),
    [
        ({"lane": [(1,)]}, {"dim0": 3}, "output dimension dim0 has size 3, expected a power of two"),
        ({"lane": []}, {"dim0": 0}, "output dimension dim0 has size 0, expected a power of two"),
        ({"lane": []}, {"dim0": -4}, "output dimension dim0 has size -4, expected a power of two"),
        ({"lane": [(1,)]}, {"dim0": 1}, "basis 0 of lane has dim0 coordinate 1, expected 0 <= dim0 < 1"),
        (
            {"lane": [(0, 0), (0, 4)]},
            {"dim0": 2, "dim1": 4},
            "basis 1 of lane has dim1 coordinate 4, expected 0 <= dim1 < 4",
        ),
        ({"lane": [(-1,)]}, {"dim0": 2}, "basis 0 of lane has dim0 coordinate -1, expected 0 <= dim0 < 2"),
        (
            {"lane": [(1,)]},
            {"dim0": 2, "dim1": 2},
            "basis 0 of lane is (1,), expected 2 coordinates, one for each of [dim0, dim1]",
        ),
        ({"lane": [4]}, {"dim0": 8}, "basis 0 of lane is 4, expected 1 coordinates, one for each of [dim0]"),
        ({"lane": [(0.5,)]}, {"dim0": 2}, "basis 0 of lane has dim0 coordinate 0.5, expected an integer"),
        ({"lane": []}, {"dim0": 2.0}, "output dimension dim0 has size 2.0, expected a power of two"),
        ({"lane 1": []}, {}, "dimension name 'lane 1' is not an identifier"),
        ({}, {"": 2}, "dimension name '' is not an identifier"),
    ],
)
def test_the_constructor_says_which_invariant_fails(
    bases: dict[str, list[tuple[int, ...]]], out_dims: dict[str, int], reason: str
) -> None:
    with pytest.raises(ValueError) as error:
        LinearLayout(bases, out_dims)
    assert str(error.value) == f"not a linear layout: {reason}"


def test_sizes_just_inside_the_bounds_are_accepted() -> None:
    assert LinearLayout({"lane": [(3,)]}, {"dim0": 4}).flat(lane=1) == 3
    assert L.flat(lane=3) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: L.columns("warp"), "no input dimension 'warp', the layout has [lane]"),
        (lambda: L.in_size("warp"), "no input dimension 'warp', the layout has [lane]"),
        (lambda: L.out_size("dim2"), "no output dimension 'dim2', the layout has [dim0, dim1]"),
        (lambda: L.sublayout(["lane"], ["dim2"]), "no output dimension 'dim2', the layout has [dim0, dim1]"),
        (lambda: L.sublayout(["warp"], ["dim0"]), "no input dimension 'warp', the layout has [lane]"),
        (lambda: L.flat(lane=4), "lane index 4 is out of range, expected 0 <= lane < 4"),
        (lambda: L.apply({"lane": -1}), "lane index -1 is out of range, expected 0 <= lane < 4"),
        (
            lambda: L.compose(LinearLayout.identity(2, "dim0", "x")),
            "cannot compose: the inner layout ends in [dim0, dim1], the outer begins in [dim0]",
        ),
        (
            lambda: L.compose(LinearLayout({"dim0": [], "dim1": [(1,)]}, {"x": 2})),
            "cannot compose: dim0 has size 2 in the inner layout and 1 in the outer, expected at least 2",
        ),
        (
            lambda: LinearLayout.zeros(2, "lane", "dim0", 2).inverse(),
            "{lane: [0]} -> [dim0: 2] has no inverse: its matrix has 1 rows, 1 columns and rank 0",
        ),
        (
            lambda: LinearLayout.zeros(2, "lane", "dim0").inverse(),
            "{lane: [0]} -> [dim0: 1] has no inverse: its matrix has 0 rows, 1 columns and rank 0",
        ),
        (
            lambda: LinearLayout.zeros(2, "lane", "dim0", 2).right_inverse(),
            "{lane: [0]} -> [dim0: 2] has no right inverse: its matrix has 1 rows, 1 columns and rank 0",
        ),
        (
            lambda: L.rename(outputs={"dim0": "dim1"}),
            "renaming gives two dimensions one name: [dim1, dim1]",
        ),
        (
            lambda: L.transpose_outs(["dim0"]),
            "[dim0] is not an order of the output dimensions [dim0, dim1]",
        ),
        (lambda: LinearLayout.identity(3, "lane", "dim0"), "identity: size 3 is not a power of two"),
        (lambda: LinearLayout.zeros(0, "lane", "dim0"), "zeros: size 0 is not a power of two"),
        (lambda: LinearLayout.strided(6, 2, "lane", "dim0"), "strided: size 6 is not a power of two"),
        (lambda: LinearLayout.strided(4, 3, "lane", "dim0"), "strided: stride 3 is not a power of two"),
        (
            lambda: LinearLayout.from_bases({"lane": [(2,)]}, ["dim0"]),
            "from_bases: {lane: [2]} -> [dim0: 4] is not surjective: its matrix has 2 rows, 1 columns and rank 1",
        ),
        (
            lambda: LinearLayout.from_bases({"lane": [(1,)]}, ["dim0"], require_surjective=False),
            "from_bases: out_sizes is None, expected the sizes of [dim0] for a layout that need not be surjective",
        ),
        (
            lambda: LinearLayout.from_bases({"lane": [(1,)]}, ["dim0"], [2, 2]),
            "from_bases: got 2 sizes for the output dimensions [dim0]",
        ),
        (
            lambda: LinearLayout.from_bases({"lane": [(1, 1)]}, ["dim0"]),
            "from_bases: got 2 sizes for the output dimensions [dim0]",
        ),
    ],
)
def test_operations_say_what_they_require(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected '{' at column 0, found ''"),
        ("{lane [1]} -> [x: 2]", "expected ':' at column 6, found '[1]} -> [x: 2]'"),
        ("{lane: [1,2} -> [x: 4]", "expected ',' at column 11, found '} -> [x: 4]'"),
        ("{lane: [-1]} -> [x: 4]", "expected a number at column 8, found '-1]} -> [x: 4]'"),
        ("{lane: [1]} [x: 4]", "expected '->' at column 12, found '[x: 4]'"),
        ("{lane: [1]} -> [4]", "expected a dimension name at column 16, found '4]'"),
        ("{lane: [1]} -> [x: 4", "expected ',' at column 20, found ''"),
        ("{lane: [1]} -> [x: 4] y", "expected nothing after the output dimensions, found 'y'"),
        ("{lane: [1], lane: [2]} -> [x: 4]", "input dimension lane appears twice"),
        ("{lane: [(1,1)]} -> [x: 2, x: 2]", "output dimension x appears twice"),
        (
            "{lane: [4]} -> [x: 4]",
            "not a linear layout: basis 0 of lane has x coordinate 4, expected 0 <= x < 4",
        ),
    ],
)
def test_text_that_is_no_layout(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as error:
        LinearLayout.parse(text)
    assert str(error.value) == f"cannot read layout {text!r}: {reason}"
