"""Elementwise functions on arrays: kernels against the reference, and against NumPy where that is the system."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft.array as wa
from sampling import some
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import PromotionError, get, ops

_REAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, np.inf, -np.inf, 0.25, 3.75, -0.3, 100.0, 7.0)
EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-7, "float64": 1.2e-15}


def edges(dtype: DType) -> NDArray[Any]:
    """Sixteen numbers of a type at which functions differ."""
    if dtype.is_bool:
        return np.array([False, True] * 8)
    if dtype.is_integer:
        return np.array([0, 1, 2, 3, 5, 7, dtype.min, dtype.max] * 2, dtype.numpy)
    with np.errstate(all="ignore"):
        return np.array([*_REAL[:-1], np.nan]).astype(dtype.numpy)


def close(got: NDArray[Any], want: NDArray[Any]) -> NDArray[np.bool_]:
    """Equal, signs of zeros included, or both NaN, or within four units; the sign of NaN is open."""
    x, y = (side.astype(np.float64) for side in (got, want))
    with np.errstate(all="ignore"):
        equal = (x == y) & ((x != 0) | (np.signbit(x) == np.signbit(y)))
        return equal | (np.isnan(x) & np.isnan(y)) | (abs(x - y) <= 4 * EPSILON.get(want.dtype.name, 0.13) * abs(y))


def disagreement(system: str, cases: list[tuple[str, DType]]) -> list[str]:
    """Where kernels that compute all cases together and the reference differ."""
    made: list[tuple[str, DType, wa.Array]] = []
    for op, dtype in cases:
        data = edges(dtype)
        sides = (data,) if op in ops.FAMILY_UNARY else (data, np.roll(data, 5))
        try:
            made.append((op, dtype, wa.apply(op, *(wa.asarray(side, system) for side in sides))))
        except (PromotionError, ValueError):
            continue
    copies = [wa.Array(array.value, array.semantics) for *_, array in made]
    wanted = wa.compute(*copies, backend="reference")
    found: list[str] = []
    for (op, dtype, array), got, want in zip(made, wa.compute(*(a for *_, a in made)), wanted, strict=True):
        bad = ~close(got, want)
        if op == "logaddexp2":  # near 0, where NumPy's error is absolute too
            with np.errstate(all="ignore"):
                bad &= ~(abs(got - want) <= EPSILON.get(dtype.name, 0.13))
        if op == "signbit":
            bad &= ~np.isnan(edges(dtype).astype(np.float64))
        if bad.any() or not got.dtype == want.dtype == array.dtype.numpy:
            found.append(f"{op} of {dtype} {edges(dtype)[bad]}: {got[bad]}, the reference {want[bad]}")
    return found


@pytest.mark.jit
@pytest.mark.parametrize("system", ["numpy", "triton"])
@pytest.mark.parametrize(
    "dtype", some(dtypes.ALL, *(d for d in dtypes.ALL if d.name not in ("int32", "float16", "float32")))
)
def test_kernels_compute_what_the_reference_computes(system: str, dtype: DType) -> None:
    """All functions of one type in one expression. float64's lgamma is near a zero, where its error is absolute."""
    if dtype in get(system).dtypes:
        rough = {"lgamma"} if dtype == dtypes.float64 else set[str]()
        assert disagreement(system, [(op, dtype) for op in sorted(ops.FAMILY - rough)]) == []


@pytest.mark.jit
@pytest.mark.nightly
@pytest.mark.parametrize("system", ["torch", "jax@0.10", "dali", "max@26"])
@pytest.mark.parametrize("op", sorted(ops.FAMILY - {"lgamma"}))
def test_kernels_of_every_system(system: str, op: str) -> None:
    """All types of one function in one expression."""
    assert disagreement(system, [(op, dtype) for dtype in dtypes.ALL if dtype in get(system).dtypes]) == []


NUMPYS = (
    *(
        "isnan",
        "isinf",
        "isfinite",
        "signbit",
        "log1p",
        "expm1",
        "sinh",
        "cosh",
        "arcsin",
        "arccos",
        "arctan",
        "arcsinh",
    ),
    *("arccosh", "arctanh", "rint", "trunc", "reciprocal", "conjugate", "angle", "imag", "round", "logical_and"),
    *("logical_or", "logical_xor", "hypot", "copysign", "heaviside", "logaddexp2", "fmax", "fmin"),
)


