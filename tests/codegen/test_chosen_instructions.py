"""Which instruction of LLVM does it, where several give the same numbers on the machine at hand.

A slower one, or one that LLVM leaves undefined for some values, is noticed by no comparison of results.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from llvmlite import ir

import weft.language as tl
from codegen.conftest import Compiler
from weft import dtypes
from weft.codegen import emit_assembly, emit_llvm
from weft.codegen.llvm import arith
from weft.dtypes import DType
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

if TYPE_CHECKING:
    from codegen.conftest import Emit

X86 = "x86_64-unknown-linux-gnu"
MACHINES = {
    "plain": Compiler("x86-64", frozenset(), X86),
    "haswell": Compiler("haswell", frozenset({"fma", "f16c", "avx2"}), X86),
    "ptx": Compiler("sm_90", frozenset(), "nvptx64-nvidia-cuda"),
    "ptx, contracting": Compiler("sm_90", frozenset({"contract"}), "nvptx64-nvidia-cuda"),
}


def opcodes(compiler: Compiler, emit: Emit, sources: list[DType], target: DType, lanes: int | None = 16) -> set[str]:
    """The instructions that LLVM is given, before it changes any."""
    text = str(compiler.module(emit, sources, target, lanes))
    return set(re.findall(r"^\s+(?:%\S+ = )?(\w+) ", text, re.MULTILINE))


HASWELL = CpuTarget(X86, "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256)

REMAINDER = {"fdiv": "fdiv", "sdiv": "srem", "udiv": "urem"}
"""The remainder's instruction beside that of the quotient."""


@pytest.mark.parametrize(
    ("machine", "dtype", "lanes", "expected"),
    [
        ("haswell", dtypes.int8, 16, "fdiv"),
        ("haswell", dtypes.uint16, 16, "fdiv"),
        ("haswell", dtypes.int32, 16, "fdiv"),
        ("haswell", dtypes.uint32, 16, "fdiv"),
        ("haswell", dtypes.int64, 16, "sdiv"),
        ("haswell", dtypes.uint64, 16, "udiv"),
        ("haswell", dtypes.int32, None, "sdiv"),
        ("haswell", dtypes.uint32, None, "udiv"),
        ("ptx", dtypes.int32, 2, "sdiv"),
    ],
    ids=str,
)
def test_vectors_of_up_to_32_bits_are_divided_as_floats(
    machine: str, dtype: DType, lanes: int | None, expected: str
) -> None:
    """LLVM takes a division of vectors apart. By a constant it multiplies."""
    compiler = MACHINES[machine]
    instruction = "sdiv" if dtype.signed else "udiv"

    def divisions(kind: str, divisor: ir.Value | None) -> set[str]:
        sources = [dtype, dtype] if divisor is None else [dtype]
        found = opcodes(
            compiler, lambda b, v: arith.binary(b, kind, dtype, v[0], divisor or v[1]), sources, dtype, lanes
        )
        return found & {"sdiv", "udiv", "srem", "urem", "fdiv"}

    assert divisions("div", None) == {expected}
    assert divisions("rem", None) == {REMAINDER[expected]}
    assert divisions("div", arith.constant(dtype, 7, lanes)) == {instruction}
    assert divisions("rem", arith.constant(dtype, 7, lanes)) == {REMAINDER[instruction]}


@pytest.mark.parametrize("source", [d for d in dtypes.ALL if d.is_float], ids=str)
def test_floats_become_unsigned_only_where_none_is_negative(source: DType) -> None:
    """``fptoui`` of a negative number is poison: of what has been clamped to an unsigned type of 32 or 64 bits it is not."""
    for target in dtypes.ALL:
        if target.is_integer:
            found = opcodes(
                MACHINES["haswell"], lambda b, v, t=target: arith.cast(b, v[0], source, t), [source], target
            )
            unsigned = not target.signed and target.bits >= 32
            assert found & {"fptosi", "fptoui"} == {"fptoui" if unsigned else "fptosi"}, target


@pytest.mark.parametrize("machine", ["plain", "haswell"])
def test_narrow_floats_use_the_conversions_of_float16_where_there_are_any(machine: str) -> None:
    half, compiler, f32 = machine == "haswell", MACHINES[machine], dtypes.float32
    for dtype in (dtypes.float16, dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.bfloat16):
        widened = opcodes(compiler, lambda b, v, d=dtype: arith.cast(b, v[0], d, f32), [dtype], f32)
        assert ("fpext" in widened) == (half and dtype != dtypes.bfloat16), dtype
        narrowed = opcodes(compiler, lambda b, v, d=dtype: arith.cast(b, v[0], f32, d), [f32], dtype)
        assert ("fptrunc" in narrowed) == (half and dtype == dtypes.float16), dtype


