"""The values jax 0.10.2 gave for expressions of two operands, against the meanings that promotion chose, evaluated in NumPy."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Operand
from weft.semantics.conversions import convert
from weft.semantics.evaluate import evaluate
from weft.semantics.systems.jax import jax_0_10

VALUES = Path(__file__).parents[1] / "golden" / "jax_promotion" / "values.csv"
ARRAY = r"jnp\.(?P<{0}>\w+)\((?P<{0}v>[^()]+|\([^()]*\))\)"
NUMBER = r"\(?(?P<{0}n>-?[\d.e*]+|True|0x[\dA-F]+)\)?"
OP = r"(?P<op>//|\*\*|<<|>>|==|[-+*/%<])"
PAIR = re.compile(f"^{ARRAY.format('a')}{OP}(?:{ARRAY.format('b')}|{NUMBER.format('b')})$")


def operand(match: re.Match[str], side: str) -> tuple[Operand, Any]:
    """What promotion sees of one side, and its number."""
    if (name := match.group(side)) is not None:
        text = match.group(f"{side}v")
        return dtypes.named(name.rstrip("_")), math.nan if "nan" in text else eval(text)
    value = eval(match.group(f"{side}n"))
    return value, value


def array(seen: Operand, value: Any, target: DType) -> Any:
    """One side converted to the type the operation is done in."""
    if not isinstance(seen, DType):
        return np.asarray(jax_0_10.number(value, target)).astype(target.numpy)
    return convert("convert", np.asarray(value).astype(seen.numpy), target)


def test_values_of_two_operands() -> None:
    checked = 0
    wrong: list[str] = []
    with VALUES.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        match = PAIR.match(row["expression"])
        if match is None or not row["dtype64"] or re.search("arange|array", row["expression"]):
            continue
        (a, x), (b, y) = operand(match, "a"), operand(match, "b")
        promotion = jax_0_10.binary(match.group("op"), a, b)
        with np.errstate(over="ignore"):
            found = evaluate(promotion.meaning, array(a, x, promotion.operands), array(b, y, promotion.operands))
            result = found if promotion.result.is_bool else convert("convert", found, promotion.result)
        expected = eval(row["value64"], {"inf": math.inf, "nan": math.nan})
        got = np.asarray(result).astype(object).item()
        checked += 1
        if repr(got) != repr(expected):  # NaN is itself, and -0.0 is not 0.0
            wrong.append(f"{row['expression']} = {got}, recorded {expected}")
    assert not wrong
    assert checked >= 75
