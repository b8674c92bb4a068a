"""Inline PTX in the emulator, what kernels may know of the machine, and time limits."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from frontend.conftest import execute
from machines import on
from sampling import some
from weft.ir.unsupported import UnsupportedOpError
from weft.options import Options
from weft.runtime import compiler

pytestmark = pytest.mark.jit

TARGETS = some(["sm_80", "sm_90"], "sm_80")
EVERYWHERE = [None, "sm_90"]


UNPACK = """
    {
        // Bytes of the first operand.
        .reg .b8 byte<4>;
        mov.b32 {byte0, byte1, byte2, byte3}, $8;
        cvt.u32.u8 $0, byte0;
        cvt.u32.u8 $1, byte1;
        cvt.u32.u8 $2, byte2;
        cvt.u32.u8 $3, byte3;
    }
    cvt.rn.f32.s32 $4, $0;
    cvt.rn.f32.s32 $5, $1;
    cvt.rn.f32.s32 $6, $2;
    cvt.rn.f32.s32 $7, $3;
    max.f32 $4, $4, $9;
    max.f32 $5, $5, $10;
    max.f32 $6, $6, $11;
    max.f32 $7, $7, $12;
"""
FIVE = ",".join(["=r"] * 4 + ["=f"] * 4 + ["r"] + ["f"] * 4)


@weft.jit
def bytes_and_floats(a: Any, b: Any, numbers: Any, largest: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    x, y = tl.inline_asm_elementwise(
        UNPACKED, FIVE_, [tl.load(a + i), tl.load(b + i)], dtype=(tl.int32, tl.float32), is_pure=True, pack=4
    )
    tl.store(numbers + i, x)
    tl.store(largest + i, y)


UNPACKED, FIVE_ = tl.constexpr(UNPACK), tl.constexpr(FIVE)


@pytest.mark.parametrize("size", [1, 2, 64, 1024])
@pytest.mark.parametrize("target", TARGETS)
def test_four_elements_at_a_time(target: str, size: int) -> None:
    """Also where a thread has fewer than four."""
    rng = np.random.default_rng(size)
    a, b = rng.integers(0, 256, size).astype(np.uint8), rng.normal(100, 80, size).astype(np.float32)
    numbers, largest = np.zeros(size, np.int32), np.zeros(size, np.float32)
    bytes_and_floats.on(target)[(1,)](a, b, numbers, largest, size)
    assert np.array_equal(numbers, a)
    assert np.array_equal(largest, np.maximum(a.astype(np.float32), b))


@weft.jit
def one_for_one(
    x: Any, y: Any, out: Any, N: tl.constexpr, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, PACK: tl.constexpr
) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.inline_asm_elementwise(ASM, CONSTRAINTS, [a, b], a.dtype, True, PACK))


SINGLE: list[tuple[str, str, str, int, Any]] = [
    ("int8", "add.s32 $0, $1, $2;", "=r,r,r", 1, np.add),
    ("int16", "min.s16 $0, $1, $2;", "=h,h,h", 1, np.minimum),
    ("uint16", "add.u32 $0, $1, $2;", "=r, r, r", 1, np.add),
    ("int32", "add.s32 $0, $1, $2;", "=r,0,r", 1, np.add),
    ("uint32", "mul.lo.u32 $0, $2, $4;\nmul.lo.u32 $1, $3, $5;", "=&r,=&r,r,r,r,r", 2, np.multiply),
    ("int64", "max.s64 $0, $1, $2;", "=l,l,l", 1, np.maximum),
    ("float16", "add.rn.f16x2 $0, $1, $2;", "=r,r,r", 2, np.add),
    ("float16", "{ .reg .b16 t; mul.rn.f16 t, $1, $2; mov.b16 $0, t; }", "=h,h,h", 1, np.multiply),
    ("bfloat16", "max.bf16x2 $0, $1, $2;", "=r,r,r", 2, np.maximum),
    ("float32", "mul.rn.f32 $0, $1, $2;", "=f,f,f", 1, np.multiply),
    ("float32", "add.rn.f32 $0, $1, $2;", "=r,r,r", 1, np.add),
    ("float64", "add.rn.f64 $0, $1, $2;", "=d,d,d", 1, np.add),
]


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: f"{case[0]}-{case[3]}-{case[1].split()[0]}")
def test_types_and_constraints(case: tuple[str, str, str, int, Any]) -> None:
    name, text, constraints, pack, meaning = case
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    x, y = (np.random.default_rng(k).integers(1, 100, 64).astype(dtype) for k in (1, 2))
    out = np.zeros(64, dtype)
    one_for_one.on("sm_90")[(1,)](x, y, out, 64, text, constraints, pack)
    assert np.array_equal(out, meaning(x, y))


@weft.jit
def spread(x: Any, y: Any, out: Any, flags: Any, scalar: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """Operands that broadcast: rows, columns, a scalar; a bool among the results; scalars alone; no operand."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(x + i), tl.load(y + j)
    text: tl.constexpr = "{ .reg .pred p; setp.gt.s32 p, $2, $3; mad.lo.s32 $0, $2, $3, $4; selp.u32 $1, 1, 0, p; }"
    total, larger = tl.inline_asm_elementwise(text, "=r,=r,r,r,r", [a, b, 7], (tl.int32, tl.int1), True, 1)
    tl.store(out + i * N + j, total)
    tl.store(flags + i * N + j, larger)
    one = tl.inline_asm_elementwise("add.s32 $0, $1, $2;", "=r,r,r", [tl.load(x), 5], tl.int32, False, 1)
    tl.store(scalar, one + tl.inline_asm_elementwise("mov.u32 $0, %ntid.x;", "=r", [], tl.int32, True, 1))


