"""Errors with more than one place: chains of inlined calls, several paths, several lines; and errors as objects."""

# The kernels are wrong on purpose, so lint is not asked about them, and types only for the rest.
# ruff: noqa
# pyright: basic, reportOperatorIssue=false, reportCallIssue=false

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import weft.language as tl
from weft.dtypes import float32, int32
from weft.frontend import CompilationError, KernelFunction, PointerArgument, Span
from weft.ir.location import Position, location

jit = KernelFunction
PTR = PointerArgument(float32)


@jit
def inner(x, n):
    return x + tl.arange(0, n)


@jit
def middle(x, n):
    return inner(x, n) * 2


@jit
def outer(n):
    y = middle(1, n)


def test_call_chain(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        outer,
        message="'end' must be known at compile time, found int32 scalar",
        at=[(inner, "arange(0, «n»)"), (middle, "inner(x, n)"), (outer, "middle(1, n)")],
        hint="mark the parameter as 'n: tl.constexpr'",
        n=int32,
    )


def test_positions_are_those_of_ops(build: Callable[..., Any]) -> None:
    with pytest.raises(CompilationError) as caught:
        build(outer, n=int32)
    first = [k.first_line for k in (inner, middle, outer)]
    assert [(p.function, p.line, p.column) for p in caught.value.spans] == [
        ("inner", first[0] + 2, len("    return x + tl.arange(0, ")),
        ("middle", first[1] + 2, len("    return ")),
        ("outer", first[2] + 2, len("    y = ")),
    ]


@jit
def recursive(n):
    return recursive(n - 1)


@jit
def calls_recursive(n):
    recursive(n)


def test_recursion(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        calls_recursive,
        message="recursive calls itself, and helpers are inlined where they are called",
        at=[(recursive, "recursive(n - 1)"), (calls_recursive, "recursive(n)")],
        hint="write a loop instead of the recursion",
        n=int32,
    )


@jit
def reduces_itself(a, b):
    return tl.reduce(tl.arange(0, 4), 0, reduces_itself)


def test_recursion_through_reduce(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        reduces_itself,
        message="reduces_itself calls itself, and helpers are inlined where they are called",
        at="tl.reduce(tl.arange(0, 4), 0, reduces_itself)",
        hint="write a loop instead of the recursion",
        a=int32,
        b=int32,
    )


@jit
def two_returns(n):
    if n > 0:
        return 1
    return 2.5


@jit
def calls_two_returns(n):
    x = two_returns(n)


def test_return_types(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        calls_two_returns,
        message="one path returns int32 scalar, another float32 scalar",
        at=[(two_returns, "return 1"), (calls_two_returns, "two_returns(n)")],
        notes=(("the other path ends here", "return 2.5"),),
        hint="make all paths return values of the same types and shapes",
        n=int32,
    )


@jit
def returns_nothing(n):
    if n > 0:
        return 1
    return None


@jit
def calls_returns_nothing(n):
    x = returns_nothing(n)


def test_a_return_without_a_value(assert_refused: Callable[..., None]) -> None:
    """A path that ends without a ``return`` is another matter: it gives no value that may be read."""
    assert_refused(
        calls_returns_nothing,
        message="one path returns int32 scalar, another None",
        at=[(returns_nothing, "return 1"), (calls_returns_nothing, "returns_nothing(n)")],
        notes=(("the other path ends here", "return None"),),
        hint="make all paths return values of the same types and shapes",
        n=int32,
    )


@jit
def returns_in_loop(n):
    for i in range(n):
        if i == 2:
            return i
        if i == 3:
            return 1.5
    return 0


@jit
def calls_returns_in_loop(n):
    x = returns_in_loop(n)


def test_return_types_in_a_loop(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        calls_returns_in_loop,
        message="one path returns int32 scalar, another float32 scalar",
        at=[(returns_in_loop, "return i"), (calls_returns_in_loop, "returns_in_loop(n)")],
        notes=(("the other path ends here", "return 1.5"),),
        hint="make all paths return values of the same types and shapes",
        n=int32,
    )


@jit
def constexpr_parameter(x, N: tl.constexpr):
    return tl.arange(0, N) + x


@jit
def passes_run_time(n):
    constexpr_parameter(1, N=n)


