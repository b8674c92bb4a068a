"""Reads the cells that the CSV tables lack off the package itself: narrow types, more operations, literals.

Usage: PYTHONPATH=tests python record.py, with jax 0.10.2 installed. Types come of abstract evaluation (``jax.eval_shape``), as
in a traced function; the expressions of ``more_values.csv`` are evaluated.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from golden_tables import write

HERE = Path(__file__).parent

STANDARD = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
STANDARD += ["bfloat16", "float16", "float32", "float64", "complex64", "complex128"]
WEAK = {"int*": "int64", "float*": "float64", "complex*": "complex128"}
NARROW = ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn"]
NARROW += ["float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
TYPES = [*STANDARD, *WEAK, *NARROW]

UNARY = [
    "positive",
    "negative",
    "invert",
    "logical_not",
    "abs",
    "fabs",
    "sign",
    "square",
    "sqrt",
    "cbrt",
    "exp",
    "exp2",
]
UNARY += ["log", "log2", "log10", "sin", "cos", "tan", "tanh", "floor", "ceil", "real"]
UNARY += ["sum", "prod", "mean", "max", "min", "argmax", "argmin", "cumsum", "any", "all"]
ELSEWHERE = {"rsqrt": jax.lax.rsqrt, "erf": jax.scipy.special.erf, "sigmoid": jax.nn.sigmoid}
BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "bitwise_and", "bitwise_or"]
BINARY += ["bitwise_xor", "left_shift", "right_shift", "less", "less_equal", "greater", "greater_equal", "equal"]
BINARY += ["not_equal", "minimum", "maximum", "arctan2", "logaddexp", "matmul"]

ERRORS = {
    "no available implicit dtype promotion path": "!promotion",
    "does not accept dtype": "!dtype",
    "does not support complex-valued inputs": "!dtype",
    "requires floating-point or complex inputs": "!dtype",
    "does not support complex dtypes": "!dtype",
    "not inexact": "!dtype",
    "Complex values have no ordering": "!dtype",
    "must not be narrower than the original type": "!narrower",
    "Invalid integer data type 'V'": "!fails",
    "cannot be raised to negative powers": "!negative",
    "An overflow was encountered": "!overflow",
}
"""A refusal's class by what its message says."""

EXPRESSIONS = """x8 + 300; x8 + 2**40; x8 + 2**63; u8 + (-2**63); u8 + (-2**63 - 1); f16 + 2**62; f32 + 1e300; u8 < -1; u8 == 300
x8 + True; x8 + 1.5; x8 + 1j; b + True; b + 1; b - 1; b & 1; b | True; b << 1; b % 2; b * True; f32 & 1; f32 << 1; -b
x8 + np.int16(300); x8 + np.float32(2); bf16 * np.float64(2); i + np.float32(2); x8 < np.int64(2); u8 + np.bool_(True)
i + 1; i + 2.5; i + f; i // 2; i / 2; i < 2; f < x8; f + b; c + bf16; i + i; f * f; i - u8; f + f8; i + i4; c + f8; f + i4
x8 ** 3; x8 ** 300; x8 ** 200; x8 ** -1; x8 ** True; x8 ** 2.0; x8 ** np.int64(3); x8 ** np.uint8(200); x8 ** np.float32(3)
x8 ** np.int64(-1); b ** 3; b ** True; b ** -1; b ** 2.5; f16 ** -3; f16 ** 2**70; f16 ** np.int64(3); f16 ** np.float64(3)
c64 ** 3; i ** 3; f ** 3; i ** 2.5; f ** x8; c ** x8; i ** i; f ** i; f ** b; b ** i; x8 ** i; i ** x8; f32 ** x8; x8 ** f32
2 ** x8; (-2) ** x8; 2.0 ** x8; 2j ** x8; True ** x8; 300 ** x8; np.int64(2) ** x8; f8 ** 3; f8 ** x8; i4 ** 2; f32 ** i4
jnp.power(2, 3); jnp.power(2.5, 3); jnp.power(2, -1); jnp.power(True, 3); jnp.power(2, 2.5)
jnp.add(1, 2); jnp.add(1, 2.5); jnp.add(True, 1); jnp.add(True, True); jnp.where(m, 1, 2.5); jnp.where(m, x8, 300)
jnp.where(m, x8, 2**70); jnp.maximum(x8, 300); jnp.minimum(u8, -1); x8 / 0; x8 / 300; x8 / 2**40
jnp.clip(u8, -5, 300); jnp.clip(u8, np.int16(-5), 300); jnp.clip(u8, 1.5, 300); jnp.clip(x8, 1, f16); jnp.clip(b, False, True)
jnp.clip(c64, 0, 1); jnp.clip(3, 1, 2); jnp.clip(f8, 0, 1); jnp.clip(f8, 0, f32); jnp.clip(i4, 0, 1); jnp.clip(i4, 0., 1)
jnp.clip(u8, 2**70, 300); jnp.clip(i, 1, 2); x8 @ i; i4 @ i; c64 @ f; c64 @ i; b @ b; f8 @ x8; i @ i
z16 + (1 + 2.0**-11 + 2.0**-30); zb + (1 + 2.0**-8 + 2.0**-30); z8 + (1 + 2.0**-4 + 2.0**-30); z32 + (1 + 2.0**-24 + 2.0**-30)
zb + (2**30 + 2**22 + 1); zb + (2**40 + 2**32 + 1); z16 + 2049; z16 + 70000; z64 + 0.1; zc + 0.1j; z32 + (2**62 + 2**38 + 1)"""
"""``x8`` and the like are arrays of that type (`arrays`); ``i``, ``f``, ``c`` are weak arrays."""


