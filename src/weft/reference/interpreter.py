"""Executes tile IR: one op after the other, one NumPy array for each value; programs one after the other, or interleaved
where they synchronise (`weft.reference.programs`).

A tile is an array of the type's shape and NumPy dtype, a scalar one of shape ``()``, a pointer an int64 address.
Layouts say where elements live, not what they are, so they are ignored and ``convert_layout`` is the identity. Every
op looks its meaning up in `_MEANINGS`; an op without one raises.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from weft import dtypes
from weft.ir import cpu, gpu, tile
from weft.ir.location import describe
from weft.ir.types import dtype_of, is_pointer, shape_of
from weft.reference import collective, elementwise, numbers
from weft.reference.buffers import Buffers, empty
from weft.reference.memory import Memory, Site
from weft.reference.numbers import Array
from weft.reference.programs import Steps, UndefinedBehaviourError, finish, run_all

Values: TypeAlias = Sequence[Array]
Argument: TypeAlias = Array | int | float | bool


@dataclass(frozen=True)
class Program:
    """One program of the grid: its index (x, y, z), and the values computed so far; ``first_zero`` as `run` says."""

    memory: Memory
    grid: tuple[int, int, int]
    index: tuple[int, int, int]
    values: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])
    first_zero: bool = False
    buffers: Buffers = field(default_factory=Buffers)
    panels: list[dict[int, Array]] = field(default_factory=list[dict[int, Array]])
    """What the panels hold, step by step; the address of a panel is its place here."""

    def site(self, op: Operation) -> Site:
        """The op as this program executes it, for messages."""
        return Site(op, self.index)

    def run(self, block: Block, arguments: Values) -> Steps[Values]:
        """Executes a block and returns the operands of its terminator; stops before each observed access."""
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            operands = [self.values[operand] for operand in op.operands]
            if isinstance(op, func.ReturnOp | scf.YieldOp | scf.ConditionOp | tile.YieldOp):
                return operands
            ordering = tile.ordering_of(op)
            if ordering is not None and ordering.observed:
                yield
            if type(op) in _CONTROL:
                results = yield from _CONTROL[type(op)](self, op, operands)
            elif type(op) in _MEANINGS:
                results = _MEANINGS[type(op)](self, op, operands)
            else:
                raise NotImplementedError(f"the reference does not define {op.name} at {describe(op)}")
            self.values.update(zip(op.results, results, strict=True))
        return []


_Op = TypeVar("_Op", bound=Operation)
_Meaning: TypeAlias = Callable[[Program, Any, Values], Values]
_MEANINGS: dict[type[Operation], _Meaning] = {}


def _means(op_type: type[_Op]) -> Callable[[Callable[[Program, _Op, Values], Values]], _Meaning]:
    """Registers the decorated function, from an op's operands to its results, as the meaning of ``op_type``."""

    def register(meaning: Callable[[Program, _Op, Values], Values]) -> _Meaning:
        _MEANINGS[op_type] = meaning
        return meaning

    return register


_Control: TypeAlias = Callable[[Program, Any, Values], Steps[Values]]
_CONTROL: dict[type[Operation], _Control] = {}


def _controls(op_type: type[_Op]) -> Callable[[Callable[[Program, _Op, Values], Steps[Values]]], _Control]:
    """Registers the decorated function as the meaning of ``op_type``, which executes blocks and so may stop in them."""

    def register(meaning: Callable[[Program, _Op, Values], Steps[Values]]) -> _Control:
        _CONTROL[op_type] = meaning
        return meaning

    return register