@pytest.mark.parametrize("machine", ["haswell", "ptx", "ptx, contracting"])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32], ids=str)
def test_narrow_products_are_added_without_rounding_where_the_user_lets_them(machine: str, dtype: DType) -> None:
    """Else ``fma`` rounds to float32 and then to the narrow type, with the same bits on all machines."""
    at_once = machine == "ptx, contracting" or not dtype.bits < 32
    text = str(MACHINES[machine].module(lambda b, v: arith.fma(b, dtype, *v), [dtype] * 3, dtype, 2))
    name = {"float16": "v2f16", "bfloat16": "v2bf16", "float32": "v2f32"}[dtype.name]
    assert set(re.findall(r"@\"?llvm\.fma\.(\w+)", text)) == {name if at_once else "v2f32"}


@KernelFunction
def copied(x: Any, out: Any, STEP: tl.constexpr, GAP: tl.constexpr, M: tl.constexpr, N: tl.constexpr) -> None:
    at = tl.arange(0, M)[:, None] * GAP + tl.arange(0, N)[None, :] * STEP
    tl.store(out + at, tl.load(x + at))


@pytest.mark.parametrize(
    ("shape", "step", "gap", "vectors", "single"),
    [
        ((1, 8), 1, 0, 1, 0),
        ((1, 2), 1, 0, 1, 0),  # shorter than a run that is worth it, but all there is
        ((1, 8), 8, 0, 0, 8),
        ((2, 4), 1, 100, 2, 0),
        ((4, 2), 8, 100, 0, 8),
    ],
    ids=str,
)
def test_long_runs_are_accessed_as_vectors_and_short_ones_one_by_one(
    shape: tuple[int, int], step: int, gap: int, vectors: int, single: int
) -> None:
    """Tiles of at most one register on a CPU with vectors of 256 bits: 8 lanes."""
    pointer = PointerArgument(dtypes.int32)
    constants = {"STEP": step, "GAP": gap, "M": shape[0], "N": shape[1]}
    signature = {"x": pointer, "out": pointer} | {name: ConstantArgument(value) for name, value in constants.items()}
    text = emit_llvm(build_module(copied, signature), HASWELL, Options(disjoint=True))
    program = text[text.index(".program") :]
    for access in ("load", "store"):
        for type_, expected in ((r"<\d+ x i32>", vectors), ("i32", single)):
            found = re.findall(rf"^\s+(?:%\S+ = )?{access} {type_}[ ,]", program, re.MULTILINE)
            assert len(found) == expected, (access, type_)
    assert "llvm.masked" not in program


@KernelFunction
def scattered(index: Any, values: Any, out: Any, N: tl.constexpr) -> None:
    """The values, added at places that may meet."""
    i = tl.arange(0, N)
    tl.atomic_add(out + tl.load(index + i), tl.load(values + i), sem="relaxed")


def test_lanes_that_are_updated_one_by_one_are_loaded_one_by_one() -> None:
    """At distances from the first lane, and four before the first of them is updated."""
    pointer = PointerArgument(dtypes.int32)
    signature = {"index": pointer, "values": pointer, "out": pointer, "N": ConstantArgument(8)}
    text = emit_llvm(build_module(scattered, signature), HASWELL, Options(disjoint=True))
    program = text[text.index(".program") :]
    assert not re.findall(r"extractelement <8 x i32> %\S+, i32 \d", program)
    for lane in range(1, 8):
        assert len(re.findall(rf"= add i64 %\S+, {4 * lane}$", program, re.MULTILINE)) == 2, lane
    accesses = re.findall(r"(load|store) i32[ ,]", program)
    assert accesses.index("store") == 4 + 4 + 1  # indices, numbers, and what is at the first place


@KernelFunction
def highest(x: Any, out: Any, N: tl.constexpr) -> None:
    tl.store(out, tl.max(tl.load(x + tl.arange(0, N))))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_a_maximum_is_one_comparison_and_x86s_instruction(dtype: DType) -> None:
    """LLVM's passes make two comparisons and a blend of a select that comes behind the maximum."""
    pointer = PointerArgument(dtype)
    module = build_module(highest, {"x": pointer, "out": pointer, "N": ConstantArgument(64)})
    text = emit_assembly(module, HASWELL, Options(disjoint=True))
    assert re.search(r"\bvmaxp[sd]\b", text)
    assert not re.search(r"\bvcmp(lt|gt|nle|nlt|le|ge)p[sd]\b", text)
