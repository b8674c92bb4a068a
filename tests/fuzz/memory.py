"""Where a tile's elements lie: offsets that are in bounds by construction, and loads through them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.typed import Shape, Typed, literal
from weft import dtypes
from weft.dtypes import DType


@dataclass(frozen=True)
class Access:
    """The offsets of a tile's elements; programs are ``span`` elements apart, and offsets are below
    ``programs * span``."""

    offsets: Typed
    span: int


def affine(r: random.Random, constant: Callable[[int], str], shape: Shape, injective: bool) -> Access:
    """One offset per element: dimensions in any order, forwards or backwards, dense or with gaps; two elements share
    an offset only if not ``injective``."""
    stride = r.choice((1, 1, 1, 1, 2, 3))
    terms: list[str] = []
    dimensions = list(range(len(shape)))
    if r.random() < 0.7:
        dimensions.reverse()
    else:
        r.shuffle(dimensions)
    for d in dimensions:
        size = shape[d]
        index = f"tl.arange(0, {constant(size)})"
        if r.random() < 0.1:
            index = f"({size - 1} - {index})"
        index += _spread(d, shape)
        if not injective and r.random() < 0.15:
            terms.append(r.choice((f"{index} * 0", f"{index} // 4 * {stride}", f"{index} % 2 * {stride}")))
        else:
            terms.append(index if stride == 1 else f"{index} * {constant(stride)}")
        stride *= size
    span = stride
    base = f"pid * {constant(span)}"
    if r.random() < 0.1:
        base = f"tl.multiple_of({base}, {span})"
    return Access(Typed(f"({' + '.join([base, *terms])})", dtypes.int32, shape), span)


def _spread(axis: int, shape: Shape) -> str:
    """What takes a range along an axis to the rank of a shape."""
    return f"[{', '.join(':' if each == axis else 'None' for each in range(len(shape)))}]" if len(shape) > 1 else ""


def known(r: random.Random, constant: Callable[[int], str], shape: Shape) -> str:
    """A mask that is known at compile time: the indices of one dimension beside a constant."""
    d = r.choice([axis for axis, size in enumerate(shape) if size > 1] or [0])
    index = f"tl.arange(0, {constant(shape[d])}){_spread(d, shape)}"
    bound = r.choice((shape[d] // 2, r.randint(0, min(4, shape[d])), r.randint(0, shape[d])))
    return f"({index} {r.choice(('<', '<', '<', '>=', '!='))} {bound})"


def masked(r: random.Random, name: str, dtype: DType, access: Access, mask: str | None) -> Typed:
    """A load of ``name``; masked-off elements have a defined value."""
    offsets = access.offsets
    advice = r.choice(("",) * 8 + (', cache_modifier=".cg"', ', eviction_policy="evict_first"'))
    if mask is None:
        return Typed(f"tl.load({name} + {offsets.text}{advice})", dtype, offsets.shape)
    zero = "False" if dtype.is_bool else "0.0" if dtype.is_float else "0"
    if r.random() < 0.3:
        return Typed(
            f"tl.where({mask}, tl.load({name} + {offsets.text}, mask={mask}{advice}), {zero})", dtype, offsets.shape
        )
    values = (True, False) if dtype.is_bool else (0.0, -1.5, float("-inf")) if dtype.is_float else (0, 1, 100)
    other = literal(r.choice(values))
    return Typed(f"tl.load({name} + {offsets.text}, {mask}, other={other}{advice})", dtype, offsets.shape)
