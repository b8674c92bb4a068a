"""txq, suq, istypep: what is asked of textures, samplers and surfaces (PTX ISA 9.7.10, 9.7.11).

Each answer is a row of a table. Questions whose answers the ISA does not number (the modes of filters and addresses), and those
of textures that the emulator does not have (samples), are refused: a guess would look like an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.texture import handle, objects, opaque
from weft.emulator.ptx.syntax import Address, Operand, Symbol
from weft.emulator.ptx.types import TYPES
from weft.emulator.texture import Images, Surface, Texture

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "width": lambda image: image.sizes[-1],
    "height": lambda image: image.sizes[-2] if image.rank > 1 else 0,
    "depth": lambda image: image.sizes[-3] if image.rank > 2 else 0,
}

_SHARED: Final[dict[str, Callable[[Any], int]]] = {
    **_SIZES,
    "array_size": lambda image: image.layers if image.layered else 0,
    "channel_data_type": lambda image: _DATA_TYPES[image.array.dtype.name, image.read],
    "channel_order": lambda image: {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}[image.channels],
}
"""Asked of textures and surfaces."""

_TEXTURE: Final[dict[str, Callable[[Any], int]]] = {
    **_SHARED,
    "normalized_coords": lambda texture: int(texture.normalized),
    "num_mipmap_levels": lambda texture: 1,
}

_SAMPLER: Final[dict[str, Callable[[Any], int]]] = {
    "force_unnormalized_coords": lambda sampler: int(not sampler.normalized),
}

_SURFACE: Final[dict[str, Callable[[Any], int]]] = {
    **_SHARED,
    "memory_layout": lambda surface: 0,  # 1 is a surface of linear memory; CUDA's surface objects are of its arrays
}

_DATA_TYPES: Final = {
    ("int8", "normalized"): 0x10D0,
    ("int16", "normalized"): 0x10D1,
    ("uint8", "normalized"): 0x10D2,
    ("uint16", "normalized"): 0x10D3,
    ("int8", "element"): 0x10D7,
    ("int16", "element"): 0x10D8,
    ("int32", "element"): 0x10D9,
    ("uint8", "element"): 0x10DA,
    ("uint16", "element"): 0x10DB,
    ("uint32", "element"): 0x10DC,
    ("float16", "element"): 0x10DD,
    ("float32", "element"): 0x10DE,
}
"""The ISA's numbers for the types of channels (PTX ISA 5.3.2)."""

_OPEN: Final = "{}.{}: the ISA does not say which number stands for which mode"

_NOT_ASKED: Final = {
    "num_samples": "{}.{}: there are no multisampled textures",
    **dict.fromkeys(("filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"), _OPEN),
}
"""Questions that are refused, and why."""


def _query(b: Binding, kind: type, answers: dict[str, Callable[[Any], int]], *levels: str) -> Step:
    """An instruction that asks a `kind`; ``levels`` are the questions that may be of a level of a mip map."""
    opcode = b.instruction.opcode
    for modifier in b.modifiers:
        if modifier in _NOT_ASKED:
            b.unknown(_NOT_ASKED[modifier].format(opcode, modifier))
    f = form(b, level="? level" if levels else "?", what=" ".join(answers), type="b32")
    b.require(not f["level"] or f["what"] in levels, f"{opcode}.level has no .{f['what']}")
    b.count(2 + bool(f["level"]))
    ask, target = answers[f["what"]], b.write(0, TYPES["b32"])
    found = b.operand(1)
    if not isinstance(found, Address):
        b.wrong(f"operand 1 of {opcode} must be a handle in brackets")
    _check_declared(b, found.base, "samplerref" if f["what"] in _SAMPLER else _REFERENCES[kind])
    handles = handle(b, found.base)
    level = b.read(2, TYPES["u32"]) if f["level"] else np.zeros((), np.uint32)

    def step(active: Active) -> None:
        threads = active.index
        chosen = np.broadcast_to(level, (b.execution.threads,))[threads]
        if chosen.any():
            which = int((chosen != 0).argmax())
            message = f"{opcode}.level of level {chosen[which]} of a texture, which has level 0 only"
            raise b.execution.fault(Undefined, message, b.site, int(threads[which]))
        for value, of in objects(b, handles(threads), threads, kind):
            target[threads[of]] = ask(Images.find(value))

    return step


@instruction("txq")
def txq(b: Binding) -> Step:
    """Elements along an axis (``.level``: of a level, of which there is one), layers, types and number of channels, and whether
    coordinates are normalized; of a sampler, whether it makes them unnormalized. An axis that is not there has 0."""
    return _query(b, Texture, _TEXTURE | _SAMPLER, *_SIZES)


@instruction("suq")
def suq(b: Binding) -> Step:
    """The same of a surface, and whether it is linear memory: it is not."""
    return _query(b, Surface, _SURFACE)


def _check_declared(b: Binding, operand: Operand, wanted: str) -> None:
    """Refuses a variable of another type than a question is for."""
    variable = b.execution.program.module.variables.get(operand.name) if isinstance(operand, Symbol) else None
    if variable is not None and variable.type != wanted:
        b.wrong(f"{b.instruction.name} asks a .{wanted}, but '{variable.name}' is a .{variable.type}")


_KINDS: Final = {"texref": Texture, "surfref": Surface}
_REFERENCES: Final = {kind: name for name, kind in _KINDS.items()}


@instruction("istypep")
def istypep(b: Binding) -> Step:
    """``istypep.type p, a``: whether a is the address of an opaque variable of the type, or the handle of such an object."""
    wanted = form(b, type="texref samplerref surfref")["type"]
    b.count(2)
    target, source = b.write(0, TYPES["pred"]), b.read(1, TYPES["u64"])
    variables = opaque(b)

    def step(active: Active) -> None:
        threads = active.index
        values = np.broadcast_to(source, (b.execution.threads,))[threads]
        for value in np.unique(values).tolist():
            of = threads[values == value]
            if value in variables:
                target[of] = variables[value][0] == wanted
                continue
            found = Images.find(value)
            if wanted == "samplerref" and isinstance(found, Texture):
                message = (
                    "istypep.samplerref of the handle of a texture: the ISA does not say whether its sampler counts"
                )
                raise b.execution.fault(Undefined, message, b.site, int(of[0]))
            target[of] = wanted in _KINDS and isinstance(found, _KINDS[wanted])

    return step
