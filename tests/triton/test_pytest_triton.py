"""The pytest plugin: test modules that import Triton run on weft."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.triton._internal_testing import ProcessResult, run_in_process

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
    command = [sys.executable, "-m", "pytest", "-q", "-p", "weft.pytest_triton", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "--assert=plain", *options, "test_it.py"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("backend", "options"), [("cpu", ()), ("cuda", ("--weft-device", "sm_80"))])
def test_tests_run_on_weft(tmp_path: Path, backend: str, options: tuple[str, ...]) -> None:
    result = run(tmp_path, backend, *options)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_unknown_device(tmp_path: Path) -> None:
    result = run(tmp_path, "cpu", "--weft-device", "tpu")
    assert "--weft-device: unknown target 'tpu'" in result.stderr


SETTINGS = {"OWN_TEST_RESULT": "set"}


def _told(what: str) -> None:
    os.write(2, f"{what} {os.environ['OWN_TEST_RESULT']}".encode())


def _failing(error: Exception) -> None:
    raise error


class Unsendable(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def test_functions_run_in_processes_of_their_own() -> None:
    found = run_in_process(_told, args=("variable",), env=SETTINGS)
    assert found == ProcessResult(None, "variable set")
    assert "OWN_TEST_RESULT" not in os.environ
    raised = run_in_process(_failing, (KeyError("a"),)).exc
    assert isinstance(raised, KeyError)
    replaced = run_in_process(_failing, (Unsendable(1, 2),)).exc
    assert (type(replaced), str(replaced)) == (RuntimeError, "Unsendable: 1 and 2")


def test_processes_that_hang_or_die(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError) as raised:
        run_in_process(os._exit, (3,))
    assert str(raised.value) == "the process ended with code 3 and without a result"
    monkeypatch.setenv("TRITON_TEST_PROCESS_TIMEOUT", "0.05")
    with pytest.raises(TimeoutError) as late:
        run_in_process(time.sleep, (60,))
    assert str(late.value) == "test subprocess sleep exceeded its 0.05-second timeout"
