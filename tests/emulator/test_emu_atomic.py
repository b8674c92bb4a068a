"""atom and red against threads taking turns one at a time, with Python's integers and exact rationals."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator_exact import BF16, F16, F32, F64, Shape, rounded
from emulator_harness import kernel, run
from weft.emulator.arith.atomics import PAIR, Operation, distinct
from weft.emulator.errors import PTXError, Race, Uninitialised

# ---- what one turn does ------------------------------------------------------------------------------------------

CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
SHAPES: dict[str, Shape] = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def bits_of(kind: str) -> int:
    return 16 if kind == "bf16" else int(kind.lstrip("bfsu"))


def decode(bits: int, kind: str) -> float:
    if kind == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    code = {"f16": "e", "f32": "f", "f64": "d"}[kind]
    return struct.unpack(f"<{code}", bits.to_bytes(bits_of(kind) // 8, "little"))[0]


def encode(value: float, kind: str) -> int:
    if math.isnan(value):
        return CANONICAL[kind]
    if kind == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    code = {"f16": "e", "f32": "f", "f64": "d"}[kind]
    return int.from_bytes(struct.pack(f"<{code}", value), "little")


def float_sum(x: float, y: float, kind: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    total = Fraction(x) + Fraction(y)
    # An exact zero is -0 only if both are.
    zero = -0.0 if math.copysign(1, x) == math.copysign(1, y) == -1 else 0.0
    return rounded(total, SHAPES[kind], "rn", zero)


def float_extreme(x: float, y: float, largest: bool) -> float:
    if math.isnan(x) or math.isnan(y):
        return y if math.isnan(x) else x
    ordered = sorted((x, y), key=lambda v: (v, math.copysign(1, v)))
    return ordered[1] if largest else ordered[0]


def flushed(bits: int) -> int:
    return bits & 0x80000000 if bits & 0x7F800000 == 0 else bits


def turn(name: str, kind: str, old: int, value: int, compare: int = 0, flush: bool = False) -> int:
    """What memory has afterwards, as bits."""
    width = bits_of(kind)
    top = 1 << width
    if name == "exch":
        return value
    if name == "cas":
        return value if old == compare else old
    if kind in SHAPES:
        if flush:
            old, value = flushed(old), flushed(value)
        x, y = decode(old, kind), decode(value, kind)
        result = encode(float_sum(x, y, kind) if name == "add" else float_extreme(x, y, name == "max"), kind)
        return flushed(result) if flush else result
    if name == "inc":
        return 0 if old >= value else old + 1
    if name == "dec":
        return value if old == 0 or old > value else old - 1
    if name in ("and", "or", "xor"):
        return {"and": old & value, "or": old | value, "xor": old ^ value}[name]

    def signed(v: int) -> int:
        return v - top if kind[0] == "s" and v >= top // 2 else v

    if name == "add":
        return (old + value) % top
    return (min if name == "min" else max)(signed(old), signed(value)) % top


# ---- the arithmetic ------------------------------------------------------------------------------------------------

OPERATIONS = [
    *((name, kind) for name in ("min", "max") for kind in ("u32", "s32", "u64", "s64", "f16", "bf16")),
    *(("add", kind) for kind in ("u32", "s32", "u64", "f32", "f64", "f16", "bf16")),
    *((name, kind) for name in ("and", "or", "xor", "exch", "cas") for kind in ("b32", "b64")),
    ("inc", "u32"),
    ("dec", "u32"),
    ("cas", "b16"),
    ("cas", "b128"),
    ("exch", "b128"),
]


def words(values: list[int], width: int) -> Any:
    if width == 128:
        mask = (1 << 64) - 1
        return np.array([(v & mask, v >> 64) for v in values], PAIR)
    return np.array(values, f"u{width // 8}")


def numbers(array: Any) -> list[int]:
    if array.dtype == PAIR:
        return [int(low) | int(high) << 64 for low, high in array.tolist()]
    return [int(v) for v in array]


def some_bits(r: random.Random, name: str, kind: str) -> int:
    width = bits_of(kind)
    if kind in SHAPES:
        special = [0.0, -0.0, 1.0, -1.0, 0.1, math.inf, -math.inf, math.nan] if r.random() < 0.05 else []
        value = r.choice([*special, r.uniform(-4, 4), r.uniform(-4, 4) * 2.0 ** r.randint(-12, 12)])
        if kind in ("f32", "bf16") and r.random() < 0.1:
            value *= 2.0**-130
        return (
            encode(rounded(Fraction(value), SHAPES[kind], "rn") if math.isfinite(value) else value, kind)
            if not (math.isnan(value) and kind == "f64")
            else 0
        )
    if name in ("inc", "dec", "cas") or r.random() < 0.5:
        return r.randrange(4)
    return r.getrandbits(width)


@pytest.mark.parametrize(("name", "kind"), OPERATIONS)
@pytest.mark.parametrize("places", [1, 2, 40, 1000])
def test_threads_take_turns(name: str, kind: str, places: int) -> None:
    r = random.Random(f"{name} {kind} {places}")
    width = bits_of(kind)
    for count in (1, 2, 33, 200):
        start = [some_bits(r, name, kind) for _ in range(places)]
        where = [r.randrange(places) for _ in range(count)]
        values = [some_bits(r, name, kind) for _ in range(count)]
        compare = [some_bits(r, name, kind) for _ in range(count)]
        memory = words(start, width)
        expected = words(compare, width) if name == "cas" else None
        found = Operation(name, kind)(memory, np.array(where), words(values, width), expected)
        state, before = list(start), list[int]()
        for place, value, wanted in zip(where, values, compare, strict=True):
            before.append(state[place])
            state[place] = turn(name, kind, state[place], value, wanted)
        if kind == "f64":  # NaNs, whose bits are unspecified
            assert [str(decode(v, kind)) for v in numbers(found)] == [str(decode(v, kind)) for v in before]
            assert [str(decode(v, kind)) for v in numbers(memory)] == [str(decode(v, kind)) for v in state]
        else:
            assert numbers(found) == before
            assert numbers(memory) == state


def test_sums_in_global_memory_flush_subnormal_numbers() -> None:
    tiny, normal = 0x0000_0001, 0x0080_0000  # 2**-149, 2**-126
    memory = words([normal, tiny, normal | 1, 0x8000_0001], 32)
    # 2**-126 + subnormal: the subnormal is 0. Subnormal + 0: 0. (1 + 2**-23) 2**-126 - 2**-126 is subnormal: 0, positive.
    values = words([tiny, 0, normal | 0x8000_0000, 0x8000_0000], 32)
    found = Operation("add", "f32", flush=True)(memory, np.arange(4), values)
    assert numbers(found) == [normal, tiny, normal | 1, 0x8000_0001]
    assert numbers(memory) == [normal, 0, 0, 0x8000_0000]


@pytest.mark.parametrize("seed", range(5))
def test_flushed_sums_of_many_threads(seed: int) -> None:
    r = random.Random(seed)
    values = [r.choice([0x0080_0000, 0x8080_0000, 0x0080_0003, 0x8000_0007, 0x0100_0000]) for _ in range(100)]
    where = [r.randrange(2) for _ in range(100)]
    memory = words([0, 0], 32)
    found = Operation("add", "f32", flush=True)(memory, np.array(where), words(values, 32))
    state, before = [0, 0], list[int]()
    for place, value in zip(where, values, strict=True):
        before.append(state[place])
        state[place] = turn("add", "f32", state[place], value, flush=True)
    assert numbers(found) == before
    assert numbers(memory) == state


def test_distinct() -> None:
    assert distinct(np.array([5]))
    assert distinct(np.array([1, 2, 9]))
    assert distinct(np.array([9, 2, 1]))
    assert not distinct(np.array([1, 2, 1]))
    assert not distinct(np.array([3, 3]))


# ---- the instructions ------------------------------------------------------------------------------------------------

_REGISTER = {16: "b16", 32: "b32", 64: "b64", 128: "b128"}


def launch_atomics(
    text: str, memory: Any, threads: int = 64, space: str = "global", outputs: int = 0, registers: str = ""
) -> tuple[Any, Any, Any]:
    """Runs the text once per thread: %p is the address of ``memory`` (copied to shared memory and back for "shared"), %t the
    thread, outputs are written from %o0, %o1, ... (b64 each). What memory and the outputs are afterwards, and the launch."""
    size = memory.nbytes
    results = np.zeros(max(threads * outputs, 1), np.uint64)
    store = "".join(f"st.global.u64 [%w+{8 * i}], %o{i};\n" for i in range(outputs))
    copies = size // 4
    into = "".join(f"ld.global.u32 %c, [%g+{4 * i}]; st.shared.u32 [%p+{4 * i}], %c;\n" for i in range(copies))
    back = "".join(f"ld.shared.u32 %c, [%p+{4 * i}]; st.global.u32 [%g+{4 * i}], %c;\n" for i in range(copies))
    shared = space == "shared"
    ptx = f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry test(.param .u64 memory, .param .u64 results) {{
  .reg .b64 %g, %p, %w, %x<9>, %o<9>; .reg .b32 %t, %c, %r<20>; .reg .b16 %h<20>; .reg .b128 %q<9>; .reg .pred %first;
  .shared .align 16 .b8 buffer[{size}];
  {registers}
  ld.param.u64 %g, [memory]; ld.param.u64 %w, [results];
  mov.u32 %t, %tid.x; mul.wide.u32 %x0, %t, {8 * outputs}; add.s64 %w, %w, %x0;
  setp.eq.u32 %first, %t, 0;
  {"mov.u64 %p, buffer;" if shared else "mov.u64 %p, %g;"}
  {"@!%first bra LOADED;" + into + "LOADED: bar.sync 0;" if shared else ""}
  {text}
  {store}
  {"bar.sync 0; @!%first bra DONE;" + back + "DONE:" if shared else ""}
  ret;
}}
"""
    memory = memory.copy()
    outcome = run(ptx, [memory, results], block=threads)
    return memory, results.reshape(threads, -1) if outputs else results, outcome


