"""What kernels are written with besides the ops: stubs, compile-time values, the classes that annotations name.

An op of the language is a *stub*: a typed, documented Python signature that only says what users may write. In Triton an op
carries its implementation and a hidden compiler argument. The frontend owns the meaning and checks, when it is imported, that
both name the same parameters. So ``import weft.language`` loads no compiler, editors see ordinary typed functions, and a call
outside a kernel can say what went wrong.

What can be said in ops is a *composite*: a function written in the language itself.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from weft.dtypes import DType

P = ParamSpec("P")
R = TypeVar("R")

MAX_ELEMENTS: Final = 1 << 20
"""How many elements a tile may have (Triton's TRITON_MAX_TENSOR_NUMEL)."""


class OutsideKernelError(RuntimeError):
    """An op of the language was called by Python itself instead of standing in a kernel."""


STUBS: Final[dict[Callable[..., Any], str]] = {}
"""Every stub, with the name users know it by; the frontend has one implementation for each."""


def stub(function: Callable[P, R]) -> Callable[P, R]:
    """Make a signature an op of the language: calling it outside a kernel raises `OutsideKernelError`."""

    outside = _outside(function)
    STUBS[outside] = _name(function)
    return outside


COMPOSITES: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}
"""Functions of the language that are written in it, with their text's function (of a `variant` a `functools.partial`); the
frontend inlines them, as it does helpers."""


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function in the kernel language a function of the language, with Triton's semantics whatever its caller's are."""
    outside = _outside(function)
    COMPOSITES[outside] = function
    return outside


def variant(function: Callable[Concatenate[Any, P], R], first: Any, name: str, doc: str) -> Callable[P, R]:
    """Make ``function(first, ...)`` of a composite and a compile-time value a function of the language: one text, many names."""
    text = functools.partial(COMPOSITES[function], first)
    vars(text).update(__name__=name, __qualname__=name, __module__=function.__module__, __doc__=doc)
    return composite(text)


def _name(function: Callable[..., Any]) -> str:
    """What users call a function: with its class, if it is a method."""
    return function.__qualname__.rpartition("<locals>.")[2]


def _outside(function: Callable[P, R]) -> Callable[P, R]:
    """What Python sees of a function of the language: calling it raises `OutsideKernelError`."""

    @functools.wraps(function)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        raise OutsideKernelError(
            f"tl.{_name(function)} only has a meaning inside a kernel: call it in a function decorated with @weft.jit, "
            "and launch that as kernel[grid](...)"
        )

    return outside


class Absent:
    """A name of Triton's language that weft does not have: programs may import it; a kernel that uses it is refused by name."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __repr__(self) -> str:
        return f"tl.{self.name}"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Always `OutsideKernelError`."""
        raise OutsideKernelError(f"weft does not have tl.{self.name} yet")


def _unwrap(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def _binary(name: str) -> Callable[[constexpr, Any], constexpr]:
    function: Callable[[Any, Any], Any] = getattr(operator, name)

    def apply(self: constexpr, other: Any) -> constexpr:
        return constexpr(function(self.value, _unwrap(other)))

    return apply


def _reflected(name: str) -> Callable[[constexpr, Any], constexpr]:
    function: Callable[[Any, Any], Any] = getattr(operator, name)

    def apply(self: constexpr, other: Any) -> constexpr:
        return constexpr(function(_unwrap(other), self.value))

    return apply


def _unary(name: str) -> Callable[[constexpr], constexpr]:
    function: Callable[[Any], Any] = getattr(operator, name)

    def apply(self: constexpr) -> constexpr:
        return constexpr(function(self.value))

    return apply


class constexpr:
    """A compile-time value: as an annotation it marks a parameter or a variable, as a call it wraps a module-level
    constant.

    Operators act on the wrapped Python values with Python's meaning (``//`` floors, integers are unbounded) and give
    another ``constexpr``; ``.value`` unwraps. Wrapping a ``constexpr`` again changes nothing. A Python function is wrapped as by
    `constexpr_function`: kernels call it while they are compiled.
    """

    __slots__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        inner = _unwrap(value)
        is_plain = isinstance(inner, FunctionType) and inner not in STUBS and inner not in COMPOSITES
        self.value = ConstexprFunction(inner) if is_plain else inner

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, key: Any) -> constexpr:
        return constexpr(self.value[_unwrap(key)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def logical_and(self, other: Any) -> constexpr:
        """``self and other``."""
        return constexpr(self.value and _unwrap(other))

    def logical_or(self, other: Any) -> constexpr:
        """``self or other``."""
        return constexpr(self.value or _unwrap(other))

    def __eq__(self, other: object) -> constexpr:  # type: ignore[override]  # not a bool
        return constexpr(self.value == _unwrap(other))

    def __ne__(self, other: object) -> constexpr:  # type: ignore[override]  # not a bool
        return constexpr(self.value != _unwrap(other))

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __lshift__, __rlshift__ = _binary("lshift"), _reflected("lshift")
    __rshift__, __rrshift__ = _binary("rshift"), _reflected("rshift")
    __and__, __rand__ = _binary("and_"), _reflected("and_")
    __or__, __ror__ = _binary("or_"), _reflected("or_")
    __xor__, __rxor__ = _binary("xor"), _reflected("xor")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __neg__, __pos__, __invert__ = _unary("neg"), _unary("pos"), _unary("invert")


_PLAIN: Final = frozenset((int, float, bool))
"""Types of values that are not compile-time values."""


class ConstexprFunction:
    """A plain Python function that kernels call with compile-time arguments, while they are compiled."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstexprFunction) and other.function is self.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and _PLAIN.issuperset(map(type, args)):  # sizes of grids, at each launch
            return self.function(*args)
        return self.function(*map(_unwrap, args), **{name: _unwrap(value) for name, value in kwargs.items()})


