"""Transcendental functions on one core: weft's inlined polynomials, glibc's libmvec and NumPy, in nanoseconds per element.

Run ``python benchmarks/vecmath.py``. Each function maps an array that fits the first cache, 16 lanes at a time; the
fastest of many runs counts. libmvec is measured where the machine has it (Linux with AVX-512: 16 float32 or 8 float64 a call).
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from weft.codegen.llvm import vecmath
from weft.codegen.llvm.types import F32, F64, I64, Module, declare

Array = NDArray[Any]
LANES = 16
SIZE = 4096
KINDS = {
    "exp": (-80.0, 80.0),
    "exp2": (-80.0, 80.0),
    "log": (0.1, 100.0),
    "log2": (0.1, 100.0),
    "sin": (-100.0, 100.0),
    "cos": (-100.0, 100.0),
    "tanh": (-3.0, 3.0),
    "erf": (-3.0, 3.0),
}
Emit = Callable[[ir.IRBuilder, ir.Value], ir.Value]


def libmvec(kind: str) -> Emit:
    """Calls of libmvec's AVX-512 function."""

    def emit(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        assert isinstance(x.type, ir.VectorType)
        if x.type.element == F32:
            return builder.call(declare(builder.module, f"_ZGVeN16v_{kind}f", x.type, [x.type]), [x])
        half = ir.VectorType(F64, 8)
        function = declare(builder.module, f"_ZGVeN8v_{kind}", half, [half])
        low, high = (ir.Constant(ir.VectorType(ir.IntType(32), 8), list(range(i, i + 8))) for i in (0, 8))
        parts = [builder.call(function, [builder.shuffle_vector(x, x, mask)]) for mask in (low, high)]
        return builder.shuffle_vector(*parts, ir.Constant(ir.VectorType(ir.IntType(32), 16), list(range(16))))

    return emit


def compiled(emit: Emit, element: ir.Type) -> tuple[llvm.ExecutionEngine, Callable[[int, int], None]]:
    """``out[i] = emit(x[i])`` over `SIZE` elements, and the engine that keeps the code alive."""
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    module = Module("benchmark", triple, frozenset(name for name, present in features.items() if present))
    pointer = ir.PointerType()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), "f")
    entry, loop, done = (function.append_basic_block() for _ in range(3))
    ir.IRBuilder(entry).branch(loop)
    builder = ir.IRBuilder(loop)
    index = builder.phi(I64)
    index.add_incoming(I64(0), entry)
    out, source = (builder.gep(p, [index], source_etype=element) for p in function.args)
    align = 64
    builder.store(emit(builder, builder.load(source, typ=ir.VectorType(element, LANES), align=align)), out, align=align)
    following = builder.add(index, I64(LANES))
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, I64(SIZE)), loop, done)
    ir.IRBuilder(done).ret_void()
    parsed = llvm.parse_assembly(str(module))

    def machine() -> llvm.TargetMachine:
        return llvm.Target.from_triple(triple).create_target_machine(llvm.get_host_cpu_name(), features.flatten(), 3)

    passes = llvm.create_pass_builder(machine(), llvm.create_pipeline_tuning_options(3))
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, machine())
    engine.finalize_object()
    return engine, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("f"))


def nanoseconds(run: Callable[[], object]) -> float:
    """The fastest of many runs, per element."""
    best = float("inf")
    for _ in range(30):
        start = time.perf_counter_ns()
        for _ in range(20):
            run()
        best = min(best, (time.perf_counter_ns() - start) / 20)
    return best / SIZE


def aligned(dtype: type[np.floating[Any]]) -> Array:
    """`SIZE` elements on a 64-byte boundary."""
    raw = np.empty(SIZE * dtype().itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + SIZE * dtype().itemsize].view(dtype)


def load_libmvec(features: llvm.FeatureMap) -> bool:
    """Whether libmvec is here and its AVX-512 functions can run."""
    if not features.get("avx512f"):
        return False
    try:
        ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    llvm.load_library_permanently("libmvec.so.1")
    return True


def main() -> None:
    """Prints the table."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    has_libmvec = load_libmvec(llvm.get_host_cpu_features())
    print(f"{'ns/element':14} {'weft':>8} {'libmvec':>8} {'NumPy':>8}")
    for element, dtype in ((F32, np.float32), (F64, np.float64)):
        for kind, (low, high) in KINDS.items():
            x, out = aligned(dtype), aligned(dtype)
            x[:] = np.random.default_rng(0).uniform(low, high, SIZE)
            cells: list[str] = []
            for emit in (vecmath.UNARY[kind], libmvec(kind) if has_libmvec else None):
                if emit is None:
                    cells.append("-")
                    continue
                engine, run = compiled(emit, element)
                cells.append(f"{nanoseconds(functools.partial(run, out.ctypes.data, x.ctypes.data)):.3f}")
                engine.close()
            ufunc = getattr(np, kind, None)
            cells.append(f"{nanoseconds(functools.partial(ufunc, x, out)):.3f}" if ufunc else "-")
            print(f"{kind:5} {dtype.__name__:8}", *(f"{cell:>8}" for cell in cells))


if __name__ == "__main__":
    main()
