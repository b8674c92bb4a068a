"""How a row of the grid is cut into groups of programs that run at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import product

from llvmlite import ir

from native_functions import native_function
from weft.codegen.cpu.entry import (
    Together,
    _group_size,  # pyright: ignore[reportPrivateUsage]
    _part_of_thread,  # pyright: ignore[reportPrivateUsage]
)
from weft.codegen.llvm.types import I64, POINTER, Module
from weft.target import host

CHUNKS = 8
"""Claims of a thread where programs take equally long (`weft.runtime.executor`)."""


def group_sizes(
    most: int, least: int, cases: list[tuple[int, int]], size: Callable[..., ir.Value] = _group_size
) -> list[int]:
    """The groups' sizes of claims (or threads) and rows, as native code finds them."""
    target = host()
    module = Module("groups", target.triple, target.enabled)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64]), "sizes")
    numbers, count = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    entry, loop, end = builder.block, function.append_basic_block(), function.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    at = builder.phi(I64)
    at.add_incoming(ir.Constant(I64, 0), entry)
    place = builder.gep(numbers, [builder.mul(at, ir.Constant(I64, 2))], source_etype=I64)
    chunk = builder.load(place, typ=I64)
    row = builder.load(builder.gep(place, [ir.Constant(I64, 1)], source_etype=I64), typ=I64)
    joined = Together(function, most, least)
    builder.store(size(builder, chunk, row, joined), place)
    following = builder.add(at, ir.Constant(I64, 1))
    at.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", following, count), loop, end)
    builder.position_at_end(end)
    builder.ret_void()
    found = (ctypes.c_int64 * (2 * len(cases)))(*(number for case in cases for number in case))
    native_function(module, "sizes", ctypes.c_void_p, ctypes.c_int64)(ctypes.addressof(found), len(cases))
    return list(found)[::2]


def expected(most: int, least: int, chunk: int, row: int) -> int:
    """As few equal groups as there are of at most what is wanted."""
    wanted = row if chunk > 1 and row // 2 <= chunk else max(chunk, least)
    groups = -(-row // min(wanted, most))
    return -(-row // groups)


def test_sizes() -> None:
    cases = list(product([1, 2, 3, 7, 8, 20, 64, 1000], [1, 2, 3, 4, 5, 16, 17, 40, 41, 42, 128, 129, 130]))
    for most, least in ((16, 1), (16, 8), (1000, 8), (4, 4)):
        assert group_sizes(most, least, cases) == [expected(most, least, *case) for case in cases]


def test_parts_of_threads() -> None:
    """As few equal groups as there are of at most a thread's part, but of at least so many programs; 0 threads are one."""
    cases = list(product([0, 1, 2, 3, 16, 64], [1, 2, 3, 4, 5, 16, 17, 40, 129]))
    for most, least in ((16, 1), (1000, 8)):
        parts = [min(max(-(-row // max(threads, 1)), least), most) for threads, row in cases]
        equal = [-(-row // -(-row // part)) for (_, row), part in zip(cases, parts, strict=True)]
        assert group_sizes(most, least, cases, _part_of_thread) == equal


def test_a_thread_has_several_claims() -> None:
    """Three at least, where a claim is more than one program; else rows are cut into single programs."""
    grids = list(product(range(1, 70), range(1, 70), (2, 3, 4, 8)))
    cases = [(max(1, rows * row // (threads * CHUNKS)), row) for rows, row, threads in grids]
    for (rows, row, threads), (chunk, _), size in zip(grids, cases, group_sizes(10**6, 1, cases), strict=True):
        claims = rows * -(-row // size) // max(1, chunk // size)
        assert claims >= 3 * threads if chunk > 1 else size == 1, (rows, row, threads)
