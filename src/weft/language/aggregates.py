"""Aggregates: classes with named fields, whose values kernels pass around as one.

An aggregate is an ordinary class, decorated: its annotations are the fields, a field may have a default, and helpers may be
methods. Fields marked `constexpr` are known at compile time. Values do not change: `aggregate_replace` makes others.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, Final, TypeGuard, TypeVar

from weft.language.annotations import annotations_of
from weft.language.core import ConstexprFunction, constexpr

T = TypeVar("T", bound=type)

FIELDS: Final = "__aggregate_fields__"
"""The attribute of a class that maps its fields to their annotations."""
INIT: Final = "__aggregate_init__"
"""The attribute of a class that is the constructor its author wrote (or a default one)."""
_OPEN: Final = "_aggregate_is_made"


def is_aggregate(value: Any) -> bool:
    """Whether ``value`` is a class that `aggregate` decorated."""
    return isinstance(value, type) and hasattr(value, FIELDS)


def _annotations(cls: type) -> dict[str, Any]:
    """The fields of a class and of the aggregates it inherits from, those first."""
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:-1]):
        if not is_aggregate(base):
            raise TypeError(f"Aggregates can only inherit from other aggregates, but got non-aggregate base: {base}")
        fields |= getattr(base, FIELDS)
    own = annotations_of(cls)
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # a name of a function's locals: what the field takes is not checked then
        hints = {}
    return fields | {name: hints.get(name, Any) for name in own}


def _is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def _blank(cls: Any) -> Any:
    return object.__new__(cls)


def wrapped(value: Any) -> Any:
    """A field's value as Python sees it: compile-time values are `constexpr`, tuples hold them."""
    if _is_tuple(value):
        items = [wrapped(item) for item in value]
        make: Callable[[Any], Any] = getattr(value, "_make", tuple)
        return make(items)
    return value if isinstance(value, constexpr) or is_aggregate(type(value)) else constexpr(value)


def _default_init(cls: type, fields: dict[str, Any]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **keywords: Any) -> None:
        name = cls.__name__
        if len(args) > len(fields):
            raise TypeError(
                f"{name}.__init__() takes {len(fields) + 1} positional arguments but {len(args) + 1} were given"
            )
        for i, field in enumerate(fields):
            if i < len(args):
                if field in keywords:
                    raise TypeError(f"{name}.__init__() got multiple values for argument '{field}'")
                value = args[i]
            elif field in keywords:
                value = keywords.pop(field)
            elif hasattr(cls, field):
                value = getattr(cls, field)
            else:
                raise TypeError(f"{name}.__init__() missing required argument: '{field}'")
            setattr(self, field, wrapped(value))
        for field in keywords:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{field}'")

    return init


def made(cls: type, *args: Any, **keywords: Any) -> Any:
    """An instance whose fields its constructor has set."""
    instance = _blank(cls)
    object.__setattr__(instance, _OPEN, True)
    getattr(cls, INIT)(instance, *args, **keywords)
    for field in getattr(cls, FIELDS):
        if not hasattr(instance, field):
            raise AttributeError(f"constructor for {cls.__name__} did not initialize attribute '{field}'")
    object.__setattr__(instance, _OPEN, False)
    return instance


def aggregate(cls: T) -> T:
    """Make a class an aggregate: its annotated names are fields, known to kernels.

    Raises `TypeError` where the class inherits from one that is no aggregate.

    Example::

        @weft.aggregate
        class Interval:
            low: tl.tensor
            high: tl.tensor

            @weft.jit
            def size(self):
                return self.high - self.low
    """
    fields = _annotations(cls)
    init = cls.__dict__.get("__init__")
    init = init.function if isinstance(init, ConstexprFunction) else init
    setattr(cls, FIELDS, fields)
    setattr(cls, INIT, init or _default_init(cls, fields))

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        finished = made(cls, *args, **keywords)
        self.__dict__.update(finished.__dict__)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name not in fields:
            raise AttributeError(f"{cls.__name__} has no attribute '{name}'")
        if not self.__dict__.get(_OPEN, False):
            raise AttributeError(
                f"cannot assign to field '{name}' on immutable aggregate {cls.__name__}; "
                "use aggregate_replace() to construct a modified copy"
            )
        object.__setattr__(self, name, value)

    functools.update_wrapper(__init__, getattr(cls, INIT), assigned=("__doc__",), updated=())
    setattr(cls, "__init__", __init__)  # noqa: B010 - of a class known as `type` alone, an assignment is a type error
    setattr(cls, "__setattr__", __setattr__)  # noqa: B010 - the same
    return cls


def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """Return a copy of an aggregate with some fields changed; the constructor gets all of them by name. `TypeError` for a name
    that is no field."""
    cls: type = instance.__class__
    if not is_aggregate(cls):
        raise TypeError(f"aggregate_replace() expects an aggregate instance, got {cls}")
    return cls(**replaced(cls, {name: getattr(instance, name) for name in getattr(cls, FIELDS)}, changes))


def replaced(cls: type, values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The fields of a changed copy."""
    for name in changes:
        if name not in values:
            raise TypeError(f"{cls.__name__} has no field '{name}'")
    return values | changes
