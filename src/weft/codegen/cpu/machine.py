"""The CPU as a machine: its passes, the LLVM module around a kernel's program, LLVM's own pipeline.

Vectors, fusion and unrolling are decided when LLVM sees the code. What is left to it is to promote stack slots, hoist, number
values, select instructions and allocate registers.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from xdsl.dialects import func, scf
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.codegen.cpu.arguments import load_arguments, load_bounds, name_arguments
from weft.codegen.cpu.copies import Copies, beyond_copies, has_copies
from weft.codegen.cpu.emitter import Emitter
from weft.codegen.cpu.entry import Together, emit_entry
from weft.codegen.cpu.exclusive import emit_guarded, enters, has_alone, may_be_alone, most_chunks
from weft.codegen.cpu.lowering import LOWERINGS
from weft.codegen.cpu.order import order_is_seen, y_first
from weft.codegen.cpu.streaming import does_stream, streamed
from weft.codegen.cpu.sum_order import SumOrder
from weft.codegen.emit.context import Facts, Grid
from weft.codegen.emit.faults import Faults
from weft.codegen.kernel import CompiledKernel
from weft.codegen.llvm.pipeline import parsed, simplify
from weft.codegen.llvm.types import I32, POINTER, Module
from weft.codegen.machine import Emitted
from weft.ir import cpu, tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, shape_of
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms import PIPELINE
from weft.transforms.axis import analyse, base_arguments
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.delay_sums import DelaySums
from weft.transforms.fill_lanes import FillLanes
from weft.transforms.flags import waits
from weft.transforms.invariant_loads import MarkInvariantLoads
from weft.transforms.join_programs import JoinPrograms, joined_of
from weft.transforms.layouts import AssignVectorLayouts
from weft.transforms.narrow_integers import NarrowIntegers
from weft.transforms.narrow_operands import NarrowOperands
from weft.transforms.pack_dots import PackDots
from weft.transforms.split_sums import SplitSums, sums_of
from weft.transforms.widen_dot import WidenDot
from weft.transforms.widen_packs import WidenPacks


class _Program(NamedTuple):
    """A function that runs programs, what emitted it, the scratch bytes that it needs, and whether its stores may go past the
    caches."""

    function: ir.Function
    emitter: Emitter
    scratch: int
    streams: bool


@dataclass(frozen=True)
class CpuMachine:
    """Compiles kernels for a CPU; see `weft.codegen.machine.Machine`."""

    target: CpuTarget

    lowerings = LOWERINGS

    def passes(self, options: Options) -> tuple[ModulePass, ...]:
        """The passes to laid-out tile IR."""
        disjoint = options.disjoint and not options.checked
        features = ",".join(sorted(self.target.enabled))
        return (
            *PIPELINE,
            NarrowIntegers(),
            *([] if options.checked else [JoinPrograms(disjoint), SplitSums(options.phase)]),
            WidenDot(),
            DelaySums(self.target.lanes, self.target.sum_bytes),
            AssignVectorLayouts(self.target.lanes),
            FillLanes(self.target.lanes),
            Cse(),
            Dce(),
            *(
                [
                    MarkInvariantLoads(),
                    NarrowOperands(features),
                    PackDots(self.target.vector_bits, features),
                    WidenPacks(self.target.vector_bits),
                    Dce(),
                ]
                if disjoint
                else []
            ),
        )

    def emit(self, kernel: func.FuncOp, options: Options) -> Emitted:
        """The module of two functions: one that runs a program, and the entry point that runs programs as it claims them."""
        symbol = kernel.sym_name.data
        contracted = frozenset({"contract"} if options.fusion else ())
        module = Module(symbol, self.target.triple, self.target.enabled | contracted)
        alone = may_be_alone(kernel) and not options.checked
        sums = sums_of(kernel)
        found = joined_of(kernel)
        functions = [kernel] if found is None else [kernel, found[0]]
        copies = (
            Copies.of(functions, reassociate=options.reassociation) if alone and options.disjoint and not sums else None
        )
        one, several, first = self._programs(module, kernel, options, alone=alone, copies=copies, sums=bool(sums))
        if copies is not None:
            copies = replace(copies, at=-(-one.scratch // 64) * 64)
        guarded = enters(kernel)
        run = emit_entry(
            module,
            f"{symbol}.run" if guarded else symbol,
            one.function,
            one_by_one=waits(kernel),
            in_order=order_is_seen(kernel, options),
            cleared=one.emitter.cleared,
            tiles=one.emitter.uses_tiles,
            streams=one.streams,
            y_first=first,
            joined=several,
            copies=copies,
        )
        if guarded:
            unless = None if copies is None else copies.wanted
            emit_guarded(module, symbol, run, alone=alone, most=most_chunks(kernel), unless=unless)
        loops = any(isinstance(op, scf.ForOp | scf.WhileOp) for op in ops_in(kernel))
        faults = one.emitter.faults
        order = (
            repr(_orders_of_floats(one, next(op for op in ops_in(kernel) if isinstance(op, scf.ForOp)))) if sums else ""
        )
        return Emitted(
            module,
            symbol,
            one.scratch,
            tuple(faults.sites),
            prints=tuple(faults.prints),
            loops=loops,
            products=any(isinstance(op, cpu.MultiplyOp) for op in ops_in(kernel)),
            sums=sums,
            order=order,
            copies=0 if copies is None else copies.at + copies.size - one.scratch,
            measured=() if copies is None else tuple(target.slot for target in copies.measured),
        )

    def _programs(
        self, module: Module, kernel: func.FuncOp, options: Options, *, alone: bool, copies: Copies | None, sums: bool
    ) -> tuple[_Program, Together | None, bool]:
        """The function that runs one program, the one that runs several, and whether y counts fastest. A program whose rows are
        long, so that any number may run at once, needs no function of its own: it would be compiled for nothing."""
        found, symbol = joined_of(kernel), kernel.sym_name.data
        if found is None:
            one = self._program(module, symbol, kernel, options, alone=alone, copies=copies, paired=sums)
            return one, None, y_first(kernel, options)
        function, (axis, most, least, beside) = found

        def single() -> _Program:
            return self._program(module, symbol, kernel, options, alone=alone, copies=copies, paired=True)

        loops = any(isinstance(op, scf.ForOp) for op in ops_in(function))
        one, name = None if least == 1 or (least and loops) else single(), function.sym_name.data
        together = self._program(
            module,
            name,
            function,
            options,
            alone=alone,
            copies=copies,
            paired=True,
            together=most * beside,
            any_number=least > 0,
        )
        fits, several = (
            not least or _ends_with_rows(together, function),
            Together(together.function, most, least, beside, by_threads=least > 0 and loops),
        )
        if one is None and fits:
            return together, several, axis == 1
        one = one or single()
        if not fits or _orders_of_floats(one, kernel) != _orders_of_floats(together, function):
            return one, None, y_first(kernel, options)
        scratch, streams = max(one.scratch, together.scratch), one.streams or together.streams
        return one._replace(scratch=scratch, streams=streams), several, axis == 1

    def _program(
        self,
        module: Module,
        symbol: str,
        kernel: func.FuncOp,
        options: Options,
        *,
        alone: bool,
        copies: Copies | None,
        paired: bool,
        together: int = 1,
        any_number: bool = False,
    ) -> _Program:
        """A function that runs a program, or so many ``together``; ``paired``: there is one of each; its thread may have
        ``copies`` of what it updates."""
        program = _program_function(module, symbol)
        slots, scratch, record, *grid, present = program.args
        name_arguments(kernel)
        bounds: dict[SSAValue, tuple[ir.Value, ir.Value]] = {}
        faults = Faults(record, bounds)
        facts = Facts(analyse(kernel), _bases(kernel))
        ids_and_sizes = Grid(grid[:3], grid[3:])
        emitter = Emitter(program, self.lowerings, options, facts, ids_and_sizes, faults, self.target, scratch)
        emitter.paired, emitter.present, emitter.most = paired, present, together if any_number else 1
        emitter.together = together
        arguments = load_arguments(kernel, emitter.entry, slots)
        if options.checked:
            bounds.update(load_bounds(kernel, emitter.entry, slots))
        if alone and copies is not None:
            emitter.alone = has_alone(emitter.entry, record, has_copies(emitter.entry, record, slots))
            found = beyond_copies(emitter.entry, copies, record, slots)
            emitter.beyond = {kernel.body.block.args[slot]: each for slot, each in found.items()}
        elif alone:
            emitter.alone = has_alone(emitter.entry, record)
        if (found := streamed(kernel, facts, options, self.target, together)) is not None:
            emitter.streams = dict.fromkeys(found.stores, does_stream(emitter.entry, found, ids_and_sizes))
        return _Program(program, emitter, emitter.emit_function(kernel, arguments), bool(emitter.streams))

    def finish(self, emitted: Emitted) -> CompiledKernel:
        """The relocatable object."""
        with self._simplified(emitted) as module:
            code = self._machine().emit_object(module)
        return CompiledKernel(
            code,
            emitted.symbol,
            emitted.scratch,
            emitted.sites,
            emitted.prints,
            emitted.sums,
            emitted.order,
            emitted.copies,
            emitted.measured,
        )

    def assembly(self, emitted: Emitted) -> str:
        """The CPU's assembly."""
        with self._simplified(emitted) as module:
            return self._machine().emit_assembly(module)

    @contextmanager
    def _simplified(self, emitted: Emitted) -> Generator[llvm.ModuleRef]:
        with parsed(str(emitted.module)) as module:
            simplify(module, self._machine(), loops=emitted.loops, products=emitted.products)
            yield module

    def _machine(self) -> Any:
        return target_machine(self.target)


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


