"""Expressions in canonical form: what remains to be computed once views, broadcasts and reshapes are merged into accesses.

Every view is pushed down until it meets memory, where it changes only offset and strides (`Access`), so views copy nothing:
a slice of ``a + b`` adds slices of ``a`` and ``b``. There are three rules:

access      a view of memory is memory:  ``(buffer, offset, strides)`` with other numbers
pure        a view of elementwise ops whose leaves are memory: the same ops on views of the leaves
spread      a view that only repeats a reduced value along new axes stays, for a kernel to resolve (softmax's ``x - max(x)``)

Any other view is of a value that is stored first, and reads the store. Dimensions of size 1 vanish (they have nothing to
iterate over), and all broadcasting becomes explicit, so an elementwise node and its operands have one shape. Nodes that compute
the same of the same operands become one.

The size of a kernel is limited: an elementwise expression of more than `FUSED` nodes is stored, and what follows reads the
store. Otherwise a chain of ten thousand operations would be one kernel, and ``x = x[:half] + x[half:]`` a kernel that loads
every element of ``x`` by itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from weft import dtypes
from weft.array.expression.keys import form_of
from weft.array.expression.nodes import (
    SCANS,
    Apply,
    Call,
    Convert,
    Dimension,
    Input,
    Matmul,
    Node,
    Reduce,
    Reshape,
    Scalar,
    View,
    walk,
)
from weft.array.expression.views import row_major
from weft.dtypes import DType

PARTS: Final = 32
"""Into how many partial results a reduction to a few numbers is divided; fixed, so that results do not depend on the machine."""

FUSED: Final = 100
"""Elementwise nodes that one expression fuses at most, and nodes after which a kernel takes no more."""

_FEW: Final = 64
_MANY: Final = 1 << 16

Dimensions: TypeAlias = tuple[Dimension, ...]


@dataclass(frozen=True, eq=False)
class Access(Node):
    """Memory read at ``offset + sum(i * stride)`` elements from the start of ``buffer``: an `Input`, or a computed node, which is
    stored in row-major order."""

    buffer: Node = field(kw_only=True)
    offset: int = 0
    strides: tuple[int, ...] = ()

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.buffer,)


@dataclass(frozen=True, eq=False)
class Partial(Reduce):
    """A `Reduce` in `PARTS` parts, one for each range of the first reduced axis; the parts are the first dimension of the
    result."""


def strides_of(node: Input) -> tuple[int, ...]:
    """The strides of an input in elements; row-major for a parameter, and for data that must be copied first, being unaligned
    or not whole elements apart."""
    array = node.array
    if array is None or not in_place(array):
        return row_major(node.shape)
    return tuple(stride // array.itemsize for stride in array.strides)


def in_place(array: NDArray[Any]) -> bool:
    """Whether kernels can read an array where it is."""
    return array.flags.aligned and not any(stride % array.itemsize for stride in array.strides)


def squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape without its dimensions of size 1."""
    return tuple(n for n in shape if n != 1)


def is_elementwise(node: Node) -> bool:
    """Whether a node does one thing to each element."""
    return isinstance(node, (Apply, Convert))


def _is_all(access: Access) -> bool:
    """Whether an access reads a whole computed node as it is stored: a result of that shape is the store itself. A call writes
    arrays of its own shape."""
    buffer = access.buffer
    whole = access.offset == 0 and access.strides == row_major(access.shape) and access.size == buffer.size
    return whole and (is_elementwise(buffer) or isinstance(buffer, (Reduce, Matmul)))


