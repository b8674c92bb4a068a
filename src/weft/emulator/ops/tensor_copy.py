"""Tensor copies: boxes of tensors between global and shared memory, as a tensor map describes them (PTX ISA 9.7.10.28.5).

Which bytes go where is `weft.emulator.arith.tensor_copy`; which threads have seen it done is as for bulk copies. The
mode is ``.tile``; the im2col modes, and gather and scatter of rows (sm_100), are refused by name.

A copy completes as many bytes as its box has in shared memory, those outside the tensor too. A box in shared memory begins at
a multiple of 128 bytes (CUDA programming guide, tensor memory access). The box of a store begins at no negative coordinate: the
ISA allows that for loads only; beyond the tensor's end it is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.bulk_reduce import GLOBAL, Reduction, reduction
from weft.emulator.arith.tensor_copy import CHUNK, LINE, Runs, Shared, gather, scatter
from weft.emulator.errors import Misaligned, Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.async_copy import check_policy
from weft.emulator.ops.bulk import COMPLETE, GROUP, MULTICAST, Transfer, aimed, aims, signalled
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import shared_address
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.syntax import Address
from weft.emulator.ptx.types import TYPES
from weft.emulator.tensor_map import SIZE, Description, decode

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

DIMENSIONS: Final = "1d 2d 3d 4d 5d"

ELSEWHERE: Final = frozenset({Space.SHARED, Space.LOCAL})
"""Where no tensor map may be."""

BITWISE: Final = frozenset({"and", "or", "xor"})


class Boxes:
    """The operand ``[map, {x, y, ...}]``: which boxes the threads name."""

    def __init__(self, b: Binding, operand: int, dimensions: str) -> None:
        found = b.operand(operand)
        if not isinstance(found, Address) or not found.coordinates:
            b.wrong(f"operand {operand} of {b.instruction.opcode} must be a tensor map and coordinates")
        self.rank = int(dimensions[0])
        given = len(found.coordinates)
        b.require(given == self.rank, f"a tensor copy of .{dimensions} has {self.rank} coordinates, not {given}")
        self.execution, self.site = b.execution, b.site
        self.maps = b.address(operand)
        self.coordinates = [b.read(c, TYPES["s32"]) for c in found.coordinates]

    def of(self, threads: IndexArray) -> Iterator[tuple[Description, IndexArray, NDArray[np.int64]]]:
        """Each tensor map that threads name: what it says, which of the threads name it, and their coordinates, (N, rank)."""
        raw = read_maps(self.execution, self.site, threads, self.maps()[threads])
        coordinates = np.empty((threads.size, self.rank), np.int64)
        for k, values in enumerate(self.coordinates):
            coordinates[:, k] = values if values.ndim == 0 else values[threads]
        by_map: dict[bytes, list[int]] = {}
        for i, row in enumerate(raw):
            by_map.setdefault(row.tobytes(), []).append(i)
        for encoded, members in by_map.items():
            of = np.array(members)
            description = decode(encoded)
            thread = int(threads[of[0]])
            if isinstance(description, str):
                raise self.execution.fault(Undefined, description, self.site, thread)
            rank = description.tensor.rank
            if rank != self.rank:
                message = f"a tensor copy of {self.rank} dimensions, with a tensor map of {rank}"
                raise self.execution.fault(Undefined, message, self.site, thread)
            yield description, of, self._groups(description, coordinates[of], threads[of])

    def _groups(
        self, description: Description, coordinates: NDArray[np.int64], threads: IndexArray
    ) -> NDArray[np.int64]:
        """Coordinates of which the innermost counts groups of elements."""
        element = description.element
        if element.group == 1:
            return coordinates
        if (bad := coordinates[:, 0] % element.span != 0).any():
            which = int(bad.argmax())
            given = f"a first coordinate of {coordinates[which, 0]}"
            message = f"{given} for elements of type {element.name}; it must be a multiple of {element.span}"
            raise self.execution.fault(Undefined, message, self.site, int(threads[which]))
        coordinates[:, 0] //= element.group
        return coordinates


def read_maps(execution: Execution, site: int, threads: IndexArray, addresses: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The 128 bytes of the maps at generic addresses, (N, 128)."""
    raw = np.empty((threads.size, SIZE), np.uint8)
    for space, where, places in execution.memory.resolve(addresses):
        of: Any = slice(None) if where is None else where
        if space in ELSEWHERE:
            message = f"a tensor map in {space.value} memory; it may be in param, const or global memory"
            raise execution.fault(Undefined, message, site, int(threads[of][0]))
        access = AccessBatch(site, space, Kind.READ, threads[of], places, SIZE, alignment=64)
        raw[of] = execution.memory.read(access)
    return raw


