"""``for`` and ``while``.

A run-time ``for`` is an ``scf.for`` in int32, or int64 where a bound is (or is uint32). scf counts upwards by a
positive step, Python does not: a negative compile-time step counts the mirrored range, ``a + b - i``; a step known only
at run time, whose sign is unknown, counts iterations instead, ``a + k * step``, in int64. All sums wrap, and the values of
the loop's variable are in range.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Region, SSAValue

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.assignment import assign, name_after
from weft.frontend.control import Branch, condition, run_branch
from weft.frontend.errors import CompilationError, Note
from weft.frontend.generator import Bind, Generator, Outcome, Pending, push
from weft.frontend.joining import leaves, rebuild, same_type, unify
from weft.frontend.scope import assigned, names_in
from weft.frontend.values import Tensor, Undefined, Value, describe, is_number, is_runtime
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
        return _unroll(node, iteration, pending)
    _refuse_return(g, node, "for")
    try:
        _for(g, node, iteration)
    except CompilationError as error:
        raise g.stamp(error, node.iter) from None
    return pending


def _unroll(node: ast.For, iteration: Iteration, pending: Pending) -> Pending:
    """One copy of the body per value, each after binding the variable."""
    values = range(iteration.start, iteration.stop, iteration.step)
    if len(values) > MAX_UNROLLED:
        raise CompilationError(
            f"tl.static_range unrolls at most {MAX_UNROLLED} iterations, found {len(values)}",
            hint="use tl.range, which loops at run time",
        )
    for value in reversed(values):
        pending = push([Bind(node.target, value), *node.body], pending)
    return pending


def bind_statement(g: Generator, statement: Bind, pending: Pending) -> Outcome:
    """The variable of an unrolled loop: compile-time."""
    assign(g, statement.target, statement.value, statement.target, constant=True)
    return pending


def _refuse_return(g: Generator, node: ast.For | ast.While, kind: str) -> None:
    """A ``return`` inside a run-time loop cannot be structured."""
    for statement in node.body:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Return):
                error = CompilationError(
                    f"'return' cannot stand inside a '{kind}' loop",
                    hint="use tl.static_range, or a variable that disables the rest of the loop",
                )
                raise g.stamp(error, inner)


class Carried:
    """The variables that go around a loop: those assigned inside that exist before and are read afterwards or by a
    later iteration."""

    def __init__(self, g: Generator, node: ast.For | ast.While) -> None:
        self.g = g
        self.node = node
        inside = assigned(node.body)
        if isinstance(node, ast.For):
            inside -= names_in(node.target)
        self.before: dict[str, Value] = {}
        self.fixed: dict[str, Value] = {}
        """Variables assigned inside that hold None, a dtype or the like, and must still do so afterwards."""
        for name, value in g.scope.values.items():
            if name not in inside or isinstance(value, Undefined) or not g.liveness.after(name, node):
                continue
            if is_number(value):
                self.before[name] = g.b.tensor(value)
            else:
                (self.before if is_runtime(value) else self.fixed)[name] = value
        self.initial = [leaf for value in self.before.values() for leaf in leaves(value)]

    def block(self, *leading: SSAValue) -> Block:
        """A block with arguments of the types of ``leading`` and then one for each carried tile."""
        return Block(arg_types=[*(v.type for v in leading), *(leaf.ssa.type for leaf in self.initial)])

    def enter(self, arguments: Sequence[SSAValue]) -> None:
        """Bind the variables to a block's arguments in the current scope."""
        values = iter(arguments)
        for name, before in self.before.items():
            value = rebuild(before, values)
            name_after(name, value)
            self.g.scope.values[name] = value

    def yielded(self, body: Branch) -> list[Tensor]:
        """The tiles at the end of ``body``, which must have kept their types."""
        result: list[Tensor] = []
        for name, before in {**self.before, **self.fixed}.items():
            after = body.scope.values[name]
            if isinstance(after, Undefined):
                raise CompilationError(after.message, self.g.frame.spans(self.node), hint=after.hint, notes=after.notes)
            _, after = unify(self.g.b, before, self.g.b.block, after, body.block)
            if not same_type(before, after):
                self._changed(name, before, after, body)
            result += leaves(after)
        return result

    def _changed(self, name: str, before: Value, after: Value, body: Branch) -> NoReturn:
        g = self.g
        origin = g.scope.origins.get(name, self.node)
        raise CompilationError(
            f"'{name}' changes its type in the loop: {describe(before)} before, {describe(after)} after an iteration",
            g.frame.spans(body.scope.origins.get(name, self.node)),
            notes=[Note(f"{describe(before)} since here", g.frame.kernel.span(origin))],
            hint=_advice(name, before, after),
        )

    def leave(self, results: Sequence[SSAValue], body: Branch) -> None:
        """Bind the variables to the loop's results, and make those of the body unusable."""
        g, values = self.g, iter(results)
        for name, before in self.before.items():
            value = rebuild(before, values)
            name_after(name, value)
            g.scope.assign(name, value, body.scope.origins[name])
        for name, value in body.scope.values.items():
            if name in self.before or g.scope.values.get(name) is value:
                continue
            if isinstance(value, Undefined):
                g.scope.values[name] = value
                continue
            g.scope.values[name] = Undefined(
                f"'{name}' is assigned inside a loop, which may run zero times",
                f"assign '{name}' before the loop",
                (Note("assigned here", g.frame.kernel.span(body.scope.origins[name])),),
            )


