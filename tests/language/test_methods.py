"""Methods of tiles, of numbers and of types in kernels, which are functions of the language or answers known at compile time."""

# Kernels read attributes that these have in kernels only.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.frontend import CompilationError

pytestmark = pytest.mark.jit


@weft.jit
def methods(x: Any, low: Any, both: Any, one: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tile = tl.load(x + i)
    tl.store(low + i, tile.sort())
    tl.store(both + i, (tile > 2).logical_and(tile < 5))
    tl.store(one + i, (tile > 4).logical_or(tl.load(x) > 100))
    tl.static_assert((tile > 2).logical_or(False).dtype == tl.int1)


@pytest.mark.parametrize("target", [None, "sm_90"])
def test_sort_and_logic(target: str | None) -> None:
    x = np.array([5, 3, 7, 0, 4, 4, 2, 9], np.int32)
    low, both, one = np.zeros(8, np.int32), np.zeros(8, np.bool_), np.zeros(8, np.bool_)
    (methods if target is None else methods.on(target))[(1,)](x, low, both, one, 8)
    assert low.tolist() == sorted(x.tolist())
    assert both.tolist() == [2 < v < 5 for v in x.tolist()]
    assert one.tolist() == [v > 4 for v in x.tolist()]


@weft.jit
def known(x: Any, NAME: tl.constexpr, FLAG: tl.constexpr) -> None:
    tl.static_assert(x.dtype.element_ty.codegen_name() == NAME)
    tl.static_assert(FLAG.logical_and(3) == 3 and FLAG.logical_or(3))
    tl.static_assert(not FLAG.logical_and(False))
    type_: tl.constexpr = tl.zeros((2, 4), tl.float16).type
    tl.static_assert(type_.is_block() and not type_.is_fp16() and not type_.is_ptr() and type_.scalar.is_fp16())
    tl.static_assert(type_.get_block_shapes() == (2, 4))
    tl.static_assert(x.dtype.codegen_name() == "pointer<" + NAME + ">" and not x.dtype.is_block())


def test_what_is_known_of_types_and_numbers() -> None:
    known[(1,)](np.zeros(1, np.float16), "float16", True)
    known[(1,)](np.zeros(1, np.uint8), "uint8", True)
    flag = tl.constexpr(True)
    assert flag.logical_and(tl.constexpr(0)).value == 0
    assert tl.constexpr(0).logical_or(5).value == 5


@weft.jit
def wrong(x: Any, CASE: tl.constexpr) -> None:
    tile = tl.load(x + tl.arange(0, 4))
    if CASE == "logic":
        tile.logical_and(tile)
    else:
        moved = tile.advance((1,))
        tl.static_print(moved)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("logic", "bitcast keeps the number of bits, but int32 has 32 and bool has 1"),
        ("advance", "'base' is a block pointer, found int32[4]"),
    ],
)
def test_errors(case: str, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        wrong[(1,)](np.zeros(4, np.int32), case)
    assert caught.value.message == message
