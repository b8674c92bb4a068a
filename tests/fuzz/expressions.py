"""Pure expressions over typed variables: one function for each form, each returning None where it does not apply.

`FORMS` lists them with their weights. A form draws operands from a `Scope` and returns a `Typed` value.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Final

from fuzz.collectives import gather, histogram, scan
from fuzz.functions import function
from fuzz.products import general, product
from fuzz.scope import Scope, text_of
from fuzz.typed import (
    INTEGERS,
    LARGEST_TILE,
    Check,
    Shape,
    Typed,
    binary,
    cast,
    common_shape,
    fits,
    literal,
    spelling,
    where,
    whole,
    zero_is_positive,
)
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import triton as semantics
from weft.semantics.core import PromotionError
from weft.target import APPROXIMATIONS

Form = Callable[[Scope], Typed | None]

ARITHMETIC: Final = ("+", "-", "*", "/", "%", "//", "&", "|", "^", "<<", ">>", "minimum", "maximum")
COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
EXACT_FUNCTIONS: Final = ("tl.floor", "tl.ceil", "tl.sqrt_rn")

ULPS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    **{f"tl.{name}": (3, (name,)) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "erf", "rsqrt")},
    "tl.sqrt": (0, ("sqrt",)),
    "libdevice.tanh": (3, ("tanh",)),
    "tl.sigmoid": (5, ("exp", "div")),
}
"""Functions, how far native code and reference may be apart in float32 and wider, and the kinds that they consist of, of which a
machine may give approximations. Narrow types round that away, but for one step."""
SORTED: Final = 64
"""The largest tile that is sorted: longer ones take most of the time of a kernel's compilation."""
FLOAT64_REFERENCE: Final = 4
"""How far NumPy's own float64 functions may be off."""


def number(scope: Scope, dtype: DType) -> int | float | bool:
    """A literal to meet a value of ``dtype``."""
    r = scope.random
    if dtype.is_bool or r.random() < 0.05:
        return r.choice((True, False))
    if dtype.is_float or r.random() < 0.15:
        value = r.choice((0.5, -1.25, 2.0, 0.0, 3.140625, 1e-3, -100.0, 1e20, float("inf")))
        # The language refuses a number beyond the type; infinity is none.
        return float(dtype.largest) if dtype.is_float and value == 1e20 > dtype.largest else value
    return r.choice((1, 2, 3, 7, 10, 100) if not dtype.signed else (1, -1, 2, 3, -5, 7, 100, 1000))


def operand(scope: Scope, a: Typed) -> Typed | int | float | bool:
    """Something that ``a`` can meet: a value that broadcasts with it, or a literal."""
    if scope.random.random() < 0.25:
        return number(scope, a.dtype)
    other = scope.pick(lambda v: fits(v.shape, a.shape) or fits(a.shape, v.shape))
    return a if other is None else other


def arithmetic(scope: Scope) -> Typed | None:
    """A binary operator on one or two values."""
    op = scope.random.choice(ARITHMETIC)
    a = scope.pick()
    return a and binary(op, a, operand(scope, a), flip=scope.random.random() < 0.3)


def comparison(scope: Scope) -> Typed | None:
    """A comparison, now and then chained."""
    a = scope.pick()
    result = a and binary(scope.random.choice(COMPARISONS), a, operand(scope, a))
    if a and result and scope.random.random() < 0.1:
        other = binary("<", a, number(scope, a.dtype))
        return other and binary("&", result, other)
    return result


def negation(scope: Scope) -> Typed | None:
    """A unary operator or an exact function."""
    a = scope.pick()
    if a is None:
        return None
    forms = ["(-{})", "(+{})", "tl.abs({})"]
    if a.dtype.is_float:
        forms += [f"{name}({{}})" for name in EXACT_FUNCTIONS]
    else:
        forms.append("(~{})")
    if a.dtype.is_bool:
        forms = ["(-{})", "(~{})", "(not {})"]
    return Typed(scope.random.choice(forms).format(a.text), a.dtype, a.shape)


