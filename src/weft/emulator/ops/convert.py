"""cvt between two scalar types (PTX ISA 9.7.9, ``cvt``): integers, f16, bf16, f32, f64, and to tf32.

Where the ISA demands a rounding modifier its absence is an error; one that has nothing to round (``cvt.rn.f64.f32``) is
accepted. Registers may be wider than their types: results are extended as the ISA says (`Binding.extend`). A NaN that becomes
f32, f16, bf16 or tf32 is canonical. Packed types are in `weft.emulator.ops.convert_packed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.emulator.arith import convert, formats, rounding
from weft.emulator.machine.active import Active
from weft.emulator.ops.convert_packed import FORMATS, bind_packed
from weft.emulator.ops.forms import form
from weft.emulator.ops.half import codes
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Compute = Callable[[], Any]

INTEGERS: Final = "u8 u16 u32 u64 s8 s16 s32 s64"
FLOATS: Final = "f16 bf16 f32 f64"
WIDTH: Final = {"bf16": 8, "f16": 11, "tf32": 11, "f32": 24, "f64": 53}
"""Bits of a significand: fewer than before need rounding. (bf16 and f16 have each something the other lacks.)"""


@instruction("cvt")
def cvt(b: Binding) -> Step:
    """Any cvt: packed, or scalar by the kinds of its types."""
    if any(m in FORMATS or m.endswith("x2") for m in b.modifiers):
        return bind_packed(b)
    f = form(
        b,
        mode=f"? {' '.join(convert.INTEGRAL)} rn rna rz rm rp",
        ftz="? ftz",
        sat="? sat",
        relu="? relu",
        satfinite="? satfinite",
        to=f"{INTEGERS} {FLOATS} tf32",
        source=f"{INTEGERS} {FLOATS}",
    )
    b.count(2)
    to, source = TYPES[f["to"]], TYPES[f["source"]]
    b.require(not f["ftz"] or "f32" in (to.name, source.name), ".ftz needs a type .f32")
    from_float, to_float = source.name in FLOATS.split(), to.name not in INTEGERS.split()
    if not to_float or not from_float:
        b.require(not (f["relu"] or f["satfinite"]), ".relu and .satfinite are for conversions between floats")
    if to_float:
        compute = _float_to_float(b, f, to, source) if from_float else _integer_to_float(b, f, to, source)
    else:
        compute = _float_to_integer(b, f, to, source) if from_float else _integer_to_integer(b, f, to, source)
    put = b.extend(0, to)

    def step(active: Active) -> None:
        put(compute(), active)

    return step


def _floats(b: Binding, source: Type, ftz: str) -> Compute:
    """The operand as float64 if it is that, else as float32."""
    if source.name in formats.FORMATS:
        half = codes(b, 1, source)
        return lambda: formats.decode(half, formats.FORMATS[source.name])
    x = b.read(1, source)
    if ftz and source.name == "f32":
        return lambda: rounding.flush(x)
    return lambda: x


def _integer_to_integer(b: Binding, f: dict[str, str], to: Type, source: Type) -> Compute:
    b.require(not f["mode"], f"an integer needs no .{f['mode']} to become an integer")
    x, dtype = b.read(1, source), to.numpy
    if f["sat"]:
        return lambda: convert.clamped(x, dtype)
    return lambda: np.asarray(x).astype(dtype)


def _float_to_integer(b: Binding, f: dict[str, str], to: Type, source: Type) -> Compute:
    mode = f["mode"]
    b.require(mode in convert.INTEGRAL, "a float becomes an integer with .rni, .rzi, .rmi or .rpi")
    value, dtype = _floats(b, source, f["ftz"]), to.numpy
    nan = 1 << (to.bits - 1) if source.name == "f64" or to.bits == 64 else 0
    return lambda: convert.to_integer(value(), mode, dtype, nan)


def _integer_to_float(b: Binding, f: dict[str, str], to: Type, source: Type) -> Compute:
    mode = f["mode"]
    b.require(mode in rounding.MODES, "an integer becomes a float with .rn, .rz, .rm or .rp")
    b.require(to.name != "tf32", ".tf32 is converted from .f32 only")
    b.require(not f["sat"] or to.name != "bf16", ".sat is not for .bf16")
    x = b.read(1, source)
    sat = bool(f["sat"])
    if to.name == "f32" and mode == "rn" and not sat:
        return lambda: np.asarray(x).astype(np.float32)
    if to.name == "f64":
        return _saturated(lambda: convert.integer_to_float64(x, mode), sat)
    value = _saturated(lambda: convert.from_integer(x, mode), sat)
    return lambda: _narrow(value(), to.name, mode)


def _saturated(value: Compute, sat: bool) -> Compute:
    return (lambda: rounding.saturate(np.asarray(value()))) if sat else value


def _narrow(x: Any, name: str, mode: str, satfinite: bool = False, relu: bool = False) -> Any:
    """Float64 values rounded to a type, as its NumPy dtype."""
    if name == "f64":
        return x
    if name == "f32":
        return rounding.canonical(rounding.to_float32(x, mode))
    found = formats.encode(np.asarray(x, np.float64), formats.FORMATS[name], mode, satfinite=satfinite, relu=relu)
    return found.view(np.float16) if name == "f16" else found


def _float_to_float(b: Binding, f: dict[str, str], to: Type, source: Type) -> Compute:
    mode, sat = f["mode"], bool(f["sat"])
    _check_float_to_float(b, f, to, source)
    value = _floats(b, source, f["ftz"])
    if mode in convert.INTEGRAL:
        operand, integral = value, convert.INTEGRAL[mode]
        value, mode = (lambda: integral(operand())), "rn"
    value = _saturated(value, sat)
    satfinite, relu = bool(f["satfinite"]), bool(f["relu"])
    mode = mode or "rn"
    ftz = bool(f["ftz"]) and to.name == "f32"
    if source.name != "f64" and to.name in ("f32", "f64"):
        final = to.numpy
        if final == np.float64:
            return lambda: np.asarray(value()).astype(np.float64)
        return lambda: rounding.canonical(np.array(rounding.flush(value()) if ftz else value(), np.float32))
    if source.name != "f64" and mode == "rn" and not satfinite and to.name in ("f16", "bf16"):
        return _to_half(value, to.name, relu)
    if mode == "rna" and not satfinite and not relu:
        return lambda: formats.to_tf32(np.asarray(value()))
    if ftz:
        return lambda: rounding.flush(_narrow(value(), "f32", mode))
    return lambda: _narrow(value(), to.name, mode, satfinite, relu)


def _to_half(value: Compute, name: str, relu: bool) -> Compute:
    """Rounded to nearest from float32, the usual case."""
    chosen = (lambda: rounding.relu(value())) if relu else value
    if name == "bf16":
        return lambda: formats.to_bfloat(np.asarray(chosen()))
    return lambda: formats.to_half(np.asarray(chosen())).view(np.float16)


def _check_float_to_float(b: Binding, f: dict[str, str], to: Type, source: Type) -> None:
    mode = f["mode"]
    if mode in convert.INTEGRAL:
        b.require(to.name == source.name, f".{mode} between floats needs equal types")
    elif WIDTH[to.name] < WIDTH[source.name] and {to.name, source.name} != {"f16", "bf16"}:
        # Between the two of 16 bits, Triton writes none: ptxas takes .rn, and emits the same machine code as where it is said.
        b.require(mode, f"a .{source.name} becomes a .{to.name} with a rounding modifier")
    if to.name == "tf32":
        b.require(source.name == "f32", ".tf32 is converted from .f32 only")
        b.require(mode in ("rn", "rna", "rz"), ".tf32 is rounded with .rn, .rna or .rz")
    else:
        b.require(mode != "rna", ".rna is for .tf32 only")
    b.require(not f["sat"] or to.name in ("f16", "f32", "f64"), f".sat is not for .{to.name}")
    if f["relu"] or f["satfinite"]:
        b.require(source.name == "f32" and to.name in ("f16", "bf16", "tf32"), ".relu and .satfinite narrow a .f32")
        b.require(mode in ("rn", "rz", "rna"), ".relu and .satfinite are with .rn or .rz")
        b.require(not f["sat"], ".sat is without .relu and .satfinite")


@instruction("cvt.pack")
def cvt_pack(b: Binding) -> Step:
    """cvt.pack.sat: two integers saturated, into the lower end of the result; the third operand is moved up before them."""
    f = form(b, pack="pack", sat="sat", to="u16 s16 u8 s8 u4 s4 u2 s2", source="s32", rest="? b32")
    size = int(f["to"][1:])
    b.require(bool(f["rest"]) == (size < 16), ".b32 and a third operand go with types of 8 bits or fewer")
    b.count(4 if f["rest"] else 3)
    signed = f["to"][0] == "s"
    least, most = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if signed else (0, (1 << size) - 1)
    high, low = b.read(1, TYPES["s32"]), b.read(2, TYPES["s32"])
    rest = b.read(3, TYPES["b32"]) if f["rest"] else np.zeros((), np.uint32)
    put = b.extend(0, TYPES["b32"])
    mask, shift, move = np.uint32((1 << size) - 1), np.uint32(size), np.uint32(2 * size % 32)
    above: Any = rest if f["rest"] else np.uint32(0)

    def part(x: Any) -> Any:
        return np.clip(x, least, most).astype(np.uint32) & mask

    def step(active: Active) -> None:
        put(np.asarray((above << move) | (part(high) << shift) | part(low)), active)

    return step
