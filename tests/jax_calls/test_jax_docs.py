"""The program of docs/jax.md prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.jax, pytest.mark.jit]
pytest.importorskip("jax", reason="needs JAX: pip install 'weft[jax]'")

PAGE = (Path(__file__).parents[2] / "docs" / "jax.md").read_text(encoding="utf-8")


def test_the_program_of_the_page(tmp_path: Path) -> None:
    found = re.search(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "program.py").write_text(found[1], encoding="utf-8")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "sine: True\ngradient: True\nrows: True\n"), done.stderr