def conjunction(scope: Scope) -> Typed | None:
    """``and``, ``or`` on bools."""
    a = scope.pick(lambda v: v.dtype.is_bool)
    b = a and scope.pick(lambda v: v.dtype.is_bool and (fits(v.shape, a.shape) or fits(a.shape, v.shape)))
    shape = a and b and common_shape(a.shape, b.shape)
    if a is None or b is None or shape is None:
        return None
    return Typed(f"({a.text} {scope.random.choice(('and', 'or'))} {b.text})", dtypes.bool_, shape)


def choice(scope: Scope) -> Typed | None:
    """``tl.where`` on a bool (or anything: not zero) and two values or literals."""
    condition = scope.pick(lambda v: v.dtype.is_bool) or scope.pick()
    a = condition and scope.pick(lambda v: fits(condition.shape, v.shape) or fits(v.shape, condition.shape))
    b = a and scope.pick(lambda v: fits(v.shape, a.shape))
    return condition and a and b and where(condition, a, b)


def conversion(scope: Scope) -> Typed | None:
    """A cast to any dtype."""
    a = scope.pick()
    return a and cast(a, scope.random.choice(dtypes.ALL))


def through_float8(scope: Scope) -> Typed | None:
    """A float8 that NumPy's arrays do not have, or that neither Triton nor hardware computes with, in the middle of conversions.
    NaN is left out: what float8e4b15 makes of its sign is not specified."""
    a = scope.pick(lambda v: not v.dtype.is_bool)
    if a is None:
        return None
    middle = spelling(scope.random.choice([d for d in dtypes.ELEMENTS if d not in dtypes.ALL]))
    target = scope.random.choice([d for d in dtypes.ALL if d.is_float and not d.is_float8])
    number = f"tl.where({a.text} == {a.text}, {a.text}, 0.0)" if a.dtype.is_float else a.text
    text = scope.random.choice(("{}", "tl.abs({})", "(-{})")).format(f"{number}.to(tl.{middle})")
    return Typed(f"{text}.to(tl.{spelling(target)})", target, a.shape)


def reinterpretation(scope: Scope) -> Typed | None:
    """A bitcast to a dtype of the same width; of floats without their NaNs, whose bits are not specified."""
    a = scope.pick(lambda v: not v.dtype.is_bool)
    if a is None:
        return None
    target = scope.random.choice([d for d in dtypes.ALL if d.bits == a.dtype.bits])
    text = f"tl.where({a.text} == {a.text}, {a.text}, 0.0)" if a.dtype.is_float else a.text
    return Typed(f"{text}.to(tl.{spelling(target)}, bitcast=True)", target, a.shape)


def multiply_add(scope: Scope) -> Typed | None:
    """``tl.fma`` of three values of one float dtype."""
    a = scope.pick(lambda v: v.dtype.is_float)
    b = a and scope.pick(lambda v: v.dtype == a.dtype and fits(v.shape, a.shape))
    c = a and scope.pick(lambda v: v.dtype == a.dtype and fits(v.shape, a.shape))
    return a and b and c and Typed(f"tl.fma({a.text}, {b.text}, {c.text})", a.dtype, a.shape)


def limit(scope: Scope) -> Typed | None:
    """``tl.clamp`` of floats, or a minimum or maximum that lets NaN through."""
    a = scope.pick(lambda v: v.dtype.is_float)
    if a is None:
        return None
    nan = f"propagate_nan=tl.PropagateNan.{scope.random.choice(('ALL', 'NONE'))}"
    name = scope.random.choice(("minimum", "maximum", "clamp"))
    bounds = f"{literal(-2.5)}, 3.0" if name == "clamp" else "0.75"
    return Typed(f"tl.{name}({a.text}, {bounds}, {nan})", a.dtype, a.shape)


def branch(scope: Scope) -> Typed | None:
    """``a if scalar else b`` for values of one type."""
    condition = scope.pick(lambda v: v.dtype.is_bool and not v.shape)
    a = condition and scope.pick()
    b = a and scope.pick(lambda v: v.dtype == a.dtype and v.shape == a.shape)
    return condition and a and b and Typed(f"({a.text} if {condition.text} else {b.text})", a.dtype, a.shape)


