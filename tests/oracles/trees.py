"""Random expression trees: several operations one after another, whose every intermediate value both sides show.

A tree is a question ``("tree", program, leaf, ...)``. The program has a node for each operation, separated by ``;``: its name
and its operands, ``x0`` a leaf, ``n3`` an earlier node, ``=2.5`` a number; a conversion is ``cast,float32``. The answer has as
many parts: types and values, up to the first refusal. Since intermediate values are compared too, the first node that differs
is the one at fault, and it is reported as if it had been asked alone.

Only operations whose results are exact or rounded once take part, so that no tolerance is needed: a difference in the last
place would otherwise become a large one in what follows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import weft.array as wa
from oracles import judge
from oracles.judge import ZEROS, Verdict
from oracles.probe import Question
from oracles.questions import DIVIDING, Plan, edges
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Operand, PromotionError, Semantics, Type

BINARY: Final = (
    *("+", "-", "*", "/", "//", "%", "fmod", "&", "|", "^", "<<", ">>"),
    *("<", "<=", ">", ">=", "==", "!=", "minimum", "maximum", "where"),
)
UNARY: Final = ("pos", "neg", "~", "not", "abs", "sign", "square", "floor", "ceil")
NUMBERS: Final = ("3", "-1", "7", "0.1", "2.5", "-0.3", "True", "100", "1e-40", "49.0")
REFUSED: Final = 0.04
"""How often an operation is taken that weft refuses, of the packages that raise at once."""
RAISE: Final = ("numpy", "torch", "jax")


@dataclass
class _Draw:
    """One tree while it grows: its program, and what each operand may be asked about."""

    plan: Plan
    rng: random.Random
    size: int
    nodes: list[str] = field(default_factory=list[str])
    leaves: list[str] = field(default_factory=list[str])
    types: dict[str, Operand] = field(default_factory=dict[str, Operand])

    @property
    def system(self) -> Semantics:
        return self.plan.semantics

    def leaf(self, dtype: DType) -> None:
        scalar = (
            self.plan.scalars and self.plan.package != "triton" and self.rng.random() < 0.15
        )  # all are, in its probe
        values = _values(dtype, 1 if scalar else self.size, self.rng)
        name = f"{dtype}[]" if scalar else str(dtype)
        self.types[f"x{len(self.leaves)}"] = Type(dtype, scalar=scalar) if scalar else dtype
        self.leaves.append(f"{name}@{values.tobytes().hex()}")

    def grow(self) -> bool:
        """Adds a node; false after one that weft refuses, which ends the tree."""
        for _ in range(40):
            op, operands = self._operation()
            if not any(o in self.types for o in operands):
                continue
            asked = [self.types[o] if o in self.types else _number(o) for o in operands]
            if self._breaks(op, asked):
                continue
            kind = self._kind(op, asked)
            if kind is None and (self.plan.package not in RAISE or self.rng.random() > REFUSED):
                continue
            name = f"n{len(self.nodes)}"
            self.nodes.append(" ".join((op, *operands)))
            if kind is None:
                return False
            flat = all(isinstance(o, Type) and o.scalar for o in asked if not isinstance(o, (bool, int, float)))
            self.types[name] = Type(kind.dtype, kind.weak, scalar=flat) if kind.weak or flat else kind.dtype
            return True
        return False

    def _operation(self) -> tuple[str, list[str]]:
        roll = self.rng.random()
        fresh = list(self.types)[-3:] if self.rng.random() < 0.7 else list(self.types)
        if roll < 0.1:
            return f"cast,{self.rng.choice(_types(self.plan))}", [self.rng.choice(fresh)]
        if roll < 0.25:
            return self.rng.choice(UNARY), [self.rng.choice(fresh)]
        sides = [self.rng.choice(fresh), self.rng.choice(list(self.types))]
        if self.rng.random() < 0.25:
            sides[1] = "=" + self.rng.choice(NUMBERS)
        self.rng.shuffle(sides)
        return self.rng.choice(BINARY), sides

    def _breaks(self, op: str, asked: list[Any]) -> bool:
        """Whether a package's process or whole answer may end in an error of values, or the value depends on its place."""
        if op == "where" and any(isinstance(o, Type) and o.scalar for o in asked):
            return True
        whole = not any(_is_real(o) for o in asked)
        if self.plan.nonzero and whole and op in (*DIVIDING, "/"):
            return True
        if op.startswith("cast,") and _is_real(asked[0]):
            return dtypes.named(op.removeprefix("cast,")) == dtypes.uint32 and self.plan.package in ("numpy", "torch")
        return self.plan.package == "torch" and op in ("fmod", "%") and not whole

    def _kind(self, op: str, asked: list[Any]) -> Type | None:
        try:
            if op.startswith("cast,"):
                source = asked[0].dtype if isinstance(asked[0], Type) else asked[0]
                return Type(self.system.cast(source, dtypes.named(op.removeprefix("cast,"))).result)
            found = self.system.resolve(op, *asked)
        except (PromotionError, ValueError):
            return None
        if any(step.rule == "not compiled" for step in found.steps):  # it would cost a graph the values of all others
            return None
        return found.type if {found.operands, found.result} <= {*_types(self.plan)} else None


