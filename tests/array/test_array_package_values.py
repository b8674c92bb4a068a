"""Values that the packages compute, where they are not what the operation's name says: on both backends of `weft.array`.

Every expected value was printed by the package itself: NumPy 2.4.6, ml_dtypes 0.6.0, JAX 0.10.2 (eager, on a CPU), PyTorch
2.13.0 on a CPU, DALI 2.4.0's CPU backend. `make oracles` asks the packages again.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft.array as wa
from weft.semantics import PromotionError, ops

NAN, INF = math.nan, math.inf
BACKENDS = ("reference", "native")
TINY = float(np.finfo(np.float32).tiny)
BF16 = ml_dtypes.bfloat16

Operand = tuple[Any, list[float] | float] | float | bool


def row(system: str, op: str, *operands: Operand, gives: list[float] | list[int] | list[bool]) -> Any:
    """A case, named by its system and operation."""
    return pytest.param(system, op, operands, gives, id=f"{system} {op}")


ROWS: list[Any] = []
f16, f32, f64, i32 = np.float16, np.float32, np.float64, np.int32

# Each step of `//` is rounded to a 16-bit type. JAX then rounds halves away from zero, PyTorch down.
ROWS.extend(
    [
        row(
            "jax", "//", (f16, [4664.0, 25.11, 0.707]), (f16, [2.5, -0.0251, 0.0007796]), gives=[1866.0, -1001.0, 907.0]
        ),
        row("jax@0.10", "//", (f16, [4664.0, 100.0]), 2.5, gives=[1866.0, 40.0]),
        row("jax", "//", (BF16, [2288.0, -22.0]), (BF16, [26.625, -0.201171875]), gives=[85.0, 109.0]),
        row(
            "torch",
            "//",
            (f16, [-258.75, 39.1875]),
            (f16, [0.1396484375, -0.01416778564453125]),
            gives=[-1854.0, -2768.0],
        ),
        row("torch", "//", (BF16, [2288.0, 136.0]), (BF16, [26.625, 0.427734375]), gives=[84.0, 318.0]),
        row("numpy", "//", (f16, [4664.0]), (f16, [2.5]), gives=[1865.0]),
    ]
)
# Zeros and their signs.
ROWS.extend(
    [
        row("jax", "//", (f32, [-0.0, 0.0, -0.0, 1.0]), (f32, [1.0, -1.0, 0.0, 0.0]), gives=[0.0, -0.0, NAN, INF]),
        row(
            "numpy",
            "%",
            (f32, [0.0, -0.0, 6.0, -6.0, 6.0]),
            (f32, [-1.0, 1.0, -3.0, 3.0, 3.0]),
            gives=[-0.0, 0.0, -0.0, 0.0, 0.0],
        ),
        row("numpy", "%", (BF16, [0.0, -0.0]), (BF16, [-1.0, 1.0]), gives=[-0.0, 0.0]),
        row("jax", "%", (f32, [0.0, -0.0, 6.0]), (f32, [-1.0, 1.0, -3.0]), gives=[0.0, -0.0, 0.0]),
        row("torch", "%", (f32, [0.0, -0.0, 6.0]), (f32, [-1.0, 1.0, -3.0]), gives=[0.0, -0.0, 0.0]),
        row("numpy", "sign", (f32, [-0.0, 0.0, NAN, -3.0]), gives=[0.0, 0.0, NAN, -1.0]),
        row("numpy", "sign", (BF16, [-0.0, NAN]), gives=[-0.0, NAN]),
        row("torch", "sign", (f64, [-0.0, NAN, 2.0, -3.0]), gives=[0.0, 0.0, 1.0, -1.0]),
        row("jax", "sign", (f32, [-0.0, NAN]), gives=[-0.0, NAN]),
        row("dali@2", "abs", (f32, [-0.0, -2.0, NAN]), gives=[-0.0, 2.0, NAN]),
    ]
)
# Integers.
LEAST = -(2**31)
ROWS.extend(
    [
        row("torch", "fmod", (i32, [LEAST, 7]), (i32, [-1, -2]), gives=[0, 1]),
        row("torch", "**", (i32, [1, 1, -1, -1, 2, 0]), (i32, [-1, -2, -1, -2, -1, -1]), gives=[1, 1, -1, 1, 0, 0]),
        row("torch", "**", True, (i32, [-1, 3]), gives=[1, 1]),
    ]
)
# PyTorch's scalars: unrounded beside 16-bit floats in products and quotients; a number divided is a reciprocal multiplied.
ROWS.extend(
    [
        row("torch", "*", (f16, [1.257, 3.777]), 0.1, gives=[0.125732421875, 0.377685546875]),
        row("torch", "//", (np.int64, 70001), (f16, 2.0), gives=[NAN]),
        row("torch", "/", (np.int64, 70001), (f16, 2.0), gives=[INF]),
        row("torch", "*", (np.int64, 70001), (f16, 0.5), gives=[INF]),
        row("torch", "*", (f16, 0.5), (np.int64, 70001), gives=[35008.0]),
        row("torch", "*", 70001, (f16, 0.5), gives=[35008.0]),
        row("torch", "/", 3.0, (f32, [49.0, 7.0]), gives=[0.06122449040412903, 0.4285714626312256]),
    ]
)
# DALI.
ROWS.extend(
    [
        row("dali@2", "%", (i32, [16777217, -16777217, 123456789]), 2.5, gives=[2.0, -2.0, 1.5]),
        row("dali@2", "<", (i32, [-7, -7, 7, -7]), (f32, [-8.0, -INF, 7.5, NAN]), gives=[True, True, True, True]),
        row("dali@2", "==", (i32, [-7, 1]), (f32, [-7.0, 1.0]), gives=[False, True]),
        row("dali@2", ">=", (f32, [-7.0, -8.0, 0.0]), (i32, [-7, -7, 0]), gives=[True, True, True]),
        row("dali@2", "<", (f32, [-8.0]), -7, gives=[False]),
        row("dali", "<", (i32, [-7, 7]), (f32, [-8.0, 7.5]), gives=[False, True]),
        row("dali@2", "rsqrt", (f32, [0.0, INF, 4.0, -1.0, 1e-40, -1e-40]), gives=[NAN, NAN, 0.5, NAN, -INF, -INF]),
        row("dali@2", "rsqrt", (f64, [0.0, INF, 4.0]), gives=[INF, 0.0, 0.5]),
    ]
)
ROWS.extend(
    [
        row(
            "torch", "heaviside", (f32, [NAN, 0.0, -1.0, 2.0]), (f32, [0.5, 0.5, 0.5, 0.5]), gives=[0.0, 0.5, 0.0, 1.0]
        ),
        row("numpy", "reciprocal", (np.uint64, [0, 1, 2]), gives=[0, 1, 0]),
        row("torch", "lgamma", (f64, [1.7e308, 1.0, -1.7e308]), gives=[INF, 0.0, INF]),
    ]
)
# XLA: a divisor that is repeated is inverted first; numbers below the normal range are zeros.
ROWS.extend(
    [
        row("jax@0.10", "/", (f32, [49.0, 5.0, 41.0]), 49.0, gives=[1.0, 0.10204081237316132, 0.8367346525192261]),
        row("jax@0.10", "+", (f32, [TINY / 2, -1.5 * TINY]), (f32, [0.0, TINY]), gives=[0.0, -0.0]),
        row("jax", "+", (f32, [TINY / 2, -1.5 * TINY]), (f32, [0.0, TINY]), gives=[TINY / 2, -TINY / 2]),
        row("jax@0.10", "==", (f32, [TINY / 2, TINY]), 0.0, gives=[True, False]),
        row("jax@0.10", "neg", (f32, [TINY / 2]), gives=[-TINY / 2]),
        row("jax@0.10", "%", (f32, [TINY / 2, -TINY / 2]), 1.0, gives=[TINY / 2, -TINY / 2]),
        row("jax@0.10", "fmod", (f32, [TINY / 2, 3.0, 3.0]), (f32, [1.0, TINY / 2, 2.0]), gives=[TINY / 2, NAN, 1.0]),
        row("jax@0.10", "%", (f32, [3.0]), (f32, [TINY / 2]), gives=[NAN]),
        row("jax@0.10", "*", (f16, [2.0**-14]), 0.5, gives=[2.0**-15]),
        row("jax@0.10", "*", (BF16, [TINY]), 0.5, gives=[0.0]),
        row("jax@0.10", "*", (f32, [NAN, -1.0, 2.0]), (np.bool_, [False, False, True]), gives=[0.0, 0.0, 2.0]),
        row("jax@0.10", "*", (np.bool_, [False]), (BF16, [-1.0]), gives=[-0.0]),
        row("jax@0.10", "*", (f32, [NAN, -1.0]), False, gives=[NAN, -0.0]),
        row("jax", "*", (f32, [NAN, -1.0, 2.0]), (np.bool_, [False, False, True]), gives=[NAN, -0.0, 2.0]),
        row("jax@0.10", "/", (np.bool_, [False, True]), -1, gives=[0.0, -1.0]),
        row("jax", "fmod", (np.bool_, [True, True]), (np.bool_, [False, True]), gives=[1, 0]),
        row("jax", "fmod", (i32, [5]), (np.bool_, [False]), gives=[0]),
    ]
)
# XLA's functions of numbers below the normal range; those that it computes of others, with a rounding after each.
E4, E5, T = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, TINY
ROWS.extend(
    [
        row("jax@0.10", "heaviside", (f32, [T / 2, -T / 2, T]), (f32, [0.25, T / 2, 0.25]), gives=[0.25, T / 2, 1.0]),
        row("jax@0.10", "fmax", (f32, [0.0, T / 2, T / 2]), (f32, [-T / 2, 0.0, T]), gives=[-T / 2, 0.0, T]),
        row("jax@0.10", "fmin", (f32, [0.0, -T / 2]), (f32, [T / 2, 0.0]), gives=[T / 2, 0.0]),
        row("jax@0.10", "fmin", (f32, [T / 2, -T / 2]), 49.0, gives=[0.0, -0.0]),
        row("jax@0.10", "fmin", 49.0, (f32, [T / 2, -T / 2]), gives=[T / 2, -T / 2]),
        row("jax@0.10", "fmin", (f32, [T / 2]), (np.int8, [2]), gives=[0.0]),
        row("jax@0.10", "fmin", (np.int8, [2]), (f32, [T / 2]), gives=[T / 2]),
        row("jax@0.10", "fmax", (f32, [T / 2]), (BF16, [-2.0]), gives=[T / 2]),
        row("jax@0.10", "fmin", (BF16, [T / 2, -T / 2]), (bool, [True, True]), gives=[T / 2, -T / 2]),
        row("jax@0.10", "fmin", (BF16, [T / 2, -T / 2]), (np.int8, [1, 1]), gives=[T / 2, -T / 2]),
        row("jax@0.10", "fmax", (np.int8, [0, 0]), (BF16, [T / 2, -T / 2]), gives=[T / 2, -T / 2]),
        row("jax@0.10", "/", (f32, [T / 2, -T / 2]), 0.1, gives=[0.0, -0.0]),
        row("jax@0.10", "/", (f32, [-T]), 3, gives=[-0.0]),
        row("jax@0.10", "/", (f64, [-1e-308]), -1, gives=[0.0]),
        row("jax@0.10", "**", (f32, [T / 2]), 1, gives=[T / 2]),
        row("jax@0.10", "**", (f32, [T / 2]), 1.0, gives=[0.0]),
        row("jax@0.10", "copysign", 1e-40, (f32, [-1.0]), gives=[-0.0]),
        row("jax-x32@0.10", "copysign", 1e-40, (f32, [-1.0]), gives=[-9.99994610111476e-41]),
        row("jax@0.10", "atan2", (f32, [1.0, T]), (f32, [3e38, 4.0]), gives=[0.0, 0.0]),
        row("jax@0.10", "not", (f32, [T / 2, T]), gives=[True, False]),
        row("jax@0.10", "not", (BF16, [T / 2, T]), gives=[False, False]),
        row("jax@0.10", "logical_and", (f32, [T / 2, T]), (f32, [1.0, 1.0]), gives=[False, True]),
        row("jax@0.10", "+", (f32, [T / 2, 1.0]), (f64, [1e-300, 0.0]), gives=[1e-300, 1.0]),
        row("jax@0.10", "reciprocal", (f32, [3e38, T / 2]), gives=[0.0, INF]),
        row("jax@0.10", "tanh", (f32, [T / 2]), gives=[T / 2]),
        row("jax@0.10", "tanh", (f64, [1e-308]), gives=[0.0]),
        row("jax@0.10", "log1p", (f32, [T / 2, -T / 2]), gives=[0.0, -0.0]),
        row("jax@0.10", "expm1", (f32, [T / 2]), gives=[T / 2]),
        row("jax@0.10", "lgamma", (f32, [T / 2, T]), gives=[INF, 87.3365478515625]),
        row("jax@0.10", "hypot", (f32, [T / 2, T]), (f32, [T / 2, 0.0]), gives=[0.0, T]),
        row(
            "jax@0.10", "**", (f32, [0.0, 0.0, -1.0, 2.0]), (f32, [T / 2, -T / 2, T / 2, T / 2]), gives=[0, INF, NAN, 1]
        ),
        row("jax@0.10", "**", (f32, [T / 2, T / 2, -T / 2]), (f32, [2.0, -1.0, 3.0]), gives=[0.0, INF, -0.0]),
        row("jax@0.10", "cbrt", (f32, [T / 2, -T / 4]), gives=[-5.595173541877215e-16, -5.595173541877215e-16]),
        row("jax@0.10", "cbrt", (f64, [1e-308, -1e-308]), gives=[0.0, -0.0]),
        row("jax@0.10", "asin", (f32, [1.9 * T, -1.9 * T, 2 * T]), gives=[0.0, -0.0, 2 * T]),
        row("jax", "asin", (f32, [1.9 * T]), gives=[float(f32(1.9 * T))]),
        row("jax@0.10", "exp2", (BF16, [100.5, 7.25]), gives=[1.5251421283995885e30, 148.0]),
        row("jax@0.10", "exp2", (f16, [10.5, -5.7]), gives=[1453.0, 0.01922607421875]),
        row("jax@0.10", "sigmoid", (E4, [-448.0, -6.0, 0.5]), gives=[NAN, 0.001953125, 0.625]),
        row("jax@0.10", "sigmoid", (E5, [-448.0, -6.0, 0.5]), gives=[0.0, 0.00244140625, 0.625]),
        row("jax@0.10", "logaddexp", (E4, [96.0, 448.0, 3.5]), (E4, [-448.0, -448.0, 2.0]), gives=[-352.0, 0.0, 3.75]),
        row("jax@0.10", "logaddexp", (E5, [-1.75, 0.5]), (E5, [0.0, 0.625]), gives=[0.1875, 1.25]),
        row("jax@0.10", "logaddexp2", (E4, [96.0, 448.0, 1.5]), (E4, [-448.0, -448.0, 2.25]), gives=[-352.0, 0.0, 3.0]),
        row("jax@0.10", "sum", (f32, [1.5 * T, -T]), gives=[0.0]),
        row("jax@0.10", "sum", (f32, [T / 2]), gives=[T / 2]),
        row("jax", "sum", (f32, [1.5 * T, -T]), gives=[T / 2]),
        row("jax@0.10", "mean", (f32, [T, -T / 2]), gives=[0.0]),
        row("jax@0.10", "max", (f32, [-T / 2, -T]), gives=[-0.0]),
        row("jax@0.10", "argmin", (f32, [T / 2, T / 4, T]), gives=[0]),
        row("jax@0.10", "cumsum", (f32, [T / 2, T, -T / 2]), gives=[0.0, T, T]),
        row("jax@0.10", "any", (f32, [T / 2, 0.0]), gives=[False]),
        row("jax@0.10", "any", (BF16, [T / 2, 0.0]), gives=[True]),
    ]
)
# Triton reads constants of bfloat16 from six decimals.
ROWS.extend(
    [
        row("triton@3.9", "*", (BF16, [1.0, -3.0]), 3e-7, gives=[0.0, -0.0]),
        row("triton@3.9", "minimum", (BF16, [1.0, -3.0]), 4e-7, gives=[0.0, -3.0]),
        row("triton@3.9", "*", (BF16, [1.0, -3.0]), 1e-5, gives=[1.0013580322265625e-05, -3.0040740966796875e-05]),
        row("triton@3.9", "/", (BF16, [1.0]), 3e-7, gives=[3333333.25]),
        row("triton@3.9", "*", (f16, [1.0]), 3e-7, gives=[2.980232238769531e-07]),
        row("triton", "*", (BF16, [1.0]), 3e-7, gives=[2.998858690261841e-07]),
    ]
)
# MAX's code for a CPU: `x < y` is `not x >= y`, quotients are rounded before they are rounded down, subnormal numbers are zeros.
MAX: str = "max@26"
ROWS.extend(
    [
        row(MAX, "<", (f32, [NAN, 1.0, 2.0, NAN]), (f32, [1.0, NAN, 3.0, NAN]), gives=[True, True, True, True]),
        row(MAX, "<=", (f32, [NAN, 1.0, 2.0, 3.0]), (f32, [1.0, NAN, 2.0, 2.0]), gives=[True, True, True, False]),
        row(MAX, "!=", (f16, [NAN, 1.0, 2.0]), (f16, [1.0, NAN, 1.0]), gives=[False, False, True]),
        row(MAX, ">", (f32, [NAN, 2.0]), (f32, [1.0, 1.0]), gives=[False, True]),
        row(MAX, "==", (f32, [T / 2, T]), (f32, [0.0, 0.0]), gives=[True, False]),
        row(MAX, "+", (f32, [T / 2, -1.5 * T]), (f32, [0.0, T]), gives=[0.0, -0.0]),
        row(MAX, "+", (f32, [T / 2]), (f64, [0.0]), gives=[0.0]),
        row(MAX, "neg", (f32, [T / 2]), gives=[-T / 2]),
        row(MAX, "floor", (f32, [-T / 2, -0.5]), gives=[-0.0, -1.0]),
        row(MAX, "minimum", (f32, [-T / 2, T / 2, NAN]), (f32, [-T / 2, 1.0, T / 2]), gives=[-0.0, 0.0, T / 2]),
        row(
            MAX,
            "%",
            (f32, [-12.0, 5.5, -7.0, 3e9]),
            (f32, [0.1, INF, 2.0, -0.3]),
            gives=[0.10000018030405045, NAN, 1.0, -119.50929260253906],
        ),
        row(MAX, "%", (f64, [2.0, -12.0]), (f64, [0.1, 0.1]), gives=[-1.1102230246251565e-16, 0.10000000000000067]),
        row(MAX, "%", (BF16, [2112.0, -2928.0]), (BF16, [49.0, 49.0]), gives=[0.0, 17.0]),
        row(MAX, "//", (f32, [INF, 49.0, -5.0]), (f32, [-120.0, 0.1, INF]), gives=[-INF, 490.0, -0.0]),
        row(MAX, "//", (f16, [49.0, 2.0]), (f16, [-0.0933, 0.1]), gives=[-525.0, 20.0]),
        row("max", "<", (f32, [NAN]), (f32, [1.0]), gives=[False]),
        row("max", "//", (f32, [INF]), (f32, [-120.0]), gives=[NAN]),
    ]
)


def read(system: str, operand: Operand) -> Any:
    """An operand of a row."""
    return wa.asarray(np.array(operand[1], operand[0]), system) if isinstance(operand, tuple) else operand


def same(found: Any, expected: list[Any]) -> bool:
    """Equal, zeros by their sign, NaN with NaN."""
    wide = np.asarray(found).astype(np.float64)
    want = np.array(expected, np.float64)
    numbers = (wide == want) & (np.signbit(wide) == np.signbit(want))
    return bool((numbers | (np.isnan(wide) & np.isnan(want))).all()) and wide.shape == want.shape


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("system", "op", "operands", "gives"), ROWS)
def test_what_the_packages_compute(
    system: str, op: str, operands: list[Operand], gives: list[Any], backend: str
) -> None:
    with np.errstate(all="ignore"):
        read_ = [read(system, operand) for operand in operands]
        expression = read_[0].reduce(op) if op in ops.REDUCTIONS else wa.apply(op, *read_)
        (found,) = wa.compute(expression, backend=backend)
    assert same(found.reshape(len(gives)), gives), found.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("source", "values", "target", "gives"),
    [
        (f32, [T / 2, T], f64, [0.0, T]),
        (BF16, [T / 2, T], f64, [0.0, T]),
        (f64, [T / 2, 1e-310, -T], f32, [0.0, 0.0, -T]),
        (f64, [T / 2, 1 + 2.0**-8 + 2.0**-40], BF16, [0.0, 1.0]),  # by way of float32, so rounded twice
        (f32, [T / 2, T], np.bool_, [False, True]),
        (BF16, [T / 2, 0.0], np.bool_, [True, False]),
        (f32, [T / 2], BF16, [T / 2]),
        (BF16, [T / 2], f32, [T / 2]),
    ],
)
@pytest.mark.parametrize("system", ["jax@0.10", "max@26"])
def test_xla_and_max_convert_without_subnormals(
    source: Any, values: list[float], target: Any, gives: list[float], system: str, backend: str
) -> None:
    if system == "max@26" and source is BF16 and target is np.bool_:
        gives = [False, False]
    array = wa.asarray(np.array(values, source), system)
    (found,) = wa.compute(array.astype(target), backend=backend)
    assert same(found, gives), found.tolist()
    if target is np.bool_ and system == "jax@0.10":
        (chosen,) = wa.compute(wa.where(array, 1, 2), backend=backend)
        assert chosen.tolist() == [1 if holds else 2 for holds in gives]


# NaN, infinities, and what lies beyond the type: NumPy's and PyTorch's loops give what x86's instructions do.
CASTS = [NAN, INF, -INF, 1e20, -1e20, 3e9, -3e9, 1.8e19, -1.5]
TO_UINT64 = [2**63, 0, 2**63, 0, 2**63, 3000000000, 2**64 - 3000000000, 18000000000000000000, 2**64 - 1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("system", ["numpy", "torch"])
def test_floats_out_of_range_to_uint64(system: str, backend: str) -> None:
    (found,) = wa.compute(wa.asarray(np.array(CASTS), system).astype("uint64"), backend=backend)
    assert found.tolist() == TO_UINT64


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [f32, f64])
def test_dali_rounds_and_saturates_but_for_nan(dtype: Any, backend: str) -> None:
    values = wa.asarray(np.array([NAN, INF, -INF, 1e20, -1e20, 300.7], dtype), "dali@2")
    (found,) = wa.compute(values.astype("uint64"), backend=backend)
    assert found.tolist() == [2**63, 2**64 - 1, 0, 2**64 - 1, 0, 301]


@pytest.mark.parametrize("backend", BACKENDS)
def test_torch_saturates_conversions_to_float8_e4m3fn(backend: str) -> None:
    x = wa.asarray(np.array([NAN, INF, -INF, 500.0, -449.0, 240.0], f32), "torch")
    (found,) = wa.compute(x.astype("float8_e4m3fn"), backend=backend)
    assert same(found, [NAN, 448.0, -448.0, 448.0, -448.0, 240.0])
    y = wa.asarray(np.array([448.0, -448.0, 2.0], ml_dtypes.float8_e4m3fn), "torch")
    (found,) = wa.compute(y * y, backend=backend)
    assert same(found, [448.0, 448.0, 4.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_jax_inverts_a_row_that_divides_a_matrix(backend: str) -> None:
    x = np.array([[5.0, 41.0], [49.0, 7.0]], f32)
    rows, full = np.array([49.0, 3.0], f32), np.array([[49.0, 3.0], [49.0, 3.0]], f32)
    for divisor, quotient in ((rows, x * (f32(1) / rows)), (full, x / full)):
        (found,) = wa.compute(wa.asarray(x, "jax@0.10") / wa.asarray(divisor, "jax@0.10"), backend=backend)
        assert found.tolist() == quotient.tolist()


def test_torch_takes_conditions_of_bools_only() -> None:
    x = wa.asarray(np.array([1, 2]), "torch")
    with pytest.raises(PromotionError) as refused:
        wa.where(wa.asarray(np.array([1, 0], np.int32), "torch"), x, x)
    assert str(refused.value) == (
        "where expected condition to be a boolean tensor, but got a tensor with dtype int32; convert it with .to(torch.bool)"
    )
    assert wa.where(wa.asarray(np.array([1, 0], np.uint8), "torch"), x, -x).numpy().tolist() == [1, -2]


@pytest.mark.parametrize("op", ["abs", "floor", "ceil", "real", "pos", "~", "not"])
def test_functions_of_a_weak_bool_are_weak(op: str) -> None:
    weak = wa.asarray(2, "jax") < 3
    assert weak.weak
    assert wa.apply(op, weak).weak


@pytest.mark.parametrize("backend", BACKENDS)
def test_reductions_and_products_of_float8_do_not_saturate(backend: str) -> None:
    """What is beyond float8_e4m3fn is NaN, as in ml_dtypes."""
    rows = np.array([[1.0, 300.0, 200.0]], ml_dtypes.float8_e4m3fn)
    x = wa.asarray(rows, "jax")
    for expression in (wa.asarray(rows, "numpy").prod(), x @ (x.T * 1)):
        (found,) = wa.compute(expression, backend=backend)
        assert found.dtype == rows.dtype
        assert np.isnan(found.astype(np.float32)).all()


def test_numpys_logical_functions_take_integers_of_64_bits() -> None:
    with pytest.raises(PromotionError) as refused:
        np.logical_and(wa.asarray(np.array([True]), "numpy"), 2**63)
    assert str(refused.value).startswith("Python integer 9223372036854775808 out of bounds for int64; ")


@pytest.mark.parametrize("backend", BACKENDS)
def test_torch_rounds_integers_to_16_bits_beside_a_scalar(backend: str) -> None:
    """PyTorch 2.13.0: 100000 is infinite in float16, the type of both, and infinity // x is NaN."""
    x = wa.asarray(np.array([100000, 7]), "torch")
    (found,) = wa.compute(x // wa.asarray(np.array(-2.5, f16), "torch"), backend=backend)
    assert same(found, [NAN, -3.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_numpys_clip_passes_over_bounds_outside_the_type(backend: str) -> None:
    """NumPy 2.4.6: ``np.clip`` drops an int that limits nothing, and refuses one on the other side."""
    x = wa.asarray(np.array([1, 200], np.uint8), "numpy")
    for low, high, gives in ((-5, 300, [1, 200]), (7, 300, [7, 200]), (-5, 100, [1, 100])):
        (found,) = wa.compute(wa.clip(x, low, high), backend=backend)
        assert (found.dtype, found.tolist()) == (np.uint8, gives)
    for low, high in ((300, 400), (-5, -3)):
        with pytest.raises(
            PromotionError, match=f"^Python integer {low if low > 0 else high} out of bounds for uint8; "
        ):
            wa.clip(x, low, high)
    (found,) = wa.compute(wa.clip(x, min=-5), wa.clip(x, max=300), backend=backend)[:1]
    assert found.tolist() == [1, 200]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("op", "gives"), [("sinh", 107321938149376.0), ("cosh", 107321938149376.0)])
def test_xla_takes_hyperbolic_functions_of_float32_by_a_sum_in_the_exponent(
    op: str, gives: float, backend: str
) -> None:
    """The exact value is 107321787154432 (rounded), 18 units less; two of them are the exponentials' own."""
    argument = np.array([33.0], np.float32)
    with wa.use_backend(backend):
        found = wa.apply(op, wa.asarray(argument, "jax@0.10")).numpy()
        exact = wa.apply(op, wa.asarray(argument, "jax")).numpy()
    unit = np.spacing(np.float32(gives))
    assert abs(found[0] - np.float32(gives)) <= 2 * unit
    assert abs(exact[0] - 107321787154432.0) <= 2 * unit


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [f16, BF16, f32, f64])
def test_nan_is_false_in_max(dtype: Any, backend: str) -> None:
    """`ops.cast` of NaN to bool, in the package."""
    array = wa.asarray(np.array([NAN, 0.0, -1.0, INF], dtype), "max@26")
    (found,) = wa.compute(array.astype(np.bool_), backend=backend)
    assert found.tolist() == [False, False, True, True]


@pytest.mark.parametrize("backend", BACKENDS)
def test_reductions_of_max(backend: str) -> None:
    """``ops.argmax`` and ``ops.argmin`` pass over NaN, and ``ops.mean`` of integers divides the sum that wrapped toward zero."""
    rows = [([NAN, 1, 3], 2, 1), ([1, NAN, 3], 2, 0), ([3, NAN, 1], 0, 2), ([NAN, NAN, NAN], 0, 0), ([NAN, 3, 1], 1, 2)]
    for x, most, least in rows:
        array = wa.asarray(np.array(x, f32), "max@26")
        found = wa.compute(array.reduce("argmax", 0), array.reduce("argmin", 0), backend=backend)
        assert [int(index) for index in found] == [most, least]
    for numbers, mean in (([-7, 0], -3), ([7, 0], 3), ([-1, 0], 0), ([-3, 0, 1], 0), ([100, 100], -28)):
        (found,) = wa.compute(wa.asarray(np.array(numbers, np.int8), "max@26").mean(0), backend=backend)
        assert found == mean


TWICE = (1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-4 + 2.0**-40, 1 + 2.0**-3 + 2.0**-40)
"""Just above a tie of bfloat16, float16, float8_e4m3fn, float8_e5m2: float32 loses what is above."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("system", "source", "value", "target", "gives"),
    [
        *((s, f64, TWICE[0], "bfloat16", 1.0) for s in ("numpy", "torch", "jax@0.10")),
        *((s, f64, TWICE[0], "bfloat16", 1.0078125) for s in ("jax", "triton")),
        *((s, np.int64, 2**24 + 2**16 + 1, "bfloat16", 2.0**24) for s in ("numpy", "torch", "jax@0.10")),
        ("jax", np.int64, 2**24 + 2**16 + 1, "bfloat16", 2.0**24 + 2**17),
        *(("numpy", f64, TWICE[1], "float16", 1.0009765625), ("torch", f64, TWICE[1], "float16", 1.0)),
        *((s, f64, TWICE[2], "float8_e4m3fn", 1.0) for s in ("numpy", "torch")),
        *((s, f64, TWICE[3], "float8_e5m2", 1.0) for s in ("numpy", "torch")),
        *((s, f64, TWICE[2], "float8_e4m3fn", 1.125) for s in ("jax", "jax@0.10")),
    ],
)
def test_conversions_by_way_of_float32(
    system: str, source: Any, value: float, target: str, gives: float, backend: str
) -> None:
    """What NumPy with ml_dtypes, PyTorch and JAX printed."""
    (found,) = wa.compute(wa.asarray(np.array([value], source), system).astype(target), backend=backend)
    assert float(found[0]) == gives
