"""Atomic accesses whose result no order of the programs changes.

Places that elements or programs share are only updated, by what commutes, and looked at in the end. What an atomic returns is
used where each element has a place of its own. Floats are whole numbers, which sums keep exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.memory import Access
from fuzz.typed import INTEGERS, Typed, cast, fits, lines_up, whole
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.generator import Generator

WIDE: Final = (dtypes.float32, dtypes.float64)
NARROW: Final = (dtypes.float16, dtypes.bfloat16)
UPDATES: Final[dict[str, tuple[DType, ...]]] = {
    "add": (*INTEGERS, *WIDE),
    **dict.fromkeys(("min", "max"), (*INTEGERS, *WIDE, *NARROW)),
    **dict.fromkeys(("and", "or", "xor"), INTEGERS),
}
"""Atomics that commute, and the dtypes for which they do so exactly."""
EXCHANGES: Final = {"xchg": (*INTEGERS, *WIDE, *NARROW), "cas": (*INTEGERS, *WIDE, *NARROW)}
"""Atomics that do not."""


def atomic(g: Generator) -> None:
    """An update of shared places, or any atomic on places of the program's own."""
    value = g.pick()
    if value is not None:
        g.random.choice((_shared, _shared, _own, _own, _plain))(g, value)


def _order(g: Generator, own: bool, *words: str) -> str:
    """``sem=`` and ``scope=``, or nothing. Other blocks may not see an update of scope ``cta``."""
    r = g.random
    words = ("relaxed", *(words or ("acquire", "release", "acq_rel")))
    sem = f', sem="{r.choice(words)}"' if r.random() < 0.4 else ""
    scopes = ("gpu", "sys", "cta") if own or g.programs == 1 else ("gpu", "sys")
    return sem + (f', scope="{r.choice(scopes)}"' if r.random() < 0.3 else "")


def _typed(value: Typed, dtype: DType) -> Typed:
    return whole(value, dtype) if dtype.is_float else cast(value, dtype)


def _shared(g: Generator, value: Typed) -> None:
    """An update of places that programs and elements share."""
    r = g.random
    kind = r.choice(("add", *UPDATES))
    dtype = r.choice(UPDATES[kind])
    value = _typed(value, dtype)
    index = g.pick(lambda v: v.dtype.is_integer and lines_up(value.shape, v.shape) and fits(v.shape, value.shape))
    size = r.choice((1, 8, 64))
    name = g.argument("sum", "counter", dtype.name, size)
    offsets = f"({cast(index, dtypes.int32).text} & {size - 1})" if index else None
    pointer = f"{name} + {offsets}" if offsets else f"{name} + tl.zeros_like({cast(value, dtypes.int32).text})"
    test = g.pick(lambda v: v.dtype.is_bool and lines_up(v.shape, index.shape if index else value.shape))
    mask = f", mask={test.text}" if test and r.random() < 0.4 else ""
    g.emit(f"tl.atomic_{kind}({pointer}, {value.text}{mask}{_order(g, False)})")


def _place(g: Generator, value: Typed, dtype: DType) -> tuple[Access, str]:
    access = g.place(value.shape, injective=True)
    name = g.argument("own", "counter", dtype.name, access.span * g.programs)
    return access, f"{name} + {access.offsets.text}"


def _own(g: Generator, value: Typed) -> None:
    """Any atomic on places of its own; what was there is a new value."""
    kinds = UPDATES | EXCHANGES
    kind = g.random.choice(tuple(kinds))
    dtype = g.random.choice(kinds[kind])
    value = _typed(value, dtype)
    _, pointer = _place(g, value, dtype)
    compared = ""
    if kind == "cas":
        other = g.pick(lambda v: v.shape == value.shape) or value
        compared = f"{_typed(other, dtype).text}, "
    text = f"tl.atomic_{kind}({pointer}, {compared}{value.text}{_order(g, True)})"
    g.define(Typed(text, dtype, value.shape))


def _plain(g: Generator, value: Typed) -> None:
    """An atomic store to places of its own between atomic loads of them."""
    dtype = g.random.choice((*INTEGERS, *WIDE, *NARROW))
    value = _typed(value, dtype)
    access, pointer = _place(g, value, dtype)
    loaded = f"tl.atomic_load({pointer}{_order(g, True, 'acquire')})"
    g.define(Typed(loaded, dtype, value.shape))
    mask, _ = g.mask(access, lines_up)
    masked = f", mask={mask}" if mask else ""
    g.emit(f"tl.atomic_store({pointer}, {value.text}{masked}{_order(g, True, 'release')})")
    g.define(Typed(loaded, dtype, value.shape))
