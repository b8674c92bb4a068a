"""What the probes share: how questions are read and answers written. Imports NumPy alone, for a probe has nothing of weft's.

A question is ``[op, operand, ...]``, an operand is text:

===================== =================================================
``int8``              an array of ones, of shape (2, 2)
``int8@0102``         an array with these bytes, in hexadecimal
``int8[]``            the same without dimensions
``i*`` ``f*`` ``c*``  JAX's weakly typed arrays
``3`` ``2.5`` ``nan`` a number of Python
``9:uint8``           a constant whose type is chosen
``~9:uint8``          a scalar of NumPy
===================== =================================================

An answer is ``int8``, ``int8*`` where the result is weak, ``int8@0102`` with its values where the question had some,
``!message`` for a refusal, ``?`` for an operation that the probe does not have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Question = list[str]
Answers = Callable[[list[Question]], Iterable[str]]


@dataclass(frozen=True)
class Operand:
    """An operand: ``kind`` is ``array``, ``scalar``, ``weak``, ``number``, ``constant`` or ``numpy``."""

    kind: str
    dtype: str = ""
    data: np.ndarray | None = None
    number: Any = None


WEAK = {"i*": "int64", "f*": "float64", "c*": "complex128"}
NUMBERS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "True": True, "False": False}


def dtype(name: str) -> np.dtype:
    """The NumPy dtype of that name, of ml_dtypes too."""
    import ml_dtypes

    return np.dtype("bool" if name == "bool" else getattr(ml_dtypes, name, None) or name)


def number(text: str) -> Any:
    """A Python number, or None."""
    if text in NUMBERS:
        return NUMBERS[text]
    for read in (int, float, complex):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def operand(text: str) -> Operand:
    """An operand from its text."""
    head, _, data = text.partition("@")
    if head in WEAK:
        return Operand("weak", WEAK[head])
    if ":" in head:
        value, _, name = head.partition(":")
        return Operand("numpy" if value[0] == "~" else "constant", name, number=number(value.lstrip("~")))
    if (value := number(head)) is not None:
        return Operand("number", number=value)
    kind, name = ("scalar", head[:-2]) if head.endswith("[]") else ("array", head)
    return Operand(kind, name, np.frombuffer(bytes.fromhex(data), dtype(name)).copy() if data else None)


def array(read: Operand) -> np.ndarray:
    """The array of an operand."""
    if read.data is not None:
        return read.data.reshape(()) if read.kind == "scalar" else read.data
    return np.ones(() if read.kind == "scalar" else (2, 2), dtype(read.dtype))


def has_data(question: Question) -> bool:
    """Whether the values of the result are asked for."""
    return any("@" in text for text in question[1:])


def tree(
    question: Question, leaf: Callable[[str], Any], apply: Callable[..., Any], errors: tuple[type[BaseException], ...]
) -> Iterator[Any]:
    """The value of each node of a tree (`oracles/trees.py` has its form), as far as none raises; then that refusal."""
    _, program, *leaves = question
    values: dict[str, Any] = {f"x{at}": leaf(text) for at, text in enumerate(leaves)}
    for at, node in enumerate(program.split(";")):
        op, *operands = node.split(" ")
        try:
            result = apply(op.replace(",", " "), *(values[o] if o in values else number(o[1:]) for o in operands))
        except errors as error:
            yield refusal(error)
            return
        values[f"n{at}"] = result
        yield result


def joined(answers: Iterable[str]) -> str:
    """The answers of a tree's nodes as one; ``;`` stands between them."""
    return ";".join(answer.replace(";", ",") if answer.startswith("!") else answer for answer in answers)


def with_data(result: np.ndarray) -> str:
    """The values, as an answer has them after ``@``."""
    return "@" + np.ascontiguousarray(result).tobytes().hex()


def refusal(error: BaseException) -> str:
    """An error as an answer: the first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"!{type(error).__name__}: {lines[0][:160] if lines else ''}"


def main(variants: Callable[[str], Answers]) -> None:
    """``probe.py QUESTIONS ANSWERS``: one line of answer for each question, written as they come."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Path(sys.argv[2]).open("w", encoding="utf-8") as out:
        for answer in _answers(variants(request["variant"]), request["questions"], request["batch"]):
            out.write(json.dumps(answer) + "\n")
            out.flush()


def _answers(answer: Answers, questions: list[Question], batch: int) -> Iterator[str]:
    for start in range(0, len(questions), batch):
        yield from answer(questions[start : start + batch])
