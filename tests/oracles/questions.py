"""Everything that is asked: each operation on every pair of types in every form, and edge values.

A question is text, ``("+", "int8", "300")``; ``probes/common.py`` has the forms of operands. Questions are made here and
nowhere else, and both sides read the same text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oracles.probe import Question
from weft import dtypes, semantics
from weft.dtypes import DType
from weft.semantics import PromotionError, Semantics, ops

NUMBERS: Final = (
    *(
        "True",
        "False",
        "0",
        "1",
        "3",
        "-1",
        "127",
        "128",
        "-128",
        "-129",
        "255",
        "256",
        "300",
        "2049",
        "32768",
        "65536",
    ),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551615", "18446744073709551616"),
    *("0.5", "2.5", "-1.0", "70000.0", "1e-39", "1e+300", "nan", "inf"),
)
"""Literals: the edges of what integer types hold exactly, and floats of each magnitude that a rule looks at."""

FEW_NUMBERS: Final = (
    *("True", "0", "3", "-1", "300", "2147483647", "2147483648", "-2147483649", "9223372036854775808"),
    *("2.5", "1e+300", "nan"),
)
"""Those that differ to a system which looks at a literal's kind, or at whether it fits one type."""

BINARY: Final = (*ops.BINARY, *ops.LOGICAL, *ops.FAMILY_BINARY)
UNARY: Final = (*ops.UNARY, *ops.FAMILY_UNARY)
SHAPED: Final = ("matmul", "concat")
"""The operations that ask for dimensions."""


@dataclass(frozen=True)
class Plan:
    """What one system is asked.

    ``constants``: the prefixes of typed constants (``9:uint8``; ``~9:uint8`` is NumPy's scalar). ``scalars``: whether arrays
    without dimensions are a form of their own. ``weak``: weakly typed arrays. ``values``: whether values are asked for.
    ``nonzero``: whether a divisor of integers must not be 0, since that ends the process or spoils the whole array.
    ``elements``: how many the leaves of a tree have. ``grid``: how many pairs of edge values are drawn from all of them (0:
    all). ``whole``: of a package that compiles slowly, how many trees and how many elementwise questions are compiled as they
    are, of the others each operation by itself (0: all).
    """

    system: str
    package: str
    batch: int
    value_batch: int
    scalars: bool = False
    constants: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    numbers: tuple[str, ...] = NUMBERS
    values: bool = True
    nonzero: bool = False
    elements: int = 12
    grid: int = 0
    whole: int = 0

    @property
    def semantics(self) -> Semantics:
        """Weft's system."""
        return semantics.get(self.system)


PLANS: Final[dict[str, tuple[Plan, ...]]] = {
    "jax": (
        Plan("jax@0.10", "jax", 2000, 50, constants=("1",), weak=("i*", "f*", "c*"), numbers=(*NUMBERS, "1j")),
        Plan("jax-x32@0.10", "jax", 2000, 50, weak=("i*", "f*", "c*"), numbers=(*FEW_NUMBERS, "1j")),
        Plan("jax-strict", "jax", 2000, 50, weak=("i*", "f*", "c*"), numbers=("True", "3", "2.5", "1j"), values=False),
    ),
    "dali": (Plan("dali@2", "dali", 64, 16, scalars=True, constants=("9", "~9"), numbers=FEW_NUMBERS, nonzero=True),),
    "triton": (Plan("triton@3.9", "triton", 500, 60, scalars=True, elements=3, grid=64),),
    "torch": (Plan("torch", "torch", 5000, 500, scalars=True, numbers=(*NUMBERS, "1j"), nonzero=True),),
    "max": (Plan("max@26", "max", 1000, 200, scalars=True, constants=("9", "~9"), nonzero=True, whole=20),),
    "numpy": (Plan("numpy", "numpy", 5000, 500, constants=("1",), numbers=(*NUMBERS, "1j")),),
}
"""Package -> what its versions in weft are asked."""


def cells(plan: Plan) -> Iterator[Question]:
    """Every question about types."""
    names = [d.name for d in plan.semantics.dtypes]
    arrays = [*names, *plan.weak]
    for op in BINARY:
        yield from ((op, a, b) for a, b in product(arrays, repeat=2))
        if plan.scalars and op not in SHAPED:
            for a, b in product(names, repeat=2):
                yield from ((op, f"{a}[]", b), (op, a, f"{b}[]"), (op, f"{a}[]", f"{b}[]"))
        if op in SHAPED:
            continue
        typed = [f"{value}:{name}" for value in plan.constants for name in names if _writable(value, name)]
        for a, number in product(arrays, (*plan.numbers, *typed)):
            yield from ((op, a, number), (op, number, a))
    for op in (*UNARY, *ops.REDUCTIONS):
        yield from ((op, a) for a in arrays)
    for a, b in product(arrays, repeat=2):
        yield from (("clamp", a, b, b), ("clamp", a, a, b))
    for a, low, high in product(arrays, ("1", "3", "-1", "127", "128"), ("300", "2.5")):
        yield ("clamp", a, low, high)


def _writable(prefix: str, name: str) -> bool:
    """NumPy alone has scalars of its own types only."""
    return not prefix.startswith("~") or hasattr(np, "bool_" if name == "bool" else name)


