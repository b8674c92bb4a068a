"""Kernel and signature to an `Artifact`: from disk, or through frontend and codegen.

The runtime does not need the compiler (xDSL and our packages over it) for a kernel that is on disk, so it is imported in
functions here and nowhere else in the runtime; `weft.jit` has usually loaded it by then.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import platform
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache as cache_of_results
from typing import TYPE_CHECKING, Any, Final

from weft import dtypes, semantics
from weft import target as targets
from weft.dtypes import DType
from weft.frontend.signature import Argument, ConstantArgument, PointerArgument, TupleParts
from weft.frontend.source import KernelFunction
from weft.options import Options
from weft.runtime import cache
from weft.runtime.artifacts import Artifact, GpuArtifact
from weft.runtime.errors import Site
from weft.runtime.resources import check_threads, out_of_shared
from weft.runtime.stages import Stages, begun
from weft.target import GpuTarget, Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.codegen import AccessSite
    from weft.semantics import Semantics


def artifact_for(kernel: KernelFunction, signature: Mapping[str, Argument], options: Options) -> Artifact:
    """The kernel compiled for the signature, on this machine."""
    key = disk_key(kernel, signature, options)
    if key is not None and (found := cache.load(key)) is not None:
        return found
    stages = begun(kernel)
    artifact = build(kernel, signature, options, stages)
    if key is not None:
        from weft.runtime import direct, shares, spinning  # here, for they need this module

        with stages.part("store"):
            cache.store(key, artifact)
            shares.claims()
            spinning.prepare()
            direct.prepare()
    return artifact


def gpu_artifact_for(
    kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, target: GpuTarget
) -> GpuArtifact:
    """The kernel compiled for the signature, to PTX. Raises: `OutOfResources` where no card of the target can run a block of it,
    `CompilationError`."""
    check_threads(kernel.name, target, options)
    key = disk_key(kernel, signature, options, target)
    if key is not None and (found := cache.load_gpu(key)) is not None:
        return found
    stages = begun(kernel)
    artifact = build_gpu(kernel, signature, options, target, stages)
    if artifact.shared > target.model.scratch:
        module = laid_out(kernel, signature, options, target)
        raise out_of_shared(kernel.name, target, artifact.shared, module)
    if key is not None:
        with stages.part("store"):
            cache.store(key, artifact)
    return artifact


def disk_key(
    kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, gpu: GpuTarget | None = None
) -> str | None:
    """The name of the kernel's entry on disk, for a GPU or this machine's CPU; None where it has none: nothing is kept of checked
    kernels, whose code holds line numbers, nor where a constant is of a kind that has no lasting spelling, nor under a
    semantics of the user's own, nor with the cache turned off. (The dependencies name the semantics.) PTX names the kernel's
    lines, and so do assertions: their key says where the functions stand."""
    if options.checked or cache.directory() is None or not all(map(_is_known, kernel.semantics_used())):
        return None
    import weft

    spelled = {name: _spelling(argument) for name, argument in signature.items()}
    if None in spelled.values():
        return None
    asserts = kernel.asserts if options.asserts is None else options.asserts
    return cache.key_of(
        kernel.dependencies(),
        repr(spelled),
        repr(options),
        machine_key() if gpu is None else repr(gpu),
        "" if gpu is None and not asserts else str(kernel.places()),
        llvm_key(),
        weft.__version__,
        cache.fingerprint(),
    )


@cache_of_results
def llvm_key() -> str:
    """A text that differs between versions of LLVM: where llvmlite's library is, its size and time of change. Importing llvmlite,
    which knows the version, takes as long as all of weft."""
    spec = importlib.util.find_spec("llvmlite")
    for folder in (spec and spec.submodule_search_locations) or ():
        with contextlib.suppress(OSError), os.scandir(os.path.join(folder, "binding")) as entries:
            found = [(e.path, e.stat().st_size, e.stat().st_mtime_ns) for e in entries if "llvmlite." in e.name]
            if found:
                return repr(sorted(found))
    import llvmlite.binding as llvm

    return repr(llvm.llvm_version_info)


_CPU_ROWS: Final = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
"""What `weft.target.host` follows from on x86-64, as Linux says it of the first CPU."""


@cache_of_results
def machine_key() -> str:
    """A text that differs between machines that `weft.target.host` differs on. On Linux and x86-64 it is what LLVM decides by, so
    that a kernel that is on disk needs no LLVM."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
            first = file.read().partition("\n\n")[0]
            rows = {name.strip(): value.strip() for name, _, value in (r.partition(":") for r in first.splitlines())}
            if rows.keys() >= set(_CPU_ROWS):
                tiles = "amx_tile" in rows["flags"].split() and targets.tiles_permitted()
                return repr((*(rows[name] for name in _CPU_ROWS), tiles, targets.host_cache(), targets.chosen()))
    return repr(targets.host())


def _is_known(system: Semantics) -> bool:
    """Whether a name stands for the semantics, in every process."""
    return system.name in semantics.SYSTEMS and semantics.get(system.name) is system


def _spelling(argument: Argument) -> str | None:
    if not isinstance(argument, ConstantArgument):
        return repr(argument)
    return _constant_spelling(argument.value)


