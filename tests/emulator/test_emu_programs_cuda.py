"""CUDA C compiled by nvcc, run, and compared with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from emulator_programs import SOURCES, program
from weft.emulator import Scratch

RNG = np.random.default_rng(5)


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


# ---- elementwise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 127, 128, 300])
def test_vector_add(n: int) -> None:
    x, y, out = uniform(n), uniform(n), np.zeros(n, np.float32)
    program("elementwise").launch("vector_add", -(-n // 128), 128, [x, y, Scratch(out), n])
    assert np.array_equal(out, x + y)


def test_saxpy() -> None:
    x, y = uniform(1000), uniform(1000)
    exact = (
        3.5 * x.astype(np.float64) + y
    )  # products of floats are exact in f64, and this sum is rounded to f32 once more
    program("elementwise").launch("saxpy", 2, 96, [3.5, x, y, 1000])
    assert np.array_equal(y, exact.astype(np.float32))


def test_collatz() -> None:
    start = np.arange(1, 101, dtype=np.uint32)
    steps = np.zeros(100, np.uint32)
    profile = program("elementwise").launch("collatz", 1, 128, [start, Scratch(steps), 100])

    def count(value: int) -> int:
        return 0 if value == 1 else 1 + count(3 * value + 1 if value % 2 else value // 2)

    assert steps.tolist() == [count(int(value)) for value in start]
    assert profile.lane_efficiency < 0.8  # 97 takes 118 steps, its neighbours far fewer


def test_divide64() -> None:
    x = RNG.integers(-(2**63), 2**63, 128)
    y = RNG.integers(-(2**63), 2**63, 128) >> RNG.integers(0, 62, 128)
    y[y == 0] = 7
    x[:4], y[:4] = (5, -5, 5, -5), (3, 3, -3, -3)
    results = [np.zeros(128, np.int64), np.zeros(128, np.int64), np.zeros(128, np.uint64), np.zeros(128, np.uint64)]
    program("elementwise").launch("divide64", 1, 128, [x, y, *map(Scratch, results)])
    for i in range(128):
        a, b = int(x[i]), int(y[i])
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        ua, ub = a % 2**64, b % 2**64
        assert [int(result[i]) for result in results] == [quotient, a - quotient * b, ua // ub, ua % ub]


def test_double_precision() -> None:
    x = RNG.uniform(0.1, 100, 100)
    results = [np.zeros(100) for _ in range(3)]
    program("elementwise").launch("double_precision", 1, 128, [x, *map(Scratch, results), 100])
    for result, expected in zip(results, [(x * 3 - 2) * x + 1, 1 / x, np.sqrt(x)], strict=True):
        assert np.array_equal(result, expected)


def test_transcendental() -> None:
    x = RNG.uniform(0.1, 20, 100)
    e, s, log, p = np.zeros(100), np.zeros(100), np.zeros(100, np.float32), np.zeros(100, np.float32)
    program("elementwise").launch("transcendental", 1, 128, [x, *map(Scratch, (e, s, log, p)), 100])
    # CUDA's documentation: exp 1 ulp, sin 2, logf 1, powf 4.
    narrow = x.astype(np.float32)
    assert np.max(np.abs(e - np.exp(x)) / np.spacing(np.exp(x))) <= 2
    assert np.max(np.abs(s - np.sin(x)) / np.spacing(np.abs(np.sin(x)))) <= 3
    exact = np.log(narrow.astype(np.float64))
    assert np.max(np.abs(log - exact) / np.spacing(np.abs(exact).astype(np.float32))) <= 1.5
    exact = narrow.astype(np.float64) ** 1.5
    assert np.max(np.abs(p - exact) / np.spacing(exact.astype(np.float32))) <= 4.5


@pytest.mark.parametrize(("stride", "sectors"), [(0, 1), (1, 4), (2, 8), (3, 12), (8, 32), (9, 32), (100, 32)])
def test_strided(stride: int, sectors: int) -> None:
    """32 words of 4 bytes, ``stride`` words apart, in sectors of 32 bytes: stride * 4 of them up to stride 8, then one each."""
    x, out = uniform(128 * 100), np.zeros(128, np.float32)
    profile = program("elementwise").launch("strided", 1, 128, [x, Scratch(out), stride])
    assert np.array_equal(out, x[np.arange(128) * stride])
    assert profile.total("global_load_sectors") == 4 * sectors
    assert profile.total("global_load_ideal_sectors") == 4 * min(sectors, 4)
    assert profile.total("global_store_sectors") == profile.total("global_store_ideal_sectors") == 4 * 4
    assert profile.total("excess_sectors") == 4 * max(sectors - 4, 0)


# ---- threads that meet -----------------------------------------------------------------------------------------------


def test_block_sum() -> None:
    x = RNG.integers(-100, 100, 1000).astype(np.float32)  # sums are exact
    out = np.zeros(1, np.float32)
    profile = program("reduction").launch("block_sum", 3, 128, [x, out, 1000])
    assert out[0] == x.sum()
    # Five shuffles of each of 4 warps, five of the first warp again; three blocks.
    assert profile.total("shuffles") == 3 * (4 + 1) * 5


def test_softmax() -> None:
    x = uniform(4, 200) * 5
    out = np.zeros_like(x)
    program("reduction").launch("softmax", 4, 64, [x, Scratch(out), 200])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=2e-6)


def test_compact() -> None:
    x = RNG.integers(-5, 6, 500).astype(np.int32)
    out, count = np.zeros(500, np.int32), np.zeros(1, np.int32)
    profile = program("reduction").launch("compact", 4, 128, [x, Scratch(out), count, 500])
    expected = x[x > 0]
    assert count[0] == expected.size
    assert sorted(out[: count[0]]) == sorted(expected)
    assert profile.total("atomics") == 16  # one thread of each warp


def test_matches() -> None:
    x = RNG.integers(0, 5, 64).astype(np.int32)
    same, total = np.zeros(64, np.uint32), np.zeros(64, np.int32)
    program("reduction").launch("matches", 1, 64, [x, Scratch(same), Scratch(total)])
    for i in range(64):
        warp = x[i // 32 * 32 : i // 32 * 32 + 32]
        assert same[i] == sum(1 << lane for lane in range(32) if warp[lane] == x[i])
        assert total[i] == warp[warp == x[i]].sum()


def test_histogram() -> None:
    x = RNG.integers(0, 64, 1000).astype(np.uint8)
    bins = np.zeros(64, np.uint32)
    program("reduction").launch("histogram", 2, 128, [x, bins, 1000])
    assert np.array_equal(bins, np.bincount(x, minlength=64))


@pytest.mark.parametrize(("distinct", "collisions"), [(1, 31), (2, 30), (32, 0)])
def test_histogram_collisions(distinct: int, collisions: int) -> None:
    x = (np.arange(256) % distinct).astype(np.uint8)
    bins = np.zeros(64, np.uint32)
    profile = program("reduction").launch("histogram", 2, 128, [x, bins, 256])
    assert np.array_equal(bins, np.bincount(x, minlength=64))
    # 8 warps add in shared memory, each lane once; then each of 2 blocks adds 64 bins to 64 words, which are all different.
    assert profile.total("atomic_collisions") == 8 * collisions
    assert profile.total("shared_atomic_requests") == 8
    assert profile.total("global_atomic_requests") == 2 * 2
    assert profile.total("atomics") == 256 + 2 * 64


def test_largest() -> None:
    x = uniform(256) + 2
    out = np.zeros(1, np.float32)
    program("reduction").launch("largest", 2, 128, [x, out])
    assert out[0] == x.max()


# ---- shared memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["transpose_padded", "transpose_conflicts"])
def test_transpose(kernel: str) -> None:
    x = uniform(64, 96)
    out = np.zeros((96, 64), np.float32)
    profile = program("transpose").launch(kernel, (3, 2), (32, 8), [x, Scratch(out), 64, 96])
    assert np.array_equal(out, x.T)
    # 6 blocks of 8 warps, four stores of a row and four loads of a column each.
    stores = loads = 6 * 8 * 4
    assert profile.total("shared_requests") == stores + loads
    assert profile.total("shared_ideal_wavefronts") == stores + loads
    if kernel == "transpose_padded":
        assert profile.bank_conflicts == 0
    else:  # a column's 32 words lie in one bank
        assert profile.bank_conflicts == loads * 31
        source = (SOURCES / "transpose.cu").read_text().splitlines()
        (conflicted,) = [row for row in profile.lines if row["bank_conflicts"]]
        assert (
            conflicted.file == "transpose.cu" and "= tile[threadIdx.x][threadIdx.y + i];" in source[conflicted.line - 1]
        )
    # A row of a tile is 128 bytes on a 128-byte boundary: four sectors, both ways.
    assert profile.total("global_sectors") == profile.total("global_ideal_sectors") == 4 * (loads + stores)


def test_matmul() -> None:
    a, b = uniform(32, 48), uniform(48, 32)
    c = np.zeros((32, 32), np.float32)
    program("matmul").launch("matmul", (2, 2), (16, 16), [a, b, Scratch(c), 32, 32, 48])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-6)


def integers(*shape: int) -> np.ndarray:
    """Small integers as f16: sums of their products are exact."""
    return RNG.integers(-4, 5, shape).astype(np.float16)


def test_matmul_mma() -> None:
    m, n, k = 64, 64, 80
    a, b, c = integers(m, k), integers(k, n), np.zeros((m, n), np.float32)
    profile = program("matmul").launch("matmul_mma", (n // 32, m // 64), 128, [a, b, Scratch(c), n, k])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert profile.total("mma") == (m // 16) * (n // 8) * (k // 16)
    # Rows are padded so that ldmatrix has no conflicts. What cp.async writes has: 8 lanes write 16 bytes each, of the left
    # tile 4 rows of 32 bytes that begin 12 banks apart, of the right tile 2 rows of 64 bytes that begin 20 banks apart; both
    # wrap around into the first row's banks once. 2 blocks, 5 steps, 4 phases, 4 warps for the left tile and 2 for the right.
    conflicts = {
        row.text.partition(".")[0]: row["bank_conflicts"] for row in profile.instructions if row["bank_conflicts"]
    }
    assert set(conflicts) == {"cp"}
    assert profile.bank_conflicts == 2 * 5 * 4 * (4 + 2)


def test_matmul_wmma() -> None:
    a, b, c = integers(32, 48), integers(16, 48), np.zeros((32, 16), np.float32)
    program("matmul").launch("matmul_wmma", (1, 2), 32, [a, b, Scratch(c), 16, 48])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)


def test_attention() -> None:
    q, k, v = uniform(64, 32), uniform(64, 32), uniform(64, 32)
    out = np.zeros((64, 32), np.float32)
    program("attention").launch("attention", 2, 32, [q, k, v, Scratch(out), 64, 0.5])
    np.testing.assert_allclose(out, attention(q, k, v, 0.5), atol=1e-5)


def test_attention_mma() -> None:
    q, k, v = (uniform(64, 32).astype(np.float16) for _ in range(3))
    out = np.zeros((64, 32), np.float32)
    program("attention").launch("attention_mma", 1, 128, [q, k, v, Scratch(out), 64, 0.5])
    np.testing.assert_allclose(out, attention(q, k, v, 0.5), atol=2e-3)  # the weights are rounded to f16


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_call() -> None:
    x = RNG.integers(-5, 6, 50).astype(np.float32)
    out = np.zeros(50, np.float32)
    program("calls").launch("call", 1, 64, [x, Scratch(out), 50])
    for i in range(50):
        head = x[: i % 5]
        assert out[i] == x[i] ** 3 + head.sum() + 2 * (head * head).sum() + i % 5


def test_recursion() -> None:
    out = np.zeros(32, np.int32)
    program("calls").launch("recursion", 1, 32, [Scratch(out)])
    fibonacci = [0, 1]
    while len(fibonacci) < 10:
        fibonacci.append(sum(fibonacci[-2:]))
    assert out.tolist() == [fibonacci[i % 10] for i in range(32)]


def test_indirect() -> None:
    x = RNG.integers(-9, 10, 32).astype(np.float32)
    out = np.zeros(32, np.float32)
    program("calls").launch("indirect", 1, 32, [x, Scratch(out)])
    assert np.array_equal(out[0::3], x[0::3] ** 3)
    assert np.array_equal(out[1::3], x[1::3] + 100)
    assert np.array_equal(out[2::3], -x[2::3])


def test_jump() -> None:
    x = RNG.integers(-2, 12, 64).astype(np.int32)
    out = np.zeros(64, np.int32)
    program("calls").launch("jump", 1, 64, [x, Scratch(out)])
    for i in range(64):
        cases = [i * 3, i - 7, i ^ 0x55, i << 4, i * i, i.bit_count(), 32 - i.bit_length(), -i]
        reverse = int(f"{i:032b}"[::-1], 2)
        cases.append(reverse - 2**32 if reverse >= 2**31 else reverse)
        assert out[i] == (cases[x[i]] if 0 <= x[i] < 9 else -1)


def test_table() -> None:
    x = RNG.integers(0, 4, 32).astype(np.uint32)
    out = np.zeros(32, np.uint32)
    program("calls").launch("table", 1, 32, [x, Scratch(out)])
    assert out.tolist() == [[10, 21, 30, 23][value] for value in x]


def test_print() -> None:
    x = np.array([0.5, -1.25, 3.14159], np.float32)
    profile = program("calls").launch("print", 1, 32, [x, 3])
    assert profile.output == (
        "thread 0:  0.50 even 0 a%\nthread 1: -1.25 odd 123456789ab b%\nthread 2:  3.14 even 2468acf1356 c%\n"
    )


def test_constants() -> None:
    x = np.arange(1, 33, dtype=np.int32)
    out = np.zeros(32)
    program("calls").launch("constants", 1, 32, [x, Scratch(out)])
    weights = [[1, 2, 3], [4, 5, 0]]
    assert out.tolist() == [weights[i % 2][i % 3] * (i + 1) * 0.5 for i in range(32)]


def test_local_array() -> None:
    x = RNG.integers(-100, 100, (16, 8)).astype(np.int32)
    out = np.zeros((16, 8), np.int32)
    program("calls").launch("local_array", 1, 16, [x, Scratch(out)])
    assert np.array_equal(out, [np.roll(np.sort(row), -i) for i, row in enumerate(x)])


# ---- other widths ----------------------------------------------------------------------------------------------------

NARROW = (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)


def test_narrow() -> None:
    x = np.concatenate([uniform(60) * 4, np.array([0.0, -0.0, 448, 460, 1e-3, 2**-9, 3 * 2**-11, 57344], np.float32)])
    n = x.size
    results = [np.zeros(n, dtype) for dtype in NARROW]
    program("conversions").launch("narrow", 1, 96, [x, *map(Scratch, results), n])
    for result, dtype in zip(results, NARROW, strict=True):
        expected = x
        if dtype is ml_dtypes.float8_e4m3fn:  # CUDA's conversion saturates to the largest finite number
            expected = np.clip(x, -448, 448)
        elif dtype is ml_dtypes.float8_e5m2:
            expected = np.clip(x, -57344, 57344)
        assert np.array_equal(result.view(np.uint8), expected.astype(dtype).view(np.uint8)), dtype


def test_widen() -> None:
    x = uniform(64) * 8
    values = [x.astype(dtype) for dtype in NARROW]
    out = np.zeros((64, 4), np.float32)
    program("conversions").launch("widen", 1, 64, [*values, Scratch(out), 64])
    assert np.array_equal(out, np.stack([value.astype(np.float32) for value in values], axis=1))


def test_pairs() -> None:
    x, y = uniform(128).astype(np.float16), uniform(128).astype(np.float16)
    u, v = uniform(128).astype(ml_dtypes.bfloat16), uniform(128).astype(ml_dtypes.bfloat16)
    fused, product = np.zeros(128, np.float16), np.zeros(128, ml_dtypes.bfloat16)
    program("conversions").launch("pairs", 1, 64, [x, y, Scratch(fused), u, v, Scratch(product), 64])
    assert np.array_equal(fused, (x.astype(np.float64) * y + y).astype(np.float16))  # exact in f64, rounded once
    exact = u.astype(np.float32) * v.astype(np.float32)
    assert np.array_equal(product.view(np.uint16), exact.astype(ml_dtypes.bfloat16).view(np.uint16))


def test_integers() -> None:
    x = np.concatenate([uniform(61) * 300, np.array([0.5, 1.5, -2.5], np.float32)])
    nearest, down = np.zeros(64, np.int32), np.zeros(64, np.int32)
    byte, wide = np.zeros(64, np.uint8), np.zeros(64, np.uint64)
    program("conversions").launch("integers", 1, 64, [x, *map(Scratch, (nearest, down, byte, wide)), 64])
    assert np.array_equal(nearest, np.rint(x))
    assert np.array_equal(down, np.floor(x))
    assert np.array_equal(byte, np.clip(x, 0, 255).astype(np.uint8))
    assert np.array_equal(wide, (np.abs(x) * np.float32(1e9)).astype(np.uint64))
