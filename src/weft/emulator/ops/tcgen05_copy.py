"""tcgen05.cp, shift, commit: what goes into tensor memory, and how its end is known (PTX ISA 9.7.16.8, 9.7.16.9, 9.7.16.12).

A copy takes rows of 16 or 32 bytes from shared memory, where a matrix descriptor says that they are, and puts each into one lane
or, by multicast, into several. ``.b8x16.b4x16_p64`` and ``.b8x16.b6x16_p32`` widen elements: 16 of 4 or 6 bits, packed from the
first bit of their 16 bytes on, become a byte each, those of 4 bits in bits 2 to 5.

tcgen05.shift moves 32 bytes (8 columns) of 31 lanes to the lane before each: lane i becomes what lane i + 1 was, the last stays.

With ``.cta_group::2`` both blocks of a pair copy, or shift, each in memory of its own.

tcgen05.commit lets an mbarrier track the copies and products that the thread has begun. They are complete by then, so that it
arrives at once, and what waits for that phase has seen them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import tcgen05
from weft.emulator.arith.descriptors import UNIT
from weft.emulator.arith.tcgen05 import Malformed
from weft.emulator.arith.tensor_memory import COPIES
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.ops.async_groups import Groups
from weft.emulator.ops.bulk import MULTICAST, aimed, aims
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import keys, shared_address, update
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.tcgen05_mma import PENDING
from weft.emulator.ops.tcgen05_operands import read_shared
from weft.emulator.ops.tensor_memory import GROUP, TensorMemory, addresses, blocks_of, shift_down, split_address
from weft.emulator.ops.tensor_order import TensorOrder
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_WIDENED: Final = {"b4x16_p64": (4, 2), "b6x16_p32": (6, 0)}
"""Formats of shared memory: an element's bits, and where they go in its byte."""


@lru_cache(maxsize=1024)
def _units(bits: int, rows: int, units: int) -> NDArray[np.uint64]:
    return tcgen05.descriptor(bits).k_major(rows, units).ravel().astype(np.uint64)


def _widen(raw: NDArray[np.uint8], source: str) -> NDArray[np.uint8]:
    """Each 16 bytes (..., 16) with their elements a byte each."""
    width, place = _WIDENED[source]
    return tcgen05.unpacked(raw, width) << np.uint8(place)


@instruction("tcgen05.cp")
def _copy(b: Binding) -> Step:
    f = form(
        b,
        op="cp",
        group=GROUP,
        shape=" ".join(dict.fromkeys(shape for shape, _ in COPIES)),
        multicast="? " + " ".join(cast for _, cast in COPIES if cast),
        to="? b8x16",
        source="? " + " ".join(_WIDENED),
    )
    found = COPIES.get((f["shape"], f["multicast"]))
    b.require(bool(f["to"]) == bool(f["source"]), "'.b8x16' needs '.b4x16_p64' or '.b6x16_p32'")
    b.count(2)
    if found is None:
        b.wrong(f"tcgen05.cp of .{f['shape']} does not go with '.{f['multicast'] or 'no multicast'}'")
    lanes, count = found
    rows = lanes.shape[0]
    to, descriptors = addresses(b, 0), np.broadcast_to(b.read(1, TYPES["b64"]), (b.execution.threads,))
    execution, site, name, blocks = b.execution, b.site, b.instruction.name, blocks_of(b, f["group"])

    def step(active: Active) -> None:
        agent = Groups.of(execution, PENDING).begin(active) if execution.order.active else None
        memory, targets = TensorMemory.of(execution), to()
        for thread in active.index.tolist():
            try:
                units = _units(int(descriptors[thread]), rows, count)
            except Malformed as error:
                message = f"the matrix descriptor of {name} {error}"
                raise execution.fault(Undefined, message, site, thread) from None
            for block in blocks(thread):
                words = read_shared(execution, site, thread, block, units, agent)
                if f["source"]:
                    raw = np.ascontiguousarray(words).view(np.uint8).reshape(-1, UNIT)
                    words = np.ascontiguousarray(_widen(raw, f["source"]))
                cells = np.ascontiguousarray(words).view(np.uint32).reshape(rows, 1, -1)
                lane, column = split_address(int(targets[thread]))
                columns = column + np.arange(cells.shape[2])[None, None, :]
                memory.part(site, thread, block, agent).write((lanes + lane)[:, :, None], columns, cells)

    return step


@instruction("tcgen05.shift")
def _shift(b: Binding) -> Step:
    f = form(b, op="shift", group=GROUP, way="down")
    b.count(1)
    at, execution, site, blocks = addresses(b, 0), b.execution, b.site, blocks_of(b, f["group"])

    def step(active: Active) -> None:
        agent = Groups.of(execution, PENDING).begin(active) if execution.order.active else None
        memory, places = TensorMemory.of(execution), at()
        for thread in active.index.tolist():
            lane, column = split_address(int(places[thread]))
            if lane % 32:
                message = f"tcgen05.shift at lane {lane}, which is no multiple of 32"
                raise execution.fault(Undefined, message, site, thread)
            for block in blocks(thread):
                shift_down(memory.part(site, thread, block, agent), lane, column)

    return step


@instruction("tcgen05.commit")
def _commit(b: Binding) -> Step:
    f = form(
        b,
        op="commit",
        group=GROUP,
        arrive="mbarrier::arrive::one",
        space="? shared::cluster",
        multicast=f"? {MULTICAST}",
        type="b64",
    )
    b.count(2 if f["multicast"] else 1)
    locate, places = shared_address(b, 0, f["space"]), aims(b, f["multicast"], 1)
    execution, site, blocks = b.execution, b.site, blocks_of(b, f["group"])

    def step(active: Active) -> None:
        for thread in active.index.tolist():
            blocks(thread)
        for some, rank, _ in places(active):
            threads = some.index
            _, phase = update(execution, site, threads, aimed(execution, locate, rank)(threads), arrivals=1)
            if execution.order.active:
                groups, order = Groups.of(execution, PENDING), TensorOrder.of(execution)
                for key, which in keys(phase):
                    groups.signal(threads[which], key)
                    order.commit(threads[which], key)

    return step
