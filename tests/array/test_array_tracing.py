"""Who hears of operations, and what they hear."""

from __future__ import annotations

import inspect
from types import FrameType

import numpy as np
import pytest

import weft.array as wa
from weft import dtypes
from weft.array.expression import tracing
from weft.semantics import Promotion, PromotionError, Type


def line() -> int:
    """The caller's line."""
    frame = inspect.currentframe()
    assert frame is not None
    assert isinstance(frame.f_back, FrameType)
    return frame.f_back.f_lineno


def test_every_operation_is_an_event() -> None:
    u, i = wa.asarray(np.ones(3, np.uint8), "jax"), wa.asarray(np.ones(3, np.int8), "jax")
    with tracing.record() as events:
        result, here = wa.where(u > i, u + 1, i).sum(), line()
        cast = result.astype("float32")
    assert [event.op for event in events] == [">", "+", "where", "sum", "cast"]
    assert {(event.file, event.line) for event in events[:4]} == {(__file__, here)}
    assert events[4].location == f"{__file__}:{here + 1}"
    assert events[0].operands == (Type(dtypes.uint8), Type(dtypes.int8))
    assert events[1].operands == (Type(dtypes.uint8), 1)
    assert isinstance(events[2].outcome, Promotion)
    assert events[2].outcome.result == dtypes.int16
    assert (events[3].node, events[4].node) == (result.node, cast.node)


def test_a_refusal_is_an_event_too() -> None:
    f = wa.asarray(np.ones(3, np.float32), "jax")
    with tracing.record() as events, pytest.raises(PromotionError) as refusal:
        f & 1  # pyright: ignore[reportUnusedExpression]
    assert [(event.op, event.outcome, event.node) for event in events] == [("&", refusal.value, None)]


def test_only_the_innermost_record_gets_an_event() -> None:
    a = wa.asarray([1])
    with tracing.record() as outer:
        with tracing.record() as inner:
            a + 1  # pyright: ignore[reportUnusedExpression]
        a - 1  # pyright: ignore[reportUnusedExpression]
    a * 1  # pyright: ignore[reportUnusedExpression]
    assert ([event.op for event in outer], [event.op for event in inner]) == (["-"], ["+"])


def test_the_line_inside_a_fused_function_is_the_functions() -> None:
    @wa.fuse(backend="reference")
    def f(x: wa.Array) -> wa.Array:
        lines.append(line() + 1)
        return x + 1

    lines: list[int] = []
    with tracing.record() as events:
        f(np.ones(2))
    assert [(event.file, event.line) for event in events] == [(__file__, lines[0])]


def test_fused_functions_are_opened_while_somebody_records() -> None:
    @wa.fuse(semantics="jax")
    def add(x: wa.Array) -> wa.Array:
        return x + 1

    for _ in range(2):  # the second time it is compiled
        add(np.ones(3, "float32")).numpy()
        with tracing.record() as events:
            add(np.ones(3, "float32"))
        assert [event.op for event in events] == ["+"]
