"""Which addresses are known to be how far behind others, and that registers are loaded at such distances."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_assembly
from weft.codegen.cpu.near import nearest
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.llvm.types import I64
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.layout import LinearLayout
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.axis_info import AxisInfo, Box

ROWS = LinearLayout.from_columns({"register": (4, 8, 16, 32), "lane": (1, 2)}, [("y", 2), ("x", 4)])
TURNED = LinearLayout.from_columns({"register": (1, 32, 16, 0), "lane": (2, 4, 8)}, [("y", 2), ("x", 4)])
CROSSED = LinearLayout.from_columns({"register": (4, 12, 48, 32), "lane": (1, 2)}, [("y", 2), ("x", 4)])


def addresses(info: AxisInfo, y: int, x: int) -> tuple[int, int]:
    """A number for each of the parts of a tile of which nothing says how they lie, and how far from its first an element is.
    ``x`` is contiguous or in a box, ``y`` in a box or unknown."""
    steps = info.box.along if info.box is not None else [(0, 1), (1, 1)]
    unit = info.unit if info.box is None else info.box.unit
    (step_y, group_y), (step_x, group_x) = steps
    if info.contiguity[1] > group_x:
        step_x, group_x = info.unit // unit, info.contiguity[1]
    return (y // group_y) * 100 + x // group_x, (y % group_y * step_y + x % group_x * step_x) * unit


@pytest.mark.parametrize("layout", [ROWS, TURNED, CROSSED], ids=["rows", "turned", "crossed"])
@pytest.mark.parametrize(
    "info",
    [
        AxisInfo((1, 16), (4, 4), (1, 1), unit=4),
        AxisInfo((1, 8), (4, 4), (1, 1), unit=8),
        AxisInfo((1, 1), (1, 1), (1, 1), unit=4),
        AxisInfo((1, 2), (4, 4), (1, 1), unit=4, box=Box((100, 3), (4, 16), 4, 4)),
        AxisInfo((1, 16), (4, 4), (1, 1), unit=4, box=Box((-40, 1), (2, 8), 4, 4)),
    ],
    ids=["contiguous", "in part", "unknown", "apart", "two rows"],
)
@pytest.mark.parametrize("counted", [(), (2,), (1, 4)])
def test_distances_are_those_of_the_elements(layout: LinearLayout, info: AxisInfo, counted: tuple[int, ...]) -> None:
    """Of each register and lane, at each number that the loops around it count."""
    counter = Counter(I64(0), len(counted))
    for register, lane in product(range(16), range(layout.in_size("lane"))):
        near = nearest(layout, info, RegisterIndex(register, ((counter, counted),) if counted else ()), lane)
        for bits in product((0, 1), repeat=len(counted)):
            moved = sum(image for image, bit in zip(counted, bits, strict=True) if bit)
            place, first = (
                addresses(info, *layout.unflatten(layout.flat(register=at ^ moved, lane=each)))
                for at, each in ((register, lane), (near.at.const, near.lane))
            )
            assert place[0] == first[0]
            assert place[1] - first[1] == near.distance


@pytest.mark.parametrize(
    ("layout", "info", "first"),
    [
        (ROWS, AxisInfo((1, 16), (4, 4), (1, 1), unit=4), 4),
        (ROWS, AxisInfo((1, 1), (1, 1), (1, 1), unit=4, box=Box((100, 3), (4, 16), 4, 4)), 1),
        (TURNED, AxisInfo((1, 16), (4, 4), (1, 1), unit=4), 4),
        (CROSSED, AxisInfo((1, 16), (4, 4), (1, 1), unit=4), 16),
    ],
)
def test_few_addresses_are_no_distances(layout: LinearLayout, info: AxisInfo, first: int) -> None:
    """One for each row, or each group of rows."""
    lanes = range(layout.in_size("lane"))
    used = [register for register in range(16) if not register & 8 or layout is not TURNED]
    found = {nearest(layout, info, RegisterIndex(at), lane)[:2] for at, lane in product(used, lanes)}
    assert len(found) == first


@weft.jit
def sums(x: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        total += tl.load(x + tl.program_id(0).to(tl.int64) * n + at, mask=at < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, axis=0))


@weft.jit
def row_sums(x: Any, out: Any, m: Any, n: Any, BLOCK: tl.constexpr) -> None:
    rows, total = tl.program_id(0) * 16 + tl.arange(0, 16), tl.zeros((16,), tl.float32)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        inside = (rows < m)[:, None] & (at < n)[None, :]
        total += tl.sum(tl.load(x + rows[:, None] * n + at[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + rows, total, mask=rows < m)


@pytest.mark.parametrize("tuning", [(), ("far-prefetches", "halved-loads")])
@pytest.mark.parametrize(("kernel", "block"), [(sums, 4096), (row_sums, 64)], ids=["one row", "rows"])
def test_whole_registers_are_added_from_memory_in_its_order(kernel: Any, block: int, tuning: tuple[str, ...]) -> None:
    """The additions are not shared with the version for what masks cut off: all loads would stand before them."""
    pointer, number = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32, divisible=True)
    signature: dict[str, Argument] = {"x": pointer, "out": pointer, "n": number, "BLOCK": ConstantArgument(block)}
    if kernel is row_sums:
        signature = {"x": pointer, "out": pointer, "m": number, **dict(list(signature.items())[2:])}
    features = "+avx512f,+avx512bw,+avx512dq,+avx512vl"
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", features, 512, tuning=("loading-additions", *tuning))
    text = emit_assembly(build_module(KernelFunction(kernel.fn), signature), target, Options(disjoint=True))
    size = 32 if tuning and kernel is row_sums else 64
    blocks = re.split(r"^\.L.*:$", text, flags=re.MULTILINE)
    loads = [re.findall(r"^\tvaddps\t(\d*)\(", block, re.MULTILINE) for block in blocks]
    whole = [int(each or 0) for each in max(loads, key=len)]
    assert [each - whole[0] for each in whole] == list(range(0, 512 if kernel is sums else 256, size))
