"""What small calls of `weft.array` cost beside NumPy and JAX: 16 elements, where the call is all there is.

Run as ``python benchmarks/small_calls.py`` in an environment with JAX (``.oracles``, or ``pip install jax``); without it JAX's
column is left out. Each figure is the least of many repeats, in microseconds of this process's processor time, so that other
programs count little. The limit is what no Python program can do without: one call of native code through ctypes with the
arguments of a kernel, and one new array of NumPy's for the result.

The aims (an idle machine): an eager ``x + y`` under 15 us, a fused call of five operations under 8 us.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import time
import timeit
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

import weft.array as wa
from weft.runtime import executor

ELEMENTS: Final = 16
CALLS: Final = 2000
REPEATS: Final = 15
PEERS: Final = ("weft", "NumPy", "JAX")

A: Final = np.linspace(0, 1, ELEMENTS, dtype=np.float32)
B: Final = np.linspace(1, 2, ELEMENTS, dtype=np.float32)


def five(p: Any, q: Any) -> Any:
    """Five operations."""
    return ((p + q) * q - p) * p + q


def moved(p: Any, rate: Any) -> Any:
    """A step along a gradient."""
    return p - rate * p


def row(x: Any, maximum: Callable[[Any], Any], exp: Callable[[Any], Any]) -> Any:
    """A softmax."""
    e = exp(x - maximum(x))
    return e / e.sum()


def weft_row(x: Any) -> Any:
    """A softmax of weft's array."""
    return row(x, wa.max, wa.exp)


def cases() -> Mapping[str, Mapping[str, Callable[[], Any]]]:
    """For each case what each peer runs; all end with NumPy's values, but where JAX's array is said to stay."""
    x, y = wa.asarray(A), wa.asarray(B)
    fused, softmax, step = wa.fuse(five), wa.fuse(weft_row), wa.fuse(moved)
    numbers = iter(range(1, 1 << 30))
    rates = iter(0.25 + 2.0**-30 * i for i in range(1 << 29))
    large = np.linspace(0, 1, 4 * ELEMENTS, dtype=np.float32)
    z = wa.asarray(large)
    found: dict[str, dict[str, Callable[[], Any]]] = {
        "x + y": {"weft": lambda: (x + y).numpy(), "NumPy": lambda: A + B},
        "x * i, another i each time": {
            "weft": lambda: (x * next(numbers)).numpy(),
            "NumPy": lambda: A * next(numbers),
        },
        "five operations, one by one": {"weft": lambda: five(x, y).numpy(), "NumPy": lambda: five(A, B)},
        "five operations, fused": {"weft": lambda: fused(x, y), "NumPy": lambda: five(A, B)},
        "five operations, fused, of NumPy's arrays": {"weft": lambda: fused(A, B), "NumPy": lambda: five(A, B)},
        "five operations, fused, 64 elements": {"weft": lambda: fused(z, z), "NumPy": lambda: five(large, large)},
        "x - i * x, fused, another i each time": {
            "weft": lambda: step(x, next(rates)),
            "NumPy": lambda: moved(A, next(rates)),
        },
        "softmax, fused": {"weft": lambda: softmax(x), "NumPy": lambda: row(A, np.max, np.exp)},
        "exp": {"weft": lambda: wa.exp(x).numpy(), "NumPy": lambda: np.exp(A)},
        "concatenate": {"weft": lambda: wa.concatenate([x, y]).numpy(), "NumPy": lambda: np.concatenate([A, B])},
    }
    if importlib.util.find_spec("jax"):
        jax: Any = importlib.import_module("jax")
        jnp: Any = importlib.import_module("jax.numpy")
        p, q = jnp.asarray(A), jnp.asarray(B)
        r = jnp.asarray(large)
        jitted, soft = jax.jit(five), jax.jit(partial(row, maximum=jnp.max, exp=jnp.exp))
        jitted_step = jax.jit(moved)
        found["x + y"]["JAX"] = lambda: np.asarray(p + q)
        found["x * i, another i each time"]["JAX"] = lambda: np.asarray(p * next(numbers))
        found["five operations, one by one"]["JAX"] = lambda: np.asarray(five(p, q))
        found["five operations, fused"]["JAX"] = lambda: jitted(p, q).block_until_ready()
        found["five operations, fused, of NumPy's arrays"]["JAX"] = lambda: jitted(A, B).block_until_ready()
        found["five operations, fused, 64 elements"]["JAX"] = lambda: jitted(r, r).block_until_ready()
        found["x - i * x, fused, another i each time"]["JAX"] = lambda: jitted_step(p, next(rates)).block_until_ready()
        found["exp"]["JAX"] = lambda: np.asarray(jnp.exp(p))
        found["concatenate"]["JAX"] = lambda: np.asarray(jnp.concatenate([p, q]))
        found["softmax, fused"]["JAX"] = lambda: soft(p).block_until_ready()
    return found


def limit() -> Callable[[], Any]:
    """One native call with the addresses that a kernel gets, which does nothing, and one new array."""
    nothing = executor.ENTRY(lambda *_: 0)  # for its type: the call below is of the C library
    library = ctypes.CDLL(None)
    native = ctypes.cast(library.abs, type(nothing))
    return lambda: (native(0, 0), np.empty(ELEMENTS, np.float32))


def microseconds(call: Callable[[], Any]) -> float:
    """The least time of a call."""
    for _ in range(20):
        call()
    return min(timeit.repeat(call, timer=time.process_time, number=CALLS, repeat=REPEATS)) / CALLS * 1e6


def main() -> None:
    """Prints the table."""
    table = Table("16 float32 elements, us", *PEERS, "weft / NumPy", "weft / JAX")
    for name, peers in cases().items():
        times = {peer: microseconds(call) for peer, call in peers.items()}
        columns = [f"{times[peer]:.1f}" if peer in times else "" for peer in PEERS]
        ratios = [f"{times['weft'] / times[peer]:.1f}" if peer in times else "" for peer in PEERS[1:]]
        table.add_row(name, *columns, *ratios)
    table.add_row("limit: a native call and an array", f"{microseconds(limit()):.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
