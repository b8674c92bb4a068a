"""Block pointers and tensor descriptors, and the same accesses with pointers and masks.

Traps compare the two. Otherwise a fault in what the frontend makes of a block would not show, since the reference runs the same
tile IR.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fuzz.typed import LARGEST_TILE, Typed, cast, fits, whole
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.generator import Generator


def by_hand(g: Generator, sizes: tuple[int, ...], strides: tuple[int, ...], places: list[str]) -> tuple[str, str]:
    """The offsets of elements at ``places``, one text for each dimension, and which of them an array has."""
    names = [g.new("place") for _ in places]
    for name, place in zip(names, places, strict=True):
        g.emit(f"{name} = {place}")
    inside = " & ".join(f"({name} >= 0) & ({name} < {size})" for name, size in zip(names, sizes, strict=True))
    offsets = " + ".join(f"{name} * {stride}" for name, stride in zip(names, strides, strict=True))
    return offsets, inside


def differing(g: Generator, value: Typed, name: str, at: tuple[str, str], padded: bool) -> None:
    """A trap if a loaded block is not what a masked load gives."""
    dtype, other = value.dtype, g.new("hand")
    fill = 'float("nan")' if padded else "0.0" if dtype.is_float else "0"
    g.emit(f"{other} = tl.load({name} + {at[0]}, mask={at[1]}, other={fill})")
    g.alike(value, other)


def indices(axis: int, shape: tuple[int, ...]) -> str:
    """The places along an axis, as a tile that broadcasts."""
    text = f"tl.arange(0, {shape[axis]})"
    return text if len(shape) == 1 else f"{text}[{', '.join(':' if d == axis else 'None' for d in range(len(shape)))}]"


def paddable(dtype: DType) -> bool:
    """Whether an array may be padded with NaN."""
    return dtype.is_float and dtype.bits >= 16


def block_pointer(g: Generator) -> None:
    """A load through a block pointer, moved or not."""
    r, dtype = g.random, g.random.choice([d for d in dtypes.ALL if not d.is_bool])
    shape = r.choice(((g.rows, g.columns), (g.columns, g.rows), (1, g.columns), (g.rows, 1)))
    sizes = tuple(max(1, n + r.choice((0, 0, 0, 1, -1, 3, -n // 2))) for n in shape)
    at = tuple(r.choice((0, 0, 1, n // 2, -1, -n)) for n in shape)
    padded = paddable(dtype) and r.random() < 0.5
    strides = r.choice(((sizes[1], 1), (1, sizes[0])))
    name, block = g.array("input", dtype, sizes[0] * sizes[1], None), g.new("block")
    moved = r.choice(((0, 0), (1, -2), (0, shape[1])))
    first = tuple(n - step for n, step in zip(at, moved, strict=True))
    g.emit(f"{block} = tl.make_block_ptr({name}, {sizes}, {strides}, {first}, {shape}, (1, 0))")
    if moved != (0, 0):
        g.emit(f"{block} = tl.advance({block}, {moved})")
    pad = "nan" if padded else "zero"
    loaded = Typed(f'tl.load({block}, boundary_check=(0, 1), padding_option="{pad}")', dtype, shape)
    value = g.define(loaded)
    places = [f"{at[d]} + {indices(d, shape)}" for d in range(2)]
    differing(g, value, name, by_hand(g, sizes, strides, places), padded)


class Described:
    """A descriptor of an array of one to three dimensions, each program's own part of it where it is written."""

    def __init__(self, g: Generator, dtype: DType, kind: str) -> None:
        r, unit = g.random, 16 // dtype.itemsize
        self.g, self.dtype = g, dtype
        rank = r.choice((1, 2, 2, 3))
        block = [r.choice((1, 2, 8, 16)) for _ in range(rank - 1)] + [max(unit, r.choice((4, 16, 32, g.columns)))]
        while math.prod(block) > LARGEST_TILE:
            block[block.index(max(block))] //= 2
        block[-1] = max(block[-1], unit)
        self.block, self.size = tuple(block), math.prod(block)
        self.sizes = tuple(max(1, n * r.choice((1, 1, 2)) + r.choice((0, 0, 1, -1, -n // 2))) for n in block)
        strides = [1]
        for n in reversed(self.sizes[1:]):
            strides.insert(0, -(-strides[0] * n // unit) * unit)
        self.strides = tuple(strides)
        span = strides[0] * self.sizes[0]
        self.span = -(-span // unit) * unit
        self.padded = paddable(dtype) and r.random() < 0.4
        if kind == "input":
            self.name, self.base = (g.array("input", dtype, self.span, None),) * 2
        else:
            self.name = g.argument("out", kind, dtype.name, self.span * g.programs)
            self.base = f"{self.name} + pid * {self.span}"
        self.at = tuple(r.choice((0, 0, 1, n // 2, -1, 3)) for n in block)
        self.text = g.new("desc")
        sizes = tuple(g.argument("n", "number", n) if r.random() < 0.3 else str(n) for n in self.sizes)
        padding = ', padding_option="nan"' if self.padded else ""
        g.emit(
            f"{self.text} = tl.make_tensor_descriptor({self.base}, [{', '.join(sizes)}], {list(self.strides)}, "
            f"{list(self.block)}{padding})"
        )

    def hand(self) -> tuple[str, str]:
        """The block's offsets, and which elements the array has."""
        places = [f"{at} + {indices(d, self.block)}" for d, at in enumerate(self.at)]
        return by_hand(self.g, self.sizes, self.strides, places)


_WORDS = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
UPDATES: Final[dict[str, tuple[DType, ...]]] = {
    "add": (dtypes.int32, dtypes.uint32, dtypes.uint64, dtypes.float32, dtypes.float16),
    **dict.fromkeys(("min", "max"), (*_WORDS, dtypes.float16, dtypes.bfloat16)),
    **dict.fromkeys(("and", "or", "xor"), _WORDS),
}
"""What a descriptor's atomics take."""


def descriptor(g: Generator) -> None:
    """A load, a gather of rows, a store or an atomic through a tensor descriptor."""
    g.random.choice((_load, _load, _gather, _store, _update))(g)


def _load(g: Generator) -> None:
    dtype = g.random.choice([d for d in dtypes.ALL if not d.is_bool])
    made = Described(g, dtype, "input")
    offsets = list(made.at)
    form = g.random.choice(("{0}.load({1})", "tl.load_tensor_descriptor({0}, {1})"))
    value = g.define(Typed(form.format(made.text, offsets), dtype, made.block))
    differing(g, value, made.name, made.hand(), made.padded)


def _gather(g: Generator) -> None:
    """Rows of numbers that lie in the array or not."""
    r = g.random
    dtype = r.choice((dtypes.float16, dtypes.float32, dtypes.int32, dtypes.uint8, dtypes.int64))
    columns, rows = r.choice((32, 64)), r.choice((8, 16, 32))
    sizes = (r.choice((1, 5, 16)), columns * r.choice((1, 2)))
    name, text = g.array("input", dtype, sizes[0] * sizes[1], None), g.new("desc")
    g.emit(f"{text} = tl.make_tensor_descriptor({name}, {list(sizes)}, [{sizes[1]}, 1], [1, {columns}])")
    index, first = g.new("t"), r.choice((0, 0, 8, -3))
    g.emit(f"{index} = (tl.arange(0, {rows}) * {r.choice((1, 3, 5))} & 15) - {r.choice((0, 1))}")
    value = g.define(Typed(f"{text}.gather({index}, {first})", dtype, (rows, columns)))
    at = by_hand(g, sizes, (sizes[1], 1), [f"{index}[:, None]", f"{first} + tl.arange(0, {columns})[None, :]"])
    differing(g, value, name, at, False)


def _written(g: Generator, made: Described, dtype: DType) -> Typed:
    """A tile of a block's shape."""
    value = g.pick(lambda v: fits(v.shape, made.block))
    text = f"tl.arange(0, {made.size})" if value is None else value.text
    shape = (made.size,) if value is None else value.shape
    kind = dtypes.int32 if value is None else value.dtype
    value = cast(Typed(text, kind, shape), dtype)
    form = "tl.reshape({}, {})" if shape == (made.size,) else "tl.broadcast_to({}, {})"
    return g.define(Typed(form.format(value.text, made.block), dtype, made.block))


def _store(g: Generator) -> None:
    """A store; a masked load finds the elements that the array has."""
    dtype = g.random.choice([d for d in dtypes.ALL if not d.is_bool])
    made = Described(g, dtype, "output")
    value = _written(g, made, dtype)
    form = g.random.choice(("{0}.store({1}, {2})", "tl.store_tensor_descriptor({0}, {1}, {2})"))
    g.emit(form.format(made.text, list(made.at), value.text))
    offsets, inside = made.hand()
    found = g.new("hand")
    g.emit(f"{found} = tl.load({made.base} + {offsets}, mask={inside}, other=0)")
    g.alike(value, found, f"({inside})")


def _update(g: Generator) -> None:
    """An atomic, of integers or of whole numbers."""
    kind = g.random.choice(tuple(UPDATES))
    dtype = g.random.choice(UPDATES[kind])
    made = Described(g, dtype, "counter")
    value = whole(_written(g, made, dtype), dtype) if dtype.is_float else _written(g, made, dtype)
    g.emit(f"{made.text}.atomic_{kind}({list(made.at)}, {value.text})")
