"""How a reduction is spelled in a generated kernel: where it starts, how it takes an element in, how its tile becomes one value.

Narrow floats accumulate in float32 and are rounded once. ``argmax`` and ``argmin`` carry the best element and its index; NaN
counts as better than any number, and of equals the first wins, as in NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from weft import dtypes
from weft.array.expression.nodes import SCANS, Reduce
from weft.dtypes import DType
from weft.semantics import Number

_TAKE: Final[dict[str, str]] = {
    "sum": "{} + {}",
    "prod": "{} * {}",
    "max": "tl.maximum({}, {})",
    "min": "tl.minimum({}, {})",
    "max_nan": 'tl.meaning("maximum_nan", {}, {})',
    "min_nan": 'tl.meaning("minimum_nan", {}, {})',
    "any": "{} | {}",
    "all": "{} & {}",
}
_ACROSS: Final[dict[str, str]] = {
    "sum": "tl.sum({}, axis={})",
    "prod": "tl.reduce({}, {}, multiply)",
    "max": "tl.max({}, axis={})",
    "min": "tl.min({}, axis={})",
    "max_nan": "tl.reduce({}, {}, maximum_nan)",
    "min_nan": "tl.reduce({}, {}, minimum_nan)",
    "any": "(tl.max({}.to(tl.int32), axis={}) != 0)",
    "all": "(tl.min({}.to(tl.int32), axis={}) != 0)",
}
HELPERS: Final[dict[str, str]] = {
    "prod": "@weft.jit\ndef multiply(a, b):\n    return a * b\n",
    "max_nan": '@weft.jit\ndef maximum_nan(a, b):\n    return tl.meaning("maximum_nan", a, b)\n',
    "min_nan": '@weft.jit\ndef minimum_nan(a, b):\n    return tl.meaning("minimum_nan", a, b)\n',
}
"""The functions that `across` names, by the meaning that needs them."""

NOWHERE: Final = (1 << 63) - 1
"""The index of nothing."""


def spelled(dtype: DType) -> str:
    """A dtype's name in the kernel language."""
    return f"tl.{'int1' if dtype.is_bool else dtype.name}"


def converted(value: str, dtype: DType, meaning: str = "convert") -> str:
    """A value in another dtype. Kernels' own conversions to float8 saturate, those of `weft.semantics` do not."""
    if meaning == "convert" and not (dtype.bits == 8 and dtype.is_float):
        return f"{value}.to({spelled(dtype)})"
    return f'tl.meaning("{meaning}", {value}, {spelled(dtype)})'


def literal(value: Number, dtype: DType) -> str:
    """A number of the kernel, in its dtype."""
    text = f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)
    return f"tl.full((), {text}, {spelled(dtype)})"


def slot_dtype(dtype: DType) -> DType:
    """The type in which a kernel takes a number of ``dtype`` as an argument; it holds every value of it."""
    if dtype.is_float:
        return dtypes.float64 if dtype.bits == 64 else dtypes.float32
    if dtype.bits < 32 or dtype == dtypes.int32:
        return dtypes.int32
    return dtypes.uint64 if dtype == dtypes.uint64 else dtypes.int64


def received(name: str, dtype: DType) -> str:
    """A number that the kernel takes as the argument ``name``, in its dtype."""
    if dtype.is_float and dtype.bits == 8:  # others' conversions saturate
        return f'tl.meaning("convert", tl.full((), {name}, tl.float32), {spelled(dtype)})'
    return f"tl.full((), {name}, {spelled(dtype)})"


@dataclass(frozen=True)
class Reduction:
    """One reduction: ``name`` prefixes its variables."""

    node: Reduce
    name: str

    @property
    def meaning(self) -> str:
        """The reduction's meaning; of an ``argmax``, that of the best element, of a scan that of its last element."""
        meaning = SCANS.get(self.node.meaning, self.node.meaning)
        return {"argmax": "max_nan", "argmin": "min_nan"}.get(meaning, meaning)

    @property
    def index(self) -> str | None:
        """The variable of the best element's index, where that is what is asked for."""
        return f"{self.name}_at" if self.node.meaning.startswith("arg") else None

    @property
    def dtype(self) -> DType:
        """The type elements are accumulated in."""
        dtype = self.node.source.dtype
        return dtypes.float32 if dtype.is_float and dtype.bits < 32 else dtype

    @property
    def neutral(self) -> Number:
        """What changes nothing."""
        match self.meaning:
            case "max" | "max_nan":
                return -math.inf if self.dtype.is_float else self.dtype.min
            case "min" | "min_nan":
                return math.inf if self.dtype.is_float else self.dtype.max
            case "prod":
                return 1.0 if self.dtype.is_float else 1
            case "all":
                return True
            case "any":
                return False
            case _:
                return 0.0 if self.dtype.is_float else 0

    def element(self, value: str) -> str:
        """An element of the source in the accumulator's type."""
        return value if self.dtype == self.node.source.dtype else f"{value}.to({spelled(self.dtype)})"

    def start(self, shape: str) -> list[str]:
        """The lines before the loop; ``shape`` is the accumulator's."""
        number = literal(self.neutral, self.dtype)[len("tl.full((), ") :]
        lines = [f"{self.name} = tl.full({shape}, {number}"]
        return [*lines, f"{self.index} = tl.full({shape}, {NOWHERE}, tl.int64)"] if self.index else lines

    def take(self, value: str, inside: str | None, index: str) -> list[str]:
        """The lines that take in ``value``, where ``inside`` holds (None: everywhere); ``index`` is where it stands."""
        if self.index is None:
            element = self.element(value)
            if inside is not None:
                element = f"tl.where({inside}, {element}, {literal(self.neutral, self.dtype)})"
            return [f"{self.name} = {_TAKE[self.meaning].format(self.name, element)}"]
        new, better = f"{self.name}_new", f"{self.name}_better"
        beats = f"({new} {'>' if self.meaning == 'max_nan' else '<'} {self.name})"
        nan = f" | (({new} != {new}) & ({self.name} == {self.name}))" if self.dtype.is_float else ""
        condition = f"({beats}{nan} | ({self.index} == {NOWHERE}))" + (f" & {inside}" if inside else "")
        return [
            f"{new} = {self.element(value)}",
            f"{better} = {condition}",
            f"{self.name} = tl.where({better}, {new}, {self.name})",
            f"{self.index} = tl.where({better}, {index}, {self.index})",
        ]

    def across(self, axis: int) -> str:
        """The value of the whole accumulator, reduced along its last dimension."""
        if self.index is None:
            return _ACROSS[self.meaning].format(self.name, axis)
        best = f"{_ACROSS[self.meaning].format(self.name, axis)}{'[:, None]' if axis else ''}"
        chosen = f"({self.name} == {best})" + (f" | ({self.name} != {self.name})" if self.dtype.is_float else "")
        return f"tl.min(tl.where({chosen}, {self.index}, {NOWHERE}), axis={axis})"

    def result(self, value: str) -> str:
        """The reduced value in the node's dtype."""
        return converted(value, self.node.dtype)
