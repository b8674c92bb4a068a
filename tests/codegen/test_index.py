"""The index algebra that register loops run on: laws against brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import ir

from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.layout.algebra import f2

# ---- indices --------------------------------------------------------------------------------------------------------

BITS = 6


def evaluate(index: RegisterIndex, counters: dict[Counter, int]) -> int:
    """The definition: the constant, and each counter's set bits' columns."""
    result = index.const
    for counter, columns in index.terms:
        for bit, column in enumerate(columns):
            result ^= column * (counters[counter] >> bit & 1)
    return result


@st.composite
def indices(draw: st.DrawFn) -> tuple[RegisterIndex, dict[Counter, int]]:
    """An index over two counters, and values for them."""
    counters = [Counter(ir.Constant(ir.IntType(64), 0), draw(st.integers(0, 4))) for _ in range(2)]
    column = st.integers(0, (1 << BITS) - 1)
    terms = tuple((c, tuple(draw(st.lists(column, min_size=c.bits, max_size=c.bits)))) for c in counters)
    return RegisterIndex(draw(column), terms), {c: draw(st.integers(0, (1 << c.bits) - 1)) for c in counters}


columns_of_a_map = st.lists(st.integers(0, 255), min_size=BITS, max_size=BITS)


@settings(max_examples=100, deadline=None)
@given(indices(), columns_of_a_map, columns_of_a_map)
def test_through_is_the_linear_map(
    case: tuple[RegisterIndex, dict[Counter, int]], first: list[int], second: list[int]
) -> None:
    index, counters = case
    at = evaluate(index, counters)
    mapped = index.through(first)
    assert evaluate(mapped, counters) == f2.apply(first, at)
    both = [f2.apply(second + [0, 0], c) for c in first]
    assert evaluate(mapped.through(second + [0, 0]), counters) == f2.apply(both, at)
    assert all(any(columns) for _, columns in mapped.terms), "a counter that does not matter is not mentioned"


def test_equal_registers_have_equal_indices() -> None:
    """The broadcast that forgets bit 0 and the one that forgets bit 2 are different; applied where these bits are 0 they are
    the same value, with the same hash."""
    counter = Counter(ir.Constant(ir.IntType(64), 0), 1)
    index = RegisterIndex(0, ((counter, (2,)),))
    assert index.through((0, 2, 4)) == index.through((1, 2, 0)) == index
    assert hash(index.through((0, 2, 4))) == hash(index)
    assert RegisterIndex(0, ((counter, (1,)),)).through((0, 2, 4)) == RegisterIndex()


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(BITS)), st.integers(0, BITS), st.data())
def test_emitted_indices_are_what_they_say(order: list[int], split: int, data: st.DataObject) -> None:
    """For two counters whose bits go to different places, with a constant in any places: the emitted instructions are
    interpreted and compared with the definition."""
    used = data.draw(st.integers(split, BITS))
    places = [1 << place for place in order]
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 2), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    parts = (places[:split], places[split:used])
    counters = [Counter(argument, len(part)) for argument, part in zip(function.args, parts, strict=True)]
    const = sum(place for place in places if data.draw(st.booleans()))
    index = RegisterIndex(const, tuple((c, tuple(part)) for c, part in zip(counters, parts, strict=True) if part))
    result = index.value(builder)
    for values in (
        (0, 0),
        (1, 1),
        *((1 << k, 1 << k) for k in range(BITS)),
        ((1 << split) - 1, (1 << used - split) - 1),
    ):
        inputs = {c: v & ((1 << c.bits) - 1) for c, v in zip(counters, values, strict=True)}
        environment = {argument: inputs[c] for argument, c in zip(function.args, counters, strict=True)}
        assert interpret(builder.block, result, environment) == evaluate(index, inputs)


MEANINGS: dict[str, Callable[[int, int], int]] = {
    "and": int.__and__,
    "shl": int.__lshift__,
    "lshr": int.__rshift__,
    "add": int.__add__,
    "xor": int.__xor__,
}


def interpret(block: ir.Block, result: ir.Value, environment: dict[Any, int]) -> int:
    """Runs straight-line and, shl, lshr, add, xor."""
    known = dict(environment)

    def value(operand: Any) -> int:
        return operand.constant if isinstance(operand, ir.Constant) else known[operand]

    for instruction in block.instructions:
        known[instruction] = MEANINGS[instruction.opname](*map(value, instruction.operands))
    return value(result)


def test_bits_that_meet_are_refused() -> None:
    counter = Counter(ir.Constant(ir.IntType(64), 0), 2)
    builder = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "f").append_basic_block())
    with pytest.raises(AssertionError, match="register index with overlapping bits"):
        RegisterIndex(0, ((counter, (1, 2)), (counter, (4, 2)))).value(builder)
    with pytest.raises(AssertionError, match="^register index column 0b110 has several bits"):
        RegisterIndex(0, ((counter, (1, 6)),)).value(builder)