@pytest.mark.parametrize("target", TARGETS)
def test_operands_broadcast(target: str) -> None:
    x, y = np.arange(8, dtype=np.int32), np.arange(16, dtype=np.int32) * 3 - 9
    out, flags, scalar = np.zeros((8, 16), np.int32), np.zeros((8, 16), np.bool_), np.zeros(1, np.int32)
    spread.on(target)[(1,)](x, y, out, flags, scalar, 8, 16, num_warps=2)
    assert np.array_equal(out, x[:, None] * y + 7)
    assert np.array_equal(flags, x[:, None] > y)
    assert scalar[0] == x[0] + 5 + 64


@weft.jit
def memory(x: Any, out: Any, N: tl.constexpr) -> None:
    """Loads and stores between which assembly writes."""
    i = tl.arange(0, N)
    before = tl.load(x + i)
    text: tl.constexpr = (
        "{ .reg .b32 t; ld.global.b32 t, [$1]; add.s32 t, t, 1; st.global.b32 [$1], t; mov.b32 $0, t; }"
    )
    written = tl.inline_asm_elementwise(text, "=r,l,~{memory}", [x + i], tl.int32, is_pure=False, pack=1)
    after = tl.load(x + i)
    tl.store(out + i, before)
    tl.store(out + N + i, written)
    tl.store(out + 2 * N + i, after)


def test_assembly_that_writes_keeps_its_place() -> None:
    x, out = np.arange(128, dtype=np.int32), np.zeros(384, np.int32)
    memory.on("sm_90")[(1,)](x, out, 128)
    assert out.tolist() == [*range(128), *range(1, 129), *range(1, 129)]
    assert x.tolist() == list(range(1, 129))


@weft.jit
def refused(x: Any, CASE: tl.constexpr) -> None:
    v = tl.load(x + tl.arange(0, 4))
    if CASE == 0:
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], tl.int32, True, 3)
    elif CASE == 1:
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], tl.int32, True, 2)
    elif CASE == 2:
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r", [v], tl.int32, True, 1)
    elif CASE == 3:
        tl.inline_asm_elementwise(v, "=r,r", [v], tl.int32, True, 1)
    elif CASE == 4:
        tl.inline_asm_elementwise("bar.sync 0;", "r", [v], (), False, 1)
    elif CASE == 5:
        tl.inline_asm_elementwise("mov.b32 $0, $1;", "=q,r", [v], tl.int32, True, 1)
    else:
        tl.store(x, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x)], tl.int32, True, 1))


@weft.jit
def stored_by_ptx(x: Any, out: Any, N: tl.constexpr, ADDRESS: tl.constexpr, PURE: tl.constexpr) -> None:
    i = tl.arange(0, N)
    to = (out + i).to(tl.int64) if ADDRESS else out + i
    text: tl.constexpr = "mov.b32 $0, 0;" if PURE else "st.global.s32 [$1], $2; mov.b32 $0, 0;"
    tl.inline_asm_elementwise(text, "=r,l,r", [to, tl.load(x + i)], tl.int32, PURE, 1)


