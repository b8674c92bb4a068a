"""mma with a kind on the machine: fragments as the ISA's figures have them, scales in the lanes that it names, exact products."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import execute, kernel
from emulator_isa import LEFT, RIGHT, Formula, accumulator, g, t, to_matrices, to_registers
from weft.emulator import PTXError, Undefined

DTYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}
NARROW = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
FOUR = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])
PLACES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]

# kind, modifier, type of the scales, scales of a row, the places where they may begin
SCALED = [
    ("mxf8f6f4", "", "ue8m0", 1, (0, 1, 2, 3)),
    ("mxf8f6f4", ".scale_vec::1X", "ue8m0", 1, (0, 3)),
    ("mxf4", "", "ue8m0", 2, (0, 2)),
    ("mxf4", ".scale_vec::2X", "ue8m0", 2, (0, 2)),
    ("mxf4nvf4", ".scale_vec::2X", "ue8m0", 2, (0, 2)),
    ("mxf4nvf4", ".scale_vec::4X", "ue4m3", 4, (0,)),
]


def codes(values: NDArray[Any], name: str, bits: int) -> NDArray[np.uint8]:
    """Elements as a fragment has them: of types narrower than a byte with other bits, which must not be read, around them."""
    found = values.astype(DTYPES[name]).view(np.uint8)
    if bits == 4 or name in ("e4m3", "e5m2"):
        return found
    noise = np.random.default_rng(1).integers(0, 256, values.shape, np.uint8)
    used, shift = (0x3C, 2) if name == "e2m1" else (0x3F, 0)
    return (found << shift & used | noise & ~np.uint8(used)).astype(np.uint8)


def vector(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def sparse(rng: np.random.Generator, k: int, bits: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint32]]:
    """A (16, k) with zeros, what is stored of it, and the registers of metadata: figures of m16n8k64 and m16n8k128."""
    group, run = (8, 2) if bits == 4 else (4, 1)
    dense, stored = np.zeros((16, k)), np.zeros((16, k // 2))
    metadata = np.zeros(32, np.uint32)
    for row, column in itertools.product(range(16), range(0, k, group)):
        places = PLACES[rng.integers(6)]
        for i, place in enumerate(places):
            values = rng.choice(FOUR, run)
            dense[row, column + place * run : column + place * run + run] = values
            stored[row, column // 2 + i * run : column // 2 + i * run + run] = values
        lane = 4 * (row % 8) + row // 8 + 2 * (2 * column // k)
        metadata[lane] |= np.uint32((places[0] | places[1] << 2) << column % (k // 2) * 4 // group)
    return dense, stored, metadata


def product(
    written: str,
    stored: NDArray[Any],
    right: NDArray[Any],
    types: tuple[str, str],
    bits: int,
    shape: str,
    extra: dict[str, tuple[str, Any]],
    accumulators: str = "f32",
) -> tuple[NDArray[Any], NDArray[Any]]:
    """D, and C, of an instruction whose text ends behind C, and then ``extra`` operands."""
    kept = f"m16n8k{stored.shape[1]}"
    wide = 32 if accumulators == "f32" else 16
    dtype = np.float32 if wide == 32 else np.float16
    old = np.random.default_rng(2).integers(-9, 10, (1, 16, 8)).astype(dtype)
    rights = RIGHT[kept, str(bits)] if kept == shape else _right(bits)
    inputs = dict(extra)
    for letter, values, place in (
        ("a", codes(stored[None], types[0], bits), (bits, *LEFT[kept, str(bits)])),
        ("b", codes(right[None], types[1], bits), (bits, *rights)),
        ("c", old.view(f"u{wide // 8}"), (wide, *accumulator(shape))),
    ):
        for i, register in enumerate(to_registers(values, *place)):
            inputs[f"{letter}{i}"] = ("b32", register)
    counts = {letter: sum(name[0] == letter and name[1:].isdigit() for name in inputs) for letter in "abc"}
    operands = ", ".join([vector("d", counts["c"]), *(vector(letter, counts[letter]) for letter in "abc")])
    text = written.replace("OPERANDS", operands)
    results = execute(text, inputs, {f"d{i}": "b32" for i in range(counts["c"])})
    found = to_matrices([results[f"d{i}"] for i in range(counts["c"])], (16, 8), wide, *accumulator(shape))
    return found.view(dtype)[0], old[0]


def _right(bits: int) -> tuple[int, Formula]:
    """B of a sparse product: four registers a thread, of K = 64 bytes or 128 nibbles."""
    per = 32 // bits
    return 4 * per, lambda lane, i: (t(lane) * per + i % per + i // per * 4 * per, g(lane))


@pytest.mark.parametrize("accumulators", ["f32", "f16"])
@pytest.mark.parametrize(("left", "right"), [(a, b) for a in NARROW for b in NARROW])
def test_f8f6f4(left: str, right: str, accumulators: str) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.choice(FOUR, (16, 32)) / 2, rng.choice(FOUR, (32, 8)).round()
    a = a.round()
    written = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{accumulators}.{left}.{right}.{accumulators} OPERANDS;"
    found, old = product(written, a, b, (left, right), 8, "m16n8k32", {}, accumulators)
    np.testing.assert_array_equal(found, a @ b + old)


def lanes_of_a(thread: int) -> Callable[[int], int]:
    """Where the scales of a row are."""
    return lambda row: 4 * (row % 8) + 2 * thread + row // 8


def lanes_of_b(thread: int) -> Callable[[int], int]:
    """Where the scales of a column are."""
    return lambda column: 4 * column + thread


def scale_registers(
    rng: np.random.Generator, rows: int, count: int, kind: str, first: int, lane: Callable[[int], int]
) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Scales (rows, count), and a register a lane with them: other bytes are random."""
    numbers = np.array([0.25, 0.5, 1, 2, 4]) if kind == "ue8m0" else np.array([0.5, 1, 1.5, 3])
    values = rng.choice(numbers, (rows, count)).astype(DTYPES[kind])
    raw = rng.integers(0, 256, (32, 4), np.uint8)
    for row in range(rows):
        raw[lane(row), first : first + count] = values[row].view(np.uint8)
    return values.astype(np.float64), raw.view(np.uint32)[:, 0]


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("kind", "modifier", "scale", "count", "firsts"), SCALED)
def test_scales(kind: str, modifier: str, scale: str, count: int, firsts: tuple[int, ...], is_sparse: bool) -> None:
    """Each byte and thread that may be named; nothing else of the registers is read."""
    rng = np.random.default_rng(4)
    bits = 8 if kind == "mxf8f6f4" else 4
    k = (32 if bits == 8 else 64) << is_sparse
    shape = f"m16n8k{k}"
    types = ("e2m1", "e3m2") if bits == 8 else ("e2m1", "e2m1")
    cases = [(firsts[0], 0, firsts[-1], 3), (firsts[-1], 1, firsts[0], 2), (firsts[-1], 0, firsts[-1], 0)]
    for byte_a, thread_a, byte_b, thread_b in cases:
        b = rng.choice(FOUR, (k, 8))
        extra: dict[str, tuple[str, Any]] = {}
        if is_sparse:
            a, stored, metadata = sparse(rng, k, bits)
            extra["e"] = ("b32", metadata)
        else:
            a = stored = rng.choice(FOUR, (16, k))
        by_a, register_a = scale_registers(rng, 16, count, scale, byte_a, lanes_of_a(thread_a))
        by_b, register_b = scale_registers(rng, 8, count, scale, byte_b, lanes_of_b(thread_b))
        extra |= {"sa": ("b32", register_a), "sb": ("b32", register_b)}
        head = "mma.sp::ordered_metadata" if is_sparse else "mma"
        written = (
            f"{head}.sync.aligned.{shape}.row.col.kind::{kind}.block_scale{modifier}.f32.{types[0]}.{types[1]}.f32.{scale} "
            f"OPERANDS,{' %e, 0,' if is_sparse else ''} %sa, {{{byte_a}, {thread_a}}}, %sb, {{{byte_b}, {thread_b}}};"
        )
        found, old = product(written, stored, b, types, bits, shape, extra)
        left = a * np.repeat(by_a, k // count, axis=1)
        right = b * np.repeat(by_b, k // count, axis=1).T
        np.testing.assert_array_equal(found, left @ right + old)


def test_sparse_without_scales() -> None:
    rng = np.random.default_rng(5)
    a, stored, metadata = sparse(rng, 64, 8)
    b = rng.choice(FOUR, (64, 8))
    written = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m3.e2m1.f32 OPERANDS, %e, 0;"
    found, old = product(written, stored, b, ("e2m3", "e2m1"), 8, "m16n8k64", {"e": ("b32", metadata)})
    np.testing.assert_array_equal(found, a @ b + old)


def test_numbers_in_registers() -> None:
    """byte-id and thread-id may be registers of 16 bits."""
    text = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 "
    rng = np.random.default_rng(6)
    a, b = rng.choice(FOUR, (16, 32)), rng.choice(FOUR, (32, 8))
    by_a, register_a = scale_registers(rng, 16, 1, "ue8m0", 2, lanes_of_a(1))
    by_b, register_b = scale_registers(rng, 8, 1, "ue8m0", 1, lanes_of_b(3))
    numbers = {f"n{i}": ("b16", np.full(32, value, np.uint16)) for i, value in enumerate((2, 1, 1, 3))}
    extra = {"sa": ("b32", register_a), "sb": ("b32", register_b), **numbers}
    written = text + "OPERANDS, {%sa}, {%n0, %n1}, {%sb}, {%n2, %n3};"
    found, old = product(written, a, b, ("e4m3", "e4m3"), 8, "m16n8k32", extra)
    np.testing.assert_array_equal(found, (a * by_a) @ (b * by_b.T) + old)


# ---- what is wrong ---------------------------------------------------------------------------------------------------------

ARGUMENTS = "{%d,%d,%d,%d}, {%r,%r,%r,%r}, {%r,%r}, {%d,%d,%d,%d}"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
NV = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale"


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        (MX, "%r, {4, 0}, %r, {0, 0}", "byte-id 4 of scales of A, expected 0 to 3"),
        (MX, "%r, {0, 2}, %r, {0, 0}", "thread-id 2 of scales of A, expected 0 or 1"),
        (MX, "%r, {0, 0}, %r, {0, 4}", "thread-id 4 of scales of B, expected 0 to 3"),
        (
            f"{NV}.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
            "%r, {0, 0}, %r, {1, 0}",
            "byte-id 1 of scales of B, expected 0 or 2",
        ),
        (
            f"{NV}.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
            "%r, {2, 0}, %r, {0, 0}",
            "byte-id 2 of scales of A, expected 0",
        ),
    ],
)
def test_scales_that_there_are_not(name: str, numbers: str, message: str) -> None:
    inputs = {"r": ("b32", np.zeros(32, np.uint32)), "d": ("f32", np.zeros(32, np.float32))}
    with pytest.raises(Undefined) as raised:
        execute(f"{name} {ARGUMENTS}, {numbers};", inputs, {})
    assert raised.value.message == message


