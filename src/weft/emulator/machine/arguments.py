"""A launch's arguments: NumPy arrays become allocations, numbers and structures become the bytes of their parameter.

Arrays that share memory (views of one array) share it in the emulator: each connected range of the host's memory is one
allocation, and a parameter points into it. The ranges are copied in before the launch and back after it; a launch that faults
leaves them as they were. Arrays that a kernel reaches through addresses in memory are such ranges without a parameter.

A structure passed by value is a ctypes structure, whose layout is C's, or a scalar of a structured NumPy dtype, whose layout is
C's with ``align=True``. Its bytes are passed as they are: pointers in it are numbers, which a `DeviceMemory` gives.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import LaunchError
from weft.emulator.machine.device_memory import DeviceMemory, Scratch, bounds, owner
from weft.emulator.machine.symbols import size_of
from weft.emulator.memory.arena import PAGE
from weft.emulator.ptx.syntax import Function, Variable
from weft.emulator.ptx.types import TYPES
from weft.emulator.texture import Surface, Texture


@runtime_checkable
class Encoded(Protocol):
    """An argument that lies over an array and is passed as bytes that name its address: a tensor map."""

    @property
    def array(self) -> NDArray[Any]:
        """What it lies over."""
        ...

    def encode(self, address: int) -> bytes:
        """The bytes of the parameter, given where ``array`` begins."""
        ...


@dataclass
class Range:
    """Bytes of the host from address ``low`` to ``high``."""

    low: int
    high: int
    skew: int
    """How far from a multiple of a page it begins, in the array it is a view of: alignment that CUDA's allocation would give."""
    number: int
    """Of the first argument that has it."""
    name: str
    writeable: bool
    defined: bool
    reached: bool = False
    """Whether addresses of the host in it are meant where a program uses them (`weft.emulator.memory.host`)."""
    device: int | None = None
    """The address of its first byte, where a `DeviceMemory` has it."""

    def view(self) -> NDArray[np.uint8]:
        """The host's bytes themselves."""
        size = self.high - self.low
        if not size:
            return np.zeros(0, np.uint8)
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(self.low))


class Arguments:
    """The arguments of a kernel, checked against its parameters, and the arrays of ``memory``, which it reaches by address.
    Raises: LaunchError."""

    def __init__(
        self, kernel: Function, values: Sequence[Any], memory: Sequence[NDArray[Any]] | DeviceMemory = ()
    ) -> None:
        self.kernel = kernel
        expected = len(kernel.parameters)
        if len(values) != expected:
            names = ", ".join(f"{v.name} .{v.type}" + (f"[{v.count}]" if v.array else "") for v in kernel.parameters)
            plural = "" if expected == 1 else "s"
            message = f"{kernel.name}() takes {expected} argument{plural}, got {len(values)}"
            raise LaunchError(f"{message}; its parameters: {names}" if names else message)
        self.values = list(values)
        self.kept: list[Any] = [memory]
        """What must live until the launch is over."""
        device = memory if isinstance(memory, DeviceMemory) else DeviceMemory()
        found: list[Range] = []
        for i, (parameter, value) in enumerate(zip(kernel.parameters, values, strict=True)):
            array = _array(value)
            if array is not None:
                self._check_array(i, parameter, value, array)
                self.kept.append(array)
                low, high = bounds(array)
                if self._is_placed(f"argument {i}", low, high, device):
                    continue
                defined = not isinstance(value, Scratch)
                skew = (low - owner(array)) % PAGE
                found.append(Range(low, high, skew, i, f"argument {i}", bool(array.flags.writeable), defined))
        for i, array in enumerate(() if isinstance(memory, DeviceMemory) else memory):
            self.kept.append(array)
            low, high = bounds(array)
            number = len(self.values) + i
            writeable = bool(array.flags.writeable)
            found.append(Range(low, high, low % PAGE, number, f"memory {i}", writeable, defined=True, reached=True))
        placed = [
            Range(
                p.low,
                p.high,
                p.address % PAGE,
                i,
                p.name,
                bool(p.array.flags.writeable),
                p.defined,
                device=p.address,
            )
            for i, p in enumerate(device.placed)
        ]
        self.ranges = placed + _merge(found)
        self.multicasts = device.multicasts
        """The multicast objects over arrays of ``memory``."""

    @staticmethod
    def _is_placed(name: str, low: int, high: int, device: DeviceMemory) -> bool:
        """Whether a `DeviceMemory` has an argument's bytes."""
        if device.around(low, high) is not None:
            return True
        for other in device.placed:
            if low < other.high and other.low < high:
                whole = "add the array that both are views of"
                raise LaunchError(f"{name} has bytes of '{other.name}' of the DeviceMemory, and others; {whole}")
        return False

    def _check_array(self, i: int, parameter: Variable, value: Any, array: NDArray[Any]) -> None:
        if array.dtype.hasobject:
            raise LaunchError(f"argument {i} is an array of Python objects, which have no bytes a kernel could read")
        if size_of(parameter) != 8 and not isinstance(value, Encoded):
            message = f"argument {i} is an array, but parameter {parameter.name} is no pointer: it has {size_of(parameter)} bytes"
            raise LaunchError(message)

    def encode(self, starts: Sequence[int]) -> list[bytes]:
        """The bytes of each parameter, given the address at which each of ``ranges`` was placed."""
        return [
            self._encode(i, v, x, starts)
            for i, (v, x) in enumerate(zip(self.kernel.parameters, self.values, strict=True))
        ]

    def _encode(self, i: int, parameter: Variable, value: Any, starts: Sequence[int]) -> bytes:
        size = size_of(parameter)
        array = _array(value)
        if array is not None:
            address = array.ctypes.data
            at = next(j for j, r in enumerate(self.ranges) if r.low <= address < max(r.high, r.low + 1))
            start = self.ranges[at].device
            place = (starts[at] if start is None else start) + address - self.ranges[at].low
            pointer = isinstance(value, np.ndarray | Scratch)
            data = place.to_bytes(8, "little") if pointer else value.encode(place)
        elif isinstance(value, bytes | bytearray):
            data = bytes(value)
        elif isinstance(value, Texture | Surface):
            self.kept.append(value)
            data = value.handle.to_bytes(8, "little")
        elif (structure := _structure(value)) is not None:
            data = structure
            if len(data) != size:
                raise LaunchError(_misfit(i, parameter, value, size))
        elif (scalar := _scalar(value)) is not None:
            data = scalar
        elif isinstance(value, bool | int):
            data = self._integer(i, parameter, int(value), size)
        elif isinstance(value, float):
            data = self._float(i, parameter, value)
        else:
            kind = type(value).__name__
            message = f"argument {i} is of type {kind}; a kernel takes NumPy arrays, numbers, structures and bytes"
            raise LaunchError(message)
        if len(data) != size:
            raise LaunchError(f"argument {i} has {len(data)} bytes, but parameter {parameter.name} has {size}")
        return data

    def _integer(self, i: int, parameter: Variable, value: int, size: int) -> bytes:
        kind = TYPES.get(parameter.type)
        if kind is not None and kind.kind == "f" and not parameter.array:
            return self._float(i, parameter, float(value))
        if parameter.array:
            raise LaunchError(
                f"argument {i} is a number, but parameter {parameter.name} is a structure of {size} bytes"
            )
        if not -(1 << (8 * size - 1)) <= value < 1 << 8 * size:
            raise LaunchError(
                f"argument {i} is {value}, which does not fit the {size} bytes of parameter {parameter.name}"
            )
        return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _float(self, i: int, parameter: Variable, value: float) -> bytes:
        kind = TYPES.get(parameter.type)
        if kind is None or parameter.array or kind.kind not in "fb" or kind.bits not in (16, 32, 64):
            declared = f"parameter {parameter.name} is .{parameter.type}"
            message = f"argument {i} is a float, but {declared}; pass a NumPy number of its type"
            raise LaunchError(message)
        return np.array(value, f"f{kind.bytes}").tobytes()


