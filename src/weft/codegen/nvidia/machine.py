"""An NVIDIA GPU as a machine: its passes, the kernel function around the emitted ops, LLVM's pipeline, PTX.

One block runs one program. The kernel's parameters are the run-time arguments in order, each of its own type: addresses of 64
bits, integers, floats, and for a bool a byte. Ids and sizes of the grid are the hardware's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from xdsl.dialects import func
from xdsl.passes import ModulePass

from weft.codegen.emit.context import Facts, Grid
from weft.codegen.emit.element import element_of_value
from weft.codegen.kernel import GpuKernel
from weft.codegen.llvm.pipeline import optimise, parsed
from weft.codegen.llvm.types import I8, I32, Module, intrinsic
from weft.codegen.machine import Emitted
from weft.codegen.nvidia.debug import Lines
from weft.codegen.nvidia.instructions import SHARED
from weft.codegen.nvidia.lowering import LOWERINGS
from weft.codegen.nvidia.order import order
from weft.codegen.nvidia.threads import LANE_BITS, Threads
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.layout.planning.accesses import ALIGNMENT
from weft.options import Options
from weft.target import GpuTarget
from weft.transforms import PIPELINE
from weft.transforms.axis import analyse, base_argument
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.layouts import AssignLayouts
from weft.transforms.layouts.threads import ThreadRules
from weft.transforms.licm import Licm
from weft.transforms.nvidia.barriers import PlaceBarriers
from weft.transforms.nvidia.buffers import LayOutBuffers
from weft.transforms.nvidia.invariants import MOST, ShareInvariants
from weft.transforms.nvidia.late import ReadLate
from weft.transforms.nvidia.operands import MatchOperands
from weft.transforms.nvidia.pipeline import PipelineLoads
from weft.transforms.nvidia.scratch import AllocateScratch, shared_of
from weft.transforms.nvidia.strips import CutStrips
from weft.transforms.simplify import Simplify

TRIPLE: Final = "nvptx64-nvidia-cuda"


@dataclass(frozen=True)
class GpuMachine:
    """Compiles kernels for an NVIDIA GPU; see `weft.codegen.machine.Machine`."""

    target: GpuTarget

    lowerings = LOWERINGS

    def passes(self, options: Options) -> tuple[ModulePass, ...]:
        """The passes to laid-out tile IR with scratch and barriers. `ValueError` for options that ask for clusters."""
        if options.blocks > 1:
            raise ValueError(f"num_ctas is {options.blocks}, but weft has no code for clusters of blocks; leave it out")
        return (
            *PIPELINE,
            MatchOperands(self.target.name),
            CutStrips(options.warps, options.disjoint, options.most_registers or MOST),
            PipelineLoads(self.target.name, options.stages, options.disjoint),
            ShareInvariants(self.target.name, options.warps, options.most_registers or MOST),
            Simplify(),
            Cse(),
            Licm(),
            Dce(),
            AssignLayouts(ThreadRules(self.target, options.warps), solve=True),
            Cse(),
            Dce(),
            ReadLate(),
            LayOutBuffers(self.target.name),
            AllocateScratch(self.target.name),
            PlaceBarriers(self.target.name, options.disjoint),
        )

    def emit(self, kernel: func.FuncOp, options: Options) -> Emitted:
        """The module of the kernel function."""
        symbol = kernel.sym_name.data
        features = {"contract": options.fusion is not False, "f8": self.target.has("mma.f8")}
        module = Module(symbol, TRIPLE, frozenset(name for name, has in features.items() if has))
        arguments = kernel.body.block.args
        types = [element_of_value(a).storage_type(None) for a in arguments]
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), symbol)
        function.calling_convention = "ptx_kernel"
        warps = options.warps
        limits = {"reqntidx": warps << LANE_BITS, "maxnreg": options.most_registers}
        for name, limit in limits.items():
            if limit is not None:
                entry = module.add_metadata([function, name, ir.Constant(I32, limit)])
                module.add_named_metadata("nvvm.annotations", entry)
        shared = _shared_memory(module)
        facts = Facts(
            analyse(kernel), {a.pointer: base_argument(a.pointer) for a in ops_in(kernel) if tile.is_access(a)}
        )
        grid = Grid([], [])
        threads = Threads(function, self.lowerings, options, facts, grid, self.target, warps, shared)
        threads.grid = Grid(*(_registers(threads.entry, name) for name in ("ctaid", "nctaid")))
        for argument, value in zip(arguments, function.args, strict=True):
            threads.scalars[argument] = element_of_value(argument).from_storage(threads.entry, value)
        threads.lines = Lines(module, function, kernel)
        threads.entry.debug_metadata = threads.lines.of(kernel)
        threads.block(kernel.body.block)
        threads.builder.ret_void()
        threads.entry.branch(threads.start)
        order(function)
        return Emitted(module, symbol, shared_of(kernel), (), warps << LANE_BITS)

    def finish(self, emitted: Emitted) -> GpuKernel:
        """The PTX with what a launch has to know."""
        return GpuKernel(self.assembly(emitted), emitted.symbol, emitted.threads, emitted.scratch)

    def assembly(self, emitted: Emitted) -> str:
        """The PTX."""
        machine = target_machine(self.target)
        with parsed(f'target datalayout = "{machine.target_data}"\n{emitted.module}') as module:
            optimise(module, machine)
            return machine.emit_assembly(module)


def _shared_memory(module: ir.Module) -> ir.Value:
    """The block's dynamic shared memory: a launch says how much, also beyond the 48 KiB that static memory is limited to.

    It is external. LLVM takes an internal variable whose address does not escape to be out of reach of inline assembly, and moves
    loads of it across barriers.
    """
    memory = ir.GlobalVariable(module, ir.ArrayType(I8, 0), "scratch", addrspace=SHARED)
    memory.linkage = "external"
    memory.align = ALIGNMENT
    return ir.FormattedConstant(ir.PointerType(addrspace=SHARED), memory.get_reference())


def _registers(builder: ir.IRBuilder, name: str) -> list[ir.Value]:
    return [intrinsic(builder, f"nvvm.read.ptx.sreg.{name}.{axis}", [], I32, []) for axis in "xyz"]


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("", "--nvptx-short-ptr")  # addresses in shared memory have 32 bits


@cache
def target_machine(target: GpuTarget) -> Any:
    """LLVM's machine for a target."""
    _initialise()
    version = (8, 4) if target.has("mma.f8") else (8, 0)  # of PTX: what the instructions that are emitted ask for
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=target.name, features=f"+ptx{version[0]}{version[1]}", opt=3
    )
