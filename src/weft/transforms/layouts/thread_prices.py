"""What ops cost on a GPU under their layouts: clocks of one multiprocessor for one block, as in `weft.layout.planning.price`.

    op            price
    access        requests to be issued and the arithmetic of their pointers, sectors moved, lines looked up
    elementwise   instructions to be issued: each thread's different registers times the kind's instructions
    reduction     its plan's price
    dot           matrix instructions, or the multiply-adds of each thread
    gather        its plan's price, for random indices, and the selections among registers
    histogram     additions to counts in shared memory
    any           wavefronts by which operands are read from buffers
    dot, reduce   spills: words of operands and results beyond a thread's registers, each stored and loaded
    block         spills where lifetimes take more words than there are registers (`solve.lifetimes`)

A *request* is one instruction of a warp. Its sectors (32 bytes) and lines (128 bytes) are counted from the lanes' columns.
Addresses are known along the dimension in which axis analysis finds runs. Elements outside a run are taken to be in other lines.

The numbers rank layouts and predict no time. Not priced: latency of global memory, occupancy.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.rearranging import flipped_bits
from weft.ir.types import dtype_of, shape_of
from weft.layout import LinearLayout, MachineModel, plan_reduce
from weft.layout.planning.combining import combining_price
from weft.layout.planning.permutes import WORD_BITS
from weft.layout.planning.price import OTHER_REGISTERS, clocks, memory_price, words_of
from weft.layout.planning.reduce import least_reduce
from weft.layout.planning.steps import Cost
from weft.target import GpuTarget
from weft.transforms.axis_boxes import box_of
from weft.transforms.axis_info import AxisInfo
from weft.transforms.distances import distances
from weft.transforms.layouts.free import Free, instructions_of
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts
from weft.transforms.nvidia.groups import Groups, groups
from weft.transforms.nvidia.matrix import instruction_of
from weft.transforms.nvidia.scratch import combining_bits, element_bits, has_instruction

SECTOR: Final = 1.4
"""Clocks of a sector of 32 bytes, between those of L2 and of memory. By data sheets a multiprocessor has 0.7 and 3.1 on an
A100, 1.4 and 2.2 on an H100. Chosen between them by counts: with 1.0 row sums take more sectors, with 1.5 prefix sums by doubling
904 instructions more. Never measured on a card."""
LINE: Final = 0.25
"""Clocks of a line that a request looks up, besides its sectors. Unmeasured."""
ATOMIC: Final = 1.0
"""Clocks of an atomic on one element. Unmeasured."""

COUNTED: Final = 4.0
"""Clocks of a warp's additions to counts in shared memory: lanes that meet in a bank, or a count, take turns. Unmeasured."""

ADDRESS: Final = 2.0
"""Instructions for each pointer that an access goes through, besides what is computed for each element: an extension and an
addition of 64 bits. Requests at known distances from a pointer have immediate offsets (`weft.transforms.distances`)."""
ISSUED: Final = 2.0
"""Instructions of a warp that are issued in a clock: half of what the schedulers can. Unmeasured."""

PERMUTE: Final = 2.0
"""Instructions in the PTX for each permute of a plan."""
SELECTION: Final = 2.0
"""Instructions for each bit by which a gather selects: the bit, and whether it is set."""
REPACK: Final = 5.0
"""Instructions in the PTX for each word that an access packs in another order than the layout; from 16-bit transposes."""

FRAGMENTS: Final = 22
"""Registers of a thread beside `OTHER_REGISTERS` that ptxas takes where a kernel's tiles live together: fragments that are loaded
ahead, addresses of all accesses. From attention: 176 words of tiles take 221 registers, 136 take 182."""

_LINE_BYTES, _SECTOR_BYTES = 128, 32


def nonzero(columns: Iterable[int]) -> int:
    """How many bits tell different elements apart."""
    return sum(map(bool, columns))


