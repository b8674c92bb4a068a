"""``function(arguments)``: binding arguments to parameters, inlining helpers, and the Python built-ins that kernels may
call."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

from weft import dtypes, semantics
from weft import language as tl
from weft.frontend import arithmetic, registry
from weft.frontend.aggregates import Aggregate, PythonMethod, construct, replace, value_of
from weft.frontend.attributes import Question, attribute
from weft.frontend.builder import Builder, Frame
from weft.frontend.errors import CompilationError, NotConstexpr, nearest
from weft.frontend.generator import Generator
from weft.frontend.library.ignored import check_ignored
from weft.frontend.source import MISSING, KernelFunction, Parameter
from weft.frontend.unsupported import OTHER_NAMES
from weft.frontend.values import Method, Tensor, Value, as_value, describe, is_named_tuple, is_runtime, is_tuple
from weft.language.aggregates import aggregate_replace, is_aggregate
from weft.language.core import (
    COMPOSITES,
    MUST_USE,
    STUBS,
    Absent,
    ConstexprFunction,
    Iteration,
    block_type,
    constexpr,
    constexpr_type,
    pointer_type,
)
from weft.semantics.core import PromotionError


@dataclass
class Arguments:
    """What a call passes: positional and by keyword, and the nodes to blame for each."""

    positional: list[tuple[Value, ast.expr]] = field(default_factory=list[tuple[Value, ast.expr]])
    keywords: dict[str, tuple[Value, ast.expr]] = field(default_factory=dict[str, tuple[Value, ast.expr]])


def call(g: Generator, node: ast.Call) -> Value:
    """The value of a call."""
    function = g.expression(node.func)
    if g.dropped is node:
        _refuse_dropped(node, function)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return call_function(g, function, _arguments(g, node), node, receiver)


def _refuse_dropped(node: ast.Call, function: Value) -> None:
    """`CompilationError`, in Triton's words, if the result of a call is dropped and must not be."""
    called = function.function if isinstance(function, Method) else function
    words: bool | str = getattr(called, MUST_USE, False)
    if words:
        message = f"The result of {ast.unparse(node.func)} is not being used."
        raise CompilationError(f"{message} {words}" if isinstance(words, str) else message)


def call_method(g: Generator, node: ast.expr, value: Value, name: str, *arguments: tuple[Value, ast.expr]) -> Value:
    """The value of ``value.name(*arguments)``, which stands at ``node`` in another form."""
    return call_function(g, attribute(g.b, value, name), Arguments(list(arguments)), node, node)


def call_function(g: Generator, function: Value, arguments: Arguments, node: ast.expr, receiver: ast.expr) -> Value:
    """The value of a call at ``node``; of a method, ``receiver`` is the expression before the dot."""
    if isinstance(function, Method):
        arguments.positional.insert(0, (function.receiver, receiver))
        function = function.function
    if isinstance(function, Absent):
        raise CompilationError(f"weft does not have tl.{function.name} yet")
    if isinstance(function, FunctionType) and function in COMPOSITES:
        given = getattr(COMPOSITES[function], "args", ())  # a variant's first argument
        arguments.positional[:0] = [(as_value(value), receiver) for value in given]
        function = composite_of(function)
    if isinstance(function, KernelFunction):
        return _inline(g, function, arguments, node)
    stub = _stub(tl.device_print if function is print else function)
    if stub is not None:
        return _language(g, stub, arguments, node)
    return _python(g, function, arguments)


class Composite(KernelFunction):
    """A function of the language that is written in it: what happens in its text happens at the call, to users."""

    is_shown = False

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        super().__init__(fn, semantics.get("triton"))
        module = "libdevice" if ".libdevice." in fn.__module__ else "tl"
        self.name = f"{module}.{name}"


@cache
def composite_of(function: Callable[..., Any]) -> Composite:
    """The helper to inline for a composite of the language."""
    text = COMPOSITES[function]
    return Composite(getattr(text, "func", text), function.__name__)


def _stub(function: Value) -> Callable[..., Any] | None:
    """The op of the language that a function is, or None."""
    return function if isinstance(function, FunctionType) and function in STUBS else None


def _arguments(g: Generator, node: ast.Call) -> Arguments:
    result = Arguments()
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            result.positional.append((g.expression(argument), argument))
            continue
        value = g.expression(argument.value)
        if not is_tuple(value):
            raise g.stamp(CompilationError(f"only tuples unpack with '*', found {describe(value)}"), argument)
        result.positional += [(item, argument) for item in value]
    for keyword in node.keywords:
        if keyword.arg is None:
            raise CompilationError("arguments cannot be unpacked with '**' in a kernel", hint="pass them by name")
        result.keywords[keyword.arg] = (g.expression(keyword.value), keyword.value)
    return result


