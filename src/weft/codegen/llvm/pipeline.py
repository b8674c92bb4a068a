"""LLVM's own passes over a module, in memory that is freed afterwards.

A process may compile many thousand kernels, so a compilation must leave nothing behind. Two defaults of llvmlite do:

- Its pass managers are never freed: they inherit the empty ``_dispose`` of ``ObjectRef`` before their own. After a run of the
  default pipeline that is some 190 KiB.
- Modules share one context, which keeps constants, types and metadata for the life of the process.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final

import llvmlite.binding as llvm


@contextmanager
def parsed(text: str) -> Generator[llvm.ModuleRef]:
    """The module of a text of LLVM IR, in a context of its own. Both are freed at the end."""
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        yield module


_UNROLLED: Final = ("loop_unroll", "instruction_combine", "simplify_cfg")
"""Passes that unroll loops, and tidy up after it."""

_OF_PRODUCTS: Final = ("sroa", "sccp", "loop_unroll", "sinking", "simplify_cfg")
"""Passes over a kernel that multiplies panels. Its time goes to loops over their depth, which are emitted as they are to be:
LLVM's function pipeline takes ten times as long and finds little in them. Loops that pack lack what it does: products of 33
rows, which pack for one use, take 1.03 to 1.06 of the time. Kernels without products lack more: copies with a stride known at run
time took 1.17 of the time, histograms by atomics 1.2. LLVM's `new_gvn` in the place of ``sinking`` was no faster, and LLVM's own
pipelines do not use it. `instruction_combine` would take 8 ms of
a product's 117, more than these together: products run as fast without it, and attention in 0.91 to 1.01 of the time, since a
maximum would get one comparison more (`weft.codegen.llvm.arith`)."""


def simplify(module: llvm.ModuleRef, machine: llvm.TargetMachine, *, loops: bool, products: bool = False) -> None:
    """Inlines what must be inlined, and simplifies each function once. ``loops``: also unrolls loops that are not marked
    (`weft.codegen.llvm.types.Module.unrolled`). ``products``: the kernel multiplies panels.

    This takes half of the time of LLVM's pipeline for modules, which simplifies each function again after passes over the
    whole module. A kernel's module is one function and its caller.
    """
    with llvm.create_pass_builder(machine, _options(unroll=loops)) as builder:
        whole = llvm.create_new_module_pass_manager()
        whole.add_always_inliner_pass()
        whole.add_global_dead_code_eliminate_pass()
        _run(whole, [module], builder)
        functions = [function for function in module.functions if not function.is_declaration]
        if products:
            _run(_passes(_OF_PRODUCTS), functions, builder)
            return
        _run(builder.getFunctionPassManager(), functions, builder)
        if loops:
            _run(_passes(_UNROLLED), functions, builder)


def _passes(names: Iterable[str]) -> llvm.FunctionPassManager:
    manager = llvm.create_new_function_pass_manager()
    for name in names:
        getattr(manager, f"add_{name}_pass")()
    return manager


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """LLVM's default pipeline for -O2, without unrolling."""
    with llvm.create_pass_builder(machine, _options(unroll=False)) as builder:
        _run(builder.getModulePassManager(), [module], builder)


def _options(*, unroll: bool) -> llvm.PipelineTuningOptions:
    """Options for -O2 without the vectorizers: there is nothing left for them to find."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = unroll
    return options


def _run(manager: Any, parts: Iterable[Any], builder: llvm.PassBuilder) -> None:
    """Runs a pass manager over modules or functions, and frees it."""
    try:
        for part in parts:
            manager.run(part, builder)
    finally:
        free(manager)


def free(manager: llvm.ModulePassManager | llvm.FunctionPassManager) -> None:
    """Frees a pass manager once, whether or not llvmlite would."""
    llvm.NewPassManager._dispose(manager)
    manager.detach()
