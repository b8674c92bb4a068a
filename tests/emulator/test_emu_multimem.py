"""multimem: what it reads from and does to all memories of a multicast object, by sums written out in NumPy; its faults."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator_isa_forms import binds, recorded
from weft.emulator import DeviceMemory, Module, OutOfBounds, Profile, Race, Undefined
from weft.emulator.arith.multicast import combined

LANES = 32
DTYPES: dict[str, Any] = {
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "b32": np.uint32,
    "b64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
REGISTERS = {1: ("b8", "b"), 2: ("b16", "h"), 4: ("b32", "r"), 8: ("b64", "l")}


def kernel(text: str, more: str = "") -> Module:
    """Thread i has %a, the address of its 16 bytes of the multicast object, and %o, those of its result."""
    registers = " ".join(f".reg .{kind} %{letter}<9>;" for kind, letter in REGISTERS.values())
    return Module(f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 many, .param .u64 out{more}) {{
  {registers} .reg .b64 %a, %o, %w; .reg .b32 %t, %c; .reg .pred %p;
  ld.param.u64 %a, [many]; ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %w, %t, 16;
  add.u64 %a, %a, %w; add.u64 %o, %o, %w;
  {text}
  ret;
}}""")


def memories(seed: int, count: int, dtype: Any, size: int = 16 * LANES) -> list[np.ndarray[Any, Any]]:
    """Arrays of numbers whose sums are not exact in narrow types; of integers all bits."""
    random = np.random.default_rng(seed)
    elements = size // np.dtype(dtype).itemsize
    if np.dtype(dtype).kind in "iu":
        return [random.integers(0, 256, size, np.uint8).view(dtype) for _ in range(count)]
    return [random.normal(0, 3, elements).astype(dtype) for _ in range(count)]


def split(name: str) -> tuple[str, int, int]:
    """Of ``v4.bf16x2``: the element's type, how many a register has, and registers."""
    vector, _, kind = name.rpartition(".")
    element, _, packed = kind.partition("x")
    return element, int(packed or 1), int(vector[1:] or 1) if vector else 1


def vector(letter: str, parts: int) -> str:
    return f"%{letter}0" if parts == 1 else "{" + ", ".join(f"%{letter}{i}" for i in range(parts)) + "}"


def moves(name: str) -> tuple[str, str, int]:
    """Stores to and loads from %o of the registers of a type, their spelling, and their bytes in all."""
    element, packed, parts = split(name)
    size = np.dtype(DTYPES[element]).itemsize * packed
    kind, letter = REGISTERS[size]
    store = " ".join(f"st.global.{kind} [%o+{i * size}], %{letter}{i};" for i in range(parts))
    return store, vector(letter, parts), size * parts


def launch(module: Module, arrays: list[np.ndarray[Any, Any]], out: np.ndarray[Any, Any], **options: Any) -> Profile:
    memory = DeviceMemory(**{f"m{i}": a for i, a in enumerate(arrays)})
    many = memory.multicast(*(f"m{i}" for i in range(len(arrays))))
    return module.launch("k", 1, LANES, [many, out], memory=memory, **options)


def expected_sum(arrays: list[np.ndarray[Any, Any]], inner: Any) -> np.ndarray[Any, Any]:
    """One after the other, rounded to ``inner`` after each step."""
    total = arrays[0].astype(inner)
    for a in arrays[1:]:
        total = (total.astype(np.float64) + a.astype(np.float64)).astype(inner)
    return total.astype(arrays[0].dtype)


LOADS = [
    ("add.u32", None), ("add.s32", None), ("add.u64", None), ("add.f32", np.float32), ("add.f64", np.float64),
    ("add.v4.f32", np.float32), ("add.f16x2", np.float16), ("add.v8.f16", np.float16), ("add.v4.bf16x2", ml_dtypes.bfloat16),
    ("add.acc::f32.v4.f16x2", np.float32), ("add.acc::f32.v2.bf16", np.float32), ("add.v8.e4m3x2", ml_dtypes.float8_e4m3fn),
    ("add.acc::f16.v4.e5m2", np.float16), ("add.acc::f16.v2.e4m3x4", np.float16), ("min.s32", None), ("max.u64", None),
    ("min.v4.f16x2", None), ("max.v8.bf16", None), ("max.e5m2x4", None), ("and.b32", None), ("or.b64", None), ("xor.b32", None),
]  # fmt: skip


