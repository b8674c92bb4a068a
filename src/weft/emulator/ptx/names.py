"""Names of functions in debug information: found by label in ``.debug_str``, and read from their mangled form.

``.loc ... function_name $L__info_string1+12`` names a function by a place among the zero-terminated strings of the section
``.debug_str``, which stands at the end of a module. C++ names are mangled (Itanium C++ ABI); a message needs the name alone, so
that parameters and template arguments are dropped:

    _ZN4util4readIfEET_PKS1_i      util::read
    _Z5twiceRKN4util4TileEi        twice
    attention                      attention

A name with parts that are not read here (operators, lambdas) stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

_SECTION: Final = re.compile(r"\.section\s+\.debug_str\s*\{(.*?)\}", re.DOTALL)
_COMMENT: Final = re.compile(r"//[^\n]*")
_PIECE: Final = re.compile(r"([\w$]+)\s*:|\.b8\s+([\d,\s]+)")


class FunctionNames:
    """The strings of a module, by label."""

    def __init__(self, text: str) -> None:
        self._bytes = bytearray()
        self._labels: dict[str, int] = {}
        section = _SECTION.search(text) if "function_name" in text else None
        for label, numbers in _PIECE.findall(_COMMENT.sub("", section[1])) if section else ():
            if label:
                self._labels[label] = len(self._bytes)
            else:
                self._bytes += bytes(int(number) & 255 for number in numbers.replace(",", " ").split())

    def at(self, label: str, offset: int) -> str:
        """The name of the function at a place; "" where there is none."""
        if label not in self._labels:
            return ""
        start = self._labels[label] + offset
        end = self._bytes.find(0, start)
        found = self._bytes[start : end if end >= 0 else None]
        return unmangled(found.decode("utf-8", "replace"))


def unmangled(name: str) -> str:
    """The qualified name in a mangled one, without arguments."""
    match = re.match(r"_ZL?(N[rVK]*)?", name)
    if match is None:
        return name
    parts, at = _parts(name, match.end(), nested=match[1] is not None)
    return "::".join(parts) if at else name


def _parts(name: str, at: int, nested: bool) -> tuple[list[str], int]:
    """The parts of a name, and where it ends; 0 where something in it is not read."""
    parts: list[str] = []
    while at < len(name):
        if name.startswith("St", at) and not parts:
            parts.append("std")
            at += 2
        elif name[at] == "L":  # internal linkage
            at += 1
        elif name[at].isdigit():
            (digits,) = re.findall(r"\d+", name[at:])[:1]
            at += len(digits)
            word = name[at : at + int(digits)]
            at += int(digits)
            if not word.startswith("_INTERNAL_"):  # of a file
                parts.append("(anonymous)" if word.startswith("_GLOBAL__N") else word)
            if not nested:
                return parts, at
        elif name[at] == "I" and parts:
            at = _behind_arguments(name, at)
            if not at:
                return [], 0
        elif name[at] in "CD" and name[at + 1 : at + 2].isdigit() and parts:
            parts.append(("~" if name[at] == "D" else "") + parts[-1])
            at += 2
        elif name[at] == "E" and nested and parts:
            return parts, at
        else:
            return [], 0
    return [], 0


def _behind_arguments(name: str, at: int) -> int:
    """Where template arguments that begin here end; 0 if they do not."""
    depth = 0
    while at < len(name):
        if literal := re.match(r"L[a-z]n?\d+E", name[at:]):
            at += literal.end()
        elif name.startswith("LN", at):  # of an enumeration
            at = _behind_arguments(name, at + 1)
            value = re.match(r"n?\d+E", name[at:])
            if not at or value is None:
                return 0
            at += value.end()
        elif name[at].isdigit():
            digits = re.findall(r"\d+", name[at:])[0]
            at += len(digits) + int(digits)
        elif substitution := re.match(r"S[0-9A-Z]*_|T[0-9]*_|S[a-z]", name[at:]):
            at += substitution.end()
        else:
            depth += (name[at] in "INJFXL") - (name[at] == "E")
            at += 1
            if not depth:
                return at
    return 0
