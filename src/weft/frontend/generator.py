"""Walks a kernel's syntax tree, function by function, and emits what it says.

Each kind of node has a handler in one of two tables (`EXPRESSIONS`, `STATEMENTS`), filled by the modules that know about
them; a kind in no table is unsupported syntax and has its message in a third.

Statements are executed from a *pending list*, a persistent linked list of what is still to do in the function. A
handler receives what follows its statement and returns what is to be done next. So a compile-time ``if`` pushes the
branch taken, an unrolled loop pushes its copies, and an early ``return`` in a run-time ``if`` gives *both* branches the
rest of the function, which is then compiled inside them: structured control flow without jumps or flags. (The rest is
duplicated only where both branches can go on.) What jumps out of loops is in `weft.frontend.jumps`.

This is also the boundary where errors get their place (`Generator.stamp`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from weft.frontend.builder import Builder, Frame
from weft.frontend.errors import CompilationError, NotConstexpr
from weft.frontend.scope import Jump, Liveness, Scope
from weft.frontend.unsupported import SYNTAX
from weft.frontend.values import Value, is_runtime
from weft.semantics.core import PromotionError


@dataclass(frozen=True)
class Bind:
    """A pending assignment without syntax of its own: the variable of an unrolled loop."""

    target: ast.expr
    value: Value


@dataclass(frozen=True)
class Returned:
    """A path has ended with ``value``, returned by ``node``."""

    value: Value
    node: ast.AST


@dataclass(frozen=True)
class Mark:
    """A pending end: of an iteration (``"continue"``) of an unrolled loop, or (``"break"``) of the loop."""

    jump: Jump


@dataclass(frozen=True)
class Resume:
    """Pending: look whether the path has jumped in ``node``, and go on where it has not."""

    node: ast.stmt


Step: TypeAlias = "ast.stmt | Bind | Mark | Resume | Returned"
Pending: TypeAlias = "tuple[Step, Pending] | None"
"""What is still to do on this path, first things first."""

Outcome: TypeAlias = "Pending | Returned"

N = TypeVar("N", bound=ast.expr)

MAX_FORKS: Final = 256
"""How often the rest of a function may be compiled twice because of early returns."""


def push(statements: Sequence[Step], pending: Pending) -> Pending:
    """``statements``, then ``pending``."""
    for statement in reversed(statements):
        pending = (statement, pending)
    return pending


class Generator:
    """Compiles the function of ``builder.frame``, and those it calls, at the builder's insertion point."""

    def __init__(self, builder: Builder) -> None:
        self.b = builder
        self.forks = 0
        self.dropped: ast.expr | None = None
        """The expression of the statement under way, if nothing takes its value."""
        self._liveness: dict[ast.FunctionDef, Liveness] = {}

    @property
    def frame(self) -> Frame:
        """The function being compiled."""
        return self.b.frame

    @property
    def scope(self) -> Scope:
        """Its variables."""
        return self.b.frame.scope

    @property
    def liveness(self) -> Liveness:
        """Which of them are still read."""
        tree = self.frame.kernel.tree
        if (found := self._liveness.get(tree)) is None:
            found = self._liveness[tree] = Liveness(tree)
        return found

    def function(self, frame: Frame) -> Value:
        """Compile the function of ``frame``, whose scope holds its arguments, in place; its return value. The semantics that
        a helper names for itself governs its body, else its caller's."""
        outer = self.b.frame, self.b.node, self.b.semantics
        self.b.frame = frame
        if frame.caller is not None and frame.kernel.semantics is not None:
            self.b.semantics = frame.kernel.semantics
        try:
            outcome = self.execute(push(frame.kernel.tree.body, None))
        finally:
            self.b.frame, self.b.node, self.b.semantics = outer
        return None if outcome is None else outcome.value

    def execute(self, pending: Pending) -> Returned | None:
        """Do what is pending; None where the path falls off the end."""
        outer = self.b.node
        outcome: Outcome = pending
        while outcome is not None:
            if isinstance(outcome, Returned):
                break
            statement, rest = outcome
            if isinstance(statement, ast.AST):
                self.b.node = statement
            handler = STATEMENTS.get(type(statement), _unsupported)
            try:
                outcome = handler(self, statement, rest)
            except (CompilationError, PromotionError) as error:
                raise self.stamp(error, self.b.node) from None
        self.b.node = outer
        return outcome

    def expression(self, node: ast.expr) -> Value:
        """The value of an expression."""
        return self.evaluate(node, EXPRESSIONS.get(type(node), _unsupported))

    def evaluate(self, node: N, handler: Callable[[Generator, N], Value]) -> Value:
        """The value that ``handler`` gives an expression; its errors get the expression's place."""
        outer, self.b.node = self.b.node, node
        try:
            return handler(self, node)
        except (CompilationError, PromotionError) as error:
            raise self.stamp(error, node) from None
        finally:
            self.b.node = outer

    def stamp(self, error: Exception, node: ast.AST, nodes: dict[str, ast.expr] | None = None) -> CompilationError:
        """``error`` with its place, unless it has one: ``node``, or the argument to blame (``nodes`` maps parameters to
        the expressions passed for them)."""
        if isinstance(error, PromotionError):
            # The semantics writes "what; what to do".
            message, _, advice = str(error).partition("; ")
            error = CompilationError(message, hint=advice or None)
        if not isinstance(error, CompilationError):
            raise error
        if error.spans:
            return error
        if error.argument is not None and nodes is not None:
            error.call = self.frame.spans(node)[0]
            node = nodes.get(error.argument, node)
        if isinstance(error, NotConstexpr) and error.hint is None:
            error.hint = self._constexpr_hint(node)
        return error.stamp(self.frame.spans(node))

    def _constexpr_hint(self, node: ast.AST) -> str:
        """Which variable in ``node`` to mark as constexpr."""
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and is_runtime(self.scope.values.get(name.id)):
                if isinstance(self.scope.origins[name.id], ast.Name):
                    return "loop with tl.static_range, whose variable is known at compile time"
                if any(p.name == name.id for p in self.frame.kernel.parameters):
                    return f"mark the parameter as '{name.id}: tl.constexpr'"
                return f"mark the variable as '{name.id}: tl.constexpr = ...'"
        return "compute it from literals and tl.constexpr values only"


EXPRESSIONS: Final[dict[type, Callable[[Generator, Any], Value]]] = {}
"""Class of expression -> what evaluates it."""

STATEMENTS: Final[dict[type, Callable[[Generator, Any, Pending], Outcome]]] = {}
"""Class of statement -> what executes it, given what is pending after it."""


def _unsupported(g: Generator, node: ast.AST | Step, pending: Pending = None) -> Value:
    """Refuse a kind of node that has no handler."""
    what, hint = SYNTAX.get(type(node).__name__, (f"'{type(node).__name__}'", None))
    raise CompilationError(f"{what} cannot be used in a kernel", hint=hint)
