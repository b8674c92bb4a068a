"""Tile IR to an object: the passes in order, the LLVM module around the kernel's body, LLVM's own pipeline.

Everything that makes a kernel fast (vectors, fusion, unrolling) has been decided when LLVM sees it; what is left to it is to
promote stack slots, hoist, number values, select instructions and allocate registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from weft.codegen.cpu.buffers import element_of_value
from weft.codegen.cpu.emitter import Emitter
from weft.codegen.kernel import AccessSite, CompiledKernel, CompileOptions
from weft.codegen.llvm.types import I8, I32, I64, Module
from weft.ir import tile
from weft.ir.types import is_pointer
from weft.target import CpuTarget
from weft.transforms.axis import analyse, base_argument
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.induction import UniformCarry
from weft.transforms.invariant_loads import MarkInvariantLoads
from weft.transforms.layouts import AssignLayouts
from weft.transforms.licm import Licm
from weft.transforms.simplify import Simplify
from weft.transforms.widen_dot import WidenDot

POINTER = ir.PointerType()


def pipeline(target: CpuTarget) -> tuple[ModulePass, ...]:
    """The passes from the frontend's tile IR to laid-out tile IR for a CPU."""
    return (
        Simplify(),
        Cse(),
        UniformCarry(),
        Simplify(),
        Licm(),
        WidenDot(),
        Cse(),
        Dce(),
        AssignLayouts(target.lanes),
        Cse(),
        Dce(),
    )


def lay_out(module: ModuleOp, target: CpuTarget) -> None:
    """Runs the pipeline on a module, in place."""
    context = Context()
    for one in pipeline(target):
        one.apply(context, module)


def compile_module(module: ModuleOp, target: CpuTarget, options: CompileOptions) -> CompiledKernel:
    """Compiles a module of one kernel (which is changed in place) for a CPU."""
    emitted, symbol, scratch, sites = _emit(module, target, options)
    machine = target_machine(target)
    parsed = llvm.parse_assembly(str(emitted))
    optimise(parsed, machine)
    return CompiledKernel(machine.emit_object(parsed), symbol, scratch, tuple(sites))


def emit_llvm(module: ModuleOp, target: CpuTarget, options: CompileOptions) -> str:
    """The LLVM IR of a module before LLVM's passes; the module is changed in place."""
    return str(_emit(module, target, options)[0])


def emit_assembly(module: ModuleOp, target: CpuTarget, options: CompileOptions) -> str:
    """The target's assembly of a module; the module is changed in place."""
    machine = target_machine(target)
    parsed = llvm.parse_assembly(emit_llvm(module, target, options))
    optimise(parsed, machine)
    return machine.emit_assembly(parsed)


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def target_machine(target: CpuTarget) -> Any:
    """LLVM's machine for a target."""
    _initialise()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="default", jit=True
    )


def optimise(module: Any, machine: Any) -> None:
    """LLVM's default pipeline for -O2, without its vectorizers: there is nothing left for them to find."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _emit(module: ModuleOp, target: CpuTarget, options: CompileOptions) -> tuple[Module, str, int, list[AccessSite]]:
    lay_out(module, target)
    if options.disjoint and not options.checked:
        MarkInvariantLoads().apply(Context(), module)
    kernel = _only_function(module)
    symbol = kernel.sym_name.data
    out = Module(symbol, target.triple, frozenset(f[1:] for f in target.features.split(",") if f.startswith("+")))
    program_type = ir.FunctionType(I32, [POINTER, POINTER, POINTER, *[I32] * 6])
    program = ir.Function(out, program_type, f"{symbol}.program")
    program.linkage = "internal"
    program.attributes.add("nounwind")
    program.attributes.add("alwaysinline")
    program.args[1].add_attribute("noalias")
    emitter = Emitter(program, target, options, analyse(kernel), _bases(kernel))
    arguments = _load_arguments(kernel, emitter, program.args[0], options)
    ids = ("program_id0", "program_id1", "program_id2", "num_programs0", "num_programs1", "num_programs2")
    grid: dict[str, ir.Value] = dict(zip(ids, program.args[3:], strict=True))
    emitter.fault_record = program.args[2]
    scratch = emitter.emit_function(kernel, arguments, grid, program.args[1])
    _emit_entry(out, symbol, program)
    return out, symbol, scratch, emitter.sites


def _only_function(module: ModuleOp) -> func.FuncOp:
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    if len(functions) != 1:
        raise ValueError(f"compile_module takes a module of one kernel, found {len(functions)} functions")
    return functions[0]


def _bases(kernel: func.FuncOp) -> Mapping[SSAValue, BlockArgument | None]:
    """Which argument each access's pointer comes from."""
    return {
        op.pointer: base_argument(op.pointer)
        for op in kernel.walk()
        if isinstance(op, tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp)
    }


