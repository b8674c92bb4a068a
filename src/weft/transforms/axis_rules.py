"""Axis analysis, one op at a time: what follows for the result from what is known of the operands.

As in Triton, sums, differences, products and left shifts of signed integers of 32 bits and more are taken not to
overflow: index arithmetic that does has left its array anyway. Narrower and unsigned integers do wrap in real kernels,
so there runs are cut to their divisibility: a group of g that starts at a multiple of g crosses no larger power of two.
Two's complement keeps divisibility under any wrap.

An op without a rule gives nothing known, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xdsl.dialects.builtin import I64, DenseArrayBase
from xdsl.ir import Operation

from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, shape_of
from weft.transforms.axis_boxes import with_box
from weft.transforms.axis_info import MAX, AxisInfo, constant_info, lowest_bit, sizes_of, uniform, unknown

Infos = Sequence[AxisInfo]


def transfer(op: Operation, operands: Infos) -> list[AxisInfo]:
    """What is known of the op's results."""
    rule = _RULES.get(type(op))
    if rule is None:
        return [unknown(result.type) for result in op.results]
    if type(op) is tile.SplitOp:
        return [rule(op, operands)] * 2
    return [with_box(op, operands, rule(op, operands))]


# Elementwise ops. Every one keeps common constancy; the rest are the functions of the tables.


def _pointwise(op: Operation, operands: Infos) -> AxisInfo:
    """Equal operands give equal results."""
    constancy = operands[0].constancy
    if len(operands) > 1:
        constancy = tuple(map(min, *[info.constancy for info in operands]))
    (result,) = op.results
    known = unknown(result.type)
    return known if known.constancy == constancy else known._replace(constancy=constancy)


def _wraps(dtype: DType) -> bool:
    return not dtype.signed or dtype.bits < 32


def _runs_over(runs: AxisInfo, steady: AxisInfo, d: int) -> int:
    """The largest group in which ``runs`` counts from a multiple of its size and ``steady`` is one multiple of it."""
    return min(runs.runs(d), steady.at(d, 1), steady.constancy[d])


def _divisors(known: AxisInfo) -> tuple[int, ...]:
    """Divisors of all elements, by dimension."""
    return tuple(known.at(d, 1) for d in range(known.rank))