@pytest.mark.parametrize(
    ("address", "pure", "expected"),
    [(False, False, ("out",)), (True, False, ("x", "out")), (False, True, ()), (True, True, ())],
)
def test_ptx_with_effects_may_write_where_it_has_addresses_of(
    address: bool, pure: bool, expected: tuple[str, ...]
) -> None:
    """An address as a number may be that of any array, which then must not be read-only."""
    x, out = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    handle = stored_by_ptx.compile(x, out, 32, address, pure, target="sm_90")
    module = compiler.tile_ir(stored_by_ptx, handle.signature, Options())
    assert compiler.written_parameters(module, handle.signature) == expected
    stored_by_ptx.on("sm_90")[(1,)](x, out, 32, address, pure)
    assert np.array_equal(out, x * (not pure))


REFUSED = [
    "'pack' is a power of two, found 3",
    "the constraints name 1 registers for results, but the results of 2 elements are in 2",
    "the constraints name 0 registers for operands, but the operands of 1 elements are in 1",
    "'asm' is a string, found int32[4]",
    "inline assembly has a result at least",
    "tile.inline_asm has the constraint 'q'",
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case: int) -> None:
    with pytest.raises(weft.CompilationError) as caught:
        refused.on("sm_90")[(1,)](np.zeros(4, np.int32), case)
    assert caught.value.message == REFUSED[case]
    assert caught.value.spans


@pytest.mark.parametrize("case", [6, 7])
def test_a_cpu_does_not_execute_ptx(case: int) -> None:
    with pytest.raises(UnsupportedOpError) as caught:
        (bytes_and_floats if case == 7 else refused)[(1,)](
            *(
                [np.zeros(4, np.uint8), *(np.zeros(4, np.float32),) * 3, 4]
                if case == 7
                else [np.zeros(4, np.int32), case]
            )
        )
    assert caught.value.message == "tile.inline_asm is PTX, which a CPU does not execute"
    assert caught.value.spans
    assert caught.value.hint == (
        "use functions of tl and tl.extra.libdevice, or launch on a GPU or in the emulator: kernel.on('sm_90')[grid](...)"
    )


def test_the_reference_does_not_execute_ptx() -> None:
    with pytest.raises(NotImplementedError, match="the reference does not execute PTX"):
        execute(refused.fn, x=np.zeros(4, np.int32), CASE=6)


@weft.jit
def facts(out: Any, times: Any) -> None:
    pid = tl.program_id(0)
    start = tl.extra.cuda.globaltimer()
    tl.store(out + pid * 3, tl.extra.cuda.smid())
    threads: tl.constexpr = tl.extra.cuda.num_threads()
    tl.store(out + pid * 3 + 1, threads + tl.sum(tl.arange(0, threads), 0) * 0)
    tl.store(out + pid * 3 + 2, tl.extra.cuda.num_warps())
    tl.store(times + pid * 2, start)
    tl.store(times + pid * 2 + 1, tl.extra.cuda.globaltimer())


@pytest.mark.parametrize("target", EVERYWHERE)
@pytest.mark.parametrize("warps", [4, 8])
def test_facts_of_the_machine(target: str | None, warps: int) -> None:
    out, times = np.zeros((3, 3), np.int32), np.zeros((3, 2), np.int64)
    before = time.monotonic_ns()
    on(facts, target)[(3,)](out, times, num_warps=warps)
    assert out[:, 1:].tolist() == [[32 * warps, warps]] * 3
    assert (times[:, 0] < times[:, 1]).all() or (target is None and (times[:, 0] <= times[:, 1]).all())
    if target is None:
        assert out[:, 0].tolist() == [0, 0, 0]
        assert before <= times.min() <= times.max() <= time.monotonic_ns()
    else:
        assert (out[:, 0] >= 0).all()


def test_the_clock_of_the_reference() -> None:
    out, times = np.zeros((1, 3), np.int32), np.zeros((1, 2), np.int64)
    execute(facts.fn, out=out, times=times)
    assert out.tolist() == [[0, 128, 4]]
    assert 0 < times[0, 0] <= times[0, 1]
