"""JAX's promotion: its document "Type promotion semantics" (`jax`) and the package 0.10.2 (`jax_0_10`), each also with
64-bit types disabled (`jax_x32`, `jax_x32_0_10`), and the package's strict mode (`jax_strict`).

The document's lattice is the definition; its 18 x 18 table is only tested against. `Lattice` checks the lattice at import,
and an operation adds what `weft.semantics.systems.jax_ops` says. The steps of a promotion, by the names they carry:

=========== ================================================================ =============================
literal     a Python number is weak, a bool and a NumPy scalar are strong    3 is i*
x32         64-bit types disabled: a 64-bit operand is the 32-bit one        uint64 is uint32
all weak    weak operands alone: their dtypes meet, the result is weak       i*, f* -> float64, weak
lattice     the least type above all operands; i*, f*, c* as result are weak int8, uint8 -> int16
bools       operations that have no bools compute them in int32              bool // bool -> int32
inexact     functions of floats compute integers in float32 or float64       int8 / int8 -> float32
power       an integer exponent does not decide the type's precision         x ** 3 has the type of x
widening    sum and prod of integers, cumsum of bools                        sum of int8 -> int64
result      comparisons, parts of complex numbers, indices                   int8 < int8 -> bool
weak bool   a comparison of weak operands; functions of it are weak too      abs(i* < 3) -> bool, weak
XLA         the package's arithmetic on a CPU, in the package's systems      float32 / 3: multiplied with 1 / 3
=========== ================================================================ =============================

A Python int must fit int64 (int32 with 64-bit types disabled) whatever it meets, and then wraps into the common type. A float
on its way to a 16-bit type (with 64-bit types disabled: to any) is rounded to float32 first.

The document is silent on the types below int8 and bfloat16, on operations and on disabled 64-bit types: `jax` follows the
package there. They differ in one thing: the document's table is "the result of jax.numpy.promote_types", but that function
gives a dtype, so where the table says i*, f* or c* the package's answer is int64, float64 or complex128
(`JaxSemantics.promote_types`, 55 of 324 cells). Arrays promote as the table says in both.

Arrays here are those of a traced function. In eager mode jax also looks at the value of an integer exponent that has no
dimensions, and treats it like a literal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from weft import dtypes
from weft.dtypes import DType, Kind
from weft.semantics import ops
from weft.semantics.conversions import by_float32
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type, show
from weft.semantics.lattice import Lattice
from weft.semantics.meanings import FLUSHED
from weft.semantics.systems import family, jax_ops
from weft.semantics.systems.jax_lattice import (
    LATTICE,
    LATTICE_X32,
    NARROW_FLOATS,
    NARROW_INTEGERS,
    STRICT_LATTICE,
    TYPES,
    WEAK,
    X32,
    Node,
)
from weft.semantics.systems.jax_ops import OpRule

_LEAST: Final[Mapping[Kind, DType]] = {
    Kind.INTEGER: dtypes.int32,
    Kind.FLOAT: dtypes.float32,
    Kind.COMPLEX: dtypes.complex64,
}
"""What a weak operand is advised to become."""

_BINARY: Final[Mapping[str, OpRule]] = {
    **jax_ops.BINARY,
    **{op: row.jax for op, row in family.FAMILY.items() if row.jax is not None and op in ops.FAMILY_BINARY},
}
_UNARY: Final[Mapping[str, OpRule]] = {
    **jax_ops.UNARY,
    **{op: row.jax for op, row in family.FAMILY.items() if row.jax is not None and op in ops.FAMILY_UNARY},
}
_NARROW_FAMILY: Final[Mapping[str, frozenset[DType]]] = {
    **{
        op: frozenset((dtypes.int2, dtypes.uint2))
        for op, row in family.FAMILY.items()
        if row.jax is not None and row.jax.inexact
    },
    "signbit": frozenset(NARROW_FLOATS),
    "copysign": frozenset((dtypes.int2, dtypes.uint2, *NARROW_FLOATS)),
}
"""The types below 8 bits, and narrow floats, that a function of the family does not compute with."""

_EXPONENTS: Final = (dtypes.int32, dtypes.int64, dtypes.uint64)
"""Where powers are taken whose exponent the base's type does not hold."""


