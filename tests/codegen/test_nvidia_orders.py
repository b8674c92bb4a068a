"""How PTX spells each access to global memory: its order, its scope, its advice to caches, its width.

The emulator runs threads in one order, so that no result shows a weaker one. Names are those of the PTX ISA: "ld", "st", "atom".
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from laid_out import Laid
from weft import dtypes
from weft.ir import tile
from weft.ir.types import pointer
from weft.layout import LinearLayout
from weft.target import GpuTarget

pytestmark = pytest.mark.jit
N = 128
"""One element for each thread."""


@weft.jit
def waits(x: Any, out: Any, flag: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tile = tl.load(x + i, volatile=True)
    one = tl.load(flag, volatile=True)
    tl.store(out + i, tile + one)
    tl.store(flag, one + 1)


@weft.jit
def updates(x: Any, out: Any, SEM: tl.constexpr, SCOPE: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.atomic_add(x + i, 1, sem=SEM, scope=SCOPE))
    tl.atomic_cas(x + N, 1, 2, sem=SEM, scope=SCOPE)


@weft.jit
def advised(x: Any, out: Any, LOAD: tl.constexpr, STORE: tl.constexpr, EVICT: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    value = tl.load(x + i, cache_modifier=LOAD, eviction_policy=EVICT)
    tl.store(out + i, value, cache_modifier=STORE, eviction_policy=EVICT)


def accesses(kernel: Any, *arguments: Any, **constants: Any) -> list[str]:
    """The instructions of the kernel's PTX that access global memory."""
    return spelled(kernel.compile(*arguments, **constants, target="sm_90").ptx)


def spelled(ptx: str) -> list[str]:
    """The instructions of PTX that access global memory."""
    return re.findall(r"\b((?:ld|st|atom|red)[\w.:]*\.global[\w.:]*)", ptx)


def test_a_tile_that_releases_does_so_element_by_element() -> None:
    """No kernel has such a store: flags are single elements. Tile IR does."""
    layout = LinearLayout.from_columns({"register": (1, 2), "lane": (4, 8, 16, 32, 64), "warp": ()}, [("dim0", 7)])
    kernel = Laid()
    base = kernel.block.insert_arg(pointer(dtypes.int32), 0)
    value = kernel.numbers(N, layout, dtypes.int32)
    pointers = kernel.emit(tile.AddPtrOp(kernel.emit(tile.SplatOp(base, (N,), layout)), value))
    kernel.block.add_op(tile.StoreOp(pointers, value, release=True))
    assert spelled(kernel.compiled(GpuTarget(90), 0).ptx) == ["st.release.sys.global.b32"] * 4


def array(size: int = N, dtype: Any = np.int32) -> Any:
    return np.zeros(size, dtype)


def test_volatile_loads_acquire_and_flags_release() -> None:
    assert accesses(waits, array(), array(), array(1), N=N) == [
        "ld.acquire.sys.global.b32",
        "ld.acquire.sys.global.b32",
        "st.global.b32",
        "st.release.sys.global.b32",
    ]


@pytest.mark.parametrize(
    ("sem", "scope", "order"),
    [
        (None, None, "acq_rel.gpu"),
        ("relaxed", "cta", "relaxed.cta"),
        ("acquire", "gpu", "acquire.gpu"),
        ("release", "sys", "release.sys"),
    ],
)
def test_atomics_have_the_order_that_they_ask_for(sem: str | None, scope: str | None, order: str) -> None:
    found = accesses(updates, array(N + 1), array(), SEM=sem, SCOPE=scope, N=N)
    assert found == [f"atom.{order}.global.add.u32", "st.global.b32", f"atom.{order}.global.cas.b32"]


@pytest.mark.parametrize(
    ("load", "store", "evict", "expected"),
    [
        ("", "", "", ["ld.global.b32", "st.global.b32"]),
        (".cg", ".wt", "", ["ld.global.cg.b32", "st.global.wt.b32"]),
        (".ca", ".cs", "", ["ld.global.ca.b32", "st.global.cs.b32"]),
        ("", "", "evict_first", ["ld.global.L1::evict_first.b32", "st.global.L1::evict_first.b32"]),
        ("", "", "evict_last", ["ld.global.L1::evict_last.b32", "st.global.L1::evict_last.b32"]),
    ],
)
def test_advice_to_caches_reaches_the_instructions(load: str, store: str, evict: str, expected: list[str]) -> None:
    assert accesses(advised, array(), array(), LOAD=load, STORE=store, EVICT=evict, N=N) == expected


@pytest.mark.parametrize(
    ("dtype", "factor", "suffix"),
    [
        (np.int8, 1, "b8"),
        (np.float16, 1, "b16"),
        (np.int64, 1, "b64"),
        (np.int8, 2, "b16"),
        (np.int8, 8, "v2.b32"),
        (np.float16, 8, "v4.b32"),
        (np.float64, 2, "v2.b64"),
    ],
)
def test_accesses_are_as_wide_as_a_threads_elements(dtype: Any, factor: int, suffix: str) -> None:
    constants = {"LOAD": ".cg", "STORE": ".wt", "EVICT": "", "N": N * factor}
    found = accesses(advised, array(N * factor, dtype), array(N * factor, dtype), **constants)
    assert found == [f"ld.global.cg.{suffix}", f"st.global.wt.{suffix}"]