def run(
    module: ModuleOp,
    arguments: Sequence[Argument],
    grid: tuple[int, ...],
    seed: int | None = None,
    *,
    first_zero: bool = False,
) -> None:
    """Executes the module's one function for every program of ``grid`` (up to three sizes), x fastest.

    Each program ends before the next starts, unless a ``seed`` is given: then they are interleaved at the accesses that
    other programs watch, in an order drawn from the seed.

    ``arguments`` has one entry for each parameter of the function: for a pointer an array of the pointee's dtype,
    modified in place, for a scalar a number. Where the IR leaves the choice between two zeros open
    (`weft.ir.base.TIED_ZEROS`), the second is taken, or the first with ``first_zero``.

    Raises `OutOfBoundsError` for an access outside the arrays, `UndefinedBehaviourError`, `NotImplementedError` for an op
    without a meaning, `TypeError` and `ValueError` for arguments that do not fit.
    """
    function = _only_function(module)
    if not 1 <= len(grid) <= 3:
        raise ValueError(f"a grid has one to three sizes, found {grid}")
    if len(arguments) != len(function.args):
        raise TypeError(f"{function.sym_name.data} takes {len(function.args)} arguments, found {len(arguments)}")
    values = [_argument(i, p, a) for i, (p, a) in enumerate(zip(function.args, arguments, strict=True))]
    memory = Memory([a for a in arguments if isinstance(a, np.ndarray)])
    nx, ny, nz = (*grid, 1, 1)[:3]
    with np.errstate(all="ignore"):
        run_all(
            (
                Program(memory, (nx, ny, nz), (x, y, z), first_zero=first_zero).run(function.body.block, values)
                for z, y, x in itertools.product(range(nz), range(ny), range(nx))
            ),
            lambda: memory.changes,
            seed,
        )


def _only_function(module: ModuleOp) -> func.FuncOp:
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    if len(functions) != 1:
        raise ValueError(f"expected a module of one func.func, found {len(functions)}")
    return functions[0]


def _argument(index: int, parameter: SSAValue, argument: Argument) -> Array:
    """The value of a parameter: an array's address, or a number in the parameter's type."""
    dtype = dtype_of(parameter)
    if is_pointer(parameter):
        if not isinstance(argument, np.ndarray) or argument.dtype != dtype.storage:
            found = argument.dtype if isinstance(argument, np.ndarray) else type(argument).__name__
            raise TypeError(f"argument {index} is an array of {dtype}, found {found}")
        return np.array(argument.__array_interface__["data"][0], np.int64)
    if isinstance(argument, np.ndarray):
        raise TypeError(f"argument {index} is a number, {dtype}, found an array")
    if dtype.is_float:
        return numbers.rounded(np.array(argument, np.float64), dtype)
    if not isinstance(argument, int | np.integer):
        raise TypeError(f"argument {index} is an integer, {dtype}, found {argument}")
    if not dtype.min <= argument <= dtype.max:
        raise ValueError(f"argument {index}: {argument} is out of range for {dtype}")
    return np.array(argument, dtype.numpy)


# Values out of nothing


@_means(tile.ConstantOp)
def _(program: Program, op: tile.ConstantOp, operands: Values) -> Values:
    dtype, number = dtype_of(op.result), np.full(shape_of(op.result), op.number)
    return [numbers.rounded(number, dtype) if dtype.is_float else number.astype(dtype.numpy)]


@_means(tile.ProgramIdOp)
def _(program: Program, op: tile.ProgramIdOp, operands: Values) -> Values:
    return [np.array(program.index[op.axis.value.data], np.int32)]


@_means(tile.ProcessorOp)
def _(program: Program, op: tile.ProcessorOp, operands: Values) -> Values:
    return [np.array(0, np.int32)]


@_means(tile.ClockOp)
def _(program: Program, op: tile.ClockOp, operands: Values) -> Values:
    return [np.array(time.monotonic_ns(), np.int64)]


@_means(tile.AssemblyOp)
def _(program: Program, op: tile.AssemblyOp, operands: Values) -> Values:
    raise NotImplementedError(f"{program.site(op)}: the reference does not execute PTX; run the kernel in the emulator")


@_means(tile.NumProgramsOp)
def _(program: Program, op: tile.NumProgramsOp, operands: Values) -> Values:
    return [np.array(program.grid[op.axis.value.data], np.int32)]


@_means(tile.ArangeOp)
def _(program: Program, op: tile.ArangeOp, operands: Values) -> Values:
    return [np.arange(op.start.value.data, op.end.value.data, dtype=np.int32)]


# The same elements in another shape


