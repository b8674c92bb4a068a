"""What an expression of a kernel evaluates to: a `Tensor`, or an ordinary Python object known at compile time.

Compile-time values are not wrapped: they stay what they are (int, float, tuple, dtype, function, ...), so
Python's own operators fold them, and the question "is this known now?" is one ``isinstance``.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np
from xdsl.ir import Attribute, SSAValue

from weft.dtypes import DType
from weft.frontend.compound import Compound
from weft.frontend.errors import CompilationError, Note
from weft.frontend.source import KernelFunction
from weft.ir import types
from weft.language.core import MAX_ELEMENTS, block_type, constexpr, pointer_type

Value: TypeAlias = Any
"""A `Tensor`, or any compile-time Python object."""

Number: TypeAlias = bool | int | float


class Tensor:
    """A value of the run time: an SSA value with the facts its IR type spells. ``dtype`` is the element's, of pointers
    the dtype pointed to; scalars have the empty shape. ``weak``: no user chose the dtype, where the semantics has such types
    (`weft.semantics.core.Type`); the IR does not know."""

    __slots__ = ("dtype", "is_pointer", "shape", "ssa", "weak")

    def __init__(
        self, ssa: SSAValue, dtype: DType, shape: tuple[int, ...], is_pointer: bool = False, weak: bool = False
    ) -> None:
        self.ssa = ssa
        self.dtype = dtype
        self.shape = shape
        self.is_pointer = is_pointer
        self.weak = weak

    @staticmethod
    def of(ssa: SSAValue) -> Tensor:
        """Read the facts off the IR type."""
        return Tensor(ssa, types.dtype_of(ssa), types.shape_of(ssa), types.is_pointer(ssa))

    @property
    def element(self) -> DType | pointer_type:
        """``x.dtype`` as kernels see it."""
        return pointer_type(self.dtype) if self.is_pointer else self.dtype

    def typed(self, weak: bool) -> Tensor:
        """The same value, weakly typed or not."""
        return self if self.weak is weak else Tensor(self.ssa, self.dtype, self.shape, self.is_pointer, weak)

    def __str__(self) -> str:
        shown = f"{self.element}{list(self.shape)}" if self.shape else f"{self.element} scalar"
        return f"{shown} (weak)" if self.weak else shown


@dataclass(frozen=True)
class Undefined:
    """What a variable holds that not every path defines: the error that using it is."""

    message: str
    hint: str
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Method:
    """A function of the language taken as an attribute of a value: ``x.sum``."""

    function: Any
    receiver: Value


_BUILTIN_CONSTANTS: Final = (bool, int, float)


def is_number(value: Value) -> bool:
    """Whether ``value`` is a compile-time number."""
    return isinstance(value, _BUILTIN_CONSTANTS)


def is_tuple(value: Value) -> TypeGuard[tuple[Value, ...]]:
    """Whether ``value`` is a tuple (``isinstance`` alone leaves the type checker in the dark about its items)."""
    return isinstance(value, tuple)


def is_record(value: Value) -> bool:
    """Whether kernels may read attributes of an object: a class, an enum's member, a dataclass, a named tuple."""
    return isinstance(value, (type, enum.Enum)) or dataclasses.is_dataclass(value) or hasattr(value, "_fields")


def is_named_tuple(value: Any) -> TypeGuard[Callable[..., tuple[Value, ...]]]:
    """Whether ``value`` is a class of named tuples."""
    if not isinstance(value, type) or not hasattr(value, "_fields"):
        return False
    made: type[Any] = value
    return issubclass(made, tuple)


def tuple_like(value: tuple[Value, ...], items: Iterable[Value]) -> tuple[Value, ...]:
    """``items`` as a tuple of the class of ``value``, whose names a named tuple keeps."""
    make: Callable[[Iterable[Value]], tuple[Value, ...]] = getattr(value, "_make", tuple)
    return make(items)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def as_value(value: Any) -> Value:
    """An object from outside as kernels see it: a constexpr is what it wraps, lists are tuples, NumPy's
    scalars are Python's."""
    if isinstance(value, constexpr):
        return as_value(value.value)
    if isinstance(value, np.generic):
        return value.item()  # pyright: ignore[reportUnknownVariableType]
    if is_tuple(value):
        return tuple_like(value, map(as_value, value))
    if _is_list(value):
        return tuple(map(as_value, value))
    return value


def is_runtime(value: Value) -> bool:
    """Whether ``value`` is, or holds, something of the run time."""
    return isinstance(value, (Tensor, Compound)) or (is_tuple(value) and any(map(is_runtime, value)))


def describe(value: Value) -> str:
    """A value in a message: type of the run-time ones, the Python object otherwise."""
    match value:
        case Tensor() | Compound():
            return str(value)
        case _ if is_tuple(value):
            return f"({', '.join(map(describe, value))}{',' if len(value) == 1 else ''})"
        case KernelFunction():
            return f"the function {value.name}"
        case ModuleType():
            return f"the module {value.__name__}"
        case Method():
            return f"the method {value.function.__name__}"
        case FunctionType() | type():
            return f"the function {value.__name__}" if isinstance(value, FunctionType) else f"the type {value.__name__}"
        case DType() | pointer_type() | block_type():
            return f"the dtype {value}"
        case _:
            return repr(value)


@lru_cache(maxsize=4096)
def ir_type(dtype: DType, shape: tuple[int, ...], is_pointer: bool = False) -> Attribute:
    """The IR type of a tile; `CompilationError` where the language forbids the shape."""
    check_shape(shape)
    return types.tensor(types.pointer(dtype) if is_pointer else dtype, shape)


def check_shape(shape: Sequence[int]) -> None:
    """Sizes are powers of two, and at most 2**20 elements in all."""
    for i, size in enumerate(shape):
        if size < 1 or size & (size - 1):
            # The only advice that is always right: round up, and mask what is beyond.
            up = 1 << max(size - 1, 0).bit_length()
            which = f"dimension {i} of shape {tuple(shape)}" if len(shape) > 1 else "a tile"
            raise CompilationError(
                f"sizes of tiles are powers of two, but {which} has {size} elements",
                hint=f"use {up} and mask the elements beyond {size}" if size > 0 else "the smallest size is 1",
            )
    if math.prod(shape) > MAX_ELEMENTS:
        raise CompilationError(
            f"a tile of shape {tuple(shape)} has {math.prod(shape)} elements, more than the {MAX_ELEMENTS} that tiles may have",
            hint="let each program take a smaller tile, or loop over parts of it",
        )
