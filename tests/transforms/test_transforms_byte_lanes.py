"""Which functions get registers of twice as many lanes: those that compute on bytes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from weft.ir import tile
from weft.ir.types import layout_of
from weft.transforms.layouts import AssignVectorLayouts
from weft.transforms.layouts.byte_lanes import lanes_for

Kernel = Callable[[str, str], ModuleOp]

SIGNATURE = "%px: !tile.ptr<{t}>, %out: !tile.ptr<{u}>, %n: i32"
BODY = """%at = tile.arange 0 {size} : tensor<{size}xi32>
%ns = tile.splat %n : i32 to tensor<{size}xi32>
%m = tile.compare "lt" %at, %ns : tensor<{size}xi32> to tensor<{size}xi1>
%xs = tile.splat %px : !tile.ptr<{t}> to tensor<{size}x!tile.ptr<{t}>>
%xp = tile.addptr %xs, %at : tensor<{size}x!tile.ptr<{t}>>, tensor<{size}xi32> to tensor<{size}x!tile.ptr<{t}>>
%os = tile.splat %out : !tile.ptr<{u}> to tensor<{size}x!tile.ptr<{u}>>
%op = tile.addptr %os, %at : tensor<{size}x!tile.ptr<{u}>>, tensor<{size}xi32> to tensor<{size}x!tile.ptr<{u}>>
%x = tile.load %xp mask %m : tensor<{size}xi1> : tensor<{size}x!tile.ptr<{t}>> to tensor<{size}x{t}>
"""
STORE = "\ntile.store %op, %v mask %m : tensor<{size}xi1> : tensor<{size}x!tile.ptr<{u}>>, tensor<{size}x{u}>"
NOT = '%v = tile.unary "not" %x : tensor<{size}xui8>'


def by_way_of(wide: str) -> str:
    """A cast to a type and back."""
    there = f"%w = tile.cast %x : tensor<{{size}}xui8> to tensor<{{size}}x{wide}>"
    return f"{there}\n%v = tile.cast %w : tensor<{{size}}x{wide}> to tensor<{{size}}x{{u}}>"


def function_of(kernel: Kernel, steps: str, size: int = 16, t: str = "ui8", u: str = "ui8") -> ModuleOp:
    return kernel(SIGNATURE.format(t=t, u=u), (BODY + steps + STORE).format(size=size, t=t, u=u))


INDEXED = """%i = tile.cast %x : tensor<{size}xui8> to tensor<{size}xi16>
%ip = tile.addptr %xs, %i : tensor<{size}x!tile.ptr<ui8>>, tensor<{size}xi16> to tensor<{size}x!tile.ptr<ui8>>
%v = tile.load %ip : tensor<{size}x!tile.ptr<ui8>> to tensor<{size}xui8>"""


@pytest.mark.parametrize(
    ("steps", "others", "lanes"),
    [
        (NOT, {}, 8),
        (NOT, {"size": 8}, 4),
        (by_way_of("i16"), {}, 8),
        (by_way_of("i32"), {}, 4),
        (by_way_of("f32"), {}, 4),
        (by_way_of("i16"), {"u": "i16"}, 4),
        (INDEXED, {}, 4),
    ],
)
def test_lanes_of_functions(kernel: Kernel, steps: str, others: dict[str, Any], lanes: int) -> None:
    """Of a machine of four lanes: rows of two registers of eight bytes have them."""
    module = function_of(kernel, steps, **others)
    (function,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    assert lanes_for(function, 4) == lanes
    AssignVectorLayouts(4).apply(Context(), module)
    assert {layout_of(op.pointer).in_size("lane") for op in module.walk() if isinstance(op, tile.StoreOp)} == {lanes}
