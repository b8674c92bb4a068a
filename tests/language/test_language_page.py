"""docs/language.md names what the language has, and what it does not have yet; no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import weft.language as tl

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


def names(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def test_names_are_those_of_the_package() -> None:
    table = [line for line in section("Names").splitlines() if line.startswith("|")]
    listed = names("\n".join(table))
    assert sorted(listed) == sorted(tl.__all__)


def test_the_largest_tile() -> None:
    assert f"at most {tl.TRITON_MAX_TENSOR_NUMEL:,} elements" in PAGE
