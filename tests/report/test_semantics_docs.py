"""docs/semantics and the README say what the code says: fresh tables, real output, links that lead somewhere."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from weft import semantics
from weft.cli import main
from weft.semantics.compact import names
from weft.semantics.difference import LITERALS, Kind

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "semantics"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")


def generator() -> Any:
    """tools/semantics_docs.py, which is no package."""
    spec = importlib.util.spec_from_file_location("semantics_docs", ROOT / "tools" / "semantics_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.pages
def test_generated_parts_are_what_the_code_says() -> None:
    """If this fails after a change of rules: make docs"""
    assert [path.name for path in generator().stale()] == []


def test_the_generator_replaces_the_marked_part_alone() -> None:
    filled = generator().filled
    assert filled("a\n<!-- x -->\nold\n<!-- /x -->\nb\n", "x", "new") == "a\n<!-- x -->\n\nnew\n\n<!-- /x -->\nb\n"
    with pytest.raises(ValueError, match=r"^no <!-- y --> with its end$"):
        filled("a\n<!-- x -->\n<!-- /x -->\n", "y", "new")


def test_each_document_is_beside_its_package() -> None:
    tool = generator()
    assert tool.versions("jax") == [("jax", "jax@0.10"), ("jax-x32", "jax-x32@0.10")]
    shown = {pair for page in tool.PAGES for pair in tool.versions(page)}
    assert {package for _, package in shown} == {name for name in semantics.SYSTEMS if "@" in name}


@pytest.mark.parametrize(
    ("pair", "cells"),
    [
        # Section 7 of the recorded results ("the same pair in all systems"), read off the real packages and the documents
        (
            "uint8 + int8",
            {"triton": "u8", "jax": "i16", "dali": "i16", "max": "i16", "max@26": "refused", "torch": "i16"},
        ),
        (
            "uint64 + int64",
            {"triton": "u64", "jax": "f*", "dali@2": "i64", "max": "f16", "numpy": "f64", "torch": "refused"},
        ),
        ("int32 + bfloat16", {"triton@3.9": "f32", "jax": "bf16", "dali": "", "max": "bf16", "numpy": "f64"}),
        ("float16 + float8_e5m2", {"triton": "f16", "jax": "refused", "max": "", "numpy": "f32"}),
        ("uint8 + 300", {"triton": "refused", "jax": "u8", "dali": "i32", "torch": "u8"}),
    ],
)
def test_the_cross_table_holds_the_recorded_cells(pair: str, cells: dict[str, str]) -> None:
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in INDEX.splitlines() if line.startswith("|")]
    [head] = [line for line in lines if line[0] == "" and "`triton`" in line]
    [row] = [line for line in lines if line[0] == f"`{pair}`"]
    found = dict(zip(head, row, strict=True))
    assert {name: found[f"`{name}`"] for name in cells} == cells


def test_the_overview_names_everything() -> None:
    named = set(re.findall(r"`([^`\n]+)`", INDEX))
    assert set(semantics.SYSTEMS) - named == set()
    assert set(names(LITERALS, ()).split(", ")) - named == set()
    listed = re.findall(r"^- (\w+): ", INDEX, re.MULTILINE)
    assert listed == list(Kind)


def test_the_explanation_shown_is_real() -> None:
    assert f"```\n{semantics.explain('jax', '+', 'uint8', 300)}\n```" in INDEX


def test_the_python_shown_does_what_its_comments_say() -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", INDEX, re.DOTALL | re.MULTILINE)
    checked = re.findall(r"^(semantics\S+\(.*?\)(?:\.meaning)?) +# (\w+)", program, re.MULTILINE)
    assert len(checked) == 3
    for expression, comment in checked:
        assert str(eval(expression, {"semantics": semantics})) == comment


@pytest.mark.parametrize("page", ["jax", "dali", "numpy", "torch"])
def test_the_examples_of_the_pages_run(page: str) -> None:
    outcome = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False)
    assert outcome.attempted >= 4
    assert not outcome.failed


def test_the_readme_shows_real_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```console\n\$ weft (.*?)\n(.*?)\n```$", readme, re.DOTALL | re.MULTILINE)
    assert [command for command, _ in shown] == ["promote uint8 int8"]
    for command, output in shown:
        assert main(command.split()) == 0
        assert "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()) == output


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_of_the_pages_lead_somewhere(page: str) -> None:
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    assert [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if not (DOCS / link).exists()] == []
    assert page == "index.md" or f"]({page})" in INDEX
