"""Figure 6: gathers of float32 along the rows of [512, k], with random indices, from executed PTX.

The paper has times of its shuffles against gathers through shared memory: up to 14.20 times faster, less beyond [512, 32]. Both
compilers get the same kernel. Seconds are to PTX for weft, and with ptxas for Triton, whose compiler calls it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import WARPS, by_triton, by_weft, equal, finish, launched, parser, show

import weft
import weft.language as tl

ROWS = 512
HEADS = ("tensor", "instructions", "shuffles", "shared wavefronts", "barriers", "spill bytes", "seconds")
METRICS = ("executions", "shuffles", "shared_wavefronts", "barriers")


@weft.jit
def gather(x: Any, index: Any, out: Any, ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> None:
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), 1))


def main() -> None:
    """Prints the table."""
    options = parser("Figure 6: gathers, counted.")
    options.add_argument("--most", type=int, default=128, help="the most columns (default: 128)")
    given = options.parse_args()
    sizes = [1 << bit for bit in range(1, 8) if 1 << bit <= given.most]
    others = [None] * len(sizes)
    if given.triton:
        signature = {"x": "*fp32", "index": "*i32", "out": "*fp32"}
        others = by_triton(
            given.triton,
            [
                {
                    "kernel": "gather",
                    "target": int(given.target[3:]),
                    "signature": signature,
                    "constants": {"ROWS": ROWS, "COLUMNS": size},
                    "options": {"num_warps": WARPS, "ptx_version": 84},
                }
                for size in sizes
            ],
        )
    rng, rows, wrong = np.random.default_rng(6), [], []
    for size, other in zip(sizes, others, strict=True):
        x = rng.standard_normal((ROWS, size)).astype(np.float32)
        index = rng.integers(0, size, (ROWS, size)).astype(np.int32)
        expected = np.take_along_axis(x, index, 1).reshape(-1)
        arrays = [x.reshape(-1), index.reshape(-1), np.zeros(x.size, np.float32)]
        made = [by_weft(gather, arrays, given.target, {"ROWS": ROWS, "COLUMNS": size})]
        if other is not None:
            made.append(launched(other, "gather", arrays))
        for who, one in zip(("weft", "Triton"), made, strict=False):
            if not equal(one.arrays[2], expected):
                wrong.append(f"{who}, [{ROWS}, {size}]")
        cells = [" / ".join(f"{one.count(metric):,}" for one in made) for metric in METRICS]
        spills = " / ".join(one.spills for one in made)
        rows.append([f"[{ROWS},{size}]", *cells, spills, " / ".join(f"{one.seconds:.2f}" for one in made)])
    show(f"Figure 6, {given.target}: weft{' / Triton' if given.triton else ''}", HEADS, rows, markdown=given.markdown)
    finish(wrong)


if __name__ == "__main__":
    main()
