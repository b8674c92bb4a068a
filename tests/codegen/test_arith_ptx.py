"""Every elementwise kind and cast compiled to PTX: no call leaves the module, and the emulator computes the CPU's bits, or, of a
function that the GPU approximates, a number within its bound."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray

import accuracy
from weft import dtypes
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I32, I64, Module, declare, storage_type
from weft.dtypes import DType
from weft.emulator import Module as Emulated
from weft.ir.tile import BINARY, COMPARE, TIED_ZEROS, UNARY, class_of
from weft.target import APPROXIMATIONS

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

Array = NDArray[Any]
Emit = Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value]
TRIPLE = "nvptx64-nvidia-cuda"
FEATURES = frozenset({"fma", "f16c"})
"""That the target has fused multiply-add and converts float16."""
VECTORS = {dtypes.float32, dtypes.bfloat16, dtypes.uint8}
"""Types whose vectors are tested each time, not only nightly."""
RARE = {dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.bfloat16, dtypes.float8_e5m2}
"""Types that are tested nightly: another type of their kind is each time."""
SIZE = 256


@dataclass(frozen=True)
class Case:
    """A function of up to three operands of one type."""

    name: str
    emit: Emit
    result: DType


def cases(dtype: DType) -> Iterator[Case]:
    """Each kind that takes ``dtype``, and casts to every type."""
    for kind in (k for k, classes in UNARY.items() if class_of(dtype) in classes):
        yield Case(f"u_{kind}", lambda b, v, k=kind: arith.unary(b, k, dtype, v[0]), dtype)
    for kind in (k for k, classes in BINARY.items() if class_of(dtype) in classes):
        yield Case(f"b_{kind}", lambda b, v, k=kind: arith.binary(b, k, dtype, v[0], v[1]), dtype)
    for kind in COMPARE:
        yield Case(f"c_{kind}", lambda b, v, k=kind: arith.compare(b, k, dtype, v[0], v[1]), dtypes.bool_)
    for target in dtypes.ALL:
        yield Case(f"to_{target}", lambda b, v, t=target: arith.cast(b, v[0], dtype, t), target)
    if dtype.is_float:
        yield Case("fma", lambda b, v: arith.fma(b, dtype, *v), dtype)


def module_of(dtype: DType, lanes: int | None, triple: str, features: frozenset[str]) -> Module:
    """``void name(result *, dtype *, dtype *, dtype *)`` for each case, which applies it to the elements of one thread.

    On a CPU, which has no threads, their number is a fifth parameter.
    """
    module = Module("cases", triple, features)
    gpu = triple == TRIPLE
    pointer = ir.PointerType()
    for case in cases(dtype):
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * 4 + [I64] * (not gpu)), case.name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        if gpu:
            function.calling_convention = "ptx_kernel"
            thread = builder.call(declare(module, "llvm.nvvm.read.ptx.sreg.tid.x", I32, []), [])
            index: ir.Value = builder.zext(thread, I64)
        else:
            index = function.args[4]
        out, *sources = (
            builder.gep(base, [index], source_etype=storage_type(of, lanes))
            for base, of in zip(function.args[:4], (case.result, dtype, dtype, dtype), strict=True)
        )
        loaded = [builder.load(s, typ=storage_type(dtype, lanes), align=dtype.itemsize) for s in sources]
        result = case.emit(builder, [builder.trunc(x, arith.llvm_type(dtype, lanes)) for x in loaded])
        builder.store(builder.zext(result, storage_type(case.result, lanes)), out, align=case.result.itemsize)
        builder.ret_void()
    return module


@pytest.fixture(scope="module", autouse=True)
def all_targets(host: Compiler) -> None:
    """LLVM with all its backends; after ``host``, which needs the native one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def ptx_of(dtype: DType, lanes: int | None, target: str = "sm_90") -> str:
    """PTX of all cases of a type."""

    def machine() -> llvm.TargetMachine:
        return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=target, features="+ptx80", opt=3)

    parsed = llvm.parse_assembly(str(module_of(dtype, lanes, TRIPLE, FEATURES)))
    parsed.verify()
    passes = llvm.create_pass_builder(machine(), llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(parsed, passes)
    return machine().emit_assembly(parsed)


def operands_of(dtype: DType) -> list[Array]:
    """All pairs of edge values, then random bits, and of floats numbers of a common range; a third operand that turns about."""
    rng = np.random.default_rng(dtype.bits)
    if dtype.is_bool:
        return [rng.integers(0, 2, SIZE).astype(np.bool_) for _ in range(3)]
    if dtype.is_float:
        least = 2.0 ** (1 - dtype.bias - dtype.mantissa)
        edges = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.5,
            -3.0,
            least,
            np.nan if dtype.finite_only else -np.inf,
            np.nan,
            dtype.largest,
        ]
    else:
        edges = [dtype.min, dtype.max, 0, 1, 2, 3, 7, dtype.bits, dtype.bits - 1, dtype.max - 1]
        edges.append(1 << dtype.bits // 2)
    values = np.array(edges, np.float64 if dtype.is_float else object).astype(dtype.numpy)
    integer = f"u{dtype.itemsize}"

    def random(count: int) -> Array:
        bits = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(integer).view(dtype.numpy)
        if dtype.is_float:
            bits[::2] = (rng.normal(size=len(bits[::2])) * 4).astype(dtype.numpy)
        return bits

    pairs = len(values) ** 2
    return [
        np.concatenate([first, random(SIZE - pairs)])
        for first in (np.repeat(values, len(values)), np.tile(values, len(values)), np.resize(values[::-3], pairs))
    ]


def on_cpu(host: Compiler, dtype: DType, lanes: int | None, operands: Sequence[Array]) -> dict[str, Array]:
    """The results of all cases by native code."""
    engine = llvm.create_mcjit_compiler(
        host.compile(module_of(dtype, lanes, host.triple, host.features)), host.machine()
    )
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
    results: dict[str, Array] = {}
    addresses = [x.ctypes.data for x in operands]
    for case in cases(dtype):
        out = np.zeros(SIZE, case.result.numpy)
        call, result = signature(engine.get_function_address(case.name)), out.ctypes.data
        for thread in range(SIZE // (lanes or 1)):
            call(result, *addresses, thread)
        results[case.name] = out
    return results


@pytest.mark.parametrize(
    ("dtype", "lanes", "target"),
    [
        *(
            pytest.param(
                dtype, lanes, "sm_90", marks=[pytest.mark.nightly] * (dtype not in VECTORS if lanes else dtype in RARE)
            )
            for dtype in dtypes.ALL
            for lanes in (None, 4)
        ),
        (dtypes.bfloat16, 4, "sm_80"),  # which has fma on bfloat16, and no sums and products
    ],
    ids=str,
)
def test_ptx_computes_what_the_cpu_does(host: Compiler, dtype: DType, lanes: int | None, target: str) -> None:
    """Bit for bit, but for which NaN, which of two zeros is the least or largest (`TIED_ZEROS`), and `APPROXIMATIONS`: both have
    fused multiply-add and round each operation once."""
    if not Module("", host.triple, host.features).fma:
        pytest.skip("this CPU has no fused multiply-add, so that its bits differ from those of PTX")
    ptx = ptx_of(dtype, lanes, target)
    assert ".extern" not in ptx
    emulated = Emulated(ptx)
    operands = operands_of(dtype)
    want = on_cpu(host, dtype, lanes, operands)
    wrong: list[str] = []
    for case in cases(dtype):
        out = np.zeros(SIZE, case.result.numpy)
        emulated.launch(case.name, grid=1, block=SIZE // (lanes or 1), args=[out, *operands])
        kind = case.name[2:]
        if kind in APPROXIMATIONS and case.result.is_float and case.result.bits <= 32:
            same = ~accuracy.wrong(kind, dtype, operands[: 1 if case.name.startswith("u") else 2], out)
            wrong += [f"{case.name}: {[x[i] for x in operands]} {out[i]}" for i in np.flatnonzero(~same)[:1]]
            continue
        integer = f"u{case.result.itemsize}"
        same = out.view(integer) == want[case.name].view(integer)
        if case.result.is_float:
            same |= np.isnan(out) & np.isnan(want[case.name])
            if case.name.removeprefix("b_") in TIED_ZEROS:
                same |= (out == 0) & (want[case.name] == 0)
        wrong += [
            f"{case.name}: {[x[i] for x in operands]} {out[i]} {want[case.name][i]}" for i in np.flatnonzero(~same)[:1]
        ]
    assert not wrong, "\n".join(wrong)


def test_float_instructions_are_those_of_ieee_754() -> None:
    """Explicit rounding, without which ptxas may contract. No flushing of subnormals and no approximation but in the instructions
    of `APPROXIMATIONS`."""
    flushing = {f"{name}.approx.ftz.f32" for name in ("ex2", "sqrt", "rsqrt")}
    for dtype, suffix, approximations in (
        (dtypes.float32, "f32", {"ex2.approx.f32", "div.full.f32", *flushing}),
        (dtypes.float64, "f64", set[str]()),
    ):
        text = ptx_of(dtype, None)
        found = set(re.findall(rf"\b((?:add|sub|mul|div|r?sqrt|fma|rcp|ex2|lg2|sin|cos|mad)\.[\w.]*{suffix})\b", text))
        assert (
            found
            <= {f"{name}.rn.{suffix}" for name in ("add", "sub", "mul", "div", "sqrt", "fma", "rcp")} | approximations
        )
        assert {f"{name}.rn.{suffix}" for name in ("add", "div", "sqrt", "fma")} | approximations <= found
        assert text.count(".ftz") == len(re.findall(r"\b(?:ex2|r?sqrt)\.approx\.ftz\.f32\b", text))
        assert (".approx" in text) == bool(approximations)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int64], ids=str)
def test_ptxas_accepts(dtype: DType, tmp_path: Path) -> None:
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("ptxas, which is asked whether it takes the code, is not on the PATH")
    source = tmp_path / "cases.ptx"
    source.write_text(ptx_of(dtype, 4))
    command = [assembler, "-arch=sm_90", "-O1", str(source), "-o", str(tmp_path / "cases.cubin")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""
