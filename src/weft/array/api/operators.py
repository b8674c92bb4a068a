"""Python's operators on arrays: each names an operation of `weft.semantics.ops` and leaves the rest to the array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn, Self


class Operators(ABC):
    """The operators, in terms of two methods. A comparison is elementwise, so arrays have no hash."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @abstractmethod
    def _binary(self, op: str, other: Any, reflected: bool = False) -> Self:
        """``self op other``, or ``other op self``; NotImplemented where ``other`` is no operand."""

    @abstractmethod
    def _unary(self, op: str) -> Self:
        """``op self``."""

    def __add__(self, other: Any) -> Self:
        return self._binary("+", other)

    def __radd__(self, other: Any) -> Self:
        return self._binary("+", other, True)

    def __sub__(self, other: Any) -> Self:
        return self._binary("-", other)

    def __rsub__(self, other: Any) -> Self:
        return self._binary("-", other, True)

    def __mul__(self, other: Any) -> Self:
        return self._binary("*", other)

    def __rmul__(self, other: Any) -> Self:
        return self._binary("*", other, True)

    def __truediv__(self, other: Any) -> Self:
        return self._binary("/", other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._binary("/", other, True)

    def __floordiv__(self, other: Any) -> Self:
        return self._binary("//", other)

    def __rfloordiv__(self, other: Any) -> Self:
        return self._binary("//", other, True)

    def __mod__(self, other: Any) -> Self:
        return self._binary("%", other)

    def __rmod__(self, other: Any) -> Self:
        return self._binary("%", other, True)

    def __divmod__(self, other: Any) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Self, Self]:
        return other // self, other % self

    def __pow__(self, other: Any) -> Self:
        return self._binary("**", other)

    def __rpow__(self, other: Any) -> Self:
        return self._binary("**", other, True)

    def __and__(self, other: Any) -> Self:
        return self._binary("&", other)

    def __rand__(self, other: Any) -> Self:
        return self._binary("&", other, True)

    def __or__(self, other: Any) -> Self:
        return self._binary("|", other)

    def __ror__(self, other: Any) -> Self:
        return self._binary("|", other, True)

    def __xor__(self, other: Any) -> Self:
        return self._binary("^", other)

    def __rxor__(self, other: Any) -> Self:
        return self._binary("^", other, True)

    def __lshift__(self, other: Any) -> Self:
        return self._binary("<<", other)

    def __rlshift__(self, other: Any) -> Self:
        return self._binary("<<", other, True)

    def __rshift__(self, other: Any) -> Self:
        return self._binary(">>", other)

    def __rrshift__(self, other: Any) -> Self:
        return self._binary(">>", other, True)

    def __matmul__(self, other: Any) -> Self:
        return self._binary("matmul", other)

    def __rmatmul__(self, other: Any) -> Self:
        return self._binary("matmul", other, True)

    def __lt__(self, other: Any) -> Self:
        return self._binary("<", other)

    def __le__(self, other: Any) -> Self:
        return self._binary("<=", other)

    def __gt__(self, other: Any) -> Self:
        return self._binary(">", other)

    def __ge__(self, other: Any) -> Self:
        return self._binary(">=", other)

    def __eq__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare("!=", other)

    def __pos__(self) -> Self:
        return self._unary("pos")

    def __neg__(self) -> Self:
        return self._unary("neg")

    def __invert__(self) -> Self:
        return self._unary("~")

    def __abs__(self) -> Self:
        return self._unary("abs")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise TypeError("arrays are immutable; build another one, for example weft.array.where(mask, value, array)")

    def _compare(self, op: str, other: object) -> Self:
        """An array compared with what is none would be unequal to Python, without a word."""
        outcome = self._binary(op, other)
        if outcome is NotImplemented:
            raise TypeError(f"'{op}' compares arrays with arrays and numbers, found {type(other).__name__}")
        return outcome
