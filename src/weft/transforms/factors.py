"""How the dots of a nest are multiplied: the instruction, the operands' panels, and how deep they are.

An instruction that takes narrow operands (`weft.target.PRODUCTS`) gets them as they were before they were cast to the sums' type.
Its tiles may be deeper than a step: then the panel ends with steps of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.ir import SSAValue

from weft.ir import tile
from weft.ir.cpu import Panel
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout import vector
from weft.target import FMA, Product, product_for
from weft.transforms.nests import Nest, Slice, slice_of

UNROLL: Final = 4
"""Words of the contracted axis that a multiplication goes through at once (`weft.codegen.cpu.product`)."""

PANEL_BYTES: Final = 1 << 18
"""What a panel takes at most, unless one step takes more: two are in the second-level cache while they are multiplied."""

_PAIRED: Final = 256
"""The least bits of vectors that are multiplied in pairs even where a register of the tile, of `CpuTarget.lanes`, has more:
float64 on AVX2 took 1.07 times as long by fours, of which sums of few rows fit 16 registers."""

DEEPEST: Final = 2048
"""The greatest depth of a panel, in elements, unless one step takes more."""
SLOTS_BYTES: Final = 18 << 20
MOST_SLOTS: Final = 64
"""A thread keeps as many panels of an operand as take `SLOTS_BYTES`, and at most so many: `MOST_SLOTS` of `PANEL_BYTES` and
padding. Memory is taken when one is filled. Reading a panel from the third-level cache hides behind the multiplication. Packing
it again does not: with 2 MiB a product of 1024^3 took 1.2 (tiles of 16) and 1.4 times (128) as long."""


ONE_SLOTS_BYTES: Final = 1 << 21
"""As `SLOTS_BYTES`, for a dot in no nest, whose panels have one step each."""


@dataclass(frozen=True)
class Operand:
    """A dot's operand: its tiles, what they are computed from, and its panel."""

    value: SSAValue
    slice: Slice
    panel: Panel
    excess: bool = False
    """Whether a number of 4 bytes for each column lies behind the panel (`weft.codegen.cpu.product`)."""
    most: int = SLOTS_BYTES
    """The bytes of all panels of the operand that a thread keeps."""

    @property
    def size(self) -> int:
        """How many elements a panel has across."""
        return shape_of(self.value)[1 - self.panel.axis]

    @property
    def bytes(self) -> int:
        """The bytes of a panel, and of what lies behind it."""
        return self.panel.bytes(self.size, dtype_of(self.value).itemsize) + (4 * self.size if self.excess else 0)

    @property
    def slots(self) -> int:
        """How many panels a thread keeps."""
        slots = 1
        while self.slice.keys is not None and slots < MOST_SLOTS and 2 * slots * self.bytes <= self.most:
            slots *= 2
        return slots


