"""Half-precision arithmetic: f16, f16x2, bf16, bf16x2 (PTX ISA 9.7.4), each result rounded once.

Values are computed in float32 and rounded from there where that is one rounding. For sums it is: 24 bits are more than twice
11 or 8 and two more, and sums of subnormal numbers are exact. Products of f16 are exact, and so are those of bf16 down to
2**-134, below which all are zero in bf16. fma has more bits than float32, so it goes through float64. There a sum of a product
and an f16 needs no care: to have more than 53 bits it would have to be infinite in f16, or its addend far from a tie; bf16's
range is wider, so its sums are `rounding.exact_sum`.

``.oob`` is for tensors whose outside was filled with NaN. Where a factor of the product is that NaN (`formats.OUTSIDE`), the
result is +0.0, whatever is added. "Either of the operands", says the ISA; CUTLASS takes it for the factors, too.

NaN results are the canonical NaN, 0x7fff, except of abs and neg, which change the sign of a NaN alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.emulator.arith import approximate, formats, rounding
from weft.emulator.ops.elementwise import Array, assign, elementwise, lanes
from weft.emulator.ops.extremes import check_signs, pick
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step
from weft.emulator.ptx.syntax import Immediate
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.ptx.types import Type

Compute = Callable[..., Any]

F16: Final = "f16 f16x2"
BF16: Final = "bf16 bf16x2"
HALVES: Final = f"{F16} {BF16}"

LEAST: Final = np.float32(2.0**-14)
"""The smallest normal f16."""


def is_half(b: Binding) -> bool:
    """Whether an instruction's last type is one of these."""
    return b.type().name in HALVES.split()


def codes(b: Binding, operand: int, kind: Type) -> Array:
    """An operand as 16-bit codes, pairs in a second axis. An integer constant is a code."""
    found = b.operand(operand)
    if isinstance(found, Immediate) and isinstance(found.value, int) and not found.bits:
        kind = TYPES[f"b{kind.bits}"]
    x = b.read(operand, kind)
    return lanes(x, "u2") if kind.bits == 32 else x.view(np.uint16)


def target(b: Binding, kind: Type) -> Array:
    """Where the result's codes go."""
    d = b.write(0, kind)
    return lanes(d, "u2") if kind.bits == 32 else d.view(np.uint16)


def _flush(x: Any) -> Any:
    result: Any = x * (np.abs(x) >= LEAST)
    return result


def _flush_codes(x: formats.Codes) -> formats.Codes:
    return np.where((x & 0x7C00) == 0, x & 0x8000, x)


def _step(
    b: Binding, kind: Type, f: dict[str, str], function: Compute, count: int, encode: Compute | None = None
) -> Step:
    """The result of a function of float32 values, with what the modifiers ask for, encoded."""
    wide = formats.BF16 if kind.name.startswith("bf16") else formats.F16
    encode = encode or (formats.to_bfloat if wide is formats.BF16 else formats.to_half)
    operands = tuple(codes(b, i, kind) for i in range(1, count + 1))
    decode, ftz, oob = formats.decode, bool(f.get("ftz")) and wide is formats.F16, bool(f.get("oob"))
    clamp = rounding.saturate if f.get("sat") else rounding.relu if f.get("relu") else None

    def compute() -> Any:
        values = [decode(x, wide) for x in operands]
        if ftz:
            values = [_flush(x) for x in values]
        result = function(*values)
        if clamp is not None:
            result = clamp(result)
        result = encode(result)
        if oob:
            result = np.where((operands[0] == formats.OUTSIDE) | (operands[1] == formats.OUTSIDE), 0, result)
        return _flush_codes(result) if ftz else result

    return assign(target(b, kind), compute)


def _half_form(b: Binding, **slots: str) -> tuple[dict[str, str], Type]:
    f = form(b, **slots, type=HALVES)
    kind = b.type()
    if kind.name in BF16.split():
        b.require(not f.get("sat"), f".sat is not for .{kind.name}")
    return f, kind


def binary(b: Binding, name: str) -> Step:
    """add, sub, mul."""
    f, kind = _half_form(b, mode="? rn", ftz="? ftz", sat="? sat")
    b.require(not f["ftz"] or kind.name in F16.split(), f".ftz is not for .{kind.name}")
    b.count(3)
    return _step(b, kind, f, {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name], 2)


def fma(b: Binding) -> Step:
    """fma, with ``.relu`` or ``.sat``, and with ``.oob``."""
    f, kind = _half_form(b, mode="rn", ftz="? ftz", sat="? sat", relu="? relu", oob="? oob")
    b.require(not f["ftz"] or kind.name in F16.split(), f".ftz is not for .{kind.name}")
    b.require(not (f["sat"] and f["relu"]), ".sat and .relu exclude each other")
    b.require(not (f["ftz"] and f["oob"]), ".ftz and .oob exclude each other")
    b.count(4)
    if kind.name in BF16.split():
        return _step(b, kind, f, _exact_fma, 3, formats.bfloat_of_exact)
    return _step(b, kind, f, _wide_fma, 3, formats.half_of_exact)


def _wide_fma(x: Any, y: Any, z: Any) -> Any:
    return np.multiply(x, y, dtype=np.float64) + z


def _exact_fma(x: Any, y: Any, z: Any) -> Any:
    return rounding.exact_sum(np.multiply(x, y, dtype=np.float64), z)


def function(b: Binding, name: str) -> Step:
    """ex2 and tanh; ex2 of bf16 flushes subnormal numbers, and says so."""
    if name == "tanh":
        f, kind = _half_form(b, how="approx")
        ftz = False
    else:
        f, kind = _half_form(b, how="approx", ftz="? ftz")
        ftz = bool(f["ftz"])
        b.require(ftz == (kind.name in BF16.split()), f"ex2.{kind.name} is {'with' if not ftz else 'without'} .ftz")
    b.count(2)
    compute = approximate.FUNCTIONS[name]

    def result(x: Any) -> Any:
        if ftz:
            x = rounding.flush(x)
        y = compute(x.astype(np.float64)).astype(np.float32)
        return rounding.flush(y) if ftz else y

    return _step(b, kind, {}, result, 1)


def sign(b: Binding, name: str) -> Step:
    """abs and neg: of the sign's bit, so of NaN too."""
    f, kind = _half_form(b, ftz="? ftz")
    b.require(not f["ftz"] or kind.name in F16.split(), f".ftz is not for .{kind.name}")
    b.count(2)
    x, d = codes(b, 1, kind), target(b, kind)
    ufunc, bits = (np.bitwise_and, np.uint16(0x7FFF)) if name == "abs" else (np.bitwise_xor, np.uint16(0x8000))
    if f["ftz"]:
        return assign(d, lambda: ufunc(_flush_codes(x), bits))
    return elementwise(d, ufunc, x, np.asarray(bits))


def extreme(b: Binding, name: str) -> Step:
    """min and max."""
    f, kind = _half_form(b, ftz="? ftz", nan="? NaN", xorsign="? xorsign", abs="? abs")
    b.require(not f["ftz"] or kind.name in F16.split(), f".ftz is not for .{kind.name}")
    check_signs(b, f, b.count(3))
    return _step(b, kind, f, pick(name, f), 2)
