"""Figure 6: gathers of float32 along the rows of [512, k], with random indices, from executed PTX.

The paper has times of its shuffles against gathers through shared memory: up to 14.20 times faster, less beyond [512, 32]. Weft's
kernel is tile IR (`tile.gather`); layouts, plan and code are the compiler's. Seconds are to PTX for weft, and with ptxas for
Triton, whose compiler calls it.
"""

from __future__ import annotations

import numpy as np
from common import WARPS, Kernel, by_triton, equal, finish, launched, parser, show

from weft import dtypes
from weft.ir import tile

ROWS = 512
HEADS = ("tensor", "instructions", "shuffles", "shared wavefronts", "barriers", "spill bytes", "seconds")
METRICS = ("executions", "shuffles", "shared_wavefronts", "barriers")


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
        kernel = Kernel()
        pointers = [
            kernel.emit(tile.ReshapeOp(kernel.argument(data.reshape(-1), dtype), (ROWS, size)))
            for data, dtype in (
                (x, dtypes.float32),
                (index, dtypes.int32),
                (np.zeros(x.size, np.float32), dtypes.float32),
            )
        ]
        source, places = (kernel.emit(tile.LoadOp(pointer)) for pointer in pointers[:2])
        kernel.block.add_op(tile.StoreOp(pointers[2], kernel.emit(tile.GatherOp(source, places, 1))))
        made = [kernel.run(given.target, laid_out=False)]
        if other is not None:
            made.append(launched(other, "gather", [x.reshape(-1), index.reshape(-1), np.zeros(x.size, np.float32)]))
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
