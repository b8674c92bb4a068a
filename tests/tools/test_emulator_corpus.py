"""tools/emulator_corpus.py counts what a corpus of PTX has: files, kernels, instructions once, and refusals by reason."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "emulator_corpus.py"
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
SHARED = ".func twice(.reg .b32 x) { .reg .b32 %r; add.u32 %r, x, x; ret; }\n"
"""Two instructions, of which a file's kernels have one copy."""
KERNEL = ".visible .entry {name}(.param .u64 p) {directives} {{ .reg .b32 %r; mov.u32 %r, 1; {more} ret; }}\n"


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("emulator_corpus", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["emulator_corpus"] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


def write(folder: Path, name: str, *kernels: str) -> Path:
    path = folder / name
    path.write_text(HEAD + "".join(kernels), encoding="utf-8")
    return path


def kernel(name: str, more: str = "", directives: str = "") -> str:
    return KERNEL.format(name=name, more=more, directives=directives)


def test_what_is_counted(tool: Any, tmp_path: Path) -> None:
    called = "{ .param .b32 a; call twice, (%r); }"
    write(tmp_path, "a.ptx", SHARED, kernel("one", called), kernel("two", called), kernel("three"))
    write(tmp_path, "b.ptx", kernel("bad", "add.odd.u32 %r, %r, %r; brkpt; nonsense.u32 %r;"))
    write(tmp_path, "c.ptx", kernel("unread").replace("ret;", "ret")[:-4])
    found = tool.counted(sorted(tmp_path.glob("*.ptx")))
    assert (found.files, found.parsed, found.kernels, found.prepared) == (3, 2, 4, 3)
    assert (found.instructions, found.bound) == (3 + 3 + 2 + 2 + 5, 3 + 3 + 2 + 2 + 3)
    assert sorted(found.refusals.values()) == [1, 1, 1]
    nonsense = "the emulator does not know the instruction 'nonsense.u32'"
    assert found.examples[nonsense] == "b.ptx:4: nonsense.u32 %r"


@pytest.mark.parametrize(
    "directives",
    [
        ".reqntid 64, 2",
        ".maxntid 32",
        ".reqnctapercluster 2",
        ".explicitcluster",
        ".reqntid 32 .reqnctapercluster 4, 1, 1 .blocksareclusters",
    ],
)
def test_launches_are_prepared_in_a_shape_that_the_kernel_allows(tool: Any, tmp_path: Path, directives: str) -> None:
    file = write(tmp_path, "shape.ptx", kernel("shaped", directives=directives))
    found = tool.count(file)
    assert (found.prepared, dict(found.refusals)) == (1, {})


def test_what_is_printed(tool: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    write(tmp_path, "bad.ptx", kernel("bad", "nonsense.u32 %r; nonsense.u32 %r;"))
    monkeypatch.setattr(sys, "argv", ["emulator_corpus.py", str(tmp_path)])
    assert tool.main() == 1
    said = capsys.readouterr().out
    assert "bad.ptx:4: nonsense.u32 %r" in said
    assert [line.split("│")[2].strip() for line in said.splitlines() if "does not know" in line] == ["2"]
