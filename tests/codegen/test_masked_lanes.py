"""Masked accesses on CPUs without instructions for them: what is masked off is not touched, whatever the mask.

The elements lie beside pages that nobody may read or write. So an access beyond the first or last active lane ends the process,
whether or not it would put back what was there.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

import weft.language as tl
from weft import dtypes
from weft.codegen import emit_assembly, emit_llvm
from weft.codegen.llvm import masked
from weft.codegen.llvm.arith import storage_type
from weft.codegen.llvm.types import I1, I16, I64, POINTER, Module
from weft.dtypes import DType
from weft.frontend import (
    Argument,
    ConstantArgument,
    KernelFunction,
    PointerArgument,
    ScalarArgument,
    build_module,
)
from weft.options import Options
from weft.target import X86_LEVELS, CpuTarget, architecture, vector_bits

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

LANES = 16
TYPES = [dtypes.int8, dtypes.int16, dtypes.float32, dtypes.float64]
PAGE = mmap.PAGESIZE
Call = Callable[[int, int, int], None]


def features(level: str) -> frozenset[str]:
    """LLVM's features of a level of x86-64 and those below it."""
    names = list(X86_LEVELS)
    return frozenset(f for name in names[: names.index(level) + 1] for f in X86_LEVELS[name].split())


MACHINES = {
    "x86-64": ("x86-64", features("x86-64"), "x86_64-unknown-linux-gnu"),
    "x86-64-v2": ("x86-64-v2", features("x86-64-v2"), "x86_64-unknown-linux-gnu"),
    "x86-64-v3": ("x86-64-v3", features("x86-64-v3"), "x86_64-unknown-linux-gnu"),
    "aarch64": ("generic", frozenset[str](), "aarch64-unknown-linux-gnu"),
}


@cache
def code(kind: str, dtype: DType, machine: tuple[str, frozenset[str], str]) -> Module:
    """``void f(memory, mask, values)``: loads into the values or stores them; gathers and scatters find the addresses in the
    memory."""
    cpu, names, triple = machine
    bits = vector_bits(",".join(f"+{name}" for name in names), triple)
    module = Module(f"test.{cpu}", triple, names)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I16, POINTER]), "f")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    memory, word, values = function.args
    mask = builder.bitcast(word, ir.VectorType(I1, LANES))
    type_ = storage_type(dtype, LANES)
    vector = builder.load(values, typ=type_, align=1)
    if kind in ("gather", "scatter"):
        addresses = builder.load(memory, typ=ir.VectorType(I64, LANES), align=8)
        memory = builder.inttoptr(addresses, ir.VectorType(POINTER, LANES))
    prefix = kind.startswith("prefix")
    match kind:
        case "load" | "prefix load":
            loaded = masked.masked_load(builder, memory, mask, vector, dtype.itemsize, bits, prefix=prefix)
            builder.store(loaded, values, align=1)
        case "gather":
            builder.store(masked.masked_gather(builder, memory, mask, vector, dtype.itemsize), values, align=1)
        case "store" | "prefix store":
            masked.masked_store(builder, vector, memory, mask, dtype.itemsize, prefix=prefix)
        case _:
            masked.masked_scatter(builder, vector, memory, mask, dtype.itemsize)
    builder.ret_void()
    return module


def guarded() -> tuple[mmap.mmap, int]:
    """Memory of three pages, and the address of the one in the middle, beside which the others may not be accessed."""
    memory = mmap.mmap(-1, 3 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    for page in (start, start + 2 * PAGE):
        assert protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0) == 0
    return memory, start + PAGE


PREFIXES = [(1 << count) - 1 for count in range(LANES)]
MASKS = [
    *(((1 << count) - 1) << first for first in (0, 3) for count in range(1, LANES + 1 - first)),
    *(int(word) for word in np.random.default_rng(0).integers(1, 1 << LANES, 40)),
    0,
]


