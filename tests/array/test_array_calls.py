"""The functions of whole arrays: NumPy's copies (native) beside the definitions (reference), inside larger expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft.array as wa
from sampling import every
from weft import dtypes, semantics
from weft.array import Array, asarray, compute, fuse, use_backend
from weft.array.execution import backends
from weft.array.expression.support import COMPUTED, NARROW

pytestmark = pytest.mark.jit
RNG = np.random.default_rng(7)


def random(dtype: dtypes.DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Any bits: NaN, infinities, zeros of both signs, the ends of integers; of bool and complex, small numbers. A type below 8
    bits has its bits lowest in the byte, the others 0."""
    if dtype.is_bool or dtype.is_complex:
        return RNG.integers(-2, 3, (2, *shape)).T.astype(np.int64).dot([1, 1j]).real.T.astype(dtype.numpy)
    bits = RNG.integers(0, 1 << min(dtype.bits, 8), (*shape, dtype.itemsize)).astype(np.uint8)
    values = bits.view(dtype.numpy)[..., 0].copy()
    values.flat[: values.size // 4] = np.zeros((), dtype.numpy)
    if dtype.is_float:
        values.flat[1 : values.size // 4 : 2] = np.array(-0.0).astype(dtype.numpy)
    return values


def _reference(*arrays: Array) -> list[np.ndarray[Any, Any]]:
    return backends.run([a.node for a in arrays], "reference")


@pytest.mark.parametrize("dtype", every(3, COMPUTED), ids=str)
def test_every_type_is_moved_and_ordered(dtype: dtypes.DType) -> None:
    x = asarray(random(dtype, (5, 6)), "jax" if dtype in semantics.get("jax").dtypes else "numpy")
    index = np.array([3, 0, 4, 4])
    made = [
        wa.concatenate([x[1:, ::2], x.T[::-1, :3][:4, :]], axis=1),
        x[index, :, None][:, ::-1],
        x[:, index],
        wa.sort(x, axis=0),
        wa.argsort(x.T),
        wa.pad(x, ((1, 0), (2, 3))),
        wa.take_along_axis(x, np.array([[5], [0], [1], [1], [2]])),
        wa.roll(x, (1, 2), (0, 1)),
        wa.repeat(x[0], 3),
    ]
    expected = _reference(*made)  # before the native run makes data of the arrays
    for array, reference in zip(made, expected, strict=True):
        native = compute(array, backend="native")[0]
        assert native.dtype == reference.dtype and native.shape == reference.shape
        if dtype.is_float8 and dtype in NARROW:  # kernels see float32, so that a NaN loses its own bits
            np.testing.assert_array_equal(native.astype(np.float32), reference.astype(np.float32))
        else:
            assert native.tobytes() == reference.tobytes(), (dtype, array)


@pytest.mark.parametrize("op", ["set", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", every(2, ["int8", "uint64", "float16", "float32", "bfloat16", "float64"]))
def test_updates(op: str, dtype: str) -> None:
    kind = dtypes.named(dtype)
    x, y = (asarray(RNG.integers(-5, 6, shape).astype(kind.numpy), "jax") for shape in ((4, 5, 3), (6, 2)))
    at = x.at[np.array([0, 1, 3, 9, 1, -1]), 1:, np.array([2, 0, 0, 1, 0, -7])]
    grown = getattr(at, op)(wa.concatenate([y, y], axis=1))
    window = getattr(x.at[::-2, 1:4:2], op)(wa.asarray(np.ones(3, kind.numpy), "jax"))
    reference = _reference(grown, window)
    for native, expected in zip(compute(grown, window, backend="native"), reference, strict=True):
        assert native.tobytes() == expected.tobytes()


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "float64"])
def test_sorts_keep_equal_zeros_in_order(dtype: str, descending: bool, zero: float) -> None:
    data = RNG.choice([1.0, 0.0, zero, -2.0, 3.0], (5, 40)).astype(dtype)
    if dtype != "int16":
        data[::2, 3] = np.nan
    x = wa.sort(asarray(data, "torch"), axis=1, descending=descending)
    (reference,) = _reference(x)
    assert x.numpy().tobytes() == reference.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sorts_keep_the_bits_of_nan(dtype: str) -> None:
    """In order where NaNs are equal, as they are in every system's order."""
    data = np.arange(70, 0, -1).astype(dtype)
    bits = data.view(f"uint{data.itemsize * 8}")
    nan = np.array(np.nan, dtype).view(bits.dtype)
    bits[5:9] = nan + np.arange(4, dtype=bits.dtype)
    x = wa.sort(asarray(data, "torch")).numpy()
    assert x.view(bits.dtype)[-4:].tolist() == [int(nan) + i for i in range(4)]
    np.testing.assert_array_equal(x[:-4], np.sort(data)[:-4])


def test_calls_stand_among_kernels(backend: str) -> None:
    a = np.arange(12, dtype="float32").reshape(3, 4)
    x = asarray(a, "numpy")
    y = wa.concatenate([x * 2, -x.T.reshape(3, 4)], axis=1)[:, ::3] + 1
    z = wa.sort(y - y.max(axis=1, keepdims=True), axis=1)[::-1] @ x[:, :1]
    b = np.concatenate([a * 2, -a.T.reshape(3, 4)], axis=1)[:, ::3] + 1
    np.testing.assert_array_equal(z.numpy(), np.sort(b - b.max(1, keepdims=True), 1)[::-1] @ a[:, :1])


def test_kernels_show_what_numpy_does() -> None:
    x = asarray(np.arange(4, dtype="int32"), "numpy")
    first, call = wa.kernels(wa.concatenate([x + 1, x[::2]]))
    assert "def fused_add(" in first
    assert call == "# NumPy: concatenate(int32[4], int32[2], axis=0) -> int32[6]\n"


def test_an_access_is_read_where_it_lies() -> None:
    data = np.arange(24, dtype="int16").reshape(2, 3, 4)
    x = asarray(data[:, ::-1, 1:], "numpy")
    np.testing.assert_array_equal(
        wa.concatenate([x, x[:1]], axis=0).numpy(), np.concatenate([data[:, ::-1, 1:]] * 2)[:3]
    )
    wide = wa.concatenate([asarray(np.float32(2), "numpy").broadcast_to(3), wa.zeros(2, "float32")])
    np.testing.assert_array_equal(wide.numpy(), [2, 2, 2, 0, 0])


def test_unaligned_data_are_copied_first() -> None:
    raw = np.zeros(41, "u1")[1:].view("<i4")
    raw[:] = np.arange(10)
    np.testing.assert_array_equal(wa.sort(asarray(raw[::-1], "numpy")).numpy(), np.arange(10))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_is_moved(shape: tuple[int, ...], backend: str) -> None:
    data = np.zeros(shape, "float32")
    x = asarray(data, "numpy")
    for made, expected in ((wa.sort(x), data), (wa.argsort(x), data), (wa.flip(x), data), (wa.ravel(x), data.ravel())):
        assert made.numpy().shape == expected.shape
    assert wa.concatenate([x, x]).numpy().shape == np.concatenate([data, data]).shape
    assert x[np.zeros(0, int)].numpy().shape == data[np.zeros(0, int)].shape
    assert wa.roll(x, 1).shape == shape


def test_numpy_functions_follow_the_system() -> None:
    x, y = (asarray(np.array([1, 2], d), "jax") for d in (np.int8, np.uint8))
    assert str(np.concatenate([x, y]).dtype) == "int16"
    assert np.take(x, np.array([0, 5])).tolist() == [1, -128]
    assert np.einsum("i,i->i", x, y).tolist() == [1, 4]
    assert np.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert np.pad(x, 1, mode="edge").tolist() == [1, 1, 2, 2]
    assert [part.tolist() for part in np.split(x, 2)] == [[1], [2]]


def test_traced_functions_hold_calls() -> None:
    @fuse(semantics="numpy")
    def shuffled(x: Array, order: Array) -> tuple[Array, Array]:
        return x[order] * 2, wa.sort(x)

    for seed in range(2):
        data = np.random.default_rng(seed).random((50, 3)).astype("float32")
        order = np.random.default_rng(seed).permutation(50)
        moved, ordered = shuffled(data, order)
        np.testing.assert_array_equal(moved.numpy(), data[order] * 2)
        np.testing.assert_array_equal(ordered.numpy(), np.sort(data))
    assert shuffled.signatures == 1


def test_a_traced_mask_has_no_count() -> None:
    def positive(x: Array) -> Array:
        return x[x > 0]

    with pytest.raises(wa.TracedValue, match="choose between values with weft.array.where"):
        fuse(positive, semantics="numpy")(np.arange(3))


def test_masks_and_nonzero_read_the_values(backend: str) -> None:
    data = RNG.integers(-3, 4, (4, 5))
    x = asarray(data, "numpy")
    np.testing.assert_array_equal(x[x > 0].numpy(), data[data > 0])
    np.testing.assert_array_equal(x[:, data[0] > 0, None].numpy(), data[:, data[0] > 0, None])
    for found, expected in zip(wa.nonzero(x), np.nonzero(data), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


def test_a_comparison_follows_calls() -> None:
    def ported(x: Array) -> Array:
        mixed = wa.concatenate([x, x.astype("uint8")])
        return mixed[np.array([0, -1])] + 1

    found = semantics.compare(ported, np.array([1, -2], np.int8), systems=("jax", "torch"))
    assert found.agree

    def outside(x: Array) -> Array:
        return wa.take(x, np.array([5]))

    found = semantics.compare(outside, np.arange(3), systems=("jax", "torch"))
    assert not found.agree and "out of bounds" in str(found)


def test_a_list_of_python_numbers() -> None:
    assert asarray(np.array([[1.5, 2]], "float16"), "numpy").tolist() == [[1.5, 2.0]]
    bf16 = dtypes.bfloat16.numpy
    assert asarray(np.array([0.5], bf16), "numpy").tolist() == [0.5]
    assert asarray(3, "numpy").tolist() == 3


def test_backends_are_chosen_for_calls() -> None:
    with use_backend("reference"):
        assert wa.sort(asarray(np.array([2, 1]), "numpy")).tolist() == [1, 2]


@pytest.mark.parametrize("system", ["numpy", "torch", "jax"])
def test_axes(system: str) -> None:
    data = np.arange(24).reshape(2, 3, 4)
    x = asarray(data, system)
    np.testing.assert_array_equal(wa.moveaxis(x, 0, -1).numpy(), np.moveaxis(data, 0, -1))
    np.testing.assert_array_equal(wa.moveaxis(x, (0, 2), (1, 0)).numpy(), np.moveaxis(data, (0, 2), (1, 0)))
    np.testing.assert_array_equal(wa.swapaxes(x, 0, 2).numpy(), np.swapaxes(data, 0, 2))
    assert x.flatten().shape == x.ravel().shape == (24,)