@_means(tile.SplatOp)
@_means(tile.BroadcastOp)
def _(program: Program, op: tile.SplatOp | tile.BroadcastOp, operands: Values) -> Values:
    return [np.broadcast_to(operands[0], shape_of(op.result)).copy()]


@_means(tile.ExpandDimsOp)
@_means(tile.ReshapeOp)
def _(program: Program, op: tile.ExpandDimsOp | tile.ReshapeOp, operands: Values) -> Values:
    return [operands[0].reshape(shape_of(op.result))]


@_means(tile.TransOp)
def _(program: Program, op: tile.TransOp, operands: Values) -> Values:
    return [operands[0].transpose(op.permutation)]


@_means(tile.JoinOp)
def _(program: Program, op: tile.JoinOp, operands: Values) -> Values:
    return [np.stack(operands, -1)]


@_means(tile.SplitOp)
def _(program: Program, op: tile.SplitOp, operands: Values) -> Values:
    return [operands[0][..., 0], operands[0][..., 1]]


@_means(tile.FlipOp)
def _(program: Program, op: tile.FlipOp, operands: Values) -> Values:
    return [np.flip(operands[0], op.axis.value.data)]


@_means(tile.ConvertLayoutOp)
@_means(tile.HintOp)
def _(program: Program, op: tile.ConvertLayoutOp | tile.HintOp, operands: Values) -> Values:
    return operands


# Elementwise


@_means(tile.UnaryOp)
def _(program: Program, op: tile.UnaryOp, operands: Values) -> Values:
    return [elementwise.unary(op.kind.data, dtype_of(op.operand), *operands)]


@_means(tile.BinaryOp)
def _(program: Program, op: tile.BinaryOp, operands: Values) -> Values:
    return [elementwise.binary(op.kind.data, dtype_of(op.lhs), *operands, first_zero=program.first_zero)]


@_means(tile.CompareOp)
def _(program: Program, op: tile.CompareOp, operands: Values) -> Values:
    if is_pointer(op.lhs):
        return [elementwise.compare(op.kind.data, dtypes.uint64, *(x.view(np.uint64) for x in operands))]
    return [elementwise.compare(op.kind.data, dtype_of(op.lhs), *operands)]


@_means(tile.SelectOp)
def _(program: Program, op: tile.SelectOp, operands: Values) -> Values:
    return [np.where(*operands)]


@_means(tile.FmaOp)
def _(program: Program, op: tile.FmaOp, operands: Values) -> Values:
    return [elementwise.fma(dtype_of(op.result), *operands)]


@_means(tile.CastOp)
def _(program: Program, op: tile.CastOp, operands: Values) -> Values:
    return [numbers.cast(operands[0], dtype_of(op.source), dtype_of(op.result))]


@_means(tile.BitcastOp)
def _(program: Program, op: tile.BitcastOp, operands: Values) -> Values:
    return [operands[0].view(np.int64 if is_pointer(op.result) else dtype_of(op.result).storage)]


# Memory


@_means(tile.AddPtrOp)
def _(program: Program, op: tile.AddPtrOp, operands: Values) -> Values:
    pointer, offset = operands
    return [np.asarray(pointer + offset.astype(np.int64) * dtype_of(op.pointer).itemsize)]


def _mask(mask: SSAValue | None, program: Program, pointer: Array) -> Array:
    return np.ones(pointer.shape, np.bool_) if mask is None else program.values[mask]


@_means(tile.LoadOp)
def _(program: Program, op: tile.LoadOp, operands: Values) -> Values:
    pointer = operands[0]
    mask = _mask(op.mask, program, pointer)
    loaded = program.memory.read(program.site(op), pointer, dtype_of(op.result), mask)
    return [loaded if op.other is None else np.where(mask, loaded, program.values[op.other])]


@_means(tile.StoreOp)
def _(program: Program, op: tile.StoreOp, operands: Values) -> Values:
    pointer, value = operands[:2]
    program.memory.write(program.site(op), pointer, value, _mask(op.mask, program, pointer))
    return []


