"""NumPy's functions on arrays: each becomes the function of `weft.array` of that meaning, or raises.

NumPy offers calls of its functions to their arguments first (``__array_function__``, ``__array_ufunc__``). Without an answer it
would read the values and compute by its own rules, in silence. So the answers are found by name: those of
`weft.array`, with the tables below for what is called otherwise, and everything else is refused with what to write.

What an answer is given: arguments at NumPy's defaults are left out; the others go to the parameter of that name, else to
the parameter at the same place.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from weft.array.api.numpy_functions import SPECIAL
from weft.array.expression import tracing
from weft.semantics import ops

_NAMES: Final[Mapping[str, str]] = {
    "amax": "max",
    "amin": "min",
    "around": "round",
    "permute_dims": "transpose",
    "empty_like": "zeros_like",
    "concat": "concatenate",
}
"""NumPy's functions that `weft.array` calls otherwise."""

_REDUCED: Final[Mapping[tuple[str, str], str]] = {
    ("reduce", "+"): "sum",
    ("reduce", "*"): "prod",
    ("reduce", "maximum"): "max",
    ("reduce", "minimum"): "min",
    ("reduce", "logical_and"): "all",
    ("reduce", "logical_or"): "any",
    ("accumulate", "+"): "cumsum",
    ("accumulate", "*"): "cumprod",
    ("accumulate", "maximum"): "cummax",
    ("accumulate", "minimum"): "cummin",
}
"""The methods of ufuncs that are reductions: method and operation, and the function of `weft.array`."""

_CONVERTS: Final = frozenset({"sum", "prod", "mean", "cumsum", "cumprod"})
"""The functions whose ``dtype`` converts the elements first."""

READERS: Final = frozenset(
    {"allclose", "array2string", "array_equal", "array_equiv", "array_repr", "array_str", "save", "savetxt", "savez"}
)
"""The functions that read values and give no array: they get the values."""

_PLAIN: Final = (type(None), bool, int, float, str)


class _Given(NamedTuple):
    """An argument: its name in NumPy's signature, or ``*``, and its place there."""

    name: str
    place: int
    value: Any


class _Called(NamedTuple):
    """A call: how it is ``shown``, the function of `weft.array` it goes to (empty for one of `SPECIAL`), the ``names`` of
    NumPy's parameters."""

    shown: str
    target: str
    names: frozenset[str]


def function(called: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], system: str) -> Any:
    """What ``called``, a function of NumPy, gives for arguments among which is an array of ``system``; `TypeError` for a
    function or an argument without a counterpart."""
    name = called.__name__
    shown = f"{str(getattr(called, '__module__', None) or 'numpy')}.{name}"
    if name in READERS and shown == f"numpy.{name}":
        tracing.left(shown)
        return called(*map(_values, positional), **{key: _values(value) for key, value in named.items()})
    target = SPECIAL.get(name) or _function(_NAMES.get(name, name))
    if shown != f"numpy.{name}" or target is None:
        raise TypeError(missing(shown, system))
    names = frozenset(p.name for p in _parameters(called))
    own = "" if name in SPECIAL else _NAMES.get(name, name)
    return _called(_Called(shown, own, names), target, _bound(called, positional, named))


def ufunc(called: np.ufunc, method: str, operands: Sequence[Any], named: dict[str, Any], system: str) -> Any:
    """The same for NumPy's elementwise functions, and for their methods that reduce."""
    shown = f"numpy.{called.__name__}"
    try:
        op = ops.canonical(called.__name__)
    except ValueError:
        op = called.__name__
    if method == "__call__":
        if named:
            raise TypeError(_keyword(shown, op, next(iter(named))))
        if op in ops.ALL:
            first = _scalar(operands[0]) if op in ops.COMPARISONS else operands[0]
            return _lazy().apply(op, first, *operands[1:])
        if (target := _function(_NAMES.get(op, op))) is None:
            raise TypeError(missing(shown, system))
        return target(*operands)
    if (name := _REDUCED.get((method, op))) is None or _function(name) is None:
        raise TypeError(missing(f"{shown}.{method}", system))
    if len(operands) < 2:
        named = {"axis": 0} | named
    names = frozenset(p.name for p in _parameters(_reduce))
    return _called(_Called(f"{shown}.{method}", name, names), _function(name), _bound(_reduce, operands, named))


