"""Spells out a conversion step: the `Shuffles` of `weft.layout`, group by group, from one buffer to another."""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.emit.context import Emit
from weft.codegen.emit.element import Element
from weft.codegen.llvm.types import I1, scalar_type, shuffle
from weft.layout import LinearLayout, Shuffles, plan_conversion, vector_machine
from weft.layout.algebra import f2

UNROLLED_GROUPS = 2
"""Up to this many groups are written out; more become a loop."""


def shuffles_of(layout: LinearLayout, wanted: LinearLayout, element: Element) -> Shuffles:
    """How a tile goes from one layout to another."""
    (step,) = plan_conversion(layout, wanted, 8 * element.size, vector_machine(layout.in_size("lane"))).steps
    assert isinstance(step, Shuffles), "vectors are shuffled"
    return step


def emit_conversion(emit: Emit, source: Buffer, target: Buffer, layout: LinearLayout, wanted: LinearLayout) -> None:
    """Fills ``target``, laid out as ``wanted``, with the tile that ``source`` holds under ``layout``."""
    step = shuffles_of(layout, wanted, target.element)
    if step.groups <= UNROLLED_GROUPS:
        for group in range(step.groups):
            at = [RegisterIndex(f2.apply(m.group_columns, group)) for m in (step.source, step.destination)]
            _emit_group(emit, step, source, target, at[0], at[1])
        return
    with emit.loop(step.groups) as group:
        counter = Counter(group, len(step.source.group_columns))
        at = [RegisterIndex(0, ((counter, m.group_columns),)) for m in (step.source, step.destination)]
        _emit_group(emit, step, source, target, at[0], at[1])


def _emit_group(
    emit: Emit, step: Shuffles, source: Buffer, target: Buffer, source_at: RegisterIndex, target_at: RegisterIndex
) -> None:
    builder = emit.builder
    vectors = [
        source.load(builder, RegisterIndex(source_at.const ^ offset, source_at.terms))
        for (offset,) in step.source.offsets
    ]
    vectors = shuffled(builder, step, vectors, target.element)
    for vector, offsets in zip(vectors, step.destination.offsets, strict=True):
        # registers that hold the same vector share a slot of the buffer
        target.store(builder, RegisterIndex(target_at.const ^ offsets[0], target_at.terms), vector)


def shuffled(builder: ir.IRBuilder, step: Shuffles, vectors: list[ir.Value], element: Element) -> list[ir.Value]:
    """The vectors that a group ends with."""
    is_bool = scalar_type(vectors[0]) == I1
    if is_bool:  # LLVM shuffles bytes better than bits
        vectors = [element.to_storage(builder, v) for v in vectors]
    for level in step.levels:
        vectors = [
            shuffle(builder, vectors[first], level.mask(v), *(vectors[i] for i in others))
            for v, (first, *others) in enumerate(map(level.operands, range(level.outputs)))
        ]
    return [element.from_storage(builder, v) for v in vectors] if is_bool else vectors
