"""What the layout library costs: microseconds for constructing, composing, inverting and planning, beside Triton's binding.

Run as ``python benchmarks/layout.py``. Triton's columns need the package triton (no GPU) beside weft; what its binding cannot
do is left empty. Each figure is the least of repeats of many calls, in CPU time: a layout operation touches no data and uses
one thread, so what is above the least is the machine's other work. The aims: a family in under 100 us, a plan for two 128x128
layouts in under 2 ms cold and 20 us from the cache.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from weft.layout import LinearLayout, amd_mfma, blocked, mma_swizzled, nvidia_mma, nvidia_mma_operand, optimal_swizzle
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.gather import plan_gather
from weft.layout.planning.machine import HOPPER

SHAPE = (128, 128)
Call = Callable[[], object]


def microseconds(call: Call, repeats: int = 7, budget: float = 0.05) -> tuple[float, float]:
    """The least and the median of ``repeats`` means, each over as many calls as fit in ``budget`` seconds."""
    call()
    start = time.thread_time()
    call()
    count = max(1, min(1000, int(budget / max(time.thread_time() - start, 1e-9))))
    means: list[float] = []
    for _ in range(repeats):
        start = time.thread_time()
        for _ in range(count):
            call()
        means.append((time.thread_time() - start) / count * 1e6)
    return min(means), statistics.median(means)


def layouts() -> dict[str, LinearLayout]:
    """The layouts measured, all of one tensor."""
    return {
        "row": blocked(SHAPE, (1, 8), (2, 16), (4, 1), (1, 0)),
        "column": blocked(SHAPE, (8, 1), (16, 2), (1, 4), (0, 1)),
        "mma": nvidia_mma(SHAPE, 2, (4, 1), (16, 8)),
        "operand": nvidia_mma_operand(SHAPE, 0, 2, 2, (4, 1), (16, 8)),
    }


def cold(call: Any) -> Call:
    """The call without what an earlier one left in the cache."""

    def run() -> None:
        for cached in (plan_conversion, plan_memory, plan_gather):
            if clear := getattr(cached, "cache_clear", None):
                clear()
        call()

    return run


def weft_calls() -> dict[str, Call]:
    """Each operation in this library."""
    at = layouts()
    row, column, mma, operand = at.values()
    offsets = row.inverse() if row.is_invertible else row
    return {
        "family: blocked": lambda: blocked(SHAPE, (1, 8), (2, 16), (4, 1), (1, 0)),
        "family: mma v2": lambda: nvidia_mma(SHAPE, 2, (4, 1), (16, 8)),
        "family: mma operand": lambda: nvidia_mma_operand(SHAPE, 0, 2, 2, (4, 1), (16, 8)),
        "family: MFMA": lambda: amd_mfma(SHAPE, 3, (4, 1), (16, 16, 16), False),
        "family: swizzled memory": lambda: mma_swizzled(SHAPE, 8, 1, 8),
        "algebra: compose": lambda: row.compose(offsets),
        "algebra: invert_and_compose": lambda: row.invert_and_compose(column),
        "algebra: product": lambda: row * column,
        "plan: optimal swizzle": lambda: optimal_swizzle(row, column, bits=16),
        "plan: row -> column, cold": cold(lambda: plan_conversion(row, column, 16, HOPPER)),
        "plan: row -> mma, cold": cold(lambda: plan_conversion(row, mma, 16, HOPPER)),
        "plan: mma -> operand, cold": cold(lambda: plan_conversion(mma, operand, 16, HOPPER)),
        "plan: row -> column, cached": lambda: plan_conversion(row, column, 16, HOPPER),
        "plan: gather, cold": cold(lambda: plan_gather(row, row, 1, 32, HOPPER)),
    }


def triton_calls() -> dict[str, Call]:
    """The same in Triton's binding, where it has them; empty without the package."""
    if not importlib.util.find_spec("triton"):
        return {}
    binding: Any = importlib.import_module("triton._C.libtriton")
    gluon: Any = importlib.import_module("triton.experimental.gluon.language")
    context = binding.ir.context()
    for part in (binding.ir, binding.nvidia, binding.amd):
        part.load_dialects(context)
    builder = binding.gluon_ir.GluonOpBuilder(context)
    native = binding.linear_layout.LinearLayout

    def family(layout: Any, _: Any = context) -> Call:  # the builder does not keep the context alive
        return lambda: (_, builder.to_linear_layout(layout._to_ir(builder), list(SHAPE)))

    def of(layout: LinearLayout) -> Any:
        bases = [(d, [list(b) for b in layout.bases(d)]) for d in layout.in_dims]
        outs = [layout.out_size(d) for d in layout.out_dims]
        return native.from_bases(bases, list(layout.out_dims), outs, True)

    mma = gluon.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    calls: dict[str, Call] = {
        "family: blocked": family(gluon.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])),
        "family: mma v2": family(mma),
        "family: mma operand": family(gluon.DotOperandLayout(0, mma, 2)),
        "family: swizzled memory": family(gluon.SwizzledSharedLayout(8, 1, 8, [1, 0])),
    }
    row, column = (of(layouts()[name]) for name in ("row", "column"))
    inverse = row.invert()
    return {
        **calls,
        "algebra: compose": lambda: row.compose(inverse),
        "algebra: invert_and_compose": lambda: row.invert_and_compose(column),
        "algebra: product": lambda: row * column,
    }


def main() -> int:
    console = Console()
    peers = triton_calls()
    table = Table(title="microseconds: least (median)", title_justify="left")
    for heading in ("operation on 128x128", "weft", "Triton's binding", "weft / Triton"):
        table.add_column(heading, justify="left" if heading.startswith("op") else "right")
    for name, call in weft_calls().items():
        mine, median = microseconds(call)
        other = microseconds(peers[name]) if name in peers else None
        table.add_row(
            name,
            f"{mine:.1f} ({median:.1f})",
            "" if other is None else f"{other[0]:.1f} ({other[1]:.1f})",
            "" if other is None else f"{mine / other[0]:.1f}",
        )
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
