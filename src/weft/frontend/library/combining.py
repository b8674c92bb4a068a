"""What reductions and scans share: tiles of one shape that are combined together, and the region of the combine function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Block, Region

from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import tile_of
from weft.frontend.overflow import check_result
from weft.frontend.source import KernelFunction
from weft.frontend.values import Tensor, Value, describe, ir_type, is_tuple
from weft.ir import tile

Combine = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""Accumulators and elements, all scalars, to new accumulators."""


def region_of(b: Builder, sources: Sequence[Tensor], combine: Combine) -> Region:
    """The combine region of `tile.ReduceOp` and `tile.ScanOp`, into which ``combine`` has emitted."""
    types = [ir_type(s.dtype, ()) for s in sources]
    block = Block(arg_types=types + types)
    scalars = [Tensor(a, s.dtype, ()) for a, s in zip(block.args, [*sources, *sources], strict=True)]
    outer, b.path = b.path, None
    with b.at(block):
        results = combine(scalars[: len(sources)], scalars[len(sources) :])
        b.emit(tile.YieldOp(*(r.ssa for r in results)))
    b.path = outer
    return Region(block)


def by_kind(b: Builder, kind: str) -> Combine:
    """One `tile.binary`; a sum or a product that is checked for overflow, if kernels check that."""

    def combine(old: Sequence[Tensor], new: Sequence[Tensor]) -> Sequence[Tensor]:
        check_result(b, kind, old[0], new[0])
        return [b.binary(kind, old[0], new[0])]

    return combine


def sources_of(b: Builder, input: Value, done: str) -> list[Tensor]:
    """The tiles of an argument, of one shape; what is ``done`` to them ('reduced') is named in messages."""
    items: tuple[Any, ...] = input if is_tuple(input) else (input,)
    if not items:
        raise CompilationError(f"tiles are {done}, found an empty tuple", argument="input")
    sources = [tile_of(b, item, "input") for item in items]
    if len({s.shape for s in sources}) > 1:
        shown = " and ".join(str(s.shape) for s in sources)
        raise CompilationError(f"tiles that are {done} together have one shape, found {shown}", argument="input")
    return sources


def by_function(b: Builder, combine_fn: Value, sources: Sequence[Tensor], do: str) -> Combine:
    """A user's combine function for ``sources``; what to ``do`` with them ('reduce') is named in messages."""
    if not isinstance(combine_fn, KernelFunction):
        raise CompilationError(
            f"'combine_fn' is a function decorated with @weft.jit, found {describe(combine_fn)}", argument="combine_fn"
        )
    function, expected = combine_fn, [s.dtype for s in sources]
    return lambda old, new: _call(b, function, [*old, *new], expected, do)


def _call(
    b: Builder, function: KernelFunction, scalars: Sequence[Tensor], expected: Sequence[DType], do: str
) -> Sequence[Tensor]:
    """A combine function inlined, its results checked."""
    parameters = function.parameters
    if len(parameters) != len(scalars):
        tiles = f"{len(expected)} tile{'s' if len(expected) > 1 else ''}"
        raise CompilationError(
            f"to {do} {tiles}, {function.name} takes {len(scalars)} arguments, found {len(parameters)}",
            hint="first the accumulators, then the elements",
            argument="combine_fn",
        )
    if b.inline is None:
        raise RuntimeError(f"the builder cannot inline {function.name}: no generator has set Builder.inline")
    result = b.inline(function, {p.name: s for p, s in zip(parameters, scalars, strict=True)}, b.node)
    results: tuple[Any, ...] = result if is_tuple(result) else (result,)
    found = [r.element if isinstance(r, Tensor) and not r.shape else describe(r) for r in results]
    if found != list(expected):
        raise CompilationError(
            f"{function.name} combines {', '.join(map(str, expected))}, but returns {', '.join(map(str, found))}",
            hint="return one scalar for each tile, of its dtype: convert with .to(...)",
            argument="combine_fn",
        )
    return results
