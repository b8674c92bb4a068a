"""wmma.load, wmma.mma and wmma.store together: products of matrices in memory, in every shape, type and layout."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_exact import F64, rounded
from emulator_harness import run
from weft.emulator import Misaligned, OutOfBounds, PTXError, Undefined
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse

BLOCKS, WARPS = 2, 3
"""Blocks, and warps of each; every warp has matrices of its own."""

ALL = BLOCKS * WARPS

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "u8": np.uint8,
    "s8": np.int8,
    "s32": np.int32,
}
SMALL = {"u4": 4, "s4": 4, "b1": 1}
"""Types narrower than a byte, and their bits."""

RANGES = {
    "u8": (0, 255),
    "s8": (-128, 127),
    "u4": (0, 15),
    "s4": (-8, 7),
    "b1": (0, 1),
    "s32": (-(1 << 31), (1 << 31) - 1),
}

SQUARES = ("m16n16k16", "m8n32k16", "m32n8k16")

COUNTS: dict[tuple[str, str], tuple[int, int]] = {
    **{(shape, "f16"): (8, 8) for shape in SQUARES},
    ("m16n16k16", "bf16"): (4, 4),
    ("m8n32k16", "bf16"): (2, 8),
    ("m32n8k16", "bf16"): (8, 2),
    ("m16n16k8", "tf32"): (4, 4),
    ("m8n8k4", "f64"): (1, 1),
    **{("m16n16k16", kind): (2, 2) for kind in ("u8", "s8")},
    **{("m8n32k16", kind): (1, 4) for kind in ("u8", "s8")},
    **{("m32n8k16", kind): (4, 1) for kind in ("u8", "s8")},
    **{("m8n8k32", kind): (1, 1) for kind in ("u4", "s4")},
    ("m8n8k128", "b1"): (1, 1),
}
"""Registers of A and of B (9.7.14.4.1)."""


def accumulators(shape: str, kind: str) -> int:
    """Registers of C and of D (9.7.14.4.1)."""
    if shape in SQUARES or shape == "m16n16k8":
        return 4 if kind == "f16" else 8
    return 2


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def in_memory(values: NDArray[Any], kind: str, layout: str, stride: int) -> NDArray[np.uint8]:
    """(warps, rows, columns) as bytes (warps, bytes): rows or columns ``stride`` elements apart, what is between is random."""
    lines = values if layout == "row" else values.swapaxes(1, 2)
    warps, count, length = lines.shape
    bits = SMALL.get(kind, 0)
    if not bits:
        bits = np.dtype(DTYPES[kind]).itemsize * 8
        packed = np.ascontiguousarray(lines.astype(DTYPES[kind])).view(np.uint8).reshape(warps, count, -1)
    else:
        each = (lines[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(warps, count, -1)
        packed = np.packbits(each, axis=2, bitorder="little")
    memory = np.random.default_rng(0).integers(0, 256, (warps, count, stride * bits // 8)).astype(np.uint8)
    memory[:, :, : length * bits // 8] = packed
    return memory.reshape(warps, -1)


def from_memory(memory: NDArray[np.uint8], kind: str, layout: str, shape: tuple[int, int], stride: int) -> NDArray[Any]:
    """The inverse, of accumulators."""
    count, length = shape if layout == "row" else shape[::-1]
    lines = memory.view(DTYPES[kind]).reshape(len(memory), count, stride)[:, :, :length]
    return lines if layout == "row" else lines.swapaxes(1, 2)


def vector(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def program(body: str, pitches: dict[str, int], declarations: str = "") -> str:
    """A kernel with pointers a, b, c, d, ...: register %p_a is the address of the warp's part, ``pitches`` bytes apart."""
    lines = [
        ".reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %i<4>; .reg .f64 %fa<1>, %fb<1>, %fc<2>, %fd<2>; .reg .b64 %w; .reg .pred %p;",
        "mov.u32 %i0, %tid.x; shr.u32 %i0, %i0, 5; mov.u32 %i1, %ctaid.x;",
        f"mad.lo.u32 %i0, %i1, {WARPS}, %i0;",
    ]
    for name, pitch in pitches.items():
        lines.append(f".reg .b64 %p_{name}; ld.param.u64 %p_{name}, [{name}];")
        lines.append(f"mul.wide.u32 %w, %i0, {pitch}; add.s64 %p_{name}, %p_{name}, %w;")
    parameters = ", ".join(f".param .u64 {name}" for name in pitches)
    text = "\n  ".join((*lines, declarations, body, "ret;"))
    return f".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry test({parameters})\n{{\n  {text}\n}}\n"


