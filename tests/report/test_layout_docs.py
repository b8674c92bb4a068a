"""docs/layouts does what it says: its Python runs, its commands print and draw what is shown, its links lead somewhere."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from layout_svg import loads_nothing, parse
from weft.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "layouts"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")


def tool() -> Any:
    """tools/layout_docs.py, which is no package."""
    spec = importlib.util.spec_from_file_location("layout_docs", ROOT / "tools" / "layout_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_python_of_the_page_runs() -> None:
    blocks = re.findall(r"^```pycon\n(.*?)^```$", INDEX, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 10
    assert len(re.findall(r"^```", INDEX, re.MULTILINE)) % 2 == 0
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "index.md", None, None)
    runner = doctest.DocTestRunner()
    said: list[str] = []
    runner.run(examples, out=said.append)
    assert "".join(said) == ""
    assert len(examples.examples) > 30


@pytest.mark.pages
def test_pictures_are_what_their_commands_draw() -> None:
    """If this fails after a change of pictures or plans: make docs"""
    assert [path.name for path in tool().stale()] == []


def test_every_picture_is_drawn_shown_and_described() -> None:
    drawn = {path.name for path in tool().pictures()}
    assert drawn == {path.name for path in DOCS.glob("*.svg")}
    shown = re.findall(r"^!\[([^\]]+)\]\((\S+\.svg)\)$", INDEX, re.MULTILINE)
    assert [name for _, name in shown] == re.findall(r"--svg (\S+\.svg)\n", INDEX)
    assert {name for _, name in shown} == drawn
    for path in DOCS.glob("*.svg"):
        svg = path.read_text(encoding="utf-8")
        parse(svg)
        assert loads_nothing(svg)


def test_output_that_is_shown_is_real(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    shown = [(arguments, output) for arguments, output in tool().commands(INDEX) if output]
    assert len(shown) == 1
    for arguments, output in shown:
        assert main(arguments) == 0
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == output.splitlines()


def test_the_questions_are_those_there_are() -> None:
    listed = re.findall(r"^weft layout (\w+) ", INDEX, re.MULTILINE)
    from weft.cli.layout import MACHINES, QUESTIONS

    assert sorted(listed) == sorted(QUESTIONS)
    assert f"--machine {', '.join(MACHINES)}" in INDEX


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", re.sub(r"^```.*?^```$", "", INDEX, flags=re.DOTALL | re.MULTILINE))
    assert [link for link in links if not (DOCS / link).exists()] == []
