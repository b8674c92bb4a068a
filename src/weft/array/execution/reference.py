"""The meaning of each node, in NumPy: generated kernels are tested against it.

Elementwise meanings and conversions are `weft.semantics.evaluate`'s, which computes integers one by one in Python. This module
adds what nodes add to a meaning: where elements come from, and over which axes they are reduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.array.execution.backends import Compiled, TracedValue
from weft.array.execution.called import called
from weft.array.expression.nodes import Apply, Call, Convert, Input, Matmul, Node, Reduce, Reshape, Scalar, View, walk
from weft.semantics import Number
from weft.semantics.evaluate import convert, evaluate

Values = dict[int, NDArray[Any]]
"""The value of each node, by its identity."""


def run(outputs: Sequence[Node]) -> list[NDArray[Any]]:
    """The values of nodes; `TracedValue` where an input has no data."""
    if any(isinstance(node, Input) and node.array is None for node in walk(outputs)):
        raise TracedValue
    return _run(outputs, {})


def plan(outputs: Sequence[Node], inputs: Sequence[Input], numbers: Sequence[Scalar]) -> Compiled:
    """The nodes as a function of ``inputs`` and ``numbers``."""

    def call(arrays: Sequence[NDArray[Any]], addresses: Sequence[int], given: Sequence[Number]) -> list[NDArray[Any]]:
        data = {id(node): array for node, array in zip(inputs, arrays, strict=True)}
        values = {id(n): np.asarray(value, n.dtype.numpy) for n, value in zip(numbers, given, strict=True)}
        return _run(outputs, {**data, **values})

    return Compiled(call)


def _run(outputs: Sequence[Node], given: Values) -> list[NDArray[Any]]:
    values = dict(given)
    for node in walk(outputs):
        if id(node) not in values:
            value = value_of(node, [values[id(o)] for o in node.operands])
            values[id(node)] = np.broadcast_to(value, node.shape)
    return [np.array(values[id(node)], node.dtype.numpy) for node in outputs]


def value_of(node: Node, operands: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One node's value from those of its operands; `TypeError` for a kind of node that is not one of the nodes' module."""
    match node:
        case Input(array=array) if array is not None:
            return array
        case Scalar():
            return np.asarray(node.value, node.dtype.numpy)
        case Apply():
            return evaluate(node.meaning, *operands)
        case Convert():
            return convert(node.meaning, operands[0], node.dtype)
        case View():
            return _read(node, operands[0])
        case Reshape():
            return operands[0].reshape(node.shape)
        case Reduce():
            return _reduce(node, operands[0])
        case Matmul():
            return evaluate("matmul", *operands)
        case Call():
            return called(node, operands)
        case _:
            raise TypeError(f"the reference has no rule for {type(node).__name__}")


def _read(node: View, source: NDArray[Any]) -> NDArray[Any]:
    """``result[i] = source[d.start + d.step * i[d.axis] for d in dimensions]``, by open index arrays."""
    rank = len(node.shape)
    places: list[Any] = []
    for d in node.dimensions:
        if d.axis is None:
            places.append(np.int64(d.start))
        else:
            along = d.start + d.step * np.arange(node.shape[d.axis])
            places.append(along.reshape([-1 if axis == d.axis else 1 for axis in range(rank)]))
    if not places or 0 in node.shape:
        return np.broadcast_to(source, node.shape) if not places else np.empty(node.shape, source.dtype)
    return np.broadcast_to(source[tuple(places)], node.shape)


def _reduce(node: Reduce, source: NDArray[Any]) -> NDArray[Any]:
    meaning = node.meaning.removesuffix("_nan")
    propagates = meaning != node.meaning or meaning in ("argmax", "argmin")
    (first, *others) = node.axes
    axis = node.axes if others else first
    if 0 in source.shape and meaning in ("max", "min", "argmax", "argmin"):
        return np.empty(node.shape, node.dtype.numpy)
    return evaluate(meaning, source, axis=axis, propagate_nan=propagates).astype(node.dtype.numpy)
