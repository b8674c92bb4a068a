"""NumPy with ml_dtypes answers, eagerly."""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np

FUNCTIONS = {
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide},
    **{"%": np.remainder, "**": np.power, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor},
    **{"<<": np.left_shift, ">>": np.right_shift, "<": np.less, "<=": np.less_equal, ">": np.greater},
    **{">=": np.greater_equal, "==": np.equal, "!=": np.not_equal, "minimum": np.minimum, "maximum": np.maximum},
    **{"atan2": np.arctan2, "logaddexp": np.logaddexp, "fmod": np.fmod, "fpow": np.float_power},
    **{"matmul": np.matmul, "concat": lambda x, y: np.concatenate([x, y]), "clamp": np.clip},
    "where": lambda x, y: np.where(np.arange((np.shape(x) or np.shape(y) or (1,))[-1]) % 2 == 0, x, y),
    **{"pos": np.positive, "neg": np.negative, "~": np.invert, "not": np.logical_not, "abs": np.absolute},
    **{"fabs": np.fabs, "sign": np.sign, "square": np.square, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp},
    **{"exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos},
    **{"tan": np.tan, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "real": np.real},
    **{name: getattr(np, name) for name in ("sum", "prod", "mean", "max", "min", "argmax", "argmin")},
    **{name: getattr(np, name) for name in ("cumsum", "any", "all")},
    **{name: getattr(np, name) for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")},
    **{name: getattr(np, name) for name in ("log1p", "expm1", "sinh", "cosh", "rint", "round", "trunc", "reciprocal")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, name) for name in ("imag", "conj", "angle", "logical_and", "logical_or", "logical_xor")},
    **{name: getattr(np, name) for name in ("hypot", "copysign", "heaviside", "logaddexp2", "fmax", "fmin")},
}


def operand(text: str) -> Any:
    """One operand."""
    read = common.operand(text)
    if read.kind == "number":
        return read.number
    if read.kind in ("constant", "numpy"):
        return common.dtype(read.dtype).type(read.number)
    return common.array(read)


ERRORS = (TypeError, ValueError, OverflowError, NotImplementedError)


def apply(op: str, *operands: Any) -> np.ndarray:
    """An operation on its operands."""
    if op.startswith("cast "):
        return operands[0].astype(common.dtype(op.removeprefix("cast ")))
    return np.asarray(FUNCTIONS[op](*operands))


def answer(question: common.Question) -> str:
    """One answer."""
    op, *texts = question
    if op == "tree":
        nodes = common.tree(question, operand, apply, ERRORS)
        return common.joined(n if isinstance(n, str) else f"{n.dtype}{common.with_data(n)}" for n in nodes)
    if op not in FUNCTIONS and not op.startswith("cast "):
        return "?"
    try:
        result = apply(op, *(operand(text) for text in texts))
    except ERRORS as error:
        return common.refusal(error)
    return str(result.dtype) + (common.with_data(result) if common.has_data(question) else "")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    common.main(lambda _: lambda questions: map(answer, questions))
