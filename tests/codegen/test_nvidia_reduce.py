"""Reductions on GPUs by instructions: ``redux.sync`` over all lanes, and pairs of narrow floats."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.jit


@weft.jit
def reduced(x: Any, out: Any, KIND: tl.constexpr, SIZE: tl.constexpr) -> None:
    values = tl.load(x + tl.arange(0, SIZE))
    if KIND == "sum":
        result = tl.sum(values, axis=0, dtype=values.dtype)
    elif KIND == "max":
        result = tl.max(values, axis=0)
    elif KIND == "min":
        result = tl.min(values, axis=0)
    elif KIND == "and":
        result = tl.reduce(values, 0, conjunction)
    elif KIND == "or":
        result = tl.reduce(values, 0, disjunction)
    else:
        result = tl.xor_sum(values, axis=0)
    tl.store(out, result)


@weft.jit
def conjunction(a: Any, b: Any) -> Any:
    return a & b


@weft.jit
def disjunction(a: Any, b: Any) -> Any:
    return a | b


ORACLES: dict[str, Any] = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


WORDS = (np.int32, np.uint32)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, dtype) for kind in ORACLES for dtype in WORDS), ("sum", np.int8), ("xor", np.uint16)],
    ids=lambda p: p if isinstance(p, str) else p.__name__,
)
def test_integers_of_all_lanes_by_one_instruction(kind: str, dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, 256, dtype, endpoint=True)
    if kind == "and":
        x |= info.max ^ 3
    out = np.zeros(1, dtype)
    ptx = reduced.compile(x, out, KIND=kind, SIZE=256, target="sm_80").ptx
    found = re.findall(r"redux\.sync\.(\w+\.\w+)", ptx)
    if dtype in WORDS:
        type_ = "b32" if kind in ("and", "or", "xor") else ("s32" if kind == "sum" or info.min else "u32")
        assert found == [f"{'add' if kind == 'sum' else kind}.{type_}"]
        assert "shfl" not in ptx
    reduced.on("sm_80")[(1,)](x, out, KIND=kind, SIZE=256)
    assert out[0] == ORACLES[kind].reduce(x, dtype=dtype)


def test_floats_and_wide_integers_are_shuffled() -> None:
    for dtype in (np.float32, np.int64):
        ptx = reduced.compile(np.ones(256, dtype), np.zeros(1, dtype), KIND="sum", SIZE=256, target="sm_80").ptx
        assert "redux" not in ptx
        assert "shfl" in ptx


@pytest.mark.parametrize(("dtype", "name"), [(np.float16, "f16x2"), (ml_dtypes.bfloat16, "bf16x2")], ids=str)
def test_narrow_floats_are_added_and_shuffled_in_pairs(dtype: Any, name: str) -> None:
    """16 elements of each thread in 8 words: 4 + 2 + 1 sums of pairs, and one of both halves of the last word."""
    x = np.random.default_rng(1).integers(-4, 5, 2048).astype(dtype)
    out = np.zeros(1, dtype)
    ptx = reduced.compile(x, out, KIND="sum", SIZE=2048, target="sm_90").ptx
    before = ptx[: ptx.index("shfl")]
    assert len(re.findall(rf"\badd\.(?:rn\.)?{name}\b", before)) == 7
    assert "cvt.f32" not in ptx
    reduced.on("sm_90")[(1,)](x, out, KIND="sum", SIZE=2048)
    assert out[0] == x.astype(np.float64).sum()


@weft.jit
def first(a: Any, b: Any) -> Any:
    return a


@weft.jit
def lower(a: Any, b: Any) -> Any:
    """Of two zeros either, and PTX has no instruction for float64."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@weft.jit
def chosen(x: Any, out: Any, FIRST: tl.constexpr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr) -> None:
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(x + at)
    kept = tl.reduce(values, AXIS, first) if FIRST else tl.reduce(values, AXIS, lower)
    tl.store(out + at, tl.broadcast_to(tl.expand_dims(kept, AXIS), (M, N)))


@pytest.mark.parametrize("axis", [0, 1])
def test_all_copies_of_what_a_function_that_does_not_commute_gives_are_equal(axis: int) -> None:
    """Which element it takes is open, but all threads that hold the result must have the same: rows, and zeros of both signs."""
    zeros = np.where(np.random.default_rng(0).integers(0, 2, (8, 64)), 0.0, -0.0)
    for kind, x in ((True, np.arange(8.0 * 64).reshape(8, 64)), (False, zeros)):
        out = np.ones_like(x)
        chosen.on("sm_90")[(1,)](x, out, FIRST=kind, AXIS=axis, M=8, N=64)
        found = out.view(np.int64).take([0], axis)
        np.testing.assert_array_equal(out.view(np.int64), np.broadcast_to(found, out.shape))
        assert (found == x.view(np.int64)).any(axis).all()


@weft.jit
def places(x: Any, high: Any, at: Any, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr) -> None:
    values = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    best, place = tl.max(values, AXIS, return_indices=True)
    kept = tl.arange(0, M if AXIS else N)
    tl.store(high + kept, best)
    tl.store(at + kept, place)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_values_and_places_of_several_widths_travel_together(axis: int, dtype: Any) -> None:
    """Of equal ones the first, across registers, lanes and warps; NumPy's argmax."""
    x = np.random.default_rng(1).integers(-5, 5, (2, 512) if axis else (512, 2)).astype(dtype)
    kept = x.shape[1 - axis]
    high, at = np.zeros(kept, dtype), np.zeros(kept, np.int32)
    places.on("sm_80")[(1,)](x, high, at, AXIS=axis, M=len(x), N=x.size // len(x))
    np.testing.assert_array_equal(high, x.max(axis))
    np.testing.assert_array_equal(at, x.argmax(axis))
