"""One op between layouts that a script chooses: as tile IR for weft, and as TTGIR, with the same layouts, for Triton.

A layout is written in Triton's spelling (``#ttg.blocked<...>``); `weft.layout.parse_encoding` reads it. Both kernels load a
tensor of two dimensions from row-major memory in one layout, and store what the op makes of it in the layout of its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from common import Array, Kernel, Made

from weft import dtypes
from weft.ir import tile
from weft.ir.location import Position, location
from weft.ir.types import tensor
from weft.layout import LinearLayout, parse_encoding, reduce, reshape

TYPES: Final = {"i8": dtypes.int8, "f16": dtypes.float16, "f32": dtypes.float32}
"""Triton's name of an element type, and weft's."""
FILE: Final = "laid.py"
REST: Final = 1
CONVERSION: Final = 2
"""Lines to which both kernels attribute their ops, so that a profile counts the conversion's instructions apart."""


def layout_of(spelled: str, shape: Sequence[int]) -> LinearLayout:
    """What an encoding is for a shape; blocks of clusters are left out."""
    found = parse_encoding(spelled).layout(shape)
    return found.sublayout(("register", "lane", "warp"), found.out_dims)


@dataclass(frozen=True)
class Converted:
    """A conversion of a tensor from one layout to another."""

    shape: tuple[int, int]
    source: str
    destination: str
    type: str

    def expected(self, data: Array) -> Array:
        """What the kernel stores."""
        return data

    def by_weft(self, data: Array, target: str, warps: int) -> Made:
        """Compiles and executes it."""
        kernel, size = Kernel(), self.shape[0] * self.shape[1]
        flat = [reshape(layout_of(spelled, self.shape), [size]) for spelled in (self.source, self.destination)]
        value = kernel.emit(tile.LoadOp(kernel.argument(data.reshape(-1), TYPES[self.type], flat[0])))
        out = kernel.argument(np.zeros(size, data.dtype), TYPES[self.type], flat[1])
        converted = tile.ConvertLayoutOp(value, flat[1])
        kernel.block.add_op(tile.StoreOp(out, kernel.emit(converted)))
        for op in kernel.block.ops:
            op.location = location([Position(FILE, CONVERSION if op is converted else REST, 0, "kernel")])
        return kernel.run(target, warps)

    def ttgir(self, target: str, warps: int) -> str:
        """The same for Triton."""
        rows, columns = self.shape
        tile_of = f"tensor<{rows}x{columns}x{self.type}, "
        body = f"""{_pointers("x", "src", self.shape, self.type)}
    %x_value = tt.load %x_at : tensor<{rows}x{columns}x!tt.ptr<{self.type}>, #src>
    %value = ttg.convert_layout %x_value : {tile_of}#src> -> {tile_of}#dst>{_pointers("out", "dst", self.shape, self.type)}
    tt.store %out_at, %value : tensor<{rows}x{columns}x!tt.ptr<{self.type}>, #dst>"""
        lines = [
            f'{line} loc("{FILE}":{CONVERSION if "convert_layout" in line else REST}:0)' if line.strip() else line
            for line in body.split("\n")
        ]
        return _module({"src": self.source, "dst": self.destination}, self.type, "\n".join(lines), target, warps)


