"""Tensor copies: boxes of tensors between global and shared memory, as a tensor map describes them (PTX ISA 9.7.10.28.5).

Which bytes go where is `weft.emulator.arith.tensor_copy`, which boxes a copy moves `weft.emulator.arith.tensor_modes`; which
threads have seen it done is as for bulk copies.

A copy completes as many bytes as its box has in shared memory, those outside the tensor too. A box in shared memory begins at
a multiple of 128 bytes (CUDA programming guide, tensor memory access). The box of a store begins at no negative coordinate: the
ISA allows that for loads only; beyond the tensor's end it is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import tensor_modes as modes
from weft.emulator.arith.bulk_reduce import GLOBAL, Reduction, reduction
from weft.emulator.arith.tensor_copy import CHUNK, LINE, Runs, Shared, gather, scatter
from weft.emulator.errors import Fault, Misaligned, Undefined
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


@dataclass(frozen=True)
class Mode:
    """How an instruction's coordinates name boxes, ``.tile`` and its alternatives."""

    map: str
    """The kind of tensor map that it needs."""
    offsets: int | None = 0
    """Operands that follow the mbarrier in braces; None is two less than the tensor has dimensions."""
    rows: bool = False
    """Whether the coordinates are those of four rows of a matrix."""


LOADS: Final = {
    "tile": Mode("tiled"),
    "tile::gather4": Mode("tiled", rows=True),
    "im2col": Mode("im2col", None),
    "im2col::w": Mode("im2col::w", 2),
    "im2col::w::128": Mode("im2col::w", 2),
}
STORES: Final = {
    "tile": Mode("tiled"),
    "tile::scatter4": Mode("tiled", rows=True),
    "im2col_no_offs": Mode("im2col"),
}
MODES: Final = LOADS | STORES

OFFSETS: Final = {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}
"""Offsets of im2col are less than this, by dimensions of the tensor."""

WIDE: Final = (
    ("wHalo", {"im2col::w": 512, "im2col::w::128": 32}),
    ("wOffset", {"im2col::w": 32, "im2col::w::128": 32}),
)
"""The operands of im2col::w and im2col::w::128, and what they are less than."""

BITWISE: Final = frozenset({"and", "or", "xor"})