class Canonical:
    """The canonical graph of some outputs. ``outputs`` are computed nodes without dimensions of size 1, to be stored."""

    def __init__(self, outputs: Sequence[Node]) -> None:
        self._forms: dict[int, tuple[Node, Dimensions]] = {}
        self._placed: dict[tuple[int, Dimensions, tuple[int, ...]], Node] = {}
        self._pure: dict[int, bool] = {}
        self._fused: dict[int, frozenset[int]] = {}
        self._known: dict[Hashable, Node] = {}
        self._alive: list[Node] = []
        """What the tables know by identity stays alive with them."""
        for node in walk(outputs):
            self._forms[id(node)] = self._form(node)
        self.outputs = tuple(self._output(node) for node in outputs)

    def _output(self, node: Node) -> Node:
        base, dimensions = self._forms[id(node)]
        if isinstance(base, Call) and base.shape == node.shape and dimensions == self._whole(base)[1]:
            return base
        placed = self._operand(node, squeezed(node.shape))
        if is_elementwise(placed) or isinstance(placed, (Reduce, Matmul)):
            return placed
        if isinstance(placed, Access) and _is_all(placed):
            return placed.buffer
        return self._keep(Convert(squeezed(node.shape), node.dtype, source=placed))

    def _keep(self, node: Node) -> Node:
        """A node made here, or the one before it that computes the same of the same operands. Numbers are not made here: two of
        them may be equal this time."""
        self._alive.append(node)
        return self._known.setdefault((type(node), form_of(node), *map(id, node.operands)), node)

    def _form(self, node: Node) -> tuple[Node, Dimensions]:
        """(base, dimensions): the node is a view of ``base``, a canonical node."""
        match node:
            case Input():
                return self._whole(Access(node.shape, node.dtype, buffer=node, strides=strides_of(node)))
            case Scalar():
                return node, ()
            case View():
                return self._view(node)
            case Reshape():
                return self._whole(self._reshape(node))
            case Apply() | Convert():
                return self._elementwise(node)
            case Reduce():
                return self._reduce(node)
            case Matmul():
                return self._matmul(node)
            case Call():
                return self._whole(replace(node, arguments=tuple(map(self._stored, node.arguments))))
            case _:
                raise TypeError(f"no canonical form for {type(node).__name__}")

    def _whole(self, base: Node) -> tuple[Node, Dimensions]:
        return self._keep(base), tuple(Dimension(axis) for axis in range(len(base.shape)))

    def _view(self, node: View) -> tuple[Node, Dimensions]:
        base, dimensions = self._forms[id(node.source)]
        composed: list[Dimension] = []
        for d in dimensions:
            if d.axis is None:
                composed.append(d)
            else:
                outer = node.dimensions[d.axis]
                composed.append(Dimension(outer.axis, d.start + d.step * outer.start, d.step * outer.step))
        return base, tuple(composed)

    def _elementwise(self, node: Apply | Convert) -> tuple[Node, Dimensions]:
        shape = squeezed(node.shape)
        operands = tuple(self._operand(o, shape, node.shape) for o in node.operands)
        base = self._keep(_with_operands(node, operands, shape))
        if len(self._fuses(base)) > FUSED:
            base = Access(shape, base.dtype, buffer=base, strides=row_major(shape))
        numbers = _squeezed_axes(node.shape)
        return self._keep(base), tuple(Dimension(axis) for axis, at in enumerate(numbers) if at is not None)

    def _operand(self, node: Node, shape: tuple[int, ...], within: tuple[int, ...] | None = None) -> Node:
        """A node in canonical ``shape``: ``within`` without its dimensions of size 1, to which the node is broadcast."""
        within = node.shape if within is None else within
        base, dimensions = self._forms[id(node)]
        numbers = _squeezed_axes(within)
        lead = len(within) - len(node.shape)
        placed = [
            Dimension(None, d.start)
            if d.axis is None or node.shape[d.axis] == 1
            else replace(d, axis=numbers[d.axis + lead])
            for d in dimensions
        ]
        return self._place(base, tuple(placed), shape)

    def _place(self, base: Node, dimensions: Dimensions, shape: tuple[int, ...]) -> Node:
        """The view ``dimensions`` of a canonical node, as a canonical operand of ``shape``."""
        if isinstance(base, Scalar):
            return base
        if isinstance(base, Access):
            return self._keep(_access(base, dimensions, shape))
        same = base.shape == shape and all(d == Dimension(axis) for axis, d in enumerate(dimensions))
        if same and not isinstance(base, Call):
            return base
        key = (id(base), dimensions, shape)
        if (found := self._placed.get(key)) is None:
            found = self._placed[key] = self._keep(self._viewed(base, dimensions, shape))
        return found

    def _viewed(self, base: Node, dimensions: Dimensions, shape: tuple[int, ...]) -> Node:
        if is_elementwise(base) and self._is_pure(base):
            return _with_operands(base, tuple(self._place(o, dimensions, shape) for o in base.operands), shape)
        if not isinstance(base, (Matmul, Call)) and _only_repeats(base.shape, dimensions, shape):
            return View(shape, base.dtype, source=base, dimensions=dimensions)
        whole = Access(base.shape, base.dtype, buffer=base, strides=row_major(base.shape))
        return _access(whole, dimensions, shape)

    def _is_pure(self, node: Node) -> bool:
        """Whether only elementwise nodes lie between a canonical node and memory."""
        if isinstance(node, (Access, Scalar)):
            return True
        if not is_elementwise(node):
            return False
        if (known := self._pure.get(id(node))) is None:
            known = self._pure[id(node)] = all(self._is_pure(o) for o in node.operands)
        return known

    def _fuses(self, node: Node) -> frozenset[int]:
        """The elementwise nodes that are computed on the way from memory, or from a reduction, to a canonical node."""
        if isinstance(node, View):
            return self._fuses(node.source)
        if not is_elementwise(node):
            return frozenset()
        if (known := self._fused.get(id(node))) is None:
            known = self._fused[id(node)] = frozenset({id(node)}).union(*(self._fuses(o) for o in node.operands))
        return known

    def _reshape(self, node: Reshape) -> Access:
        placed = self._operand(node.source, squeezed(node.source.shape))
        if isinstance(placed, Access) and placed.strides == row_major(placed.shape):
            return Access(
                node.shape, node.dtype, buffer=placed.buffer, offset=placed.offset, strides=row_major(node.shape)
            )
        if isinstance(placed, (Access, Scalar, View)):
            placed = self._keep(Convert(squeezed(node.source.shape), node.dtype, source=placed))
        return Access(node.shape, node.dtype, buffer=placed, strides=row_major(node.shape))

    def _reduce(self, node: Reduce) -> tuple[Node, Dimensions]:
        full = node.source.shape
        numbers = _squeezed_axes(full)
        source = self._operand(node.source, squeezed(full))
        if isinstance(source, Scalar):  # as the sum along an axis of no elements
            source = self._keep(Convert(squeezed(full), source.dtype, source=source))
        axes = tuple(a for axis in node.axes if (a := numbers[axis]) is not None)
        if node.meaning in SCANS:
            shape = squeezed(node.shape)
            base: Node = Reduce(shape, node.dtype, source=source, meaning=node.meaning, axes=axes)
            if not axes:  # of one element each
                base = Convert(shape, node.dtype, source=source)
        elif math.prod(full[a] for a in node.axes) == 0:
            base = Scalar((), node.dtype, _NEUTRAL.get(node.meaning, 0))
        else:
            base = self._reduced(node, source, axes)
        if isinstance(base, Scalar):
            return base, ()
        numbers = _squeezed_axes(node.shape)
        return self._keep(base), tuple(Dimension(axis) for axis, at in enumerate(numbers) if at is not None)

    def _reduced(self, node: Reduce, source: Node, axes: tuple[int, ...]) -> Node:
        shape = squeezed(node.shape)
        if node.meaning.startswith("arg") and not axes:
            return Scalar((), node.dtype, 0)
        if not axes:
            return Convert(shape, node.dtype, source=source)
        reduced = math.prod(source.shape[a] for a in axes)
        if node.meaning.startswith("arg") or math.prod(shape) >= _FEW or reduced < _MANY:
            return Reduce(shape, node.dtype, source=source, meaning=node.meaning, axes=axes)
        parts = self._keep(
            Partial(
                (PARTS, *shape), partial_dtype(node.meaning, node.dtype), source=source, meaning=node.meaning, axes=axes
            )
        )
        again = self._keep(Access(parts.shape, parts.dtype, buffer=parts, strides=row_major(parts.shape)))
        return Reduce(shape, node.dtype, source=again, meaning=node.meaning, axes=(0,))

    def _matmul(self, node: Matmul) -> tuple[Node, Dimensions]:
        if not node.dtype.is_float:
            return self._integer_matmul(node)
        lhs, rhs = (self._keep(self._stored(o)) for o in node.operands)
        return self._whole(Matmul(node.shape, node.dtype, lhs=lhs, rhs=rhs))

    def _stored(self, node: Node) -> Access:
        """A node as memory, in its own shape."""
        base, dimensions = self._forms[id(node)]
        if not isinstance(base, Access):
            base = self._operand(node, squeezed(node.shape))
            if isinstance(base, (Scalar, View)):
                base = self._keep(Convert(squeezed(node.shape), node.dtype, source=base))
            if not isinstance(base, Access):
                return Access(node.shape, node.dtype, buffer=base, strides=row_major(node.shape))
            dimensions = tuple(Dimension(axis) for axis, n in enumerate(node.shape) if n != 1)
        return _access(base, dimensions, node.shape)

    def _integer_matmul(self, node: Matmul) -> tuple[Node, Dimensions]:
        """Products and their sum modulo 2**bits, for which no matrix instruction is exact: a reduction."""
        rank = len(node.shape)
        k = node.lhs.shape[-1]
        shape = (*node.shape, k)

        def spread(source: Node, kept: int) -> View:
            lead = rank - len(source.shape)
            axes = [axis + lead for axis in range(len(source.shape) - 2)]
            placed = [Dimension(None if n == 1 else a) for a, n in zip(axes, source.shape[:-2], strict=True)]
            matrix = [Dimension(kept), Dimension(rank)]
            view = (*placed, *(matrix if kept == rank - 2 else matrix[::-1]))
            return View(shape, source.dtype, source=source, dimensions=view)

        views = spread(node.lhs, rank - 2), spread(node.rhs, rank - 1)
        times, plus = ("and", "any") if node.dtype.is_bool else ("mul", "sum")
        product = Apply(shape, node.dtype, times, views)
        total = Reduce(node.shape, node.dtype, source=product, meaning=plus, axes=(rank,))
        for made in (*views, product, total):
            self._keep(made)
            self._forms[id(made)] = self._form(made)
        return self._forms[id(total)]


