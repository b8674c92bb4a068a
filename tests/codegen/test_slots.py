"""Which slot a panel gets: the emitted policy against a model that only knows what was written into each slot.

Whatever slots it chooses, a claim is right if it says "found" only where its slot still has the panel of these keys. How well it
chooses is counted: claims of a sequence that must be filled.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest
from llvmlite import ir

from native_functions import native_function
from weft.codegen.cpu.slots import NUMBERS, START_BYTES, Slots
from weft.codegen.llvm.types import I64, POINTER, Module
from weft.target import host

pytestmark = pytest.mark.jit

Key = tuple[int, ...]
SMALL, LARGE = 64, START_BYTES // 16
"""Bytes of a panel: all slots are in use at first, or 16."""


@cache
def compiled(slots: Slots) -> Callable[[int, int, int, int], None]:
    """``void claim(table, first key, second key, result)``; the result is the slot and whether it is stale."""
    module = Module("test", host().triple, host().enabled)
    arguments = [POINTER, I64, I64, POINTER]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), "claim")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    table, *keys, result = function.args
    slot, stale = slots.find(builder, table, keys[: slots.keys])
    for i, value in enumerate((slot, builder.zext(stale, I64))):
        builder.store(value, builder.gep(result, [ir.Constant(I64, i)], source_etype=I64), align=8)
    builder.ret_void()
    return native_function(module, "claim", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def claims(slots: Slots, wanted: Iterable[Key], garbage: int = 0) -> Iterator[bool]:
    """Of each claim, whether it must be filled; what it finds is what was filled. Beyond its numbers the table has garbage."""
    call = compiled(slots)
    words = slots.table_bytes // 8
    table = (ctypes.c_int64 * (words + 8))(*[garbage] * words)
    first = -ctypes.addressof(table) % 64 // 8
    for i in range(NUMBERS):
        table[first + i] = 0
    result = (ctypes.c_int64 * 2)()
    held: dict[int, Key] = {}
    for keys in wanted:
        call(ctypes.addressof(table) + 8 * first, keys[0], keys[-1], ctypes.addressof(result))
        slot, stale = result
        assert 0 <= slot < slots.number
        assert stale or held[slot] == keys
        held[slot] = keys
        yield bool(stale)


def filled(slots: Slots, wanted: Iterable[int]) -> list[bool]:
    return list(claims(slots, ((key,) for key in wanted)))


@pytest.mark.parametrize("number", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_is_found_was_filled(number: int, size: int) -> None:
    """Sequences with every kind of reuse: random keys out of few and many, runs and cycles, of one key and of two."""
    r = random.Random(number)
    for keys in (1, 2):
        wanted: list[Key] = []
        while len(wanted) < 2000:
            start, length, times = r.randrange(100), r.randint(1, 80), r.randint(1, 3)
            part = [(start + i, r.choice((i, 7))) for i in range(length)]
            wanted += [key[:keys] for key in part * times for _ in range(r.choice((1, 2)))]
        found = list(claims(Slots(number, size, keys), wanted, garbage=r.choice((0, 3, -1))))
        assert found[0]
        assert not all(found)


def test_never_written_keys_are_not_found() -> None:
    """Keys of 0 in a table of zeros."""
    assert filled(Slots(64, SMALL, 1), [0, 0, 1, 0]) == [True, False, True, False]
    assert filled(Slots(1, SMALL, 1), [0, 0, 1, 0]) == [True, False, True, True]


@pytest.mark.parametrize("period", [1, 2, 8, 16])
def test_panels_that_come_again_are_filled_once(period: int) -> None:
    """As many as are in use at first: no slot is given away."""
    assert sum(filled(Slots(64, LARGE, 1), list(range(period)) * 20)) == period


@pytest.mark.parametrize("period", [17, 20, 33, 64])
def test_panels_that_come_again_later_are_filled_twice(period: int) -> None:
    """More than are in use at first: when the first comes again, all of them get slots, and the third round finds all."""
    found = filled(Slots(64, LARGE, 1), list(range(period)) * 5)
    assert all(found[: 2 * period])
    assert not any(found[2 * period :])


def test_more_panels_than_slots_are_always_filled() -> None:
    assert all(filled(Slots(64, LARGE, 1), list(range(65)) * 3))


def test_operands_share_the_function_of_as_many_keys_and_slots() -> None:
    module = Module("test", host().triple, host().enabled)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), "claim")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    table, *keys = function.args
    kinds = [Slots(64, LARGE, 2), Slots(64, LARGE, 1), Slots(64, SMALL, 1), Slots(16, LARGE, 1)]
    for slots in (*kinds, *kinds):
        slots.find(builder, table, keys[: slots.keys])
    assert len([each for each in module.functions if each.name.startswith("weft.slot")]) == len(kinds)


def slots_in_turn(slots: Slots, wanted: Iterable[int]) -> list[int]:
    call = compiled(slots)
    table = (ctypes.c_int64 * (slots.table_bytes // 8 + 8))()
    address = ctypes.addressof(table) + -ctypes.addressof(table) % 64
    result = (ctypes.c_int64 * 2)()
    found: list[int] = []
    for key in wanted:
        call(address, key, 0, ctypes.addressof(result))
        found.append(result[0])
    return found


def test_panels_that_never_come_again_share_a_slot() -> None:
    """After a turn through the first 16. Keys of 0 are in the table before they are written, further back than any panel."""
    wanted = [*range(1, 30), 0, *range(30, 100)]
    assert slots_in_turn(Slots(64, LARGE, 1), wanted) == [*range(16), *[0] * 84]


def test_each_turn_counts_alone() -> None:
    """Panels that came again do not keep slots for others that do not: a turn of these goes by, and then they share one."""
    wanted = [*list(range(16)) * 3, *range(100, 160)]
    assert slots_in_turn(Slots(64, LARGE, 1), wanted)[48:] == [*range(16), *[0] * 44]


def test_as_many_slots_as_panels_between_two_uses() -> None:
    """Each panel is wanted again after two others: that needs four slots, a power of two. The choice after 16 panels loses 15,
    which is filled again."""
    wanted = [key for i in range(0, 120, 3) for key in (i, i + 1, i + 2, i, i + 1, i + 2)]
    slots = slots_in_turn(Slots(64, LARGE, 1), wanted)
    assert len(set(slots[:40])) == 16
    assert set(slots[40:]) == set(range(4))
    assert sum(filled(Slots(64, LARGE, 1), wanted)) == 120 + 1
