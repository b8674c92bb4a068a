"""What weft says to a question, and whether a package's answer agrees.

Types, weakness and refusals must be equal; what a refusal says is each side's own. Integers and bools must be equal, floats
too, but for functions of calculus, which no package rounds correctly (`ULPS`), and for the sign of a zero where the meaning
leaves it open (`ZEROS`). NaN agrees with NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import weft.array as wa
from oracles.probe import Question
from oracles.questions import FUNCTIONS
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import PromotionError, Semantics, ops

UNKNOWN: Final = "?"
"""The answer of a side that does not have the operation, or computes no values of the type."""

ULPS: Final[dict[str, int]] = {
    **dict.fromkeys(FUNCTIONS, 8),
    **dict.fromkeys(("**", "fpow", "atan2", "logaddexp", "logaddexp2", "hypot"), 8),
    **dict.fromkeys(("sum", "prod", "mean", "cumsum"), 1),
}
"""How many units in the last place two values may be apart; 0 for the others."""

CANCELS: Final = frozenset(("logaddexp", "logaddexp2"))
"""The operations whose result near 0 is a difference: its error is one of the operands."""

ZEROS: Final = frozenset(("minimum", "maximum", "fmin", "fmax", "max", "min", "clamp"))
"""The operations whose zero may have either sign."""


@dataclass(frozen=True)
class Verdict:
    """A question whose answers differ: what each side says, values as the elements that differ."""

    question: str
    package: str
    weft: str


def typed(system: Semantics, question: Question) -> str:
    """Weft's answer to a question about types."""
    op, *texts = question
    try:
        result = system.result(op, *map(_operand, texts))
    except PromotionError as error:
        return f"!{error.reason}"
    except ValueError as error:
        return f"!ValueError: {error}"
    return f"{result.dtype}{'*' * result.weak}"


def _operand(text: str) -> object:
    """NumPy's scalars as such, all else as `weft.semantics.core.operand` reads it."""
    if not text.startswith("~"):
        return text
    value, _, name = text[1:].partition(":")
    return dtypes.named(name).numpy.type(int(value))


def agree_types(package: str, weft: str) -> bool:
    """Whether two answers about types are the same."""
    return package[:1] == "!" == weft[:1] or package == weft


# ---- values ---------------------------------------------------------------------------------------------------------


def build(system: Semantics, question: Question) -> wa.Array | str:
    """Weft's expression of a question about values, or its refusal."""
    op, *texts = question
    try:
        operands = [value(system, text) for text in texts]
    except wa.UnsupportedDType:
        return UNKNOWN
    except (PromotionError, ValueError) as error:
        return f"!{error}"
    return expression(system, op, operands)


def expression(system: Semantics, op: str, operands: Sequence[Any]) -> wa.Array | str:
    """Weft's expression of an operation, or its refusal."""
    try:
        first = next(o for o in operands if isinstance(o, wa.Array))
        if op.startswith("cast "):
            return first.astype(op.removeprefix("cast "))
        if op in ops.REDUCTIONS:
            return first.reduce(op, axis=0 if op == "cumsum" else None)
        if op == "where":
            condition = wa.asarray(np.arange(first.shape[-1]) % 2 == 0, system)
            return wa.apply(op, condition, *operands)
        return wa.apply(op, *operands)
    except wa.UnsupportedDType:
        return UNKNOWN
    except (PromotionError, ValueError) as error:
        return f"!{error}"


def value(system: Semantics, text: str) -> Any:
    """An operand that has data, or a number."""
    head, _, data = text.partition("@")
    if data:
        array = np.frombuffer(bytes.fromhex(data), dtypes.named(head.removesuffix("[]")).numpy)
        array = array.reshape(()) if head.endswith("[]") else array
        return wa.asarray(array, system)
    return {"True": True, "False": False}.get(
        text, float(text) if "." in text else int(text) if text[-1].isdigit() else 0
    )


def compute(expression: wa.Array | str, backend: str) -> NDArray[Any] | str:
    """The values of an expression, or the error they end in."""
    if isinstance(expression, str):
        return expression
    try:
        return wa.compute(expression, backend=backend)[0]
    except (ArithmeticError, ValueError, wa.UnsupportedDType) as error:
        return UNKNOWN if isinstance(error, wa.UnsupportedDType) else f"!{error}"


def agree_values(question: Question, package: str, weft: NDArray[Any] | str) -> tuple[str, str] | None:
    """None where the answers agree, else what each says."""
    if isinstance(weft, str):
        return None if package[:1] == "!" else (package.partition("@")[0], weft)
    name = weft.dtype.name
    if package[:1] == "!":
        return package, f"{name} {weft.ravel()[:4].tolist()}"
    head, _, rest = package.partition("@")
    if head.rstrip("*") != name:
        return head, name
    data, _, unfolded = rest.partition("%")
    theirs = np.frombuffer(bytes.fromhex(data), weft.dtype)
    ours = weft.ravel()
    if theirs.size != ours.size:
        return f"{head} of {theirs.size} elements", f"{ours.size} elements"
    wrong = differing(question[0], dtypes.named(name), theirs, ours)
    wrong[unknown(unfolded)] = False
    if not wrong.any():
        return None
    places = np.flatnonzero(wrong)[:4]
    return f"{head} {_shown(question, places, theirs)}", f"{_shown((), places, ours)} ({int(wrong.sum())} differ)"


def unknown(text: str) -> list[int]:
    """The elements that the package gave no value (what follows ``%`` in an answer)."""
    return [int(at) for at in text.split(",") if at]


def is_empty(answer: str) -> bool:
    """Whether an answer has no value for any element."""
    data, _, unfolded = answer.partition("@")[2].partition("%")
    dtype = dtypes.named(answer.partition("@")[0].rstrip("*")) if data else None
    return dtype is not None and len(unknown(unfolded)) * dtype.itemsize * 2 == len(data)


def _shown(question: Sequence[str], places: NDArray[Any], values: NDArray[Any]) -> str:
    """The elements at some places, with the operands that gave them."""
    sides: list[str] = []
    for text in question[1:]:
        head, _, data = text.partition("@")
        array = np.frombuffer(bytes.fromhex(data), dtypes.named(head.removesuffix("[]")).numpy) if data else None
        sides.append(text if array is None else str([array[p % array.size].item() for p in places]))
    given = f"of {', '.join(sides)}: " if sides and values.size > 1 else ""
    return f"{given}{[values[p].item() for p in places]}"


def differing(op: str, dtype: DType, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements differ by more than is allowed."""
    if not dtype.is_float:
        return np.asarray(a != b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if op not in ZEROS:
        same &= (x != 0) | (np.signbit(x) == np.signbit(y))
    if (ulps := ULPS.get(op, 0)) > 0:
        bits = np.dtype(f"i{dtype.itemsize}")
        ordered = [
            np.where(v.view(bits) < 0, bits.type(-1) * (v.view(bits) & np.iinfo(bits).max), v.view(bits))
            for v in (a, b)
        ]
        apart = np.abs(ordered[0].astype(np.float64) - ordered[1].astype(np.float64))
        same |= (apart <= ulps) & np.isfinite(x) & np.isfinite(y)
    if op in CANCELS:
        same |= np.abs(x - y) <= 8 * 2.0**-dtype.mantissa
    return ~same
