"""cvt to and from packed floats (PTX ISA 9.7.9, ``cvt``): f16x2, bf16x2 and the pairs and quadruples of narrow formats.

Which pairs of types there are, with what they demand, is a table (`PACKINGS`); an instruction is read off its row. The first
operand, a, goes to the upper end of the result. Random bits of ``.rs``: 13 or 16 for each of a pair in f16x2 or bf16x2, a's in
the upper half; of quadruples, 16 bits for two elements (a and b, e and f), which the first takes in reverse order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.emulator.arith import formats, rounding
from weft.emulator.machine.active import Active
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Compute = Callable[[], Any]


@dataclass(frozen=True)
class Packed:
    """A packed type: its elements' format, how many, and the bits each takes."""

    element: formats.Format
    count: int
    field: int

    @property
    def storage(self) -> str:
        """The untyped register type that holds it."""
        return f"b{self.count * self.field}"


def _packed() -> dict[str, Packed]:
    found = {"f16x2": Packed(formats.F16, 2, 16), "bf16x2": Packed(formats.BF16, 2, 16)}
    for f in (formats.E4M3, formats.E5M2, formats.E2M3, formats.E3M2, formats.E2M1, formats.UE8M0):
        field = 4 if f is formats.E2M1 else 8
        found[f"{f.name}x2"] = Packed(f, 2, field)
        if f is not formats.UE8M0:
            found[f"{f.name}x4"] = Packed(f, 4, field)
    return found


FORMATS: Final = _packed()
"""The packed types by name."""

_NARROW: Final = "e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2"


@dataclass(frozen=True)
class Packing:
    """What conversions from one set of types to another demand of the modifiers, as slots of `form`."""

    to: str
    source: str
    modes: str
    relu: str = "? relu"
    satfinite: str = "? satfinite"


PACKINGS: Final = (
    Packing("f16x2 bf16x2", "f32", "rn rz rs"),
    Packing(_NARROW, "f32 f16x2 bf16x2", "rn", satfinite="satfinite"),
    Packing(_NARROW.replace("x2", "x4"), "f32", "rs", satfinite="satfinite"),
    Packing("f16x2 bf16x2", _NARROW, "rn", satfinite="?"),
    Packing("ue8m0x2", "f32 bf16x2", "rz rp", relu="?"),
    Packing("bf16x2", "ue8m0x2", "rn", relu="?", satfinite="?"),
)


def bind_packed(b: Binding) -> Step:
    """A cvt that has a packed type among its modifiers."""
    names = [m for m in b.modifiers if m in FORMATS or m in TYPES]
    if len(names) != 2:
        b.unknown(f"a cvt with {len(names)} types")
    to, source = names
    for row in PACKINGS:
        if to in row.to.split() and source in row.source.split():
            break
    else:
        b.unknown(f"a conversion from .{source} to .{to}")
    f = form(b, mode=row.modes, relu=row.relu, satfinite=row.satfinite, to=to, source=source)
    target = FORMATS[to]
    b.count(2 + (f["mode"] == "rs") + (source == "f32" and target.count == 2))
    codes = _from_singles(b, target, f) if source == "f32" else _from_packed(b, target, FORMATS[source], f)
    put, storage = b.extend(0, TYPES[target.storage]), TYPES[target.storage].numpy

    def step(active: Active) -> None:
        put(_joined(codes(), target.field, storage), active)

    return step


def _joined(codes: Any, field: int, storage: np.dtype[Any]) -> Any:
    """Codes (..., count), the one for the lower end first, in one register."""
    if field == 4:
        codes = codes[..., 1::2] << np.uint8(4) | codes[..., ::2]
    return codes.view(storage)[..., 0]


