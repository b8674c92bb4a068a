"""What functions made of other operations begin with: their operands, arrays of one system that has the function.

Each such function is written with operators, reductions and views of `Array`; its types and its values follow from theirs. A
function with types of its own says whose types it has (`like`). Steps that a package computes in a wider type are computed
there (`widened`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.array.api.lazy import Array, as_argument, asarray, system_of
from weft.array.building import interop, operations
from weft.array.building.coercion import is_scalar
from weft.array.building.operations import Value
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Node
from weft.dtypes import DType
from weft.semantics import Number, PromotionError, Semantics, composed
from weft.semantics import arrangement as rules

Data = Any
"""An `Array`, an array of another library, a typed constant, or a number."""


def operands(op: str, *data: Data) -> tuple[Any, ...]:
    """The operands as arrays of one system that has the function and takes their types; numbers stay numbers beside an array.
    `TypeError` for what is no operand."""
    system = system_of(op, data)
    composed.refuse_missing(system, op)
    alone = not any(isinstance(d, Array) or interop.is_array(d) for d in data)
    found: list[Any] = []
    for d in data:
        array: Any = d
        if alone or not isinstance(d, Array) and interop.is_array(d) and not is_scalar(d):
            array = asarray(d, system)
        elif not isinstance(d, Array):
            argument = as_argument(system, op, d)
            if argument is None:
                raise TypeError(f"'{op}' takes arrays and numbers, found {type(d).__name__}")
            array = Array(argument, system) if isinstance(argument, Value) else argument
        if isinstance(array, Array):
            composed.refuse_type(system, op, array.dtype)
        found.append(array)
    return tuple(found)


def arrays(op: str, *data: Data) -> tuple[Array, ...]:
    """The same, of which none may be a number where PyTorch takes tensors alone; in the others a number becomes an array."""
    found = operands(op, *data)
    system = system_of(op, found)
    for array in found:
        if not isinstance(array, Array) and rules.family(system) == "torch":
            raise TypeError(f"torch.{op} takes tensors, found {array!r}; make it one with asarray")
    return tuple(array if isinstance(array, Array) else asarray(array, system) for array in found)


def one(op: str, data: Data) -> Array:
    """The only operand."""
    return arrays(op, data)[0]


def like(op: str, other: str, *sides: Any) -> tuple[list[Array], DType, bool]:
    """The operands in the type in which the operation ``other`` would compute, the type of its result, its weakness."""
    system = system_of(op, sides)
    given: list[Any] = [side.value if isinstance(side, Array) else side for side in sides]
    try:
        promotion = system.resolve(other, *map(operations.as_operand, given))
    except PromotionError as error:
        shown = " and ".join(str(side.dtype) if isinstance(side, Array) else repr(side) for side in sides)
        raise PromotionError(f"{system.name}'s '{op}' does not take {shown}", error.cast) from error
    met = [operations.meet(system, side, promotion.operands) for side in given]
    return [Array(Value(node, promotion.weak), system) for node in met], promotion.result, promotion.weak


def fit(array: Array, dtype: DType, weak: bool = False) -> Array:
    """The array in another type, with no question to the system: between floats, or of a whole number."""
    return Array(Value(convert(array.node, dtype), weak), array.semantics)


def widened(array: Array) -> Array:
    """Floats narrower than 32 bits as float32, in which packages compute several steps before they round."""
    return fit(array, array.dtype.compute, array.weak) if array.dtype.is_float else array


def constant(number: Number, beside: Array) -> Array:
    """A number in the type of an array."""
    node = operations.scalar(beside.semantics, number, beside.dtype)
    return Array(Value(node, beside.weak), beside.semantics)


def viewed(array: Array, node: Node) -> Array:
    """Elements of an array at other places, as it has them: no system has a say in it."""
    return Array(Value(node, array.weak), array.semantics)


def base(array: Array | Semantics) -> str:
    """The system without its version."""
    return rules.family(array.semantics if isinstance(array, Array) else array)


def axis_slice(array: Array, axis: int, *bounds: int | None) -> Array:
    """``array[begin:end:step]`` along an axis."""
    key: Sequence[slice] = [slice(None)] * array.ndim
    key = [slice(*bounds) if a == axis % array.ndim else k for a, k in enumerate(key)]
    return array[tuple(key)]
