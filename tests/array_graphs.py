"""Random graphs of nodes over small whole numbers, of which every order of evaluation gives the same."""

from __future__ import annotations

import math
import random

import numpy as np

from weft import dtypes
from weft.array.expression.nodes import Apply, Convert, Dimension, Input, Matmul, Node, Reduce, Reshape, Scalar, View
from weft.dtypes import DType

TYPES = (
    dtypes.float32,
    dtypes.float32,
    dtypes.float64,
    dtypes.float16,
    dtypes.int32,
    dtypes.int64,
    dtypes.int8,
    dtypes.uint8,
    dtypes.bool_,
)
SIZES = (1, 1, 2, 3, 5, 17, 40)


class Graph:
    """Grows one graph; ``nodes`` are all it has made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(0, 3)))
        self.nodes: list[Node] = [self.input(self.shape) for _ in range(self.random.randint(1, 3))]
        for _ in range(self.random.randint(2, 12)):
            self.nodes.append(self.grow())

    def outputs(self) -> list[Node]:
        """Some of the nodes, the last among them."""
        extra = self.random.sample(self.nodes, min(len(self.nodes), self.random.randint(0, 2)))
        return [self.nodes[-1], *extra]

    def input(self, shape: tuple[int, ...]) -> Input:
        dtype = self.random.choice(TYPES)
        draw = np.random.default_rng(self.random.randrange(1 << 30))
        large = tuple(2 * n + 1 for n in shape)
        low = -3 if dtype.signed else 0
        data = draw.integers(low, 4, large).astype(dtype.numpy)
        views = {
            "dense": lambda: data[..., *(slice(0, n) for n in shape)].copy(),
            "sliced": lambda: data[..., *(slice(1, 2 * n + 1, 2) for n in shape)],
            "reversed": lambda: data[..., *(slice(n, 0, -1) for n in shape)],
            "fortran": lambda: np.array(data[..., *(slice(0, n) for n in shape)], order="F"),
        }
        return Input(shape, dtype, array=views[self.random.choice(list(views))]())

    def pick(self, *kinds: str) -> Node | None:
        fitting = [n for n in self.nodes if not kinds or kind_of(n.dtype) in kinds]
        return self.random.choice(fitting) if fitting else None

    def grow(self) -> Node:
        makers = (self.binary, self.binary, self.binary, self.compare, self.cast, self.view, self.view, self.reshape)
        makers += (self.reduce, self.reduce, self.reduce, self.product)
        while True:
            if (node := self.random.choice(makers)()) is not None:
                return node

    def as_type(self, node: Node, dtype: DType) -> Node:
        return node if node.dtype == dtype else Convert(node.shape, dtype, source=node)

    def tame(self, node: Node) -> Node:
        """The node with its values between -3 and 3, so that products stay exact."""
        if node.dtype.is_bool:
            return node
        low, high = (Scalar((), node.dtype, v) for v in (-3 if node.dtype.signed else 0, 3))
        high_side = Apply(node.shape, node.dtype, "minimum", (node, high))
        return Apply(node.shape, node.dtype, "maximum", (high_side, low))

    def partner(self, shape: tuple[int, ...]) -> Node:
        """A node that broadcasts with a shape, from what there is or new."""
        fitting = [n for n in self.nodes if _broadcasts(n.shape, shape)]
        if fitting and self.random.random() < 0.7:
            return self.random.choice(fitting)
        if self.random.random() < 0.3:
            return Scalar((), dtypes.int32, self.random.randint(0, 3))
        kept = tuple(n if self.random.random() < 0.6 else 1 for n in shape)
        return self.input(kept[self.random.randint(0, len(kept)) :])

    def binary(self) -> Node:
        lhs = self.random.choice(self.nodes)
        rhs = self.as_type(self.partner(lhs.shape), lhs.dtype)
        shape = np.broadcast_shapes(lhs.shape, rhs.shape)
        meaning = self.random.choice(
            ("and", "or", "xor") if lhs.dtype.is_bool else ("add", "sub", "mul", "minimum", "maximum")
        )
        return Apply(shape, lhs.dtype, meaning, (self.tame(lhs), self.tame(rhs)))

    def compare(self) -> Node:
        lhs = self.random.choice(self.nodes)
        rhs = self.as_type(self.partner(lhs.shape), lhs.dtype)
        shape = np.broadcast_shapes(lhs.shape, rhs.shape)
        test = Apply(shape, dtypes.bool_, self.random.choice(("less", "equal", "greater_equal")), (lhs, rhs))
        return test if self.random.random() < 0.5 else Apply(shape, lhs.dtype, "select", (test, lhs, rhs))

    def cast(self) -> Node:
        node = self.tame(self.random.choice(self.nodes))
        return self.as_type(node, self.random.choice(TYPES))

    def view(self) -> Node | None:
        source = self.random.choice(self.nodes)
        shape: list[int] = []
        dimensions: list[Dimension] = []
        for n in source.shape:
            step = self.random.choice((1, 1, 2, -1))
            if self.random.random() < 0.15:
                dimensions.append(Dimension(None, self.random.randrange(n)))
                continue
            count = self.random.randint(1, -(-n // abs(step)))
            reach = (count - 1) * abs(step)
            low = self.random.randint(0, n - 1 - reach)
            dimensions.append(Dimension(len(shape), low if step > 0 else low + reach, step))
            shape.append(count)
        order = self.random.sample(range(len(shape)), len(shape))
        dimensions = [d if d.axis is None else Dimension(order[d.axis], d.start, d.step) for d in dimensions]
        placed = [0] * len(shape)
        for axis, n in enumerate(shape):
            placed[order[axis]] = n
        if len(placed) < 3 and self.random.random() < 0.4:  # a new, repeated dimension in front
            placed = [self.random.choice(SIZES), *placed]
            dimensions = [d if d.axis is None else Dimension(d.axis + 1, d.start, d.step) for d in dimensions]
        return View(tuple(placed), source.dtype, source=source, dimensions=tuple(dimensions))

    def reshape(self) -> Node:
        source = self.random.choice(self.nodes)
        if len(source.shape) > 1 and self.random.random() < 0.6:
            at = self.random.randrange(len(source.shape) - 1)
            merged = source.shape[at] * source.shape[at + 1]
            return Reshape((*source.shape[:at], merged, *source.shape[at + 2 :]), source.dtype, source=source)
        return Reshape((math.prod(source.shape), 1), source.dtype, source=source)

    def reduce(self) -> Node | None:
        source = self.random.choice(self.nodes)
        if not source.shape:
            return None
        axes = tuple(sorted(self.random.sample(range(len(source.shape)), self.random.randint(1, len(source.shape)))))
        if source.dtype.is_bool:
            meaning = self.random.choice(("any", "all"))
        elif source.dtype.is_float:
            meaning = self.random.choice(("sum", "max", "min", "max_nan", "min_nan", "argmax", "argmin", "cumsum"))
        else:
            meaning = self.random.choice(("sum", "prod", "max", "min", "argmax", "argmin", "cumsum"))
        if meaning in ("argmax", "argmin", "cumsum"):
            axes = axes[:1]
        shape = tuple(n for a, n in enumerate(source.shape) if a not in axes)
        if meaning == "cumsum":
            shape = source.shape
        dtype = dtypes.int64 if meaning.startswith("arg") else source.dtype
        return Reduce(shape, dtype, source=self.tame(source), meaning=meaning, axes=axes)

    def product(self) -> Node | None:
        fitting = [n for n in self.nodes if len(n.shape) >= 2]
        if not fitting:
            return None
        lhs = self.tame(self.random.choice(fitting))
        rhs = self.tame(self.as_type(self.input((lhs.shape[-1], self.random.choice(SIZES))), lhs.dtype))
        return Matmul((*lhs.shape[:-1], rhs.shape[-1]), lhs.dtype, lhs=lhs, rhs=rhs)


def kind_of(dtype: DType) -> str:
    return dtype.kind.name.lower()


def _broadcasts(shape: tuple[int, ...], within: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(within), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)