@dataclass(frozen=True)
class JaxSemantics(Semantics):
    """One version of JAX's rules; `weft.semantics.core.Semantics` says what the methods mean.

    ``x64``: whether 64-bit types are enabled; ``strict``: no promotion of strong types; ``tabular``: `promote_types` gives
    the weak types of the document's table, else a dtype as the package's function does. ``xla``: values are XLA's on a CPU,
    which takes subnormal numbers for zeros and inverts a divisor that is repeated (`_as_xla`).
    """

    name: str
    title: str
    x64: bool = True
    strict: bool = False
    tabular: bool = False
    xla: bool = False

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return TYPES

    @property
    def lattice(self) -> Lattice[Node]:
        """The promotion lattice, of dtypes and the weak ``i*``, ``f*``, ``c*``."""
        return STRICT_LATTICE if self.strict else LATTICE if self.x64 else LATTICE_X32

    def common(self, *operands: Operand) -> Promotion:
        joined, steps = self._join(operands)
        return Promotion(joined.dtype, joined.dtype, weak=joined.weak, steps=steps)

    def promote_types(self, a: Operand, b: Operand) -> Type:
        """``jax.numpy.promote_types``: the join, of 64-bit types too where they are disabled. Weak where the document says so."""
        nodes = [self._node(x) for x in (a, b)]
        lattice_nodes = [WEAK[n.dtype.kind] if n.weak else n for n in nodes]
        joined = self._bound(lattice_nodes)
        return joined.type if self.tabular else Type(joined.dtype)

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        promotion = self._binary(op, lhs, rhs)
        if op == "**" and _integer_exponent(rhs) == 1:
            return promotion  # no product: the base is the result
        if op == "fmod" and promotion.meaning == "truncate_remainder_zero" and all(map(_is_bool, (lhs, rhs))):
            return replace(promotion, meaning="truncate_remainder")  # jnp.fmod looks for zeros in integers only
        return self._as_xla(promotion, op, lhs, rhs)

    def _binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        rule = _look_up(_BINARY, op, self.name)
        if op == "**" and (exponent := _integer_exponent(rhs)) is not None:
            return self._power(lhs, exponent)
        if op in ("matmul", "concat") and (scalar := next((x for x in (lhs, rhs) if _is_number(x)), None)) is not None:
            raise PromotionError(f"{op} takes arrays, found the number {scalar!r}", "make it an array")
        joined, steps = self._join((lhs, rhs))
        if op == "matmul":
            self._check_matmul((lhs, rhs), joined)
        if op == "heaviside" and (_is_number(lhs) or isinstance(lhs, Constant)):
            # As the package: what is no array on the left leaves the join its weakness.
            rule = replace(rule, strong=False)
        promotion = self._apply(op, rule, joined, steps)
        if op in family.LOGICAL:
            return replace(promotion, operands=dtypes.bool_)
        if op == "**" and _is_inexact(promotion.operands):
            promotion = replace(promotion, meaning="power")
        if op == "**" and promotion.weak and self._loses_weakness(promotion.result, lhs, rhs):
            text = (
                f"an integer exponent is not converted to the base's type, so the result is a strong {promotion.result}"
            )
            return replace(promotion, weak=False, steps=(*promotion.steps, Step("power", text)))
        return promotion

    def unary(self, op: str, operand: Operand) -> Promotion:
        promotion = self._unary(op, operand)
        if isinstance(operand, Type) and operand.weak and operand.dtype.is_bool and promotion.result.is_bool:
            step = Step("weak bool", f"'{op}' keeps the weakness of a bool, which joins have not")
            return replace(promotion, weak=True, steps=(*promotion.steps, step))
        return promotion

    def _unary(self, op: str, operand: Operand) -> Promotion:
        rule = _look_up(_UNARY, op, self.name)
        joined, steps = self._join((operand,))
        if op in ops.FAMILY:
            return self._family(op, rule, joined, steps)
        if op == "not":
            step = Step("result", f"{joined} is compared with zero")
            return Promotion(dtypes.bool_, dtypes.bool_, rule.meaning, steps=(*steps, step))
        if op in ("floor", "ceil") and not joined.dtype.is_float and not joined.dtype.is_complex:
            step = Step("result", f"a {joined.dtype} is an integer already")
            return Promotion(joined.dtype, joined.dtype, "identity", joined.weak, steps=(*steps, step))
        return self._as_xla(self._apply(op, rule, joined, steps))

    def _family(self, op: str, rule: OpRule, joined: Node, steps: tuple[Step, ...]) -> Promotion:
        """A function of `family.FAMILY` of one operand."""
        dtype = joined.dtype
        if op in ("rint", "angle") and not _is_inexact(dtype):
            default = self._canonical(dtypes.float64)
            step = Step("inexact", f"'{op}' of {dtype} is computed in {default}, whatever the width")
            joined, steps = Node(default), (*steps, step)
        strong = op == "isfinite" and not _is_inexact(dtype)
        promotion = self._apply(op, replace(rule, strong=rule.strong or strong), joined, steps)
        return self._as_xla(replace(promotion, meaning=family.meaning(op, promotion.operands)))

    def reduction(self, op: str, operand: Operand) -> Promotion:
        rule = _look_up(jax_ops.REDUCTIONS, op, self.name)
        joined, steps = self._join((operand,))
        promotion = self._apply(op, rule, joined, steps)
        dtype = promotion.operands
        if op in ("argmax", "argmin"):
            index = self._canonical(dtypes.int64)
            step = Step("result", f"{op} gives indices of type {index}")
            indices = replace(promotion, result=index, weak=False, steps=(*promotion.steps, step))
            return self._as_xla(indices)
        if (op in ("sum", "prod") and not _is_inexact(dtype)) or (op in ("cumsum", "cumprod") and dtype.is_bool):
            unsigned = dtype.is_integer and not dtype.signed
            wide = self._canonical(dtypes.uint64 if unsigned else dtypes.int64)
            step = Step("widening", f"{op} of {dtype} is computed in {wide}")
            return replace(promotion, operands=wide, result=wide, steps=(*promotion.steps, step))
        return self._as_xla(promotion)

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        if op != "clamp":
            return super().ternary(op, value, low, high)
        joined, steps = self._join((value, low, high))
        return self._as_xla(self._apply(op, jax_ops.CLAMP, joined, steps))

    def literal(self, value: Number) -> Type:
        return self._node(value).type

    def cast(self, source: DType, target: DType) -> Promotion:
        dtype = self._canonical(target)
        steps = () if dtype == target else (Step("x32", f"{target} is {dtype}, 64-bit types are disabled"),)
        meaning = self.conversion(source, dtype)
        if meaning != "convert":
            steps = (*steps, Step("XLA", meaning))
        return Promotion(dtype, dtype, meaning, steps=steps)

    def conversion(self, source: DType, target: DType) -> str:
        if self.xla and source.is_integer and target == dtypes.bfloat16 and by_float32(source, target):
            return "convert_by_float32"
        return "convert_flushed" if self.xla and (source, target) in _FLUSHED_CONVERSIONS else "convert"

    def number(self, value: Number, dtype: DType) -> Number:
        """As `Semantics.number`; a number on its way to a 16-bit float, or to any type where 64-bit types are disabled, is
        rounded to float32 first. An exponent beyond all floats is infinite."""
        if dtype.is_float and isinstance(value, int) and abs(value) >= _INFINITE:
            return math.inf if value > 0 else -math.inf
        flushed = self.xla and self.x64 and dtype in (dtypes.float32, dtypes.bfloat16)
        if flushed and isinstance(value, float) and 0 < abs(value) < 2.0**-126:
            return math.copysign(0.0, value)  # XLA converts it, out of float64
        sixteen = dtype.is_float and dtype.bits == 16
        if isinstance(value, complex):
            return value if self.x64 else complex(_float32(value.real), _float32(value.imag))
        if isinstance(value, float):
            return _float32(value) if sixteen or not self.x64 else value
        return _float32(value) if sixteen else super().number(value, dtype)

    # ---- joins ----

    def _canonical(self, dtype: DType) -> DType:
        return dtype if self.x64 else X32.get(dtype, dtype)

    def _node(self, operand: Operand) -> Node:
        """An operand as an element of the lattice, 64-bit types kept; `PromotionError` for an int that is too large."""
        match operand:
            case DType():
                return Node(operand)
            case Type():
                return Node(operand.dtype, operand.weak and not operand.dtype.is_bool)
            case Constant():
                return Node(operand.dtype)
            case bool():
                return Node(dtypes.bool_)
            case int():
                self._check_integer(operand)
                kind = Kind.INTEGER
            case float():
                kind = Kind.FLOAT
            case complex():
                kind = Kind.COMPLEX
        return Node(self._canonical(WEAK[kind].dtype), weak=True)

    def _check_integer(self, value: int) -> None:
        default = self._canonical(dtypes.int64)
        if default.min <= value <= default.max:
            return
        fits = next((d for d in (dtypes.int64, dtypes.uint64) if d.min <= value <= d.max), None)
        if fits is None:
            cast = "write it as a float"
        elif self.x64:
            cast = f"write jnp.{fits}({value})"
        else:
            cast = "enable 64-bit types (jax_enable_x64), or write it as a float"
        raise PromotionError(f"the Python int {value} overflows {default}, the type it is parsed as", cast)

    def _join(self, operands: Sequence[Operand]) -> tuple[Node, tuple[Step, ...]]:
        """The type the operands meet in, as a node that says which dtype arrays of it hold, and how that came about."""
        steps: list[Step] = []
        nodes: list[Node] = []
        for operand in operands:
            node = self._node(operand)
            if _is_number(operand):
                strength = f"weak, {node}" if node.weak else f"a strong {node}"
                steps.append(Step("literal", f"{show(operand)} is {strength}"))
            elif isinstance(operand, Constant):
                steps.append(Step("literal", f"{show(operand)} chose its type: a strong {node}"))
            dtype = self._canonical(node.dtype)
            if dtype != node.dtype and not node.weak:
                steps.append(Step("x32", f"{node.dtype} is {dtype}, 64-bit types are disabled"))
            nodes.append(Node(dtype, node.weak))
        if len(nodes) == 1:
            return nodes[0], tuple(steps)
        if all(n.weak for n in nodes) and not self.strict:
            joined = self._canonical(self._bound([Node(n.dtype) for n in nodes]).dtype)
            met = " and ".join(str(n.dtype) for n in dict.fromkeys(nodes))
            steps.append(Step("all weak", f"no operand is strong: {met} meet in {joined}, and the result is weak"))
            return Node(joined, weak=True), tuple(steps)
        meeting = [WEAK[n.dtype.kind] if n.weak else n for n in nodes]
        bound = self._bound(meeting)
        joined = Node(self._canonical(bound.dtype), bound.weak)
        steps.append(Step("lattice", self._paths(meeting, bound, joined)))
        return joined, tuple(steps)

    def _bound(self, nodes: Sequence[Node]) -> Node:
        """The least upper bound; `PromotionError` with what keeps the nodes apart."""
        if (bound := self.lattice.join(*nodes)) is not None:
            return bound
        names = ", ".join(map(str, dict.fromkeys(nodes)))
        reason = f"input dtypes ({names}) have no implicit promotion path"
        if (promoted := LATTICE.join(*nodes)) is not None:
            target = self._canonical(promoted.dtype)
            strong = dict.fromkeys(str(n) for n in nodes if not n.weak and n.dtype != target)
            raise PromotionError(
                f"{reason}: strict promotion converts weak types only, to types of no lower kind",
                f"convert {' and '.join(strong)} with .astype(jnp.{target})",
            )
        narrow = list(dict.fromkeys(n.dtype for n in nodes if n.dtype in (*NARROW_FLOATS, *NARROW_INTEGERS)))
        first = narrow[0]  # only the narrow types are leaves
        others = [_LEAST[n.dtype.kind] if n.weak else n.dtype for n in nodes if n.dtype not in narrow]
        default = dtypes.float32 if any(d.is_float for d in narrow) else dtypes.int8
        target = max(others, key=lambda d: (d.kind, d.bits), default=default)
        raise PromotionError(
            f"{reason}: {first} meets {'bool, integers and f*' if first.is_float else 'bool and i*'} only",
            f"convert {' and '.join(map(str, narrow))} with .astype(jnp.{target})",
        )

    def _paths(self, nodes: Sequence[Node], bound: Node, joined: Node) -> str:
        """How each operand rises to the join."""
        weak = f", a weak {joined.dtype}" if joined.weak else ""
        if len(set(nodes)) == 1:
            return f"all are {bound}{weak}"
        paths: list[str] = []
        for node in dict.fromkeys(nodes):
            path = self.lattice.path(node, bound) or ()
            paths.append(" -> ".join(map(str, path)))
        return f"{'; '.join(paths)}; the least upper bound is {bound}{weak}"

    # ---- operations ----

    def _apply(self, op: str, rule: OpRule, joined: Node, steps: tuple[Step, ...]) -> Promotion:
        """An operation of operands that met in ``joined``."""
        dtype, extra = joined.dtype, list(steps)
        weak = joined.weak
        if dtype in jax_ops.NARROW.get(op, ()) or (op in _NARROW_FAMILY and dtype in _NARROW_FAMILY[op]):
            wide = dtypes.float16 if dtype.is_float else dtypes.int8 if dtype.signed else dtypes.uint8
            raise PromotionError(f"{rule.lax} does not compute with {dtype}", f"convert with .astype(jnp.{wide})")
        if dtype.is_bool and rule.bools_as is not None:
            extra.append(Step("bools", f"'{op}' of bools is computed in {rule.bools_as}"))
            dtype = rule.bools_as
        if rule.inexact and not _is_inexact(dtype):
            default = dtypes.float64 if dtype.bits == 64 else dtypes.float32
            extra.append(Step("inexact", f"'{op}' of {dtype} is computed in {default}"))
            dtype = default
        if dtype.kind not in rule.takes:
            kinds = ", ".join(name for kind, name in jax_ops.KIND_NAMES.items() if kind in rule.takes)
            raise PromotionError(f"{rule.lax} does not accept dtype {dtype}, it takes {kinds}", rule.advice)
        result = dtype
        if rule.real and dtype.is_complex:
            result = dtypes.float32 if dtype.bits == 64 else dtypes.float64
            extra.append(Step("result", f"'{op}' of {dtype} is {result}"))
        if rule.result is not None:
            result = rule.result
            extra.append(Step("result", f"'{op}' gives {result}"))
        if rule.strong and weak:
            extra.append(Step("result", f"'{op}' gives a strong {result}"))
        weak = weak and not rule.strong
        meaning = rule.bool_meaning if dtype.is_bool and rule.bool_meaning else rule.meaning
        return Promotion(dtype, result, meaning, weak, steps=tuple(extra))

    def _as_xla(self, promotion: Promotion, op: str = "", *operands: Operand) -> Promotion:
        """The promotion with what XLA's code for a CPU does to the values, in the package's systems."""
        dtype, meaning = promotion.operands, promotion.meaning
        if not self.xla or not dtype.is_float:
            return promotion
        steps: list[Step] = []
        if meaning in ("sinh", "cosh") and dtype == dtypes.float32:
            meaning = f"{meaning}_xla"
            steps.append(Step("XLA", f"{meaning}: the exponential of a sum with log(1/2)"))
        if meaning in _STEPPED and (dtype.bits <= 16 or meaning == "exp2"):
            meaning = _STEPPED[meaning]
            steps.append(Step("XLA", f"{meaning}: computed in several steps, each rounded to {dtype}"))
        if dtype not in _XLA_FLOATS:
            return replace(promotion, meaning=meaning, steps=(*promotion.steps, *steps))
        direct = dtype != dtypes.bfloat16  # computed in float32, where the patterns below are not found
        if direct and op == "/" and _is_repeated(*operands):  # in bfloat16 both quotients round to the same number
            meaning = "multiply_reciprocal"
            steps.append(Step("XLA", "a divisor that is repeated is inverted, and multiplied with"))
        if direct and meaning in ("mul", "multiply_reciprocal"):
            masks = [side for side, o in zip(("left", "right"), operands, strict=False) if _is_mask(o)]
            if masks and (meaning == "mul" or masks[0] == "left"):
                meaning = f"{meaning}_{masks[0]}_bool"
                steps.append(Step("XLA", "a product with an array of bools is a choice: zero where the bool is false"))
        if op in ("fmin", "fmax") and dtype != dtypes.float16 and _is_choice(dtype, *operands):
            meaning = f"{meaning}_chosen"
            steps.append(Step("XLA", "the operands are compared as if those below the normal range were zeros"))
        if meaning in FLUSHED and dtype not in _KEEPS.get(meaning, (dtypes.float16,)):
            meaning = f"{meaning}_flushed"
            steps.append(Step("XLA", f"{dtype} numbers below the normal range are zeros"))
        return replace(promotion, meaning=meaning, steps=(*promotion.steps, *steps))

    def _power(self, base: Operand, exponent: int) -> Promotion:
        """A base to a known integer: the exponent takes no part in promotion, and is not limited to a type."""
        joined, steps = self._join((base,))
        dtype = joined.dtype
        if dtype.is_bool:
            dtype = dtypes.int32
        if exponent < 0 and not _is_inexact(dtype):
            raise PromotionError(
                f"integers cannot be raised to negative powers, found {dtype} ** {exponent}",
                f"convert the base with .astype(jnp.{dtypes.float64 if dtype.bits == 64 else dtypes.float32})",
            )
        step = Step("power", f"the exponent {exponent} is known, so it takes no part: {dtype}")
        # An exponent that the type does not hold must not wrap: the power is taken in one that does, and wraps as a whole.
        wide = dtype if _is_inexact(dtype) else next((d for d in (dtype, *_EXPONENTS) if exponent <= d.max), None)
        if wide is None:
            raise PromotionError(f"the exponent {exponent} overflows uint64", "reduce it: powers of integers repeat")
        return Promotion(wide, dtype, "power", joined.weak, steps=(*steps, step))

    def _loses_weakness(self, result: DType, base: Operand, exponent: Operand) -> bool:
        """Whether a weak power of arrays is strong: where it is an integer, and of floats to a strong integer type."""
        low, high = self._node(base), self._node(exponent)
        return result.is_integer or (_is_inexact(low.dtype) and high.dtype.is_integer and not high.weak)

    def _check_matmul(self, operands: Sequence[Operand], joined: Node) -> None:
        """A product is accumulated in no narrower type than a weak operand's of the same kind: jax refuses instead."""
        for node in map(self._node, operands):
            dtype = self._canonical(node.dtype)
            if node.weak and not dtype.is_float and dtype.kind == joined.dtype.kind and joined.dtype.bits < dtype.bits:
                raise PromotionError(
                    f"matmul of {joined} with the weak {dtype} would accumulate in the narrower {joined}",
                    f"convert the weak side with .astype(jnp.{joined})",
                )


