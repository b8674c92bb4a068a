"""From the values of a launch to a specialisation key, and the bytes that the kernel reads.

A launch of a compiled kernel must cost a few microseconds, so each value becomes one *token*, a string or a pair with
a cheap hash, and the tuple of tokens is the key under which compiled code is found. Only where none is found are
tokens turned into a `Signature`. The rules (Triton's, with NumPy's types):

- array: dtype, and whether the address is a multiple of 16 (``*float32``, ``*float32:16``);
- bool: ``bool``; float: ``float32``; int: ``int32``, else ``int64``, else ``uint64``, whichever holds it first, and
  whether it is a multiple of 16 (``int32:16``); NumPy scalars count as the Python number they hold;
- the int 1 and None are compile-time constants; so is the value of every ``tl.constexpr`` parameter;
- a tuple is its items, each of them by these rules; functions, types and strings in it are compile-time constants;
- an annotation with a dtype (``stride: tl.int64``) turns the rule about 1 off, and tl.float64 makes floats ``float64``;
- `do_not_specialize` turns the rules about 1 and about multiples of 16 off for a parameter.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.signature import Argument, ConstantArgument, PointerArgument, ScalarArgument, TupleParts, part_names
from weft.frontend.source import KernelFunction
from weft.language.core import ConstexprFunction, constexpr
from weft.runtime.addresses import address_of
from weft.runtime.descriptors import TensorDescriptor, expanded
from weft.runtime.memory import Memory, MemoryRefused, is_numpy_array, is_numpy_scalar, memory_of

Token: TypeAlias = Hashable
Slot: TypeAlias = int | float

_ALIGNMENT: Final = 16
_ONE: Final = (int, 1)
_NONE: Final = (type(None), None)

_POINTERS: Final[dict[DType, tuple[str, str]]] = {d: (f"*{d}", f"*{d}:16") for d in dtypes.ELEMENTS}
_INTEGERS: Final[tuple[tuple[DType, str, str], ...]] = tuple(
    (d, f"{d}", f"{d}:16") for d in (dtypes.int32, dtypes.int64, dtypes.uint64)
)
"""Unaligned and aligned, not divisible and divisible."""
_INT32: Final = _INTEGERS[0][1:]
_INT32_MIN: Final = dtypes.int32.min
_INT32_MAX: Final = dtypes.int32.max

_MEANING: Final[dict[Token, tuple[Argument, str]]] = {
    "bool": (ScalarArgument(dtypes.bool_), "q"),
    "float32": (ScalarArgument(dtypes.float32), "f4x"),
    "float64": (ScalarArgument(dtypes.float64), "d"),
    **{token: (PointerArgument(d, bool(i)), "Q") for d, pair in _POINTERS.items() for i, token in enumerate(pair)},
    **{
        token: (ScalarArgument(d, bool(i)), "q" if d.signed else "Q")
        for d, *pair in _INTEGERS
        for i, token in enumerate(pair)
    },
}
"""Token -> what it says in a signature, and the `struct` code of its slot. Tokens of constants are pairs and not
here."""

TOKENS: Final[dict[Argument, Token]] = {argument: token for token, (argument, _) in _MEANING.items()}
"""What a signature says of an argument that is no constant -> its token."""

_WITH_NUMPY: Final = tuple(d for d in dtypes.ELEMENTS if not d.saturates)
_PLAIN: Final[dict[np.dtype[Any], tuple[str, str]]] = {d.numpy: _POINTERS[d] for d in _WITH_NUMPY}

_OF_NUMPY: Final[dict[Any, DType]] = {spelled: d for d in _WITH_NUMPY for spelled in (d.numpy, d.numpy.type)}
"""``np.float32`` and ``np.dtype("float32")`` -> the dtype."""

CONSTANT_TYPES: Final = frozenset({int, bool, str, type(None)})
"""Types whose equal values are interchangeable, which is not so for floats (0.0 and -0.0)."""


class Wide(float):
    """A slot of float64."""


class Parameter(NamedTuple):
    """One parameter of a kernel: ``specialise`` allows the rules about 1, ``align`` those about multiples of 16; floats are
    float64 where it is ``wide``."""

    name: str
    constexpr: bool = False
    specialise: bool = True
    align: bool = True
    wide: bool = False


class Bound:
    """The arguments of one launch: ``key`` (one token per parameter), ``slots`` (one number per run-time argument),
    ``extents`` (per array its first byte and one past its last, or None), ``read_only`` (parameters),
    ``views`` (the arrays that may be strided, with their parameters), and the ``values`` with their ``parameters``. Views and
    values keep the memory alive. A descriptor stands there as its parts."""

    __slots__ = ("key", "slots", "extents", "parameters", "read_only", "values", "views")

    def __init__(self, values: Iterable[Any] = (), parameters: Sequence[Parameter] = ()) -> None:
        self.values = values
        self.parameters = parameters
        self.key: list[Token] = []
        self.slots: list[Slot] = []
        self.extents: list[tuple[int, int] | None] = []
        self.read_only: tuple[str, ...] = ()
        self.views: list[tuple[str, Memory]] = []


def bind(kernel: str, parameters: Sequence[Parameter], values: Iterable[Any]) -> Bound:
    """Classifies the values, one for each parameter; `TypeError` or `ValueError` for those that a kernel cannot
    take."""
    bound = Bound(values, parameters)
    key, slots, extents = bound.key.append, bound.slots.append, bound.extents.append
    for parameter, value in zip(parameters, values, strict=True):
        kind = cast("type[object]", type(value))
        if parameter.constexpr:
            key((kind, value) if kind in CONSTANT_TYPES else constant_token(kernel, parameter.name, value))
        elif (
            kind is np.ndarray and value.flags.carray and (size := value.nbytes) and (tokens := _PLAIN.get(value.dtype))
        ):
            address = address_of(value)
            key(tokens[parameter.align and address % _ALIGNMENT == 0])
            slots(address)
            extents((address, address + size))
        elif kind is int and _INT32_MIN <= value <= _INT32_MAX and value != 1:
            key(_INT32[parameter.align and value % _ALIGNMENT == 0])
            slots(value)
        elif kind is float and not parameter.wide:
            key("float32")
            slots(value)
        elif isinstance(value, (TensorDescriptor, tuple)):
            return bind(kernel, *_expanded(parameters, values))
        else:
            _bind_other(kernel, parameter, value, bound)
    return bound


def _expanded(parameters: Sequence[Parameter], values: Iterable[Any]) -> tuple[list[Parameter], list[Any]]:
    """Parameters and values with each descriptor and each tuple replaced by its parts."""
    result: tuple[list[Parameter], list[Any]] = ([], [])
    for parameter, value in zip(parameters, values, strict=True):
        whole: list[tuple[str, bool, Any]] = [(parameter.name, parameter.constexpr, value)]
        if isinstance(value, TensorDescriptor) and not parameter.constexpr:
            whole = expanded(parameter.name, value)
        elif isinstance(value, tuple) and not parameter.constexpr:
            whole = _items(parameter.name, cast("tuple[Any, ...]", value))
        for name, constant, part in whole:
            result[0].append(parameter._replace(name=name, constexpr=constant))
            result[1].append(part)
    return result


def _items(name: str, value: tuple[Any, ...]) -> list[tuple[str, bool, Any]]:
    """The arguments that a tuple for the parameter ``name`` becomes: what is known at compile time, and each item, which is a
    constant where no array or number can be meant."""
    kind = cast("type[Any]", type(value)) if hasattr(value, "_make") else None
    names = part_names(name, len(value))
    parts = [(part, _is_constant(item), item) for part, item in zip(names, value, strict=True)]
    return [(name, True, TupleParts(len(value), kind)), *parts]


def _is_constant(item: Any) -> bool:
    return isinstance(item, (constexpr, str, type, DType, KernelFunction, ConstexprFunction, FunctionType))


def _bind_int(kernel: str, parameter: Parameter, value: int, bound: Bound) -> None:
    if value == 1 and parameter.specialise:
        bound.key.append(_ONE)
        return
    for dtype, token, divisible in _INTEGERS:
        if dtype.min <= value <= dtype.max:
            bound.key.append(divisible if parameter.align and value % _ALIGNMENT == 0 else token)
            bound.slots.append(value)
            return
    raise OverflowError(
        f"kernel '{kernel}': parameter '{parameter.name}' is {value}, which fits neither int64 nor uint64"
    )


def _bind_other(kernel: str, parameter: Parameter, value: Any, bound: Bound) -> None:
    if is_numpy_array(value):
        _bind_array(kernel, parameter, value, bound)
        return
    if isinstance(value, constexpr):
        value = value.value
    if is_numpy_scalar(value) and isinstance(number := value.item(), (bool, int, float)):
        value = number
    if value is None:
        bound.key.append(_NONE)
    elif isinstance(value, bool):
        bound.key.append("bool")
        bound.slots.append(value)
    elif isinstance(value, int):
        _bind_int(kernel, parameter, int(value), bound)
    elif isinstance(value, float):
        bound.key.append("float64" if parameter.wide else "float32")
        bound.slots.append(Wide(value) if parameter.wide else value)
    else:
        _bind_array(kernel, parameter, value, bound)


def _bind_array(kernel: str, parameter: Parameter, value: Any, bound: Bound) -> None:
    try:
        memory = memory_of(value)
    except MemoryRefused as reason:
        raise TypeError(f"kernel '{kernel}': parameter '{parameter.name}': {reason}") from None
    if memory is None:
        raise _unexpected(kernel, parameter.name, value)
    bound.key.append(_POINTERS[memory.dtype][parameter.align and memory.address % _ALIGNMENT == 0])
    bound.slots.append(memory.address)
    bound.extents.append(memory.extent)
    bound.views.append((parameter.name, memory))
    if memory.read_only:
        bound.read_only += (parameter.name,)


def _unexpected(kernel: str, name: str, value: Any) -> TypeError:
    advice = ""
    if isinstance(value, list):
        advice = "; pass an array, as numpy.asarray makes it, or a tuple of arguments"
    elif isinstance(value, (str, type, DType)) or callable(value):
        advice = f"; a compile-time value needs the annotation '{name}: tl.constexpr'"
    return TypeError(
        f"kernel '{kernel}': parameter '{name}': expected an array, an int, a float, a bool or None, "
        f"found {_describe(value)}{advice}"
    )


def _describe(value: Any) -> str:
    if is_numpy_array(value):
        return f"a NumPy array of {value.dtype} with shape {value.shape}"
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 40 else type(value).__name__


def constant_token(kernel: str, name: str, value: Any) -> Token:
    """A hashable that tells apart the constants that mean different things: 1, True and 1.0; 0.0 and -0.0."""
    if isinstance(value, constexpr):
        return constant_token(kernel, name, value.value)
    kind = cast("type[object]", type(value))
    if isinstance(value, tuple):
        return (kind, tuple(constant_token(kernel, name, item) for item in cast("tuple[Any, ...]", value)))
    if is_numpy_scalar(value) and isinstance(number := value.item(), (bool, int, float)):
        return (kind, constant_token(kernel, name, number))
    if isinstance(value, float):
        return (kind, value.hex())
    array_like = not isinstance(value, type) and any(hasattr(value, a) for a in ("__array_interface__", "__dlpack__"))
    try:
        hash(value)
    except TypeError:
        array_like = array_like or not isinstance(value, Hashable)
    if array_like and not is_numpy_scalar(value):
        raise TypeError(
            f"kernel '{kernel}': parameter '{name}' is a tl.constexpr: expected a hashable compile-time value, "
            f"found {_describe(value)}"
        )
    return (kind, value)


def specialised(kernel: str, signature: Mapping[str, Argument], apart: bool) -> Bound:
    """The arguments of launches with a signature, without their values: to compile for, not to launch. ``apart`` says that no two
    arrays share a byte."""
    values = [argument.value if isinstance(argument, ConstantArgument) else None for argument in signature.values()]
    parameters = [Parameter(name, isinstance(argument, ConstantArgument)) for name, argument in signature.items()]
    bound = Bound(values, parameters)
    bound.key = [
        constant_token(kernel, name, argument.value) if isinstance(argument, ConstantArgument) else TOKENS[argument]
        for name, argument in signature.items()
    ]
    bound.extents = [] if apart else [None, None]
    return bound


def disjoint(extents: Sequence[tuple[int, int] | None]) -> bool:
    """Whether no two arrays share a byte, as far as their extents tell; an unknown extent may overlap anything."""
    if len(extents) < 2:
        return True
    known = [extent for extent in extents if extent is not None]
    return len(known) == len(extents) and apart([low for low, _ in known], [high for _, high in known])


def apart(lows: list[int], highs: list[int]) -> bool:
    """Whether no two ranges ``[low, high)`` share a byte, given where they begin and where they end; sorts both lists.

    Ranges are apart if and only if, with ends and beginnings sorted each by themselves, each end but the last is at most the
    next beginning. Where that fails, two ranges hold the byte at that beginning: more have begun than have ended. Empty ranges
    share nothing.
    """
    lows.sort()
    highs.sort()
    return all(map(operator.le, highs, lows[1:]))


def signature_of(parameters: Sequence[Parameter], key: Sequence[Token], values: Sequence[Any]) -> dict[str, Argument]:
    """What the frontend compiles for: the meaning of each token, and for constants the value itself."""
    return {
        parameter.name: _MEANING[token][0] if token in _MEANING else ConstantArgument(_unwrapped(value))
        for parameter, token, value in zip(parameters, key, values, strict=True)
    }


def _unwrapped(value: Any) -> Any:
    """A compile-time value as the frontend knows it: NumPy's types are dtypes, its scalars Python's numbers."""
    if isinstance(value, constexpr):
        return _unwrapped(value.value)
    if cast("type[object]", type(value)) is tuple:  # a named tuple stays what it is
        return tuple(map(_unwrapped, value))
    if isinstance(value, (type, np.dtype)):
        return _OF_NUMPY.get(value, cast("Any", value))
    if is_numpy_scalar(value) and isinstance(number := value.item(), (bool, int, float)):
        return number
    return value


def slot_format(key: Iterable[Token]) -> str:
    """The `struct` codes of a launch's slots, 8 bytes each."""
    return "".join(_MEANING[token][1] for token in key if token in _MEANING)


def to_float32(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with floats (not `Wide` ones) beyond float32's range replaced by infinities, as the conversion gives
    (`struct` refuses them)."""
    return [
        ctypes.c_float(slot).value if isinstance(slot, float) and not isinstance(slot, Wide) else slot for slot in slots
    ]
