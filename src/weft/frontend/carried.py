"""The variables that go around a run-time loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NoReturn

from xdsl.ir import Block, SSAValue

from weft.frontend.assignment import name_after
from weft.frontend.branching import Branch
from weft.frontend.constness import described, is_const
from weft.frontend.errors import CompilationError, Note
from weft.frontend.generator import Generator
from weft.frontend.joining import leaves, rebuild, same_type, unify
from weft.frontend.scope import assigned, names_in
from weft.frontend.values import Tensor, Undefined, Value, is_number, is_runtime


class Carried:
    """The variables that go around a loop: those assigned inside that exist before and are read afterwards or by a
    later iteration."""

    def __init__(self, g: Generator, node: ast.For | ast.While) -> None:
        self.g = g
        self.node = node
        inside = assigned(node.body)
        if isinstance(node, ast.For):
            inside -= names_in(node.target)
        self.before: dict[str, Value] = {}
        self.fixed: dict[str, Value] = {}
        """Variables assigned inside that hold None, a dtype or the like, and must still do so afterwards."""
        for name, value in g.scope.values.items():
            if name not in inside or isinstance(value, Undefined) or not g.liveness.after(name, node):
                continue
            start = g.b.widened(g.b.tensor(value) if is_number(value) else value, g.b.block)
            (self.before if is_runtime(start) else self.fixed)[name] = start
        self.initial = [leaf for value in self.before.values() for leaf in leaves(value)]

    def block(self, *leading: SSAValue) -> Block:
        """A block with arguments of the types of ``leading`` and then one for each carried tile."""
        return Block(arg_types=[*(v.type for v in leading), *(leaf.ssa.type for leaf in self.initial)])

    def enter(self, arguments: Sequence[SSAValue]) -> None:
        """Bind the variables to a block's arguments in the current scope."""
        if self.g.b.const:
            pairs = zip(self.initial, arguments, strict=True)
            self.g.b.const |= {new for old, new in pairs if old.is_pointer and is_const(self.g.b, old)}
        values = iter(arguments)
        for name, before in self.before.items():
            value = rebuild(before, values)
            name_after(name, value)
            self.g.scope.values[name] = value

    def yielded(self, body: Branch) -> list[Tensor]:
        """The tiles at the end of ``body``, which must have kept their types."""
        result: list[Tensor] = []
        for name, before in {**self.before, **self.fixed}.items():
            after = body.scope.values[name]
            if isinstance(after, Undefined):
                raise CompilationError(after.message, self.g.frame.spans(self.node), hint=after.hint, notes=after.notes)
            _, after = unify(self.g.b, before, self.g.b.block, after, body.block)
            if not same_type(self.g.b, before, after):
                self._changed(name, before, after, body)
            result += leaves(after)
        return result

    def _changed(self, name: str, before: Value, after: Value, body: Branch) -> NoReturn:
        g = self.g
        types = [described(g.b, value) for value in (before, after)]
        origin = g.scope.origins.get(name, self.node)
        raise CompilationError(
            f"'{name}' changes its type in the loop: {types[0]} before, {types[1]} after an iteration",
            g.frame.spans(body.scope.origins.get(name, self.node)),
            notes=[Note(f"{types[0]} since here", g.frame.kernel.span(origin))],
            hint=_advice(name, before, after),
        )

    def leave(self, results: Sequence[SSAValue], body: Branch) -> None:
        """Bind the variables to the loop's results, and make those of the body unusable."""
        g, values = self.g, iter(results)
        for name, before in self.before.items():
            value = rebuild(before, values)
            name_after(name, value)
            g.scope.assign(name, value, body.scope.origins[name])
        for name, value in body.scope.values.items():
            if name in self.before or g.scope.values.get(name) is value:
                continue
            if isinstance(value, Undefined):
                g.scope.values[name] = value
                continue
            g.scope.values[name] = Undefined(
                f"'{name}' is assigned inside a loop, which may run zero times",
                f"assign '{name}' before the loop",
                (Note("assigned here", g.frame.kernel.span(body.scope.origins[name])),),
            )


def _advice(name: str, before: Value, after: Value) -> str:
    if isinstance(before, Tensor) and isinstance(after, Tensor) and not (before.is_pointer or after.is_pointer):
        if (before.shape, before.dtype) == (after.shape, after.dtype):
            return f"start '{name}' in a dtype that is chosen, for example with tl.full({after.shape}, ..., tl.{after.dtype})"
        if before.shape == after.shape:
            return f"start '{name}' as {after.dtype}, or convert what the loop assigns with .to(tl.{before.dtype})"
        return f"start '{name}' in the shape it has in the loop, for example with tl.zeros({after.shape}, tl.{after.dtype})"
    return f"give '{name}' the same type before and in the loop, or use two names"
