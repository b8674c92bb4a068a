"""Products of batches of matrices: the batch is split in halves down to single matrices, and the results are joined.

With the batch as the last dimension both are renamed registers. So each matrix is multiplied as any other, by matrix instructions
where the types allow it. The code grows with the batch.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.frontend.builder import Builder
from weft.frontend.values import Tensor
from weft.ir import tile

Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""Two matrices and what is added to their product."""


def batched(b: Builder, left: Tensor, right: Tensor, acc: Tensor | None, product: Product) -> Tensor:
    """The products of matrices of rank 2 and more, whose leading sizes are equal."""
    batch = left.shape[:-2]
    if not batch:
        return product(left, right, acc)
    last = [None if x is None else _batch_last(b, x) for x in (left, right, acc)]
    assert last[0] is not None and last[1] is not None, "a product has two operands"
    found = _halved(b, last[0], last[1], last[2], product)
    return b.reshape(_permuted(b, found, (2, 0, 1)), (*batch, *found.shape[:2]))


def _batch_last(b: Builder, x: Tensor) -> Tensor:
    rows, columns = x.shape[-2:]
    count = 1
    for size in x.shape[:-2]:
        count *= size
    return _permuted(b, b.reshape(x, (count, rows, columns)), (1, 2, 0))


def _halved(b: Builder, left: Tensor, right: Tensor, acc: Tensor | None, product: Product) -> Tensor:
    """Of tiles of shape (rows, columns, batch)."""
    if left.shape[2] == 1:
        alone = [None if x is None else b.reshape(x, x.shape[:2]) for x in (left, right, acc)]
        assert alone[0] is not None and alone[1] is not None, "a product has two operands"
        found = product(alone[0], alone[1], alone[2])
        return b.reshape(found, (*found.shape, 1))
    lefts, rights = _halves(b, left), _halves(b, right)
    starts = (None, None) if acc is None else _halves(b, acc)
    first, second = (_halved(b, x, y, z, product) for x, y, z in zip(lefts, rights, starts, strict=True))
    shape = (*first.shape, 2)
    pairs = Tensor(b.emit(tile.JoinOp(first.ssa, second.ssa)).result, first.dtype, shape)
    return b.reshape(pairs, (*first.shape[:2], 2 * first.shape[2]))


def _halves(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    half = (*x.shape[:2], x.shape[2] // 2)
    op = b.emit(tile.SplitOp(b.reshape(x, (*half, 2)).ssa))
    return Tensor(op.first, x.dtype, half), Tensor(op.second, x.dtype, half)


def _permuted(b: Builder, x: Tensor, order: tuple[int, ...]) -> Tensor:
    shape = tuple(x.shape[i] for i in order)
    return Tensor(b.emit(tile.TransOp(x.ssa, order)).result, x.dtype, shape)
