"""The methods of arrays that are functions of `weft.array` with the array first."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from weft.array.api.advice import missing_method

_Axis = SupportsIndex | Sequence[SupportsIndex] | None


class Methods:
    """`x.NAME(...)` is ``weft.array.NAME(x, ...)``."""

    __slots__ = ()

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module("weft.array"), name)(self, *arguments, **named)

    if not TYPE_CHECKING:  # a name that is missing stays an error to type checkers

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            package = importlib.import_module("weft.array")
            raise AttributeError(missing_method(name, dir(type(self)), package.__all__))

    def to(self, dtype: object) -> Self:
        """The elements converted as the system's explicit cast does; ``astype`` in PyTorch's and Triton's words."""
        return self._call("astype", dtype)

    def round(self, decimals: int = 0) -> Self:
        """To so many decimals, by the system's rule for ties."""
        return self._call("round", decimals)

    def clip(self, min: Any = None, max: Any = None) -> Self:
        """Limited to ``min <= x <= max``."""
        return self._call("clip", min, max)

    clamp = clip

    @property
    def real(self) -> Self:
        """The real part."""
        return self._call("real")

    @property
    def imag(self) -> Self:
        """The imaginary part."""
        return self._call("imag")

    def conj(self) -> Self:
        """The complex conjugate."""
        return self._call("conj")

    def var(self, axis: _Axis = None, keepdims: bool = False, ddof: float | None = None) -> Self:
        """The variance over ``axis``; ``ddof`` is 1 in PyTorch, else 0, unless it is given."""
        return self._call("var", axis, keepdims, ddof)

    def std(self, axis: _Axis = None, keepdims: bool = False, ddof: float | None = None) -> Self:
        """The standard deviation over ``axis``, the square root of `var`."""
        return self._call("std", axis, keepdims, ddof)

    def logsumexp(self, axis: _Axis = None, keepdims: bool = False) -> Self:
        """log(sum(exp(x))) over ``axis``."""
        return self._call("logsumexp", axis, keepdims)

    def cumprod(self, axis: SupportsIndex | None = None) -> Self:
        """The products of the elements up to each along ``axis``."""
        return self._call("cumprod", axis)

    def cummax(self, axis: SupportsIndex | None = None) -> Self:
        """The greatest element up to each along ``axis``."""
        return self._call("cummax", axis)

    def cummin(self, axis: SupportsIndex | None = None) -> Self:
        """The least element up to each along ``axis``."""
        return self._call("cummin", axis)
