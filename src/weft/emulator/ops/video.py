"""Scalar video instructions (PTX ISA): bytes, half-words and words of either sign, then a second operation or a merge.

vadd.s32.u32.s32.sat  d.h1, a.b0, b.h0, c     t = a's byte 0 + b's lower half, saturated to s16; d = c with t for its upper half
vsub.s32.u32.u32.min  d, a, b, c              t = a - b, exact; d = min(t, c)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import video as arith
from weft.emulator.ops.elementwise import assign
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.syntax import Minus, Operand, Part
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Numbers = Callable[[], NDArray[np.int64]]
WORDS = "u32 s32"


def split(b: Binding, operand: Operand, parts: int = 1) -> tuple[Operand, str]:
    """A register or constant and the name of its part, of so many digits; "" for the whole word."""
    if not isinstance(operand, Part):
        return operand, ""
    b.require(len(operand.part) == parts + 1, f"'.{operand.part}' is no part of an operand of {b.instruction.opcode}")
    return operand.register, operand.part


def _index(b: Binding, name: str) -> tuple[int, int]:
    """The width and the index of a part."""
    bits = arith.WIDTHS[name[:1]]
    index = int(name[1:] or "0")
    b.require(bits * (index + 1) <= 32, f"'.{name}' is no part of a word")
    return bits, index


def _source(b: Binding, operand: Operand, kind: str) -> Numbers:
    register, name = split(b, operand)
    words = b.read(register, TYPES["u32"])
    bits, index = _index(b, name)
    return lambda: arith.part(words, bits, index, kind == "s32")


def _finish(b: Binding, f: dict[str, str], signed: bool, value: Numbers) -> Step:
    """Saturation, the second operation or the merge, and the result."""
    register, name = split(b, b.operand(0))
    bits, index = _index(b, name)
    third = bool(f["second"] or name)
    b.require(not (f["second"] and name), "a second operation excludes a merge")
    b.count(4 if third else 3)
    d = b.write(register, TYPES["u32"])
    words: Any = b.read(3, TYPES["u32"]) if third else d
    second = arith.SECOND.get(f["second"])

    def compute() -> NDArray[Any]:
        t = value()
        if f.get("sat"):
            t = arith.saturate(t, bits, signed)
        if second is not None:
            t = second(t, arith.part(words, 32, 0, signed))
        return arith.place(t, words, bits, index)

    return assign(d, compute)


@instruction("vadd", "vsub", "vabsdiff", "vmin", "vmax")
def arithmetic(b: Binding) -> Step:
    f = form(b, target=WORDS, left=WORDS, right=WORDS, sat="? sat", second="? add min max")
    x, y = _source(b, b.operand(1), f["left"]), _source(b, b.operand(2), f["right"])
    operation = arith.ARITHMETIC[b.instruction.opcode[1:]]
    return _finish(b, f, f["target"] == "s32", lambda: operation(x(), y()))


@instruction("vshl", "vshr")
def shift(b: Binding) -> Step:
    """By an unsigned amount, at most 32 or modulo 32."""
    f = form(b, target=WORDS, left=WORDS, right="u32", sat="? sat", mode="clamp wrap", second="? add min max")
    x, y = _source(b, b.operand(1), f["left"]), _source(b, b.operand(2), "u32")
    operation = arith.shifted_left if b.instruction.opcode == "vshl" else np.right_shift
    clamp = f["mode"] == "clamp"
    return _finish(b, f, f["target"] == "s32", lambda: operation(x(), np.minimum(y(), 32) if clamp else y() & 31))


@instruction("vset")
def compare(b: Binding) -> Step:
    """1 where the comparison holds, else 0."""
    f = form(b, left=WORDS, right=WORDS, cmp=" ".join(arith.COMPARISONS), second="? add min max")
    x, y = _source(b, b.operand(1), f["left"]), _source(b, b.operand(2), f["right"])
    comparison = arith.COMPARISONS[f["cmp"]]
    return _finish(b, f, False, lambda: np.asarray(comparison(x(), y())).astype(np.int64))


@instruction("vmad")
def multiply_add(b: Binding) -> Step:
    """a b + c, with the product or c negated or plus one; perhaps shifted right; saturated as the sign of the whole says,
    whatever the type of the result.

    The product of two unsigned words with a sign needs 66 bits. Its lowest 64 are enough for the lowest 32 of the result, and
    whether it saturates is seen of the product cut off at 2**62.
    """
    f = form(b, target=WORDS, left=WORDS, right=WORDS, one="? po", sat="? sat", scale="? shr7 shr15")
    b.count(4)
    operands = [b.operand(i) for i in (1, 2, 3)]
    minus = [isinstance(operand, Minus) for operand in operands]
    negated = minus[0] != minus[1]
    b.require(not (f["one"] and (negated or minus[2])), ".po excludes a negated product and a negated c")
    b.require(not (negated and minus[2]), "vmad negates the product or c, not both")
    bare = [operand.operand if isinstance(operand, Minus) else operand for operand in operands]
    b.require(not isinstance(bare[2], Part), "c of vmad is a word")
    x, y = _source(b, bare[0], f["left"]), _source(b, bare[1], f["right"])
    unsigned = f["left"] == f["right"] == "u32"
    signed = not unsigned or negated or minus[2]
    c, d = b.read(bare[2], TYPES["u32"]), b.write(0, TYPES["u32"])
    down = np.uint64({"shr7": 7, "shr15": 15}.get(f["scale"], 0))
    kind = np.int64 if signed else np.uint64

    def total(product: NDArray[np.uint64]) -> NDArray[Any]:
        summand = arith.part(c, 32, 0, signed)
        summand = (-summand if minus[2] else summand) + (1 if f["one"] else 0)
        value = (-product if negated else product) + summand.view(np.uint64)
        return value.view(kind) >> down.astype(kind)

    def compute() -> NDArray[Any]:
        product = x().view(np.uint64) * y().view(np.uint64)
        if not f["sat"]:
            return total(product).astype(np.uint64).astype(np.uint32)
        if unsigned and signed:
            product = np.minimum(product, np.uint64(1 << 62))
        least, greatest = arith.limits(32, signed)
        return np.clip(total(product), kind(least), kind(greatest)).astype(np.uint64).astype(np.uint32)

    return assign(d, compute)
