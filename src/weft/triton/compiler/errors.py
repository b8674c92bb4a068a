"""``triton.compiler.errors``: a kernel that does not compile, in the form that programs and tests expect.

Weft raises one error with all its places. Triton raises a chain: an error for each inlined call, outermost first, each the
``__cause__`` of the one before, and last the plain exception that the failing function raised. Each error shows the line and
column counted from the kernel's ``def``. `translated` makes that chain. The innermost error also shows what weft says.
"""

from __future__ import annotations

import ast
from typing import Final

from weft.frontend.source import KernelFunction
from weft.ir import errors
from weft.ir.position import Position
from weft.triton.compiler.wording import Wording, wording_of
from weft.triton.errors import TritonError

_LINES: Final = 12
"""The lines of source that a message shows."""


class CompilationError(TritonError):
    """A kernel that does not compile: ``src`` is its text from ``def`` on, ``node`` where in it, ``error_message`` the reason.

    ``weft`` is weft's own error, with places in files and advice; None for errors that weft did not raise.
    """

    def __init__(self, src: str | None, node: ast.AST, error_message: str | None = None) -> None:
        super().__init__(error_message)
        self.src = src
        self.node = node
        self.error_message = error_message
        self.weft: errors.CompilationError | None = None
        self.ends = False
        """Whether ``error_message`` ends the text."""

    @property
    def message(self) -> str:
        """The place, the source up to it, the reason, and what weft says."""
        reason = [self.error_message] if self.error_message else []
        beneath = [] if self.weft is None else ["", f"weft: {self.weft}"]
        return "\n".join([self._where(), *([*beneath, "", *reason] if self.ends else [*reason, *beneath])])

    def _where(self) -> str:
        line: int | None = getattr(self.node, "lineno", None)
        if self.src is None:
            return " <source unavailable>"
        if line is None:
            return self.src
        column: int = getattr(self.node, "col_offset", 0)
        shown = self.src.split("\n")[:line][-_LINES:]
        return "\n".join([f"at {line}:{column}:", *shown, " " * column + "^"])

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.src, self.node, self.error_message)


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` whose condition is false."""


class UnsupportedLanguageConstruct(CompilationError):
    """Python that kernels are not written in."""


_CLASSES: Final = {
    "assertion": CompileTimeAssertionFailure,
    "construct": UnsupportedLanguageConstruct,
}
"""The classes of kinds that have one of their own."""


def translated(error: errors.CompilationError, kernel: KernelFunction) -> CompilationError:
    """The chain of errors for an error of weft's in a kernel."""
    wording = wording_of(error)
    functions = [kernel, *kernel.references().functions]
    spans = list(error.spans) or [Position(kernel.file, kernel.first_line, 0, kernel.name)]
    innermost = _at(error.call or spans[0], functions, wording)
    innermost.weft, innermost.ends = error, wording.last
    if wording.cause is not None:
        innermost.__cause__ = wording.cause(wording.text)
    for span in spans[1:]:
        outer = _at(span, functions, Wording("", None))
        outer.__cause__, innermost = innermost, outer
    return innermost


def _at(span: Position, functions: list[KernelFunction], wording: Wording) -> CompilationError:
    kind = _CLASSES.get(wording.kind, CompilationError)
    function = next((f for f in functions if _holds(f, span)), None)
    if function is None:
        return kind(None, ast.Pass(), wording.text or None)
    definition = function.tree
    line, column = span.line - definition.lineno + 1, max(span.column - definition.col_offset, 0)
    if wording.whole:
        line, column = 1, 0
    return kind(text_of(function), ast.Pass(lineno=line, col_offset=column), wording.text or None)


def _holds(function: KernelFunction, span: Position) -> bool:
    """Whether a place lies in a function's text."""
    if function.file != span.file or function.name != span.function:
        return False
    definition = function.tree
    return function.first_line <= span.line <= (definition.end_lineno or definition.lineno)


def text_of(function: KernelFunction) -> str:
    """The function's text from its ``def`` on, dedented."""
    lines = function.source.split("\n")
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    return "\n".join(lines[start:])
