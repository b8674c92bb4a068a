"""What a launch costs before and after the kernel's own work: kernels that do almost nothing, beside the calls that limit it.

Run as ``python benchmarks/launch.py``; with PyTorch installed also on its tensors. The aims: under 5 us with 5 arrays, under
10 us with 20; PyTorch's tensors within 1.5 times of that; a captured launch (`kernel[grid].bind`) under 1 us; a grid of a
million empty programs under 1 ms; from the start of Python to the first launch of a cached kernel under 200 ms. The rows are
taken in turns, so that what else the machine does meets all of them.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.language as tl

ROUNDS = 60
CALLS = 100

TEXT = """
import weft
import weft.language as tl

@weft.jit
def kernel({arrays}, n, m, scale, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.store({last} + pid, scale, mask=pid < n)
"""


@weft.jit
def empty(out: Any) -> None:
    pass


@weft.jit
def one_store(out: Any) -> None:
    tl.store(out + tl.program_id(0), 1)


def kernel_of(arrays: int, folder: Path) -> Any:
    """A kernel with so many arrays, three numbers and a compile-time value, which stores one element."""
    names = [f"a{i}" for i in range(arrays)]
    path = folder / f"kernel_of_{arrays}.py"
    path.write_text(TEXT.format(arrays=", ".join(names), last=names[-1]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "a Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.kernel


def rows(kernels: dict[int, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is timed, by name. The kernel with 5 arrays first, then others beside it, then the limits."""
    few, many = kernels[5], kernels[20]
    arrays = [np.zeros(1024, np.float32) for _ in range(20)]
    narrow = [np.zeros(1024, ml_dtypes.bfloat16) for _ in range(5)]
    views = [np.zeros(2048, np.float32)[::2] for _ in range(5)]
    five = arrays[:5]

    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (weft.cdiv(meta["n"], meta["BLOCK"]),)

    yield "5 arrays", lambda: few[(1,)](*five, 100, 200, 1.5, 256)
    yield "5 arrays, BLOCK by name", lambda: few[(1,)](*five, 100, 200, 1.5, BLOCK=256)
    yield "5 arrays, num_warps=8", lambda: few[(1,)](*five, 100, 200, 1.5, BLOCK=256, num_warps=8)
    yield "5 arrays, grid a function", lambda: few[grid](*five, 100, 200, 1.5, BLOCK=256)
    yield "5 arrays of bfloat16", lambda: few[(1,)](*narrow, 100, 200, 1.5, 256)
    yield "5 arrays, captured", few[(1,)].bind(*five, 100, 200, 1.5, 256)
    yield "20 arrays, captured", many[(1,)].bind(*arrays, 100, 200, 1.5, 256)
    yield "5 strided views", lambda: few[(1,)](*views, 100, 200, 1.5, 256)
    yield "20 arrays", lambda: many[(1,)](*arrays, 100, 200, 1.5, 256)
    yield "5 arrays, 2 programs", lambda: few[(2,)](*five, 100, 200, 1.5, 256)
    yield "5 arrays, 64 programs", lambda: few[(64,)](*five, 100, 200, 1.5, 256)
    yield "limit: ctypes, 2 arguments", _native(2)
    yield "limit: np.add(x, y, out=z)", lambda: np.add(five[0], five[1], out=five[2])
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        tensors = [torch.zeros(1024) for _ in range(20)]
        yield "5 tensors", lambda: few[(1,)](*tensors[:5], 100, 200, 1.5, 256)
        yield "20 tensors", lambda: many[(1,)](*tensors, 100, 200, 1.5, 256)
        yield "5 tensors, captured", few[(1,)].bind(*tensors[:5], 100, 200, 1.5, 256)
        yield "limit: torch.add(x, y, out=z)", lambda: torch.add(tensors[0], tensors[1], out=tensors[2])


def _native(count: int) -> Callable[[], Any]:
    """A call of a C function that does nothing of note."""
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * count)(("labs", ctypes.CDLL(None)))
    given = [1] * count
    return lambda: function(*given)


FIRST = """
import weft
import weft.language as tl
import numpy as np

@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

arrays = [np.ones(1000, np.float32) for _ in range(3)]
add[(1,)](*arrays, 1000, 1024)
"""
PROCESSES = {
    "Python alone": "",
    "limit: import numpy": "import numpy",
    "limit: import numpy, ml_dtypes": "import numpy, ml_dtypes",
    "import weft, weft.language": "import weft, weft.language",
    "import to the first launch of a cached kernel": None,
}


def processes(folder: Path) -> dict[str, list[float]]:
    """Milliseconds of whole processes, in turns."""
    script = folder / "first.py"
    script.write_text(FIRST, encoding="utf-8")
    commands = {name: [str(script)] if text is None else ["-c", text] for name, text in PROCESSES.items()}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(12):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True)
            if turn:  # the first compiles
                times[name].append(1000 * (time.perf_counter() - start))
    return times


def microseconds(call: Callable[[], Any], calls: int = CALLS) -> float:
    """The mean of some calls in a row."""
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls / 1000


def main() -> None:
    """Prints the tables."""
    with tempfile.TemporaryDirectory() as folder:
        timed = dict(rows({count: kernel_of(count, Path(folder)) for count in (5, 20)}))
        for call in timed.values():
            for _ in range(3):
                call()
        cold = processes(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(ROUNDS):
            for name, call in timed.items():
                times[name].append(microseconds(call))
    print(f"{'launch (3 numbers, 1 constant)':46}{'least us':>10}{'median us':>11}")
    for name, found in times.items():
        print(f"{name:46}{min(found):10.2f}{statistics.median(found):11.2f}")
    for name, found in cold.items():
        print(f"{name:46}{min(found):10.0f}{statistics.median(found):11.0f}  (ms)")
    out = np.zeros(1 << 20, np.int32)
    for kernel in (empty, one_store):
        found = [microseconds(lambda kernel=kernel: kernel[(1 << 20,)](out), 1) / 1000 for _ in range(ROUNDS)]
        name = f"a million programs: {kernel.name}"
        print(f"{name:46}{min(found):10.2f}{statistics.median(found):11.2f}  (ms)")


if __name__ == "__main__":
    main()