def _constant_spelling(value: Any) -> str | None:
    match value:
        case None | bool() | int() | str():
            return f"{type(value).__name__} {value!r}"
        case float():
            return f"float {value.hex()}"
        case DType():
            return f"dtype {value.name}"
        case KernelFunction():
            return f"kernel {cache.key_of(value.dependencies())}"
        case TupleParts():
            return f"tuple of {value.count}, {value.kind and (value.kind.__module__, value.kind.__qualname__)}"
        case tuple():
            items = [_constant_spelling(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            return None if None in items else f"tuple {items!r}"
        case _:
            return None


def tile_ir(kernel: KernelFunction, signature: Mapping[str, Argument], options: Options) -> ModuleOp:
    """The frontend's module for the kernel."""
    from weft.frontend import build_module

    return build_module(kernel, signature, options=options)


def build(
    kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, stages: Stages | None = None
) -> Artifact:
    """Compiles, without looking at the disk."""
    stages = stages or Stages(kernel)
    with _garbage_kept():
        from weft.codegen import compile_module

        with stages.part("ttir"):
            module = tile_ir(kernel, signature, options)
        with stages.part("obj"):
            written = written_parameters(module, signature)
            compiled = compile_module(module, targets.host(), options)
    sites = tuple(_site(site) for site in compiled.sites)
    return Artifact(
        compiled.object,
        compiled.symbol,
        compiled.scratch,
        written,
        sites,
        compiled.prints,
        compiled.sums,
        compiled.order,
        compiled.copies,
        compiled.measured,
    )


@contextmanager
def _garbage_kept() -> Generator[None]:
    """Pauses Python's search for cyclic garbage. A compilation makes many objects and drops few before its end; the search
    would take a tenth to a fifth of its time. A collector that the program has turned off stays off."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def build_gpu(
    kernel: KernelFunction,
    signature: Mapping[str, Argument],
    options: Options,
    target: GpuTarget,
    stages: Stages | None = None,
) -> GpuArtifact:
    """Compiles to PTX, without looking at the disk or at the limits of the target."""
    stages = stages or Stages(kernel)
    with _garbage_kept():
        from weft.codegen import compile_module

        with stages.part("ttir"):
            module = tile_ir(kernel, signature, options)
        with stages.part("ptx"):
            written = written_parameters(module, signature)
            code = compile_module(module, target, options)
    return GpuArtifact(code.ptx, code.symbol, code.threads, code.shared, written)


def written_parameters(module: ModuleOp, signature: Mapping[str, Argument]) -> tuple[str, ...]:
    """The array parameters that the kernel may write through: all of them, where a store's pointer cannot be traced
    to one."""
    from weft.ir import tile

    return _reached(module, signature, tile.LoadOp)


def read_parameters(module: ModuleOp, signature: Mapping[str, Argument]) -> tuple[str, ...]:
    """The array parameters that the kernel may read through: all of them, where a load's pointer cannot be traced to one."""
    from weft.ir import tile

    return _reached(module, signature, tile.StoreOp)


def _reached(module: ModuleOp, signature: Mapping[str, Argument], excepted: type[Any]) -> tuple[str, ...]:
    """The array parameters that accesses reach, except those of a class. Inline assembly may read where its pointers point, and
    with effects write there; a number of 64 bits may then be any address."""
    from weft.ir import tile
    from weft.ir.direct import ops_in
    from weft.ir.types import dtype_of, is_pointer
    from weft.transforms.axis import base_arguments

    arrays = tuple(name for name, argument in signature.items() if isinstance(argument, PointerArgument))
    runtime = [name for name, argument in signature.items() if not isinstance(argument, ConstantArgument)]
    pointers = [op.pointer for op in ops_in(module) if tile.is_access(op) and not isinstance(op, excepted)]
    for op in ops_in(module):
        if isinstance(op, tile.AssemblyOp) and (op.pure is None or excepted is tile.StoreOp):
            for source in op.sources:
                if is_pointer(source):
                    pointers.append(source)
                elif op.pure is None and dtype_of(source) in (dtypes.int64, dtypes.uint64):
                    return arrays
    bases = base_arguments(pointers)
    reached: set[str] = set()
    for pointer in pointers:
        base = bases[pointer]
        if base is None:
            return arrays
        reached.add(runtime[base.index])
    return tuple(name for name in arrays if name in reached)


def _site(site: AccessSite) -> Site:
    return Site(site.operation, site.argument, site.itemsize, site.positions)


def laid_out(kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, target: Target) -> ModuleOp:
    """The kernel's tile IR after the passes for a target."""
    from weft.codegen import lay_out

    module = tile_ir(kernel, signature, options)
    lay_out(module, target, options)
    return module


def llvm_ir(kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, target: Target) -> str:
    """The LLVM IR that codegen emits for the kernel, before LLVM's passes."""
    from weft.codegen import emit_llvm

    return emit_llvm(tile_ir(kernel, signature, options), target, options)


def assembly(kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, target: Target) -> str:
    """The target's assembly of the kernel."""
    from weft.codegen import emit_assembly

    return emit_assembly(tile_ir(kernel, signature, options), target, options)
