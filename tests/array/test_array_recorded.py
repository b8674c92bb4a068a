"""Expressions as the real packages were given them, evaluated on `weft.array`: dtype, weakness and values must be theirs.

The texts (tests/golden) run in namespaces where ``np``, ``jnp``, ``T`` and ``i32`` make arrays of weft under the system's
package version. A row that is left out is in `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft.array as wa
from sampling import grid
from weft import dtypes, semantics

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = (
    *("array_values/numpy.csv", "array_values/torch.csv", "array_values/triton.csv"),
    *("dali_promotion/values.csv", "jax_promotion/values.csv", "max_promotion/values.csv"),
)
TYPES = [*(d.name for d in dtypes.ALL), "complex64", "complex128"]

LEFT_OUT: dict[str, tuple[str, ...]] = {
    "types that weft.array does not compute with": ("int4",),
    "questions about types alone, which the tests of the systems ask": ("result_type", "promote_types"),
    "functions that weft.array does not have": (
        "jax.lax",
        "jnp.concatenate",
        "jnp.stack",
        "rounding_mode",
        "zeros_like",
        "jnp.int32(jnp.float32(3e9))",
        "jnp.arange(3.0)",
        "jnp.zeros(())",
    ),
    "a constexpr in the middle of an expression, which is Python": ("(x:=", "tl.full", "tl.cdiv(-7,2)"),
    "a trace knows no values, and eager JAX looks at an exponent's": ("=jnp.int32(2)**jnp.int32(-1)",),
    "no arrays of JAX": ("=np.int16(1)+1",),
    "a scalar that DALI's pipelines refuse and its dynamic mode takes": ("np.float64(0.1)",),
    "a conversion that PyTorch alone makes: float8_e4m3fn saturates": ("T([500.],f4).to(e4)",),
}
"""Reason -> parts of the texts; after ``=`` the whole."""


def kept(expression: str) -> bool:
    """Whether a row is run."""
    return not any(
        part == f"={expression}" if part.startswith("=") else part in expression
        for parts in LEFT_OUT.values()
        for part in parts
    )


def rows(path: str) -> Iterator[dict[str, str]]:
    """The rows of a golden file that are run."""
    with (GOLDEN / path).open() as file:
        for row in csv.DictReader(file):
            if kept(row.get("expression") or row.get("expr") or ""):
                yield row


def maker(system: str, dtype: str) -> Callable[[Any], wa.Array]:
    """A function that makes arrays of one dtype."""
    return lambda value: wa.asarray(value, system, dtype) if not isinstance(value, wa.Array) else value.astype(dtype)


class Library:
    """What libraries of arrays have in common, for one system; dtypes are written as NumPy writes them."""

    def __init__(self, system: str, *functions: str) -> None:
        self.system = system
        self.nan = np.nan
        for name in functions:
            setattr(self, name, getattr(wa, name))
        for name in TYPES:
            setattr(self, name, maker(system, name))
        self.bool_ = maker(system, "bool")

    def array(self, data: Any, dtype: Any = None) -> wa.Array:
        """``np.array``."""
        return wa.asarray(data, self.system, None if dtype is None else np.dtype(dtype).name)

    asarray = array

    def ones(self, shape: Any, dtype: Any) -> wa.Array:
        """``np.ones``."""
        return wa.asarray(np.ones(shape, dtypes.named(dtype).numpy if dtype in TYPES else np.dtype(dtype)), self.system)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> wa.Array:
        """``np.full``."""
        return self.array(value, dtype).broadcast_to(shape)

    def arange(self, count: int, dtype: Any = None) -> wa.Array:
        """``np.arange``."""
        return wa.asarray(np.arange(count, dtype=dtype), self.system)

    def add(self, x: Any, y: Any) -> wa.Array:
        """``np.add``."""
        return wa.apply("add", x, y)

    def constant(self, data: Any, dtype: Any, device: Any) -> wa.Array:
        """``ops.constant`` of MAX."""
        return wa.asarray(data, self.system, dtype)


def read_value(text: str) -> Any:
    """A recorded value."""
    return eval(text, {"nan": np.nan, "inf": np.inf, "__builtins__": {}})


def check(result: Any, dtype: str, value: str, weak: str = "") -> None:
    """The result has the recorded dtype, weakness and value; to one unit in the last place of a float."""
    assert isinstance(result, wa.Array)
    assert result.dtype == dtypes.named(dtype)
    if weak:
        assert str(result.weak) == weak
    expected = np.asarray(read_value(value)).astype(result.dtype.numpy)
    computed = result.numpy()
    if result.dtype.is_float and result.dtype.bits >= 32:
        np.testing.assert_array_max_ulp(computed, expected.reshape(computed.shape), 1)
    else:
        wide = np.complex128 if result.dtype.is_complex else np.float64
        np.testing.assert_array_equal(computed.astype(wide), expected.reshape(computed.shape).astype(wide))


def run(expression: str, names: dict[str, Any], dtype: str, value: str, weak: str = "") -> None:
    """One row."""
    if "ERR" in dtype + value or "CRASH" in dtype + value:
        with pytest.raises((TypeError, ValueError, ArithmeticError)):
            wa.compute(eval(expression, names))
        return
    check(eval(expression, names), dtype, value, weak)


# ---- NumPy ------------------------------------------------------------------------------------------------------------


NUMPY: dict[str, Any] = {"np": Library("numpy", "where", "sum", "mean", "exp"), "ml_dtypes": ml_dtypes}


@pytest.mark.parametrize("row", list(rows("array_values/numpy.csv")), ids=lambda r: r["expression"])
def test_numpy(row: dict[str, str], backend: str) -> None:
    with semantics.use("numpy"):
        text = re.sub(r"astype\('(..)'\)", lambda m: f"astype('{np.dtype(m[1])}')", row["expression"])
        run(text, NUMPY, row["dtype"], row["value"])


# ---- JAX --------------------------------------------------------------------------------------------------------------


def jax_names(system: str) -> dict[str, Any]:
    """``jnp``, ``np`` and ``jax`` for the rows read off JAX."""
    functions: Any = Library(system, "where", "sum", "mean", "exp", "sqrt", "matmul", "maximum")
    functions.dot, functions.clip = wa.matmul, wa.clamp

    def jit(function: Callable[..., Any]) -> Any:
        return wa.fuse(function, semantics=system)

    return {"jnp": functions, "np": np, "jax": SimpleNamespace(jit=jit)}


@pytest.mark.parametrize(
    ("row", "bits"),
    grid(2, list(rows("jax_promotion/values.csv")), ("64", "32")),
    ids=lambda value: value if isinstance(value, str) else value["expression"],
)
def test_jax(row: dict[str, str], bits: str, backend: str) -> None:
    system = "jax@0.10" if bits == "64" else "jax-x32@0.10"
    with semantics.use(system):
        run(row["expression"], jax_names(system), row[f"dtype{bits}"], row[f"value{bits}"], row[f"weak{bits}"])


# ---- Triton -----------------------------------------------------------------------------------------------------------

TRITON_TYPES = {"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"} | {
    f"{kind}{bits}": f"{name}{bits}" for kind, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)
}


def triton_names() -> dict[str, Any]:
    """``tl`` and the makers of constants for the rows read off Triton."""
    functions = SimpleNamespace(
        where=wa.where,
        minimum=wa.minimum,
        maximum=wa.maximum,
        cdiv=wa.cdiv,
        **{t.name: t for t in dtypes.ALL},
        int1=dtypes.bool_,
        float8e4nv=dtypes.float8_e4m3fn,
        float8e5=dtypes.float8_e5m2,
    )
    return {"tl": functions, **{short: maker("triton@3.9", name) for short, name in TRITON_TYPES.items()}}


@pytest.mark.parametrize("row", list(rows("array_values/triton.csv")), ids=lambda r: r["expression"])
def test_triton(row: dict[str, str], backend: str) -> None:
    with semantics.use("triton@3.9"):
        expression = row["expression"].replace(".to(", ".astype(")
        if row["value"]:
            run(expression, triton_names(), row["dtype"], row["value"])
        else:  # the value is left to the hardware, the type is not
            assert eval(expression, triton_names()).dtype == dtypes.named(row["dtype"])


# ---- PyTorch ----------------------------------------------------------------------------------------------------------

TORCH_TYPES = {"b1": "bool", "bf": "bfloat16", "e4": "float8_e4m3fn", "e5": "float8_e5m2"} | {
    f"{kind}{size}": f"{name}{8 * size}"
    for kind, name, sizes in (("i", "int", (1, 2, 4, 8)), ("u", "uint", (1, 2, 4, 8)), ("f", "float", (2, 4, 8)))
    for size in sizes
}


def tensor(value: Any, dtype: str) -> wa.Array:
    """``torch.tensor``."""
    return wa.asarray(value, "torch", dtype)


TORCH: dict[str, Any] = {
    "torch": Library("torch", "where", "sum", "mean", "exp", "fmod"),
    "T": tensor,
    **TORCH_TYPES,
}


@pytest.mark.parametrize("row", list(rows("array_values/torch.csv")), ids=lambda r: r["expression"])
def test_torch(row: dict[str, str], backend: str) -> None:
    with semantics.use("torch"):
        run(row["expression"].replace(".to(", ".astype("), TORCH, row["dtype"], row["value"])


# ---- DALI and MAX -----------------------------------------------------------------------------------------------------


def inputs_of(text: str, system: str) -> list[wa.Array]:
    """``[1, 2]:uint8; [3, 4]:int8`` as arrays."""
    pairs = [part.rsplit(":", 1) for part in text.split("; ")]
    return [wa.asarray(np.asarray(read_value(value), dtypes.named(d).numpy), system) for value, d in pairs]


class Choice:
    """DALI's ``Constant(value)`` before a method chooses its dtype."""

    def __init__(self, value: Any) -> None:
        for dtype in dtypes.ALL:
            setattr(self, dtype.name, partial(semantics.Constant, value, dtype))