def op_price(
    op: Operation, chosen: OperandLayouts, facts: LayoutFacts, free: Free, target: GpuTarget, *, exact: bool = True
) -> float:
    """The clocks of one execution; for a reduction the least of any plan unless ``exact``."""
    layouts = [layout for layout in (*chosen.operands, *chosen.results) if layout is not None]
    if not layouts:
        return 0.0
    machine = target.model
    match op:
        case tile.LoadOp() | tile.StoreOp() | tile.AtomicRmwOp() | tile.AtomicCasOp() if chosen.operands[0] is not None:
            price = _access(op, chosen.operands[0], facts, free, machine)
        case tile.ReduceOp():
            price = _reduction(op, chosen, machine, exact) + _cones(op, chosen, free, machine)
        case tile.DotOp():
            price = _dot(op, chosen, target) + _cones(op, chosen, free, machine)
        case tile.GatherOp():
            price = _gather(op, chosen, machine) + _cones(op, chosen, free, machine)
        case tile.HistogramOp() if chosen.operands[0] is not None:
            price = _held(chosen.operands[0]) * _warps(chosen.operands[0]) * COUNTED + _cones(op, chosen, free, machine)
        case tile.JoinOp() | tile.SplitOp():
            price = _cones(op, chosen, free, machine)
        case tile.FlipOp():
            price = _flip(op, layouts[0], machine) + _cones(op, chosen, free, machine)
        case _ if tile.is_a(op, tile.Elementwise):
            cones = sum(each.cone for each in free.operands(op))
            price = _issued(_held(layouts[0]) * (instructions_of(op) + cones), layouts[0])
        case _:
            price = 0.0
    return price + _read(op, chosen, free, machine) + _spills(op, chosen, machine)


def _held(layout: LinearLayout) -> int:
    """The different elements of a thread."""
    return 1 << nonzero(layout.columns("register"))


def _warps(layout: LinearLayout) -> int:
    return layout.in_size("warp")


def _issued(instructions: float, layout: LinearLayout) -> float:
    """The clocks to issue instructions of each thread."""
    return instructions * _warps(layout) / ISSUED


def issued_permutes(permutes: int, warps: int) -> float:
    """The clocks to issue a plan's permutes."""
    return PERMUTE * permutes * warps / ISSUED


def _cones(op: Operation, chosen: OperandLayouts, free: Free, machine: MachineModel) -> float:
    """What the free operands cost."""
    return sum(
        _issued(_held(layout) * each.cone, layout)
        for each in free.operands(op)
        if (layout := chosen.operands[each.operand]) is not None
    )


def _read(op: Operation, chosen: OperandLayouts, free: Free, machine: MachineModel) -> float:
    """The wavefronts by which operands are read from buffers, each warp its own part, without conflicts."""
    bits = sum(
        each.read_bits * _warps(layout) * _held(layout) << nonzero(layout.columns("lane"))
        for each in free.operands(op)
        if each.read_bits and (layout := chosen.operands[each.operand]) is not None
    )
    return bits / (8 * machine.wavefront_bytes * machine.throughput.wavefronts)


