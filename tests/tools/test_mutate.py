"""The mutation tool, on a tiny package of which it is known what the tests see.

The package has three tested functions and one that no test runs. Mutants that survive are derived by hand in the comments.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutate.py"

SOURCE = '''"""A docstring."""

LIMITS = {"low": 0, "high": 10}


def inside(value: int) -> bool:
    """Another docstring."""
    return value >= LIMITS["low"] and value < LIMITS["high"]


def total(values: list[int]) -> int:
    result = 0
    for value in values:
        if value < 0:
            continue
        result += value
    return result


def forget(seen: list[int]) -> None:
    seen.sort()
    seen.clear()


def unused(value: int) -> int:
    return value + 1
'''

TESTS = """from tiny.core import forget, inside, total


def test_inside():
    assert inside(5)
    assert not inside(-1)
    assert not inside(10)


def test_total():
    assert total([1, -2, 3]) == 4


def test_forget():
    seen = [2, 1]
    forget(seen)
    assert seen == []
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The tiny package and its tests."""
    (tmp_path / "src" / "tiny").mkdir(parents=True)
    (tmp_path / "src" / "tiny" / "__init__.py").write_text("")
    (tmp_path / "src" / "tiny" / "core.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_tiny.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return tmp_path


def mutate(package: Path, *options: str) -> tuple[int, list[str]]:
    """The tool's exit status and the lines it prints."""
    command = [sys.executable, str(TOOL), "src/tiny/core.py", "--tests", "tests", *options]
    environment = {**os.environ, "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_the_mutants_of_a_module(package: Path) -> None:
    status, lines = mutate(package, "--list", "--function", "inside|forget")
    assert status == 0
    assert lines == [
        'core.py:8: and/or: value >= LIMITS["low"] and value < LIMITS["high"]  ->  '
        "(value >= LIMITS['low'] or value < LIMITS['high'])",
        "core.py:8: comparison: value >= LIMITS[\"low\"]  ->  (value > LIMITS['low'])",
        "core.py:8: comparison: value < LIMITS[\"high\"]  ->  (value <= LIMITS['high'])",
        'core.py:8: return: value >= LIMITS["low"] and value < LIMITS["high"]  ->  False',
        'core.py:8: return: value >= LIMITS["low"] and value < LIMITS["high"]  ->  True',
        "core.py:8: rule: dropped: value < LIMITS['high']",
        "core.py:8: rule: dropped: value >= LIMITS['low']",
        "core.py:21: deleted: seen.sort()",
        "core.py:22: deleted: seen.clear()",
        "core.py:22: return: before: seen.clear()",
    ]


def test_survivors_are_shown_with_their_line(package: Path) -> None:
    before = (package / "src" / "tiny" / "core.py").read_text()
    status, lines = mutate(package, "--function", "inside|total|forget|unused")
    assert status == 1
    survivors = [line for line in lines if line.startswith("src/tiny/core.py:")]
    assert survivors == [
        # no test asks about the smallest value inside
        "src/tiny/core.py:8: survived: comparison: value >= LIMITS[\"low\"]  ->  (value > LIMITS['low'])",
        # nothing between -2 and 1 is summed up
        "src/tiny/core.py:14: survived: comparison: value < 0  ->  (value <= 0)",
        "src/tiny/core.py:14: survived: constant: 0  ->  (-1)",
        "src/tiny/core.py:14: survived: constant: 0  ->  1",
        # a list that is cleared need not be sorted
        "src/tiny/core.py:21: survived: deleted: seen.sort()",
        # nothing calls the function
        "src/tiny/core.py:26: no test: constant: 1  ->  0",
        "src/tiny/core.py:26: no test: constant: 1  ->  2",
        "src/tiny/core.py:26: no test: operator: value + 1  ->  (value - 1)",
    ]
    assert (package / "src" / "tiny" / "core.py").read_text() == before


def test_what_an_earlier_run_left_is_taken_again(package: Path) -> None:
    """Of that run's output; a mutant that it killed, and one whose kind the options do not name, is not."""
    (package / "earlier.txt").write_text(
        "src/tiny/core.py:14: survived: constant: 0  ->  1\n"
        "src/tiny/core.py:15: killed by tests/test_tiny.py::test_total: deleted: continue\n"
        "src/tiny/core.py:26: no test: constant: 1  ->  2\n"
        "src/tiny/core.py:26: no test: operator: value + 1  ->  (value - 1)\n"
    )
    status, lines = mutate(package, "--list", "--kind", "constant", "--kind", "deleted", "--again", "earlier.txt")
    assert status == 0
    assert lines == ["core.py:14: constant: 0  ->  1", "core.py:26: constant: 1  ->  2"]


def test_functions_are_replaced_without_a_new_process(package: Path) -> None:
    """Also where a conftest hides what exists from the garbage collector, as that of weft does."""
    (package / "tests" / "conftest.py").write_text(
        "import gc\n\n\ndef pytest_collection_finish():\n    gc.collect()\n    gc.freeze()\n"
    )
    status, lines = mutate(package, "--function", "total", "--kind", "deleted", "--verbose")
    assert status == 0
    assert [line for line in lines if line.startswith("src/")] == [
        "src/tiny/core.py:15: killed by tests/test_tiny.py::test_total: deleted: continue",
        "src/tiny/core.py:16: killed by tests/test_tiny.py::test_total: deleted: result += value",
    ]


def test_a_function_that_another_has_made_is_replaced(package: Path) -> None:
    """``double`` is made at import; the code of ``times`` runs no more."""
    (package / "src" / "tiny" / "core.py").write_text(
        "def times(n):\n    def product(x):\n        return [y * n for y in x]\n\n    return product\n\n\ndouble = times(2)\n"
    )
    (package / "tests" / "test_tiny.py").write_text(
        "from tiny.core import double\n\n\ndef test_double():\n    assert double([3]) == [6]\n"
    )
    status, lines = mutate(package, "--function", "times", "--verbose")
    assert status == 0
    assert [line for line in lines if line.startswith("src/")] == [
        "src/tiny/core.py:3: killed by tests/test_tiny.py::test_double: empty loop: x  ->  ()",
        "src/tiny/core.py:3: killed by tests/test_tiny.py::test_double: operator: y * n  ->  (y // n)",
    ]


def test_a_module_that_tests_import_late_is_replaced_as_well(package: Path) -> None:
    tests = package / "tests" / "test_tiny.py"
    tests.write_text("def test_total():\n    from tiny.core import total\n\n    assert total([1, -2, 3]) == 4\n")
    _, lines = mutate(package, "--function", "total", "--kind", "deleted", "--verbose")
    assert "src/tiny/core.py:15: killed by tests/test_tiny.py::test_total: deleted: continue" in lines


def test_a_table_is_changed_in_a_copy_of_the_sources(package: Path) -> None:
    """LIMITS is made at import: low 0 or 1 cannot be told apart by -1, 5 and 10, nor can high 10 and 9."""
    status, lines = mutate(package, "--kind", "constant", "--kind", "rule", "--function", "^$")
    assert status == 1
    assert [line for line in lines if line.startswith("src/")] == [
        "src/tiny/core.py:3: survived: constant: 0  ->  1",
        "src/tiny/core.py:3: survived: constant: 10  ->  9",
    ]
    assert (package / "src" / "tiny" / "core.py").read_text() == SOURCE


def test_a_sample_is_the_same_for_the_same_seed(package: Path) -> None:
    first, again, other = (mutate(package, "--list", "--sample", "4", "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert len(first) == 4
    assert first == again != other


@pytest.mark.nightly  # it waits for a time limit that is five times what the tests take
def test_an_endless_loop_is_killed(package: Path) -> None:
    (package / "src" / "tiny" / "core.py").write_text(
        "def half(n: int) -> int:\n    while n > 3:\n        n //= 2\n    return n\n"
    )
    (package / "tests" / "test_tiny.py").write_text(
        "from tiny.core import half\n\n\ndef test_half():\n    assert half(8) == 2\n"
    )
    status, lines = mutate(package, "--kind", "deleted", "--patience", "1", "--markdown", "table.md")
    assert status == 0
    assert (package / "table.md").read_text() == "| `tiny/core.py` | 1 | 1 | 0 |\n"
    assert any("timeout" in line for line in lines)


def test_tests_that_fail_without_a_mutant_are_left_out(package: Path) -> None:
    tests = package / "tests" / "test_tiny.py"
    tests.write_text(TESTS.replace("== 4", "== 5"))
    _, lines = mutate(package, "--function", "total", "--kind", "deleted")
    assert "left out, since it fails on the unchanged sources: tests/test_tiny.py::test_total" in lines
    assert "src/tiny/core.py:15: no test: deleted: continue" in lines


def test_modules_that_are_not_below_src_are_refused(package: Path) -> None:
    (package / "core.py").write_text("")
    command = [sys.executable, str(TOOL), "core.py"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "mutate: the modules must lie below one folder named src\n")
