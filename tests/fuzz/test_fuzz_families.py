"""A fault in the compiler shows in kernels of the family that it concerns."""

# A fault takes whatever arguments the right function has.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import SSAValue

import weft.language as tl
from fuzz import expressions
from fuzz.case import NATIVE
from fuzz.generator import Generator
from fuzz.worker import AGREES, judge
from sampling import some
from weft.ir import tile
from weft.ir.tile import FLOAT, AtomicRmwOp
from weft.ir.types import is_tile

pytestmark = [pytest.mark.fuzz, pytest.mark.jit]

SEEDS = 200
"""Within how many kernels a fault has to show."""


def family(name: str, seed: int) -> str:
    """A kernel with one statement of a family, or one expression of a form. Of "neighbours:" and a statement's name, a kernel of
    many programs with that statement."""
    kind, _, statement = name.partition(":")
    if kind == "neighbours":
        generator = next(g for g in map(Generator, itertools.count(seed * 1000)) if g.neighbours)
        return generator.file(surely=statement)
    generator = Generator(seed)
    generator.together = False

    def work() -> None:
        if hasattr(generator, name):
            getattr(generator, name)()
            return
        form: expressions.Form = getattr(expressions, name)
        found = next((value for _ in range(10) if (value := form(generator))), None)
        if found is not None:
            generator.define(found)

    return generator.file(work)


@dataclass(frozen=True)
class Fault:
    """In a module of weft, a function or a table that is made of the right one."""

    family: str
    module: str
    name: str
    make: Callable[[Any], Any]
    machine: str = NATIVE

    def seed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        owner = importlib.import_module(f"weft.{self.module}")
        *path, last = self.name.split(".")
        for part in path:
            owner = getattr(owner, part)
        monkeypatch.setattr(owner, last, self.make(getattr(owner, last)))


def joined_the_other_way(table: dict[Any, Any]) -> dict[Any, Any]:
    right = table[tl.join]
    return {**table, tl.join: lambda b, x, y: right(b, y, x)}


def stands_still(right: Any) -> Any:
    """Loops around others of a nest count nothing."""

    def enter(self: Any, at: Any, operand: Any, level: Any, trip: Any, values: Any) -> None:
        inner = any(isinstance(op, tile.DotOp) for op in level.body.ops)
        right(self, at, operand, level, trip if inner else at.number(0), values)

    return enter


def last_unchecked(right: Any) -> Any:
    return lambda b, shape, offsets, block, checked: right(b, shape, offsets, block, checked[:-1])


def atomics_of_programs_too(right: Any) -> Any:
    """What is along a dimension, and pointers of atomics that happen once for a program."""

    def along(value: SSAValue, *of: Any) -> list[int]:
        atomic = any(isinstance(use.operation, AtomicRmwOp) for use in value.uses)
        return right(value, *of) or [0] * (atomic and not is_tile(value))

    return along


def nothing_crossed(right: Any) -> Any:
    def initialise(self: Any, function: Any) -> None:
        right(self, function)
        self.crossed = []

    return initialise


FAULTS = {
    "a mask judged by its last element": Fault(
        "load", "codegen.cpu.versions", "decided_by_last", lambda _: lambda mask, axis: True
    ),
    "halves of a batch exchanged": Fault(
        "batched", "frontend.library.batches", "_halves", lambda right: lambda b, x: right(b, x)[::-1]
    ),
    "an if on elements takes the other side": Fault(
        "elementwise", "frontend.branching", "_select", lambda right: lambda g, t, b, v: right(g, t, b, v[::-1])
    ),
    "accesses under conditions on elements are not masked": Fault(
        "mapped_access", "frontend.builder", "Builder.reached", lambda _: lambda self, shape, mask: mask, "sm_80"
    ),
    "a block unchecked in its last dimension": Fault(
        "block_pointer", "frontend.library.blocks", "inside", last_unchecked, "sm_80"
    ),
    "a descriptor unchecked in its last dimension": Fault(
        "descriptor", "frontend.library.descriptors", "inside", last_unchecked, "sm_80"
    ),
    "pairs of e2m1 in the wrong order": Fault("scaled", "frontend.registry", "IMPLEMENTATIONS", joined_the_other_way),
    "elements of a tuple turned in loops": Fault(
        "tuple", "frontend.joining", "tuple_like", lambda right: lambda like, items: right(like, [*items][::-1])
    ),
    "the absolute value of a float keeps its sign": Fault(
        "function", "codegen.llvm.arith", "_UNARY", lambda table: {**table, ("abs", FLOAT): lambda _, __, x: x}
    ),
    "half of the rows of a sum left out": Fault(
        "nest", "codegen.cpu.accumulate", "_along", lambda right: lambda op: right(op)[:-1]
    ),
    "outer loops of a nest that stand still": Fault("nest", "transforms.pack_dots", "_Rewriting._enter", stands_still),
    "minimum for maximum in atomics": Fault(
        "atomic", "codegen.llvm.atomics", "_SIGNED", lambda _: {"min": "max", "max": "min"}
    ),
    "an atomic store left out": Fault("atomic", "codegen.llvm.atomics", "release_store", lambda _: lambda *_: None),
    "programs joined by ids in types that do not hold them": Fault(
        "neighbours:index", "transforms.join_programs", "_keeps_numbers", lambda _: lambda _: True
    ),
    "programs joined that use ids otherwise": Fault(
        "neighbours:index", "transforms.join_programs", "_sums", lambda right: lambda product: right(product) or []
    ),
    "programs joined whose elements meet": Fault(
        "neighbours:across", "transforms.join_programs", "_Dimensions.__init__", nothing_crossed
    ),
    "programs joined that update a place once": Fault(
        "neighbours:update", "transforms.join_programs", "_along", atomics_of_programs_too
    ),
    "programs of numbers joined that update a place": Fault(
        "neighbours:update",
        "transforms.join_scalars",
        "_is_allowed",
        lambda right: lambda op: isinstance(op, AtomicRmwOp) or right(op),
    ),
    "printed elements in another order": Fault(
        "printing", "ir.printing", "Print.placed", lambda right: lambda self, data: right(self, data)[::-1]
    ),
}


QUICK = (
    "a descriptor unchecked in its last dimension",
    "an atomic store left out",
    "printed elements in another order",
    "programs joined whose elements meet",
)


@pytest.mark.parametrize("name", some(FAULTS, *(name for name in FAULTS if name not in QUICK)))
def test_a_fault_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    fault = FAULTS[name]
    path = tmp_path / "kernel.py"
    for seed in range(SEEDS):
        path.write_text(family(fault.family, seed))
        with monkeypatch.context() as patch:
            fault.seed(patch)
            verdict = judge(str(seed), path, [fault.machine])
        assert verdict.kind != "refused", verdict.message
        if verdict.kind != AGREES:
            assert judge(str(seed), path, [fault.machine]).kind == AGREES, "the kernel fails without the fault"
            return
    pytest.fail(f"{name}: no kernel of {SEEDS} shows it")
