"""The interface that every system of promotion implements.

The compiler asks an object (`Semantics`), because the same expression has different meanings in Triton, JAX, MAX and DALI.
The frontend passes operands and op. The answer is the type both sides are computed in, the type of the result, and what the
operation then does (`weft.semantics.meanings`).

An operand is a dtype where nothing more needs saying. JAX's weak types and PyTorch's arrays without dimensions are
`Type`s, an explicitly typed constant (DALI's, a NumPy scalar) is a `Constant`, and a literal is passed as the Python number
itself, since several systems decide by its value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weft import dtypes, semantics
from weft.dtypes import DType
from weft.semantics import ops
from weft.semantics.spellings import in_system

Number: TypeAlias = bool | int | float | complex
"""A literal."""


@dataclass(frozen=True, slots=True)
class Type:
    """What promotion may ask of an array: its dtype, whether it is ``weak`` (JAX: no user chose the dtype, so it yields to
    chosen ones), whether it is ``scalar`` (has no dimensions; PyTorch ranks those lower), whether it is ``repeated`` along
    dimensions of the other operand (XLA divides by those otherwise)."""

    dtype: DType
    weak: bool = False
    scalar: bool = False
    repeated: bool = False

    def __str__(self) -> str:
        return f"{self.dtype}{'[]' if self.scalar else ''}{' (weak)' if self.weak else ''}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number whose dtype was chosen: DALI's ``Constant(value, dtype)``, a NumPy scalar."""

    value: Number
    dtype: DType

    def __str__(self) -> str:
        return f"Constant({self.value!r}, {self.dtype})"


Operand: TypeAlias = DType | Type | Constant | Number
"""The type of an array, or a number of the compile time."""


@dataclass(frozen=True, slots=True)
class Step:
    """One rule that took part in a promotion: its name in the system's module and documentation, and what it said here."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(frozen=True)
class Promotion:
    """Both sides are converted to ``operands``, ``meaning`` is done there, and the outcome has type ``result``.

    ``weak``: the result is weakly typed. ``keeps``: a comparison of the numbers themselves, exact though the sides have different
    integer types, so no side is converted. ``steps`` are the rules that led here, in order; they do not
    take part in comparison.
    """

    operands: DType
    result: DType
    meaning: str = field(default="", compare=False)
    weak: bool = False
    keeps: bool = False
    steps: tuple[Step, ...] = field(default=(), compare=False, repr=False)

    @property
    def type(self) -> Type:
        """The result as an operand of what follows."""
        return Type(self.result, self.weak)

    def after(self, *steps: Step) -> Promotion:
        """The same promotion, preceded by more steps."""
        return replace(self, steps=(*steps, *self.steps))


class PromotionError(TypeError):
    """The system refuses the operation.

    ``reason`` says why in the system's terms, ``cast`` what makes it legal; the message is both.
    """

    def __init__(self, reason: str, cast: str = "") -> None:
        super().__init__(f"{reason}; {cast}" if cast else reason)
        self.reason = reason
        self.cast = cast


class Semantics(ABC):
    """The meaning of Python's operators, and of the functions in `weft.semantics.ops`, in one system.

    Implementations take canonical op names. Each method raises `PromotionError` for what the system refuses and
    `ValueError` for an op it does not have.
    """

    name: str
    """How `weft.semantics.get` finds it: ``jax`` for the documentation, ``jax@0.10`` for the package of that version."""

    title: str
    """One line: the system, and what this version of it follows."""

    @property
    @abstractmethod
    def dtypes(self) -> tuple[DType, ...]:
        """The element types the system has, in the order its tables are printed."""

    @property
    def lists(self) -> bool:
        """Whether it takes Python's lists beside arrays."""
        return False

    @abstractmethod
    def common(self, *operands: Operand) -> Promotion:
        """The type operands meet in, before any op has a say (``jnp.result_type``, ``implicit_cast_type``); no meaning."""

    @abstractmethod
    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        """``lhs op rhs`` for an op of `ops.BINARY` or `ops.LOGICAL`."""

    @abstractmethod
    def unary(self, op: str, operand: Operand) -> Promotion:
        """``op operand`` for an op of `ops.UNARY`."""

    @abstractmethod
    def reduction(self, op: str, operand: Operand) -> Promotion:
        """A reduction of `ops.REDUCTIONS`: elements are converted to ``operands``; ``argmax`` and ``argmin`` give indices of
        type ``result``."""

    @abstractmethod
    def literal(self, value: Number) -> Type:
        """The type of a literal that becomes an array by itself."""

    @abstractmethod
    def cast(self, source: DType, target: DType) -> Promotion:
        """The explicit conversion; its meaning is one of the conversions of `meanings.MEANINGS`."""

    def conversion(self, source: DType, target: DType) -> str:
        """What happens to an operand on its way to the type it is computed in, and to the outcome on its way to the result's."""
        return "convert"

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        """``clamp(value, low, high)``."""
        raise ValueError(f"{self.name} has no operation '{op}'")

    def bounds(self, value: Operand, low: Operand, high: Operand) -> tuple[Operand, Operand]:
        """The bounds of ``clamp``; a system may replace numbers that limit nothing (here none is)."""
        return low, high

    def condition(self, operand: Operand) -> Operand:
        """The condition of ``where``; `PromotionError` for what the system does not take (here it takes everything)."""
        return operand

    def number(self, value: Number, dtype: DType) -> Number:
        """What a literal becomes in ``dtype``, which promotion has chosen: integers and bools wrap into integer types; a float
        stays as it is (the conversion rounds)."""
        if dtype.is_bool:
            return bool(value)
        if dtype.is_integer and not isinstance(value, (float, complex)):
            return (int(value) - dtype.min) % (1 << dtype.bits) + dtype.min
        return value

    def resolve(self, op: str, *operands: object) -> Promotion:
        """Any operation, in any spelling; operands as `operand` reads them. ``where`` takes its condition or leaves it out."""
        op = ops.canonical(op)
        read = [self.operand(o) for o in self.arriving(op, operands)]
        if op == "where" and len(read) == 3:
            self.condition(read[0])
            read = read[1:]
        if op in ("+", "-") and len(read) == 1:
            op = "pos" if op == "+" else "neg"
        if len(read) != ops.arity(op):
            raise ValueError(f"'{op}' takes {ops.counted(ops.arity(op))}, found {len(read)}")
        if op in ops.REDUCTIONS or op in ops.FAMILY_REDUCTIONS:
            return self.reduction(op, *read)
        if op in ops.UNARY or op in ops.FAMILY_UNARY:
            return self.unary(op, *read)
        if op in ops.TERNARY:
            return self.ternary(op, *read)
        return self.binary(op, *read)

    def result(self, op: str, *operands: object) -> Type:
        """The type of ``op`` on the operands."""
        return self.resolve(op, *operands).type

    def promote(self, *operands: object) -> Type:
        """The type the operands meet in."""
        return self.common(*map(self.operand, operands)).type

    def named(self, text: str) -> DType:
        """The type that the system's programs write as ``text``; `ValueError` for an unknown name, and for one that has two
        meanings and none in this system."""
        return in_system(self.name, text)

    def arriving(self, op: str, operands: Sequence[object]) -> Sequence[object]:
        """What reaches the system of operands as they are written: Python asks the left side of an operator first, and NumPy's
        scalars hand on something else to some systems. ``op`` is canonical."""
        return operands

    def operand(self, value: object) -> Operand:
        """An operand in any spelling: `operand`, an array of NumPy's (beside an array of the system), or a list where the
        system takes lists. `ValueError` for a dtype this system does not have."""
        if self.lists and isinstance(value, (list, tuple)):
            value = np.asarray(cast(Any, value))
        if isinstance(value, np.ndarray):
            array = cast("NDArray[Any]", value)
            value = Type(dtypes.named(array.dtype.name), scalar=not array.ndim)
        read = operand(value, self.named)
        dtype = read if isinstance(read, DType) else read.dtype if isinstance(read, (Type, Constant)) else None
        if dtype is not None and dtype not in self.dtypes:
            raise ValueError(f"{self.name} has no dtype {dtype}; it has {', '.join(map(str, self.dtypes))}")
        return read

    def __str__(self) -> str:
        return self.name

    def __copy__(self) -> Semantics:
        return self

    def __deepcopy__(self, memo: object) -> Semantics:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """By name for a system of weft: a process has one of each, since arrays of different systems do not mix."""
        if self.name in semantics.SYSTEMS and semantics.get(self.name) is self:
            return semantics.get, (self.name,)
        return super().__reduce_ex__(protocol)


