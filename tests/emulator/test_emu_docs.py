"""docs/emulator.md does what it says: its Python prints what is shown, its command runs, its tables are those of the code."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.cli import main
from weft.emulator import Module, errors
from weft.emulator.profile import NOT_MODELLED, Profile
from weft.emulator.profile.counting import wavefronts
from weft.testing import snapshots

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "emulator.md").read_text(encoding="utf-8")
PROGRAMS = Path(__file__).parent / "programs"


def test_the_python_of_the_page_prints_what_is_shown() -> None:
    """The blocks one after the other, as a reader would run them; a block that prints is followed by what it prints."""
    names: dict[str, Any] = {}
    shown = 0
    for code, after in re.findall(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```\n)?", PAGE, re.DOTALL | re.MULTILINE):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "emulator.md", "exec"), names)
        assert printed.getvalue() == after
        shown += bool(after)
    assert shown == 3
    snapshot: list[Profile] = []
    names["test_every_other"](snapshot.append)
    assert snapshot == [names["profile"]]


def test_the_command_of_the_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROGRAMS)
    (command,) = re.findall(r"^```console\n\$ weft (.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert main(shlex.split(command.replace("\\\n", ""))) == 0
    assert "16,384" in capsys.readouterr().out


def test_the_command_of_the_readme(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```\nweft (profile .*?)^```$", readme, re.DOTALL | re.MULTILINE)
    assert main(shlex.split(command.replace("\\\n", ""))) == 0
    loads = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("shared loads"))
    assert loads.split()[5:7] == ["16,384", "512"]
    assert "takes 16,384 passes over the banks of shared memory where 512 would do" in readme


def test_the_difference_that_is_shown_is_that_of_the_padding() -> None:
    before, after = (snapshots.snapshot(transpose(kernel)) for kernel in ("padded", "conflicts"))
    found = snapshots.differences(before, after)
    shown = re.search(r"stores this one\):\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert shown is not None
    lines = shown[1].splitlines()
    assert lines == found[1 : 1 + len(lines)]  # the first says that the kernel has another name
    assert "bank_conflicts" in shown[1]


def transpose(kernel: str) -> Profile:
    x, out = np.ones((128, 128), np.float32), np.zeros((128, 128), np.float32)
    module = Module((PROGRAMS / "transpose.ptx").read_text())
    return module.launch(f"transpose_{kernel}", (4, 4), (32, 8), [x, out, 128, 128])


def test_the_table_of_wavefronts() -> None:
    rows = re.findall(r"^\| `(\d+)( i)?`(, `\.v4\.b32`)? \| [a-z0-9 ]+ \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    lane = np.arange(32)
    for address, strided, vector, count, ideal in rows:
        addresses = int(address) * (lane if strided else np.ones(32, np.int64))
        assert wavefronts(lane, addresses, 16 if vector else 4) == (int(count), int(ideal))


def test_every_kind_of_fault_is_listed() -> None:
    kinds = {cls.__name__ for cls in errors.Fault.__subclasses__()}
    assert set(re.findall(r"^\| `([A-Z]\w+)` \|", PAGE, re.MULTILINE)) == kinds


def test_what_is_not_modelled_is_listed() -> None:
    section = PAGE.partition("## What is not modelled")[2].partition("\n## ")[0].lower()
    for note in NOT_MODELLED:
        assert note.partition(":")[0].lower() in section


@pytest.mark.pages
def test_the_table_of_metrics_is_up_to_date() -> None:
    """`python tools/emulator_docs.py` writes it."""
    spec = importlib.util.spec_from_file_location("emulator_docs", ROOT / "tools" / "emulator_docs.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.written(PAGE) == PAGE


def test_the_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\((emulator/\w+\.png)\)", PAGE)
    assert len(pictures) == 2
    for picture in pictures:
        data = (ROOT / "docs" / picture).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert len(data) < 100_000
