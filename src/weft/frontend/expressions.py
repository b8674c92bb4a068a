"""The handlers of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

from weft.dtypes import DType
from weft.frontend import arithmetic
from weft.frontend.aggregates import Aggregate
from weft.frontend.assignment import assign
from weft.frontend.attributes import attribute
from weft.frontend.calls import call, call_method
from weft.frontend.choice import choose, connect, short_circuit
from weft.frontend.errors import CompilationError, NotConstexpr, nearest
from weft.frontend.generator import EXPRESSIONS, Generator
from weft.frontend.scope import names_in
from weft.frontend.source import MISSING, KernelFunction
from weft.frontend.values import Tensor, Undefined, Value, as_value, describe, is_number, is_runtime, is_tuple
from weft.language.core import ConstexprFunction, Iteration, constexpr

N = TypeVar("N", bound=ast.expr)

OPERATORS: Final[dict[type, str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
}


def handles(*kinds: type[N]) -> Callable[[Callable[[Generator, N], Value]], Callable[[Generator, N], Value]]:
    """Register the handler of some kinds of expressions."""

    def register(handler: Callable[[Generator, N], Value]) -> Callable[[Generator, N], Value]:
        EXPRESSIONS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


@handles(ast.Constant)
def _constant(g: Generator, node: ast.Constant) -> Value:
    if node.value is None or isinstance(node.value, (bool, int, float, str)):
        return node.value
    raise CompilationError(f"a literal of type {type(node.value).__name__} cannot be used in a kernel")


@handles(ast.Name)
def _name(g: Generator, node: ast.Name) -> Value:
    return lookup(g, node.id)


def lookup(g: Generator, name: str) -> Value:
    """The value of a variable, or of a name outside the kernel."""
    value = g.scope.values.get(name, MISSING)
    if value is not MISSING:
        if isinstance(value, Undefined):
            raise CompilationError(value.message, hint=value.hint, notes=value.notes)
        return value
    kernel = g.frame.kernel
    if name in kernel.fn.__code__.co_varnames:
        raise CompilationError(f"'{name}' is used before it is assigned")
    value = kernel.lookup(name)
    if value is MISSING:
        names = {*g.scope.values, *(n for n in kernel.visible() if _usable(kernel, n))}
        raise CompilationError(f"the name '{name}' is not defined", hint=nearest(name, sorted(names)))
    if isinstance(value, constexpr):
        return as_value(value)
    value = as_value(value)
    if (is_number(value) or is_tuple(value) or isinstance(value, str)) and not (
        not g.b.follows_triton and kernel.is_constexpr_global(name)
    ):
        raise CompilationError(
            f"the global '{name}' is {describe(value)}, but kernels only read globals that are constexpr",
            hint=f"write '{name} = tl.constexpr({value!r})' where it is defined, or pass it as an argument",
        )
    return value


def _usable(kernel: KernelFunction, name: str) -> bool:
    """Whether a global means something in a kernel: other variables of the host program are no advice."""
    value = kernel.lookup(name)
    kinds = (ModuleType, KernelFunction, ConstexprFunction, constexpr, type, DType)
    return isinstance(value, kinds) or kernel.is_constexpr_global(name)


@handles(ast.Tuple, ast.List)
def _tuple(g: Generator, node: ast.Tuple | ast.List) -> Value:
    return tuple(spread(g, node.elts))


@handles(ast.ListComp)
def _comprehension(g: Generator, node: ast.ListComp) -> Value:
    """A tuple made of another one, or of a range known at compile time, item by item."""
    if len(node.generators) != 1:
        raise CompilationError("nested comprehensions are not supported", hint="write a loop over tl.static_range")
    (part,) = node.generators
    items = g.expression(part.iter)
    if isinstance(items, Iteration) and not is_runtime((items.start, items.stop, items.step)):
        items = tuple(range(items.start, items.stop, items.step))
    if not is_tuple(items):
        raise g.stamp(CompilationError(f"only tuple comprehensions are supported, found {describe(items)}"), part.iter)
    outer, results = dict(g.scope.values), list[Value]()
    for item in items:
        assign(g, part.target, item, part.target, constant=True)
        if all(_chosen(g, test) for test in part.ifs):
            results.append(g.expression(node.elt))
    for name in names_in(part.target):
        g.scope.values.pop(name, None)  # not bound where there are no items
        if name in outer:
            g.scope.values[name] = outer[name]
    return tuple(results)


def _chosen(g: Generator, test: ast.expr) -> bool:
    """Whether an item is taken: known at compile time."""
    value = g.expression(test)
    if is_runtime(value):
        raise g.stamp(
            NotConstexpr(f"the 'if' of a comprehension is known at compile time, found {describe(value)}"), test
        )
    return bool(value)


def spread(g: Generator, nodes: list[ast.expr]) -> list[Value]:
    """The values of expressions, starred ones unpacked."""
    values: list[Value] = []
    for node in nodes:
        if not isinstance(node, ast.Starred):
            values.append(g.expression(node))
            continue
        value = g.expression(node.value)
        if not is_tuple(value):
            raise g.stamp(CompilationError(f"only tuples unpack with '*', found {describe(value)}"), node)
        values += value
    return values


@handles(ast.BinOp)
def _binary(g: Generator, node: ast.BinOp) -> Value:
    lhs, rhs = g.expression(node.left), g.expression(node.right)
    op = OPERATORS[type(node.op)]
    if op == "@":
        raise CompilationError("'@' cannot be used in a kernel", hint="use tl.dot")
    return arithmetic.binary(g.b, op, lhs, rhs)


@handles(ast.UnaryOp)
def _unary(g: Generator, node: ast.UnaryOp) -> Value:
    return arithmetic.unary(g.b, OPERATORS[type(node.op)], g.expression(node.operand))


@handles(ast.BoolOp)
def _bool(g: Generator, node: ast.BoolOp) -> Value:
    *sides, last = node.values
    return connect(g, node, sides, lambda: g.expression(last))


@handles(ast.Compare)
def _compare(g: Generator, node: ast.Compare) -> Value:
    return _chain(g, g.expression(node.left), node.ops, node.comparators)


def _chain(g: Generator, lhs: Value, ops: list[ast.cmpop], comparators: list[ast.expr]) -> Value:
    """``lhs < a < b``: each side is evaluated once, and a later one only where the comparisons before it hold."""
    rhs = g.expression(comparators[0])
    one = compare(g, OPERATORS[type(ops[0])], lhs, rhs)
    if len(ops) == 1:
        return one
    return short_circuit(g, "and", one, comparators[1:], lambda: _chain(g, rhs, ops[1:], comparators[1:]))


def compare(g: Generator, op: str, lhs: Value, rhs: Value) -> Value:
    """One comparison; ``is`` compares with None and between compile-time values, which have no identity of their
    own."""
    if op not in ("is", "is not"):
        return arithmetic.binary(g.b, op, lhs, rhs)
    if lhs is None or rhs is None:
        same = lhs is rhs
    elif is_runtime(lhs) or is_runtime(rhs):
        raise CompilationError(
            f"'{op}' takes compile-time values, found {describe(lhs)} and {describe(rhs)}", hint="compare with == or !="
        )
    else:
        same = lhs is rhs or (type(lhs) is type(rhs) and bool(lhs == rhs))
    return same is (op == "is")


@handles(ast.IfExp)
def _conditional(g: Generator, node: ast.IfExp) -> Value:
    return choose(g, node, Generator.expression)


@handles(ast.Call)
def _call(g: Generator, node: ast.Call) -> Value:
    return call(g, node)


@handles(ast.Attribute)
def _attribute(g: Generator, node: ast.Attribute) -> Value:
    return attribute(g.b, g.expression(node.value), node.attr)


@handles(ast.NamedExpr)
def _walrus(g: Generator, node: ast.NamedExpr) -> Value:
    value = g.expression(node.value)
    assign(g, node.target, value, node)
    return lookup(g, node.target.id)


@handles(ast.JoinedStr)
def _formatted(g: Generator, node: ast.JoinedStr) -> Value:
    return "".join(str(g.expression(part)) for part in node.values)


@handles(ast.FormattedValue)
def _replacement(g: Generator, node: ast.FormattedValue) -> Value:
    value = g.expression(node.value)
    specification = "" if node.format_spec is None else g.expression(node.format_spec)
    if node.conversion == ord("r"):
        value = repr(value)
    if isinstance(value, (Tensor, tuple)):
        value = describe(value)
    return arithmetic.fold("format", format, value, specification)


@handles(ast.Slice)
def _slice(g: Generator, node: ast.Slice) -> Value:
    return slice(*(None if part is None else g.expression(part) for part in (node.lower, node.upper, node.step)))


@handles(ast.Subscript)
def _subscript(g: Generator, node: ast.Subscript) -> Value:
    value, index = g.expression(node.value), g.expression(node.slice)
    if isinstance(value, Aggregate):
        return call_method(g, node, value, "__getitem__", (index, node.slice))
    if isinstance(value, Tensor):
        return _insert_dimensions(g, value, index if is_tuple(index) else (index,))
    if is_runtime(index):
        raise NotConstexpr(f"an index into {describe(value)} must be known at compile time, found {describe(index)}")
    if is_tuple(value) or isinstance(value, str):
        try:
            return value[index]
        except (IndexError, TypeError) as error:
            raise CompilationError(f"{describe(index)} does not index {describe(value)}: {error}") from None
    raise CompilationError(f"{describe(value)} cannot be indexed")


def _insert_dimensions(g: Generator, x: Tensor, index: tuple[Any, ...]) -> Tensor:
    """``x[:, None]``: a colon for each dimension, None for each new one of size 1. Colons of a scalar have no effect."""
    whole = slice(None)
    for item in index:
        if item is not None and item != whole:
            shown = "a slice" if isinstance(item, slice) else describe(item)
            raise CompilationError(
                f"a tile is indexed with ':' and None only, found {shown}",
                hint="load the elements you need through pointers, or select one with tl.sum(tl.where(i == index, x, 0), 0)",
            )
    if not x.shape:
        index = tuple(item for item in index if item is None)  # Triton's tests write ':' after a scalar, too
    kept = sum(item is not None for item in index)
    if kept != len(x.shape):
        raise CompilationError(
            f"the index has {kept} ':' for a tile of {len(x.shape)} dimensions, {x}",
            hint="write one ':' for each dimension and None for each new one",
        )
    for axis, item in enumerate(index):
        if item is None:
            x = g.b.expand_dims(x, axis)
    return x
