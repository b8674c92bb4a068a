"""`weft compile`: each stage of a kernel for each machine, the launch in a line, every error in one line."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from cuda_arrays import CupyArray, fake_cupy
from fake_cuda import FakeDriver, install
from weft import emulator
from weft.cli import main
from weft.emulator import Race

pytestmark = pytest.mark.jit

KERNELS = """\
import weft
import weft.language as tl


@weft.jit
def scale(x, y, n, factor: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(y + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@weft.jit
def narrow(x):
    tl.atomic_add(x, 1)
"""

SIGNATURE = ["--signature", "*fp32:16, *fp32:16, i32, 3.0"]


@pytest.fixture
def scale(tmp_path: Path) -> str:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return f"{path}:scale"


def test_ptx_can_be_launched_from_its_text(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", scale, "--target", "sm_80", "--num-warps", "2", "--disjoint", *SIGNATURE]) == 0
    ptx = capsys.readouterr().out
    first, *parameters = [
        line for line in ptx.splitlines() if line.startswith("// ") and not line.startswith("// Gen")
    ][:4]
    assert parameters == [
        "// byte 0: x, address of float32, 8 bytes, a multiple of 16",
        "// byte 8: y, address of float32, 8 bytes, a multiple of 16",
        "// byte 16: n, int32, 4 bytes",
    ]
    launch = re.fullmatch(
        r"// launch (\w+): a block for each program, (\d+) threads a block, (\d+) bytes of dynamic shared memory", first
    )
    assert launch is not None, first
    assert launch.groups() == ("scale", "64", "0")
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    emulator.Module(ptx).launch("scale", 2, 64, [x, y, np.int32(100)])
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize(
    ("arguments", "shown", "absent"),
    [
        (["--emit", "tile-ir"], "tile.load", "tile.layout"),
        (["--emit", "laid-out"], "register: ", "warp: "),
        (["--emit", "laid-out", "--target", "sm_90"], "warp: ", ".visible"),
        (["--emit", "llvm"], "define", "ptx_kernel"),
        (["--emit", "llvm", "--target", "sm_90"], "ptx_kernel", ".visible"),
        ([], "ret", ".visible .entry"),
        (["--emit", "asm"], "ret", ".visible .entry"),
        (["--target", "sm_90a"], ".target sm_90a", "sm_80"),
    ],
    ids=" ".join,
)
def test_each_stage(
    scale: str, arguments: list[str], shown: str, absent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", scale, *SIGNATURE, *arguments]) == 0
    out = capsys.readouterr().out
    assert shown in out
    assert absent not in out
    assert out.endswith("\n")


def test_a_file_takes_the_text(scale: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "scale.ptx"
    assert main(["compile", scale, *SIGNATURE, "--target", "sm_90", "-o", str(output)]) == 0
    assert capsys.readouterr().out == ""
    assert emulator.Module(output.read_text()).kernels == ["scale"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--target", "sm_9"],
            "unknown target 'sm_9'; weft compiles for sm_80, sm_86, sm_89, sm_90, sm_90a; did you mean 'sm_90'?",
        ),
        (["--emit", "elf"], "--emit is 'elf', expected tile-ir, laid-out, llvm, asm, ptx, sass, resources"),
        (["--emit", "sass"], "--emit sass is for a GPU: add --target"),
        (
            ["--target", "sm_90", "--emit", "sass"],
            "nvdisasm is not found: set WEFT_PTXAS to the path of ptxas, or CUDA_HOME, or put it on PATH",
        ),
        (
            ["--target", "sm_90", "--emit", "resources"],
            "ptxas is not found: set WEFT_PTXAS to the path of ptxas, or CUDA_HOME, or put it on PATH",
        ),
        (
            ["--target", "sm_90", "--num-warps", "64"],
            "kernel 'scale' on sm_90: out of threads: a block asks for 2048 and may have 1024; a warp has 32 threads: lower "
            "num_warps",
        ),
        (["--maxnreg", "0"], "--maxnreg is 0, expected a positive int or None"),
        (["--emit", "ptx"], "--emit ptx is for a GPU: add --target"),
        (["--emit", "asm", "--target", "sm_90"], "--emit asm is for this CPU: a GPU has ptx"),
        (["--num-warps", "3"], "--num-warps is 3, expected a power of two"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_errors_are_one_line(
    scale: str,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("WEFT_PTXAS", "CUDA_HOME", "PATH"):
        monkeypatch.delenv(variable, raising=False)
    assert main(["compile", scale, *SIGNATURE, *arguments]) == 2
    assert capsys.readouterr() == ("", f"weft: {message}\n")


def test_an_op_that_the_target_lacks_is_named_with_its_line(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = scale.rpartition(":")[0]
    assert main(["compile", f"{path}:narrow", "--signature", "*i8", "--target", "sm_90"]) == 2
    assert capsys.readouterr().err == (
        f"weft: {path}:13: tile.atomic_rmw has no instruction for int8 on sm_90; use a type of 16, 32 or 64 bits; "
        "a GPU's atomics do not reach single bytes\n"
    )


def test_tile_ir_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "k.mlir", *SIGNATURE]) == 2
    assert (
        capsys.readouterr().err
        == "weft: 'k.mlir' is no file of kernels in Python, expected FILE.py or FILE.py:KERNEL\n"
    )


needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("ptxas", "nvdisasm"))),
    reason="ptxas or nvdisasm, whose output is printed, is not on the PATH",
)


@needs_tools
def test_what_nvidias_tools_say(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compile", scale, "--target", "sm_80", "--maxnreg", "32", *SIGNATURE, "--emit"]
    assert main([*arguments, "resources"]) == 0
    needs = json.loads(capsys.readouterr().out)
    assert 0 < needs["registers"] <= 32
    assert (needs["spill_stores"], needs["threads"], needs["dynamic_shared"]) == (0, 128, 0)
    assert main([*arguments, "sass"]) == 0
    assert "LDG.E" in capsys.readouterr().out


def page() -> str:
    return (Path(__file__).parents[2] / "docs/nvidia.md").read_text()


EMULATED, RACING, ON_A_CARD, BY_OTHERS = range(4)
"""The programs of the page, in order; the others go on after the first."""


def programs() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page(), re.DOTALL | re.MULTILINE)


def test_the_program_of_the_documentation(tmp_path: Path) -> None:
    """Four blocks of 256 floats, three arrays of 1,000 floats each: 125 sectors an array."""
    path = tmp_path / "program.py"
    path.write_text(programs()[EMULATED])
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert 375 <= int(run.stdout) <= 378


def test_the_racing_program_of_the_documentation(tmp_path: Path) -> None:
    """It leaves one of the places, and is a race where the check is on."""
    first, second = programs()[EMULATED], programs()[RACING]
    path = tmp_path / "program.py"
    path.write_text(first + second)
    names = runpy.run_path(str(path))
    assert names["x"][names["found"][0]] > 0.5
    path.write_text(first + re.sub(r", checks=.*\)", ")", second))
    with pytest.raises(Race, match="write different values to bytes 0 to 3 of 'argument 0' in one instruction"):
        runpy.run_path(str(path))


@pytest.mark.parametrize("number", [ON_A_CARD, BY_OTHERS])
def test_launches_of_the_documentation(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver, and CuPy, are imitations; the programs are as on the page."""
    driver = install(monkeypatch, FakeDriver())
    rng = np.random.default_rng(0)

    def rand(*shape: int, dtype: type[np.float32]) -> list[CupyArray]:
        return [CupyArray(driver, row) for row in rng.random(shape, dtype)]

    def empty_like(array: CupyArray) -> CupyArray:
        return CupyArray(driver, np.zeros_like(array.array))

    cupy = fake_cupy(0)
    cupy.random, cupy.empty_like, cupy.float32 = types.SimpleNamespace(rand=rand), empty_like, np.float32
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    path = tmp_path / "program.py"
    path.write_text(f"{programs()[EMULATED].partition('with weft')[0]}\nout[:] = 0\n{programs()[number]}")
    names = runpy.run_path(str(path))
    x, y, out = (names[name] for name in ("x", "y", "out"))
    if number == ON_A_CARD:
        x, y, out = x.array, y.array, out.numpy()
    np.testing.assert_array_equal(out, x + y)
    assert [(launch.grid, launch.block) for launch in driver.launches] == [((4, 1, 1), (128, 1, 1))]


def test_commands_of_the_documentation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    commands = re.findall(r"^weft (compile .*)$", page(), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)) == 0
        assert capsys.readouterr().out.startswith(("// launch softmax_kernel: ", "builtin.module {"))