@_means(tile.AtomicRmwOp)
def _(program: Program, op: tile.AtomicRmwOp, operands: Values) -> Values:
    """One element after the other in row-major order; 0 where masked off."""
    pointer, value = operands[:2]
    mask, site, dtype = _mask(op.mask, program, pointer), program.site(op), dtype_of(op.value)
    program.memory.check(site, pointer, dtype.itemsize, mask, writing=True)
    before = np.zeros(pointer.shape, dtype.storage)
    for index in np.ndindex(pointer.shape):
        address, here = np.asarray(pointer[index]), np.asarray(mask[index])
        old = program.memory.read(site, address, dtype, here)
        new = elementwise.atomic(op.kind.data, dtype, old, np.asarray(value[index]), program.first_zero)
        program.memory.write(site, address, new, here)
        before[index] = old
    return [before]


@_means(tile.AtomicCasOp)
def _(program: Program, op: tile.AtomicCasOp, operands: Values) -> Values:
    """One element after the other in row-major order."""
    pointer, expected, value = operands
    site, dtype = program.site(op), dtype_of(op.value)
    program.memory.check(site, pointer, dtype.itemsize, np.ones(pointer.shape, np.bool_), writing=True)
    before = np.zeros(pointer.shape, dtype.storage)
    for index in np.ndindex(pointer.shape):
        address = np.asarray(pointer[index])
        old = program.memory.read(site, address, dtype, np.array(True))
        equal = np.array(old.tobytes() == np.asarray(expected[index]).tobytes())
        program.memory.write(site, address, np.asarray(value[index]), equal)
        before[index] = old
    return [before]


@_means(tile.BarrierOp)
def _(program: Program, op: tile.BarrierOp, operands: Values) -> Values:
    """Nothing to do: accesses happen in program order."""
    return []


@_means(tile.AssertOp)
def _(program: Program, op: tile.AssertOp, operands: Values) -> Values:
    if not operands[0].all():  # several values in a combine region that is given whole arrays
        raise AssertionError(f"{program.site(op)}: {op.message.data or 'assertion failed'}")
    return []


@_means(tile.PrintOp)
def _(program: Program, op: tile.PrintOp, operands: Values) -> Values:
    sys.stdout.write(op.described().text(program.index, operands[0] if operands else None))
    return []


@_means(tile.AssumeOp)
def _(program: Program, op: tile.AssumeOp, operands: Values) -> Values:
    if not operands[0]:
        raise UndefinedBehaviourError(f"{program.site(op)}: the assumption does not hold")
    return []


# Buffers


@_means(gpu.AllocOp)
def _(program: Program, op: gpu.AllocOp, operands: Values) -> Values:
    program.buffers.alloc(op.result)
    return [empty()]


@_means(gpu.AsyncCopyOp)
def _(program: Program, op: gpu.AsyncCopyOp, operands: Values) -> Values:
    """Reads zeros where the mask is false."""
    if program.values[op.enabled]:
        pointer, site = operands[0], program.site(op)
        loaded = program.memory.read(site, pointer, gpu.buffer_of(op.buffer).dtype, _mask(op.mask, program, pointer))
        program.buffers.copy(site, op.buffer, int(program.values[op.slot]), loaded)
    return []


@_means(gpu.CommitOp)
def _(program: Program, op: gpu.CommitOp, operands: Values) -> Values:
    program.buffers.commit()
    return []


@_means(gpu.WaitOp)
def _(program: Program, op: gpu.WaitOp, operands: Values) -> Values:
    program.buffers.wait(op.pending.value.data)
    return []


@_means(gpu.LocalStoreOp)
def _(program: Program, op: gpu.LocalStoreOp, operands: Values) -> Values:
    program.buffers.write(program.site(op), op.buffer, int(program.values[op.slot]), operands[0])
    return []


@_means(gpu.LocalLoadOp)
def _(program: Program, op: gpu.LocalLoadOp, operands: Values) -> Values:
    return [program.buffers.read(program.site(op), op.buffer, int(program.values[op.slot]))]


@_means(gpu.BarrierOp)
def _(program: Program, op: gpu.BarrierOp, operands: Values) -> Values:
    """Nothing to do: a program is executed as a whole."""
    return []


