"""What happens while a kernel is compiled."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import takewhile

from weft import language as tl
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError, NotConstexpr
from weft.frontend.library.arguments import flag, integer, integers
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe, is_runtime
from weft.ir import tile
from weft.language.core import Iteration


def _iteration(first: Value, second: Value, step: Value, unrolled: bool) -> Iteration:
    """The bounds as Python's range reads its arguments."""
    start, stop = (0, first) if second is None else (first, second)
    return Iteration(start, stop, 1 if step is None else step, unrolled)


@implements(tl.range)
def _range(
    b: Builder,
    arg1: Value,
    arg2: Value,
    step: Value,
    num_stages: Value,
    loop_unroll_factor: Value,
    disallow_acc_multi_buffer: Value,
    flatten: Value,
    warp_specialize: Value,
    disable_licm: Value,
) -> Iteration:
    options = {
        "num_stages": _count(num_stages, "num_stages", 0),
        "loop_unroll_factor": _count(loop_unroll_factor, "loop_unroll_factor", 1),
        "disallow_acc_multi_buffer": flag(disallow_acc_multi_buffer, "disallow_acc_multi_buffer"),
        "flatten": flag(flatten, "flatten"),
        "warp_specialize": flag(warp_specialize, "warp_specialize"),
        "disable_licm": flag(disable_licm, "disable_licm"),
    }
    # A count that is given reaches the IR, 0 included; a flag does where it is set.
    given = tuple((name, int(v)) for name, v in options.items() if v is not None and v is not False)
    return replace(_iteration(arg1, arg2, step, unrolled=False), options=given)


def _count(value: Value, argument: str, least: int) -> int | None:
    """A compile-time integer from ``least``, or None."""
    if value is None:
        return None
    number = integer(value, argument)
    if number < least:
        raise CompilationError(f"'{argument}' is at least {least}, found {number}", argument=argument)
    return number


@implements(tl.condition)
def _condition(b: Builder, arg1: Value, disable_licm: Value) -> Value:
    flag(disable_licm, "disable_licm")
    return arg1


@implements(tl.static_range)
def _static_range(b: Builder, arg1: Value, arg2: Value, step: Value) -> Iteration:
    for value, argument in ((arg1, "arg1"), (arg2, "arg2"), (step, "step")):
        if value is not None:
            integer(value, argument)
    if step == 0:
        raise CompilationError("the step of a range is not 0", argument="step")
    return _iteration(arg1, arg2, step, unrolled=True)


@implements(tl.static_assert)
def _static_assert(b: Builder, cond: Value, msg: Value) -> None:
    if not flag(cond, "cond"):
        own = list(takewhile(lambda kernel: not kernel.is_shown, b.frame.kernels()))
        if own:  # the language's own check: the user called the outermost of its functions
            raise CompilationError(f"{own[-1].name}: {msg}", argument="cond")
        raise CompilationError(f"static assertion failed: {msg}" if msg else "static assertion failed", argument="cond")


@implements(tl.static_print)
def _static_print(b: Builder, values: tuple[Value, ...], sep: Value, end: Value, file: Value, flush: Value) -> None:
    texts = [v if isinstance(v, str) else describe(v) for v in values]
    print(*texts, sep=sep, end=end, file=file or sys.stdout, flush=bool(flush))


@implements(tl.assume)
def _assume(b: Builder, cond: Value) -> None:
    if not is_runtime(cond):
        if not cond:
            raise CompilationError("tl.assume of something that is false", argument="cond")
        return
    if not isinstance(cond, Tensor) or cond.shape or cond.is_pointer or not cond.dtype.is_bool:
        raise CompilationError(f"'cond' is one bool, found {describe(cond)}", argument="cond")
    b.emit(tile.AssumeOp(cond.ssa))


def _hint(b: Builder, input: Value, values: Value, kind: str) -> Tensor:
    """``input`` with one number for each dimension (one for a scalar) said about it."""
    if not isinstance(input, Tensor):
        raise NotConstexpr(f"'input' is a tile, found {describe(input)}", hint="pass a tile", argument="input")
    if not (input.is_pointer or input.dtype.is_integer):
        raise CompilationError(f"'input' is a tile of integers or pointers, found {describe(input)}", argument="input")
    numbers = integers(values, "values")
    if len(numbers) != max(len(input.shape), 1):
        raise CompilationError(
            f"'values' has one number for each dimension of {input}, found {len(numbers)}", argument="values"
        )
    if any(n < 1 for n in numbers):
        raise CompilationError(f"'values' are positive, found {describe(values)}", argument="values")
    return Tensor(b.emit(tile.HintOp(input.ssa, **{kind: numbers})).result, input.dtype, input.shape, input.is_pointer)


@implements(tl.multiple_of)
def _multiple_of(b: Builder, input: Value, values: Value) -> Value:
    return _hint(b, input, values, "divisibility") if is_runtime(input) else input


@implements(tl.max_contiguous)
def _max_contiguous(b: Builder, input: Value, values: Value) -> Value:
    return _hint(b, input, values, "contiguity") if is_runtime(input) else input


@implements(tl.max_constancy)
def _max_constancy(b: Builder, input: Value, values: Value) -> Value:
    return _hint(b, input, values, "constancy") if is_runtime(input) else input