def movements(scope: Scope, shape: Shape) -> tuple[str, Shape] | None:
    """One way to show the elements of a tile of ``shape`` in another shape, or repeated: a format string, and the shape
    that results."""
    forms: list[tuple[str, Shape]] = []
    rank, size, r = len(shape), math.prod(shape), scope.random
    if rank:
        order = r.sample(range(rank), rank)
        permuted = tuple(shape[i] for i in order)
        forms.append((f"tl.permute({{}}, {', '.join(map(str, order))})", permuted))
        other = factored(r, size)
        forms.append((f"tl.{r.choice(('reshape', 'view'))}({{}}, {text_of(scope, other)})", other))
        forms.append(("tl.ravel({})", (size,)))
        axis = r.randrange(rank)
        dim = "" if axis == rank - 1 and r.random() < 0.5 else f", {axis if r.random() < 0.7 else axis - rank}"
        forms.append((f"tl.flip({{}}{dim})", shape))
    if rank and size % 2 == 0:
        halves = (*factored(r, size // 2), 2)
        forms.append((f"tl.split(tl.reshape({{}}, {text_of(scope, halves)}))[{r.randint(0, 1)}]", halves[:-1]))
    if rank >= 2:
        forms += [("tl.trans({})", (*shape[:-2], shape[-1], shape[-2]))] * 2
    if rank < 4:
        axis = r.randint(0, rank)
        grown = (*shape[:axis], 1, *shape[axis:])
        forms.append((f"tl.expand_dims({{}}, {axis})", grown))
        if rank:
            slices = ", ".join("None" if i == axis else ":" for i in range(rank + 1))
            forms.append((f"{{}}[{slices}]", grown))
    wider = tuple(n * r.choice((1, 2, 8)) if n == 1 else n for n in shape)
    if rank < 3 and r.random() < 0.3:
        wider = (r.choice((1, 2, 4)), *wider)
    if wider and math.prod(wider) <= LARGEST_TILE:
        forms.append((f"tl.broadcast_to({{}}, {text_of(scope, wider)})", wider))
    return r.choice(forms) if forms else None


def movement(scope: Scope) -> Typed | None:
    """An exact value in another shape."""
    a = scope.pick(lambda v: bool(v.shape)) or scope.pick()
    found = a and movements(scope, a.shape)
    return a and found and Typed(found[0].format(a.text), a.dtype, found[1])


def pairing(scope: Scope) -> Typed | None:
    """Two values of one type side by side: joined, in turns, or one after the other."""
    a = scope.pick()
    b = a and scope.pick(lambda v: v.dtype == a.dtype and v.shape == a.shape)
    if a is None or b is None or 2 * a.size > LARGEST_TILE:
        return None
    r, shape = scope.random, a.shape
    name = r.choice(("join", "interleave", "cat")) if shape else r.choice(("join", "interleave"))
    if name == "join" or not shape:
        return Typed(f"tl.{name}({a.text}, {b.text})", a.dtype, (*shape, 2)) if len(shape) < 4 else None
    axis = len(shape) - 1 if name == "interleave" else r.randrange(len(shape))
    extra = "" if name == "interleave" else f", dim={axis if r.random() < 0.7 else axis - len(shape)}"
    grown = tuple(2 * n if d == axis else n for d, n in enumerate(shape))
    return Typed(f"tl.{name}({a.text}, {b.text}{extra})", a.dtype, grown)


def sorted_tile(scope: Scope) -> Typed | None:
    """A small tile sorted, or its greatest elements; of floats without their NaNs, whose signs are not specified."""
    a = scope.pick(lambda v: bool(v.shape) and v.size <= SORTED)
    if a is None:
        return None
    r = scope.random
    axis = r.randrange(len(a.shape))
    descending = r.random() < 0.5
    text = f"tl.where({a.text} == {a.text}, {a.text}, 0.0)" if a.dtype.is_float else a.text
    if r.random() < 0.6:
        return Typed(f"tl.sort({text}, {axis}, {descending})", a.dtype, a.shape)
    k = 1 << r.randrange(a.shape[axis].bit_length())
    shape = tuple(k if d == axis else n for d, n in enumerate(a.shape))
    return Typed(f"tl.topk({text}, {k}, {axis}, {descending})", a.dtype, shape)


def factored(r: random.Random, size: int) -> Shape:
    """A shape of ``size`` elements (a power of two) and rank 1 to 3."""
    exponent = size.bit_length() - 1
    cuts = sorted(r.randint(0, exponent) for _ in range(r.choice((0, 1, 1, 1, 2))))
    return tuple(1 << (b - a) for a, b in zip([0, *cuts], [*cuts, exponent], strict=True))


def reduced_shape(shape: Shape, axis: int | None, keep: bool) -> Shape:
    """The shape after a reduction."""
    if axis is None:
        return (1,) * len(shape) if keep else ()
    return tuple((1 if i == axis else n) for i, n in enumerate(shape) if keep or i != axis)


def reducing(scope: Scope, a: Typed) -> tuple[int | None, str, Shape, int]:
    """How to reduce ``a``: an axis (or None), the arguments' text, the shape that results, elements reduced together."""
    r = scope.random
    axis = r.choice((None, *range(len(a.shape))))
    keep = r.random() < 0.3
    shown = axis if axis is None or r.random() < 0.7 else axis - len(a.shape)
    text = f"axis={shown}" + (", keep_dims=True" if keep else "")
    return axis, text, reduced_shape(a.shape, axis, keep), a.size if axis is None else a.shape[axis]


def reduction(scope: Scope) -> Typed | None:
    """A reduction with one right answer."""
    a = scope.pick(lambda v: bool(v.shape))
    if a is None:
        return None
    r = scope.random
    _, arguments, shape, _ = reducing(scope, a)
    name = r.choice(("sum", "sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce_or", "reduce"))
    if name == "sum":
        if a.dtype.is_float:
            a = whole(a, r.choice((dtypes.float32, dtypes.float64)))
        wide = r.choice(INTEGERS) if not a.dtype.is_float and r.random() < 0.2 else None
        dtype = wide or semantics.reduction("sum", a.dtype).operands
        chosen = f", dtype=tl.{spelling(wide)}" if wide else ""
        result = Typed(f"tl.sum({a.text}, {arguments}{chosen})", dtype, shape)
        return Typed(f"({result.text} + 0.0)", dtype, shape) if dtype.is_float else result
    if name in ("argmax", "argmin"):
        return Typed(f"tl.{name}({a.text}, {arguments})", dtypes.int32, shape)
    if name in ("xor_sum", "reduce_or") and not a.dtype.is_float:
        return Typed(f"tl.{name}({a.text}, {arguments})", a.dtype, shape)
    if name == "reduce" and (combine := scope.combine(a.dtype)):
        return (
            Typed(f"tl.reduce({a.text}, {arguments.replace('axis=', '', 1)}, {combine})", a.dtype, shape)
            if ("keep" not in arguments)
            else Typed(f"tl.reduce({a.text}, {arguments}, combine_fn={combine})", a.dtype, shape)
        )
    name = r.choice(("max", "min"))
    return zero_is_positive(
        Typed(f"tl.{name}({a.text}, {arguments})", semantics.reduction(name, a.dtype).operands, shape)
    )


def upper_half(scope: Scope) -> Typed | None:
    """The upper half of a product, or a random word whose offset is a value."""
    a = scope.pick(lambda v: v.dtype.is_integer and v.dtype.bits >= 32)
    if a is None:
        return None
    if scope.random.random() < 0.2:
        return Typed(f"tl.randint({scope.random.randint(-5, 1 << 40)}, {a.text}, 4)", dtypes.uint32, a.shape)
    other = scope.pick(lambda v: v.dtype == a.dtype and (fits(v.shape, a.shape) or fits(a.shape, v.shape))) or a
    shape = common_shape(a.shape, other.shape)
    return None if shape is None else Typed(f"tl.umulhi({a.text}, {other.text})", a.dtype, shape)


FORMS: Final[Sequence[tuple[Form, float]]] = (
    (arithmetic, 14),
    (comparison, 3),
    (negation, 5),
    (conjunction, 1),
    (choice, 3),
    (conversion, 4),
    (reinterpretation, 1),
    (through_float8, 1),
    (multiply_add, 1.5),
    (limit, 2),
    (branch, 1),
    (movement, 5),
    (reduction, 4),
    (product, 1.5),
    (upper_half, 0.7),
    (pairing, 1.5),
    (sorted_tile, 0.4),
    (scan, 2),
    (gather, 1.5),
    (histogram, 0.7),
    (function, 2),
)
"""Every exact form and its weight."""


def exact(scope: Scope) -> Typed | None:
    """A random exact expression."""
    forms, weights = zip(*FORMS, strict=True)
    form: Form = scope.random.choices(forms, weights)[0]
    return form(scope)


def inexact(scope: Scope) -> tuple[Typed, Typed | None] | None:
    """An expression that native code may round otherwise, and the magnitude its bound is a multiple of (if any).

    The value's `Check` lacks the name of the magnitude's array, which is the first parameter of rule ``within``.
    """
    form = scope.random.choice((_function, _function, _quotient, _softmax, _sum, general))
    return form(scope)


def _function(scope: Scope) -> tuple[Typed, Typed | None] | None:
    a = scope.pick(lambda v: v.dtype.is_float)
    if a is None:
        return None
    name = scope.random.choice(tuple(ULPS))
    ulps, kinds = ULPS[name]
    bound = 1 if a.dtype.bits < 32 else ulps + (FLOAT64_REFERENCE if ulps and a.dtype.bits == 64 else 0)
    operand = (
        _without_subnormals(a) if any(k in APPROXIMATIONS and APPROXIMATIONS[k].flushes for k in kinds) else a.text
    )
    return Typed(f"{name}({operand})", a.dtype, a.shape, Check("ulps", (bound, *kinds))), None


def _without_subnormals(a: Typed) -> str:
    """``a`` with zeros for what is subnormal in float32, which instructions may take for zeros anyway."""
    if a.dtype.exponent < dtypes.float32.exponent:
        return a.text
    return f"tl.where(tl.abs({a.text}) < {2.0**-126}, 0.0, {a.text})"


def _quotient(scope: Scope) -> tuple[Typed, Typed | None] | None:
    """``/`` of anything."""
    a = scope.pick()
    b = operand(scope, a) if a else None
    right = b.dtype if isinstance(b, Typed) else b
    shape = a and common_shape(a.shape, b.shape if isinstance(b, Typed) else ())
    if a is None or right is None or shape is None:
        return None
    try:
        dtype = semantics.binary("/", a.dtype, right).result
    except PromotionError:
        return None
    text = b.text if isinstance(b, Typed) else literal(b or 0)
    return Typed(f"({a.text} / {text})", dtype, shape, Check("ulps", (int(dtype.bits < 32), "div"))), None


def _softmax(scope: Scope) -> tuple[Typed, Typed | None] | None:
    a = scope.pick(lambda v: v.dtype.is_float and bool(v.shape))
    if a is None:
        return None
    axis = scope.random.randrange(len(a.shape))
    ulps = 1 if a.dtype.bits < 32 else 16 + a.shape[axis]
    return Typed(f"tl.softmax({a.text}, {axis})", a.dtype, a.shape, Check("ulps", (ulps, "exp", "div"))), None


def _sum(scope: Scope) -> tuple[Typed, Typed | None] | None:
    """A sum of anything; each of its additions may round by half a unit, in either order."""
    a = scope.pick(lambda v: v.dtype.is_float and bool(v.shape))
    if a is None:
        return None
    _, arguments, shape, together = reducing(scope, a)
    epsilon = 2.0**-a.dtype.mantissa
    magnitude = Typed(f"tl.sum(tl.abs({cast(a, dtypes.float64).text}), {arguments})", dtypes.float64, shape)
    check = Check("within", (2 * together * epsilon,))
    return Typed(f"tl.sum({a.text}, {arguments})", a.dtype, shape, check), magnitude
