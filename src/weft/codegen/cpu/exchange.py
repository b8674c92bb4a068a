"""Spells out a conversion plan: the shuffles of `weft.layout.planning.conversion`, group by group, from one buffer to another."""

from __future__ import annotations

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.emit.context import Emit
from weft.codegen.llvm.types import I1, scalar_type, shuffle
from weft.layout import LinearLayout, Plan, plan_conversion
from weft.layout.algebra import f2

UNROLLED_GROUPS = 2
"""Up to this many groups are written out; more become a loop."""


def emit_conversion(emit: Emit, source: Buffer, target: Buffer, layout: LinearLayout, wanted: LinearLayout) -> None:
    """Fills ``target``, laid out as ``wanted``, with the tile that ``source`` holds under ``layout``."""
    plan = plan_conversion(layout, wanted)
    if plan.groups <= UNROLLED_GROUPS:
        for group in range(plan.groups):
            at = [RegisterIndex(f2.apply(m.group_columns, group)) for m in (plan.source, plan.destination)]
            _emit_group(emit, plan, source, target, at[0], at[1])
        return
    with emit.loop(plan.groups) as group:
        counter = Counter(group, len(plan.source.group_columns))
        at = [RegisterIndex(0, ((counter, m.group_columns),)) for m in (plan.source, plan.destination)]
        _emit_group(emit, plan, source, target, at[0], at[1])


def _emit_group(
    emit: Emit, plan: Plan, source: Buffer, target: Buffer, source_at: RegisterIndex, target_at: RegisterIndex
) -> None:
    builder = emit.builder
    vectors = [
        source.load(builder, RegisterIndex(source_at.const ^ offset, source_at.terms))
        for (offset,) in plan.source.offsets
    ]
    is_bool = scalar_type(vectors[0]) == I1
    if is_bool:  # LLVM shuffles bytes better than bits
        vectors = [target.element.to_storage(builder, v) for v in vectors]
    for step in plan.steps:
        vectors = [
            shuffle(builder, vectors[first], step.mask(v), *(vectors[i] for i in others))
            for v, (first, *others) in enumerate(map(step.operands, range(step.outputs)))
        ]
    if is_bool:
        vectors = [target.element.from_storage(builder, v) for v in vectors]
    for vector, offsets in zip(vectors, plan.destination.offsets, strict=True):
        # registers that hold the same vector share a slot of the buffer
        target.store(builder, RegisterIndex(target_at.const ^ offsets[0], target_at.terms), vector)
