"""What kernels do as PTX: weft's and Triton's, executed in `weft.emulator` on the same data, counts side by side.

Run as ``python benchmarks/gpu_counts.py --triton PYTHON``, where PYTHON is the interpreter of an environment with triton 3.9
(no GPU is needed); without it the table has weft's counts only. Both compile the kernels of `gpu_kernels.py` with the same
constants, warps and facts of alignment. Registers and spills are ptxas's, where it is on the PATH.

A case fails, and the exit status is 1, where a result is not NumPy's, or Triton's and weft's results are further apart than
the case's tolerance. 0 means equal bits; reductions and products of floats are allowed another order of additions.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

import gpu_kernels
import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from weft.emulator import Module, Profile
from weft.emulator.profile.mix import CLASSES

Array = NDArray[Any]
RNG: Final = np.random.default_rng(11)
TARGETS: Final = ("sm_80", "sm_90")
WARPS: Final = 4
LIMIT: Final = 1.15
"""Times Triton's instructions, above which a row is marked."""

KINDS: Final = {
    "float32": "fp32",
    "float16": "fp16",
    "int32": "i32",
    "int8": "i8",
    "bfloat16": "bf16",
    "float8_e5m2": "fp8e5",
    "int16": "i16",
    "int64": "i64",
    "float64": "fp64",
}
NARROW: Final = {"bfloat16": ml_dtypes.bfloat16, "float8_e5m2": ml_dtypes.float8_e5m2}
"""Types that NumPy does not have."""
PTX_VERSION: Final = 84
"""That Triton shall emit, so that an older ptxas takes it."""


@dataclass(frozen=True)
class Case:
    """A kernel with arguments, of which the last array is its result; ``expected`` computes it from the others."""

    name: str
    kernel: str
    grid: tuple[int, ...]
    make: Callable[[], list[Any]]
    expected: Callable[..., Array]
    constants: dict[str, Any]
    tolerance: float = 0.0
    """Of the greatest difference, in units of the greatest absolute value expected."""
    options: dict[str, Any] = field(default_factory=lambda: {"num_stages": 3})


def floats(*shape: int, dtype: str = "float32") -> Array:
    return RNG.uniform(-1, 1, shape).astype(NARROW.get(dtype, dtype))


def integers(bound: int, *shape: int, dtype: str = "int32") -> Array:
    return RNG.integers(-bound, bound, shape).astype(dtype)


def _softmax(x: Array, *_: Any) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layer_norm(x: Array, weight: Array, bias: Array, _out: Array, columns: int, epsilon: float) -> Array:
    x = x.astype(np.float64)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon) * weight + bias


def _product(a: Array, b: Array, *_: Any) -> Array:
    wide = np.int64 if a.dtype == np.int8 else np.float64
    return a.astype(wide) @ b.astype(wide)


def _attention(q: Array, k: Array, v: Array, _out: Array, _keys: int, scale: float) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    return _softmax(q @ k.T * scale) @ v


def _matmul(
    name: str, dtype: str, precision: str, tolerance: float, m: int, n: int, k: int, sums: str = "float32"
) -> Case:
    """(2m, 128) times (128, 2n) by tiles of m, n, k."""

    def make() -> list[Any]:
        shapes = ((2 * m, 128), (128, 2 * n))
        a, b = (
            integers(100, *s, dtype=dtype)
            if dtype == "int8"
            else (integers(8, *s) / 8 if precision == "tf32" else floats(*s)).astype(NARROW.get(dtype, dtype))
            for s in shapes
        )
        return [a, b, np.zeros((2 * m, 2 * n), sums), 2 * n, 128]

    constants = {"M": m, "N": n, "K": k, "KIND": "plain", "PRECISION": precision}
    return Case(f"matmul {name} {m}x{n}x{k}", "matmul", (2, 2), make, _product, constants, tolerance)


def _transpose(dtype: str, rows: int, columns: int) -> Case:
    bits = 8 * np.dtype(dtype).itemsize
    return Case(
        f"transpose {bits}-bit {rows}x{columns}",
        "transpose",
        (1,),
        lambda: [integers(100, rows, columns, dtype=dtype), np.zeros((columns, rows), dtype)],
        lambda x, _: x.T,
        {"ROWS": rows, "COLUMNS": columns},
    )


