"""What is measured: each case runs one computation on the same inputs through weft and everything it is compared with.

A peer's `Runner` holds its output, allocated beforehand where the peer can write into one. ``moved`` counts the bytes
that must cross the memory bus at least once (inputs read, outputs written), ``flops`` the multiply-adds twice.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import Array, Baseline, aligned
from peers import Runner, jax, numba, optional, torch

import weft
import weft.language as tl
from weft.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from flash_attention import attention
from layer_norm import layer_norm
from matmul import matmul
from softmax import softmax
from vector_add import add, add_kernel

numba_kernels: Any = optional("numba_kernels") if numba else None


@dataclass(frozen=True)
class Case:
    """One computation; ``reads_only`` where it writes next to nothing, so that the bus carries reads alone."""

    name: str
    expected: Array
    peers: dict[str, Runner]
    moved: int = 0
    flops: int = 0
    reads_only: bool = False
    tolerance: float = 1e-4
    calls: int = 1
    """Runs in one measurement: more than one for what takes microseconds, where only overheads are seen."""


def into(shape: int | tuple[int, ...], f: Callable[[Array], object]) -> Runner:
    """A runner that writes into an array of its own."""
    out = aligned(shape)
    return Runner(lambda: f(out), lambda: out)


def with_torch(shape: int | tuple[int, ...], f: Callable[[Any], Any], *, out: bool = True) -> dict[str, Runner]:
    """PyTorch, if installed: ``f`` takes the output tensor, or (``out=False``) None and returns a new one."""
    if torch is None:
        return {}
    held: list[Any] = [torch.zeros(shape)]

    def run() -> None:
        result = f(held[0] if out else None)
        if not out:
            held[0] = result

    return {"PyTorch": Runner(run, lambda: held[0].numpy())}


def with_jax(f: Callable[..., Any], *inputs: Array) -> dict[str, Runner]:
    """JAX, if installed: ``f`` compiled as a whole; it allocates its results."""
    if jax is None:
        return {}
    compiled, arguments = jax.jit(f), [jax.numpy.asarray(a) for a in inputs]
    held: list[Any] = [None]

    def run() -> None:
        held[0] = compiled(*arguments).block_until_ready()

    return {"JAX": Runner(run, lambda: np.asarray(held[0]))}


def with_numba(shape: int | tuple[int, ...], f: Callable[[Any, Array], object]) -> dict[str, Runner]:
    """Numba, if installed: ``f`` takes the module of kernels and the output."""
    return {} if numba is None else {"Numba": into(shape, lambda out: f(numba_kernels, out))}


def with_c(
    c: Baseline | None, shape: int | tuple[int, ...], f: Callable[[Baseline, Array], object]
) -> dict[str, Runner]:
    """C, where it could be built."""
    return {} if c is None else {"C": into(shape, lambda out: f(c, out))}


def normal(*shape: int) -> Array:
    """Standard normal float32 data, the same in every run."""
    out = aligned(shape)
    np.random.default_rng(math.prod(shape)).standard_normal(out=out, dtype=np.float32)
    return out


# ---- kernels that the examples do not have ---------------------------------------------------------------------------


@weft.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    inner = 0.7978845608 * (x + 0.044715 * (x * x * x))
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + libdevice.tanh(inner)), mask=mask)


@weft.jit
def row_sum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0), axis=0))


@weft.jit
def gather_kernel(table_ptr, index_ptr, out_ptr, rows, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, COLUMNS)
    inside = row < rows
    source = tl.load(index_ptr + row, mask=inside, other=0)
    mask = inside[:, None]
    values = tl.load(table_ptr + source[:, None] * COLUMNS + column[None, :], mask=mask)
    tl.store(out_ptr + row[:, None] * COLUMNS + column[None, :], values, mask=mask)


# ---- the same in NumPy -----------------------------------------------------------------------------------------------


def numpy_gelu(x: Array, out: Array) -> Array:
    np.multiply(x, x, out=out)
    out *= x
    out *= np.float32(0.044715)
    out += x
    out *= np.float32(0.7978845608)
    np.tanh(out, out=out)
    out += np.float32(1)
    out *= x
    out *= np.float32(0.5)
    return out


def numpy_softmax(x: Array, out: Array) -> Array:
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def numpy_layer_norm(x: Array, weight: Array, bias: Array, out: Array) -> Array:
    np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
    deviation = np.sqrt(np.einsum("ij,ij->i", out, out) / np.float32(x.shape[1]) + np.float32(1e-5))
    out /= deviation[:, None]
    out *= weight
    out += bias
    return out


def numpy_attention(q: Array, k: Array, v: Array, out: Array) -> Array:
    scores = np.matmul(q, k.swapaxes(-1, -2))
    scores *= np.float32(1 / math.sqrt(q.shape[-1]))
    return np.matmul(numpy_softmax(scores, scores), v, out=out)


# ---- cases -----------------------------------------------------------------------------------------------------------


def vector_add(c: Baseline | None) -> Case:
    n = 1 << 24
    x, y = normal(n), normal(n)[::-1].copy()
    return Case(
        "vector add 2^24",
        x + y,
        {
            "weft": into(n, lambda out: add(x, y, out, block=16384)),
            "NumPy": into(n, lambda out: np.add(x, y, out=out)),
            **with_torch(n, lambda out: torch.add(torch.from_numpy(x), torch.from_numpy(y), out=out)),
            **with_jax(lambda x, y: x + y, x, y),
            **with_numba(n, lambda k, out: k.add(x, y, out)),
            **with_c(c, n, lambda c, out: c.add(x, y, out, n)),
        },
        moved=3 * 4 * n,
    )


def gelu(c: Baseline | None) -> Case:
    n, block = 1 << 24, 16384
    x = normal(n)
    return Case(
        "GELU chain 2^24",
        numpy_gelu(x, np.empty_like(x)),
        {
            "weft": into(n, lambda out: gelu_kernel[(weft.cdiv(n, block),)](x, out, n, BLOCK=block)),
            "NumPy": into(n, lambda out: numpy_gelu(x, out)),
            **with_torch(n, lambda out: torch.ops.aten.gelu.out(torch.from_numpy(x), approximate="tanh", out=out)),
            **with_jax(lambda x: jax.nn.gelu(x, approximate=True), x),
            **with_numba(n, lambda k, out: k.gelu(x, out)),
            **with_c(c, n, lambda c, out: c.gelu(x, out, n)),
        },
        moved=2 * 4 * n,
    )


def softmax_rows(c: Baseline | None) -> Case:
    shape = rows, columns = 4096, 4096
    x = normal(*shape)
    return Case(
        "softmax 4096x4096",
        numpy_softmax(x, np.empty_like(x)),
        {
            "weft": into(shape, lambda out: softmax(x, out)),
            "NumPy": into(shape, lambda out: numpy_softmax(x, out)),
            **with_torch(shape, lambda out: torch.softmax(torch.from_numpy(x), 1, out=out)),
            **with_jax(lambda x: jax.nn.softmax(x, axis=1), x),
            **with_numba(shape, lambda k, out: k.softmax(x, out)),
            **with_c(c, shape, lambda c, out: c.softmax(x, out, rows, columns)),
        },
        moved=2 * 4 * rows * columns,
    )


def layer_norm_rows(c: Baseline | None) -> Case:
    shape = rows, columns = 4096, 4096
    x, weight, bias = normal(*shape), normal(columns), normal(1, columns)[0]

    def jax_layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        centered = x - x.mean(axis=1, keepdims=True)
        variance = (centered * centered).mean(axis=1, keepdims=True)
        return centered * jax.lax.rsqrt(variance + 1e-5) * weight + bias

    def torch_layer_norm(_: Any) -> Any:
        tensors = (torch.from_numpy(a) for a in (x, weight, bias))
        return torch.nn.functional.layer_norm(next(tensors), (columns,), *tensors)

    return Case(
        "layer norm 4096x4096",
        numpy_layer_norm(x, weight, bias, np.empty_like(x)),
        {
            "weft": into(shape, lambda out: layer_norm(x, weight, bias, out)),
            "NumPy": into(shape, lambda out: numpy_layer_norm(x, weight, bias, out)),
            **with_torch(shape, torch_layer_norm, out=False),
            **with_jax(jax_layer_norm, x, weight, bias),
            **with_numba(shape, lambda k, out: k.layer_norm(x, weight, bias, out)),
            **with_c(c, shape, lambda c, out: c.layer_norm(x, weight, bias, out, rows, columns, 1e-5)),
        },
        moved=2 * 4 * rows * columns,
    )


def row_sum(c: Baseline | None) -> Case:
    rows, columns = 4096, 4096
    x = normal(rows, columns)
    return Case(
        "row sum 4096x4096",
        x.sum(axis=1, dtype=np.float64),
        {
            "weft": into(rows, lambda out: row_sum_kernel[(rows,)](x, out, columns, BLOCK=columns)),
            "NumPy": into(rows, lambda out: np.sum(x, axis=1, out=out)),
            **with_torch(rows, lambda out: torch.sum(torch.from_numpy(x), 1, out=out)),
            **with_jax(lambda x: x.sum(axis=1), x),
            **with_numba(rows, lambda k, out: k.row_sum(x, out)),
            **with_c(c, rows, lambda c, out: c.row_sum(x, out, rows, columns)),
        },
        moved=4 * rows * columns,
        reads_only=True,
        tolerance=1e-3,
    )


def gather(c: Baseline | None) -> Case:
    """An embedding look-up: random rows of a 256 MiB table, larger than any cache."""
    rows, columns, entries, block = 65536, 256, 1 << 18, 16
    table = normal(entries, columns)
    index = np.random.default_rng(0).integers(0, entries, rows)
    shape = rows, columns
    grid = (weft.cdiv(rows, block),)
    return Case(
        "gather 65536 of 256",
        table[index],
        {
            "weft": into(shape, lambda out: gather_kernel[grid](table, index, out, rows, COLUMNS=columns, BLOCK=block)),
            "NumPy": into(shape, lambda out: np.take(table, index, axis=0, out=out, mode="clip")),
            **with_torch(
                shape, lambda out: torch.index_select(torch.from_numpy(table), 0, torch.from_numpy(index), out=out)
            ),
            **with_jax(lambda table, index: table.at[index].get(mode="promise_in_bounds"), table, index),
            **with_numba(shape, lambda k, out: k.gather(table, index, out)),
            **with_c(c, shape, lambda c, out: c.gather(table, index, out, rows, columns)),
        },
        moved=2 * 4 * rows * columns + 8 * rows,
    )


def matmul_square(_: Baseline | None) -> Case:
    n = 1024
    a, b = normal(n, n), normal(n, n).T.copy()
    return Case(
        "matmul 1024^3",
        a @ b,
        {
            "weft": into((n, n), lambda out: matmul(a, b, out)),
            "NumPy": into((n, n), lambda out: np.matmul(a, b, out=out)),
            **with_torch((n, n), lambda out: torch.mm(torch.from_numpy(a), torch.from_numpy(b), out=out)),
            **with_jax(lambda a, b: a @ b, a, b),
        },
        flops=2 * n**3,
        tolerance=1e-3,
    )


def attention_heads(_: Baseline | None) -> Case:
    shape = heads, length, d = 8, 1024, 64
    q, k, v = normal(*shape), normal(*shape)[::-1].copy(), normal(*shape)[:, ::-1].copy()

    def jax_attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(d), axis=-1) @ v

    def torch_attention(_: Any) -> Any:
        tensors = (torch.from_numpy(a)[None] for a in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(*tensors)[0]

    return Case(
        "attention 8x1024x64",
        numpy_attention(q, k, v, np.empty_like(q)),
        {
            "weft": into(shape, lambda out: attention(q, k, v, out)),
            "NumPy": into(shape, lambda out: numpy_attention(q, k, v, out)),
            **with_torch(shape, torch_attention, out=False),
            **with_jax(jax_attention, q, k, v),
        },
        flops=4 * heads * length * length * d,
    )


def launch(_: Baseline | None) -> Case:
    """One program of 16 elements: what remains is the way from Python to the kernel and back."""
    n = 16
    x, y = normal(n), normal(n)[::-1].copy()
    kernel = add_kernel[(1,)]
    return Case(
        "launch, 1 program",
        x + y,
        {
            "weft": into(n, lambda out: kernel(x, y, out, n, BLOCK=n)),
            "NumPy": into(n, lambda out: np.add(x, y, out=out)),
            **with_torch(n, lambda out: torch.add(torch.from_numpy(x), torch.from_numpy(y), out=out)),
            **with_jax(lambda x, y: x + y, x, y),
            **with_numba(n, lambda k, out: k.add(x, y, out)),
        },
        calls=2000,
    )


BUILDERS: dict[str, Callable[[Baseline | None], Case]] = {
    "add": vector_add,
    "gelu": gelu,
    "softmax": softmax_rows,
    "layernorm": layer_norm_rows,
    "rowsum": row_sum,
    "gather": gather,
    "matmul": matmul_square,
    "attention": attention_heads,
    "launch": launch,
}