SCALARS = [(name, kind) for name, kind in OPERATIONS if kind not in ("f16", "bf16")] + [("add", "f16"), ("add", "bf16")]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("name", "kind"), SCALARS)
def test_atom(name: str, kind: str, space: str) -> None:
    width = bits_of(kind)
    letter = {16: "h", 32: "r", 64: "x", 128: "q"}[width]
    noftz = ".noftz" if width == 16 and name == "add" else ""
    prepare = "and.b32 %r1, %t, 3; cvt.u64.u32 %x1, %r1; cvt.u16.u32 %h1, %r1; mov.b128 %q1, {%x1, %x1};"
    prepare += "cvt.u64.u32 %x3, 0; cvt.u16.u32 %h3, %r3; mov.b128 %q3, {%x3, %x3};"
    if kind == "f32":
        prepare += "cvt.rn.f32.u32 %r1, %r1;"
    if kind == "f64":
        prepare += "cvt.rn.f64.u32 %x1, %r1;"
    third = f", %{letter}1" if name == "cas" else ""
    second = 3 if name == "cas" else 1
    back = {
        16: "cvt.u64.u16 %o0, %h2;",
        32: "cvt.u64.u32 %o0, %r2;",
        64: "mov.b64 %o0, %x2;",
        128: "mov.b128 {%o0, %o1}, %q2;",
    }[width]
    text = f"mov.u32 %r3, 0; {prepare} atom.{space}.{name}{noftz}.{kind} %{letter}2, [%p+16], %{letter}{second}{third}; {back}"
    memory = np.zeros(32, np.uint8)
    outputs = 2 if width == 128 else 1
    after, results, _ = launch_atomics(text, memory, 64, space, outputs)
    state, before = 0, list[int]()
    for thread in range(64):
        value = thread & 3
        if kind in ("f32", "f64"):
            value = encode(float(value), kind)
        if width == 128:
            value |= value << 64
        before.append(state)
        given, compare = (value, 0) if name == "cas" else (value, 0)
        state = turn(name, kind, state, given, compare)
    assert [sum(int(v) << 64 * i for i, v in enumerate(row)) for row in results.tolist()] == before
    assert int.from_bytes(after[16 : 16 + width // 8].tobytes(), "little") == state
    assert not after[:16].any()


@pytest.mark.parametrize(
    ("vector", "kind"),
    [("v2", "f32"), ("v4", "f32"), ("v2", "f16"), ("v8", "bf16"), ("v2", "f16x2"), ("v4", "bf16x2")],
)
@pytest.mark.parametrize("opcode", ["atom", "red"])
def test_vectors_add_element_by_element(vector: str, kind: str, opcode: str) -> None:
    count = int(vector[1])
    letter = "h" if kind in ("f16", "bf16") else "r"
    element = kind.removesuffix("x2")
    total = count * (2 if kind.endswith("x2") else 1)
    pack = "" if element == "f32" else ".noftz"
    lines = list[str]()
    for i in range(count):
        # Element i is i + 1; of packed halves both are.
        bits = encode(float(i + 1), element)
        lines.append(
            f"mov.b{16 if letter == 'h' else 32} %{letter}{i + 8}, {bits | bits << 16 if 'x2' in kind else bits};"
        )
    given = "{" + ", ".join(f"%{letter}{i + 8}" for i in range(count)) + "}"
    back = "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"
    target = f"{back}, [%p]" if opcode == "atom" else "[%p]"
    last = f"%{letter}{count - 1}"
    show = f"cvt.u64.{'u16' if letter == 'h' else 'u32'} %o0, {last};" if opcode == "atom" else "mov.b64 %o0, 0;"
    text = "\n".join(lines) + f"{opcode}.global.add{pack}.{vector}.{kind} {target}, {given}; {show}"
    memory = np.zeros(16, np.uint8)
    after, results, _ = launch_atomics(text, memory, 32, outputs=1)
    dtype: Any = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    got = after[: total * np.dtype(dtype).itemsize].view(dtype).astype(float).tolist()
    each = 2 if kind.endswith("x2") else 1
    assert got == [32.0 * (i // each + 1) for i in range(total)]
    if opcode == "atom":  # thread t finds t times the last element
        bits = [encode(float(t * count), element) for t in range(32)]
        assert results[:, 0].tolist() == [b | b << 16 if each == 2 else b for b in bits]


def test_generic_addresses_and_threads_left_out() -> None:
    text = """
    setp.lt.u32 %first, %t, 40;
    mov.u64 %x1, 4; add.s64 %x1, %x1, %p;
    @%first red.add.u32 [%x1], 1;
    setp.eq.u32 %first, %t, 0;
    """
    after, _, _ = launch_atomics(text, np.zeros(4, np.uint32))
    assert after.tolist() == [0, 40, 0, 0]


def test_generic_shared_addresses() -> None:
    text = "cvta.shared.u64 %x1, %p; red.relaxed.gpu.add.u32 [%x1+8], %t; atom.inc.u32 _, [%x1], 9;"
    after, _, _ = launch_atomics(text, np.zeros(4, np.uint32), space="shared")
    # 64 increments modulo 10.
    assert after.tolist() == [4, 0, sum(range(64)), 0]


def test_what_is_counted() -> None:
    # 64 threads in two warps; in each, 32 threads at 4 addresses: 28 come after the first of their address.
    text = "and.b32 %r1, %t, 3; mul.wide.u32 %x1, %r1, 4; add.s64 %x1, %x1, %p; red.global.add.u32 [%x1], 1;"
    after, _, outcome = launch_atomics(text, np.zeros(4, np.uint32))
    assert after.tolist() == [16] * 4
    counters = outcome.counters
    sites = [s for s in range(counters.sites) if counters.value(s, "atomics")]
    assert len(sites) == 1
    assert counters.value(sites[0], "atomics") == 64
    assert counters.value(sites[0], "atomic_collisions") == 56
    assert counters.value(sites[0], "global_atomic_bytes") == 256


# ---- order -----------------------------------------------------------------------------------------------------------


def flag_program(writer: str, reader: str) -> str:
    """Thread 0 writes data and sets a flag, thread 32 waits for the flag and reads the data."""
    return kernel(
        f"""
        mov.u32 %t, %tid.x; mov.u32 %b, data; setp.eq.u32 %is, %t, 0; @%is st.shared.u32 [%b+4], 0; bar.sync 0;
        mov.u32 %d, 0; setp.eq.u32 %is, %t, 0; @%is bra WRITE; setp.eq.u32 %is, %t, 32; @%is bra WAIT; bra END;
        WRITE: st.shared.u32 [%b], 7; {writer} bra END;
        WAIT: {reader} setp.eq.u32 %is, %v, 0; @%is bra WAIT; ld.shared.u32 %d, [%b];
        END:
        """,
        {},
        {"d": "u32"},
        ".reg .b32 %t, %b, %v; .reg .pred %is; .shared .align 8 .b8 data[8];",
    )


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("atom.release.cta.shared.exch.b32 %v, [%b+4], 1;", "atom.acquire.cta.shared.or.b32 %v, [%b+4], 0;"),
        ("red.release.gpu.shared.add.u32 [%b+4], 1;", "ld.acquire.gpu.shared.u32 %v, [%b+4];"),
        ("atom.acq_rel.gpu.shared.exch.b32 _, [%b+4], 1;", "atom.acq_rel.gpu.shared.cas.b32 %v, [%b+4], 5, 6;"),
        (
            "fence.acq_rel.cta; st.relaxed.cta.shared.u32 [%b+4], 1;",
            "ld.relaxed.cta.shared.u32 %v, [%b+4]; fence.acq_rel.cta;",
        ),
        ("membar.cta; st.volatile.shared.u32 [%b+4], 1;", "ld.volatile.shared.u32 %v, [%b+4]; membar.cta;"),
    ],
)
def test_flags_that_order(writer: str, reader: str) -> None:
    result = np.zeros(64, np.uint32)
    run(flag_program(writer, reader), [result], block=64)
    assert result[32] == 7


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("atom.relaxed.cta.shared.exch.b32 %v, [%b+4], 1;", "atom.relaxed.cta.shared.or.b32 %v, [%b+4], 0;"),
        ("red.shared.add.u32 [%b+4], 1;", "ld.acquire.gpu.shared.u32 %v, [%b+4];"),
        ("atom.release.cta.shared.exch.b32 %v, [%b+4], 1;", "ld.volatile.shared.u32 %v, [%b+4];"),
        ("st.relaxed.cta.shared.u32 [%b+4], 1;", "ld.relaxed.cta.shared.u32 %v, [%b+4]; fence.acq_rel.cta;"),
        ("membar.cta; st.volatile.shared.u32 [%b+4], 1;", "ld.volatile.shared.u32 %v, [%b+4];"),
        # The fence comes after the flag.
        ("st.volatile.shared.u32 [%b+4], 1; membar.cta;", "ld.volatile.shared.u32 %v, [%b+4]; membar.cta;"),
    ],
)
def test_flags_that_do_not(writer: str, reader: str) -> None:
    with pytest.raises(Race) as caught:
        run(flag_program(writer, reader), [np.zeros(64, np.uint32)], block=64)
    assert caught.value.message == (
        "thread (32, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, which thread (0, 0, 0) wrote at PTX line 15; "
        "nothing orders them: a barrier is missing between"
    )


