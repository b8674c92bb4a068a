"""The table of environment variables: the page shows it, and the source names no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.runtime.environment import TEST_VARIABLES, VARIABLES, table

ROOT = Path(__file__).parents[2]
HERE = Path(__file__)


def named_in(folder: str) -> set[str]:
    texts = [path.read_text() for path in (ROOT / folder).rglob("*.py") if path != HERE]
    return {name for text in texts for name in re.findall(r"\bWEFT_[A-Z_]+\b", text)}


def test_the_page_shows_the_tables() -> None:
    page = (ROOT / "docs" / "runtime.md").read_text()
    for variables in (VARIABLES, TEST_VARIABLES):
        assert table(variables) in page


def test_the_package_names_those_variables() -> None:
    assert named_in("src") == {v.name for v in (*VARIABLES, *TEST_VARIABLES)}


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples", "tools"])
def test_others_name_no_further_variable(folder: str) -> None:
    assert named_in(folder) <= {v.name for v in (*VARIABLES, *TEST_VARIABLES)}
