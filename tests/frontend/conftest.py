"""What the frontend's tests share: signatures from arguments, and running a kernel through the reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from weft import dtypes, reference
from weft.dtypes import DType
from weft.frontend import (
    Argument,
    CompilationError,
    ConstantArgument,
    KernelFunction,
    PointerArgument,
    ScalarArgument,
    build_module,
)


def argument_of(value: Any) -> Argument:
    """An array is a pointer, a NumPy scalar or a DType a run-time number, anything else a constant."""
    if isinstance(value, np.ndarray):
        return PointerArgument(dtypes.from_numpy(value.dtype))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(value, np.generic):
        return ScalarArgument(dtypes.parse(str(value.dtype)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(value, DType):
        return ScalarArgument(value)
    return value if isinstance(value, PointerArgument | ScalarArgument) else ConstantArgument(value)


def build(kernel: Callable[..., Any], **arguments: Any) -> ModuleOp:
    """The verified module of a kernel (or plain function) for arguments by name."""
    function = kernel if isinstance(kernel, KernelFunction) else KernelFunction(kernel)
    module = build_module(function, {name: argument_of(value) for name, value in arguments.items()})
    module.verify()
    return module


def execute(kernel: Callable[..., Any], grid: tuple[int, ...] = (1,), **arguments: Any) -> None:
    """Build a kernel and run it through the reference; arrays are modified in place."""
    module = build(kernel, **arguments)
    arrays: list[Any] = [v for v in arguments.values() if isinstance(v, np.ndarray | np.generic)]
    values: list[Any] = [v.item() if v.shape == () else v for v in arrays]
    reference.run(module, values, grid)


def place(kernel: KernelFunction, at: str, length: int | None = None) -> str:
    """How the place of a text in a kernel's body is rendered: of ``at``, or of what stands between « and » in it.

    Found by searching the source lines, so it does not depend on the syntax tree. ``#2 `` means the second line that
    has the text.
    """
    second, at = at.startswith("#2 "), at.removeprefix("#2 ")
    before, _, rest = at.partition("«") if "«" in at else ("", "", at + "»")
    marked, _, after = rest.partition("»")
    lines, first = inspect.getsourcelines(kernel.fn)
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith("def ")) + 1
    i = [i for i in range(start, len(lines)) if before + marked + after in lines[i]][second]
    line = lines[i].rstrip("\n")
    column = line.index(before + marked + after) + len(before)
    caret = " " * column + "^" * (length or len(marked))
    return f"  {kernel.file}:{first + i}:{column + 1}, in {kernel.name}\n    {line}\n    {caret}"


def assert_refused(
    kernel: KernelFunction,
    *,
    message: str,
    at: str | Sequence[tuple[KernelFunction, str]],
    hint: str | None = None,
    notes: Sequence[tuple[str, str]] = (),
    **arguments: Any,
) -> None:
    """Compiling ``kernel`` for ``arguments`` raises exactly this: the message, the text under the caret (or a chain of
    functions and texts, innermost first), notes with their texts, the hint."""
    chain = [(kernel, at)] if isinstance(at, str) else at
    parts = [message, *(place(function, text) for function, text in chain)]
    for note, text in notes:
        parts += [f"note: {note}", place(chain[0][0], text)]
    if hint is not None:
        parts.append(f"help: {hint}")
    with pytest.raises(CompilationError) as caught:
        build(kernel, **arguments)
    assert str(caught.value) == "\n".join(parts)


@pytest.fixture(name="assert_refused")
def assert_refused_fixture() -> Callable[..., None]:
    """`assert_refused`, for tests."""
    return assert_refused


@pytest.fixture(name="build")
def build_fixture() -> Callable[..., ModuleOp]:
    """`build`, for tests: they import nothing from here (pytest's importlib mode)."""
    return build


@pytest.fixture(name="execute")
def execute_fixture() -> Callable[..., None]:
    """`execute`, for tests."""
    return execute
