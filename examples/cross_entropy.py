"""Cross entropy of logits and its gradient in one kernel, which writes the gradient over the logits.

A language model's logits [tokens, vocabulary] are its largest array; their probabilities and gradients would be two more. The
loss of a row with label t is ``log(sum(exp(x))) - x[t]``, and its gradient ``softmax(x) - onehot(t)``. Both need the row's
maximum and its sum of exponentials. One program owns a row and reads it twice: first it computes both in one pass, by
rescaling the sum whenever the maximum grows; then it writes the gradient in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def cross_entropy_kernel(
    logits_ptr, label_ptr, loss_ptr, stride, columns, dloss, IGNORED: tl.constexpr, BLOCK: tl.constexpr
):
    """The loss of one row; its logits become ``dloss`` times its gradient. A row with the label IGNORED has neither."""
    row = tl.program_id(0)
    logits_ptr += row.to(tl.int64) * stride  # the array may have more than 2**31 elements
    label = tl.load(label_ptr + row)
    if label == IGNORED:
        for start in range(0, columns, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            zeros = tl.zeros((BLOCK,), logits_ptr.dtype.element_ty)
            tl.store(logits_ptr + offsets, zeros, mask=offsets < columns)
        tl.store(loss_ptr + row, 0.0)
        return
    chosen = tl.load(logits_ptr + label).to(tl.float32)
    largest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + offsets, mask=offsets < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(x - larger), axis=0)
        largest = larger
    tl.store(loss_ptr + row, tl.log(total) + largest - chosen)
    # Some threads read the label's logit above, and others overwrite it below.
    tl.debug_barrier()
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + offsets, mask=offsets < columns, other=-float("inf")).to(tl.float32)
        gradient = tl.exp(x - largest) / total - tl.where(offsets == label, 1.0, 0.0)
        tl.store(logits_ptr + offsets, (gradient * dloss).to(logits_ptr.dtype.element_ty), mask=offsets < columns)


def cross_entropy(logits: Any, labels: Any, dloss: float, ignored: int = -100, block: int = 4096) -> Any:
    """The losses [rows] of ``logits`` [rows, columns] for ``labels`` [rows], in float32. ``logits`` become the gradient, times
    ``dloss`` (for a mean of losses, the reciprocal of their number)."""
    rows, columns = logits.shape
    losses = np.empty(rows, np.float32)
    cross_entropy_kernel[(rows,)](logits, labels, losses, columns, columns, dloss, IGNORED=ignored, BLOCK=block)
    return losses


def main() -> None:
    """Compare the losses and the gradient with NumPy."""
    random = np.random.default_rng(0)
    logits = 4 * random.standard_normal((6, 1000), np.float32)
    labels = np.array([0, 17, -100, 999, 300, 3], np.int64)

    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    counted = labels != -100
    losses = np.where(counted, -np.log(probabilities[np.arange(6), labels]), 0)
    gradient = (probabilities - (np.arange(1000) == labels[:, None])) * counted[:, None] / counted.sum()

    def run() -> tuple[Any, Any]:
        copy = logits.copy()
        return cross_entropy(copy, labels, float(1 / counted.sum()), block=256), copy

    compare("cross entropy", run, (losses, gradient), 1e-5)


if __name__ == "__main__":
    main()