def _sums(name: str, axis: int, rows: int, columns: int) -> Case:
    return Case(
        f"{name} sums {rows}x{columns}",
        "sums",
        (1,),
        lambda: [floats(rows, columns), np.zeros((rows, columns)[1 - axis], "float32")],
        lambda x, _: x.astype(np.float64).sum(axis),
        {"ROWS": rows, "COLUMNS": columns, "AXIS": axis},
        1e-6,
    )


def _leaky(a: Array, b: Array, *_: Any) -> Array:
    product = _product(a, b)
    return np.where(product >= 0, product, 0.01 * product)


def _causal(q: Array, k: Array, v: Array, _out: Array, _keys: int, scale: float) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    score = np.where(np.tril(np.ones((len(q), len(k)), bool)), q @ k.T * scale, -np.inf)
    return _softmax(score) @ v


def _scores(q: Array, k: Array, scale: float) -> Array:
    return q.astype(np.float64) @ k.astype(np.float64).T * scale


def _backward_arguments() -> list[Any]:
    """Queries, keys, values, the gradient of the result; by rows log2 of the sums, and products of result and gradient."""
    scale = 0.125
    q, k, v, dout = (floats(128, 64, dtype="float16") for _ in range(4))
    score = _scores(q, k, scale)
    logs = np.log2(np.exp(score).sum(1))
    delta = (_softmax(score) @ v.astype(np.float64) * dout.astype(np.float64)).sum(1)
    return [q, k, v, dout, logs.astype("float32"), delta.astype("float32"), np.zeros((256, 64), "float32"), 128, scale]


def _backward(q: Array, k: Array, v: Array, dout: Array, _logs: Array, delta: Array, *rest: Any) -> Array:
    scale = rest[-1]
    weight = _softmax(_scores(q, k, scale))
    grad = dout.astype(np.float64)
    dscore = weight * (grad @ v.astype(np.float64).T - delta[:, None])
    return np.concatenate([dscore.T @ q.astype(np.float64) * scale, weight.T @ grad])


def _norm_arguments() -> list[Any]:
    x = floats(8, 1000)
    scale = 1 / np.sqrt(x.astype(np.float64).var(1) + 1e-5)
    means = x.astype(np.float64).mean(1)
    out = np.zeros((8, 1000), "float32")
    return [x, floats(1000), floats(8, 1000), means.astype("float32"), scale.astype("float32"), out, 1000]


def _norm_backward(x: Array, weight: Array, dy: Array, mean: Array, scale: Array, *_: Any) -> Array:
    x, gradient = x.astype(np.float64), dy.astype(np.float64) * weight
    normal = (x - mean[:, None]) * scale[:, None]
    first, second = ((normal * gradient).mean(1, keepdims=True), gradient.mean(1, keepdims=True))
    return (gradient - (normal * first + second)) * scale[:, None]


def _dropout(x: Array, keep: Array, _out: Array, _n: int, p: float) -> Array:
    return np.where(keep, x / (1 - p), 0)


def _mixed(a: Array, c: Array, b: Array, d: Array, keys: tuple[int, int]) -> tuple[Array, Array, Array, Array]:
    """A round of Philox on counters of 32 bits, kept in 64."""
    low, high = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
    word, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    return (high >> half) ^ b ^ np.uint64(keys[0]), high & word, (low >> half) ^ d ^ np.uint64(keys[1]), low & word


def _seeded_dropout(x: Array, _out: Array, n: int, p: float, seed: int) -> Array:
    a = np.arange(n, dtype=np.uint64)
    b = c = d = np.zeros(n, np.uint64)
    for step in range(10):
        keys = (seed + step * 0x9E3779B9) % 2**32, step * 0xBB67AE85 % 2**32
        a, b, c, d = _mixed(a, c, b, d, keys)
    return np.where((a >> np.uint64(8)).astype(np.float64) / 2**24 > np.float32(p), x / (1 - p), 0)


GROUPS: Final = ((128, 64, 64), (64, 128, 32), (64, 64, 96), (192, 64, 64))
"""Rows, columns and depth of the problems of the grouped product."""


