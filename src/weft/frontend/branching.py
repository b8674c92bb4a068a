"""One side of something that happens under a condition: its ops in a block, and the variables at its end."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from weft import dtypes
from weft.frontend.errors import CompilationError
from weft.frontend.generator import Generator, Pending, Returned
from weft.frontend.scope import Scope
from weft.frontend.values import Tensor, Value
from weft.ir import tile


@dataclass
class Branch:
    """One side of a run-time ``if``: the ops, how it ended, and the variables at its end."""

    block: Block
    outcome: Returned | None
    scope: Scope


def condition(g: Generator, node: ast.expr) -> bool | Tensor:
    """The value of a condition: a bool if it is known at compile time, else a scalar of dtype bool (numbers and pointers: ``!=
    0``). A tile of a single element stands for it, with Triton's warning."""
    value = g.expression(node)
    if not isinstance(value, Tensor):
        return bool(value)
    if value.shape and value.shape != g.b.lanes and math.prod(value.shape) == 1:
        warnings.warn(
            "If conditional called with multidimensional Tensor instead of scalar; please use "
            f'"if ({ast.unparse(node)}).item()" instead',
            stacklevel=2,
        )
        value = g.b.reshape(value, ())
    if value.shape and value.shape != g.b.lanes:
        error = CompilationError(
            f"a condition is one bool, found a tile, {value}",
            hint="select elements with tl.where, or reduce the tile first, for example with tl.max",
        )
        raise g.stamp(error, node)
    if value.is_pointer:
        value = g.b.bitcast(value, dtypes.int64)
    return g.b.cast(value, dtypes.bool_)


def run_branch(
    g: Generator,
    pending: Pending,
    block: Block | None = None,
    enter: Callable[[], None] | None = None,
    scope: Scope | None = None,
    side: tuple[Value, bool] = (None, True),
) -> Branch:
    """Compile ``pending`` into a block of its own with a copy of the variables, or those in ``scope``; ``enter`` runs there
    first. ``side`` is a condition and what it is in this branch."""
    block, outer = block or Block(), g.frame.scope
    g.frame.scope = scope or outer.copy()
    try:
        with g.b.at(block), g.b.under(*side):
            if enter is not None:
                enter()
            outcome = g.execute(pending)
        return Branch(block, outcome, g.frame.scope)
    finally:
        g.frame.scope = outer


def emit_if(g: Generator, test: Tensor, blocks: Sequence[Block], values: Sequence[Sequence[Tensor]]) -> list[SSAValue]:
    """The ``scf.if`` of two blocks that yield ``values``; its results."""
    if test.shape:
        return _select(g, test, blocks, values)
    for block, yielded in zip(blocks, values, strict=True):
        with g.b.at(block):
            g.b.emit(scf.YieldOp(*(v.ssa for v in yielded)))
    types = [v.ssa.type for v in values[0]]
    op = g.b.emit(scf.IfOp(test.ssa, types, Region(blocks[0]), Region(blocks[1])))
    return list(op.results)


def scalar_condition(g: Generator, node: ast.expr, what: str) -> bool | Tensor:
    """`condition`, where the elements of a mapped function cannot differ."""
    test = condition(g, node)
    if isinstance(test, Tensor) and test.shape:
        raise g.stamp(CompilationError(f"{what} of a mapped function cannot depend on elements", hint=MAPPED), node)
    return test


def _select(g: Generator, test: Tensor, blocks: Sequence[Block], values: Sequence[Sequence[Tensor]]) -> list[SSAValue]:
    """Both sides of an ``if`` on the elements of a mapped function, computed for all elements, and the values of the side that
    each element asks for."""
    for block in blocks:
        refuse_unmasked(block)
        for inner in list(block.ops):
            inner.detach()
            g.b.block.add_op(inner)
    return [g.b.select(test, a, b).ssa for a, b in zip(*values, strict=True)]


def refuse_unmasked(block: Block) -> None:
    """`CompilationError` for an op that cannot leave out the elements of a mapped function that do not reach it."""
    for op in block.walk():
        what = _UNMASKED.get(type(op)) or _waits(op)
        if what is not None:
            raise CompilationError(f"a mapped function cannot have {what} under a condition on elements", hint=MAPPED)


def _waits(op: Operation) -> str | None:
    """What a loop is that goes on until memory changes: elements that do not reach it would keep it waiting."""
    inner = op.walk() if isinstance(op, scf.WhileOp) else ()
    return "a loop that waits" if any(isinstance(i, tile.LoadOp) and i.volatile is not None for i in inner) else None


_UNMASKED: Final[dict[type[Operation], str]] = {
    tile.AtomicCasOp: "tl.atomic_cas",
    tile.BarrierOp: "tl.debug_barrier",
    tile.AssumeOp: "tl.assume",
    tile.PrintOp: "a print",
}


MAPPED: Final = "compute with tiles, masks and tl.where instead of tl.map_elementwise"
