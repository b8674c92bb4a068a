"""A system that continues after a refusal, as if the user had written the cast.

A comparison that stopped at the first refusal would show one line at a time of what a port has to change. So `Lenient` asks the
other systems in which type they compute the operation, and answers as its own system does for operands that were cast
to it; the promotion says so with a `Fallback` step. Where no such cast helps, the refusal stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from weft.dtypes import DType
from weft.semantics import Number, Operand, Promotion, PromotionError, Semantics, Step, Type

REFUSALS: Final = (PromotionError, OverflowError, TypeError, ValueError)
"""What a system raises for an operation that it refuses or does not have."""


@dataclass(frozen=True, slots=True)
class Fallback(Step):
    """The system refused (``text`` says why), and goes on with its operands cast to ``dtype``, as ``system`` computes."""

    dtype: DType
    system: str


def fallback(promotion: Promotion) -> Fallback | None:
    """The step that says that this is no answer of the system itself."""
    return next((step for step in promotion.steps if isinstance(step, Fallback)), None)


@cache
def lenient(system: Semantics, others: tuple[Semantics, ...]) -> Lenient:
    """The only `Lenient` of its kind: what systems answered is remembered by their identity."""
    return Lenient(system, others)


class Lenient(Semantics):
    """``system``, which does as one of ``others`` where it refuses."""

    def __init__(self, system: Semantics, others: Sequence[Semantics]) -> None:
        self.name = system.name
        self.title = system.title
        self._system = system
        self._others = others

    def resolve(self, op: str, *operands: object) -> Promotion:
        """The system's own answer, else that for operands cast as the first of the others would compute it."""
        try:
            return self._system.resolve(op, *operands)
        except REFUSALS as error:
            for other in self._others:
                if (found := _cast(self._system, other, op, operands)) is not None:
                    dtype, promotion = found
                    return promotion.after(Fallback("fallback", str(error), dtype, other.name))
            raise

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return self._system.dtypes

    @property
    def lists(self) -> bool:
        return self._system.lists

    def common(self, *operands: Operand) -> Promotion:
        return self._system.common(*operands)

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        return self._system.binary(op, lhs, rhs)

    def unary(self, op: str, operand: Operand) -> Promotion:
        return self._system.unary(op, operand)

    def reduction(self, op: str, operand: Operand) -> Promotion:
        return self._system.reduction(op, operand)

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        return self._system.ternary(op, value, low, high)

    def literal(self, value: Number) -> Type:
        return self._system.literal(value)

    def cast(self, source: DType, target: DType) -> Promotion:
        return self._system.cast(source, target)

    def number(self, value: Number, dtype: DType) -> Number:
        return self._system.number(value, dtype)

    def named(self, text: str) -> DType:
        return self._system.named(text)

    def arriving(self, op: str, operands: Sequence[object]) -> Sequence[object]:
        return self._system.arriving(op, operands)

    def operand(self, value: object) -> Operand:
        return self._system.operand(value)


def _cast(system: Semantics, other: Semantics, op: str, operands: Sequence[object]) -> tuple[DType, Promotion] | None:
    """The type in which ``other`` computes, and what ``system`` says of operands that have it."""
    try:
        dtype = other.resolve(op, *operands).operands
        return dtype, system.resolve(op, *[dtype] * len(operands))
    except REFUSALS:
        return None