def _grouped_arguments() -> list[Any]:
    sizes = [(m * k, k * n, m * n) for m, n, k in GROUPS]
    ends = np.cumsum(sizes, 0)
    a, b = (floats(int(ends[-1, which]), dtype="float16") for which in (0, 1))
    places = (ends - sizes).astype("int32")
    return [a, b, np.array(GROUPS, "int32"), places, np.zeros(int(ends[-1, 2]), "float16"), len(GROUPS), 3]


def _grouped(a: Array, b: Array, sizes: Array, places: Array, *_: Any) -> Array:
    found = []
    for (m, n, k), (left, right, _place) in zip(sizes.tolist(), places.tolist(), strict=True):
        found.append(_product(a[left : left + m * k].reshape(m, k), b[right : right + k * n].reshape(k, n)).reshape(-1))
    return np.concatenate(found)


def _prefixes(x: Array, *_: Any) -> Array:
    """The prefix sums of the two halves."""
    return x.reshape(2, -1).cumsum(1).reshape(-1)


def _scan(name: str, kernel: str, size: int, constants: dict[str, Any], *scratch: int) -> Case:
    """Prefix sums of integers by two programs, which may have scratch memory."""
    return Case(
        f"{name} 2x{size}",
        kernel,
        (2,),
        lambda: [integers(100, 2 * size), *(np.zeros(n, "int32") for n in (*scratch, 2 * size))],
        _prefixes,
        constants,
    )


def _histogram(name: str, kernel: str, constants: dict[str, Any]) -> Case:
    """Counts of 32 integers among 4,000."""
    return Case(
        name,
        kernel,
        (4,),
        lambda: [integers(32, 4000) & 31, np.zeros(32, "int32"), 4000],
        lambda x, *_: np.bincount(x, minlength=32),
        {"BLOCK": 1024, **constants},
    )


def _attention_arguments() -> list[Any]:
    return [*(floats(128, 64, dtype="float16") for _ in range(3)), np.zeros((128, 64), "float32"), 128, 0.125]


def _recurrence(x: Any, y: Any, *_: Any) -> Any:
    """Both numbers of the composed maps, from each element to the row's end, added."""
    first, second = x.copy(), y.copy()
    for column in range(x.shape[1] - 2, -1, -1):
        second[:, column] += second[:, column + 1] * x[:, column]
        first[:, column] *= first[:, column + 1]
    return first + second


