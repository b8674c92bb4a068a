"""The code that AArch64 gets: Linux with and without atomics in one instruction (LSE), Apple silicon, Windows.

The tests look at assembly; nothing is run. Expected instructions are those of the Arm Architecture Reference Manual (A-profile,
C6): the suffix ``a`` acquires, ``l`` releases; behind it stands ``b`` or ``h`` for elements of 8 or 16 bits.
"""

# pyright: reportUnnecessaryComparison=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from xdsl.dialects import func

import weft.language as tl
from sampling import grid
from weft import dtypes
from weft.codegen import emit_assembly, lay_out, machine_for
from weft.dtypes import DType
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget, vector_bits

jit = KernelFunction

MACHINES = {
    "apple": ("arm64-apple-darwin24.0.0", "apple-m1", ""),  # LLVM lists no features of Apple's machines
    "apple, unknown": ("arm64-apple-darwin24.0.0", "generic", ""),
    "linux": ("aarch64-unknown-linux-gnu", "generic", ""),
    "linux, lse": ("aarch64-unknown-linux-gnu", "generic", "+lse"),
    "windows": ("aarch64-pc-windows-msvc", "generic", ""),
}
ONE_INSTRUCTION = ("apple", "linux, lse")
SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")


def target(name: str) -> CpuTarget:
    """The target as `weft.target.host` makes it there."""
    triple, cpu, features = MACHINES[name]
    return CpuTarget(triple, cpu, features, vector_bits(features, triple))


def assembly(kernel: KernelFunction, machine: str, dtype: DType = dtypes.int32, **constants: Any) -> str:
    """The assembly of a program of a kernel whose parameters are arrays of one type and ``n``, but for the constants; without the
    entry point, which has atomics of its own."""
    signature: dict[str, Argument] = {
        p.name: ScalarArgument(dtypes.int32) if p.name == "n" else PointerArgument(dtype, aligned=True)
        for p in kernel.parameters
    } | {name: ConstantArgument(value) for name, value in constants.items()}
    module = build_module(kernel, signature)
    lay_out(module, target(machine), Options(disjoint=True))
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    compiler = machine_for(target(machine))
    emitted = compiler.emit(function, Options(disjoint=True))
    emitted.module.get_global(f"{kernel.name}.program").linkage = "external"  # else only its inlined copy is left
    label = re.compile(rf'^"?_?{kernel.name}(\.program)?"?:', re.MULTILINE)
    text = compiler.assembly(emitted)
    starts = {bool(found[1]): found.end() for found in label.finditer(text)}
    return re.split(rf'\.globl|^"?_?{kernel.name}[.\w]*\.claim"?:', text[starts[True] :], flags=re.MULTILINE)[0]


def ordered(text: str) -> list[str]:
    """The instructions that are atomic, exclusive, or have an order."""
    what = r"^\s+((?:ldadd|ldclr|ldset|ldeor|ld[su]max|ld[su]min|swp|cas|ld[ax]|ldap|stl|stx)\w*|dmb\s+\w+)"
    return [" ".join(name.split()) for name in re.findall(what, text, re.MULTILINE)]


@jit
def update(x: Any, v: Any, KIND: tl.constexpr, SEM: tl.constexpr) -> None:
    value = tl.load(v)
    if KIND == "add":
        tl.atomic_add(x, value, sem=SEM)
    elif KIND == "max":
        tl.atomic_max(x, value, sem=SEM)
    elif KIND == "min":
        tl.atomic_min(x, value, sem=SEM)
    elif KIND == "and":
        tl.atomic_and(x, value, sem=SEM)
    elif KIND == "or":
        tl.atomic_or(x, value, sem=SEM)
    elif KIND == "xor":
        tl.atomic_xor(x, value, sem=SEM)
    elif KIND == "xchg":
        tl.atomic_xchg(x, value, sem=SEM)
    else:
        tl.atomic_cas(x, value, value + value, sem=SEM)


# ---- orders ----------------------------------------------------------------------------------------------------------

