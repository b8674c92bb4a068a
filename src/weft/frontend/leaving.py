"""Run-time loops that ``break`` or ``return`` leave.

Both are an `scf.while` that carries, before the variables, a bool: whether there is another iteration as far as is known. The end
of the body computes it from the jumps that its paths took. If the loop contains a ``return``, the loop also carries whether it
was reached, and the value returned: the statement after the loop then asks (`weft.frontend.control.resume`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from weft.frontend import jumps
from weft.frontend.branching import MAPPED, Branch, run_branch
from weft.frontend.carried import Carried
from weft.frontend.errors import CompilationError
from weft.frontend.generator import Generator, Returned, push
from weft.frontend.joining import rebuild
from weft.frontend.scope import Loop
from weft.frontend.values import Tensor


def run_body(g: Generator, node: ast.For | ast.While, block: Block, enter: Callable[[], None]) -> Branch:
    """Compile an iteration into ``block``; ``enter`` runs there first."""

    def enter_loop() -> None:
        g.scope.loop, g.scope.cut = Loop(node, g.scope.loop), True
        enter()

    return run_branch(g, push(node.body, None), block, enter_loop)


class Leaving:
    """A loop under construction. ``leading`` are the values it carries before the variables; the first is whether it goes
    on."""

    def __init__(self, g: Generator, node: ast.For | ast.While, leading: Sequence[Tensor]) -> None:
        self.g = g
        self.node = node
        self.initial = list(leading)
        self.carried = Carried(g, node)
        types = [value.ssa for value in leading]
        self.before, self.after = self.carried.block(*types), self.carried.block(*types)

    def leading(self, position: int) -> Tensor:
        """One of the leading values, in the body."""
        return Tensor.of(self.after.args[position])

    def variables(self, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The values of the variables, of those of all that the loop carries."""
        return values[len(self.initial) : len(self.initial) + len(self.carried.initial)]

    def run(
        self, test: Tensor, enter: Callable[[], None], advance: Callable[[], list[Tensor]], *, endless: bool = False
    ) -> None:
        """Build the loop. ``test`` is its condition, at the end of ``before``; ``enter`` runs before the body, ``advance``
        after it: it gives the leading values of the next iteration. ``endless``: only jumps leave the loop."""
        g, b, carried = self.g, self.g.b, self.carried

        def enter_body() -> None:
            carried.enter(self.variables(self.after.args))
            enter()

        body = run_body(g, self.node, self.after, enter_body)
        b.node = self.node
        with b.at(self.after):
            goes_on, *others = advance()
            flags = {j: f for j, f in body.scope.jumps.items() if j.kind != "continue"}
            left = jumps.any_of(b, flags)
            if isinstance(left, Tensor) and left.shape:
                raise g.stamp(
                    CompilationError("jumps out of loops of a mapped function cannot depend on elements", hint=MAPPED),
                    self.node,
                )
            if left is not False:
                goes_on = b.binary("and", goes_on, b.unary("not", b.tensor(left)))
            variables = carried.yielded(body)
            result = jumps.carried_result(b, body.scope)
            b.emit(scf.YieldOp(*(v.ssa for v in (goes_on, *others, *variables, *result))))
        for block in (self.before, self.after):
            for value in result:
                block.insert_arg(value.ssa.type, len(block.args))
        with b.at(self.before):
            b.emit(scf.ConditionOp(test.ssa, *self.before.args))
        unread = [jumps.placeholder(b, value) for value in result]
        initial = [v.ssa for v in (*self.initial, *carried.initial, *unread)]
        op = b.emit(scf.WhileOp(initial, [v.type for v in initial], Region(self.before), Region(self.after)))
        carried.leave(list(self.variables(op.results)), body)
        if result:
            end: Returned = body.scope.result
            reached, *values = list(op.results)[len(initial) - len(result) :]
            only = endless and all(jump.kind == "return" for jump in flags)
            g.scope.jumps[jumps.RETURN] = True if only else Tensor.of(reached)
            g.scope.result = Returned(rebuild(end.value, iter(values)), end.node)
