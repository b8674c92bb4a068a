"""``array.at[key].set(value)`` and the like, as users write them; `updates` builds them."""

from __future__ import annotations

from weft.array.api.lazy import Array, as_argument, count_true
from weft.array.building import indexing, updates
from weft.semantics import Number


class At:
    """``array.at``, to be indexed."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: object) -> Place:
        return Place(self._array, key)


class Place:
    """``array.at[key]``: another array with these elements replaced. Indices out of bounds are left out, and an element that is
    named twice is set to the last value."""

    def __init__(self, array: Array, key: object) -> None:
        self._array = array
        self._key = key

    def _update(self, op: str, value: object, array: Array | None = None) -> Array:
        target = self._array if array is None else array
        system = target.semantics
        argument = as_argument(system, "at", value)
        if argument is None:
            raise TypeError(f"'at[].{op}' takes an array or a number, found {type(value).__name__}")
        return Array(updates.update(system, target.value, self._key, op, argument, count_true), system)

    def get(self, mode: str | None = None, fill_value: Number | None = None) -> Array:
        """The elements themselves; ``mode`` is ``clip`` (as indexing does) or ``fill``."""
        if mode not in (None, "clip", "fill"):
            raise ValueError(f"'at[].get' has the modes clip and fill, found '{mode}'")
        if mode is None and not indexing.is_advanced(self._key):
            return self._array[self._key]
        system = self._array.semantics
        value = indexing.read(system, self._array.value, self._key, count_true, mode, fill_value)
        return Array(value, system)

    def set(self, value: object) -> Array:
        """With ``value`` there."""
        return self._update("set", value)

    def add(self, value: object) -> Array:
        """With ``value`` added."""
        return self._update("add", value)

    def multiply(self, value: object) -> Array:
        """Multiplied by ``value``."""
        return self._update("mul", value)

    mul = multiply

    def min(self, value: object) -> Array:
        """The lesser of what is there and ``value``."""
        return self._update("min", value)

    def max(self, value: object) -> Array:
        """The greater of what is there and ``value``."""
        return self._update("max", value)

    def divide(self, value: object) -> Array:
        """Divided by ``value``; the whole array has the quotient's type, as in JAX."""
        return self._array / self._factor(value)

    def power(self, value: object) -> Array:
        """To the power ``value``."""
        return self._array ** self._factor(value)

    def _factor(self, value: object) -> Array:
        """Ones, but for what ``value`` gives here."""
        return self._update("mul", value, Array(updates.ones(self._array.value), self._array.semantics))