SUFFIX = {"relaxed": "", "acquire": "a", "release": "l", "acq_rel": "al"}
EXCLUSIVE = {
    "relaxed": ["ldxr", "stxr"],
    "acquire": ["ldaxr", "stxr"],
    "release": ["ldxr", "stlxr"],
    "acq_rel": ["ldaxr", "stlxr"],
}
SIGNED = {"add": "ldadd", "max": "ldsmax", "min": "ldsmin", "and": "ldclr", "or": "ldset", "xor": "ldeor"} | {
    "xchg": "swp",
    "cas": "cas",
}
"""The instruction of each kind on signed integers. ``ldclr`` clears the bits that its operand has; code inverts it first."""

UNSIGNED = SIGNED | {"max": "ldumax", "min": "ldumin"}
FLOAT = {"add": "cas", "max": "cas", "min": "cas", "xchg": "swp", "cas": "cas"}
WIDTH = {8: "b", 16: "h", 32: "", 64: ""}
CASES = [
    (dtype, kind)
    for dtype in (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint8, dtypes.int16)
    for kind in SIGNED
] + [(dtype, kind) for dtype in (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16) for kind in FLOAT]


def instructions_of(dtype: DType) -> dict[str, str]:
    """The table of a type."""
    return FLOAT if dtype.is_float else SIGNED if dtype.signed else UNSIGNED


@pytest.mark.parametrize(("machine", "case", "sem"), grid(5, list(ONE_INSTRUCTION), CASES, list(SEMANTICS)), ids=str)
def test_atomics_of_one_instruction_have_the_order_they_ask_for(
    machine: str, case: tuple[DType, str], sem: str
) -> None:
    """Sums, minima and maxima of floats are loops around a compare-and-swap: it has the order, the load before the loop none."""
    dtype, kind = case
    expected = instructions_of(dtype)[kind] + SUFFIX[sem] + WIDTH[dtype.bits]
    assert ordered(assembly(update, machine, dtype, KIND=kind, SEM=sem)) == [expected]


@pytest.mark.parametrize(("machine", "case", "sem"), grid(5, ["linux", "windows"], CASES, list(SEMANTICS)), ids=str)
def test_exclusive_pairs_have_the_order_they_ask_for(machine: str, case: tuple[DType, str], sem: str) -> None:
    """The load acquires, the store releases. No function of the C library is called (``__aarch64_ldadd4_relax``)."""
    dtype, kind = case
    text = assembly(update, machine, dtype, KIND=kind, SEM=sem)
    assert ordered(text) == [name + WIDTH[dtype.bits] for name in EXCLUSIVE[sem]]
    assert not re.findall(r"^\s+bl\s", text, re.MULTILINE)


@jit
def hand_on(data: Any, flags: Any, N: tl.constexpr) -> None:
    while tl.load(flags, volatile=True) == 0:
        pass
    tl.store(data + tl.arange(0, N), 7)
    tl.store(flags + 1, 1)


@jit
def no_wait(data: Any, flags: Any, N: tl.constexpr) -> None:
    tl.store(data + tl.arange(0, N), tl.load(flags))
    tl.store(flags + 1, 1)


@jit
def volatile_tiles(status: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(status + i, volatile=True))


