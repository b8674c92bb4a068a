"""Launches in the emulator: kernels compiled to PTX, run on the CPU with every access checked.

`emulate` makes all launches inside it such launches; `JITFunction.on` makes one. The arguments are those of a launch on the CPU.
A fault of the kernel (an access out of bounds, a race, a barrier that part of a block does not reach) is raised as the
emulator's `Fault`, with the user's line, and leaves the arrays as they were.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.array_utils import byte_bounds

from weft import target as targets
from weft.frontend.signature import Argument, ConstantArgument, PointerArgument, ScalarArgument
from weft.runtime.arguments import Bound
from weft.runtime.artifacts import GpuArtifact, refuse_read_only
from weft.runtime.binding import Grid
from weft.runtime.description import check_grid
from weft.runtime.memory import MemoryRefused, is_numpy_array, memory_of
from weft.runtime.place import CURRENT
from weft.target import GpuTarget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.emulator import Checks, Module, Profile

_PAGE: Final = 4096
_ALIGNMENT: Final = 16

_CHECKS: Final[ContextVar[Checks | None]] = ContextVar("weft_emulator_checks", default=None)
"""What launches of this context are checked for; None: everything."""


_REACHED: Final[ContextVar[tuple[NDArray[Any], ...]]] = ContextVar("weft_emulator_memory", default=())
"""The bytes of arrays that launches of this context may reach through addresses of the host."""


@contextmanager
def emulate(
    target: str | GpuTarget, *, checks: Checks | None = None, memory: Sequence[Any] = ()
) -> Generator[GpuTarget]:
    """Launches inside run as PTX for ``target`` (``"sm_90"``) in the emulator, all its checks on.

        with weft.emulate("sm_90"):
            add[(8,)](x, y, out, n, BLOCK=128)

    ``checks`` switches some off, also for launches inside that name a target themselves:
    ``weft.emulate("sm_90", checks=weft.emulator.Checks(global_races=False))``.

    ``memory`` are arrays in the CPU's memory that kernels reach through addresses which they load (a table of pointers), rather
    than as arguments. Each launch inside copies them in and out.

    Raises: ValueError for a target that weft does not know, TypeError for what is no array in the CPU's memory.
    """
    reached = tuple(_bytes_of(i, array) for i, array in enumerate(memory))
    chosen = targets.gpu(target) if isinstance(target, str) else target
    token, checked, known = CURRENT.set(chosen), _CHECKS.set(checks), _REACHED.set(reached)
    try:
        yield chosen
    finally:
        CURRENT.reset(token)
        _CHECKS.reset(checked)
        _REACHED.reset(known)


def _bytes_of(number: int, value: Any) -> NDArray[Any]:
    """The bytes from an array's first element to its last."""
    try:
        memory = memory_of(value)
    except MemoryRefused as reason:
        raise TypeError(f"weft.emulate: memory[{number}]: {reason}") from None
    if memory is None or memory.extent is None or memory.device is not None:
        found = (
            f"an object of type {type(value).__name__}" if memory is None else "memory of a card, or of unknown length"
        )
        raise TypeError(f"weft.emulate: memory[{number}]: expected an array in the CPU's memory, found {found}")
    low, high = memory.extent
    found = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
    found.flags.writeable = not memory.read_only
    return found


@dataclass(frozen=True)
class _Pointer:
    """An argument that points into an array's bytes, as the emulator takes it: ``array`` and how far behind its first byte."""

    array: NDArray[Any]
    offset: int

    def encode(self, address: int) -> bytes:
        """The parameter's bytes, given where the array begins."""
        return (address + self.offset).to_bytes(8, "little")


class EmulatedKernel:
    """A kernel compiled for a GPU, ready to be launched in the emulator."""

    def __init__(self, kernel: str, artifact: GpuArtifact, signature: Mapping[str, Argument]):
        self.name = kernel
        self.artifact = artifact
        self._signature = list(signature.items())

    @cached_property
    def _module(self) -> Module:
        from weft.emulator import Module

        return Module(self.artifact.ptx)

    def launch(self, bound: Bound, grid: Grid) -> Profile:
        """Runs the kernel, and writes what it prints to ``sys.stdout``; what it did. Raises: ValueError for a read-only array
        that the kernel writes through and for a grid that no card has, TypeError for memory of a card, `Fault`."""
        refuse_read_only(self.name, self.artifact.written, bound.read_only)
        check_grid(self.name, grid)
        for name, memory in bound.views:
            if memory.device is not None:
                raise TypeError(
                    f"kernel '{self.name}': parameter '{name}': found an array on a card, but the launch is emulated, which "
                    "takes arrays in the CPU's memory"
                )
        artifact, arguments = self.artifact, self._arguments(bound)
        from weft.emulator import Fault

        printed = ""
        try:
            profile = self._module.launch(
                artifact.symbol,
                grid,
                artifact.threads,
                arguments,
                shared=artifact.shared,
                checks=_CHECKS.get(),
                memory=_REACHED.get(),
            )
            printed = profile.output
        except Fault as fault:
            printed = fault.output
            raise
        finally:
            if printed:
                sys.stdout.write(printed)
        return profile

    def _arguments(self, bound: Bound) -> list[Any]:
        extents, slots = iter(bound.extents), iter(bound.slots)
        return [
            self._argument(name, argument, value, next(slots), extents, name in bound.read_only)
            for (name, argument), value in zip(self._signature, bound.values, strict=True)
            if not isinstance(argument, ConstantArgument)
        ]

    def _argument(
        self,
        name: str,
        argument: Argument,
        value: Any,
        slot: Any,
        extents: Iterator[tuple[int, int] | None],
        read_only: bool,
    ) -> Any:
        if isinstance(argument, PointerArgument):
            extent = next(extents)
            if extent is None:
                raise TypeError(
                    f"kernel '{self.name}': parameter '{name}': the object does not say how long it is, which the "
                    "emulator must know; pass an array"
                )
            return _pointer(slot, *extent, _skew(value, extent[0]), read_only=read_only)
        assert isinstance(argument, ScalarArgument)
        if argument.dtype.is_bool:
            return np.uint8(bool(slot))
        with np.errstate(over="ignore"):  # a float beyond float32's range becomes infinite, as natively
            return argument.dtype.numpy.type(slot)


def _skew(value: Any, low: int) -> int:
    """How far behind a page's begin an array's first byte shall be placed: as far as it is behind the memory that it is a view
    of, as if that had been allocated on the GPU. Alignment to 16 bytes, for which code is specialised, stays as it is."""
    owner: Any = value
    while is_numpy_array(owner) and is_numpy_array(owner.base):
        owner = owner.base
    start = byte_bounds(owner)[0] if is_numpy_array(owner) and owner.size else low
    return (low - start + start % _ALIGNMENT) % _PAGE


def _pointer(address: int, low: int, high: int, skew: int, *, read_only: bool) -> _Pointer:
    """A pointer to ``address`` in the bytes from ``low`` to ``high``. The array is a view of one that begins ``skew`` bytes
    earlier, which the emulator takes for the begin of a page."""
    whole = np.ctypeslib.as_array((ctypes.c_uint8 * (skew + high - low)).from_address(low - skew))
    array = whole[skew:]
    array.flags.writeable = not read_only
    return _Pointer(array, address - low)
