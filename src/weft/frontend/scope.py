"""The variables of one function.

A scope maps names to values and remembers the node that assigned each. Beside it stand the questions about syntax that
joining paths asks: what do these statements assign, do they return, and is a name still read afterwards?
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

Value = Any


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop that ``break`` and ``continue`` leave; ``outer`` is the loop around it in the same function. ``unrolled``: not a
    loop at run time."""

    node: ast.For | ast.While
    outer: Loop | None
    unrolled: bool = False


@dataclass(frozen=True)
class Jump:
    """A way in which a path leaves what follows: ``kind`` is ``"break"``, ``"continue"`` or ``"return"``."""

    kind: str
    loop: Loop | None


class Scope:
    """Names of one function: ``values`` and the nodes that assigned them (``origins``).

    ``loop`` is the loop around the current statement. ``jumps`` says which jumps the path has taken: True, or a bool of the run
    time; those not taken are absent. ``result`` is what the path returns if it has taken a ``return``. ``cut`` is True where
    the pending list ends before the function does: there a ``return`` is such a jump. (`weft.frontend.jumps`)
    """

    __slots__ = ("cut", "jumps", "loop", "origins", "result", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.origins: dict[str, ast.AST] = {}
        self.loop: Loop | None = None
        self.jumps: dict[Jump, Value] = {}
        self.result: Value = None
        self.cut = False

    def assign(self, name: str, value: Value, origin: ast.AST) -> None:
        """Bind ``name``."""
        self.values[name] = value
        self.origins[name] = origin

    def copy(self) -> Scope:
        """An independent scope with the same bindings."""
        other = Scope()
        other.values = dict(self.values)
        other.origins = dict(self.origins)
        other.loop, other.result, other.cut = self.loop, self.result, self.cut
        other.jumps = dict(self.jumps)
        return other


def names_in(target: ast.AST) -> set[str]:
    """The names that a target, or any syntax, binds."""
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def assigned(statements: list[ast.stmt]) -> set[str]:
    """The names that ``statements`` bind, anywhere inside."""
    return {name for statement in statements for name in names_in(statement)}


_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def jumps_in(statements: list[ast.stmt]) -> set[str]:
    """The kinds of jumps in ``statements`` that leave them: ``"break"`` and ``"continue"`` outside inner loops, and
    ``"return"``."""
    found: set[str] = set()
    todo: list[tuple[ast.AST, bool]] = [(statement, False) for statement in statements]
    while todo:
        node, inner = todo.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.Return):
            found.add("return")
        elif isinstance(node, (ast.Break, ast.Continue)) and not inner:
            found.add("break" if isinstance(node, ast.Break) else "continue")
        inside = inner or isinstance(node, _LOOPS)
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


_Place = tuple[int, int]


class Liveness:
    """Where each name of a function is read last: a cheap over-approximation of what is still needed.

    A name is live after a statement if it is read further down, or, inside a loop (unrolled or not), anywhere in the
    outermost loop: the next iteration may read it.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self._last: dict[str, _Place] = {}
        self._since: dict[ast.stmt, _Place] = {}
        """For each statement the place from which on a read counts as later."""
        for statement in function.body:
            self._visit(statement, None)

    def _visit(self, node: ast.AST, loop_start: _Place | None) -> None:
        if isinstance(node, ast.stmt):
            if loop_start is None and isinstance(node, _LOOPS):
                loop_start = (node.lineno, node.col_offset)
            self._since[node] = loop_start or (node.end_lineno or node.lineno, node.end_col_offset or 0)
        # An augmented assignment reads its target too.
        target = node.target if isinstance(node, ast.AugAssign) else node
        if isinstance(target, ast.Name) and (target is not node or isinstance(target.ctx, ast.Load)):
            place = (target.lineno, target.col_offset)
            self._last[target.id] = max(self._last.get(target.id, place), place)
        for child in ast.iter_child_nodes(node):
            self._visit(child, loop_start)

    def after(self, name: str, statement: ast.stmt) -> bool:
        """Whether ``name`` may be read after ``statement`` (which, if it is a loop, repeats)."""
        last = self._last.get(name)
        return last is not None and last >= self._since[statement]

    def stands_for(self, statement: ast.stmt, original: ast.stmt) -> None:
        """Let ``statement``, which has no place in the source, have the place of ``original``."""
        self._since[statement] = self._since[original]
