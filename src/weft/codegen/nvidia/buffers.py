"""Buffers in shared memory: ``cp.async`` into slots, and reads of slots by vectors or ``ldmatrix``.

Addresses are ``(thread ^ XOR) + immediate + slot * bytes``: `AccessPlan` has the columns of the thread's part and the other two.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TypeAlias

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.emit.element import element_of_value
from weft.codegen.llvm.types import I32
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.addresses import address_of
from weft.codegen.nvidia.exchange import Exchange, load_words, store_words
from weft.codegen.nvidia.files import from_words, scalar, words_of
from weft.codegen.nvidia.threads import LANE_BITS, Threads
from weft.ir import gpu
from weft.ir.types import layout_of
from weft.layout.algebra import f2
from weft.layout.planning.access import AccessPlan, plan_access, plan_vectors
from weft.transforms.nvidia.buffers import copy_groups, later_steps
from weft.transforms.nvidia.scratch import scratch_of

Start: TypeAlias = tuple[ir.Value, int]
"""Where a slot starts: its byte behind the buffer, and the buffer's first."""


def alloc(threads: Threads, op: gpu.AllocOp) -> None:
    """Nothing: a pass has placed the buffer."""


def copy(threads: Threads, op: gpu.AsyncCopyOp) -> None:
    """Begins the copies of each thread; of threads with copies of an element the first copies."""
    builder, held = threads.builder, gpu.buffer_of(op.buffer)
    layout = layout_of(op.pointer)
    assert held.layout is not None, "buffers have layouts by now"
    bits = 8 * held.dtype.itemsize
    plan = plan_vectors(layout, held.layout, bits, threads.target.model, copy_groups(op, threads.facts.axis))
    start = _slot(threads, op.buffer, op.slot)
    enabled = threads.scalar(op.enabled)
    if (holder := first_holder(threads, plan)) is not None:
        enabled = builder.and_(enabled, holder)
    for number in range(plan.instructions):
        register = f2.apply(plan.across, number)
        source = address_of(threads, op.pointer, register)
        mask = None if op.mask is None else scalar(builder, threads.files[op.mask], register)
        target, immediate = _address(threads, plan, number, start)
        instructions.copy_async(builder, target, immediate, source, plan.width // 8, enabled, mask, op.cache.data)


def commit(threads: Threads, op: gpu.CommitOp) -> None:
    """``cp.async.commit_group``."""
    instructions.commit(threads.builder)


def wait(threads: Threads, op: gpu.WaitOp) -> None:
    """``cp.async.wait_group``."""
    instructions.wait(threads.builder, op.pending.value.data)


def store(threads: Threads, op: gpu.LocalStoreOp) -> None:
    """Writes a slot, as the cheapest plan says; of threads with copies of an element the first writes."""
    builder, held = threads.builder, gpu.buffer_of(op.buffer)
    element = element_of_value(op.value)
    assert held.layout is not None, "buffers have layouts by now"
    plan = plan_access(layout_of(op.value), held.layout, 8 * held.dtype.itemsize, threads.target.model, stores=True)
    start = _slot(threads, op.buffer, op.slot)
    stored = tuple(element.to_storage(builder, chunk) for chunk in threads.files[op.value])
    words = Exchange(threads, 0).permute(plan.network, words_of(builder, stored))
    each = len(words) // plan.instructions
    holder = first_holder(threads, plan)
    with builder.if_then(holder) if holder is not None else nullcontext():
        for number in range(plan.instructions):
            pointer, immediate = _address(threads, plan, number, start)
            some = words[number * each : (number + 1) * each]
            if plan.way == "vector":
                store_words(builder, some, threads.behind(pointer, immediate), plan.width)
            else:
                instructions.store_matrices(builder, pointer, immediate, some, plan.way)


def load(threads: Threads, op: gpu.LocalLoadOp) -> None:
    """Reads a slot, as the cheapest plan says."""
    builder, held = threads.builder, gpu.buffer_of(op.buffer)
    layout, element = layout_of(op.result), element_of_value(op.result)
    assert held.layout is not None, "buffers have layouts by now"
    bits, machine = 8 * held.dtype.itemsize, threads.target.model
    plan = plan_access(layout, held.layout, bits, machine, late=later_steps(op, threads.target))
    start = _slot(threads, op.buffer, op.slot)
    words: list[ir.Value] = []
    for number in range(plan.instructions):
        pointer, immediate = _address(threads, plan, number, start)
        if plan.way == "vector":
            words += load_words(builder, threads.behind(pointer, immediate), plan.width)
        else:
            words += instructions.load_matrices(builder, pointer, immediate, plan.together, plan.way)
    own = Exchange(threads, 0).permute(plan.network, words)
    threads.words[op.result] = own
    stored = from_words(builder, own, element.storage_type(None), layout.in_size("register"))
    threads.files[op.result] = tuple(element.from_storage(builder, chunk) for chunk in stored)


def first_holder(threads: Threads, plan: AccessPlan) -> ir.Value | None:
    """Whether the thread is the first of those that hold the same; None where all threads take part."""
    lanes, warps = plan.idle
    return threads.without(lanes | warps << LANE_BITS)


def address_columns(plan: AccessPlan) -> list[int]:
    """The bytes by which the bits of a thread's number, lane and then warp, move the address that it gives."""
    lanes = len(plan.columns.lane) if plan.way == "vector" else LANE_BITS
    own = list(plan.addressed)
    rows = len(own) - len(plan.columns.warp) - len(plan.columns.block)
    return [*own[:rows], *[0] * (lanes - rows), *own[rows : rows + len(plan.columns.warp)]]


def _slot(threads: Threads, buffer: SSAValue, slot: SSAValue) -> Start:
    """Where a slot starts in shared memory. A buffer's place is an immediate: those with slots of one size share addresses."""
    alloc = buffer.owner
    assert isinstance(alloc, gpu.AllocOp), "a buffer is the result of an alloc"
    size = ir.Constant(I32, gpu.buffer_of(buffer).slot_bytes)
    return threads.builder.mul(threads.scalar(slot), size), scratch_of(alloc)


def _address(threads: Threads, plan: AccessPlan, number: int, start: Start) -> tuple[ir.Value, int]:
    """The address that a thread gives to an instruction, as a pointer and an offset behind it."""
    builder = threads.builder
    thread = threads.linear(address_columns(plan))
    xor, immediate = f2.apply(plan.xors, number), f2.apply(plan.immediates, number)
    at = builder.xor(thread, ir.Constant(I32, xor)) if xor else thread
    slot, first = start
    return threads.shared_address(builder.add(at, slot), 0), first + immediate
