"""Kernels as Python functions: their source, what they refer to, and a fingerprint of both.

A kernel depends on its own text, on the helpers it calls and on the constants it reads, in other modules too.
`KernelFunction.references` follows them all: helpers and constants that the source *names*, and what functions read that run at
compile time. They are resolved when it is called, so a changed constant changes the result, and an unused one does not. The
text of a function is read when it is decorated, so that an edited file does not change it.

Nothing here needs the compiler: a process that finds its kernels in the cache parses them and loads no IR.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import enum
import inspect
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, get_args

import numpy as np

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.errors import CompilationError, Span
from weft.frontend.lines import lines_of
from weft.language.aggregates import INIT, is_aggregate
from weft.language.annotations import annotations_in, annotations_of
from weft.language.core import ConstexprFunction, const, constexpr

if TYPE_CHECKING:
    from weft.semantics.core import Semantics

MISSING: Final = object()
"""No such name, no default."""


class Parameter(NamedTuple):
    """One parameter of a kernel or helper. ``default`` is `MISSING` without one; ``variadic`` is True for ``*args``."""

    name: str
    is_constexpr: bool
    default: Any = MISSING
    keyword_only: bool = False
    variadic: bool = False
    is_const: bool = False
    dtype: DType | None = None
    """What the annotation converts the number to that a launch passes: ``stride: tl.int64``."""


def _is(annotation: Any, kind: type) -> bool:
    """Whether an annotation is ``kind``, alone or beside others (``int | constexpr``), by value or, with postponed evaluation,
    by text."""
    if isinstance(annotation, str):
        return any(part.strip("'\" ").split("[")[0].split(".")[-1] == kind.__name__ for part in annotation.split("|"))
    return annotation is kind or kind in get_args(annotation)


_DTYPES: Final[dict[str, DType]] = {d.name: d for d in dtypes.ELEMENTS} | {"int1": dtypes.bool_, "uint1": dtypes.bool_}


def _dtype(annotation: Any) -> DType | None:
    """The dtype that an annotation is, by value or by text."""
    if isinstance(annotation, str):
        return _DTYPES.get(annotation.strip("'\" ").split(".")[-1])
    return annotation if isinstance(annotation, DType) else None


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a Python function in order, ``**keywords`` left out. (`inspect.signature` takes ten times as
    long, and there are sixty stubs to check at import.)"""
    code, annotations = function.__code__, annotations_of(function)
    names, positional, keyword = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    defaults: dict[str, Any] = dict(zip(names[:positional][::-1], (function.__defaults__ or ())[::-1], strict=False))
    defaults |= function.__kwdefaults__ or {}

    def parameter(name: str, keyword_only: bool = False, variadic: bool = False) -> Parameter:
        annotation, default = annotations.get(name), defaults.get(name, MISSING)
        return Parameter(
            name,
            _is(annotation, constexpr),
            default,
            keyword_only,
            variadic,
            _is(annotation, const),
            _dtype(annotation),
        )

    result = [parameter(name) for name in names[:positional]]
    if code.co_flags & inspect.CO_VARARGS:
        result.append(parameter(names[positional + keyword], variadic=True))
    return (*result, *(parameter(name, keyword_only=True) for name in names[positional : positional + keyword]))


