"""wgmma against exact products of matrices that an independent model lays into shared memory and registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emulator_wgmma import DEPTH, DTYPES, Kernel, Matrix, Operand, launch
from sampling import grid
from weft.emulator.ptx import parse

RNG = np.random.default_rng(915)
SIZE = 65536
"""Bytes of shared memory: A in the first half, B in the second."""
B_BASE = 32768

LIMITS = {"f16": 8, "bf16": 8, "tf32": 50, "e4m3": 4, "e5m2": 3, "s8": 127, "u8": 255, "b1": 1}
"""Magnitudes of operands: integers that the type has, with sums that the accumulator has."""
UNSIGNED = ("u8", "b1")
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "b1": 1}


def integers(kind: str, *shape: int) -> Matrix:
    limit = LIMITS[kind]
    return RNG.integers(0 if kind in UNSIGNED else -limit, limit + 1, shape)


def values(numbers: Matrix, kind: str) -> Matrix:
    return numbers.astype(DTYPES[kind])


def name(n: int, d: str, a: str, b: str, tail: str = "") -> str:
    return f"wgmma.mma_async.sync.aligned.m64n{n}k{DEPTH[a]}.{d}.{a}.{b}{tail}"


def immediates(a: str, in_registers: bool = False, trans_a: int = 0, trans_b: int = 0, signs: str = "1, 1") -> str:
    if a in ("s8", "u8", "b1"):
        return ""
    if a not in ("f16", "bf16"):
        return f", {signs}"
    return f", {signs}, {trans_b}" if in_registers else f", {signs}, {trans_a}, {trans_b}"


def image(*stored: tuple[Operand, Matrix]) -> Any:
    memory = np.full(SIZE, 0x5A, np.uint8)
    for operand, matrix in stored:
        operand.store(memory, matrix)
    return memory


def check(
    n: int,
    d: str,
    left: Operand,
    right: Operand,
    tail: str = "",
    in_registers: bool = False,
    scale: str = "%s",
) -> None:
    """One product with D added, of random integers: exact."""
    kinds = left.kind, right.kind
    a, b = integers(kinds[0], 64, DEPTH[kinds[0]]), integers(kinds[1], n, DEPTH[kinds[1]])
    before = RNG.integers(-100, 100, (64, n))
    source = "{a}" if in_registers else "%da"
    more = immediates(kinds[0], in_registers, int(left.transposed), int(right.transposed))
    body = f"{name(n, d, *kinds, tail)} {{d}}, {source}, %db, {scale}{more};"
    memory = image((left, values(a, kinds[0])), (right, values(b, kinds[1])))
    kernel = Kernel(n, d, body, SIZE, in_registers=in_registers)
    fragments = [values(a, kinds[0])] if in_registers else None
    (after,), _ = launch(
        kernel, memory[None], [(left.descriptor, right.descriptor)], [before], fragments, kind=kinds[0]
    )
    expected = a @ b.T + before
    np.testing.assert_array_equal(after.astype(np.int64), expected)


def k_major(kind: str, base: int, swizzle: int = 128, pad: int = 0) -> Operand:
    """Rows of 32 bytes along K. ``pad``: more bytes between the tiles than they need."""
    if swizzle == 0:
        return Operand(kind, base, 0, leading=128 + pad, stride=256 + 3 * pad)
    period = 8 * swizzle
    return Operand(kind, base, swizzle, leading=16, stride=period * (2 if pad else 1))


def mn_major(kind: str, base: int, rows: int, swizzle: int = 128, pad: int = 0) -> Operand:
    """Lines of 16 k's."""
    if swizzle == 0:
        return Operand(kind, base, 0, transposed=True, stride=128 + pad, leading=rows // 8 * (128 + pad))
    tile = 8 * swizzle
    return Operand(kind, base, swizzle, transposed=True, stride=tile, leading=2 * tile * (2 if pad else 1))


FLOATS = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
]
INTEGERS = [("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")]
BIT = ("s32", "b1", "b1")


@pytest.mark.parametrize("n", [8, 64])
@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize("types", [*FLOATS, *INTEGERS, BIT], ids=".".join)
def test_every_type(types: tuple[str, str, str], in_registers: bool, n: int) -> None:
    d, a, b = types
    tail = ".and.popc" if a == "b1" else ""
    check(n, d, k_major(a, 0), k_major(b, B_BASE), tail, in_registers)


@pytest.mark.parametrize("n", [16, 24, 40, 96, 128, 248, 256])
@pytest.mark.parametrize("d", ["f32", "f16"])
def test_columns(n: int, d: str) -> None:
    check(n, d, k_major("f16", 0), k_major("f16", B_BASE))


