"""Variance, logsumexp and scans, on both backends, against NumPy in float64 and the packages' types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft.array as wa
from weft import dtypes
from weft.semantics import PromotionError, get, ops

GOLDEN = Path(__file__).parents[1] / "golden" / "elementwise"
DRAW = np.random.default_rng(11)
X = DRAW.normal(3, 2, (5, 67)).astype(np.float32)
WHOLE = DRAW.integers(-3, 4, (5, 37)).astype(np.int16)


@pytest.fixture(params=["reference", pytest.param("native", marks=pytest.mark.jit)], autouse=True)
def _backend(request: pytest.FixtureRequest) -> Iterator[None]:
    with wa.use_backend(request.param):
        yield


def near(got: wa.Array, want: Any, rtol: float = 2e-6) -> None:
    np.testing.assert_allclose(got.numpy().astype(np.float64), want, rtol=rtol)


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_variance(axis: Any) -> None:
    wide = X.astype(np.float64)
    for system, ddof in (("numpy", 0), ("jax", 0), ("torch", 1)):
        a = wa.asarray(X, system)
        near(wa.var(a, axis), np.var(wide, axis, ddof=ddof))
        near(a.std(axis, keepdims=True), np.std(wide, axis, ddof=ddof, keepdims=True))
        near(wa.var(a, axis, ddof=2), np.var(wide, axis, ddof=2))
        near(wa.std(a, axis, correction=1), np.std(wide, axis, ddof=1))


def test_variance_far_from_zero_loses_nothing() -> None:
    """Two passes: the mean is taken off first. (sum of squares less square of sum would give 0 or less.)"""
    near(wa.var(wa.asarray(np.array([1e4, 1e4 + 1, 1e4 + 2], np.float32))), 2 / 3)


def test_variance_of_other_types() -> None:
    near(wa.var(wa.asarray(WHOLE), 1), np.var(WHOLE, 1), 1e-14)
    assert wa.var(wa.asarray(WHOLE)).dtype == dtypes.float64
    near(wa.var(wa.asarray(WHOLE, "dali"), 1), np.var(WHOLE, 1))
    half = X.astype(np.float16)
    near(wa.var(wa.asarray(half, "torch"), 1), np.var(half.astype(np.float64), 1, ddof=1), 1e-3)
    z = (X[:, :20] + 1j * X[:, 20:40]).astype(np.complex64)
    near(wa.var(wa.asarray(z), 1), np.var(z.astype(np.complex128), 1))
    assert np.isnan(wa.var(wa.asarray(np.ones(1, np.float32), "torch")).numpy())
    named: Any = np.var(wa.asarray(X), axis=0, ddof=1, keepdims=True)
    assert named.shape == (1, 67)


def test_logsumexp() -> None:
    for system in ("jax", "torch"):
        near(wa.logsumexp(wa.asarray(X * 100, system), 1), np.logaddexp.reduce(X.astype(np.float64) * 100, 1))
    edges = wa.asarray(np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1]], np.float32), "torch")
    assert str(edges.logsumexp(1).numpy().tolist()) == "[-inf, inf, nan]"


def test_scans() -> None:
    a = wa.asarray(WHOLE)
    for axis in (0, 1, None):
        assert np.array_equal(wa.cumprod(a, axis).numpy(), np.cumprod(WHOLE, axis))
    for axis in (0, 1):
        assert np.array_equal(a.cummax(axis).numpy(), np.maximum.accumulate(WHOLE, axis))
        assert np.array_equal(wa.cummin(a, axis).numpy(), np.minimum.accumulate(WHOLE, axis))
    x = X.copy()
    x[2, 5] = np.nan
    for system in ("numpy", "jax", "torch"):
        np.testing.assert_array_equal(wa.cummax(wa.asarray(x, system), 1).numpy(), np.maximum.accumulate(x, 1))
        np.testing.assert_array_equal(wa.cummin(wa.asarray(x, system), 0).numpy(), np.minimum.accumulate(x, 0))
    accumulated: Any = np.maximum.accumulate(wa.asarray(WHOLE))
    assert np.array_equal(accumulated.numpy(), np.maximum.accumulate(WHOLE))


def test_methods_are_functions() -> None:
    a = wa.asarray(np.array([1.26, -2.5, 0.5], np.float32))
    assert a.round().numpy().tolist() == [1, -2, 0]
    assert a.round(1).numpy().tolist() == np.round(np.array([1.26, -2.5, 0.5], np.float32), 1).tolist()
    assert a.clip(0, 1).numpy().tolist() == [1, 0, 0.5] == a.clamp(0, 1).numpy().tolist()
    assert a.to("int8").dtype == wa.astype(a, "int8").dtype
    assert a.real.numpy().tolist() == a.conj().numpy().tolist() == a.numpy().tolist()
    assert a.imag.numpy().tolist() == [0, 0, 0]


def test_refusals() -> None:
    a = wa.asarray(WHOLE, "torch")
    with pytest.raises(PromotionError) as error:
        wa.var(a)
    assert str(error.value) == "var takes floats and complex numbers, found int16; convert with .to(torch.float32)"
    with pytest.raises(TypeError) as both:
        wa.var(a, ddof=1, correction=1)
    assert str(both.value) == "'var' takes ddof or correction, found both"
    with pytest.raises(ValueError) as missing:
        wa.var(wa.asarray(X, "triton"))
    assert str(missing.value).startswith("unknown reduction 'var'; triton knows sum cumsum cumprod")
    with pytest.raises(PromotionError) as bools:
        wa.std(wa.asarray(np.ones(2, np.bool_), "dali"))
    assert str(bools.value) == "fn.reductions.std_dev does not take bool; cast it with fn.cast(x, dtype=types.UINT8)"


def recorded(package: str) -> Iterator[tuple[str, str, str]]:
    for line in (GOLDEN / f"{package}_reductions.txt").read_text().splitlines()[1:]:
        op, _, entries = line.partition(": ")
        for entry in entries.split():
            name, _, answer = entry.partition(">")
            yield op, name, name if answer == "=" else answer


@pytest.mark.parametrize(("package", "system"), [("numpy", "numpy"), ("jax", "jax@0.10"), ("torch", "torch")])
def test_types_are_those_of_the_package(package: str, system: str) -> None:
    wrong: list[str] = []
    for op, name, answer in recorded(package):
        try:
            found = get(system).result(op, name)
            mine = f"{found.dtype}{'*' * found.weak}"
        except (PromotionError, ValueError):
            mine = "!"
        # NumPy computes the variance of ml_dtypes' integers in those integers; weft refuses it.
        if mine != answer and not (package == "numpy" and op in ("var", "std") and name in ("int4", "uint4", "int2")):
            wrong.append(f"{op} of {name}: {answer}, weft says {mine}")
    assert not wrong
    assert {op for op, *_ in recorded(package)} <= {*ops.FAMILY_REDUCTIONS}
