"""Aggregates (`weft.language.aggregates`) as values of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.frontend.compound import Compound
from weft.frontend.errors import CompilationError, nearest
from weft.frontend.source import MISSING, KernelFunction
from weft.frontend.values import Method, Tensor, Value, as_value, describe, is_runtime, is_tuple
from weft.language.aggregates import FIELDS, is_aggregate, made, replaced
from weft.language.core import MUST_USE, ConstexprFunction, constexpr, must_use_result, tensor


class Aggregate(Compound):
    """An instance of ``cls``. Its parts are the fields of the run time; the others must be equal where paths meet."""

    def __init__(self, cls: type, values: dict[str, Value]) -> None:
        self.cls = cls
        self.values = values

    def _running(self) -> list[str]:
        return [name for name, value in self.values.items() if is_runtime(value)]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The fields of the run time, in order."""
        return tuple(self.values[name] for name in self._running())

    def with_parts(self, parts: Sequence[Any]) -> Aggregate:
        """The same with other values of the run time."""
        return Aggregate(self.cls, self.values | dict(zip(self._running(), parts, strict=True)))

    def same_kind(self, other: object) -> bool:
        """Whether the class and the fields known at compile time are the same."""
        if not isinstance(other, Aggregate) or other.cls is not self.cls or self._running() != other._running():
            return False
        running = self._running()
        return all(bool(v == other.values[name]) for name, v in self.values.items() if name not in running)

    def __getattr__(self, name: str) -> Any:
        """A field, for methods that Python runs."""
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"{self.__dict__['cls'].__name__} has no attribute '{name}'") from None

    def __str__(self) -> str:
        return f"{self.cls.__name__}({', '.join(f'{k}={describe(v)}' for k, v in self.values.items())})"


@dataclass
class PythonMethod:
    """A function that Python runs while the kernel is compiled, on the values themselves."""

    function: Callable[..., Any]
    before: tuple[Value, ...]

    def __call__(self, values: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """Its result; what it raises is the kernel's error."""
        try:
            return value_of(self.function(*self.before, *values, **keywords))
        except CompilationError:
            raise
        except Exception as error:
            raise CompilationError(f"{type(error).__name__} in {self.function.__qualname__}: {error}") from None


def value_of(value: Any) -> Value:
    """A result of Python's as kernels see it."""
    cls: type = value.__class__
    if is_aggregate(cls):
        return Aggregate(cls, {name: value_of(getattr(value, name)) for name in getattr(cls, FIELDS)})
    if isinstance(value, constexpr):
        return value_of(value.value)
    if is_tuple(value):
        make: Callable[[Any], Any] = getattr(value, "_make", tuple)
        return make(map(value_of, value))
    return as_value(value)


def construct(cls: type, values: Sequence[Value], keywords: dict[str, Value]) -> Aggregate:
    """``cls(*values, **keywords)``."""
    try:
        instance = made(cls, *values, **keywords)
    except CompilationError:
        raise
    except Exception as error:
        raise CompilationError(str(error)) from None
    result: Aggregate = value_of(instance)
    for name, annotation in getattr(cls, FIELDS).items():
        value = result.values[name]
        if not _takes(annotation, value):
            raise CompilationError(f"Expected {annotation} for attribute '{name}', got {describe(value)}")
    return result


def _takes(annotation: Any, value: Value) -> bool:
    """Whether a field with the annotation takes the value."""
    if annotation is tensor:
        return isinstance(value, Tensor)
    if annotation is constexpr:
        return not is_runtime(value)
    if is_aggregate(annotation):
        return isinstance(value, Aggregate) and issubclass(value.cls, annotation)
    return not isinstance(annotation, type) or isinstance(value, (annotation, Compound))


def replace(instance: Value, **changes: Value) -> Aggregate:
    """`aggregate_replace`."""
    if not isinstance(instance, Aggregate):
        raise CompilationError(f"aggregate_replace() expects an aggregate instance, got {describe(instance)}")
    try:
        keywords = replaced(instance.cls, instance.values, changes)
    except TypeError as error:
        raise CompilationError(str(error)) from None
    return construct(instance.cls, (), keywords)


def attribute(value: Aggregate, name: str) -> Value:
    """A field or a method of an aggregate."""
    if name in value.values:
        return value.values[name]
    found = member(value.cls, name)
    if found is MISSING:
        known = [*value.values, *(n for n in dir(value.cls) if not n.startswith("_"))]
        raise CompilationError(f"{value.cls.__name__} has no attribute '{name}'", hint=nearest(name, known))
    if isinstance(found, staticmethod):
        return function_of(found.__func__)
    if isinstance(found, property) and found.fget is not None:
        return PythonMethod(found.fget, (value,))((), {})
    if isinstance(found, KernelFunction):
        return Method(found, value)
    if isinstance(found, ConstexprFunction):
        method = PythonMethod(found.function, (value,))
        return must_use_result(method, getattr(found, MUST_USE, False))
    return PythonMethod(found, (value,)) if callable(found) else as_value(found)


def function_of(found: Any) -> Value:
    """A static function of an aggregate."""
    return found if isinstance(found, (KernelFunction, ConstexprFunction)) else PythonMethod(found, ())


def member(cls: type, name: str) -> Any:
    """What a class defines under a name, as it is written; `MISSING` where nothing is."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), MISSING)