def bind(
    name: str, parameters: Sequence[Parameter], arguments: Arguments
) -> tuple[dict[str, Value], dict[str, ast.expr]]:
    """The value of each parameter (defaults filled in), and the nodes of those that were passed."""
    values: dict[str, Value] = {}
    nodes: dict[str, ast.expr] = {}
    positional = [p for p in parameters if not (p.keyword_only or p.variadic)]
    variadic = next((p for p in parameters if p.variadic), None)
    given = len(arguments.positional)
    if given > len(positional) and variadic is None:
        count = f"{len(positional)} argument{'' if len(positional) == 1 else 's'}"
        raise CompilationError(
            f"{name} takes {count}, found {given}", hint=f"its parameters are ({_spell(parameters)})"
        )
    for parameter, (value, node) in zip(positional, arguments.positional, strict=False):
        values[parameter.name], nodes[parameter.name] = value, node
    if variadic is not None:
        rest = arguments.positional[len(positional) :]
        values[variadic.name] = tuple(value for value, _ in rest)
        if rest:
            nodes[variadic.name] = rest[0][1]
    known = {p.name for p in parameters}
    for keyword, (value, node) in arguments.keywords.items():
        if keyword not in known:
            raise CompilationError(
                f"{name} has no parameter '{keyword}'",
                hint=nearest(keyword, known) or f"its parameters are ({_spell(parameters)})",
            )
        if keyword in nodes:
            raise CompilationError(f"{name} got two values for '{keyword}'")
        values[keyword], nodes[keyword] = value, node
    for parameter in parameters:
        if parameter.name in values:
            continue
        if parameter.default is MISSING:
            raise CompilationError(
                f"{name} needs the argument '{parameter.name}'", hint=f"its parameters are ({_spell(parameters)})"
            )
        values[parameter.name] = as_value(parameter.default)
    return values, nodes


def _spell(parameters: Sequence[Parameter]) -> str:
    """The parameters as a signature shows them."""
    shown: list[str] = []
    for p in parameters:
        default = "" if p.default is MISSING else f"={p.default!r}"
        shown.append(f"*{p.name}" if p.variadic else f"{p.name}{default}")
    return ", ".join(shown)


def _language(g: Generator, stub: Callable[..., Any], arguments: Arguments, node: ast.expr) -> Value:
    """An op of the language."""
    values, nodes = bind(f"tl.{STUBS[stub]}", registry.stub_parameters(stub), arguments)
    try:
        check_ignored(stub, values)
        return registry.implementation_of(stub)(g.b, *(values[p.name] for p in registry.stub_parameters(stub)))
    except (CompilationError, PromotionError) as error:
        raise g.stamp(error, node, nodes) from None


def _inline(g: Generator, kernel: KernelFunction, arguments: Arguments, node: ast.expr) -> Value:
    """A helper, compiled where it is called. A parameter that it marks as constexpr takes a run-time value too, as in Triton: the
    mark matters to kernels, and to functions of the language."""
    values, nodes = bind(kernel.name, kernel.parameters, arguments)
    for parameter in kernel.parameters if isinstance(kernel, Composite) else ():
        value = values[parameter.name]
        if parameter.is_constexpr and is_runtime(value):
            shown = f"the parameter '{parameter.name}' of {kernel.name} is constexpr, found {describe(value)}"
            raise g.stamp(NotConstexpr(shown, argument=parameter.name), node, nodes)
    return inline(g, kernel, values, node)


def inline(g: Generator, kernel: KernelFunction, values: dict[str, Value], node: ast.AST) -> Value:
    """The result of ``kernel`` for bound arguments, called at ``node``."""
    if kernel in g.frame.kernels():
        raise CompilationError(
            f"{kernel.name} calls itself, and helpers are inlined where they are called",
            hint="write a loop instead of the recursion",
        )
    frame = Frame(kernel, (g.frame, node))
    for name, value in values.items():
        frame.scope.assign(name, value, kernel.tree)
    return g.function(frame)


def _python(g: Generator, function: Value, arguments: Arguments) -> Value:
    """A Python built-in, a class of the language, or something that cannot be called."""
    values = [value for value, _ in arguments.positional]
    keywords = {name: value for name, (value, _) in arguments.keywords.items()}
    if isinstance(function, Question) and not values and not keywords:
        return function.answer
    if isinstance(function, PythonMethod):
        return function(values, keywords)
    if isinstance(function, type) and is_aggregate(function):
        return construct(function, values, keywords)
    if isinstance(function, MethodType):
        return _at_compile_time(function.__qualname__, function, values, keywords)
    if isinstance(function, ConstexprFunction):
        return _at_compile_time(function.__name__, function, values, keywords)
    if function in (constexpr, pointer_type, block_type, constexpr_type):
        result = _at_compile_time(function.__name__, function, values, keywords)
        return result.value if isinstance(result, constexpr) else result
    if is_named_tuple(function):
        try:
            return function(*values, **keywords)
        except TypeError as error:
            raise CompilationError(str(error)) from None
    handler = BUILTINS.get(function) if isinstance(function, (type, type(len), FunctionType)) else None
    if handler is not None:
        return handler(g.b, *values, **keywords)
    if isinstance(function, BuiltinFunctionType) and function.__module__ == "math":
        instead = _instead_of(function, function.__name__)
        return _at_compile_time(f"math.{function.__name__}", function, values, keywords, instead)
    name = getattr(function, "__name__", None)
    if name is not None and callable(function):
        raise CompilationError(
            f"{describe(function)} cannot be called in a kernel",
            hint=_instead_of(function, name),
        )
    raise CompilationError(f"{describe(function)} cannot be called")


