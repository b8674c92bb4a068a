"""Table 4 of the linear layouts paper: products of an integer and a float operand, 784 cases: which compile, and which are right.

The paper gives numbers of cases by pairs of types, not the types nor the shapes. Seven integers (three of 8 bits, two of 16),
seven floats (three of 8 bits, two of 16) and 16 shapes give its numbers, if its "i32/f64" has i32/f32 too, and "i64/f32" i64/f64.
So they are taken here. Both operands are cast to the float's type, those of 8 bits to float16, and multiplied by `tl.dot`.
NumPy has no e4m3 with bias 15, so weft's kernel loads it as bytes, which it takes for float8e4b15.

All cases are compiled, by Triton 3.9 (``--triton``) as far as PTX. One in ``--every`` is executed and compared with NumPy, bit
for bit: the products and sums are small multiples of 1/4, which all types hold.
"""

from __future__ import annotations

from collections import Counter
from itertools import product as pairs
from typing import Any, Final

import ml_dtypes
import numpy as np
from common import WARPS, Array, by_triton, equal, finish, launched, parser, show

import weft
import weft.language as tl
from weft.emulator import Module

INTEGERS: Final = {
    "i1": (np.bool_, "i8"),
    "i8": (np.int8, "i8"),
    "u8": (np.uint8, "i8"),
    "i16": (np.int16, "i16"),
    "u16": (np.uint16, "i16"),
    "i32": (np.int32, "i32"),
    "i64": (np.int64, "i64"),
}
FLOATS: Final = {
    "fp8e4nv": (ml_dtypes.float8_e4m3fn, "f8", "f16"),
    "fp8e5": (ml_dtypes.float8_e5m2, "f8", "f16"),
    "fp8e4b15": (np.uint8, "f8", "e4b15"),
    "fp16": (np.float16, "f16", "f16"),
    "bf16": (ml_dtypes.bfloat16, "f16", "bf16"),
    "fp32": (np.float32, "f32", "f32"),
    "fp64": (np.float64, "f64", "f64"),
}
"""Each type: its array's, the paper's name, and for floats how the kernel multiplies."""
SHAPES: Final = tuple(pairs((16, 32, 64, 128), (32,), (16, 32, 64, 128)))
MERGED: Final = {"i32/f32": "i32/f64", "i64/f64": "i64/f32"}
LEGACY: Final = {
    "i16/f16": "32/64",
    "i16/f32": "32/32",
    "i16/f64": "32/32",
    "i16/f8": "36/96",
    "i32/f16": "32/32",
    "i32/f64": "16/32",
    "i32/f8": "18/48",
    "i64/f16": "32/32",
    "i64/f32": "16/32",
    "i64/f8": "18/48",
    "i8/f16": "36/96",
    "i8/f32": "18/48",
    "i8/f64": "18/48",
    "i8/f8": "30/144",
}
"""What the paper says of Triton before linear layouts; with them all pass."""


@weft.jit
def product(a: Any, b: Any, out: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr) -> None:
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + depth[None, :])
    right = tl.load(b + depth[:, None] * N + columns[None, :])
    if KIND == "e4b15":
        left, right = left.to(tl.float16), right.to(tl.float8e4b15, bitcast=True).to(tl.float16)
    elif KIND == "f16":
        left, right = left.to(tl.float16), right.to(tl.float16)
    elif KIND == "bf16":
        left, right = left.to(tl.bfloat16), right.to(tl.bfloat16)
    elif KIND == "f32":
        left, right = left.to(tl.float32), right.to(tl.float32)
    else:
        left, right = left.to(tl.float64), right.to(tl.float64)
    tl.store(out + rows[:, None] * N + columns[None, :], tl.dot(left, right, input_precision="tf32"))


def label(integer: str, other: str) -> str:
    """The paper's name of a pair."""
    found = f"{INTEGERS[integer][1]}/{FLOATS[other][1]}"
    return MERGED.get(found, found)