@pytest.mark.parametrize("n", [16, 24, 32, 48, 224, 240, 256])
def test_columns_of_integers(n: int) -> None:
    check(n, "s32", k_major("s8", 0), k_major("u8", B_BASE))


SWIZZLES = [0, 32, 64, 128]


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("pad", [0, 48])
@pytest.mark.parametrize("types", [("f32", "f16"), ("f32", "tf32"), ("f32", "e4m3"), ("s32", "s8")], ids=".".join)
def test_swizzles_of_k_major_operands(swizzle: int, pad: int, types: tuple[str, str]) -> None:
    check(24, types[0], k_major(types[1], 1024, swizzle, pad), k_major(types[1], B_BASE, swizzle, pad))


@pytest.mark.parametrize(
    ("swizzle", "pad", "kind", "majors"), grid(3, SWIZZLES, [0, 32], ["f16", "bf16"], ["MN MN", "MN K", "K MN"])
)
def test_swizzles_and_majors_of_16_bits(swizzle: int, pad: int, kind: str, majors: str) -> None:
    """128 columns: two atoms or more of every swizzle."""
    a_major, b_major = majors.split()
    left = k_major(kind, 0, swizzle) if a_major == "K" else mn_major(kind, 0, 64, swizzle, pad)
    right = k_major(kind, B_BASE, 128) if b_major == "K" else mn_major(kind, B_BASE, 128, swizzle, pad)
    check(128, "f32", left, right)


@pytest.mark.parametrize("n", [8, 24, 40, 72])
def test_n_major_with_part_of_an_atom(n: int) -> None:
    check(n, "f32", k_major("f16", 0), mn_major("f16", B_BASE, 64 if n < 64 else 128))


def test_a_in_registers_and_b_transposed() -> None:
    check(64, "f16", k_major("f16", 0), mn_major("f16", B_BASE, 64), in_registers=True)


@pytest.mark.parametrize("swizzle", [64, 128])
@pytest.mark.parametrize("kind", ["f16", "e5m2", "tf32"])
def test_steps_along_k_start_inside_an_atom(swizzle: int, kind: str) -> None:
    """As every loop over K does: 32 bytes further in the descriptor's start."""
    depth, pieces, n = DEPTH[kind], swizzle // 32, 16
    a, b = integers(kind, 64, depth * pieces), integers(kind, n, depth * pieces)
    left, right = k_major(kind, 0, swizzle), k_major(kind, B_BASE, swizzle)
    memory = image((left, values(a, kind)), (right, values(b, kind)))
    more = immediates(kind)
    body = f"{name(n, 'f32', kind, kind)} {{d}}, %da, %db, 1{more}; add.s64 %da, %da, 2; add.s64 %db, %db, 2;" * pieces
    (after,), _ = launch(
        Kernel(n, "f32", body, SIZE),
        memory[None],
        [(left.descriptor, right.descriptor)],
        [np.zeros((64, n))],
    )
    np.testing.assert_array_equal(after, a @ b.T)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_pattern_that_begins_elsewhere(swizzle: int) -> None:
    """The base offset: the pattern begins at 0x680, line 5 modulo 8, so the atom's first line is not swizzled."""
    left = replace(k_major("f16", 0x680, swizzle), pattern=0x680)
    check(16, "f32", left, k_major("f16", B_BASE))


def test_tf32_ignores_13_bits() -> None:
    a, b = integers("tf32", 64, 8), integers("tf32", 8, 8)
    noise = RNG.integers(0, 1 << 13, (64, 8)).astype(np.uint32)
    noisy = np.where(a == 0, 0, values(a, "tf32").view(np.uint32) | noise).astype(np.uint32).view(np.float32)
    left, right = k_major("tf32", 0), k_major("tf32", B_BASE)
    body = f"{name(8, 'f32', 'tf32', 'tf32')} {{d}}, %da, %db, 1, 1, 1;"
    memory = image((left, noisy), (right, values(b, "tf32")))
    (after,), _ = launch(
        Kernel(8, "f32", body, SIZE), memory[None], [(left.descriptor, right.descriptor)], [np.zeros((64, 8))]
    )
    np.testing.assert_array_equal(after, a @ b.T)