def _look_up(table: Mapping[str, OpRule], op: str, system: str) -> OpRule:
    if (rule := table.get(op)) is None:
        raise ValueError(f"{system} has no operation '{op}'; here it has {' '.join(table)}")
    return rule


def _is_number(operand: Operand) -> bool:
    return isinstance(operand, (bool, int, float, complex))


def _is_repeated(dividend: Operand, divisor: Operand) -> bool:
    """Whether the divisor has fewer elements than the quotient: a number beside an array with dimensions, or an array that is
    repeated."""
    if isinstance(dividend, (bool, int, float, complex, Constant)) or (isinstance(dividend, Type) and dividend.scalar):
        return False
    return not isinstance(divisor, DType) and (not isinstance(divisor, Type) or divisor.scalar or divisor.repeated)


def _is_choice(dtype: DType, left: Operand, right: Operand) -> bool:
    """Whether XLA compares and chooses, for ``fmin``, instead of taking the lesser by an instruction: in bfloat16 beside integers
    on the right, too. (Beside unsigned ones it takes the instruction for the elements that fill no vector.)"""
    if dtype == dtypes.bfloat16 and isinstance(right, (DType, Type)) and not _is_repeated(left, right):
        return True
    return not _is_number_everywhere(left, right)


def _is_number_everywhere(left: Operand, right: Operand) -> bool:
    """Whether XLA sees at once that the right side of ``fmin`` is no NaN, or asks that of one number only: it then takes the
    lesser by an instruction."""
    if _is_repeated(left, right) or isinstance(right, (bool, int, float, complex, Constant)):
        return True
    return not (right if isinstance(right, DType) else right.dtype).is_float


