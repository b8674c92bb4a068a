"""Which arrays a kernel only updates, and which elements: kernels that keep the rules of `weft.transforms.update_targets`, and
kernels that break one each."""

# pyright: reportUnnecessaryComparison=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import func

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import lay_out
from weft.frontend import ConstantArgument, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import host
from weft.transforms.update_targets import Target, targets_of

N = 32


@weft.jit
def of_bytes(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(out + tl.load(x + i, mask=i < n).to(tl.int32), 1, mask=i < n)


@weft.jit
def downwards(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_max(out - tl.load(x + i).to(tl.int32) * 3 + 5, 1, mask=i < n)


@weft.jit
def by_mask(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    at = tl.load(x + i, mask=i < n).to(tl.int32) * 1000
    tl.atomic_add(out + at, 1, mask=(i < n) & (at >= -2) & (tl.full((N,), 50, tl.int32) > at))


@weft.jit
def by_half_a_mask(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    at = tl.load(x + i, mask=i < n).to(tl.int32) - 100
    tl.atomic_add(out + at, 1, mask=(i < n) | (at >= 0))


@weft.jit
def of_tiles(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(out + tl.arange(0, 16), tl.histogram(tl.load(x + i).to(tl.int32), 16))
    tl.atomic_add(out + 16, 1)


@weft.jit
def in_a_loop(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    for k in range(n):
        tl.atomic_or(out + tl.load(x + k * N + tl.arange(0, N)).to(tl.int32), 1 << 3)


@weft.jit
def two(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.atomic_min(x + i * 2, 1)


@weft.jit
def anywhere(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + tl.arange(0, N) + n, 1)


@weft.jit
def above(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    at = tl.load(x + tl.arange(0, N)).to(tl.int32)
    tl.atomic_add(out + at, 1, mask=(at > 7) & (at <= 9))


@weft.jit
def across_a_mask(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    """The mask says nothing of an element that has moved."""
    at = tl.load(x + tl.arange(0, N)[:, None] + tl.arange(0, N)[None, :]).to(tl.int32)
    tl.atomic_add(tl.trans(out + at), 1, mask=at < 50)


FOUND = {
    above: [("add", 8, 9)],
    across_a_mask: [("add", 0, 255)],
    of_bytes: [("add", 0, 255)],
    downwards: [("max", 5 - 3 * 255, 5)],
    by_mask: [("add", -2, 49)],
    by_half_a_mask: [("add", -100, 155)],
    of_tiles: [("add", 0, 16)],
    in_a_loop: [("or", 0, 255)],
    anywhere: [("add", -(2**31), 2**31 + N - 2)],
    two: [("add", 0, N - 1), ("min", 0, 2 * N - 2)],
}


@weft.jit
def used(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(x + i, tl.atomic_add(out + i, 1, sem="relaxed"))


@weft.jit
def stored(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.store(out + n, 0)


@weft.jit
def loaded(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.store(x + i, tl.load(out + i))


@weft.jit
def two_kinds(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.atomic_max(out + i, 1)


@weft.jit
def exchanged(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    tl.atomic_xchg(out + tl.arange(0, N), 1)


@weft.jit
def swapped(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.atomic_cas(x + i, 1, 1, sem="relaxed")


@weft.jit
def looks(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    while tl.load(x, volatile=True) == 0:
        pass


@weft.jit
def barred(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.debug_barrier()
    tl.store(x + i, 1)


@weft.jit
def by_number(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    """A store whose address is a number may reach the target."""
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.store(n.to(tl.int64).to(tl.pointer_type(tl.int32)), 1)


@weft.jit
def escaping(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(out + i, 1)
    tl.store(x + i, (out + i).to(tl.int64, bitcast=True).to(tl.uint8))


@weft.jit
def chosen(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.atomic_add(tl.where(i < 5, out + i, x + i), 1)


@weft.jit
def known_to_be_aligned(out: Any, x: Any, n: Any, N: tl.constexpr) -> None:
    """The copy is not at a multiple of 4096."""
    tl.atomic_add(tl.multiple_of(out + tl.arange(0, N), 4096), 1)


NONE = [
    used, stored, loaded, two_kinds, exchanged, swapped, looks, barred, by_number, escaping, chosen,
    known_to_be_aligned,
]  # fmt: skip


def found(kernel: Any, out: Any = dtypes.int32, x: Any = dtypes.uint8, laid_out: bool = True) -> tuple[Target, ...]:
    """The targets of a kernel, as it is compiled for this machine or as it was written."""
    if kernel in (two, chosen, swapped):
        x = out
    signature = {"out": PointerArgument(out), "x": PointerArgument(x), "n": ScalarArgument(dtypes.int32)}
    module = build_module(kernel, {**signature, "N": ConstantArgument(N)})
    if laid_out:
        lay_out(module, host(), Options(disjoint=True))
    return targets_of(next(op for op in module.body.block.ops if isinstance(op, func.FuncOp)))


@pytest.mark.parametrize("kernel", FOUND, ids=lambda kernel: kernel.__name__)
def test_what_is_only_updated(kernel: Any) -> None:
    wide = dtypes.int16 if kernel is by_mask else dtypes.uint8
    expected = tuple(Target(slot, dtypes.int32, *rest) for slot, rest in enumerate(FOUND[kernel]))
    assert found(kernel, x=wide) == expected
    assert found(kernel, x=wide, laid_out=False) == expected


@pytest.mark.parametrize("kernel", NONE, ids=lambda kernel: kernel.__name__)
def test_what_is_not(kernel: Any) -> None:
    assert found(kernel) == ()


def test_sums_of_floats_keep_their_order() -> None:
    assert found(of_bytes, out=dtypes.float32) == ()


IDENTITIES = [
    ("add", dtypes.int32, 0), ("or", dtypes.int32, 0), ("xor", dtypes.uint8, 0), ("and", dtypes.int64, -1),
    ("max", dtypes.int32, -(2**31)), ("min", dtypes.int32, 2**31 - 1), ("max", dtypes.uint8, 0), ("min", dtypes.uint8, 255),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype", "identity"), IDENTITIES)
def test_what_updates_nothing(kind: str, dtype: Any, identity: int) -> None:
    assert Target(0, dtype, kind, 0, 0).identity == identity
