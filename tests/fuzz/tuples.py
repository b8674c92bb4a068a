"""Tuples of values, which branches and loops carry, and values that are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.typed import Typed

if TYPE_CHECKING:
    from fuzz.generator import Generator

LONGEST_PRINT = 64
"""How many elements are printed at most."""


TURNS: Final = {
    "({0}[1], {0}[2], {0}[0])": (1, 2, 0),
    "{0}[1:] + {0}[:1]": (1, 2, 0),
    "({0}[2], {0}[1], {0}[0])": (2, 1, 0),
}
"""Ways to make a tuple of three of another, and where each element comes from."""


def tuple_of_values(g: Generator) -> None:
    """A tuple of three values of one type, which change places, perhaps in a branch or a loop. A trap compares one of them with
    the value that was there before."""
    r = g.random
    first = g.pick()
    if first is None:
        return
    kind = first.dtype, first.shape
    values = [g.define(v) for v in (first, *(g.pick(lambda v: (v.dtype, v.shape) == kind) or first for _ in range(2)))]
    name, chosen = g.new("tuple"), r.randrange(3)
    g.emit(f"{name} = ({', '.join(v.text for v in values)})")
    text, turn = r.choice(list(TURNS.items()))
    header, turns = r.choice((("", 1), ("if", 1), ("for", r.randint(0, 4))))
    source = chosen
    for _ in range(turns):
        source = turn[source]
    expected = values[source].text
    assigned = f"{name} = {text.format(name)}"
    if header == "if":
        condition = g.new("c")
        g.emit(f"{condition} = {g.condition()}")
        with g.block(f"if {condition}:"):
            g.emit(assigned)
        expected = f"({expected} if {condition} else {values[chosen].text})"
    elif header:
        with g.block(f"for {g.new('i')} in range({turns}):"):
            g.emit(assigned)
    else:
        g.emit(assigned)
    if r.random() < 0.5:
        targets = [v.called(g.new()) for v in values]
        g.emit(f"{', '.join(t.text for t in targets)} = {name}")
        g.scopes[-1].extend(targets)
        found = targets[chosen]
    else:
        shown = chosen if r.random() < 0.7 else chosen - len(values)
        found = g.define(Typed(f"{name}[{shown}]", *kind))
    if not g.in_helper:
        g.alike(found, g.define(Typed(expected, *kind)).text)


def printing(g: Generator) -> None:
    """A small exact value printed, in one of the two spellings; without NaN, whose sign is not specified."""
    value = g.pick(lambda v: v.size <= LONGEST_PRINT)
    if value is None:
        return
    text = f"tl.where({value.text} == {value.text}, {value.text}, 0.0)" if value.dtype.is_float else value.text
    extra = ", hex=True" if not value.dtype.is_float and g.random.random() < 0.3 else ""
    g.emit(f'tl.device_print("{g.new("p")}: ", {text}{extra})')
