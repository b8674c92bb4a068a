"""Each kind of step as PTX, by conversions whose plans have it: what random layouts of small tensors seldom need.

`has` says what a plan consists of, so that a case whose plan changes its ways is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from codegen.test_nvidia_exchange import convert
from weft import dtypes
from weft.codegen.nvidia import lowering
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import layout_of
from weft.layout import LinearLayout, blocked, nvidia_mma, reshape
from weft.layout.planning.accesses import Access, MatrixAccess, VectorAccess
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.permutes import FIRST_WORD, SECOND_WORD, Permute
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.steps import Barrier, LaneExchange, Move, Parallel, Step
from weft.target import GpuTarget
from weft.transforms.nvidia import scratch

PLAIN = {"ldmatrix": False, "stmatrix": False}
UNITS = tuple(1 << bit for bit in range(13))


@dataclass(frozen=True)
class Case:
    """A conversion on a GPU, how it is planned, and what its plan has."""

    source: LinearLayout
    destination: LinearLayout
    dtype: DType
    has: frozenset[str]
    target: int = 90
    model: dict[str, Any] = field(default_factory=dict[str, Any])
    make: Callable[..., ConversionPlan] = plan_memory

    def __str__(self) -> str:
        return f"{'+'.join(sorted(self.has))}-{self.dtype}-sm_{self.target}"


def flat(layout: LinearLayout) -> LinearLayout:
    """The layout of the same elements in one dimension."""
    size = 1
    for extent in layout.shape:
        size *= extent
    return reshape(layout, (size,))


def layout(register: tuple[int, ...], lane: tuple[int, ...], warp: tuple[int, ...], bits: int) -> LinearLayout:
    return LinearLayout.from_columns({"register": register, "lane": lane, "warp": warp}, [("dim0", bits)])


def exchanged(*pairs: tuple[int, int], registers: int = 4) -> LinearLayout:
    """Registers, lanes and two warp bits in the order of the elements, but that these bits change places."""
    columns = list(UNITS[: registers + 7])
    for first, second in pairs:
        columns[first], columns[second] = columns[second], columns[first]
    cut = registers + 5
    return layout(tuple(columns[:registers]), tuple(columns[registers:cut]), tuple(columns[cut:]), registers + 7)


def rows(size: int, bits: int, order: tuple[int, int] = (1, 0)) -> LinearLayout:
    """Vectors of 128 bits along the rows, or along the columns."""
    vector = 128 // bits
    across = min(32, size // vector)
    per, lanes, warps = [1, vector], [32 // across, across], [4, 1]
    if order == (0, 1):
        per, lanes, warps = per[::-1], lanes[::-1], warps[::-1]
    return flat(blocked((size, size), per, lanes, warps, order))


MMA = flat(nvidia_mma((32, 32), 2, (2, 2), (16, 8)))
F16, I8, I32 = dtypes.float16, dtypes.int8, dtypes.int32

CASES = [
    Case(rows(32, 16), MMA, F16, frozenset({"ld matrix"}), 80),
    Case(rows(32, 16, (0, 1)), MMA, F16, frozenset({"ld transposed"}), 80),
    Case(MMA, rows(32, 16), F16, frozenset({"st matrix"})),
    Case(MMA, rows(32, 16, (0, 1)), F16, frozenset({"st matrix", "ld transposed"})),
    Case(MMA, rows(32, 16, (0, 1)), F16, frozenset({"st transposed", "ld vector"}), model={"ldmatrix": False}),
    Case(rows(32, 16), MMA, F16, frozenset({"guarded", "st vector", "ld vector"}), model={"scratch": 512, **PLAIN}),
    Case(MMA, rows(32, 16), F16, frozenset({"guarded", "st vector", "ld vector"}), model={"scratch": 512, **PLAIN}),
    Case(exchanged(), exchanged((3, 9)), I32, frozenset({"flip", "parallel"}), make=plan_conversion),
    Case(exchanged(), exchanged((3, 9), (2, 5)), I32, frozenset({"flip", "parallel"}), make=plan_conversion),
    Case(exchanged(), exchanged((3, 9), (2, 5)), F16, frozenset({"flip", "parallel"}), make=plan_conversion),
    Case(exchanged(), exchanged((0, 4)), I8, frozenset({"bfly"}), make=plan_conversion),
    Case(
        exchanged(), exchanged((0, 4), (1, 5), (6, 7)), I8, frozenset({"idx", "bytes by thread"}), make=plan_conversion
    ),
    Case(exchanged(), exchanged((0, 4), (1, 5), (6, 7)), I32, frozenset({"idx", "select"}), make=plan_conversion),
    Case(  # warps with copies have scratch of their own
        layout((1, 2, 4), (8, 16, 32, 64, 128), (0, 0), 8),
        layout((32, 64, 128), (1, 2, 4, 8, 16), (0, 0), 8),
        I32,
        frozenset({"barrier of the warp"}),
        make=plan_conversion,
    ),
    Case(
        layout((1,), (2, 4, 8, 16, 0), (32, 0), 6),
        layout((32,), (1, 2, 4, 8, 0), (16, 0), 6),
        I32,
        frozenset({"idle lanes", "idle warps"}),
    ),
    Case(
        layout((1, 2), (4, 8, 0, 16, 32), (64, 0), 7),
        layout((64, 2), (4, 8, 1, 16, 32), (0, 0), 7),
        F16,
        frozenset({"idle warps"}),
    ),
]


def all_steps(steps: Any) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, Parallel):
            yield from all_steps(step.stays)
            yield from all_steps(step.moves)


def permute_kinds(permutes: Any) -> Iterator[str]:
    for permute in permutes:
        assert isinstance(permute, Permute)
        if len(set(permute.selectors)) == 1:
            yield "word" if permute.selectors[0] in (FIRST_WORD, SECOND_WORD) else "bytes"
        else:
            yield "select" if permute.selects else "bytes by thread"


def kinds(plan: ConversionPlan) -> Iterator[str]:
    """What a plan consists of."""
    for step in all_steps(plan.steps):
        if isinstance(step, Access):
            way = "st" if step.stores else "ld"
            yield f"{way} {step.kind}" if isinstance(step, MatrixAccess) else f"{way} vector"
            yield from (
                ["guarded"] * step.guarded + ["idle warps"] * bool(step.idle_warps) + ["flip"] * bool(step.warp_flip)
            )
            yield from ["idle lanes"] * (isinstance(step, VectorAccess) and bool(step.idle_lanes))
        elif isinstance(step, LaneExchange):
            yield step.form
            for network in (step.networks.offer, step.networks.receive):
                yield from permute_kinds(network.permutes)
        elif isinstance(step, Move):
            yield from permute_kinds(step.network.permutes)
        elif isinstance(step, Barrier):
            yield f"barrier of the {step.scope}"
        elif isinstance(step, Parallel):
            yield "parallel"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_element_arrives(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan_of(op: tile.ConvertLayoutOp, model: MachineModel) -> ConversionPlan:
        bits = scratch.element_bits(op.source)
        return case.make(layout_of(op.source), layout_of(op.result), bits, replace(model, **case.model))

    model = replace(GpuTarget(case.target).model, **case.model)
    found = set(kinds(case.make(case.source, case.destination, 8 * case.dtype.itemsize, model)))
    assert found >= case.has, found
    monkeypatch.setattr(scratch, "conversion_plan", plan_of)
    monkeypatch.setattr(lowering, "conversion_plan", plan_of)
    convert(case.source, [case.destination], case.dtype, GpuTarget(case.target), 2)
