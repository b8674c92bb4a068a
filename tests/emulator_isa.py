"""The fragments of mma.sync as the PTX ISA writes them (9.7.14.5.1 to 9.7.14.5.13): formulas of lane and element, by hand.

The emulator has one picture for nearly all of them; tests hold it, and what it computes, against these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Formula: TypeAlias = Callable[[int, int], tuple[int, int]]
"""(row, column) of element i of a lane."""


def g(lane: int) -> int:
    """groupID."""
    return lane >> 2


def t(lane: int) -> int:
    """threadID_in_group."""
    return lane % 4


# ISA 9.7.14.5.2 to 9.7.14.5.13, as written there: shape, type class, number of elements, formula.

LEFT: dict[tuple[str, str], tuple[int, Formula]] = {
    ("m8n8k4", "f64"): (1, lambda lane, i: (lane >> 2, lane % 4)),
    ("m8n8k16", "8"): (4, lambda lane, i: (g(lane), t(lane) * 4 + i)),
    ("m8n8k32", "4"): (8, lambda lane, i: (g(lane), t(lane) * 8 + i)),
    ("m8n8k128", "b1"): (32, lambda lane, i: (g(lane), t(lane) * 32 + i)),
    ("m16n8k4", "tf32"): (2, lambda lane, i: (g(lane) if i == 0 else g(lane) + 8, t(lane))),
    ("m16n8k4", "f64"): (2, lambda lane, i: (g(lane) if i == 0 else g(lane) + 8, t(lane))),
    ("m16n8k8", "16"): (4, lambda lane, i: (g(lane) if i in (0, 1) else g(lane) + 8, t(lane) * 2 + (i & 1))),
    ("m16n8k8", "tf32"): (
        4,
        lambda lane, i: (g(lane) if i in (0, 2) else g(lane) + 8, t(lane) if i in (0, 1) else t(lane) + 4),
    ),
    ("m16n8k8", "f64"): (
        4,
        lambda lane, i: (g(lane) if i in (0, 2) else g(lane) + 8, t(lane) if i in (0, 1) else t(lane) + 4),
    ),
    ("m16n8k16", "16"): (
        8,
        lambda lane, i: (
            g(lane) if 0 <= i < 2 or 4 <= i < 6 else g(lane) + 8,
            t(lane) * 2 + (i & 1) if i < 4 else t(lane) * 2 + (i & 1) + 8,
        ),
    ),
    ("m16n8k16", "f64"): (
        8,
        lambda lane, i: (
            g(lane) if i % 2 == 0 else g(lane) + 8,
            i * 2 + t(lane) if i % 2 == 0 else i * 2 - 2 + t(lane),
        ),
    ),
    ("m16n8k16", "8"): (8, lambda lane, i: (g(lane) if i < 4 else g(lane) + 8, t(lane) * 4 + (i & 3))),
    ("m16n8k32", "4"): (16, lambda lane, i: (g(lane) if i < 8 else g(lane) + 8, t(lane) * 8 + (i & 7))),
    ("m16n8k32", "8"): (
        16,
        lambda lane, i: (
            g(lane) if 0 <= i < 4 or 8 <= i < 12 else g(lane) + 8,
            t(lane) * 4 + (i & 3) if i < 8 else t(lane) * 4 + (i & 3) + 16,
        ),
    ),
    ("m16n8k64", "4"): (
        32,
        lambda lane, i: (
            g(lane) if 0 <= i < 8 or 16 <= i < 24 else g(lane) + 8,
            t(lane) * 8 + (i & 7) if i < 16 else t(lane) * 8 + (i & 7) + 32,
        ),
    ),
    ("m16n8k128", "b1"): (64, lambda lane, i: (g(lane) if i < 32 else g(lane) + 8, t(lane) * 32 + (i & 0x1F))),
    ("m16n8k256", "b1"): (
        128,
        lambda lane, i: (
            g(lane) if 0 <= i < 32 or 64 <= i < 96 else g(lane) + 8,
            # The ISA has "+ i" for i < 64, which would be beyond the row from i = 32 on: as in m16n8k128, i & 0x1F is meant.
            t(lane) * 32 + (i & 0x1F) if i < 64 else t(lane) * 32 + (i & 0x1F) + 128,
        ),
    ),
}

RIGHT: dict[tuple[str, str], tuple[int, Formula]] = {
    ("m8n8k4", "f64"): (1, lambda lane, i: (lane % 4, lane >> 2)),
    ("m8n8k16", "8"): (4, lambda lane, i: (t(lane) * 4 + i, g(lane))),
    ("m8n8k32", "4"): (8, lambda lane, i: (t(lane) * 8 + i, g(lane))),
    ("m8n8k128", "b1"): (32, lambda lane, i: (t(lane) * 32 + i, g(lane))),
    ("m16n8k4", "tf32"): (1, lambda lane, i: (t(lane), g(lane))),
    ("m16n8k4", "f64"): (1, lambda lane, i: (t(lane), g(lane))),
    ("m16n8k8", "16"): (2, lambda lane, i: (t(lane) * 2 + i, g(lane))),
    ("m16n8k8", "tf32"): (2, lambda lane, i: (t(lane) if i == 0 else t(lane) + 4, g(lane))),
    ("m16n8k8", "f64"): (2, lambda lane, i: (t(lane) if i == 0 else t(lane) + 4, g(lane))),
    ("m16n8k16", "16"): (4, lambda lane, i: (t(lane) * 2 + (i & 1) + (8 if i >= 2 else 0), g(lane))),
    ("m16n8k16", "f64"): (4, lambda lane, i: (t(lane) + i * 4, g(lane))),
    ("m16n8k16", "8"): (4, lambda lane, i: (t(lane) * 4 + i, g(lane))),
    ("m16n8k32", "4"): (8, lambda lane, i: (t(lane) * 8 + (i & 7), g(lane))),
    ("m16n8k32", "8"): (8, lambda lane, i: (t(lane) * 4 + (i & 3) + (16 if i >= 4 else 0), g(lane))),
    ("m16n8k64", "4"): (16, lambda lane, i: (t(lane) * 8 + (i & 7) + (32 if i >= 8 else 0), g(lane))),
    ("m16n8k128", "b1"): (32, lambda lane, i: (t(lane) * 32 + i, g(lane))),
    ("m16n8k256", "b1"): (64, lambda lane, i: (t(lane) * 32 + (i & 0x1F) + (128 if i >= 32 else 0), g(lane))),
}

BITS = {"f64": 64, "tf32": 32, "16": 16, "8": 8, "4": 4, "b1": 1}


# ---- m8n8k4 with f16 (9.7.14.5.1) --------------------------------------------------------------------------------------


def volta_matrix(lane: int) -> int:
    """The ISA's table: computation 1 has lanes 0-3 and 16-19, computation 2 lanes 4-7 and 20-23, ..."""
    table = {0: (0, 1, 2, 3, 16, 17, 18, 19), 1: (4, 5, 6, 7, 20, 21, 22, 23)}
    table |= {2: (8, 9, 10, 11, 24, 25, 26, 27), 3: (12, 13, 14, 15, 28, 29, 30, 31)}
    return next(matrix for matrix, lanes in table.items() if lane in lanes)