@dataclass(frozen=True)
class Factors:
    """A dot of a nest: its operands and the instruction that multiplies them."""

    left: Operand
    right: Operand
    instruction: Product

    @property
    def chunk(self) -> int:
        """The depth that the instruction takes at once; 1 where any will do."""
        return max(1, self.instruction.bytes // dtype_of(self.left.value).itemsize)

    @property
    def unit(self) -> int:
        """The depths of which a multiplication goes through a whole number, a power of two."""
        return max(self.chunk, UNROLL * self.instruction.group)


def factors_of(nest: Nest, vector_bits: int, features: frozenset[str]) -> dict[int, Factors] | None:
    """The factors of each dot; None where a tile does not have the layout that packing expects, or an operand is computed from a
    dot (rule 5) or does not depend on an outer loop (rule 8)."""
    steps = {shape_of(dot.a)[1] for dot in nest.dots.values()}
    if len(steps) > 1 or not all(map(_is_plain, nest.dots.values())):
        return None
    chosen = {i: _instruction(dot, features) for i, dot in nest.dots.items()}
    depth = min(_depth(nest, dot, chosen[i]) for i, dot in nest.dots.items())
    known: dict[tuple[SSAValue, Panel, bool], Operand] = {}
    found: dict[int, Factors] = {}
    for i, dot in nest.dots.items():
        pair: list[Operand] = []
        narrow = chosen[i] is not FMA
        left, right = _panels(dot, chosen[i], depth, vector_bits)
        for value, panel, excess in ((dot.a, left, False), (dot.b, right, chosen[i].unsigned)):
            source = _narrow(value) if narrow else value
            operand = known.setdefault(
                (source, panel, excess),
                Operand(source, slice_of(source, nest.loop.parent_block(), nest), panel, excess),
            )
            if any(isinstance(inner, tile.DotOp) for op in operand.slice.inside for inner in op.walk()):
                return None
            if any(level.body not in operand.slice.loops for level in nest.levels[:-1]):
                return None
            pair.append(operand)
        found[i] = Factors(pair[0], pair[1], chosen[i])
    return found


def factors_of_one(dot: tile.DotOp, vector_bits: int, features: frozenset[str]) -> Factors | None:
    """The factors of a dot that is in no nest. None where panels bring nothing: a right operand that is no function of scalars is
    not used again, and vectors can be multiplied in the tile's buffer."""
    if not _is_plain(dot):
        return None
    instruction = _instruction(dot, features)
    k = shape_of(dot.a)[1]
    narrow = instruction is not FMA and k % (instruction.bytes // dtype_of(_narrow(dot.a)).itemsize) == 0
    right = _narrow(dot.b) if narrow else dot.b
    part = slice_of(right, dot.parent_block())
    if not narrow and part.keys is None:
        return None
    left = _narrow(dot.a) if narrow else dot.a
    chosen = instruction if narrow else FMA
    panels = _panels(dot, chosen, k, vector_bits)
    return Factors(
        Operand(left, slice_of(left, dot.parent_block()), panels[0], most=ONE_SLOTS_BYTES),
        Operand(right, part, panels[1], chosen.unsigned, ONE_SLOTS_BYTES),
        chosen,
    )


def _panels(dot: tile.DotOp, instruction: Product, depth: int, vector_bits: int) -> tuple[Panel, Panel]:
    """The panels of a dot's operands. Vectors are multiplied in pairs of columns' vectors, where the tile is as wide."""
    lanes = layout_of(dot.acc).in_size("lane")
    pair = 2 * (instruction.bits or vector_bits) // dtype_of(dot.acc).bits
    least = 0 if instruction is FMA and vector_bits >= _PAIRED else lanes
    across = lanes if instruction.rows else max(least, pair)
    return (
        Panel(1, depth, 0 if _by_rows(dot) else lanes, unsigned=instruction.unsigned),
        Panel(0, depth, min(shape_of(dot.b)[1], across), instruction.group),
    )


def _by_rows(dot: tile.DotOp) -> bool:
    lanes = layout_of(dot.acc).in_size("lane")
    return layout_of(dot.a) == vector(shape_of(dot.a), lanes)


def _is_plain(dot: tile.DotOp) -> bool:
    """Whether the tiles have the layouts of row-major vectors, the left operand perhaps of column-major ones, and no vector spans
    two rows."""
    lanes = layout_of(dot.acc).in_size("lane")
    (m, k), n = shape_of(dot.a), shape_of(dot.b)[1]
    plain = layout_of(dot.b) == vector((k, n), lanes) and layout_of(dot.acc) == vector((m, n), lanes)
    left = k >= lanes if _by_rows(dot) else m >= lanes and layout_of(dot.a) == vector((m, k), lanes, (0, 1))
    return plain and left and n >= lanes


def _narrow(value: SSAValue) -> SSAValue:
    """An operand before it was cast to the type of the sums."""
    return value.owner.source if isinstance(value.owner, tile.CastOp) else value


def _instruction(dot: tile.DotOp, features: frozenset[str]) -> Product:
    a, b = (dtype_of(_narrow(value)) for value in (dot.a, dot.b))
    m, n = shape_of(dot.acc)
    if a != b or not _by_rows(dot):
        return FMA
    return product_for(features, a.name, dtype_of(dot.acc).name, m, n)


def _depth(nest: Nest, dot: tile.DotOp, instruction: Product) -> int:
    """How deep the panels of a dot are, a power of two."""
    (m, step), n = shape_of(dot.a), shape_of(dot.b)[1]
    size = dtype_of(dot.acc).itemsize if instruction is FMA else dtype_of(_narrow(dot.a)).itemsize
    trips = nest.constant_trips
    enough = DEEPEST if trips is None else step << max(trips - 1, 0).bit_length()
    depth = max(step, instruction.bytes // size)
    while 2 * depth <= min(DEEPEST, enough) and 2 * depth * max(m, n) * size <= PANEL_BYTES:
        depth *= 2
    return depth
