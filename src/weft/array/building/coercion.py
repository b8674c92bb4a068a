"""What may become an array: other libraries' arrays, numbers, typed constants, nested lists.

What counts as what beside an array of the system is the system's answer (`Semantics.operand`); nothing is decided here.
The system decides the dtype of a list, not NumPy: ``[1, 2]`` is int64 in NumPy, int32 in Triton and DALI.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft.array.building import interop, operations
from weft.array.building.operations import Value
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Input
from weft.array.expression.support import dtype_of, require
from weft.dtypes import DType
from weft.semantics import Constant, Number, Semantics, Type


def is_number(value: object) -> bool:
    """Whether the value is a literal: a Python number, none of NumPy's."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def is_scalar(value: object) -> bool:
    """Whether the value is one of NumPy's scalars, whose dtype was chosen."""
    return isinstance(value, np.generic)


def beside(system: Semantics, data: object) -> Value | Constant | Number | None:
    """What is no `Array` as an operand beside one: what `Semantics.operand` says it counts as; None where the system takes no
    such thing."""
    if is_scalar(data):
        return cast("Constant | Number", system.operand(data))
    if isinstance(data, Constant) or is_number(data):
        return cast("Constant | Number", data)
    listed = system.lists and _is_list(data)
    if not (listed or interop.is_array(data)):
        return None
    array = _read_list(data) if listed else interop.read(data)
    counts = system.operand(array)
    if not isinstance(counts, Type):
        return cast("Constant | Number", counts)
    value = _of_array(system, array, data)
    if type(counts) is not Type:
        return Value(value.node, value.weak, counts)
    return value if counts.dtype == dtype_of(array.dtype) else Value(convert(value.node, counts.dtype))


def to_value(system: Semantics, data: object, dtype: DType | None = None) -> Value:
    """Data as an array of the system, of ``dtype`` where that is given; `TypeError` for what is no data."""
    if is_scalar(data) or interop.is_array(data):
        value = _of_array(system, interop.read(data), data)
        return value if dtype is None else operations.astype(system, value, dtype)
    if isinstance(data, Constant):
        value = operations.constant(system, data)
        return value if dtype is None else operations.astype(system, value, dtype)
    if not (is_number(data) or _is_list(data)):
        raise TypeError(f"asarray takes arrays, numbers and nested lists of numbers, found {type(data).__name__}")
    if dtype is not None:
        system.operand(dtype)
        return Value(_of_numbers(data, require(system.cast(dtype, dtype).result, "asarray was asked for")))
    if is_number(data):
        return operations.literal(system, cast(Number, data))
    return Value(_of_numbers(data, list_dtype(system, data)))


_HELD: Final[dict[tuple[int, np.dtype[Any], bool], tuple[Semantics, DType, DType]]] = {}
"""For systems, NumPy's types and weakness: what the data are, and what the system holds them as."""


def _of_array(system: Semantics, array: NDArray[Any], origin: object) -> Value:
    weak = system.name.startswith("jax") and bool(getattr(origin, "weak_type", False))
    key = (id(system), array.dtype, weak)
    if (found := _HELD.get(key)) is None:
        dtype = dtype_of(array.dtype)
        system.operand(Type(dtype, weak))
        # JAX without 64-bit types narrows what comes in.
        found = _HELD[key] = (system, dtype, system.cast(dtype, dtype).result)
    _, dtype, held = found
    return Value(convert(Input(array.shape, dtype, array=array), held), weak)


def _of_numbers(data: object, dtype: DType) -> Input:
    array = np.asarray(data, dtype.numpy)
    return Input(array.shape, dtype, array=array)


def _read_list(data: object) -> NDArray[Any]:
    try:
        array = np.asarray(cast(Any, data))
    except ValueError:
        raise ValueError("asarray takes lists of equal lengths at each depth") from None
    if array.dtype.kind == "O" and all(is_number(leaf) for leaf in _leaves(data)):
        raise TypeError(f"asarray cannot hold {data!r}: its integers have no common 64-bit type")
    return array


def list_dtype(system: Semantics, data: object) -> DType:
    """The type of a list's elements: what the system makes of its greatest literal; of NumPy scalars, theirs.
    `ValueError` for a ragged list, `TypeError` for integers that no type holds together."""
    array = _read_list(data)
    if not all(is_number(leaf) for leaf in _leaves(data)):
        return dtype_of(array.dtype)
    match array.dtype.kind:
        case "b":
            probes: Sequence[Number] = (True,)
        case "i" | "u":
            probes = sorted((int(array.min()), int(array.max())), key=abs)
        case "f":
            probes = (float(np.abs(array).max(initial=0.0, where=np.isfinite(array))),)
        case _:
            probes = (1j,)
    low, high = min(probes, key=_real), max(probes, key=_real)
    dtype = require(system.literal(probes[-1]).dtype, f"{system.name} makes the list one of")
    if dtype.is_integer and not dtype.min <= low.real <= high.real <= dtype.max:
        dtype = dtype_of(array.dtype)
    return dtype


def _real(number: Number) -> float:
    return number.real


def _is_list(data: object) -> bool:
    return isinstance(data, (list, tuple))


def _leaves(data: object) -> Iterator[object]:
    if _is_list(data):
        for item in cast("Sequence[object]", data):
            yield from _leaves(item)
    else:
        yield data