def multiply(
    shape: str,
    types: tuple[str, str, str],
    layouts: tuple[str, str, str, str],
    operands: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    extra: int = 0,
    modifiers: str = "",
    space: str = ".global",
) -> NDArray[Any]:
    """D of wmma.load, wmma.mma and wmma.store; ``types`` of D, of A and B, and of C, ``layouts`` of A, B, C and D, lines
    ``extra`` elements farther apart than they need be."""
    d, kind, c = types
    m, n, k = sizes(shape)
    extents = ((m, k), (k, n), (m, n), (m, n))
    strides = [extent[layout == "row"] + extra for extent, layout in zip(extents, layouts, strict=True)]
    inputs = [
        in_memory(values, name, layout, stride)
        for values, name, layout, stride in zip(operands, (kind, kind, c), layouts, strides, strict=False)
    ]
    lines = m if layouts[3] == "row" else n
    result = np.zeros((ALL, lines * strides[3] * np.dtype(DTYPES[d]).itemsize), np.uint8)
    f = "f" if kind == "f64" else ""
    counts = (*COUNTS[shape, kind], accumulators(shape, c), accumulators(shape, d))
    regs = [vector(f + letter, count) for letter, count in zip("abcd", counts, strict=True)]
    stride_text = [f", {stride}" if extra else "" for stride in strides]
    named = f"{d}.{c}" if kind == "f16" else f"{d}.{kind}.{kind}.{c}"
    operation = "wmma.mma" + (".xor.popc" if kind == "b1" else "")
    body = "\n".join(
        [
            f"wmma.load.a.sync.aligned.{layouts[0]}.{shape}{space}.{kind} {regs[0]}, [%p_a]{stride_text[0]};",
            f"wmma.load.b.sync.aligned.{layouts[1]}.{shape}{space}.{kind} {regs[1]}, [%p_b]{stride_text[1]};",
            f"wmma.load.c.sync.aligned.{layouts[2]}.{shape}{space}.{c} {regs[2]}, [%p_c]{stride_text[2]};",
            f"{operation}.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}{modifiers}.{named} "
            f"{regs[3]}, {regs[0]}, {regs[1]}, {regs[2]};",
            f"wmma.store.d.sync.aligned.{layouts[3]}.{shape}{space}.{d} [%p_d], {regs[3]}{stride_text[3]};",
        ]
    )
    pitches = {name: array.shape[1] for name, array in zip("abcd", (*inputs, result), strict=True)}
    run(program(body, pitches), [*inputs, result], grid=BLOCKS, block=32 * WARPS)
    return from_memory(result, d, layouts[3], (m, n), strides[3])


def integers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    low, high = RANGES.get(kind, (-3, 3))
    return rng.integers(low, high + 1, shape)


