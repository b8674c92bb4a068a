"""examples/porting_check.py by hand, and docs/porting.md: each block of Python, followed by what it prints."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import porting_check
import pytest

import weft.array as wa
from weft.array import use_backend
from weft.array.comparing.comparison import Diverged, Kind
from weft.cli import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "porting.md"
BLOCK = re.compile(r"```python\n(.*?)```\n```\n(.*?)```\n", re.DOTALL)


def test_where_the_preprocessing_parts() -> None:
    with use_backend("reference"):
        found = porting_check.check()
    # 224 + 40 = 264 is 8 in bytes, DALI's int32 holds it.
    first = found.first(Kind.VALUE)
    assert first is not None and first.source == "brighter = image + 40"
    (difference,) = first.operations[0].values
    assert (difference.second, difference.found.first, difference.found.second) == ("dali", 8, 264)
    # The only other lines at fault: bytes below 128, and the literal 0.1.
    assert [line.source for line in found.lines if line.originates] == [
        "brighter = image + 40",
        "centred = brighter - 128",
        "return coarse * 0.1 - mean",
    ]
    with pytest.raises(Diverged):
        found.raise_for_divergence()


def test_the_port_is_exact() -> None:
    with use_backend("reference"):
        found = porting_check.check(porting_check.portable)
    found.raise_for_divergence(results=True)
    (result,) = found.outputs
    assert {cell.type for cell in result.cells.values()} == {"float32"}
    # In float32: (pixel + 40 - 128) rounded down to thirds, times 0.1, less 0.5.
    pixels = porting_check.image().astype(np.int64)
    expected = ((pixels - 88) // 3).astype(np.float32) * np.float32(0.1) - np.float32(0.5)
    for system in ("jax", "dali", "numpy"):
        with use_backend("reference"):
            made = porting_check.portable(wa.asarray(porting_check.image(), system), 0.5)
            np.testing.assert_array_equal(made.numpy(), expected)


@pytest.mark.jit
def test_the_document_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") == 9
    names: dict[str, Any] = {}
    for i, (code, printed) in enumerate(blocks):
        path = tmp_path / ("blend.py" if i == 0 else f"block{i}.py")
        path.write_text(code, encoding="utf-8")
        linecache.checkcache(str(path))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(path), "exec"), names)
        assert out.getvalue() == printed


def test_the_documents_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (tmp_path / "blend.py").write_text(BLOCK.findall(text)[0][0].partition("image = ")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (console,) = re.findall(r"```console\n(.*?)```\n", text, re.DOTALL)
    commands = re.findall(r"^\$ weft (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE)
    for command, printed in commands:
        assert main(command.split()) in (0, 1)
        out = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
        assert out == printed.rstrip("\n"), command
    assert len(commands) == 2
    assert "half = total // 2" in (tmp_path / "blend.html").read_text(encoding="utf-8")
