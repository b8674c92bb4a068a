"""Kernels from Python source to results: every part of weft at once, on NumPy, ml_dtypes and PyTorch arrays."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def add(x: Any, y: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@weft.jit
def softmax(x: Any, out: Any, stride: Any, columns: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@weft.jit
def scale(out: Any, x: Any, factor: Any, n: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) * factor, mask=offsets < n)


def covering(meta: dict[str, Any]) -> tuple[int]:
    """The grid that covers ``n`` elements in tiles of ``BLOCK``."""
    return (weft.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))


def random(shape: Any, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    generator: Any = np.random.default_rng(0)
    return generator.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64])
def test_vector_add(n: int, dtype: Any) -> None:
    wide: Any = random(n) * 10
    if np.dtype(dtype).kind in "iu":
        wide = wide.astype(np.int64)  # C does not say what a negative float is as an unsigned integer
    x, y = wide.astype(dtype), wide[::-1].astype(dtype)
    out = np.zeros(n + 1, dtype)
    add[covering](x, y, out, n, BLOCK=64)
    assert np.array_equal(out[:n], x + y)
    assert out[n] == 0


@pytest.mark.parametrize(("dtype", "epsilon"), [(np.float32, 2.0**-23), (ml_dtypes.bfloat16, 2.0**-7)])
def test_softmax(dtype: Any, epsilon: float) -> None:
    x = random((37, 50), dtype)
    out = np.zeros_like(x)
    softmax[(37,)](x, out, 50, 50, BLOCK=64, num_warps=4)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    assert np.allclose(out.astype(np.float64), expected, rtol=4 * epsilon, atol=0)


def test_arguments_that_overlap() -> None:
    x = random(100)
    expected = x + x
    add[(2,)](x, x, x, 100, BLOCK=64)
    assert np.array_equal(x, expected)


def test_scalars_of_every_kind() -> None:
    x = np.arange(10, dtype=np.float32)
    for factor in (1, 3, 16, 2.5, True, 2**20, np.float64(0.5)):
        out = np.zeros(10, np.float32)
        scale[(1,)](out, x, factor, 10, BLOCK=16)
        assert np.array_equal(out, x * np.float32(factor))


def test_a_strided_view_starts_at_its_first_element() -> None:
    base = np.arange(20, dtype=np.float32)
    out = np.zeros(5, np.float32)
    scale[(1,)](out, base[10::2], 2.0, 5, BLOCK=16)
    assert np.array_equal(out, base[10:15] * 2)


def test_what_the_kernel_writes_through_must_be_writable() -> None:
    x, out = random(10), np.zeros(10, np.float32)
    x.flags.writeable = False
    scale[(1,)](out, x, 2.0, 10, BLOCK=16)
    assert np.array_equal(out, x * 2)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only") as raised:
        scale[(1,)](out, x, 2.0, 10, BLOCK=16)
    assert str(raised.value) == (
        "kernel 'scale': parameter 'out': found a read-only array, but the kernel writes through it; "
        "pass a writable one"
    )


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64"])
def test_torch_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = (torch.randn(100) * 10).to(getattr(torch, name))
    out = torch.zeros_like(x)
    add[(2,)](x, x.flip(0), out, 100, BLOCK=64)
    assert torch.equal(out, x + x.flip(0))


def test_checked_kernels_name_line_program_and_index() -> None:
    checked = weft.jit(checked=True)(scale)
    out, x = np.zeros(16, np.float32), random(12)
    checked[(1,)](out, x, 2.0, 12, BLOCK=16)
    assert np.array_equal(out[:12], x * 2)
    with pytest.raises(weft.OutOfBoundsError) as raised:
        checked[(1,)](out, x, 2.0, 13, BLOCK=16)
    error = raised.value
    assert (error.kernel, error.program, error.argument, error.index, error.length) == ("scale", (0, 0, 0), "x", 12, 12)
    line = scale.first_line + 3  # the decorator, the signature, the offsets
    assert [(frame.file, frame.line, frame.function) for frame in error.frames] == [(__file__, line, "scale")]
    assert str(error).splitlines()[:3] == [
        "kernel 'scale', program (0, 0, 0): load accesses element 12 of 'x', which has 12",
        f"  at {__file__}:{line}, in scale",
        "        tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) * factor, mask=offsets < n)",
    ]


def test_handles_show_what_was_made() -> None:
    handle = scale.compile(random(4), random(4), 2.0, 4, BLOCK=16)
    assert "tile.load" in handle.ir
    assert "define" in handle.llvm
    assert "ret" in handle.asm


SECOND = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import test_end_to_end as kernels
from weft.runtime import compiler
built = []
build = compiler.build
compiler.build = lambda *arguments: built.append(1) or build(*arguments)
out, x = np.zeros(16, np.float32), np.arange(16, dtype=np.float32)
kernels.scale[(1,)](out, x, 2.5, 16, BLOCK=16)
print(out.tolist() == (x * 2.5).tolist(), len(built))
"""


def test_a_second_process_finds_the_kernel_on_disk(tmp_path: Path) -> None:
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", SECOND, str(Path(__file__).parent)]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert runs == ["True 1\n", "True 0\n"]


@weft.jit
def converted(out: Any, x: Any, kind: tl.constexpr, factor: tl.constexpr) -> None:
    tl.store(out, tl.load(x).to(kind).to(tl.float32) * factor)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("kind", "expected"), [(np.float32, 2.75), (np.dtype("int8"), 2.0), (np.int32, 2.0), (ml_dtypes.bfloat16, 2.75)]
)
def test_types_and_scalars_of_numpy_as_constants(kind: Any, expected: float) -> None:
    out, x = np.zeros(1, np.float32), np.array([2.75], np.float32)
    converted[(1,)](out, x, kind, np.float32(2.0))
    assert out[0] == 2 * expected
    converted[(1,)](out, x, kind, np.float32(-0.0))
    assert np.signbit(out[0])
    converted[(1,)](out, x, kind, np.float32(0.0))
    assert not np.signbit(out[0])


@weft.jit
def ill_typed(x: Any, n: Any) -> None:
    tl.store(x + tl.arange(0, n), 0.0)


def test_a_compilation_error_shows_no_compiler() -> None:
    with pytest.raises(weft.CompilationError) as raised:
        ill_typed[(1,)](random(16), 16)
    files = {Path(frame.filename).name for frame in traceback.extract_tb(raised.value.__traceback__)}
    assert files == {"test_end_to_end.py", "jit.py"}


@weft.jit
def where(out: Any) -> None:
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    own = out + 6 * (x + tl.num_programs(0) * (y + tl.num_programs(1) * z))
    tl.store(own, x)
    tl.store(own + 1, y)
    tl.store(own + 2, z)
    tl.store(own + 3, tl.num_programs(0))
    tl.store(own + 4, tl.num_programs(1))
    tl.store(own + 5, tl.num_programs(2))


@pytest.mark.parametrize("machine", ["native", "sm_90"])
def test_every_program_knows_its_place_and_the_grid(machine: str) -> None:
    out = np.zeros((4, 3, 2, 6), np.int32)
    (where if machine == "native" else where.on(machine))[(2, 3, 4)](out)
    for place in np.ndindex(4, 3, 2):
        assert out[place].tolist() == [*place[::-1], 2, 3, 4]
