"""Carried tiles that a loop only shifts become carried scalars, and dot operands get their accumulator's type: text before and
after, and equal results under the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft import reference
from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.transforms.induction import UniformCarry
from weft.transforms.widen_dot import WidenDot

Kernel = Callable[[str, str], ModuleOp]
Body = Callable[[ModuleOp], str]


def apply(one: ModulePass, module: ModuleOp) -> ModuleOp:
    """The module after the pass, verified; the original stays."""
    result = module.clone()
    one.apply(Context(), result)
    result.verify()
    return result


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


# ---- shifted tiles ---------------------------------------------------------------------------------------------------


def test_offsets_that_grow_by_a_scalar(kernel: Kernel, body_of: Body) -> None:
    module = kernel(
        "%x: !tile.ptr<f32>, %n: i32, %s: i32",
        """
        %zero = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %start = tile.arange 0 8 : tensor<8xi32>
        %end = scf.for %i = %zero to %n step %one iter_args(%at = %start) -> (tensor<8xi32>) : i32 {
          %twice = tile.binary "add" %at, %at : tensor<8xi32>
          %step = tile.splat %s : i32 to tensor<8xi32>
          %next = tile.binary "add" %at, %step : tensor<8xi32>
          scf.yield %next : tensor<8xi32>
        }
        %use = tile.unary "neg" %end : tensor<8xi32>
        """,
    )
    assert lines(body_of(apply(UniformCarry(), module))) == lines(
        """
        %zero = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %start = tile.arange 0 8 : tensor<8xi32>
        %0 = tile.constant 0 : i32
        %end = scf.for %i = %zero to %n step %one iter_args(%at = %0) -> (i32) : i32 {
        %1 = tile.splat %at : i32 to tensor<8xi32>
        %at_1 = tile.binary "add" %start, %1 : tensor<8xi32>
        %twice = tile.binary "add" %at_1, %at_1 : tensor<8xi32>
        %step = tile.splat %s : i32 to tensor<8xi32>
        %next = tile.binary "add" %at_1, %step : tensor<8xi32>
        %2 = tile.binary "add" %at, %s : i32
        scf.yield %2 : i32
        }
        %3 = tile.splat %end : i32 to tensor<8xi32>
        %4 = tile.binary "add" %start, %3 : tensor<8xi32>
        %use = tile.unary "neg" %4 : tensor<8xi32>
        """
    )


def test_pointers_that_move_by_a_constant(kernel: Kernel, body_of: Body) -> None:
    """The sum of pointer offsets is kept in 64 bits; what the loop gives is not used, so nothing is made of it."""
    module = kernel(
        "%x: !tile.ptr<f32>, %n: i32",
        """
        %zero = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %start = tile.splat %x : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
        %end = scf.for %i = %zero to %n step %one iter_args(%p = %start) -> (tensor<8x!tile.ptr<f32>>) : i32 {
          %v = tile.load %p : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
          tile.store %p, %v : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
          %four = tile.constant 4 : tensor<8xi32>
          %q = tile.addptr %p, %four : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
          scf.yield %q : tensor<8x!tile.ptr<f32>>
        }
        """,
    )
    text = lines(body_of(apply(UniformCarry(), module)))
    assert text[3:7] == lines(
        """
        %0 = tile.constant 0 : i64
        %end = scf.for %i = %zero to %n step %one iter_args(%p = %0) -> (i64) : i32 {
        %1 = tile.splat %p : i64 to tensor<8xi64>
        %p_1 = tile.addptr %start, %1 : tensor<8x!tile.ptr<f32>>, tensor<8xi64> to tensor<8x!tile.ptr<f32>>
        """
    )
    assert text[-5:] == lines(
        """
        %2 = tile.constant 4 : i32
        %3 = tile.cast %2 : i32 to i64
        %4 = tile.binary "add" %p, %3 : i64
        scf.yield %4 : i64
        }
        """
    )


@pytest.mark.parametrize(
    ("type_", "initial", "body"),
    [
        # not a splat
        ("tensor<8xi32>", "%i8", '%next = tile.binary "add" %at, %i8 : tensor<8xi32>'),
        # the tile itself is the shift
        ("tensor<8xi32>", "%i8", '%next = tile.binary "add" %at, %at : tensor<8xi32>'),
        # another op than a sum
        ("tensor<8xi32>", "%i8", '%next = tile.binary "sub" %at, %c8 : tensor<8xi32>'),
        # floats round at each step
        ("tensor<8xf32>", "%f8", '%next = tile.binary "add" %at, %f8 : tensor<8xf32>'),
        # the sum is of another tile
        ("tensor<8xi32>", "%i8", '%next = tile.binary "add" %i8, %c8 : tensor<8xi32>'),
        # a scalar is one already
        ("i32", "%n", '%next = tile.binary "add" %at, %n : i32'),
    ],
)
def test_other_carried_values_stay(kernel: Kernel, type_: str, initial: str, body: str) -> None:
    module = kernel(
        "%n: i32",
        f"""
        %zero = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %i8 = tile.arange 0 8 : tensor<8xi32>
        %c8 = tile.constant 3 : tensor<8xi32>
        %f8 = tile.constant 0.5 : tensor<8xf32>
        %end = scf.for %i = %zero to %n step %one iter_args(%at = {initial}) -> ({type_}) : i32 {{
          {body}
          scf.yield %next : {type_}
        }}
        """,
    )
    assert str(apply(UniformCarry(), module)) == str(module)


SHIFTS = {
    "constant": "%s{k} = tile.constant 3 : tensor<8xi{w}>",
    "argument": "%c{k} = tile.cast %s : i64 to i{w}\n%s{k} = tile.splat %c{k} : i{w} to tensor<8xi{w}>",
    "loop variable": "%c{k} = tile.cast %i : i32 to i{w}\n%s{k} = tile.splat %c{k} : i{w} to tensor<8xi{w}>",
}
PUT = """
    %wide{k}{n} = tile.cast %{v} : tensor<8xi{w}> to tensor<8xi64>
    %row{k}{n} = tile.splat {row} : i32 to tensor<8xi32>
    %rows{k}{n} = tile.constant 24 : tensor<8xi32>
    %below{k}{n} = tile.binary "mul" %row{k}{n}, %rows{k}{n} : tensor<8xi32>
    %column{k}{n} = tile.arange {start} {end} : tensor<8xi32>
    %place{k}{n} = tile.binary "add" %below{k}{n}, %column{k}{n} : tensor<8xi32>
    %base{k}{n} = tile.splat %out : !tile.ptr<i64> to tensor<8x!tile.ptr<i64>>
    %p{k}{n} = tile.addptr %base{k}{n}, %place{k}{n} : tensor<8x!tile.ptr<i64>>, tensor<8xi32> to tensor<8x!tile.ptr<i64>>
    tile.store %p{k}{n}, %wide{k}{n} : tensor<8x!tile.ptr<i64>>, tensor<8xi64>
