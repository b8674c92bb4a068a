"""Random numbers against Philox by Python's integers, the authors' known answers, and NumPy's Philox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from sampling import grid
from weft.frontend.errors import CompilationError

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_90")
SIZE: Final = 64

# For words of 32 and of 64 bits: both multipliers, both additions to the key (Random123, philox.h).
MULTIPLIERS: Final = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
ADDED: Final = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}

KNOWN: Final = {
    32: [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
}
"""Counter, key, result after 10 rounds: Random123's file of known answers, philox4x32."""


def philox(counter: Sequence[int], key: Sequence[int], bits: int, rounds: int = 10) -> tuple[int, ...]:
    """The paper's definition (section 3.3, figure 2)."""
    c, (k0, k1), word = tuple(counter), key, 1 << bits
    for _ in range(rounds):
        upper0, lower0 = divmod(MULTIPLIERS[bits][0] * c[0], word)
        upper1, lower1 = divmod(MULTIPLIERS[bits][1] * c[2], word)
        c = (upper1 ^ c[1] ^ k0, lower1, upper0 ^ c[3] ^ k1, lower0)
        k0, k1 = (k0 + ADDED[bits][0]) % word, (k1 + ADDED[bits][1]) % word
    return c


@weft.jit
def store_all(out: Any, tiles: Any, first: tl.constexpr, B: tl.constexpr) -> None:
    for k in tl.static_range(len(tiles)):
        tl.store(out + (first + k) * B + tl.arange(0, B), tiles[k])


