"""Statements by which the programs of a kernel work together, with a result that no schedule changes.

- `last_reduces`: each program stores a tile and counts itself; the last program reduces the tiles of all.
- `under_lock`: a tile is updated by every program, in plain loads and stores between taking and giving back a lock.
- `by_cas`: a number is updated by a loop of compare-and-swap between two other accesses.
- `atomics`: every kind of integer atomic on a place of its own, of which only the end is looked at.

Each program does its part unless it has returned, and whether it returns depends on its own values only. Arrays are not
shared with other statements, so there are no races. Updates commute: what programs combine is an integer, by ``+``, ``^``,
``&``, ``|``, the minimum or the maximum.
"""

from __future__ import annotations

import random
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from fuzz.memory import Access
from fuzz.typed import Shape, Typed, cast, spelling
from weft import dtypes
from weft.dtypes import DType

WORDS: Final = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
"""What atomics take."""

UPDATES: Final = {
    "add": "({0} + {1})",
    "xor": "({0} ^ {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "min": "tl.minimum({0}, {1})",
    "max": "tl.maximum({0}, {1})",
}
"""The atomics whose order does not matter, and the same as an expression."""


class Scope(Protocol):
    """What the generator provides."""

    random: random.Random
    programs: int

    def emit(self, line: str) -> None: ...
    def new(self, prefix: str = "v") -> str: ...
    def block(self, header: str, *variables: Typed) -> AbstractContextManager[None]: ...
    def argument(self, prefix: str, *entry: Any) -> str: ...
    def place(self, shape: Shape, injective: bool) -> Access: ...


def last_reduces(s: Scope, value: Typed) -> None:
    """``value`` is stored; who comes last combines the tiles of all programs."""
    value = of_program(s, value)
    access = s.place(value.shape, injective=True)
    at, size = access.offsets.text, access.span * s.programs
    parts = s.argument("part", "counter", value.dtype.name, size)
    count = s.argument("count", "zeros", "int32", 1)
    total = s.argument("total", "counter", value.dtype.name, size)
    before, all_of_them, i = s.new("t"), s.new("t"), s.new("i")
    s.emit(f"tl.store({parts} + {at}, {value.text})")
    s.emit(f"{before} = tl.atomic_add({count}, 1{order(s, 'acq_rel')})")
    after(s, value, access)
    with s.block(f"if {before} == {s.programs - 1}:"):
        s.emit(f"{all_of_them} = {full(s, value.shape, value.dtype)}")
        update = UPDATES[s.random.choice(("add", "xor", *UPDATES))]
        with s.block(f"for {i} in range({s.programs}):"):
            part = f"tl.load({parts} + ({at} + ({i} - pid) * {access.span}))"
            s.emit(f"{all_of_them} = {update.format(all_of_them, part)}")
        s.emit(f"tl.store({total} + ({at} - pid * {access.span}), {all_of_them})")


def under_lock(s: Scope, value: Typed) -> None:
    """``value`` is combined with a tile in memory under a spin lock, once or twice."""
    value = of_program(s, value, (dtypes.uint32, dtypes.uint64))
    access = s.place(value.shape, injective=True)
    at = f"({access.offsets.text} - pid * {access.span})"
    tile = s.argument("tile", "counter", value.dtype.name, access.span)
    lock = s.argument("lock", "zeros", "int32", 1)
    update = UPDATES[s.random.choice(("add", "xor"))]
    for _ in range(s.random.choice((1, 1, 2))):
        with s.block(f"while tl.atomic_cas({lock}, 0, 1{order(s, 'acquire')}) == 1:"):
            s.emit("pass")
        seen = s.new("t")
        s.emit(f"{seen} = tl.load({tile} + {at})")
        s.emit(f"tl.store({tile} + {at}, {update.format(seen, value.text)} ^ {slow_zero(seen, value.dtype)})")
        released = s.random.choice(
            (
                f"tl.atomic_xchg({lock}, 0{order(s, 'release')})",
                f"tl.atomic_add({lock}, -1{order(s, 'release')})",
                f"tl.store({lock}, 0)",
            )
        )
        s.emit(released)
    after(s, value, access)


