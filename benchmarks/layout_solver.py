"""What layouts cost under the preference order and by the solver, for the kernels of `gpu_counts.py`.

Run as ``python benchmarks/layout_solver.py``. Prices are clocks of the price model, of the rewritten IR
(`weft.transforms.layouts.thread_prices`). "bound" is the least of all solutions of the same candidates. It is below the solution
where six rounds did not suffice, or where a solution saves less than 1 % and the preference order stays. Times are processor
time of the solver alone, with no plan kept from before. The exit status is 1 where a solution costs more than the preference
order, or its IR costs something else than it says.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import gpu_counts
import gpu_kernels
from rich.console import Console
from rich.table import Table
from xdsl.context import Context
from xdsl.dialects import func

from weft.codegen import machine_for
from weft.ir.text import parse
from weft.layout.planning import bounds, choose, reduce
from weft.options import Options
from weft.target import gpu
from weft.transforms.axis import analyse
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.layouts import AssignLayouts, LayoutFacts, thread_prices
from weft.transforms.layouts.infer import Inference
from weft.transforms.layouts.solve import Solution, price_of, solve
from weft.transforms.layouts.threads import ThreadRules

HEADS = ("kernel", "preference", "solver", "ratio", "bound", "variables", "quota", "rounds", "plans", "ms")
KEPT = (
    bounds.least_conversion,
    choose.plan_conversion,
    reduce.plan_reduce,
    reduce.least_reduce,
    thread_prices.reduce_price,
)


@dataclass(frozen=True)
class Row:
    """A kernel's prices, and how the solution was found."""

    name: str
    preferred: float
    solved: float
    solution: Solution
    milliseconds: float

    @property
    def wrong(self) -> bool:
        """Whether a law is broken."""
        return self.solved > self.preferred * (1 + 1e-9) or abs(self.solved - self.solution.price) > 1e-6 * self.solved

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        s = self.solution
        bound = "" if s.bound is None else f"{s.bound:,.0f}"
        ratio = f"{self.preferred / self.solved:.2f}"
        numbers = [f"{each:,}" for each in (len(s.choices), s.quota, s.rounds, s.planned)]
        return [
            self.name,
            f"{self.preferred:,.0f}",
            f"{self.solved:,.0f}",
            ratio,
            bound,
            *numbers,
            f"{self.milliseconds:.0f}",
        ]


def before_layouts(text: str, target: str, warps: int) -> Any:
    """A kernel's module as the layout pass gets it."""
    module = parse(text)
    passes = machine_for(gpu(target)).passes(Options(launch=(("num_warps", warps),)))
    for one in itertools.takewhile(lambda each: not isinstance(each, AssignLayouts), passes):
        one.apply(Context(), module)
    return module


def measure(case: gpu_counts.Case, target: str, warps: int) -> Row:
    """Prices of one kernel."""
    kernel = getattr(gpu_kernels, case.kernel)
    text = kernel.compile(*case.make(), target=target, num_warps=warps, **case.options, **case.constants).tile_ir
    rules = ThreadRules(gpu(target), warps)
    prices: list[float] = []
    for solved in (False, True):
        module = before_layouts(text, target, warps)
        for one in (AssignLayouts(rules, solved), Cse(), Dce()):
            one.apply(Context(), module)
        prices.append(price_of(next(op for op in module.walk() if isinstance(op, func.FuncOp)), rules))
    function = next(op for op in before_layouts(text, target, warps).walk() if isinstance(op, func.FuncOp))
    facts = LayoutFacts(dict(analyse(function)))
    inference = Inference(rules, facts)
    inference.infer(function.body.block)
    for kept in KEPT:
        kept.cache_clear()
    start = time.process_time()
    solution = solve(function, rules, facts, inference.chosen)
    return Row(case.name, *prices, solution, 1000 * (time.process_time() - start))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--warps", type=int, default=4)
    parser.add_argument("--only", default="", help="kernels with this in their name")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    rows = [measure(case, given.target, given.warps) for case in gpu_counts.CASES if given.only in case.name]
    if given.markdown:
        print(
            f"`python benchmarks/layout_solver.py`, {given.target}, {given.warps} warps, {date.today().isoformat()}.\n"
        )
        lines = [HEADS, ["---", *["--:"] * (len(HEADS) - 1)], *(row.cells for row in rows)]
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
    else:
        table = Table(*HEADS, title=f"{given.target}, {given.warps} warps")
        for row in rows:
            table.add_row(*row.cells)
        Console().print(table)
    return int(any(row.wrong for row in rows))


if __name__ == "__main__":
    sys.exit(main())