def _advice(name: str, before: Value, after: Value) -> str:
    if isinstance(before, Tensor) and isinstance(after, Tensor) and not (before.is_pointer or after.is_pointer):
        if (before.shape, before.dtype) == (after.shape, after.dtype):
            return f"start '{name}' in a dtype that is chosen, for example with tl.full({after.shape}, ..., tl.{after.dtype})"
        if before.shape == after.shape:
            return f"start '{name}' as {after.dtype}, or convert what the loop assigns with .to(tl.{before.dtype})"
        return f"start '{name}' in the shape it has in the loop, for example with tl.zeros({after.shape}, tl.{after.dtype})"
    return f"give '{name}' the same type before and in the loop, or use two names"


def _for(g: Generator, node: ast.For, iteration: Iteration) -> None:
    start, stop, step, value_of = _bounds(g, iteration)
    carried = Carried(g, node)
    block = carried.block(start.ssa)

    def enter() -> None:
        carried.enter(block.args[1:])
        assign(g, node.target, value_of(Tensor(block.args[0], start.dtype, ())), node.target)

    body = run_branch(g, push(node.body, None), block, enter)
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


def while_statement(g: Generator, node: ast.While, pending: Pending) -> Outcome:
    """A loop whose condition is computed before each iteration."""
    if node.orelse:
        raise g.stamp(CompilationError("'while' with 'else' cannot be used in a kernel"), node.orelse[0])
    _refuse_return(g, node, "while")
    for inner in ast.walk(node.test):
        if isinstance(inner, ast.NamedExpr):
            error = CompilationError("':=' cannot be used in the condition of a 'while'", hint="assign in the loop")
            raise g.stamp(error, inner)
    carried = Carried(g, node)
    before, after = carried.block(), carried.block()
    tests: list[bool | Tensor] = []

    def enter_test() -> None:
        carried.enter(before.args)
        tests.append(condition(g, node.test))

    run_branch(g, None, before, enter_test)
    test = tests[0]
    if isinstance(test, bool):
        if not test:
            g.expression(node.test)  # once more, here: it may have effects
            return pending
        error = CompilationError(
            "this condition is always true, so the loop never ends",
            hint="let the condition depend on a variable that the loop changes",
        )
        raise g.stamp(error, node.test)
    with g.b.at(before):
        g.b.emit(scf.ConditionOp(test.ssa, *before.args))
    body = run_branch(g, push(node.body, None), after, lambda: carried.enter(after.args))
    g.b.node = node.test
    with g.b.at(after):
        g.b.emit(scf.YieldOp(*(leaf.ssa for leaf in carried.yielded(body))))
    types = [leaf.ssa.type for leaf in carried.initial]
    arguments = [leaf.ssa for leaf in carried.initial]
    op = g.b.emit(scf.WhileOp(arguments, types, Region(before), Region(after)))
    carried.leave(list(op.results), body)
    return pending


def _bounds(g: Generator, iteration: Iteration) -> tuple[Tensor, Tensor, Tensor, Callable[[Tensor], Tensor]]:
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
