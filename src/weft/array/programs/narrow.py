"""Rewrites types that kernels do not have as wider ones that they have, before any other step.

An integer of 2 or 4 bits becomes one of 8 bits, a float of 4 or 6 bits a float32. What is computed of them is then brought
back to the narrow type's numbers: integers wrap, floats are rounded to nearest even, saturate, and NaN becomes -0.0, as ml_dtypes
converts. Data come in and results go out one number a byte, as ml_dtypes stores them, by a copy.

A float of 8 bits of the kinds that kernels do not have becomes a float32, too. It has up to 255 exponents, so that each result
is rounded by ml_dtypes between two kernels (`calls.rounded`); below 8 bits a few choices in the kernel do it.

Worked for float4_e2m1fn, whose numbers are 0, 0.5, 1, 1.5, 2, 3, 4, 6: the distance of its numbers is 0.5 below 2, 1 below 4 and
2 from there on. So 2.5 is ``rint(2.5 / 1) * 1 = 2``, and 5 is ``rint(5 / 2) * 2 = 4``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.array.expression.nodes import Apply, Call, Convert, Input, Matmul, Node, Reduce, Reshape, Scalar, View, walk
from weft.array.expression.support import NARROW
from weft.array.programs.complexes import Real, apply
from weft.dtypes import DType

_KEPT: Final = ("select", "identity", "minimum", "maximum", "clamp")
"""The beginnings of meanings that give one of their operands."""


def has_narrow(outputs: Sequence[Node]) -> bool:
    """Whether an expression has types that kernels do not have."""
    return any(node.dtype in NARROW for node in walk(outputs))


def holder(dtype: DType) -> DType:
    """The type that stands for a narrow one in kernels; itself for the others."""
    if dtype not in NARROW:
        return dtype
    return dtypes.float32 if dtype.is_float else dtypes.int8 if dtype.signed else dtypes.uint8


class Widened:
    """An expression without narrow types: ``outputs`` and ``inputs`` in the order of the expression's."""

    def __init__(self, outputs: Sequence[Node], inputs: Sequence[Input]) -> None:
        self._made: dict[int, Node] = {}
        for node in walk([*outputs, *inputs]):
            self._made[id(node)] = self._widened(node)
        self.outputs = [self._made[id(node)] for node in outputs]
        self.inputs = [made for node in inputs if isinstance(made := self._made[id(node)], Input)]
        self._taken = [holder(node.dtype).numpy for node in inputs]
        self._given = [node.dtype.numpy for node in outputs]

    def taken(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The arrays of ``inputs`` for those of the expression's inputs."""
        return [array.astype(dtype, copy=False) for array, dtype in zip(arrays, self._taken, strict=True)]

    def given(self, results: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The expression's outputs from those of ``outputs``."""
        return [result.astype(dtype, copy=False) for result, dtype in zip(results, self._given, strict=True)]

    def _of(self, node: Node) -> Node:
        return self._made[id(node)]

    def _widened(self, node: Node) -> Node:
        if node.dtype not in NARROW and not any(o.dtype in NARROW for o in node.operands):
            changed = [self._of(o) is not o for o in node.operands]
            if not any(changed):
                return node
        wide = holder(node.dtype)
        match node:
            case Input():
                array = None if node.array is None else node.array.astype(wide.numpy)
                return Input(node.shape, wide, array=array, name=node.name)
            case Scalar():
                return replace(node, dtype=wide)
            case Convert():
                return self._convert(node)
            case View() | Reshape():
                return replace(node, dtype=wide, source=self._of(node.source))
            case Reduce():
                made = replace(node, dtype=wide, source=self._of(node.source))
                return made if "max" in node.meaning or "min" in node.meaning else fitted(made, node.dtype)
            case Matmul():
                return fitted(replace(node, dtype=wide, lhs=self._of(node.lhs), rhs=self._of(node.rhs)), node.dtype)
            case Call():
                return replace(node, dtype=wide, arguments=tuple(map(self._of, node.arguments)))
            case Apply(meaning="floor_divide_xla") if wide.is_float:
                return _floor_divide_xla(self._of(node.arguments[0]), self._of(node.arguments[1]), node.dtype)
            case Apply():
                applied = replace(node, dtype=wide, arguments=tuple(map(self._of, node.arguments)))
                return applied if node.meaning.startswith(_KEPT) else fitted(applied, node.dtype)
            case _:
                raise TypeError(f"{type(node).__name__} has no wider form")

    def _convert(self, node: Convert) -> Node:
        source, target = self._of(node.source), node.dtype
        wide = holder(target)
        if target not in NARROW:
            return source if source.dtype == target else replace(node, source=source)
        if target.is_float:
            exact = source.dtype.is_float and source.dtype.bits <= 32 or source.dtype.bits <= 16
            between = dtypes.float32 if exact else dtypes.float64
            return _converted(fitted(_converted(source, between), target), wide)
        made = _converted(source, wide, node.meaning)
        if node.meaning == "convert" and source.dtype.is_float:  # saturates
            return Real(made).to("maximum", target.min).to("minimum", target.max).node
        return fitted(made, target)


def fitted(node: Node, dtype: DType) -> Node:
    """``node`` brought to the numbers of ``dtype``; itself where that is no narrow type."""
    if dtype not in NARROW:
        return node
    if not dtype.is_float:
        spare = Scalar((), node.dtype, node.dtype.bits - dtype.bits)
        return apply("shift_right", apply("shift_left", node, spare), spare)
    if dtype.is_float8:
        return Call(node.shape, dtypes.float32, meaning="rounded", arguments=(node,), parameters=(("to", dtype),))
    x = Real(node)
    size = x.to("abs")
    least = 1 - dtype.bias
    last = int(np.frexp(dtype.largest)[1]) - 1
    ulp = Real(Scalar((), node.dtype, 2.0 ** (last - dtype.mantissa)))
    for exponent in range(last - 1, least - 1, -1):
        ulp = size.to("less", 2.0 ** (exponent + 1)).either(2.0 ** (exponent - dtype.mantissa), ulp)
    near = (x / ulp).to("rint") * ulp
    near = near.to("maximum", -dtype.largest).to("minimum", dtype.largest)
    return x.to("not_equal", x).either(-0.0, near).node


def _floor_divide_xla(x: Node, y: Node, dtype: DType) -> Node:
    """jax.numpy's ``x // y``, whose steps are rounded to the type: ``(x - x rem y) / y`` brought to a whole number."""

    def step(value: Real) -> Real:
        return Real(fitted(value.node, dtype))

    a, b = Real(x), Real(y)
    rest = step(a.to("truncate_remainder", b))
    whole = step(b.to("equal", 0.0).either(a, step(a - rest)) / b)
    moves = rest.to("not_equal", 0.0).to("and", b.to("sign").to("not_equal", rest.to("sign")))
    return fitted(moves.either(step(whole - 1.0), whole).to("round_away").node, dtype)


def _converted(node: Node, dtype: DType, meaning: str = "convert") -> Node:
    return node if node.dtype == dtype else Convert(node.shape, dtype, source=node, meaning=meaning)
