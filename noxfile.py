"""Installs and tests weft without make, on every system: ``python -m pip install nox``, then ``nox``.

``make`` keeps one environment for all that it does. Here each session has its own, under ``.nox``, so that both ends of the
ranges in pyproject.toml can be tested beside each other. ``nox --list`` has the sessions. What follows ``--`` goes to pytest
(``nox -s versions-3.13 -- tests/layout``). Interpreters that are not installed are skipped.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Final

import nox

ROOT: Final = Path(__file__).parent
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14", "3.14t")
"""The versions that weft runs on. "t" is the build without the global interpreter lock."""

nox.options.sessions = ["lint", "test"]
nox.needs_version = ">=2025.2"

os.environ["PYTHONUTF8"] = "1"  # tests read text as UTF-8, also where the system's encoding is another
for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)  # sessions see what they install, and compile tests once

LINT: Final = ("ruff check .", "ruff format --check .", "lint-imports --no-logo", "pyright", "pytest -m pages")
"""The recipe of ``make lint``."""
LOWEST: Final = ("tests/semantics", "tests/reference", "tests/array", "tests/runtime")
"""Tests of what depends on the versions of NumPy, ml_dtypes and rich."""


@nox.session
def lint(session: nox.Session) -> None:
    """What ``make lint`` does."""
    session.install("-c", "constraints.txt", "-e", ".[test,lint]")
    for command in LINT:
        session.run(*command.split())


@nox.session
def test(session: nox.Session) -> None:
    """What ``make test`` does."""
    _tested(session)


@nox.session(python=PYTHONS)
def versions(session: nox.Session) -> None:
    """What ``make test`` does, with other versions of Python."""
    _tested(session)


def _tested(session: nox.Session) -> None:
    session.install("-c", "constraints.txt", "-e", ".[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session(python=False)
def environment(session: nox.Session) -> None:
    """An environment for work on weft, in ``.venv``, as ``make`` keeps it."""
    session.run(sys.executable, "-m", "venv", ".venv")
    python = ROOT / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    session.run(str(python), "-m", "pip", "install", "-c", "constraints.txt", "-e", ".[test,lint]")


@nox.session
def lowest(session: nox.Session) -> None:
    """Tests with the lowest versions that pyproject.toml accepts."""
    session.install("-e", ".[test]", *lowest_versions((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    session.run("pytest", "-n", "auto", *(session.posargs or LOWEST))


@nox.session
def newest(session: nox.Session) -> None:
    """Tests with the newest versions that pyproject.toml accepts."""
    session.install("--upgrade", "--upgrade-strategy", "eager", "-e", ".[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Make a source distribution and a wheel of it, install the wheel alone, and run the README's tests with it."""
    session.install("build")
    made = Path(session.create_tmp()) / "dist"
    session.run("python", "-m", "build", "--outdir", str(made), str(ROOT))
    (built,) = made.glob("weft-*.whl")
    session.install(f"{built}[test]")
    session.run("python", "-c", "import weft; assert 'site-packages' in weft.__file__, weft.__file__")
    session.run("pytest", *(session.posargs or ["tests/test_readme.py", "tests/cli"]))


def lowest_versions(project: str) -> list[str]:
    """The dependencies of a pyproject.toml, each pinned to the lowest version of its range."""
    dependencies = tomllib.loads(project)["project"]["dependencies"]
    return [re.sub(r">=([^,]+).*", r"==\1", one) for one in dependencies]
