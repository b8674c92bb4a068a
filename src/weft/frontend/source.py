"""Kernels as Python functions: their source, what they refer to, and a fingerprint of both.

One would usually hash the text of a kernel for the disk cache. A kernel also depends on the helpers it calls and on the
constants it reads, in other modules too; `KernelFunction.dependencies` follows both. Its text is built from what the
source *names*, resolved when it is asked for, so a changed constant changes it and an unused one does not.

Nothing here needs the compiler: a process that finds its kernels in the cache parses them and loads no IR.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from weft.dtypes import DType
from weft.frontend.errors import CompilationError, Span
from weft.language.core import ConstexprFunction, constexpr

if TYPE_CHECKING:
    from weft.semantics.core import Semantics

MISSING: Final = object()
"""No such name, no default."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel or helper. ``default`` is `MISSING` without one; ``variadic`` is True for ``*args``."""

    name: str
    is_constexpr: bool
    default: Any = MISSING
    keyword_only: bool = False
    variadic: bool = False


def _is_constexpr(annotation: Any) -> bool:
    """Whether an annotation is ``constexpr``, by value or, with postponed evaluation, by text."""
    if isinstance(annotation, str):
        return annotation.strip("'\" ").split("[")[0].split(".")[-1] == "constexpr"
    return annotation is constexpr


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a Python function in order, ``**keywords`` left out. (`inspect.signature` takes ten times as
    long, and there are sixty stubs to check at import.)"""
    code, annotations = function.__code__, function.__annotations__
    names, positional, keyword = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    defaults: dict[str, Any] = dict(zip(names[:positional][::-1], (function.__defaults__ or ())[::-1], strict=False))
    defaults |= function.__kwdefaults__ or {}

    def parameter(name: str, keyword_only: bool = False, variadic: bool = False) -> Parameter:
        return Parameter(
            name, _is_constexpr(annotations.get(name)), defaults.get(name, MISSING), keyword_only, variadic
        )

    result = [parameter(name) for name in names[:positional]]
    if code.co_flags & inspect.CO_VARARGS:
        result.append(parameter(names[positional + keyword], variadic=True))
    return (*result, *(parameter(name, keyword_only=True) for name in names[positional : positional + keyword]))


class KernelFunction:
    """A Python function in the kernel language; called from a kernel it is inlined.

    ``fn`` is the function, ``name`` its name, ``file`` and ``first_line`` where it (its first decorator) begins;
    ``semantics`` is what its operators mean (None: what its caller's do, and Triton's in a kernel).
    """

    def __init__(self, fn: Callable[..., Any], semantics: Semantics | None = None) -> None:
        self.fn = fn
        self.semantics = semantics
        self.name: str = fn.__name__
        self.file: str = fn.__code__.co_filename
        self.first_line: int = fn.__code__.co_firstlineno
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Helpers have a meaning in kernels only: always `TypeError`."""
        raise TypeError(f"'{self.name}' is a kernel function: other kernels call it, Python does not")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in order. `CompilationError` for ``**kwargs``, which the language does not have."""
        if self.fn.__code__.co_flags & inspect.CO_VARKEYWORDS:
            raise CompilationError(
                f"{self.name} takes **keywords, which kernels cannot",
                [Span(self.file, self.first_line, 0, self.name)],
                hint="name the parameters",
            )
        return parameters_of(self.fn)

    @cached_property
    def _lines(self) -> tuple[list[str], int]:
        """The source lines as they stand in the file, and the number of the first."""
        try:
            return inspect.getsourcelines(self.fn)
        except (OSError, TypeError) as error:
            raise CompilationError(
                f"the source of {self.name} ({self.file}:{self.first_line}) cannot be read, and weft compiles from source",
                hint="define the kernel in a file: code given to exec() or to an interactive prompt leaves no source behind",
            ) from error

    @cached_property
    def source(self) -> str:
        """The text of the function with its decorators, dedented."""
        return textwrap.dedent("".join(self._lines[0]))

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree, with the lines and columns of the file (columns in UTF-8 bytes, as `ast` counts; see
        `span`)."""
        lines, first = self._lines
        # Dedenting would move the columns and fail on strings that reach further left; a block to be indented in does not.
        nested = lines[0][:1].isspace()
        body = ast.parse("".join(["if True:\n", *lines] if nested else lines)).body
        definition = body[0].body[0] if isinstance(body[0], ast.If) else body[0]
        if not isinstance(definition, ast.FunctionDef):
            raise CompilationError(
                f"{self.name} is not a 'def' function",
                [Span(self.file, first, 0, self.name)],
                hint="kernels are plain functions; lambdas and coroutines are not",
            )
        ast.increment_lineno(definition, first - 1 - nested)
        return definition

    def span(self, node: ast.AST) -> Span:
        """Where a node of `tree` stands in the file."""
        line: int = getattr(node, "lineno", self.first_line)
        end_line: int = getattr(node, "end_lineno", line)
        start = self._column(line, getattr(node, "col_offset", 0))
        end = self._column(end_line, getattr(node, "end_col_offset", 0))
        text = self._lines[0][line - self._lines[1]].rstrip("\n")
        return Span(self.file, line, start, self.name, end_line, end, text)

    def _column(self, line: int, offset: int) -> int:
        """The column in characters of an offset in UTF-8 bytes."""
        text = self._lines[0][line - self._lines[1]]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))

    @cached_property
    def _closure(self) -> Mapping[str, Any]:
        cells = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        return {name: cell for name, cell in cells}

    def lookup(self, name: str) -> Any:
        """What a name that is not local means: closure, module, builtins; `MISSING` if nothing."""
        if name in self._closure:
            try:
                return self._closure[name].cell_contents
            except ValueError:  # an enclosing function has not assigned it yet
                return MISSING
        value = self.fn.__globals__.get(name, MISSING)
        return getattr(builtins, name, MISSING) if value is MISSING else value

    def is_constexpr_global(self, name: str) -> bool:
        """Whether the module annotates the global ``name`` as ``constexpr``."""
        return name not in self._closure and _is_constexpr(self.fn.__globals__.get("__annotations__", {}).get(name))

    def visible(self) -> Iterator[str]:
        """The names `lookup` finds, for messages."""
        yield from self._closure
        yield from self.fn.__globals__

    @cached_property
    def _references(self) -> tuple[tuple[str, ...], ...]:
        """Names the source reads, each with the attributes taken of it (``tl.math.exp``), sorted."""
        found: set[tuple[str, ...]] = set()
        for start in ast.walk(self.tree):
            node, attributes = start, list[str]()
            while isinstance(node, ast.Attribute):
                attributes.append(node.attr)
                node = node.value
            if isinstance(node, ast.Name):
                found.add((node.id, *reversed(attributes)))
        return tuple(sorted(found))

    def dependencies(self) -> str:
        """A text that differs whenever the compiled code may: the source of this function and of each helper it
        (or they) refer to, and the constants they read. Equal in every process."""
        texts: list[str] = []
        _fingerprint(self, texts, set())
        return "\n".join(texts)

    def semantics_used(self) -> set[Semantics]:
        """The semantics that this function and the helpers it (or they) refer to name for themselves."""
        functions: set[KernelFunction] = set()
        _fingerprint(self, [], functions)
        return {function.semantics for function in functions if function.semantics is not None}


