"""Layouts as words of a command line.

    {register: [(0,1)], lane: [(1,0)]} -> [dim0: 2, dim1: 2]                  what `LinearLayout.parse` reads, one word
    blocked 64x64 size=1,4 threads=8,4 warps=4,1 order=1,0                     a family, a shape, its parameters
    sliced dim=1 blocked 64x64 size=1,4 threads=8,4 warps=4,1 order=1,0        what has a parent has it after its parameters
    '#ttg.blocked<{sizePerThread = [1, 4], ...}>' 64x64                        Triton's or Gluon's spelling, and a shape

One table lists the functions, and their signatures say what they take, so that a family needs no parser of its own. A
parameter's name may be shortened while it is unambiguous, lists are ``1,4``, bases ``1,0/0,1``. A word that begins a layout
ends the one before, so several need no separator.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft import layout as layouts
from weft.layout import LinearLayout
from weft.layout.interop.encodings import parse_encoding

FAMILIES: Final[dict[str, Callable[..., LinearLayout]]] = {
    "blocked": layouts.blocked,
    "blocked_operand": layouts.blocked_operand,
    "vector": layouts.vector,
    "mma": layouts.nvidia_mma,
    "mma_operand": layouts.nvidia_mma_operand,
    "mfma": layouts.amd_mfma,
    "mfma_operand": layouts.amd_mfma_operand,
    "wmma": layouts.amd_wmma,
    "wmma_operand": layouts.amd_wmma_operand,
    "dpas": layouts.intel_dpas,
    "dpas_operand": layouts.intel_dpas_operand,
    "unswizzled": layouts.unswizzled,
    "swizzled": layouts.mma_swizzled,
    "nvmma_shared": layouts.nvmma_shared,
    "linear_memory": layouts.linear_memory,
    "tensor_memory": layouts.tensor_memory,
    "tensor_memory_scales": layouts.tensor_memory_scales,
    "sliced": layouts.sliced,
    "trans": layouts.trans,
    "reshape": layouts.reshape,
    "expand_dims": layouts.expand_dims,
    "broadcast": layouts.broadcast,
    "reduce": layouts.reduce,
}
"""Each family, or operation on a layout that follows, by the word that begins it."""

_SHAPE: Final = re.compile(r"\d+(x\d+)*")
_ENCODING: Final = re.compile(r"#|[A-Z]\w*\(")


def read_layouts(words: Sequence[str]) -> list[LinearLayout]:
    """The layouts that the words spell, in order; `ValueError` for what cannot be read."""
    reader = _Reader(words)
    found: list[LinearLayout] = []
    while reader.words:
        found.append(reader.layout())
    return found


def usage(name: str) -> str:
    """How a family is written: ``blocked SHAPE size_per_thread=N,N ...``."""
    parts = [name]
    layout_after = ""
    for parameter in inspect.signature(FAMILIES[name]).parameters.values():
        if parameter.annotation == "LinearLayout":
            layout_after = " LAYOUT"
        elif parameter.name == "shape" and not layout_after:
            parts.append("SHAPE")
        else:
            optional = parameter.default is not parameter.empty
            example = f"{parameter.name}={_EXAMPLES[_kind(parameter)]}"
            parts.append(f"[{example}]" if optional else example)
    return " ".join(parts) + layout_after


_EXAMPLES: Final = {"ints": "N,N", "int": "N", "bool": "true", "bases": "N,N/N,N"}
_KINDS: Final = {"Sequence[int]": "ints", "tuple[int, int]": "ints", "int": "int", "bool": "bool", "Bases": "bases"}


def _kind(parameter: inspect.Parameter) -> str:
    return _KINDS[str(parameter.annotation).removesuffix(" | None")]


class _Reader:
    def __init__(self, words: Sequence[str]) -> None:
        self.words: list[str] = []
        for word in words:
            stripped = word.strip()
            whole = stripped.startswith("{") or _ENCODING.match(stripped)
            self.words += [stripped] if whole else stripped.split()

    def layout(self) -> LinearLayout:
        """The next layout."""
        word = self.words.pop(0)
        if word.startswith("{"):
            return LinearLayout.parse(word)
        if _ENCODING.match(word):
            return self._encoding(word)
        if word not in FAMILIES:
            named = {function.__name__: name for name, function in FAMILIES.items()}
            if word not in named:
                near = difflib.get_close_matches(word, [*FAMILIES, *named], n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(FAMILIES)}"
                raise ValueError(f"unknown layout '{word}'; {hint}")
            word = named[word]
        return self._family(word)

    def _encoding(self, word: str) -> LinearLayout:
        """A textual encoding; the shape is the next word, or the end of this one."""
        text, _, last = word.rpartition(" ")
        if not text or not _SHAPE.fullmatch(last):
            if not self.words or not _SHAPE.fullmatch(self.words[0]):
                raise ValueError(f"an encoding has no shape: write it after '{word[:40]}', as in 64x64")
            text, last = word, self.words.pop(0)
        return parse_encoding(text).layout(_ints("shape", last))

    def _family(self, name: str) -> LinearLayout:
        parameters = inspect.signature(FAMILIES[name]).parameters
        parent = next((p for p in parameters.values() if p.annotation == "LinearLayout"), None)
        given: dict[str, Any] = {}
        while self.words and (
            ("=" in self.words[0] and self.words[0][0] not in "{#") or _SHAPE.fullmatch(self.words[0])
        ):
            word = self.words.pop(0)
            key, _, value = ("shape", "", word) if _SHAPE.fullmatch(word) else word.partition("=")
            parameter = self._parameter(name, key, [p for p in parameters.values() if p is not parent])
            if parameter.name in given:
                raise ValueError(f"{name}: {parameter.name} is given twice")
            given[parameter.name] = _value(f"{name}: {parameter.name}", _kind(parameter), value)
        if parent is not None:
            if not self.words:
                raise ValueError(f"{name}: the layout it is made of is missing; write {usage(name)}")
            given[parent.name] = self.layout()
        missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in given]
        if missing:
            raise ValueError(f"{name}: {missing[0]} is missing; write {usage(name)}")
        return FAMILIES[name](**given)

    @staticmethod
    def _parameter(name: str, key: str, parameters: Sequence[inspect.Parameter]) -> inspect.Parameter:
        """The parameter that ``key`` names or begins."""
        begun = [p for p in parameters if p.name == key] or [p for p in parameters if key and p.name.startswith(key)]
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise ValueError(f"{name}: '{key}' may be {' or '.join(p.name for p in begun)}")
        names = [p.name for p in parameters]
        near = difflib.get_close_matches(key, [*names, *(n.partition("_")[0] for n in names)], n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(names)}"
        raise ValueError(f"{name} has no parameter '{key}'; {hint}")


def _value(what: str, kind: str, text: str) -> Any:
    if kind == "ints":
        return _ints(what, text)
    if kind == "bases":
        return [_ints(what, basis) for basis in text.split("/")] if text else []
    if kind == "bool":
        if text.lower() not in ("true", "false", "0", "1"):
            raise ValueError(f"{what} is '{text}', expected true or false")
        return text.lower() in ("true", "1")
    found = _ints(what, text)
    if len(found) != 1:
        raise ValueError(f"{what} is '{text}', expected one number")
    return found[0]


def _ints(what: str, text: str) -> tuple[int, ...]:
    """``1,4``, ``64x64``, or nothing for no numbers."""
    parts = re.split("[,x]", text) if text else []
    if not all(re.fullmatch(r"-?\d+", part) for part in parts):
        raise ValueError(f"{what} is '{text}', expected numbers like 1,4 or 64x64")
    return tuple(map(int, parts))