def test_atomics_do_not_race_but_plain_accesses_beside_them_do() -> None:
    clean = "red.shared.add.u32 [%p], 1; atom.shared.max.u32 %r1, [%p], %t;"
    after, _, _ = launch_atomics(clean, np.zeros(4, np.uint32), space="shared")
    assert after[0] > 63
    with pytest.raises(Race, match="updates shared 0x0..0x3, which thread .* wrote at"):
        launch_atomics(
            "setp.eq.u32 %first, %t, 0; @%first st.shared.u32 [%p], 3; red.shared.add.u32 [%p], 1;",
            np.zeros(4, np.uint32),
            space="shared",
        )


def test_an_atomic_reads_what_nobody_has_written() -> None:
    text = "mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.s32 %r1, %r1, %r2; atom.shared.add.u32 %d, [%r1], 1;"
    ptx = kernel(text, {}, {"d": "u32"}, ".reg .b32 %r<4>; .shared .align 4 .b8 s[128];")
    with pytest.raises(Uninitialised) as caught:
        run(ptx, [np.zeros(32, np.uint32)])
    assert caught.value.message == "atomic access of 4 bytes of shared memory that has not been written"


# ---- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("atom.global.add.s64 %x1, [%p], %x2;", "atom.add has no .s64"),
        ("atom.global.min.f32 %r1, [%p], %r2;", "atom.min has no .f32"),
        ("red.global.exch.b32 [%p], %r2;", "there is no red.exch"),
        ("atom.global.add.f16 %h1, [%p], %h2;", ".noftz belongs to the types of 16 bits, and they need it"),
        ("atom.global.add.noftz.u32 %r1, [%p], %r2;", ".noftz belongs to the types of 16 bits, and they need it"),
        ("atom.shared.add.v2.f32 {%r1, %r2}, [%p], {%r3, %r4};", "atom.add of vectors is in global memory"),
        ("atom.global.min.v2.f32 {%r1, %r2}, [%p], {%r3, %r4};", "atom.min has no .v2.f32"),
        ("atom.global.add.v4.f32 {%r1, %r2}, [%p], {%r3, %r4};", "a vector of 2 where one of 4 is needed"),
        ("red.acquire.gpu.global.add.u32 [%p], %r2;", "the emulator does not know '.acquire' of red"),
        ("atom.global.volatile.add.u32 %r1, [%p], %r2;", "the emulator does not know '.volatile' of atom"),
        ("atom.global.cas.b32 %r1, [%p], %r2;", "atom has 3 operands, expected 4"),
        ("atom.global.add.u32 %r1, [%p], %r2, %r3;", "atom has 4 operands, expected 3"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        launch_atomics(text, np.zeros(4, np.uint32))
    assert str(caught.value).split(": ", 1)[1].split("\n")[0] == message
