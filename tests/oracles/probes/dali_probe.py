"""DALI answers: pipelines on the CPU with as many questions as there are outputs, halved where one of them fails."""

from __future__ import annotations

import operator
from typing import Any

import common
import numpy as np
from nvidia.dali import fn, math, pipeline_def, types

BINARY = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv},
    **{"%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor},
    **{"<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "==": operator.eq, "!=": operator.ne, "minimum": math.min, "maximum": math.max},
    **{"atan2": math.atan2, "fpow": math.fpow, "concat": lambda x, y: fn.cat(x, y), "clamp": math.clamp},
}
UNARY = {
    **{"pos": operator.pos, "neg": operator.neg, "~": operator.invert, "abs": math.abs, "fabs": math.fabs},
    **{name: getattr(math, name) for name in ("sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10")},
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "tanh", "floor", "ceil")},
    **{name: getattr(math, name) for name in ("sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh")},
    **{name: getattr(fn.reductions, name) for name in ("sum", "mean", "max", "min")},
}
FUNCTIONS = BINARY | UNARY
ENUMS = {"float32": types.FLOAT, "bool": types.BOOL}
NAMES = {"float": "float32"}


def enum(name: str) -> Any:
    """DALI's name of a dtype."""
    return ENUMS.get(name) or getattr(types, name.upper())


def operand(text: str, inputs: dict[str, Any]) -> Any:
    """One operand, inside a pipeline."""
    if text in inputs:
        return inputs[text]
    read = common.operand(text)
    if read.kind == "number":
        return read.number
    if read.kind == "numpy":
        return common.dtype(read.dtype).type(read.number)
    if read.kind == "constant":
        return types.Constant(read.number, enum(read.dtype))
    array = common.array(read)
    inputs[text] = fn.external_source(source=lambda: [array], batch=True)
    return inputs[text]


def build(question: common.Question, inputs: dict[str, Any]) -> Any:
    """A question in a pipeline."""
    op, *texts = question
    if op == "tree":
        return list(common.tree(question, lambda text: operand(text, inputs), apply, (Exception,)))
    return apply(op, *(operand(text, inputs) for text in texts))


def apply(op: str, *operands: Any) -> Any:
    """An operation on its operands, inside a pipeline."""
    if op.startswith("cast "):
        return fn.cast(operands[0], dtype=enum(op.removeprefix("cast ")))
    return FUNCTIONS[op](*operands)


def run(questions: list[common.Question]) -> list[str]:
    """The answers of a pipeline; raises what one of its questions raises while it runs."""
    answers: dict[int, str] = {}
    asked: list[int] = []
    parts: dict[int, list[str]] = {}

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline() -> Any:
        inputs: dict[str, Any] = {}
        results: list[Any] = []
        for number, question in enumerate(questions):
            try:
                built = build(question, inputs)
                nodes = built if isinstance(built, list) else [built]
                parts[number] = [node if isinstance(node, str) else "" for node in nodes]
                fine = [node for node in nodes if not isinstance(node, str)]
                results.extend(fine)
                asked.extend([number] * len(fine))
            except Exception as error:  # whatever the package raises is its answer
                answers[number] = refusal(error)
        return tuple(results) or fn.external_source(source=lambda: [np.ones(1)], batch=True)

    built = pipeline()
    built.build()
    for number, output in zip(asked, built.run(), strict=False):
        name = str(output.dtype).rsplit(".", 1)[-1].lower()
        values = common.with_data(np.array(output[0])) if common.has_data(questions[number]) else ""
        parts[number][parts[number].index("")] = NAMES.get(name, name) + values
    return [answers.get(number) or common.joined(parts[number]) for number in range(len(questions))]


def refusal(error: Exception) -> str:
    """DALI's errors bury their reason in lines about the pipeline."""
    words = ("Assert", "out of range", "upported", "Invalid type", "cannot", "same", "division by zero", "not support")
    lines = [line.strip() for line in str(error).splitlines() if any(word in line for word in words)]
    return f"!{type(error).__name__}: {lines[0][-200:]}" if lines else common.refusal(error)


def answers(questions: list[common.Question]) -> list[str]:
    """The answers of all; those that are known to fail while a pipeline runs alone, the others by halves where one fails."""
    known = [q[0] in FUNCTIONS or q[0] == "tree" or q[0].startswith("cast ") for q in questions]
    alone = [any("float16" in text for text in q) or all("bool" in text for text in q[1:]) for q in questions]
    together = iter(_split([q for q, k, a in zip(questions, known, alone, strict=True) if k and not a]))
    return [
        "?" if not k else _split([q])[0] if a else next(together)
        for q, k, a in zip(questions, known, alone, strict=True)
    ]


def _split(questions: list[common.Question]) -> list[str]:
    if not questions:
        return []
    try:
        return run(questions)
    except Exception as error:
        if len(questions) == 1:
            return [refusal(error)]
    middle = len(questions) // 2
    return _split(questions[:middle]) + _split(questions[middle:])


if __name__ == "__main__":
    common.main(lambda _: answers)
