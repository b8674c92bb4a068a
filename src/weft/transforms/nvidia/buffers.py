"""The memory layouts of buffers, once it is known in which layouts threads fill and read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.ir import gpu, tile
from weft.ir.direct import ops_in
from weft.ir.types import layout_of
from weft.layout.algebra import f2
from weft.layout.planning.buffers import BufferPlan, plan_buffer
from weft.target import GpuTarget
from weft.target import gpu as target_of
from weft.transforms.axis import AxisInfo, analyse
from weft.transforms.nvidia.groups import groups
from weft.transforms.nvidia.matrix import instruction_of
from weft.transforms.nvidia.prefetched import LEAST_BYTES


@dataclass(frozen=True)
class LayOutBuffers(ModulePass):
    """Gives every buffer the memory layout in which its copies and reads are cheapest."""

    name = "lay-out-buffers"

    target: str = "sm_90"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(self.target)
        for kernel in op.body.block.ops:
            if not isinstance(kernel, func.FuncOp):
                continue
            allocs = [inner for inner in ops_in(kernel) if isinstance(inner, gpu.AllocOp)]
            if not allocs:
                continue
            facts = analyse(kernel)
            for alloc in allocs:
                held = gpu.buffer_of(alloc.result)
                plan = _plan(alloc, target, facts)
                type_ = gpu.BufferType.of(held.slots.data, held.shape, held.dtype, plan.memory)
                Rewriter.replace_value_with_new_type(alloc.result, type_)


def copy_groups(op: gpu.AsyncCopyOp, facts: Mapping[SSAValue, AxisInfo]) -> f2.Matrix:
    """The register masks that move inside what one thread may copy at once, by what is known of addresses and mask."""
    mask = None if op.mask is None else facts.get(op.mask)
    pointer = None if op.mask is not None and mask is None else facts.get(op.pointer)
    return groups(layout_of(op.pointer), 8 * gpu.buffer_of(op.buffer).dtype.itemsize, pointer, mask).inside


def later_steps(op: gpu.LocalLoadOp, target: GpuTarget) -> int:
    """The register bits that move along the contraction, beyond one matrix instruction, where a dot reads the tile. They are read
    last: then all operands of an instruction step come before those of the next, and are multiplied when they come."""
    dots = {(use.operation, use.index) for use in op.result.uses if isinstance(use.operation, tile.DotOp)}
    found = 0
    for dot, index in dots:
        instruction = instruction_of(dot, target)
        if instruction is None or index > 1:
            continue
        layout = layout_of(op.result)
        moves = [layout.unflatten(column)[1 - index] for column in layout.columns("register")]
        found |= sum(1 << bit for bit, depth in enumerate(moves) if depth >= instruction.k)
    return found


def _plan(alloc: gpu.AllocOp, target: GpuTarget, facts: Mapping[SSAValue, AxisInfo]) -> BufferPlan:
    """A buffer is stored to by one op, or all copies into it are of one load, before its loop and in it. These have one layout;
    what is known of their addresses may differ."""
    uses = [use.operation for use in alloc.result.uses]
    copies = [op for op in uses if isinstance(op, gpu.AsyncCopyOp)]
    stores = [op for op in uses if isinstance(op, gpu.LocalStoreOp)]
    reads = [op for op in uses if isinstance(op, gpu.LocalLoadOp)]
    readers = tuple(dict.fromkeys((layout_of(op.result), later_steps(op, target)) for op in reads))
    bits = 8 * gpu.buffer_of(alloc.result).dtype.itemsize
    if stores:
        return plan_buffer(layout_of(stores[0].value), readers, bits, target.model)
    copied = min((copy_groups(copy, facts) for copy in copies), key=len)
    return plan_buffer(layout_of(copies[0].pointer), readers, bits, target.model, copied, 8 * LEAST_BYTES)
