"""Blocks that ask for more than there is: what was asked, what there is, and which lines hold shared memory."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from cuda_arrays import Interface
from fake_cuda import REGISTERS, Card, FakeDriver, install
from weft.ir.position import Position
from weft.runtime.errors import OutOfResources, SharedBuffer

pytestmark = pytest.mark.jit


@weft.jit
def product(a: Any, b: Any, c: Any, K: tl.constexpr) -> None:
    m, k = tl.arange(0, 16), tl.arange(0, K)
    value = tl.dot(tl.load(a + m[:, None] * K + k), tl.load(b + k[:, None] * 16 + m), input_precision="ieee")
    tl.store(c + m[:, None] * 16 + m, value)


LINE = product.fn.__code__.co_firstlineno + 3


def operands(k: int) -> tuple[Any, Any, Any]:
    return np.ones((16, k), np.float32), np.ones((k, 16), np.float32), np.zeros((16, 16), np.float32)


@pytest.mark.parametrize("how", ["compile", "launch"])
def test_shared_memory_of_a_target(how: str) -> None:
    """Two operands of 16 x 1,024 floats take 128 KiB or more; a block of sm_86 may have 99."""
    with pytest.raises(OutOfResources) as raised:
        if how == "compile":
            product.compile(*operands(1024), K=1024, target="sm_86")
        else:
            product.on("sm_86")[(1,)](*operands(1024), K=1024)
    error = raised.value
    assert (error.kernel, error.target, error.resource, error.available) == (
        "product",
        "sm_86",
        "shared memory",
        99 * 1024,
    )
    assert error.asked >= 128 * 1024
    assert (error.buffers[0].operation, error.buffers[0].size) == ("tile.dot", error.asked)
    lines = str(error).splitlines()
    assert lines[:3] == [
        f"kernel 'product' on sm_86: out of shared memory: a block asks for {error.asked} bytes and may have 101376 bytes; "
        "smaller tiles, fewer stages (num_stages) or other num_warps need less",
        f"{error.asked} bytes from byte 0: tile.dot",
        f"  {__file__}:{LINE}:13, in product",
    ]
    assert lines[3].strip().startswith("value = tl.dot(")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.buffers) == (str(error), error.buffers)


@weft.jit
def summed(a: Any, b: Any, c: Any, n: Any, K: tl.constexpr) -> None:
    m, k = tl.arange(0, 16), tl.arange(0, K)
    total = tl.zeros((16, 16), tl.float32)
    for start in range(0, n, K):
        left = tl.load(a + m[:, None] * n + start + k)
        right = tl.load(b + (start + k)[:, None] * 16 + m)
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * 16 + m, total)


def test_the_buffers_of_a_pipelined_loop_name_the_loads() -> None:
    """Seven stages of two operands of 16 x 256 float16, 8 KiB each: seven slots of each are 112 KiB, six are 96."""
    a, b, c = np.ones((16, 512), np.float16), np.ones((512, 16), np.float16), np.zeros((16, 16), np.float32)
    with pytest.raises(OutOfResources) as raised:
        summed.compile(a, b, c, 512, K=256, target="sm_86", num_stages=8)
    error = raised.value
    line = summed.fn.__code__.co_firstlineno + 5
    assert error.asked == 7 * 2 * 16 * 256 * 2
    assert [(buffer.operation, buffer.start, buffer.size, buffer.frames[0].line) for buffer in error.buffers[:2]] == [
        ("gpu.alloc", 0, 7 * 8192, line),
        ("gpu.alloc", 7 * 8192, 7 * 8192, line + 1),
    ]
    assert summed.compile(a, b, c, 512, K=256, target="sm_86", num_stages=7).shared == 6 * 2 * 8192


def test_a_target_with_more_takes_the_same_kernel() -> None:
    assert product.compile(*operands(1024), K=1024, target="sm_90").shared > 99 * 1024


def test_the_largest_buffers_are_listed() -> None:
    place = (Position("k.py", 3, 4, "k"),)
    buffers = [SharedBuffer("tile.reduce", 16 * i, 1000 - i, place) for i in range(8)]
    lines = str(OutOfResources("k", "sm_80", "shared memory", 9999, 1000, buffers)).splitlines()
    assert lines[1:3] == ["1000 bytes from byte 0: tile.reduce", "  k.py:3:5, in k"]
    assert len(lines) == 1 + 6 * 2 + 1
    assert lines[-1] == "and 2 more of at most 994 bytes"


def test_threads() -> None:
    said = (
        "kernel 'product' on sm_90: out of threads: a block asks for 2048 and may have 1024; a warp has 32 threads: lower "
        "num_warps"
    )
    with pytest.raises(OutOfResources, match=f"^{re.escape(said)}$"):
        product.compile(*operands(32), K=32, target="sm_90", num_warps=64)
    with pytest.raises(OutOfResources, match=f"^{re.escape(said)}$"):
        product.on("sm_90")[(1,)](*operands(32), K=32, num_warps=64)


def test_a_cpu_has_no_such_limits() -> None:
    a, b, c = operands(32)
    product[(1,)](a, b, c, K=32, num_warps=64)
    np.testing.assert_array_equal(c, a @ b)


def test_shared_memory_of_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card of compute capability 12.0 runs the PTX of sm_90, and has less shared memory."""
    driver = install(monkeypatch, FakeDriver([Card("Imaginary 5090", (12, 0), 99 * 1024)], version=12080))
    arrays = [Interface(driver, array) for array in operands(1024)]
    with pytest.raises(OutOfResources) as raised:
        weft.jit(product.fn)[(1,)](*arrays, K=1024)
    assert str(raised.value) == (
        f"kernel 'product' on card 0 (Imaginary 5090): out of shared memory: a block asks for {raised.value.asked} bytes and may "
        "have 101376 bytes; smaller tiles, fewer stages (num_stages) or other num_warps need less"
    )


def test_all_of_the_cards_shared_memory_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = operands(512)
    asked = product.compile(a, b, c, K=512, target="sm_80").shared
    driver = install(monkeypatch, FakeDriver([Card(shared=asked)]))
    out = Interface(driver, c)
    weft.jit(product.fn)[(1,)](Interface(driver, a), Interface(driver, b), out, K=512)
    np.testing.assert_array_equal(out.numpy(), a @ b)


def test_registers_of_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver([Card(registers=4096)]))
    arrays = [Interface(driver, array) for array in operands(32)]
    with pytest.raises(OutOfResources) as raised:
        weft.jit(product.fn)[(1,)](*arrays, K=32)
    assert str(raised.value) == (
        f"kernel 'product' on card 0 (Imaginary A100): out of registers: a block asks for {128 * REGISTERS} and may have 4096; "
        "lower num_warps, or limit the registers of a thread with maxnreg"
    )
    weft.jit(product.fn)[(1,)](*arrays, K=32, num_warps=2)
    np.testing.assert_array_equal(arrays[2].numpy(), np.full((16, 16), 32))


def test_nothing_of_it_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        with pytest.raises(OutOfResources):
            weft.jit(product.fn).compile(*operands(1024), K=1024, target="sm_86")
    assert not (tmp_path / "cache").exists()
