"""Ops that give elements another shape."""

from __future__ import annotations

import math
from typing import Any

from weft import language as tl
from weft.frontend.builder import Builder, common_shape
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import axis as axis_of
from weft.frontend.library.arguments import integers, variadic
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, check_shape
from weft.ir import tile


@implements(tl.broadcast)
def _broadcast(b: Builder, input: Value, other: Value) -> tuple[Tensor, ...]:
    return tuple(b.broadcast(b.tensor(input, "input"), b.tensor(other, "other")))


@implements(tl.broadcast_to)
def _broadcast_to(b: Builder, input: Value, shape: tuple[Any, ...]) -> Tensor:
    x, sizes = b.tensor(input, "input"), variadic(shape, "shape")
    check_shape(sizes)
    if len(sizes) < len(x.shape) or common_shape(x.shape, sizes) != sizes:
        raise CompilationError(
            f"a tile of shape {x.shape} does not broadcast to {sizes}",
            hint="only sizes of 1 grow, and new dimensions come first",
            argument="shape",
        )
    return b.broadcast_to(x, sizes)


@implements(tl.expand_dims)
def _expand_dims(b: Builder, input: Value, axis: Value) -> Tensor:
    x = b.tensor(input, "input")
    wanted = integers(axis, "axis")
    rank = len(x.shape) + len(wanted)
    for position in sorted(axis_of(a, rank) for a in wanted):
        x = b.expand_dims(x, position)
    return x


def _reshape(b: Builder, input: Value, shape: tuple[Any, ...]) -> Tensor:
    x, sizes = b.tensor(input, "input"), variadic(shape, "shape")
    check_shape(sizes)
    if math.prod(sizes) != math.prod(x.shape):
        raise CompilationError(
            f"shape {x.shape} has {math.prod(x.shape)} elements, shape {sizes} has {math.prod(sizes)}",
            hint="a reshape keeps the number of elements; use tl.broadcast_to to repeat them",
            argument="shape",
        )
    return b.reshape(x, sizes)


@implements(tl.reshape)
def _reshape_op(b: Builder, input: Value, shape: tuple[Any, ...], can_reorder: Value) -> Tensor:
    return _reshape(b, input, shape)


@implements(tl.view)
def _view(b: Builder, input: Value, shape: tuple[Any, ...]) -> Tensor:
    return _reshape(b, input, shape)


@implements(tl.ravel)
def _ravel(b: Builder, x: Value, can_reorder: Value) -> Tensor:
    tensor = b.tensor(x, "x")
    return b.reshape(tensor, (math.prod(tensor.shape),))


@implements(tl.trans)
def _trans(b: Builder, input: Value, dims: tuple[Any, ...]) -> Tensor:
    x = b.tensor(input, "input")
    if dims:
        return _permute(b, input, dims)
    if len(x.shape) < 2:
        raise CompilationError(f"there are no two dimensions to exchange in {x}", argument="input")
    order = list(range(len(x.shape)))
    order[-2:] = order[-1], order[-2]
    return _permuted(b, x, tuple(order))


@implements(tl.permute)
def _permute(b: Builder, input: Value, dims: tuple[Any, ...]) -> Tensor:
    x, order = b.tensor(input, "input"), variadic(dims, "dims")
    rank = len(x.shape)
    if sorted(d % rank if -rank <= d < rank else rank for d in order) != list(range(rank)):
        raise CompilationError(
            f"'dims' names each of the {rank} dimensions of {x} once, found {order}", argument="dims"
        )
    return _permuted(b, x, tuple(d % rank for d in order))


def _permuted(b: Builder, x: Tensor, order: tuple[int, ...]) -> Tensor:
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.shape[i] for i in order)
    return Tensor(b.emit(tile.TransOp(x.ssa, order)).result, x.dtype, shape, x.is_pointer, x.weak)