@cache
def target_machine(target: CpuTarget) -> Any:
    """LLVM's machine for a target."""
    _initialise()
    reloc, code_model = target.addressing
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc=reloc, codemodel=code_model, jit=True
    )


def _ends_with_rows(program: _Program, kernel: func.FuncOp) -> bool:
    """Whether nothing goes through all registers of the long rows that a kernel stores to, most of which may not be there."""
    stores = [op for op in ops_in(kernel) if isinstance(op, tile.StoreOp)]
    return program.emitter.walked < max(shape_of(op.pointer)[-1] for op in stores)


def _orders_of_floats(program: _Program, root: Operation) -> list[set[SumOrder] | None]:
    """The orders in which each reduction of floats is combined, in the order of the kernel's text."""
    reductions = [op for op in ops_in(root) if isinstance(op, tile.ReduceOp)]
    return [program.emitter.orders.get(op) for op in reductions if any(dtype_of(each).is_float for each in op.sources)]


def _program_function(module: Module, symbol: str) -> ir.Function:
    """``i32 program(slots, scratch, record, ids and sizes of the grid, how many)``, which runs one program or several."""
    program = ir.Function(module, ir.FunctionType(I32, [POINTER, POINTER, POINTER, *[I32] * 7]), f"{symbol}.program")
    program.linkage = "internal"
    program.attributes.add("nounwind")
    program.attributes.add("alwaysinline")
    program.args[1].add_attribute("noalias")
    return program


def _bases(kernel: func.FuncOp) -> dict[SSAValue, BlockArgument | None]:
    """Which argument each access's pointer comes from."""
    return base_arguments(op.pointer for op in ops_in(kernel) if tile.is_access(op))
