"""LLVM's own passes over a module, in memory that is freed afterwards.

A process may compile many thousand kernels, so a compilation must leave nothing behind. Two defaults of llvmlite do:

- Its pass managers are never freed: `ModulePassManager` inherits the empty ``_dispose`` of ``ObjectRef`` before its own. After a
  run of the default pipeline that is some 190 KiB.
- Modules share one context, which keeps constants, types and metadata for the life of the process.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import llvmlite.binding as llvm


@contextmanager
def parsed(text: str) -> Generator[llvm.ModuleRef]:
    """The module of a text of LLVM IR, in a context of its own. Both are freed at the end."""
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        yield module


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, *, unroll: bool) -> None:
    """LLVM's default pipeline for -O2, without its vectorizers: there is nothing left for them to find."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = unroll
    with llvm.create_pass_builder(machine, options) as builder:
        manager = builder.getModulePassManager()
        try:
            manager.run(module, builder)
        finally:
            free(manager)


def free(manager: llvm.ModulePassManager) -> None:
    """Frees a module pass manager once, whether or not llvmlite would."""
    llvm.NewPassManager._dispose(manager)
    manager.detach()
