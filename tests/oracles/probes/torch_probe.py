"""PyTorch answers, eagerly."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import common
import torch

BINARY = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv},
    **{"%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor},
    **{"<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "==": operator.eq, "!=": operator.ne, "minimum": torch.minimum, "maximum": torch.maximum},
    **{"atan2": torch.atan2, "logaddexp": torch.logaddexp, "fmod": torch.fmod, "fpow": torch.float_power},
    **{"matmul": torch.matmul, "concat": lambda x, y: torch.cat([x, y]), "clamp": torch.clamp},
    **{name: getattr(torch, name) for name in ("logical_and", "logical_or", "logical_xor", "hypot", "copysign")},
    **{name: getattr(torch, name) for name in ("heaviside", "logaddexp2", "fmax", "fmin")},
    "where": lambda x, y: torch.where(mask(x, y), x, y),
}
UNARY = {
    **{"pos": torch.positive, "neg": torch.neg, "~": torch.bitwise_not, "not": torch.logical_not, "abs": torch.abs},
    **{"sign": torch.sign, "square": torch.square, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "exp": torch.exp},
    **{"exp2": torch.exp2, "log": torch.log, "log2": torch.log2, "log10": torch.log10, "sin": torch.sin},
    **{"cos": torch.cos, "tan": torch.tan, "tanh": torch.tanh, "erf": torch.special.erf, "sigmoid": torch.sigmoid},
    **{"floor": torch.floor, "ceil": torch.ceil, "real": torch.real},
    **{name: getattr(torch, name) for name in ("sum", "prod", "mean", "argmax", "argmin", "any", "all")},
    **{name: getattr(torch, name) for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")},
    **{name: getattr(torch, name) for name in ("log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan", "asinh")},
    **{name: getattr(torch, name) for name in ("acosh", "atanh", "erfc", "lgamma", "round", "trunc", "reciprocal")},
    **{"imag": torch.imag, "conj": lambda x: torch.conj(x).resolve_conj(), "angle": torch.angle},
    **{"max": torch.max, "min": torch.min, "cumsum": lambda x: torch.cumsum(x, 0)},
}
FUNCTIONS = BINARY | UNARY


def mask(x: Any, y: Any) -> torch.Tensor:
    """A condition that holds for every second element."""
    shapes = [side.shape for side in (x, y) if isinstance(side, torch.Tensor) and side.dim()]
    return torch.arange(shapes[0][-1] if shapes else 1) % 2 == 0


def operand(text: str) -> Any:
    """One operand."""
    read = common.operand(text)
    if read.kind == "number":
        return read.number
    dtype = getattr(torch, read.dtype)
    if read.kind == "constant":
        return torch.tensor(read.number, dtype=dtype)
    if read.data is None:
        return torch.ones(() if read.kind == "scalar" else (2, 2), dtype=dtype)
    return torch.frombuffer(bytearray(read.data.tobytes()), dtype=dtype).reshape(() if read.kind == "scalar" else (-1,))


ERRORS = (TypeError, ValueError, RuntimeError, OverflowError, NotImplementedError)


def apply(op: str, *operands: Any) -> torch.Tensor:
    """An operation on its operands."""
    if op.startswith("cast "):
        return operands[0].to(getattr(torch, op.removeprefix("cast ")))
    return FUNCTIONS[op](*operands)


def show(result: torch.Tensor) -> str:
    """The type and the values of a result."""
    values = common.with_data(result.reshape(-1).contiguous().view(torch.uint8).numpy())
    return str(result.dtype).removeprefix("torch.") + values


def answer(question: common.Question) -> str:
    """One answer."""
    op, *texts = question
    if op == "tree":
        return common.joined(
            n if isinstance(n, str) else show(n) for n in common.tree(question, operand, apply, ERRORS)
        )
    if op not in FUNCTIONS and not op.startswith("cast "):
        return "?"
    try:
        result = apply(op, *(operand(text) for text in texts))
    except ERRORS as error:
        return common.refusal(error)
    return show(result) if common.has_data(question) else str(result.dtype).removeprefix("torch.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    common.main(lambda _: lambda questions: map(answer, questions))
