"""The nodes of a lazy expression, to which its semantics are already applied.

Nodes hold *meanings* (`weft.semantics.meanings`), not the user's operators. Building an expression resolves each operator
once and inserts every conversion as a `Convert`. The graph does not depend on the system it came from, and its executors
(generated kernels, or NumPy as the reference) have no promotion rules.

Operands of an `Apply` have equal dtypes (but for the condition of ``select``, the sides of an exact comparison, and shapes,
which broadcast as NumPy's). Nodes are immutable and compared by identity, so an expression used twice is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from numpy.typing import NDArray

from weft.dtypes import DType
from weft.semantics import Number


@dataclass(frozen=True, eq=False)
class Node:
    """One value of the expression: ``shape`` and ``dtype`` of its elements."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def operands(self) -> tuple[Node, ...]:
        """The nodes this one is computed from."""
        return ()

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Input(Node):
    """Data: ``array`` (any strides, of dtype `DType.numpy`), or a parameter of a graph built ahead, where it is None."""

    array: NDArray[Any] | None = None
    name: str = ""
    address: int = 0
    """Of the first element, or 0 until it is asked for; see `memory.located`."""
    likeness: int = 0
    """What `keys.likeness_of` says, or 0 until it is asked for."""

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, array: NDArray[Any] | None = None, name: str = "", likeness: int = 0
    ) -> None:
        fields = self.__dict__  # in half the time of a frozen dataclass
        fields["shape"] = shape
        fields["dtype"] = dtype
        fields["array"] = array
        fields["name"] = name
        fields["address"] = 0
        fields["likeness"] = likeness


@dataclass(frozen=True, eq=False)
class Scalar(Node):
    """A number of the compile time, already what it is in ``dtype``; shape ()."""

    value: Number = 0

    def __init__(self, shape: tuple[int, ...], dtype: DType, value: Number = 0) -> None:
        fields = self.__dict__  # in half the time of a frozen dataclass
        fields["shape"] = shape
        fields["dtype"] = dtype
        fields["value"] = value


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """The elementwise ``meaning`` of ``arguments``, broadcast to ``shape``."""

    meaning: str = ""
    arguments: tuple[Node, ...] = ()

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, meaning: str = "", arguments: tuple[Node, ...] = ()
    ) -> None:
        fields = self.__dict__  # in half the time of a frozen dataclass
        fields["shape"] = shape
        fields["dtype"] = dtype
        fields["meaning"] = meaning
        fields["arguments"] = arguments

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Convert(Node):
    """``source`` converted to ``dtype``; ``meaning`` is ``convert``, ``convert_wrap`` or ``convert_round``."""

    source: Node = field(kw_only=True)
    meaning: str = "convert"

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Dimension:
    """Where a `View` reads one dimension of its source: at ``start + step * i``, i the result's index along ``axis``; at
    ``start`` where ``axis`` is None."""

    axis: int | None
    start: int = 0
    step: int = 1


@dataclass(frozen=True, eq=False)
class View(Node):
    """Elements of ``source`` at other places, one `Dimension` for each of the source's: slices, integer indices, permuted,
    added and broadcast dimensions. ``result[i] = source[d.start + d.step * i[d.axis] for d in dimensions]``."""

    source: Node = field(kw_only=True)
    dimensions: tuple[Dimension, ...] = ()

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.source,)


@dataclass(frozen=True, eq=False)
class Reshape(Node):
    """The elements of ``source`` in row-major order under another shape."""

    source: Node = field(kw_only=True)

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.source,)


SCANS: Final[Mapping[str, str]] = {
    "cumsum": "sum",
    "cumprod": "prod",
    **{f"cum{name}": name for name in ("max", "min", "max_nan", "min_nan")},
}
"""The meanings of a `Reduce` that keep its shape, and the reduction whose value they give at each element."""


@dataclass(frozen=True, eq=False)
class Reduce(Node):
    """``meaning`` (``sum prod max min argmax argmin any all``, or ``max_nan min_nan``, which give NaN where there is one)
    over ``axes`` (ascending, not empty), which ``shape`` no longer has. ``source`` has the dtype the reduction is carried
    out in; ``argmax`` and ``argmin`` reduce one axis, a meaning of `SCANS` scans it and keeps the shape."""

    source: Node = field(kw_only=True)
    meaning: str = "sum"
    axes: tuple[int, ...] = ()

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.source,)


@dataclass(frozen=True, eq=False)
class Matmul(Node):
    """The product of ``lhs`` (..., m, k) and ``rhs`` (..., k, n), leading dimensions broadcast; both have ``dtype``."""

    lhs: Node = field(kw_only=True)
    rhs: Node = field(kw_only=True)

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.lhs, self.rhs)


@dataclass(frozen=True)
class Fill:
    """A number that fills gaps, a parameter of a `Call`. It equals those that are written alike: NaN does NaN, 0 not -0."""

    number: Number = field(compare=False)
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", repr(self.number))


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A function of whole arrays: ``meaning`` is a name of `calls.FUNCTIONS`, ``parameters`` are its keywords. What it
    is and what each element of its result is, `called` says."""

    meaning: str = ""
    arguments: tuple[Node, ...] = ()
    parameters: tuple[tuple[str, Hashable], ...] = ()

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.arguments


def walk(outputs: Sequence[Node]) -> Iterator[Node]:
    """Every node the outputs need, once, operands first. Deep expressions do not exhaust the stack."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(outputs)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(operand, False) for operand in reversed(node.operands)]
