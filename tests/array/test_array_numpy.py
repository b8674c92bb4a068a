"""Under NumPy's semantics an array is NumPy's: every operator, function, reduction and view, dtype and values alike."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft.array as wa
from sampling import grid
from weft import dtypes

TYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "and_",
        "or_",
        "xor",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
    )
}
UFUNCS = [
    *(np.sqrt, np.cbrt, np.exp, np.exp2, np.log, np.log2, np.log10, np.sin, np.cos, np.tan, np.tanh),
    *(np.floor, np.ceil, np.absolute, np.sign, np.square, np.negative, np.positive, np.invert, np.logical_not),
]
PAIRS = [np.minimum, np.maximum, np.arctan2, np.logaddexp, np.fmod, np.power]


def sample(dtype: str, seed: int, shape: tuple[int, ...] = (3, 5)) -> NDArray[Any]:
    """Small numbers, zeros and the ends of the range among them."""
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 2 if dtype == "bool" else 7, shape).astype(dtype)
    if np.dtype(dtype).kind in "if":
        array = np.where(rng.random(shape) < 0.5, array, -array).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        array.flat[0], array.flat[1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return array


def outcome(function: Callable[..., Any], *operands: Any) -> Any:
    """What NumPy gives, None where it refuses."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands))
    except (TypeError, ValueError):
        return None


def check(function: Callable[..., Any], *operands: NDArray[Any]) -> None:
    """`weft.array` gives what NumPy gives, refuses what it refuses; a float's last place may differ, as libraries of
    mathematics differ among machines."""
    expected = outcome(function, *operands)
    arrays = [wa.asarray(a, "numpy") for a in operands]
    if expected is None:
        with pytest.raises((TypeError, ValueError, ArithmeticError)):
            function(*arrays).numpy()
        return
    result = function(*arrays)
    assert isinstance(result, wa.Array)
    assert result.dtype == dtypes.named(expected.dtype.name)
    assert result.shape == expected.shape
    computed = result.numpy()
    if expected.dtype.kind == "f":
        np.testing.assert_array_max_ulp(computed, expected, 2)
    else:
        np.testing.assert_array_equal(computed, expected)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("left", TYPES)
def test_operators_of_two_arrays(name: str, left: str) -> None:
    with wa.use_backend("reference"):
        for right in TYPES:
            check(BINARY[name], sample(left, 1), sample(right, 2, (5,)))


@pytest.mark.parametrize("ufunc", [*UFUNCS, *PAIRS], ids=lambda u: u.__name__)
def test_numpys_functions(ufunc: np.ufunc) -> None:
    with wa.use_backend("reference"):
        for i, dtype in enumerate(TYPES):
            check(ufunc, *(sample(dtype, seed) for seed in range(i, i + ufunc.nin)))


@pytest.mark.parametrize("name", ["lshift", "rshift"])
def test_shifts(name: str) -> None:
    with wa.use_backend("reference"):
        for dtype in ("int8", "int32", "uint8", "uint64"):
            check(getattr(operator, name), sample(dtype, 3), np.arange(15, dtype=dtype).reshape(3, 5))


@pytest.mark.parametrize(("name", "dtype"), grid(5, ["sum", "prod", "max", "min", "any", "all", "mean"], TYPES))
def test_reductions(name: str, dtype: str, backend: str) -> None:
    array = sample(dtype, 4, (2, 3, 4))
    if name == "mean":  # the ends of the range would cancel, and what is left depends on the order
        array.flat[:2] = 1
    for axis in (None, 0, -1, (0, 2)):
        for keepdims in (False, True):
            with np.errstate(all="ignore"):
                expected = np.asarray(getattr(array, name)(axis=axis, keepdims=keepdims))
            result = getattr(wa.asarray(array, "numpy"), name)(axis, keepdims)
            assert (result.dtype, result.shape) == (dtypes.named(expected.dtype.name), expected.shape)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("axis", (None, 0, 1))
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum"])
def test_reductions_along_one_axis(name: str, axis: int | None, backend: str) -> None:
    array = sample("int16", 5, (4, 6))
    expected = np.asarray(getattr(array, name)(axis=axis))
    result = getattr(wa.asarray(array, "numpy"), name)(axis)
    assert (result.dtype, result.shape) == (dtypes.named(expected.dtype.name), expected.shape)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_extremes_give_nan_where_there_is_one(backend: str) -> None:
    array = np.array([[1.0, np.nan], [3.0, 2.0]], np.float32)
    a = wa.asarray(array, "numpy")
    np.testing.assert_array_equal(a.max(1).numpy(), np.array([np.nan, 3.0], np.float32))
    np.testing.assert_array_equal(a.min(0).numpy(), np.array([1.0, np.nan], np.float32))
    assert a.argmax(1).numpy().tolist() == [1, 0]