@weft.jit
def encrypt(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, out: Any, R: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    a, b, c, d = tl.philox_impl(
        tl.load(c0 + i), tl.load(c1 + i), tl.load(c2 + i), tl.load(c3 + i), tl.load(k0 + i), tl.load(k1 + i), R
    )
    store_all(out, (a, b, c, d), 0, B)


def encrypted(words: NDArray[Any], target: str | None, rounds: int = 10) -> NDArray[Any]:
    """The results, one for each column, of counters (rows 0 to 3) and keys (rows 4 and 5)."""
    rows = [np.ascontiguousarray(row) for row in words]
    out = np.zeros(4 * words.shape[1], words.dtype)
    on(encrypt, target)[(1,)](*rows, out, rounds, words.shape[1])
    return out.reshape(4, -1)


@pytest.mark.parametrize("target", TARGETS)
def test_known_answers(target: str | None) -> None:
    cases = [*KNOWN[32], KNOWN[32][2]]
    words = np.array([[*counter, *key] for counter, key, _ in cases], np.uint32).T
    assert encrypted(words, target).T.tolist() == [list(result) for _, _, result in cases]


@pytest.mark.parametrize("rounds", [1, 7, 10])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("target", TARGETS)
def test_by_definition(bits: int, rounds: int, target: str | None) -> None:
    words = np.random.default_rng(bits).integers(0, 1 << bits, (6, 16), np.uint64).astype(f"uint{bits}")
    words[:, 0], words[:, 1] = 0, -1 % (1 << bits)
    expected = [philox(list(map(int, w[:4])), list(map(int, w[4:])), bits, rounds) for w in words.T]
    assert encrypted(words, target, rounds).T.tolist() == [list(result) for result in expected]


def test_words_of_64_bits_are_numpys() -> None:
    """NumPy counts before it draws."""
    words = np.array([5, 1 << 63, 7, 123456789, 0xA4093822299F31D0, 42], np.uint64)
    before = words[:4] - np.array([1, 0, 0, 0], np.uint64)
    drawn = np.random.Philox(counter=before, key=words[4:]).random_raw(4)
    assert encrypted(words[:, None], None)[:, 0].tolist() == drawn.tolist()


@weft.jit
def draw(offsets: Any, seed: Any, words: Any, floats: Any, B: tl.constexpr) -> None:
    at = tl.load(offsets + tl.arange(0, B))
    store_all(words, tl.randint4x(seed, at) + (tl.randint(seed, at),), 0, B)
    store_all(floats, tl.rand4x(seed, at) + (tl.rand(seed, at),), 0, B)
    store_all(floats, tl.randn4x(seed, at) + (tl.randn(seed, at),), 5, B)


def uniform(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Of Triton: 31 bits, negative words complemented, times the float32 nearest to 4.6566127342e-10."""
    signed = words.view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


FORMS: Final = [(np.int32, None), (np.int64, "sm_90"), (np.uint64, None), (np.uint32, "sm_80")]
"""A type of the offsets, and where the kernel runs."""


@pytest.mark.parametrize(("seed", "form"), grid(3, [0, 1234, -3, (1 << 40) + 5, (1 << 63) + 1], FORMS), ids=str)
def test_numbers_of_a_seed(seed: int, form: tuple[type[np.integer[Any]], str | None]) -> None:
    dtype, target = form
    offsets = np.random.default_rng(0).integers(0, 1 << 62, SIZE).astype(dtype)
    words, floats = np.zeros((5, SIZE), np.uint32), np.zeros((10, SIZE), np.float32)
    on(draw, target)[(1,)](offsets, seed, words, floats, SIZE)
    wide = offsets.astype(np.uint64)
    key = (seed % (1 << 32), seed % (1 << 64) >> 32)
    upper = (wide >> np.uint64(32)) if offsets.itemsize == 8 else np.zeros_like(wide)
    expected = np.array(
        [philox((int(low) % (1 << 32), int(high), 0, 0), key, 32) for low, high in zip(wide, upper, strict=True)],
        np.uint32,
    ).T
    assert np.array_equal(words, expected[[0, 1, 2, 3, 0]])
    assert np.array_equal(floats[:5], uniform(expected)[[0, 1, 2, 3, 0]])
    u = uniform(expected).astype(np.float64)
    radius, angle = np.sqrt(-2 * np.log(np.maximum(1e-7, u[[0, 2]]))), 2 * np.pi * u[[1, 3]]
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(4, -1)
    assert np.abs(floats[5:] - normal[[0, 1, 2, 3, 0]]).max() < 4e-6


def test_uniform_words_of_64_bits() -> None:
    @weft.jit
    def convert(x: Any, out: Any, B: tl.constexpr) -> None:
        i = tl.arange(0, B)
        tl.store(out + i, tl.uint_to_uniform_float(tl.load(x + i)))

    x = np.array([0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 62, 3 << 61, 12345], np.uint64)
    out = np.zeros(8, np.float32)
    convert[(1,)](x, out, 8)
    signed = x.view(np.int64)
    exact = np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(1.0842020432385337e-19)
    assert out.tolist() == exact.tolist()
    assert (out >= 0).all() and (out < 1).all()


def test_moments() -> None:
    @weft.jit
    def fill(uniforms: Any, normals: Any, seed: Any, B: tl.constexpr) -> None:
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(uniforms + i, tl.rand(seed, i))
        tl.store(normals + i, tl.randn(seed, i))

    n = 1 << 18
    uniforms, normals = np.zeros(n, np.float32), np.zeros(n, np.float32)
    fill[(n // 1024,)](uniforms, normals, 7, 1024)
    deviation = n**-0.5  # of a mean, in units of one number's
    assert abs(uniforms.mean(dtype=np.float64) - 0.5) < 4 * deviation / 12**0.5
    assert abs(normals.mean(dtype=np.float64)) < 4 * deviation
    assert abs((normals.astype(np.float64) ** 2).mean() - 1) < 4 * deviation * 2**0.5


def test_the_semantics_of_the_caller_change_nothing() -> None:
    @weft.jit(semantics="jax")
    def jax(out: Any, B: tl.constexpr) -> None:
        i = tl.arange(0, B)
        tl.store(out + i, tl.rand(3, i))

    @weft.jit
    def triton(out: Any, B: tl.constexpr) -> None:
        i = tl.arange(0, B)
        tl.store(out + i, tl.random.rand(3, i))

    outs = np.zeros((2, 16), np.float32)
    jax[(1,)](outs[0], 16)
    triton[(1,)](outs[1], 16)
    assert np.array_equal(outs[0], outs[1])
    assert len(set(outs[0].tolist())) == 16


@pytest.mark.parametrize("function", ["rand", "randn", "randint", "rand4x", "randn4x", "randint4x"])
def test_every_function_takes_the_number_of_rounds(function: str) -> None:
    @weft.jit
    def kernel(out: Any, F: tl.constexpr, R: tl.constexpr) -> None:
        numbers = F(1, tl.arange(0, 16), R)
        tl.store(out + tl.arange(0, 16), numbers if F in (tl.rand, tl.randn, tl.randint) else numbers[3])

    outs = np.zeros((3, 16))
    for out, rounds in zip(outs, (7, 10, 7), strict=True):
        kernel[(1,)](out, getattr(tl, function), rounds)
    assert np.array_equal(outs[0], outs[2])
    assert not np.array_equal(outs[0], outs[1])


@weft.jit
def float_seed(out: Any) -> None:
    tl.store(out, tl.rand(1.5, 0))


@weft.jit
def narrow_words(out: Any) -> None:
    tl.store(out, tl.uint_to_uniform_float(tl.full((), 1, tl.int8)))


@weft.jit
def narrow_counter(out: Any) -> None:
    tl.store(out, tl.philox(1, tl.full((), 1, tl.int16), 0, 0, 0)[0])


@weft.jit
def wrong_words(out: Any) -> None:
    x = tl.full((), 1, tl.int32)
    tl.store(out, tl.philox_impl(x, x, x, x, x, x)[0])


@weft.jit
def rounds_at_run_time(out: Any, n: Any) -> None:
    tl.store(out, tl.rand(1, 0, n))


@weft.jit
def narrow_product(out: Any) -> None:
    tl.store(out, tl.umulhi(tl.full((), 1, tl.int8), 3))


@weft.jit
def float_product(out: Any) -> None:
    tl.store(out, tl.umulhi(1.5, tl.full((), 1, tl.float32)))


@pytest.mark.parametrize(
    ("kernel", "message", "hint"),
    [
        (float_seed, "tl.rand: the seed is an integer", None),
        (narrow_words, "tl.uint_to_uniform_float: uniform numbers are made of words of 32 or 64 bits", None),
        (narrow_counter, "tl.philox: philox takes counters of 32 or 64 bits", None),
        (wrong_words, "tl.philox_impl: philox_impl takes uint32 or uint64", None),
        (
            narrow_product,
            "tl.umulhi takes integers of 32 or 64 bits, found int8",
            "multiply narrower integers after .to(tl.uint32), and shift",
        ),
        (float_product, "tl.umulhi takes integers of 32 or 64 bits, found float32", None),
    ],
)
def test_errors_name_the_call(kernel: Any, message: str, hint: str | None) -> None:
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](np.zeros(1, np.float32))
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert [(span.file, span.function) for span in caught.value.spans] == [(__file__, kernel.__name__)]


def test_rounds_are_known_at_compile_time() -> None:
    with pytest.raises(CompilationError) as caught:
        rounds_at_run_time[(1,)](np.zeros(1, np.float32), 7)
    assert caught.value.message == "the parameter 'n_rounds' of tl.rand is constexpr, found int32 scalar"


def test_outside_a_kernel() -> None:
    with pytest.raises(tl.OutsideKernelError) as caught:
        tl.rand(1, 2)
    assert str(caught.value) == (
        "tl.rand only has a meaning inside a kernel: call it in a function decorated with @weft.jit, "
        "and launch that as kernel[grid](...)"
    )


def test_a_profile_names_the_line_of_the_call() -> None:
    @weft.jit
    def fill(out: Any, B: tl.constexpr) -> None:
        i = tl.arange(0, B)
        tl.store(out + i, tl.randint(1, i))

    profile = fill.profile("sm_90")[(1,)](np.zeros(32, np.uint32), 32)
    files = {line.file for line in profile.lines}
    assert files == {__file__}