@jit
def separated(data: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(data + i, 7)
    tl.debug_barrier()
    tl.store(out + i, 8)


LOADS = {"apple": "ldapr", "apple, unknown": "ldar", "linux": "ldar", "linux, lse": "ldar", "windows": "ldar"}
STORES = {"apple": "stlur"}  # with an offset; the others add it first
WIDTHS = [(dtypes.int8, "b"), (dtypes.float16, "h"), (dtypes.int32, ""), (dtypes.float64, "")]


@pytest.mark.parametrize(("dtype", "width"), WIDTHS, ids=str)
@pytest.mark.parametrize("machine", MACHINES)
def test_volatile_loads_acquire_and_flags_release(machine: str, dtype: DType, width: str) -> None:
    """Loads and stores of a kernel that waits; those of others have no order."""
    load, store = LOADS[machine] + width, STORES.get(machine, "stlr") + width
    assert ordered(assembly(hand_on, machine, dtype, N=16)) == [load, store]
    assert ordered(assembly(volatile_tiles, machine, dtype, N=16)) == [load]
    assert ordered(assembly(no_wait, machine, dtype, N=16)) == []


@pytest.mark.parametrize("machine", MACHINES)
def test_a_barrier_is_an_instruction(machine: str) -> None:
    """On x86 it is none. The stores stand on both sides of it."""
    text = assembly(separated, machine, N=4)
    assert ordered(text) == ["dmb ish"]
    assert re.search(r"str\s+q\d+.*dmb\s+ish.*str\s+q\d+", text, re.DOTALL)


@jit
def scattered(x: Any, N: tl.constexpr) -> None:
    tl.atomic_add(x + tl.arange(0, N), 1, sem="relaxed")


@pytest.mark.parametrize("machine", ONE_INSTRUCTION)
def test_the_lock_of_atomics_is_taken_and_left_in_order(machine: str) -> None:
    """Plain updates stand inside where a thread is alone, so taking acquires, and sharing and leaving release. No order have the
    two counts of who waits, the claim of programs, and the kernel's own atomic."""
    module = build_module(scattered, {"x": PointerArgument(dtypes.int32), "N": ConstantArgument(4)})
    found = Counter(ordered(emit_assembly(module, target(machine), Options())))
    assert found == {"casa": 2, "stlr": 2, "casl": 1, "ldadd": 4}


# ---- vectors ---------------------------------------------------------------------------------------------------------


@jit
def product(a: Any, b: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        acc = tl.dot(tl.load(a + at + k), tl.load(b + at), acc)
    tl.store(out + at, acc)


@pytest.mark.parametrize("machine", MACHINES)
def test_products_use_whole_registers(machine: str) -> None:
    """Also where no feature is listed: vectors of 64 bits would be ``fmla`` on ``.2s``."""
    text = assembly(product, machine, dtypes.float32, N=16)
    widths = set(re.findall(r"fmla(?:\s+v\d+)?\.(\w+)", text))
    assert widths == {"4s"}


@jit
def exponentials(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.exp(tl.load(x + i).to(tl.float32)).to(out.dtype.element_ty))


@pytest.mark.parametrize("machine", MACHINES)
def test_functions_and_float16_need_no_library(machine: str) -> None:
    """Fused multiply-add and conversions of float16 are there without a feature: they are AArch64's own."""
    text = assembly(exponentials, machine, dtypes.float16, N=16)
    assert re.search(r"fcvtl(?:2?\s+v\d+)?\.4s", text)
    assert not re.findall(r"^\s+bl\s", text, re.MULTILINE)


# ---- signalling NaNs -------------------------------------------------------------------------------------------------


@jit
def extremes(x: Any, y: Any, out: Any, KIND: tl.constexpr, NUMBER: tl.constexpr) -> None:
    i = tl.arange(0, 4)
    other = 1.0 if NUMBER else tl.load(y + i)
    tl.store(out + i, tl.maximum(tl.load(x + i), other) if KIND == "fmaxnm" else tl.minimum(tl.load(x + i), other))


@pytest.mark.parametrize("machine", ["apple", "linux"])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("number", [True, False])
@pytest.mark.parametrize("kind", ["fmaxnm", "fminnm"])
def test_signalling_nans_are_quieted_before_an_extreme(kind: str, number: bool, dtype: DType, machine: str) -> None:
    """``fmaxnm`` gives NaN where an operand is a signalling one, and the other operand where it is a quiet one. The maximum of a
    number with itself makes it quiet; a constant needs none."""
    text = assembly(extremes, machine, dtype, KIND=kind, NUMBER=number)
    found = re.findall(r"^\s+f(?:max|min)nm(?:\.\w+)?\s+([\w.]+), ([\w.]+), ([\w.]+)$", text, re.MULTILINE)
    quieted = [one[0] for one in found if one[1] == one[2]]
    taken = [one for one in found if one[1] != one[2]]
    vectors = 4 * dtype.bits // 128
    assert (len(quieted), len(taken)) == (vectors * (1 if number else 2), vectors)
    assert all(set(one[1:]) & set(quieted) for one in taken)
    assert "fcm" not in text and "bif" not in text