def _instead_of(function: Callable[..., Any], name: str) -> str | None:
    """What to write for a Python function that cannot be called."""
    module = (getattr(function, "__module__", None) or "numpy").partition(".")[0]  # NumPy's ufuncs name no module
    if module in ("numpy", "math", "torch", "jax"):
        if name in {str(d) for d in dtypes.ELEMENTS}:
            return f"convert with .to(tl.{name}), or make a tile with tl.full"
        name = OTHER_NAMES.get(name, name)
        return f"use tl.{name}" if name in tl.__all__ else None
    if isinstance(function, FunctionType):
        return f"decorate {name} with @weft.jit to inline it, or with tl.constexpr_function to call it at compile time"
    return None


def _at_compile_time(
    name: str,
    function: Callable[..., Any],
    values: Sequence[Value],
    keywords: dict[str, Value] | None = None,
    instead: str | None = None,
) -> Value:
    """A Python function of compile-time values; ``instead`` says what to write for others."""
    for value in (*values, *(keywords or {}).values()):
        if is_runtime(value):
            raise NotConstexpr(f"{name} takes compile-time values, found {describe(value)}", hint=instead)
    try:
        result = function(*values, **(keywords or {}))
    except Exception as error:  # whatever the user's own function raises is the kernel's error
        raise CompilationError(f"{name}({', '.join(map(describe, values))}): {type(error).__name__}: {error}") from None
    return value_of(result)


def _folded(function: Callable[..., Any]) -> Callable[..., Value]:
    def handler(b: Builder, *values: Value, **keywords: Value) -> Value:
        return _at_compile_time(function.__name__, function, values, keywords)

    return handler


def _extremum(function: Callable[..., Any], op: str) -> Callable[..., Value]:
    def handler(b: Builder, *operands: Value) -> Value:
        values: tuple[Value, ...] = operands[0] if len(operands) == 1 and is_tuple(operands[0]) else operands
        if not any(map(is_runtime, values)):
            return _at_compile_time(function.__name__, function, values)
        result = values[0]
        for value in values[1:]:
            result = arithmetic.binary(b, op, result, value)
        return result

    return handler


def _len(b: Builder, value: Value) -> Value:
    if isinstance(value, Tensor) and value.shape:
        return value.shape[0]
    if is_tuple(value) or isinstance(value, str):
        return len(value)
    raise CompilationError(f"{describe(value)} has no length")


def _range(b: Builder, start: Value, stop: Value = None, step: Value = None) -> Iteration:
    first, last = (0, start) if stop is None else (start, stop)
    return Iteration(first, last, 1 if step is None else step)


def _isinstance(b: Builder, value: Value, kinds: Any) -> bool:
    asked: tuple[Any, ...] = kinds if is_tuple(kinds) else (kinds,)
    if isinstance(value, Tensor):
        return tl.tensor in asked
    if isinstance(value, Aggregate):
        return issubclass(value.cls, tuple(kind for kind in asked if isinstance(kind, type)))
    return (constexpr in asked and not is_tuple(value)) or isinstance(value, asked)


def _getattr(b: Builder, value: Value, name: Value, *default: Value) -> Value:
    try:
        return attribute(b, value, name)
    except CompilationError:
        if not default:
            raise
        return default[0]


def _hasattr(b: Builder, value: Value, name: Value) -> bool:
    return _getattr(b, value, name, MISSING) is not MISSING


def _tuple(b: Builder, value: Value = ()) -> tuple[Value, ...]:
    return value if is_tuple(value) else tuple(_at_compile_time("tuple", tuple, [value]))


def _aggregate_replace(b: Builder, instance: Value, **changes: Value) -> Value:
    return replace(instance, **changes)


def _abs(b: Builder, value: Value) -> Value:
    if not is_runtime(value):
        return _at_compile_time("abs", builtins.abs, [value])
    return registry.implementation_of(tl.abs)(b, value)


BUILTINS: Final[dict[Any, Callable[..., Value]]] = {
    builtins.abs: _abs,
    builtins.len: _len,
    builtins.min: _extremum(builtins.min, "minimum"),
    builtins.max: _extremum(builtins.max, "maximum"),
    builtins.range: _range,
    builtins.isinstance: _isinstance,
    builtins.getattr: _getattr,
    builtins.hasattr: _hasattr,
    builtins.tuple: _tuple,
    builtins.list: _tuple,
    aggregate_replace: _aggregate_replace,
    **{f: _folded(f) for f in (int, float, bool, str, repr, slice, round, divmod, pow, builtins.sum, all, any)},
}
"""Python's functions in a kernel. Those that fold take compile-time values only."""