class Boxes:
    """The operand ``[map, {x, y, ...}]``, and the offsets of im2col: which boxes the threads name."""

    def __init__(self, b: Binding, operand: int, dimensions: str, mode: str, offsets: int = 0) -> None:
        found = b.operand(operand)
        if not isinstance(found, Address) or not found.coordinates:
            b.wrong(f"operand {operand} of {b.instruction.opcode} must be a tensor map and coordinates")
        self.rank = int(dimensions[0])
        self.mode = mode or "tile"
        kind = MODES[self.mode]
        given, expected = len(found.coordinates), 5 if kind.rows else self.rank
        b.require(given == expected, f"a tensor copy of .{dimensions} has {expected} coordinates, not {given}")
        b.require(not kind.rows or self.rank == 2, f"'.{mode}' is of .2d tensors")
        b.require("im2col" not in self.mode or self.rank > 2, f"'.{mode}' is of tensors of .3d, .4d or .5d")
        self.execution, self.site = b.execution, b.site
        self.maps = b.address(operand)
        self.coordinates = [b.read(c, TYPES["s32"]) for c in found.coordinates]
        self.offsets: list[NDArray[Any]] = []
        if self.mode in LOADS and kind.offsets != 0:
            vector, count = b.elements(offsets), kind.offsets or self.rank - 2
            b.require(len(vector) == count, f"'.{mode}' of .{dimensions} has {count} offsets, not {len(vector)}")
            self.offsets = [b.read(c, TYPES["u16"]) for c in vector]

    @property
    def operands(self) -> int:
        """How many operands the offsets are."""
        return int(bool(self.offsets))

    def of(self, threads: IndexArray) -> Iterator[tuple[Description, IndexArray, NDArray[np.int64]]]:
        """Each tensor map that threads name: what it says, which of the threads name it, and the coordinates of their boxes, (N,
        boxes, rank)."""
        raw = read_maps(self.execution, self.site, threads, self.maps()[threads])
        coordinates, offsets = _stacked(self.coordinates, threads), _stacked(self.offsets, threads)
        by_map: dict[bytes, list[int]] = {}
        for i, row in enumerate(raw):
            by_map.setdefault(row.tobytes(), []).append(i)
        for encoded, members in by_map.items():
            of = np.array(members)
            description = decode(encoded)
            if isinstance(description, str):
                raise self._fault(threads[of[0]], description)
            rank = description.tensor.rank
            if rank != self.rank:
                message = f"a tensor copy of {self.rank} dimensions, with a tensor map of {rank}"
                raise self._fault(threads[of[0]], message)
            start = self._groups(description, coordinates[of], threads[of])
            yield description, of, self._boxes(description, start, offsets[of], threads[of])

    def _fault(self, thread: Any, message: str) -> Fault:
        return self.execution.fault(Undefined, message, self.site, int(thread))

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
            raise self._fault(threads[which], message)
        coordinates[:, 0] //= element.group
        return coordinates

    def _boxes(
        self, description: Description, start: NDArray[np.int64], offsets: NDArray[np.int64], threads: IndexArray
    ) -> NDArray[np.int64]:
        """The boxes that a copy from ``start`` is of, one after the other."""
        column, tensor, mode = description.column, description.tensor, MODES[self.mode]
        kind = "tiled" if column is None else "im2col::w" if column.wide else "im2col"
        if kind != mode.map:
            message = (
                f"a tensor copy of '.{self.mode}' with a tensor map that is {kind}, expected one that is {mode.map}"
            )
            raise self._fault(threads[0], message)
        if column is None:
            if mode.rows and tensor.box[1] != 1:
                message = f"a tensor copy of '.{self.mode}' with a box of {tensor.box[1]} rows, expected 1"
                raise self._fault(threads[0], message)
            return modes.rows(start) if mode.rows else start[:, None, :]
        if (bad := modes.outside(column, start, tensor.sizes)).any():
            which = int(bad.argmax())
            place = ", ".join(map(str, start[which].tolist()))
            raise self._fault(threads[which], f"an im2col copy from {{{place}}}, which is outside the box of pixels")
        if not column.wide:
            self._below(offsets, [("an im2col offset", OFFSETS[self.rank])] * offsets.shape[1], threads)
            shift = offsets if offsets.size else np.zeros((len(start), self.rank - 2), np.int64)
            return column.walk(start, shift, tensor.sizes, tensor.steps, column.pixels)
        self._below(offsets, [(name, limits[self.mode]) for name, limits in WIDE], threads)
        halo, narrow = offsets[:, 0], self.mode == "im2col::w"
        if not narrow and halo.any():
            message = "the emulator does not know how '.im2col::w::128' orders halos; give a wHalo of 0"
            raise self._fault(threads[int(halo.argmax())], message)
        if (halo != halo[0]).any():
            message = "threads of one execution of '.im2col::w' with different wHalo are not known to the emulator"
            raise self._fault(threads[int((halo != halo[0]).argmax())], message)
        pixels = column.pixels + int(halo[0]) if narrow else 128
        return column.walk(start, offsets[:, 1:], tensor.sizes, tensor.steps, pixels)

    def _below(self, offsets: NDArray[np.int64], limits: list[tuple[str, int]], threads: IndexArray) -> None:
        for values, (name, limit) in zip(offsets.T, limits, strict=True):
            if (bad := values >= limit).any():
                which = int(bad.argmax())
                raise self._fault(threads[which], f"{name} of {values[which]}, expected one below {limit}")


def _stacked(operands: list[NDArray[Any]], threads: IndexArray) -> NDArray[np.int64]:
    """What the threads have in each operand, (N, operands)."""
    found = np.empty((threads.size, len(operands)), np.int64)
    for k, values in enumerate(operands):
        found[:, k] = values if values.ndim == 0 else values[threads]
    return found


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


