"""Kernels of many programs, each with a narrow part of arrays that its neighbours continue: a CPU runs several of them as one.

The other kernels have few programs, and use their index in too many ways to be joined. Here it takes part in offsets alone, as
``pid`` or ``pid * B + arange(0, B)``, and now and then in values. Grids have more programs than are joined, and some that are
left over. Statements are elementwise, but for sums of small whole numbers over what neighbours do not share, and, now and then,
what elements of a program make of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from fuzz import expressions
from fuzz.atomics import UPDATES
from fuzz.memory import Access, masked
from fuzz.typed import Shape, Typed, binary, cast, spelling, whole
from weft import dtypes

if TYPE_CHECKING:
    from fuzz.generator import Generator

GRIDS: Final = ((16,), (17,), (40,), (64,), (33, 2), (3, 20), (18, 3))

FORMS: Final = (
    expressions.arithmetic,
    expressions.arithmetic,
    expressions.comparison,
    expressions.negation,
    expressions.choice,
    expressions.conversion,
    expressions.through_float8,
    expressions.reinterpretation,
    expressions.multiply_add,
    expressions.limit,
)

OTHERS: Final = ("tl.max({}, axis={}, keep_dims=True)", "tl.cumsum({}, axis={})", "tl.flip({}, {})")
"""What elements make of others along an axis, in integers."""

SUMMED: Final = (dtypes.int32, dtypes.float32, dtypes.float32, dtypes.float64)


class Part:
    """What a program has of the grid: ``width`` places along an axis, and all of ``rows`` others, or one place."""

    def __init__(self, g: Generator, tiles: bool) -> None:
        self.g, r = g, g.random
        self.axis = 0 if len(g.grid) == 1 or r.random() < 0.8 else 1
        self.numbers = not tiles and r.random() < 0.2
        self.width = 1 if self.numbers else r.choice((2, 4, 8, 16, 16, 16, 32, 64))
        self.rows = r.choice((1, 2, 4, 16, 32))
        # Rows of small elements are joined to longer ranges.
        self.dtypes = [d for d in dtypes.ALL if d.bits <= 16] if r.random() < 0.4 else dtypes.ALL
        self.length = g.grid[self.axis] * self.width
        self.other = ""
        g.emit(f"pid = tl.program_id({self.axis})")
        if len(g.grid) > 1:
            self.other = "other"
            g.emit(f"other = tl.program_id({1 - self.axis})")
        self.shapes: tuple[Shape, ...] = ((),)
        if not self.numbers:
            self.shapes = ((self.width,), (self.rows, self.width), (self.rows, self.width), (self.width, self.rows))
            product = r.choice(("pid", "pid", "pid.to(tl.int64)")) + f" * {self.width}"
            along = f"tl.arange(0, {self.width})"
            g.emit(f"columns = {r.choice((f'{product} + {along}', f'{along} + {product}'))}")
            g.emit(f"rows = tl.arange(0, {self.rows})")

    def offsets(self, shape: Shape, down: str = "rows") -> tuple[str, str, int]:
        """The offsets of a tile of a program's own elements, how far each is along the axis, and the size of an array of all."""
        apart = self.length + self.g.random.choice((0, 0, 1, 3))
        size = apart
        if not shape:
            text = along = "pid"
        elif len(shape) == 1:
            text = along = "columns"
        else:
            first = shape != (self.rows, self.width)  # whether the first dimension is that of the program
            mine, others = ("[:, None]", "[None, :]") if first else ("[None, :]", "[:, None]")
            along = f"columns{mine}"
            lines = first and self.g.random.random() < 0.5  # whether the others are next to each other
            text = f"{along} * {self.rows} + ({down}){others}" if lines else f"({down}){others} * {apart} + {along}"
            size *= self.rows
        if self.other:
            text += f" + {self.other} * {size}"
            size *= self.g.grid[1 - self.axis]
        return text, along, size

    def mask(self, along: str) -> str | None:
        """Which elements are before an end; None for all."""
        r, length = self.g.random, self.length
        if r.random() < 0.5:
            return None
        end = r.choice((0, 1, length - 1, length, length + 3, r.randint(0, length)))
        return f"{along} < {self.g.argument('n', 'number', end)}"

    def fits(self, value: Typed) -> bool:
        """Whether a value has an element for each of the program's."""
        return value.shape in self.shapes


def body(g: Generator, surely: str = "") -> None:
    """The statements of the kernel, ``surely`` that of a name; what it defines is stored."""
    r, part = g.random, Part(g, tiles=surely in STATEMENTS)
    for _ in range(r.randint(1, 3)):
        _load(g, part)
    made = [
        statement(g, part) for name, (statement, chance) in STATEMENTS.items() if name == surely or r.random() < chance
    ]
    for _ in range(r.randint(1, 6)):
        value = r.choice(FORMS)(g)
        if value is not None:
            g.define(value)
    values = [v for v in g.scopes[0] if part.fits(v) and v.text != "pid"]
    made = [v if part.fits(v) else binary("+", v, r.choice(values)) for v in made if v is not None]
    for value in dict.fromkeys([*made, *values[-2:], r.choice(values)]):
        if value is not None:
            _store(g, part, value)
    if surely == "update" or r.random() < 0.3:
        _update(g, part, r.choice(values))


def _load(g: Generator, part: Part) -> None:
    """The program's own elements of a new array."""
    shape, dtype = g.random.choice(part.shapes), g.random.choice(part.dtypes)
    text, along, size = part.offsets(shape)
    name = g.array("input", dtype, size, None)
    g.define(masked(g.random, name, dtype, Access(Typed(text, dtypes.int64, shape), size), part.mask(along)))


