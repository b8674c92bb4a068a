"""`lines_of`: the lines that `inspect.getsourcelines` gives, mostly without its tokenizer."""

from __future__ import annotations

import inspect
import linecache
import textwrap
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

import weft.language as tl
from weft.frontend import lines
from weft.frontend.lines import lines_of

CASES = {
    "the next statement ends it": ("def f():\n    return 1\n", "x = 2\n"),
    "the end of the file, without a new line": ("def f():\n    return 1", ""),
    "one line": ("def f(): return 1\n", "x = 2\n"),
    "decorators": ("@same(\n    1,\n)\n@same(2)\ndef f():\n    return 1\n", "def g(): pass\n"),
    "parameters on lines of their own": ("def f(\n    x=1,\n    *y,\n) -> None:\n    return 1\n", "x = 2\n"),
    "brackets that are closed at the margin": (
        "def f():\n    x = [\n    1,\n]\n    y = (1\n)\n    return x, y\n",
        "x = 2\n",
    ),
    "brackets with an element at the margin": ("def f():\n    return [\n1,\n2]\n", "x = 2\n"),
    "text at the margin": ('def f():\n    """Doc.\n\nmore\ndef g():\n    """\n    return 1\n', "x = 2\n"),
    "a line that goes on at the margin": ("def f():\n    x = 1 + \\\n2\n    return x\n", "x = 2\n"),
    "comments within": (
        "def f():\n    x = 1\n# within\n    # too\n    return x\n    # and behind\n",
        "\n# not here\nx = 2\n",
    ),
    "empty lines within": ("def f():\n\n    x = 1\n\n    return x\n", "\n\nx = 2\n"),
    "nested definitions": ("def f():\n    def g():\n        return 1\n    return g\n", "async def h(): pass\n"),
    "a coroutine": ("async def f():\n    return 1\n", "x = 2\n"),
    "a form feed before the next statement": ("def f():\n    return 1\n", "\fx = 2\n"),
    "a form feed before the next function": ("def f(): return 1\n", "\fdef g():\n    return 2\n"),
    "tabs": ("def f():\n\tif 1:\n\t\treturn 1\n\treturn 2\n", "x = 2\n"),
}
"""What stands there -> the lines of ``f``, and what follows them."""


def same(*_: Any) -> Callable[[Any], Any]:
    return lambda function: function


@pytest.fixture
def function_of() -> Iterator[Callable[[str], FunctionType]]:
    """Gives the function ``f`` of a file with a text, which may be indented in a class."""
    names: list[str] = []

    def make(text: str) -> FunctionType:
        name = f"<lines {len(names)}>"
        names.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        space: dict[str, Any] = {"same": same}
        exec(compile(text, name, "exec"), space)
        return space["C"].f if "C" in space else space["f"]

    yield make
    for name in names:
        del linecache.cache[name]


@pytest.mark.parametrize("margin", ["", "    "])
@pytest.mark.parametrize("case", CASES)
def test_the_lines_of_a_function(case: str, margin: str, function_of: Callable[[str], FunctionType]) -> None:
    own, rest = CASES[case]
    text = "before = 1\n" + own + rest
    expected = own
    if margin:
        text, expected = "class C:\n" + textwrap.indent(text, margin), textwrap.indent(own, margin)
    assert lines_of(function_of(text)) == (expected.splitlines(keepends=True), 3 if margin else 2)


def test_functions_of_the_language_have_the_lines_that_inspect_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    public = (inspect.unwrap(value) for value in vars(tl).values() if callable(value))
    functions = [function for function in public if isinstance(function, FunctionType)]
    expected = [inspect.getsourcelines(function) for function in functions]
    monkeypatch.setattr(lines, "inspect", None)
    assert [lines_of(function) for function in functions] == expected
    assert len(functions) > 100


def test_python_warns_of_a_function_once(function_of: Callable[[str], FunctionType]) -> None:
    """Where it compiles the file."""
    with pytest.warns((SyntaxWarning, DeprecationWarning), match="invalid escape sequence"):
        function = function_of('def f():\n    return "\\d"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lines_of(function) == (["def f():\n", '    return "\\d"\n'], 1)


def test_lambdas_wrapped_functions_and_what_has_no_text(function_of: Callable[[str], FunctionType]) -> None:
    assert lines_of(function_of("f = lambda: 1\n"))[0] == ["f = lambda: 1\n"]
    assert lines_of(tl.zeros) == inspect.getsourcelines(tl.zeros)
    space: dict[str, Any] = {}
    exec("def f(): pass", space)
    with pytest.raises(OSError):
        lines_of(space["f"])
    with pytest.raises(TypeError):
        lines_of(1)
