"""Native execution of nodes: against the reference on random graphs, and how many kernels and loads it takes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from array_graphs import Graph
from sampling import every
from weft import dtypes
from weft.array.execution import backends, memory, native, reference
from weft.array.execution.native import Plan
from weft.array.expression.nodes import (
    Apply,
    Convert,
    Dimension,
    Input,
    Matmul,
    Node,
    Reduce,
    Reshape,
    Scalar,
    View,
    walk,
)
from weft.array.programs.canonical import PARTS
from weft.dtypes import DType, float32

pytestmark = pytest.mark.jit


def data(*shape: int, dtype: str = "float32") -> NDArray[Any]:
    """Whole numbers from -4 to 4, different at neighbouring places."""
    return (np.arange(int(np.prod(shape))) * 7 % 9 - 4).reshape(shape).astype(dtype)


def given(array: NDArray[Any]) -> Input:
    return Input(array.shape, dtypes.from_numpy(array.dtype), array=array)


def apply(meaning: str, *arguments: Node, dtype: DType | None = None) -> Apply:
    shape = np.broadcast_shapes(*(a.shape for a in arguments))
    return Apply(shape, dtype or arguments[-1].dtype, meaning, arguments)


def number(value: float, dtype: DType = float32) -> Scalar:
    return Scalar((), dtype, value)


def reduce(meaning: str, source: Node, *axes: int) -> Reduce:
    shape = tuple(n for a, n in enumerate(source.shape) if a not in axes)
    return Reduce(shape, source.dtype, source=source, meaning=meaning, axes=axes)


def spread(source: Node, shape: tuple[int, ...], *axes: int) -> View:
    return View(shape, source.dtype, source=source, dimensions=tuple(map(Dimension, axes)))


def planned(*outputs: Node) -> Plan:
    return Plan(outputs, [n for n in walk(outputs) if isinstance(n, Input)])


def loads(plan: Plan) -> list[int]:
    """The loads in each kernel of a plan."""
    return [program.text.count("tl.load") for program in plan.programs]


def agrees(*outputs: Node) -> None:
    for got, want in zip(native.run(outputs), reference.run(outputs), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", every(2, range(40)))
def test_random_graphs_agree_with_the_reference(seed: int) -> None:
    agrees(*Graph(seed).outputs())


def test_a_chain_is_one_kernel_that_reads_each_input_once() -> None:
    x, y = given(data(1000)), given(data(1000))
    chain = apply("add", apply("mul", apply("add", x, number(1.0)), y), apply("mul", x, x))
    plan = planned(chain)
    assert loads(plan) == [2]
    agrees(chain)


def test_several_outputs_of_one_shape_share_a_kernel() -> None:
    x = given(data(33, 5))
    outputs = apply("add", x, number(1.0)), apply("mul", x, number(2.0)), reduce("sum", x, 1)
    assert loads(planned(*outputs)) == [1]
    agrees(*outputs)


def test_softmax_is_one_kernel() -> None:
    values = data(70, 37)
    x = given(values)
    shifted = apply("sub", x, spread(reduce("max", x, 1), x.shape, 0))
    weights = apply("exp", shifted)
    softmax = apply("divide", weights, spread(reduce("sum", weights, 1), x.shape, 0))
    assert loads(planned(softmax)) == [1]
    (got,) = native.run([softmax])
    exact = np.exp(values.astype("float64") - 4)
    np.testing.assert_allclose(got, exact / exact.sum(1, keepdims=True), rtol=1e-6)


def test_rows_too_long_to_keep_are_read_twice() -> None:
    x = given(data(2, 40000))
    centred = apply("sub", x, spread(reduce("max", x, 1), x.shape, 0))
    assert loads(planned(centred)) == [1, 2]
    agrees(centred)


def test_what_follows_a_reduction_on_its_shape_joins_it() -> None:
    x, scale = given(data(50, 20)), given(data(50))
    mean = apply("mul", apply("divide", reduce("sum", x, 1), number(20.0)), scale)
    assert loads(planned(mean)) == [2]
    agrees(apply("mul", reduce("sum", x, 1), scale))


@pytest.mark.parametrize(
    ("shape", "axes", "parts"),
    [((300, 1000), (0, 1), True), ((300, 1000), (0,), False), ((100, 100), (0, 1), False), ((3, 70000), (1,), True)],
)
def test_reductions_to_few_numbers_are_divided(shape: tuple[int, ...], axes: tuple[int, ...], parts: bool) -> None:
    plan = planned(reduce("sum", given(data(*shape)), *axes))
    assert [PARTS in program.grid for program in plan.programs] == ([True, False] if parts else [False])
    for meaning in ("sum", "max", "min_nan"):
        agrees(reduce(meaning, given(data(*shape)), *axes))


def test_views_cost_nothing() -> None:
    x, y = given(data(12, 30)), given(data(30))
    total = apply("add", x, y)
    odd = View((6, 10), float32, source=total, dimensions=(Dimension(0, 11, -2), Dimension(1, 0, 3)))
    crossed = View((10, 6), float32, source=odd, dimensions=(Dimension(1), Dimension(0)))
    result = apply("mul", crossed, number(3.0))
    assert loads(planned(result)) == [2]
    assert planned(result).programs[0].grid == (1, 1, 1)
    agrees(result)


def test_reshaping_what_lies_in_order_costs_nothing_and_else_one_copy() -> None:
    x = given(data(12, 30))
    dense = apply("add", Reshape((360,), float32, source=x), number(1.0))
    assert loads(planned(dense)) == [1]
    crossed = spread(x, (30, 12), 1, 0)
    copied = apply("add", Reshape((360,), float32, source=crossed), number(1.0))
    assert loads(planned(copied)) == [1, 1]
    agrees(dense, copied)


def test_one_text_serves_all_shapes() -> None:
    def texts(n: int, m: int) -> list[str]:
        x, row = given(data(n, m)), given(data(m))
        return [p.text for p in planned(apply("add", x, row), reduce("sum", apply("mul", x, x), 1)).programs]

    assert texts(4000, 1000) == texts(5000, 3000)


def test_equal_structures_share_a_plan() -> None:
    native.run([apply("add", given(data(17)), number(1.0))])
    before = len(native._plans)  # pyright: ignore[reportPrivateUsage]
    native.run([apply("add", given(data(17) + 1), number(1.0))])
    assert len(native._plans) == before  # pyright: ignore[reportPrivateUsage]
    native.run([apply("add", given(data(17)[::-1]), number(1.0))])
    assert len(native._plans) == before + 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("meaning", "x", "y", "error", "message"),
    [
        ("floor_divide_checked", 7, 0, ZeroDivisionError, "integer division or remainder by zero"),
        ("truncate_remainder_checked", 7, 0, ZeroDivisionError, "integer division or remainder by zero"),
        (
            "truncate_divide_checked",
            -(2**31),
            -1,
            OverflowError,
            "the least integer divided by -1 has no result in its type",
        ),
        ("power_checked", 2, -1, ValueError, "integers to negative integer powers are not allowed"),
    ],
)
@pytest.mark.parametrize("place", [0, 63, 999])
def test_checked_meanings_raise_wherever_the_operand_is(
    meaning: str, x: int, y: int, error: type[Exception], message: str, place: int
) -> None:
    xs, ys = np.full(1000, 5, "int32"), np.full(1000, 2, "int32")
    node = apply(meaning, given(xs), given(ys))
    agrees(node)  # and the lanes beyond the array's end, which hold anything, do not count
    xs[place], ys[place] = x, y
    with pytest.raises(error) as caught:
        native.run([node])
    assert str(caught.value) == message


def test_checked_meanings_in_reductions_and_two_dimensions() -> None:
    x, y = np.full((37, 41), 6, "int32"), np.full((37, 41), 3, "int32")
    node = reduce("sum", apply("floor_divide_checked", given(x), given(y)), 1)
    agrees(node)
    y[36, 40] = 0
    with pytest.raises(ZeroDivisionError):
        native.run([node])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("meaning", ["argmax", "argmin"])
def test_the_first_of_equals_and_the_first_nan(meaning: str, axis: int) -> None:
    x = np.tile(np.array([3, 1, 3, 1, 2], "float32"), (700, 131))
    x[5, 600], x[600, 7], x[600, 600] = np.nan, np.nan, np.nan
    node = Reduce((x.shape[1 - axis],), dtypes.int64, source=given(x), meaning=meaning, axes=(axis,))
    np.testing.assert_array_equal(native.run([node])[0], getattr(np, meaning)(x, axis))


def test_narrow_floats_are_summed_in_float32_and_rounded_once() -> None:
    # 2048 + 1 + ... + 1: float16 alone would stay at 2048, whose neighbours are two apart.
    x = np.ones(100, "float16")
    x[0] = 2048
    assert native.run([reduce("sum", given(x), 0)])[0] == 2148  # 2147 lies between two float16 and rounds to even


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_products_of_matrices_with_batches_and_strides(dtype: str) -> None:
    a, b = data(3, 1, 70, 33, dtype=dtype), data(5, 90, 33, dtype=dtype)
    turned = View((5, 33, 90), dtypes.parse(dtype), source=given(b), dimensions=tuple(map(Dimension, (0, 2, 1))))
    product = Matmul((3, 5, 70, 90), dtypes.parse(dtype), lhs=given(a[..., ::-1]), rhs=turned)
    agrees(apply("add", product, number(1.0, dtypes.parse(dtype))))


def matmul(lhs: Node, rhs: Node) -> Matmul:
    return Matmul((*lhs.shape[:-1], rhs.shape[-1]), lhs.dtype, lhs=lhs, rhs=rhs)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_what_follows_a_product_joins_it(dtype: str) -> None:
    kind = dtypes.parse(dtype)
    product = matmul(given(data(70, 33, dtype=dtype)), given(data(33, 90, dtype=dtype)))
    bias, rest = given(data(90, dtype=dtype)), given(data(70, 90, dtype=dtype))
    shifted = apply("add", apply("mul", product, number(0.5, kind)), spread(bias, product.shape, 1))
    layer = apply("add", apply("maximum_nan", shifted, number(0.0, kind)), rest)
    other = Convert(product.shape, dtypes.int32, source=apply("mul", shifted, shifted))
    plan = planned(layer, other)
    assert [program.name for program in plan.programs] == ["matmul_add_maximum_nan_mul"]
    assert plan.programs[0].text.count("tl.store") == 2  # the product is not stored
    agrees(layer, other)
    agrees(layer, other, product)
    assert len(planned(layer, apply("neg", rest)).programs) == 2  # which has nothing to do with it


def test_what_follows_a_product_in_another_shape_reads_it() -> None:
    product = matmul(given(data(2, 20, 33)), given(data(33, 30)))
    scaled = apply("mul", product, number(0.5))
    turned = View((2, 30, 20), float32, source=scaled, dimensions=tuple(map(Dimension, (0, 2, 1))))
    every = View((2, 20, 30), float32, source=reduce("max_nan", scaled, 2), dimensions=(Dimension(0), Dimension(1)))
    assert len(planned(turned, apply("sub", scaled, every)).programs) == 3
    agrees(turned, apply("sub", scaled, every), scaled)
    row = matmul(given(data(1, 33)), given(data(33, 30)))
    agrees(apply("add", row, number(1.0)), apply("add", product, row))
    first, second = matmul(given(data(20, 33)), given(data(33, 30))), matmul(given(data(20, 30)), given(data(30, 30)))
    agrees(apply("add", apply("neg", first), apply("neg", second)), matmul(apply("neg", first), given(data(30, 4))))


def test_equal_expressions_are_computed_once() -> None:
    x, y = given(data(20, 30)), given(data(20, 30))

    def made() -> list[Node]:
        total = apply("add", x, View(x.shape, float32, source=y, dimensions=(Dimension(0, 19, -1), Dimension(1))))
        return [apply("exp", total), reduce("sum", total, 1), matmul(total, spread(total, (30, 20), 1, 0))]

    first, second = made(), made()
    one, two = planned(*first), planned(*first, *second)
    assert [p.text for p in one.programs] == [p.text for p in two.programs]
    for got, want in zip(native.run([*first, *second]), reference.run([*first, *second]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_numbers_are_not_taken_for_one_because_they_are_equal() -> None:
    x = given(data(20))
    for left, right in ((2.0, 2.0), (2.0, 3.0)):
        agrees(apply("mul", x, number(left)), apply("mul", x, number(right)))


def test_what_several_kernels_need_is_computed_once() -> None:
    x, y = given(data(70, 60)), given(data(70, 60))
    total = apply("exp", apply("add", x, y))
    plan = planned(reduce("max", total, 0), reduce("max", total, 1), reduce("sum", apply("neg", total), 0))
    assert [text.count('"exp"') for text in (program.text for program in plan.programs)] == [1, 0]
    assert loads(plan) == [2, 1]
    assert [program.text.count("tl.store") for program in plan.programs] == [3, 1]  # x + y is not stored
    agrees(reduce("max", total, 0), reduce("max", total, 1))
    cheap = apply("add", x, number(1.0))
    plan = planned(reduce("max", cheap, 0), reduce("max", cheap, 1))
    assert loads(plan) == [1, 1]  # a load costs as much
    assert [text.count("tl.store") for text in (program.text for program in plan.programs)] == [1, 1]
    agrees(cheap, reduce("max", cheap, 0), reduce("max", cheap, 1))
    long = apply("exp", given(data(300, 1000)))
    plan = planned(reduce("sum", long, 0, 1), reduce("max", long, 0, 1), long)
    assert sum(program.text.count('"exp"') for program in plan.programs) == 1


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = given(np.zeros(shape, "float32"))
    agrees(apply("add", x, number(1.0)), reduce("sum", x, len(shape) - 1))


def test_reductions_of_nothing_give_their_neutral_element() -> None:
    x = given(np.zeros((3, 0), "int32"))
    assert native.run([reduce("prod", x, 1)])[0].tolist() == [1, 1, 1]


def test_a_plan_refuses_other_arrays() -> None:
    x = Input((4,), float32, name="x")
    plan = backends.plan([apply("add", x, number(1.0))], [x], "native")
    np.testing.assert_array_equal(plan(data(8)[::2])[0], data(8)[::2] + 1)  # any strides
    with pytest.raises(ValueError) as caught:
        plan(data(5))
    assert str(caught.value) == "input 0: expected float32 of shape (4,), found float32 of shape (5,)"
    with pytest.raises(ValueError) as caught:
        native.plan([apply("add", x, number(1.0))], [])
    assert str(caught.value) == "the outputs need x, which is not among the inputs"


def test_inputs_of_no_whole_elements_are_copied() -> None:
    record = np.zeros(4, np.dtype([("a", "u1"), ("b", "<f4")]))
    record["b"] = data(4)
    agrees(apply("add", given(record["b"]), number(1.0)))
    agrees(apply("add", given(record["b"][::-2]), number(1.0)))


@pytest.mark.usefixtures("apart")
def test_memory_is_used_again_only_when_it_is_not_shared() -> None:
    n = memory.SMALLEST
    first = memory.empty((n,), np.dtype("u1"))
    first[:] = 1
    view = first[5:]
    address = first.ctypes.data
    del first
    gc.collect()
    other = memory.empty((n,), np.dtype("u1"))
    assert other.ctypes.data != address
    other[:] = 2
    assert view.min() == view.max() == 1
    del view
    gc.collect()
    assert memory.empty((n,), np.dtype("u1")).ctypes.data == address


def test_conversions_inside_a_kernel() -> None:
    x = given(np.array([-300.5, -1.5, 2.5, 300.7, np.nan], "float32"))
    rounded = Convert((5,), dtypes.uint8, source=x, meaning="convert_round")
    wrapped = Convert((5,), dtypes.uint8, source=x, meaning="convert_wrap")
    agrees(rounded, wrapped, Convert((5,), dtypes.uint8, source=x))