@dataclass(frozen=True)
class Summed:
    """A sum of float32 along an axis; the result is in the slice of the source's layout."""

    shape: tuple[int, int]
    source: str
    axis: int

    def expected(self, data: Array) -> Array:
        """What the kernel stores."""
        return data.sum(self.axis)

    def by_weft(self, data: Array, target: str, warps: int) -> Made:
        """Compiles and executes it."""
        kernel, dtype = Kernel(), dtypes.float32
        source = layout_of(self.source, self.shape)
        result, size = reduce(source, self.axis), self.shape[1 - self.axis]
        flat = kernel.argument(data.reshape(-1), dtype, reshape(source, [data.size]))
        value = kernel.emit(tile.ReshapeOp(kernel.emit(tile.LoadOp(flat)), self.shape, source))
        summed = tile.ReduceOp([value], self.axis, tile.ReduceOp.region(dtype, "add"), [tensor(dtype, [size], result)])
        out = kernel.argument(np.zeros(size, data.dtype), dtype, result)
        kernel.block.add_op(tile.StoreOp(out, kernel.emit(summed)))
        return kernel.run(target, warps)

    def ttgir(self, target: str, warps: int) -> str:
        """The same for Triton."""
        rows, columns = self.shape
        sliced, size = f"#ttg.slice<{{dim = {self.axis}, parent = #src}}>", self.shape[1 - self.axis]
        body = f"""{_pointers("x", "src", self.shape, "f32")}
    %x_value = tt.load %x_at : tensor<{rows}x{columns}x!tt.ptr<f32>, #src>
    %value = "tt.reduce"(%x_value) <{{axis = {self.axis} : i32}}> ({{
    ^bb0(%a: f32, %b: f32):
      %sum = arith.addf %a, %b : f32
      tt.reduce.return %sum : f32
    }}) : (tensor<{rows}x{columns}xf32, #src>) -> tensor<{size}xf32, {sliced}>
    %at = tt.make_range {{start = 0 : i32, end = {size} : i32}} : tensor<{size}xi32, {sliced}>
    %base = tt.splat %out : !tt.ptr<f32> -> tensor<{size}x!tt.ptr<f32>, {sliced}>
    %to = tt.addptr %base, %at : tensor<{size}x!tt.ptr<f32>, {sliced}>, tensor<{size}xi32, {sliced}>
    tt.store %to, %value : tensor<{size}x!tt.ptr<f32>, {sliced}>"""
        return _module({"src": self.source}, "f32", body, target, warps)


def _pointers(name: str, layout: str, shape: tuple[int, int], type_: str) -> str:
    """``%{name}_at``: pointers to the elements of a row-major tensor in a layout."""
    rows, columns = shape
    by_row, by_column = (f"#ttg.slice<{{dim = {dim}, parent = #{layout}}}>" for dim in (1, 0))
    full = f"tensor<{rows}x{columns}xi32, #{layout}>"
    pointers = f"tensor<{rows}x{columns}x!tt.ptr<{type_}>, #{layout}>"
    tall, wide = f"tensor<{rows}x1xi32, #{layout}>", f"tensor<1x{columns}xi32, #{layout}>"
    return f"""
    %{name}_r = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32, {by_row}>
    %{name}_c = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32, {by_column}>
    %{name}_r1 = tt.expand_dims %{name}_r {{axis = 1 : i32}} : tensor<{rows}xi32, {by_row}> -> {tall}
    %{name}_c1 = tt.expand_dims %{name}_c {{axis = 0 : i32}} : tensor<{columns}xi32, {by_column}> -> {wide}
    %{name}_n = arith.constant dense<{columns}> : {tall}
    %{name}_r2 = arith.muli %{name}_r1, %{name}_n : {tall}
    %{name}_r3 = tt.broadcast %{name}_r2 : {tall} -> {full}
    %{name}_c3 = tt.broadcast %{name}_c1 : {wide} -> {full}
    %{name}_o = arith.addi %{name}_r3, %{name}_c3 : {full}
    %{name}_b = tt.splat %{name} : !tt.ptr<{type_}> -> {pointers}
    %{name}_at = tt.addptr %{name}_b, %{name}_o : {pointers}, {full}"""


def _module(layouts: dict[str, str], type_: str, body: str, target: str, warps: int) -> str:
    aliases = "\n".join(f"#{name} = {spelled}" for name, spelled in layouts.items())
    arguments = ", ".join(f"%{name}: !tt.ptr<{type_}> {{tt.divisibility = 16 : i32}}" for name in ("x", "out"))
    attributes = (
        f'"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:{target[3:]}", '
        '"ttg.threads-per-warp" = 32 : i32'
    )
    return f"""{aliases}
module attributes {{{attributes}}} {{
  tt.func public @kernel({arguments}) attributes {{noinline = false}} {{{body}
    tt.return
  }} loc("{FILE}":{REST}:0)
}}
"""
