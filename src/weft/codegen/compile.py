"""Tile IR to what the runtime loads: picks the target's machine and takes the kernel through it."""

from __future__ import annotations

from functools import cache
from typing import overload

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from weft.codegen.kernel import CompiledKernel, GpuKernel
from weft.codegen.machine import Emitted, Machine
from weft.options import Options
from weft.target import CpuTarget, GpuTarget, Target
from weft.transforms.join_programs import JOINED


@cache
def machine_for(target: Target) -> Machine:
    """The machine that compiles for a target."""
    if isinstance(target, CpuTarget):
        from weft.codegen.cpu.machine import CpuMachine  # not at import: neither machine waits for the other

        return CpuMachine(target)
    from weft.codegen.nvidia.machine import GpuMachine

    return GpuMachine(target)


def lay_out(module: ModuleOp, target: Target, options: Options | None = None) -> None:
    """Runs the machine's passes on a module, in place."""
    context = Context()
    for one in machine_for(target).passes(options or Options()):
        one.apply(context, module)


@overload
def compile_module(module: ModuleOp, target: CpuTarget, options: Options) -> CompiledKernel: ...


@overload
def compile_module(module: ModuleOp, target: GpuTarget, options: Options) -> GpuKernel: ...


def compile_module(module: ModuleOp, target: Target, options: Options) -> CompiledKernel | GpuKernel:
    """Compiles a module of one kernel, which is changed in place."""
    return machine_for(target).finish(_emit(module, target, options))


def emit_llvm(module: ModuleOp, target: Target, options: Options) -> str:
    """The LLVM IR of a module before LLVM's passes; the module is changed in place."""
    return str(_emit(module, target, options).module)


def emit_assembly(module: ModuleOp, target: Target, options: Options) -> str:
    """The target's assembly of a module; the module is changed in place."""
    return machine_for(target).assembly(_emit(module, target, options))


def _emit(module: ModuleOp, target: Target, options: Options) -> Emitted:
    lay_out(module, target, options)
    return machine_for(target).emit(_only_function(module), options)


def _only_function(module: ModuleOp) -> func.FuncOp:
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and JOINED not in op.attributes]
    if len(functions) != 1:
        raise ValueError(f"compile_module takes a module of one kernel, found {len(functions)} functions")
    return functions[0]
