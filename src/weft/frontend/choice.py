"""Expressions of which Python evaluates a part only: ``a if c else b``, ``a and b``, ``a or b``, ``a < b < c``.

A condition known at compile time decides which part is compiled. Under a condition known at run time, a part that reads
or writes memory stands in a branch of an ``scf.if``: it takes effect only where Python would evaluate it. A pure right
side of ``and`` and ``or`` is always computed, which costs less than a branch.

Triton always evaluates both sides of ``and`` and ``or``. The difference shows where the right side touches memory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation
from xdsl.traits import MemoryEffectKind, get_effects

from weft import dtypes
from weft.frontend.branching import condition, emit_if, refuse_unmasked, run_branch
from weft.frontend.constness import described
from weft.frontend.errors import CompilationError
from weft.frontend.generator import Generator
from weft.frontend.joining import leaves, rebuild, same_type, unify
from weft.frontend.values import Tensor, Value, describe, is_runtime

Evaluate = Callable[[], Value]


def effect(g: Generator, node: ast.expr) -> None:
    """Evaluate an expression whose value is not used: the parts of a choice need no common type."""
    if isinstance(node, ast.IfExp):
        g.evaluate(node, lambda g, node: choose(g, node, effect))
    elif isinstance(node, ast.BoolOp):
        *sides, last = node.values

        def right() -> bool:
            effect(g, last)
            return True  # a side that has no value may stand here

        g.evaluate(node, lambda g, node: connect(g, node, sides, right))
    else:
        g.expression(node)


def choose(g: Generator, node: ast.IfExp, evaluate: Callable[[Generator, ast.expr], Value]) -> Value:
    """``a if condition else b``; only the side chosen is evaluated, at run time too."""
    test = condition(g, node.test)
    if isinstance(test, bool):
        return evaluate(g, node.body if test else node.orelse)
    blocks: list[Block] = []
    values: list[Value] = []
    for side, holds in ((node.body, True), (node.orelse, False)):
        _refuse_assignment(g, [side], "in a side of a conditional expression")
        branch = run_branch(g, None, None, lambda side=side: values.append(evaluate(g, side)), side=(test, holds))
        blocks.append(branch.block)
    then, other = unify(g.b, values[0], blocks[0], values[1], blocks[1])
    if not same_type(g.b, then, other):
        raise CompilationError(
            f"the sides of a conditional expression have different types: {' and '.join(described(g.b, v) for v in values)}",
            hint="convert one side with .to(...), or broadcast it",
        )
    return rebuild(then, iter(emit_if(g, test, blocks, [list(leaves(then)), list(leaves(other))])))


def connect(g: Generator, node: ast.BoolOp, sides: Sequence[ast.expr], last: Evaluate) -> Value:
    """``sides[0] op sides[1] op ... op last``, from the left."""
    if not sides:
        return last()
    op = "and" if isinstance(node.op, ast.And) else "or"
    rest = node.values[-len(sides) :]
    return short_circuit(g, op, g.expression(sides[0]), rest, lambda: connect(g, node, sides[1:], last))


def short_circuit(g: Generator, op: str, lhs: Value, rest: Sequence[ast.expr], right: Evaluate) -> Value:
    """``lhs and right()``, ``lhs or right()``, elementwise on bools; ``rest`` are the expressions that ``right`` evaluates.

    A scalar on the left guards a right side that touches memory. A tile on the left cannot: there a right side that
    writes is refused. In a mapped function the right side takes effect for the elements for which the left asks for it.
    """
    if not is_runtime(lhs):
        return lhs if bool(lhs) is (op == "or") else right()
    outer = g.b.path
    block = Block()
    with g.b.at(block), g.b.under(lhs, op == "and"):
        is_masked = g.b.path is not outer
        rhs = right()
    if is_masked:
        refuse_unmasked(block)
    elif any(map(_touches_memory, block.ops)):
        if isinstance(lhs, Tensor) and not lhs.shape:
            return _guarded(g, op, lhs, rest, block, rhs)
        if any(map(_writes, block.ops)):
            raise CompilationError(
                f"the right side of '{op}' writes memory, but its left side, {describe(lhs)}, does not decide "
                "whether it should",
                hint="use a scalar condition, or store with a mask",
            )
    for inner in list(block.ops):
        inner.detach()
        g.b.block.add_op(inner)
    return _both(g, op, lhs, rhs)


def _both(g: Generator, op: str, lhs: Value, rhs: Value) -> Value:
    """Two evaluated sides connected."""
    if not is_runtime(rhs):
        return _known(op, lhs, rhs)
    _check_bool(op, lhs)
    _check_bool(op, rhs)
    return g.b.binary(op, *g.b.broadcast(lhs, rhs))


def _known(op: str, lhs: Value, rhs: Value) -> Value:
    """``lhs op rhs`` for a right side known at compile time."""
    if rhs is None:
        _check_bool(op, rhs)
    return rhs if bool(rhs) is (op == "or") else lhs


def _guarded(g: Generator, op: str, lhs: Tensor, rest: Sequence[ast.expr], block: Block, rhs: Value) -> Value:
    """The right side, whose ops are in ``block``, where the scalar on the left does not decide."""
    _check_bool(op, lhs)
    _refuse_assignment(g, rest, f"in the right side of '{op}', which touches memory")
    skipped, absorbing = Block(), op == "or"
    results: list[list[Tensor]] = [[], []]
    if isinstance(rhs, Tensor):
        _check_bool(op, rhs)
        with g.b.at(skipped):
            results = [[rhs], [g.b.constant(absorbing, dtypes.bool_, rhs.shape)]]
    asked = g.b.unary("not", lhs) if absorbing else lhs
    values = emit_if(g, asked, [block, skipped], results)
    return Tensor(values[0], dtypes.bool_, rhs.shape) if isinstance(rhs, Tensor) else _known(op, lhs, rhs)


def _check_bool(op: str, value: Value) -> None:
    if not isinstance(value, Tensor) or value.is_pointer or not value.dtype.is_bool:
        hint = "compare with zero (x != 0), or use & and | on integers"
        raise CompilationError(f"'{op}' takes bools, found {describe(value)}", hint=hint)


def _refuse_assignment(g: Generator, nodes: Sequence[ast.expr], where: str) -> None:
    """An assignment in a part that may be skipped would leave the variable half-defined."""
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                error = CompilationError(f"':=' cannot be used {where}", hint="assign before it, or write 'if'")
                raise g.stamp(error, inner)


def _touches_memory(op: Operation) -> bool:
    return get_effects(op) != frozenset()


def _writes(op: Operation) -> bool:
    effects = get_effects(op)
    return effects is None or any(e.kind is not MemoryEffectKind.READ for e in effects)
