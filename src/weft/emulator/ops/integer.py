"""Integer arithmetic (PTX ISA, integer arithmetic instructions): wrapping unless ``.sat`` says otherwise.

What the ISA leaves to the machine has a value here: x / 0 and x rem 0 are all ones, as they are in
the code that ptxas makes. Opcodes that floats have too (`INTEGER_OPS`) are entered in the table by
`weft.emulator.ops.arithmetic`, the others here. Additions with carry are in `weft.emulator.ops.wide`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.emulator.arith import integer as arith
from weft.emulator.ops.elementwise import Array, assign, elementwise, lanes, words
from weft.emulator.ops.forms import INTEGERS, SIGNED, form
from weft.emulator.ops.registry import Binder, Step, instruction
from weft.emulator.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

PACKED: Final = {"u16x2": "u2", "s16x2": "i2"}
"""What the halves of a packed type are."""


def _sources(b: Binding, kind: Type, *operands: int) -> tuple[Array, ...]:
    """Operands as numbers; of a packed type as (T, 2)."""
    found = tuple(b.read(i, kind) for i in operands)
    return tuple(lanes(x, PACKED[kind.name]) for x in found) if kind.name in PACKED else found


def _put(b: Binding, kind: Type, ufunc: Any, *sources: Array) -> Step:
    """Writes what a function gives of `_sources`."""
    d = b.write(0, kind)
    if kind.name in PACKED:
        return assign(d, lambda: words(ufunc(*sources), d.dtype))
    return elementwise(d, ufunc, *sources)


def _sum(ufunc: Any) -> Binder:
    def bind(b: Binding) -> Step:
        f = form(b, sat="? sat", type=INTEGERS + (" u16x2 s16x2" if ufunc is np.add else ""))
        kind = TYPES[f["type"]]
        b.require(not f["sat"] or kind.name == "s32", ".sat is for .s32 only")
        x, y = _sources(b, kind, 1, 2)
        if f["sat"]:
            return assign(b.write(0, kind), lambda: arith.saturate(ufunc(x, y, dtype=np.int64), np.dtype("i4")))
        return _put(b, kind, ufunc, x, y)

    return bind


def _extreme(ufunc: Any) -> Binder:
    def bind(b: Binding) -> Step:
        f = form(b, relu="? relu", type=INTEGERS + " u16x2 s16x2")
        kind = TYPES[f["type"]]
        b.require(not f["relu"] or kind.name in ("s32", "s16x2"), ".relu is for .s32 and .s16x2 only")
        x, y = _sources(b, kind, 1, 2)
        if not f["relu"]:
            return _put(b, kind, ufunc, x, y)
        zero = np.zeros((), x.dtype)

        def positive(x: Array, y: Array, out: Array | None = None) -> Array:
            return np.maximum(ufunc(x, y), zero, out=out)

        return _put(b, kind, positive, x, y)

    return bind


def _unary(ufunc: Any) -> Binder:
    def bind(b: Binding) -> Step:
        kind = TYPES[form(b, type=SIGNED)["type"]]
        return elementwise(b.write(0, kind), ufunc, b.read(1, kind))

    return bind


def widened(kind: Type) -> Type:
    """The type of twice the width: what ``.wide`` gives."""
    return TYPES[f"{kind.kind}{2 * kind.bits}"]


def _mul(b: Binding) -> Step:
    f = form(b, mode="hi lo wide", type=INTEGERS)
    kind = TYPES[f["type"]]
    x, y = b.read(1, kind), b.read(2, kind)
    if f["mode"] == "lo":
        return elementwise(b.write(0, kind), np.multiply, x, y)
    if f["mode"] == "hi":
        return assign(b.write(0, kind), lambda: arith.high(x, y))
    b.require(kind.bits < 64, ".wide is for 16 and 32 bits only")
    wide = widened(kind)
    return assign(b.write(0, wide), lambda: np.multiply(x, y, dtype=wide.numpy))


def _mad(b: Binding) -> Step:
    f = form(b, mode="hi lo wide", sat="? sat", type=INTEGERS)
    kind = TYPES[f["type"]]
    x, y = b.read(1, kind), b.read(2, kind)
    b.require(not f["sat"] or (f["mode"], kind.name) == ("hi", "s32"), ".sat is for mad.hi.s32 only")
    if f["mode"] == "wide":
        b.require(kind.bits < 64, ".wide is for 16 and 32 bits only")
        wide = widened(kind)
        c, d = b.read(3, wide), b.write(0, wide)
        return assign(d, lambda: np.multiply(x, y, dtype=wide.numpy) + c)
    c, d = b.read(3, kind), b.write(0, kind)
    if f["mode"] == "lo":
        return assign(d, lambda: x * y + c)
    if f["sat"]:
        return assign(d, lambda: arith.saturate(np.add(arith.high(x, y), c, dtype=np.int64), d.dtype))
    return assign(d, lambda: arith.high(x, y) + c)


def _div(b: Binding) -> Step:
    kind = TYPES[form(b, type=INTEGERS)["type"]]
    x, y, d = b.read(1, kind), b.read(2, kind), b.write(0, kind)
    return assign(d, lambda: arith.quotient(x, y))


INTEGER_OPS: Final[dict[str, Binder]] = {
    "add": _sum(np.add),
    "sub": _sum(np.subtract),
    "mul": _mul,
    "mad": _mad,
    "div": _div,
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
    "abs": _unary(np.absolute),
    "neg": _unary(np.negative),
}
"""The integer binders of the opcodes that floats have too, by opcode."""


@instruction("rem")
def rem(b: Binding) -> Step:
    kind = TYPES[form(b, type=INTEGERS)["type"]]
    x, y, d = b.read(1, kind), b.read(2, kind), b.write(0, kind)
    return assign(d, lambda: arith.remainder(x, y))


@instruction("sad")
def sad(b: Binding) -> Step:
    kind = TYPES[form(b, type=INTEGERS)["type"]]
    x, y, c, d = b.read(1, kind), b.read(2, kind), b.read(3, kind), b.write(0, kind)
    return assign(d, lambda: c + arith.difference(x, y))


@instruction("mul24", "mad24")
def mul24(b: Binding) -> Step:
    """The product of the operands' lowest 24 bits: bits 0 to 31 of it or bits 16 to 47."""
    adds = b.instruction.opcode == "mad24"
    f = form(b, mode="hi lo", sat="? sat" if adds else "?", type="u32 s32")
    kind = TYPES[f["type"]]
    b.require(not f["sat"] or (f["mode"], kind.name) == ("hi", "s32"), ".sat is for mad24.hi.s32 only")
    x, y, d = b.read(1, kind), b.read(2, kind), b.write(0, kind)
    c = b.read(3, kind) if adds else np.zeros((), kind.numpy)
    shift = 16 if f["mode"] == "hi" else 0

    def product() -> Array:
        return ((arith.low24(x) * arith.low24(y)) >> shift).astype(kind.numpy)

    if f["sat"]:
        return assign(d, lambda: arith.saturate(np.add(product(), c, dtype=np.int64), d.dtype))
    return assign(d, lambda: product() + c)


@instruction("dp4a", "dp2a")
def dot_product(b: Binding) -> Step:
    """Bytes of a (dp2a: halves) by bytes of b, summed onto c; dp2a takes b's lower or upper two bytes."""
    two = b.instruction.opcode == "dp2a"
    f = form(b, mode="lo hi" if two else "?", left="u32 s32", right="u32 s32")
    kind, c, d = TYPES["s32"], b.read(3, TYPES["s32"]), b.write(0, TYPES["s32"])
    letter = {"u32": "u", "s32": "i"}
    x = lanes(b.read(1, kind), letter[f["left"]] + ("2" if two else "1"))
    y = lanes(b.read(2, kind), letter[f["right"]] + "1")
    first = 2 if f["mode"] == "hi" else 0
    factors = [(x[:, i], y[:, first + i]) for i in range(x.shape[1])]

    def compute() -> Array:
        total = c
        for left, right in factors:
            total = total + np.multiply(left, right, dtype=np.int32)
        return total

    return assign(d, compute)
