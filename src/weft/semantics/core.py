"""What every system of promotion answers, whatever its rules are.

One would usually give the compiler one promotion function. Here it asks an object (`Semantics`), because the same
expression means something else in Triton, JAX, MAX and DALI: the frontend passes operands and op, and learns the type
both sides are converted to and the type of the result. A compile-time number is passed as the Python number itself,
since several systems decide by its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from weft.dtypes import DType

Number: TypeAlias = bool | int | float
"""A compile-time number."""

Operand: TypeAlias = DType | Number
"""The type of a run-time value, or a compile-time number."""


@dataclass(frozen=True)
class Promotion:
    """Both sides of a binary op are converted to ``operands``; the op is done there and gives ``result``."""

    operands: DType
    result: DType


class PromotionError(TypeError):
    """The system refuses the operation; the message says why and names the cast that makes it legal."""


class Semantics(Protocol):
    """The meaning of Python's operators in one system.

    Binary ops are ``+ - * / // % & | ^ << >> < <= > >= == != where minimum maximum`` (``where``: its last two
    operands), unary ones ``- + ~ not``. Each method raises `PromotionError` for what the system refuses and
    `ValueError` for an op it does not know.
    """

    @property
    def name(self) -> str:
        """How `weft.semantics.get` finds it."""
        ...

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        """The types of ``lhs op rhs``."""
        ...

    def unary(self, op: str, operand: DType) -> DType:
        """The type of ``op operand``."""
        ...

    def literal(self, value: Number) -> DType:
        """The type of a compile-time number that becomes a run-time value by itself."""
        ...

    def reduction(self, op: str, dtype: DType) -> DType:
        """The type in which elements of ``dtype`` are reduced (``sum cumsum max min argmax argmin``).

        It is the result's type too, except for ``argmax`` and ``argmin``, which give indices.
        """
        ...
