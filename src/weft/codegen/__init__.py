"""Laid-out tile IR to native code: `compile_module` is the whole of it from outside."""

from weft.codegen.compile import compile_module, emit_assembly, emit_llvm, lay_out
from weft.codegen.kernel import AccessSite, CompiledKernel, CompileOptions

__all__ = ["AccessSite", "CompileOptions", "CompiledKernel", "compile_module", "emit_assembly", "emit_llvm", "lay_out"]