@pytest.mark.skipif(
    not hasattr(mmap, "PROT_READ"), reason="this system has no mprotect, by which the test forbids a page"
)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", ["load", "store", "prefix load", "prefix store", "gather", "scatter"])
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "host"])
def test_what_is_masked_off_is_not_touched(host: Compiler, level: str, kind: str, dtype: DType) -> None:
    """With the first active lane at the beginning of a page, and with the last at its end."""
    if architecture(host.triple) != "x86_64" and level != "host":
        pytest.skip(f"{level} is a level of x86-64, whose code this CPU does not run")
    present = host.features if level == "host" else features(level)
    if not present <= host.features:
        pytest.skip(f"this CPU does not run code for {level}: it lacks {', '.join(sorted(present - host.features))}")
    cpu = host.cpu if level == "host" else level
    call, _engine = compiled(code(kind, dtype, (cpu, present, host.triple)), cpu, present)
    memory, page = guarded()
    size = dtype.itemsize
    rng = np.random.default_rng(1)
    for word in PREFIXES if kind.startswith("prefix") else MASKS:
        active = np.array([bool(word >> lane & 1) for lane in range(LANES)])
        lanes = np.flatnonzero(active) if word else np.array([0])
        for start in (page - int(lanes[0]) * size, page + PAGE - (int(lanes[-1]) + 1) * size):
            around = rng.integers(0, 100, PAGE, np.uint8)
            ctypes.memmove(page, around.ctypes.data, PAGE)
            values = rng.integers(0, 100, LANES * size, np.uint8)
            expected, stored = values.reshape(LANES, size).copy(), around.copy()
            for lane in lanes[: active.sum()]:
                at = start - page + int(lane) * size
                if kind.endswith(("load", "gather")):
                    expected[lane] = around[at : at + size]
                else:
                    stored[at : at + size] = values.reshape(LANES, size)[lane]
            addresses = start + np.arange(LANES) * size
            given = addresses.ctypes.data if kind in ("gather", "scatter") else start
            call(given, word, values.ctypes.data)
            assert np.array_equal(values, expected.ravel()), bin(word)
            assert ctypes.string_at(page, PAGE) == stored.tobytes(), bin(word)
    del memory


def compiled(module: Module, cpu: str, names: frozenset[str]) -> tuple[Call, Any]:
    """The function, and what keeps it alive."""
    spelled = ",".join(f"+{name}" for name in sorted(names))
    generator = llvm.Target.from_triple(module.triple).create_target_machine(cpu, spelled, 2, jit=True)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    passes = llvm.create_pass_builder(generator, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, generator)
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_void_p)
    return signature(engine.get_function_address("f")), engine


