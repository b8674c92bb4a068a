"""``break``, ``continue`` and ``return`` that leave loops.

scf has no jumps. A path that jumps notes so in its scope (`Scope.jumps`) and does nothing more up to the end of its *region*: the
body of a run-time loop, or an iteration of an unrolled one (`Mark`). A jump known at compile time drops the statements that it
jumps over. After an ``if`` of the run time

- in which one side always jumps, the other side contains what follows, up to the end of the region;
- in which a side sometimes jumps, what follows stands under a second ``if``, which asks whether the path has jumped.

So the code grows linearly, a jump needs no flag where the syntax says who jumps, and nothing takes effect after it. ``continue``
leaves no trace in a loop; loops that ``break`` or ``return`` leave are in `weft.frontend.leaving`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from xdsl.ir import SSAValue

from weft import dtypes
from weft.frontend.assignment import decay
from weft.frontend.branching import Branch
from weft.frontend.builder import Builder
from weft.frontend.compound import Compound
from weft.frontend.constness import described, is_const
from weft.frontend.errors import CompilationError, Note
from weft.frontend.generator import Generator, Mark, Outcome, Pending, Returned, Step, push
from weft.frontend.joining import leaves, rebuild, same_type, unify
from weft.frontend.scope import Jump, Scope
from weft.frontend.values import Tensor, Value, is_tuple, tuple_like

RETURN: Final = Jump("return", None)


def split(pending: Pending) -> tuple[Pending, Pending]:
    """What is pending in this region, and the rest, which is None or begins with a `Mark`."""
    inside: list[Step] = []
    while pending is not None and not isinstance(pending[0], Mark):
        inside.append(pending[0])
        pending = pending[1]
    return push(inside, None), pending


def leave_iteration(g: Generator, node: ast.Break | ast.Continue, pending: Pending) -> Outcome:
    """``break`` or ``continue``."""
    kind = "break" if isinstance(node, ast.Break) else "continue"
    g.scope.jumps[Jump(kind, g.scope.loop)] = True
    return split(pending)[1]


def leave_function(g: Generator, value: Value, node: ast.AST, pending: Pending) -> Outcome:
    """``return value``."""
    end = Returned(decay(g.b, value), node)
    if not g.scope.cut:
        return end
    g.scope.jumps[RETURN], g.scope.result = True, end
    return split(pending)[1]


def finish(g: Generator, step: Returned, pending: Pending) -> Outcome:
    """The pending end of a path."""
    return step


def always(scope: Scope) -> bool:
    """Whether every path to here has jumped."""
    return any(taken is True for taken in scope.jumps.values())


def any_of(b: Builder, flags: Mapping[Jump, Value]) -> bool | Tensor:
    """Whether one of some jumps was taken, as a value at the insertion point."""
    if not flags or any(flag is True for flag in flags.values()):
        return bool(flags)
    result, *others = flags.values()
    for flag in others:
        result = b.binary("or", result, flag)
    return result


def refuse_results(g: Generator, one: Returned, other: Returned) -> NoReturn:
    """Raise the error of two paths that return values of different types."""
    raise CompilationError(
        f"one path returns {described(g.b, one.value)}, another {described(g.b, other.value)}",
        g.frame.spans(one.node),
        notes=[Note("the other path ends here", g.frame.kernel.span(other.node))],
        hint="make all paths return values of the same types and shapes",
    )


def placeholder(b: Builder, value: Value) -> Value:
    """Zeros in the place of ``value`` on a path that does not define it, and on which it is not read."""
    if is_tuple(value):
        return tuple_like(value, [placeholder(b, item) for item in value])
    if isinstance(value, Compound):
        return value.with_parts(placeholder(b, value.parts))
    if not isinstance(value, Tensor):
        return value
    if value.is_pointer:
        address = b.bitcast(b.constant(0, dtypes.int64), value.element)
        if is_const(b, value):
            b.const.add(address.ssa)
        return b.broadcast_to(address, value.shape)
    return b.constant(0, value.dtype, value.shape).typed(value.weak)


@dataclass
class Merged:
    """The jumps of two branches that meet: those on which both agree, and a pair of flags for each of the others; the pair
    of ``results``, if only one path or another returns."""

    agreed: dict[Jump, Value] = field(default_factory=dict[Jump, Value])
    flags: dict[Jump, tuple[Value, Value]] = field(default_factory=dict[Jump, tuple[Value, Value]])
    results: tuple[Value, Value] | None = None
    node: ast.AST | None = None

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """The values that the branches yield."""
        yield from self.flags.values()
        if self.results is not None:
            yield self.results

    def bind(self, scope: Scope, values: Iterator[SSAValue]) -> None:
        """Put into ``scope`` what the ``if`` gives."""
        scope.jumps = {**self.agreed, **{jump: rebuild(pair[0], values) for jump, pair in self.flags.items()}}
        if self.results is not None and self.node is not None:
            scope.result = Returned(rebuild(self.results[0], values), self.node)


def merge(g: Generator, one: Branch, other: Branch) -> Merged:
    """The jumps of two branches that meet."""
    found = Merged()
    for jump in {**one.scope.jumps, **other.scope.jumps}:
        a, b = (branch.scope.jumps.get(jump, False) for branch in (one, other))
        if a is b:
            found.agreed[jump] = a
        else:
            a, b = unify(g.b, a, one.block, b, other.block)
            found.flags[jump] = (a, b)
    ends: list[Returned | None] = [b.scope.result if RETURN in b.scope.jumps else None for b in (one, other)]
    last = ends[0] or ends[1]
    if last is None or ends[0] is ends[1]:
        return found
    values: list[Value] = []
    for end, branch in zip(ends, (one, other), strict=True):
        with g.b.at(branch.block):
            values.append(
                placeholder(g.b, last.value if ends[1] is None else ends[1].value) if end is None else end.value
            )
    a, b = unify(g.b, values[0], one.block, values[1], other.block)
    if not same_type(g.b, a, b) and ends[0] is not None and ends[1] is not None:
        refuse_results(g, ends[0], ends[1])
    found.results, found.node = (a, b), last.node
    return found


def carried_result(b: Builder, scope: Scope) -> list[Tensor]:
    """What a loop carries for the sake of ``return``: whether it was reached, and the value."""
    flag = scope.jumps.get(RETURN)
    if flag is None:
        return []
    reached = flag if isinstance(flag, Tensor) else b.constant(True, dtypes.bool_)
    return [reached, *leaves(scope.result.value)]
