"""Nothing enumerates elements: the work grows with the bits of a layout, at most by their cube, not with its size."""

from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from weft.layout import (
    LinearLayout,
    broadcast,
    broadcast_back,
    canonical,
    concat_ins,
    concat_outs,
    expand_dims,
    flatten_ins,
    flatten_outs,
    free_variables,
    image,
    is_identity_on,
    join,
    join_back,
    kernel,
    reduce,
    reduce_back,
    register_permutation,
    reshape,
    reshape_ins,
    reshape_outs,
    split,
    trans,
    transpose_ins,
    why_not_distributed,
)

MACHINE = ("register", "lane", "warp", "block")


def dense(seed: int, bits: int) -> LinearLayout:
    """An invertible layout of 2^bits elements with about half of all matrix entries set."""
    rng = random.Random(seed)
    columns = [1 << bit for bit in range(bits)]
    rng.shuffle(columns)
    for _ in range(4 * bits):
        a, b = rng.sample(range(bits), 2)
        columns[a] ^= columns[b]
    return cut(columns)


def sparse(seed: int, bits: int) -> LinearLayout:
    """A distributed layout of 2^bits elements, and four copies of each."""
    rng = random.Random(seed)
    columns = [1 << bit for bit in range(bits)] + [0, 0]
    rng.shuffle(columns)
    return cut(columns, bits)


def cut(columns: list[int], bits: int | None = None) -> LinearLayout:
    bits = len(columns) if bits is None else bits
    quarter = bits // 4
    parts = [tuple(columns[i * quarter : (i + 1) * quarter if i < 3 else None]) for i in range(4)]
    return LinearLayout.from_columns(
        dict(zip(MACHINE, parts, strict=True)), (("dim0", bits - 2 * quarter), ("dim1", 2 * quarter))
    )


def everything(a: LinearLayout, b: LinearLayout, bits: int) -> list[object]:
    """Every operation of the algebra on layouts of 2^bits elements; returned, so that none is skipped."""
    rows, columns = a.shape
    sizes = {name: size for name, size in zip(a.out_dims, a.shape, strict=True)}
    again = LinearLayout({dim: a.bases(dim) for dim in a.in_dims}, sizes)
    back = a.right_inverse()
    conversion = a.invert_and_compose(b)
    both = a * b
    flat = flatten_outs(flatten_ins(a, "i"), "o")
    swapped = a.with_columns({"register": tuple(reversed(a.columns("register")))})
    results: list[object] = [
        again == a, hash(again), again.equal(b), a.rank, a.is_surjective, a.is_injective, a.is_invertible,
        a.compose(back), conversion.compose(b) == a, a.pseudo_inverse(), both.divide_left(a), both.divide_right(b),
        both.why_not_divisible(b), LinearLayout.parse(str(a)), repr(a), a.transpose_outs(("dim1", "dim0")),
        a.sublayout(("lane", "warp"), ("dim1",)), a.rename({"lane": "thread"}), a.matrix().rows, str(a.matrix()),
        a.flat(lane=1, warp=1), a.apply({"lane": 1}), a.duplicate_mask("lane"), kernel(a), image(a), free_variables(a),
        canonical(a), register_permutation(a, swapped), is_identity_on(conversion, ("warp",)),
        transpose_ins(a, tuple(reversed(a.in_dims))), reshape_ins(flat, {"p": 4, "q": (1 << len(a.all_columns)) // 4}),
        reshape_outs(flat, {"u": 2, "v": 1 << (bits - 1)}), concat_ins(a, b.rename({dim: f"{dim}_" for dim in b.in_dims})),
        concat_outs(a, b.rename(outputs={dim: f"{dim}_" for dim in b.out_dims})),
        LinearLayout.identity(1 << bits, "i", "o"), LinearLayout.strided(1 << bits, 1 << bits, "i", "o"),
        LinearLayout.zeros(1 << bits, "i", "o", 1 << bits),
    ]  # fmt: skip
    if why_not_distributed(a) is None:
        joined = join(a)
        results += [
            trans(a, (1, 0)), reshape(a, (2, rows * columns // 2)), reduce(a, 0), reduce_back(a, 0, rows), split(joined),
            join_back(joined), broadcast(expand_dims(a, 1), (rows, 1 << bits, columns)), broadcast_back(a, (rows, 1)),
        ]  # fmt: skip
    return results


def counted(call: Callable[[], object]) -> int:
    """How many bytecode instructions a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("make", [dense, sparse])
def test_the_work_grows_with_the_bits(make: Callable[[int, int], LinearLayout]) -> None:
    """12 -> 24 bits is 4096 times the elements, and twice the bits: at most 8 times the instructions of an elimination."""
    small, large = (make(1, 12), make(2, 12)), (make(3, 24), make(4, 24))
    few = counted(lambda: everything(*small, 12))
    many = counted(lambda: everything(*large, 24))
    assert few > 1000
    assert many < 8 * few
    # No list or set of elements is made in C either: 2^24 pointers alone would be 128 MiB.
    tracemalloc.start()
    try:
        everything(*large, 24)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [dense, sparse])
def test_more_elements_than_could_be_looked_at(make: Callable[[int, int], LinearLayout]) -> None:
    """2^200: more bits than a machine word, more columns than fit one row of an elimination at first."""
    a, b = make(5, 200), make(6, 200)
    everything(a, b, 200)
    assert a.is_surjective
    assert a.invert_and_compose(b).compose(b) == a
    quotient = (a * b).divide_left(a)
    assert quotient is not None
    assert quotient.equal(b)