SHAPE = "mma.sync.aligned.m16n8k32.row.col"
TWO = "%r, {0, 0}, %r, {0, 0}"


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        (f"{SHAPE}.kind::f6.f32.e2m1.e2m1.f32", "", "{name} has no kind that there is"),
        (f"{SHAPE}.kind::f8f6f4.f16.e2m1.e2m1.f32", "", "{name}: kind::f8f6f4 has no such types of matrices"),
        (
            f"{SHAPE}.kind::f8f6f4.satfinite.f32.e2m1.e2m1.f32",
            "",
            "the emulator does not know '.satfinite' of mma.kind::f8f6f4",
        ),
        (f"{SHAPE}.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", TWO, "{name} must have the shape m16n8k64"),
        (
            f"{SHAPE}.kind::mxf8f6f4.f32.e2m1.e2m1.f32.ue8m0",
            TWO,
            "kind::mxf8f6f4 and '.block_scale' do not go together",
        ),
        (
            f"{SHAPE}.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue4m3",
            TWO,
            "{name}: scales of this kind are of type .ue8m0",
        ),
        (
            f"{NV}.f32.e2m1.e2m1.f32.ue4m3",
            TWO,
            "the emulator does not know '.no scale_vec' of mma.kind::mxf4nvf4",
        ),
        (
            "mma.sp.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32",
            "%r, 0",
            "{name} must have '.sp::ordered_metadata'",
        ),
    ],
)
def test_refusals(name: str, numbers: str, message: str) -> None:
    inputs = {"r": ("b32", np.zeros(32, np.uint32)), "d": ("f32", np.zeros(32, np.float32))}
    rest = f", {numbers}" if numbers else ""
    with pytest.raises(PTXError) as raised:
        execute(f"{name} {ARGUMENTS}{rest};", inputs, {})
    assert str(raised.value).splitlines()[0].partition(": ")[2] == message.format(name=name)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