_WEAK: Mapping[str, DType] = {
    **dict.fromkeys(("i*", "int*"), dtypes.int64),
    **dict.fromkeys(("f*", "float*"), dtypes.float64),
    **dict.fromkeys(("c*", "complex*"), dtypes.complex128),
}
"""JAX's spelling of weakly typed operands."""


def operand(value: object, named: Callable[[str], DType] = dtypes.named) -> Operand:
    """An operand from what users write: an operand; a NumPy dtype, its class, or a scalar; or text. Text is a dtype (``int8``,
    ``bf16``), one without dimensions (``int8[]``), a weak one (``i*``), a number (``3``, ``2.5``, ``True``), or a typed
    constant (``9:uint8``). ``named`` reads the names of dtypes in text. `ValueError` for anything else."""
    if isinstance(value, np.generic):  # first, for np.float64 is a float
        scalar = cast(Any, value)
        return Constant(scalar.item(), dtypes.named(scalar.dtype.name))
    match value:
        case Type() | Constant() if isinstance(value.dtype, str):
            return replace(value, dtype=named(value.dtype))
        case DType() | Type() | Constant() | bool() | int() | float() | complex():
            return value
        case np.dtype():
            return dtypes.named(value.name)
        case str():
            return _parse(value.strip(), named)
        case type() if issubclass(value, np.generic):
            return dtypes.named(np.dtype(cast(Any, value)).name)
        case np.ndarray():
            found = f"an array: pass its dtype, {cast(Any, value).dtype}"
            raise ValueError(f"an operand is a dtype, a number, a weak type or a typed constant, found {found}")
        case _:
            raise ValueError(f"an operand is a dtype, a number, a weak type or a typed constant, found {value!r}")


def _parse(text: str, named: Callable[[str], DType]) -> Operand:
    if text in _WEAK:
        return Type(_WEAK[text], weak=True)
    if text.endswith("[]"):
        return Type(named(text[:-2]), scalar=True)
    if ":" in text:
        value, dtype = text.split(":", 1)
        if (number := _number(value)) is None:
            raise ValueError(f"'{text}' is no typed constant; write it like 9:uint8")
        return Constant(number, named(dtype))
    number = _number(text)
    return named(text) if number is None else number


def _number(text: str) -> Number | None:
    if text in ("True", "False"):
        return text == "True"
    for read in (_integer, float, complex):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _integer(text: str) -> int:
    return int(text) if text.lstrip("+-").isdigit() else int(text, 0)  # 007 is 7, and 0x10 is 16


def show(value: Operand) -> str:
    """An operand as the messages and tables print it: a dtype by name, a number as Python writes it."""
    return repr(value) if isinstance(value, (bool, int, float, complex)) else str(value)