def _shared(g: Generator, part: Part) -> Typed:
    """What all programs load: a number, or the rows' numbers."""
    dtype = g.random.choice(part.dtypes)
    rows = not part.numbers and g.random.random() < 0.5
    name = g.array("input", dtype, part.rows, None)
    return g.define(
        Typed(f"tl.load({name} + rows[:, None])", dtype, (part.rows, 1)) if rows else Typed(f"tl.load({name})", dtype)
    )


def _index(g: Generator, part: Part) -> Typed:
    """The program's index among the values, in types that may not hold it."""
    r, numbers = g.random, [d for d in dtypes.ALL if not d.is_bool]
    dtype = r.choice((dtypes.int32, dtypes.int64, dtypes.bfloat16, r.choice(numbers), r.choice(numbers)))
    to = f".to(tl.{spelling(dtype)})"
    if part.numbers or r.random() < 0.3:
        return g.define(Typed(f"pid{to}", dtype))
    if r.random() < 0.2:
        return g.define(Typed(f"columns{to}", dtype, (part.width,)))
    narrow = f".to(tl.{spelling(r.choice((dtypes.int8, r.choice(numbers))))})" if r.random() < 0.7 else ""
    first, along = f"(pid{to} * {part.width}){to}", f"tl.arange(0, {part.width}){narrow}{to}"
    return g.define(Typed(f"({first} + {along}){to}", dtype, (part.width,)))


def _across(g: Generator, part: Part) -> Typed | None:
    """Integers of a tile, and what others along one of its axes make of them."""
    tiles = [v for v in g.scopes[0] if v.shape and part.fits(v)]
    if not tiles:
        return None
    value = g.define(cast(g.random.choice(tiles), dtypes.int32))
    others = g.random.choice(OTHERS).format(value.text, g.random.randrange(len(value.shape)))
    return g.define(Typed(f"({value.text} - {others})", dtypes.int32, value.shape))


def _sum(g: Generator, part: Part) -> Typed | None:
    """A sum over the rows of a few blocks."""
    if part.numbers:
        return None
    r = g.random
    dtype, trips = r.choice(SUMMED), r.choice((0, 1, 3))
    down = r.random() < 0.7
    shape = (part.rows, part.width) if down else (part.width, part.rows)
    apart = part.length + r.choice((0, 1))
    name = g.argument("in", "input", dtype.name, max(1, trips) * part.rows * apart, "small")
    total, k = g.new(), g.new("k")
    tiles = r.random() < 0.4
    g.emit(f"{total} = tl.zeros({shape if tiles else (part.width,)}, tl.{dtype.name})")
    with g.block(f"for {k} in range(0, {trips * part.rows}, {part.rows}):", Typed(k, dtypes.int32)):
        mine, others = ("[None, :]", "[:, None]") if down else ("[:, None]", "[None, :]")
        lines = not down and r.random() < 0.5
        size = max(1, trips) * part.rows
        here = f"({k} + rows){others}"
        text = f"columns{mine} * {size} + {here}" if lines else f"{here} * {apart} + columns{mine}"
        offsets = Access(Typed(text, dtypes.int64, shape), size * apart)
        loaded = g.define(masked(r, name, dtype, offsets, part.mask(f"columns{mine}")))
        g.emit(f"{total} += {loaded.text if tiles else f'tl.sum({loaded.text}, axis={0 if down else 1})'}")
    if tiles and r.random() < 0.5:
        g.emit(f"{total} = tl.sum({total}, axis={0 if down else 1})")
        tiles = False
    value = Typed(total, dtype, shape if tiles else (part.width,))
    g.scopes[-1].append(value)
    return value


Statement: TypeAlias = Callable[["Generator", Part], Typed | None]

STATEMENTS: Final[dict[str, tuple[Statement, float]]] = {
    "shared": (_shared, 0.3),
    "index": (_index, 0.15),
    "sum": (_sum, 0.35),
    "across": (_across, 0.08),
}
"""Statements that define a value, and how many of the kernels have them."""


def _store(g: Generator, part: Part, value: Typed) -> None:
    """To a new array, some of whose elements are loaded before."""
    text, along, size = part.offsets(value.shape)
    keeps = value.dtype in part.dtypes and g.random.random() < 0.75
    dtype = value.dtype if keeps else g.random.choice(part.dtypes)
    name = g.argument("out", "output", dtype.name, size)
    mask = part.mask(along)
    if g.random.random() < 0.3:
        old = g.define(masked(g.random, name, dtype, Access(Typed(text, dtypes.int64, value.shape), size), mask))
        value = old if g.random.random() < 0.3 else binary("+", value, old) or value
    g.emit(f"tl.store({name} + {text}, {value.text}{f', mask={mask}' if mask else ''})")


def _update(g: Generator, part: Part, value: Typed) -> None:
    """An update of places that programs share, one for each element or one for each program."""
    r = g.random
    kind = r.choice(("add", *UPDATES))
    dtype = r.choice(UPDATES[kind])
    size = r.choice((1, 8, 64))
    name = g.argument("sum", "counter", dtype.name, size)
    if r.random() < 0.4:
        g.emit(f"tl.atomic_{kind}({name}, {r.choice((1, 3))})")
        return
    value = whole(value, dtype) if dtype.is_float else cast(value, dtype)
    text, along, _ = part.offsets(value.shape)
    mask = part.mask(along)
    g.emit(f"tl.atomic_{kind}({name} + ({text}) % {size}, {value.text}{f', mask={mask}' if mask else ''})")
