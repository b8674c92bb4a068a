"""A sparse A of tcgen05.mma.sp: where its metadata are, and what they say (PTX ISA 9.7.16.10.8).

Half of A is stored. Four bits of metadata say which half of each group of elements along K it is:

    kinds                          group   stored   the four bits
    tf32                           2       1        0b0100 the first, 0b1110 the second
    f16, i8, f8f6f4, mxf8f6f4      4       2        two places of elements, the low bits' first
    mxf4, mxf4nvf4                 8       4        two places of pairs of elements, the low bits' first

The metadata lie in tensor memory, beside the rows of D that they are for: a row of D in lane l has

- in kinds of 16 and 32 bits (32 bits a row) the 16 bits of the first half of K in lane 16 (l / 16) + l % 8, those of the second
  half 8 lanes further, in the low half of the cell where l % 16 is below 8 and in the high half elsewhere; the sparsity selector,
  0 or 1, is added to the column;
- in other kinds (64 bits a row) lane l of two columns, and the selector is 0.

This is CUTLASS's layout of metadata (``tmem_e_frg``, of M = 128 and with .ws). Where 64 rows of a block are scattered over its
lanes, the ISA has a figure only: the emulator's rule is that of other sizes, 16 lanes for 16 rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.fragments import SPARSITY, Sparsity
from weft.emulator.arith.products import meaningful
from weft.emulator.arith.tensor_memory import Cells

_BITS: Final = {"tf32": 32, "mxf4": 4, "mxf4nvf4": 4}
"""Bits of the elements whose rule a kind has, where not 16."""

_WIDE: Final = frozenset({"tf32", "f16"})

_BACKWARDS: Final = 0b0110
"""What the ISA lists beside the places that ascend."""


def rule(kind: str) -> Sparsity:
    """Of which groups how much is stored."""
    return SPARSITY[_BITS.get(kind, 16)]


def selectors(kind: str) -> int:
    """How many sparsity selectors there are."""
    return 2 if kind in _WIDE else 1


def metadata_cells(kind: str, lanes: Cells, selector: int) -> tuple[Cells, Cells]:
    """Lanes and columns, (rows, words), of the metadata of rows that have ``lanes`` (rows,) of D."""
    if kind not in _WIDE:
        return lanes[:, None] + np.zeros(2, np.intp), np.arange(2)[None, :]
    first = lanes - lanes % 16 + lanes % 8
    return first[:, None] + np.array([0, 8]), np.full((1, 2), selector)


def fields(kind: str, lanes: Cells, words: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The four bits for each group, (rows, groups), of the words at `metadata_cells`."""
    if kind in _WIDE:
        upper = (lanes % 16 >= 8)[:, None]
        words = np.where(upper, words >> np.uint32(16), words & np.uint32(0xFFFF))
    count = 4 if kind in _WIDE else 8
    shifts = 4 * np.arange(count, dtype=np.uint32)
    found = words[:, :, None] >> shifts & np.uint32(15)
    return found.astype(np.uint8).reshape(len(words), -1)


def meaning(kind: str) -> NDArray[np.bool_]:
    """Which of the sixteen values of four bits mean something."""
    kept = rule(kind).kept
    known = meaningful(kept, ordered=True)
    if kept > 1:
        known[_BACKWARDS] = True
    return known


def dense(kind: str, stored: NDArray[np.float64], metadata: NDArray[np.uint8]) -> NDArray[np.float64]:
    """A (rows, K) of its stored elements (rows, K / 2) and their metadata (rows, groups)."""
    how = rule(kind)
    rows, groups = int(metadata.shape[0]), int(metadata.shape[1])
    values = stored.reshape(rows, groups, how.kept // how.run, how.run)
    whole = np.zeros((rows, groups, how.group // how.run, how.run), stored.dtype)
    places = (metadata >> 3,) if how.kept == 1 else (metadata & 3, metadata >> 2)
    index: Cells = np.arange(rows)
    group: Cells = np.arange(groups)
    for i, place in enumerate(places):
        whole[index[:, None], group, place] = values[:, :, i]
    return whole.reshape(rows, -1)
