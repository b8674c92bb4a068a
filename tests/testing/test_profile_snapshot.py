"""The pytest plugin, in runs of pytest of its own: storing, comparing, what is said; that it imports nothing at start."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from emulator_profiles import made
from weft.testing import snapshots
from weft.testing.plugin import file_of

pytest_plugins = "pytester"

TEST = """
from emulator_profiles import made

def test_transpose(profile_snapshot):
    profile_snapshot(made(conflicts={conflicts}))
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have the plugin that is tested and no other, installed or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_kernels=test)
    return pytester.runpytest_inprocess("-p", "weft.testing.plugin", "-q", "--no-header", *options)


def errors(result: pytest.RunResult) -> list[str]:
    """What the run says failed, without the marks before it."""
    return [line[1:].strip() for line in result.outlines if line.startswith("E ")]


STORED = "__profiles__/test_kernels.test_transpose.json"


def test_a_profile_that_is_not_stored_fails(pytester: pytest.Pytester):
    result = run(pytester, TEST.format(conflicts=0))
    result.assert_outcomes(failed=1)
    assert errors(result) == [f"AssertionError: no profile is stored in {STORED}; --update-profiles stores this one"]
    assert not (pytester.path / "__profiles__").exists()


def test_a_stored_profile_is_compared(pytester: pytest.Pytester):
    run(pytester, TEST.format(conflicts=0), "--update-profiles").assert_outcomes(passed=1)
    run(pytester, TEST.format(conflicts=0)).assert_outcomes(passed=1)


def test_a_profile_that_differs_fails_and_says_where(pytester: pytest.Pytester):
    run(pytester, TEST.format(conflicts=0), "--update-profiles")
    result = run(pytester, TEST.format(conflicts=31))
    result.assert_outcomes(failed=1)
    heading, *lines = errors(result)
    assert heading == f"AssertionError: profile of k differs from {STORED} (--update-profiles stores this one):"
    assert lines == [
        "total        shared_load_wavefronts  4 -> 128",
        "shared_wavefronts       4 -> 128",
        "bank_conflicts          0 -> 124",
        "kernel.cu:3  shared_load_wavefronts  4 -> 128",
    ]
    run(pytester, TEST.format(conflicts=31), "--update-profiles").assert_outcomes(passed=1)
    run(pytester, TEST.format(conflicts=31)).assert_outcomes(passed=1)


def test_what_is_stored(pytester: pytest.Pytester):
    run(pytester, TEST.format(conflicts=0), "--update-profiles")
    text = (pytester.path / STORED).read_text()
    assert text.endswith("}\n")
    data = json.loads(text)
    assert data["kernel"] == "k"
    assert (data["grid"], data["block"]) == ([2, 1, 1], [64, 1, 1])
    assert data["totals"]["global_sectors"] == 96
    assert list(data["lines"]) == ["square.h:3", "kernel.cu:3", "kernel.cu:4"]
    assert data["lines"]["kernel.cu:4"] == {
        "executions": 4,
        "threads": 96,
        "global_store_requests": 4,
        "global_store_bytes": 384,
        "global_store_sectors": 96,
        "global_store_ideal_sectors": 12,
    }
    assert "/src" not in text


def test_what_has_not_changed_is_not_written_again(pytester: pytest.Pytester):
    run(pytester, TEST.format(conflicts=0), "--update-profiles")
    stored = pytester.path / STORED
    stored.write_text(json.dumps(json.loads(stored.read_text())))
    before = stored.read_text()
    run(pytester, TEST.format(conflicts=0), "--update-profiles")
    assert stored.read_text() == before


