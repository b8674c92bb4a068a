"""Products of batches of matrices, and the same as sums of products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fuzz.products import LARGEST_PRODUCT, dot_sums
from fuzz.scope import text_of
from fuzz.typed import FLOATS, LARGEST_TILE, Shape, Typed, cast, whole
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.generator import Generator

LARGEST_CHECK = 4 * LARGEST_TILE
"""How many products the check sums at most."""


def batched(g: Generator) -> None:
    """``tl.dot`` of two batches of small whole numbers, with or without accumulator."""
    r = g.random
    a = g.pick(lambda v: v.size > 1)
    if a is None:
        return
    batch: Shape = r.choice(((1,), (2,), (2,), (4,), (2, 2), (1, 2)))
    count = math.prod(batch)
    if a.size < count:
        return
    rows = 1 << r.randint(0, (a.size // count).bit_length() - 1)
    inner = a.size // count // rows
    b = g.pick(lambda v: bool(v.shape) and v.size >= count * inner)
    if b is None:
        return
    columns = b.size // count // inner
    products = count * rows * inner * columns
    if count * rows * columns > LARGEST_TILE or products > LARGEST_PRODUCT:
        return
    dtype = r.choice((*FLOATS, dtypes.int8))
    sums = dot_sums(dtype)
    left, right = _operand(g, a, (*batch, rows, inner), dtype), _operand(g, b, (*batch, inner, columns), dtype)
    start = r.choice((None, 0, 5))
    shape = (*batch, rows, columns)
    acc = "" if start is None else f", tl.full({shape}, {start}, tl.{sums.name})"
    text = f"tl.dot({left.text}, {right.text}{acc})"
    value = g.define(Typed(f"({text} + 0.0)" if sums.is_float else text, sums, shape))
    if len(batch) == 1 and products <= LARGEST_CHECK:
        one, other = (f"{cast(x, sums).text}[{at}]" for x, at in ((left, ":, :, :, None"), (right, ":, None, :, :")))
        expected = g.define(Typed(f"(tl.sum({one} * {other}, 2) + {start or 0})", sums, shape))
        g.alike(value, expected.text)


def _operand(g: Generator, value: Typed, shape: Shape, dtype: DType) -> Typed:
    """Small whole numbers made of a value, in a variable of this shape."""
    return g.define(whole(Typed(f"tl.reshape({value.text}, {text_of(g, shape)})", value.dtype, shape), dtype))