@pytest.mark.parametrize(("form", "inner"), LOADS, ids=[form for form, _ in LOADS])
@pytest.mark.parametrize("semantics", ["", ".acquire.sys"])
def test_ld_reduce(form: str, inner: Any, semantics: str) -> None:
    operation, _, name = form.partition(".")
    name = name.removeprefix("acc::f32.").removeprefix("acc::f16.")
    store, registers, size = moves(name)
    dtype = DTYPES[split(name)[0]]
    arrays = memories(7, 3, dtype)
    before = [a.copy() for a in arrays]
    out = np.zeros_like(arrays[0])
    launch(kernel(f"multimem.ld_reduce{semantics}.{form} {registers}, [%a]; {store}"), arrays, out)
    if operation == "add" and inner is not None:
        expected = expected_sum(arrays, inner)
    elif operation in ("min", "max") and np.dtype(dtype).kind not in "iu":
        chosen = getattr(np, f"{operation}imum").reduce([a.astype(np.float64) for a in arrays])
        expected = chosen.astype(dtype)
    else:
        names = {"min": "minimum", "max": "maximum"} | {name: f"bitwise_{name}" for name in ("and", "or", "xor")}
        expected = getattr(np, names.get(operation, operation)).reduce(arrays, dtype=dtype)
    found, wanted = (a.view(np.uint8).reshape(LANES, 16)[:, :size] for a in (out, expected))
    assert np.array_equal(found, wanted)
    assert all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in zip(arrays, before, strict=True))


def test_the_order_of_sums_and_their_precision() -> None:
    """2048 + 1 + 1 is 2048 in float16 step by step, 2050 with .acc::f32; the same from the other end is 2050."""
    values = [np.full(16, v, np.float16).view(np.uint16) for v in (2048, 1, 1)]
    assert (combined(values, "add", "f16").view(np.float16) == 2048).all()
    assert (combined(values, "add", "f16", "f32").view(np.float16) == 2050).all()
    assert (combined(values[::-1], "add", "f16").view(np.float16) == 2050).all()
    eights = [np.array([v], ml_dtypes.float8_e4m3fn).view(np.uint8) for v in (16, 1, 1, 448)]
    assert combined(eights[:3], "add", "e4m3").view(ml_dtypes.float8_e4m3fn)[0] == 16
    assert combined(eights[:3], "add", "e4m3", "f16").view(ml_dtypes.float8_e4m3fn)[0] == 18
    assert combined(eights, "add", "e4m3").view(ml_dtypes.float8_e4m3fn)[0] == 448
    zeros = [np.array([v], ml_dtypes.float8_e5m2).view(np.uint8) for v in (0.0, -0.0)]
    assert (combined(zeros, "min", "e5m2")[0], combined(zeros, "max", "e5m2")[0]) == (0x80, 0)


@pytest.mark.parametrize(
    "form", ["u32", "weak.global.b64", "relaxed.gpu.global.v4.f32", "release.sys.v8.e4m3", "v4.bf16x2"]
)
def test_st(form: str) -> None:
    name = re.sub(r"^(weak\.|relaxed\.gpu\.|release\.sys\.)?(global\.)?", "", form)
    element, _, parts = split(name)
    _, registers, size = moves(name)
    letter = registers.strip("{")[1]
    each = size // parts
    load = " ".join(f"ld.global.b{8 * each} %{letter}{i}, [%o+{i * each}];" for i in range(parts))
    arrays = memories(3, 4, DTYPES[element])
    out = memories(4, 1, DTYPES[element])[0]
    expected = [a.view(np.uint8).reshape(LANES, 16).copy() for a in arrays]
    for a in expected:
        a[:, :size] = out.view(np.uint8).reshape(LANES, 16)[:, :size]
    launch(kernel(f"{load} multimem.st.{form} [%a], {registers};"), arrays, out)
    assert all(np.array_equal(a.view(np.uint8).reshape(LANES, 16), e) for a, e in zip(arrays, expected, strict=True))


