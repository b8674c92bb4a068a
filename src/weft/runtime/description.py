"""A launch on a card as data, for code that launches kernels itself: grid, block, shared memory, and the parameters as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.signature import Argument, ConstantArgument, PointerArgument
from weft.runtime.arguments import to_float32
from weft.runtime.binding import Grid
from weft.runtime.memory import MemoryRefused, memory_of

MOST_BLOCKS: Final = (2**31 - 1, 65535, 65535)
"""The largest grid of a card, in x, y and z."""

ALIGNMENT: Final = 16
"""What a parameter that is specialised for alignment is a multiple of."""

_CODES: Final[dict[DType, str]] = {
    dtypes.bool_: "B",
    dtypes.int32: "i",
    dtypes.int64: "q",
    dtypes.uint64: "Q",
    dtypes.float32: "f",
    **{
        dtypes.parse(name): code
        for name, code in {
            "int8": "b",
            "uint8": "B",
            "int16": "h",
            "uint16": "H",
            "uint32": "I",
            "float64": "d",
        }.items()
    },
    dtypes.parse("float16"): "e",
}
"""The `struct` codes of scalars. Launches make some of these types; ``weft compile --signature`` takes all."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel's entry: ``dtype`` is a scalar's, or that of the elements an address points to.

    ``size`` and ``offset`` are bytes in the block of parameters, each parameter at a multiple of its size, and ``padding`` the
    bytes between the one before and it. ``multiple`` is what the address or integer must be a multiple of.
    """

    name: str
    dtype: DType
    pointer: bool
    size: int
    offset: int
    padding: int
    multiple: int

    def __str__(self) -> str:
        kind = f"address of {self.dtype}" if self.pointer else str(self.dtype)
        multiple = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
        return f"byte {self.offset}: {self.name}, {kind}, {self.size} bytes{multiple}"

    @property
    def code(self) -> str:
        """The `struct` code. Raises: `ValueError` for a type that has none."""
        if self.pointer:
            return "Q"
        if self.dtype not in _CODES:
            raise ValueError(f"parameter '{self.name}': scalars of {self.dtype} cannot be packed")
        return _CODES[self.dtype]


def parameters_of(signature: Mapping[str, Argument]) -> tuple[Parameter, ...]:
    """The parameters of the entry that is compiled for a signature, in order. Constants are none."""
    result: list[Parameter] = []
    end = 0
    for name, argument in signature.items():
        if isinstance(argument, ConstantArgument):
            continue
        pointer = isinstance(argument, PointerArgument)
        size = 8 if pointer else argument.dtype.itemsize
        least = argument.dtype.itemsize if pointer else 1
        special = argument.aligned if isinstance(argument, PointerArgument) else argument.divisible
        padding = -end % size
        multiple = max(ALIGNMENT, least) if special else least
        result.append(Parameter(name, argument.dtype, pointer, size, end + padding, padding, multiple))
        end += padding + size
    return tuple(result)


@dataclass(frozen=True)
class LaunchDescription:
    """How to launch a kernel: ``symbol`` of the module on a ``grid`` of blocks of ``block`` threads, with ``shared`` bytes of
    dynamic shared memory and ``parameters``."""

    symbol: str
    grid: Grid
    block: Grid
    shared: int
    parameters: tuple[Parameter, ...]

    def pack(self, *values: Any) -> bytes:
        """The block of parameters: an address or an array for each pointer, a number for each scalar.

        Raises: `TypeError` for another number of values or another kind, `ValueError` for a value that is no multiple of what the
        kernel was specialised for, or does not fit.
        """
        if len(values) != len(self.parameters):
            names = ", ".join(p.name for p in self.parameters) or "none"
            raise TypeError(
                f"kernel '{self.symbol}' takes {len(self.parameters)} parameters at run time ({names}), found {len(values)}"
            )
        numbers = [_number(self.symbol, p, value) for p, value in zip(self.parameters, values, strict=True)]
        packer = struct.Struct("=" + "".join(f"{p.padding}x{p.code}" for p in self.parameters))
        try:
            return packer.pack(*numbers)
        except OverflowError:
            return packer.pack(*to_float32(numbers))
        except struct.error as error:
            raise ValueError(f"kernel '{self.symbol}': a value does not fit its parameter: {error}") from None


def _number(kernel: str, parameter: Parameter, value: Any) -> Any:
    where = f"kernel '{kernel}': parameter '{parameter.name}'"
    if hasattr(value, "item") and callable(value.item) and not getattr(value, "shape", (0,)):
        value = value.item()  # a NumPy scalar
    if parameter.pointer and not isinstance(value, int):
        try:
            memory = memory_of(value)
        except MemoryRefused as reason:
            raise TypeError(f"{where}: {reason}") from None
        if memory is None:
            raise TypeError(f"{where}: expected an address or an array, found {type(value).__name__}")
        if memory.dtype != parameter.dtype:
            raise TypeError(
                f"{where}: found an array of {memory.dtype}, but the kernel was compiled for {parameter.dtype}"
            )
        value = memory.address
    if parameter.multiple > 1 and value % parameter.multiple:
        found = f"the address {value:#x}" if parameter.pointer else f"{value}"
        raise ValueError(
            f"{where}: found {found}, but the kernel was compiled for multiples of {parameter.multiple}; compile it for such "
            "arguments"
        )
    return value


def check_grid(kernel: str, grid: Sequence[int]) -> None:
    """Raises `ValueError` for a grid that no card has."""
    for axis, size, most in zip("xyz", grid, MOST_BLOCKS, strict=True):
        if size > most:
            raise ValueError(
                f"kernel '{kernel}': a grid on a GPU has at most {most} programs in {axis}, found {size} in {tuple(grid)}"
            )
