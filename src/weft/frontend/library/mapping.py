"""``tl.map_elementwise``: the function is inlined once, on whole tiles. `Builder.lanes` says so to branches and loops."""

from __future__ import annotations

import math
from typing import Any

from weft import language as tl
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import integer
from weft.frontend.registry import implementation_of, implements
from weft.frontend.source import KernelFunction
from weft.frontend.values import Tensor, Value, describe, is_tuple


@implements(tl.map_elementwise)
def _map_elementwise(b: Builder, scalar_fn: Value, args: tuple[Value, ...], pack: Value) -> Value:
    if not isinstance(scalar_fn, KernelFunction):
        raise CompilationError(
            f"'scalar_fn' is a function decorated with @weft.jit, found {describe(scalar_fn)}", argument="scalar_fn"
        )
    count = integer(pack, "pack")
    if count < 1 or count & (count - 1):
        raise CompilationError(f"pack must be >= 1 and a power of two, got {count}", argument="pack")
    if not args:
        raise CompilationError("map_elementwise takes at least one tile", argument="args")
    tiles = b.broadcast(*(b.tensor(value, "args") for value in args))
    shape = tiles[0].shape
    if math.prod(shape) < count:
        raise CompilationError(f"pack is at most the number of elements, {math.prod(shape)}", argument="pack")
    elements = [part for x in tiles for part in _parts(b, x, count)]
    results = _inlined(b, scalar_fn, elements)
    is_single = isinstance(results, Tensor)
    given: tuple[Any, ...] = (results,) if is_single else results
    if not is_tuple(given) or len(given) % count or not all(isinstance(r, Tensor) for r in given):
        raise CompilationError(
            f"{scalar_fn.name} returns scalars, {count} for each result, found {describe(results)}",
            argument="scalar_fn",
        )
    joined = [_joined(b, given[i : i + count], shape, scalar_fn) for i in range(0, len(given), count)]
    return joined[0] if is_single else tuple(joined)


def _inlined(b: Builder, function: KernelFunction, elements: list[Tensor]) -> Value:
    """The function's result for tiles in the place of scalars."""
    parameters = function.parameters
    if len(parameters) != len(elements) or any(p.variadic for p in parameters):
        raise CompilationError(
            f"{function.name} takes {len(parameters)} arguments, and the map passes {len(elements)}",
            argument="scalar_fn",
        )
    if b.inline is None:
        raise RuntimeError(f"the builder cannot inline {function.name}: no generator has set Builder.inline")
    outer, b.lanes = b.lanes, elements[0].shape
    try:
        return b.inline(function, {p.name: x for p, x in zip(parameters, elements, strict=True)}, b.node)
    finally:
        b.lanes = outer


def _parts(b: Builder, x: Tensor, count: int) -> list[Tensor]:
    """``count`` tiles: neighbours in row-major order go to different ones."""
    if count == 1:
        return [x]
    pairs = b.reshape(x, (math.prod(x.shape) // 2, 2))
    first, second = implementation_of(tl.split)(b, pairs)
    halves = [_parts(b, half, count // 2) for half in (first, second)]
    return [part for both in zip(*halves, strict=True) for part in both]


def _joined(b: Builder, parts: tuple[Tensor, ...], shape: tuple[int, ...], function: KernelFunction) -> Tensor:
    """The reverse of `_parts`."""
    if len({part.element for part in parts}) > 1:
        raise CompilationError(
            f"type mismatch in unpacked results of {function.name}: {describe(parts)}", argument="scalar_fn"
        )
    size = math.prod(shape) // len(parts)
    wide = [b.broadcast_to(part, (size,)) if not part.shape and len(parts) > 1 else part for part in parts]
    if len(wide) == 1:
        return b.broadcast_to(wide[0], shape)
    halves = [_joined(b, tuple(wide[k::2]), (math.prod(shape) // 2,), function) for k in (0, 1)]
    return b.reshape(implementation_of(tl.join)(b, *halves), shape)