def operands(seed: int, shape: str, kind: str, c: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    m, n, k = sizes(shape)
    return integers(rng, kind, (ALL, m, k)), integers(rng, kind, (ALL, k, n)), integers(rng, c, (ALL, m, n))


def check(shape: str, types: tuple[str, str, str], layouts: tuple[str, str, str, str], **rest: Any) -> None:
    x, y, z = operands(1, shape, types[1], types[2])
    found = multiply(shape, types, layouts, (x, y, z), **rest)
    product = (x[..., None] ^ y[..., None, :, :]).sum(axis=-2) if types[1] == "b1" else x @ y
    expected = product + z
    if types[0] == "s32":
        expected = (expected + (1 << 31)) % (1 << 32) - (1 << 31)
    np.testing.assert_array_equal(found, expected)


TYPES = [
    *((shape, (d, "f16", c)) for shape in SQUARES for d in ("f16", "f32") for c in ("f16", "f32")),
    *((shape, ("f32", "bf16", "f32")) for shape in SQUARES),
    ("m16n16k8", ("f32", "tf32", "f32")),
    ("m8n8k4", ("f64", "f64", "f64")),
    *((shape, ("s32", kind, "s32")) for shape in SQUARES for kind in ("u8", "s8")),
]
"""With layouts by rows and by columns (9.7.14.4.5)."""

NARROW = [("m8n8k32", ("s32", "u4", "s32")), ("m8n8k32", ("s32", "s4", "s32")), ("m8n8k128", ("s32", "b1", "s32"))]

LAYOUTS = [
    ("row", "row", "row", "row"),
    ("row", "col", "col", "row"),
    ("col", "row", "row", "col"),
    ("col", "col", "col", "col"),
]


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize(("shape", "types"), TYPES)
def test_every_shape_type_and_layout(
    shape: str, types: tuple[str, str, str], layouts: tuple[str, str, str, str]
) -> None:
    check(shape, types, layouts)


@pytest.mark.parametrize("layouts", [("row", "col", "row", "col"), ("row", "col", "col", "row")])
@pytest.mark.parametrize(("shape", "types"), NARROW)
def test_types_narrower_than_a_byte(
    shape: str, types: tuple[str, str, str], layouts: tuple[str, str, str, str]
) -> None:
    check(shape, types, layouts)


@pytest.mark.parametrize("space", [".global", ""])
@pytest.mark.parametrize(("shape", "types"), [*TYPES[:1], *TYPES[9:12], TYPES[15], *TYPES[16:18], *NARROW])
def test_strides_and_generic_addresses(shape: str, types: tuple[str, str, str], space: str) -> None:
    check(shape, types, ("row", "col", "row", "col"), extra=128, space=space)


def test_saturation() -> None:
    x, y = np.full((ALL, 16, 16), 127), np.full((ALL, 16, 16), 127)
    z = np.full((ALL, 16, 16), (1 << 31) - 1)
    layouts = ("row", "col", "row", "row")
    found = multiply("m16n16k16", ("s32", "s8", "s32"), layouts, (x, y, z), modifiers=".satfinite")
    np.testing.assert_array_equal(found, z)


@pytest.mark.parametrize("mode", ["rz", "rp"])
def test_doubles_are_fused_in_order(mode: str) -> None:
    rng = np.random.default_rng(4)
    x, y, z = (rng.standard_normal((ALL, *shape)) for shape in ((8, 4), (4, 8), (8, 8)))
    layouts = ("col", "row", "row", "col")
    found = multiply("m8n8k4", ("f64", "f64", "f64"), layouts, (x, y, z), modifiers="." + mode)
    for warp, row, column in np.ndindex(2, 8, 8):
        total = float(z[warp, row, column])
        for p, q in zip(x[warp, row], y[warp, :, column], strict=True):
            total = rounded(Fraction(float(p)) * Fraction(float(q)) + Fraction(total), F64, mode)
        assert found[warp, row, column] == total


def test_fragments_may_be_scaled_before_they_are_stored() -> None:
    # "Manipulating fragment contents": each register of C, on all lanes alike.
    values = np.random.default_rng(5).integers(-9, 10, (ALL, 16, 16)).astype(np.float32)
    stored = np.zeros_like(values)
    body = "\n".join(
        [
            f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {vector('c', 8)}, [%p_c];",
            *(f"mul.rn.f32 %c{i}, %c{i}, 0f40400000;" for i in range(8)),
            f"wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%p_d], {vector('c', 8)};",
        ]
    )
    run(program(body, {"c": 1024, "d": 1024}), [values, stored], grid=BLOCKS, block=32 * WARPS)
    np.testing.assert_array_equal(stored.swapaxes(1, 2), values * 3)


def test_further_registers_of_halves_are_copies() -> None:
    # 8 x 16 of f16 are two registers of a lane; the ISA has eight.
    values = np.random.default_rng(8).standard_normal((ALL, 8, 16)).astype(np.float16)
    stored = np.zeros((ALL, 32, 8), np.uint32)
    body = "\n".join(
        [
            f"wmma.load.a.sync.aligned.row.m8n32k16.global.f16 {vector('a', 8)}, [%p_a];",
            "mov.u32 %i3, %laneid; mul.wide.u32 %w, %i3, 32; add.s64 %p_d, %p_d, %w;",
            *(f"st.global.b32 [%p_d+{4 * i}], %a{i};" for i in range(8)),
        ]
    )
    run(program(body, {"a": 256, "d": 1024}), [values, stored], grid=BLOCKS, block=32 * WARPS)
    np.testing.assert_array_equal(stored, np.tile(stored[:, :, :2], 4))
    np.testing.assert_array_equal(
        np.sort(stored[:, :, :2].reshape(ALL, -1).view(np.uint16)), np.sort(values.reshape(ALL, -1).view(np.uint16))
    )


@pytest.mark.parametrize("generic", [False, True])
def test_shared_memory(generic: bool) -> None:
    values = np.random.default_rng(6).integers(0, 1 << 16, (ALL, 16, 16)).astype(np.uint16)
    stored = np.zeros_like(values)
    space, register = ("", "%w") if generic else (".shared", "%i2")
    body = "\n".join(
        [
            "mov.u32 %i2, buffer; mov.u32 %i3, %tid.x; shr.u32 %i3, %i3, 5; mad.lo.u32 %i2, %i3, 768, %i2;",
            "mov.b64 %w, {%i2, 0}; cvta.shared.u64 %w, %w;",
            f"wmma.load.c.sync.aligned.row.m16n16k16.global.f16 {vector('c', 4)}, [%p_c];",
            f"wmma.store.d.sync.aligned.col.m16n16k16{space}.f16 [{register}], {vector('c', 4)}, 24;",
            "bar.warp.sync -1;",
            f"wmma.load.c.sync.aligned.col.m16n16k16{space}.f16 {vector('d', 4)}, [{register}], 24;",
            f"wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%p_d], {vector('d', 4)};",
        ]
    )
    ptx = program(body, {"c": 512, "d": 512}, f".shared .align 32 .b8 buffer[{WARPS * 768}];")
    run(ptx, [values, stored], grid=BLOCKS, block=32 * WARPS)
    np.testing.assert_array_equal(stored, values)


def test_inactive_warps_load_and_store_nothing() -> None:
    values = np.random.default_rng(7).standard_normal((ALL, 16, 16)).astype(np.float32)
    stored = np.zeros_like(values)
    body = "\n".join(
        [
            "and.b32 %i1, %i0, 1; setp.eq.u32 %p, %i1, 1; @%p bra SKIP;",
            f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {vector('c', 8)}, [%p_c];",
            f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%p_d], {vector('c', 8)};",
            "SKIP:",
        ]
    )
    run(program(body, {"c": 1024, "d": 1024}), [values, stored], grid=BLOCKS, block=32 * WARPS)
    odd = np.arange(ALL) % 2 == 1
    np.testing.assert_array_equal(stored, np.where(odd[:, None, None], 0, values))


