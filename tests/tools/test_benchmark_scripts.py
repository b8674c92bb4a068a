"""The scripts that count beside Triton, each on its smallest case: they run, their results are right, and they say so."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from solver_kernels import ROOT, imported
from weft import target as targets

pytestmark = pytest.mark.jit


def run(
    script: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[list[str]], str]:
    """The exit status, the cells of the Markdown table, and what is said on the standard error."""
    monkeypatch.setattr(sys, "argv", [script.__name__, "--markdown", *arguments])
    try:
        status = script.main() or 0
    except SystemExit as end:
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]
    return status, [row for row in rows if not row[0].startswith("---")], err


SMALLEST: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "table2": ({"PAPER": {("f16", 2): 128}}, [], ["[512,2] f16", "128", "-", "1 x 128", "128"]),
    "table3": ({"KINDS": ["Blocked"]}, ["--most", "16"], ["Blocked", "20/20: 5,888 / 20/20: 1,388", "4/4"]),
    "table4": (
        {"INTEGERS": ["i8"], "FLOATS": ["fp16"], "LEGACY": ["i8/f16"]},
        ["--shapes", "1", "--every", "1"],
        ["i8/f16", "36/96", "96/96", "1/1", "1/1"],
    ),
    "figure5": (
        {"CONVERSIONS": ["in a warp: mma to left operand"], "TYPES": ["f16"]},
        [],
        ["in a warp: mma to left operand"],
    ),
    "figure6": ({}, ["--most", "2"], ["[512,2]", "288", "64", "0", "0"]),
    "mxfp4": (
        {"KERNELS": ["broadcast and shift"]},
        [],
        ["weft, broadcast and shift", "5,528", "834", "0", "8", "256", "0"],
    ),
}
"""Of each script the keys of its tables to keep, or what stands for them, arguments, and the beginning of the last row."""


@pytest.mark.parametrize("name", SMALLEST)
def test_scripts_of_the_paper(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = imported("benchmarks/paper", name)
    tables, arguments, expected = SMALLEST[name]
    for table, kept in tables.items():
        whole = getattr(script, table)
        monkeypatch.setattr(script, table, {key: whole[key] for key in kept})
    status, rows, err = run(script, arguments, monkeypatch, capsys)
    assert (status, err) == (0, "")
    assert rows[-1][: len(expected)] == expected
    assert len(rows) == 2
    assert {len(row) for row in rows} == {len(rows[0])}


def test_a_wrong_result_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = imported("benchmarks/paper", "table2")
    monkeypatch.setattr(script, "PAPER", {("f16", 1): 64})

    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(script, "equal", never)
    status, _, err = run(script, [], monkeypatch, capsys)
    assert (status, err) == (1, "wrong: weft, [512,1] f16\n")


def test_counts_beside_triton(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = imported("benchmarks", "gpu_counts")
    status, rows, err = run(script, ["--only", "vector add", "--target", "sm_90"], monkeypatch, capsys)
    assert (status, err) == (0, "")
    assert rows[1][:4] == ["vector add 4000", "sm_90", "752", "0"]
    assert rows[1][-1] == "yes"
    assert [row[0] for row in rows] == ["kernel", "vector add 4000"] * 2


def test_prices_of_the_layout_solver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = imported("benchmarks", "layout_solver")
    status, rows, err = run(script, ["--only", "transpose 32-bit"], monkeypatch, capsys)
    assert (status, err) == (0, "")
    assert rows[1][:5] == ["transpose 32-bit 64x64", "1,842", "1,574", "1.17", "1,574"]


def test_matrix() -> None:
    """One row on one thread, in a process of its own, as the option asks; values are checked before they are timed."""
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "matrix"),
        "--only",
        "gemv-small",
        "--repeats",
        "1",
        "--threads",
        "1",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    rows = [line for line in out.splitlines() if line.startswith("| gemv")]
    assert len(rows) == 1
    assert re.search(r"\| 16x16: \d+\.\d\d, 64x16: .*128x32: \d+\.\d\d \| \d+\.\d\d \| (\d+%)? ?\|$", rows[0])
    assert "1 cores" in out
    assert re.search(r"6 cells, geometric mean \d+\.\d\d", out)


def test_the_matrix_times_no_peer_that_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer of another result is left out, and named. A result of weft's that is wrong is an error."""
    imported("benchmarks", "machine")
    rows = imported("benchmarks/matrix", "rows")
    spec = importlib.util.spec_from_file_location("matrix", ROOT / "benchmarks" / "matrix" / "__main__.py")
    assert spec is not None and spec.loader is not None
    matrix = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "matrix", matrix)  # where dataclasses look up their annotations
    spec.loader.exec_module(matrix)

    def runner(value: int) -> object:
        return rows.Runner(lambda: None, lambda: np.full(4, value, np.int32))

    peers = {"right": runner(7), "saturating": runner(6)}
    row = rows.Row("sums", np.full(4, 7.0), {"16": runner(7)}, peers, exact=True)
    found = matrix.measure(row, 1, None, matrix.Stopwatch(time.perf_counter, 0))
    assert (list(found.peers), found.wrong) == (["right"], ["saturating"])
    assert "| sums | right 0 us; saturating left out: another result | 16: " in matrix.markdown([found])
    with pytest.raises(ArithmeticError, match="^sums: 16 is off by up to 2.0$"):
        matrix.check(rows.Row("sums", np.full(4, 9.0), {"16": runner(7)}, {}, exact=True))


def test_matrix_names_unknown_rows() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "matrix"), "--only", "gemw"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 1
    assert run.stderr.startswith("no row or family gemw; there are reductions, movement, ")


def test_matrix_holds_weft_to_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a machine of the level would choose: its instructions, and the tuning of all machines of the architecture."""
    variables: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", variables)
    imported("benchmarks/matrix", "instructions").hold_to("x86-64-v3")
    features = frozenset(feature for features in targets.X86_LEVELS.values() for feature in features.split())
    machine = targets.level("x86-64-v4", "x86_64-unknown-linux-gnu", features)
    held = targets.made_of(machine, variables["WEFT_TARGET"])
    assert (held.cpu, held.vector_bits) == ("x86-64-v3", 256)
    assert {name for name, cpus in targets.TUNING.items() if "x86_64" in cpus} == {*held.tuning}
