"""Each example's own comparison with NumPy, on each machine."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import agreement
import numpy as np
import pytest

from sampling import grid

pytestmark = pytest.mark.jit

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.py") if "\ndef main() -> None:" in p.read_text())


def compare(name: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "MACHINES", (machine,))
    importlib.import_module(name).main()


@pytest.mark.parametrize("name", EXAMPLES)
def test_on_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(name, "cpu", monkeypatch)


@pytest.mark.parametrize(("name", "machine"), grid(2, EXAMPLES, ["sm_80", "sm_90"]))
def test_on_a_gpu(name: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(name, machine, monkeypatch)


def test_the_readme_names_each_example() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in EXAMPLES if f"](examples/{name}.py)" not in readme] == []


@pytest.mark.parametrize(
    ("found", "apart"),
    [([4.0, 1.0], 0.0), ([4.0, 2.0], 0.25), ([np.nan, 1.0], np.inf), ([4.0, np.inf], np.inf)],
    ids=["equal", "an element is off by 1 of 4", "NaN", "infinity"],
)
def test_a_difference_is_in_units_of_the_greatest_value(found: Any, apart: float) -> None:
    assert agreement.difference(np.array(found), np.array([4.0, 1.0])) == apart


def test_a_result_that_is_too_far_from_numpys_raises(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match=r"^sum on cpu differs from NumPy by 2\.5e-01, more than 1\.0e-01$"):
        agreement.compare("sum", lambda: np.array([4, 2]), np.array([4, 1]), 0.1)
    assert capsys.readouterr().out == f"{'sum':40} cpu    differs from NumPy by at most 2.5e-01\n"