CASES: Final = (
    Case(
        "vector add 4000",
        "vector_add",
        (4,),
        lambda: [floats(4000), floats(4000), np.zeros(4000, "float32"), 4000],
        lambda x, y, *_: x + y,
        {"BLOCK": 1024},
    ),
    Case(
        "softmax 8x1000",
        "softmax",
        (8,),
        lambda: [floats(8, 1000), np.zeros((8, 1000), "float32"), 1000],
        _softmax,
        {"BLOCK": 1024},
        1e-6,
    ),
    Case(
        "layer norm 8x1000",
        "layer_norm",
        (8,),
        lambda: [floats(8, 1000), floats(1000), floats(1000), np.zeros((8, 1000), "float32"), 1000, 1e-5],
        _layer_norm,
        {"BLOCK": 1024},
        1e-6,
    ),
    _sums("row", 1, 64, 128),
    _sums("column", 0, 64, 128),
    _transpose("int8", 64, 64),
    _transpose("int16", 64, 64),
    _transpose("int32", 64, 64),
    _transpose("int64", 64, 64),
    _matmul("f16", "float16", "ieee", 1e-6, 64, 64, 32),
    _matmul("tf32", "float32", "tf32", 1e-6, 64, 64, 32),
    _matmul("bf16", "bfloat16", "ieee", 1e-6, 64, 64, 32),
    _matmul("f8", "float8_e5m2", "ieee", 1e-6, 64, 64, 64),
    _matmul("int8", "int8", "ieee", 0.0, 64, 64, 64, "int32"),
    _matmul("f16 in f16", "float16", "ieee", 1e-2, 64, 64, 32, "float16"),
    _matmul("f64", "float64", "ieee", 1e-14, 64, 64, 16, "float64"),
    Case(
        "matmul f16 x int8 64x64x32",
        "matmul",
        (2, 2),
        lambda: [
            floats(128, 128, dtype="float16"),
            integers(100, 128, 128, dtype="int8"),
            np.zeros((128, 128), "float32"),
            128,
            128,
        ],
        lambda a, b, *_: a.astype(np.float64) @ b.astype(np.float64),
        {"M": 64, "N": 64, "K": 32, "KIND": "mixed", "PRECISION": "ieee"},
        1e-6,
    ),
    Case(
        "matmul of the tutorial 128x64x32",
        "tutorial_matmul",
        (4,),
        lambda: [
            floats(240, 112, dtype="float16"),
            floats(112, 128, dtype="float16"),
            np.zeros((240, 128), "float16"),
            240,
            128,
            112,
        ],
        _leaky,
        {"M": 128, "N": 64, "K": 32, "GROUP": 8, "ACTIVATION": 1},
        1e-3,
    ),
    Case(
        "attention forward D=64",
        "attention",
        (2,),
        _attention_arguments,
        _attention,
        {"M": 64, "N": 64, "D": 64, "CAUSAL": False},
        2e-3,
        {"num_stages": 2},
    ),
    Case(
        "attention causal D=64",
        "attention",
        (2,),
        _attention_arguments,
        _causal,
        {"M": 64, "N": 32, "D": 64, "CAUSAL": True},
        2e-3,
    ),
    Case(
        "attention backward D=64",
        "attention_backward",
        (2,),
        _backward_arguments,
        _backward,
        {"M": 32, "N": 64, "D": 64},
        2e-3,
    ),
    Case(
        "layer norm backward 8x1000",
        "layer_norm_backward",
        (8,),
        _norm_arguments,
        _norm_backward,
        {"BLOCK": 1024},
        1e-5,
    ),
    Case(
        "dropout 4000",
        "dropout",
        (4,),
        lambda: [floats(4000), integers(2, 4000) & 1, np.zeros(4000, "float32"), 4000, 0.25],
        _dropout,
        {"BLOCK": 1024},
        1e-6,
    ),
    Case(
        "seeded dropout 4000",
        "seeded_dropout",
        (4,),
        lambda: [floats(4000), np.zeros(4000, "float32"), 4000, 0.25, 12345],
        _seeded_dropout,
        {"BLOCK": 1024},
        1e-6,
    ),
    Case(
        "grouped matmul f16 64x64x32",
        "grouped_matmul",
        (3,),
        _grouped_arguments,
        _grouped,
        {"M": 64, "N": 64, "K": 32},
        1e-3,
    ),
    _scan("prefix sums by rows", "prefix_sums", 256, {"ROWS": 16, "COLUMNS": 16}),
    _scan("prefix sums by doubling", "doubled_sums", 256, {"SIZE": 256, "STEPS": 8}, 1024),
    Case(
        "rows by number 64x64",
        "rows_of",
        (2,),
        lambda: [floats(100, 64), RNG.integers(0, 100, 64).astype("int32"), np.zeros((64, 64), "float32")],
        lambda table, numbers, _: table[numbers],
        {"COLUMNS": 64, "BLOCK": 32},
    ),
    _histogram("histogram 4000", "histogram", {}),
    _scan("cumsum", "scanned_sums", 1024, {"SIZE": 1024}),
    Case(
        "scan of maps 32x64",
        "scanned_maps",
        (1,),
        lambda: [integers(9, 32, 64), integers(9, 32, 64), np.zeros((32, 64), "int32")],
        _recurrence,
        {"ROWS": 32, "COLUMNS": 64},
    ),
    Case(
        "gather 64x64",
        "taken",
        (1,),
        lambda: [floats(64, 64), integers(64, 64, 64) & 63, np.zeros((64, 64), "float32")],
        lambda x, index, _: np.take_along_axis(x, index.astype(np.int64), 1),
        {"ROWS": 64, "COLUMNS": 64},
    ),
    _histogram("histogram of tiles 4000", "counted", {"BINS": 32}),
)


@dataclass(frozen=True)
class Compiled:
    """What a compiler made, and what a launch of it did."""

    profile: Profile
    result: Array
    classes: dict[str, int]

    @property
    def moved(self) -> int:
        """Shared memory instructions, shuffles and barriers."""
        return self.classes.get("shared", 0) + self.profile.total("shuffles") + self.profile.total("barriers")

    def counts(self) -> dict[str, int | None]:
        """The columns of the table, by name."""
        total, resources = self.profile.total, self.profile.resources
        return {
            "instructions": total("executions"),
            "shared wavefronts": total("shared_wavefronts"),
            "global sectors": total("global_sectors"),
            "barriers": total("barriers"),
            "shuffles": total("shuffles"),
            "mma": self.classes.get("matrix", 0),
            "registers": None if resources is None else resources.registers,
            "spill bytes": None if resources is None else resources.spill_stores + resources.spill_loads,
        }


