"""What the objects of each system ask of its libraries: to move memory, and nothing else. Objects are made here, not linked."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any, Final

import pytest
from llvmlite import ir

import weft.language as tl
from objects import undefined
from sampling import grid
from weft import dtypes
from weft.codegen import compile_module
from weft.codegen.cpu.exclusive import LOCK
from weft.codegen.cpu.machine import CpuMachine
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import POINTER, Module, llvm_type
from weft.codegen.machine import Emitted
from weft.dtypes import DType
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir.tile import BINARY, FLOAT, UNARY, class_of
from weft.options import Options
from weft.target import X86_LEVELS, CpuTarget, object_triple, vector_bits

jit = KernelFunction

MEMORY: Final = {
    "linux": frozenset({"memcpy", "memmove", "memset"}),
    "apple": frozenset({"memcpy", "memmove", "memset", "bzero", "__bzero", "memset_pattern16"}),
    "windows": frozenset({"memcpy", "memmove", "memset", "__chkstk"}),
}
"""libc; libSystem; ntdll.dll, which has all of them."""

LEVELS: Final = {
    f"linux {name}": (
        "x86_64-unknown-linux-gnu",
        name,
        ",".join(f"+{f}" for level in list(X86_LEVELS)[: place + 1] for f in X86_LEVELS[level].split()),
    )
    for place, name in enumerate(X86_LEVELS)
}
MACHINES: Final = LEVELS | {
    "linux aarch64": ("aarch64-unknown-linux-gnu", "generic", ""),
    "apple x86-64": ("x86_64-apple-darwin24.0.0", "x86-64", "+sse2"),
    "apple haswell": ("x86_64-apple-darwin24.0.0", "haswell", "+avx2,+avx,+fma,+f16c"),
    "apple arm64": ("arm64-apple-darwin24.0.0", "apple-m1", ""),
    "windows x86-64": ("x86_64-pc-windows-msvc", "x86-64", "+sse2"),
    "windows haswell": ("x86_64-pc-windows-msvc", "haswell", "+avx2,+avx,+fma,+f16c"),
    "windows arm64": ("aarch64-pc-windows-msvc", "generic", ""),
}
"""The triple of the process, the CPU and its features."""


def target(machine: str) -> CpuTarget:
    """The target as `weft.target.host` makes it there."""
    triple, cpu, features = MACHINES[machine]
    return CpuTarget(object_triple(triple), cpu, features, vector_bits(features, triple))


KINDS: Final = [
    (class_, kind)
    for table in (UNARY, BINARY, {"fma": {FLOAT}})
    for kind, classes in table.items()
    for class_ in classes
]
"""Every elementwise function that tile IR has, of which all of the language are made, and the class of its operands."""


@pytest.mark.parametrize(
    ("dtype", "machine"),
    grid(
        3,
        [dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int16, dtypes.int64],
        [name for name in MACHINES if name.startswith("linux")],
    ),
    ids=str,
)
def test_no_elementwise_function_calls_a_library(machine: str, dtype: DType) -> None:
    """Neither on vectors nor on scalars. Division and remainder of integers by vectors, too. ``make test`` has each type on each
    third machine."""
    made = target(machine)
    kinds = [kind for class_, kind in KINDS if class_ == class_of(dtype)]
    assert len(kinds) > 10
    module = Module("functions", made.triple, made.enabled)
    for lanes in (16, None):
        type_ = llvm_type(dtype, lanes)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER] * 4), f"f{lanes}")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        for place, kind in enumerate(kinds):
            at = [ir.Constant(ir.IntType(64), 3 * place + i) for i in range(3)]
            x, y, z = (
                builder.load(builder.gep(function.args[0], [i], source_etype=type_), typ=type_, align=1) for i in at
            )
            if kind == "fma":
                result = arith.fma(builder, dtype, x, y, z)
            elif kind in UNARY:
                result = arith.unary(builder, kind, dtype, x)
            else:
                result = arith.binary(builder, kind, dtype, x, y)
            builder.store(result, builder.gep(function.args[1], [at[0]], source_etype=type_), align=1)
        builder.ret_void()
    emitted = Emitted(module, "f16", 0, (), loops=False)
    assert undefined(CpuMachine(made).finish(emitted).object) <= MEMORY["linux"] | {"_GLOBAL_OFFSET_TABLE_"}


@jit
def functions(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    """Each elementwise function that has no instruction."""
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=1.0).to(tl.float32)
    w = tl.exp(v) + tl.exp2(v) + tl.log(v) + tl.log2(v) + tl.sin(v) + tl.cos(v) + tl.erf(v)
    lib = tl.extra.libdevice
    w += lib.log10(v) + lib.log1p(v) + lib.tan(v) + lib.tanh(v) + lib.cbrt(v) + lib.pow(v, w) + lib.atan2(v, w)
    tl.store(out + i, (tl.floor(w) + tl.ceil(v) + w % v).to(out.dtype.element_ty))


@jit
def movement(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    """What copies and clears memory, converts, compares and shares."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    v = tl.load(x + at, mask=i[None, :] < n, other=0.0)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        acc = tl.dot(v, tl.trans(v), acc) + k
    tl.store(out + at, tl.sort(tl.cumsum(acc, axis=1)).to(out.dtype.element_ty))
    tl.atomic_add(out + tl.argmax(acc, axis=1), tl.sum(acc, axis=0).to(out.dtype.element_ty))


@pytest.mark.parametrize(
    ("machine", "kernel", "dtype"),
    grid(3, list(MACHINES), [functions, movement], [dtypes.float16, dtypes.float32, dtypes.float64]),
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_objects_ask_for_what_the_system_has(machine: str, kernel: KernelFunction, dtype: DType) -> None:
    """``make test`` has both kernels for each machine, each with one of the types."""
    pointer = PointerArgument(dtype, aligned=True)
    signature = {"x": pointer, "out": pointer, "n": ScalarArgument(dtypes.int32), "N": ConstantArgument(16)}
    found = undefined(compile_module(build_module(kernel, signature), target(machine), Options()).object)
    named = found - {LOCK, "_GLOBAL_OFFSET_TABLE_"}
    assert named <= MEMORY[machine.partition(" ")[0]]