@pytest.mark.parametrize("d", ["f32", "f16"])
def test_sums_are_rounded_once(d: str) -> None:
    """Sums that float64 has exactly, and the accumulator has not: nearest even, as NumPy's cast from float64."""
    a, b = (RNG.integers(-2000, 2000, (rows, 16)) / 64 for rows in (64, 32))
    before = (RNG.integers(-4000, 4000, (64, 32)) / 8).astype(DTYPES[d])
    left, right = k_major("f16", 0), k_major("f16", B_BASE)
    body = f"{name(32, d, 'f16', 'f16')} {{d}}, %da, %db, 1, 1, 1, 0, 0;"
    memory = image((left, a.astype(np.float16)), (right, b.astype(np.float16)))
    (after,), _ = launch(Kernel(32, d, body, SIZE), memory[None], [(left.descriptor, right.descriptor)], [before])
    exact = a.astype(np.float16).astype(np.float64) @ b.astype(np.float16).astype(np.float64).T + before.astype(
        np.float64
    )
    expected = exact.astype(DTYPES[d])
    assert (expected.astype(np.float64) != exact).any()
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize(("signs", "sign"), [("1, 1", 1), ("-1, 1", -1), ("1, -1", -1), ("-1, -1", 1)])
def test_scales_of_the_operands(signs: str, sign: int) -> None:
    a, b, before = integers("bf16", 64, 16), integers("bf16", 8, 16), RNG.integers(-9, 9, (64, 8))
    left, right = k_major("bf16", 0), k_major("bf16", B_BASE)
    body = f"{name(8, 'f32', 'bf16', 'bf16')} {{d}}, %da, %db, 1{immediates('bf16', signs=signs)};"
    memory = image((left, values(a, "bf16")), (right, values(b, "bf16")))
    (after,), _ = launch(Kernel(8, "f32", body, SIZE), memory[None], [(left.descriptor, right.descriptor)], [before])
    np.testing.assert_array_equal(after, sign * (a @ b.T) + before)


@pytest.mark.parametrize(
    ("scale", "predicate", "added"),
    [("0", 1, False), ("1", 0, True), ("%s", 1, True), ("%s", 0, False), ("!%s", 1, False), ("!%s", 0, True)],
)
def test_scale_of_d(scale: str, predicate: int, added: bool) -> None:
    a, b, before = integers("s8", 64, 32), integers("s8", 16, 32), RNG.integers(-999, 999, (64, 16))
    left, right = k_major("s8", 0), k_major("s8", B_BASE)
    memory = image((left, values(a, "s8")), (right, values(b, "s8")))
    body = f"{name(16, 's32', 's8', 's8')} {{d}}, %da, %db, {scale};"
    (after,), _ = launch(
        Kernel(16, "s32", body, SIZE),
        memory[None],
        [(left.descriptor, right.descriptor)],
        [before],
        scale=[predicate],
    )
    np.testing.assert_array_equal(after, a @ b.T + (before if added else 0))


