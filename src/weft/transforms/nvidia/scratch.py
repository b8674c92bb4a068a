"""Shared memory: where buffers start, which ops need scratch, how much, and where it starts.

A buffer has its bytes from its alloc to its last use, or to the end of the loop that it is used in. Buffers and scratch that are
not in use together may have the same bytes.

An op uses its scratch only while it is carried out: to exchange elements between warps, or to tell all threads what one has
read. So all ops might have the same bytes; then the block would have to wait before each, while that before is still read. Ops
take turns between two places instead: until the first is written again, the block has waited in the op between. `PlaceBarriers`
waits where that is not so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import gpu, tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, is_pointer, layout_of, shape_of
from weft.layout import GatherPlan, ReducePlan, ScanPlan, plan_conversion, plan_gather, plan_reduce, plan_scan
from weft.layout.planning.accesses import ALIGNMENT, Access
from weft.layout.planning.combining import Convert
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.steps import Barrier, Step, walk
from weft.target import GpuTarget
from weft.target import gpu as target_of
from weft.transforms.nvidia.matrix import dot_scratch, instruction_of

SCRATCH = "gpu.scratch"
"""The attribute of an op: the byte of shared memory at which its scratch starts."""
SHARED = "gpu.shared"
"""The attribute of a kernel: the bytes of shared memory of a block."""


BUFFER_ALIGNMENT: Final = 128
"""Bytes: the start of a buffer is in the first bank."""
TWO_PLACES: Final = 48 * 1024
"""The most bytes of a block for two places of scratch: more would leave fewer blocks resident."""


REDUX: Final = frozenset({"add", "min", "max", "and", "or", "xor"})
"""What ``redux.sync`` does with integers of 32 bits."""


@dataclass(frozen=True)
class Use:
    """An op's use of its scratch: ``bytes``, and whether the block waits between its writes and its last reads."""

    bytes: int
    waits: bool


def element_bits(value: SSAValue) -> int:
    """The bits of an element as it travels: a bool is a byte, a pointer 64 bits."""
    return 64 if is_pointer(value) else 8 * dtype_of(value).itemsize


def combining_bits(op: tile.CombiningOp) -> int:
    """The bits in which the tensors of a reduction or scan travel: those of the widest."""
    return max(map(element_bits, op.sources))


def conversion_plan(op: tile.ConvertLayoutOp, model: MachineModel) -> ConversionPlan:
    """How a conversion is carried out."""
    return plan_conversion(layout_of(op.source), layout_of(op.result), element_bits(op.source), model)


def reduce_plan(op: tile.ReduceOp, model: MachineModel) -> ReducePlan:
    """How a reduction is carried out."""
    result = op.results_[0]
    layout = layout_of(result) if shape_of(result) else None
    axis, bits = op.axis.value.data, combining_bits(op)
    return plan_reduce(layout_of(op.sources[0]), axis, bits, model, layout, has_instruction(op))


def scan_plan(op: tile.ScanOp, model: MachineModel) -> ScanPlan:
    """How a scan is carried out."""
    layout, axis = layout_of(op.sources[0]), op.axis.value.data
    return plan_scan(layout, axis, combining_bits(op), model, op.reverse is not None)


def gather_plan(op: tile.GatherOp, model: MachineModel) -> GatherPlan:
    """How a gather is carried out."""
    source, index = layout_of(op.source), layout_of(op.index)
    return plan_gather(source, index, op.axis.value.data, element_bits(op.source), model)


def has_instruction(op: tile.ReduceOp) -> bool:
    """Whether ``redux.sync`` has the combine function."""
    only = op.single_op
    return only is not None and only.kind.data in REDUX and dtype_of(only.result).is_integer


def _plans(op: Operation, model: MachineModel) -> list[ConversionPlan]:
    match op:
        case tile.ConvertLayoutOp():
            return [conversion_plan(op, model)]
        case tile.ReduceOp():
            return [step.plan for step in reduce_plan(op, model).steps if isinstance(step, Convert)]
        case tile.ScanOp():
            return list(scan_plan(op, model).conversions)
        case _:
            return []


