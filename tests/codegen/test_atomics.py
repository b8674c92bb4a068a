"""Read-modify-write ops of every type that has them: memory afterwards and the old values.

Native code is compared with the reference interpreter, and both with Python's own min, max, and, or, xor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from sampling import every
from weft import dtypes
from weft.codegen.nvidia.atomics import instruction_for
from weft.dtypes import DType
from weft.frontend import KernelFunction
from weft.ir.unsupported import UnsupportedOpError
from weft.target import GpuTarget

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit
jit = KernelFunction

MEANING: Mapping[str, Callable[[Any, Any], Any]] = {
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
INTEGERS = [d for d in dtypes.ALL if not d.is_float and not d.is_bool]
FLOATS = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
CASES = [(kind, dtype) for kind in MEANING for dtype in (*INTEGERS, *(FLOATS if kind in ("max", "min") else ()))]
N, SIZE = 32, 8


@jit
def atomic(p: Any, value: Any, mask: Any, KIND: tl.constexpr) -> Any:
    if KIND == "max":
        return tl.atomic_max(p, value, mask=mask, sem="relaxed")
    if KIND == "min":
        return tl.atomic_min(p, value, mask=mask, sem="relaxed")
    if KIND == "and":
        return tl.atomic_and(p, value, mask=mask, sem="relaxed")
    if KIND == "or":
        return tl.atomic_or(p, value, mask=mask, sem="relaxed")
    return tl.atomic_xor(p, value, mask=mask, sem="relaxed")


@jit
def update(x: Any, at: Any, values: Any, own: Any, old: Any, n: Any, KIND: tl.constexpr, N: tl.constexpr) -> None:
    """On ``x`` at addresses that meet; on ``own`` at addresses that do not, with the old values in ``old``, then through one
    pointer."""
    i = tl.arange(0, N)
    value = tl.load(values + i)
    atomic(x + tl.load(at + i), value, i < n, KIND)
    before = atomic(own + i, value, i != n, KIND)
    tl.store(old + i, before, mask=i != n)
    tl.store(old + n, atomic(own + n, tl.load(values), n >= 0, KIND))
    atomic(own, tl.load(values + 1), n < 0, KIND)


def drawn(dtype: DType, size: int) -> Any:
    """Numbers of the type's whole range, both ends included; floats of both signs without zeros and NaN."""
    random = np.random.default_rng(dtype.bits)
    if dtype.is_float:
        result = (random.uniform(0.5, 4.0, size) * random.choice([-1.0, 1.0], size)).astype(dtype.numpy)
        result[:2] = np.array([np.inf, -np.inf], dtype.numpy)
        return result
    result = random.integers(dtype.min, dtype.max, size, dtype.numpy, endpoint=True)
    result[:2] = [dtype.min, dtype.max]
    return result


@pytest.mark.parametrize("case", every(2, CASES), ids=lambda case: f"{case[0]}-{case[1]}")
def test_what_memory_holds_afterwards(differ: Differential, case: tuple[str, DType]) -> None:
    kind, dtype = case
    n = 20
    x, own, values = drawn(dtype, SIZE), drawn(dtype, N)[::-1].copy(), drawn(dtype, N)
    at = np.random.default_rng(1).integers(0, SIZE, N).astype(np.int32)
    arguments: dict[str, Any] = {"x": x, "at": at, "values": values, "own": own, "old": np.zeros_like(own)}
    if dtype.bits < differ.least_atomic_bits:
        with pytest.raises(UnsupportedOpError, match=f"^tile.atomic_rmw has no instruction for {dtype} on sm_"):
            differ(update, promises=[True], **arguments, n=np.int32(n), KIND=kind, N=N)
        return
    after = differ(update, promises=[True], **arguments, n=np.int32(n), KIND=kind, N=N)

    combine = MEANING[kind]
    numbers = {name: array.tolist() for name, array in arguments.items()}
    old = list(numbers["own"])
    for i in range(N):
        if i < n:
            numbers["x"][at[i]] = combine(numbers["x"][at[i]], numbers["values"][i])
        if i != n:
            numbers["own"][i] = combine(old[i], numbers["values"][i])
    numbers["own"][n] = combine(old[n], numbers["values"][0])
    found = {name: after[name].tolist() for name in ("x", "own", "old")}
    assert found == {"x": numbers["x"], "own": numbers["own"], "old": old}
    assert numbers["own"] != old


@jit
def swap(x: Any, at: Any, expected: Any, values: Any, old: Any, N: tl.constexpr) -> None:
    """At addresses of their own in any order, then at consecutive ones."""
    i = tl.arange(0, N)
    where = x + tl.load(at + i)
    tl.store(old + i, tl.atomic_cas(where, tl.load(expected + i), tl.load(values + i), sem="relaxed"))
    tl.store(old + N + i, tl.atomic_cas(x + i, tl.load(expected + i), tl.load(values + i), sem="relaxed"))


@pytest.mark.parametrize("n", [1, 4, 16, 64])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64"])
def test_swaps_of_tiles(differ: Differential, dtype: str, n: int) -> None:
    random = np.random.default_rng(n)
    x = random.integers(0, 3, n).astype(dtype)
    at = random.permutation(n).astype(np.int32)
    expected, values = random.integers(0, 3, n).astype(dtype), random.integers(5, 9, n).astype(dtype)
    after = differ(swap, promises=[True], x=x, at=at, expected=expected, values=values, old=np.zeros(2 * n, dtype), N=n)
    first = x.copy()
    first[at] = np.where(x[at] == expected, values, x[at])
    assert after["old"].tolist() == [*x[at].tolist(), *first.tolist()]
    assert after["x"].tolist() == np.where(first == expected, values, first).tolist()