def _load_arguments(kernel: func.FuncOp, emitter: Emitter, slots: ir.Value, options: CompileOptions) -> list[ir.Value]:
    """The kernel's arguments out of their 8-byte slots, and in a checked kernel the bounds behind them."""
    builder = emitter.entry
    block = kernel.body.block

    def slot(i: int, type_: ir.Type) -> ir.Value:
        address = builder.gep(slots, [ir.Constant(I64, 8 * i)], source_etype=I8)
        return builder.load(address, typ=type_, align=8)

    values: list[ir.Value] = []
    for i, argument in enumerate(block.args):
        name = _parameter_name(kernel, i)
        if name is not None:
            argument.name_hint = name
        element = element_of_value(argument)
        stored = slot(i, element.storage_type(None))
        values.append(element.from_storage(builder, stored))
    if options.checked:
        pointers = [argument for argument in block.args if is_pointer(argument)]
        for j, argument in enumerate(pointers):
            at = len(block.args) + 2 * j
            emitter.bounds[argument] = (slot(at, I64), slot(at + 1, I64))
    return values


def _parameter_name(kernel: func.FuncOp, i: int) -> str | None:
    if kernel.arg_attrs is None:
        return None
    attributes = kernel.arg_attrs.data[i]
    name = attributes.data.get("tile.name")
    return name.data if isinstance(name, StringAttr) else None


def _emit_entry(module: Module, symbol: str, program: ir.Function) -> None:
    """The function the runtime calls: claims programs from the shared counter and runs them."""
    entry = ir.Function(
        module, ir.FunctionType(I32, [POINTER, POINTER, POINTER, I64, I64, I32, I32, I32, POINTER]), symbol
    )
    entry.attributes.add("nounwind")
    args, scratch, counter, total, chunk, nx, ny, nz, fault = entry.args
    start, claim, run, step, failed, done = (
        entry.append_basic_block(name) for name in ("start", "claim", "run", "step", "failed", "done")
    )
    builder = ir.IRBuilder(start)
    wide_x, wide_y = builder.zext(nx, I64), builder.zext(ny, I64)
    builder.branch(claim)
    builder.position_at_end(claim)
    first = builder.atomic_rmw("add", counter, chunk, "monotonic")
    end = builder.add(first, chunk)
    last = builder.select(builder.icmp_signed("<", end, total), end, total)
    builder.cbranch(builder.icmp_signed("<", first, total), run, done)
    builder.position_at_end(run)
    position = builder.phi(I64)
    position.add_incoming(first, claim)
    x = builder.urem(position, wide_x)
    rest = builder.udiv(position, wide_x)
    y, z = builder.urem(rest, wide_y), builder.udiv(rest, wide_y)
    ids = [builder.trunc(v, I32) for v in (x, y, z)]
    status = builder.call(program, [args, scratch, fault, *ids, nx, ny, nz])
    builder.cbranch(builder.icmp_unsigned("==", status, ir.Constant(I32, 0)), step, failed)
    builder.position_at_end(step)
    following = builder.add(position, ir.Constant(I64, 1))
    position.add_incoming(following, step)
    builder.cbranch(builder.icmp_signed("<", following, last), run, claim)
    builder.position_at_end(failed)
    builder.ret(ir.Constant(I32, 1))
    builder.position_at_end(done)
    builder.ret(ir.Constant(I32, 0))