def _places(copies: Transfer, bases: NDArray[np.uint64], of: IndexArray, description: Description) -> Shared:
    """Where the boxes are in shared memory."""
    if (bad := bases % np.uint64(LINE) != 0).any():
        which = int(bad.argmax())
        message = f"a box in shared memory at an address that is no multiple of {LINE}"
        address = copies.execution.memory.describe(Space.SHARED, int(bases[which]))
        raise copies.execution.fault(Misaligned, message, copies.site, int(copies.threads[of[which]]), address)
    return Shared.of(bases, description.shared_bytes, description.swizzle)


def _global(
    copies: Transfer, kind: Kind, of: IndexArray, runs: Runs, description: Description, counted: bool = True
) -> AccessBatch:
    """The accesses to the runs in global memory."""
    element = description.element.bytes if description.element.group == 1 else 1
    sixteen = runs.size % CHUNK == 0 and not (runs.address % np.uint64(CHUNK)).any()
    alignment = CHUNK if sixteen else element
    return copies.access(Space.GLOBAL, kind, of[runs.copy], runs.address, runs.size, alignment, element, counted)


@instruction("cp.async.bulk.tensor")
def _copy(b: Binding) -> Step:
    f = form(
        b,
        op="async",
        bulk="bulk",
        tensor="tensor",
        dimensions=DIMENSIONS,
        to="shared::cluster shared::cta global",
        source="global shared::cta",
        mode="? tile",
        completion=f"{COMPLETE} {GROUP}",
        multicast=f"? {MULTICAST}",
        group="? cta_group::1 cta_group::2",
        hint="? L2::cache_hint",
    )
    direction = (f["to"], f["source"], f["completion"])
    b.require(
        direction in _DIRECTIONS, f"there is no tensor copy from .{f['source']} to .{f['to']} with .{f['completion']}"
    )
    b.require(not f["multicast"] or f["to"] == "shared::cluster", "only copies to .shared::cluster multicast")
    b.require(not f["group"] or f["to"] != "global", f"'.{f['group']}' is not for copies to .global")
    if f["to"] == "global":
        return _store(b, f["dimensions"], f["hint"])
    pair = f["group"] == "cta_group::2"
    to, boxes, barrier = shared_address(b, 0, f["to"]), Boxes(b, 1, f["dimensions"]), shared_address(b, 2, f["to"])
    aim = aims(b, f["multicast"], 3)
    check_policy(b, f["hint"], 3 + bool(f["multicast"]))

    def step(active: Active) -> None:
        for some, rank, first in aim(active):
            for copies in Transfer.begin(b, some, signalled(b.execution, barrier, rank, pair)):
                bases = aimed(b.execution, to, rank)(copies.threads)
                total = np.zeros(copies.threads.size, np.int64)
                for description, of, coordinates in boxes.of(copies.threads):
                    _load(copies, description, of, coordinates, bases[of], first)
                    total[of] = description.tensor.bytes
                copies.complete(total)

    return step


def _load(
    copies: Transfer,
    description: Description,
    of: IndexArray,
    coordinates: NDArray[np.int64],
    bases: NDArray[np.uint64],
    counted: bool,
) -> None:
    """Boxes from global memory to shared memory, at these addresses."""
    dense = description.empty_boxes(of.size)
    for runs in description.tensor.runs(coordinates):
        scatter(runs, copies.read(_global(copies, Kind.READ, of, runs, description, counted)), dense)
    places = _places(copies, bases, of, description)
    access = copies.access(Space.SHARED, Kind.WRITE, of[places.copy], places.addresses, places.size)
    copies.write(access, places.arrange(description.pad(dense)))


