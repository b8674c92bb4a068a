"""A module's variables in global and constant memory: where they are, and what they hold between launches.

They come first in their memory, so that a module's variable has one address in all its launches. What a launch writes stays for
the next one, as in a module that the driver has loaded. The host's side of them is a mapping from names to arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import PTXError
from weft.emulator.machine.binding import constant
from weft.emulator.machine.program import Program
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.arena import Allocation, Arena, layout
from weft.emulator.memory.device_heap import DeviceHeap
from weft.emulator.memory.memory import WINDOW
from weft.emulator.ptx.syntax import Immediate, Symbol, Variable
from weft.emulator.ptx.types import TYPES
from weft.emulator.texture import Surface, Texture

FUNCTIONS: Final = 0x5_0000_0000
"""Functions' addresses begin here: 16 bytes for each instruction."""

GLOBAL: Final = "global "
"""What precedes the names of a module's variables among the allocations."""

_SPACES: Final = {"global": Space.GLOBAL, "const": Space.CONST}


def size_of(variable: Variable) -> int:
    """Bytes of a variable; 0 for an array of unknown size."""
    return (TYPES[variable.type].bytes if variable.type in TYPES else 8) * variable.vector * (variable.count or 0)


class Symbols(Mapping[str, NDArray[Any]]):
    """The ``__device__`` and ``__constant__`` variables of a module, by the names that the PTX has.

        module.symbols["coefficients"] = np.arange(5, dtype=np.float32)
        module.launch("filter", 4, 128, [out, x])
        print(module.symbols["counter"])

    Each is an array of the variable's type and number of elements, without dimensions for a single one. nvcc declares structures
    as ``b8``, which is uint8, for the user to view. The arrays are the module's memory: a launch reads them, and writes them when
    it is over. A launch that faults leaves them as they were.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        variables = [v for v in program.module.variables.values() if v.space in _SPACES]
        self.variables: dict[Space, list[Variable]] = {
            space: [v for v in variables if _SPACES[v.space] is space] for space in (Space.GLOBAL, Space.CONST)
        }
        self.addresses: dict[str, tuple[Space, int]] = {}
        """The space of each variable, and its address there."""
        self.sizes = [(GLOBAL + v.name, size_of(v), 0) for v in self.variables[Space.GLOBAL]]
        """What precedes the allocations of a launch in global memory."""
        self.constants: list[Allocation] = layout([(v.name, size_of(v), 0) for v in self.variables[Space.CONST]])
        for v, a in zip(self.variables[Space.GLOBAL], layout(self.sizes), strict=True):
            self.addresses[v.name] = Space.GLOBAL, WINDOW[Space.GLOBAL] + a.start
        for v, a in zip(self.variables[Space.CONST], self.constants, strict=True):
            self.addresses[v.name] = Space.CONST, a.start
        self._bytes: dict[str, NDArray[np.uint8]] = {v.name: np.zeros(size_of(v), np.uint8) for v in variables}
        self._arrays = {v.name: _as_declared(v, self._bytes[v.name]) for v in variables}
        self._objects: dict[str, Texture | Surface] = {}
        """What texrefs and surfrefs were set to: it has to live."""
        self.heap = DeviceHeap()
        """Of device malloc and free."""
        self.reset()

    # ---- the host's side ----------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            names = ", ".join(self._arrays) or "none"
            raise KeyError(f"the module has no variable '{name}' in global or constant memory; it has {names}")
        return self._arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Copies a value in: bytes, a ctypes or NumPy structure, or an array of the variable's size; a number becomes one of the
        variable's type, a `Texture` or `Surface` its handle.

        Raises: KeyError for a name that is not there, ValueError for another number of bytes.
        """
        target = self[name]
        if isinstance(value, bool | int | float):
            if target.ndim:
                raise ValueError(
                    f"'{name}' has {target.size} elements, found a single number; it takes an array of them"
                )
            target[...] = value
            return
        if isinstance(value, Texture | Surface):
            self._objects[name] = value
            value = np.uint64(value.handle)
        if isinstance(value, bytes | bytearray | np.ndarray | np.generic):
            data = bytes(value) if isinstance(value, bytes | bytearray) else value.tobytes()
        elif isinstance(value, ctypes.Structure | ctypes.Union | ctypes.Array):
            data = bytes(cast("Any", value))
        else:
            raise TypeError(f"'{name}' takes arrays, numbers, structures and bytes, found {type(value).__name__}")
        if len(data) != target.nbytes:
            raise ValueError(f"'{name}' has {target.nbytes} bytes, found a value of {len(data)}")
        self._bytes[name][...] = np.frombuffer(data, np.uint8)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def address_of(self, name: str) -> int:
        """The generic address of a variable: what a pointer to it holds."""
        self[name]
        space, address = self.addresses[name]
        return address + (0 if space is Space.GLOBAL else WINDOW[space])

    def reset(self) -> None:
        """All variables have their initial values, and the heap is empty."""
        self.heap = DeviceHeap(self.heap.limit)
        for name, data in self._bytes.items():
            data[...] = 0
            initial = self._initial(self._program.module.variables[name])
            data[: initial.size] = initial

    # ---- the launch's side --------------------------------------------------------------------------------------------

    def put(self, space: Space, arena: Arena, allocations: list[Allocation]) -> None:
        """Writes the variables of a space to their allocations, which come first."""
        for v, a in zip(self.variables[space], allocations, strict=False):
            arena.bytes[a.start : a.start + a.size] = self._bytes[v.name]
            arena.mark(a.start, a.size)

    def take(self, arena: Arena, allocations: list[Allocation]) -> None:
        """Keeps what a launch has left in global memory."""
        for v, a in zip(self.variables[Space.GLOBAL], allocations, strict=False):
            self._bytes[v.name][...] = arena.bytes[a.start : a.start + a.size]

    # ---- initial values -----------------------------------------------------------------------------------------------

    def _initial(self, variable: Variable) -> NDArray[np.uint8]:
        if variable.type not in TYPES:
            return np.zeros(0, np.uint8)
        kind = TYPES[variable.type]
        data: list[bytes] = []
        for item in variable.initial:
            value = self._symbol_value(variable, item) if isinstance(item, Symbol) else item
            data.append(constant(value if isinstance(value, Immediate) else Immediate(value), kind).tobytes())
        return np.frombuffer(b"".join(data), np.uint8)

    def _symbol_value(self, variable: Variable, item: Symbol) -> int:
        address = self._symbol_address(variable, item)
        return (address & item.mask) // (item.mask & -item.mask) if item.mask else address

    def _symbol_address(self, variable: Variable, item: Symbol) -> int:
        if item.name in self.addresses:
            return self.address_of(item.name) + item.offset
        if item.name in self._program.start:
            return FUNCTIONS + 16 * self._program.start[item.name]
        raise PTXError(
            f"the initial value of '{variable.name}' names '{item.name}', which does not exist", variable.line
        )


def _as_declared(variable: Variable, data: NDArray[np.uint8]) -> NDArray[Any]:
    kind = TYPES[variable.type].numpy if variable.type in TYPES else np.dtype(np.uint64)
    shape = (variable.count or 0,) if variable.array else ()
    shape += (variable.vector,) if variable.vector > 1 else ()
    shape += (2,) if variable.type == "b128" else ()
    return data.view(kind).reshape(shape)