class KernelFunction:
    """A Python function in the kernel language; called from a kernel it is inlined.

    ``is_shown``: whether messages, and the lines of a profile, name places in its text.

    ``fn`` is the function, ``name`` its name, ``file`` and ``first_line`` where it (its first decorator) begins;
    ``semantics`` is what its operators mean (None: what its caller's do, and Triton's in a kernel).
    """

    is_shown = True
    debug: bool | None = None
    """Whether assertions are compiled into a kernel; None: where ``TRITON_DEBUG`` is set."""

    @property
    def unspecialised(self) -> frozenset[str]:
        """The parameters whose values cause no compilation."""
        return frozenset()

    @property
    def asserts(self) -> bool:
        """Whether launches of this kernel check its assertions, and those of its helpers."""
        return os.environ.get("TRITON_DEBUG", "0") not in ("", "0") if self.debug is None else self.debug

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
        with contextlib.suppress(CompilationError):  # raised again where the source is needed
            self._lines  # noqa: B018 - read now: the file may be edited before the first launch

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
            return lines_of(self.fn)
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
        try:
            body = ast.parse("".join(["if True:\n", *lines] if nested else lines)).body
        except SyntaxError:
            raise self._edited() from None
        definition = body[0].body[0] if isinstance(body[0], ast.If) else body[0]
        if self.fn.__code__.co_name != "<lambda>" and not (
            isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
            and definition.name == self.fn.__code__.co_name
        ):
            raise self._edited()
        if not isinstance(definition, ast.FunctionDef):
            raise CompilationError(
                f"{self.name} is not a 'def' function",
                [Span(self.file, first, 0, self.name)],
                hint="kernels are plain functions; lambdas and coroutines are not",
            )
        ast.increment_lineno(definition, first - 1 - nested)
        return definition

    def forget_tree(self) -> None:
        """Frees the syntax tree, which is larger than all else that a compiled kernel keeps. It is parsed again when needed."""
        self.__dict__.pop("tree", None)

    def _edited(self) -> CompilationError:
        return CompilationError(
            f"the source of {self.name} is no longer at {self.file}:{self.first_line}: the file was edited after Python read it",
            hint="import the module again, in a new process or with importlib.reload",
        )

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
        return name not in self._closure and _is(annotations_in(self.fn.__globals__).get(name), constexpr)

    def visible(self) -> Iterator[str]:
        """The names `lookup` finds, for messages."""
        yield from self._closure
        yield from self.fn.__globals__

    @cached_property
    def _references(self) -> tuple[tuple[str, ...], ...]:
        """Names that are not local and the source reads, each with the attributes taken of it (``tl.math.exp``), sorted.

        A local variable never means a global of its name, which a script may change before each launch. Decorators have done what
        they do.
        """
        found: set[tuple[str, ...]] = set()
        local = frozenset(self.fn.__code__.co_varnames)
        parts = [part for part in ast.iter_child_nodes(self.tree) if part not in self.tree.decorator_list]
        for start in chain.from_iterable(map(ast.walk, parts)):
            node, attributes = start, list[str]()
            while isinstance(node, ast.Attribute):
                attributes.append(node.attr)
                node = node.value
            if isinstance(node, ast.Name) and node.id not in local:
                found.add((node.id, *reversed(attributes)))
        return tuple(sorted(found))

    def dependencies(self) -> str:
        """A text that differs whenever the compiled code may: the source of this function and of each helper it
        (or they) refer to, the constants they read, and the dtypes of annotations. Equal in every process."""
        marks = [f"{p.name}: {p.dtype}" for p in self.parameters if p.dtype is not None]
        return "\n".join([*self.references().texts, *marks])

    def places(self) -> str:
        """Where this function and each helper it (or they) refer to stand: file, line and column, which debug information
        names."""
        functions = self.references().functions
        return "\n".join(sorted(f"{f.file}:{f.first_line}:{f.indentation}" for f in functions))

    @property
    def indentation(self) -> int:
        """The columns before the function's first character."""
        first = self._lines[0][0]
        return len(first) - len(first.lstrip())

    def semantics_used(self) -> set[Semantics]:
        """The semantics that this function and the helpers it (or they) refer to name for themselves."""
        return {function.semantics for function in self.references().functions if function.semantics is not None}

    def references(self) -> References:
        """What this function, and the helpers it (or they) refer to, read outside of themselves, as it is now."""
        found = References()
        _collect(self, found)
        return found


Place: TypeAlias = tuple[Mapping[str, Any] | None, Any, Any]
"""Where a value was found: a mapping, the name in it and the value; or None, a closure's cell and its value."""

Look: TypeAlias = tuple[Callable[[Any], object], Any, object]
"""A place as it is looked at again: a function, what it is called with, and what it gave."""


_LANGUAGE: Final = ("weft.language", "triton.language")


def _of_language(module: object) -> bool:
    """Whether a module's name is one of the language's, weft's or Triton's, which is also found behind ``weft.``; or weft's own,
    in which ``weft.jit`` is found."""
    return isinstance(module, str) and (
        module == "weft" or module.startswith(_LANGUAGE) or module.removeprefix("weft.").startswith(_LANGUAGE)
    )


@dataclass
class References:
    """The ``texts`` of functions and constants, the ``functions``, the ``places`` where both were found, and the ``looks`` at
    these: each once, and none in the modules of the language, which do not change."""

    texts: list[str] = field(default_factory=list[str])
    functions: set[KernelFunction] = field(default_factory=set["KernelFunction"])
    looks: list[Look] = field(default_factory=list[Look])
    places: list[Place] = field(default_factory=list[Place])
    _known: set[tuple[int, int | str]] = field(default_factory=set[tuple[int, int | str]])

    def look_at(self, *places: Place) -> None:
        """Adds places."""
        for mapping, name, value in places:
            module: object = None if mapping is None else mapping.get("__name__")
            place = id(mapping), id(name) if mapping is None else name
            if not _of_language(module) and place not in self._known:
                self._known.add(place)
                self.places.append((mapping, name, value))
                if mapping is None:
                    self.looks.append((_cell_value, name, value))
                elif value is None or value is MISSING:  # `get` gives None for a name that is gone
                    self.looks.append((lambda name, mapping=mapping: mapping.get(name, MISSING), name, value))
                else:
                    self.looks.append((mapping.get, name, value))

    def moved(self) -> bool:
        """Whether any place holds another object by now. Cheap: asked at every launch."""
        for look, name, value in self.looks:  # noqa: SIM110 (`any` takes twice as long)
            if look(name) is not value:
                return True
        return False


