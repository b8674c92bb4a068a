"""`import weft`: what it offers, and what it does not load."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert weft.__version__ == project["project"]["version"]


@given(st.integers(0, 2**40), st.integers(1, 2**20))
def test_cdiv_is_the_least_number_of_tiles_that_cover(x: int, y: int) -> None:
    tiles = weft.cdiv(x, y)
    assert (tiles - 1) * y < x <= tiles * y


@given(st.integers(1, 2**70))
def test_next_power_of_2(n: int) -> None:
    power = weft.next_power_of_2(n)
    assert power.bit_count() == 1
    assert power // 2 < n <= power


def test_next_power_of_2_of_nothing() -> None:
    with pytest.raises(ValueError, match="positive") as raised:
        weft.next_power_of_2(0)
    assert str(raised.value) == "next_power_of_2: expected a positive integer, found 0"


def test_importing_weft_loads_no_compiler() -> None:
    code = "import sys, weft, weft.language; print([m for m in ('xdsl', 'llvmlite', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_defining_and_launching_need_no_compiler() -> None:
    """A process whose kernels are on disk launches them without xDSL; so does one that imports a Triton program."""
    code = "import sys, weft.runtime.jit, weft.triton; print([m for m in ('xdsl', 'llvmlite', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


WITHOUT: Final = (
    "xdsl",
    "llvmlite",
    "difflib",
    "fractions",
    "pathlib",
    "weft.language.extra",
    "weft.runtime.cuda",
    "weft.runtime.emulated",
    "weft.runtime.handles",
    "weft.runtime.views",
    "weft.semantics.core",
)
"""Modules without which a kernel that is on disk is launched on the CPU. To load them would take some 25 ms."""


@pytest.mark.jit
def test_a_program_whose_kernels_are_on_disk_loads_no_compiler(tmp_path: Path) -> None:
    """Nor what only other launches need. A compilation loads no package that `cache.fingerprint` leaves out."""
    program = """
import sys
import numpy as np
import weft
import weft.language as tl

@weft.jit
def kernel(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 1.0)

kernel[(1,)](np.zeros(16, np.float32), BLOCK=16)
loaded = [m for m in ("xdsl", "llvmlite") if m in sys.modules]
if loaded:
    kernel.compile(np.zeros(16, np.float32), BLOCK=16, target="sm_90")
    from weft.runtime.cache import APART
    print(loaded, [m for m in sys.modules for name in APART if m.startswith("weft." + name)])
else:
    print([m for m in WITHOUT if m in sys.modules])
"""
    program = program.replace("WITHOUT", repr(WITHOUT))
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    environment = os.environ | {"WEFT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "program.py")]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout for _ in range(2)
    ]
    assert runs[0] == "['xdsl', 'llvmlite'] []\n"
    if sys.platform == "linux" and platform.machine() == "x86_64":
        assert runs[1] == "[]\n"


def test_names() -> None:
    for name in weft.__all__:
        assert getattr(weft, name) is not None
