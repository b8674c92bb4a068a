"""`benchmarks/gpu.py` from one end to the other on an imitation of the driver: right results pass, wrong ones do not, no card is
said."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_cuda import Card, FakeDriver, install
from weft.emulator import Module

pytestmark = pytest.mark.jit

ROOT = Path(__file__).parents[2]

RUN = """\
import sys
sys.path[:0] = ["benchmarks", "tests"]
import pytest
from fake_cuda import Card, FakeDriver, install

install(pytest.MonkeyPatch(), FakeDriver([Card("Imaginary H100", (9, 0), 227 * 1024)]))
import gpu
sys.exit(gpu.main(sys.argv[1:]))
"""

DOUBLE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry double_it(.param .u64 x)
{
    .reg .b64 %a;
    .reg .f32 %f;
    ld.param.u64 %a, [x];
    ld.global.f32 %f, [%a];
    add.f32 %f, %f, %f;
    st.global.f32 [%a], %f;
    ret;
}
"""


class Wrong(FakeDriver):
    """A card whose results are wrong in the last bit of the first float."""

    def cuMemcpyDtoH(self, target: int, source: int, size: int, /) -> Any:
        super().cuMemcpyDtoH(target, source, size)
        ctypes.c_uint32.from_address(target).value ^= self.bits

    bits = 1


def gpu(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> Any:
    """The benchmark as a module."""
    install(monkeypatch, driver)
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    return importlib.import_module("gpu")


def test_correctness_from_the_command_line(tmp_path: Path) -> None:
    """A test that launches on sm_90 judges what comes back from the card."""
    arguments = ["--part", "correctness", "--tests", "tests/runtime/test_emulated.py", "-k", "on_places_one"]
    command = [sys.executable, "-c", RUN, *arguments, "--out", str(tmp_path / "table.md")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    table = (tmp_path / "table.md").read_text()
    assert table.startswith("# Imaginary H100 (compute capability 9.0), driver of CUDA 12.4, sm_90a, 20")
    for line in ("| tests | 1 passed |", "| launches on the card | 1 |", "| as the emulator, bit for bit | 1 |"):
        assert line in table


@pytest.mark.parametrize(("bits", "found"), [(0, (1, 0, 0)), (1, (0, 1, 0)), (1 << 31, (0, 0, 1))])
def test_a_launch_is_compared_with_the_emulator(
    bits: int, found: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal, near (the last bit), different (the sign); the card's result stays, in all views of it."""
    driver = Wrong()
    driver.bits = bits
    benchmark = gpu(monkeypatch, driver)
    launches = benchmark.Launches(benchmark.Card())
    x = np.array([3, 5], np.float32)
    launches.launch(Module(DOUBLE), "double_it", 1, 1, [x])
    assert (launches.equal, launches.near, len(launches.different)) == found
    expected = np.float32(6).view(np.uint32) ^ np.uint32(bits)
    assert x.view(np.uint32)[0] == expected
    assert x[1] == 5


def test_what_is_not_for_the_card_runs_in_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = gpu(monkeypatch, FakeDriver())
    launches = benchmark.Launches(benchmark.Card())
    x = np.array([3, 5], np.float32)
    launches.launch(Module(DOUBLE.replace("sm_80", "sm_86")), "double_it", 1, 1, [x])
    assert launches.left_out == {"sm_86 is not for this card": 1}
    assert x.tolist() == [6, 5]


def test_tables_of_the_cpus_addresses_are_not_for_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = gpu(monkeypatch, FakeDriver([Card(capability=(8, 0))]))
    launches = benchmark.Launches(benchmark.Card())
    x = np.array([3, 5], np.float32)
    launches.launch(Module(DOUBLE), "double_it", 1, 1, [x], memory=[np.zeros(1)])
    assert launches.left_out == {"addresses of the host in tables": 1}
    assert x.tolist() == [6, 5]


def test_the_suite_is_what_the_tests_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that move or are renamed are missed here, and tests that are left out are there to be left out."""
    benchmark = gpu(monkeypatch, FakeDriver())
    assert [test for test in benchmark.SUITE if not (ROOT / test).exists()] == []
    for test in benchmark.LEFT_OUT:
        file, _, name = test.partition("::")
        assert any(file.startswith(entry) for entry in benchmark.SUITE), test
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), test


def test_without_a_card(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu(monkeypatch, FakeDriver([])).main([]) == 2
    assert capsys.readouterr().out == ("There is no card to run on: cuInit: CUDA_ERROR_NO_DEVICE (100): no device\n")


def test_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels run on the card's arrays; a wrong result, and a kernel that asks for too much, are in the table."""
    benchmark = gpu(monkeypatch, FakeDriver([Card(capability=(8, 0))]))
    made = {case.kernel: case for case in benchmark.cases(True)}

    def unchanged(x: Any) -> Any:
        return x

    wrong = benchmark.Case(**{**vars(made["softmax"]), "name": "wrong", "expected": unchanged})
    large = benchmark.Case(
        **{**vars(made["vector_add"]), "name": "large", "variants": ({"BLOCK": 64, "num_warps": 64},)}
    )

    def three(small: bool) -> list[Any]:
        return [made["vector_add"], wrong, large]

    monkeypatch.setattr(benchmark, "cases", three)
    assert benchmark.main(["--part", "times", "--small", "--repeats", "1"]) == 1
    printed = capsys.readouterr().out.splitlines()
    add, off, asks = (
        next(line for line in printed if line.startswith(f"| {name}")) for name in ("add", "wrong", "large")
    )
    assert [cell.strip() for cell in add.split("|")][3:5] == ["", ""]
    assert "| copy |" in add
    assert add.endswith("|  |")
    assert "weft is off by" in off
    assert (
        "OutOfResources: kernel 'vector_add' on sm_80: out of threads: a block asks for 2048 and may have 1024" in asks
    )