# ---- values ---------------------------------------------------------------------------------------------------------

_WHOLE: Final = (0, 1, 2, 3, 7, -1, -2, -7, 8, 31, 33, 100, -100)
_REAL: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 7.0, -7.0, 0.1, 100.0, -0.3, np.nan, np.inf, -np.inf)
EXACT: Final = ("+", "-", "*", "/", "//", "%", "fmod", "cdiv", "fdiv")
DIVIDING: Final = ("//", "%", "fmod", "cdiv")
FUNCTIONS: Final = (
    *("rsqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "erf", "sigmoid"),
    *("log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erfc", "lgamma", "angle"),
)
"""The functions of calculus."""


def edges(dtype: DType) -> NDArray[Any]:
    """Values of a type at which operations differ."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_integer:
        whole = sorted({v for v in _WHOLE if dtype.min <= v} | {dtype.min, dtype.min + 1, dtype.max, dtype.max - 1})
        return np.array(whole, dtype.numpy)
    tiny = 2.0 ** (1 - dtype.bias)
    large = [dtype.largest, -dtype.largest, 3e9, 70000.0, 256.5, tiny, -tiny, tiny / 2, -tiny / 2]
    real = [v for v in (*_REAL, *large) if not np.isfinite(v) or abs(v) <= dtype.largest]
    return np.array(real, np.float64).astype(dtype.numpy)


def values(plan: Plan, seed: int = 0) -> list[Question]:
    """Questions about values: every operation on each type with itself, and on some mixed pairs and literals. Those that MAX
    types and does not compile are left out: each costs the compilation of its graph."""
    return [q for q in _values(plan, seed) if plan.package != "max" or _compiles(plan, q)]


def _compiles(plan: Plan, question: Question) -> bool:
    """Whether weft says that the package has code for it on a CPU, where it has none of float8."""
    op, *texts = without_data(question).split()
    if any(text.startswith("float8") for text in texts):
        return False
    if op == "cast":
        return True
    try:
        steps = plan.semantics.resolve(op, *texts).steps
    except (PromotionError, ValueError):
        return False
    return all(step.rule != "not compiled" for step in steps)


def _values(plan: Plan, seed: int) -> Iterator[Question]:
    random_ = random.Random(seed)
    system = plan.semantics
    types = [d for d in dtypes.ALL if d in system.dtypes and not (plan.package == "triton" and d.is_float8)]
    for op in BINARY:
        if op in (*SHAPED, *ops.LOGICAL):
            continue
        pairs = [(t, t) for t in types] + random_.sample(list(product(types, repeat=2)), 12)
        for a, b in pairs:
            yield from _pair(plan, op, a, b, random_)
        for a, number in random_.sample(list(product(types, ("3", "-1", "2.5", "200", "True", "0.1", "49.0"))), 12):
            data = edges(a)
            yield (op, _text(a, data), number)
            if not (plan.nonzero and op in DIVIDING):
                yield (op, number, _text(a, data))
    for op in UNARY:
        yield from ((op, _text(t, edges(t))) for t in types)
    for op in (
        ops.REDUCTIONS if plan.package != "triton" else ()
    ):  # values are constants there, and those have no elements
        for t in types:
            yield (op, _text(t, np.array([1, 3, 100, 2, 100], np.float64).astype(t.numpy)))
            if op in ("max", "min", "argmax", "argmin") and t.is_float:
                yield (op, _text(t, np.array([1, np.nan, 3], np.float64).astype(t.numpy)))
    for a, b in product(types, repeat=2):
        yield (f"cast {b}", _text(a, edges(a)))
    for t in types:
        low, high = (np.resize(v.astype(t.numpy), edges(t).size) for v in (np.array([1, 3]), np.array([2, 1, 7])))
        yield ("clamp", _text(t, edges(t)), _text(t, low), _text(t, high))


def _pair(plan: Plan, op: str, a: DType, b: DType, random_: random.Random) -> Iterator[Question]:
    """An operation on all pairs of edges; a divisor of integers that is 0 alone, where it would spoil the others."""
    left, right = (side.ravel() for side in np.meshgrid(edges(a), edges(b), indexing="ij"))
    whole = not a.is_float and not b.is_float
    if plan.nonzero and whole and (op in DIVIDING or (op == "/" and (a.is_bool or b.is_bool))):
        least = left == a.min if a.signed else np.zeros(left.shape, np.bool_)
        fine = (right != 0) & ~(least & (right == -1 if b.signed else False))
        if plan.package != "max":
            yield (op, _text(a, np.array([1], a.numpy)), _text(b, np.array([0], b.numpy)))
        left, right = left[fine], right[fine]
    if 0 < plan.grid < left.size:
        keep = np.array(sorted(random_.sample(range(left.size), plan.grid)))
        left, right = left[keep], right[keep]
    yield (op, _text(a, left), _text(b, right))


def _text(dtype: DType, data: NDArray[Any]) -> str:
    return f"{dtype}@{np.ascontiguousarray(data).tobytes().hex()}"


def without_data(question: Sequence[str]) -> str:
    """A question as people read it, and as `known.toml` matches it."""
    return " ".join(text.partition("@")[0] for text in question)