def test_several_profiles_of_a_test(pytester: pytest.Pytester):
    test = """
from emulator_profiles import made

class TestKernels:
    def test_two(self, profile_snapshot):
        profile_snapshot(made(0))
        profile_snapshot(made(1), name="second")
"""
    run(pytester, test, "--update-profiles").assert_outcomes(passed=1)
    folder = pytester.path / "__profiles__"
    names = ["test_kernels.TestKernels.test_two.json", "test_kernels.TestKernels.test_two.second.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    run(pytester, test).assert_outcomes(passed=1)


def test_profiles_of_a_test_need_names(pytester: pytest.Pytester):
    test = """
from emulator_profiles import made

def test_two(profile_snapshot):
    profile_snapshot(made())
    profile_snapshot(made())

def test_twice(profile_snapshot):
    profile_snapshot(made(), name="a")
    profile_snapshot(made(), name="a")
"""
    found = errors(run(pytester, test, "--update-profiles"))
    start = "ValueError: profile_snapshot: __profiles__/test_kernels."
    assert found == [
        f"{start}test_two.json was compared already; give this profile a name: profile_snapshot(profile, name=...)",
        f"{start}test_twice.a.json was compared already; give this profile a name of its own",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "is no profile snapshot of version 1"),
        ('{"version": 7}', "is no profile snapshot of version 1"),
    ],
)
def test_files_that_are_no_snapshots(pytester: pytest.Pytester, text: str, message: str):
    stored = pytester.path / STORED
    stored.parent.mkdir()
    stored.write_text(text)
    (said,) = errors(run(pytester, TEST.format(conflicts=0)))
    assert said == f"ValueError: {stored.name} {message}; write it anew with --update-profiles"
    run(pytester, TEST.format(conflicts=0), "--update-profiles").assert_outcomes(passed=1)
    run(pytester, TEST.format(conflicts=0)).assert_outcomes(passed=1)


# ---- files' names, differences ----------------------------------------------------------------------------------------


def test_names_of_files():
    assert file_of("test_a.test_b[32-True]") == "test_a.test_b[32-True].json"
    one, other = file_of("test_a.test_b[x/y]"), file_of("test_a.test_b[x:y]")
    assert one != other
    assert one.startswith("test_a.test_b[x_y]-")


def test_differences_of_the_launch_and_of_lines_that_come_and_go():
    old, new = snapshots.snapshot(made()), snapshots.snapshot(made(line=10))
    new["grid"] = [3, 1, 1]
    found = [" ".join(line.split()) for line in snapshots.differences(old, new)]
    assert found[0] == "launch grid [2, 1, 1] -> [3, 1, 1]"
    assert "kernel.cu:3 executions 8 -> 4" in found
    assert "kernel.cu:10 executions 0 -> 4" in found
    places = [line.split()[0] for line in found if line.startswith("kernel")]
    assert places == ["kernel.cu:3", "kernel.cu:10"]  # by their numbers
    assert snapshots.differences(old, snapshots.snapshot(made())) == []


def test_many_differences_are_cut_short():
    old: dict[str, Any] = {"kernel": "k", "grid": [1], "block": [1], "totals": {}, "lines": {}}
    new = {**old, "lines": {f"a.cu:{n}": {"executions": 1} for n in range(70)}}
    assert snapshots.differences(old, new)[-1] == "  and 10 more"


def test_metrics_that_are_gone_differ():
    new = snapshots.snapshot(made())
    old = {**new, "totals": {**new["totals"], "abolished": 3}}
    assert snapshots.differences(old, new) == ["  total  abolished  3 -> 0"]


def test_files_of_the_same_name_are_told_apart():
    rows = made().instructions
    moved = tuple(dataclasses.replace(row, file="/src/include/kernel.cu") if row.line == 12 else row for row in rows)
    names = list(snapshots.snapshot(dataclasses.replace(made(), instructions=moved))["lines"])
    assert names == ["include/kernel.cu:3", "src/kernel.cu:3", "src/kernel.cu:4"]


def test_without_line_information_lines_are_those_of_the_ptx():
    rows = tuple(dataclasses.replace(row, file="", source_line=0) for row in made().instructions)
    data = snapshots.snapshot(dataclasses.replace(made(), instructions=rows))
    assert list(data["lines"]) == [f"PTX {line}" for line in range(10, 15)]
    other: dict[str, Any] = {**data, "lines": {}}
    assert [line.split()[:2] for line in snapshots.differences(data, other)][0] == ["PTX", "10"]


# ---- what it costs ------------------------------------------------------------------------------------------------------


def test_the_plugin_imports_neither_numpy_nor_weft_s_packages():
    heavy = "('weft', 'numpy', 'rich')"
    code = f"import sys, weft.testing.plugin; print(*sorted(m for m in sys.modules if m.split('.')[0] in {heavy}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "weft",
        "weft.extensions",
        *(f"weft.testing{part}" for part in ("", ".assertion", ".plugin")),
    ]


def test_the_plugin_is_registered():
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"weft": "weft.testing.plugin"}