def _is_bool(operand: Operand) -> bool:
    """Whether the operand is of bools, in any form."""
    if isinstance(operand, (bool, int, float, complex)):
        return isinstance(operand, bool)
    return (operand if isinstance(operand, DType) else operand.dtype).is_bool


def _is_mask(operand: Operand) -> bool:
    """Whether the operand is an array of bools that is not repeated."""
    if isinstance(operand, Type):
        return operand.dtype.is_bool and not operand.scalar and not operand.repeated
    return isinstance(operand, DType) and operand.is_bool


def _is_inexact(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex


def _integer_exponent(operand: Operand) -> int | None:
    """The value of an exponent that is a known integer."""
    if isinstance(operand, Constant):
        known = operand.dtype.is_integer and operand.dtype not in NARROW_INTEGERS  # NumPy has no integers below a byte
        return int(operand.value.real) if known else None
    return int(operand) if isinstance(operand, int) else None


_XLA_FLOATS: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
"""The floats whose arithmetic `JaxSemantics._as_xla` knows."""

_STEPPED: Final[Mapping[str, str]] = {name: f"{name}_xla" for name in ("exp2", "sigmoid", "logaddexp", "logaddexp2")}
"""The functions that XLA computes of others, rounding between them; of 32 bits and more only ``exp2`` shows it."""

_KEEPS: Final[Mapping[str, tuple[DType, ...]]] = {
    "identity": _XLA_FLOATS,
    "tanh": (dtypes.float16, dtypes.bfloat16, dtypes.float32),
}
"""The types in which a meaning of `FLUSHED` keeps subnormal numbers, where that is not float16 alone."""

_FLUSHED_CONVERSIONS: Final = frozenset(
    {
        *((dtypes.float32, dtypes.float64), (dtypes.bfloat16, dtypes.float64), (dtypes.float64, dtypes.float32)),
        *((dtypes.float64, dtypes.bfloat16), (dtypes.float32, dtypes.bool_), (dtypes.float64, dtypes.bool_)),
    }
)
"""Between which types XLA takes subnormal numbers for zeros; bfloat16 and float32 it converts by their bits."""

_INFINITE: Final = 2**1024
"""Where integers are beyond float64."""


def _float32(value: float) -> float:
    """A number rounded once to float32, an int without a detour through float64."""
    with np.errstate(over="ignore"):
        if isinstance(value, int) and dtypes.int64.min <= value <= dtypes.uint64.max:
            wide = np.uint64(value) if value > dtypes.int64.max else np.int64(value)
            return float(wide.astype(np.float32))
        return float(np.float32(value))


jax: Final = JaxSemantics("jax", "JAX as its documentation states it", tabular=True)
jax_0_10: Final = JaxSemantics("jax@0.10", "JAX as the package 0.10.2 computes it", xla=True)
jax_x32: Final = JaxSemantics("jax-x32", "JAX's documented lattice, 64-bit types disabled", x64=False, tabular=True)
jax_x32_0_10: Final = JaxSemantics(
    "jax-x32@0.10", "JAX 0.10.2 with 64-bit types disabled, its default", x64=False, xla=True
)
jax_strict: Final = JaxSemantics(
    "jax-strict", "JAX 0.10.2 in strict mode: only weak types promote", strict=True, xla=True
)
