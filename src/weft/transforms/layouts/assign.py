"""Every tile gets a layout; conversions become explicit.

Most tiles have no layout of their own to begin with, so few conversions are made in the first place (the engine of section 4.4 of
the linear-layouts paper). The machine's rules propose layouts for each op (`rules`); the pass takes the cheapest proposal,
conversions of the operands included, in program order. For a CPU (`vectors`) that is a preference order. Rules 1 to 3 are the
machine's, 4 and 5 the pass's:

1. *Anchors* decide: a load takes the layout that makes its lanes consecutive in memory (from axis analysis), a dot's result is
   row-major. Its first operand is read by rows or by columns, whichever the conversion to is cheaper.
2. *Shape ops carry*: trans, reshape, expand_dims and reduce give their result the layout under which nothing moves.
3. *Elementwise ops follow the heaviest operand*: the one with the most elements that came from memory or a reduction; a
   broadcast weighs what its source weighs.
4. *Free values follow their users*: what is computed from constants, ranges and scalars alone is cloned in whatever layout
   is asked for (backward rematerialisation); a shape op asks its source for the layout that makes it free. So does a load
   that is only wanted as one element per register, repeated, and what addresses are computed from it.
5. Only what is left is a `tile.convert_layout`.

The pass first infers all layouts without changing anything (`infer`). Then it retypes the values and inserts what rules 4 and
5 require (`rewrite`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.transforms.axis import analyse
from weft.transforms.layouts.infer import Inference
from weft.transforms.layouts.rewrite import Rewriting
from weft.transforms.layouts.rules import LayoutFacts, LayoutRules, SolverRules


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Gives every tensor type a layout by a machine's ``rules``; operands of one elementwise op get one layout."""

    name = "assign-layouts"

    rules: LayoutRules
    solve: bool = False
    """Whether to choose for whole functions (`weft.transforms.layouts.solve`), which never costs more than the preference order
    by the machine's prices; then ``rules`` are `SolverRules`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                self.assign(function)

    def assign(self, function: func.FuncOp) -> None:
        """Gives the types of one function layouts."""
        facts = LayoutFacts(dict(analyse(function)))
        inference = Inference(self.rules, facts)
        inference.infer(function.body.block)
        if self.solve:
            from weft.transforms.layouts.solve import enter, solve  # not at import: CPUs have no solver

            assert isinstance(self.rules, SolverRules), "only a machine that prices everything is solved for"
            enter(solve(function, self.rules, facts, inference.chosen), function, facts, inference.chosen)
        rewriting = Rewriting(facts, inference.chosen)
        rewriting.retype(function.body.block)
        rewriting.convert(function.body.block)