_NEUTRAL: Final = {"sum": 0, "prod": 1, "any": False, "all": True}
"""What reductions of nothing give; the others have no elements in their result, or have refused empty arrays."""


def partial_dtype(meaning: str, dtype: DType) -> DType:
    """The type partial results are kept in: narrow floats are reduced in float32 and rounded once."""
    return dtypes.float32 if dtype.is_float and dtype.bits < 32 else dtype


def _squeezed_axes(shape: Sequence[int]) -> list[int | None]:
    """For each dimension its number among those that are not of size 1; None for those that are."""
    result: list[int | None] = []
    for n in shape:
        result.append(None if n == 1 else sum(at is not None for at in result))
    return result


def _only_repeats(source: tuple[int, ...], dimensions: Dimensions, shape: tuple[int, ...]) -> bool:
    """Whether a view keeps all of its source in order and adds dimensions."""
    axes = [-1 if d.axis is None else d.axis for d in dimensions]
    if -1 in axes or axes != sorted(set(axes)):
        return False
    return all(d == Dimension(d.axis) and n == shape[a] for d, n, a in zip(dimensions, source, axes, strict=True))


def _access(base: Access, dimensions: Dimensions, shape: tuple[int, ...]) -> Access:
    strides = [0] * len(shape)
    offset = base.offset
    for d, stride in zip(dimensions, base.strides, strict=True):
        offset += d.start * stride
        if d.axis is not None:
            strides[d.axis] += d.step * stride
    return Access(shape, base.dtype, buffer=base.buffer, offset=offset, strides=tuple(strides))


def _with_operands(node: Node, operands: tuple[Node, ...], shape: tuple[int, ...]) -> Node:
    if isinstance(node, Apply):
        return Apply(shape, node.dtype, node.meaning, operands)
    if isinstance(node, Convert):
        return Convert(shape, node.dtype, source=operands[0], meaning=node.meaning)
    raise TypeError(f"{type(node).__name__} is not elementwise")
