"""The pytest plugin: test modules that import Triton run on weft."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jit

TEST = """\
import numpy as np
import triton
import triton.language as tl

@triton.jit
def one(x):
    tl.store(x, 1)

def test_launch(device, fresh_knobs, fresh_triton_cache):
    x = np.zeros(1, np.int32)
    kernel = one[(1,)](x)
    assert x[0] == 1
    assert kernel.metadata.target.backend == "BACKEND"
    assert device == "cuda"
"""


def run(folder: Path, backend: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(TEST.replace("BACKEND", backend))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "weft.pytest_triton", "-p", "no:cacheprovider", *options]
    return subprocess.run([*command, "test_it.py"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("backend", "options"), [("cpu", ()), ("cuda", ("--weft-device", "sm_80"))])
def test_tests_run_on_weft(tmp_path: Path, backend: str, options: tuple[str, ...]) -> None:
    result = run(tmp_path, backend, *options)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_unknown_device(tmp_path: Path) -> None:
    result = run(tmp_path, "cpu", "--weft-device", "tpu")
    assert "--weft-device: unknown target 'tpu'" in result.stderr
