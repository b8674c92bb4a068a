"""ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements (PTX ISA 9.7.14.5.15 to 9.7.14.5.17).

A row is 16 bytes of shared memory, at an address that one lane gives: lanes 0 to 7 those of the first matrix, 8 to 15 of the
second, and so on. In registers lane 4 i + j has elements 2 j and 2 j + 1 of row i; with ``.trans`` those of column i. An access
belongs to the lane that gave its address; the lanes that give none (16 to 31 of ``.x2``, say) need have no address.

The eight rows of a matrix are 128 bytes, a phase of the banks: without conflicts it is one wavefront, x4 four.

The 8-bit, 6-bit and 4-bit matrices of sm_100 (``m16n16``, ``m8n16``, ``stmatrix.m16n8``) are not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.fragments import collective, registers
from weft.emulator.ops.registry import Step, instruction

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

ROW_BYTES: Final = 16
ROWS: Final = 8

COUNTS: Final = {"x1": 1, "x2": 2, "x4": 4}


def _matrices(b: Binding) -> tuple[int, bool]:
    """How many matrices, and whether they are transposed; refuses forms that are not known."""
    for modifier in b.modifiers:
        if modifier not in ("sync", "aligned", "m8n8", "trans", "b16", "shared", "shared::cta", *COUNTS):
            b.unknown(f"'.{modifier}' of {b.instruction.opcode}")
    for modifier in ("sync", "aligned", "m8n8", "b16"):
        b.require(modifier in b.modifiers, f"{b.instruction.name} has no '.{modifier}'")
    counts = [count for name, count in COUNTS.items() if name in b.modifiers]
    b.require(len(counts) == 1, f"{b.instruction.name} must have one of .x1, .x2, .x4")
    b.count(2)
    return counts[0], "trans" in b.modifiers


def _rows(b: Binding, operand: int, count: int, kind: Kind) -> Callable[[Active], AccessBatch]:
    """The rows of the active warps' matrices as accesses, in the order of lanes."""
    execution, site, name = b.execution, b.site, b.instruction.name
    generic = not any(modifier.startswith("shared") for modifier in b.modifiers)
    address = b.address(operand, None if generic else Space.SHARED)
    givers = np.arange(count * ROWS)
    all_threads = (np.arange(0, execution.threads, WARP)[:, None] + givers).ravel()
    members = collective(b)

    def rows(active: Active) -> AccessBatch:
        warps = members(active)
        threads: IndexArray = all_threads if warps is None else (warps[:, None] * WARP + givers).ravel()
        addresses = address()[threads]
        if generic:
            addresses = shared(addresses, threads)
        return AccessBatch(site, Space.SHARED, kind, threads, addresses, ROW_BYTES)

    def shared(addresses: NDArray[np.uint64], threads: IndexArray) -> NDArray[np.uint64]:
        """Generic addresses as addresses of shared memory."""
        parts = execution.memory.resolve(addresses)
        for space, where, _ in parts:
            if space is not Space.SHARED:
                first = 0 if where is None else int(where[0])
                message = f"{name} at a generic address of {space.value} memory, expected shared memory"
                raise execution.fault(Undefined, message, site, int(threads[first]), f"0x{int(addresses[first]):x}")
        return parts[0][2]

    return rows


def _flipped(words: NDArray[np.uint32], transpose: bool) -> NDArray[np.uint32]:
    """(..., 8 rows of 4 words of two elements), transposed if asked."""
    if not transpose:
        return words
    elements = words.view(np.uint16)
    return np.ascontiguousarray(elements.swapaxes(-1, -2)).view(np.uint32)


def _put(views: list[NDArray[Any]], words: NDArray[np.uint32], active: Active) -> None:
    """Writes (warps, matrices, 8, 4) words to registers."""
    lanes = words.reshape(len(words), -1, WARP)
    for place, view in enumerate(views):
        if active.full:
            view[...] = lanes[:, place]
        else:
            view[active.warps] = lanes[:, place]


@instruction("ldmatrix")
def ldmatrix(b: Binding) -> Step:
    """``ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16  r, [p]``."""
    count, transpose = _matrices(b)
    rows = _rows(b, 1, count, Kind.READ)
    views = registers(b, 0, count, 32, write=True)
    memory, counters = b.execution.memory, b.execution.counters

    def run(active: Active) -> None:
        access = rows(active)
        words = memory.load(access, 8).view(np.uint32).reshape(-1, count, ROWS, ROW_BYTES // 4)
        counters.access(access)
        _put(views, _flipped(words, transpose), active)

    return run


@instruction("stmatrix")
def stmatrix(b: Binding) -> Step:
    """``stmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16  [p], r``."""
    count, transpose = _matrices(b)
    rows = _rows(b, 0, count, Kind.WRITE)
    views = registers(b, 1, count, 32, write=False)
    memory, counters = b.execution.memory, b.execution.counters

    def run(active: Active) -> None:
        access = rows(active)
        chosen = views if active.full else [view[active.warps] for view in views]
        words = np.stack(chosen, axis=1).reshape(-1, count, ROWS, ROW_BYTES // 4)
        memory.store(access, 8, _flipped(words, transpose).view(np.uint64).reshape(-1, ROW_BYTES // 8))
        counters.access(access)

    return run


@instruction("movmatrix")
def movmatrix(b: Binding) -> Step:
    """``movmatrix.sync.aligned.m8n8.trans.b16  d, a``."""
    needed = ("sync", "aligned", "m8n8", "trans", "b16")
    for modifier in b.modifiers:
        if modifier not in needed:
            b.unknown(f"'.{modifier}' of movmatrix")
    for modifier in needed:
        b.require(modifier in b.modifiers, f"{b.instruction.name} has no '.{modifier}'")
    b.count(2)
    (source,), target = registers(b, 1, 1, 32, write=False), registers(b, 0, 1, 32, write=True)
    members = collective(b)

    def run(active: Active) -> None:
        warps = members(active)
        words = np.ascontiguousarray(source if warps is None else source[warps])
        _put(target, _flipped(words.reshape(-1, 1, ROWS, 4), transpose=True), active)

    return run