@KernelFunction
def chosen(x: Any, mask: Any, out: Any, STORED: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    inside = tl.load(mask + i) > 0
    if STORED:
        tl.store(out + i, tl.load(x + i), mask=inside)
    else:
        tl.store(out + i, tl.load(x + i, mask=inside, other=0))


@KernelFunction
def chosen_by_index(x: Any, mask: Any, out: Any, STORED: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    at = tl.load(mask + i)
    if STORED:
        tl.store(out + at, tl.load(x + i), mask=at > 0)
    else:
        tl.store(out + i, tl.load(x + at, mask=at > 0, other=0))


JUMP = re.compile(r"^\s+(?:j(?!mp)\w+|tbn?z|cbn?z|b\.\w+)\s", re.MULTILINE)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("stored", [False, True], ids=["load", "store"])
@pytest.mark.parametrize("kernel", [chosen, chosen_by_index], ids=["run", "index"])
@pytest.mark.parametrize("machine", MACHINES)
def test_lanes_have_no_branches(machine: str, kernel: KernelFunction, stored: bool, dtype: DType) -> None:
    """A branch a lane costs a misprediction wherever the mask changes.
    There are two copies of the loop's body, and ten to twenty branches besides."""
    signature: dict[str, Argument] = {name: PointerArgument(dtype) for name in ("x", "out")}
    signature |= {"mask": PointerArgument(dtypes.int32), "STORED": ConstantArgument(stored), "N": ConstantArgument(256)}
    module = build_module(kernel, {p.name: signature[p.name] for p in kernel.parameters})
    cpu, names, triple = MACHINES[machine]
    spelled = ",".join(f"+{name}" for name in sorted(names))
    target = CpuTarget(triple, cpu, spelled, vector_bits(spelled, triple))
    assert len(JUMP.findall(emit_assembly(module, target, Options(disjoint=True)))) < 2 * LANES


@KernelFunction
def ends(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_masks_of_several_registers_are_not_packed(dtype: DType) -> None:
    """LLVM holds a mask of two registers of AVX2 in one of half as many bits, if it can, and takes it apart for each."""
    cpu, names, triple = MACHINES["x86-64-v3"]
    spelled = ",".join(f"+{name}" for name in sorted(names))
    target = CpuTarget(triple, cpu, spelled, vector_bits(spelled, triple))
    signature: dict[str, Argument] = {name: PointerArgument(dtype) for name in ("x", "out")}
    signature |= {"n": ScalarArgument(dtypes.int32), "N": ConstantArgument(256)}
    text = emit_assembly(build_module(ends, signature), target, Options(disjoint=True))
    assert "vmaskmovp" in text
    assert "vpack" not in text


@KernelFunction
def running(x: Any, y: Any, out: Any, n: Any, K: tl.constexpr) -> None:
    """The greatest product of each row of ``x`` with columns of ``y``, which a loop keeps in memory."""
    rows, depth = tl.arange(0, 64), tl.arange(0, K)
    left, highest = tl.load(x + rows[:, None] * K + depth[None, :]), tl.full((64,), float("-inf"), tl.float32)
    for k in range(0, n, 64):
        right = tl.load(y + depth[:, None] * n + (k + rows)[None, :])
        highest = tl.maximum(highest, tl.max(tl.dot(left, right), axis=1))
    tl.store(out + rows, highest)


def test_what_changes_in_place_is_not_stored_under_a_mask() -> None:
    """LLVM makes a masked store of a select between what memory holds and something else."""
    cpu, names, triple = MACHINES["x86-64-v3"]
    spelled = ",".join(f"+{name}" for name in sorted(names))
    target = CpuTarget(triple, cpu, spelled, vector_bits(spelled, triple))
    signature: dict[str, Argument] = {name: PointerArgument(dtypes.float32) for name in ("x", "y", "out")}
    signature |= {"n": ScalarArgument(dtypes.int32), "K": ConstantArgument(64)}
    text = emit_assembly(build_module(running, signature), target, Options(disjoint=True))
    assert "vmaxps" in text
    assert "vmaskmovp" not in text


@KernelFunction
def row_sums(x: Any, out: Any, m: Any, n: Any, N: tl.constexpr) -> None:
    """Whose masks are true or not for whole registers, and looked at in versions of the loop."""
    rows, total = tl.arange(0, N), tl.zeros((N,), tl.float32)
    for k in range(0, n, 16):
        columns = k + tl.arange(0, 16)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        total += tl.sum(tl.load(x + rows[:, None] * n + columns[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + rows, total, mask=rows < m)


@pytest.mark.parametrize("kernel", [chosen, ends, row_sums], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_a_load_of_no_lane_is_from_mapped_memory(level: str, kernel: KernelFunction) -> None:
    """A masked instruction takes hundreds of cycles on a page that is not mapped, even where no lane is active: 222,222 columns
    of 8 rows in tiles of 64 by 16 took 150 ms, and take 0.9."""
    spelled = ",".join(f"+{name}" for name in sorted(features(level)))
    target = CpuTarget("x86_64-unknown-linux-gnu", level, spelled, vector_bits(spelled, "x86_64-unknown-linux-gnu"))
    signature: dict[str, Argument] = {name: PointerArgument(dtypes.float32) for name in ("x", "out")}
    signature |= {"mask": PointerArgument(dtypes.int32), "m": ScalarArgument(dtypes.int32)}
    signature |= {"n": ScalarArgument(dtypes.int32), "STORED": ConstantArgument(False), "N": ConstantArgument(64)}
    module = build_module(kernel, {p.name: signature[p.name] for p in kernel.parameters})
    text = emit_llvm(module, target, Options(disjoint=True))
    found = 0
    for function in text.split("\ndefine"):
        made = dict(re.findall(r'^ *(%[".\w]+) = (.*)$', function, re.MULTILINE))
        for load in [op for op in made.values() if "llvm.masked.load" in op]:
            address = made[re.findall(r'ptr (%[".\w]+)', load)[0]]
            condition = re.findall(r'^select +i1 (%[".\w]+), ptr', address)
            assert condition, load
            assert "llvm.vector.reduce.or" in made[condition[0]]
            found += 1
    assert found
