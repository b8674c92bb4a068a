"""A matrix product as a program: a tile of the result per program, batches along the grid's last dimension."""

from __future__ import annotations

import math
from typing import Final

from weft.array.canonical import Access, row_major
from weft.array.nodes import Matmul, Node
from weft.array.reductions import converted
from weft.array.schedule import Kernel
from weft.array.text import NARROW, Program

_BLOCK: Final = (64, 64, 64)
"""Rows and columns of the result, and steps of the sum, in one tile at most."""

_TEXT: Final = """\
import weft
import weft.language as tl


@weft.jit
def matmul({parameters}):
    rest = tl.program_id(2){cast}
{batch}
    i = tl.program_id(1){cast} * {m} + tl.arange(0, {m})
    j = tl.program_id(0){cast} * {n} + tl.arange(0, {n})
    k = tl.arange(0, {k}){cast}
    left = a{offset_a} + i[:, None] * {ai} + k[None, :] * {ak}
    right = b{offset_b} + k[:, None] * {bk} + j[None, :] * {bj}
    total = tl.zeros(({m}, {n}), {accumulator})
    for start in range(0, K, {k}):
        here = k < K - start
        x = tl.load(left, mask=(i < M)[:, None] & here[None, :], other=0.0)
        y = tl.load(right, mask=here[:, None] & (j < N)[None, :], other=0.0)
        total = tl.dot(x, y, total)
        left += {step} * {ak}
        right += {step} * {bk}
    tl.store(c + tl.program_id(2){cast} * M * N + i[:, None] * N + j[None, :], {total},
             mask=(i < M)[:, None] & (j < N)[None, :])
"""


def program_of_product(kernel: Kernel) -> Program:
    """The program of a kernel that holds a `Matmul` of floats."""
    node = kernel.nodes[0]
    if not isinstance(node, Matmul) or not isinstance(node.lhs, Access) or not isinstance(node.rhs, Access):
        raise TypeError("a matrix product reads memory")
    names = ["a", "b", "c", "M", "N", "K"]
    (*batch, m, n), k = node.shape, node.lhs.shape[-1]
    values: list[Node | int | None] = [node.lhs.buffer, node.rhs.buffer, node, m, n, k]

    def number(name: str, value: int) -> str:
        if value in (0, 1):
            return str(value)
        names.append(name)
        values.append(value)
        return name

    def offset(access: Access, name: str) -> str:
        return f" + {number(name, access.offset)}" if access.offset else ""

    lines: list[str] = []
    terms: dict[str, list[str]] = {"a": [], "b": []}
    for axis in reversed(range(len(batch))):
        size = number(f"n{axis}", batch[axis])
        lines += [f"    i{axis} = rest % {size}", f"    rest = rest // {size}"] if size != "1" else []
        for name, access in (("a", node.lhs), ("b", node.rhs)):
            at = axis + len(access.shape) - len(node.shape)
            stride = access.strides[at] if at >= 0 and access.shape[at] != 1 else 0
            if stride:
                terms[name].append(f" + i{axis} * {number(f's{name}{axis}', stride)}")
    rows, columns, steps = (min(_tile(size), most) for size, most in zip((m, n, k), _BLOCK, strict=True))
    strides = {
        "ai": number("ai", node.lhs.strides[-2]),
        "ak": number("ak", node.lhs.strides[-1]),
        "bk": number("bk", node.rhs.strides[-2]),
        "bj": number("bj", node.rhs.strides[-1]),
    }
    accesses = (node.lhs, node.rhs, Access(node.shape, node.dtype, buffer=node, strides=row_major(node.shape)))
    reach = [sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) for a in accesses]
    wide = max(reach) >= NARROW
    text = _TEXT.format(
        **strides,
        offset_a=offset(node.lhs, "a0") + "".join(terms["a"]),
        offset_b=offset(node.rhs, "b0") + "".join(terms["b"]),
        batch="\n".join(lines),
        m=rows,
        n=columns,
        k=steps,
        step=f"tl.full((), {steps}, tl.int64)" if wide else steps,
        accumulator="tl.float64" if node.dtype.bits == 64 else "tl.float32",
        total=converted("total", node.dtype),
        parameters=", ".join(names),
        cast=".to(tl.int64)" if wide else "",
    )
    grid = -(-n // columns), -(-m // rows), math.prod(batch)
    return Program(text, "matmul", tuple(names), tuple(values), grid, math.prod(node.shape) * k, aligned=True)


def _tile(size: int) -> int:
    """A power of two that holds ``size``, 16 at least."""
    return max(16, 1 << max(size - 1, 0).bit_length())