@_means(cpu.PresentOp)
def _(program: Program, op: cpu.PresentOp, operands: Values) -> Values:
    """Each program is executed alone."""
    return [np.array(1, np.int32)]


# Panels


@_means(cpu.ClaimOp)
def _(program: Program, op: cpu.ClaimOp, operands: Values) -> Values:
    """A new panel: no other is kept."""
    program.panels.append({})
    return [np.array(len(program.panels) - 1, np.int64), np.array(True)]


@_means(cpu.PackOp)
def _(program: Program, op: cpu.PackOp, operands: Values) -> Values:
    """Keeps the tile as it is, its contracted axis first. All of it is there, also what may be left out."""
    value, panel, at, _ = operands
    program.panels[int(panel)][int(at)] = np.moveaxis(value, op.geometry.axis, 0)
    return []


@_means(cpu.MultiplyOp)
def _(program: Program, op: cpu.MultiplyOp, operands: Values) -> Values:
    """Adds the product of the tiles of each step, the last one's up to the depth."""
    left, right, depth, _, _, acc = operands
    step = op.multiple.value.data
    for begin in range(0, int(depth), step):
        a, b = (program.panels[int(panel)][begin // step][: int(depth) - begin] for panel in (left, right))
        acc = collective.dot(dtype_of(op.acc), a.T, b, acc)
    return [acc]


# Collectives


@_means(tile.ReduceOp)
def _(program: Program, op: tile.ReduceOp, operands: Values) -> Values:
    block = op.combine.block
    straight = not any(inner.regions for inner in block.ops)
    return collective.reduce(
        operands, op.axis.value.data, lambda a: finish(program.run(block, a)), elementwise=straight
    )


@_means(tile.ScanOp)
def _(program: Program, op: tile.ScanOp, operands: Values) -> Values:
    block = op.combine.block
    return collective.scan(
        operands,
        op.axis.value.data,
        lambda a: finish(program.run(block, a)),
        reverse=op.reverse is not None,
        elementwise=not any(inner.regions for inner in block.ops),
    )


@_means(tile.GatherOp)
def _(program: Program, op: tile.GatherOp, operands: Values) -> Values:
    source, index = operands
    return [collective.gather(source, index, op.axis.value.data)]


@_means(tile.HistogramOp)
def _(program: Program, op: tile.HistogramOp, operands: Values) -> Values:
    (bins,) = shape_of(op.result)
    return [collective.histogram(operands[0], operands[1] if len(operands) > 1 else None, bins)]


@_means(tile.DotOp)
def _(program: Program, op: tile.DotOp, operands: Values) -> Values:
    return [collective.dot(dtype_of(op.acc), *operands)]


# Control flow


@_controls(scf.IfOp)
def _(program: Program, op: scf.IfOp, operands: Values) -> Steps[Values]:
    region = op.true_region if operands[0] else op.false_region
    return (yield from program.run(region.block, [])) if region.blocks else []


@_controls(scf.ForOp)
def _(program: Program, op: scf.ForOp, operands: Values) -> Steps[Values]:
    """Bounds and step are signed; the induction value never wraps."""
    start, stop, step = (int(x) for x in operands[:3])
    if step <= 0:
        raise UndefinedBehaviourError(f"{program.site(op)}: the step is {step}, not positive")
    carried = operands[3:]
    induction = operands[0].dtype
    for i in range(start, stop, step):
        carried = yield from program.run(op.body.block, [np.array(i, induction), *carried])
    return carried


@_controls(scf.WhileOp)
def _(program: Program, op: scf.WhileOp, operands: Values) -> Steps[Values]:
    while True:
        condition, *passed = yield from program.run(op.before_region.block, operands)
        if not condition:
            return passed
        operands = yield from program.run(op.after_region.block, passed)


if _UNDEFINED := [
    op.name
    for op in (*tile.Tile.operations, *cpu.Cpu.operations, *gpu.Gpu.operations)
    if op not in _MEANINGS and op is not tile.YieldOp
]:
    raise ValueError(f"weft.reference: no meaning for {', '.join(_UNDEFINED)}")
