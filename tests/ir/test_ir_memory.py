"""The memory model: the table, and which accesses may exchange places."""

from __future__ import annotations

import itertools

import pytest
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation
from xdsl.traits import MemoryEffectKind, get_effects
from xdsl.utils.test_value import create_ssa_value

from weft import dtypes
from weft.ir import tile
from weft.ir.types import PointerType, scalar

F32 = scalar(dtypes.float32)
POINTER = create_ssa_value(PointerType(F32))
VALUE = create_ssa_value(F32)
LOAD, VOLATILE = tile.LoadOp(POINTER), tile.LoadOp(POINTER, volatile=True)
STORE, FLAG = tile.StoreOp(POINTER, VALUE), tile.StoreOp(POINTER, VALUE, release=True)
RELAXED, ACQUIRE, RELEASE, BOTH = (tile.AtomicRmwOp("add", POINTER, VALUE, sem=sem) for sem in tile.SEMANTICS)
SWAP = tile.AtomicCasOp(POINTER, VALUE, VALUE, sem="acquire")
BARRIER = tile.BarrierOp()
ALL: dict[str, Operation] = {
    "load": LOAD,
    "volatile": VOLATILE,
    "store": STORE,
    "flag": FLAG,
    "relaxed": RELAXED,
    "acquire": ACQUIRE,
    "release": RELEASE,
    "acq_rel": BOTH,
    "swap": SWAP,
    "barrier": BARRIER,
}
WAITS = {"volatile", "acquire", "acq_rel", "swap", "barrier"}
"""What keeps later accesses behind it."""
ANNOUNCES = {"flag", "release", "acq_rel", "barrier"}
"""What keeps earlier accesses before it."""
ONLY_READ = {"load", "volatile"}


@pytest.mark.parametrize(("first", "second"), [*itertools.product(ALL, ALL)])
def test_exchanges(first: str, second: str) -> None:
    a, b = tile.ordering_of(ALL[first]), tile.ordering_of(ALL[second])
    assert a is not None
    assert b is not None
    apart = first not in WAITS and second not in ANNOUNCES
    together = apart and {first, second} <= ONLY_READ
    assert tile.may_exchange(a, b, apart=True) == apart
    assert tile.may_exchange(a, b, apart=False) == together


def test_the_default_is_the_strongest() -> None:
    assert tile.ordering_of(tile.AtomicRmwOp("add", POINTER, VALUE)) == tile.ordering_of(BOTH)
    assert tile.ordering_of(tile.AtomicCasOp(POINTER, VALUE, VALUE)) == tile.ordering_of(BOTH)


def test_what_is_observed_and_written() -> None:
    orderings = {name: tile.ordering_of(op) for name, op in ALL.items()}
    assert {n for n, o in orderings.items() if o and not o.observed} == {"load", "store"}
    assert {n for n, o in orderings.items() if o and not o.writes} == {"load", "volatile", "barrier"}
    assert {n for n, o in orderings.items() if o and not o.reads} == {"store", "flag", "barrier"}


def test_other_ops_have_no_row() -> None:
    assert tile.ordering_of(tile.AssumeOp(create_ssa_value(i1))) is None
    assert tile.ordering_of(tile.BinaryOp("add", VALUE, VALUE)) is None


def test_declared_effects() -> None:
    """What xDSL is told. What is observed counts as written; a release store need not be told to write again."""
    read, write = MemoryEffectKind.READ, MemoryEffectKind.WRITE
    expected = {name: {read, write} for name in ALL} | {"load": {read}, "store": {write}, "flag": {write}}
    assert {name: {e.kind for e in get_effects(op) or ()} for name, op in ALL.items()} == expected
