"""Table 2 of the linear layouts paper: how wide accesses to [512, k] tensors are, by contiguity across dimensions.

A kernel copies ``x[arange(512)[:, None] * k + arange(k)]`` of float8 or float16, with 4 warps. The table has the paper's widths
("Triton-Linear"), and the loads of a thread in Triton 3.9's PTX (``--triton``) and in weft's. Where 512 * k elements are few, a
thread has only so many: weft's loads are then as wide as a thread's part. The copies are executed, and compared.
"""

from __future__ import annotations

import re
from typing import Any, Final

import ml_dtypes
import numpy as np
from common import WARPS, by_triton, equal, finish, launched, parser, show

import weft
import weft.language as tl

ROWS: Final = 512
TYPES: Final = {"f8": (ml_dtypes.float8_e5m2, "fp8e5"), "f16": (np.float16, "fp16")}
PAPER: Final = {
    ("f8", 1): 32,
    **{("f8", k): 128 for k in (2, 4, 8, 16)},
    ("f16", 1): 64,
    **{("f16", k): 128 for k in (2, 4, 8, 16)},
}
"""Bits of an access (table 2, "Triton-Linear")."""
HEADS: Final = ("tensor", "paper", "loads of Triton 3.9", "loads of weft", "bits of a thread")


@weft.jit
def copy(x: Any, out: Any, K: tl.constexpr) -> None:
    """Row i has elements i * K to i * K + K - 1."""
    at = tl.arange(0, 512)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out + at, tl.load(x + at))


def loads(ptx: str) -> str:
    """The loads from global memory in a thread's code, as "2 x 128"."""
    found = [
        int(vector or 1) * int(width) for vector, width in re.findall(r"\bld\.global\S*?(?:\.v(\d))?\.[bu](\d+)\s", ptx)
    ]
    return ", ".join(f"{found.count(width)} x {width}" for width in sorted(set(found)))


def main() -> None:
    """Prints the table."""
    given = parser("Table 2: widths of accesses to [512, k].").parse_args()
    cases = list(PAPER)
    others: list[dict[str, Any] | None] = [None] * len(cases)
    if given.triton:
        others = list(
            by_triton(
                given.triton,
                [
                    {
                        "kernel": "copy",
                        "target": int(given.target[3:]),
                        "signature": {"x": f"*{TYPES[name][1]}", "out": f"*{TYPES[name][1]}"},
                        "constants": {"K": k},
                        "options": {"num_warps": WARPS, "ptx_version": 84},
                    }
                    for name, k in cases
                ],
            )
        )
    rows, wrong = [], []
    for (name, k), other in zip(cases, others, strict=True):
        dtype = TYPES[name][0]
        x = np.random.default_rng(k).integers(0, 60, ROWS * k).astype(dtype)
        out = np.zeros_like(x)
        copy.on(given.target)[(1,)](x, out, K=k, num_warps=WARPS)
        handle = copy.compile(x, out, K=k, num_warps=WARPS, target=given.target)
        if not equal(out, x):
            wrong.append(f"weft, [{ROWS},{k}] {name}")
        if other is not None and not equal(launched(other, "copy", [x, np.zeros_like(x)]).arrays[1], x):
            wrong.append(f"Triton, [{ROWS},{k}] {name}")
        part = x.nbytes * 8 // (32 * WARPS)
        theirs = "-" if other is None else loads(other["ptx"])
        rows.append([f"[{ROWS},{k}] {name}", PAPER[name, k], theirs, loads(handle.ptx), part])
    show(f"Table 2, {given.target}: loads of a thread, count x bits", HEADS, rows, markdown=given.markdown)
    finish(wrong)


if __name__ == "__main__":
    main()
