"""What `weft.array` is measured on: one expression, written once for weft, JAX and PyTorch, plainly for NumPy.

weft runs it under JAX's semantics through `weft.array.fuse`; all but NumPy allocate their results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case, normal
from machine import Array, Baseline
from peers import Runner, jax, torch

import weft.array as wa


def peers(expression: Callable[..., Any], *inputs: Array) -> dict[str, Runner]:
    """``expression(xp, *inputs)``, where xp is the array module: weft's, jax.numpy, torch."""
    held: dict[str, Any] = {}

    def runner(peer: str, call: Callable[[], Any]) -> Runner:
        def run() -> None:
            held[peer] = call()

        return Runner(run, lambda: np.asarray(held[peer]))

    fused = wa.fuse(semantics="jax")(lambda *a: expression(wa, *a))
    found = {
        "weft": runner("weft", lambda: fused(*inputs).numpy()),
        "NumPy": runner("NumPy", lambda: expression(np, *inputs)),
    }
    if torch is not None:
        tensors = [torch.from_numpy(a) for a in inputs]
        found["PyTorch"] = runner("PyTorch", lambda: expression(torch, *tensors))
    if jax is not None:
        compiled, arguments = jax.jit(lambda *a: expression(jax.numpy, *a)), [jax.numpy.asarray(a) for a in inputs]
        found["JAX"] = runner("JAX", lambda: compiled(*arguments).block_until_ready())
    return found


def case(name: str, expression: Callable[..., Any], *inputs: Array, moved: int = 0, **rest: Any) -> Case:
    """The case; what is expected is NumPy's answer in float64."""
    exact = expression(np, *(a.astype(np.float64) if a.dtype == np.float32 else a for a in inputs))
    return Case(name, np.asarray(exact), peers(expression, *inputs), moved=moved, **rest)


def chain(_: Baseline | None) -> Case:
    n = 1 << 24
    return case(
        "array: 12-op chain 2^24",
        lambda xp, x, y: xp.tanh(x * y + 0.5) * xp.exp(-(x * x)) + xp.sqrt(x * x + y * y) - 0.25 * y,
        normal(n),
        normal(n)[::-1].copy(),
        moved=12 * n,
        tolerance=1e-3,
    )


def cheap(_: Baseline | None) -> Case:
    n = 1 << 24
    return case("array: x*y + x 2^24", lambda xp, x, y: x * y + x, normal(n), normal(n)[::-1].copy(), moved=12 * n)


def broadcast(_: Baseline | None) -> Case:
    n = 4096
    return case(
        "array: rows and columns 4096x4096",
        lambda xp, x, row, column: (x - row) * column[:, None],
        normal(n, n),
        normal(n),
        normal(n, 1)[:, 0].copy(),
        moved=8 * n * n,
    )


def standardise(_: Baseline | None) -> Case:
    n = 4096

    def expression(xp: Any, x: Any) -> Any:
        centred = x - xp.mean(x, 1)[:, None]
        return centred / xp.sqrt(xp.mean(centred * centred, 1) + 1e-5)[:, None]

    return case("array: standardised rows 4096x4096", expression, normal(n, n), moved=8 * n * n, tolerance=1e-3)


def total(_: Baseline | None) -> Case:
    n = 1 << 24
    return case(
        "array: sum of squares 2^24",
        lambda xp, x: xp.sum(x * x),
        normal(n),
        moved=4 * n,
        reads_only=True,
        tolerance=1e-3,
    )


def columns(_: Baseline | None) -> Case:
    n = 4096
    return case(
        "array: column sums 4096x4096",
        lambda xp, x: xp.sum(x, 0),
        normal(n, n),
        moved=4 * n * n,
        reads_only=True,
        tolerance=2e-3,
    )


def small(_: Baseline | None) -> Case:
    """What remains is the way from Python to the kernel and back."""
    n = 64
    return case(
        "array: fused call, 64 elements", lambda xp, x, y: x * y + x, normal(n), normal(n)[::-1].copy(), calls=500
    )


BUILDERS: dict[str, Callable[[Baseline | None], Case]] = {
    "chain": chain,
    "cheap": cheap,
    "broadcast": broadcast,
    "standardise": standardise,
    "total": total,
    "columns": columns,
    "small": small,
}