def _is_real(operand: Any) -> bool:
    dtype = operand.dtype if isinstance(operand, Type) else operand
    return isinstance(operand, float) or (isinstance(dtype, DType) and dtype.is_float)


def _number(text: str) -> bool | int | float:
    value = text.removeprefix("=")
    return (
        value == "True" if value in ("True", "False") else float(value) if "." in value or "e" in value else int(value)
    )


def _types(plan: Plan) -> list[DType]:
    """The types of a system that both sides compute with."""
    left_out = (dtypes.float16,) if plan.package == "dali" else ()
    known = (d for d in dtypes.ELEMENTS if d in plan.semantics.dtypes and d not in left_out)
    return [d for d in known if not (d.is_complex or d.is_float8)]


def _values(dtype: DType, size: int, rng: random.Random) -> NDArray[Any]:
    """Edge values and random ones."""
    known = edges(dtype)
    chosen = np.array([known[rng.randrange(known.size)] for _ in range(size)], dtype.numpy)
    if dtype.is_bool:
        return chosen
    free = np.random.default_rng(rng.randrange(1 << 32))
    if dtype.is_integer:
        drawn = free.integers(dtype.min, dtype.max, size, dtype=dtype.numpy, endpoint=True)
    else:
        drawn = (free.standard_normal(size) * 10.0 ** free.uniform(-3, 4, size)).astype(dtype.numpy)
    return np.where(free.random(size) < 0.5, chosen, drawn).astype(dtype.numpy)


def trees(plan: Plan, count: int, seed: int) -> Iterator[Question]:
    """So many trees for a system."""
    rng = random.Random(f"{plan.system} {seed}")
    types = _types(plan)
    for _ in range(count):
        draw = _Draw(plan, rng, plan.elements)
        for _ in range(rng.randint(2, 3)):
            draw.leaf(rng.choice(types))
        for _ in range(rng.randint(2, 7)):
            if not draw.grow():
                break
        if draw.nodes:
            yield ("tree", ";".join(draw.nodes), *draw.leaves)


# ---- weft's side ----------------------------------------------------------------------------------------------------


def build(system: Semantics, question: Question) -> list[wa.Array | str]:
    """Weft's expression of each node, up to the first refusal."""
    _, program, *leaves = question
    values: dict[str, Any] = {f"x{at}": judge.value(system, text) for at, text in enumerate(leaves)}
    found: list[wa.Array | str] = []
    for number, node in enumerate(program.split(";")):
        op, *operands = node.split(" ")
        built = judge.expression(
            system, op.replace(",", " "), [values[o] if o in values else _number(o) for o in operands]
        )
        found.append(built)
        if isinstance(built, str):
            break
        values[f"n{number}"] = built
    return found


def compute(nodes: list[wa.Array | str], backend: str) -> list[NDArray[Any] | str]:
    """The values of all nodes, computed together."""
    arrays = [node for node in nodes if isinstance(node, wa.Array)]
    values = iter(wa.compute(*arrays, backend=backend)) if arrays else iter(())
    return [next(values) if isinstance(node, wa.Array) else node for node in nodes]


def agree(
    question: Question, nodes: list[wa.Array | str], values: list[NDArray[Any] | str], answer: str
) -> Verdict | None:
    """The first node whose answers differ; None where none does. What follows a zero of either sign is not looked at."""
    _, program, *leaves = question
    operands: Mapping[str, str] = {f"x{at}": text for at, text in enumerate(leaves)}
    known = dict(operands)
    answers = answer.split(";")
    for number, node in enumerate(program.split(";")):
        if number >= min(len(answers), len(values)):
            return None
        op, *sides = node.split(" ")
        asked = (op.replace(",", " "), *(known.get(side, side.removeprefix("=")) for side in sides))
        theirs, ours, made = answers[number], values[number], nodes[number]
        if theirs == judge.UNKNOWN or (isinstance(ours, str) and ours == judge.UNKNOWN):
            return None
        if (difference := judge.agree_values(asked, theirs, ours)) is not None:
            return Verdict(" ".join(text.partition("@")[0] for text in asked) + " =", *difference)
        if isinstance(ours, str) or not isinstance(made, wa.Array):
            return None
        if "%" in theirs.partition("@")[2] or (op in ZEROS and bool((np.asarray(ours) == 0).any())):
            return None
        weak = theirs.partition("@")[0].endswith("*")
        if weak != made.weak:
            return Verdict(" ".join(text.partition("@")[0] for text in asked), f"weak: {weak}", f"weak: {made.weak}")
        known[f"n{number}"] = f"{ours.dtype.name}@{np.ascontiguousarray(ours).tobytes().hex()}"
    return None
