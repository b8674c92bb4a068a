"""Softmax, layer norm, matmul and attention as Triton-language kernels, checked against NumPy and timed beside it.

Each result is compared with NumPy in float64 on the same inputs. A case's bound is worked out element by element from the
sizes of the numbers that meet in it: ``u`` is a format's unit roundoff (2**-24 for float32, 2**-8 for bfloat16),
rounding the result once costs ``u * |result|``, and what float32 arithmetic may lose on the way is some small multiple of
2**-24 times the magnitudes that were added up. The exit status is 1 if an element misses its bound.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from flash_attention import attention
from layer_norm import layer_norm
from matmul import matmul
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from softmax import softmax
from vector_add import add

Array = np.ndarray[Any, Any]
U32 = 2.0**-24
REPEATS = 5


@dataclass(frozen=True)
class Case:
    """One kernel on one set of inputs.

    ``run(out)`` launches it; ``peer`` maps float32 inputs to NumPy's float32 result and is timed with the conversions that
    the data's dtype needs; ``reference`` maps float64 inputs to the result and the magnitude that float32's roundoff
    multiplies; ``slack`` is that multiple of 2**-24, in addition to ``rounded`` roundoffs of the data's own dtype.
    """

    name: str
    inputs: tuple[Array, ...]
    run: Callable[[Array], Any]
    peer: Callable[..., Array]
    reference: Callable[..., tuple[Array, Array]]
    slack: float
    rounded: int = 0

    @property
    def shape(self) -> str:
        return "x".join(map(str, self.inputs[0].shape))


def softmax_rows(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def normalize_rows(x: Array, weight: Array, bias: Array) -> Array:
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + np.float32(1e-5)) * weight + bias


def attend(q: Array, k: Array, v: Array) -> Array:
    return softmax_rows(q @ k.swapaxes(-1, -2) / np.float32(math.sqrt(q.shape[-1]))) @ v


def softmax_reference(x: Array) -> tuple[Array, Array]:
    result = softmax_rows(x)
    return result, result


def layer_norm_reference(x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    scale = (np.abs(x) + np.abs(x).mean(axis=-1, keepdims=True)) / deviation
    return normalize_rows(x, weight, bias), scale * np.abs(weight) + np.abs(bias)


def matmul_reference(a: Array, b: Array) -> tuple[Array, Array]:
    return a @ b, np.abs(a) @ np.abs(b)


def attention_reference(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    return attend(q, k, v), attend(q, k, np.abs(v))


def cases(dtype: Any) -> list[Case]:
    """The demonstration's four kernels on random data of ``dtype``."""
    random = np.random.default_rng(0)

    def data(*shape: int) -> Array:
        return random.standard_normal(shape, dtype=np.float32).astype(dtype)

    x, weight, bias = data(2048, 4096), data(4096), data(4096)
    a, b = data(1024, 1024), data(1024, 1024)
    q, k, v = data(8, 1024, 64), data(8, 1024, 64), data(8, 1024, 64)
    return [
        # exp's argument carries a roundoff of |x - max| < 16, exp itself and the two sums a few more.
        Case("softmax", (x,), lambda out: softmax(x, out), softmax_rows, softmax_reference, slack=32),
        Case(
            "layer norm",
            (x, weight, bias),
            lambda out: layer_norm(x, weight, bias, out),
            normalize_rows,
            layer_norm_reference,
            slack=16,
        ),
        # Roundoffs of K additions grow like sqrt(K) where they are independent; 4 deviations.
        Case(
            "matmul",
            (a, b),
            lambda out: matmul(a, b, out),
            np.matmul,
            matmul_reference,
            slack=4 * math.sqrt(a.shape[1]),
        ),
        # The weights are rounded to the data's dtype before they meet v.
        Case(
            "attention",
            (q, k, v),
            lambda out: attention(q, k, v, out),
            attend,
            attention_reference,
            slack=64,
            rounded=1,
        ),
    ]


@dataclass(frozen=True)
class Outcome:
    """What one case showed: the largest error and the largest error / bound, and times in milliseconds."""

    case: Case
    error: float
    share: float
    first: float
    weft: float
    numpy: float


def milliseconds(f: Callable[[], object]) -> float:
    start = time.perf_counter()
    f()
    return (time.perf_counter() - start) * 1e3


def measure(case: Case, advance: Callable[[str], None]) -> Outcome:
    """Runs, checks and times one case; medians of `REPEATS` runs after the first."""
    dtype = case.inputs[0].dtype

    def numpy_run() -> Array:
        return case.peer(*(a.astype(np.float32, copy=False) for a in case.inputs)).astype(dtype, copy=False)

    expected, magnitude = case.reference(*(a.astype(np.float64) for a in case.inputs))
    out = np.zeros(expected.shape, dtype)
    advance("compiling")
    first = milliseconds(lambda: case.run(out))
    error = np.abs(out.astype(np.float64) - expected)
    roundoff = float(ml_dtypes.finfo(dtype).eps) / 2
    bound = roundoff * np.abs(expected) + (U32 * case.slack + roundoff * case.rounded) * magnitude
    share = float(np.max(error / bound)) if np.isfinite(error).all() else math.inf
    advance("running")
    weft_time = statistics.median(milliseconds(lambda: case.run(out)) for _ in range(REPEATS))
    advance("NumPy")
    numpy_run()
    numpy_time = statistics.median(milliseconds(numpy_run) for _ in range(REPEATS))
    return Outcome(case, float(error.max()), share, first, weft_time, numpy_time)


def table(outcomes: list[Outcome]) -> Table:
    """The results, one row for each case."""
    title = "weft beside NumPy, median milliseconds"
    result = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("kernel", "data", "shape"):
        result.add_column(heading, no_wrap=True)
    for heading in ("error", "/bound", "first", "weft", "NumPy", "ratio"):
        result.add_column(heading, justify="right", no_wrap=True)
    for outcome in outcomes:
        result.add_row(
            outcome.case.name,
            str(outcome.case.inputs[0].dtype),
            outcome.case.shape,
            f"{outcome.error:.1e}",
            f"[{'green' if outcome.share <= 1 else 'bold red'}]{outcome.share:.2f}[/]",
            f"{outcome.first:.0f}",
            f"{outcome.weft:.2f}",
            f"{outcome.numpy:.2f}",
            f"{outcome.numpy / outcome.weft:.1f}x",
        )
    return result


def main() -> int:
    """Runs every case; 0 if all are within their bounds."""
    console = Console()
    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    outcomes: list[Outcome] = []
    # An empty cache, so that the first call shows what compiling costs.
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as cache, progress:
        os.environ["WEFT_CACHE_DIR"] = cache
        task = progress.add_task("loading the compiler", total=8)
        add(np.ones(1, np.float32), np.ones(1, np.float32), np.ones(1, np.float32))
        for dtype in (np.float32, ml_dtypes.bfloat16):
            for case in cases(dtype):
                label = f"{case.name}, {np.dtype(dtype)}: "
                outcomes.append(
                    measure(case, lambda step, label=label: progress.update(task, description=label + step))
                )
                progress.advance(task)
    console.print(table(outcomes))
    console.print(
        "A kernel's first call compiles it. weft uses all cores; so does NumPy's matmul, but none of its other operations."
        " On bfloat16 data NumPy converts to float32 and back: its own bfloat16 is slower."
    )
    wrong = [o for o in outcomes if o.share > 1]
    if wrong:
        console.print(f"[bold red]{len(wrong)} of {len(outcomes)} results are outside their bounds.[/]")
    else:
        console.print(f"[green]All {len(outcomes)} results agree with NumPy.[/]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