def _places(
    copies: Transfer, bases: NDArray[np.uint64], of: IndexArray, description: Description, boxes: int
) -> Shared:
    """Where the boxes are in shared memory."""
    if (bad := bases % np.uint64(LINE) != 0).any():
        which = int(bad.argmax())
        message = f"a box in shared memory at an address that is no multiple of {LINE}"
        address = copies.execution.memory.describe(Space.SHARED, int(bases[which]))
        raise copies.execution.fault(Misaligned, message, copies.site, int(copies.threads[of[which]]), address)
    return Shared.of(bases, description.shared_bytes * boxes, description.swizzle)


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
        mode="? " + " ".join(MODES),
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
    there = STORES if f["to"] == "global" else LOADS
    b.require((f["mode"] or "tile") in there, f"'.{f['mode']}' is not for copies to .{f['to']}")
    if f["to"] == "global":
        return _store(b, f["dimensions"], f["mode"], f["hint"])
    pair = f["group"] == "cta_group::2"
    to, barrier = shared_address(b, 0, f["to"]), shared_address(b, 2, f["to"])
    boxes = Boxes(b, 1, f["dimensions"], f["mode"], 3)
    aim = aims(b, f["multicast"], 3 + boxes.operands)
    check_policy(b, f["hint"], 3 + boxes.operands + bool(f["multicast"]))

    def step(active: Active) -> None:
        for some, rank, first in aim(active):
            for copies in Transfer.begin(b, some, signalled(b.execution, barrier, rank, pair)):
                bases = aimed(b.execution, to, rank)(copies.threads)
                total = np.zeros(copies.threads.size, np.int64)
                for description, of, coordinates in boxes.of(copies.threads):
                    _load(copies, description, of, coordinates, bases[of], first)
                    total[of] = description.tensor.bytes * coordinates.shape[1]
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
    boxes, rank = coordinates.shape[1:]
    dense, owner = description.empty_boxes(of.size * boxes), np.repeat(of, boxes)
    for runs in description.tensor.runs(coordinates.reshape(-1, rank)):
        values = copies.read(_global(copies, Kind.READ, owner, runs, description, counted))
        scatter(runs, description.element.loaded(values), dense)
    places = _places(copies, bases, of, description, boxes)
    access = copies.access(Space.SHARED, Kind.WRITE, of[places.copy], places.addresses, places.size)
    copies.write(access, places.arrange(description.pad(dense).reshape(of.size, -1)))


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
        mode="? tile im2col_no_offs",
        completion=GROUP,
        hint="? L2::cache_hint",
    )
    return _store(b, f["dimensions"], f["mode"], f["hint"], f["operation"])


def _store(b: Binding, dimensions: str, mode: str, hint: str, operation: str = "") -> Step:
    """From shared to global memory, with a reduction or without."""
    boxes, source = Boxes(b, 0, dimensions, mode), shared_address(b, 1, "shared::cta")
    check_policy(b, hint, 2)

    def step(active: Active) -> None:
        (copies,) = Transfer.begin(b, active)
        bases = source(copies.threads)
        for description, of, coordinates in boxes.of(copies.threads):
            _check_start(copies, of, coordinates)
            if description.element.name == "b4x16_p64":
                message = "a tensor copy to global memory of elements of type b4x16_p64; they go to shared memory only"
                raise copies.execution.fault(Undefined, message, copies.site, int(copies.threads[of[0]]))
            if description.element.flushed or description.element.rounded:
                name = description.element.name
                message = f"a tensor copy to global memory of elements of type {name}, which nothing says the values of"
                raise copies.execution.fault(Undefined, message, copies.site, int(copies.threads[of[0]]))
            how = _reduction(copies, of, description, operation) if operation else None
            count, rank = coordinates.shape[1:]
            places, owner = _places(copies, bases[of], of, description, count), np.repeat(of, count)
            access = copies.access(Space.SHARED, Kind.READ, of[places.copy], places.addresses, places.size)
            found = places.collect(copies.read(access)).reshape(of.size * count, -1)
            dense = description.unpad(found)
            for runs in description.tensor.runs(coordinates.reshape(-1, rank)):
                values = gather(runs, dense)
                if how is None:
                    copies.write(_global(copies, Kind.WRITE, owner, runs, description), values)
                else:
                    copies.reduce(_global(copies, Kind.ATOMIC, owner, runs, description), values, how)

    return step


def _check_start(copies: Transfer, of: IndexArray, coordinates: NDArray[np.int64]) -> None:
    if (bad := (coordinates < 0).any(axis=(1, 2))).any():
        which = int(bad.argmax())
        box = int((coordinates[which] < 0).any(axis=1).argmax())
        start = ", ".join(map(str, coordinates[which, box].tolist()))
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
        mode="? " + " ".join(LOADS),
        hint="? L2::cache_hint",
    )
    boxes = Boxes(b, 0, f["dimensions"], f["mode"], 1)
    check_policy(b, f["hint"], 1 + boxes.operands)

    def step(active: Active) -> None:
        for _ in boxes.of(active.index):
            pass

    return step
