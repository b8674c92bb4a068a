"""The handlers of statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from weft.frontend import arithmetic, control, jumps, loops
from weft.frontend.assignment import assign
from weft.frontend.choice import effect
from weft.frontend.errors import CompilationError, NotConstexpr
from weft.frontend.expressions import OPERATORS, lookup
from weft.frontend.generator import STATEMENTS, Bind, Generator, Mark, Outcome, Pending, Resume, Returned, Step
from weft.frontend.library.debugging import device_assert
from weft.frontend.values import describe, is_runtime

S = TypeVar("S", bound=Step)


def handles(kind: type[S]) -> Callable[[Callable[[Generator, S, Pending], Outcome]], Any]:
    """Register the handler of a kind of statement."""

    def register(handler: Callable[[Generator, S, Pending], Outcome]) -> Callable[[Generator, S, Pending], Outcome]:
        STATEMENTS[kind] = handler
        return handler

    return register


handles(ast.If)(control.if_statement)
handles(ast.For)(loops.for_statement)
handles(ast.While)(loops.while_statement)
handles(Bind)(loops.bind_statement)
handles(ast.Break)(jumps.leave_iteration)
handles(ast.Continue)(jumps.leave_iteration)
handles(Mark)(control.mark)
handles(Resume)(control.resumed)
handles(Returned)(jumps.finish)


@handles(ast.Pass)
def _pass(g: Generator, node: ast.Pass, pending: Pending) -> Outcome:
    return pending


@handles(ast.Expr)
def _expression(g: Generator, node: ast.Expr, pending: Pending) -> Outcome:
    if not isinstance(node.value, ast.Constant):  # a docstring
        g.dropped = node.value
        effect(g, node.value)
    return pending


@handles(ast.Assign)
def _assign(g: Generator, node: ast.Assign, pending: Pending) -> Outcome:
    value = g.expression(node.value)
    for target in node.targets:
        assign(g, target, value, node)
    return pending


@handles(ast.AugAssign)
def _augmented(g: Generator, node: ast.AugAssign, pending: Pending) -> Outcome:
    if not isinstance(node.target, ast.Name):
        raise CompilationError("only variables can be assigned in place", hint="write to memory with tl.store")
    value = arithmetic.binary(g.b, OPERATORS[type(node.op)], lookup(g, node.target.id), g.expression(node.value))
    assign(g, node.target, value, node)
    return pending


@handles(ast.AnnAssign)
def _annotated(g: Generator, node: ast.AnnAssign, pending: Pending) -> Outcome:
    annotation = ast.unparse(node.annotation).strip("'\"")
    constant = annotation.split(".")[-1] == "constexpr"
    if node.value is None:
        if constant and isinstance(node.target, ast.Name):
            g.frame.constants.add(node.target.id)
        return pending
    value = g.expression(node.value)
    if constant and is_runtime(value) and not g.b.follows_triton:  # there it is a plain variable
        error = NotConstexpr(f"a constexpr is known at compile time, found {describe(value)}")
        raise g.stamp(error, node.value)
    assign(g, node.target, value, node, constant)
    return pending


@handles(ast.Assert)
def _assert(g: Generator, node: ast.Assert, pending: Pending) -> Outcome:
    """The same as ``tl.device_assert``."""
    test = g.expression(node.test)
    message = "" if node.msg is None else g.expression(node.msg)
    device_assert(g.b, test, message, None)
    return pending


@handles(ast.Return)
def _return(g: Generator, node: ast.Return, pending: Pending) -> Outcome:
    value = None if node.value is None else g.expression(node.value)
    if g.frame.caller is None and value is not None:
        error = CompilationError(
            f"a kernel returns nothing, found {describe(value)}",
            hint="pass a pointer as an argument and write the result with tl.store",
        )
        raise g.stamp(error, node)
    return jumps.leave_function(g, value, node, pending)
