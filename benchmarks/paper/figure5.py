"""Figure 5 of the linear layouts paper: conversions between layouts, counted from executed PTX.

The paper has times: conversions inside warps by shuffles are up to 3.93 times as fast as legacy Triton's through shared
memory, by size and type. The layouts are named there in a picture only; these are the pairs of layouts that kernels convert
between, and exchanges of bits inside a warp. A kernel loads a tensor in one layout and stores it in the other. The counts are of
all its warps, Triton 3.9's (``--triton``) before weft's; the conversion's own instructions are those of its line in the debug
information. The stored bits are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
from common import WARPS, Made, by_triton, equal, finish, launched, parser, show
from laid import CONVERSION, FILE, TYPES, Converted

ROW: Final = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
COLUMN: Final = "#ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>"
SQUARE: Final = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MMA: Final = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"
METRICS: Final = ("executions", "shared_wavefronts", "shuffles", "barriers")
HEADS: Final = (
    "conversion",
    "type",
    "instructions",
    "of the conversion",
    "shared wavefronts",
    "shuffles",
    "barriers",
)


def operand(index: int, bits: int) -> str:
    """An operand of `MMA` whose elements have so many bits."""
    return f"#ttg.dot_op<{{opIdx = {index}, parent = {MMA}, kWidth = {32 // bits}}}>"


def bits_of(size: int, exchanged: tuple[tuple[int, int], ...]) -> str:
    """Columns by registers and lanes, rows by lanes, warps and registers; then bits of registers and lanes change places."""
    count = size.bit_length() - 1
    columns = [[0, 1 << bit] for bit in range(count)]
    rows = [[1 << bit, 0] for bit in range(count)]
    places = {"register": columns[:2], "lane": columns[2:5] + rows[:2], "warp": rows[2:4]}
    places["register"] += columns[5:] + rows[4:]
    for register, lane in exchanged:
        a, b = places["register"], places["lane"]
        a[register], b[lane] = b[lane], a[register]
    return f"#ttg.linear<{{{', '.join(f'{name} = {bases}' for name, bases in places.items())}, block = []}}>"


Pair = Callable[[int, int], tuple[str, str]]
CONVERSIONS: Final[dict[str, Pair]] = {
    "in a warp: mma to left operand": lambda bits, _: (MMA, operand(0, bits)),
    "in a warp: rows to 2x2": lambda bits, _: (ROW, SQUARE),
    "in a warp: one bit of a lane": lambda bits, size: (bits_of(size, ()), bits_of(size, ((2, 4),))),
    "in a warp: two bits of lanes": lambda bits, size: (bits_of(size, ()), bits_of(size, ((2, 4), (3, 3)))),
    "in a warp: vectors turned": lambda bits, size: (bits_of(size, ()), bits_of(size, ((0, 3), (1, 4)))),
    "rows to columns": lambda bits, _: (ROW, COLUMN),
    "rows to mma": lambda bits, _: (ROW, MMA),
    "mma to rows": lambda bits, _: (MMA, ROW),
    "rows to left operand": lambda bits, _: (ROW, operand(0, bits)),
    "rows to right operand": lambda bits, _: (ROW, operand(1, bits)),
}
"""From and to, for an element's bits and the rows of a square tensor."""


def own_instructions(made: Made) -> int:
    """Executions of the conversion's own instructions."""
    return sum(row.counts["executions"] for row in made.profile.lines if (row.file, row.line) == (FILE, CONVERSION))


def main() -> None:
    """Prints the table."""
    options = parser("Figure 5: conversions, counted.")
    options.add_argument("--size", type=int, default=64, help="rows and columns of the tensor (default: 64)")
    given = options.parse_args()
    cases: list[tuple[str, Converted]] = []
    for name, type_ in product(CONVERSIONS, TYPES):
        pair = CONVERSIONS[name](8 * TYPES[type_].itemsize, given.size)
        cases.append((name, Converted((given.size, given.size), *pair, type_)))
    others: list[dict[str, Any] | None] = [None] * len(cases)
    if given.triton:
        asked = [
            {
                "ttgir": case.ttgir(given.target, WARPS),
                "target": int(given.target[3:]),
                "options": {"num_warps": WARPS, "ptx_version": 84},
            }
            for _, case in cases
        ]
        others = list(by_triton(given.triton, asked))
    ratios: tuple[list[float], list[float]] = ([], [])
    rows, wrong = [], []
    for (name, case), other in zip(cases, others, strict=True):
        data = np.random.default_rng(5).integers(0, 100, case.shape).astype(TYPES[case.type].numpy)
        made: list[tuple[str, Made]] = [("weft", case.by_weft(data, given.target, WARPS))]
        if other is not None and "ptx" in other:
            arrays = [data.reshape(-1), np.zeros(data.size, data.dtype)]
            made.insert(0, ("Triton", launched(other, "kernel", arrays)))
        for who, one in made:
            if not equal(one.arrays[1].reshape(case.shape), data):
                wrong.append(f"{who}, {name}, {case.type}")
        counts = [[one.count(metric) for _, one in made] for metric in METRICS]
        counts.insert(1, [own_instructions(one) for _, one in made])
        if len(made) > 1:
            for found, (theirs, ours) in zip(ratios, counts[:2], strict=True):
                found.extend([ours / theirs] if theirs and ours else [])
        refused = "refused / " if other is not None and "error" in other else ""
        rows.append([name, case.type, *(refused + " / ".join(f"{n:,}" for n in each) for each in counts)])
    who = "Triton / weft" if given.triton else "weft"
    show(f"Figure 5, {given.target}, {given.size}x{given.size}: {who}", HEADS, rows, markdown=given.markdown)
    if ratios[0]:
        means = [f"{prod(found) ** (1 / len(found)):.2f}" for found in ratios]
        print(f"\nWeft's instructions over Triton's, in geometric mean: {means[0]}; of the conversion: {means[1]}")
    finish(wrong)


if __name__ == "__main__":
    main()