def test_constexpr_parameter(assert_refused: Callable[..., None]) -> None:
    """A helper's mark refuses nothing by itself, as in Triton; what needs the number does."""
    assert_refused(
        passes_run_time,
        message="'end' must be known at compile time, found int32 scalar",
        at=[(constexpr_parameter, "arange(0, «N»)"), (passes_run_time, "constexpr_parameter(1, N=n)")],
        hint="mark the parameter as 'N: tl.constexpr'",
        n=int32,
    )


@jit
def many_paths(p, n):
    for i in tl.static_range(9):
        if n > i:
            if n == i + 1:
                return
            tl.store(p + i, n)


def test_too_many_paths(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        many_paths,
        message="early returns split the function into more than 256 paths",
        at="if n > i:",
        hint="compute a condition first and return once",
        p=PTR,
        n=int32,
    )


@jit
def takes_keywords(**options):
    pass


def test_keywords(build: Callable[..., Any]) -> None:
    with pytest.raises(CompilationError) as caught:
        build(takes_keywords)
    assert str(caught.value) == (
        "takes_keywords takes **keywords, which kernels cannot\n"
        f"  {__file__}:{takes_keywords.first_line}:1, in takes_keywords\n    @jit\n    ^\nhelp: name the parameters"
    )


def test_no_source(build: Callable[..., Any]) -> None:
    names: dict[str, Any] = {}
    exec("def typed_in(n):\n    pass", names)
    with pytest.raises(CompilationError) as caught:
        build(names["typed_in"], n=int32)
    assert str(caught.value) == (
        "the source of typed_in (<string>:1) cannot be read, and weft compiles from source\n"
        "help: define the kernel in a file: code given to exec() or to an interactive prompt leaves no source behind"
    )


@jit
def two_parameters(n, BLOCK: tl.constexpr):
    pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"BLOCK": 4}, "two_parameters needs the argument 'n'"),
        ({"BLOCK": 4, "n": int32, "m": int32}, "two_parameters has no parameter named m"),
        (
            {"BLOCK": int32, "n": int32},
            "the parameter 'BLOCK' of two_parameters is constexpr, but the signature passes it at run time",
        ),
    ],
)
def test_signature(build: Callable[..., Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        build(two_parameters, **arguments)
    assert caught.value.message == message


# fmt: off
@jit
def spans_lines():
    x = tl.full(
        (3,), 1, tl.int32)


@jit
def umlauts():
    größe = "äöü" + tl.arange(0, 3)  # columns count characters, ast counts bytes
# fmt: on


def test_several_lines_are_underlined_to_the_end_of_the_first(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        spans_lines,
        message="sizes of tiles are powers of two, but a tile has 3 elements",
        at="tl.full(",
        hint="use 4 and mask the elements beyond 3",
    )


def test_columns_in_characters(assert_refused: Callable[..., None]) -> None:
    assert_refused(
        umlauts,
        message="sizes of tiles are powers of two, but a tile has 3 elements",
        at="tl.arange(0, 3)",
        hint="use 4 and mask the elements beyond 3",
    )


def test_indented_definitions_keep_their_columns(assert_refused: Callable[..., None]) -> None:
    if True:

        @jit
        def local():
            """A docstring
            that reaches further left than the code."""
            x = tl.arange(0, 3)

    assert_refused(
        local,
        message="sizes of tiles are powers of two, but a tile has 3 elements",
        at="tl.arange(0, 3)",
        hint="use 4 and mask the elements beyond 3",
    )


def test_an_error_of_a_later_pass_knows_only_starts(tmp_path: Any) -> None:
    file = tmp_path / "k.py"
    file.write_text("def k():\n\tx = f(1)\n")
    error = CompilationError("no", [Position(str(file), 2, 5, "k"), Position("gone.py", 7, 0, "main")])
    assert str(error) == f"no\n  {file}:2:6, in k\n    \tx = f(1)\n    \t    ^\n  gone.py:7:1, in main"


def test_a_span_is_a_position() -> None:
    """An op keeps the start of a span alone; a place with an end differs from one without."""
    span = Span("a.py", 3, 4, "k", 3, 6, "    ab")
    start = Position("a.py", 3, 4, "k")
    assert isinstance(span, Position)
    assert location([span]) == location([start])
    assert span != start


def test_errors_survive_pickling() -> None:
    span = Span("a.py", 3, 4, "k", 3, 6, "    ab")
    error = CompilationError("m", [span], hint="h", argument="a")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.message, copy.hint, copy.argument, copy.spans) == ("m", "h", "a", (span,))
    assert str(copy) == str(error)
