"""Table 3 of the linear layouts paper: sums of float32 along an axis, from seven kinds of layouts; shared memory instructions.

The paper sums its cases of a kind, and does not say which they are. Here a kind has 20: five shapes, both axes, 4 and 8 warps. So
the paper's figures compare with each other only, and weft's with Triton 3.9's (``--triton``). The result is in the slice of
the source's layout for both. Instructions are those of a warp, in the mean of a launch's warps, summed over the cases; from
executed PTX. Results are compared with NumPy's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any, Final

import numpy as np
from common import Made, by_triton, equal, finish, launched, parser, show
from laid import Summed

Shape = tuple[int, int]
SHAPES: Final = ((16, 16), (32, 32), (64, 64), (32, 128), (128, 128))
WARPS: Final = (4, 8)
METRICS: Final = ("shared_requests", "shared_wavefronts", "shuffles", "barriers", "executions")
HEADS: Final = (
    "layout",
    "paper: legacy / linear",
    "passed",
    "shared instructions",
    "shared wavefronts",
    "shuffles",
    "barriers",
    "instructions",
)


def blocked(_: Shape, warps: int) -> str:
    """Rows of four registers by four lanes; warps one below the other."""
    lanes = f"threadsPerWarp = [8, 4], warpsPerCTA = [{warps}, 1]"
    return f"#ttg.blocked<{{sizePerThread = [1, 4], {lanes}, order = [1, 0]}}>"


def mma(_: Shape, warps: int) -> str:
    """Results of ``mma.sync``; half of the warps side by side."""
    return f"#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [{warps // 2}, 2], instrShape = [16, 8]}}>"


def deep_blocked(_: Shape, warps: int) -> str:
    """Of three dimensions: lanes and warps lie along the first as well."""
    lanes = f"threadsPerWarp = [2, 4, 4], warpsPerCTA = [2, {warps // 2}, 1]"
    return f"#ttg.blocked<{{sizePerThread = [1, 1, 4], {lanes}, order = [2, 1, 0]}}>"


def deep_mma(_: Shape, warps: int) -> str:
    """Of three dimensions: warps lie along the first as well."""
    warped = f"warpsPerCTA = [2, {warps // 2}, 1], instrShape = [1, 16, 8]"
    return f"#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, {warped}}}>"


def operand(parent: str) -> str:
    """The left operand of float16."""
    return f"#ttg.dot_op<{{opIdx = 0, parent = {parent}, kWidth = 2}}>"


def sliced(parent: str) -> str:
    """Without the first of three dimensions."""
    return f"#ttg.slice<{{dim = 0, parent = {parent}}}>"


def shuffled(shape: Shape, warps: int) -> str:
    """The tensor's bits dealt to registers, lanes and warps in any order."""
    bits = [[1 << bit, 0] for bit in range(shape[0].bit_length() - 1)]
    bits += [[0, 1 << bit] for bit in range(shape[1].bit_length() - 1)]
    rng = np.random.default_rng([*shape, warps])
    dealt: list[list[int]] = rng.permutation(bits).tolist()
    warp = warps.bit_length() - 1
    kinds = {"register": dealt[5 + warp :], "lane": dealt[:5], "warp": dealt[5 : 5 + warp], "block": []}
    return f"#ttg.linear<{{{', '.join(f'{name} = {bases}' for name, bases in kinds.items())}}}>"


KINDS: Final[dict[str, tuple[Callable[[Shape, int], str], str]]] = {
    "Blocked": (blocked, "20/20: 5,888 / 20/20: 1,388"),
    "MMA": (mma, "20/20: 5,914 / 20/20: 3,517"),
    "MMA Input": (lambda shape, warps: operand(mma(shape, warps)), "0/10 / 10/10: 5,884"),
    "Sliced<Blocked>": (lambda shape, warps: sliced(deep_blocked(shape, warps)), "20/20: 6,703 / 20/20: 4,687"),
    "Sliced<MMA>": (lambda shape, warps: sliced(deep_mma(shape, warps)), "0/10 / 10/10: 320"),
    "Sliced<MMA Input>": (lambda shape, warps: sliced(operand(deep_mma(shape, warps))), "0/10 / 10/10: 545"),
    "Custom": (shuffled, "0/10 / 10/10: 913"),
}
"""Each kind: its layout for a shape and warps, and what the paper says."""


def main() -> None:
    """Prints the table."""
    options = parser("Table 3: reductions, counted.")
    options.add_argument("--most", type=int, default=128, help="the most rows of a tensor (default: 128)")
    given = options.parse_args()
    cases = [
        (kind, warps, Summed(shape, KINDS[kind][0](shape, warps), axis))
        for kind, shape, axis, warps in product(KINDS, SHAPES, (0, 1), WARPS)
        if shape[0] <= given.most
    ]
    others: list[dict[str, Any] | None] = [None] * len(cases)
    if given.triton:
        asked = [
            {
                "ttgir": case.ttgir(given.target, warps),
                "target": int(given.target[3:]),
                "options": {"num_warps": warps, "ptx_version": 84},
            }
            for _, warps, case in cases
        ]
        others = list(by_triton(given.triton, asked))
    totals: Counter[tuple[str, str, str]] = Counter()
    wrong, rng = [], np.random.default_rng(3)
    for (kind, warps, case), other in zip(cases, others, strict=True):
        data = rng.integers(-8, 8, case.shape).astype(np.float32)
        expected = case.expected(data)
        made: list[tuple[str, Made]] = [("weft", case.by_weft(data, given.target, warps))]
        if other is not None and "ptx" in other:
            arrays = [data.reshape(-1), np.zeros_like(expected)]
            made.append(("Triton", launched(other, "kernel", arrays, warps)))
        for who, one in made:
            passed = equal(one.arrays[1], expected)
            totals[kind, who, "passed"] += passed
            if not passed:
                wrong.append(f"{who}, {kind} {case.shape}, axis {case.axis}, {warps} warps")
            for metric in METRICS:
                totals[kind, who, metric] += one.count(metric) // warps
    who = ("Triton", "weft") if given.triton else ("weft",)
    each = len(cases) // len(KINDS)
    rows = [
        [
            kind,
            paper,
            " / ".join(f"{totals[kind, one, 'passed']}/{each}" for one in who),
            *(" / ".join(f"{totals[kind, one, metric]:,}" for one in who) for metric in METRICS),
        ]
        for kind, (_, paper) in KINDS.items()
    ]
    show(f"Table 3, {given.target}: {' / '.join(who)}", HEADS, rows, markdown=given.markdown)
    finish(wrong)


if __name__ == "__main__":
    main()