"""
"""Stores tile ``v`` as 64-bit integers in row ``row`` of ``out``, whose rows have a place for each of three tiles."""


def shifting_loop(tiles: list[tuple[str, bool, int]]) -> str:
    """A loop that carries these tiles, stores each in every iteration and after the last."""
    before, body, after, yields = "", "", "", list[str]()
    for k, (shift, tile_first, w) in enumerate(tiles):
        before += f"%r{k} = tile.arange {k} {k + 8} : tensor<8xi32>\n"
        before += f"%a{k} = tile.cast %r{k} : tensor<8xi32> to tensor<8xi{w}>\n"
        names = {"k": k, "w": w, "start": 8 * k, "end": 8 * k + 8}
        body += PUT.format(v=f"t{k}", row="%i", n="in", **names) + SHIFTS[shift].format(**names)
        left, right = (f"%t{k}", f"%s{k}") if tile_first else (f"%s{k}", f"%t{k}")
        body += f'\n%n{k} = tile.binary "add" {left}, {right} : tensor<8xi{w}>\n'
        yields.append(f"%n{k}")
        after += PUT.format(v=f"end{k}", row="%n", n="out", **names)
    types = ", ".join(f"tensor<8xi{w}>" for *_, w in tiles)
    carried = ", ".join(f"%t{k} = %a{k}" for k in range(len(tiles)))
    results = ", ".join(f"%end{k}" for k in range(len(tiles)))
    return f"""
        %zero = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        {before}
        {results} = scf.for %i = %zero to %n step %one iter_args({carried}) -> ({types}) : i32 {{
          {body}
          scf.yield {", ".join(yields)} : {types}
        }}
        {after}
    """


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(SHIFTS)), st.booleans(), st.sampled_from([8, 32, 64])), min_size=1, max_size=3
    ),
    st.integers(0, 5),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
def test_results_stay(kernel: Kernel, tiles: list[tuple[str, bool, int]], count: int, amount: int) -> None:
    """One to three carried tiles of 8 to 64 bits, shifted in different ways, as far as to wrap, on either side of the sum."""
    module = kernel("%out: !tile.ptr<i64>, %n: i32, %s: i64", shifting_loop(tiles))
    changed = apply(UniformCarry(), module)
    (loop,) = (op for op in changed.walk() if isinstance(op, scf.ForOp))
    assert not any(shape_of(argument) for argument in loop.body.block.args)
    results: list[Any] = []
    for one in (module, changed):
        results.append(np.zeros((6, 24), np.int64))
        reference.run(one, [results[-1], count, amount], (1,))
    assert (results[0] == results[1]).all()
    assert results[0].any()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 4), st.integers(-3, 5), st.sampled_from(["i8", "i32", "i64", "ui32"]))
def test_pointers_arrive_where_they_did(kernel: Kernel, count: int, step: int, type_: str) -> None:
    """Offsets of every width and sign, added up in 64 bits."""
    step = abs(step) if type_ == "ui32" else step
    module = kernel(
        f"%x: !tile.ptr<f32>, %n: i32, %s: {type_}",
        f"""
        %zero = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %middle = tile.arange 20 28 : tensor<8xi32>
        %base = tile.splat %x : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
        %start = tile.addptr %base, %middle : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
        %half = tile.constant 0.5 : tensor<8xf32>
        %end = scf.for %i = %zero to %n step %one iter_args(%p = %start) -> (tensor<8x!tile.ptr<f32>>) : i32 {{
          %v = tile.load %p : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
          %w = tile.binary "mul" %v, %half : tensor<8xf32>
          tile.store %p, %w : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
          %by = tile.splat %s : {type_} to tensor<8x{type_}>
          %q = tile.addptr %p, %by : tensor<8x!tile.ptr<f32>>, tensor<8x{type_}> to tensor<8x!tile.ptr<f32>>
          scf.yield %q : tensor<8x!tile.ptr<f32>>
        }}
        tile.store %end, %half : tensor<8x!tile.ptr<f32>>, tensor<8xf32>
        """,
    )
    changed = apply(UniformCarry(), module)
    assert str(changed) != str(module)
    results: list[Any] = []
    for one in (module, changed):
        results.append(np.arange(1, 65, dtype=np.float32))
        reference.run(one, [results[-1], count, step], (1,))
    assert (results[0] == results[1]).all()


# ---- dot operands ----------------------------------------------------------------------------------------------------


def test_operands_are_cast_before_the_dot(kernel: Kernel, body_of: Body) -> None:
    module = kernel(
        "%x: !tile.ptr<f32>",
        """
        %a = tile.constant 1.0 : tensor<2x4xbf16>
        %b = tile.constant 2.0 : tensor<4x8xf32>
        %c = tile.constant 0.0 : tensor<2x8xf32>
        %d = tile.dot %a, %b, %c : tensor<2x4xbf16>, tensor<4x8xf32> to tensor<2x8xf32>
        %e = tile.dot %d, %f, %c : tensor<2x8xf32>, tensor<8x8xf32> to tensor<2x8xf32>
        """.replace("%e =", "%f = tile.constant 3.0 : tensor<8x8xf32>\n%e ="),
    )
    assert lines(body_of(apply(WidenDot(), module))) == lines(
        """
        %a = tile.constant 1.0 : tensor<2x4xbf16>
        %b = tile.constant 2.0 : tensor<4x8xf32>
        %c = tile.constant 0.0 : tensor<2x8xf32>
        %0 = tile.cast %a : tensor<2x4xbf16> to tensor<2x4xf32>
        %d = tile.dot %0, %b, %c : tensor<2x4xf32>, tensor<4x8xf32> to tensor<2x8xf32>
        %f = tile.constant 3.0 : tensor<8x8xf32>
        %e = tile.dot %d, %f, %c : tensor<2x8xf32>, tensor<8x8xf32> to tensor<2x8xf32>
        """
    )


ELEMENTS = {
    "f32": ("bf16", "f16", "f8E4M3FN", "f8E5M2", "f32"),
    "f64": ("f32", "f64", "bf16"),
    "i32": ("i8", "ui8", "i16", "ui16", "i32"),
}


@pytest.mark.parametrize(("total", "element"), [(t, e) for t, elements in ELEMENTS.items() for e in elements])
def test_the_casts_are_exact(kernel: Kernel, total: str, element: str) -> None:
    """Products of all values that meet in the type's edge cases are what they were."""
    module = kernel(
        f"%x: !tile.ptr<{element}>, %out: !tile.ptr<{total}>",
        f"""
        %i = tile.arange 0 16 : tensor<16xi32>
        %base = tile.splat %x : !tile.ptr<{element}> to tensor<16x!tile.ptr<{element}>>
        %p = tile.addptr %base, %i : tensor<16x!tile.ptr<{element}>>, tensor<16xi32> to tensor<16x!tile.ptr<{element}>>
        %v = tile.load %p : tensor<16x!tile.ptr<{element}>> to tensor<16x{element}>
        %a = tile.reshape %v : tensor<16x{element}> to tensor<16x1x{element}>
        %b = tile.reshape %v : tensor<16x{element}> to tensor<1x16x{element}>
        %c = tile.constant {0 if total == "i32" else 0.0} : tensor<16x16x{total}>
        %d = tile.dot %a, %b, %c : tensor<16x1x{element}>, tensor<1x16x{element}> to tensor<16x16x{total}>
        %f = tile.reshape %d : tensor<16x16x{total}> to tensor<256x{total}>
        %j = tile.arange 0 256 : tensor<256xi32>
        %o = tile.splat %out : !tile.ptr<{total}> to tensor<256x!tile.ptr<{total}>>
        %q = tile.addptr %o, %j : tensor<256x!tile.ptr<{total}>>, tensor<256xi32> to tensor<256x!tile.ptr<{total}>>
        tile.store %q, %f : tensor<256x!tile.ptr<{total}>>, tensor<256x{total}>
        """,
    )
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    source, result = (dtype_of(a) for a in function.args)
    changed = apply(WidenDot(), module)
    (product,) = (op for op in changed.walk() if isinstance(op, tile.DotOp))
    assert dtype_of(product.a) == dtype_of(product.b) == result
    bits = np.random.default_rng(0).integers(0, 1 << 62, 16).astype(f"u{source.itemsize}")
    results: list[Any] = []
    for one in (module, changed):
        results.append(np.zeros(256, result.numpy))
        reference.run(one, [bits.view(source.numpy), results[-1]], (1,))
    np.testing.assert_array_equal(results[0], results[1])
