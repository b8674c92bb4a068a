"""Functions made of others, beyond what the packages were asked (`test_array_arrangements`): sizes, traces, messages, names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import weft.array as wa
from weft.array.execution.called import called
from weft.array.execution.calls import FUNCTIONS
from weft.array.expression.nodes import Call, Input
from weft.dtypes import named
from weft.semantics import composed

CAT, MEANN, DET, TRACE = "cat", "meann", "det", "trace"
RANDOM = np.random.default_rng(7)


def test_many_values_are_searched(backend: str) -> None:
    """More than 64 values are sorted: the way that the recorded cases do not take."""
    x, values = RANDOM.integers(-500, 500, (7, 40)), RANDOM.integers(-500, 500, 300)
    found = wa.isin(wa.asarray(x), values)
    np.testing.assert_array_equal(found.numpy(), np.isin(x, values))
    assert not wa.isin(wa.asarray(x), values + 10_000).numpy().any()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 4)])
def test_triangles_and_diagonals_of_any_shape(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)[::-1]
    x.flags.writeable = False
    for k in range(-6, 7):
        np.testing.assert_array_equal(wa.tril(wa.asarray(x), k).numpy(), np.tril(x, k))
        np.testing.assert_array_equal(wa.triu(wa.asarray(x), k).numpy(), np.triu(x, k))
        np.testing.assert_array_equal(wa.diagonal(wa.asarray(x), k).numpy(), np.diagonal(x, k))
        np.testing.assert_array_equal(wa.diag(wa.asarray(x[:, 0]), k).numpy(), np.diag(x[:, 0], k)) if x.size else None


@pytest.mark.parametrize("name", ["sum", "prod", "max", "argmin", "all", "cumsum", "std"])
@pytest.mark.parametrize("count", [3, 1000])
def test_reductions_of_sums_of_nothing(name: str, count: int, backend: str) -> None:
    """A sum along an axis of no elements is a constant of the other axes' shape."""
    x = np.zeros((0, count), np.float32)
    expected = getattr(x.sum(0), name)(0)
    np.testing.assert_array_equal(getattr(wa.asarray(x).sum(0), name)(0).numpy(), expected)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (-1, -2), [-1, 0]], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_matrices_whose_axes_are_named(
    shape: tuple[int, ...], axis: Any, keepdims: bool, backend: str
) -> None:
    """The first axis is that of the rows. The greatest of no sums is 0, which older versions of NumPy refuse; the least of none
    is an error."""
    x = np.random.default_rng(0).integers(-50, 50, shape).astype(np.float64)
    for order in (1, -1, np.inf, -np.inf, "fro"):
        try:
            if order in (1, np.inf):
                summed, other = axis if order == 1 else axis[::-1]
                expected = np.abs(x).sum(summed, keepdims=True).max(other, keepdims=True, initial=0)
                expected = expected if keepdims else np.squeeze(expected, tuple(axis))
            else:
                expected = np.linalg.norm(x, order, tuple(axis), keepdims)
        except ValueError:
            with pytest.raises(ValueError, match="over no elements has no value"):
                wa.linalg.norm(wa.asarray(x), order, axis, keepdims)
            continue
        found = wa.linalg.norm(wa.asarray(x), order, axis, keepdims).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert found.shape == np.shape(expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("bins", [1, 7, 10])
def test_intervals_between_the_extremes(dtype: str, bins: int, backend: str) -> None:
    """NumPy computes their ends and widths in the type of the elements, bit by bit."""
    for size in (1, 3, 300):
        x = (np.random.default_rng(size).standard_normal(size) * 20).astype(dtype)
        for density in (False, True):
            found = wa.histogram(wa.asarray(x), bins, density=density)
            for mine, expected in zip(found, np.histogram(x, bins, density=density), strict=True):
                np.testing.assert_array_equal(mine.numpy(), expected)
                assert mine.numpy().dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_steps_between_floats(dtype: str) -> None:
    """Calls beside their definitions: each step from special values, and powers of two that round, overflow and vanish."""
    special = [0.0, -0.0, 1.0, -1.0, 65504.0, 6e-8, -6e-8, 1e-40, 1e300, np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore"):
        x = np.array(special).astype(dtype)
    powers = np.array([-1100, -150, -30, -11, -1, 0, 1, 20, 130, 1100])
    for name, y in (("nextafter", x), ("ldexp", powers)):
        nodes = tuple(Input(a.shape, named(a.dtype.name), array=a) for a in np.meshgrid(x, y, indexing="ij"))
        sides = [np.ascontiguousarray(a) for a in np.meshgrid(x, y, indexing="ij")]
        node = Call(sides[0].shape, named(dtype), meaning=name, arguments=nodes)
        out = np.empty(node.shape, dtype)
        FUNCTIONS[name](out, *sides)
        with np.errstate(all="ignore"):
            expected = called(node, sides)
        np.testing.assert_array_equal(out, expected, err_msg=name)
        signed = (out != 0) & ~np.isnan(out)
        np.testing.assert_array_equal(np.signbit(out[signed]), np.signbit(expected[signed]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_divisors_of_the_greatest_and_least_integers(dtype: str, backend: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, 6, info.max, info.max - 1, info.min, info.min + 1], dtype)
    a, b = np.meshgrid(x, x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wa.gcd(wa.asarray(a), b).numpy(), np.gcd(a, b))
        small = (np.abs(a.astype(float)) < 100) | (dtype in ("int8", "uint8"))
        np.testing.assert_array_equal(wa.lcm(wa.asarray(a[small]), b[small]).numpy(), np.lcm(a[small], b[small]))


def test_distinct_elements_with_their_places(backend: str) -> None:
    x = RANDOM.integers(0, 9, (6, 5)).astype(np.float32)
    x[x == 4] = np.nan
    found: Any = wa.unique(wa.asarray(x), True, True, True)
    for mine, expected in zip(found, np.unique(x, True, True, True), strict=True):
        np.testing.assert_array_equal(mine.numpy(), expected)
    each: Any = wa.unique(wa.asarray(x, "torch"))
    nans = np.isnan(x)
    assert each.shape == (np.unique(x[~nans]).size + nans.sum(),)  # PyTorch's NaNs differ from each other


def test_lengths_that_depend_on_values_are_refused_in_traces() -> None:
    for function in (wa.unique, wa.bincount, wa.argwhere):
        with pytest.raises(wa.TracedValue):
            wa.fuse(semantics="numpy")(function)(np.array([1, 2, 3]))
    traced = wa.fuse(semantics="jax")(partial(wa.bincount, length=4))
    assert traced(np.array([1, 3, 1])).tolist() == [0, 2, 0, 1]


def test_python_and_numpy_ask_the_array() -> None:
    x = wa.asarray(np.array([7, -7], np.int8))
    assert [part.tolist() for part in divmod(x, 2)] == [[3, -4], [1, 1]]
    assert [part.tolist() for part in divmod(50, x)] == [[7, -8], [1, -6]]
    assert [part.tolist() for part in np.divmod(x, 2)] == [[3, -4], [1, 1]]
    assert np.median(x).dtype.name == "float64"
    assert np.gcd(x, 14).tolist() == [7, 7]
    assert np.isclose(x, 7.0).tolist() == [True, False]
    assert [a.tolist() for a in np.meshgrid(x, x[:1])] == [[[7, -7]], [[7, 7]]]


MESSAGES: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda x: wa.xlogy(x, x), "numpy", "numpy has no 'xlogy'; write where(x == 0, 0, x * log(y))"),
    (lambda x: wa.nanvar(x), "torch", "torch has no 'nanvar'; numpy, jax have it"),
    (lambda x: wa.median(x), "dali@2", "dali@2 has no 'median'; numpy, torch, jax have it"),
    (lambda x: wa.gcd(x, x), "numpy", "numpy's 'gcd' does not take float32; convert it first"),
    (lambda x: wa.gcd(x > 0, x > 1), "numpy", "'gcd' takes integers, found bools; convert one of them"),
    (lambda x: wa.deg2rad(x + 1j), "numpy", "numpy's 'deg2rad' does not take complex64; convert it first"),
    (lambda x: wa.nextafter(x, 0.0), "torch", "torch.nextafter takes tensors, found 0.0; make it one with asarray"),
    (lambda x: wa.isclose(x, "a"), "jax", "'isclose' takes arrays and numbers, found str"),
    (lambda x: wa.ldexp(x, x), "jax", "jax's 'ldexp' takes no float32 exponents; convert them to int32"),
    (lambda x: wa.quantile(x, 2), "numpy", "'quantile' takes numbers from 0 to 1 (a percentile to 100), found 2"),
    (lambda x: wa.quantile(x, [0.5]), "jax", "jax's quantile takes a number or an array, found list"),
    (lambda x: wa.quantile(x, x[None]), "jax", "jax's quantile takes points of one dimension, found 2"),
    (lambda x: wa.quantile(x, (x > 0)), "jax", "jax's 'quantile' takes floats for points, found bool; convert them to float32"),
    (
        lambda x: wa.quantile(x, x.to("float64")),
        "torch",
        "torch.quantile takes points of the elements' type, found float64; convert with .to()",
    ),
    (lambda x: wa.nonzero(x[0]), "numpy", "'nonzero' takes arrays with dimensions, found none; write atleast_1d(x)"),
    (lambda x: wa.take(x[:0], np.array([0])), "jax", "no index is in bounds for axis 0 with size 0"),
    (lambda x: wa.digitize(x, x[0]), "jax", "'digitize' takes bins of one dimension"),
    (lambda x: wa.digitize(x, np.array([1, 2, 1])), "numpy", "'digitize' takes bins that increase or decrease throughout"),
    (lambda x: wa.digitize(x, x), "torch", "torch has no 'digitize'; use searchsorted"),
    (lambda x: wa.histogram(x, 0), "numpy", "'histogram' takes a positive number of bins, found 0"),
    (lambda x: wa.histogram(x, 2.5), "jax", "'histogram' takes a whole number of bins or an array of their ends, found 2.5"),
    (lambda x: wa.histogram(x, [1.0, 2.0]), "torch", "torch's histogram takes no list of bins; make an array of it"),
    (lambda x: wa.histogram(x, x[None]), "numpy", "'histogram' takes ends of one dimension, found 2"),
    (lambda x: wa.histogram(x, x[::-1]), "numpy", "'histogram' takes ends of bins that increase"),
    (lambda x: wa.histogram(x, x.to("float64")), "torch", "torch.histogram takes ends of the elements' type; convert with .to()"),
    (lambda x: wa.histogram(x, 2, weights=x[:1]), "jax", "'histogram' takes a weight for each of 2 elements, found 1"),
    (
        lambda x: wa.histogram(x, 2, weights=x.to("float64")),
        "torch",
        "torch.histogram takes weights of the elements' type; convert with .to()",
    ),
    (lambda x: wa.histogram(x, 2, (3, 1)), "torch", "'histogram' takes a range from less to more, found 3 to 1"),
    (lambda x: wa.histogram(x / 0, 2), "numpy", "'histogram' takes a range of finite numbers, found inf to inf"),
    (lambda x: wa.interp(x, x, x), "torch", "torch has no 'interp'; find places with searchsorted"),
    (lambda x: wa.interp(x, x, x[:1]), "numpy", "'interp' takes points of one dimension and one size, found (2,) and (1,)"),
    (lambda x: wa.interp(x, x[:0], x[:0]), "jax", "'interp' takes one point or more, found none"),
    (lambda x: wa.interp(x, x, x, period=0), "jax", "'interp' takes a period that is not 0"),
    (lambda x: wa.interp(x + 1j, x, x), "numpy", "numpy's 'interp' takes complex numbers for fp alone; pass the real parts"),
    (lambda x: wa.interp(*[x.to("bfloat16")] * 3), "jax", "jax's 'interp' does not take bfloat16; convert to float32"),
    (
        lambda x: wa.linalg.norm(x > 1),
        "torch",
        "torch.linalg.norm takes floats and complex numbers, found bool; convert it first",
    ),
    (lambda x: wa.linalg.norm(x, "fro"), "numpy", "'linalg.norm' of vectors takes numbers for ord, found 'fro'"),
    (lambda x: wa.linalg.norm(x[None, None], 1), "numpy", "'linalg.norm' takes one axis of vectors or two of matrices, found 3"),
    (lambda x: wa.linalg.norm(x[None], 3), "jax", "'linalg.norm' of matrices takes fro, 1, -1, inf and -inf for ord, found 3"),
    (
        lambda x: wa.linalg.norm(x[None], 2),
        "jax",
        "weft computes no singular values (ord 2); take numpy.linalg.norm(array.numpy(), 2)",
    ),
    (lambda x: wa.linalg.matrix_power(x, 2), "jax", "'linalg.matrix_power' takes square matrices, found shape (2,)"),
    (
        lambda x: wa.linalg.matrix_power(x[:1, None], -2),
        "torch",
        "weft inverts no matrices (power -2); take numpy.linalg.inv(array.numpy()) and its power",
    ),
    (
        lambda x: getattr(wa.linalg, DET)(x),
        "jax",
        "weft.array.linalg has no 'det'; take numpy.linalg.det(array.numpy()) and asarray the outcome",
    ),
    (lambda x: getattr(wa.linalg, TRACE)(x), "jax", "weft.array.linalg has no 'trace'; write weft.array.trace"),
    (lambda x: wa.median(x[:0]), "jax", "'median' over no elements has no value; the shape is (0,)"),
    (lambda x: wa.diff(x, -1), "jax", "'diff' is taken a number of times that is not negative, found -1"),
    (lambda x: wa.trace(x), "numpy", "'diagonal' takes arrays of two dimensions or more, found 1"),
    (lambda x: wa.tril(x), "jax", "'tril' takes arrays of two dimensions or more, found 1"),
    (lambda x: wa.searchsorted(x, x, "no"), "numpy", "'searchsorted' has the sides left and right, found 'no'"),
    (lambda x: wa.searchsorted(x[None], x), "jax", "'searchsorted' takes an array of one dimension that is in order"),
    (lambda x: wa.nanargmax(x * float("nan")), "numpy", "All-NaN slice encountered"),
    (lambda x: wa.meshgrid(x, indexing="no"), "torch", "'meshgrid' has the indexing xy and ij, found 'no'"),
    (lambda x: wa.cross(x[:1], x), "numpy", "'cross' takes vectors of three elements, found shapes (1,) and (2,)"),
    (lambda x: wa.array_split(x, 0), "numpy", "'array_split' takes a number of pieces above 0, found 0"),
    (lambda x: wa.rot90(x), "jax", "'rot90' takes arrays of two dimensions or more, found 1"),
    (lambda x: getattr(wa, CAT)([x]), "jax", "weft.array has no 'cat'; write concatenate"),
    (lambda x: getattr(wa, MEANN)(x), "jax", "weft.array has no 'meann'; did you mean 'mean'?"),
    (lambda x: x.unsqueeze(0), "torch", "weft's arrays have no 'unsqueeze'; write expand_dims(axis)"),
    (lambda x: x.median(), "torch", "weft's arrays have no 'median'; write weft.array.median(array)"),
    (
        lambda x: x.add_(1),
        "torch",
        "weft's arrays have no 'add_'; arrays are never written to; keep the result of the function without the underscore",
    ),
    (lambda x: x.meam(), "numpy", "weft's arrays have no 'meam'; did you mean 'mean'?"),
    (lambda x: x.chunk(), "numpy", "weft's arrays have no 'chunk'; compute it with NumPy on array.numpy()"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "system", "message"), MESSAGES)
def test_messages(function: Any, system: str, message: str) -> None:
    x: Any = wa.asarray(np.array([1.0, 2.0], np.float32), system)
    with pytest.raises((TypeError, ValueError, AttributeError, IndexError)) as error:
        function(x)
    assert str(error.value) == message


def test_functions_of_every_name_exist() -> None:
    assert all(callable(attrgetter(name)(wa)) for name in composed.HAS)
    assert {name.partition(".")[0] for name in composed.HAS} <= {*wa.__all__}
    assert {op for op, _ in composed.REFUSED} <= {*composed.HAS}


def test_operators_have_names() -> None:
    x = wa.asarray(np.array([1, 2, 6], np.int8))
    names = "equal not_equal less less_equal greater greater_equal bitwise_and bitwise_or bitwise_xor left_shift"
    for name in (*names.split(), "right_shift"):
        found, expected = getattr(wa, name)(x, 2), getattr(np, name)(np.array([1, 2, 6], np.int8), 2)
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()
    assert wa.bitwise_not(x).tolist() == [-2, -3, -7]


@pytest.mark.parametrize("system", ["numpy", "torch", "jax"])
def test_extremes_over_nothing_are_refused_where_nothing_is_left_too(system: str) -> None:
    """In each package an axis without elements has no extreme, also where the result would be empty."""
    empty, rows = (wa.asarray(np.zeros(shape, np.float32), system) for shape in ((0, 0), (0, 3)))
    for op in ("max", "argmin"):
        with pytest.raises(ValueError) as error:
            empty.reduce(op, 1)
        assert str(error.value) == f"'{op}' over no elements has no value; axes (1,) of shape (0, 0) are empty"
        assert rows.reduce(op, 1).shape == (0,)
    assert wa.median(rows, 1).shape == (0,)
    assert empty.sum(1).shape == (0,)


def test_infinities_have_no_variance(backend: str) -> None:
    """Their distance from the mean is NaN, which is not one of the NaNs that are passed over."""
    x = np.array([[1.0, np.nan, 3.0], [1.0, np.nan, np.inf], [np.nan, np.nan, np.nan]])
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(wa.nanvar(wa.asarray(x), 1).numpy(), np.nanvar(x, 1))
        np.testing.assert_array_equal(wa.nanstd(wa.asarray(x)).numpy(), np.nanstd(x))
    assert wa.gcd(wa.asarray(np.array([True, False])), 6).tolist() == [1, 6]


def test_medians_of_complex_numbers_pass_over_nan(backend: str) -> None:
    x = np.array([[2 + 1j, np.nan, 1 + 1j, 1 - 1j], [np.nan, 3j, np.nan, np.nan]])
    np.testing.assert_allclose(wa.nanmedian(wa.asarray(x), 1).numpy(), np.nanmedian(x, 1))


def test_an_axis_without_elements_has_no_index(backend: str) -> None:
    """Also where the result is empty, so that nothing is computed."""
    x = wa.asarray(np.zeros((0, 3, 0)))
    for key in ((np.array([0, -1]),), (slice(None), np.array([0]), np.array([0]))):
        with pytest.raises(IndexError, match="^no index is in bounds for axis [01] with size 0$"):
            x[key]
    assert x[np.array([], np.int64)].shape == (0, 3, 0)


@pytest.mark.parametrize("system", ["numpy", "torch", "jax"])
def test_nothing_finite_is_close_to_an_infinity(system: str) -> None:
    """Though the tolerance is infinite beside it."""
    x, y = (
        wa.asarray(np.array(values, np.float32), system) for values in ([1, np.inf, np.inf], [np.inf, np.inf, -np.inf])
    )
    assert wa.isclose(x, y).tolist() == [False, True, False]
