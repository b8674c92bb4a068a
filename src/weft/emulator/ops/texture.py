"""tex, tld4: textures by a handle (PTX ISA 9.7.10).

A handle is in a texref, samplerref or surfref, or in a 64-bit register, which may hold the address of such a variable instead
(``mov.u64 %rd, tex``; the ISA's indirect access). In texmode_independent a sampler stands beside the texture: what counts of it
are its modes, not its array. Coordinates are normalized where both say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.sampling import cube_face
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.memory import WINDOW
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.declarations import OPAQUE
from weft.emulator.ptx.syntax import Address, Operand, Pair, Register, Sink, Symbol, Vector
from weft.emulator.ptx.types import TYPES, Type
from weft.emulator.texture import Images, Surface, Texture, axis_count

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Handles = Callable[[IndexArray], NDArray[np.uint64]]

GEOMETRIES: Final = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True)}
"""The axes of each, and whether a layer precedes their coordinates."""

CUBES: Final = {"cube": (3, False), "acube": (3, True)}
"""Those of cube maps: a direction."""


class Place:
    """The operand ``[handle, {layer, x, y, ...}]``: whose elements, and which."""

    def __init__(self, b: Binding, operand: int, geometry: str, kind: str) -> None:
        found = b.operand(operand)
        if not isinstance(found, Address) or not found.coordinates:
            b.wrong(f"operand {operand} of {b.instruction.opcode} must be a handle and coordinates")
        self.cube = geometry in CUBES
        self.rank, self.layered = (CUBES if self.cube else GEOMETRIES)[geometry]
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
        variables = opaque(b)

        def indirect(threads: IndexArray) -> NDArray[np.uint64]:
            found = values[threads]
            for address, (_, held) in variables.items():
                found[found == np.uint64(address)] = held
            return found

        return indirect
    if not isinstance(operand, Symbol):
        b.wrong(f"a handle of {b.instruction.opcode} must be a register or a variable")
    space = b.variable_map.space(b.function, operand.name)
    start = b.variable_map.address(b.function, operand, b.instruction)
    if space not in (Space.GLOBAL, Space.PARAM):
        b.wrong(f"'{operand.name}' is no texref, samplerref or surfref")
    value = _held(b, space, start)
    return lambda threads: np.full(threads.size, value, np.uint64)


def opaque(b: Binding) -> dict[int, tuple[str, int]]:
    """The texrefs, samplerrefs and surfrefs that a kernel may name: by generic address, their type and the handle they hold."""
    declared = [("", v) for v in b.execution.program.module.variables.values()]
    declared += [(b.variable_map.kernel.name, v) for v in b.variable_map.kernel.parameters]
    found: dict[int, tuple[str, int]] = {}
    for owner, variable in declared:
        if variable.type in OPAQUE:
            space, start = b.variable_map.spaces[owner, variable.name], b.variable_map.addresses[owner, variable.name]
            window = 0 if space is Space.GLOBAL else WINDOW[space]
            for i in range(variable.count or 0):
                at = start + i * OPAQUE[variable.type]
                found[window + at] = variable.type, _held(b, space, at)
    return found


def _held(b: Binding, space: Space, start: int) -> int:
    """The handle in a variable at an address within its space."""
    heap = b.execution.memory.heaps[space]
    start -= heap.base if space is Space.GLOBAL else 0
    return int.from_bytes(heap.bytes[start : start + 8].tobytes(), "little")


def objects(
    b: Binding, handles: NDArray[np.uint64], threads: IndexArray, kind: type
) -> Iterator[tuple[int, IndexArray]]:
    """Each handle that threads have, and who has it. Raises: Undefined, for one that stands for nothing of the kind."""
    for value in np.unique(handles).tolist():
        of = (handles == value).nonzero()[0]
        if not isinstance(Images.find(value), kind):
            message = f"0x{value:x} is the handle of no {kind.__name__.lower()}"
            raise b.execution.fault(Undefined, message, b.site, int(threads[of[0]]))
        yield value, of


def check_shape(b: Binding, image: Texture | Surface, place: Place, thread: int) -> None:
    """Raises `Undefined` unless an image has the axes that an instruction names."""
    rank = 3 if image.cube else image.rank
    if (rank, image.cube, image.layered) != (place.rank, place.cube, place.layered):
        has = ("a cube" if image.cube else axis_count(image.rank)) + (" and layers" if image.layered else "")
        message = f"{b.instruction.opcode} of .{place.geometry} from a {image.kind.lower()} of {has}"
        raise b.execution.fault(Undefined, message, b.site, thread)


_LEFT: Final = {
    "level": "tex.level, a level of a mip map",
    "grad": "tex.grad, which chooses a level of a mip map",
    "2dms": "tex.2dms, a multisampled texture",
    "a2dms": "tex.a2dms, multisampled textures",
}
"""Forms of tex and tld4 that are refused, and what they need."""


class _Fetch:
    """A tex or tld4: its results, its operands, and the textures and samplers that threads name."""

    def __init__(self, b: Binding, kind: Type, geometry: str, coordinates: str) -> None:
        count = b.count(2, 3, 4)
        operand = b.operand(0)
        resident = operand.second if isinstance(operand, Pair) else Sink()
        parts = b.elements(operand.first if isinstance(operand, Pair) else operand)
        self.place = Place(b, 1, geometry, coordinates)
        offset = count > 2 and isinstance(b.operand(2), Vector)
        if count > 2 + offset:
            b.unknown(f"the depth compare operand of {b.instruction.opcode}")
        self.offsets: list[NDArray[Any]] = []
        if offset:
            b.require(not self.place.cube, f"{b.instruction.opcode}.{geometry} has no offsets")
            given = b.elements(2)
            wanted = 4 if self.place.rank == 3 else self.place.rank
            b.require(len(given) == wanted, f"{len(given)} offsets, expected {wanted}")
            self.offsets = [b.read(part, TYPES["s32"]) for part in given[: self.place.rank]]
        self.b, self.kind, self.parts = b, kind, parts
        self.resident = None if isinstance(resident, Sink) else b.write(resident, TYPES["pred"])

    def textures(self, active: Active) -> Iterator[tuple[Texture, Texture, IndexArray, tuple[Any, ...]]]:
        """Each texture with its sampler, who fetches from it, and what `Texture.fetch` has to be told: values, layers,
        coordinates; and offsets."""
        b, place = self.b, self.place
        threads = active.index
        layers, coordinates = place.coordinates(threads)
        given, faces = layers, np.zeros(0, np.intp)
        if place.cube:
            faces, places = cube_face(*coordinates)
            coordinates = [*places]
        every = (b.execution.threads,)
        offsets = [np.broadcast_to(o, every)[threads].astype(np.int64) for o in self.offsets]
        handles = place.handles(threads)
        samplers = handles if place.samplers is None else place.samplers(threads)
        if self.resident is not None:
            self.resident[threads] = True
        for value, of in objects(b, handles, threads, Texture):
            texture = Images.find(value)
            assert isinstance(texture, Texture)
            check_shape(b, texture, place, int(threads[of[0]]))
            if texture.floats != (self.kind.kind in "fx"):
                gives = "floats" if texture.floats else "integers"
                message = (
                    f"{b.instruction.opcode} of .{self.kind.name} from a texture of {texture.array.dtype}, "
                    f"whose read mode gives {gives}"
                )
                raise b.execution.fault(Undefined, message, b.site, int(threads[of[0]]))
            values = b.execution.memory.images.values(texture)
            if place.cube:
                layers = np.clip(given, 0, texture.layers // 6 - 1) * 6 + faces
            for other, some in objects(b, samplers[of], threads[of], Texture):
                mine = of[some]
                sampler = Images.find(other)
                assert isinstance(sampler, Texture)
                if sampler.rank != texture.rank:
                    message = (
                        f"{b.instruction.opcode} of .{place.geometry} with a sampler of {axis_count(sampler.rank)}: "
                        f"it needs an address mode for each of {texture.rank}"
                    )
                    raise b.execution.fault(Undefined, message, b.site, int(threads[mine[0]]))
                if coordinates[0].dtype.kind == "f" and (reason := texture.misfit(sampler)):
                    raise b.execution.fault(
                        Undefined, f"{b.instruction.opcode} {reason}", b.site, int(threads[mine[0]])
                    )
                at = values, layers[mine], [c[mine] for c in coordinates]
                yield texture, sampler, threads[mine], (*at, [o[mine] for o in offsets])


@instruction("tex")
def tex(b: Binding) -> Step:
    """``tex.geometry.v4.type.type {r, g, b, a}|p, [texture, {coordinates}], {offsets}``; channels that a texture does not have
    are 0. All texels are resident: p is true. ``.base`` is a texture's only level. ``.v2.f16x2`` has two channels in a result."""
    _refuse(b)
    f = form(
        b,
        level="? base",
        geometry=" ".join((*GEOMETRIES, *CUBES)),
        vector="v4 v2",
        type="f32 u32 s32 f16x2",
        coordinates="f32 s32",
    )
    kind = TYPES[f["type"]]
    b.require(f["coordinates"] == "f32" or f["geometry"] not in CUBES, f"tex.{f['geometry']} has coordinates of .f32")
    halves = kind.name == "f16x2"
    b.require(halves == (f["vector"] == "v2"), f"tex has .v4 results, and .v2.f16x2; not .{f['vector']}.{kind.name}")
    fetch = _Fetch(b, kind, f["geometry"], f["coordinates"])
    wanted = 2 if halves else 4
    b.require(len(fetch.parts) == wanted, f"{len(fetch.parts)} results for {wanted} {'pairs of ' * halves}channels")
    targets = [b.write(part, kind) for part in fetch.parts]

    def step(active: Active) -> None:
        for texture, sampler, threads, (values, layers, places, offsets) in fetch.textures(active):
            found = texture.fetch(values, layers, places, sampler, offsets)
            four = np.zeros((threads.size, 4), found.dtype)
            four[:, : texture.channels] = found
            with np.errstate(over="ignore"):
                words = four.astype(np.float16).view(np.uint32) if halves else four
            for channel, target in enumerate(targets):
                target[threads] = words[:, channel]

    return step


@instruction("tld4")
def tld4(b: Binding) -> Step:
    """``tld4.channel.2d.v4.type.f32 {a, b, c, d}|p, [texture, {x, y}], {offsets}``: one channel of the four texels that a linear
    fetch would be between."""
    _refuse(b)
    f = form(b, channel="r g b a", geometry="2d a2d cube acube", vector="v4", type="f32 u32 s32", coordinates="f32")
    fetch = _Fetch(b, TYPES[f["type"]], f["geometry"], f["coordinates"])
    b.require(len(fetch.parts) == 4, f"{len(fetch.parts)} results for 4 texels")
    targets = [b.write(part, fetch.kind) for part in fetch.parts]
    channel = "rgba".index(f["channel"])

    def step(active: Active) -> None:
        for texture, sampler, threads, (values, layers, places, offsets) in fetch.textures(active):
            found = texture.gather(values, layers, places, sampler, channel, offsets)
            for corner, target in enumerate(targets):
                target[threads] = found[:, corner]

    return step


def _refuse(b: Binding) -> None:
    for modifier in b.modifiers:
        if modifier in _LEFT:
            b.unknown(_LEFT[modifier].format(b.instruction.opcode))
