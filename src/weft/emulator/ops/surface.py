"""suld, sust, sured: surfaces by a handle (PTX ISA 9.7.11).

``.b`` counts bytes along x, and moves bits. ``.p`` counts elements, and converts 32-bit values to their type: float32 to
float16; integers that an element cannot hold are a fault, because the ISA does not say what becomes of them. Reductions of
threads at one place are done one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Misaligned, OutOfBounds, Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.texture import GEOMETRIES, Place, check_shape, objects
from weft.emulator.ptx.types import STORAGE, TYPES
from weft.emulator.texture import Images, Surface

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_CACHE: Final = "? ca cg cs cv wb wt"
_OUTSIDE: Final = "trap clamp zero"


@dataclass(frozen=True)
class Found:
    """The bytes of a surface that some threads access."""

    surface: Surface
    rows: NDArray[np.uint8]
    threads: IndexArray
    """Those whose bytes are inside."""
    where: tuple[NDArray[np.intp], ...]
    """(layer, z, y, byte), the last (N, size)."""


class Access:
    """The operand ``[surface, {layer, x, y, z}]``. ``size`` bytes from byte x on; of None, an element of the surface."""

    def __init__(self, b: Binding, operand: int, geometry: str, outside: str, size: int | None) -> None:
        self.b, self.outside, self.size = b, outside, size
        self.place = Place(b, operand, geometry, "s32")

    def find(self, active: Active) -> Iterator[Found]:
        """What the threads access of each surface."""
        b, execution, threads = self.b, self.b.execution, active.index
        layers, places = self.place.coordinates(threads)
        for value, of in objects(b, self.place.handles(threads), threads, Surface):
            surface = Images.find(value)
            assert isinstance(surface, Surface)
            check_shape(b, surface, self.place, int(threads[of[0]]))
            element = surface.row // surface.sizes[-1]
            size = self.size or element
            limits = [surface.row - size, *(n - 1 for n in reversed(surface.sizes[:-1])), surface.layers - 1]
            found = [p[of].astype(np.int64) for p in places] + [layers[of].astype(np.int64)]
            found[0] = found[0] * (1 if self.size else element)
            if (odd := found[0] % size != 0).any():
                which = int(odd.argmax())
                message = (
                    f"{b.instruction.opcode} of {size} bytes at byte {found[0][which]} of a row, no multiple of that"
                )
                raise execution.fault(Misaligned, message, b.site, int(threads[of[which]]))
            outside = np.logical_or.reduce([(p < 0) | (p > n) for p, n in zip(found, limits, strict=True)])
            if outside.any() and self.outside == "trap":
                which = int(outside.argmax())
                at = ", ".join(str(p[which]) for p in found[: surface.rank])
                shape = " x ".join(str(n) for n in (surface.row, *reversed(surface.sizes[:-1])))
                layer = f", layer {found[-1][which]} of {surface.layers}" if surface.layered else ""
                message = f"{b.instruction.opcode} of {size} bytes at {{{at}}} of a surface of {shape}{layer}"
                raise execution.fault(OutOfBounds, message, b.site, int(threads[of[which]]))
            keep = np.ones(of.size, np.bool_) if self.outside == "clamp" else ~outside
            inside = [np.clip(p, 0, n)[keep] for p, n in zip(found, limits, strict=True)]
            first = inside[0][:, None] + np.arange(size)
            rows = (inside[-1], *reversed(inside[1:-1]))
            where = (*(r[:, None] for r in rows), first)
            yield Found(surface, execution.memory.images.bytes(surface), threads[of[keep]], where)


def _bytes(b: Binding, operand: int) -> tuple[Access, int]:
    """The access of a suld or sust by bytes, and how many values it has."""
    f = form(
        b,
        how="b",
        geometry=" ".join(GEOMETRIES),
        cache=_CACHE,
        vector="? v2 v4",
        type="b8 b16 b32 b64",
        outside=_OUTSIDE,
    )
    b.count(2)
    count = int((f["vector"] or "v1")[1])
    size = TYPES[f["type"]].bytes * count
    b.require(size <= 16, f"an access of {size} bytes; at most 16 can be accessed at once")
    return Access(b, operand, f["geometry"], f["outside"], size), count


@instruction("suld")
def suld(b: Binding) -> Step:
    """Loads; with ``.zero`` what lies outside is 0, with ``.clamp`` the nearest inside, with ``.trap`` a fault."""
    access, count = _bytes(b, 1)
    kind, parts = b.type(), b.elements(0)
    b.require(len(parts) == count, f"{len(parts)} results for {count} values")
    puts = [b.extend(part, kind) for part in parts]
    storage = STORAGE[kind.bits]

    def step(active: Active) -> None:
        words = np.zeros((b.execution.threads, count), storage)
        for found in access.find(active):
            words[found.threads] = np.ascontiguousarray(found.rows[found.where]).view(storage)
        for put, values in zip(puts, words.T, strict=True):
            put(np.ascontiguousarray(values), active)

    return step


@instruction("sust")
def sust(b: Binding) -> Step:
    """Stores; with ``.zero`` nothing outside. Of several threads at one place the last stays."""
    access, count = _bytes(b, 0)
    kind, parts = b.type(), b.elements(1)
    b.require(len(parts) == count, f"{len(parts)} values, expected {count}")
    storage = STORAGE[kind.bits]
    sources = [np.broadcast_to(b.read(part, kind).view(storage), (b.execution.threads,)) for part in parts]

    def step(active: Active) -> None:
        for found in access.find(active):
            words = np.stack([source[found.threads] for source in sources], axis=1)
            found.rows[found.where] = np.ascontiguousarray(words).view(np.uint8).reshape(found.threads.size, -1)

    return step


@instruction("sust.p")
def _formatted(b: Binding) -> Step:
    """Stores elements. Channels that the surface does not have are dropped; those that are not given are a fault."""
    f = form(b, how="p", geometry="1d 2d 3d", vector="? v2 v4", type="b32", outside=_OUTSIDE)
    b.count(2)
    access = Access(b, 0, f["geometry"], f["outside"], None)
    parts = b.elements(1)
    count = int((f["vector"] or "v1")[1])
    b.require(len(parts) == count, f"{len(parts)} values, expected {count}")
    sources = [np.broadcast_to(b.read(part, TYPES["b32"]), (b.execution.threads,)) for part in parts]

    def step(active: Active) -> None:
        for found in access.find(active):
            surface, threads = found.surface, found.threads
            if not threads.size:
                continue
            if surface.channels > count:
                message = f"sust.p of {count} values to a surface of {surface.channels} channels: the others are unpredictable"
                raise b.execution.fault(Undefined, message, b.site, int(threads[0]))
            words = np.stack([source[threads] for source in sources[: surface.channels]], axis=1)
            found.rows[found.where] = _converted(b, surface, words, threads).view(np.uint8).reshape(threads.size, -1)

    return step


def _converted(b: Binding, surface: Surface, words: NDArray[np.uint32], threads: IndexArray) -> NDArray[Any]:
    """32-bit values as elements of a surface."""
    dtype = surface.array.dtype
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return words.view(np.float32).astype(dtype)
    values = words.view(np.int32 if dtype.kind == "i" else np.uint32)
    stored = values.astype(dtype)
    if (bad := (stored != values).any(axis=1)).any():
        which = int(bad.argmax())
        message = (
            f"sust.p of {', '.join(map(str, values[which].tolist()))} to a surface of {dtype}, which cannot hold it"
        )
        raise b.execution.fault(Undefined, message, b.site, int(threads[which]))
    return stored


_REDUCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


@instruction("sured")
def sured(b: Binding) -> Step:
    """Reductions. Those by elements (``.p``) have the signedness of the surface's integers, of 32 bits."""
    f = form(
        b,
        how="b p",
        operation=" ".join(_REDUCTIONS),
        geometry="1d 2d 3d",
        type="u32 s32 u64 s64 b32 b64",
        outside=_OUTSIDE,
    )
    b.count(2)
    kind, how, by_element = TYPES[f["type"]], _REDUCTIONS[f["operation"]], f["how"] == "p"
    b.require(not by_element or kind.kind == "b", f"sured.p has types .b32 and .b64, not .{kind.name}")
    access = Access(b, 0, f["geometry"], f["outside"], None if by_element else kind.bytes)
    source = np.broadcast_to(b.read(1, kind), (b.execution.threads,))

    def step(active: Active) -> None:
        for found in access.find(active):
            dtype = found.surface.array.dtype if by_element else kind.numpy
            if by_element and (dtype.kind == "f" or found.where[-1].shape[1] != kind.bytes):
                message = (
                    f"sured.p of .{kind.name} to a surface of {found.surface.channels} x {found.surface.array.dtype}"
                )
                raise b.execution.fault(Undefined, message, b.site, int(active.index[0]))
            for i, thread in enumerate(found.threads.tolist()):
                where = tuple(np.broadcast_to(w, found.where[-1].shape)[i] for w in found.where)
                old = np.ascontiguousarray(found.rows[where]).view(dtype)
                with np.errstate(over="ignore"):
                    found.rows[where] = how(old, source[thread : thread + 1].view(dtype)).view(np.uint8)

    return step