def arrays() -> dict[str, Any]:
    """The names in `EXPRESSIONS`."""
    kinds = {"x8": "int8", "u8": "uint8", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "c64": "complex64"}
    kinds |= {"b": "bool", "f8": "float8_e4m3fn", "i4": "int4"}
    zeros = {
        "z16": "float16",
        "zb": "bfloat16",
        "z8": "float8_e4m3fn",
        "z32": "float32",
        "z64": "float64",
        "zc": "complex64",
    }
    return {
        **{name: jnp.array([1, 3], dtype) for name, dtype in kinds.items()},
        **{name: jnp.zeros(1, dtype) for name, dtype in zeros.items()},
        **{"i": jnp.full(2, 3), "f": jnp.full(2, 2.5), "c": jnp.full(2, 1j), "m": jnp.array([True, False])},
    }


def refusal(error: Exception) -> str:
    """An error's class; an unknown one is an error."""
    return next(short for text, short in ERRORS.items() if text in str(error))


def operand(name: str, shape: tuple[int, ...]) -> Any:
    """An abstract array."""
    dtype = jax.dtypes.canonicalize_dtype(jnp.dtype(WEAK.get(name, name)))
    return jax.ShapeDtypeStruct(shape, dtype, weak_type=name in WEAK)


def outcome(function: Any, *names: str) -> str:
    """The type of ``function`` on arrays of those types, ``*`` marking a weak one."""
    try:
        result = jax.eval_shape(function, *(operand(n, (2, 2)) for n in names))
    except (TypeError, ValueError) as error:
        return refusal(error)
    return f"{result.dtype}{'*' * bool(result.weak_type)}"


def evaluate(expression: str) -> tuple[str, str, str]:
    """Type, weakness and value of an expression, or the class of its refusal."""
    try:
        result = jnp.asarray(eval(expression, {"jnp": jnp, "np": np, **arrays()}))
    except (TypeError, ValueError, OverflowError) as error:
        return refusal(error), "", ""
    return str(result.dtype), str(bool(result.weak_type)), str(np.asarray(result).tolist())


def main() -> None:
    """Writes every table."""
    functions = {name: getattr(jnp, name) for name in (*UNARY, *BINARY)} | ELSEWHERE
    functions |= {
        "where": lambda x, y: jnp.where(jnp.ones((2, 2), bool), x, y),
        "concatenate": lambda x, y: jnp.concatenate([x, y]),
    }
    unary: dict[tuple[str, str, str], str] = {}
    values: dict[str, list[str]] = {}
    for bits in ("x64", "x32"):
        jax.config.update("jax_enable_x64", bits == "x64")
        for name in (*UNARY, *ELSEWHERE):
            unary |= {(bits, name, a): outcome(functions[name], a) for a in TYPES}
        for expression in EXPRESSIONS.replace("\n", "; ").split("; "):
            values.setdefault(expression, []).extend(evaluate(expression))
    blocks = [([bits], [*UNARY, *ELSEWHERE]) for bits in ("x64", "x32")]
    write(HERE / "more_unary.txt", "operation", TYPES, blocks, lambda bits, op, a: unary[bits, op, a])
    jax.config.update("jax_enable_x64", True)
    binary = {
        (op, a, b): outcome(functions[op], a, b)
        for op in (*BINARY, "where", "concatenate")
        for a in TYPES
        for b in TYPES
        if a in NARROW
        or b in NARROW
        or op in ("less", "less_equal", "greater", "greater_equal", "not_equal", "minimum")
    }
    ops = list(dict.fromkeys(op for op, _, _ in binary))
    path = HERE / "more_operators.txt"
    write(path, "left operand", TYPES, [(ops, TYPES)], lambda op, a, b: binary.get((op, a, b), "."))
    with (HERE / "more_values.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["expression", "dtype64", "weak64", "value64", "dtype32", "weak32", "value32"])
        writer.writerows([expression, *cells] for expression, cells in values.items())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
