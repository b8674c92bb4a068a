"""Orders, scopes and advice that memory accesses do not have, and dtypes that atomics do not take.

See `assert_refused` in conftest for how a case is checked.
"""

# The kernels are wrong on purpose, so lint is not asked about them, and types only for the rest.
# ruff: noqa
# pyright: basic, reportOperatorIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportIndexIssue=false, reportAssignmentType=false
# pyright: reportUnboundVariable=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft.language as tl
from weft.dtypes import bool_, float8_e5m2, float32, int32
from weft.frontend import KernelFunction, PointerArgument

jit = KernelFunction
PTR = PointerArgument(float32)
INTS = PointerArgument(int32)
CASES: list[tuple[KernelFunction, dict[str, Any]]] = []


def refused(message: str, **expected: Any) -> Callable[[Callable[..., Any]], None]:
    """The decorated kernel does not compile."""
    return lambda kernel: CASES.append((KernelFunction(kernel), {"message": message, **expected}))


@refused("'cache_modifier' is one of '.ca', '.cg', '.cs', '.cv', found '.wb'", at='".wb"', p=PTR)
def load_with_a_stores_cache_modifier(p):
    x = tl.load(p, cache_modifier=".wb")


@refused("'cache_modifier' is one of '.wb', '.cg', '.cs', '.wt', found '.ca'", at='".ca"', p=PTR)
def store_with_a_loads_cache_modifier(p):
    tl.store(p, 1.0, cache_modifier=".ca")


@refused("'eviction_policy' is one of 'evict_first', 'evict_last', found 'evict_normal'", at='"evict_normal"', p=PTR)
def load_eviction_policy(p):
    x = tl.load(p, eviction_policy="evict_normal")


@refused("'eviction_policy' is one of 'evict_first', 'evict_last', found 1", at="1", p=PTR)
def store_eviction_policy(p):
    tl.store(p, 2.0, eviction_policy=1)


@refused(
    "'volatile' must be known at compile time, found bool scalar",
    at="b",
    hint="mark the parameter as 'b: tl.constexpr'",
    p=PTR,
    b=bool_,
)
def run_time_volatile(p, b):
    x = tl.load(p, volatile=b)


@refused("'sem' is one of 'relaxed', 'acquire', 'release', 'acq_rel', found 'seq_cst'", at='"seq_cst"', p=PTR)
def order_of_add(p):
    tl.atomic_add(p, 1.0, sem="seq_cst")


@refused("'scope' is one of 'cta', 'gpu', 'sys', found 'cluster'", at='"cluster"', p=PTR)
def scope_of_exchange(p):
    tl.atomic_xchg(p, 1.0, scope="cluster")


@refused("'sem' is one of 'relaxed', 'acquire', 'release', 'acq_rel', found 'strong'", at='"strong"', p=INTS)
def order_of_swap(p):
    tl.atomic_cas(p, 0, 1, sem="strong")


@refused("'scope' is one of 'cta', 'gpu', 'sys', found 'block'", at='"block"', p=INTS)
def scope_of_swap(p):
    tl.atomic_cas(p, 0, 1, "relaxed", "block")


@refused(
    "'sem' must be known at compile time, found int32 scalar",
    at="n",
    hint="mark the parameter as 'n: tl.constexpr'",
    p=INTS,
    n=int32,
)
def run_time_order(p, n):
    tl.atomic_add(p, 1, sem=n)


@refused(
    "tl.atomic_add does not take float8_e5m2", at="p", hint="keep sums in a wider dtype", p=PointerArgument(float8_e5m2)
)
def add_to_float8(p):
    tl.atomic_add(p, 1.0)


@refused("tl.atomic_max does not take bool", at="p", hint="keep it in a wider dtype", p=PointerArgument(bool_))
def greatest_bool(p):
    tl.atomic_max(p, True)


@refused("tl.atomic_xor does not take float32", at="p", hint="keep the value in an integer array", p=PTR)
def xor_of_floats(p):
    tl.atomic_xor(p, 1.0)


@refused(
    "tl.atomic_cas does not take bool", at="p", hint="keep the value in an integer array", p=PointerArgument(bool_)
)
def swap_of_bools(p):
    tl.atomic_cas(p, True, False)


@refused(
    "'cmp' has shape (4,), which does not broadcast to the pointers' ()",
    at="tl.arange(0, 4)",
    hint="give pointers and values the same shape",
    p=INTS,
)
def swap_of_a_tile(p):
    tl.atomic_cas(p, tl.arange(0, 4), 1)


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)
