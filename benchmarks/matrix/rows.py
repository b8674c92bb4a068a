"""What a row of the matrix is, and how the peers of one are made.

A row is one computation on fixed inputs. weft runs it once for each tile shape, each peer runs it once, and all results are
compared with one expected array before anything is timed. A `Runner` holds its output, allocated beforehand where the peer can
write into one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from machine import Array, Baseline, aligned
from peers import Runner, jax, numba, optional, torch

numba_loops: Any = optional("numba_loops") if numba else None


@dataclass(frozen=True)
class Row:
    """One computation: weft's runners by tile shape, the peers' by name.

    ``moved`` counts the bytes that must cross the memory bus at least once, ``flops`` the multiply-adds twice; 0 where the row
    is not limited by either. ``exact`` results are equal, others are within ``tolerance`` (relative and absolute).
    """

    name: str
    expected: Array
    tiles: Mapping[str, Runner]
    peers: Mapping[str, Runner]
    moved: int = 0
    flops: int = 0
    reads_only: bool = False
    tolerance: float = 1e-4
    exact: bool = False


Family = Mapping[str, Callable[[Baseline | None], Row]]
"""Rows by the name that ``--only`` takes; each is built when it is measured, with C's library if there is one."""


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    """Standard normal data, the same in every run."""
    out = aligned(shape, dtype)
    out[...] = np.random.default_rng(math.prod(shape)).standard_normal(shape, dtype=np.float32)
    return out


def bytes_(*shape: int) -> Array:
    """Uniform uint8 data, the same in every run."""
    out = aligned(shape, np.uint8)
    out[...] = np.random.default_rng(math.prod(shape)).integers(0, 256, shape, dtype=np.uint8)
    return out


def integers(n: int, bound: int, dtype: Any = np.int32) -> Array:
    """Uniform integers below ``bound``, the same in every run."""
    return np.random.default_rng(n).integers(0, bound, n).astype(dtype)


def into(shape: int | Sequence[int], f: Callable[[Array], object], dtype: Any = np.float32) -> Runner:
    """A runner that writes into the array of this shape and type: all into one, for pages of two arrays may differ in size."""
    out = output(shape if isinstance(shape, int) else tuple(shape), np.dtype(dtype))
    return Runner(lambda: f(out), lambda: out, out)


@lru_cache(maxsize=1)
def output(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """What the runners of a row write into."""
    return aligned(shape, dtype)


def tiled(
    shapes: Sequence[tuple[int, ...]],
    shape: int | Sequence[int],
    f: Callable[..., object],
    dtype: Any = np.float32,
) -> dict[str, Runner]:
    """weft's runners: ``f(out, *tile)`` for each tile shape."""
    return {"x".join(map(str, tile)): into(shape, lambda out, tile=tile: f(out, *tile), dtype=dtype) for tile in shapes}


def with_numpy(shape: int | Sequence[int], f: Callable[[Array], object], dtype: Any = np.float32) -> dict[str, Runner]:
    """NumPy: ``f`` writes into the output."""
    return {"NumPy": into(shape, f, dtype)}


def with_torch(f: Callable[[], Any]) -> dict[str, Runner]:
    """PyTorch, if installed: ``f`` returns the result."""
    if torch is None:
        return {}
    held: list[Any] = [None]

    def run() -> None:
        held[0] = f()

    return {"PyTorch": Runner(run, lambda: held[0].numpy())}


def tensor(array: Array) -> Any:
    """An array as PyTorch's; None where it is not installed."""
    return None if torch is None else torch.from_numpy(array)


def with_jax(f: Callable[..., Any], *inputs: Array) -> dict[str, Runner]:
    """JAX, if installed: ``f`` compiled as a whole; it allocates its results."""
    if jax is None:
        return {}
    compiled, arguments = jax.jit(f), [jax.numpy.asarray(a) for a in inputs]
    held: list[Any] = [None]

    def run() -> None:
        held[0] = compiled(*arguments).block_until_ready()

    return {"JAX": Runner(run, lambda: np.asarray(held[0]))}


def with_numba(
    shape: int | Sequence[int], f: Callable[[Any, Array], object], dtype: Any = np.float32
) -> dict[str, Runner]:
    """Numba, if installed: ``f`` takes the module of loops and the output."""
    return {} if numba is None else {"Numba": into(shape, lambda out: f(numba_loops, out), dtype)}


def with_c(
    c: Baseline | None, shape: int | Sequence[int], f: Callable[[Baseline, Array], object], dtype: Any = np.float32
) -> dict[str, Runner]:
    """C, where it could be built."""
    return {} if c is None else {"C": into(shape, lambda out: f(c, out), dtype)}
