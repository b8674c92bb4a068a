"""The GPU's table of lowerings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xdsl.ir import Operation

from weft.codegen.emit.context import Lowering
from weft.codegen.emit.control import CONTROL
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.scalars import SCALARS
from weft.codegen.emit.views import view_columns
from weft.codegen.nvidia import access, assembly, buffers, instructions, rearranging
from weft.codegen.nvidia.asserts import emit_assert
from weft.codegen.nvidia.dot import dot
from weft.codegen.nvidia.exchange import convert
from weft.codegen.nvidia.files import take
from weft.codegen.nvidia.gather import gather
from weft.codegen.nvidia.histogram import histogram
from weft.codegen.nvidia.prints import emit_print
from weft.codegen.nvidia.reduce import Reduction
from weft.codegen.nvidia.scan import Scan
from weft.codegen.nvidia.threads import Threads
from weft.codegen.nvidia.tiles import TILES
from weft.ir import gpu, tile
from weft.ir.types import layout_of, shape_of
from weft.layout.algebra import f2
from weft.transforms.nvidia.scratch import conversion_plan, scratch_of


def _convert(threads: Threads, op: tile.ConvertLayoutOp) -> None:
    if not shape_of(op.result):
        threads.scalars[op.result] = threads.scalar(op.source)
        return
    builder, file = threads.builder, threads.files[op.source]
    columns = view_columns(op)
    if columns is not None:
        threads.files[op.result] = take(builder, file, [f2.apply(columns, r) for r in range(1 << len(columns))])
        return
    element = element_of_value(op.source)
    plan = conversion_plan(op, threads.target.model)
    registers = layout_of(op.result).in_size("register")
    threads.files[op.result] = convert(threads, plan, file, element, registers, scratch_of(op))


def _reduce(threads: Threads, op: tile.ReduceOp) -> None:
    Reduction(threads, op).run()


def _scan(threads: Threads, op: tile.ScanOp) -> None:
    Scan(threads, op).run()


def _barrier(threads: Threads, op: tile.BarrierOp | gpu.BarrierOp) -> None:
    instructions.barrier(threads.builder, "block")


LOWERINGS: Final[Mapping[type[Operation], Lowering]] = {
    **SCALARS,
    **CONTROL,
    tile.AssertOp: emit_assert,
    tile.PrintOp: emit_print,
    tile.AssemblyOp: assembly.emit_assembly,
    tile.ClockOp: assembly.clock,
    tile.ProcessorOp: assembly.processor,
    **TILES,
    tile.LoadOp: access.load,
    tile.StoreOp: access.store,
    tile.AtomicRmwOp: access.atomic,
    tile.AtomicCasOp: access.atomic,
    tile.BarrierOp: _barrier,
    gpu.BarrierOp: _barrier,
    gpu.AllocOp: buffers.alloc,
    gpu.AsyncCopyOp: buffers.copy,
    gpu.CommitOp: buffers.commit,
    gpu.WaitOp: buffers.wait,
    gpu.LocalStoreOp: buffers.store,
    gpu.LocalLoadOp: buffers.load,
    tile.ConvertLayoutOp: _convert,
    tile.ReduceOp: _reduce,
    tile.ScanOp: _scan,
    tile.GatherOp: gather,
    tile.FlipOp: rearranging.flip,
    tile.HistogramOp: histogram,
    tile.JoinOp: rearranging.join,
    tile.SplitOp: rearranging.split,
    tile.DotOp: dot,
}
"""What a GPU does for each op."""
