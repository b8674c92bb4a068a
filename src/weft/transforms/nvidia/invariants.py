"""Operands that a loop does not change stay in shared memory where registers are short.

The left operand of attention's first dot is one tile for all iterations. In registers it takes part of what the accumulators need
for the whole loop; with rows of 128 elements and 4 warps more than there is. Such an operand is stored in a buffer before the
loop, and read by each dot.

    registers of a thread = carried tiles + the largest result of a dot that is not carried + operands from outside

is compared with what a thread may have. It is an estimate before layouts are known: elements are divided among all threads, and
an operand is repeated in the warps that share its rows or columns. The largest operand goes first, until the rest fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from weft.ir import gpu, tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, is_pointer, is_tile, shape_of
from weft.target import gpu as target_of
from weft.transforms.layouts.thread_dots import chained, warp_grid
from weft.transforms.nvidia.inserting import Inserting
from weft.transforms.nvidia.matrix import MatrixInstruction, matrix_dots

OTHERS: Final = 32
"""Registers of a thread for addresses, and for operands that are read just before they are multiplied."""
MOST: Final = 255
"""Registers of a thread."""


@dataclass(frozen=True)
class ShareInvariants(ModulePass):
    """Keeps operands of dots that come from outside a loop in shared memory, if registers are short; see the module. A thread may
    have ``registers``."""

    name = "share-invariants"

    target: str = "sm_90"
    warps: int = 4
    registers: int = MOST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(self.target)
        for loop in [inner for inner in ops_in(op) if isinstance(inner, scf.ForOp)]:
            dots = matrix_dots(loop.body.block, target)
            for value in self._shared(loop, dots):
                _share(loop, dots, value)

    def _shared(self, loop: scf.ForOp, dots: Mapping[tile.DotOp, MatrixInstruction]) -> list[SSAValue]:
        """The operands to keep in shared memory."""
        carried = sum(self._words(argument) for argument in loop.body.block.args[1:] if is_tile(argument))
        end = loop.body.block.last_op
        yielded = set(end.operands) if end is not None else set[SSAValue]()
        results = max((self._words(dot.result) for dot in dots if dot.result not in yielded), default=0)
        outside: dict[SSAValue, int] = {}
        for dot in dots:
            rows, columns = warp_grid(shape_of(dot.result), self.warps, dots[dot].m, whole_rows=chained(dot))
            for value, copies in ((dot.a, columns), (dot.b, rows)):
                if _is_outside(value, loop):
                    outside[value] = max(outside.get(value, 0), self._words(value) * copies)
        found: list[SSAValue] = []
        held = carried + results + OTHERS + sum(outside.values())
        for value, words in sorted(outside.items(), key=lambda item: -item[1]):
            if held <= self.registers:
                break
            held -= words
            found.append(value)
        return found

    def _words(self, value: SSAValue) -> int:
        """The registers that a thread has of a tile, of which no other thread holds copies."""
        bits = 64 if is_pointer(value) else 8 * dtype_of(value).itemsize
        return -(-prod(shape_of(value)) * bits // (32 * 32 * self.warps))


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is the same in all iterations."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    return block is not loop.body.block


def _share(loop: scf.ForOp, dots: Iterable[tile.DotOp], value: SSAValue) -> None:
    """Stores a value before the loop, and has the dots read it."""
    start = Inserting(loop, loop)
    buffer = start.add(gpu.AllocOp(gpu.BufferType.of(1, shape_of(value), dtype_of(value)))).results[0]
    slot = start.number(0)
    start.add(gpu.LocalStoreOp(value, buffer, slot))
    for dot in dots:
        inside = Inserting(dot, dot)
        for index in (0, 1):
            if dot.operands[index] is value:
                read = inside.add(gpu.LocalLoadOp(buffer, slot)).results[0]
                read.name_hint = value.name_hint
                dot.operands[index] = read