def _cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _collect(kernel: KernelFunction, found: References) -> None:
    """Adds ``kernel`` and what it refers to, each function once, in order of first reference."""
    if kernel in found.functions:
        return
    found.functions.add(kernel)
    found.texts.append(f"{kernel.__module__}.{kernel.__qualname__}:\n{kernel.source}")
    if kernel.asserts:
        found.texts.append("debug")
    if kernel.semantics is not None:
        found.texts.append(f"semantics {kernel.semantics}")
    for parameter in kernel.parameters:
        if parameter.default is not MISSING:
            _collect_value(f"default {parameter.name}", parameter.default, [], found)
    for reference in kernel._references:  # pyright: ignore[reportPrivateUsage]
        value = kernel.lookup(reference[0])
        places = [_place(kernel.fn, reference[0], value)]
        for attribute in reference[1:]:
            value = value.value if isinstance(value, constexpr) else value
            if not isinstance(value, (ModuleType, type, enum.Enum)) and not dataclasses.is_dataclass(value):
                break
            for holder in getattr(value, "__mro__", (value,)):
                names: Mapping[str, Any] = getattr(holder, "__dict__", {})
                if attribute in names:
                    places.append((names, attribute, names[attribute]))
                    break
            value = getattr(value, attribute, MISSING)
        _collect_value(".".join(reference), value, places, found)


def _place(function: Callable[..., Any], name: str, value: Any) -> Place:
    """Where a name of a function that is not local is found."""
    if name in function.__code__.co_freevars:
        return None, (function.__closure__ or ())[function.__code__.co_freevars.index(name)], value
    return function.__globals__, name, function.__globals__.get(name, MISSING)


def _collect_value(name: str, value: Any, places: list[Place], found: References) -> None:
    """Adds what ``name`` stands for, if it changes the code: a constant, a helper, a compile-time function, a tuple of
    them."""
    if isinstance(value, constexpr):
        value = value.value
    if isinstance(value, KernelFunction):
        found.look_at(*places)
        _collect(value, found)
    elif is_aggregate(value):
        found.look_at(*places)
        _collect_class(value, found)
    elif isinstance(value, ConstexprFunction):
        found.look_at(*places)
        _collect_python(name, value.function, found)
    elif isinstance(value, (tuple, list)):
        found.texts.append(f"{name} has {len(value)}")  # pyright: ignore[reportUnknownArgumentType]
        found.look_at(*places)
        for i, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            _collect_value(f"{name}[{i}]", item, [], found)
    elif isinstance(value, enum.Enum):
        found.look_at(*places)
        found.texts.append(f"{name} = {type(value).__qualname__}.{value.name}")
        _collect_value(f"{name}.value", value.value, [], found)
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, DType)):
        found.look_at(*places)
        found.texts.append(f"{name} is {type(value).__qualname__}")
        for member in dataclasses.fields(value):
            item = getattr(value, member.name)
            place: list[Place] = [(vars(value), member.name, item)] if hasattr(value, "__dict__") else []
            _collect_value(f"{name}.{member.name}", item, place, found)
    elif value is None or isinstance(value, (bool, int, float, str, DType, np.generic)):
        found.look_at(*places)
        found.texts.append(f"{name} = {value!r}")
    elif isinstance(value, (FunctionType, BuiltinFunctionType, type)):  # of the language, or of Python
        found.look_at(*places)
        found.texts.append(f"{name} is {value.__module__}.{value.__qualname__}")


def _collect_class(cls: type, found: References) -> None:
    """Adds the fields and methods of an aggregate."""
    text = f"class {cls.__module__}.{cls.__qualname__}: {', '.join(map(str, annotations_of(cls).items()))}"
    if text in found.texts:
        return
    found.texts.append(text)
    for base in cls.__mro__[1:-1]:
        _collect_class(base, found)
    for name, written in {**vars(cls), "__init__": vars(cls)[INIT]}.items():
        member = written.__func__ if isinstance(written, staticmethod) else written
        member = member.fget if isinstance(member, property) else member
        if isinstance(member, FunctionType):
            _collect_python(f"{cls.__qualname__}.{name}", member, found)
        else:
            _collect_value(f"{cls.__qualname__}.{name}", member, [(vars(cls), name, written)], found)


def _collect_python(name: str, function: Any, found: References) -> None:
    """Adds a Python function that runs while a kernel is compiled, and the constants and functions that it names."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = repr(getattr(getattr(function, "__code__", None), "co_code", function))
    if text in found.texts:
        return
    found.texts.append(text)
    if not isinstance(function, FunctionType):
        return
    for used in sorted({*function.__code__.co_names, *function.__code__.co_freevars}):
        place = _place(function, used, MISSING)
        value = _cell_value(place[1]) if place[0] is None else place[2]
        place = (place[0], place[1], value)
        if isinstance(value, FunctionType) and value is not function:
            found.look_at(place)
            _collect_python(used, value, found)
        else:
            _collect_value(f"{name} reads {used}", value, [place], found)
