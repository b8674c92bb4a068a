"""What the source distribution holds: MANIFEST.in names every tracked file, so that a packager can run the tests from it."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
OWN = {"src", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"}
"""What setuptools includes by itself."""
LEFT_OUT = {".ci", ".gitignore"}
"""Of use in the repository only."""


def test_the_source_distribution_holds_every_tracked_file() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("the tracked files are known in a checkout only")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {line.partition("/")[0] for line in listed.splitlines()}
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    named = {name for line in lines if line.startswith(("include ", "graft ")) for name in line.split()[1:]}
    assert tracked - OWN - LEFT_OUT == named


def test_commands_without_make_are_those_of_make() -> None:
    """CONTRIBUTING.md lists them for Windows: what make installs, and the recipes of ``test`` and ``lint``."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Without make\n")[2]
    listed = {line.removeprefix("python -m ") for line in page.split("```")[1].splitlines()}
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("test", "lint"):
        recipe = rules.partition(f"\n{target}: .venv/dev\n")[2].partition("\n\n")[0]
        assert recipe
        assert {line.strip().removeprefix("$(BIN)/") for line in recipe.splitlines()} <= listed
    assert "pip install -c constraints.txt -e .[test,lint]" in listed
    assert "-c constraints.txt --editable '.[test,lint]'" in rules


def test_nox_does_what_make_does() -> None:
    """Its lint session runs the recipe of ``make lint``, and its lowest versions are those of the ranges."""
    program = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    values = {ast.unparse(one.target): one.value for one in program.body if isinstance(one, ast.AnnAssign)}
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = rules.partition("\nlint: .venv/dev\n")[2].partition("\n\n")[0].splitlines()
    lint = values["LINT"]
    assert lint is not None
    assert list(ast.literal_eval(lint)) == [line.strip().removeprefix("$(BIN)/") for line in recipe]


def test_the_lowest_versions() -> None:
    """What ``nox -s lowest`` installs. nox is not installed with the tests, so the function is taken from its file."""
    program = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (function,) = (one for one in program.body if isinstance(one, ast.FunctionDef) and one.name == "lowest_versions")
    names: dict[str, Any] = {"re": re, "tomllib": tomllib}
    exec(compile(ast.Module([function], []), "noxfile.py", "exec", dont_inherit=True), names)
    project = '[project]\ndependencies = ["numpy>=2.1.2,<3", "ml_dtypes>=0.5,<1", "plain>=4"]\n'
    assert names["lowest_versions"](project) == ["numpy==2.1.2", "ml_dtypes==0.5", "plain==4"]
