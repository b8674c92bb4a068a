"""Functions of LLVM IR, compiled for this machine as they stand and called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir

_HELD: Final[list[llvm.ExecutionEngine]] = []
"""Engines whose code is never freed."""


def native_function(module: ir.Module, name: str, *arguments: Any) -> Callable[..., None]:
    """The function of that name, which returns nothing, with arguments of these types of ctypes. Its code stays."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine)
    engine.finalize_object()
    _HELD.append(engine)
    return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address(name))