@jit
def add_loaded(
    x: Any, at: Any, values: Any, own: Any, n: Any, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr
) -> None:
    """What is added has been loaded: before its array changes, under a mask, in another order of the elements, or at a loaded
    index."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    i = rows * N + columns
    if HOW == "changed":
        value = tl.load(own + i)
        tl.store(own + i, value + 100)
    elif HOW == "masked":
        value = tl.load(values + i, mask=i % 3 != n, other=50)
    elif HOW == "turned":
        value = tl.trans(tl.load(values + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]))
    elif HOW == "parted":
        value = tl.reshape(tl.load(values + tl.arange(0, M * N)), (M, N))
    elif HOW == "rows":
        value = tl.broadcast_to(tl.load(values + columns), (M, N))
    elif HOW == "columns":
        value = tl.broadcast_to(tl.load(values + tl.load(at + rows)), (M, N))
    else:
        value = tl.load(values + tl.load(at + i))
    tl.atomic_add(x + tl.load(at + i), value, sem="relaxed")


@pytest.mark.parametrize("size", [(1, 16), (4, 16), (64, 8), (4, 32)], ids=str)
@pytest.mark.parametrize("how", ["changed", "masked", "turned", "parted", "rows", "columns", "indexed"])
def test_what_was_loaded_is_added_where_places_meet(differ: Differential, how: str, size: tuple[int, int]) -> None:
    m, n = size
    random = np.random.default_rng(m)
    at, values, own = (random.integers(0, 16, m * n).astype(np.int32) for _ in range(3))
    arguments: dict[str, Any] = {"x": np.zeros(16, np.int32), "at": at, "values": values, "own": own, "n": np.int32(1)}
    after = differ(add_loaded, promises=[True], **arguments, HOW=how, M=m, N=n)
    added = {
        "changed": own,
        "masked": np.where(np.arange(m * n) % 3 != 1, values, 50),
        "turned": values.reshape(n, m).T.ravel(),
        "parted": values,
        "rows": np.tile(values[:n], m),
        "columns": np.repeat(values[at[:m]], n),
        "indexed": values[at],
    }[how]
    assert after["x"].tolist() == np.bincount(at, added, 16).tolist()


@jit
def add_rows(x: Any, at: Any, values: Any, old: Any, columns: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """Rows of consecutive addresses, some of them cut off, some of them the same; and one number for each row."""
    rows, inside = tl.arange(0, M), tl.arange(0, N)[None, :]
    where = x + tl.load(at + rows)[:, None] * N + inside
    tl.store(old + rows[:, None] * N + inside, tl.load(x + inside) + tl.zeros((M, N), tl.int32))
    tl.atomic_add(where, tl.load(values + rows[:, None] * N + inside), mask=inside < (columns - rows % 2)[:, None])
    tl.atomic_add(x + rows * 2, tl.load(values + rows))


@pytest.mark.parametrize("m", [1, 2, 8, 32])
@pytest.mark.parametrize("n", [2, 4, 8, 16, 64])
def test_rows_that_meet(differ: Differential, m: int, n: int) -> None:
    random = np.random.default_rng(m * n)
    x, values = random.integers(0, 99, m * n).astype(np.int32), random.integers(0, 99, m * n).astype(np.int32)
    at = random.integers(0, (m + 1) // 2, m).astype(np.int32)
    columns = np.int32(max(1, n - 3))
    old = np.zeros(m * n, np.int32)
    after = differ(add_rows, promises=[True], x=x, at=at, values=values, old=old, columns=columns, M=m, N=n)
    expected = x.reshape(m, n).copy()
    for row, place in enumerate(at):
        expected[place, : columns - row % 2] += values.reshape(m, n)[row, : columns - row % 2]
    flat = expected.reshape(-1)
    flat[: 2 * m : 2] += values[:m]
    assert after["x"].tolist() == flat.tolist()


def test_the_types_are_those_of_the_ops() -> None:
    """int1 has no atomics, float8 has exchanges alone; every other type is among the cases."""
    left = {d for d in dtypes.ALL if ("max", d) not in CASES}
    assert left == {dtypes.bool_, dtypes.float8_e4m3fn, dtypes.float8_e5m2}


TABLE = {
    "add": {
        "int32": "add.u32",
        "int64": "add.u64",
        "uint32": "add.u32",
        "uint64": "add.u64",
        "float32": "add.f32",
        "float64": "add.f64",
        "float16": "add.noftz.f16",
        "bfloat16": "add.noftz.bf16",
    },
    "min": {"int32": "min.s32", "int64": "min.s64", "uint32": "min.u32", "uint64": "min.u64"},
    "max": {"int32": "max.s32", "int64": "max.s64", "uint32": "max.u32", "uint64": "max.u64"},
    "xchg": {
        "int32": "exch.b32",
        "int64": "exch.b64",
        "uint32": "exch.b32",
        "uint64": "exch.b64",
        "float32": "exch.b32",
        "float64": "exch.b64",
    },
    **{
        kind: {f"{sign}int{bits}": f"{kind}.b{bits}" for sign in ("", "u") for bits in (32, 64)}
        for kind in ("and", "or", "xor")
    },
}
"""Instructions of the PTX ISA, "atom", by kind and type; a loop does what is not here. bfloat16 sums are from sm_90 on."""


@pytest.mark.parametrize("kind", TABLE)
def test_every_instruction_that_there_is_is_used(kind: str) -> None:
    for dtype in dtypes.ALL:
        if kind in ("and", "or", "xor") and dtype.is_float:
            continue
        name = TABLE[kind].get(dtype.name)
        expected = None if name is None else f".{name}"
        assert instruction_for(kind, dtype, GpuTarget(90)) == expected, dtype
        assert instruction_for(kind, dtype, GpuTarget(80)) == (None if dtype == dtypes.bfloat16 else expected), dtype
