"""Tensor maps made and changed by the program itself (PTX ISA 9.7.10.29 and 9.7.15, tensormap.cp_fenceproxy).

The map in memory is of the emulator's own encoding (`weft.emulator.tensor_map`); a program that fills 128 bytes with zeros and
then replaces every field has made one, as on hardware. Each replacement also puts the letters there by which a map is known.
Maps in global memory are not tracked by the race detector, so the fences of the tensormap proxy order nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import shared_address
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES
from weft.emulator.tensor_map import MAGIC, SIZE

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

ALIGNMENT: Final = 64


@dataclass(frozen=True)
class Field:
    """Where a field is in a map: byte ``offset`` and ``bytes``, ``step`` bytes from one ordinal to the next."""

    offset: int
    bytes: int
    type: str = "b32"
    step: int = 0
    constant: bool = False
    """Whether its value must be an immediate."""


FIELDS: Final = {
    "global_address": Field(8, 8, "b64"),
    "rank": Field(16, 1),
    "elemtype": Field(17, 1, constant=True),
    "interleave_layout": Field(18, 1, constant=True),
    "swizzle_mode": Field(19, 1, constant=True),
    "swizzle_atomicity": Field(20, 1, constant=True),
    "fill_mode": Field(21, 1, constant=True),
    "global_dim": Field(24, 4, step=4),
    "box_dim": Field(44, 4, step=4),
    "global_stride": Field(64, 8, "b64", step=8),
    "element_stride": Field(96, 4, step=4),
}
"""The fields tensormap.replace knows; those with a step have an ordinal, 0 to 4 (the stride of dimension 0 is the element)."""


@instruction("tensormap.replace")
def _replace(b: Binding) -> Step:
    f = form(
        b, op="replace", mode="tile", field=" ".join(FIELDS), space="? global shared::cta", size="b1024", type="b32 b64"
    )
    field = FIELDS[f["field"]]
    b.require(f["type"] == field.type, f".{f['field']} has type .{field.type}, not .{f['type']}")
    b.count(3 if field.step else 2)
    offset = field.offset
    if field.step:
        ordinal = b.constant(1)
        most = 3 if f["field"] == "global_stride" else 4
        b.require(0 <= ordinal <= most, f".{f['field']} has ordinals 0 to {most}, not {ordinal}")
        offset += field.step * ordinal
    if field.constant:
        b.constant(len(b.operands) - 1)
    values = b.read(len(b.operands) - 1, TYPES[f["type"]])
    addresses = _Ends(b, 0, f["space"])

    def step(active: Active) -> None:
        threads = active.index
        given = np.broadcast_to(values, (b.execution.threads,))[threads].astype(np.uint64)
        if field.bytes == 1 and (given > 255).any():
            message = f"a .{f['field']} of {int(given[(given > 255).argmax()])}"
            raise b.execution.fault(Undefined, message, b.site, int(threads[(given > 255).argmax()]))
        new = given.view(np.uint8).reshape(-1, 8)[:, : field.bytes]
        for space, of, places in addresses.by_space(threads):
            raw = b.execution.memory.read(
                AccessBatch(b.site, space, Kind.READ, threads[of], places, SIZE, alignment=ALIGNMENT)
            )
            raw[:, : len(MAGIC)] = np.frombuffer(MAGIC, np.uint8)
            raw[:, offset : offset + field.bytes] = new[of]
            write = AccessBatch(b.site, space, Kind.WRITE, threads[of], places, SIZE, alignment=ALIGNMENT, values=raw)
            b.execution.memory.write(write)

    return step


class _Ends:
    """The addresses of maps that threads name, in global or shared memory."""

    def __init__(self, b: Binding, operand: int, space: str) -> None:
        self.b = b
        self.shared = shared_address(b, operand, space) if space.startswith("shared") else None
        self.plain = b.address(operand, Space.GLOBAL if space == "global" else None)
        self.generic = not space

    def by_space(self, threads: IndexArray) -> list[tuple[Space, Any, NDArray[np.uint64]]]:
        """The spaces maps are in, which of the threads' are there, and where."""
        if self.shared is not None:
            return [(Space.SHARED, slice(None), self.shared(threads))]
        addresses = self.plain()[threads]
        if not self.generic:
            return [(Space.GLOBAL, slice(None), addresses)]
        found: list[tuple[Space, Any, NDArray[np.uint64]]] = []
        for space, where, places in self.b.execution.memory.resolve(addresses):
            of: Any = slice(None) if where is None else where
            if space not in (Space.GLOBAL, Space.SHARED):
                message = f"a tensor map that is changed in {space.value} memory; it may be in global or shared memory"
                raise self.b.execution.fault(Undefined, message, self.b.site, int(threads[of][0]))
            found.append((space, of, places))
        return found


@instruction("tensormap.cp_fenceproxy")
def _copy(b: Binding) -> Step:
    """A map is copied from shared to global memory, by a warp together."""
    form(
        b,
        op="cp_fenceproxy",
        to="global",
        source="shared::cta",
        proxies="tensormap::generic",
        semantics="release",
        scope="cta cluster gpu sys",
        sync="sync",
        aligned="aligned",
    )
    b.count(3)
    b.require(b.constant(2) == SIZE, f"a tensor map has {SIZE} bytes, not {b.constant(2)}")
    to, source = b.address(0, Space.GLOBAL), shared_address(b, 1, "shared::cta")
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        warps = execution.whole_warps(active, site)
        threads = warps * WARP + active.lanes[warps].argmax(axis=1)
        raw = execution.memory.read(
            AccessBatch(site, Space.SHARED, Kind.READ, threads, source(threads), SIZE, alignment=ALIGNMENT)
        )
        write = AccessBatch(
            site, Space.GLOBAL, Kind.WRITE, threads, to()[threads], SIZE, alignment=ALIGNMENT, values=raw
        )
        execution.memory.write(write)

    return step


@instruction("fence.proxy.tensormap::generic")
def _fence(b: Binding) -> Step:
    """Orders accesses to maps in global memory, which are in order here."""
    f = form(b, op="proxy", proxies="tensormap::generic", semantics="release acquire", scope="cta cluster gpu sys")
    if f["semantics"] == "acquire":
        b.count(2)
        b.address(0)
        b.require(b.constant(1) == SIZE, f"a tensor map has {SIZE} bytes, not {b.constant(1)}")
    else:
        b.count(0)
    return lambda active: None
