"""An array that is an expression until its values are needed.

Operators build nodes (`operations`) under the semantics the array carries; the values are computed at the first
`Array.numpy` (or conversion, or print), once, after which the array is the data. Nothing is ever written in place.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weft.array.api import protocol
from weft.array.api.methods import Methods
from weft.array.api.operators import Operators
from weft.array.api.placeholders import Placeholder
from weft.array.building import indexing, interop, operations, recipes
from weft.array.building.coercion import beside, to_value
from weft.array.building.operations import Argument, Value
from weft.array.execution import backends
from weft.array.expression import tracing, views
from weft.array.expression.nodes import SCANS, Input, Node
from weft.array.expression.support import read_dtype
from weft.dtypes import DType
from weft.semantics import Constant, Semantics, Type, get, ops
from weft.semantics.context import current

if TYPE_CHECKING:
    from weft.array.api.places import At

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
"""One axis, several, or all of them."""


class MixedSemantics(TypeError):
    """Arrays of two systems in one expression."""


class Array(Operators, Methods):
    """A lazy array of ``shape`` and ``dtype`` whose operators mean what they mean in ``semantics``.

    `weft.array.asarray` makes one. ``weak`` says that no user chose the dtype (JAX).
    """

    __slots__ = ("_system", "_value", "__weakref__")

    def __init__(self, value: Value, system: Semantics) -> None:
        self._value = value
        self._system = system

    @property
    def node(self) -> Node:
        """The expression, an `Input` once it is computed."""
        return self._value.node

    @property
    def semantics(self) -> Semantics:
        """The system whose rules its operators follow."""
        return self._system

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._value.node.dtype

    @property
    def weak(self) -> bool:
        """Whether the dtype yields to chosen ones."""
        return self._value.weak

    @property
    def type(self) -> Type:
        """What promotion sees: dtype, weakness, whether there are no dimensions."""
        return self._value.type

    @property
    def value(self) -> Value:
        """Node and weakness, as `operations` takes them."""
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._value.node.shape

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return self._value.node.size

    # ---- operations ---------------------------------------------------------------------------------------------------

    def _binary(self, op: str, other: Any, reflected: bool = False) -> Self:
        if isinstance(other, Array) and other._system is self._system and op != "matmul":
            lhs, rhs = (other._value, self._value) if reflected else (self._value, other._value)
            return self._with(recipes.binary(self._system, op, lhs, rhs))
        if type(other) in (int, float) and op != "matmul":
            return self._with(recipes.with_number(self._system, op, self._value, cast("int | float", other), reflected))
        if type(other) is Placeholder:
            if op != "matmul":
                return self._with(other.beside(self._system, op, self._value, reflected))
            other = other.read()
        argument = as_argument(self._system, op, other)
        if argument is None:
            return NotImplemented
        sides = (argument, self._value) if reflected else (self._value, argument)
        if op == "matmul":
            return self._with(operations.matmul(self._system, *(_as_value(self._system, side) for side in sides)))
        return self._with(operations.binary(self._system, op, *sides))

    def _unary(self, op: str) -> Self:
        return self._with(recipes.unary(self._system, op, self._value))

    def _with(self, value: Value) -> Self:
        return type(self)(value, self._system)

    def _view(self, node: Node) -> Self:
        return self._with(Value(node, self.weak))

    def astype(self, dtype: object) -> Self:
        """The elements converted as the system's explicit cast does (saturating, wrapping or rounding); never weak."""
        return self._with(operations.astype(self._system, self._value, read_dtype(dtype, self._system)))

    def reduce(self, op: str, axis: Axis = None, keepdims: bool = False) -> Self:
        """A reduction of `weft.semantics.ops.REDUCTIONS`, or a scan (``cumprod``); ``argmax``, ``argmin`` and scans of all
        axes go over the elements in row-major order."""
        op = ops.canonical(op)
        if op in ("var", "std", "logsumexp"):  # made of other reductions
            return self._call(op, axis, keepdims)
        single = op in ("argmax", "argmin") or op in SCANS
        if single and axis is None:
            flat = Value(views.reshape(self.node, (self.size,)), self.weak)
            result = self._with(operations.reduce(self._system, op, flat, (0,), False))
            return result.reshape((1,) * self.ndim) if keepdims and op not in SCANS else result
        axes = views.axes_of(axis, self.ndim, op)
        if single and len(axes) != 1:
            raise ValueError(f"'{op}' goes along one axis, found {len(axes)}")
        return self._with(operations.reduce(self._system, op, self._value, axes, keepdims))

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The sum over ``axis``."""
        return self.reduce("sum", axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The product over ``axis``."""
        return self.reduce("prod", axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The mean over ``axis``."""
        return self.reduce("mean", axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The greatest element over ``axis``; NaN as in the system's ``maximum``."""
        return self.reduce("max", axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The least element over ``axis``; NaN as in the system's ``minimum``."""
        return self.reduce("min", axis, keepdims)

    def argmax(self, axis: SupportsIndex | None = None, keepdims: bool = False) -> Self:
        """The index of the first greatest element along ``axis``."""
        return self.reduce("argmax", axis, keepdims)

    def argmin(self, axis: SupportsIndex | None = None, keepdims: bool = False) -> Self:
        """The index of the first least element along ``axis``."""
        return self.reduce("argmin", axis, keepdims)

    def any(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Whether an element over ``axis`` is not zero."""
        return self.reduce("any", axis, keepdims)

    def all(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Whether every element over ``axis`` is not zero."""
        return self.reduce("all", axis, keepdims)

    def cumsum(self, axis: SupportsIndex | None = None) -> Self:
        """The sums of the elements up to each along ``axis``."""
        return self.reduce("cumsum", axis)

    # ---- shape --------------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Self:
        """The dimensions in reverse order."""
        return self.transpose()

    def transpose(self, *axes: SupportsIndex | Sequence[SupportsIndex] | None) -> Self:
        """Dimension i is dimension ``axes[i]`` of this array; in reverse order where no axes are given."""
        order = _flat(axes)
        return self._view(views.permute(self.node, order if order else range(self.ndim)[::-1]))

    permute = transpose

    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Self:
        """The elements in row-major order under another shape; one size may be -1."""
        return self._view(views.reshape(self.node, _flat(shape)))

    def broadcast_to(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Self:
        """The elements repeated along dimensions of size 1 and in front."""
        return self._view(views.broadcast_to(self.node, _flat(shape)))

    def expand_dims(self, axis: SupportsIndex | Sequence[SupportsIndex]) -> Self:
        """With dimensions of size 1 at the places ``axis`` of the result."""
        return self._view(views.expand_dims(self.node, axis))

    def squeeze(self, axis: Axis = None) -> Self:
        """Without the dimensions of size 1, or those named."""
        return self._view(views.squeeze(self.node, axis))

    def flatten(self) -> Self:
        """The elements in row-major order along one axis."""
        return self.reshape(self.size)

    ravel = flatten

    def __getitem__(self, key: object) -> Self:
        if indexing.is_advanced(key):
            return self._with(indexing.read(self._system, self._value, key, count_true, None, None))
        return self._view(indexing.view(self._system, self.node, key))

    @property
    def at(self) -> At:
        """``array.at[key].set(value)`` and the like: another array with some elements replaced (JAX)."""
        return importlib.import_module("weft.array.api.places").At(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise TypeError("an array without dimensions has nothing to iterate over")
        return (self[i] for i in range(self.shape[0]))

    # ---- values -------------------------------------------------------------------------------------------------------

    def numpy(self) -> NDArray[Any]:
        """The values, computed at the first call; read-only, since the array keeps them."""
        tracing.left(".numpy()")
        return values_of(self)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; one number without dimensions."""
        tracing.left(".tolist()")
        values = values_of(self)
        return (values if values.dtype.isbuiltin == 1 else values.astype(np.float64)).tolist()

    def item(self) -> bool | int | float | complex:
        """The only element as a Python number."""
        return self._only("an item", ".item()").item()

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> NDArray[Any]:
        tracing.left("numpy.asarray")
        return np.array(values_of(self), dtype, copy=copy)

    def __dlpack__(self, **keywords: Any) -> Any:
        tracing.left("DLPack")
        return interop.lend(values_of(self), keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __float__(self) -> float:
        return float(self._only("a float", "float()").item())

    def __int__(self) -> int:
        return int(self._only("an int", "int()").item())

    def __complex__(self) -> complex:
        return complex(self._only("a complex", "complex()").item())

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.shape:
            raise TypeError(
                f"only integer arrays without dimensions are indices, found {self.type} of shape {self.shape}"
            )
        return int(self._only("an index", "an index").item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is neither true nor false; use .any() or .all()")
        return bool(self._only("a bool", tracing.BRANCH).item())

    def _only(self, what: str, way: str) -> NDArray[Any]:
        if self.size != 1:
            raise TypeError(f"only an array of one element is {what}, this one has shape {self.shape}")
        tracing.left(way)
        return values_of(self)

    def __repr__(self) -> str:
        weak = " (weak)" if self.weak else ""
        rest = f"dtype={self.dtype}{weak}, semantics={self._system.name})"
        if isinstance(self.node, Input) and self.node.array is not None:
            return f"Array({np.array2string(self.node.array, separator=', ', prefix='Array(')}, {rest}"
        return f"Array(shape={self.shape}, {rest}"

    # ---- NumPy's functions --------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return protocol.ufunc(ufunc, method, inputs, keywords, self._system.name)

    def __array_function__(self, function: Any, types: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        return protocol.function(function, arguments, named, self._system.name)


def count_true(mask: Node) -> int:
    """How many elements of a mask are true, which computes it."""
    return int(np.count_nonzero(backends.run([mask])[0]))


def kernels(*arrays: Array) -> tuple[str, ...]:
    """The generated kernels that would compute the arrays together, as programs in the kernel language; none for arrays that
    are computed."""
    execute = importlib.import_module("weft.array.execution.native")
    _require_arrays("kernels", arrays)
    waiting = [array.node for array in arrays if not isinstance(array.node, Input)]
    return execute.kernels(waiting) if waiting else ()


def compute(*arrays: Array, backend: str | None = None) -> tuple[NDArray[Any], ...]:
    """The values of several arrays, computed together, so that what they share is computed once. ``backend`` is ``native``
    (generated kernels) or ``reference`` (NumPy, slowly and obviously); by default the one of `weft.array.use_backend`. They are
    read-only, since the arrays keep them."""
    _require_arrays("compute", arrays)
    tracing.left("weft.array.compute")
    settle(arrays, backend)
    return tuple(map(values_of, arrays))


def values_of(array: Array) -> NDArray[Any]:
    """The values as `Array.numpy` gives them, for weft's own use: `tracing.departures` does not hear of it."""
    value = array.value
    node = value.node
    if type(node) is Input and node.array is not None:
        view = node.array.view()
    else:
        (values,) = backends.run([node])
        array._value = computed(values, node.dtype, value.weak)  # pyright: ignore[reportPrivateUsage]
        view = values.view()
    view.setflags(write=False)
    return view


def settle(arrays: Sequence[Array], backend: str | None = None) -> None:
    """Computes those of the arrays that are expressions, together; afterwards the nodes of all are data."""
    waiting = [array for array in arrays if not _is_computed(array.node)]
    if not waiting:
        return
    values = [array.value for array in waiting]
    results = backends.run([value.node for value in values], backend)
    for array, value, result in zip(waiting, values, results, strict=True):
        array._value = computed(result, value.node.dtype, value.weak)  # pyright: ignore[reportPrivateUsage]


def _is_computed(node: Node) -> bool:
    return isinstance(node, Input) and node.array is not None


def _require_arrays(name: str, arrays: Sequence[object]) -> None:
    for array in arrays:
        if not isinstance(array, Array):
            raise TypeError(f"{name} takes arrays of weft.array, found {type(array).__name__}; make one with asarray")


def computed(result: NDArray[Any], dtype: DType, weak: bool) -> Value:
    """What a backend has computed, as a value that owns it."""
    result.setflags(write=False)
    return Value(Input(result.shape, dtype, result), weak)


def asarray(data: object, semantics: str | Semantics | None = None, dtype: object = None) -> Array:
    """``data`` as a lazy array: NumPy's arrays, any with DLPack or ``__array__`` (PyTorch, JAX), numbers, typed constants
    and nested lists. Memory is shared, not copied, where NumPy can address it.

    The system is ``semantics``, else the array's own, else `weft.semantics.current`. An array of another system is
    moved over as it is, weak only where the new system knows that. `TypeError` or `ValueError` for what is no data.
    """
    if isinstance(data, Array):
        system = data.semantics if semantics is None else get(semantics)
        weak = data.weak and system.name.startswith("jax")
        system.operand(data.dtype)
        if system.name != data.semantics.name:
            tracing.left(f"asarray(semantics='{system.name}')")
        moved = data if system is data.semantics else Array(Value(data.node, weak), system)
        return moved if dtype is None else moved.astype(dtype)
    system = current() if semantics is None else get(semantics)
    return Array(to_value(system, data, None if dtype is None else read_dtype(dtype, system)), system)


def apply(op: str, *operands: object, semantics: str | Semantics | None = None) -> Array:
    """An elementwise operation, ``matmul`` or ``clamp``, in any of its spellings, on arrays, data and numbers:
    ``apply("fmod", x, 2)``. The system is that of the arrays, else ``semantics``, else the current one."""
    op = ops.canonical(op)
    if semantics is None and (quick := _known(op, operands)) is not None:
        return quick
    system = system_of(op, operands, semantics)
    arguments = list(_arguments(system, op, operands))
    for argument, found in zip(arguments, operands, strict=True):
        if argument is None:
            raise TypeError(f"'{op}' takes arrays and numbers, found {type(found).__name__}")
    given = [a for a in arguments if a is not None]
    expected = 3 if op == "where" else ops.arity(op)
    if op in ops.REDUCTIONS or op in (*ops.LOGICAL, "concat"):
        raise ValueError(f"'{op}' is not elementwise")
    if len(given) != expected:
        raise TypeError(f"'{op}' takes {ops.counted(expected)}, found {len(given)}")
    match op:
        case "where":
            value = recipes.applied(system, op, given, lambda: operations.where(system, *given))
        case "clamp":
            value = recipes.applied(system, op, given, lambda: operations.clamp(system, *given))
        case "matmul":
            value = operations.matmul(system, *(_as_value(system, a) for a in given))
        case _ if expected == 1:
            value = recipes.unary(system, op, _as_value(system, given[0]))
        case _:
            value = recipes.applied(system, op, given, lambda: operations.binary(system, op, *given))
    return Array(value, system)


def _known(op: str, operands: Sequence[object]) -> Array | None:
    """An operation of arrays of one system and plain numbers that was applied to such before."""
    system: Semantics | None = None
    sides: list[Argument] = []
    for operand in operands:
        if type(operand) is Array:
            if system is not None and system is not operand.semantics:
                return None
            system = operand.semantics
            sides.append(operand.value)
        elif type(operand) is int or type(operand) is float:
            sides.append(operand)
        else:
            return None
    known = None if system is None else recipes.known_of(system, op, sides)
    return None if known is None or system is None else Array(known, system)


def _arguments(system: Semantics, op: str, operands: Sequence[object]) -> Iterator[Argument | None]:
    """The operands of an operation. Where none of them is an `Array` yet, other libraries' arrays become arrays of the
    system; beside an `Array` they are what the system takes them for."""
    beside_one = any(isinstance(operand, Array) for operand in operands)
    for operand in system.arriving(op, operands):
        alone = not beside_one and interop.is_array(operand)
        yield to_value(system, operand) if alone else as_argument(system, op, operand)


def system_of(op: str, operands: Sequence[object], semantics: str | Semantics | None = None) -> Semantics:
    """The system of the arrays among the operands; `MixedSemantics` where they disagree."""
    system = None if semantics is None else get(semantics)
    for operand in operands:
        if isinstance(operand, Array):
            system = operand.semantics if system is None else system
            _same(op, system, operand)
    return system or current()


def as_argument(system: Semantics, op: str, other: object) -> Argument | None:
    """An operand as `operations` takes it; None for what is no operand."""
    if isinstance(other, Array):
        _same(op, system, other)
        return other.value
    return beside(system, other)


def _same(op: str, system: Semantics, array: Array) -> None:
    if array.semantics is not system:
        raise MixedSemantics(
            f"'{op}' mixes arrays of {system.name} and {array.semantics.name}; "
            f"move one over with weft.array.asarray(array, semantics='{system.name}')"
        )


def _as_value(system: Semantics, argument: Argument) -> Value:
    if isinstance(argument, Value):
        return argument
    if isinstance(argument, Constant):
        return operations.constant(system, argument)
    return operations.literal(system, argument)


def _flat(sizes: Sequence[SupportsIndex | Sequence[SupportsIndex] | None]) -> list[SupportsIndex]:
    """``f(2, 3)``, ``f((2, 3))``, ``f(None)`` and ``f()`` alike."""
    flat: list[SupportsIndex] = []
    for size in sizes:
        if isinstance(size, Sequence):
            flat += size
        elif size is not None:
            flat.append(size)
    return flat
