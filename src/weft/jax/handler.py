"""What XLA calls: one native function for all kernels. It finds the call by its number and launches the kernel on XLA's buffers.

Nothing is copied: inputs are read where XLA keeps them, as read-only arrays, and outputs are written into XLA's memory. An
exception becomes an error of XLA, which JAX raises as `jax.errors.JaxRuntimeError` with the exception's type and text.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft.jax import frame as frames
from weft.runtime.binding import Grid

TARGET: Final = "weft_kernel"
"""The name of the custom call."""


@dataclass(frozen=True)
class Specification:
    """An array's shape and NumPy dtype."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Input:
    """A parameter that is the input of this number."""

    number: int


@dataclass(frozen=True)
class Output:
    """A parameter that is the output of this number."""

    number: int


@dataclass(frozen=True, eq=False)
class Site:
    """A call of a kernel: all but the arrays. ``values`` has an `Input`, an `Output`, a constant, or a tuple of them for each of
    the parameters ``names``; ``zeroed`` are outputs that are filled with zeros before the launch."""

    kernel: Any
    names: tuple[str, ...]
    values: tuple[Any, ...]
    grid: Grid | Callable[[dict[str, Any]], Any]
    options: Mapping[str, Any]
    inputs: tuple[Specification, ...]
    outputs: tuple[Specification, ...]
    zeroed: tuple[int, ...]

    def key(self) -> Hashable:
        """Equal for calls that do the same. Equal numbers of different types, and zeros of different signs, are different."""
        values: tuple[Hashable, ...] = tuple(
            (name, v if isinstance(v, Input | Output) else (type(v).__qualname__, repr(v), v))
            for name, v in zip(self.names, self.values, strict=True)
        )
        options = tuple(sorted(self.options.items()))
        return self.kernel, values, self.grid, options, self.inputs, self.outputs, self.zeroed

    def launch(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        """Runs the kernel on arrays of the specified shapes."""
        for number in self.zeroed:
            outputs[number].view(np.uint8)[...] = 0
        arrays = {Input: inputs, Output: outputs}
        values = [filled(v, lambda part: _memory(arrays[type(part)][part.number])) for v in self.values]
        self.kernel[self.grid](**dict(zip(self.names, values, strict=True)), **self.options)


def filled(value: Any, array_of: Callable[[Input | Output], Any]) -> Any:
    """A value in which arrays stand for inputs and outputs, in tuples, too."""
    return mapped(value, lambda part: array_of(part) if isinstance(part, Input | Output) else part)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value, or a tuple whose items, at any depth, are changed. Named tuples keep their class."""
    if not isinstance(value, tuple):
        return change(value)
    items = [mapped(item, change) for item in cast("tuple[Any, ...]", value)]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _memory(array: NDArray[Any]) -> NDArray[Any]:
    """An array as a kernel takes memory; an array without dimensions would be a number to it."""
    return array.reshape(1) if array.ndim == 0 else array


_sites: Final[list[Site]] = []
_numbers: Final[dict[Hashable, int]] = {}
_lock: Final = threading.Lock()


def number_of(site: Site) -> int:
    """The number by which the handler finds the call. Calls that do the same share it."""
    with _lock:
        try:
            known = _numbers.get(site.key())
        except TypeError:  # a constant cannot be hashed
            known = None
        else:
            _numbers.setdefault(site.key(), len(_sites))
        if known is None:
            known = len(_sites)
            _sites.append(site)
        return known


@cache
def register() -> None:
    """Tells XLA about the handler, once in a process."""
    jax: Any = importlib.import_module("jax")
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_handle), platform="cpu")


@frames.HANDLER
def _handle(address: int) -> int | None:
    frame = frames.CallFrame.from_address(address)
    if frames.answer_metadata(frame):
        return None
    try:
        if (called := frames.read(frame)) is not None:
            _run(_sites[called.number], called)
    except BaseException as error:  # XLA is no place for an exception
        return frames.error(frame, f"{type(error).__name__}: {error}")
    return None


def _run(site: Site, called: frames.Call) -> None:
    """Runs a call, for each element of the dimensions that `jax.vmap` has put before those of its arrays."""
    inputs = [_array(a, s, False) for a, s in zip(called.arguments, site.inputs, strict=True)]
    outputs = [_array(a, s, True) for a, s in zip(called.results, site.outputs, strict=True)]
    pairs = [*zip(inputs, site.inputs, strict=True), *zip(outputs, site.outputs, strict=True)]
    batches = [array.shape[: array.ndim - len(specification.shape)] for array, specification in pairs]
    for index in np.ndindex(np.broadcast_shapes(*batches)):
        site.launch(*[[_element(array, index) for array in arrays] for arrays in (inputs, outputs)])


def _element(array: NDArray[Any], index: tuple[int, ...]) -> NDArray[Any]:
    """The part of an array at an index of its first dimensions; those of size 1 are repeated."""
    return array[tuple(min(i, size - 1) for i, size in zip(index, array.shape, strict=False)) + (...,)]


def _array(buffer: frames.Array, specification: Specification, writeable: bool) -> NDArray[Any]:
    """The array in a buffer of XLA, without a copy."""
    size = math.prod(buffer.shape) * specification.dtype.itemsize
    if not size:
        return np.empty(buffer.shape, specification.dtype)
    memory: Any = (ctypes.c_char * size).from_address(buffer.address)
    array: NDArray[Any] = np.frombuffer(memory, specification.dtype).reshape(buffer.shape)
    array.flags.writeable = writeable
    return array