@pytest.mark.parametrize("name", NUMPYS)
def test_numpys_functions_on_arrays(name: str) -> None:
    """`numpy.NAME` of arrays has NumPy's type and values."""
    for data in (
        np.array([1, 2, 0, 100], np.int8),
        np.array([0.5, 1.0, -0.25, 1.5], np.float32),
        np.array([1.5, -0.5]),
    ):
        sides = (data, np.roll(data, 1)) if ops.canonical(name) in ops.FAMILY_BINARY else (data,)
        with wa.use_backend("reference"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = getattr(np, name)(*sides)
            got = getattr(np, name)(*(wa.asarray(side, "numpy") for side in sides)).numpy()
        assert got.dtype == want.dtype, (name, data.dtype)
        assert close(got, want).all(), (name, data, got, want)


def test_logical_functions_ask_each_side_by_itself() -> None:
    x, y = (
        wa.asarray(np.array([256, 0, 3], np.int16), "torch"),
        wa.asarray(np.array([0.5, 0.5, 0.0], np.float32), "torch"),
    )
    with wa.use_backend("reference"):
        assert wa.logical_and(x, y).numpy().tolist() == [True, False, False]
        assert wa.logical_xor(x, y).numpy().tolist() == [False, True, True]
        assert wa.logical_or(wa.asarray(np.array([0, 1], np.int8), "numpy"), 300).numpy().tolist() == [True, True]


# ---- round and clip -------------------------------------------------------------------------------------------------

ROUNDED = [
    ("numpy", np.float32, 1, [0.25, 0.35, -1.05], [0.2, 0.4, -1.0]),
    ("numpy", np.float64, -1, [15.0, 25.0, -25.0], [20.0, 20.0, -20.0]),
    ("numpy", np.float16, 1, [12344.0, 0.25], [np.inf, 0.2]),
    ("numpy", np.int32, -1, [15, 25, -25, 7], [20, 20, -20, 10]),
    ("numpy", np.int8, 2, [15, -3], [15, -3]),
    ("jax", np.float16, 1, [12344.0, 0.25], [12344.0, 0.2]),
    ("torch", np.float16, 1, [12344.0, 0.25], [12344.0, 0.2]),
    ("torch", np.float16, -1, [65504.0], [65504.0]),
    ("jax", np.int32, 1, [15, 25], [15, 25]),
]
"""As the packages give them. NumPy scales float16 in float16, the others in float32."""


@pytest.mark.parametrize(("system", "dtype", "decimals", "data", "expected"), ROUNDED)
def test_round_to_decimals(system: str, dtype: Any, decimals: int, data: list[float], expected: list[float]) -> None:
    with wa.use_backend("reference"), np.errstate(all="ignore"):
        found = wa.round(wa.asarray(np.array(data, dtype), system), decimals)
        assert found.dtype.numpy == dtype
        assert found.numpy().tolist() == np.array(expected, dtype).tolist()


def test_round_refuses() -> None:
    with pytest.raises(PromotionError) as error:
        wa.round(wa.asarray(np.ones(2, np.float32), "triton"), 2)
    assert str(error.value) == "triton rounds to whole numbers, found decimals=2; write round(x * 100.0) / 100.0"
    with pytest.raises(PromotionError) as error:
        wa.round(wa.asarray(np.ones(2, np.int32), "torch"), 1)
    assert (
        str(error.value) == "round of int32 to 1 decimals is not implemented in torch; convert with .to(torch.float32)"
    )
    with pytest.raises(PromotionError) as error:
        wa.round(wa.asarray(np.ones(2, np.int32), "jax"), -1)
    assert (
        str(error.value) == "round of int32 to -1 decimals is not implemented in jax; convert with .astype(jnp.float32)"
    )
    with pytest.raises(PromotionError) as error:
        wa.round(wa.asarray(np.ones(2, np.bool_), "numpy"), 1)
    assert str(error.value) == "round to 1 decimals takes no bool; convert with .astype('float32') first"


def test_clip_by_one_bound_has_the_types_of_two() -> None:
    data = np.array([-3, 4, 100], np.int8)
    with wa.use_backend("reference"):
        for system, low, dtype in (("jax", 2.5, "float64"), ("torch", 2.5, "float32"), ("numpy", np.int16(5), "int16")):
            one = wa.clip(wa.asarray(data, system), low)
            both = wa.clip(wa.asarray(data, system), low, low)
            assert one.dtype == both.dtype == dtypes.named(dtype)
            assert one.numpy().tolist() == [max(float(low), v) for v in data.tolist()]
        assert wa.clip(wa.asarray(data, "torch"), max=5).numpy().tolist() == [-3, 4, 5]
        numpys: Any = np.clip(wa.asarray(data, "torch"), None, 5)
        assert numpys.numpy().tolist() == [-3, 4, 5]
        nan = wa.clip(wa.asarray(np.array([np.nan, 1.0]), "numpy"), 2.0).numpy()
        assert np.isnan(nan[0]) and nan[1] == 2.0
    with pytest.raises(PromotionError) as error:
        wa.clip(wa.asarray(data.astype(np.float32), "dali"), 1.0)
    assert str(error.value) == "dali clamps by two bounds; pass both"
    with pytest.raises(ValueError) as missing:
        wa.clip(wa.asarray(data, "numpy"))
    assert str(missing.value) == "clip takes a least or a greatest value, found neither; pass min= or max="


# ---- the page -------------------------------------------------------------------------------------------------------


def test_the_table_of_the_page() -> None:
    """docs/arrays.md: which system has which function."""
    page = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9_ ]+)` \| (.*) \|$", page, re.MULTILINE)
    said = {
        op: [cell.strip() == "yes" for cell in f"{cells} ".split("|")] for names, cells in rows for op in names.split()
    }
    for op in ops.FAMILY:
        assert said[op] == [_has(system, op) for system in ("numpy", "jax", "torch", "triton", "dali", "max")], op
        assert callable(getattr(wa, op))


def _has(system: str, op: str) -> bool:
    for dtype in ("float32", "bool", "complex64"):
        try:
            get(system).resolve(op, *[dtype] * ops.arity(op))
        except PromotionError:
            continue
        except ValueError as error:
            if "dtype" in str(error):
                continue
            return False
        return True
    return False