def _from_singles(b: Binding, target: Packed, f: dict[str, str]) -> Compute:
    """Codes (T, count) of float32 operands."""
    kind = TYPES["f32"]
    operands = b.elements(1) if target.count == 4 else (1, 2)
    b.require(len(operands) == target.count, f"{target.count} values are converted")
    sources = [b.read(operand, kind) for operand in operands]
    shape = np.broadcast_shapes(*(x.shape for x in sources))
    encode = _encoder(b, target, f)

    def codes() -> Any:
        values = np.empty((*shape, target.count), np.float32)
        for i, x in enumerate(sources):
            values[..., target.count - 1 - i] = x
        return encode(values)

    return codes


def _encoder(b: Binding, target: Packed, f: dict[str, str]) -> Callable[[Any], Any]:
    """Float32 values (T, count) as codes."""
    element, mode, relu, satfinite = target.element, f["mode"], bool(f["relu"]), bool(f["satfinite"])
    if mode == "rs":
        noise = _random_bits(b, target)
        bits = 13 if element is formats.F16 else 16
        return lambda x: formats.encode(_wide(x), element, "rs", satfinite=satfinite, relu=relu, random=(noise(), bits))
    if element is formats.UE8M0:
        return lambda x: formats.encode_scale(_wide(x), mode, satfinite=satfinite)
    if element in (formats.F16, formats.BF16):
        if mode == "rn" and not satfinite:
            convert = formats.to_half if element is formats.F16 else formats.to_bfloat
            return (lambda x: convert(rounding.relu(x))) if relu else convert
        return lambda x: formats.encode(_wide(x), element, mode, satfinite=satfinite, relu=relu)
    narrow = formats.narrow_table(element, formats.BF16, relu)
    return lambda x: narrow[formats.to_odd_bfloat(x)]


def _wide(x: Any) -> rounding.F64:
    return np.asarray(x, np.float64)


def _from_packed(b: Binding, target: Packed, source: Packed, f: dict[str, str]) -> Compute:
    """Codes (T, 2) of the elements of a packed operand, each looked up; scales, which have more modes, are computed."""
    x = b.read(1, TYPES[source.storage])
    element, relu = target.element, bool(f["relu"])
    if element is formats.UE8M0:
        mode, satfinite = f["mode"], bool(f["satfinite"])
        return lambda: formats.encode_scale(
            _wide(formats.decode(_fields(x, source), source.element)), mode, satfinite=satfinite
        )
    if source.field == 16:
        table = formats.narrow_table(element, source.element, relu)
    else:
        table = formats.half_table(source.element, element, relu)
    return lambda: table[_fields(x, source)]


def _fields(x: Any, source: Packed) -> Any:
    """The codes in registers (T,): (T, 2), that of the lower end first."""
    if source.field == 4:
        return np.stack([x & np.uint8(15), x >> np.uint8(4)], axis=-1)
    return np.ascontiguousarray(x)[..., None].view(f"u{source.field // 8}").reshape(*x.shape, source.count)


def _random_bits(b: Binding, target: Packed) -> Compute:
    """The random bits of each element (T, count), of the one at the lower end first."""
    bits = b.read(3 if target.count == 2 else 2, TYPES["b32"])
    if target.count == 2:
        mask = np.uint32(0x1FFF if target.element is formats.F16 else 0xFFFF)
        return lambda: np.stack([bits & mask, bits >> np.uint32(16) & mask], axis=-1)

    def four() -> Any:
        byte = np.uint32(0xFF)
        if target.field == 8:
            upper, lower = bits >> np.uint32(16), bits & np.uint32(0xFFFF)
        else:
            upper = bits >> np.uint32(16) & (byte << np.uint32(8)) | bits >> np.uint32(8) & byte
            lower = bits >> np.uint32(8) & (byte << np.uint32(8)) | bits & byte
        return np.stack([lower, _REVERSED[lower], upper, _REVERSED[upper]], axis=-1)

    return four


_REVERSED: Final = np.array([int(f"{i:016b}"[::-1], 2) for i in range(1 << 16)], np.uint32)
"""Each 16-bit number read backwards."""
