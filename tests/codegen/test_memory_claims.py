"""What docs/memory-model.md says of one program, on native code and on the reference, by literal results."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from weft import dtypes
from weft import target as targets
from weft.codegen import emit_llvm
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options

if TYPE_CHECKING:
    from codegen.conftest import Differential

jit = KernelFunction


@jit
def watched(x: Any, out: Any, n: Any) -> None:
    tl.load(x, volatile=True)
    tl.store(out, tl.load(x, volatile=True) - tl.load(x, volatile=True))
    for _ in range(n):
        tl.load(x, volatile=True)


def test_volatile_loads_happen_as_often_as_the_program_says() -> None:
    """Not removed where the result is unused, not merged where equal, not moved out of a loop: LLVM keeps volatile accesses."""
    pointer = PointerArgument(dtypes.int32)
    module = build_module(watched, {"x": pointer, "out": pointer, "n": ScalarArgument(dtypes.int32)})
    text = emit_llvm(module, targets.host(), Options(disjoint=True))
    program = text[text.index(".program") :]
    before, loop = program.split("\nfor", 1)
    assert (before.count("load atomic volatile i32"), loop.count("load atomic volatile i32")) == (3, 1)


@jit
def counted(x: Any, n: Any, SEM: tl.constexpr) -> None:
    tl.atomic_add(x, 1, sem=SEM)
    tl.atomic_add(x, 1, sem=SEM)
    for _ in range(n):
        tl.atomic_add(x, 1, sem=SEM)
        tl.atomic_max(x + 1, 5, sem=SEM)
    tl.atomic_xor(x + 2, 1, sem=SEM)
    tl.atomic_xor(x + 2, 1, sem=SEM)
    tl.atomic_xor(x + 2, 1, sem=SEM)


@pytest.mark.jit
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_atomics_happen_as_often_as_the_program_says(differ: Differential, sem: str) -> None:
    after = differ(counted, x=np.zeros(3, np.int32), n=np.int32(7), SEM=sem)
    assert after["x"].tolist() == [9, 5, 1]


@jit
def one_address(x: Any, y: Any, N: tl.constexpr) -> None:
    """``x`` and ``y`` are the same array."""
    i = tl.arange(0, N)
    tl.store(x + i, i)
    moved = tl.load(y + N - 1 - i)
    tl.store(x + i, moved * 2)
    tl.store(y + i, tl.load(x + i) + 1)


@pytest.mark.jit
@pytest.mark.parametrize("n", [1, 8, 64, 256])
def test_accesses_to_one_address_keep_their_order(differ: Differential, n: int) -> None:
    """Through whatever argument: the arrays overlap, and the launch has not promised that they do not."""
    x = np.zeros(n, np.int32)
    after = differ(one_address, x=x, y=x, N=n)
    assert after["x"].tolist() == [2 * (n - 1 - i) + 1 for i in range(n)]


@jit
def cached(x: Any, out: Any, LOAD: tl.constexpr, STORE: tl.constexpr, EVICT: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    value = tl.load(x + i, cache_modifier=LOAD, eviction_policy=EVICT)
    tl.store(out + i, value, cache_modifier=STORE, eviction_policy=EVICT)


def test_advice_about_caches_changes_no_code() -> None:
    def code(load: str, store: str, evict: str) -> str:
        constants = {"LOAD": load, "STORE": store, "EVICT": evict, "N": 64}
        arguments = {name: PointerArgument(dtypes.int32) for name in ("x", "out")}
        module = build_module(cached, arguments | {name: ConstantArgument(v) for name, v in constants.items()})
        return emit_llvm(module, targets.host(), Options())

    plain = code("", "", "")
    for load, store, evict in (
        (".ca", ".wb", "evict_first"),
        (".cg", ".cg", "evict_last"),
        (".cs", ".cs", ""),
        (".cv", ".wt", ""),
    ):
        assert code(load, store, evict) == plain


@jit
def loops(x: Any, out: Any, n: Any, KIND: tl.constexpr) -> None:
    i = tl.arange(0, 4)
    total = 0
    if KIND == "scalars":
        for k in range(n):
            total = tl.maximum(total, tl.load(x + k))
    elif KIND == "a sum":
        for k in range(n):
            total += tl.load(x + k)
    elif KIND == "tiles":
        for k in range(n):
            total += k
            tl.store(out + 4 * k + i, total)
    elif KIND == "an atomic":
        for k in range(n):
            tl.atomic_add(out + k, 1)
    elif KIND == "a compare and swap":
        for k in range(n):
            tl.atomic_cas(out + k, 1, 2)
    elif KIND == "a loop":
        for k in range(n):
            for m in range(k):
                total += tl.load(x + m)
    else:
        while total < n:
            total += tl.load(x + total)
    tl.store(out, total)


@pytest.mark.parametrize(
    ("kind", "looks"),
    [
        *[("scalars", 0), ("a sum", 1), ("tiles", 1), ("an atomic", 1)],
        *[("a compare and swap", 1), ("a loop", 1), ("a condition", 1)],
    ],
)
def test_which_loops_look_whether_the_launch_stops(kind: str, looks: int) -> None:
    """At their back edge, by a volatile load: all that may take long. Of two nested loops only the outer has a loop in it, as the
    loop over the parts of a sum has."""
    pointer = PointerArgument(dtypes.int32)
    signature = {"x": pointer, "out": pointer, "n": ScalarArgument(dtypes.int32), "KIND": ConstantArgument(kind)}
    text = emit_llvm(build_module(loops, signature), targets.host(), Options(disjoint=True))
    program = re.search(r"^define internal .*?^}", text, re.MULTILINE | re.DOTALL)
    assert program is not None
    assert program[0].count("load volatile i64") == looks
