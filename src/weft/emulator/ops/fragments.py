"""Warps' matrices in registers: read as arrays, written back (PTX ISA 9.7.14).

An instruction on fragments is collective: all 32 lanes of a warp execute it together, or nothing is defined. Its step therefore
works on warps: it is given the active ones, gathers their registers into (warps, rows, columns), computes, and scatters. Which
element lies where says `weft.emulator.arith.fragments`; here are only the registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.fragments import Fragment, Moves, unpack, writing
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution
    from weft.emulator.ptx.syntax import Operand

Warps: TypeAlias = IndexArray | None
"""The warps that execute, ascending; None for all there are."""

ALL_LANES: Final = np.uint32(0xFFFF_FFFF)

ACCUMULATORS: Final = {"f16": "f2", "f32": "f4", "f64": "f8", "s32": "i4"}
"""NumPy's types of accumulators."""


def collective(b: Binding) -> Callable[[Active], Warps]:
    """For an ``.aligned`` instruction on fragments: the warps that execute it, or a fault if not all 32 lanes of one do."""
    execution, site, name = b.execution, b.site, b.instruction.name

    def check(active: Active) -> Warps:
        if active.full:
            return None
        warps = execution.whole_warps(active, site)
        absent = active.ballots[warps] != ALL_LANES
        if absent.any():
            warp = int(warps[absent][0])
            lane = int((~active.lanes[warp]).nonzero()[0][0])
            message = f"{name} needs all 32 lanes of a warp; this lane has exited or never was"
            raise execution.fault(Undefined, message, site, warp * WARP + lane)
        return warps

    return check


def registers(b: Binding, operand: int | Operand, count: int, bits: int, write: bool) -> list[NDArray[Any]]:
    """A vector operand's registers as (warps, 32) views of unsigned integers of ``bits`` bits."""
    elements = b.elements(operand)
    what = "result" if write else "operand"
    b.require(
        len(elements) == count,
        f"{b.instruction.name} has {len(elements)} registers in a vector {what}, expected {count}",
    )
    kind = TYPES[f"b{bits}"]
    found: list[NDArray[Any]] = []
    for element in elements:
        declared = b.register_type(element)
        if declared is not None and declared.bits != bits:
            b.wrong(f"{b.instruction.name} has a register of {declared.bits} bits, expected {bits}")
        values = b.write(element, kind) if write else b.read(element, kind)
        if values.ndim == 0:
            values = np.broadcast_to(values, (b.execution.threads,))
        found.append(values.reshape(-1, WARP))
    return found


_SCRATCH: WeakKeyDictionary[Execution, dict[str, NDArray[np.uint8]]] = WeakKeyDictionary()


def scratch(execution: Execution, role: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array (warps, *shape) for what lives only within a step, shared by all steps of a launch with the same role.

    Arrays of this size made anew in each step cost more, in pages that the system hands out and takes back, than the
    arithmetic on them.
    """
    kind = np.dtype(dtype)
    size = execution.warps * math.prod(shape) * kind.itemsize
    room = _SCRATCH.setdefault(execution, {})
    if role not in room or room[role].size < size:
        room[role] = np.empty(size, np.uint8)
    return room[role][:size].view(kind).reshape(execution.warps, *shape)


def reader(
    b: Binding, operand: int | Operand, fragment: Fragment, moves: Moves, role: str
) -> Callable[[Warps], NDArray[Any]]:
    """The matrices of an operand, (warps, matrices, rows, columns), as unsigned integers of the elements' bits, until the next
    step with the same ``role`` runs; ``moves`` is the fragment's `reading`."""
    views = registers(b, operand, fragment.registers, fragment.width, write=False)
    bits, places, run = fragment.bits, moves.places, moves.run
    buffer = scratch(b.execution, "words", (len(views), WARP), views[0].dtype)
    nibbles = scratch(b.execution, "nibbles", (fragment.slots,), np.uint8)
    found = scratch(b.execution, role, moves.shape, f"u{max(bits, 8) // 8}")
    moved = found.reshape(b.execution.warps, -1).view(run)

    def read(warps: Warps) -> NDArray[Any]:
        count = len(buffer) if warps is None else warps.size
        words = buffer[:count]
        for place, view in enumerate(views):
            words[:, place] = view if warps is None else view[warps]
        unpack(words, bits, nibbles[:count]).view(run).take(places, axis=1, out=moved[:count], mode="clip")
        return found[:count]

    return read


def writer(b: Binding, operand: int | Operand, fragment: Fragment) -> Callable[[NDArray[Any], Warps], None]:
    """Writes matrices (warps, matrices, rows, columns), columns in the order of the fragment, to a vector of registers."""
    views = registers(b, operand, fragment.registers, fragment.width, write=True)
    moves = writing(fragment)
    places, run = moves.places, moves.run
    buffer = scratch(b.execution, "words", (len(views), WARP), f"u{fragment.width // 8}")
    moved = buffer.reshape(b.execution.warps, -1).view(run)

    def write(values: NDArray[Any], warps: Warps) -> None:
        count = len(values)
        values.reshape(count, -1).view(run).take(places, axis=1, out=moved[:count], mode="clip")
        words = buffer[:count]
        for place, view in enumerate(views):
            if warps is None:
                view[...] = words[:, place]
            else:
                view[warps] = words[:, place]

    return write