def _reduce(array: Any, axis: Any, dtype: Any = None, out: Any = None, keepdims: bool = False, **rest: Any) -> None:
    """The parameters of ``numpy.add.reduce``, which has no signature of its own."""


def missing(shown: str, system: str) -> str:
    """That a function of NumPy has no counterpart, and what to do."""
    return f"{shown} has no counterpart in weft.array; pass array.numpy() to compute with NumPy, outside {system}"


def _keyword(shown: str, op: str, keyword: str) -> str:
    reason = ", whose arrays are never written to" if keyword == "out" else ""
    return f"{shown}({keyword}=) has no counterpart in weft.array{reason}; leave it out, or write apply('{op}', ...)"


def _no_parameter(shown: str, parameter: str, name: str, takes: Sequence[str]) -> str:
    who = f"weft.array.{name}" if name else "it"
    return f"{shown}({parameter}=) has no counterpart in weft.array; {who} takes {', '.join(takes)}"


def _function(name: str) -> Any:
    """The public function of `weft.array` of that name; None where there is none."""
    package = importlib.import_module("weft.array")
    return getattr(package, name) if name in package.__all__ else None


def _lazy() -> Any:
    """The module that imports this one."""
    return importlib.import_module("weft.array.api.lazy")


def _where(condition: Any, x: Any = None, y: Any = None, /) -> None: ...


def _dot(a: Any, b: Any, out: Any = None) -> None: ...


def _concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> None: ...


def _empty_like(
    prototype: Any,
    /,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> None: ...


def _inner(a: Any, b: Any, /) -> None: ...


def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> None: ...


IN_C: Final[Mapping[str, Callable[..., None]]] = {
    "where": _where,
    "inner": _inner,
    "vdot": _inner,
    "bincount": _bincount,
    "dot": _dot,
    "concatenate": _concatenate,
    "concat": _concatenate,
    "empty_like": _empty_like,
}
"""The parameters of NumPy's functions in C that have a counterpart: before NumPy 2.4 these functions do not say them."""


@cache
def _parameters(called: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    own = getattr(called, "__module__", "") == "numpy"
    return tuple(inspect.signature(IN_C.get(called.__name__, called) if own else called).parameters.values())


def _bound(called: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> list[_Given]:
    """The arguments by NumPy's names and places, those that have their default left out."""
    parameters = _parameters(called)
    bound = inspect.Signature(parameters).bind(*positional, **named).arguments
    given: list[_Given] = []
    for place, parameter in enumerate(parameters):
        if parameter.name not in bound or _is_default(value := bound[parameter.name], parameter.default):
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            given += [_Given("*", i, each) for i, each in enumerate(value)]
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given += [_Given(key, place, each) for key, each in value.items()]
        else:
            given.append(_Given(parameter.name, place, value))
    return given


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, _PLAIN) and type(value) is type(default) and value == default)


def _called(called: _Called, target: Callable[..., Any], given: Sequence[_Given]) -> Any:
    """``target`` with arguments that have NumPy's names; those it has another name for go by their place."""
    takes = [p.name for p in _parameters(target)]
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in _parameters(target))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    dtype: object = None
    for name, place, value in given:
        if name in takes or (open_ended and name != "*"):
            named[name] = value
        elif name == "*" or (place == len(positional) < len(takes) and takes[place] not in called.names):
            positional.append(value)
        elif name == "dtype" and called.target in _CONVERTS:
            dtype = value
        else:
            raise TypeError(_no_parameter(called.shown, name, called.target, takes))
    if dtype is None:
        return target(*positional, **named)
    positional[0] = _function("astype")(positional[0], dtype)
    result = target(*positional, **named)
    if result.dtype != positional[0].dtype:
        raise TypeError(
            f"{called.shown}(dtype={positional[0].dtype}) gives {result.dtype} in {result.semantics.name}; "
            f"write weft.array.{called.target}(...).astype('{positional[0].dtype}')"
        )
    return result


def _scalar(operand: Any) -> Any:
    """NumPy makes an array of its scalar on the left of a comparison; this is the scalar."""
    return operand[()] if type(operand) is np.ndarray and operand.ndim == 0 else operand


def _values(argument: Any) -> Any:
    """An array as its values, also in a list."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(map(_values, argument))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return _lazy().values_of(argument) if isinstance(argument, _lazy().Array) else argument
