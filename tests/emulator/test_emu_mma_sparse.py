"""mma.sp on the machine: products with a dense matrix that has the zeros, metadata placed as the ISA's figures have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import execute, kernel, run
from emulator_isa import LEFT, RIGHT, Formula, accumulator, g, sizes, t, to_matrices, to_registers
from sampling import grid
from weft.emulator import PTXError, Undefined
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse

SPARSE = [
    tuple(line.split()[1:])
    for line in (Path(__file__).parent.parent / "golden" / "emulator_mma.txt").read_text().splitlines()
    if line.startswith("mma.sp ")
]
"""(shape, D, A, B, C) that ptxas accepts."""

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "u8": 8, "s8": 8, "u4": 4, "s4": 4}
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
ACCUMULATORS: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "s32": np.int32}
RANGES = {"u8": (0, 255), "s8": (-128, 127), "u4": (0, 15), "s4": (-8, 7)}

# The stored elements of A: 9.7.14.6.2.1 to 9.7.14.6.2.8 give their rows and the columns they are of. Stored columns are half
# as many, in order: these are the dense fragments of half the contraction.
STORED = {
    ("m16n8k16", 16): LEFT[
        "m16n8k8", "16"
    ],  # a0, a1: g, a2, a3: g + 8; columns 4 t to 4 t + 3, so stored ones 2 t, 2 t + 1
    ("m16n8k32", 16): LEFT["m16n8k16", "16"],
    ("m16n8k8", 32): LEFT["m16n8k4", "tf32"],
    ("m16n8k16", 32): LEFT["m16n8k8", "tf32"],
    ("m16n8k32", 8): LEFT["m16n8k16", "8"],
    ("m16n8k64", 8): LEFT["m16n8k32", "8"],
    ("m16n8k64", 4): LEFT["m16n8k32", "4"],
    ("m16n8k128", 4): LEFT["m16n8k64", "4"],
}

RIGHTS: dict[tuple[str, int], tuple[int, Formula]] = {
    ("m16n8k16", 16): RIGHT["m16n8k16", "16"],
    ("m16n8k32", 16): (8, lambda lane, i: (t(lane) * 2 + (i & 1) + i // 2 * 8, g(lane))),
    ("m16n8k8", 32): RIGHT["m16n8k8", "tf32"],
    ("m16n8k16", 32): (4, lambda lane, i: (t(lane) + i * 4, g(lane))),
    ("m16n8k32", 8): RIGHT["m16n8k32", "8"],
    ("m16n8k64", 8): (16, lambda lane, i: (t(lane) * 4 + (i & 3) + i // 4 * 16, g(lane))),
    ("m16n8k64", 4): RIGHT["m16n8k64", "4"],
    ("m16n8k128", 4): (32, lambda lane, i: (t(lane) * 8 + (i & 7) + i // 8 * 32, g(lane))),
}

GROUPS = {16: (4, 2, 1), 8: (4, 2, 1), 4: (8, 4, 2), 32: (2, 1, 1)}
"""Columns of a group, how many are stored, in runs of how many (9.7.14.6.1)."""

SELECTORS = {
    ("m16n8k16", 16): 4,
    ("m16n8k32", 16): 2,
    ("m16n8k8", 32): 4,
    ("m16n8k16", 32): 2,
    ("m16n8k32", 8): 2,
    ("m16n8k64", 8): 1,
    ("m16n8k64", 4): 2,
    ("m16n8k128", 4): 1,
}
"""How many sparsity selectors there are (9.7.14.6.1)."""


def metadata_bits(shape: str, bits: int, selector: int, row: int, column: int) -> tuple[int, int]:
    """(lane, lowest bit) of the four bits for the group that begins in a column: figures 119, 122, 125, 127, 129, 136, 137, 139,
    146 and 147."""
    first = 4 * (row % 8)
    match shape, bits:
        case "m16n8k16", 16:  # a lane has 16 bits for row g, then 16 for row g + 8
            return first + selector, column + 16 * (row // 8)
        case "m16n8k32", 16:  # the same, the second lane of a pair for columns 16 to 31
            return first + 2 * selector + column // 16, column % 16 + 16 * (row // 8)
        case "m16n8k8", 32:
            return first + selector, 2 * column + 16 * (row // 8)
        case "m16n8k16", 32:
            return first + 2 * selector + column // 8, 2 * (column % 8) + 16 * (row // 8)
        case "m16n8k32", 8:  # a lane has the 32 bits of row g, the next those of row g + 8
            return first + 2 * selector + row // 8, column
        case "m16n8k64", 8:
            return first + row // 8 + 2 * (column // 32), column % 32
        case "m16n8k64", 4:
            return first + 2 * selector + row // 8, column // 2
        case _:
            return first + row // 8 + 2 * (column // 64), column % 64 // 2


def encode(values: NDArray[Any], kind: str) -> NDArray[Any]:
    if kind in DTYPES:
        encoded = values.astype(DTYPES[kind])
        return encoded.view(f"u{encoded.dtype.itemsize}")
    return (values & (1 << BITS[kind]) - 1).astype(np.uint8)


def vector(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def compressed(
    rng: np.random.Generator, shape: str, kind: str, selector: int, descending: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """A dense sparse A, what is stored of it, and a register of metadata; bits that must not be read are random."""
    m, _, k = sizes(shape)
    bits = BITS[kind]
    group, kept, run_ = GROUPS[bits]
    low, high = RANGES.get(kind, (-3, 3))
    dense, stored = np.zeros((m, k), np.int64), np.zeros((m, k // 2), np.int64)
    metadata = [int(word) for word in rng.integers(0, 1 << 32, 32)]
    for row in range(m):
        for column in range(0, k, group):
            lane, bit = metadata_bits(shape, bits, selector, row, column)
            places: list[int] = sorted(rng.permutation(group // run_)[: kept // run_].tolist(), reverse=descending)
            for i, place in enumerate(places):
                for j in range(run_):
                    value = int(rng.integers(low, high + 1))
                    stored[row, column * kept // group + i * run_ + j] = value
                    dense[row, column + place * run_ + j] = value
            field = (0b0100, 0b1110)[places[0]] if bits == 32 else places[0] | places[1] << 2
            metadata[lane] = metadata[lane] & ~(15 << bit) | field << bit
    return dense, stored, np.array(metadata, np.uint32)


@pytest.mark.parametrize(("types", "variant"), grid(2, SPARSE, ["sp", "sp::ordered_metadata"]), ids=str)
def test_every_instruction(types: tuple[str, str, str, str, str], variant: str) -> None:
    shape, d, a, b, c = types
    rng = np.random.default_rng(3)
    m, n, k = sizes(shape)
    bits = BITS[a]
    at_d, at_c = ({"f16": 16}.get(name, 32) for name in (d, c))
    count_d, count_c = 4 * at_d // 32, 4 * at_c // 32
    for selector in range(SELECTORS[shape, bits]):
        low, high = RANGES.get(b, (-3, 3))
        # Without ordered_metadata the first stored element may be the later one.
        parts = [compressed(rng, shape, a, selector, variant == "sp" and warp == 1) for warp in range(2)]
        dense, stored, metadata = (np.stack([part[i] for part in parts]) for i in range(3))
        right, old = rng.integers(low, high + 1, (2, k, n)), rng.integers(-9, 10, (2, m, n))
        inputs: dict[str, tuple[str, Any]] = {"e": ("b32", metadata.ravel())}
        old_bits = old.astype(ACCUMULATORS[c]).view(f"u{at_c // 8}")
        for letter, values, place in (
            ("a", encode(stored, a), (bits, *STORED[shape, bits])),
            ("b", encode(right, b), (bits, *RIGHTS[shape, bits])),
            ("c", old_bits, (at_c, *accumulator(shape))),
        ):
            for i, register in enumerate(to_registers(values, *place)):
                inputs[f"{letter}{i}"] = ("b32", register)
        counts = [sum(name[0] == letter for name in inputs) for letter in "ab"]
        written = (
            f"mma.{variant}.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{c} {vector('d', count_d)}, "
            f"{vector('a', counts[0])}, {vector('b', counts[1])}, {vector('c', count_c)}, %e, {selector};"
        )
        results = execute(written, inputs, {f"d{i}": "b32" for i in range(count_d)})
        found = to_matrices([results[f"d{i}"] for i in range(count_d)], (m, n), at_d, *accumulator(shape))
        np.testing.assert_array_equal(found.view(ACCUMULATORS[d]), dense @ right + old)


@pytest.mark.parametrize(("saturate", "expected"), [("", -(1 << 31) + 15), (".satfinite", (1 << 31) - 1)])
def test_overflow(saturate: str, expected: int) -> None:
    # A stores ones where the metadata say columns 0 and 1 of each four, B is all ones: each sum of products is 16.
    written = (
        f"mma.sp.sync.aligned.m16n8k32.row.col{saturate}.s32.s8.s8.s32 {vector('d', 4)}, "
        "{%a, %a}, {%a, %a}, {%c, %c, %c, %c}, %e, 0;"
    )
    inputs = {"a": 0x01010101, "c": 0x7FFFFFFF, "e": 0x44444444}
    arrays = {name: ("b32", np.full(32, value, np.uint32)) for name, value in inputs.items()}
    results = execute(written, arrays, {f"d{i}": "s32" for i in range(4)})
    for i in range(4):
        np.testing.assert_array_equal(results[f"d{i}"], np.full(32, expected))


@pytest.mark.parametrize("field", range(16))
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("kind", ["f16", "tf32"])
def test_metadata_without_meaning(field: int, ordered: bool, kind: str) -> None:
    # Meaningful (9.7.14.6.1): 0100, 1000, 1001, 1100, 1101, 1110 in order; without order also those of two different places in
    # descending order; for tf32 0100 and 1110.
    ascending = {0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110}
    unordered = set(range(16)) - {0b0000, 0b0101, 0b1010, 0b1111}
    good = {0b0100, 0b1110} if kind == "tf32" else ascending if ordered else unordered
    variant = "::ordered_metadata" if ordered else ""
    shape, columns = ("m16n8k16", "8 to 11") if kind == "f16" else ("m16n8k8", "4 to 5")
    operands = "{%d0,%d1,%d2,%d3}, {%a,%a}, {%a,%a}, {%a,%a,%a,%a}, %e, 1;"
    written = f"mma.sp{variant}.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {operands}"
    metadata = np.full(64, 0x44444444, np.uint32)
    metadata[np.arange(64) % 4 != 1] = 0  # lanes that selector 1 does not mean have nothing to say
    # Lane 13 of the second warp is thread 1 of group 3: bits 24 to 27 are of row 3 + 8, the third group of columns.
    metadata[32 + 13] = 0x40444444 | field << 24
    inputs = {"a": ("b32", np.zeros(64, np.uint32)), "e": ("b32", metadata)}
    outputs = {f"d{i}": "b32" for i in range(4)}
    if field in good:
        execute(written, inputs, outputs, block=64)
        return
    with pytest.raises(Undefined) as caught:
        execute(written, inputs, outputs, block=64)
    assert caught.value.message == (
        f"the sparsity metadata of row 11, columns {columns} are 0b{field:04b}, which mean nothing"
    )
    assert caught.value.where.thread == (45, 0, 0)


def test_work_counts_as_if_a_were_dense() -> None:
    four = "{%c,%d,%d,%d}"
    written = f"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {four}, {four}, {four}, {four}, %e, 0;"
    ptx = kernel(written, {"e": "b32"}, {}, ".reg .b32 %c, %d;")
    outcome = run(ptx, [np.full(64, 0x44444444, np.uint32)], block=64)
    site = [instruction.opcode for instruction in Program(parse(ptx)).instructions].index("mma")
    counts = outcome.counters.rows()[site]
    assert (counts["mma"], counts["matrix_flops"]) == (2, 2 * 2 * 16 * 8 * 32)


@pytest.mark.parametrize(
    ("instruction", "selector", "message"),
    [
        ("m16n8k16.row.col.f32.f16.f16.f32", "4", "{name} has a sparsity selector of 4, expected 0 to 3"),
        ("m16n8k16.row.col.f32.tf32.tf32.f32", "2", "{name} has a sparsity selector of 2, expected 0 to 1"),
        ("m16n8k64.row.col.f32.e4m3.e4m3.f32", "1", "{name} has a sparsity selector of 1, expected 0"),
        ("m16n8k16.row.col.f32.f16.f16.f32", "%e", "an operand of mma must be an integer constant"),
        (
            "m16n8k8.row.col.f32.f16.f16.f32",
            "0",
            "mma.sp of shape .m16n8k8 does not exist with types .f32.f16.f16.f32",
        ),
        ("m16n8k16.row.row.f32.f16.f16.f32", "0", "{name} must have layouts .row.col"),
    ],
)
def test_refusals(instruction: str, selector: str, message: str) -> None:
    name = f"mma.sp.sync.aligned.{instruction}"
    wide = 4 if "k64" in instruction or "tf32" in instruction else 2
    operand = "{" + ",".join(["%a"] * wide) + "}"
    written = f"{name} {{%d,%d,%d,%d}}, {operand}, {operand}, {{%a,%a,%a,%a}}, %e, {selector};"
    ptx = kernel(written, {"a": "b32", "e": "b32"}, {}, ".reg .b32 %d;")
    with pytest.raises(PTXError) as caught:
        run(ptx, [np.zeros(32, np.uint32), np.zeros(32, np.uint32)])
    assert str(caught.value).splitlines()[0].split(": ", 1)[1] == message.format(name=name)