def _add(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    """A run plus a constant is a run."""
    pairs = zip(x.contiguity, x.constancy, y.contiguity, y.constancy, strict=True)
    return _sum(x, y, known, tuple(max(min(xc, yk), min(xk, yc)) for xc, xk, yc, yk in pairs))


def _sub(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    """A run minus a constant is a run; a constant minus a run counts down."""
    return _sum(x, y, known, tuple(map(min, x.contiguity, y.constancy)))


def _sum(x: AxisInfo, y: AxisInfo, known: AxisInfo, contiguity: tuple[int, ...]) -> AxisInfo:
    divisibility = tuple(min(x.at(d, g), y.at(d, g)) for d, g in enumerate(contiguity))
    return known._replace(contiguity=contiguity, divisibility=divisibility)


def _mul(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    pairs = zip(_divisors(x), _divisors(y), strict=True)
    return known._replace(divisibility=tuple(min(MAX, m * n) for m, n in pairs))


def _div(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    """x // v is constant while x runs from one multiple of gcd(v, 2**k) to the next.

    Only for x >= 0: C rounds toward zero, so that -3 // 4 is 0 and -4 // 4 is -1.
    """
    known = known._replace(divisibility=_quotients(x, y.constant))
    if not x.nonnegative:
        return known
    steady = (_runs_over(x, y, d) for d in range(x.rank))
    return known._replace(constancy=tuple(map(max, known.constancy, steady)))


def _quotients(x: AxisInfo, divisor: int | None) -> tuple[int, ...]:
    """What a power of two leaves of the divisibility it divides exactly."""
    exact = divisor is not None and divisor > 0 and lowest_bit(divisor) == divisor
    return tuple(max(1, n // divisor) if divisor and exact else 1 for n in _divisors(x))


def _rem(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    """x % v counts up while x runs from one multiple of gcd(v, 2**k) to the next, for x >= 0."""
    groups = tuple(_runs_over(x, y, d) if x.nonnegative else 1 for d in range(x.rank))
    divisibility = tuple(min(x.at(d, g), y.at(d, 1)) for d, g in enumerate(groups))
    return known._replace(contiguity=groups, divisibility=divisibility)


def _and(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    """Trailing zeros of either stay. A mask 2**p - 1 is a remainder, a mask -2**p rounds down; both for any sign."""
    known = known._replace(divisibility=tuple(map(max, _divisors(x), _divisors(y))))
    if y.constant is None:
        return known
    period = y.constant + 1
    if period > 0 and lowest_bit(period) == period:
        groups = tuple(min(x.runs(d), period) for d in range(x.rank))
        return known._replace(contiguity=groups, divisibility=tuple(x.at(d, g) for d, g in enumerate(groups)))
    step = lowest_bit(y.constant)
    if (y.constant if dtype.signed else y.constant - (1 << dtype.bits)) == -step:
        steady = (min(x.runs(d), step) for d in range(x.rank))
        return known._replace(constancy=tuple(map(max, known.constancy, steady)))
    return known


def _common_zeros(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    return known._replace(divisibility=tuple(map(min, _divisors(x), _divisors(y))))


def _shl(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    factor = 1 << y.constant if y.constant is not None and 0 <= y.constant < dtype.bits else 1
    return known._replace(divisibility=tuple(min(MAX, n * factor) for n in _divisors(x)))


def _shr(dtype: DType, x: AxisInfo, y: AxisInfo, known: AxisInfo) -> AxisInfo:
    """Rounds down for any sign, so a run gives constants."""
    if y.constant is None or not 0 <= y.constant < dtype.bits:
        return known
    factor = 1 << y.constant
    steady = (min(x.runs(d), factor) for d in range(x.rank))
    return known._replace(divisibility=_quotients(x, factor), constancy=tuple(map(max, known.constancy, steady)))


_Binary = Callable[[DType, AxisInfo, AxisInfo, AxisInfo], AxisInfo]

_BINARY: Final[Mapping[str, _Binary]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "rem": _rem,
    "and": _and,
    "shl": _shl,
    "shr": _shr,
    **dict.fromkeys(("or", "xor", "min", "max"), _common_zeros),
    **dict.fromkeys(("pow", "umulhi"), lambda dtype, x, y, known: known),
}
"""By kind, for integers: from the type, both operands and what `_pointwise` knows."""

_SIGN: Final[Mapping[str, Callable[[bool, bool], bool]]] = {
    **dict.fromkeys(("add", "mul", "div", "or", "xor", "min"), lambda x, y: x and y),
    **dict.fromkeys(("rem", "shl", "shr"), lambda x, y: x),
    **dict.fromkeys(("and", "max"), lambda x, y: x or y),
    **dict.fromkeys(("sub", "pow", "umulhi"), lambda x, y: False),
}
"""By kind, whether the result is not negative, where nothing overflows."""

_MAY_OVERFLOW: Final = frozenset({"add", "sub", "mul", "shl"})


def _binary(op: tile.BinaryOp, operands: Infos) -> AxisInfo:
    known, kind, dtype = _pointwise(op, operands), op.kind.data, dtype_of(op.lhs)
    if not dtype.is_integer:
        return known
    x, y = operands
    if dtype.signed:
        overflows = kind in _MAY_OVERFLOW and _wraps(dtype)
        known = known._replace(nonnegative=not overflows and _SIGN[kind](x.nonnegative, y.nonnegative))
    result = _BINARY[kind](dtype, x, y, known)
    return result.cut() if kind in _MAY_OVERFLOW and _wraps(dtype) else result


def _unary(op: tile.UnaryOp, operands: Infos) -> AxisInfo:
    known = _pointwise(op, operands)
    if op.kind.data in ("neg", "abs") and dtype_of(op.operand).is_integer:
        return known._replace(divisibility=_divisors(operands[0]))
    return known


_BELOW: Final = frozenset({"lt", "ge"})
_ABOVE: Final = frozenset({"gt", "le"})


def _compare(op: tile.CompareOp, operands: Infos) -> AxisInfo:
    """x < v does not change while x runs from one multiple of g to the next and v is a multiple of g.

    Nor does its opposite x >= v; x <= v does, where x passes v.
    """
    known, kind = _pointwise(op, operands), op.kind.data
    if is_pointer(op.lhs) or not dtype_of(op.lhs).is_integer:
        return known
    x, y = operands if kind in _BELOW else reversed(operands)
    if kind not in _BELOW | _ABOVE:
        return known
    steady = (_runs_over(x, y, d) for d in range(x.rank))
    return known._replace(constancy=tuple(map(max, known.constancy, steady)))


def _select(op: tile.SelectOp, operands: Infos) -> AxisInfo:
    """What holds of both sides, as long as the condition does not change."""
    condition, x, y = operands
    both = x.join(y)
    groups = tuple(map(min, both.contiguity, condition.constancy))
    return both._replace(
        contiguity=groups,
        divisibility=tuple(both.at(d, g) for d, g in enumerate(groups)),
        constancy=tuple(map(min, both.constancy, condition.constancy)),
    )


def _convert(known: AxisInfo, info: AxisInfo, source: DType, target: DType) -> AxisInfo:
    """Integer to integer: unchanged where every value stays; else modulo 2**bits."""
    if target.max >= source.max and (target.min <= source.min or info.nonnegative):
        return info
    if info.constant is not None:
        span = 1 << target.bits
        return _revalued(known, (info.constant - target.min) % span + target.min)
    return info.cut(1 << (target.bits - target.signed))._replace(nonnegative=not target.signed)


def _revalued(known: AxisInfo, number: int) -> AxisInfo:
    """One known integer in every element of a value whose constancy is known already."""
    return known._replace(
        divisibility=(lowest_bit(number),) * known.rank,
        constant=number,
        nonnegative=number >= 0,
    )


def _cast(op: tile.CastOp, operands: Infos) -> AxisInfo:
    source, target = dtype_of(op.source), dtype_of(op.result)
    known = _pointwise(op, operands)
    if source.is_float or not target.is_integer:
        return known
    return _convert(known, operands[0], source, target)


def _bitcast(op: tile.BitcastOp, operands: Infos) -> AxisInfo:
    info, known = operands[0], _pointwise(op, operands)
    from_pointer, to_pointer = is_pointer(op.source), is_pointer(op.result)
    source, target = dtype_of(op.source), dtype_of(op.result)
    if not (from_pointer or source.is_integer) or not (to_pointer or target.is_integer):
        return known
    if not from_pointer and not to_pointer:
        return _convert(known, info, source, target)
    if info.unit != known.unit:
        return known._replace(divisibility=_divisors(info))
    return info._replace(nonnegative=known.nonnegative, constant=None)


def _addptr(op: tile.AddPtrOp, operands: Infos) -> AxisInfo:
    """`_add` in elements, with divisibility in bytes."""
    pointer, offset = operands
    known = _pointwise(op, operands)
    size = lowest_bit(known.unit)
    sides = zip(pointer.contiguity, pointer.constancy, offset.contiguity, offset.constancy, strict=True)
    groups = tuple(max(min(pc, ok), min(pk, oc)) for pc, pk, oc, ok in sides)
    divisibility = tuple(min(pointer.at(d, g), offset.at(d, g) * size) for d, g in enumerate(groups))
    return known._replace(contiguity=groups, divisibility=divisibility)


def _hint(op: tile.HintOp, operands: Infos) -> AxisInfo:
    """The user's word where it says more."""

    info, sizes = operands[0], tuple(map(lowest_bit, sizes_of(op.result.type)))
    return info._replace(
        contiguity=_better(info.contiguity, op.contiguity, sizes),
        divisibility=_better(info.divisibility, op.divisibility, (MAX,) * info.rank),
        constancy=_better(info.constancy, op.constancy, sizes),
    )


def _better(known: tuple[int, ...], said: DenseArrayBase[I64] | None, most: tuple[int, ...]) -> tuple[int, ...]:
    if said is None:
        return known
    return tuple(max(k, min(lowest_bit(s), m)) for k, s, m in zip(known, said.get_values(), most, strict=True))


def _load(op: tile.LoadOp, operands: Infos) -> AxisInfo:
    """One address, one value; a volatile load may find another value for each element."""
    return unknown(op.result.type) if op.volatile is not None else _pointwise(op, operands)


# Values and shapes


def _constant(op: tile.ConstantOp, operands: Infos) -> AxisInfo:
    number, type_ = op.number, op.result.type
    if isinstance(number, int):
        return constant_info(type_, number)
    return uniform(type_, 1, None, False)


def _program(op: Operation, operands: Infos) -> AxisInfo:
    return unknown(op.results[0].type)._replace(nonnegative=True)


def _arange(op: tile.ArangeOp, operands: Infos) -> AxisInfo:
    start, size = op.start.value.data, shape_of(op.result)[0]
    run = lowest_bit(size)
    divisor = lowest_bit(start) if run == size else min(lowest_bit(start), run)
    return AxisInfo((run,), (divisor,), (1,), start if size == 1 else None, start >= 0)


def _splat(op: tile.SplatOp, operands: Infos) -> AxisInfo:
    info = operands[0]
    return uniform(op.result.type, info.divisibility[0], info.constant, info.nonnegative)


def _broadcast(op: tile.BroadcastOp, operands: Infos) -> AxisInfo:
    info = operands[0]
    sizes = zip(shape_of(op.source), shape_of(op.result), info.constancy, strict=True)
    return info._replace(constancy=tuple(lowest_bit(new) if old == 1 else k for old, new, k in sizes))


def _expand_dims(op: tile.ExpandDimsOp, operands: Infos) -> AxisInfo:
    return _pick(operands[0], [*range(op.axis.value.data), None, *range(op.axis.value.data, operands[0].rank)])


def _trans(op: tile.TransOp, operands: Infos) -> AxisInfo:
    return _pick(operands[0], op.permutation)


def _pick(info: AxisInfo, dimensions: Sequence[int | None]) -> AxisInfo:
    """The facts of those dimensions in that order; of a dimension of size 1 where None."""
    return info._replace(
        contiguity=tuple(1 if d is None else info.contiguity[d] for d in dimensions),
        divisibility=tuple(info.everywhere if d is None else info.divisibility[d] for d in dimensions),
        constancy=tuple(1 if d is None else info.constancy[d] for d in dimensions),
    )


def _reshape(op: tile.ReshapeOp, operands: Infos) -> AxisInfo:
    """Dimensions of size 1 come and go; else through the flat sequence, of which the fastest dimension knows most."""
    info, old, new = operands[0], shape_of(op.source), sizes_of(op.result.type)
    wide = [d for d, size in enumerate(old) if size > 1]
    if [old[d] for d in wide] == [size for size in new if size > 1]:
        order = iter(wide)
        return _pick(info, [next(order) if size > 1 else None for size in new])
    fastest = wide[-1]
    constancy = 1
    for d in reversed(wide):
        constancy *= info.constancy[d]
        if info.constancy[d] != old[d]:
            break
    return _unflatten(info, fastest, constancy, new)


def _unflatten(info: AxisInfo, fastest: int, constancy: int, sizes: Sequence[int]) -> AxisInfo:
    """``info`` along its dimension ``fastest`` with flat ``constancy``, cut into ``sizes``, row-major."""
    contiguities, divisibilities, constancies = [1] * len(sizes), [info.everywhere] * len(sizes), [1] * len(sizes)
    stride = 1
    for d in reversed(range(len(sizes))):
        power = lowest_bit(sizes[d])
        constancies[d] = min(power, constancy // stride) if constancy % stride == 0 else 1
        if stride == 1:
            contiguities[d] = min(power, info.contiguity[fastest])
            divisibilities[d] = info.at(fastest, contiguities[d])
        stride *= sizes[d]
    return info._replace(
        contiguity=tuple(contiguities),
        divisibility=tuple(divisibilities),
        constancy=tuple(constancies),
    )


def _join(op: tile.JoinOp, operands: Infos) -> AxisInfo:
    """What holds of both, and nothing along the new dimension: a group of one there begins with any of the elements."""
    common = operands[0]._replace(box=None).join(operands[1]._replace(box=None))
    return common._replace(
        contiguity=(*common.contiguity, 1),
        divisibility=(*common.divisibility, common.everywhere),
        constancy=(*common.constancy, 1),
    )


def _split(op: tile.SplitOp, operands: Infos) -> AxisInfo:
    """What holds along the dimensions that stay, for any index of the last."""
    return _pick(operands[0], range(operands[0].rank - 1))._replace(box=None)


def _flip(op: tile.FlipOp, operands: Infos) -> AxisInfo:
    """Groups of equal elements stay such; a run counts down."""
    info, axis = operands[0], op.axis.value.data
    return info._replace(
        contiguity=tuple(1 if d == axis else c for d, c in enumerate(info.contiguity)),
        divisibility=tuple(info.at(d, 1) if d == axis else k for d, k in enumerate(info.divisibility)),
        box=None,
    )


def _same(op: Operation, operands: Infos) -> AxisInfo:
    return operands[0]


_RULES: Final[Mapping[type[Operation], Callable[[Any, Infos], AxisInfo]]] = {
    tile.ConstantOp: _constant,
    tile.ProgramIdOp: _program,
    tile.NumProgramsOp: _program,
    tile.ArangeOp: _arange,
    tile.SplatOp: _splat,
    tile.BroadcastOp: _broadcast,
    tile.ExpandDimsOp: _expand_dims,
    tile.ReshapeOp: _reshape,
    tile.TransOp: _trans,
    tile.ConvertLayoutOp: _same,
    tile.JoinOp: _join,
    tile.SplitOp: _split,
    tile.FlipOp: _flip,
    tile.UnaryOp: _unary,
    tile.BinaryOp: _binary,
    tile.CompareOp: _compare,
    tile.SelectOp: _select,
    tile.FmaOp: _pointwise,
    tile.CastOp: _cast,
    tile.BitcastOp: _bitcast,
    tile.HintOp: _hint,
    tile.AddPtrOp: _addptr,
    tile.LoadOp: _load,
}
