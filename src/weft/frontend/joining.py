"""Values where paths meet: flattened to SSA values for the op that joins the paths, and put together again.

Only tiles and tuples of them can differ between paths; a compile-time value must be the same on both, except that a
number meeting a run-time scalar (or another number) becomes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.ir import Block, SSAValue

from weft.dtypes import Kind
from weft.frontend.builder import Builder
from weft.frontend.compound import Compound
from weft.frontend.constness import is_const
from weft.frontend.values import Tensor, Value, is_number, is_tuple, tuple_like


def leaves(value: Value) -> Iterator[Tensor]:
    """The tiles in a value, in order."""
    if isinstance(value, Tensor):
        yield value
    elif is_tuple(value):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, Compound):
        yield from leaves(value.parts)


def rebuild(value: Value, results: Iterator[SSAValue]) -> Value:
    """``value`` with its tiles replaced by ``results``, in order."""
    if isinstance(value, Tensor):
        return Tensor(next(results), value.dtype, value.shape, value.is_pointer, value.weak)
    if is_tuple(value):
        return tuple_like(value, [rebuild(item, results) for item in value])
    if isinstance(value, Compound):
        return value.with_parts(rebuild(value.parts, results))
    return value


def same_type(b: Builder, one: Value, other: Value) -> bool:
    """Whether two values have the same tiles in the same places, and equal compile-time values elsewhere. Pointers differ
    from pointers that only read."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        types = [(x.dtype, x.shape, x.is_pointer, x.weak, x.is_pointer and is_const(b, x)) for x in (one, other)]
        return types[0] == types[1]
    if is_tuple(one) and is_tuple(other):
        pairs: Sequence[tuple[Any, Any]] = list(zip(one, other, strict=False))
        return len(one) == len(other) and all(same_type(b, x, y) for x, y in pairs)
    if isinstance(one, Compound) and isinstance(other, Compound):
        return one.same_kind(other) and same_type(b, one.parts, other.parts)
    if isinstance(one, (Tensor, tuple, Compound)) or isinstance(other, (Tensor, tuple, Compound)):
        return False
    return one is other or (type(one) is type(other) and bool(one == other))


def unify(b: Builder, left: Value, left_block: Block, right: Value, right_block: Block) -> tuple[Value, Value]:
    """Both values, with numbers made run-time scalars (at the end of their blocks) where the other side needs one. Of a
    weakly typed tile and one that is not, neither is."""
    if isinstance(left, Tensor) and isinstance(right, Tensor) and left.weak is not right.weak:
        left, right = left.typed(False), right.typed(False)
    if is_tuple(left) and is_tuple(right) and len(left) == len(right):
        pairs = [unify(b, x, left_block, y, right_block) for x, y in zip(left, right, strict=True)]
        return tuple_like(left, [x for x, _ in pairs]), tuple_like(right, [y for _, y in pairs])
    if isinstance(left, Compound) and isinstance(right, Compound) and left.same_kind(right):
        one, other = unify(b, left.parts, left_block, right.parts, right_block)
        return left.with_parts(one), right.with_parts(other)
    if is_number(left) and is_number(right):
        if not same_type(b, left, right):
            left = _materialise(b, left, None, left_block)
            right = _materialise(b, right, left, right_block)
    elif is_number(left) and isinstance(right, Tensor):
        left = _materialise(b, left, right, left_block)
    elif is_number(right) and isinstance(left, Tensor):
        right = _materialise(b, right, left, right_block)
    return b.widened(left, left_block), b.widened(right, right_block)


def _materialise(b: Builder, number: Any, like: Tensor | None, block: Block) -> Tensor:
    """A number as a scalar at the end of ``block``: of the dtype of ``like`` where that is an integer type with room
    for the integer, else of the literal's own."""
    own = b.semantics.literal(number)
    with b.at(block):
        if (
            like is not None
            and like.dtype.kind is own.dtype.kind is Kind.INTEGER
            and like.dtype.min <= number <= like.dtype.max
        ):
            return b.constant(number, like.dtype).typed(like.weak)
        return b.tensor(number)