def own_copies(steps: Sequence[Step]) -> tuple[int, int]:
    """The warp bits for whose values warps write the same places, as a mask, and the bytes between their own copies of scratch.

    Where warps hold copies and no barrier of the block stands between writing and reading, each warp has scratch of its own: a
    warp must not read while another writes, though it writes what is there already. (0, 0) elsewhere.
    """
    accesses = [step for step in walk(steps) if isinstance(step, Access)]
    if not accesses or any(isinstance(step, Barrier) and step.scope == "block" for step in walk(steps)):
        return 0, 0
    mask = 0
    for step in accesses:
        if step.stores:
            same = sum(1 << bit for bit, column in enumerate(step.addresses.warps) if not column)
            mask |= same & ~step.idle_warps
    size = max(step.cost.scratch for step in accesses)
    return mask, -(-size // ALIGNMENT) * ALIGNMENT


def _bytes(plan: ConversionPlan) -> int:
    """The scratch of a plan, with the copies of warps."""
    if plan.scratch is None:
        return 0
    mask, stride = own_copies(plan.steps)
    return stride << mask.bit_count() if mask else plan.scratch.bytes


_USERS: Final = frozenset(
    {
        tile.LoadOp,
        tile.ClockOp,
        tile.AtomicRmwOp,
        tile.AtomicCasOp,
        tile.DotOp,
        tile.GatherOp,
        tile.HistogramOp,
        tile.ConvertLayoutOp,
        tile.ReduceOp,
        tile.ScanOp,
    }
)
"""Ops that may need scratch."""


def use_of(op: Operation, target: GpuTarget) -> Use | None:
    """An op's use of scratch; None where it needs none."""
    if type(op) not in _USERS:
        return None
    if told := told_bytes(op):
        return Use(told, waits=True)
    if isinstance(op, tile.DotOp):
        return Use(dot_scratch(op).bytes, waits=True) if instruction_of(op, target) is None else None
    if isinstance(op, tile.GatherOp):
        memory = gather_plan(op, target.model).memory
        return None if memory is None else Use(memory.cost.scratch, waits=memory.scope == "block")
    if isinstance(op, tile.HistogramOp):
        return Use(prod(shape_of(op.result)) * dtype_of(op.result).itemsize, waits=True)
    plans = [plan for plan in _plans(op, target.model) if plan.scratch is not None]
    if not plans:
        return None
    return Use(max(map(_bytes, plans)), waits=any(map(_waits, plans)))


def shared_bytes(op: Operation, target: GpuTarget) -> int:
    """The bytes of shared memory that an op holds: a buffer's, or those of its scratch."""
    if isinstance(op, gpu.AllocOp):
        return gpu.buffer_of(op.result).bytes
    use = use_of(op, target)
    return 0 if use is None else use.bytes


def told_bytes(op: Operation) -> int:
    """The bytes in which threads that have read what only one may read tell the others; 0 where there is nothing to tell.

    A clock is read by one thread; so is a scalar that is loaded volatile or changed by an atomic. Of a tile's elements each is
    done by the first thread that holds it, and threads with copies are told, unless nothing uses the result.
    """
    match op:
        case tile.ClockOp():
            return 8
        case tile.LoadOp() if op.volatile is not None:
            pass
        case tile.AtomicRmwOp() | tile.AtomicCasOp():
            pass
        case _:
            return 0
    shape = shape_of(op.pointer)
    if not shape:
        return 8
    layout = layout_of(op.pointer)
    copies = any(layout.duplicate_mask(dim) for dim in layout.in_dims if dim != "register")
    return prod(shape) * element_bits(op.result) // 8 if copies and op.result.first_use is not None else 0


def _waits(plan: ConversionPlan) -> bool:
    return any(isinstance(step, Barrier) and step.scope == "block" for step in walk(plan.steps))


def scratch_of(op: Operation) -> int:
    """The byte at which an op's scratch starts; 0 where it has none."""
    found = op.attributes.get(SCRATCH)
    return found.value.data if isinstance(found, IntegerAttr) else 0


def shared_of(kernel: func.FuncOp) -> int:
    """The bytes of shared memory of a block."""
    found = kernel.attributes.get(SHARED)
    return found.value.data if isinstance(found, IntegerAttr) else 0


@dataclass(frozen=True)
class AllocateScratch(ModulePass):
    """Gives each buffer, and each op that needs scratch, its place, and the kernel the sum."""

    name = "allocate-scratch"

    target: str = "sm_90"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(self.target)
        for kernel in op.body.block.ops:
            if isinstance(kernel, func.FuncOp):
                _allocate(kernel, target)


def _allocate(kernel: func.FuncOp, target: GpuTarget) -> None:
    """Buffers come first, each behind those that are in use at the same time; scratch lies behind the buffers in use."""
    order = {op: number for number, op in enumerate(ops_in(kernel))}
    placed: list[_Placed] = []
    for alloc in [op for op in order if isinstance(op, gpu.AllocOp)]:
        first, last = _lifetime(alloc, order)
        low = max((other.high for other in placed if other.first <= last and first <= other.last), default=0)
        size = gpu.buffer_of(alloc.result).bytes
        placed.append(_Placed(first, last, low, low + -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT))
        alloc.attributes[SCRATCH] = IntegerAttr(low, i64)

    floors: dict[int, list[tuple[Operation, Use]]] = {}
    for op, number in order.items():
        if (use := use_of(op, target)) is not None:
            floor = max((other.high for other in placed if other.first <= number <= other.last), default=0)
            floors.setdefault(floor, []).append((op, use))
    ends = [_take_turns(floor, uses) for floor, uses in floors.items()]
    kernel.attributes[SHARED] = IntegerAttr(max([*ends, *(other.high for other in placed)], default=0), i64)


@dataclass(frozen=True)
class _Placed:
    """A buffer that is in use from one op to another, by their numbers, with its bytes."""

    first: int
    last: int
    low: int
    high: int


def _lifetime(alloc: gpu.AllocOp, order: Mapping[Operation, int]) -> tuple[int, int]:
    """The first and the last op, by number, at which a buffer is in use: if it is used in a loop, until the end of the loop."""
    block = alloc.parent_block()
    uses = [use.operation for use in alloc.result.uses]
    ends = [order[op] for op in uses]
    for op in uses:
        parent: Operation | None = op
        while parent is not None and parent.parent_block() is not block:
            parent = parent.parent_op()
        if parent is not None and parent is not op:
            ends += [order[inner] for inner in parent.walk()]
    return order[alloc], max(ends, default=order[alloc])


def _take_turns(floor: int, uses: Sequence[tuple[Operation, Use]]) -> int:
    """Places the scratch of ops from byte ``floor`` on, in two places if there is room; returns the end."""
    sizes = [-(-use.bytes // ALIGNMENT) * ALIGNMENT for _, use in uses]
    first, second = (max(sizes[start::2], default=0) for start in (0, 1))
    apart = floor + first + second <= TWO_PLACES
    for number, (op, _) in enumerate(uses):
        op.attributes[SCRATCH] = IntegerAttr(floor + (first if apart and number % 2 else 0), i64)
    return floor + (first + second if apart else max(sizes, default=0))
