"""Kernels in Python files, and the signatures that command lines give for them.

Signatures are spelled as Triton's own compiler takes them (``*fp32:16, i32, 1024``): one entry a parameter, in order.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.types import named

if TYPE_CHECKING:
    from weft.frontend import Argument, KernelFunction, Parameter

_FORM = "expected a type such as *fp32:16 or i32, or a constant"


def split_name(file: str) -> tuple[Path, str | None]:
    """``FILE.py:NAME`` as path and name. `ValueError` where the file is neither Python nor tile IR."""
    stem, colon, name = file.rpartition(".py:")
    path = Path(f"{stem}.py" if colon else file)
    if path.suffix not in (".py", ".mlir"):
        raise ValueError(f"'{file}' is no file of kernels, expected FILE.py, FILE.py:KERNEL or FILE.mlir")
    return path, name if colon else None


def find_kernel(path: Path, name: str | None) -> KernelFunction:
    """Run the file, and return its kernel of that name, or its only one. `ValueError`, `OSError`."""
    from weft.runtime.jit import JITFunction

    found = {key: value for key, value in load(path).items() if isinstance(value, JITFunction)}
    own = [key for key, value in found.items() if value.fn.__code__.co_filename == str(path.resolve())]
    if name is None:
        if len(own) == 1:
            return found[own[0]]
        if not own:
            raise ValueError(f"{path} has no kernel; a kernel is a function with @weft.jit")
        raise ValueError(f"{path} has the kernels {', '.join(own)}; say which, such as {path}:{own[0]}")
    if name not in found:
        near = difflib.get_close_matches(name, found, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(own) or 'none'}"
        raise ValueError(f"{path} has no kernel '{name}'; {hint}")
    return found[name]


def load(path: Path) -> dict[str, Any]:
    """The names that a Python file defines; as with ``python FILE``, modules beside it can be imported."""
    path = path.resolve()
    path.open().close()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} raises {type(error).__name__} when it is loaded: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    return vars(module)


def read_signature(kernel: KernelFunction, spelled: str | None) -> dict[str, Argument]:
    """The signature of a kernel from its spelling. `ValueError` names the entry that is wrong."""
    parameters = kernel.parameters
    shown = ", ".join(f"{p.name}: constexpr" if p.is_constexpr else p.name for p in parameters)
    if spelled is None:
        raise ValueError(f"--signature is missing; {kernel.name} has the parameters ({shown})")
    entries = [entry.strip() for entry in spelled.split(",")] if spelled.strip() else []
    if len(entries) > len(parameters):
        raise ValueError(f"--signature has {len(entries)} entries; {kernel.name} has the parameters ({shown})")
    return {p.name: _argument(entry, p) for p, entry in zip(parameters, entries, strict=False)}


def _argument(entry: str, parameter: Parameter) -> Argument:
    from weft.frontend import ConstantArgument, PointerArgument, ScalarArgument

    try:
        value: object = ast.literal_eval(entry)
    except (ValueError, SyntaxError):
        pass
    else:
        if value is None or isinstance(value, (bool, int, float, str)):
            return ConstantArgument(value)
    name, colon, hint = entry.partition(":")
    where = f"--signature: '{entry}' for {parameter.name}"
    if colon and hint != "16":
        raise ValueError(f"{where}: the hint is ':{hint}', expected ':16'")
    try:
        dtype = named(name.removeprefix("*"))
    except ValueError as error:
        raise ValueError(f"{where}: {error}; {_FORM}") from None
    if name.startswith("*"):
        return PointerArgument(dtype, aligned=bool(colon))
    if parameter.is_constexpr:
        return ConstantArgument(dtype)
    return ScalarArgument(dtype, divisible=bool(colon))