@pytest.mark.parametrize(
    "form", ["add.u32", "max.s64", "xor.b32", "add.v4.f32", "min.v8.f16", "add.f64", "add.v2.bf16x2"]
)
def test_red(form: str) -> None:
    """Two lanes meet at each place."""
    operation, _, name = form.partition(".")
    element, _, parts = split(name)
    _, registers, size = moves(name)
    letter = registers.strip("{")[1]
    each = size // parts
    load = " ".join(f"ld.global.b{8 * each} %{letter}{i}, [%o+{i * each}];" for i in range(parts))
    dtype = DTYPES[element]
    arrays, out = memories(5, 3, dtype, 8 * LANES), memories(6, 1, dtype)[0]
    if np.dtype(dtype).kind not in "iu":
        arrays, out = (
            [np.rint(a.astype(np.float64)).astype(dtype) for a in arrays],
            np.rint(out.astype(np.float64)).astype(dtype),
        )
    halve = "shr.u64 %w, %w, 5; shl.b64 %w, %w, 4; ld.param.u64 %a, [many]; add.u64 %a, %a, %w;"
    rows = [a.reshape(LANES // 2, -1).copy() for a in arrays]
    given, elements = out.reshape(LANES, -1), size // np.dtype(dtype).itemsize
    step = {"add": np.add, "max": np.maximum, "min": np.minimum, "xor": np.bitwise_xor}[operation]
    for row in rows:
        for lane in range(LANES):
            row[lane // 2, :elements] = step(row[lane // 2, :elements], given[lane, :elements])
    launch(kernel(f"{halve} {load} multimem.red.release.gpu.global.{form} [%a], {registers};"), arrays, out)
    assert all(np.array_equal(a.reshape(LANES // 2, -1), row) for a, row in zip(arrays, rows, strict=True))


def test_several_objects_at_once_and_views() -> None:
    """Even lanes use an object over two arrays, odd ones one over parts of three."""
    a, b, c = (np.arange(64, dtype=np.uint32) + 1000 * i for i in range(3))
    memory = DeviceMemory(a=a, b=b, c=c)
    two, three = memory.multicast("a", b), memory.multicast(a[32:], b[32:], c[32:])
    text = """shr.u64 %w, %w, 2; ld.param.u64 %a, [many]; and.b32 %c, %t, 1; setp.ne.u32 %p, %c, 0; @%p ld.param.u64 %a, [out];
        add.u64 %a, %a, %w; ld.param.u64 %o, [sums]; add.u64 %o, %o, %w;
        multimem.ld_reduce.add.u32 %r0, [%a]; st.global.u32 [%o], %r0;"""
    sums = np.zeros(LANES, np.uint32)
    kernel(text, ", .param .u64 sums").launch("k", 1, LANES, [two, three, sums], memory=memory)
    lanes = np.arange(LANES)
    assert np.array_equal(sums, np.where(lanes % 2, (a + b + c)[32 + lanes], (a + b)[lanes]))


def test_an_access_counts_once() -> None:
    arrays = memories(1, 3, np.float32)
    out = np.zeros(4 * LANES, np.float32)
    load = "multimem.ld_reduce.weak.global.add.v4.f32 {%r0, %r1, %r2, %r3}, [%a];"
    body = f"{load} bar.warp.sync -1; multimem.red.add.u32 [%a], %r0;"
    profile = launch(kernel(body), arrays, out)
    assert (profile.total("global_load_bytes"), profile.total("global_load_requests")) == (16 * LANES, 1)
    assert (profile.total("global_load_sectors"), profile.total("global_atomic_bytes")) == (16, 4 * LANES)
    assert profile.total("atomics") == LANES


def test_a_barrier_of_two_ranks() -> None:
    """Each rank writes its part everywhere, raises the flags of both, and waits for its own: this is rank 0, whose flag rank 1
    has raised before."""
    body = (
        "ld.global.u32 %r0, [%o]; multimem.st.u32 [%a], %r0; bar.sync 0;"
        "setp.ne.u32 %p, %t, 0; @%p bra DONE; ld.param.u64 %l0, [many];"
        "multimem.red.release.sys.global.add.u32 [%l0+512], 1;"
        "ld.param.u64 %l1, [flag]; WAIT: ld.acquire.sys.u32 %r1, [%l1]; setp.lt.u32 %p, %r1, 2; @%p bra WAIT; DONE:"
    )
    module = kernel(body, ", .param .u64 flag")
    arrays = [np.zeros(16 * LANES // 4 + 1, np.uint32) for _ in range(2)]
    arrays[0][-1] = 1
    memory = DeviceMemory(first=arrays[0], second=arrays[1])
    given = np.arange(4 * LANES, dtype=np.uint32)
    module.launch("k", 1, LANES, [memory.multicast("first", "second"), given, arrays[0][-1:]], memory=memory)
    assert [int(a[-1]) for a in arrays] == [2, 1]
    assert all(np.array_equal(a[:-1][::4], given[::4]) for a in arrays)


# ---- what is wrong ------------------------------------------------------------------------------------------------------


def test_faults() -> None:
    arrays, out = memories(1, 2, np.uint32), np.zeros(4 * LANES, np.uint32)
    with pytest.raises(OutOfBounds, match=r"(?s)of 'm0' \(512 bytes\)|past the end of 'm0' \(512 bytes\)"):
        launch(kernel("multimem.ld_reduce.add.u32 %r0, [%a+16];"), arrays, out)
    with pytest.raises(OutOfBounds, match="an address of multicast objects, which only multimem can use"):
        launch(kernel("ld.global.u32 %r0, [%a];"), arrays, out)
    with pytest.raises(Undefined, match=r"of no multicast object; DeviceMemory.multicast\(\) makes one"):
        launch(kernel("multimem.st.u32 [%o], %t;"), arrays, out)
    with pytest.raises(Undefined, match="of no multicast object"):
        kernel("multimem.red.add.u32 [%o], %t;").launch("k", 1, LANES, [0, out])
    with pytest.raises(Race, match="reads bytes 16 to 19 of 'm0', which thread"):
        launch(kernel("multimem.st.u32 [%a], %t; xor.b32 %c, %t, 1; mul.wide.u32 %w, %c, 16; ld.param.u64 %a, [many];"
                      "add.u64 %a, %a, %w; multimem.ld_reduce.add.u32 %r0, [%a];"), arrays, out)  # fmt: skip
    assert not any((a != b).any() for a, b in zip(arrays, memories(1, 2, np.uint32), strict=True))


def test_multicast_objects_that_cannot_be() -> None:
    a, b = np.zeros(8, np.uint32), np.zeros(9, np.uint32)
    memory = DeviceMemory(a=a, b=b)
    for arrays, message in (
        (("a", "b"), "one size"),
        ((), "one size"),
        (("a", "a"), "share bytes"),
        ((a[:4], a[2:6]), "share bytes"),
        ((a[::2], b[:4]), "contiguous"),
        (("a", "c"), "there is no array 'c'"),
        ((np.zeros(8, np.uint32),), "no part of 'a', 'b'"),
    ):
        with pytest.raises(ValueError, match=message):
            memory.multicast(*arrays)
    assert memory.multicasts == ()


def test_forms_are_those_of_ptxas() -> None:
    """A sample of what ptxas refuses is refused, too; `test_emu_isa_forms` binds what it takes."""
    patterns = [
        p for p in recorded().patterns if p.instruction in ("multimem.ld_reduce", "multimem.st", "multimem.red")
    ]
    assert len(patterns) > 20
    assert [p.text for p in patterns if p.taken != p.bound] == []
    wrong = [(form, p.target) for p in patterns for i, form in enumerate(p.forms) if not p.taken >> i & 1]
    chosen = wrong[::11]
    assert len(chosen) > 20
    assert [form for form, target in chosen if not binds([form], target)] == []


@pytest.mark.parametrize(
    ("raised", "waited", "ordered"),
    [
        ("multimem.red.release.gpu.global.add.u32 [%l0], 1", "multimem.ld_reduce.acquire.gpu.add.u32 %r1, [%l0]", True),
        ("multimem.st.release.gpu.u32 [%l0], 1", "multimem.ld_reduce.acquire.gpu.add.u32 %r1, [%l0]", True),
        ("multimem.st.relaxed.gpu.u32 [%l0], 1", "multimem.ld_reduce.acquire.gpu.add.u32 %r1, [%l0]", False),
        (
            "multimem.red.release.gpu.global.add.u32 [%l0], 1",
            "multimem.ld_reduce.relaxed.gpu.add.u32 %r1, [%l0]",
            False,
        ),
        (
            "multimem.red.release.cta.global.add.u32 [%l0], 1",
            "multimem.ld_reduce.acquire.gpu.add.u32 %r1, [%l0]",
            False,
        ),
    ],
)
def test_what_orders_blocks(raised: str, waited: str, ordered: bool) -> None:
    """Block 0 writes and raises a flag in both memories, block 1 waits for both and reads."""
    body = f"""mov.u32 %c, %ctaid.x; ld.param.u64 %l0, [many]; add.u64 %l0, %l0, 512;
        setp.ne.u32 %p, %c, 0; @%p bra WAIT; st.global.u32 [%o], 5; {raised}; bra DONE;
        WAIT: {waited}; setp.lt.u32 %p, %r1, 2; @%p bra WAIT; ld.global.u32 %r2, [%o]; DONE:"""
    arrays = [np.zeros(129, np.uint32) for _ in range(2)]
    memory = DeviceMemory(first=arrays[0], second=arrays[1])
    given = [memory.multicast("first", "second"), np.zeros(4, np.uint32)]
    if ordered:
        kernel(body).launch("k", 2, 1, given, memory=memory)
        assert [int(a[-1]) for a in arrays] == [1, 1]
    else:
        with pytest.raises(Race):
            kernel(body).launch("k", 2, 1, given, memory=memory)
