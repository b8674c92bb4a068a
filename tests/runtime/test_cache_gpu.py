"""PTX on disk: a second process compiles nothing, and code whose lines have moved is compiled anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from cuda_arrays import Interface
from fake_cuda import FakeDriver, install
from weft.runtime import cache, compiler
from weft.runtime.artifacts import Artifact, GpuArtifact

pytestmark = pytest.mark.jit

ARTIFACT = GpuArtifact(ptx=".version 8.0\n// é\n", symbol="kernel", threads=128, shared=4096, written=("out", "x"))


@weft.jit
def scale(x: Any, factor: Any, SIZE: tl.constexpr) -> None:
    i = tl.arange(0, SIZE)
    tl.store(x + i, tl.load(x + i) * factor)


@pytest.fixture(autouse=True)
def _directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_CACHE", raising=False)


def test_an_entry_comes_back_equal() -> None:
    assert cache.load_gpu("key") is None
    assert cache.store("key", ARTIFACT)
    assert cache.load_gpu("key") == ARTIFACT


def test_entries_of_the_other_kind_are_none() -> None:
    cache.store("gpu", ARTIFACT)
    cache.store("cpu", Artifact(b"\xff\x00", "kernel", 0, ()))
    assert cache.load("gpu") is None
    assert cache.load_gpu("cpu") is None


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets of what is compiled."""
    targets: list[str] = []
    build = compiler.build_gpu

    def counting(*args: Any) -> GpuArtifact:
        targets.append(args[3].name)
        return build(*args)

    monkeypatch.setattr(compiler, "build_gpu", counting)
    return targets


def test_all_places_share_entries(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new kernel object is as in a new process: nothing is in memory yet."""
    driver = install(monkeypatch, FakeDriver())
    x = np.ones(64, np.float32)
    with weft.emulate("sm_80"):
        weft.jit(scale.fn)[(1,)](x, 2.0, SIZE=64)
    weft.jit(scale.fn).on("sm_80")[(1,)](x, 2.0, SIZE=64)
    weft.jit(scale.fn).profile("sm_80")[(1,)](x, 2.0, SIZE=64)
    handle = weft.jit(scale.fn).compile(x, 2.0, SIZE=64, target="sm_80")
    on_card = Interface(driver, x)
    weft.jit(scale.fn)[(1,)](on_card, 2.0, SIZE=64)
    assert built == ["sm_80"]
    assert handle.ptx.count(".entry") == 1
    np.testing.assert_array_equal(on_card.numpy(), np.full(64, 16, np.float32))
    weft.jit(scale.fn).on("sm_90")[(1,)](x, 2.0, SIZE=64)
    weft.jit(scale.fn).on("sm_80")[(1,)](x, 2.0, SIZE=64, num_warps=2)
    weft.jit(scale.fn).on("sm_80")[(1,)](x, 2.0, SIZE=32)
    assert built == ["sm_80", "sm_90", "sm_80", "sm_80"]


def test_with_the_cache_off_each_kernel_compiles(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    for _ in range(2):
        weft.jit(scale.fn).on("sm_80")[(1,)](np.ones(64, np.float32), 2.0, SIZE=64)
    assert len(built) == 2


PROGRAM = """\
import sys
import numpy as np
import weft
import weft.language as tl

@weft.jit
def helper(x, i):
    return tl.load(x + i)

@weft.jit
def double(x, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(x + i, 2 * helper(x, i))

if "forbidden" in sys.argv:
    from weft.runtime import compiler
    del compiler.tile_ir
x = np.ones(64, np.float32)
profile = double.profile("sm_80")[(1,)](x, SIZE=64)
assert (x == 2).all()
print(sorted({row.line for row in profile.lines if row.line}))
"""


def run(path: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, str(path), *arguments], capture_output=True, text=True, check=False)
    return done.stdout or done.stderr.strip().splitlines()[-1]


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """But it does where the lines have moved: the PTX names them."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    first = run(path)
    assert first == "[8, 11, 13]\n"
    assert run(path, "forbidden") == first
    path.write_text("\n" + PROGRAM)
    assert run(path, "forbidden").startswith("NameError: name 'tile_ir'")
    assert run(path) == "[9, 12, 14]\n"
    path.rename(tmp_path / "other.py")
    assert run(tmp_path / "other.py", "forbidden").startswith("NameError: name 'tile_ir'")
