"""Random numbers by counter: Philox, of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

A number is a function of seed and offset alone, so programs and lanes draw without a state. Four words, the counter, are
encrypted with two words of key, the seed, in rounds of two multiplications. Integers and uniform numbers are bit for bit
those of Triton; normal ones differ as far as log, sqrt, sin and cos do.
"""

from __future__ import annotations

from weft.dtypes import int32, int64, uint32, uint64
from weft.language.compiletime import static_assert, static_range, to_tensor
from weft.language.core import Tile, composite, constexpr, tensor
from weft.language.elementwise import cos, log, maximum, sin, sqrt, umulhi, where

Four = tuple[tensor, tensor, tensor, tensor]

N_ROUNDS_DEFAULT = constexpr(10)

# For words of 32 bits, and of 64 (the paper's table 2).
KEY_A = constexpr((0x9E3779B9, 0x9E3779B97F4A7C15))
KEY_B = constexpr((0xBB67AE85, 0xBB67AE8584CAA73B))
ROUND_A = constexpr((0xD2511F53, 0xD2E7470EE14C6C93))
ROUND_B = constexpr((0xCD9E8D57, 0xCA5A826395121157))
UNIT = constexpr((4.6566127342e-10, 1.0842020432385337e-19))
"""Triton's scales: the greatest signed word times this, rounded, is below 1."""


@composite
def philox_impl(
    c0: tensor, c1: tensor, c2: tensor, c3: tensor, k0: tensor, k1: tensor, n_rounds: int | constexpr = N_ROUNDS_DEFAULT
) -> Four:
    """The counter ``c0`` to ``c3`` encrypted with the key ``k0``, ``k1``; all uint32, or all uint64."""
    static_assert(c0.dtype in (uint32, uint64), "philox_impl takes uint32 or uint64")
    wide: constexpr = c0.dtype == uint64
    a: constexpr = ROUND_A[wide]
    b: constexpr = ROUND_B[wide]
    for _ in static_range(n_rounds):
        c0, c1, c2, c3 = umulhi(b, c2) ^ c1 ^ k0, c2 * b, umulhi(a, c0) ^ c3 ^ k1, c0 * a
        k0 += KEY_A[wide]
        k1 += KEY_B[wide]
    return c0, c1, c2, c3


@composite
def philox(seed: Tile, c0: Tile, c1: Tile, c2: Tile, c3: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> Four:
    """Four random words for each counter: uint32 for integers of 32 bits, uint64 for those of 64. The seed is an integer."""
    key = to_tensor(seed)
    static_assert(key.dtype.is_int(), "the seed is an integer")
    key = key.to(uint64)
    first = to_tensor(c0)
    bits: constexpr = first.dtype.primitive_bitwidth
    static_assert(first.dtype.is_int() and bits in (32, 64), "philox takes counters of 32 or 64 bits")
    word = uint64 if bits == 64 else uint32
    w0, w1 = first.to(word, bitcast=True), to_tensor(c1).to(word, bitcast=True)
    w2, w3 = to_tensor(c2).to(word, bitcast=True), to_tensor(c3).to(word, bitcast=True)
    upper = key * 0 if bits == 64 else key >> 32
    return philox_impl(w0, w1, w2, w3, key.to(word), upper.to(word), n_rounds)


@composite
def randint4x(seed: Tile, offset: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> Four:
    """Four tiles of random uint32, for a scalar seed and integer offsets: four times the numbers of `randint` for its price."""
    at = to_tensor(offset)
    low = at.to(uint32)
    zero = low * 0
    high = (at >> 32).to(uint32) if at.dtype.primitive_bitwidth > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


@composite
def randint(seed: Tile, offset: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> tensor:
    """A tile of random uint32, for a scalar seed and integer offsets."""
    first, _, _, _ = randint4x(seed, offset, n_rounds)
    return first


@composite
def uint_to_uniform_float(x: tensor) -> tensor:
    """Words of 32 or 64 random bits as float32 between 0 and 1: 1 excluded, but not 0."""
    bits: constexpr = x.dtype.primitive_bitwidth
    static_assert(x.dtype.is_int() and bits in (32, 64), "uniform numbers are made of words of 32 or 64 bits")
    signed = x.to(int64 if bits == 64 else int32, bitcast=True)
    return where(signed < 0, ~signed, signed) * UNIT[bits == 64]


@composite
def rand(seed: Tile, offset: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> tensor:
    """A tile of random float32, uniform between 0 and 1, for a scalar seed and integer offsets."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@composite
def rand4x(seed: Tile, offsets: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> Four:
    """Four tiles of random float32, uniform between 0 and 1, from the one encryption that `rand` takes for one."""
    i1, i2, i3, i4 = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(i1),
        uint_to_uniform_float(i2),
        uint_to_uniform_float(i3),
        uint_to_uniform_float(i4),
    )


@composite
def pair_uniform_to_normal(u1: tensor, u2: tensor) -> tuple[tensor, tensor]:
    """Two independent standard normal numbers of two uniform ones: Box and Muller's transformation, ``u1`` from 1e-7 on."""
    angle = 6.283185307179586 * u2
    radius = sqrt(-2.0 * log(maximum(1.0e-7, u1)))
    return radius * cos(angle), radius * sin(angle)


@composite
def randn(seed: Tile, offset: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> tensor:
    """A tile of random float32 of the standard normal distribution, for a scalar seed and integer offsets."""
    i1, i2, _, _ = randint4x(seed, offset, n_rounds)
    n1, _ = pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))
    return n1


@composite
def randn4x(seed: Tile, offset: Tile, n_rounds: int | constexpr = N_ROUNDS_DEFAULT) -> Four:
    """Four tiles of random float32 of the standard normal distribution."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4