def volta_x(lane: int, i: int) -> int:
    return (lane & 0b1) + (i & 0b10)


VOLTA: dict[str, tuple[int, Formula]] = {
    "A row": (
        4,
        lambda lane, i: (lane % 4 if lane < 16 else lane % 4 + 4, i),
    ),
    "A col": (
        4,
        lambda lane, i: (i % 4 if lane < 16 else i % 4 + 4, lane % 4),
    ),
    "B row": (
        4,
        lambda lane, i: (lane % 4, i if lane < 16 else i + 4),
    ),
    "B col": (
        4,
        lambda lane, i: (i, lane % 4 if lane < 16 else lane % 4 + 4),
    ),
    "C f16": (
        8,
        lambda lane, i: (lane % 4 if lane < 16 else lane % 4 + 4, i),
    ),
    "C f32": (
        8,
        lambda lane, i: (
            volta_x(lane, i) if lane < 16 else volta_x(lane, i) + 4,
            (i & 0b100) + (lane & 0b10) + (i & 0b1),
        ),
    ),
}


def sizes(shape: str) -> tuple[int, int, int]:
    """M, N, K of m16n8k16."""
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def accumulator(shape: str) -> tuple[int, Formula]:
    """C and D: one formula for all of m8n8k* and m16n8k*."""
    if shape.startswith("m8n8"):
        return 2, lambda lane, i: (g(lane), t(lane) * 2 + (i & 1))
    return 4, lambda lane, i: (g(lane) if i < 2 else g(lane) + 8, t(lane) * 2 + (i & 1))


def slots(elements: int, bits: int) -> Iterator[tuple[int, int, int, int]]:
    """(lane, element, register, lowest bit in it) of a warp's fragment; elements count from the low bits of register 0 on."""
    width = max(32, bits)
    for lane in range(32):
        for i in range(elements):
            yield lane, i, i * bits // width, i * bits % width


def to_registers(matrices: NDArray[Any], bits: int, elements: int, formula: Formula) -> list[NDArray[Any]]:
    """Matrices (warps, rows, columns) of unsigned integers, or (warps, 4, rows, columns) of m8n8k4, as registers (32 warps,)."""
    width = max(32, bits)
    count = elements * bits // width
    registers = [[0] * (32 * len(matrices)) for _ in range(count)]
    for warp, matrix in enumerate(matrices):
        for lane, i, register, low in slots(elements, bits):
            one = matrix[volta_matrix(lane)] if matrix.ndim == 3 else matrix
            registers[register][32 * warp + lane] |= int(one[formula(lane, i)]) << low
    return [np.array(register, f"u{width // 8}") for register in registers]


def to_matrices(
    registers: list[NDArray[Any]], shape: tuple[int, ...], bits: int, elements: int, formula: Formula
) -> NDArray[Any]:
    """The inverse; ``shape`` without the warps."""
    warps = len(registers[0]) // 32
    matrices = np.zeros((warps, *shape), f"u{max(8, bits) // 8}")
    for warp in range(warps):
        for lane, i, register, low in slots(elements, bits):
            one = matrices[warp, volta_matrix(lane)] if len(shape) == 3 else matrices[warp]
            one[formula(lane, i)] = int(registers[register][32 * warp + lane]) >> low & (1 << bits) - 1
    return matrices
