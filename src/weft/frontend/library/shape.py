"""Ops that give elements another shape."""

from __future__ import annotations

import math
from typing import Any, Final

from weft import language as tl
from weft.frontend.builder import Builder, common_shape
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import axis as axis_of
from weft.frontend.library.arguments import integers, variadic
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, check_shape, ir_type
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
    positions = sorted(axis_of(a, rank) for a in wanted)
    if len(set(positions)) != len(positions):
        raise CompilationError(f"expand_dims received duplicate axes, normalized axes = {positions}", argument="axis")
    for position in positions:
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


@implements(tl.join)
def _join(builder: Builder, a: Value, b: Value) -> Tensor:
    first, second = builder.broadcast(builder.tensor(a, "a"), builder.tensor(b, "b"))
    if first.element != second.element:
        raise CompilationError(
            f"tl.join takes tiles of one dtype, found {first.element} and {second.element}",
            hint=f"convert one with .to(tl.{first.dtype})",
            argument="b",
        )
    if first.shape:
        return _pairs(builder, first, second)
    pairs = _pairs(builder, builder.expand_dims(first, 0), builder.expand_dims(second, 0))
    return builder.reshape(pairs, (2,))


def _pairs(b: Builder, first: Tensor, second: Tensor) -> Tensor:
    shape = (*first.shape, 2)
    ir_type(first.dtype, shape, first.is_pointer)  # refuses what is too large
    return Tensor(b.emit(tile.JoinOp(first.ssa, second.ssa)).result, first.dtype, shape, first.is_pointer)


@implements(tl.split)
def _split(b: Builder, a: Value) -> tuple[Tensor, Tensor]:
    x = b.tensor(a, "a")
    if not x.shape:
        raise CompilationError("split requires a non-scalar tensor", argument="a")
    if x.shape[-1] != 2:
        raise CompilationError(f"expected last dimension to be 2 for split, got {x.shape[-1]}", argument="a")
    source = x if len(x.shape) > 1 else b.expand_dims(x, 0)
    op = b.emit(tile.SplitOp(source.ssa))
    halves = [Tensor(half, x.dtype, source.shape[:-1], x.is_pointer) for half in (op.first, op.second)]
    first, second = halves if len(x.shape) > 1 else [b.reshape(half, ()) for half in halves]
    return first, second


HALVED: Final = 64
"""From this size on a flip is two, of the upper and the lower bits of the index. A GPU finds for each a layout in which warps
hold none of the bits; one of all bits would leave it none."""


@implements(tl.flip)
def _flip(b: Builder, x: Value, dim: Value) -> Tensor:
    tensor = b.tensor(x, "x")
    rank = len(tensor.shape)
    axis = axis_of(-1 if dim is None else dim, rank, "dim")
    size = tensor.shape[axis]
    if size < HALVED:
        return _flipped(b, tensor, axis)
    lower = 1 << size.bit_length() // 2
    parts = b.reshape(tensor, (*tensor.shape[:axis], size // lower, lower, *tensor.shape[axis + 1 :]))
    return b.reshape(_flipped(b, _flipped(b, parts, axis), axis + 1), tensor.shape)


def _flipped(b: Builder, x: Tensor, axis: int) -> Tensor:
    if x.shape[axis] == 1:
        return x
    return Tensor(b.emit(tile.FlipOp(x.ssa, axis)).result, x.dtype, x.shape, x.is_pointer)
