"""tex, txq, suld, sust, suq: textures and surfaces by a handle (PTX ISA 9.7.10, 9.7.11).

A handle is a 64-bit register, or a texref, samplerref or surfref that holds one. In texmode_independent a sampler stands beside
the texture: what counts of it are its modes, not its array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Misaligned, OutOfBounds, Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import Space
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.syntax import Address, Operand, Register, Symbol
from weft.emulator.ptx.types import STORAGE, TYPES
from weft.emulator.texture import Images, Surface, Texture

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Handles = Callable[[IndexArray], NDArray[np.uint64]]

GEOMETRIES: Final = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True)}
"""The axes of each, and whether a layer precedes their coordinates."""


class _Place:
    """The operand ``[handle, {layer, x, y, ...}]``: whose elements, and which."""

    def __init__(self, b: Binding, operand: int, geometry: str, kind: str) -> None:
        found = b.operand(operand)
        if not isinstance(found, Address) or not found.coordinates:
            b.wrong(f"operand {operand} of {b.instruction.opcode} must be a handle and coordinates")
        self.rank, self.layered = GEOMETRIES[geometry]
        wanted = self.rank + self.layered
        wanted = 4 if wanted == 3 else wanted
        given = len(found.coordinates)
        b.require(given == wanted, f"{b.instruction.opcode} of .{geometry} has {wanted} coordinates, not {given}")
        self.geometry = geometry
        self.handles = handle(b, found.base)
        self.samplers = None if found.sampler is None else handle(b, found.sampler)
        self.threads = b.execution.threads
        self.layer = b.read(found.coordinates[0], TYPES["u32"]) if self.layered else np.zeros((), np.uint32)
        self.places = [b.read(c, TYPES[kind]) for c in found.coordinates[self.layered : self.layered + self.rank]]

    def coordinates(
        self, threads: IndexArray
    ) -> tuple[NDArray[np.intp], list[NDArray[np.int64] | NDArray[np.float64]]]:
        """The layers, and the coordinates x, y, z, of some threads."""
        every = (self.threads,)
        layers = np.broadcast_to(self.layer, every)[threads].astype(np.intp)
        return layers, [np.broadcast_to(p, every)[threads] for p in self.places]


def handle(b: Binding, operand: Operand) -> Handles:
    """How threads find a handle: in a register, or in an opaque variable."""
    if isinstance(operand, Register):
        values = np.broadcast_to(b.read(operand, TYPES["u64"]), (b.execution.threads,))
        return lambda threads: values[threads]
    if not isinstance(operand, Symbol):
        b.wrong(f"a handle of {b.instruction.opcode} must be a register or a variable")
    space = b.variable_map.space(b.function, operand.name)
    start = b.variable_map.address(b.function, operand, b.instruction)
    if space not in (Space.GLOBAL, Space.PARAM):
        b.wrong(f"'{operand.name}' is no texref, samplerref or surfref")
    heap = b.execution.memory.heaps[space]
    start -= heap.base if space is Space.GLOBAL else 0
    value = int.from_bytes(heap.bytes[start : start + 8].tobytes(), "little")
    return lambda threads: np.full(threads.size, value, np.uint64)


def _objects(
    b: Binding, handles: NDArray[np.uint64], threads: IndexArray, kind: type
) -> Iterator[tuple[int, IndexArray]]:
    """Each handle that threads have, and who has it. Raises: Undefined, for one that stands for nothing of the kind."""
    for value in np.unique(handles).tolist():
        of = (handles == value).nonzero()[0]
        if not isinstance(Images.find(value), kind):
            message = f"0x{value:x} is the handle of no {kind.__name__.lower()}"
            raise b.execution.fault(Undefined, message, b.site, int(threads[of[0]]))
        yield value, of


@instruction("tex")
def tex(b: Binding) -> Step:
    """``tex.geometry.v4.type.type {r, g, b, a}, [texture, {coordinates}]``; channels that a texture does not have are 0."""
    f = form(b, geometry=" ".join(GEOMETRIES), vector="v4", type="f32 u32 s32", coordinates="f32 s32")
    b.count(2)
    parts = b.elements(0)
    b.require(len(parts) == 4, f"{len(parts)} results for 4 channels")
    kind = TYPES[f["type"]]
    targets = [b.write(part, kind) for part in parts]
    place = _Place(b, 1, f["geometry"], f["coordinates"])
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        layers, coordinates = place.coordinates(threads)
        handles = place.handles(threads)
        samplers = handles if place.samplers is None else place.samplers(threads)
        for value, of in _objects(b, handles, threads, Texture):
            texture = Images.find(value)
            assert isinstance(texture, Texture)
            _check_shape(b, texture, place, int(threads[of[0]]))
            if texture.floats != (kind.kind == "f"):
                gives = "floats" if texture.floats else "integers"
                message = f"tex of .{kind.name} from a texture of {texture.array.dtype}, whose read mode gives {gives}"
                raise execution.fault(Undefined, message, site, int(threads[of[0]]))
            values = execution.memory.images.values(texture)
            for other, some in _objects(b, samplers[of], threads[of], Texture):
                mine = of[some]
                sampler = Images.find(other)
                assert isinstance(sampler, Texture)
                found = texture.fetch(values, layers[mine], [c[mine] for c in coordinates], sampler)
                for channel, target in enumerate(targets):
                    target[threads[mine]] = found[:, channel] if channel < texture.channels else 0

    return step


def _check_shape(b: Binding, image: Texture | Surface, place: _Place, thread: int) -> None:
    if (image.rank, image.layered) != (place.rank, place.layered):
        axes = f"{image.rank} ax{'i' if image.rank == 1 else 'e'}s" + (" and layers" if image.layered else "")
        message = f"{b.instruction.opcode} of .{place.geometry} from a {image.kind.lower()} of {axes}"
        raise b.execution.fault(Undefined, message, b.site, thread)


# ---- surfaces ----------------------------------------------------------------------------------------------------------

_CACHE: Final = "? ca cg cs cv wb wt"


class _Bytes:
    """The bytes of a surface that suld or sust names: ``{layer, x, y, z}``, x in bytes."""

    def __init__(self, b: Binding, operand: int) -> None:
        f = form(
            b,
            how="b",
            geometry=" ".join(GEOMETRIES),
            cache=_CACHE,
            vector="? v2 v4",
            type="b8 b16 b32 b64",
            outside="trap clamp zero",
        )
        b.count(2)
        self.kind, self.count = TYPES[f["type"]], int((f["vector"] or "v1")[1])
        self.size = self.kind.bytes * self.count
        b.require(self.size <= 16, f"an access of {self.size} bytes; at most 16 can be accessed at once")
        self.outside = f["outside"]
        self.place = _Place(b, operand, f["geometry"], "s32")
        self.b = b

    def find(self, active: Active) -> Iterator[tuple[NDArray[np.uint8], IndexArray, tuple[NDArray[np.intp], ...]]]:
        """For each surface: its rows, the threads whose bytes are inside, and where these are: (layer, z, y, byte), the last
        (N, size)."""
        b, execution, threads = self.b, self.b.execution, active.index
        layers, places = self.place.coordinates(threads)
        for value, of in _objects(b, self.place.handles(threads), threads, Surface):
            surface = Images.find(value)
            assert isinstance(surface, Surface)
            _check_shape(b, surface, self.place, int(threads[of[0]]))
            limits = [surface.row - self.size, *(n - 1 for n in reversed(surface.sizes[:-1])), surface.layers - 1]
            found = [p[of].astype(np.int64) for p in places] + [layers[of].astype(np.int64)]
            if (odd := found[0] % self.size != 0).any():
                which = int(odd.argmax())
                message = f"{b.instruction.opcode} of {self.size} bytes at byte {found[0][which]} of a row, no multiple of that"
                raise execution.fault(Misaligned, message, b.site, int(threads[of[which]]))
            outside = np.logical_or.reduce([(p < 0) | (p > n) for p, n in zip(found, limits, strict=True)])
            if outside.any() and self.outside == "trap":
                which = int(outside.argmax())
                at = ", ".join(str(p[which]) for p in found[: surface.rank])
                shape = " x ".join(str(n) for n in (surface.row, *reversed(surface.sizes[:-1])))
                layer = f", layer {found[-1][which]} of {surface.layers}" if surface.layered else ""
                message = f"{b.instruction.opcode} of {self.size} bytes at {{{at}}} of a surface of {shape}{layer}"
                raise execution.fault(OutOfBounds, message, b.site, int(threads[of[which]]))
            keep = np.ones(of.size, np.bool_) if self.outside == "clamp" else ~outside
            inside = [np.clip(p, 0, n)[keep] for p, n in zip(found, limits, strict=True)]
            first = inside[0][:, None] + np.arange(self.size)
            rows = (inside[-1], *reversed(inside[1:-1]))
            yield execution.memory.images.bytes(surface), threads[of[keep]], (*(r[:, None] for r in rows), first)


@instruction("suld")
def suld(b: Binding) -> Step:
    """Loads; with ``.zero`` what lies outside is 0, with ``.clamp`` the nearest inside, with ``.trap`` a fault."""
    access = _Bytes(b, 1)
    parts = b.elements(0)
    b.require(len(parts) == access.count, f"{len(parts)} results for {access.count} values")
    puts = [b.extend(part, access.kind) for part in parts]
    storage = STORAGE[access.kind.bits]

    def step(active: Active) -> None:
        words = np.zeros((b.execution.threads, access.count), storage)
        for rows, threads, where in access.find(active):
            words[threads] = np.ascontiguousarray(rows[where]).view(storage)
        for put, values in zip(puts, words.T, strict=True):
            put(np.ascontiguousarray(values), active)

    return step


@instruction("sust")
def sust(b: Binding) -> Step:
    """Stores; with ``.zero`` nothing outside. Of several threads at one place the last stays."""
    access = _Bytes(b, 0)
    parts = b.elements(1)
    b.require(len(parts) == access.count, f"{len(parts)} values, expected {access.count}")
    storage = STORAGE[access.kind.bits]
    sources = [np.broadcast_to(b.read(part, access.kind).view(storage), (b.execution.threads,)) for part in parts]

    def step(active: Active) -> None:
        for rows, threads, where in access.find(active):
            words = np.stack([source[threads] for source in sources], axis=1)
            rows[where] = np.ascontiguousarray(words).view(np.uint8).reshape(threads.size, access.size)

    return step


# ---- questions ---------------------------------------------------------------------------------------------------------

_QUERIES: Final[dict[str, Callable[[Texture | Surface], int]]] = {
    "width": lambda image: image.sizes[-1],
    "height": lambda image: image.sizes[-2] if image.rank > 1 else 0,
    "depth": lambda image: image.sizes[-3] if image.rank > 2 else 0,
    "array_size": lambda image: image.layers if image.layered else 0,
    "normalized_coords": lambda image: int(isinstance(image, Texture) and image.normalized),
}


def _query(b: Binding, kind: type, names: str) -> Step:
    f = form(b, what=names, type="b32")
    b.count(2)
    ask, target = _QUERIES[f["what"]], b.write(0, TYPES["b32"])
    found = b.operand(1)
    if not isinstance(found, Address):
        b.wrong(f"operand 1 of {b.instruction.opcode} must be a handle in brackets")
    handles = handle(b, found.base)

    def step(active: Active) -> None:
        threads = active.index
        for value, of in _objects(b, handles(threads), threads, kind):
            image = Images.find(value)
            assert image is not None
            target[threads[of]] = ask(image)

    return step


@instruction("txq")
def txq(b: Binding) -> Step:
    """Elements along an axis, layers, and whether coordinates are normalized; an axis that is not there has 0."""
    return _query(b, Texture, " ".join(_QUERIES))


@instruction("suq")
def suq(b: Binding) -> Step:
    """The same of a surface."""
    return _query(b, Surface, "width height depth array_size")
