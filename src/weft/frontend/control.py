"""``if``, and what ``for``, ``while`` and conditional expressions share with it.

What is known at compile time leaves no trace: the branch not taken is not even looked at, ``tl.static_range`` is
unrolled. The rest becomes scf. A variable crosses such an op as an operand or result only if it is assigned inside and
still read afterwards; a loop's operand that turns out never to change is dropped again.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.frontend import jumps
from weft.frontend.assignment import name_after
from weft.frontend.branching import Branch, condition, emit_if, run_branch
from weft.frontend.constness import described
from weft.frontend.errors import CompilationError, Note
from weft.frontend.generator import MAX_FORKS, Generator, Mark, Outcome, Pending, Resume, Returned, push
from weft.frontend.joining import leaves, rebuild, same_type, unify
from weft.frontend.scope import jumps_in
from weft.frontend.source import MISSING
from weft.frontend.values import Tensor, Undefined, Value


def if_statement(g: Generator, node: ast.If, pending: Pending) -> Outcome:
    """Compile ``node``; see `weft.frontend.generator` for how ``pending`` goes into the branches."""
    test = condition(g, node.test)
    if isinstance(test, bool):
        return push(node.body if test else node.orelse, pending)
    kinds = jumps_in([node])
    if not kinds:
        then, other = (run_branch(g, push(body, None), side=(test, holds)) for body, holds in _sides(node))
        join(g, node, test, then, other)
        return pending
    if kinds == {"return"} and not g.scope.cut:
        return fork(g, node, test, push(node.body, pending), push(node.orelse, pending))
    return _branch(g, node, test, pending)


def fork(g: Generator, node: ast.stmt, test: Tensor, then_pending: Pending, else_pending: Pending) -> Returned:
    """An ``if`` of two paths that go on to the end of the function."""
    g.forks += 1
    if g.forks > MAX_FORKS:
        raise CompilationError(
            f"early returns split the function into more than {MAX_FORKS} paths",
            hint="compute a condition first and return once",
        )
    branches = [run_branch(g, p, side=(test, holds)) for p, holds in ((then_pending, True), (else_pending, False))]
    g.b.node = node
    ends = _ends(g, node, branches)
    then, other = unify(g.b, ends[0].value, branches[0].block, ends[1].value, branches[1].block)
    if not same_type(g.b, then, other):
        jumps.refuse_results(g, ends[0], ends[1])
    results = emit_if(g, test, [b.block for b in branches], [list(leaves(then)), list(leaves(other))])
    return Returned(rebuild(then, iter(results)), ends[0].node)


def _ends(g: Generator, node: ast.stmt, branches: Sequence[Branch]) -> list[Returned]:
    """What each path returns. A helper's path that ends without a ``return`` gives an undefined value (in Triton: poison) where
    another returns one: here zeros. ``return`` without a value gives None."""
    ends: list[Returned] = []
    for branch, other in zip(branches, reversed(branches), strict=True):
        end = branch.outcome or Returned(None, node)
        if branch.outcome is None and other.outcome is not None and g.b.frame.caller is not None:
            with g.b.at(branch.block):
                end = Returned(jumps.placeholder(g.b, other.outcome.value), node)
        ends.append(end)
    return ends


def _branch(g: Generator, node: ast.If, test: Tensor, pending: Pending) -> Outcome:
    """An ``if`` with jumps inside; see `weft.frontend.jumps`."""
    sides = [run_branch(g, push(body, None), None, lambda: _cut(g), side=(test, holds)) for body, holds in _sides(node)]
    segment, rest = jumps.split(pending)
    ended = [jumps.always(side.scope) for side in sides]
    if segment is not None and ended[0] is not ended[1]:
        k = ended.index(False)
        sides[k] = run_branch(g, push([Resume(node)], segment), sides[k].block, None, sides[k].scope, (test, k == 0))
    join(g, node, test, sides[0], sides[1], ended)
    return rest if any(ended) else resume(g, node, pending)


def _sides(node: ast.If) -> tuple[tuple[list[ast.stmt], bool], tuple[list[ast.stmt], bool]]:
    """The two sides, and what the condition is there."""
    return (node.body, True), (node.orelse, False)


def _cut(g: Generator) -> None:
    g.scope.cut = True


def resume(g: Generator, node: ast.stmt, pending: Pending) -> Outcome:
    """What is pending after ``node``, where the path has not jumped in it."""
    scope = g.scope
    if not scope.jumps:
        return pending
    if not scope.cut and (returned := scope.jumps.pop(jumps.RETURN, None)) is not None:
        if returned is True:
            return scope.result
        return fork(g, node, returned, push([scope.result], None), push([Resume(node)], pending))
    segment, rest = jumps.split(pending)
    if jumps.always(scope) or segment is None:
        return rest
    jumped = jumps.any_of(g.b, scope.jumps)
    assert isinstance(jumped, Tensor), "what has jumped on every path is handled above"
    before, scope.jumps = scope.jumps, {}
    going = run_branch(g, segment, None, lambda: _cut(g), side=(jumped, False))
    # Where nothing new can happen to a flag, it stays what it is: it is False there.
    scope.jumps = {jump: flag for jump, flag in before.items() if jump in going.scope.jumps}
    skipped = run_branch(g, None)
    join(g, node, jumped, skipped, going, (True, False))
    g.scope.jumps = {**before, **g.scope.jumps}
    return rest


def resumed(g: Generator, step: Resume, pending: Pending) -> Outcome:
    """See `resume`."""
    return resume(g, step.node, pending)


def mark(g: Generator, step: Mark, pending: Pending) -> Outcome:
    """The end of an iteration of an unrolled loop, or of the loop: the paths that jumped to here go on."""
    loop = step.jump.loop
    assert loop is not None, "marks are the ends of loops"
    g.scope.jumps.pop(step.jump, None)
    if step.jump.kind == "break":
        g.scope.loop = loop.outer
    return resume(g, loop.node, pending)


def join(
    g: Generator, node: ast.stmt, test: Tensor, then: Branch, other: Branch, ended: Sequence[bool] = (False, False)
) -> None:
    """The ``if`` of two branches: variables that they assign differently become results. ``ended`` says which branch has
    jumped, so that what follows in the same iteration does not read its variables."""
    g.b.node = node
    if g.scope.loop is not None and not g.scope.loop.unrolled and ended[0] is not ended[1]:
        _supply(g, node, *((then, other) if ended[0] else (other, then)))
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
            if same_type(g.b, a, b):
                merged[name] = (a, b)
            else:
                g.scope.values[name] = _conflicting(g, name, then, other)
    taken = jumps.merge(g, then, other)
    values = [*merged.values(), *taken.pairs()]
    yielded = [[leaf for pair in values for leaf in leaves(pair[side])] for side in (0, 1)]
    results = iter(emit_if(g, test, [then.block, other.block], yielded))
    for name, (a, _) in merged.items():
        value = rebuild(a, results)
        name_after(name, value)
        assigned_in = then if then.scope.origins[name] is not g.scope.origins.get(name) else other
        g.scope.assign(name, value, assigned_in.scope.origins[name])
    taken.bind(g.scope, results)


def _supply(g: Generator, node: ast.stmt, ended: Branch, going: Branch) -> None:
    """Give the branch that has jumped the variables that only the other one defines."""
    for name, value in going.scope.values.items():
        known = ended.scope.values.get(name, MISSING)
        defined = not (known is MISSING or isinstance(known, Undefined))
        if defined or isinstance(value, Undefined) or not g.liveness.after(name, node):
            continue
        with g.b.at(ended.block):
            ended.scope.assign(name, jumps.placeholder(g.b, value), going.scope.origins.get(name, node))


def _half_defined(g: Generator, name: str, node: ast.stmt, then: Branch, other: Branch) -> Undefined:
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
    types = [described(g.b, b.scope.values[name]) for b in (then, other)]
    places = [g.frame.kernel.span(b.scope.origins[name]) for b in (then, other)]
    return Undefined(
        f"'{name}' has different types after an 'if': {types[0]} and {types[1]}",
        "give it the same dtype and shape in both branches, or use two names",
        tuple(Note(f"{type_} here", place) for type_, place in zip(types, places, strict=True)),
    )
