"""Every kind and cast lowers for CPUs other than the host's, and calls nothing that a process does not export."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from weft import dtypes
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I8, I64, Module, lanes_of
from weft.dtypes import DType
from weft.ir.tile import BINARY, COMPARE, UNARY, class_of

if TYPE_CHECKING:
    from codegen.conftest import Compiler

LINUX, ARM, APPLE = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx"
TARGETS = {
    "x86-64": ("x86-64", "", LINUX),
    "haswell": ("haswell", "avx2 fma f16c", LINUX),
    "skylake-avx512": ("skylake-avx512", "avx512f avx512dq avx512vl avx512bw fma f16c", LINUX),
    "aarch64": ("generic", "", ARM),
    "apple": ("apple-m1", "", APPLE),
}


@pytest.fixture(scope="module", autouse=True)
def all_targets(host: Compiler) -> None:
    """LLVM with all its backends; after ``host``, which needs the native one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def results(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> Iterator[ir.Value]:
    """Each kind that takes ``dtype``, and casts to every type."""
    yield from (arith.unary(builder, k, dtype, x) for k, classes in UNARY.items() if class_of(dtype) in classes)
    yield from (arith.binary(builder, k, dtype, x, y) for k, classes in BINARY.items() if class_of(dtype) in classes)
    yield from (arith.compare(builder, k, dtype, x, y) for k in COMPARE)
    yield from (arith.cast(builder, x, dtype, target) for target in dtypes.ALL)
    if dtype.is_float:
        yield arith.fma(builder, dtype, x, y, x)


def everything(triple: str, features: frozenset[str], lanes: int) -> Module:
    """One function for each type that stores the results of all kinds."""
    module = Module("all", triple, features)
    for dtype in dtypes.ALL:
        type_ = arith.llvm_type(dtype, lanes)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [type_, type_, ir.PointerType()]), f"all_{dtype}")
        builder = ir.IRBuilder(function.append_basic_block())
        x, y, pointer = function.args
        for place, result in enumerate(results(builder, dtype, x, y)):
            assert lanes_of(result) == lanes
            builder.store(result, builder.gep(pointer, [I64(64 * place)], source_etype=I8), align=1)
        builder.ret_void()
    return module


@pytest.mark.parametrize("name", TARGETS)
def test_lowers(name: str) -> None:
    cpu, features, triple = TARGETS[name]
    module = everything(triple, frozenset(features.split()), 4)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    spelled = ",".join(f"+{f}" for f in features.split())
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu, spelled, 1, codemodel="small")
    text = machine.emit_assembly(parsed)
    called = set(re.findall(r"^\s+(?:callq|jmp|bl|b)\s+([A-Za-z_][\w.]*)(?:@PLT)?$", text, re.MULTILINE))
    outside = {
        c.removeprefix("_") if triple == APPLE else c for c in called if "weft." not in c and not c.startswith("LBB")
    }
    assert not outside


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_zeros_of_both_signs_are_different_constants(dtype: DType) -> None:
    # Whichever comes first, the other is spelled as itself: LLVM's hexadecimal doubles, the sign in the top bit.
    for number in (-0.0, 0.0, -0.0):
        spelled = str(arith.constant(dtype, number, None)).split()[-1]
        assert int(spelled, 16) == (0 if math.copysign(1.0, number) > 0 else 1 << 63)
