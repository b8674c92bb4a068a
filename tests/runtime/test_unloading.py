"""What compiled kernels keep: memory for each, and nothing of those that are dropped."""

from __future__ import annotations

import ctypes
import functools
import gc
import linecache
import operator
import os
import tracemalloc
import weakref
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import weft
from weft.array.execution import native
from weft.runtime import compiler, executor, linker, loader, pages
from weft.runtime.artifacts import Artifact
from weft.runtime.jit import JITFunction

pytestmark = pytest.mark.jit

linked = pytest.mark.skipif(
    not linker.SUPPORTED, reason="counts memory of weft's linker, which is for Linux on x86-64; LLVM's takes more"
)

TEXT = """
import weft
import weft.language as tl

@weft.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) * {number}.5 + tl.load(y + offsets, mask=mask), mask=mask)
"""
X, Y, OUT = np.ones(40, np.float32), np.ones(40, np.float32), np.zeros(40, np.float32)


@pytest.fixture
def files() -> Generator[set[str]]:
    """Names of generated sources, taken out of `linecache` in the end. The handler of SIGINT, which the first long launch loads,
    is loaded before anything is counted. What the tests before left is no garbage here, so that collections are quick."""
    gc.freeze()
    executor.pool().watch.handler._code  # noqa: B018 - reading loads it  # pyright: ignore[reportPrivateUsage]
    names: set[str] = set()
    yield names
    for name in names:
        linecache.cache.pop(name, None)


def made(number: int, files: set[str]) -> JITFunction:
    """A kernel of a text of its own."""
    text, file = TEXT.format(number=number), f"<kernel {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    files.add(file)
    scope: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"]


def launched(kernel: JITFunction) -> float:
    kernel[(1,)](X, Y, OUT, 40, BLOCK=64)
    return float(OUT[39])


class MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def allocated() -> int:
    """Bytes that the C library has given out and not got back: exact, where resident memory jumps."""
    info = LIBC.mallinfo2()
    return info.uordblks + info.hblkhd


LIBC: Any = ctypes.CDLL(None) if os.name == "posix" else None
if GLIBC := hasattr(LIBC, "mallinfo2"):
    LIBC.mallinfo2.restype = MallInfo

glibc = pytest.mark.skipif(not GLIBC, reason="mallinfo2 is glibc's, from 2.33 on")


def growth(count: int, do: Callable[[int], object], measure: Callable[[], int]) -> float:
    """KiB that each call takes and keeps, after some calls that fill caches."""
    for i in range(5):
        do(i)
    gc.collect()
    before = measure()
    for i in range(5, 5 + count):
        do(i)
    gc.collect()
    return (measure() - before) / count / 1024


def test_a_dropped_kernel_is_unloaded(files: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    gc.collect()
    before, memory = loader.loaded(), pages.used()
    kernels = [made(number, files) for number in (2, 3)]
    assert [launched(kernel) for kernel in kernels] == [3.5, 4.5]
    code = [weakref.ref(kernel.compile(X, Y, OUT, 40, BLOCK=64).executable) for kernel in kernels]
    assert loader.loaded() == before + 2
    assert [kernel.compile(X, Y, OUT, 40, BLOCK=64).executable.artifact.object for kernel in kernels] == [b"", b""]
    gone = weakref.ref(kernels.pop(0))
    gc.collect()
    assert gone() is None
    assert [reference() is None for reference in code] == [True, False]
    assert loader.loaded() == before + 1
    assert launched(kernels[0]) == 4.5
    kernels.clear()
    gc.collect()
    assert loader.loaded() == before
    assert pages.used() == memory


def test_a_handle_keeps_the_code_of_a_dropped_kernel(files: set[str]) -> None:
    kernel = made(4, files)
    handle = kernel.compile(X, Y, OUT, 40, BLOCK=64)
    before = loader.loaded()
    del kernel
    gc.collect()
    assert loader.loaded() == before
    del handle
    gc.collect()
    assert loader.loaded() == before - 1


@linked
def test_memory_of_loaded_kernels(files: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions, their launch data and their code, all of it held; compilation is left out, for its time."""
    first = made(0, files)
    handle = first.compile(X, Y, OUT, 40, BLOCK=64)
    artifact = compiler.build(first, handle.signature, handle.options)

    def known(*_: object) -> Artifact:
        return artifact

    monkeypatch.setattr(compiler, "artifact_for", known)
    held: list[JITFunction] = []
    code = pages.used()

    def load(number: int) -> None:
        held.append(made(number, files))
        launched(held[-1])

    tracemalloc.start()
    try:
        assert growth(40, load, lambda: tracemalloc.get_traced_memory()[0]) < 20  # 13 measured, 34 with syntax trees
    finally:
        tracemalloc.stop()
    assert pages.used() - code == len(held) * pages.SIZE


@glibc
@pytest.mark.parametrize("count", [5, pytest.param(100, marks=pytest.mark.nightly)])
def test_memory_that_compilation_leaves(count: int, files: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    kernel = made(1, files)
    handle = kernel.compile(X, Y, OUT, 40, BLOCK=64)
    left = growth(count, lambda _: compiler.build(kernel, handle.signature, handle.options), allocated)
    assert left < 8  # 1.5 to 2 measured, 180 where pass managers are not freed


def test_generated_kernels_of_arrays_go_with_their_plans(files: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_KEPT", 1)  # and one that was used before
    array = weft.array.asarray(np.ones(8, np.float32))
    native._plans.clear()  # pyright: ignore[reportPrivateUsage]
    gc.collect()
    before, lines = loader.loaded(), len(linecache.cache)
    for number in range(5):
        total = functools.reduce(operator.add, [array] * (number + 2))
        assert float(np.asarray(total)[0]) == number + 2
    gc.collect()
    assert loader.loaded() == before + 2
    assert len(linecache.cache) == lines + 2
