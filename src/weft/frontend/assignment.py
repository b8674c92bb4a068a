"""What ``target = value`` does.

A plain assignment makes numbers run-time scalars, as in Triton: after ``x = -7``, ``x // 2`` is -3, C's division. The
annotation ``x: tl.constexpr`` keeps the compile-time value, and Python's meaning. Only Triton has that rule: under another
semantics a number stays Python's, as it does in that system's programs, until it is joined with what another path assigns.
Tuples are assigned by element; dtypes, strings, None and functions have no run-time form and stay.
"""

from __future__ import annotations

import ast

from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError, NotConstexpr
from weft.frontend.generator import Generator
from weft.frontend.promotion import is_triton
from weft.frontend.values import Tensor, Value, describe, is_number, is_runtime, is_tuple, tuple_like


def decay(b: Builder, value: Value) -> Value:
    """``value`` as a plain variable holds it: in Triton numbers as run-time scalars."""
    if is_tuple(value):
        return tuple_like(value, [decay(b, item) for item in value])
    return b.tensor(value) if is_number(value) and is_triton(b.semantics) else value


def assign(g: Generator, target: ast.expr, value: Value, origin: ast.AST, constant: bool = False) -> None:
    """Bind ``target`` (a name, or a tuple of targets); ``constant`` keeps numbers compile-time."""
    if isinstance(target, ast.Name):
        if target.id in g.frame.constants:
            g.frame.constants.discard(target.id)
            constant = True
            if is_runtime(value):
                raise g.stamp(NotConstexpr(f"a constexpr is known at compile time, found {describe(value)}"), target)
        value = value if constant else decay(g.b, value)
        name_after(target.id, value)
        g.scope.assign(target.id, value, origin)
    elif isinstance(target, (ast.Tuple, ast.List)):
        if not is_tuple(value):
            shown = f"cannot unpack non-iterable value: only tuples can be unpacked, found {describe(value)}"
            raise g.stamp(CompilationError(shown), target)
        if any(isinstance(part, ast.Starred) for part in target.elts):
            error = CompilationError("starred assignment targets are not supported", hint="take a slice of the tuple")
            raise g.stamp(error, target)
        count, expected = len(value), len(target.elts)
        if count != expected:
            counts = f"too many values to unpack (expected {expected})"
            if count < expected:
                counts = f"not enough values to unpack (expected {expected}, got {count})"
            raise g.stamp(CompilationError(counts), target)
        for part, item in zip(target.elts, value, strict=True):
            assign(g, part, item, origin, constant)
    elif isinstance(target, ast.Attribute):
        raise CompilationError(
            "Attribute assignment is not supported in triton", hint="make a new value, as tl.aggregate_replace does"
        )
    elif isinstance(target, ast.Subscript):
        raise CompilationError(
            "elements of tiles cannot be assigned",
            hint="make a new tile with tl.where, or write to memory with tl.store",
        )
    else:
        raise CompilationError("only variables and tuples of variables can be assigned")


def name_after(name: str, value: Value) -> None:
    """Let the IR show the variable's name, unless the value has one already."""
    if isinstance(value, Tensor) and value.ssa.name_hint is None and name.isascii():
        value.ssa.name_hint = name
