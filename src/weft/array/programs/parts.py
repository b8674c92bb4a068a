"""Rewrites complex numbers as pairs of real ones, before any other step.

Kernels have no complex type, so that no other layer needs one. A complex node is rewritten as two real ones, its real and
imaginary parts, by one rule for each meaning (`complexes`): ``(a + bi)(c + di) = (ac - bd) + (ad + bc)i``.
Inputs are strided views of the two parts, so nothing is copied on the way in. What has no rule is refused, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.array.expression.nodes import (
    Apply,
    Call,
    Convert,
    Fill,
    Input,
    Matmul,
    Node,
    Reduce,
    Reshape,
    Scalar,
    View,
    walk,
)
from weft.array.programs.complexes import RULES, Pair, apply
from weft.array.programs.orders import EXTREMES, PRODUCTS, extreme, product
from weft.dtypes import DType

MOVED: Final = frozenset({"concatenate", "pad", "gather", "scatter_set", "scatter_add"})
"""The calls that do the same to real and imaginary parts."""


def has_complex(outputs: Sequence[Node]) -> bool:
    """Whether an expression has complex numbers anywhere."""
    return any(node.dtype.is_complex for node in walk(outputs))


@dataclass(frozen=True)
class Split:
    """Which inputs are complex, and the types of the outputs: how arrays become those of the parts, and back."""

    inputs: tuple[bool, ...]
    outputs: tuple[DType, ...]

    def taken(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The arrays of the parts' inputs for those of the expression's."""
        taken: list[NDArray[Any]] = []
        for array, split in zip(arrays, self.inputs, strict=True):
            taken += _parts_of(array) if split else (array,)
        return taken

    def joined(self, results: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The expression's outputs from those of the parts."""
        left = iter(results)
        made: list[NDArray[Any]] = []
        for dtype in self.outputs:
            value = next(left)
            if dtype.is_complex:
                whole = np.empty(value.shape, dtype.numpy)
                for part, values in zip(_parts_of(whole), (value, next(left)), strict=True):
                    part[...] = values
                value = whole
            made.append(value)
        return made


class Parts:
    """The real graph of an expression: ``outputs`` and ``inputs`` as lists of one node for a real, two for a complex one."""

    def __init__(self, outputs: Sequence[Node], inputs: Sequence[Input]) -> None:
        self._made: dict[int, Node | Pair] = {}
        every = [*outputs, *inputs]
        for node in walk(every):
            self._made[id(node)] = self._split(node)
        self.outputs = [part for node in outputs for part in self._parts(node)]
        self.inputs = [part for node in inputs for part in self._parts(node) if isinstance(part, Input)]
        self.split = Split(tuple(n.dtype.is_complex for n in inputs), tuple(n.dtype for n in outputs))

    def _parts(self, node: Node) -> tuple[Node, ...]:
        made = self._made[id(node)]
        return made if isinstance(made, tuple) else (made,)

    def _pair(self, node: Node) -> Pair:
        made = self._made[id(node)]
        if isinstance(made, tuple):
            return made
        raise TypeError(f"expected a complex operand, found {node.dtype}")

    def _real(self, node: Node) -> Node:
        return self._parts(node)[0]

    def _split(self, node: Node) -> Node | Pair:
        if not node.dtype.is_complex and not any(o.dtype.is_complex for o in node.operands):
            return self._rebuilt(node)
        match node:
            case Input():
                return self._input(node)
            case Scalar():
                value = complex(node.value)
                part = node.dtype.part
                return Scalar((), part, value.real), Scalar((), part, value.imag)
            case View() | Reshape():
                real, imaginary = self._pair(node.source)
                return replace(node, dtype=real.dtype, source=real), replace(node, dtype=real.dtype, source=imaginary)
            case Reduce() if node.meaning in ("sum", "cumsum"):
                real, imaginary = self._pair(node.source)
                return replace(node, dtype=real.dtype, source=real), replace(node, dtype=real.dtype, source=imaginary)
            case Reduce() if node.meaning in EXTREMES:
                return extreme(node, self._pair(node.source))
            case Reduce() if node.meaning in PRODUCTS:
                return product(node, self._pair(node.source))
            case Convert():
                return self._convert(node)
            case Matmul():
                return self._matmul(node)
            case Apply() if node.meaning in RULES or node.meaning == "select":
                return self._apply(node)
            case Call() if node.meaning in MOVED:
                return self._call(node)
            case Call(meaning="argsort"):
                return replace(node, arguments=self._pair(node.arguments[0]))
            case Apply() | Reduce() | Call():
                raise TypeError(f"weft has no '{node.meaning}' of complex numbers; compute it of the parts")
            case _:
                raise TypeError(f"{type(node).__name__} has no parts")

    def _rebuilt(self, node: Node) -> Node:
        """A real node of real operands, over what became of them."""
        match node:
            case Apply() | Call():
                return replace(node, arguments=tuple(self._real(a) for a in node.arguments))
            case Convert() | View() | Reshape() | Reduce():
                return replace(node, source=self._real(node.source))
            case Matmul():
                return replace(node, lhs=self._real(node.lhs), rhs=self._real(node.rhs))
            case _:
                return node

    def _input(self, node: Input) -> Pair:
        real, imaginary = (None, None) if node.array is None else _parts_of(node.array)
        part = node.dtype.part
        return (
            Input(node.shape, part, array=real, name=f"{node.name}.real"),
            Input(node.shape, part, array=imaginary, name=f"{node.name}.imag"),
        )

    def _convert(self, node: Convert) -> Node | Pair:
        if not node.dtype.is_complex:
            real, imaginary = self._pair(node.source)
            if node.dtype.is_bool:
                return apply("or", *(replace(node, source=part) for part in (real, imaginary)))
            return replace(node, source=real)
        part = node.dtype.part
        if node.source.dtype.is_complex:
            real, imaginary = self._pair(node.source)
            return replace(node, dtype=part, source=real), replace(node, dtype=part, source=imaginary)
        zero = View(node.shape, part, source=Scalar((), part, 0.0))
        return replace(node, dtype=part, source=self._real(node.source)), zero

    def _matmul(self, node: Matmul) -> Pair:
        (a, b), (c, d) = self._pair(node.lhs), self._pair(node.rhs)

        def product(lhs: Node, rhs: Node) -> Node:
            return Matmul(node.shape, lhs.dtype, lhs=lhs, rhs=rhs)

        return apply("sub", product(a, c), product(b, d)), apply("add", product(a, d), product(b, c))

    def _call(self, node: Call) -> Pair:
        """A call that moves elements, for each part; what fills gaps has parts too."""
        sides: list[Node] = []
        for side, part in enumerate(("real", "imag")):
            arguments = tuple(self._pair(a)[side] if a.dtype.is_complex else self._real(a) for a in node.arguments)
            parameters = tuple(
                (name, Fill(getattr(value.number, part)) if isinstance(value, Fill) else value)
                for name, value in node.parameters
            )
            sides.append(replace(node, dtype=node.dtype.part, arguments=arguments, parameters=parameters))
        return sides[0], sides[1]

    def _apply(self, node: Apply) -> Node | Pair:
        if node.meaning == "select":
            condition = self._real(node.arguments[0])
            (a, b), (c, d) = self._pair(node.arguments[1]), self._pair(node.arguments[2])
            return apply("select", condition, a, c), apply("select", condition, b, d)
        return RULES[node.meaning](*(part for a in node.arguments for part in self._pair(a)))


def _parts_of(array: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Views of the real and imaginary parts of a complex array."""
    return array.real, array.imag


_REDUCED: Final = frozenset({"sum", "cumsum", "mean", "var", "std", "logsumexp", "any", "all"})

COMPUTED: Final = frozenset({*RULES, *_REDUCED, *EXTREMES, *PRODUCTS, "select", "matmul"})
"""The meanings that complex numbers have here. `operations` refuses the others."""