def constexpr_function(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a Python function that computes with compile-time values only; in a kernel its result is compile-time
    too."""
    return cast("Callable[P, R]", ConstexprFunction(function))


MUST_USE: Final = "_must_use_result"
"""The attribute of functions whose result a kernel must not drop: True, or what the error says besides."""


def must_use_result(x: Any, s: bool | str = True) -> Any:
    """Decorate a function whose result a kernel must use: a call that drops it does not compile. A text, as in
    ``@must_use_result("...")``, is added to the error."""
    if isinstance(x, str):
        return lambda function: must_use_result(function, x)  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]
    setattr(x, MUST_USE, s)
    return x


@dataclass(frozen=True)
class constexpr_type:
    """The type of a compile-time value: ``x.type`` where ``x`` is known at compile time."""

    value: Any


@dataclass(frozen=True)
class pointer_type:
    """The dtype of a pointer; ``element_ty`` is what it points to: of block pointers a `block_type`."""

    element_ty: DType | block_type | pointer_type

    def __str__(self) -> str:
        return f"pointer<{self.element_ty}>"


@dataclass(frozen=True)
class block_type:
    """The type of a tile: element type and shape, as ``x.type`` gives them in a kernel."""

    element_ty: DType | pointer_type
    shape: tuple[int, ...]

    @property
    def scalar(self) -> DType | pointer_type:
        """The element's type."""
        return self.element_ty

    def __str__(self) -> str:
        return f"<{list(self.shape)}, {self.element_ty}>"


@dataclass(frozen=True)
class Iteration:
    """What ``range``, ``tl.range`` and ``tl.static_range`` give a ``for`` loop: the bounds, whether to unroll, and the
    ``options`` of ``tl.range`` that differ from their defaults.

    The bounds are ints or scalars known at run time only."""

    start: Any
    stop: Any
    step: Any
    unrolled: bool = False
    options: tuple[tuple[str, int], ...] = ()


class tensor:
    """A tile, or a scalar known at run time (a tile of rank 0): the annotation of unmarked parameters and of results.

    Values exist in kernels only. Operators broadcast (sizes of 1 and missing leading dimensions grow), promote and compute as
    the kernel's semantics say; in Triton's, integer division rounds toward zero and there is no ``**``. All functions of the
    language with a tile as their first argument are methods too.
    """

    dtype: Any
    shape: tuple[int, ...]
    type: Any
    T: tensor
    """The matrix transposed."""

    def __init__(self) -> None:
        raise OutsideKernelError("tl.tensor cannot be made by calling it: use tl.full or tl.load inside a kernel")

    def to(self, dtype: DType | pointer_type, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
        """`weft.language.cast` as a method."""
        ...

    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: Any) -> tensor: ...
    def __index__(self) -> int: ...
    def __add__(self, other: Any) -> tensor: ...
    def __radd__(self, other: Any) -> tensor: ...
    def __sub__(self, other: Any) -> tensor: ...
    def __rsub__(self, other: Any) -> tensor: ...
    def __mul__(self, other: Any) -> tensor: ...
    def __rmul__(self, other: Any) -> tensor: ...
    def __truediv__(self, other: Any) -> tensor: ...
    def __rtruediv__(self, other: Any) -> tensor: ...
    def __floordiv__(self, other: Any) -> tensor: ...
    def __rfloordiv__(self, other: Any) -> tensor: ...
    def __mod__(self, other: Any) -> tensor: ...
    def __rmod__(self, other: Any) -> tensor: ...
    def __pow__(self, other: Any) -> tensor: ...
    def __rpow__(self, other: Any) -> tensor: ...
    def __and__(self, other: Any) -> tensor: ...
    def __rand__(self, other: Any) -> tensor: ...
    def __or__(self, other: Any) -> tensor: ...
    def __ror__(self, other: Any) -> tensor: ...
    def __xor__(self, other: Any) -> tensor: ...
    def __rxor__(self, other: Any) -> tensor: ...
    def __lshift__(self, other: Any) -> tensor: ...
    def __rshift__(self, other: Any) -> tensor: ...
    def __lt__(self, other: Any) -> tensor: ...
    def __le__(self, other: Any) -> tensor: ...
    def __gt__(self, other: Any) -> tensor: ...
    def __ge__(self, other: Any) -> tensor: ...
    def __neg__(self) -> tensor: ...
    def __invert__(self) -> tensor: ...


class const(tensor):
    """The annotation of a pointer parameter through which the kernel must not write: ``x: tl.const``."""


Tile = tensor | constexpr | float
"""What elementwise ops take: a tile, or a compile-time number (`int` and `bool` included)."""

Shape = Sequence[int | constexpr] | constexpr
"""Sizes: compile-time powers of two."""
