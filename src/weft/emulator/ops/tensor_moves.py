"""Loads and stores of tensor memory: tcgen05.ld, st, wait, fence (PTX ISA 9.7.16.8, 9.7.16.11).

A warp reaches 32 lanes of its own block's tensor memory, whatever ``.cta_group`` the kernel has. Loads and stores are done when
they are issued, and so are the products and copies that tensor memory takes part in (`weft.emulator.ops.tcgen05_mma`,
`tcgen05_copy`). ``wait`` and ``fence`` are for the check of their order (`weft.emulator.ops.tensor_order`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.tensor_memory import COUNTS, LANES, REGISTERS, Cells, Picture, picture
from weft.emulator.errors import OutOfBounds, Undefined
from weft.emulator.machine.active import WARP, Active
from weft.emulator.machine.binding import Binding
from weft.emulator.ops.extremes import pick
from weft.emulator.ops.forms import form
from weft.emulator.ops.fragments import collective, registers
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.tensor_memory import QUARTER, Part, TensorMemory, addresses
from weft.emulator.ops.tensor_order import TensorOrder
from weft.emulator.ptx.types import TYPES


class _Move:
    """A tcgen05.ld or st: its registers, and the cells that each of them is of."""

    def __init__(self, b: Binding, op: str, packing: str, reduced: int = 0) -> None:
        """``reduced``: how many registers a load has that is reduced too."""
        f = {"shape": "32x32b", "count": f"x{reduced}", "packing": ""} if reduced else self._form(b, op, packing)
        self.shape, count = f["shape"], int(f["count"][1:])
        size = REGISTERS[self.shape] * count
        b.require(size <= LANES, f"{b.instruction.name} has {size} registers; a thread has at most {LANES}")
        split = self.shape == "16x32bx2"
        load = op == "ld"
        if not reduced:
            b.count(3 if split else 2)
        self.address = addresses(b, 2 if reduced else 1 if load else 0)
        offset = b.constant(2 if load else 1) if split else 0
        self.views = registers(b, 0 if load else 2 if split else 1, size, 32, write=load)
        self.packed = bool(f["packing"])
        self.picture: Picture = picture(self.shape, count, offset)
        self.check = collective(b)
        self.execution, self.site = b.execution, b.site

    @staticmethod
    def _form(b: Binding, op: str, packing: str) -> dict[str, str]:
        return form(
            b,
            op=op,
            sync="sync",
            aligned="aligned",
            shape=" ".join(REGISTERS),
            count=" ".join(f"x{count}" for count in COUNTS),
            packing=f"? {packing}",
            type="b32",
        )

    def cells(self, active: Active) -> Iterator[tuple[int, Part, Cells, Cells]]:
        """Each warp that executes, its block's cells, and the lanes and columns of its registers, (registers, 32)."""
        execution, memory = self.execution, TensorMemory.of(self.execution)
        found = self.check(active)
        warps = np.arange(execution.warps) if found is None else found
        threads = warps * WARP
        given = self.address().reshape(-1, WARP)[warps].astype(np.int64)
        if (given != given[:, :1]).any():
            which = int((given != given[:, :1]).any(axis=1).argmax())
            message = "an address of tensor memory must be the same in all threads of a warp"
            raise execution.fault(Undefined, message, self.site, int(threads[which]))
        lane, column = given[:, 0] >> 16 & 0xFFFF, given[:, 0] & 0xFFFF
        first = warps % execution.block_warps % 4 * QUARTER
        beyond = (lane < first) | (lane + self.picture.height > first + QUARTER)
        if beyond.any():
            which = int(beyond.argmax())
            low = int(first[which])
            last = int(lane[which]) + self.picture.height - 1
            message = f"lanes {lane[which]} to {last} of tensor memory; this warp reaches lanes {low} to {low + 31}"
            raise execution.fault(OutOfBounds, message, self.site, int(threads[which]))
        columns = (
            2 * self.picture.columns if self.packed else self.picture.columns
        )  # of the first where two share a register
        for warp, thread, row, first_column in zip(*(a.tolist() for a in (warps, threads, lane, column)), strict=True):
            yield warp, memory.part(self.site, thread), row + self.picture.lanes, first_column + columns


