"""Reductions and matrix products, once their elements' type is decided.

A mean is no reduction of its own but a sum and a division, done in the type in which the elements compute
(`DType.compute`): the count of a long float16 array is no float16.
"""

from __future__ import annotations

import math
from dataclasses import replace

from weft import dtypes
from weft.array.expression import views
from weft.array.expression.conversion import convert, in_type
from weft.array.expression.nodes import SCANS, Apply, Matmul, Node, Reduce, Scalar
from weft.semantics import Promotion, PromotionError, Semantics, Type
from weft.semantics import arrangement as rules


def reduction(system: Semantics, promotion: Promotion, source: Node, op: str, axes: tuple[int, ...]) -> Node:
    """``op`` over ``axes`` (ascending) of the elements converted to the promotion's operands; its outcome is not yet
    converted to the promotion's result. ``argmax``, ``argmin`` and scans take one axis."""
    elements = in_type(system, source, promotion.operands)
    count = math.prod(source.shape[a] for a in axes)
    if promotion.meaning.endswith("_flushed") and count > 1:  # the element of one is only moved
        plain = replace(promotion, meaning=promotion.meaning.removesuffix("_flushed"))
        outcome = reduction(system, plain, _flushed(elements), op, axes)
        return _flushed(outcome) if outcome.dtype == elements.dtype else outcome
    if op in ("any", "all"):
        return _reduce(in_type(system, elements, dtypes.bool_), op, axes)
    if op == "mean":
        return _mean(system, elements, axes, count)
    if op in ("max", "min", "argmax", "argmin"):
        if not count:
            raise ValueError(f"'{op}' over no elements has no value; axes {axes} of shape {source.shape} are empty")
        if op.startswith("arg"):
            elements = _numbers(op, elements) if _is_max(system) else elements
            return Reduce(_rest(source.shape, axes), promotion.result, source=elements, meaning=op, axes=axes)
        return _reduce(elements, _extreme(system, op, elements), axes)
    if op in SCANS:
        meaning = f"{op}_nan" if op in ("cummax", "cummin") and elements.dtype.is_float else op
        return Reduce(source.shape, elements.dtype, source=elements, meaning=meaning, axes=axes)
    return _reduce(elements, op, axes)


def _flushed(node: Node) -> Node:
    """The node without numbers below the normal range."""
    return Apply(node.shape, node.dtype, meaning="identity_flushed", arguments=(node,))


def product(left: Node, right: Node) -> Node:
    """The matrix product of two nodes of one type; a vector is a row on the left and a column on the right."""
    if not left.shape or not right.shape:
        raise ValueError("'matmul' needs dimensions on both sides; multiply by a scalar with '*'")
    row, column = len(left.shape) == 1, len(right.shape) == 1
    lhs = views.expand_dims(left, 0) if row else left
    rhs = views.expand_dims(right, 1) if column else right
    if lhs.shape[-1] != rhs.shape[-2]:
        raise ValueError(
            f"'matmul' cannot multiply shapes {left.shape} and {right.shape}: "
            f"rows of {lhs.shape[-1]} elements, columns of {rhs.shape[-2]}"
        )
    batch = views.broadcast_shape("matmul", lhs.shape[:-2], rhs.shape[:-2])
    result: Node = Matmul((*batch, lhs.shape[-2], rhs.shape[-1]), lhs.dtype, lhs=lhs, rhs=rhs)
    rank = len(result.shape)
    return views.squeeze(result, (rank - 2,) * row + (rank - 1,) * column)


def _rest(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for a, size in enumerate(shape) if a not in axes)


def _reduce(elements: Node, meaning: str, axes: tuple[int, ...]) -> Node:
    if not axes:
        return elements
    return Reduce(_rest(elements.shape, axes), elements.dtype, source=elements, meaning=meaning, axes=axes)


def _is_max(system: Semantics) -> bool:
    return rules.family(system) == "max"


def _numbers(op: str, elements: Node) -> Node:
    """The elements with the least (greatest) float for NaN, which MAX's ``argmax`` (``argmin``) passes over."""
    dtype = elements.dtype
    if not dtype.is_float:
        return elements
    missing = Apply(elements.shape, dtypes.bool_, meaning="isnan", arguments=(elements,))
    least = views.broadcast_to(Scalar((), dtype, value=-math.inf if op == "argmax" else math.inf), elements.shape)
    return Apply(elements.shape, dtype, meaning="select", arguments=(missing, least, elements))


def _mean(system: Semantics, elements: Node, axes: tuple[int, ...], count: int) -> Node:
    dtype = elements.dtype
    if dtype.is_integer and _is_max(system) and 0 < count <= dtype.max:
        total = _reduce(elements, "sum", axes)
        number = Scalar((), dtype, value=count)
        return Apply(total.shape, dtype, meaning="truncate_divide", arguments=(total, number))
    if not (dtype.is_float or dtype.is_complex):
        raise PromotionError(f"the mean of {elements.dtype} is no {elements.dtype}", "convert with .astype('float32')")
    wide = elements.dtype.compute
    total = _reduce(convert(elements, wide), "sum", axes)
    divisor = Scalar((), wide, value=float(count))
    return convert(
        Apply(total.shape, wide, meaning=_quotient(system, total), arguments=(total, divisor)), elements.dtype
    )


def _quotient(system: Semantics, total: Node) -> str:
    """How sums are divided by their number of elements: as by a number, in JAX's package."""
    if not (system.name.startswith("jax") and total.shape and total.dtype.is_float):
        return "divide"
    return system.binary("/", total.dtype, Type(total.dtype, scalar=True)).meaning


def _extreme(system: Semantics, op: str, elements: Node) -> str:
    """``max`` or ``min``, or the one that gives NaN where there is one, as the system's ``maximum`` and ``minimum`` do."""
    if not elements.dtype.is_float:
        return op
    pairwise = system.binary(f"{op}imum", elements.dtype, elements.dtype).meaning.removesuffix("_flushed")
    return f"{op}_nan" if pairwise.endswith("_nan") else op
