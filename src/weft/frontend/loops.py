"""``for`` and ``while``.

A run-time ``for`` is an ``scf.for`` in int32, or int64 where a bound is (or is uint32). scf counts upwards by a
positive step, Python does not: a negative compile-time step counts the mirrored range, ``a + b - i``; a step known only
at run time, whose sign is unknown, counts iterations instead, ``a + k * step``, in int64. All sums wrap, and the values of
the loop's variable are in range.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Region

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.assignment import assign
from weft.frontend.branching import run_branch, scalar_condition
from weft.frontend.carried import Carried
from weft.frontend.choice import short_circuit
from weft.frontend.control import resume
from weft.frontend.errors import CompilationError
from weft.frontend.generator import Bind, Generator, Mark, Outcome, Pending, Step, push
from weft.frontend.leaving import Leaving, run_body
from weft.frontend.scope import Jump, Loop, jumps_in
from weft.frontend.values import Tensor, Value, describe
from weft.ir import tile
from weft.language.core import Iteration
from weft.semantics import triton

MAX_UNROLLED: Final = 1 << 14
"""The most iterations that ``tl.static_range`` unrolls."""


def for_statement(g: Generator, node: ast.For, pending: Pending) -> Outcome:
    """A loop over ``range``, ``tl.range`` or ``tl.static_range``."""
    if node.orelse:
        raise g.stamp(CompilationError("'for' with 'else' cannot be used in a kernel"), node.orelse[0])
    iteration = g.expression(node.iter)
    if not isinstance(iteration, Iteration):
        error = CompilationError(
            f"'for' takes range, tl.range or tl.static_range, found {describe(iteration)}",
            hint="iterate over indices, for example with tl.static_range(len(...))",
        )
        raise g.stamp(error, node.iter)
    if iteration.unrolled:
        return _unroll(g, node, iteration, pending)
    try:
        (_leaving_for if leaves_loop(node) else _for)(g, node, iteration)
    except CompilationError as error:
        raise g.stamp(error, node.iter) from None
    return resume(g, node, pending)


def leaves_loop(node: ast.For | ast.While) -> bool:
    """Whether a ``break`` or a ``return`` leaves the loop."""
    return bool(jumps_in(node.body) & {"break", "return"})


def _unroll(g: Generator, node: ast.For, iteration: Iteration, pending: Pending) -> Pending:
    """One copy of the body per value, each after binding the variable."""
    values = range(iteration.start, iteration.stop, iteration.step)
    if len(values) > MAX_UNROLLED:
        raise CompilationError(
            f"tl.static_range unrolls at most {MAX_UNROLLED} iterations, found {len(values)}",
            hint="use tl.range, which loops at run time",
        )
    ends: list[Step] = []
    if jumps_in(node.body) & {"break", "continue"}:
        g.scope.loop = loop = Loop(node, g.scope.loop, unrolled=True)
        pending = push([Mark(Jump("break", loop))], pending)
        ends = [Mark(Jump("continue", loop))]
    for value in reversed(values):
        pending = push([Bind(node.target, value), *node.body, *ends], pending)
    return pending


def bind_statement(g: Generator, statement: Bind, pending: Pending) -> Outcome:
    """The variable of an unrolled loop: compile-time."""
    assign(g, statement.target, statement.value, statement.target, constant=True)
    return pending


def _for(g: Generator, node: ast.For, iteration: Iteration) -> None:
    start, stop, step, value_of = range_bounds(g, iteration)
    carried = Carried(g, node)
    block = carried.block(start.ssa)

    def enter() -> None:
        carried.enter(block.args[1:])
        assign(g, node.target, value_of(Tensor(block.args[0], start.dtype, ())), node.target)

    body = run_body(g, node, block, enter)
    g.b.node = node.iter
    yielded = carried.yielded(body)
    initial = list(carried.initial)
    # What comes out as it went in need not go around: the body reads it from outside.
    fixed = [new.ssa is argument for new, argument in zip(yielded, block.args[1:], strict=True)]
    with g.b.at(block):
        g.b.emit(scf.YieldOp(*(new.ssa for new, same in zip(yielded, fixed, strict=True) if not same)))
    for argument, first, same in list(zip(block.args[1:], initial, fixed, strict=True)):
        if same:
            argument.replace_all_uses_with(first.ssa)
            block.erase_arg(argument)
    kept = [first.ssa for first, same in zip(initial, fixed, strict=True) if not same]
    op = g.b.emit(scf.ForOp(start.ssa, stop.ssa, step.ssa, kept, Region(block)))
    op.attributes.update({f"tile.{name}": IntegerAttr(value, i64) for name, value in iteration.options})
    results = iter(op.results)
    carried.leave([first.ssa if same else next(results) for first, same in zip(initial, fixed, strict=True)], body)


def _leaving_for(g: Generator, node: ast.For, iteration: Iteration) -> None:
    """A ``for`` that a ``break`` or a ``return`` leaves: an `scf.while` that counts.

    Whether there is a next value is asked before it is computed, as ``stop - i > step`` without signs: it may not exist.
    """
    b = g.b
    start, stop, step, value_of = range_bounds(g, iteration)
    loop = Leaving(g, node, [b.compare("lt", start, stop), start])

    def enter() -> None:
        assign(g, node.target, value_of(loop.leading(1)), node.target)

    def advance() -> list[Tensor]:
        i = loop.leading(1)
        following = b.binary("add", i, step)
        if iteration.step == 1:
            return [b.compare("lt", following, stop), following]
        unsigned = {dtypes.int32: dtypes.uint32, dtypes.int64: dtypes.uint64}[i.dtype]
        left = b.cast(b.binary("sub", stop, i), unsigned)
        return [b.compare("gt", left, b.cast(step, unsigned)), following]

    loop.run(Tensor.of(loop.before.args[0]), enter, advance)


def while_statement(g: Generator, node: ast.While, pending: Pending) -> Outcome:
    """A loop whose condition is computed before each iteration."""
    if node.orelse:
        raise g.stamp(CompilationError("'while' with 'else' cannot be used in a kernel"), node.orelse[0])
    if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node.test)):
        node = _with_test_inside(g, node)
    if leaves_loop(node):
        _leaving_while(g, node)
    else:
        _while(g, node)
    return resume(g, node, pending)


def _with_test_inside(g: Generator, node: ast.While) -> ast.While:
    """``while True: if test: pass else: break; ...``: what the test assigns, the body does."""
    leave = ast.If(node.test, [ast.Pass()], [ast.Break()])
    result = ast.While(ast.Constant(True), [leave, *node.body], [])
    for statement in (leave, result):
        ast.copy_location(statement, node)
        g.liveness.stands_for(statement, node)
    for inner in (*leave.body, *leave.orelse, result.test):
        ast.copy_location(inner, node.test)
    return result


def _test(g: Generator, carried: Carried, block: Block, compute: Callable[[], bool | Tensor]) -> bool | Tensor:
    """Compute the condition of a ``while`` in ``block``, whose last arguments are the variables."""
    tests: list[bool | Tensor] = []
    arguments = block.args[len(block.args) - len(carried.initial) :]

    def enter() -> None:
        carried.enter(arguments)
        tests.append(compute())

    run_branch(g, None, block, enter)
    return tests[0]


def _while(g: Generator, node: ast.While) -> None:
    """A ``while`` that ends by its condition."""
    carried = Carried(g, node)
    before, after = carried.block(), carried.block()
    test = _test(g, carried, before, lambda: scalar_condition(g, node.test, "the condition of a loop"))
    if isinstance(test, bool):
        if not test:
            g.expression(node.test)  # once more, here: it may have effects
            return
        error = CompilationError(
            "this condition is always true, so the loop never ends",
            hint="let the condition depend on a variable that the loop changes, or leave the loop with 'break'",
        )
        raise g.stamp(error, node.test)
    with g.b.at(before):
        g.b.emit(scf.ConditionOp(test.ssa, *before.args))
    body = run_body(g, node, after, lambda: carried.enter(after.args))
    g.b.node = node.test
    with g.b.at(after):
        g.b.emit(scf.YieldOp(*(leaf.ssa for leaf in carried.yielded(body))))
    types = [leaf.ssa.type for leaf in carried.initial]
    arguments = [leaf.ssa for leaf in carried.initial]
    op = g.b.emit(scf.WhileOp(arguments, types, Region(before), Region(after)))
    carried.leave(list(op.results), body)


def _leaving_while(g: Generator, node: ast.While) -> None:
    """A ``while`` that a ``break`` or a ``return`` leaves, too. After that the condition is not computed."""
    loop = Leaving(g, node, [g.b.constant(True, dtypes.bool_)])
    goes_on = Tensor.of(loop.before.args[0])
    conditions: list[bool | Tensor] = []

    def condition() -> bool | Tensor:
        conditions.append(scalar_condition(g, node.test, "the condition of a loop"))
        return conditions[0]

    def compute() -> bool | Tensor:
        return short_circuit(g, "and", goes_on, [node.test], condition)

    test = _test(g, loop.carried, loop.before, compute)
    if isinstance(test, bool):
        g.expression(node.test)  # false: once more, here; it may have effects
        return
    with g.b.at(loop.after):
        again = g.b.constant(True, dtypes.bool_)
    loop.run(test, lambda: None, lambda: [again], endless=conditions[0] is True)


def range_bounds(g: Generator, iteration: Iteration) -> tuple[Tensor, Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """Start, stop and a positive step for scf, in one signed type, and the loop variable's value for scf's."""
    b = g.b
    parts = {"start": iteration.start, "stop": iteration.stop, "step": iteration.step}
    for name, part in parts.items():
        number = isinstance(part, int) or (isinstance(part, Tensor) and not part.is_pointer and not part.dtype.is_float)
        if not number or (isinstance(part, Tensor) and part.shape):
            raise CompilationError(
                f"the {name} of a range is an integer, found {describe(part)}", hint="convert it with .to(tl.int32)"
            )
    if isinstance(iteration.step, int) and iteration.step == 0:
        raise CompilationError("the step of a range is not 0", hint="use a positive or a negative step")
    declared = _loop_dtype(g, list(parts.values()))
    counted = declared if declared.signed else dtypes.int64

    def as_declared(value: Tensor) -> Tensor:
        return b.cast(value, declared)

    def in_type(part: Value, dtype: DType) -> Tensor:
        return b.cast(part, dtype) if isinstance(part, Tensor) else b.constant(part, dtype)

    if isinstance(iteration.step, int) and abs(iteration.step) <= counted.max:
        start, stop = (in_type(p, counted) for p in (iteration.start, iteration.stop))
        if iteration.step > 0:
            return start, stop, b.constant(iteration.step, counted), as_declared
        ends = b.binary("add", start, stop)
        backwards = b.constant(-iteration.step, counted)
        return stop, start, backwards, lambda i: as_declared(b.binary("sub", ends, i))
    start, stop, step = (in_type(p, counted) for p in parts.values())
    if isinstance(step.ssa.owner, tile.NumProgramsOp):  # at least 1
        return start, stop, step, as_declared
    start, stop, step = (b.cast(part, dtypes.int64) for part in (start, stop, step))
    count = _iterations(g, start, stop, step)
    zero, one = b.constant(0, dtypes.int64), b.constant(1, dtypes.int64)
    return zero, count, one, lambda k: as_declared(b.binary("add", start, b.binary("mul", k, step)))


def _iterations(g: Generator, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    """How many values ``range(start, stop, step)`` of int64 has, for a step of either sign; none for step 0.

    Distances of two int64 need uint64. ``(distance - 1) // |step| + 1`` does not overflow where the distance is not 0. A count
    beyond int64, which no loop reaches the end of, is its largest number.
    """
    b = g.b
    unsigned = dtypes.uint64
    zero = b.constant(0, dtypes.int64)
    up, down = b.compare("gt", step, zero), b.compare("lt", step, zero)
    low, high = b.select(up, start, stop), b.select(up, stop, start)
    some = b.binary("and", b.binary("or", up, down), b.compare("lt", low, high))
    one, most = b.constant(1, unsigned), b.constant(dtypes.int64.max, unsigned)
    size = b.cast(b.select(up, step, b.unary("neg", step)), unsigned)
    distance = b.binary("sub", b.cast(high, unsigned), b.cast(low, unsigned))
    count = b.binary("add", b.binary("div", b.binary("sub", distance, one), size), one)
    count = b.cast(b.binary("min", count, most), dtypes.int64)
    return b.select(some, count, zero)


def _loop_dtype(g: Generator, parts: list[Value]) -> DType:
    """The type of the loop's variable, whatever the semantics: the bounds' common type in Triton, int32 at least."""
    dtype = dtypes.int32
    if not any(isinstance(p, Tensor) for p in parts) and any(abs(p) > dtype.max for p in parts):
        dtype = dtypes.int64
    for part in parts:
        operand = part.dtype if isinstance(part, Tensor) else part
        dtype = triton.binary("+", dtype, operand).operands
    if dtype == dtypes.uint64:
        raise CompilationError("a range cannot count in uint64", hint="convert the bounds with .to(tl.int64)")
    return dtype