_DIRECTIONS: Final = {
    ("shared::cluster", "global", COMPLETE),
    ("shared::cta", "global", COMPLETE),
    ("global", "shared::cta", GROUP),
}
"""Where tensor copies go, from where, and how their end is known."""


@instruction("cp.reduce.async.bulk.tensor")
def _reduce(b: Binding) -> Step:
    f = form(
        b,
        op="reduce",
        how="async",
        bulk="bulk",
        tensor="tensor",
        dimensions=DIMENSIONS,
        to="global",
        source="shared::cta",
        operation=" ".join(GLOBAL),
        mode="? tile",
        completion=GROUP,
        hint="? L2::cache_hint",
    )
    return _store(b, f["dimensions"], f["hint"], f["operation"])


def _store(b: Binding, dimensions: str, hint: str, operation: str = "") -> Step:
    """From shared to global memory, with a reduction or without."""
    boxes, source = Boxes(b, 0, dimensions), shared_address(b, 1, "shared::cta")
    check_policy(b, hint, 2)

    def step(active: Active) -> None:
        (copies,) = Transfer.begin(b, active)
        bases = source(copies.threads)
        for description, of, coordinates in boxes.of(copies.threads):
            _check_start(copies, of, coordinates)
            if description.element.name == "b4x16_p64":
                message = "a tensor copy to global memory of elements of type b4x16_p64; they go to shared memory only"
                raise copies.execution.fault(Undefined, message, copies.site, int(copies.threads[of[0]]))
            how = _reduction(copies, of, description, operation) if operation else None
            places = _places(copies, bases[of], of, description)
            access = copies.access(Space.SHARED, Kind.READ, of[places.copy], places.addresses, places.size)
            dense = description.unpad(places.collect(copies.read(access)))
            for runs in description.tensor.runs(coordinates):
                values = gather(runs, dense)
                if how is None:
                    copies.write(_global(copies, Kind.WRITE, of, runs, description), values)
                else:
                    copies.reduce(_global(copies, Kind.ATOMIC, of, runs, description), values, how)

    return step


def _check_start(copies: Transfer, of: IndexArray, coordinates: NDArray[np.int64]) -> None:
    if (bad := (coordinates < 0).any(axis=1)).any():
        which = int(bad.argmax())
        start = ", ".join(map(str, coordinates[which].tolist()))
        message = f"a box that is stored at coordinates {{{start}}}; only loads may start at negative ones"
        raise copies.execution.fault(Undefined, message, copies.site, int(copies.threads[of[which]]))


def _reduction(copies: Transfer, of: IndexArray, description: Description, operation: str) -> Reduction:
    """The reduction of the map's elements: bitwise operations look at their bits."""
    element = description.element
    kind = f"b{8 * element.bytes}" if operation in BITWISE else element.name
    known = [name for name in GLOBAL[operation] if (operation, name) != ("add", "f64")]
    if kind not in known or element.group > 1:
        message = f".{operation} of a tensor has elements of types {', '.join(known)}, not {element.name}"
        raise copies.execution.fault(Undefined, message, copies.site, int(copies.threads[of[0]]))
    return reduction(operation, kind)


@instruction("cp.async.bulk.prefetch.tensor")
def _prefetch(b: Binding) -> Step:
    """A hint, of which only the operands are checked."""
    f = form(
        b,
        op="async",
        bulk="bulk",
        what="prefetch",
        tensor="tensor",
        dimensions=DIMENSIONS,
        level="L2",
        source="global",
        mode="? tile",
        hint="? L2::cache_hint",
    )
    boxes = Boxes(b, 0, f["dimensions"])
    check_policy(b, f["hint"], 1)

    def step(active: Active) -> None:
        for _ in boxes.of(active.index):
            pass

    return step