# ---- counters -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "requests", "size"),
    [
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}", 4, 4),
        ("wmma.load.a.sync.aligned.col.m16n16k16.global.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}", 8, 2),
        ("wmma.load.b.sync.aligned.col.m16n16k16.global.s8 {%a0,%a1}", 2, 4),
        ("wmma.load.c.sync.aligned.col.m16n16k16.global.f32 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}", 8, 4),
    ],
)
def test_loads_are_requests_of_registers_or_elements(instruction: str, requests: int, size: int) -> None:
    ptx = program(f"{instruction}, [%p_a];", {"a": 1024})
    outcome = run(ptx, [np.zeros((ALL, 1024), np.uint8)], grid=BLOCKS, block=32 * WARPS)
    site = [i.opcode for i in Program(parse(ptx)).instructions].index("wmma")
    counts = outcome.counters.rows()[site]
    assert counts["global_load_requests"] == ALL * requests
    assert counts["global_load_bytes"] == ALL * requests * 32 * size


def test_work() -> None:
    operands_ = "{%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7}, {%a0}, {%b0,%b1,%b2,%b3}, {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}"
    ptx = program(f"wmma.mma.sync.aligned.row.col.m8n32k16.s32.u8.u8.s32 {operands_};", {"a": 0})
    outcome = run(ptx, [np.zeros(16, np.uint8)], grid=BLOCKS, block=32 * WARPS)
    site = [i.opcode for i in Program(parse(ptx)).instructions].index("wmma")
    counts = outcome.counters.rows()[site]
    assert (counts["mma"], counts["matrix_flops"]) == (ALL, ALL * 2 * 8 * 32 * 16)


# ---- faults and refusals --------------------------------------------------------------------------------------------------

EIGHT = vector("a", 8)
LOAD = f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {EIGHT}, "
NAME = "wmma.load.c.sync.aligned.row.m16n16k16.global.f32"


