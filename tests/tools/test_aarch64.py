"""The emulated machine's command: why it may be skipped, what it counts and what it promises. Nothing is emulated here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solver_kernels import ROOT, imported

aarch64: Any = imported("tools", "aarch64")


def finds(*present: str) -> Callable[[str], str | None]:
    """A PATH with these programs alone."""
    return lambda name: f"/usr/bin/{name}" if name in present else None


@pytest.mark.parametrize(
    ("machine", "present", "reason"),
    [
        ("aarch64", ["qemu-aarch64"], "this machine is AArch64: run make test"),
        ("arm64", [], "this machine is AArch64: run make test"),
        ("x86_64", [], "no qemu-aarch64-static or qemu-aarch64 on the PATH: install qemu-user-static"),
    ],
)
def test_there_is_no_emulator(machine: str, present: list[str], reason: str) -> None:
    with pytest.raises(aarch64.NotHere, match=f"^{reason}$"):
        aarch64.emulator(machine, finds(*present))


def test_the_static_emulator_comes_first() -> None:
    assert aarch64.emulator("x86_64", finds("qemu-aarch64")) == "/usr/bin/qemu-aarch64"
    assert aarch64.emulator("x86_64", finds(*aarch64.EMULATORS)) == "/usr/bin/qemu-aarch64-static"


@pytest.mark.parametrize(("present", "missing"), [(["dpkg-deb"], "apt-get"), (["apt-get"], "dpkg-deb")])
def test_there_is_no_debian(present: list[str], missing: str, tmp_path: Path) -> None:
    with pytest.raises(aarch64.NotHere, match=rf"^no {missing} on the PATH: the root is made of Debian's packages$"):
        aarch64.made_root(tmp_path, finds(*present))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('warning\\nE: no such package')", "the thing cannot be had: E: no such package"),
        ("print('out\\nlast'); raise SystemExit(3)", "the thing cannot be had: last"),
        ("raise SystemExit(3)", "the thing cannot be had: exit status 3"),
    ],
)
def test_what_cannot_be_had_is_said_in_one_line(program: str, reason: str) -> None:
    with pytest.raises(aarch64.NotHere, match=f"^{reason}$"):
        aarch64._had("the thing", [sys.executable, "-c", program], os.environ)


def test_a_skipped_command_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere() -> str:
        raise aarch64.NotHere("no reason")

    monkeypatch.setattr(aarch64, "emulator", nowhere)
    assert aarch64.main(["--folder", str(tmp_path / "folder")]) == 0
    assert capsys.readouterr().out == "make aarch64 is skipped: no reason\n"
    assert not (tmp_path / "folder").exists()


def test_counts_are_those_of_the_output() -> None:
    tests = aarch64._tests("tests", 1, "tests/x.py")
    assert tests.count("..\n12 passed, 3 skipped in 1.0s\n") == 12
    assert tests.count("FAILED x - 7 passed\n2 failed, 206 passed, 5 deselected in 2s\n") == 206
    assert tests.count("no tests ran in 0.01s\n") == 0
    kernels = aarch64.STEPS[-1]
    assert kernels.count("seed 7: mismatch: 1 of 2\n199 of 200 kernels agree with the reference.\n") == 199


@pytest.mark.parametrize(
    ("program", "least", "passed", "last"),
    [
        ("print('5 passed')", 5, True, "passed, 5 (at least 5 expected), "),
        ("print('4 passed')", 5, False, "FAILED, 4 (at least 5 expected), "),
        ("print('5 passed'); raise SystemExit(1)", 5, False, "FAILED, 5 (at least 5 expected), "),
    ],
)
def test_a_step_runs_as_many_as_it_promises(
    program: str, least: int, passed: bool, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    step = aarch64.Step("a step", ("-c", program), r"(?m)^(\d+) passed", least)
    assert aarch64.ran(step, Path(sys.executable), os.environ) == passed
    begin, printed, end = capsys.readouterr().out.splitlines()
    assert begin.startswith("== a step: -c ")
    assert printed.endswith("passed")
    assert end.startswith(f"== a step: {last}")


def test_what_the_steps_promise() -> None:
    """200 tests beside the memory model's, 200 kernels, and each file is there."""
    steps = {step.name: step for step in aarch64.STEPS}
    assert steps["launches and types"].least >= 200
    assert steps["generated kernels"].least >= 200
    assert "tests/concurrent" in steps["memory model"].arguments
    paths = [one for step in aarch64.STEPS for one in step.arguments if "/" in one]
    assert len(paths) > 10
    assert [one for one in paths if not (ROOT / one).exists()] == []
