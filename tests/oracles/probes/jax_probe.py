"""JAX answers: types come of one abstract trace for many questions, values of eager evaluation."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import common
import jax
import jax.numpy as jnp
import numpy as np

BINARY = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv},
    **{"%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor},
    **{"<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "==": operator.eq, "!=": operator.ne, "minimum": jnp.minimum, "maximum": jnp.maximum},
    **{"atan2": jnp.arctan2, "logaddexp": jnp.logaddexp, "fmod": jnp.fmod, "fpow": jnp.float_power},
    **{"matmul": operator.matmul, "concat": lambda x, y: jnp.concatenate([x, y]), "clamp": jnp.clip},
    **{name: getattr(jnp, name) for name in ("logical_and", "logical_or", "logical_xor", "hypot", "copysign")},
    **{name: getattr(jnp, name) for name in ("heaviside", "logaddexp2", "fmax", "fmin")},
    "where": lambda x, y: jnp.where(jnp.arange((jnp.shape(x) or jnp.shape(y) or (1,))[-1]) % 2 == 0, x, y),
}
UNARY = {
    **{"pos": operator.pos, "neg": operator.neg, "~": operator.invert, "not": jnp.logical_not, "abs": jnp.abs},
    **{"fabs": jnp.fabs, "sign": jnp.sign, "square": jnp.square, "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt},
    **{"cbrt": jnp.cbrt, "exp": jnp.exp, "exp2": jnp.exp2, "log": jnp.log, "log2": jnp.log2, "log10": jnp.log10},
    **{"sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "tanh": jnp.tanh, "erf": jax.scipy.special.erf},
    **{"sigmoid": jax.nn.sigmoid, "floor": jnp.floor, "ceil": jnp.ceil, "real": jnp.real},
    **{name: getattr(jnp, name) for name in ("sum", "prod", "mean", "max", "min", "argmax", "argmin")},
    **{name: getattr(jnp, name) for name in ("cumsum", "any", "all")},
    **{name: getattr(jnp, name) for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")},
    **{name: getattr(jnp, name) for name in ("log1p", "expm1", "sinh", "cosh", "rint", "round", "trunc", "reciprocal")},
    **{f"a{name}": getattr(jnp, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{"erfc": jax.scipy.special.erfc, "lgamma": jax.scipy.special.gammaln},
    **{name: getattr(jnp, name) for name in ("imag", "conj", "angle")},
}
FUNCTIONS = BINARY | UNARY


def call(question: common.Question, arrays: dict[str, Any]) -> Any:
    """The operation on its operands; arrays are looked up by their text."""
    op, *texts = question
    return apply(op, *(operand(text, arrays) for text in texts))


ERRORS = (TypeError, ValueError, OverflowError, NotImplementedError, AttributeError)


def apply(op: str, *operands: Any) -> Any:
    """An operation on its operands."""
    return operands[0].astype(op.removeprefix("cast ")) if op.startswith("cast ") else FUNCTIONS[op](*operands)


def operand(text: str, arrays: dict[str, Any]) -> Any:
    """One operand."""
    if text in arrays:
        return arrays[text]
    read = common.operand(text)
    if read.kind == "number":
        return read.number
    if read.kind in ("constant", "numpy"):
        return common.dtype(read.dtype).type(read.number)
    return jnp.asarray(common.array(read))


def abstract(text: str) -> Any:
    """An array of a trace, or None for what is none."""
    read = common.operand(text)
    if read.kind not in ("array", "scalar", "weak"):
        return None
    shape = () if read.kind == "scalar" else (2, 2)
    dtype = jax.dtypes.canonicalize_dtype(common.dtype(read.dtype))
    return jax.ShapeDtypeStruct(shape, dtype, weak_type=read.kind == "weak")


def show(result: Any) -> str:
    """The type of a result."""
    return f"{result.dtype}{'*' * bool(getattr(result, 'weak_type', False))}"


def answers(questions: list[common.Question]) -> list[str]:
    """The types of all that have no values, in one trace; the others one by one."""
    texts = {text for question in questions for text in question[1:] if not common.has_data(question)}
    arrays = {text: array for text in sorted(texts) if (array := abstract(text)) is not None}
    found: list[str] = []

    def answer(question: common.Question, arrays: dict[str, Any]) -> str:
        if question[0] == "tree":
            nodes = common.tree(question, lambda text: operand(text, {}), apply, ERRORS)
            return common.joined(n if isinstance(n, str) else show(n) + common.with_data(np.asarray(n)) for n in nodes)
        if question[0] not in FUNCTIONS and not question[0].startswith("cast "):
            return "?"
        try:
            result = call(question, arrays)
            if not common.has_data(question):
                return show(result)
            return show(result) + common.with_data(np.asarray(result))
        except ERRORS as error:
            return common.refusal(error)
        except jax.errors.JaxRuntimeError:  # typed, and XLA has no code for it: erfc of float8
            return "?"

    def trace(arrays: dict[str, Any]) -> None:
        for question in questions:
            found.append("" if common.has_data(question) else answer(question, arrays))

    jax.eval_shape(trace, arrays)
    return [text or answer(question, {}) for text, question in zip(found, questions, strict=True)]


def variant(name: str) -> common.Answers:
    """A configuration by the name of weft's system."""
    jax.config.update("jax_enable_x64", "x32" not in name)
    jax.config.update("jax_numpy_dtype_promotion", "strict" if "strict" in name else "standard")
    return answers


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    common.main(variant)