@pytest.mark.parametrize(
    ("text", "kind", "message", "thread"),
    [
        (
            f"setp.eq.u32 %p, %i3, 33; @%p add.s64 %p_a, %p_a, 32; {LOAD}[%p_a];",
            Undefined,
            f"{NAME} must have the same address in all lanes of a warp; this lane has another",
            33,
        ),
        (
            f"setp.eq.u32 %p, %i3, 35; selp.b32 %b0, 24, 16, %p; {LOAD}[%p_a], %b0;",
            Undefined,
            f"{NAME} must have the same stride in all lanes of a warp; this lane has another",
            35,
        ),
        (f"{LOAD}[%p_a], 8;", Undefined, f"{NAME} has a stride of 8 elements, expected at least 16", 0),
        (
            f"{LOAD}[%p_a+16];",
            Misaligned,
            f"{NAME} has an address that is no multiple of 32",
            0,
        ),
        (
            f"{LOAD}[%p_a], 17;",
            Misaligned,
            f"{NAME} has a stride in bytes that is no multiple of 16",
            0,
        ),
        (f"{LOAD}[%p_a+4096];", OutOfBounds, "read of 4 bytes of global memory", 0),
        (
            f"setp.eq.u32 %p, %i3, 40; @!%p {LOAD}[%p_a];",
            Undefined,
            f"{NAME} must be executed by all lanes of a warp together; this lane is elsewhere",
            40,
        ),
    ],
)
def test_faults(text: str, kind: type[Any], message: str, thread: int) -> None:
    ptx = program("mov.u32 %i3, %tid.x; " + text, {"a": 1024})
    with pytest.raises(kind) as caught:
        run(ptx, [np.zeros((2, 1024), np.uint8)], block=64)
    assert caught.value.message == message
    assert caught.value.where.thread == (thread, 0, 0)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (
            f"wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {EIGHT}, [%p_a]",
            "wmma.load of shape .m16n16k8 does not exist with type .f16",
        ),
        (
            f"wmma.load.c.sync.aligned.row.m16n16k8.global.f16 {EIGHT}, [%p_a]",
            "wmma.load of shape .m16n16k8 does not exist with type .f16",
        ),
        (
            f"wmma.store.d.sync.aligned.row.m8n8k4.global.f32 [%p_a], {EIGHT}",
            "wmma.store of shape .m8n8k4 does not exist with type .f32",
        ),
        (
            "wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%a0}, [%p_a]",
            "wmma.load of type .s4 must have layout .row",
        ),
        (
            "wmma.load.b.sync.aligned.row.m8n8k128.global.b1 {%a0}, [%p_a]",
            "wmma.load of type .b1 must have layout .col",
        ),
        (
            f"wmma.load.a.sync.aligned.m16n16k16.global.f16 {EIGHT}, [%p_a]",
            "wmma.load.a.sync.aligned.m16n16k16.global.f16 has 0 layouts, expected one",
        ),
        (
            f"wmma.load.a.sync.aligned.row.m16n16k16.global {EIGHT}, [%p_a]",
            "wmma.load.a.sync.aligned.row.m16n16k16.global has 0 types, expected one",
        ),
        (
            f"wmma.load.a.sync.aligned.row.m16n16k16.local.f16 {EIGHT}, [%p_a]",
            "the emulator does not know '.local' of wmma.load",
        ),
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0,%a1}, [%p_a]",
            "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 has 2 registers in a vector result, expected 8",
        ),
        (
            f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.s8.s32 {EIGHT}, {{%a0,%a1}}, {{%a0,%a1}}, {EIGHT}",
            "wmma.mma of shape .m16n16k16 does not exist with types .s32.u8.s8.s32",
        ),
        (
            f"wmma.mma.sync.aligned.row.m16n16k16.f32.f32 {EIGHT}, {EIGHT}, {EIGHT}, {EIGHT}",
            "wmma.mma.sync.aligned.row.m16n16k16.f32.f32 has 1 layouts, expected two",
        ),
        (
            f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite {EIGHT}, {EIGHT}, {EIGHT}, {EIGHT}",
            "'.satfinite' is not for wmma.mma with these types",
        ),
        (
            "wmma.mma.xor.popc.sync.aligned.row.row.m8n8k128.s32.b1.b1.s32 {%a0,%a1}, {%a0}, {%a0}, {%a0,%a1}",
            "wmma.mma.xor.popc.sync.aligned.row.row.m8n8k128.s32.b1.b1.s32 must have layouts .row.col",
        ),
    ],
)
def test_refusals(instruction: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        run(program(instruction + ";", {"a": 0}), [np.zeros(16, np.uint8)])
    assert str(caught.value).splitlines()[0].split(": ", 1)[1] == message
