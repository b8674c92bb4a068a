"""The porting check's report, whole."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from weft.array import use_backend
from weft.array.comparing.check import compare
from weft.array.comparing.comparison import Comparison
from weft.report.comparison import place, text

PROGRAM = """\
def brighten(image):
    bright = image + 10
    same = image & image
    for step in (1, 2):
        same = same * step
    return bright // 2


def product(x, y):
    z = x // y
    if int(z.max()) > 2:
        z = z @ z
    return -z
"""


@pytest.fixture(autouse=True)
def _reference() -> Iterator[None]:
    with use_backend("reference"):
        yield


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """The module of `PROGRAM`, in a file of its own, which is not below the working directory."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bytes_and_results(program: Any) -> Comparison:
    return compare(program.brighten, np.array([0, 100, 250], np.uint8))


def words(found: Comparison) -> list[str]:
    """The report's lines without what lines them up."""
    return [" ".join(line.split()) for line in str(found).splitlines()]


# 250 + 10 = 260 = 4 modulo 256, and 4 // 2 = 2; 250 * 2 = 500 = 244. JAX: five results of 3 bytes. DALI: the "and" of bytes
# keeps 3 bytes, the others are int32; what meets a number is converted, as long as it is uint8.
REPORT = """\
brighten: jax and dali diverge on 3 of 4 lines, of themselves on 2
  first other type    program.py:2  bright = image + 10
  first other value   program.py:2  bright = image + 10

system   bytes of results   of conversions   together    beside jax
─────────────────────────────────────────────────────────────────────
jax                    15                0         15
dali                   51               24         75   +60 (5.00x)

program.py:2  bright = image + 10
  jax   uint8 + 10  uint8  add                            3 B
  dali  uint8 + 10  int32  add                      12 + 12 B
    uint8 in jax, int32 in dali
    1 of 3 elements differ, first at [2]: 4 in jax, 260 in dali; by at most 256 (0.985 relative)

program.py:5  same = same * step
  jax   uint8 * 1   uint8  mul                            3 B
  dali  uint8 * 1   int32  mul                      12 + 12 B
    uint8 in jax, int32 in dali
  jax   uint8 * 2   uint8  mul                            3 B
  dali  int32 * 2   int32  mul                           12 B
    propagated: uint8 in jax, int32 in dali
    1 of 3 elements differ, first at [2]: 244 in jax, 500 in dali; by at most 256 (0.512 relative)

program.py:6  return bright // 2
  jax   uint8 // 2  uint8  floor_divide_xla               3 B
  dali  int32 // 2  int32  truncate_divide_checked       12 B
    propagated: uint8 in jax, int32 in dali
    propagated: 1 of 3 elements differ, first at [2]: 2 in jax, 130 in dali; by at most 128 (0.985 relative)

returned
  jax   return      uint8                                 3 B
  dali  return      int32                                12 B
    propagated: uint8 in jax, int32 in dali
    propagated: 1 of 3 elements differ, first at [2]: 2 in jax, 130 in dali; by at most 128 (0.985 relative)

1 other line agrees"""


def test_the_report(program: Any) -> None:
    found = bytes_and_results(program)
    assert str(found) == text(found) == REPORT


def test_a_console_draws_the_same(program: Any) -> None:
    console = Console(width=120, highlight=False, emoji=False, markup=False, record=True, file=StringIO())
    console.print(bytes_and_results(program))
    assert "\n".join(line.rstrip() for line in console.export_text().splitlines()) == REPORT


def test_refusals_stops_and_branches(program: Any) -> None:
    found = compare(program.product, (np.array([7, -7], np.int32), np.array([2, 2], np.int32)))
    lines = str(found).splitlines()
    # 3 and -4 rounded down, 3 and -3 toward zero.
    assert lines[:3] == [
        "product: jax and dali diverge on 2 of 4 lines, of themselves on 2",
        "  first refusal       program.py:12  z = z @ z",
        "  first other value   program.py:10  z = x // y",
    ]
    assert lines[3:5] == [
        "  values leave        program.py:11  if int(z.max()) > 2:",
        "                      int() in jax and dali; what is computed of them is not compared",
    ]
    assert lines[5].startswith("  dali stops at program.py:12: dali has no operation 'matmul'; it has + - ")
    assert "dali matmul(int32, int32) refused 0 B" in words(found)
    assert any(line.startswith("    dali refuses: dali has no operation 'matmul'; it has") for line in lines)
    # -2 // 1 in NumPy; the quotient by zero is 0 in NumPy, -2 in JAX, an error in DALI, which ends where it is asked for.
    failing = compare(
        program.product, (np.array([-2, 7], np.int32), np.array([1, 0], np.int32)), ("numpy", "jax", "dali")
    )
    lines = words(failing)
    assert "dali stops at program.py:11: division by zero of int32" in lines
    assert "dali fails on these values: division by zero of int32" in lines
    assert "dali not reached" in lines
    assert "first other branch" not in str(failing)


def test_a_branch_not_taken() -> None:
    def branch(x: Any) -> Any:
        y = x + 10
        if int(y.max()) > 255:
            y = -y
        return y

    found = compare(branch, np.array([250], np.uint8))
    assert {"jax not done", "only dali does this"} < set(words(found))
    assert re.search(r"^  first other branch  .*y = -y$", str(found), re.MULTILINE)


def test_a_cast_in_between() -> None:
    def add(x: Any) -> Any:
        return x + 300

    lines = str(compare(add, np.array([1], np.uint8), ("jax", "numpy"))).splitlines()
    assert "  jax    uint8 + 300  uint8  add               1 B" in lines
    assert "  numpy  uint8 + 300  uint8  add after a cast  1 B" in lines
    said = [
        "    numpy refuses: Python integer 300 out of bounds for uint8; convert the other side with .astype(np.int16); continued",
        "    with both operands cast to uint8, as jax computes",
    ]
    place = lines.index(said[0])
    assert lines[place : place + 2] == said


def test_agreement() -> None:
    def same(x: Any) -> Any:
        return x + x

    report = str(compare(same, np.zeros(2, np.float32)))
    assert report.splitlines()[0] == "same: jax and dali agree in every type and value"
    assert report.splitlines()[-1] == "1 line agrees"


def test_turns_of_a_loop_share_a_row() -> None:
    def scaled(x: Any) -> Any:
        for step in (0.5, 1.5, 0.1):
            x = x * step
        return x

    found = compare(scaled, np.array([1.0, 2.0]))
    lines = words(found)
    # 0.5 and 1.5 are float32 too; 0.1 is not, in the third turn. 3 * 2 * 8 bytes.
    assert "jax, dali float64 * ... (3 times) float64 mul 48 B" in lines
    assert any(line.startswith("1 of 3 times, here time 3: 2 of 2 elements differ") for line in lines)


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place(str(tmp_path / "a" / "b.py"), 3) == "a/b.py:3"
    assert place(str(tmp_path.parent / "b.py"), 3) == "b.py:3"
    assert place("<stdin>", 1) == "<stdin>:1"