@pytest.mark.parametrize("saturate", [False, True])
def test_integers_wrap_or_saturate(saturate: bool) -> None:
    a, b = np.full((64, 32), 127), np.full((8, 32), 127)
    a[::2] = -128
    before = np.full((64, 8), 2**31 - 1)
    before[::2] = -(2**31)
    before[5], before[6] = 0, 3
    left, right = k_major("s8", 0), k_major("s8", B_BASE)
    memory = image((left, values(a, "s8")), (right, values(b, "s8")))
    body = f"{name(8, 's32', 's8', 's8', '.satfinite' if saturate else '')} {{d}}, %da, %db, 1;"
    (after,), _ = launch(Kernel(8, "s32", body, SIZE), memory[None], [(left.descriptor, right.descriptor)], [before])
    exact = a @ b.T + before
    wrapped = (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(after, np.clip(exact, -(2**31), 2**31 - 1) if saturate else wrapped)


def test_many_warpgroups_of_many_blocks() -> None:
    """Each warpgroup its own descriptors, scale-d and accumulators, each block its own memory. The second product, of those with
    scale-d alone, adds to D."""
    groups, blocks, n = 3, 4, 40
    images = np.full((blocks, groups * SIZE), 0x5A, np.uint8)
    descriptors: list[tuple[int, int]] = []
    before: list[Matrix] = []
    expected: list[Matrix] = []
    scale: list[int] = []
    for place in range(blocks * groups):
        block, group = divmod(place, groups)
        a, b, d = integers("f16", 64, 16), integers("f16", n, 16), RNG.integers(-9, 9, (64, n))
        left = k_major("f16", group * SIZE, SWIZZLES[(block + group) % 4])
        right = mn_major("f16", group * SIZE + B_BASE, 64, SWIZZLES[(2 * block + group) % 4])
        left.store(images[block], values(a, "f16"))
        right.store(images[block], values(np.pad(b, ((0, 24), (0, 0))), "f16"))
        descriptors.append((left.descriptor, right.descriptor))
        before.append(d)
        scale.append((block + 2 * group) % 3 % 2)
        expected.append((2 if scale[-1] else 1) * (a @ b.T) + scale[-1] * d)
    text = name(n, "f32", "f16", "f16")
    body = f"{text} {{d}}, %da, %db, %s, 1, 1, 0, 1; @!%s bra done; {text} {{d}}, %da, %db, 1, 1, 1, 0, 1; done:"
    kernel = Kernel(n, "f32", body, groups * SIZE, groups, blocks)
    after, outcome = launch(kernel, images, descriptors, before, scale=scale)
    np.testing.assert_array_equal(np.stack(after), np.stack(expected))
    first, second = sites(kernel, "wgmma.mma_async")
    for site, times in ((first, 12), (second, sum(scale))):
        counts = outcome.counters.rows()[site]
        assert counts["executions"] == 4 * times
        assert counts["wgmma"] == times
        assert counts["matrix_flops"] == times * 2 * 64 * n * 16
        assert counts["async_shared_load_bytes"] == times * (64 + n) * 32


def sites(kernel: Kernel, opcode: str) -> list[int]:
    """Where in the program these instructions are."""
    instructions = parse(kernel.ptx).functions["test"].instructions
    return [place for place, found in enumerate(instructions) if found.name.startswith(opcode)]


def test_counts_only_b_of_shared_memory_when_a_is_in_registers() -> None:
    a, b = integers("s8", 64, 32), integers("s8", 8, 32)
    right = k_major("s8", B_BASE)
    kernel = Kernel(8, "s32", f"{name(8, 's32', 's8', 's8')} {{d}}, {{a}}, %db, 0;", SIZE, in_registers=True)
    memory = image((right, values(b, "s8")))
    zero = np.zeros((64, 8))
    (after,), outcome = launch(kernel, memory[None], [(0, right.descriptor)], [zero], [values(a, "s8")], kind="s8")
    np.testing.assert_array_equal(after, a @ b.T)
    (site,) = sites(kernel, "wgmma.mma_async")
    assert outcome.counters.rows()[site]["async_shared_load_bytes"] == 8 * 32
    assert outcome.counters.rows()[site]["matrix_flops"] == 2 * 64 * 8 * 32


def test_warps_of_a_warpgroup_may_come_one_after_the_other() -> None:
    """Warps 2 and 3 wait for warps 4 and 5, which come to the barrier after warps 0 and 1 have come to the product."""
    a, b = integers("s8", 64, 32), integers("s8", 8, 32)
    left, right = k_major("s8", 0), k_major("s8", B_BASE)
    instruction = f"{name(8, 's32', 's8', 's8')} {{d}}, %da, %db, 0;"
    body = f"""
  setp.ge.u32 %p, %t0, 128;
  @%p bra others;
  setp.lt.u32 %p, %t0, 64;
  @%p bra product;
  bar.sync 1, 128;
product:
  {instruction}
  bra meet;
others:
  setp.ge.u32 %p, %t0, 192;
  @%p bra meet;
  bar.sync 1, 128;
meet:
"""
    kernel = Kernel(8, "s32", body, SIZE, groups=2)
    memory = image((left, values(a, "s8")), (right, values(b, "s8")))
    pairs = [(left.descriptor, right.descriptor)] * 2
    (first, second), outcome = launch(kernel, memory[None], pairs, [np.full((64, 8), 7)] * 2)
    np.testing.assert_array_equal(first, a @ b.T)
    assert (second == 7).all()
    (site,) = sites(kernel, "wgmma.mma_async")
    assert outcome.counters.rows()[site]["wgmma"] == 1
    assert outcome.counters.rows()[site]["executions"] == 4
    assert outcome.counters.rows()[site]["threads"] == 128


def test_a_loop_of_one_warpgroup_while_another_has_exited() -> None:
    a, b = integers("s8", 64, 32), integers("s8", 8, 32)
    left, right = k_major("s8", 0), k_major("s8", B_BASE)
    body = f"""
  setp.ge.u32 %p, %t0, 128;
  @%p exit;
  mov.u32 %t4, 0;
again:
  {name(8, "s32", "s8", "s8")} {{d}}, %da, %db, 1;
  add.u32 %t4, %t4, 1;
  setp.lt.u32 %p, %t4, 3;
  @%p bra again;
"""
    kernel = Kernel(8, "s32", body, SIZE, groups=2, blocks=2)
    memory = image((left, values(a, "s8")), (right, values(b, "s8")))
    pairs = [(left.descriptor, right.descriptor)] * 4
    after, outcome = launch(kernel, np.stack([memory] * 2), pairs, [np.full((64, 8), 7)] * 4)
    for group, found in enumerate(after):
        np.testing.assert_array_equal(found, 7 + 3 * (a @ b.T) * (group % 2 == 0))
    (site,) = sites(kernel, "wgmma.mma_async")
    assert outcome.counters.rows()[site]["wgmma"] == 6
    assert outcome.counters.rows()[site]["executions"] == 24