MATRICES = [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 1, 2, 3), (4, 3, 2)), ((2, 0), (0, 3))]


@pytest.mark.parametrize(("shapes", "dtype"), grid(2, MATRICES, ["int8", "uint32", "float32", "float64"]), ids=str)
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str, backend: str) -> None:
    left, right = shapes
    x, y = sample_small(dtype, left), sample_small(dtype, right)
    result = wa.asarray(x, "numpy") @ y
    expected = x @ y
    assert (result.dtype, result.shape) == (dtypes.named(dtype), np.shape(expected))
    np.testing.assert_array_equal(result.numpy(), expected)


def sample_small(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers whose products and sums are exact in every type, but wrap in int8."""
    return (np.arange(np.prod(shape)) % 11).reshape(shape).astype(dtype)


def views() -> dict[str, Callable[[Any], Any]]:
    """What NumPy's arrays and weft's spell alike."""
    return {
        "integer": lambda a: a[1],
        "negative integer": lambda a: a[-1, 0, -2],
        "slice": lambda a: a[:, 1:3],
        "negative step": lambda a: a[::-1, ::-2],
        "empty slice": lambda a: a[:, 3:1],
        "ellipsis": lambda a: a[..., 1],
        "newaxis": lambda a: a[None, :, None, 0],
        "chain": lambda a: a[::-1][:, 1:][..., ::2].T[1],
        "transpose": lambda a: a.transpose(2, 0, 1),
        "transpose of a tuple": lambda a: a.transpose((1, 0, 2)),
        "T": lambda a: a.T,
        "reshape": lambda a: a.reshape(3, -1),
        "reshape of a transpose": lambda a: a.T.reshape(4, 6),
        "squeeze": lambda a: a[:1].squeeze(0),
        "squeeze all": lambda a: a[:1, :, :1].squeeze(),
        "iteration": lambda a: list(a)[1],
    }


@pytest.mark.parametrize("name", views())
def test_views(name: str, backend: str) -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    expected = views()[name](array)
    result = views()[name](wa.asarray(array, "numpy"))
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result.numpy(), expected)
    np.testing.assert_array_equal((result + 1).numpy(), expected + 1)


def test_dimensions_added_and_repeated(backend: str) -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 1, 3)
    a = wa.asarray(array, "numpy")
    np.testing.assert_array_equal(a.expand_dims((0, -1)).numpy(), np.expand_dims(array, (0, -1)))
    np.testing.assert_array_equal(a.broadcast_to(5, 2, 4, 3).numpy(), np.broadcast_to(array, (5, 2, 4, 3)))
    np.testing.assert_array_equal((a * a[0]).numpy(), array * array[0])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_arrays_with_few_elements_or_none(shape: tuple[int, ...], backend: str) -> None:
    array = np.ones(shape, np.float32)
    a = wa.asarray(array, "numpy")
    functions: list[Callable[[Any], Any]] = [
        lambda x: x + x * 2,
        lambda x: x.sum(),
        lambda x: x.reshape(-1),
        lambda x: x[..., None] > 0,
    ]
    for function in functions:
        expected = np.asarray(function(array))
        result: Any = function(a)
        assert (result.shape, result.dtype.name) == (expected.shape, expected.dtype.name)
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("name", ["strided", "reversed", "transposed", "read-only", "fortran", "broadcast"])
def test_memory_of_any_kind(name: str, backend: str) -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = {
        "strided": base[::2, 1::3],
        "reversed": base[::-1, ::-1],
        "transposed": base.T,
        "read-only": base.copy(),
        "fortran": np.asfortranarray(base),
        "broadcast": np.broadcast_to(base[0], (3, 6)),
    }[name]
    if name == "read-only":
        array.flags.writeable = False
    result = wa.asarray(array, "numpy") * 2 + 1
    np.testing.assert_array_equal(result.numpy(), array * 2 + 1)
    np.testing.assert_array_equal(wa.asarray(array, "numpy").sum(0).numpy(), array.sum(0))


def test_literals_beyond_64_bits_decide_comparisons_alone() -> None:
    a = wa.asarray(np.array([0, 2**64 - 1], np.uint64), "numpy")
    assert (a < 2**64).numpy().tolist() == [True, True]
    assert (a > 2**70).numpy().tolist() == [False, False]
    assert (a == 2**64).numpy().tolist() == [False, False]
    assert (a != -(2**63) - 1).numpy().tolist() == [True, True]
    assert (a == 2**64 - 1).numpy().tolist() == [False, True]