@instruction("tcgen05.ld")
def _load(b: Binding) -> Step:
    move = _Move(b, "ld", "pack::16b")

    def step(active: Active) -> None:
        for warp, part, lanes, columns in move.cells(active):
            values = part.read(lanes, columns)
            if move.packed:
                upper = part.read(lanes, columns + 1)
                values = (values & np.uint32(0xFFFF)) | (upper << np.uint32(16))
            for view, row in zip(move.views, values, strict=True):
                view[warp] = row

    return step


@instruction("tcgen05.ld.red")
def _load_reduced(b: Binding) -> Step:
    """And the least or greatest of what each lane has read. Where two halves of a lane go to two threads (.16x32bx2), the ISA
    leaves open whether each has a result of its own."""
    f = form(
        b,
        op="ld",
        red="red",
        sync="sync",
        aligned="aligned",
        shape="32x32b",
        count=" ".join(f"x{count}" for count in COUNTS[1:]),
        operation="min max",
        abs="? abs",
        nan="? NaN",
        type="f32 u32 s32",
    )
    b.require(f["type"] == "f32" or not f["abs"] and not f["nan"], f"'.{f['type']}' has neither '.abs' nor '.NaN'")
    b.count(3)
    count = int(f["count"][1:])
    move = _Move(b, "ld", "", reduced=count)
    (result,) = registers(b, 1, 1, 32, write=True)
    kind = TYPES[f["type"]].numpy
    combine = pick(f["operation"], {**f, "xorsign": ""}) if f["type"] == "f32" else _WHOLE[f["operation"]]

    def step(active: Active) -> None:
        for warp, part, lanes, columns in move.cells(active):
            values = part.read(lanes, columns)
            for view, row in zip(move.views, values, strict=True):
                view[warp] = row
            found = np.asarray(combine(*values.view(kind)), kind)
            result[warp] = np.where(np.isnan(found), _NAN, found.view(np.uint32))

    return step


_NAN: Final = np.uint32(0x7FFF_FFFF)
"""What a result of f32 is that is none."""


def _least(*rows: NDArray[Any]) -> NDArray[Any]:
    return np.min(rows, axis=0)


def _greatest(*rows: NDArray[Any]) -> NDArray[Any]:
    return np.max(rows, axis=0)


_WHOLE: Final = {"min": _least, "max": _greatest}
"""Of integers."""


@instruction("tcgen05.st")
def _store(b: Binding) -> Step:
    """The upper halves of cells that ``.unpack::16b`` writes are 0."""
    move = _Move(b, "st", "unpack::16b")

    def step(active: Active) -> None:
        for warp, part, lanes, columns in move.cells(active):
            values = np.stack([view[warp] for view in move.views])
            if move.packed:
                part.write(lanes, columns + 1, values >> np.uint32(16))
                values = values & np.uint32(0xFFFF)
            part.write(lanes, columns, values)

    return step


@instruction("tcgen05.wait::ld", "tcgen05.wait::st")
def _wait(b: Binding) -> Step:
    """Loads and stores are complete as soon as they are issued; that a warp has waited for them is noted."""
    f = form(b, op="wait::ld wait::st", sync="sync", aligned="aligned")
    b.count(0)
    check, execution = collective(b), b.execution

    def step(active: Active) -> None:
        warps = check(active)
        if execution.order.active:
            TensorOrder.of(execution).wait(
                np.arange(execution.warps) if warps is None else warps, f["op"] == "wait::st"
            )

    return step


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def _fence(b: Binding) -> Step:
    """Accesses are in order here; the check of their order is told."""
    f = form(b, op="fence::before_thread_sync fence::after_thread_sync")
    b.count(0)
    if (order := b.execution.order.shared) is None or (clocks := order.tensor) is None:
        return lambda active: None
    tell = clocks.before_thread_sync if f["op"].endswith("before_thread_sync") else clocks.fence_after
    return lambda active: tell(active.warps)
