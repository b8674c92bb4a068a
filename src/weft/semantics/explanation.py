"""Explains a promotion: the rules that applied, the conversions of the operands, what is computed, the result.

An `Explanation` is the promotion (or the refusal, with the cast that makes it legal) as ordered facts, with the answers of
the system's other versions, so that it also answers "is it so in the package I have?". ``str`` prints it::

    >>> print(explain("triton", "/", "int8", "uint8"))
    int8 / uint8 in triton (Triton as its documentation states it)
      rule     prefer unsigned: int8 and uint8 are equally wide, uint8 is the unsigned one
      rule     division of integers: '/' computes in float32
      convert  int8 -> float32, uint8 -> float32
      compute  divide in float32: the quotient of floats, rounded once
      result   float32
      DIFFERS  triton@3.9: refused: '/' refuses int8 with uint8, one is signed; cast both sides with .to(tl.int8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from weft import semantics
from weft.dtypes import DType
from weft.semantics import ops
from weft.semantics.core import Constant, Operand, Promotion, PromotionError, Semantics, Type, show
from weft.semantics.meanings import MEANINGS

Outcome: TypeAlias = Promotion | PromotionError
"""What a system answers: a promotion, or its refusal as a value."""

PROMOTE: Final = "promote"
"""The question without an operation: the type in which any number of operands meet."""

_SIGNS: Final = {"pos": "+", "neg": "-", "~": "~", "not": "not "}


def outcome(system: Semantics, op: str, *operands: object) -> Outcome:
    """What ``system`` says of ``op`` on the operands, a refusal as a value; ``op`` may be `PROMOTE`. `ValueError` for an
    operation or a dtype that the system does not have."""
    try:
        if op == PROMOTE:
            return system.common(*map(system.operand, operands))
        return system.resolve(op, *operands)
    except PromotionError as error:
        return error


def versions(name: str) -> tuple[str, ...]:
    """The other versions of a system: ``triton@3.9`` for ``triton``, and the other way round."""
    base = name.partition("@")[0]
    return tuple(n for n in semantics.SYSTEMS if n != name and n.partition("@")[0] == base)


def expression(op: str, operands: tuple[Operand, ...]) -> str:
    """The question as code: ``int8 + 3``, ``-int8``, ``where(condition, int8, f*)``."""
    return write(op, [symbol(o) for o in operands])


def write(op: str, shown: Sequence[str]) -> str:
    """``op`` (canonical) on operands that are text already."""
    if op in _SIGNS and len(shown) == 1:
        return f"{_SIGNS[op]}{shown[0]}"
    if op == "where" and len(shown) == 2:
        shown = ["condition", *shown]
    if len(shown) == 2 and (op in ops.LOGICAL or not op[0].isalpha()):
        return f"{shown[0]} {op} {shown[1]}"
    return f"{op}({', '.join(shown)})"


def symbol(operand: Operand) -> str:
    """An operand as users type it: ``int8``, ``i*``, ``int8[]``, ``2.5``, ``9:uint8``."""
    if isinstance(operand, Type) and operand.weak:
        return "bifc"[operand.dtype.kind] + "*"
    if isinstance(operand, Constant):
        return f"{operand.value!r}:{operand.dtype}"
    return show(operand)


def describe(found: Outcome) -> str:
    """An outcome in a few words: ``int8``, ``float64 (weak)``, ``refused: why; cast``."""
    return f"refused: {found}" if isinstance(found, PromotionError) else str(found.type)


@dataclass(frozen=True)
class Version:
    """Another version of the system, and what it answers; None where it lacks the operation or a dtype (``lacks`` says)."""

    name: str
    outcome: Outcome | None
    agrees: bool
    lacks: str = ""

    def __str__(self) -> str:
        if self.agrees:
            return f"{self.name} agrees"
        return f"{self.name}: {self.lacks if self.outcome is None else _difference(self.outcome)}"


@dataclass(frozen=True)
class Explanation:
    """The answer of ``system`` to ``op`` on ``operands``, in steps; ``versions`` are the system's other versions."""

    system: Semantics
    op: str
    operands: tuple[Operand, ...]
    outcome: Outcome
    versions: tuple[Version, ...]

    @property
    def expression(self) -> str:
        """The question as code."""
        return expression(self.op, self.operands)

    def lines(self) -> tuple[tuple[str, str], ...]:
        """(what kind of fact, the fact): rules, conversions, computation, result, or refusal and cast; then the versions."""
        facts: list[tuple[str, str]] = []
        if isinstance(self.outcome, PromotionError):
            facts.append(("refused", self.outcome.reason))
            if self.outcome.cast:
                facts.append(("instead", self.outcome.cast))
        else:
            found = self.outcome
            facts += [("rule", str(step)) for step in found.steps]
            facts.append(("convert", _conversions(self.system, found, self.operands)))
            if found.meaning:
                place = "" if found.keeps else f" in {found.operands}"
                facts.append(("compute", f"{found.meaning}{place}: {definition(found.meaning)}"))
            facts.append(("result", str(found.type)))
        facts += [("same" if v.agrees else "DIFFERS", str(v)) for v in self.versions]
        return tuple(facts)

    def __str__(self) -> str:
        head = f"{self.expression} in {self.system.name} ({self.system.title})"
        return "\n".join([head, *(f"  {kind:<8} {text}" for kind, text in self.lines())])

    def data(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        return {
            "system": self.system.name,
            "title": self.system.title,
            "expression": self.expression,
            **outcome_data(self.outcome),
            "explanation": [{"fact": kind, "text": text} for kind, text in self.lines()],
        }


def explain(system: str | Semantics, op: str, *operands: object) -> Explanation:
    """Why ``system`` gives what it gives for ``op`` on ``operands`` (as `weft.semantics.core.operand` reads them; `PROMOTE` for
    the type they meet in). `ValueError` for an unknown system, and for an operation or dtype that the system does not have."""
    chosen = semantics.get(system)
    op = op if op == PROMOTE else ops.canonical(op)
    if op in ("+", "-") and len(operands) == 1:
        op = "pos" if op == "+" else "neg"
    if op == "where" and len(operands) == 3:
        operands = operands[1:]
    read = tuple(chosen.operand(o) for o in operands)
    found = outcome(chosen, op, *read)
    return Explanation(chosen, op, read, found, tuple(_version(n, op, read, found) for n in versions(chosen.name)))


def definition(meaning: str) -> str:
    """What a meaning is; one that varies another ("the same, but ...") is completed by what it varies."""
    text = MEANINGS[meaning]
    if not text.startswith("the same, "):
        return text
    base = definition(max((m for m in MEANINGS if meaning.startswith(m + "_")), key=len))
    change = text.removeprefix("the same, ")
    return f"{base.partition(';')[0] if change.startswith('but ') else base}; {change}"


def outcome_data(found: Outcome) -> dict[str, Any]:
    """An outcome as JSON takes it: ``{"refused", "cast"}`` or ``{"result", "weak", "operands", "meaning", "keeps", "steps"}``."""
    if isinstance(found, PromotionError):
        return {"refused": found.reason, "cast": found.cast}
    return {
        "result": str(found.result),
        "weak": found.weak,
        "operands": str(found.operands),
        "meaning": found.meaning,
        "keeps": found.keeps,
        "steps": [{"rule": s.rule, "text": s.text} for s in found.steps],
    }


def _version(name: str, op: str, operands: tuple[Operand, ...], found: Outcome) -> Version:
    try:
        other = outcome(semantics.get(name), op, *operands)
    except ValueError as error:
        return Version(name, None, False, str(error))
    return Version(name, other, _facts(other) == _facts(found))


def _facts(found: Outcome) -> tuple[object, ...]:
    """What two versions must agree on; the wording of a refusal is not part of it."""
    return () if isinstance(found, PromotionError) else (found.type, found.operands, found.meaning, found.keeps)


def _difference(found: Outcome) -> str:
    if isinstance(found, PromotionError):
        return describe(found)
    place = "exactly" if found.keeps else f"in {found.operands}"
    return f"{found.type}" + (f", {found.meaning} {place}" if found.meaning else "")


def _conversions(system: Semantics, found: Promotion, operands: tuple[Operand, ...]) -> str:
    """What becomes of each operand before the operation."""
    if found.keeps:
        return "nothing: the numbers themselves are compared"
    changes: list[str] = []
    for operand in dict.fromkeys(operands):
        if isinstance(operand, (DType, Type)):
            dtype = operand if isinstance(operand, DType) else operand.dtype
            if dtype != found.operands:
                changes.append(f"{symbol(operand)} -> {found.operands}")
            continue
        value = operand.value if isinstance(operand, Constant) else operand
        number = system.number(value, found.operands)
        became = "" if number == value and type(number) is type(value) else f" as {number!r}"
        changes.append(f"{symbol(operand)} -> {found.operands}{became}")
    return ", ".join(changes) or "nothing: the operands have that type"
