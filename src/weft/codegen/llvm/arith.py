"""The elementwise kinds in LLVM instructions: one table entry for each kind and class of types.

The edge cases of LLVM's instructions differ from weft's (division by zero and oversized shifts are
undefined, `minnum` of a signalling NaN varies with the target), so each entry spells out what `weft.reference` defines.
Nothing carries a fast-math flag but sums and products that may be contracted (`Options.fusion`). Otherwise results do not
depend on the target, except those of transcendental functions and of those that a GPU approximates
(`weft.codegen.llvm.approximate`).

Operands are values in registers as `weft.codegen.llvm.types` represents them, all of one shape, scalar or vector; the
result has that shape. Narrow floats are widened to float32, computed and rounded once, or computed as such where the target does
so with the same result; sign changes and choices among operands work on their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeGuard

from llvmlite import ir

from weft.codegen.llvm import fused, integer, vecmath
from weft.codegen.llvm.approximate import approximated
from weft.codegen.llvm.convert import bitcast, cast, is_narrow, narrow, widen
from weft.codegen.llvm.rounding import rounded
from weft.codegen.llvm.types import (
    I16,
    constant,
    has,
    intrinsic,
    like,
    llvm_type,
    packed,
    splat,
    storage_type,
)
from weft.dtypes import DType
from weft.ir.tile import BINARY, BOOL, COMPARE, FLOAT, INTEGER, UNARY, class_of

__all__ = [
    "binary",
    "bitcast",
    "cast",
    "compare",
    "constant",
    "fma",
    "llvm_type",
    "storage_type",
    "unary",
]

Unary = Callable[[ir.IRBuilder, DType, ir.Value], ir.Value]
Binary = Callable[[ir.IRBuilder, DType, ir.Value, ir.Value], ir.Value]

# Unary kinds


def _in_compute(function: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> Unary:
    """A function of float32 and float64 on every float type."""

    def emit(builder: ir.IRBuilder, dtype: DType, x: ir.Value) -> ir.Value:
        return narrow(builder, function(builder, widen(builder, x, dtype)), dtype)

    return emit


def _whole(name: str) -> Unary:
    return _in_compute(lambda builder, x: rounded(builder, name, x))


def _sqrt(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return intrinsic(builder, "sqrt", [x])


def _rsqrt(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.fdiv(splat(1.0, x.type), _sqrt(builder, x))


def _negate_float(builder: ir.IRBuilder, dtype: DType, x: ir.Value) -> ir.Value:
    if not is_narrow(dtype):
        return builder.fneg(x)
    return _unless_zero_or_nan(builder, dtype, x, builder.xor(x, splat(1 << (dtype.bits - 1), x.type)))


def _absolute_float(builder: ir.IRBuilder, dtype: DType, x: ir.Value) -> ir.Value:
    if is_narrow(dtype):
        return _unless_zero_or_nan(builder, dtype, x, builder.and_(x, splat((1 << (dtype.bits - 1)) - 1, x.type)))
    return intrinsic(builder, "fabs", [x])


def _unless_zero_or_nan(builder: ir.IRBuilder, dtype: DType, x: ir.Value, changed: ir.Value) -> ir.Value:
    """``changed``; but ``x`` where it is 0 or NaN in a format that has NaN in the place of -0, whose sign bit is none there."""
    if dtype.has_negative_zero:
        return changed
    magnitude = builder.and_(x, splat(0x7F, x.type))
    return builder.select(builder.icmp_unsigned("==", magnitude, splat(0, x.type)), x, changed)


def _negate(builder: ir.IRBuilder, dtype: DType, x: ir.Value) -> ir.Value:
    return builder.neg(x)


def _complement(builder: ir.IRBuilder, dtype: DType, x: ir.Value) -> ir.Value:
    return builder.xor(x, splat(-1, x.type))


_UNARY: dict[tuple[str, str], Unary] = {
    ("neg", FLOAT): _negate_float,
    ("neg", INTEGER): _negate,
    ("neg", BOOL): _negate,
    ("not", INTEGER): _complement,
    ("not", BOOL): _complement,
    ("abs", FLOAT): _absolute_float,
    ("abs", INTEGER): integer.absolute,
    ("rsqrt", FLOAT): _in_compute(approximated("rsqrt", _rsqrt)),
    ("sqrt", FLOAT): _in_compute(approximated("sqrt", _sqrt)),
    ("sqrt_rn", FLOAT): _in_compute(_sqrt),
    **{(kind, FLOAT): _whole(kind) for kind in ("floor", "ceil")},
    **{(kind, FLOAT): _in_compute(approximated(kind, function)) for kind, function in vecmath.UNARY.items()},
}

# Binary kinds


def _instruction(name: str) -> Binary:
    """An instruction of the builder on integers and bools."""

    def emit(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
        return getattr(builder, name)(x, y)

    return emit


def _rounded(name: str) -> Binary:
    """A sum, difference or product, rounded once.

    A GPU computes narrow types as such. That gives what float32 gives: its results have so many bits that rounding them again is
    harmless. ``contract`` lets LLVM, and ptxas after it, add a product without rounding it, on CPUs that
    have an instruction for it; but there it would also leave out the rounding of products of narrow types.
    """

    def emit(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
        unrounded = has(builder, "contract") and (has(builder, "ptx") or not is_narrow(dtype))
        flags = ("contract",) if unrounded else ()
        operands = [_operand(builder, v, dtype) for v in (x, y)]
        if unrounded and has(builder, "fma") and not has(builder, "ptx"):
            contracted = _contracted(builder, name, *operands)
            if contracted is not None:
                return contracted
        return _result(builder, getattr(builder, name)(*operands, flags=flags), dtype)

    return emit


def _contracted(builder: ir.IRBuilder, name: str, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """A sum or a difference, one operand of which is a product of the same block, as a fused multiply-add; else None.

    LLVM contracts what ``contract`` allows when it selects instructions. Before that it moves equal additions of two versions of
    a block (`weft.codegen.cpu.versions`) behind their join, where it does not see the products.
    """
    negated = name == "fsub"
    for is_second, product, other in ((True, y, x), (False, x, y)):
        if name != "fmul" and _is_product(product, builder):
            a, b = product.operands
            first = builder.fneg(a) if negated and is_second else a
            rest = builder.fneg(other) if negated and not is_second else other
            return intrinsic(builder, "fma", [first, b, rest])
    return None


def _is_product(x: ir.Value, builder: ir.IRBuilder) -> TypeGuard[ir.Instruction]:
    """Whether ``x`` is a product of the builder's block that need not be rounded."""
    return isinstance(x, ir.Instruction) and x.opname == "fmul" and "contract" in x.flags and x.parent is builder.block