def _access(
    op: tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp | tile.AtomicCasOp,
    layout: LinearLayout,
    facts: LayoutFacts,
    free: Free,
    machine: MachineModel,
) -> float:
    value = op.result if isinstance(op, tile.LoadOp) else op.value
    bits = 8 * dtype_of(value).itemsize
    pointer = facts.axis.get(op.pointer)
    mask = None if op.mask is None else facts.axis.get(op.mask)
    known = None if op.mask is not None and mask is None else pointer
    whole = isinstance(op, tile.LoadOp | tile.StoreOp)
    found = groups(layout, bits, known, mask)
    apart = len(found.across) + (0 if whole else len(found.inside))
    stored = not isinstance(op, tile.LoadOp)
    warps = _warps(layout)
    active = 1 << nonzero(layout.columns("warp")) if stored else warps
    cone = sum(each.cone for each in free.operands(op) if op.operands[each.operand] is not op.pointer)
    registers = [*found.across, *(() if whole else found.inside)]
    pointers = 1 << _unknown(layout, pointer, registers)
    sectors, lines = _touched(layout, bits // 8, pointer)
    issued = (1 << apart) * (1 + cone) + pointers * (ADDRESS + free.cone(op.pointer))
    price = _issued(issued + REPACK * _repacked(layout, bits, found), layout)
    price += (1 << apart) * active * (sectors * SECTOR + lines * LINE)
    if not whole:
        price += (1 << apart) * active * (1 << nonzero(layout.columns("lane"))) * ATOMIC
    return price


def _unknown(layout: LinearLayout, pointer: AxisInfo | None, registers: Iterable[int]) -> int:
    """How many of these bits of a register's number move the pointer by a distance that is not known."""
    if pointer is None:
        return len(list(registers))
    known = distances(layout, box_of(pointer)).bytes
    return sum(known[register.bit_length() - 1] is None for register in registers)


def _repacked(layout: LinearLayout, bits: int, found: Groups) -> int:
    """Words of a thread that an access packs in another order than the layout; thrice for four parts."""
    within = (WORD_BITS // bits).bit_length() - 1
    kept = [1 << bit for bit, column in enumerate(layout.columns("register")) if column]
    apart = len(set(kept[:within]) - set(found.inside[:within]))
    words = max(1, (bits << len(kept)) // WORD_BITS)
    return ((1 << apart) - 1) * words


def _touched(layout: LinearLayout, size: int, pointer: AxisInfo | None) -> tuple[int, int]:
    """Sectors and lines of one request."""
    shape = layout.shape
    axis = 0 if pointer is None else max(range(len(shape)), key=lambda d: (min(pointer.contiguity[d], shape[d]), d))
    run = 1 if pointer is None else min(pointer.contiguity[axis], shape[axis])
    sectors = lines = 0
    for basis in layout.bases("lane"):
        if not any(basis):
            continue
        along = next(d for d, coordinate in enumerate(basis) if coordinate)
        if pointer is not None and basis[along] < pointer.constancy[along]:
            continue
        offset = basis[along] * size if along == axis and basis[along] < run else _LINE_BYTES
        sectors += offset >= _SECTOR_BYTES
        lines += offset >= _LINE_BYTES
    return 1 << sectors, 1 << lines


def _reduction(op: tile.ReduceOp, chosen: OperandLayouts, machine: MachineModel, exact: bool) -> float:
    source, result = chosen.operands[0], chosen.results[0]
    assert source is not None, "the source of a reduction is a tile"
    axis, bits, redux = op.axis.value.data, combining_bits(op), has_instruction(op)
    price = reduce_price if exact else least_reduce
    return price(source, axis, bits, machine, result, redux) * len(op.sources)


@lru_cache(maxsize=1 << 12)
def reduce_price(
    source: LinearLayout, axis: int, bits: int, machine: MachineModel, result: LinearLayout | None, redux: bool
) -> float:
    """The price of a reduction's plan."""
    plan = plan_reduce(source, axis, bits, machine, result, redux)
    return combining_price(plan.steps, bits, machine, _warps(source))


def _gather(op: tile.GatherOp, chosen: OperandLayouts, machine: MachineModel) -> float:
    source, index = chosen.operands
    assert source is not None and index is not None, "a gather is of tiles"
    return gather_price(source, index, op.axis.value.data, element_bits(op.source), machine)


@lru_cache(maxsize=1 << 12)
def gather_price(source: LinearLayout, index: LinearLayout, axis: int, bits: int, machine: MachineModel) -> float:
    """The price of a gather's plan, and of issuing the selections among the registers that are shuffled."""
    from weft.layout import plan_gather  # kernels without gathers do not wait for it

    plan = plan_gather(source, index, axis, bits, machine)
    warps = _warps(index)
    if plan.memory is not None:
        way = plan.memory
        return memory_price(way.cost, machine, warps, local=way.scope == "warp", rounds=way.rounds)
    words = max(1, bits // WORD_BITS)
    selections = _held(index) * (words * (plan.rounds - 1) + SELECTION * (plan.rounds.bit_length() - 1))
    return clocks(plan.cost, machine, warps) + machine.latency.shuffle + _issued(selections, index)


def _flip(op: tile.FlipOp, layout: LinearLayout, machine: MachineModel) -> float:
    """A shuffle for each word where lanes exchange elements; else registers are renamed."""
    bits = flipped_bits(shape_of(op.source), op.axis.value.data)
    if not any(column & bits for column in layout.columns("lane")):
        return 0.0
    words = words_of(nonzero(layout.columns("register")), element_bits(op.source))
    return clocks(Cost(shuffles=words), machine, _warps(layout)) + machine.latency.shuffle


def _dot(op: tile.DotOp, chosen: OperandLayouts, target: GpuTarget) -> float:
    result = chosen.results[0]
    assert result is not None, "the result of a dot is a tile"
    depth = shape_of(op.a)[1]
    held = _held(result)
    found = instruction_of(op, target)
    if found is not None:
        return max(1, held * 4 // found.m) * (depth // found.k) * _warps(result) * found.shape.clocks
    return _issued(2 * held * depth, result)


def _spills(op: Operation, chosen: OperandLayouts, machine: MachineModel) -> float:
    """The clocks of words that do not fit a thread's registers: each is stored and loaded, a wavefront each time. The sums of a
    dot are counted once, since they stay where they are."""
    if not isinstance(op, tile.DotOp | tile.ReduceOp):  # others go element by element
        return 0.0
    words: dict[SSAValue, int] = {}
    pairs = [*zip(op.operands, chosen.operands, strict=True), *zip(op.results, chosen.results, strict=True)]
    warps = 1
    for value, layout in pairs:
        if layout is not None and not (isinstance(op, tile.DotOp) and value is op.acc):
            words[value] = max(1, _held(layout) * element_bits(value) // 32)
            warps = _warps(layout)
    return spilled(sum(words.values()), warps, machine)


def spilled(words: int, warps: int, machine: MachineModel) -> float:
    """The clocks of words of tiles that do not fit a thread's registers."""
    return 2.0 * max(0, words + OTHER_REGISTERS - machine.residency.registers_per_thread) * warps
