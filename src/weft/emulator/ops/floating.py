"""Floating-point arithmetic in f32, f32x2 and f64 (PTX ISA 9.7.3), and mixed with f16 and bf16 (9.7.5).

Every result is rounded once (`weft.emulator.arith.single`, `double`); what ``.approx`` and ``.full`` give is in
`weft.emulator.ops.approximate`, the half-precision types in `weft.emulator.ops.half`.

A result is subnormal, for ``.ftz``, when the rounded result is. NaN results of f32 are the canonical NaN, 0x7fffffff; those of
f64 carry an operand's payload as NumPy has it; abs, neg and copysign change the sign of a NaN alone. The ISA leaves
all of that open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from weft.emulator.arith import approximate, double, formats, rounding, single
from weft.emulator.machine.active import Active
from weft.emulator.ops import half
from weft.emulator.ops.elementwise import Array, assign, elementwise, lanes
from weft.emulator.ops.extremes import check_signs, one_nan, pick
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Binder, Step, instruction, masked
from weft.emulator.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

Compute = Callable[..., Any]

ROUNDINGS: Final = "rn rz rm rp"


def source(b: Binding, operand: int, kind: Type) -> Array:
    """An operand as float32 or float64; the halves of f32x2 are the second axis."""
    x = b.read(operand, kind)
    return lanes(x, "f4") if kind.name == "f32x2" else x


def destination(b: Binding, kind: Type) -> Array:
    """Where the result goes, as `source` gives operands."""
    d = b.write(0, kind)
    return lanes(d, "f4") if kind.name == "f32x2" else d


def steps(d: Array, function: Compute, operands: tuple[Array, ...], ftz: bool, sat: bool) -> Step:
    """``d = function(*operands)`` with subnormals flushed, saturated, NaN canonical, as asked for."""
    if ftz:
        flush, given = rounding.flush, _flushed(operands)

        def compute() -> Any:
            return flush(function(*given()))
    else:

        def compute() -> Any:
            return function(*operands)

    if sat:
        return assign(d, lambda: rounding.saturate(compute()))
    if d.dtype == np.float64:
        return assign(d, compute)
    return assign(d, lambda: rounding.canonical(compute()))


def _flushed(operands: tuple[Array, ...]) -> Callable[[], list[Array]]:
    """The operands with subnormals flushed: registers each time, constants once."""
    flush = rounding.flush
    with np.errstate(all="ignore"):
        constants = [flush(np.asarray(x)) if x.ndim == 0 else None for x in operands]
    given = tuple(zip(operands, constants, strict=True))
    return lambda: [flush(x) if constant is None else constant for x, constant in given]


def _plain(d: Array, ufunc: Any, x: Array, y: Array) -> Step:
    """float32 arithmetic as NumPy does it: all that most instructions ask for."""
    canonical = rounding.canonical

    def step(active: Active) -> None:
        if active.full:
            canonical(ufunc(x, y, out=d))
        else:
            masked(d, canonical(ufunc(x, y)), active)

    return step


UFUNCS: Final = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def _binary(name: str) -> Binder:
    def bind(b: Binding) -> Step:
        if half.is_half(b):
            return _mixed_sum(b, name) if len(b.types) > 1 and name != "mul" else half.binary(b, name)
        f = form(b, mode="? " + ROUNDINGS, ftz="? ftz", sat="? sat", type="f32 f32x2 f64")
        kind = _kind(b, f)
        b.count(3)
        x, y, d = source(b, 1, kind), source(b, 2, kind), destination(b, kind)
        mode = f["mode"] or "rn"
        if mode == "rn" and not f["ftz"] and not f["sat"]:
            return elementwise(d, UFUNCS[name], x, y) if kind.name == "f64" else _plain(d, UFUNCS[name], x, y)
        function = getattr(double if kind.name == "f64" else single, name)
        return steps(d, partial(function, mode=mode), (x, y), bool(f["ftz"]), bool(f["sat"]))

    return bind


def _kind(b: Binding, f: dict[str, str]) -> Type:
    name = f["type"]
    b.require(name != "f64" or not f["ftz"], ".ftz is for .f32 only")
    b.require(name == "f32" or not f.get("sat"), ".sat is for .f32 only")
    return TYPES[name]


def _fused(b: Binding) -> Step:
    """fma, and mad, which is fma for fewer types."""
    mad = b.instruction.opcode == "mad"
    if half.is_half(b) and not mad:
        return _mixed_fma(b) if len(b.types) > 1 else half.fma(b)
    f = form(b, mode=ROUNDINGS, ftz="? ftz", sat="? sat", type="f32 f64" if mad else "f32 f32x2 f64")
    kind = _kind(b, f)
    b.count(4)
    mode = f["mode"]
    operands = source(b, 1, kind), source(b, 2, kind), source(b, 3, kind)
    if mode == "rn" and kind.name == "f32" and not f["sat"]:
        return _fast_fma(b.execution, b.write(0, kind), operands, bool(f["ftz"]))
    function = (double if kind.name == "f64" else single).fma
    return steps(destination(b, kind), partial(function, mode=mode), operands, bool(f["ftz"]), bool(f["sat"]))


_SCRATCH: Final[WeakKeyDictionary[Execution, tuple[rounding.F64, rounding.F64, Array]]] = WeakKeyDictionary()
"""For each launch the arrays `_fast_fma` computes in; nothing in them lives longer than a step."""


def _scratch(execution: Execution, count: int) -> tuple[rounding.F64, rounding.F64, Array]:
    found = _SCRATCH.get(execution)
    if found is None or found[0].size != count:
        found = _SCRATCH[execution] = np.empty(count), np.empty(count), np.empty(count, np.uint64)
    return found


def _fast_fma(execution: Execution, d: Array, operands: tuple[Array, ...], ftz: bool) -> Step:
    """fma.rn.f32, the most frequent of all, with as few calls as there can be: the sum in float64, and if that may lie on a
    boundary of float32 (`rounding.exact_sum`), the general way."""
    count = d.size
    product, addend, last = _scratch(execution, count)
    bits, mask = product.view(np.uint64), np.uint64((1 << 28) - 1)
    canonical, flush = rounding.canonical, rounding.flush
    given = _flushed(operands)

    def step(active: Active) -> None:
        x, y, z = given() if ftz else operands
        product[...] = x
        addend[...] = y
        np.multiply(product, addend, out=product)
        addend[...] = z
        np.add(product, addend, out=product)
        np.bitwise_and(bits, mask, out=last)
        if np.count_nonzero(last) != count and np.count_nonzero(last) != np.count_nonzero(product):
            result = single.fma(x, y, z, "rn")
        elif active.full and not ftz:
            d[...] = product
            canonical(d)
            return
        else:
            result = product.astype(np.float32)
        masked(d, canonical(flush(result) if ftz else result), active)

    return step


# ---- mixed precision --------------------------------------------------------------------------------------------------


def _mixed_form(b: Binding, default: str = "") -> tuple[str, bool, Type]:
    f = form(b, mode=default + ROUNDINGS, sat="? sat", type="f32", source="f16 bf16")
    return f["mode"] or "rn", bool(f["sat"]), TYPES[f["source"]]


def _mixed_sum(b: Binding, name: str) -> Step:
    """add.f32.f16: the first operand is of the narrow type, the second f32."""
    mode, sat, narrow = _mixed_form(b, "? ")
    b.count(3)
    x, y = half.codes(b, 1, narrow), b.read(2, TYPES["f32"])
    function, wide = getattr(single, name), formats.FORMATS[narrow.name]

    def compute(x: Any, y: Any) -> Any:
        return function(formats.decode(x, wide), y, mode)

    return steps(b.write(0, TYPES["f32"]), compute, (x, y), False, sat)


def _mixed_fma(b: Binding) -> Step:
    """fma.rn.f32.f16: both factors are of the narrow type, the addend f32."""
    mode, sat, narrow = _mixed_form(b)
    b.count(4)
    operands = half.codes(b, 1, narrow), half.codes(b, 2, narrow), b.read(3, TYPES["f32"])
    wide = formats.FORMATS[narrow.name]

    def compute(x: Any, y: Any, z: Any) -> Any:
        return single.fma(formats.decode(x, wide), formats.decode(y, wide), z, mode)

    return steps(b.write(0, TYPES["f32"]), compute, operands, False, sat)


# ---- quotients and roots ----------------------------------------------------------------------------------------------


def _div(b: Binding) -> Step:
    f = form(b, how="approx full " + ROUNDINGS, ftz="? ftz", type="f32 f64")
    kind = _kind(b, f)
    b.count(3)
    how = f["how"]
    b.require(kind.name == "f32" or how in rounding.MODES, f".{how} is for .f32 only")
    exact = (double if kind.name == "f64" else single).div
    function: Compute = approximate.div if how == "approx" else partial(exact, mode="rn" if how == "full" else how)
    return steps(b.write(0, kind), function, (b.read(1, kind), b.read(2, kind)), bool(f["ftz"]), False)


def _root(name: str) -> Binder:
    """rcp, sqrt, rsqrt: approximated, or but for rsqrt rounded."""

    def bind(b: Binding) -> Step:
        f = form(b, how="approx" if name == "rsqrt" else "approx " + ROUNDINGS, ftz="? ftz", type="f32 f64")
        kind, how = TYPES[f["type"]], f["how"]
        b.count(2)
        x, d = b.read(1, kind), b.write(0, kind)
        if kind.name == "f64" and f["ftz"]:
            b.require(how == "approx" and name != "sqrt", ".ftz is for .f32 only")
            return assign(d, lambda: approximate.gross(approximate.FUNCTIONS[name], x))
        if how == "approx":
            b.require(kind.name == "f32" or name == "rsqrt", ".approx is for .f32 only")
            return approximated(d, approximate.FUNCTIONS[name], x, bool(f["ftz"]))
        module = double if kind.name == "f64" else single
        one = kind.numpy.type(1)

        def compute(x: Any) -> Any:
            return module.sqrt(x, how) if name == "sqrt" else module.div(one, x, how)

        return steps(d, compute, (x,), bool(f["ftz"]), False)

    return bind


def approximated(d: Array, function: Compute, x: Array, ftz: bool) -> Step:
    """``d = function(x)``, a function of float64, rounded to the type of ``d``."""
    if ftz and function in (np.exp2, np.sin, np.cos):  # what a subnormal operand gives them is flushed, or 1, anyway
        return assign(d, lambda: rounding.canonical(rounding.flush(function(x.astype(np.float64)).astype(np.float32))))
    if d.dtype == np.float64:
        return steps(d, function, (x,), ftz, False)

    def compute(x: Any) -> Any:
        return function(np.asarray(x, np.float64)).astype(np.float32)

    return steps(d, compute, (x,), ftz, False)


def _function(name: str) -> Binder:
    """sin, cos, lg2, ex2, tanh."""

    def bind(b: Binding) -> Step:
        if half.is_half(b):
            b.require(name in ("ex2", "tanh"), f"{name} is for .f32 only")
            return half.function(b, name)
        f = form(b, how="approx", ftz="? ftz", type="f32")
        b.require(name != "tanh" or not f["ftz"], "tanh has no .ftz")
        b.count(2)
        kind = TYPES["f32"]
        return approximated(b.write(0, kind), approximate.FUNCTIONS[name], b.read(1, kind), bool(f["ftz"]))

    return bind


# ---- signs and comparisons --------------------------------------------------------------------------------------------


def _sign(name: str) -> Binder:
    ufunc = {"abs": np.abs, "neg": np.negative}[name]

    def bind(b: Binding) -> Step:
        if half.is_half(b):
            return half.sign(b, name)
        f = form(b, ftz="? ftz", type="f32 f64")
        kind = _kind(b, f)
        b.count(2)
        x, d = b.read(1, kind), b.write(0, kind)
        if f["ftz"]:
            return assign(d, lambda: ufunc(rounding.flush(x)))
        return elementwise(d, ufunc, x)

    return bind


def _extreme(name: str) -> Binder:
    def bind(b: Binding) -> Step:
        if half.is_half(b):
            return half.extreme(b, name)
        f = form(b, ftz="? ftz", nan="? NaN", xorsign="? xorsign", abs="? abs", type="f32 f64")
        kind = _kind(b, f)
        b.require(
            kind.name == "f32" or not (f["nan"] or f["abs"] or f["xorsign"]), "min.f64 and max.f64 have no modifiers"
        )
        count = b.count(3, 4) if kind.name == "f32" else b.count(3)
        check_signs(b, f, count)
        operands = tuple(b.read(i, kind) for i in range(1, count))
        compute = pick(name, f) if kind.name == "f32" else one_nan(pick(name, f))
        return steps(b.write(0, kind), compute, operands, bool(f["ftz"]), False)

    return bind


@instruction("copysign")
def _copysign(b: Binding) -> Step:
    """The sign of the first operand, the value of the second."""
    kind = TYPES[form(b, type="f32 f64")["type"]]
    b.count(3)
    return elementwise(b.write(0, kind), np.copysign, b.read(2, kind), b.read(1, kind))


def _is_number(x: Any) -> Any:
    return ~np.isnan(x)


def _is_normal(x: Any) -> Any:
    return np.isfinite(x) & ((np.abs(x) >= rounding.TINY[x.dtype]) | (x == 0))


def _is_subnormal(x: Any) -> Any:
    return (np.abs(x) < rounding.TINY[x.dtype]) & (x != 0)


TESTS: Final[dict[str, Compute]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": _is_number,
    "notanumber": np.isnan,
    "normal": _is_normal,
    "subnormal": _is_subnormal,
}
"""What testp asks; zeros are normal numbers."""


@instruction("testp")
def _testp(b: Binding) -> Step:
    f = form(b, test=" ".join(TESTS), type="f32 f64")
    kind = TYPES[f["type"]]
    b.count(2)
    test, x = TESTS[f["test"]], b.read(1, kind)
    return assign(b.write(0, TYPES["pred"]), lambda: test(x))


FLOAT_OPS: Final[dict[str, Binder]] = {
    **{name: _binary(name) for name in UFUNCS},
    **{name: _sign(name) for name in ("abs", "neg")},
    **{name: _extreme(name) for name in ("min", "max")},
    "mad": _fused,
    "div": _div,
}
"""The float binders of the opcodes that integers have too, by opcode."""

instruction("fma")(_fused)
for _name in ("rcp", "sqrt", "rsqrt"):
    instruction(_name)(_root(_name))
for _name in ("sin", "cos", "lg2", "ex2", "tanh"):
    instruction(_name)(_function(_name))