def _fingerprint(kernel: KernelFunction, texts: list[str], seen: set[KernelFunction]) -> None:
    """Append the text of ``kernel`` and of what it refers to, each function once, in order of first reference."""
    if kernel in seen:
        return
    seen.add(kernel)
    texts.append(f"{kernel.__module__}.{kernel.__qualname__}:\n{kernel.source}")
    if kernel.semantics is not None:
        texts.append(f"semantics {kernel.semantics}")
    defaults = [(p.name, p.default) for p in kernel.parameters if p.default is not MISSING]
    texts += [f"default {name} = {_text(value)}" for name, value in defaults]
    helpers: list[KernelFunction] = []
    for reference in kernel._references:  # pyright: ignore[reportPrivateUsage]
        value = kernel.lookup(reference[0])
        for attribute in reference[1:]:
            value = value.value if isinstance(value, constexpr) else value
            if not isinstance(value, (ModuleType, type, enum.Enum)) and not dataclasses.is_dataclass(value):
                break
            value = getattr(value, attribute, MISSING)
        if isinstance(value, KernelFunction):
            helpers.append(value)
        elif (text := _text(value)) is not None:
            texts.append(f"{'.'.join(reference)} = {text}")
    for helper in helpers:
        _fingerprint(helper, texts, seen)


def _text(value: Any) -> str | None:
    """A constant as text that is equal in every process; None for what is no constant."""
    if isinstance(value, constexpr):
        value = value.value
    if isinstance(value, (tuple, list)):
        return f"({', '.join(str(_text(item)) for item in value)})"  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, ConstexprFunction):
        try:
            return inspect.getsource(value.function)
        except (OSError, TypeError):
            return repr(value.function.__code__.co_code)
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name} = {_text(value.value)}"
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, DType)):
        items = [f"{f.name}={_text(getattr(value, f.name))}" for f in dataclasses.fields(value)]
        return f"{type(value).__qualname__}({', '.join(items)})"
    if value is None or isinstance(value, (bool, int, float, str, DType)):
        return repr(value)
    return None
