"""cvt to and from packed floats (PTX ISA 9.7.9, ``cvt``): f16x2, bf16x2 and the pairs and quadruples of narrow formats.

Which pairs of types there are, with what they demand, is a table (`PACKINGS`); an instruction is read off its row. The first
operand, a, goes to the upper end of the result. Random bits of ``.rs``: 13 or 16 for each of a pair in f16x2 or bf16x2, a's in
the upper half; of quadruples, 16 bits for two elements (a and b, e and f), which the first takes in reverse order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    mode, relu, satfinite = f["mode"], bool(f["relu"]), bool(f["satfinite"])
    b.count(2 + (mode == "rs") + (source == "f32" and target.count == 2))
    values = _values(b, target.count, source)
    if mode == "rs":
        randoms = _random_bits(b, target)
        encode = [_stochastic(target.element, relu, satfinite, noise) for noise in randoms]
    else:
        encode = [_encoder(target.element, mode, relu, satfinite)] * target.count
    put, dtype = b.extend(0, TYPES[target.storage]), TYPES[target.storage].numpy
    shifts = [np.array(target.field * i, dtype) for i in reversed(range(target.count))]

    def step(active: Active) -> None:
        result: Any = np.zeros((), dtype)
        for value, code, shift in zip(values, encode, shifts, strict=True):
            result = result | code(value()).astype(dtype) << shift
        put(np.asarray(result), active)

    return step


def _values(b: Binding, count: int, source: str) -> Sequence[Compute]:
    """The values to convert, the one for the upper end first: float32 arrays when asked."""
    if source == "f32":
        operands = b.elements(1) if count == 4 else (1, 2)
        b.require(len(operands) == count, f"{count} values are converted")
        return [_constant(b.read(operand, TYPES["f32"])) for operand in operands]
    packed = FORMATS[source]
    x = b.read(1, TYPES[packed.storage])
    if packed.field == 4:
        fields = [lambda: x >> np.uint8(4), lambda: x & np.uint8(15)]
    else:
        dtype = np.dtype(f"u{packed.field // 8}")
        shift = x.dtype.type(packed.field)
        fields = [lambda: (x >> shift).astype(dtype), lambda: np.asarray(x).astype(dtype)]
    return [_decoded(field, packed.element) for field in fields]


def _constant(x: Any) -> Compute:
    return lambda: x


def _decoded(field: Compute, element: formats.Format) -> Compute:
    return lambda: formats.decode(np.asarray(field()), element)


def _encoder(element: formats.Format, mode: str, relu: bool, satfinite: bool) -> Callable[[Any], Any]:
    if element is formats.UE8M0:
        return lambda x: formats.encode_scale(_wide(x), mode, satfinite=satfinite)
    if mode == "rn" and not satfinite and element in (formats.F16, formats.BF16):
        convert = formats.to_half if element is formats.F16 else formats.to_bfloat
        return (lambda x: convert(rounding.relu(x))) if relu else convert
    return lambda x: formats.encode(_wide(x), element, mode, satfinite=satfinite, relu=relu)


def _wide(x: Any) -> rounding.F64:
    return np.asarray(x, np.float64)


def _stochastic(element: formats.Format, relu: bool, satfinite: bool, noise: Compute) -> Callable[[Any], Any]:
    count = 13 if element is formats.F16 else 16

    def encode(x: Any) -> Any:
        return formats.encode(_wide(x), element, "rs", satfinite=satfinite, relu=relu, random=(noise(), count))

    return encode


def _random_bits(b: Binding, target: Packed) -> Sequence[Compute]:
    """The random bits of each element, the one at the upper end first."""
    bits = b.read(3 if target.count == 2 else 2, TYPES["b32"])
    if target.count == 2:
        mask = np.uint32(0x1FFF if target.element is formats.F16 else 0xFFFF)
        return [lambda: bits >> np.uint32(16) & mask, lambda: bits & mask]
    if target.field == 8:
        upper: Compute = lambda: bits >> np.uint32(16)  # noqa: E731
        lower: Compute = lambda: bits & np.uint32(0xFFFF)  # noqa: E731
    else:
        upper = lambda: bits >> np.uint32(16) & np.uint32(0xFF00) | bits >> np.uint32(8) & np.uint32(0xFF)  # noqa: E731
        lower = lambda: bits >> np.uint32(8) & np.uint32(0xFF00) | bits & np.uint32(0xFF)  # noqa: E731
    return [lambda: _reversed(upper()), upper, lambda: _reversed(lower()), lower]


_REVERSED: Final = np.array([int(f"{i:016b}"[::-1], 2) for i in range(1 << 16)], np.uint32)


def _reversed(bits: Any) -> Any:
    return _REVERSED[bits]