def by_cas(s: Scope, value: Typed) -> None:
    """A number from each program is combined with one in memory, tried again until nothing came in between."""
    dtype = s.random.choice(WORDS)
    number = f"(tl.max({cast(value, dtypes.int32).text}) >> 3)" if value.shape else cast(value, dtypes.int32).text
    place = s.argument("swap", "counter", dtype.name, 1)
    seen, old, mine = s.new("t"), s.new("t"), s.new("t")
    update = UPDATES[s.random.choice(("add", "xor", *UPDATES))]
    s.emit(f"{mine} = ({number} + pid).to(tl.{spelling(dtype)})")
    s.emit(f"{seen} = tl.load({place}, volatile=True)")
    s.emit(f"{old} = tl.atomic_cas({place}, {seen}, {update.format(seen, mine)})")
    with s.block(f"while {old} != {seen}:"):
        s.emit(f"{seen} = {old}")
        s.emit(f"{old} = tl.atomic_cas({place}, {seen}, {update.format(seen, mine)}{order(s, 'relaxed')})")


def atomics(s: Scope, value: Typed) -> None:
    """An atomic of any kind on a tile that all programs share; ``xchg`` and ``cas`` on a part of the program's own."""
    value = of_program(s, value)
    access = s.place(value.shape, injective=True)
    at = access.offsets.text
    kind = s.random.choice((*UPDATES, "xchg", "cas"))
    shared = f"({at} - pid * {access.span})"
    if kind in UPDATES:
        name = s.argument("shared", "counter", value.dtype.name, access.span)
        s.emit(f"tl.atomic_{kind}({name} + {shared}, {value.text}{order(s, 'relaxed')})")
        return
    name = s.argument("own", "counter", value.dtype.name, access.span * s.programs)
    compared = "" if kind == "xchg" else f"{full(s, value.shape, value.dtype)} + {s.random.randint(0, 3)}, "
    before = s.new("t")
    s.emit(f"{before} = tl.atomic_{kind}({name} + {at}, {compared}{value.text}{order(s, 'relaxed')})")
    out = s.argument("out", "output", value.dtype.name, access.span * s.programs)
    s.emit(f"tl.store({out} + {at}, {before})")


def after(s: Scope, value: Typed, access: Access) -> None:
    """A store of the same tile behind the last atomic, in a loop that the store before the atomic could wrongly join."""
    name = s.argument("after", "output", value.dtype.name, access.span * s.programs)
    s.emit(f"tl.store({name} + {access.offsets.text}, {value.text})")


def slow_zero(name: str, dtype: DType) -> str:
    """Zero, computed from an unsigned value by divisions. Between a load and a store they make it likely that another program
    comes in, if it may."""
    quotients = (f"{name} // (pid + {d}).to(tl.{spelling(dtype)}) >> {dtype.bits - 1}" for d in range(3, 3 + DIVISIONS))
    return f"({' | '.join(f'({quotient})' for quotient in quotients)})"


DIVISIONS: Final = 4
"""How slow a critical section is: in native code much slower than an atomic, so that programs meet."""

PATTERNS: Final = (last_reduces, under_lock, by_cas, atomics)


def of_program(s: Scope, value: Typed, words: tuple[DType, ...] = WORDS) -> Typed:
    """``value`` in a variable, in a type that atomics take, made to differ between programs, so that a lost update shows."""
    dtype, name = s.random.choice(words), s.new("t")
    s.emit(f"{name} = ({cast(value, dtype).text} + pid * 77).to(tl.{spelling(dtype)})")
    return Typed(name, dtype, value.shape)


def full(s: Scope, shape: Shape, dtype: DType) -> str:
    """Zeros of a shape: a scalar or a tile."""
    zero = f"tl.full(({', '.join(map(str, shape))},), 0, tl.{spelling(dtype)})" if shape else "0"
    return zero if shape else f"(pid * 0).to(tl.{spelling(dtype)})"


def order(s: Scope, least: str) -> str:
    """``sem=``, an order that is at least as strong; nothing for the default, acq_rel."""
    stronger = {"acq_rel": ("acq_rel",), "relaxed": ("relaxed", "acquire", "release", "acq_rel")}
    chosen = s.random.choice(stronger.get(least, (least, "acq_rel")))
    return "" if chosen == "acq_rel" and s.random.random() < 0.5 else f', sem="{chosen}"'
