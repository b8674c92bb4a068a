"""Tile IR to native code or PTX: `compile_module` is the whole of it from outside; `machine_for` gives a target's `Machine`."""

from weft.codegen.compile import compile_module, emit_assembly, emit_llvm, lay_out, machine_for
from weft.codegen.kernel import AccessSite, CompiledKernel, GpuKernel
from weft.codegen.machine import Machine

__all__ = [
    "AccessSite",
    "CompiledKernel",
    "GpuKernel",
    "Machine",
    "compile_module",
    "emit_assembly",
    "emit_llvm",
    "lay_out",
    "machine_for",
]
