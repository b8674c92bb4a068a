"""Syntax printed by a printer of these tests and read again is the same syntax; constant expressions mean what C says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.emulator.errors import PTXError
from weft.emulator.ptx import parse
from weft.emulator.ptx.syntax import (
    Address,
    Guard,
    Immediate,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)

HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"
REGISTERS = [f"%r{index}" for index in range(8)]
PREDICATES = [f"%p{index}" for index in range(4)]
SYMBOLS = ["tile", "L0", "L1", "k"]


def show(operand: Operand) -> str:
    """PTX for an operand."""
    match operand:
        case Register(name):
            return name
        case Immediate(value, 32):
            return f"0f{value:08X}"
        case Immediate(value, 64):
            return f"0d{value:016x}"
        case Immediate(value):
            return repr(value)
        case Symbol(name, offset):
            return name if not offset else f"{name}{offset:+}"
        case Address(base, offset, coordinates):
            tail = f", {show(Vector(coordinates))}" if coordinates else ""
            return f"[{show(base)}{f'+{offset}' if offset else ''}{tail}]"
        case Vector(elements):
            return f"{{{', '.join(map(show, elements))}}}"
        case Pair(first, second):
            return f"{show(first)}|{show(second)}"
        case Not(register):
            return f"!{show(register)}"
        case Sink():
            return "_"
        case _:
            raise AssertionError(operand)


registers = st.sampled_from(REGISTERS).map(Register)
predicates = st.sampled_from(PREDICATES).map(Register)
immediates = st.one_of(
    st.integers(-(2**63) + 1, 2**64 - 1).map(Immediate),
    st.floats(allow_nan=False, allow_infinity=False).map(Immediate),
    st.integers(0, 2**32 - 1).map(lambda bits: Immediate(bits, 32)),
    st.integers(0, 2**64 - 1).map(lambda bits: Immediate(bits, 64)),
)
symbols = st.builds(Symbol, st.sampled_from(SYMBOLS), st.integers(-8, 8))
addresses = st.builds(
    Address,
    st.one_of(registers, st.sampled_from(SYMBOLS).map(Symbol)),
    st.integers(-(2**31), 2**31),
    st.lists(registers, max_size=3).map(tuple),
)
operands: st.SearchStrategy[Operand] = st.one_of(
    registers,
    immediates,
    symbols,
    addresses,
    st.lists(st.one_of(registers, immediates, st.just(Sink())), min_size=1, max_size=8).map(lambda e: Vector(tuple(e))),
    st.builds(Pair, predicates, st.one_of(predicates, st.just(Sink()))),
    st.builds(Not, predicates),
    st.just(Sink()),
)
guards = st.one_of(st.none(), st.builds(Guard, st.sampled_from(PREDICATES), st.booleans()))
words = st.sampled_from(
    ["add", "s32", "shared::cta", "v4", "L2::128B", "rn", "m64n8k16", "mbarrier::complete_tx::bytes"]
)
instructions = st.tuples(
    guards, st.lists(words, max_size=5).map(lambda names: ["op", *names]), st.lists(operands, max_size=6)
)


@given(st.lists(instructions, max_size=8), st.sampled_from([" ", "\n", "\t", " /* ; */ ", " // }\n"]))
@settings(max_examples=100, deadline=None)
def test_what_is_printed_is_read(program: list[tuple[Guard | None, list[str], list[Operand]]], space: str) -> None:
    lines: list[str] = []
    for guard, names, values in program:
        at = "" if guard is None else f"@{'!' if guard.negated else ''}{guard.register}{space}"
        lines.append(f"{at}{'.'.join(names)}{space}{f',{space}'.join(map(show, values))}{space};")
    text = (
        f"{HEAD}.entry k() {{ .reg .b32 %r<8>; .reg .pred %p<4>; .shared .b32 tile; L0:\n" + "\n".join(lines) + "L1: }"
    )
    function = parse(text).functions["k"]
    read = [(i.guard, [i.opcode, *i.modifiers], list(i.operands)) for i in function.instructions]
    assert read == program
    assert function.labels == {"L0": 0, "L1": len(program)}


# A constant expression as text, and what Python's integers say it is: everything signed, brought to 64 bits at each step.


def wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _binary(args: tuple[str, tuple[str, int], tuple[str, int]]) -> tuple[str, int]:
    name, (left, x), (right, y) = args
    value = {"+": x + y, "-": x - y, "*": x * y, "<": int(x < y), "==": int(x == y), "&&": int(x != 0 and y != 0)}[name]
    return f"({left} {name} {right})", wrap(value)


expressions: st.SearchStrategy[tuple[str, int]] = st.recursive(
    st.integers(0, 2**63 - 1).map(lambda value: (hex(value), value)),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "<", "==", "&&"]), inner, inner).map(_binary),
        inner.map(lambda e: (f"-{e[0]}" if e[0][0] != "-" else f"-({e[0]})", wrap(-e[1]))),
        st.tuples(inner, st.integers(0, 70)).map(lambda e: (f"({e[0][0]} << {e[1]})", wrap(e[0][1] << e[1]))),
        st.tuples(inner, st.integers(0, 70)).map(lambda e: (f"({e[0][0]} >> {e[1]})", e[0][1] >> e[1])),
        st.tuples(inner, inner, inner).map(
            lambda e: (f"({e[0][0]}?{e[1][0]}:{e[2][0]})", (e[1] if e[0][1] else e[2])[1])
        ),
    ),
    max_leaves=12,
)


@given(expressions)
@settings(max_examples=200, deadline=None)
def test_signed_constant_expressions(expression: tuple[str, int]) -> None:
    text, value = expression
    function = parse(f"{HEAD}.entry k() {{ .reg .b64 x; mov.b64 x, {text}; }}").functions["k"]
    assert function.instructions[0].operands[1] == Immediate(value)


def test_reading_is_linear() -> None:
    """Texts that would take minutes if blanks or comments were looked through more than once."""
    blanks = " " * 300_000
    comments = "/* * / */" * 50_000 + "/" + "*" * 300_000 + "/"
    assert parse(f"{HEAD}.entry k() {{ ret;{blanks}}}{comments}{blanks}").functions["k"].instructions[0].opcode == "ret"
    with pytest.raises(PTXError, match="a comment without an end"):
        parse(HEAD + "/* " * 100_000)
    with pytest.raises(PTXError, match="a string without an end"):
        parse(HEAD + '.pragma "' + "a" * 300_000)