def launched(ptx: str, symbol: str, threads: int, shared: int, grid: Any, arguments: Sequence[Any]) -> Compiled:
    """Runs a kernel on copies of the arguments."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    profile = Module(ptx).launch(symbol, grid, threads, copies, shared=shared)
    result = [a for a in copies if isinstance(a, np.ndarray)][-1]
    return Compiled(profile, result, profile.mix)


def by_weft(case: Case, target: str, arguments: Sequence[Any]) -> Compiled:
    """Weft's code, launched as other code would launch it."""
    kernel = getattr(gpu_kernels, case.kernel)
    made = kernel.compile(*arguments, target=target, num_warps=WARPS, **case.options, **case.constants)
    return launched(made.ptx, made.symbol, made.threads, made.shared, case.grid, arguments)


def triton_request(case: Case, target: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """What `gpu_kernels.compile_with_triton` takes. Facts are those that weft specialises for."""
    parameters = inspect.signature(getattr(gpu_kernels, case.kernel).fn).parameters
    names = [name for name in parameters if name not in case.constants]
    found = dict(zip(names, arguments, strict=True))
    return {
        "kernel": case.kernel,
        "target": int(target[3:]),
        "signature": {name: kind_of(value) for name, value in found.items()},
        "constants": case.constants,
        "aligned": [n for n, v in found.items() if isinstance(v, np.ndarray) or (isinstance(v, int) and v % 16 == 0)],
        "options": {"num_warps": WARPS, "ptx_version": PTX_VERSION, **case.options},
    }


def kind_of(value: Any) -> str:
    """Triton's name of an argument's type."""
    if isinstance(value, np.ndarray):
        return f"*{KINDS[value.dtype.name]}"
    return "fp32" if isinstance(value, float) else "i32"


def by_triton(python: str, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """PTX and shared memory for each request."""
    done = subprocess.run(
        [python, str(Path(gpu_kernels.__file__))],
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{python} does not compile the kernels with Triton:\n{done.stderr}")
    return json.loads(done.stdout)


def apart(found: Array, expected: Array) -> float:
    """The greatest difference, in units of the greatest absolute value expected."""
    difference = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / max(1e-30, np.abs(expected.astype(np.float64)).max()))


@dataclass(frozen=True)
class Row:
    """One case on one target, by all compilers asked."""

    case: Case
    target: str
    weft: Compiled
    triton: Compiled | None
    wrong: str
    """What is wrong with the results; ""."""

    def worse(self) -> list[str]:
        """The columns in which weft's number is worse than Triton's."""
        if self.triton is None:
            return []
        ours, theirs = self.weft.counts(), self.triton.counts()
        limits = dict.fromkeys(("shared wavefronts", "global sectors", "barriers", "spill bytes"), 1.0)
        limits["instructions"] = LIMIT
        pairs = {name: (ours[name], theirs[name]) for name in limits}
        return [n for n, (a, b) in pairs.items() if a is not None and b is not None and a > limits[n] * b]


def measure(case: Case, target: str, arguments: list[Any], other: dict[str, Any] | None) -> Row:
    """Runs what was compiled; compares the results with NumPy's and with one another."""
    ours = by_weft(case, target, arguments)
    theirs = None
    if other is not None:  # Triton's kernels take two pointers to scratch memory more, which these do not use
        threads = 32 * WARPS
        theirs = launched(other["ptx"], case.kernel, threads, other["shared"], case.grid, [*arguments, 0, 0])
    expected = case.expected(*arguments)
    pairs = [("weft", ours.result, expected)]
    if theirs is not None:
        pairs += [("Triton", theirs.result, expected), ("weft beside Triton", ours.result, theirs.result)]
    wrong = [f"{who}: {d:.2g}" for who, a, b in pairs if (d := apart(a, b)) > case.tolerance]
    return Row(case, target, ours, theirs, ", ".join(wrong))


def cell(name: str, row: Row) -> str:
    """Weft's number, and Triton's after it; a star where weft's is worse."""
    ours = row.weft.counts()[name]
    text = "-" if ours is None else f"{ours:,}"
    if row.triton is not None:
        theirs = row.triton.counts()[name]
        text += f" / {'-' if theirs is None else f'{theirs:,}'}"
    return text + ("*" if name in row.worse() else "")


def tables(rows: Sequence[Row]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, heads and cells of both tables: counts, and instructions by class."""
    names = list(rows[0].weft.counts())
    both = " (weft / Triton; * worse)" if rows[0].triton else ""
    counts = [[r.case.name, r.target, *(cell(n, r) for n in names), r.wrong or "yes"] for r in rows]
    used = [c for c in CLASSES if any(c in made.classes for r in rows for made in (r.weft, r.triton) if made)]
    classes = [
        [
            r.case.name,
            r.target,
            *(" / ".join(f"{m.classes.get(c, 0):,}" for m in (r.weft, r.triton) if m) for c in used),
        ]
        for r in rows
    ]
    return [
        (f"Counts{both}", ["kernel", "target", *names, "results equal"], counts),
        (f"Warp instructions by class{both.replace('; * worse', '')}", ["kernel", "target", *used], classes),
    ]


def goals(rows: Sequence[Row]) -> list[str]:
    """Weft's numbers over Triton's, for each target: a sentence."""
    found: list[str] = []
    for target in dict.fromkeys(row.target for row in rows):
        pairs = [(row, row.weft, row.triton) for row in rows if row.target == target and row.triton is not None]
        if not pairs:
            continue
        ratios = {
            row.case.name: ours.profile.total("executions") / theirs.profile.total("executions")
            for row, ours, theirs in pairs
        }
        mean = math.prod(ratios.values()) ** (1 / len(ratios))
        worst = sorted(ratios, key=lambda name: -ratios[name])[:2]
        moved = [
            sum(made.moved for made in each)
            for each in zip(*((ours, theirs) for _, ours, theirs in pairs), strict=True)
        ]
        found.append(
            f"{target}: instructions {mean:.2f} in geometric mean, most "
            + ", ".join(f"{ratios[name]:.2f} ({name})" for name in worst)
            + f"; shared memory instructions, shuffles and barriers in sum {moved[0] / moved[1]:.2f}; "
            + f"{sum(bool(row.worse()) for row, *_ in pairs)} of {len(pairs)} kernels have a star"
        )
    return found


def show(title: str, heads: Sequence[str], cells: Sequence[Sequence[str]], *, names: int, markdown: bool) -> None:
    """Prints a table. Its first ``names`` columns are words, the others numbers."""
    if markdown:
        lines = [heads, [*["---"] * names, *["--:"] * (len(heads) - names)], *cells]
        print(f"\n{title}:\n\n" + "\n".join(f"| {' | '.join(line)} |".replace("*", "\\*") for line in lines))
        return
    console = Console()
    if not console.is_terminal:  # nothing to fit the table to
        console.width = 240
    table = Table(*heads, title=title)
    for line in cells:
        table.add_row(*line)
    console.print(table)


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description="What kernels do as PTX: weft's and Triton's, counted in the emulator."
    )
    parser.add_argument("--triton", metavar="PYTHON", help="an interpreter with triton 3.9, to compare with")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    targets: Sequence[str] = given.target or TARGETS
    jobs = [(case, target, case.make()) for case in CASES if given.only in case.name for target in targets]
    if not jobs:
        parser.error(f"no case has '{given.only}' in its name")
    others: list[Any] = [None] * len(jobs)
    if given.triton:
        others = by_triton(given.triton, [triton_request(*job) for job in jobs])
    rows = [measure(*job, other) for job, other in zip(jobs, others, strict=True)]
    if given.markdown:
        print(f"`python {shlex.join(sys.argv)}`, {date.today().isoformat()}.")
    for title, heads, cells in tables(rows):
        show(title, heads, cells, names=2, markdown=given.markdown)
    print("", *goals(rows), sep="\n")
    return int(any(r.wrong for r in rows))


if __name__ == "__main__":
    sys.exit(main())
