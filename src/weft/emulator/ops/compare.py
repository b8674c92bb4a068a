"""Comparisons and selections (PTX ISA, comparison and selection instructions): setp, set, selp, slct.

A comparison's result t may be combined with a predicate c; a packed type compares its halves apart:

    setp.lt.and.s32   p|q, a, b, c     p = t and c, q = (not t) and c
    setp.lt.f16x2     p|q, a, b        p = t of the lower halves, q = t of the upper
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.emulator.arith import compare as arith
from weft.emulator.machine.active import Active
from weft.emulator.ops.elementwise import Array, assign, elementwise, lanes, select, words
from weft.emulator.ops.forms import BITS, INTEGERS, form
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.syntax import Pair, Sink
from weft.emulator.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

NARROW: Final = "f16 bf16 f16x2 bf16x2"
NUMBERS: Final = f"{BITS} {INTEGERS} f32 f64 {NARROW}"
COMPARISONS: Final = " ".join(arith.UNSIGNED | arith.FLOATING)
PACKED: Final = {"f16x2": "f2", "bf16x2": "u2"}
ONES: Final = {"f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80, "f32": 0x3F80_0000}
"""1.0 of each type that ``set`` writes it in; integers get all ones."""

_OPERATORS: Final = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _allowed(kind: Type) -> dict[str, arith.Comparison]:
    by_kind = {"s": arith.SIGNED, "u": arith.UNSIGNED, "b": arith.UNTYPED}
    return by_kind.get(kind.kind, arith.FLOATING)


def _numbers(b: Binding, operand: int, kind: Type, ftz: bool) -> Callable[[], Array]:
    """An operand as numbers NumPy compares, (T,) or of packed halves (T, 2)."""
    raw = b.read(operand, kind)
    if kind.name in PACKED:
        raw = lanes(raw, PACKED[kind.name])
    if kind.name in ("bf16", "bf16x2"):
        return lambda: arith.from_bfloat16(raw)
    return (lambda: arith.flush(raw)) if ftz else (lambda: raw)


def _plain(b: Binding, f: dict[str, str], kind: Type) -> arith.Comparison:
    comparison = _allowed(kind).get(f["cmp"])
    if comparison is None:
        b.wrong(f".{f['cmp']} does not compare .{kind.name}")
    b.require(not f["ftz"] or kind.name in ("f32", "f16", "f16x2"), f".ftz is not for .{kind.name}")
    return comparison


def _combiner(b: Binding, f: dict[str, str]) -> Callable[[Any], Any]:
    """What becomes of a comparison's result: of shape (T,), (T, 2), or of one where both operands are constant."""
    if not f["combine"]:
        b.count(3)
        return lambda t: t
    b.count(4)
    operator, c = _OPERATORS[f["combine"]], b.predicate(3)
    return lambda t: operator(t, c() if t.ndim < 2 else c()[:, None])


@instruction("setp")
def setp(b: Binding) -> Step:
    f = form(b, cmp=COMPARISONS, combine="? and or xor", ftz="? ftz", type=NUMBERS)
    kind = TYPES[f["type"]]
    compare, combine = _plain(b, f, kind), _combiner(b, f)
    x, y = _numbers(b, 1, kind, bool(f["ftz"])), _numbers(b, 2, kind, bool(f["ftz"]))
    results = b.operand(0)
    first, second = (results.first, results.second) if isinstance(results, Pair) else (results, None)
    packed = kind.name in PACKED
    b.require(not packed or second is not None, f"setp of .{kind.name} has two results, p|q")
    b.require(kind.name not in ("f16", "bf16") or second is None, f"setp of .{kind.name} has one result")
    p = b.write(first, TYPES["pred"])
    if second is None or (isinstance(second, Sink) and not packed):
        if not f["combine"] and isinstance(compare, np.ufunc) and kind.kind in "usb":
            return elementwise(p, compare, x(), y())
        return assign(p, lambda: combine(np.asarray(compare(x(), y()))))
    return _two(p, b.write(second, TYPES["pred"]), lambda: np.asarray(compare(x(), y())), combine, packed)


def _two(p: Array, q: Array, compare: Callable[[], Array], combine: Callable[[Any], Any], packed: bool) -> Step:
    def step(active: Active) -> None:
        t = compare()
        if packed:
            both = combine(t)
            one, other = both[:, 0], both[:, 1]
        else:
            one, other = combine(t), combine(~t)
        masked(p, one, active)
        masked(q, other, active)

    return step


def _set_types(target: Type, kind: Type) -> bool:
    """Whether ``set`` may write such a result for such operands (PTX ISA: set, and set of half precision)."""
    name, narrow = target.name, kind.name in NARROW.split()
    if name in ("f16x2", "bf16x2"):
        return kind.name == name
    if kind.name in PACKED:
        return name in ("u32", "s32")
    if name in ("f16", "bf16"):
        return kind.name in (name, "f16") or not narrow
    if name in ("u16", "s16"):
        return narrow
    return name in ("u32", "s32") or (name == "f32" and not narrow)


@instruction("set")
def set_(b: Binding) -> Step:
    """1.0 or all ones where the comparison holds, else 0."""
    targets = f"{NUMBERS} {NARROW}"
    f = form(b, cmp=COMPARISONS, combine="? and or xor", ftz="? ftz", target=targets, type=NUMBERS)
    target, kind = TYPES[f["target"]], TYPES[f["type"]]
    b.require(
        b.types == (target, kind) and _set_types(target, kind),
        f"set gives no .{b.types[0].name} of .{b.types[-1].name}",
    )
    b.require(not f["ftz"] or target.name != "bf16", ".ftz is not for a result of .bf16")
    compare, combine = _plain(b, f, kind), _combiner(b, f)
    x, y = _numbers(b, 1, kind, bool(f["ftz"])), _numbers(b, 2, kind, bool(f["ftz"]))
    parts = 2 if kind.name in PACKED else 1
    d = b.write(0, TYPES[f"u{target.bits}"])
    part = np.dtype(f"u{d.dtype.itemsize // parts}")
    true = np.array(ONES[target.name] if target.name in ONES else np.iinfo(part).max, part)
    zero = np.zeros((), part)

    def compute() -> Array:
        result = select(combine(np.asarray(compare(x(), y()))), true, zero)
        return words(result, d.dtype) if parts == 2 else result

    return assign(d, compute)


def _choose(d: Array, where: Callable[[], Array], x: Array, y: Array) -> Step:
    return assign(d, lambda: select(where(), x, y))


@instruction("selp")
def selp(b: Binding) -> Step:
    kind = TYPES[form(b, type=f"{BITS} {INTEGERS} f32 f64")["type"]]
    return _choose(b.write(0, kind), b.predicate(3), b.read(1, kind), b.read(2, kind))


@instruction("slct")
def slct(b: Binding) -> Step:
    """a where c >= 0, else b; also where c is -0.0, and b where it is a NaN."""
    f = form(b, ftz="? ftz", type=f"{BITS} {INTEGERS} f32 f64", by="s32 f32")
    b.require(not f["ftz"] or f["by"] == "f32", ".ftz is for a choice by .f32 only")
    kind = TYPES[f["type"]]
    c = _numbers(b, 3, TYPES[f["by"]], bool(f["ftz"]))
    zero = np.zeros((), TYPES[f["by"]].numpy)
    return _choose(b.write(0, kind), lambda: np.greater_equal(c(), zero), b.read(1, kind), b.read(2, kind))
