"""Operations on whole arrays beside what the packages answered (``tests/oracles/arrangements.py``), on both backends.

Each expression was evaluated by the package with its own functions; here it is evaluated with weft's. The answers agree in dtype,
weakness, shape and values, or both refuse. Refusals are compared as such; their words are tested below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import weft.array as wa
from oracles.arrangements import cases, recorded
from oracles.probes.arrange_probe import DATA, TYPES, typed
from sampling import at_night
from weft import dtypes, semantics
from weft.semantics import PromotionError

SYSTEMS = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax@0.10",
    "jax-x32": "jax-x32",
    "dali": "dali@2",
    "max": "max@26",
}

KNOWN = {
    ("torch", "topk(t, 3)"): "which of equal elements comes first is not specified",
    ("numpy", "unique(z)"): "which of two zeros is kept is not specified",
    ("numpy", "nanmin(z)"): "which of two zeros is less is not specified",
    ("torch", "nanmedian(z)"): "which of two zeros comes first is not specified",
    **{
        (system, f"searchsorted({array}, {values})"): "weft searches no complex numbers"
        for system in ("numpy", "jax", "jax-x32")
        for array, values in (("c", "c"), *((f"sort(a_complex{bits})", f"a_complex{bits}") for bits in (64, 128)))
    },
    **{
        (system, f"{function}({operands})"): "weft searches no complex numbers"
        for system in ("numpy", "jax", "jax-x32")
        for function, operands in (
            ("digitize", "c, f"),
            ("histogram", "c, 2"),
            *(("digitize", f"a_complex{bits}, sort(a_complex{bits})") for bits in (64, 128)),
            *(("histogram", f"a_complex{bits}, 2") for bits in (64, 128)),
        )
    },
    **{
        (system, expression): "weft inverts no matrices, and computes no singular values"
        for system in ("numpy", "torch", "jax", "jax-x32")
        for expression in ("linalg.norm(F, 2)", 'linalg.norm(F, "nuc")', "linalg.matrix_power(F[:, :2], -1)")
    },
    **{
        ("jax", f"silu(a_{name})"): "XLA's logistic of narrow floats is less accurate than a rounding"
        for name in ("float16", "bfloat16", "float8_e5m2")
    },
    (
        "jax",
        "softmax(a_float8_e4m3fn, axis=0)",
    ): "the package's maximum starts at an infinity, which is NaN in the type",
    ("jax-x32", "softmax(h, axis=0)"): "XLA fuses, so that the quotient is rounded elsewhere",
    **{
        ("jax", f"a_complex{bits}.at[0].{op}"): "weft multiplies and orders no complex numbers in place"
        for bits in (64, 128)
        for op in ("mul(2)", "max(1)")
    },
}
"""Answers that weft does not give, and why."""


@cache
def names(system: str) -> dict[str, Any]:
    """What expressions are made of; they change none of it."""
    given: dict[str, Any] = {name: getattr(wa, name) for name in wa.__all__}
    given |= {name: wa.asarray(data, system) for name, data in DATA.items() if has(system, data)}
    if system.startswith("jax"):
        given["w"] = wa.full(3, 3, semantics=system)
    for name in ("zeros", "ones", "full", "arange", "linspace", "eye", "tri", "identity"):
        given[name] = partial(getattr(wa, name), semantics=system)

    have = semantics.get(system).dtypes
    given |= {f"a_{name}": wa.asarray(typed(name), system) for name in TYPES if dtypes.named(name) in have}

    def indices(*values: Any, dtype: str = "int64") -> wa.Array:
        return wa.asarray(np.array(values, dtype), system)

    return given | {"I": indices}


def has(system: str, data: np.ndarray[Any, Any]) -> bool:
    """Whether the system has such elements."""
    return data.dtype.kind != "c" or system.partition("@")[0] not in ("dali", "max")


def shown(array: Any) -> str:
    values = array.numpy() if array.numpy().dtype.isbuiltin == 1 else array.numpy().astype(np.float64)
    return f"{array.dtype}{'*' if array.weak else ''} {array.shape} {values.tolist()}"


def answer(system: str, expression: str) -> str:
    """As the probes answer."""
    try:
        result: Any = eval(expression, names(system))
        return shown(result) if isinstance(result, wa.Array) else "; ".join(map(shown, result))
    except (PromotionError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, NameError) as error:
        return f"!{type(error).__name__}: {error}"


def same(found: str, expected: str) -> bool:
    """Whether two answers agree; the last bits of floats may differ."""
    if found.startswith("!") or expected.startswith("!"):
        return found[:1] == expected[:1]
    number = r"-?(?:nan|inf|\d+(?:\.\d*)?(?:e[-+]?\d+)?)"
    if re.sub(number, "#", found) != re.sub(number, "#", expected):
        return False
    near = 1e-15 if "float64" in found else 1e-6  # JAX's linspace fuses products and sums here and there
    pairs = zip(re.findall(number, found), re.findall(number, expected), strict=True)
    return all(
        a == b or (float(a) or float(b)) and np.isclose(float(a), float(b), rtol=1e-6, atol=near) for a, b in pairs
    )


def sample(system: str) -> Iterator[str]:
    """What ``make test`` compiles: of each function's expressions one of 16, and one at least, in every third of the systems
    that have it; nothing of ``jax-x32``, which are JAX's functions in other types. Each function and each system begins at
    another, so that all types occur."""
    if system == "jax-x32":
        return
    turn = list(SYSTEMS).index(system)
    known = list(dict.fromkeys(name for other in SYSTEMS for name in functions_of(other)))
    for place, (name, expressions) in enumerate(functions_of(system).items()):
        having = [other for other in SYSTEMS if other != "jax-x32" and name in functions_of(other)]
        if (having.index(system) + known.index(name)) % min(3, len(having)) == 0:
            yield from expressions[(place + 5 * turn) % min(16, len(expressions)) :: 16]


@cache
def functions_of(system: str) -> dict[str, list[str]]:
    """A system's expressions by their function."""
    functions: dict[str, list[str]] = {}
    for expression in cases(system):
        functions.setdefault(expression.partition("(")[0], []).append(expression)
    return functions


@pytest.mark.jit
@pytest.mark.parametrize("system", SYSTEMS)
def test_packages(system: str, backend: str) -> None:
    answers = recorded(system)
    wrong: list[str] = []
    for expression in cases(system) if backend == "reference" or at_night() else sample(system):
        found = answer(SYSTEMS[system], expression)
        if not same(found, answers[expression]) and (system, expression) not in KNOWN:
            wrong.append(f"{expression}\n    weft    {found}\n    package {answers[expression]}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong)


@pytest.mark.jit
@pytest.mark.parametrize("selection", ["m[i, :0]", "m[:, :0][i]", "m[i, :0] + 1"])
def test_indices_out_of_bounds_that_select_nothing(selection: str, backend: str) -> None:
    """An index is refused as NumPy refuses it, also where the result has no element. (Older versions of NumPy warn there.)"""
    matrix, five = np.zeros((2, 3), np.int32), np.array([5])
    with pytest.raises(IndexError) as expected:
        matrix[five]
    with pytest.raises(IndexError) as found:
        eval(selection, {"m": wa.asarray(matrix, "numpy"), "i": wa.asarray(five, "numpy")}).numpy()
    assert str(found.value) == str(expected.value) == "index 5 is out of bounds for axis 0 with size 2"