def test_ptxas_takes_what_the_emulator_takes(tmp_path: Path) -> None:
    lines: list[str] = []
    for kind, modifier, scale, _, _ in SCALED:
        left = "e3m2" if kind == "mxf8f6f4" else "e2m1"
        k = 32 if kind == "mxf8f6f4" else 64
        types = f"f32.{left}.e2m1.f32.{scale}"
        middle = f"row.col.kind::{kind}.block_scale{modifier}.{types}"
        lines.append(f"mma.sync.aligned.m16n8k{k}.{middle} {ARGUMENTS}, {TWO};")
        wide = ARGUMENTS.replace("{%r,%r}", "{%r,%r,%r,%r}")
        lines.append(f"mma.sp::ordered_metadata.sync.aligned.m16n8k{2 * k}.{middle} {wide}, %r, 0, {TWO};")
    lines.append(f"{SHAPE}.kind::f8f6f4.f32.e2m1.e2m3.f32 {ARGUMENTS};")
    ptx = kernel("\n".join(lines), {"r": "b32", "d": "f32"}, {}, target="sm_120a")
    source = tmp_path / "k.ptx"
    source.write_text(ptx)
    command = ["ptxas", "-arch=sm_120a", "-o", str(tmp_path / "k.cubin"), str(source)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
