"""Types that kernels do not have: every pair of numbers, kernels against the reference, both against ml_dtypes' arithmetic."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft.array as wa
from sampling import some
from weft import dtypes
from weft.array.expression.support import NARROW
from weft.dtypes import DType
from weft.semantics import PromotionError, get

pytestmark = pytest.mark.jit

BINARY = ("+", "-", "*", "/", "//", "%", "minimum", "maximum", "<", "==", "&", "|", "<<", ">>", "copysign", "fmax")
UNARY = ("neg", "abs", "sqrt", "square", "rint", "isnan", "~", "sign")
REFUSED = (PromotionError, ValueError, TypeError)


def every(dtype: DType) -> NDArray[Any]:
    """All numbers of a type."""
    if dtype.is_integer:
        return np.arange(dtype.min, dtype.max + 1).astype(dtype.numpy)
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)


def built(dtype: DType, system: str) -> dict[str, wa.Array]:
    """What the system computes of all pairs, of all numbers, and of rows of them."""
    values = every(dtype)
    x, y = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(values, values))
    a, b, c = (wa.asarray(side, system) for side in (x, y, values))
    asked: dict[str, Any] = {op: (lambda op=op: wa.apply(op, a, b)) for op in BINARY}
    asked |= {op: (lambda op=op: wa.apply(op, c)) for op in UNARY}
    asked |= {f"to {t}": (lambda t=t: c.astype(t)) for t in ("float32", "int8", *(d.name for d in NARROW))}
    rows = a.reshape(-1, len(values))
    asked |= {op: (lambda op=op: rows.reduce(op, 0)) for op in ("sum", "max", "prod", "argmax", "cumsum", "mean")}
    asked["where"] = lambda: wa.where(a > b, a, b)
    asked["literal"] = lambda: c * 2
    made: dict[str, wa.Array] = {}
    for name, make in asked.items():
        try:
            made[name] = make()
        except REFUSED:
            continue
    return made


@pytest.mark.parametrize("system", some(["numpy", "jax"], "jax"))
@pytest.mark.parametrize(
    "dtype", some(NARROW, *(d for d in NARROW if d.name not in ("int4", "float4_e2m1fn", "float8_e4m3fnuz"))), ids=str
)
def test_kernels_agree_with_the_reference(dtype: DType, system: str) -> None:
    if dtype not in get(system).dtypes:
        return
    made = built(dtype, system)
    if dtype == dtypes.float8_e8m0fnu:
        del made["mean"]  # whose sums overflow in float32, or do not, by the order of additions
    copies = [wa.Array(array.value, array.semantics) for array in made.values()]
    wanted = wa.compute(*copies, backend="reference")
    for name, got, want in zip(made, wa.compute(*made.values(), backend="native"), wanted, strict=True):
        assert got.dtype == want.dtype, name
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=3e-7, err_msg=name)
    assert len(made) > 12


ML_DTYPES = [dtypes.int4, dtypes.uint4, dtypes.float4_e2m1fn, dtypes.float6_e2m3fn, *(d for d in NARROW if d.is_float8)]


@pytest.mark.parametrize("dtype", ML_DTYPES, ids=str)
def test_arithmetic_is_ml_dtypes(dtype: DType) -> None:
    """NumPy's system on ml_dtypes' arrays: the package computes the same numbers."""
    x, y = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(every(dtype), every(dtype)))
    a, b = wa.asarray(x, "numpy"), wa.asarray(y, "numpy")
    made = (a + b, a - b, a * b)
    with np.errstate(all="ignore"):
        exact = (x + y, x - y, x * y)
    for got, want in zip(wa.compute(*made, backend="native"), exact, strict=True):
        assert got.dtype == want.dtype
        assert np.array_equal(got.astype(np.float32), want.astype(np.float32), equal_nan=True)


def test_conversions_round_once_and_saturate() -> None:
    source = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 7, 100, -1e9, -0.3, np.inf])
    for dtype in (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn):
        made = wa.asarray(source).astype(dtype)
        copy = wa.Array(made.value, made.semantics)
        want = source.astype(dtype).astype(np.float32)
        assert wa.compute(made, backend="native")[0].astype(np.float32).tolist() == want.tolist()
        assert wa.compute(copy, backend="reference")[0].astype(np.float32).tolist() == want.tolist()


def test_float64_is_rounded_once() -> None:
    """Just above the middle of 2 and 3, and just below that of 4 and 6. ml_dtypes rounds to float32 first, which gives 2."""
    near = wa.asarray(np.array([2.5 + 2.0**-40, 5 - 2.0**-40])).astype("float4_e2m1fn")
    copy = wa.Array(near.value, near.semantics)
    assert wa.compute(near, backend="native")[0].astype(np.float32).tolist() == [3, 4]
    assert wa.compute(copy, backend="reference")[0].astype(np.float32).tolist() == [3, 4]


def test_numbers_of_narrow_types_are_part_of_the_plan() -> None:
    """A plan for ``x + 1`` is not run for ``x + 2``; an int4 wraps."""
    x = wa.asarray(np.array([-8, 0, 7]).astype(ml_dtypes.int4), "jax")
    assert [(x + n).numpy().astype(np.int8).tolist() for n in (1, 2)] == [[-7, 1, -8], [-6, 2, -7]]
