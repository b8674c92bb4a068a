"""``if``, and what ``for``, ``while`` and conditional expressions share with it.

What is known at compile time leaves no trace: the branch not taken is not even looked at, ``tl.static_range`` is
unrolled. The rest becomes scf. A variable crosses such an op as an operand or result only if it is assigned inside and
still read afterwards; a loop's operand that turns out never to change is dropped again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from weft import dtypes
from weft.frontend.assignment import name_after
from weft.frontend.errors import CompilationError, Note
from weft.frontend.generator import MAX_FORKS, Generator, Outcome, Pending, Returned, push
from weft.frontend.joining import leaves, rebuild, same_type, unify
from weft.frontend.scope import Scope, returns
from weft.frontend.source import MISSING
from weft.frontend.values import Tensor, Undefined, Value, describe


@dataclass
class Branch:
    """One side of a run-time ``if``: the ops, how it ended, and the variables at its end."""

    block: Block
    outcome: Returned | None
    scope: Scope


def condition(g: Generator, node: ast.expr) -> bool | Tensor:
    """The value of a condition: a bool if it is known at compile time, else a scalar of dtype bool (numbers: ``!=
    0``)."""
    value = g.expression(node)
    if not isinstance(value, Tensor):
        return bool(value)
    if value.shape:
        error = CompilationError(
            f"a condition is one bool, found a tile, {value}",
            hint="select elements with tl.where, or reduce the tile first, for example with tl.max",
        )
        raise g.stamp(error, node)
    if value.is_pointer:
        raise g.stamp(CompilationError(f"a condition is one bool, found a {value}"), node)
    return g.b.cast(value, dtypes.bool_)


def if_statement(g: Generator, node: ast.If, pending: Pending) -> Outcome:
    """Compile ``node``; see `weft.frontend.generator` for how ``pending`` goes into the branches."""
    test = condition(g, node.test)
    if isinstance(test, bool):
        return push(node.body if test else node.orelse, pending)
    if returns(node.body) or returns(node.orelse):
        return _fork(g, node, test, pending)
    _join(g, node, test)
    return pending


def run_branch(
    g: Generator, pending: Pending, block: Block | None = None, enter: Callable[[], None] | None = None
) -> Branch:
    """Compile ``pending`` into a block of its own with a copy of the variables; ``enter`` runs there first."""
    block, outer = block or Block(), g.frame.scope
    g.frame.scope = outer.copy()
    try:
        with g.b.at(block):
            if enter is not None:
                enter()
            outcome = g.execute(pending)
        return Branch(block, outcome, g.frame.scope)
    finally:
        g.frame.scope = outer


def emit_if(g: Generator, test: Tensor, blocks: Sequence[Block], values: Sequence[Sequence[Tensor]]) -> list[SSAValue]:
    """The ``scf.if`` of two blocks that yield ``values``; its results."""
    for block, yielded in zip(blocks, values, strict=True):
        with g.b.at(block):
            g.b.emit(scf.YieldOp(*(v.ssa for v in yielded)))
    types = [v.ssa.type for v in values[0]]
    op = g.b.emit(scf.IfOp(test.ssa, types, Region(blocks[0]), Region(blocks[1])))
    return list(op.results)


def _fork(g: Generator, node: ast.If, test: Tensor, pending: Pending) -> Returned:
    """An ``if`` with a ``return`` inside: both branches go on to the end of the function."""
    g.forks += 1
    if g.forks > MAX_FORKS:
        raise CompilationError(
            f"early returns split the function into more than {MAX_FORKS} paths",
            hint="compute a condition first and return once",
        )
    branches = [run_branch(g, push(body, pending)) for body in (node.body, node.orelse)]
    g.b.node = node
    ends = [b.outcome or Returned(None, node) for b in branches]
    then, other = unify(g.b, ends[0].value, branches[0].block, ends[1].value, branches[1].block)
    if not same_type(then, other):
        spans = g.frame.spans(ends[0].node)
        raise CompilationError(
            f"one path returns {describe(ends[0].value)}, another {describe(ends[1].value)}",
            spans,
            notes=[Note("the other path ends here", g.frame.kernel.span(ends[1].node))],
            hint="make all paths return values of the same types and shapes",
        )
    results = emit_if(g, test, [b.block for b in branches], [list(leaves(then)), list(leaves(other))])
    return Returned(rebuild(then, iter(results)), ends[0].node)


def _join(g: Generator, node: ast.If, test: Tensor) -> None:
    """An ``if`` without ``return``: variables that the branches assign differently become results."""
    then, other = (run_branch(g, push(body, None)) for body in (node.body, node.orelse))
    g.b.node = node
    merged: dict[str, tuple[Value, Value]] = {}
    for name in {**then.scope.values, **other.scope.values}:
        a, b = then.scope.values.get(name, MISSING), other.scope.values.get(name, MISSING)
        if a is b:
            g.scope.values[name] = a
            if name in then.scope.origins:  # parameters have none
                g.scope.origins[name] = then.scope.origins[name]
        elif not g.liveness.after(name, node):
            g.scope.values.pop(name, None)
        elif a is MISSING or b is MISSING or isinstance(a, Undefined) or isinstance(b, Undefined):
            g.scope.values[name] = _half_defined(g, name, node, then, other)
        else:
            a, b = unify(g.b, a, then.block, b, other.block)
            if same_type(a, b):
                merged[name] = (a, b)
            else:
                g.scope.values[name] = _conflicting(g, name, then, other)
    results = iter(
        emit_if(
            g,
            test,
            [then.block, other.block],
            [[leaf for pair in merged.values() for leaf in leaves(pair[side])] for side in (0, 1)],
        )
    )
    for name, (a, _) in merged.items():
        value = rebuild(a, results)
        name_after(name, value)
        assigned_in = then if then.scope.origins[name] is not g.scope.origins.get(name) else other
        g.scope.assign(name, value, assigned_in.scope.origins[name])


def _half_defined(g: Generator, name: str, node: ast.If, then: Branch, other: Branch) -> Undefined:
    """What a variable is that only one branch assigns."""
    for branch in (then, other):
        value = branch.scope.values.get(name, MISSING)
        if isinstance(value, Undefined):
            return value
    origin = (then if name in then.scope.values else other).scope.origins[name]
    return Undefined(
        f"'{name}' is assigned in one branch of an 'if' only",
        f"assign '{name}' before the 'if', or in both branches",
        (Note("assigned here, under a condition known only at run time", g.frame.kernel.span(origin)),),
    )


def _conflicting(g: Generator, name: str, then: Branch, other: Branch) -> Undefined:
    """What a variable is that the branches give different types."""
    types = [describe(b.scope.values[name]) for b in (then, other)]
    places = [g.frame.kernel.span(b.scope.origins[name]) for b in (then, other)]
    return Undefined(
        f"'{name}' has different types after an 'if': {types[0]} and {types[1]}",
        "give it the same dtype and shape in both branches, or use two names",
        tuple(Note(f"{type_} here", place) for type_, place in zip(types, places, strict=True)),
    )
