"""``array.at[key].set(value)`` and the like: another array with some elements replaced, as JAX spells it.

The elements are copied once and then written one by one in row-major order, so a place that is named twice is set to the last
value, and added to twice. Places out of bounds are left out. Both sides meet in the type that promotion gives, and the result
is converted back to the array's own: ``x.at[0].add(300)`` of int8 wraps.
"""

from __future__ import annotations

from dataclasses import replace

from weft.array.building import operations
from weft.array.building.indexing import Reader, outside, select
from weft.array.building.operations import Argument, Value, as_operand
from weft.array.building.whole import call, noted, spread
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Input, Node, View
from weft.semantics import Promotion, PromotionError, Semantics


def update(system: Semantics, target: Value, key: object, op: str, value: Argument, count: Reader) -> Value:
    """``target`` with ``value`` set, added, multiplied or compared (``min``, ``max``) at ``key``."""

    def ask() -> Promotion:
        promotion = system.common(target.type, as_operand(value))
        if op in ("add", "mul") and promotion.operands.is_bool:
            raise PromotionError(f"jax's at[].{op} does not take bool", "convert with .astype('int32')")
        if op in ("mul", "min", "max") and promotion.operands.is_complex:
            raise PromotionError(f"weft has no at[].{op} of complex numbers", "update the parts")
        return replace(promotion, result=target.node.dtype, meaning=f"scatter_{op}", weak=target.weak)

    def build(promotion: Promotion) -> Node:
        source = convert(target.node, promotion.operands)
        shape = source.shape
        chosen = select(system, Input(shape, source.dtype), outside(shape, key), count)
        new = operations.meet(system, value, promotion.operands)
        new = views.broadcast_to(new, chosen.shape) if new.shape != chosen.shape else new
        order = [chosen.order.index(axis) for axis in range(len(chosen.order))]
        offset, strides = _strides(chosen.window, shape)
        written = call(
            f"scatter_{op}",
            shape,
            source.dtype,
            source,
            views.permute(new, order),
            *chosen.indices,
            sizes=chosen.window.shape,
            offset=offset,
            strides=strides,
            mode="fill",
        )
        back = system.cast(source.dtype, promotion.result)
        return convert(written, promotion.result, back.meaning)

    return noted(system, "at", (target.type, as_operand(value)), ask, build)


def ones(target: Value) -> Value:
    """An array like it of ones, weak where it is."""
    dtype = target.node.dtype
    number = 1.0 if dtype.is_float else complex(1) if dtype.is_complex else True if dtype.is_bool else 1
    return Value(spread(number, dtype, target.node.shape), target.weak)


def _strides(window: Node, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Where a view of a row-major array begins, and its steps in elements."""
    steps = views.row_major(shape)
    if not isinstance(window, View):
        return 0, steps
    strides = [0] * len(window.shape)
    offset = 0
    for d, step in zip(window.dimensions, steps, strict=True):
        offset += d.start * step
        if d.axis is not None:
            strides[d.axis] += d.step * step
    return offset, tuple(strides)
