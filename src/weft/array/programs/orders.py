"""Reductions of complex numbers that are not done part by part: extremes in NumPy's order, and products.

The greatest number has the greatest real part, and among those the greatest imaginary part. Both are reductions of real numbers,
so they fuse as others do. A NaN in either part makes the extreme NaN, and is the first extreme to ``argmax`` and ``argmin``. A
product is carried from element to element, for which kernels have no reduction of two values: NumPy multiplies (`calls.product`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft import dtypes
from weft.array.expression import views
from weft.array.expression.nodes import Call, Convert, Node, Reduce, Scalar
from weft.array.programs.complexes import Pair, apply

EXTREMES: Final = frozenset({"max", "min", "argmax", "argmin"})
PRODUCTS: Final = frozenset({"prod", "cumprod"})


def extreme(node: Reduce, source: Pair) -> Node | Pair:
    """The parts of a ``max`` or ``min`` of a complex ``source``, or the index of an ``argmax`` or ``argmin``."""
    kind = node.meaning[-3:]
    real, imaginary = source
    part = real.dtype
    worst, nan = (Scalar((), part, float(text)) for text in ("-inf" if kind == "max" else "inf", "nan"))

    def reduced(values: Node, meaning: str) -> Node:
        return Reduce(node.shape, values.dtype, source=values, meaning=meaning, axes=node.axes)

    def beside(value: Node) -> Node:
        return views.broadcast_to(views.expand_dims(value, node.axes), real.shape)

    missing = apply("or", apply("not_equal", real, real), apply("not_equal", imaginary, imaginary))
    first = reduced(real, f"{kind}_nan")
    candidates = apply("select", apply("equal", real, beside(first)), imaginary, worst)
    second = reduced(candidates, f"{kind}_nan")
    undefined = reduced(missing, "any")
    if not node.meaning.startswith("arg"):
        return apply("select", undefined, nan, first), apply("select", undefined, nan, second)
    best = apply("and", apply("equal", real, beside(first)), apply("equal", imaginary, beside(second)))
    found = apply("select", beside(undefined), missing, best)
    return replace(node, meaning="argmax", source=Convert(found.shape, dtypes.int32, source=found))


def product(node: Reduce, source: Pair) -> Pair:
    """The parts of a ``prod`` or ``cumprod``."""
    ways = (("axes", node.axes), ("scan", node.meaning == "cumprod"))
    parts = [
        Call(node.shape, node.dtype.part, meaning="product", arguments=source, parameters=(*ways, ("part", part)))
        for part in ("real", "imag")
    ]
    return parts[0], parts[1]
