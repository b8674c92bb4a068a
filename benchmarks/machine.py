"""The machine the benchmark runs on: its C compiler's answer, and its limits, measured through it."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
FLAGS = ("-O3", "-ffp-contract=fast", "-shared", "-fPIC")
LIBRARIES = ("-lmvec", "-lm", "-lpthread")
FMA_CHAINS = 12


def aligned(shape: int | tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Zeros at a 64-byte boundary, their pages touched."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    block = np.empty(size + 64, np.uint8)
    block.fill(0)
    start = -block.ctypes.data % 64
    return block[start : start + size].view(dtype).reshape(shape)


class Baseline:
    """baseline.c as a library: each function by name, taking arrays, ints and floats, and then the thread count."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        library.lanes.restype = ctypes.c_int64
        self.lanes: int = library.lanes()
        """Floats in a vector."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = self._library[name]
        function.restype = None

        def call(*arguments: Array | int | float) -> None:
            function(*map(_argument, arguments), ctypes.c_int(THREADS))

        return call


def _argument(value: Array | int | float) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_float(value)


BASELINE = Path(__file__).with_name("baseline.c")


def build_baseline(directory: Path, source: Path = BASELINE, level: str = "native") -> Baseline | None:
    """Compiles baseline.c, or a source that includes it, into ``directory``, for a ``level`` of instructions; None without a C
    compiler that knows its vectors and libmvec."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = directory / "baseline.so"
    built = subprocess.run(
        [compiler, *FLAGS, f"-march={level}", "-mtune=native", str(source), "-o", str(library), *LIBRARIES],
        capture_output=True,
        check=False,
    )
    return Baseline(ctypes.CDLL(str(library))) if built.returncode == 0 else None


@dataclass(frozen=True)
class Limits:
    """Best of several measurements in this run, all cores: bytes a second of a copy past the caches (reads and writes)
    and of a sum (reads only), and float32 operations a second of multiply-adds."""

    copy: float
    read: float
    flops: float


def measure_limits(c: Baseline) -> Limits:
    """The machine's limits, through the loops of baseline.c."""
    n, steps = 1 << 25, 5_000_000
    source, target, ones = aligned(n), aligned(n), np.ones(c.lanes, np.float32)
    sums, rows = aligned(4096), 4096

    def best(f: Callable[[], None]) -> float:
        return min(_seconds(f) for _ in range(15))

    copy = best(lambda: c.copy(source, target, n))
    read = best(lambda: c.row_sum(source, sums, rows, n // rows))
    fma = best(lambda: c.fma_steps(ones * 0.5, ones, sums, steps))
    return Limits(2 * 4 * n / copy, 4 * n / read, 2 * FMA_CHAINS * c.lanes * steps / fma)


def _seconds(f: Callable[[], None]) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def fresh_process(code: str, repeats: int, **environment: str) -> float:
    """The median of what ``code`` prints (one number) when a new interpreter runs it."""

    def once() -> float:
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
        )
        return float(run.stdout.strip())

    return statistics.median(once() for _ in range(repeats))


def describe() -> str:
    """Processor, cores and operating system, in one line."""
    name = platform.processor() or platform.machine()
    features = ""
    if os.path.exists("/proc/cpuinfo"):
        info = dict(
            (part.strip() for part in line.split(":", 1))
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if ":" in line
        )
        name = info.get("model name", name)
        features = ", AVX-512" if "avx512f" in info.get("flags", "") else ""
    return f"{name} ({platform.machine()}{features}), {THREADS} cores, {platform.system()}, Python {platform.python_version()}"
