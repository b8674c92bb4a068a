"""Which wgmma.mma_async there are (PTX ISA 9.7.15.5.2, 9.7.15.6.3), as a table: types, K, columns, accumulators.

With a sparse A (``.sp``) K is twice as much, and the metadata and a selector stand before scale-d.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.emulator.arith.warpgroup import ACCUMULATORS, M
from weft.emulator.ptx.syntax import Immediate, Vector

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

EVERY: Final = frozenset(range(8, 257, 8))
WIDE: Final = frozenset((8, 24, *range(16, 257, 16)))
"""Columns of integer and bit instructions. The ISA's list of the former ends at 224; ptxas takes 240 and 256 of both."""


@dataclass(frozen=True)
class Row:
    """Instructions on multiplicands of these ``types``, in any combination if ``mixed``."""

    types: tuple[str, ...]
    k: int
    columns: frozenset[int]
    accumulators: tuple[str, ...]
    mixed: bool = False

    def has(self, types: tuple[str, ...]) -> bool:
        """Whether there are instructions with these types of D, A and B."""
        match types:
            case (d, a, b):
                return d in self.accumulators and a in self.types and b in self.types and (self.mixed or a == b)
            case _:
                return False


TABLE: Final = (
    Row(("f16",), 16, EVERY, ("f16", "f32")),
    Row(("bf16",), 16, EVERY, ("f32",)),
    Row(("tf32",), 8, EVERY, ("f32",)),
    Row(("e4m3", "e5m2"), 32, EVERY, ("f16", "f32"), mixed=True),
    Row(("s8", "u8"), 32, WIDE, ("s32",), mixed=True),
    Row(("b1",), 256, WIDE, ("s32",)),
)

_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
_TYPES: Final = frozenset((*ACCUMULATORS, *(name for row in TABLE for name in row.types)))
_TRANSPOSABLE: Final = ("f16", "bf16")


@dataclass(frozen=True)
class Form:
    """One wgmma.mma_async: D of 64 x ``n``, depth ``k``; types of D, A and B; what its immediates say."""

    sparse: bool

    n: int
    k: int
    d: str
    a: str
    b: str
    saturate: bool
    in_registers: bool
    """A, that is; it is no descriptor."""
    negated: bool
    """The product of both scales is -1."""
    a_transposed: bool
    b_transposed: bool

    @property
    def packed(self) -> bool:
        """Whether two elements of D share a register."""
        return self.d == "f16"

    @property
    def registers(self) -> int:
        """Of D, in each thread."""
        return self.n // (4 if self.packed else 2)

    @property
    def work(self) -> int:
        """Multiplications and additions."""
        return 2 * M * self.n * self.k


def form(b: Binding) -> Form:
    """The instruction ``d, a, b-desc, {sp-meta, sp-sel,} scale-d {, imm-scale-a, imm-scale-b {, imm-trans-a} {, imm-trans-b}}``;
    `PTXError` if there is none such."""
    modifiers = b.modifiers[1:]
    shapes = [m for m in modifiers if _SHAPE.fullmatch(m)]
    types = tuple(m for m in modifiers if m in _TYPES)
    rest = [m for m in modifiers if m not in shapes and m not in types]
    sparse = "sp" in rest
    for modifier in rest:
        if modifier not in ("sp", "sync", "aligned", "satfinite", "and", "popc"):
            b.unknown(f"'.{modifier}' of wgmma.mma_async")
    for modifier in ("sync", "aligned"):
        b.require(modifier in rest, f"{b.instruction.name} has no '.{modifier}'")
    b.require(len(shapes) == 1, f"{b.instruction.name} has {len(shapes)} shapes, expected one")
    n, k = _size(b, shapes[0], types, sparse)
    d, left, right = types
    integer = d == "s32"
    b.require(integer or "satfinite" not in rest, "'.satfinite' is for integer types only")
    b.require(left == "b1" or not {"and", "popc"} & {*rest}, "'.and.popc' is for type .b1 only")
    b.require(left != "b1" or ("and" in rest and "popc" in rest), "wgmma.mma_async of bits needs '.and.popc'")
    in_registers = isinstance(b.operand(1), Vector)
    scales, transposes = _immediates(b, 5 if sparse else 3, integer, left, in_registers)
    negated = scales[0] != scales[1]
    return Form(sparse, n, k, d, left, right, "satfinite" in rest, in_registers, negated, *transposes)


def _size(b: Binding, shape: str, types: tuple[str, ...], sparse: bool) -> tuple[int, int]:
    """N and K."""
    m, n, k = (int(size) for size in shape[1:].replace("n", " ").replace("k", " ").split())
    depth = k // 2 if sparse else k
    known = any(row.has(types) and (m, depth) == (M, row.k) and n in row.columns for row in TABLE)
    named = "".join(f".{name}" for name in types) or "unnamed"
    opcode = "wgmma.mma_async.sp" if sparse else "wgmma.mma_async"
    b.require(known and not (sparse and "b1" in types), f"{opcode} of shape .{shape} does not exist with types {named}")
    return n, k


def _immediates(
    b: Binding, place: int, integer: bool, kind: str, in_registers: bool
) -> tuple[tuple[int, int], tuple[bool, bool]]:
    """Scales and transposes of A and B, after scale-d at ``place``."""
    transposable = kind in _TRANSPOSABLE
    flags = 0 if not transposable else 1 if in_registers else 2
    b.count(place + (1 if integer else 3 + flags))
    scale = b.operand(place)
    b.require(not isinstance(scale, Immediate) or scale.value in (0, 1), "scale-d must be a predicate, 0 or 1")
    if integer:
        return (1, 1), (False, False)
    scales = b.constant(place + 1), b.constant(place + 2)
    b.require(all(scale in (-1, 1) for scale in scales), "imm-scale-a and imm-scale-b must be -1 or 1")
    given = [b.constant(place + 3 + i) for i in range(flags)]
    b.require(all(flag in (0, 1) for flag in given), "imm-trans-a and imm-trans-b must be 0 or 1")
    both = [0] * (2 - flags) + given
    return scales, (bool(both[0]), bool(both[1]))
