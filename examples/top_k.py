"""The K greatest of each row, with their places: how a mixture of experts sends each token to a few of them.

`tl.topk` gives values only. To get their places as well, value and place are packed into one integer of 64 bits, which sorts
by the value: the upper half is the value's bits, the lower half its place. Bits of a positive float sort as an integer does;
those of a negative one sort backwards, so all of them but the sign are inverted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def to_sortable(x):
    """float32 as int32 in the same order; applied to its own result as bits, the way back."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@weft.jit
def route_kernel(
    logits_ptr, weights_ptr, experts_ptr, tokens,
    EXPERTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """BLOCK rows: the K greatest logits of EXPERTS, their places, and the softmax of these K."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.arange(0, COLUMNS)
    inside = (rows < tokens)[:, None] & (columns < EXPERTS)[None, :]
    logits = tl.load(logits_ptr + rows[:, None] * EXPERTS + columns[None, :], mask=inside, other=-float("inf"))
    logits = logits.to(tl.float32) + 0.0  # -0 becomes 0: they are equal, but their bits are not
    # Of equal logits the first wins: the lower half counts down.
    place = (COLUMNS - 1 - columns)[None, :]
    packed = (to_sortable(logits).to(tl.int64) << 32) | place
    chosen = tl.topk(packed, K, dim=1)
    experts = COLUMNS - 1 - (chosen & 0xFFFFFFFF).to(tl.int32)
    value = to_sortable((chosen >> 32).to(tl.int32)).to(tl.float32, bitcast=True)
    out = rows[:, None] * K + tl.arange(0, K)[None, :]
    mask = (rows < tokens)[:, None]
    tl.store(weights_ptr + out, tl.softmax(value, dim=1), mask=mask)
    tl.store(experts_ptr + out, experts, mask=mask)


def route(logits: Any, k: int, block: int = 16) -> tuple[Any, Any]:
    """The weights (float32) and numbers of the ``k`` best experts for each row of ``logits`` [tokens, experts], best first. ``k``
    is a power of two."""
    tokens, experts = logits.shape
    weights, chosen = np.empty((tokens, k), np.float32), np.empty((tokens, k), np.int32)
    columns = weft.next_power_of_2(experts)
    route_kernel[(weft.cdiv(tokens, block),)](
        logits, weights, chosen, tokens, EXPERTS=experts, COLUMNS=columns, K=k, BLOCK=block
    )
    return weights, chosen


def main() -> None:
    """Compare with NumPy's stable sort; some logits are equal."""
    logits = np.random.default_rng(0).standard_normal((37, 24), np.float32).round(1)
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :4]
    powers = np.exp(np.take_along_axis(logits, chosen, axis=1).astype(np.float64))
    compare("top 4 of 24", lambda: route(logits, 4), (powers / powers.sum(axis=1, keepdims=True), chosen), 1e-6)


if __name__ == "__main__":
    main()