def constant(value: Any, dtype: Any = None) -> Any:
    """DALI's ``types.Constant(value, dtype)``; without a dtype or a method, it is the number."""
    return semantics.Constant(value, dtype) if dtype else Choice(value)


def dali_names() -> dict[str, Any]:
    """``dm``, ``fn``, ``DT`` and ``Constant`` for the rows read off DALI."""
    dm = SimpleNamespace(floor=wa.floor, sqrt=wa.sqrt, fpow=wa.fpow, min=wa.minimum, max=wa.maximum, clamp=wa.clamp)
    types = SimpleNamespace(**{d.name.upper(): d for d in dtypes.ALL})
    return {"dm": dm, "fn": SimpleNamespace(cast=wa.astype), "DT": types, "Constant": constant, "np": np}


@pytest.mark.parametrize("row", list(rows("dali_promotion/values.csv")), ids=lambda r: r["name"])
def test_dali(row: dict[str, str], backend: str) -> None:
    names = dali_names()
    with semantics.use("dali@2"):
        expression = f"({row['expr']})(*inputs)"
        run(expression, {**names, "inputs": inputs_of(row["inputs"], "dali@2")}, row["dtype_or_error"], row["value"])


def max_names() -> dict[str, Any]:
    """``ops`` and ``DType`` for the rows read off MAX."""
    ops: Any = Library("max@26", "where", "floor", "sqrt")
    ops.max, ops.cast = wa.maximum, wa.astype
    return {"ops": ops, "DType": SimpleNamespace(**{d.name: d for d in dtypes.ALL}), "np": np, "CP": None}


@pytest.mark.parametrize("row", list(rows("max_promotion/values.csv")), ids=lambda r: f"{r['expr']} {r['inputs']}")
def test_max(row: dict[str, str], backend: str) -> None:
    if "Failed to compile" in row["dtype_or_error"]:
        return  # MAX builds the graph, which is the promotion, and its compiler fails: no value to compare with
    with semantics.use("max@26"):
        arrays = dict(zip("xy", inputs_of(row["inputs"], "max@26"), strict=False))
        run(row["expr"], {**max_names(), **arrays}, row["dtype_or_error"], row["value"])


def test_what_is_left_out_is_there() -> None:
    """A reason whose text occurs in no row would be a leftover."""
    text = "".join((GOLDEN / name).read_text() for name in FILES)
    for parts in LEFT_OUT.values():
        for part in parts:
            assert part.lstrip("=") in text, part
