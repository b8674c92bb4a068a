"""A property that is computed once: `functools.cached_property` without the lock that Python 3.11 takes at each first access.

Python 3.12 has no lock there either. Layouts are made by the thousand, and most ask for a hash and for their columns once each:
there the lock took more time than the properties. Two threads may both compute a value, which is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # named as a decorator, like `property`
    """The method's value, kept in the instance's ``__dict__`` under the method's name."""

    def __init__(self, compute: Callable[[Any], T]):
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