def _array(value: Any) -> NDArray[Any] | None:
    """The array whose address is passed; None if the argument is none."""
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value)
    if isinstance(value, int | float | Texture | Surface):  # before `Encoded`, whose methods take time to look for
        return None
    return value.array if isinstance(value, Scratch | Encoded) else None


def _structure(value: Any) -> bytes | None:
    """The bytes of a ctypes structure, union, array or number, or of a structured NumPy scalar; None if it is none."""
    if isinstance(value, ctypes.Structure | ctypes.Union | ctypes.Array | ctypes._SimpleCData):  # pyright: ignore[reportPrivateUsage]
        return bytes(cast("Any", value))
    return value.tobytes() if isinstance(value, np.void) else None


def _misfit(i: int, parameter: Variable, value: Any, size: int) -> str:
    """Words for a structure of another size than its parameter: where its fields are, for the reader to compare with C's."""
    kind = cast("Any", type(value))
    if isinstance(value, np.void):
        fields = [(name, at[1]) for name, at in (value.dtype.fields or {}).items()]
        packed = bool(fields) and not value.dtype.isalignedstruct
        bytes_ = value.dtype.itemsize
    else:
        fields = [(field[0], getattr(kind, field[0]).offset) for field in getattr(kind, "_fields_", ())]
        packed, bytes_ = hasattr(kind, "_pack_"), ctypes.sizeof(value)
    where = ", ".join(f"{name} at {offset}" for name, offset in fields)
    message = f"argument {i} is a structure of {bytes_} bytes" + (f" ({where})" if where else "")
    message += f", but parameter {parameter.name} has {size}"
    if not packed:
        return message
    pads = "np.dtype(..., align=True) pads" if isinstance(value, np.void) else "without _pack_ ctypes pads"
    return f"{message}; {pads} as C does"


def _scalar(value: Any) -> bytes | None:
    """A NumPy scalar's bytes; None if the argument is none."""
    dtype = getattr(value, "dtype", None)
    return None if dtype is None else np.array(value, dtype).tobytes()


def _merge(ranges: list[Range]) -> list[Range]:
    """Ranges that overlap are one; in the order of the arguments."""
    merged: list[Range] = []
    for r in sorted(ranges, key=lambda r: (r.low, r.high)):
        last = merged[-1] if merged else None
        if last is not None and (r.low < last.high or (r.low, r.high) == (last.low, last.high)):
            last.high = max(last.high, r.high)
            last.number = min(last.number, r.number)
            last.writeable |= r.writeable
            last.defined |= r.defined
            last.reached |= r.reached
            if r.name not in last.name:
                last.name += f" and {r.name.removeprefix('argument ')}"
        else:
            merged.append(r)
    return sorted(merged, key=lambda r: r.number)