def _operand(builder: ir.IRBuilder, x: ir.Value, dtype: DType) -> ir.Value:
    """``x`` in the type in which the target adds and compares."""
    half = packed(builder, dtype)
    return builder.bitcast(x, like(x, half)) if half else widen(builder, x, dtype)


def _result(builder: ir.IRBuilder, x: ir.Value, dtype: DType) -> ir.Value:
    """A result in the type of `_operand` as ``dtype``."""
    return builder.bitcast(x, like(x, I16)) if packed(builder, dtype) else narrow(builder, x, dtype)


def _float_binary(function: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]) -> Binary:
    def emit(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
        return narrow(builder, function(builder, widen(builder, x, dtype), widen(builder, y, dtype)), dtype)

    return emit


def _quotient(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.fdiv(x, y)


def _extreme(predicate: str, *, propagate_nan: bool) -> Binary:
    """The operand that ``predicate`` prefers. ``x predicate y ? x : y`` gives ``y`` where either is NaN, so one more select
    decides. For ``minnan`` and ``maxnan`` it gives ``x`` where that is NaN, otherwise where ``y`` is. It comes before the
    comparison, whose operand it replaces: then LLVM keeps ``minps`` and ``maxps`` of x86, which are that comparison and its
    select. Behind them it would become a second condition, and both would be compared apart. NaN-propagating extremes of narrow
    floats, whose operands and results differ in type, are faster with it behind.

    PTX has an instruction, but for float64 with NaN. For AArch64 LLVM would make ``fmaxnm`` of the selects, which gives NaN
    where an operand is a signalling NaN; its ``maximumnum`` quiets what may be one before."""

    def emit(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
        if has(builder, "ptx") and not (propagate_nan and dtype.bits == 64):
            name = {"<": "min", ">": "max"}[predicate] + ("imum" if propagate_nan else "num")
            operands = [_operand(builder, v, dtype) for v in (x, y)]
            return _result(builder, intrinsic(builder, name, operands), dtype)
        wide_x, wide_y = widen(builder, x, dtype), widen(builder, y, dtype)
        if has(builder, "arm") and not propagate_nan:
            name = {"<": "minimumnum", ">": "maximumnum"}[predicate]
            return narrow(builder, intrinsic(builder, name, [wide_x, wide_y]), dtype)
        suspect = wide_x if propagate_nan else wide_y
        suspected = builder.fcmp_unordered("uno", suspect, suspect)
        if wide_x is not x and propagate_nan:
            preferred = builder.select(builder.fcmp_ordered(predicate, wide_x, wide_y), x, y)
            return builder.select(suspected, x, preferred)
        other = wide_other = builder.select(suspected, x, y)
        if wide_x is not x:
            wide_other = builder.select(suspected, wide_x, wide_y)
        return builder.select(builder.fcmp_ordered(predicate, wide_x, wide_other), x, other)

    return emit


def _integer_extreme(kind: str) -> Binary:
    def emit(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
        return intrinsic(builder, f"{'s' if dtype.signed else 'u'}{kind}", [x, y])

    return emit


def _and_not(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.and_(x, _complement(builder, dtype, y))


def _or_not(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.or_(x, _complement(builder, dtype, y))


_AND = _instruction("and_")
_OR = _instruction("or_")
_XOR = _instruction("xor")

_BINARY: dict[tuple[str, str], Binary] = {
    **{(kind, FLOAT): _rounded(f"f{kind}") for kind in ("add", "sub", "mul")},
    ("div", FLOAT): _float_binary(approximated("div", _quotient)),
    ("div_rn", FLOAT): _float_binary(_quotient),
    ("rem", FLOAT): _float_binary(vecmath.BINARY["fmod"]),
    ("min", FLOAT): _extreme("<", propagate_nan=False),
    ("max", FLOAT): _extreme(">", propagate_nan=False),
    ("minnan", FLOAT): _extreme("<", propagate_nan=True),
    ("maxnan", FLOAT): _extreme(">", propagate_nan=True),
    ("pow", FLOAT): _float_binary(vecmath.BINARY["pow"]),
    ("atan2", FLOAT): _float_binary(vecmath.BINARY["atan2"]),
    ("add", INTEGER): _instruction("add"),
    ("sub", INTEGER): _instruction("sub"),
    ("mul", INTEGER): _instruction("mul"),
    ("div", INTEGER): integer.divide,
    ("rem", INTEGER): integer.remainder,
    ("and", INTEGER): _AND,
    ("or", INTEGER): _OR,
    ("xor", INTEGER): _XOR,
    ("shl", INTEGER): integer.shift_left,
    ("shr", INTEGER): integer.shift_right,
    ("min", INTEGER): _integer_extreme("min"),
    ("max", INTEGER): _integer_extreme("max"),
    ("umulhi", INTEGER): integer.upper_half,
    ("pow", INTEGER): integer.power,
    # The integers modulo 2: x / 0 is 0 and x rem 0 is x; a shift by 1 leaves nothing; 0 ** 0 is 1.
    ("add", BOOL): _XOR,
    ("sub", BOOL): _XOR,
    ("mul", BOOL): _AND,
    ("div", BOOL): _AND,
    ("rem", BOOL): _and_not,
    ("and", BOOL): _AND,
    ("or", BOOL): _OR,
    ("xor", BOOL): _XOR,
    ("shl", BOOL): _and_not,
    ("shr", BOOL): _and_not,
    ("min", BOOL): _AND,
    ("max", BOOL): _OR,
    ("pow", BOOL): _or_not,
}

_PREDICATES: dict[str, str] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def check_table(name: str, entries: Iterable[object], kinds: Iterable[object]) -> None:
    """`ValueError` unless a table has one entry for each kind and class the IR knows."""
    if missing := set(kinds) ^ set(entries):
        raise ValueError(
            f"weft.codegen.llvm.arith: {name} and the IR's kinds differ in {', '.join(sorted(map(str, missing)))}"
        )


def _pairs(table: Mapping[str, frozenset[str]]) -> Iterable[tuple[str, str]]:
    return ((kind, class_) for kind, classes in table.items() for class_ in classes)


check_table("_UNARY", _UNARY, _pairs(UNARY))
check_table("_BINARY", _BINARY, _pairs(BINARY))
check_table("_PREDICATES", _PREDICATES, COMPARE)


def unary(builder: ir.IRBuilder, kind: str, dtype: DType, x: ir.Value) -> ir.Value:
    """``kind(x)`` for ``x`` of type ``dtype``; `KeyError` for a kind that does not take it (the verifier excludes it)."""
    return _UNARY[kind, class_of(dtype)](builder, dtype, x)


def binary(builder: ir.IRBuilder, kind: str, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    """``kind(x, y)`` for operands of type ``dtype``; `KeyError` as for `unary`."""
    return _BINARY[kind, class_of(dtype)](builder, dtype, x, y)


def compare(builder: ir.IRBuilder, kind: str, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    """``x kind y`` as bools; floats compare ordered, but for ``ne``."""
    predicate = _PREDICATES[kind]
    if dtype.is_float:
        x, y = widen(builder, x, dtype), widen(builder, y, dtype)
        return (builder.fcmp_unordered if kind == "ne" else builder.fcmp_ordered)(predicate, x, y)
    return (builder.icmp_signed if dtype.signed else builder.icmp_unsigned)(predicate, x, y)


def fma(builder: ir.IRBuilder, dtype: DType, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """``a * b + c`` rounded once to the compute type, and from there to ``dtype``; to ``dtype`` at once where products may be
    contracted and the target computes in it."""
    if has(builder, "contract") and packed(builder, dtype):
        return _result(builder, intrinsic(builder, "fma", [_operand(builder, v, dtype) for v in (a, b, c)]), dtype)
    wide = [widen(builder, v, dtype) for v in (a, b, c)]
    return narrow(builder, fused.fma(builder, *wide), dtype)
