"""Each pass on textual tile IR, through ``weft opt``.

``filecheck/PASS/*.mlir`` begin with ``// RUN: weft opt %s ...``, which is run with the file in place of ``%s``. What it prints is
matched against the file's CHECK lines.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from filechecking import assert_filecheck
from weft.cli import main
from weft.transforms.passes import PASSES

HERE = Path(__file__).parent / "filecheck"
FILES = sorted(HERE.glob("*/*.mlir"))


def command(path: Path) -> list[str]:
    """The arguments of ``weft`` in a file's first line."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    prefix = "// RUN: weft "
    assert first.startswith(prefix), f"{path} begins with {first!r}, expected '{prefix}opt %s --pass NAME'"
    return [str(path) if word == "%s" else word for word in shlex.split(first.removeprefix(prefix))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_pass_prints_what_is_expected(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(command(path))
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert_filecheck(path, out)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_each_pass_has_files_that_run_it_alone(name: str) -> None:
    files = [path for path in FILES if path.parent.name == name]
    assert files
    for path in files:
        subcommand, file, option, spelled, *rest = command(path)
        assert (subcommand, file, option, spelled.partition("{")[0]) == ("opt", str(path), "--pass", name), path
        assert rest == []


def test_each_folder_is_a_pass() -> None:
    assert {path.name for path in HERE.iterdir()} == set(PASSES)
