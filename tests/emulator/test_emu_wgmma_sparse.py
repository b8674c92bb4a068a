"""wgmma.mma_async.sp: half of A is stored, and metadata say which half (PTX ISA 9.7.15.6)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_wgmma import DEPTH, DTYPES, Kernel, Matrix, Operand, launch
from weft.emulator import Fault, PTXError

RNG = np.random.default_rng(9156)
SIZE = 32768
A, B = 0, 16384
CASES = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e5m2"),
    ("f16", "e5m2", "e4m3"),
    ("s32", "s8", "u8"),
    ("s32", "u8", "s8"),
]


def sparse(kind: str, selector: int = 0) -> tuple[Matrix, Matrix, NDArray[np.uint32]]:
    """A random sparse A: (64, K) with its zeros, (64, K / 2) without, and the metadata of each thread.

    Of four columns two are stored (of tf32's two one), at places p < q: their four bits are p + 4 q (tf32: 0b0100 for place
    0, 0b1110 for place 1). Figures of mma.sp's metadata, one warp: with 16 and 32 bits the group's thread 2 * selector has
    those of the first half of the columns, row g in its low 16 bits and g + 8 in the high ones; the next thread, of the second
    half. With 8 bits: threads 0 and 1 have rows g and g + 8 of columns 0 to 31, 2 and 3 of 32 to 63."""
    k = 2 * DEPTH[kind]
    whole = np.zeros((64, k), np.int64)
    stored = RNG.integers(1, 4, (64, k // 2))
    metadata = np.zeros(128, np.uint32)
    group = 2 if kind == "tf32" else 4
    groups = k // group
    for row, chunk in itertools.product(range(64), range(groups)):
        if group == 2:
            place = int(RNG.integers(2))
            whole[row, 2 * chunk + place] = stored[row, chunk]
            bits = (0b0100, 0b1110)[place]
        else:
            p, q = sorted(int(i) for i in RNG.permutation(4)[:2])
            whole[row, 4 * chunk + p], whole[row, 4 * chunk + q] = stored[row, 2 * chunk], stored[row, 2 * chunk + 1]
            bits = p + 4 * q
        warp, high, g = row // 16, row // 8 % 2, row % 8
        if stored.astype(DTYPES[kind]).itemsize == 1:
            thread, shift = 2 * (chunk // 8) + high, 4 * (chunk % 8)
        else:
            half = groups // 2
            thread, shift = 2 * selector + chunk // half, 16 * high + 4 * (chunk % half)
        metadata[32 * warp + 4 * g + thread] |= np.uint32(bits << shift)
    return whole, stored.astype(DTYPES[kind]), metadata


def text(n: int, d: str, a: str, b: str, left: str, selector: int, more: str) -> str:
    return f"wgmma.mma_async.sp.sync.aligned.m64n{n}k{2 * DEPTH[a]}.{d}.{a}.{b} {{d}}, {left}, %db, %m, {selector}, 1{more};"


def tail(kind: str, in_registers: bool, transposed: int = 0) -> str:
    if kind in ("s8", "u8"):
        return ""
    if kind not in ("f16", "bf16"):
        return ", 1, 1"
    return f", 1, 1, {transposed}" if in_registers else f", 1, 1, 0, {transposed}"


@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("types", CASES, ids=".".join)
def test_every_type(types: tuple[str, str, str], in_registers: bool) -> None:
    d, a, b = types
    n = 24
    whole, stored, metadata = sparse(a)
    right = RNG.integers(0, 4, (n, whole.shape[1]))
    before = RNG.integers(-9, 9, (64, n))
    x, y = Operand(a, A), Operand(b, B)
    image = np.full(SIZE, 0x5A, np.uint8)
    x.store(image, stored)
    y.store(image, right.astype(DTYPES[b]))
    kernel = Kernel(n, d, text(n, *types, "{a}" if in_registers else "%da", 0, tail(a, in_registers)), SIZE)
    kernel.in_registers = in_registers
    (after,), outcome = launch(
        kernel,
        image[None],
        [(x.descriptor, y.descriptor)],
        [before],
        [stored],
        kind=a,
        metadata=[metadata],
    )
    np.testing.assert_array_equal(after.astype(np.int64), whole @ right.T + before)
    counted = {
        name: sum(outcome.counters.value(site, name) for site in range(outcome.counters.sites)) for name in NAMES
    }
    assert counted["wgmma"] == 1
    assert counted["matrix_flops"] == 2 * 64 * n * whole.shape[1]
    assert counted["async_shared_load_bytes"] == n * 64 + (0 if in_registers else 64 * 32)


NAMES = ("wgmma", "matrix_flops", "async_shared_load_bytes")


@pytest.mark.parametrize("kind", ["f16", "tf32"])
def test_selector(kind: str) -> None:
    whole, stored, metadata = sparse(kind, selector=1)
    metadata[::4] = metadata[1::4] = 0xFFFF_FFFF
    right = RNG.integers(0, 4, (8, whole.shape[1]))
    y = Operand(kind, B)
    image = np.zeros(SIZE, np.uint8)
    y.store(image, right.astype(DTYPES[kind]))
    kernel = Kernel(8, "f32", text(8, "f32", kind, kind, "{a}", 1, tail(kind, True)), SIZE, in_registers=True)
    zero = np.zeros((64, 8))
    (after,), _ = launch(kernel, image[None], [(0, y.descriptor)], [zero], [stored], kind=kind, metadata=[metadata])
    np.testing.assert_array_equal(after, whole @ right.T)


@pytest.mark.parametrize("swizzle", [0, 64, 128])
@pytest.mark.parametrize("transposed", [False, True])
def test_b_is_twice_as_deep(swizzle: int, transposed: bool) -> None:
    whole, stored, metadata = sparse("bf16")
    right = RNG.integers(0, 4, (64, 32))
    if not transposed:
        y = Operand("bf16", B, swizzle, leading=128, stride=8 * swizzle or 512)
    elif swizzle:
        y = Operand("bf16", B, swizzle, transposed=True, stride=8 * swizzle, leading=32 * swizzle)
    else:
        y = Operand("bf16", B, 0, transposed=True, stride=128, leading=1024)
    image = np.zeros(SIZE, np.uint8)
    y.store(image, right.astype(DTYPES["bf16"]))
    body = text(64, "f32", "bf16", "bf16", "{a}", 0, tail("bf16", True, int(transposed)))
    kernel = Kernel(64, "f32", body, SIZE, in_registers=True)
    zero = np.zeros((64, 64))
    (after,), _ = launch(kernel, image[None], [(0, y.descriptor)], [zero], [stored], kind="bf16", metadata=[metadata])
    np.testing.assert_array_equal(after, whole @ right.T)


def go(kernel: Kernel, right: Operand, metadata: NDArray[np.uint32]) -> None:
    zero = np.zeros((64, kernel.n))
    image = np.zeros((1, SIZE), np.uint8)
    launch(
        kernel,
        image,
        [(0, right.descriptor)],
        [zero],
        [np.zeros((64, 16), np.float16)],
        kind="f16",
        metadata=[metadata],
    )


def test_what_it_finds_wrong() -> None:
    _, _, metadata = sparse("f16")
    kernel = Kernel(8, "f32", text(8, "f32", "f16", "f16", "{a}", 0, tail("f16", True)), SIZE, in_registers=True)
    with pytest.raises(Fault) as caught:
        go(kernel, Operand("f16", B, 32), metadata)
    assert f"{caught.value.kind}: {caught.value.message}" == (
        "undefined behaviour: a row of B has 64 bytes, more than the 32B swizzle of its descriptor"
    )
    metadata[32 + 4 * 5 + 1] = 0x4E5_4444  # bits 16 to 19: 5, of warp 1's row 5 + 8, columns 16 to 19
    with pytest.raises(Fault) as caught:
        go(kernel, Operand("f16", B), metadata)
    assert f"{caught.value.kind}: {caught.value.message}" == (
        "undefined behaviour: the sparsity metadata of row 13, columns 16 to 19 are 0b0101, which mean nothing"
    )
    assert caught.value.where.thread == (32 + 21, 0, 0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            text(8, "f32", "f16", "f16", "{a}", 2, tail("f16", True)),
            "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 has a sparsity selector of 2, expected 0 to 1",
        ),
        (
            text(8, "f32", "f16", "f16", "{a}", 0, tail("f16", True)).replace("k32", "k16"),
            "wgmma.mma_async.sp of shape .m64n8k16 does not exist with types .f32.f16.f16",
        ),
        (
            "wgmma.mma_async.sp.sync.aligned.m64n8k512.s32.b1.b1.and.popc {d}, {a}, %db, %m, 0, 1;",
            "wgmma.mma_async.sp of shape .m64n8k512 does not exist with types .s32.b1.b1",
        ),
        (
            text(8, "f32", "f16", "f16", "{a}", 0, ""),
            "wgmma has 6 operands, expected 9",
        ),
    ],
)
def test_refusals(body: str, message: str) -> None:
    kernel = Kernel(8, "f32", body, SIZE, in_registers=True)
    with pytest.raises(PTXError) as caught:
        go(kernel, Operand("f16", B), np.zeros(128, np.uint32))
    assert str(caught.value).splitlines()[0].partition(": ")[2] == message
