"""SIMD video instructions (PTX ISA): two half-words or four bytes at once, then a merge or a sum.

Parts are numbered over {b, a}, a's lowest first, and each source picks its own: ``.h10`` and ``.b3210`` are a, the default of the
first source; ``.h32`` and ``.b7654`` are b, the default of the second. The mask after d says which results count:

    vadd2.s32.s32.s32.sat  d.h1, a, b, c     d = c with its upper half replaced by that of a + b, saturated
    vabsdiff4.u32.u32.u32.add  d, a, b, c    d = c + the sum of the four differences
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import video as arith
from weft.emulator.ops.elementwise import assign
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.video import WORDS, split
from weft.emulator.ptx.syntax import Operand, Part
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

OPERATIONS: Final = ("add", "sub", "avrg", "absdiff", "min", "max")
LETTERS: Final = {2: "h", 4: "b"}


def _chosen(b: Binding, operand: Operand, count: int, default: str) -> tuple[Operand, tuple[int, ...]]:
    """A source's register and which of the parts of {b, a} it stands for, lowest first."""
    register, name = split(b, operand, count)
    name = name or default
    places = tuple(int(digit) for digit in reversed(name[1:]))
    b.require(
        name[0] == LETTERS[count] and max(places) < 2 * count, f"'.{name}' is no choice of {b.instruction.opcode}"
    )
    return register, places


def _mask(b: Binding, count: int) -> tuple[Operand, tuple[int, ...]]:
    """The result's register and which of its parts count."""
    operand = b.operand(0)
    if not isinstance(operand, Part):
        return operand, tuple(range(count))
    digits = operand.part[1:]
    descending = all(x > y for x, y in zip(digits, digits[1:], strict=False))
    b.require(
        operand.part[0] == LETTERS[count] and descending and int(digits[0]) < count,
        f"'.{operand.part}' is no mask of {b.instruction.opcode}",
    )
    return operand.register, tuple(int(digit) for digit in digits)


def _bind(b: Binding, f: dict[str, str], count: int, operation: Callable[[Any, Any], Any]) -> Step:
    b.count(4)
    bits = 32 // count
    (left, first), (right, second) = (
        _chosen(b, b.operand(i + 1), count, ("h10 h32" if count == 2 else "b3210 b7654").split()[i]) for i in range(2)
    )
    register, mask = _mask(b, count)
    d, c = b.write(register, TYPES["u32"]), b.read(3, TYPES["u32"])
    words = (b.read(left, TYPES["u32"]), b.read(right, TYPES["u32"]))

    def take(place: int, kind: str) -> NDArray[np.int64]:
        return arith.part(words[place // count], bits, place % count, kind == "s32")

    def result(i: int) -> NDArray[np.int64]:
        value = np.asarray(operation(take(first[i], f["left"]), take(second[i], f["right"]))).astype(np.int64)
        return arith.saturate(value, bits, f["target"] == "s32") if f.get("sat") else value

    def compute() -> NDArray[Any]:
        if f["accumulate"]:
            total = c.astype(np.int64)
            for i in mask:
                total = total + result(i)
            return total.astype(np.uint64).astype(np.uint32)
        merged = c
        for i in mask:
            merged = arith.place(result(i), merged, bits, i)
        return merged

    return assign(d, compute)


@instruction(*(f"v{operation}{count}" for operation in OPERATIONS for count in LETTERS))
def arithmetic(b: Binding) -> Step:
    f = form(b, target=WORDS, left=WORDS, right=WORDS, sat="? sat", accumulate="? add")
    b.require(not (f["sat"] and f["accumulate"]), ".sat excludes .add")
    return _bind(b, f, int(b.instruction.opcode[-1]), arith.ARITHMETIC[b.instruction.opcode[1:-1]])


@instruction("vset2", "vset4")
def compare(b: Binding) -> Step:
    """1 in each part for which the comparison holds, else 0."""
    f = form(b, left=WORDS, right=WORDS, cmp=" ".join(arith.COMPARISONS), accumulate="? add")
    return _bind(b, f, int(b.instruction.opcode[-1]), arith.COMPARISONS[f["cmp"]])
