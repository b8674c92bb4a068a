"""Signatures as text: what ``jit_cache_hook`` is told of a compiled kernel, and what ``kernel.preload`` compiles again.

The text is JSON. Types are written as launches know them (``*float32:16``, ``int32``), compile-time values as `_encoded` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.signature import Argument, ConstantArgument, DescriptorBlock, TupleParts
from weft.language.core import constexpr
from weft.runtime.arguments import TOKENS


class Kernels:
    """The kernels of this process, as long as programs keep them."""

    def __init__(self) -> None:
        self._kernels: WeakValueDictionary[tuple[str, int], Any] = WeakValueDictionary()
        self._numbers = count()

    def add(self, kernel: Any) -> None:
        """Enters a kernel; others of its name stay."""
        self._kernels[key_of(kernel), next(self._numbers)] = kernel

    def all(self) -> list[Any]:
        """All of them, oldest first."""
        return [kernel for _, kernel in sorted(self._kernels.items(), key=lambda item: item[0][1])]

    def named(self, key: str) -> Any | None:
        """The newest kernel of a module and name (`key_of`), None where there is none."""
        return next((kernel for kernel in reversed(self.all()) if key_of(kernel) == key), None)


KERNELS: Final = Kernels()
"""A kernel that is an argument of another is written by its module and name."""

_ARGUMENTS: Final = {token: argument for argument, token in TOKENS.items()}


class Specialization(NamedTuple):
    """What a kernel was compiled for."""

    name: str
    target: dict[str, Any]
    apart: bool
    options: dict[str, Any]
    signature: dict[str, Argument]


def written(found: Specialization) -> str:
    """The text. Values without a form of their own are written as their `str`; `read` refuses those."""
    arguments = {
        name: _encoded(a.value) if isinstance(a, ConstantArgument) else TOKENS[a] for name, a in found.signature.items()
    }
    return json.dumps(found._asdict() | {"signature": arguments}, default=str)


def read(text: str) -> Specialization:
    """What a text says. Raises: `ValueError` for a compile-time value that texts cannot hold, `RuntimeError` for a kernel that
    this process has not."""
    fields: dict[str, Any] = json.loads(text)
    signature: dict[str, Argument] = {
        name: _ARGUMENTS[given] if isinstance(given, str) else ConstantArgument(_decoded(name, given))
        for name, given in fields["signature"].items()
    }
    fields["signature"] = signature
    return Specialization(**fields)


def _encoded(value: Any) -> dict[str, Any]:
    """A compile-time value as one item: its form and what the form needs."""
    match value:
        case None | bool() | int() | float() | str():
            return {"value": value}
        case DType():
            return {"dtype": value.name}
        case constexpr():
            return {"constexpr": _encoded(value.value)}
        case DescriptorBlock():
            return {"block": tuple(value)}
        case TupleParts(count, None):
            return {"parts": count}
        case tuple() if not hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
            return {"tuple": [_encoded(item) for item in value]}  # pyright: ignore[reportUnknownVariableType]
        case _:
            key = key_of(value)
            return {"text": str(value)} if KERNELS.named(key) is None else {"jit_function": key}


def _decoded(name: str, given: Mapping[str, Any]) -> Any:
    ((form, value),) = given.items()
    match form:
        case "dtype":
            return dtypes.named(value)
        case "constexpr":
            return constexpr(_decoded(name, value))
        case "block":
            return DescriptorBlock(tuple(value[0]), value[1])
        case "parts":
            return TupleParts(value)
        case "tuple":
            return tuple(_decoded(name, item) for item in value)
        case "jit_function" if (kernel := KERNELS.named(value)) is not None:
            return kernel
        case "jit_function":
            raise RuntimeError(f"Unable to resolve JITFunction {value} for preload")
        case "text":
            raise ValueError(f"parameter '{name}' is {value}, which a text cannot hold: launch the kernel instead")
        case _:
            return value


def key_of(kernel: Any) -> str:
    """A kernel's module and name."""
    function = getattr(kernel, "fn", kernel)
    return f"{getattr(kernel, 'module', '')}:{getattr(function, '__qualname__', '')}"
