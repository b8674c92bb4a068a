"""`weft run`: a script as Python runs it, with weft under the name of Triton."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jit

SCRIPT = """\
import sys
import helper_beside
import numpy as np
import triton
import triton.language as tl

@triton.jit
def double(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i))

if __name__ == "__main__":
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    double[(1,)](x, out, BLOCK=8)
    print(sys.argv[1:], helper_beside.NAME, out.sum(), triton.__name__, __file__ == sys.argv[0])
    if "fail" in sys.argv:
        raise ValueError("as asked")
    if "leave" in sys.argv:
        sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "helper_beside.py").write_text("NAME = 'beside'\n")
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return str(path)


def weft_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "weft.run", *arguments], capture_output=True, text=True, check=False)


def test_a_script_gets_its_arguments_as_they_are(script: str) -> None:
    result = weft_run(script, "-1", "--device", "x")
    assert (result.stdout, result.stderr) == ("['-1', '--device', 'x'] beside 56.0 weft.triton True\n", "")
    assert result.returncode == 0


def test_future_imports_of_weft_do_not_reach_the_script(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("def function(x: int): pass\nprint(function.__annotations__)\n")
    assert weft_run(str(path)).stdout == "{'x': <class 'int'>}\n"


def test_an_exception_is_shown_as_python_shows_it(script: str) -> None:
    result = weft_run(script, "fail")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{script}", line 17, in <module>'
    assert lines[-1] == "ValueError: as asked"


def test_the_exit_code_is_the_scripts(script: str) -> None:
    assert weft_run(script, "leave").returncode == 7


def test_an_emulated_run_ends_with_profiles(script: str) -> None:
    result = weft_run("--device", "sm_80", script)
    assert result.returncode == 0
    assert result.stdout.startswith("[] beside 56.0")
    assert "double: launched 1 time; the last launch:" in result.stderr
    assert "sm_80" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "weft: there is no script 'nowhere.py'\n"),
        ([], "weft: the following arguments are required: SCRIPT.py\n"),
        (
            ["--device", "sm_91", "nowhere.py"],
            "weft: unknown target 'sm_91'; weft compiles for sm_80, sm_86, sm_89, sm_90, sm_90a; did you mean 'sm_90'?\n",
        ),
    ],
)
def test_a_wrong_question_is_one_line(arguments: list[str], message: str) -> None:
    result = weft_run(*arguments)
    assert (result.returncode, result.stderr) == (2, message)