def arguments(integer: str, other: str, shape: tuple[int, int, int]) -> tuple[list[Array], Array]:
    """Both operands and zeros, and what the product is."""
    m, n, k = shape
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2 if integer == "i1" else 5, (m, k))
    b = rng.integers(0, 5, (k, n)) / 4
    stored = b.astype(FLOATS[other][0])
    if other == "fp8e4b15":  # the bits of a float16 without its lowest seven and the sign's neighbour
        stored = (b.astype(np.float16).view(np.uint16) >> 7).astype(np.uint8)
    wide = np.float64 if other == "fp64" else np.float32
    return [a.astype(INTEGERS[integer][0]), stored, np.zeros((m, n), wide)], (a @ b).astype(wide)


def request(integer: str, other: str, shape: tuple[int, int, int], target: str) -> dict[str, Any]:
    """What Triton is asked to compile."""
    kind = FLOATS[other][2]
    return {
        "kernel": "product",
        "target": int(target[3:]),
        "signature": {"a": f"*{integer}", "b": f"*{other}", "out": "*fp64" if kind == "f64" else "*fp32"},
        "constants": dict(zip("MNK", shape, strict=True)) | {"KIND": "f16" if kind == "e4b15" else kind},
        "options": {"num_warps": WARPS, "ptx_version": 84},
        "ptxas": False,
    }


def main() -> None:
    """Prints the table."""
    options = parser("Table 4: mixed precision.")
    options.add_argument("--every", type=int, default=4, help="execute one in so many cases (default: 4)")
    options.add_argument("--shapes", type=int, default=len(SHAPES), help="take so many of the shapes only")
    given = options.parse_args()
    cases = [(i, f, shape) for i, f in pairs(INTEGERS, FLOATS) for shape in SHAPES[: given.shapes]]
    others: list[dict[str, Any] | None] = [None] * len(cases)
    if given.triton:
        others = list(by_triton(given.triton, [request(*case, given.target) for case in cases]))
    totals: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    refused: Counter[str] = Counter()
    for number, (case, other) in enumerate(zip(cases, others, strict=True)):
        integer, float_, shape = case
        name, executed = label(integer, float_), number % given.every == number // given.shapes % given.every
        arrays, expected = arguments(*case)
        constants = dict(zip("MNK", shape, strict=True)) | {"KIND": FLOATS[float_][2]}
        made = product.compile(*arrays, **constants, target=given.target, num_warps=WARPS)
        totals[name, "cases"] += 1
        totals[name, "weft"] += 1
        totals[name, "executed"] += executed
        if executed:
            Module(made.ptx).launch(made.symbol, 1, made.threads, arrays, shared=made.shared)
            totals[name, "weft right"] += equal(arrays[2], expected)
            if not equal(arrays[2], expected):
                wrong.append(f"weft, {integer} x {float_}, {shape}")
        if other is None:
            continue
        if "error" in other:
            refused[other["error"].strip().splitlines()[-1]] += 1
            continue
        totals[name, "triton"] += 1
        if executed:
            result = launched(other, "product", [*arrays[:2], np.zeros_like(expected)]).arrays[2]
            totals[name, "triton right"] += equal(result, expected)
    heads = ["pair", "paper: legacy", "paper: linear"]
    heads += ["Triton 3.9: compiled", "right"] if given.triton else []
    rows = []
    for name, legacy in LEGACY.items():
        count, executed = totals[name, "cases"], totals[name, "executed"]
        row = [name, legacy, f"{legacy.partition('/')[2]}/{legacy.partition('/')[2]}"]
        for who in ("triton", "weft") if given.triton else ("weft",):
            row += [f"{totals[name, who]}/{count}", f"{totals[name, f'{who} right']}/{executed}"]
        rows.append(row)
    show(f"Table 4, {given.target}", [*heads, "weft: compiled", "right"], rows, markdown=given.markdown)
    for message, count in refused.items():
        print(f"\nTriton refuses {count} cases: {message}")
    finish(wrong)


if __name__ == "__main__":
    main()
