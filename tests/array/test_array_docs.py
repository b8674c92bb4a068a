"""docs/arrays.md: each block of Python, followed by what it prints."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import weft.array as wa
from weft.semantics import arrangement, composed

TEXT = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n```\n(.*?)```\n", TEXT, re.DOTALL)


@pytest.mark.jit
def test_the_blocks_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code, printed in BLOCKS:
        exec(code, names)
        assert capsys.readouterr().out == printed
    assert len(BLOCKS) == TEXT.count("```python")


def test_the_operations_named_exist() -> None:
    named = re.search(r"Python's operators; `(.*?)`.*?\(`(.*?) \.\.\.`\)", TEXT, re.DOTALL)
    assert named is not None
    for name in f"{named[1]} {named[2]}".split():
        assert hasattr(wa, {"abs": "absolute"}.get(name, name)), name


def test_the_table_of_whole_arrays_is_the_packages() -> None:
    section = TEXT.partition("## Whole arrays")[2].partition("\n## ")[0]
    rows = [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line]
    assert rows[0] == ["", *arrangement.FAMILIES]
    table = rows[2 : 2 + len(arrangement.NAMES)]
    assert {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in table} == {
        op: {family: names.get(family, "") for family in arrangement.FAMILIES}
        for op, names in arrangement.NAMES.items()
    }
    assert all(op in ("index", "at") or hasattr(wa, op) for op in arrangement.NAMES)


def test_the_table_of_functions_made_of_others_is_the_packages() -> None:
    section = TEXT.partition("## Functions made of others")[2].partition("\n## ")[0]
    rows = [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line]
    found = {
        name: tuple(system for system, has in zip(rows[0][1:], row[1:], strict=True) if has)
        for row in rows[2:]
        for name in row[0].split()
    }
    assert found == composed.HAS
    assert all(callable(attrgetter(name)(wa)) for name in found)
