"""Whole modules that compilers emitted: all of it is read, nothing twice. What a module holds is counted by cutting its text at
semicolons, which knows nothing of PTX but that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator_programs import PROGRAMS
from weft.emulator.ptx import parse
from weft.emulator.ptx.syntax import Instruction

FIXTURES = sorted(PROGRAMS.glob("*.ptx"))
NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*\.(?:loc|file)\b[^\n]*", re.DOTALL | re.MULTILINE)
"""Comments and line information."""


def statements(text: str) -> list[str]:
    """The text's instructions, on one line each: what stands before a semicolon, behind labels and braces; no directives."""
    text = NOISE.sub("", text).partition("\t.section")[0]
    found: list[str] = []
    for piece in text.split(";"):
        statement = " ".join(re.sub(r"^(?:\s|[{}](?!\s*[,\[])|[\w$]+\s*:(?!:))*", "", piece).split())
        # Behind the brace that opens a function stands its first statement.
        statement = " ".join(re.sub(r"^\..*?\)[^{]*\{", "", statement).split())
        statement = re.sub(r"^(?:[{}] |[\w$]+ ?: ?(?!:))*", "", statement)
        if statement and statement[0] not in ".})":
            found.append(statement)
    return found


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fixtures(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    module = parse(text)
    instructions: list[Instruction] = [i for f in module.functions.values() for i in f.instructions]
    instructions.sort(key=lambda i: i.line)
    assert [i.text for i in instructions] == statements(text)
    lines = text.splitlines()
    for i in instructions:
        assert i.text.split()[0] in lines[i.line - 1]
        assert i.name in i.text.replace(" ", "")
    for function in module.functions.values():
        assert len(function.registers) == len(set(function.registers))
        assert all(0 <= at <= len(function.instructions) for at in function.labels.values())


def test_there_are_fixtures() -> None:
    assert len(FIXTURES) > 20
