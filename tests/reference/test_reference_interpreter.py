"""Each op through textual tile IR, the grid, control flow, and what the reference refuses."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func, test
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Region

from weft import dtypes, reference
from weft.ir import tile
from weft.ir.types import pointer, scalar

Execute = Callable[..., None]
Apply = Callable[..., NDArray[Any]]

I32, F32, I1 = np.int32, np.float32, np.bool_


def ints(*shape: int) -> NDArray[Any]:
    return np.arange(int(np.prod(shape)), dtype=I32).reshape(shape)


# Values


@pytest.mark.parametrize(
    ("number", "element", "expected"),
    [
        ("-3", "i8", np.int8(-3)),
        ("18446744073709551615", "ui64", np.uint64(2**64 - 1)),
        ("1", "i1", np.bool_(True)),
        ("0.5", "bf16", 0.5),
        ("ninf", "f16", -np.inf),
        ("nan", "f8E4M3FN", np.nan),
        ("1.0e-45", "f64", 1e-45),
    ],
)
def test_constant(number: str, element: str, expected: Any, apply: Apply) -> None:
    names = {"i8": "int8", "ui64": "uint64", "i1": "bool", "bf16": "bfloat16", "f16": "float16", "f64": "float64"}
    dtype = dtypes.parse(names.get(element, "float8_e4m3fn")).numpy
    result = apply(f"%r = tile.constant {number} : tensor<2x{element}>", (element, np.zeros(2, dtype)))
    np.testing.assert_array_equal(result.astype(object if dtype.kind in "iub" else np.float64), [expected] * 2)


def test_arange(apply: Apply) -> None:
    assert apply("%r = tile.arange 3 7 : tensor<4xi32>", ("i32", ints(4))).tolist() == [3, 4, 5, 6]


def test_splat_and_broadcast(apply: Apply) -> None:
    splat = "%r = tile.splat %a : i32 to tensor<2x2xi32>"
    assert apply(splat, ("i32", ints(2, 2)), ("i32", np.array(7, I32))).tolist() == [[7, 7], [7, 7]]
    broadcast = "%r = tile.broadcast %a : tensor<2x1xi32> to tensor<2x3xi32>"
    column = np.array([[4], [5]], I32)
    assert apply(broadcast, ("i32", ints(2, 3)), ("i32", column)).tolist() == [[4, 4, 4], [5, 5, 5]]


def test_shape_ops(apply: Apply) -> None:
    x = ints(2, 3)
    expand = "%r = tile.expand_dims %a 1 : tensor<2x3xi32> to tensor<2x1x3xi32>"
    assert apply(expand, ("i32", ints(2, 1, 3) * 0), ("i32", x)).tolist() == [[[0, 1, 2]], [[3, 4, 5]]]
    reshape = "%r = tile.reshape %a : tensor<2x3xi32> to tensor<3x2xi32>"
    assert apply(reshape, ("i32", ints(3, 2) * 0), ("i32", x)).tolist() == [[0, 1], [2, 3], [4, 5]]
    trans = "%r = tile.trans %a [1, 0] : tensor<2x3xi32> to tensor<3x2xi32>"
    assert apply(trans, ("i32", ints(3, 2) * 0), ("i32", x)).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_trans_of_three_dimensions(apply: Apply) -> None:
    """Result dimension i is source dimension order[i]: r[i, j, k] = a[j, k, i]."""
    trans = "%r = tile.trans %a [2, 0, 1] : tensor<2x3x4xi32> to tensor<4x2x3xi32>"
    result = apply(trans, ("i32", ints(4, 2, 3) * 0), ("i32", ints(2, 3, 4)))
    assert result.tolist() == [[[12 * j + 4 * k + i for k in range(3)] for j in range(2)] for i in range(4)]


def test_hint_and_convert_layout_change_nothing(apply: Apply) -> None:
    hint = "%r = tile.hint %a divisibility [16] : tensor<4xi32>"
    assert apply(hint, ("i32", ints(4) * 0), ("i32", ints(4))).tolist() == [0, 1, 2, 3]
    convert = "%r = tile.convert_layout %a : tensor<4xi32> to tensor<4xi32>"
    assert apply(convert, ("i32", ints(4) * 0), ("i32", ints(4))).tolist() == [0, 1, 2, 3]


# Elementwise: the wiring; meanings are tested on their own


def test_elementwise_ops(apply: Apply) -> None:
    x, y, z = (np.array(v, F32) for v in ([7.0, -7.5], [2.0, 2.0], [0.5, 0.25]))
    out = ("f32", np.zeros(2, F32))
    operands = [("f32", v) for v in (x, y, z)]
    assert apply('%r = tile.unary "neg" %a : tensor<2xf32>', out, operands[0]).tolist() == [-7.0, 7.5]
    assert apply('%r = tile.binary "sub" %a, %b : tensor<2xf32>', out, *operands[:2]).tolist() == [5.0, -9.5]
    assert apply("%r = tile.fma %a, %b, %c : tensor<2xf32>", out, *operands).tolist() == [14.5, -14.75]
    compare = '%r = tile.compare "lt" %a, %b : tensor<2xf32> to tensor<2xi1>'
    assert apply(compare, ("i1", np.zeros(2, I1)), *operands[:2]).tolist() == [False, True]
    select = "%r = tile.select %a, %b, %c : tensor<2xi1>, tensor<2xf32>"
    assert apply(select, out, ("i1", np.array([True, False])), *operands[1:]).tolist() == [2.0, 0.25]
    cast = "%r = tile.cast %a : tensor<2xf32> to tensor<2xi8>"
    assert apply(cast, ("i8", np.zeros(2, np.int8)), operands[0]).tolist() == [7, -7]
    bitcast = "%r = tile.bitcast %a : tensor<2xf32> to tensor<2xui32>"
    result = apply(bitcast, ("ui32", np.zeros(2, np.uint32)), ("f32", np.array([1.0, -0.0], F32)))
    assert result.tolist() == [0x3F800000, 0x80000000]


def test_scalars_and_signedness(apply: Apply) -> None:
    divide = '%r = tile.binary "div" %a, %b : {}'
    x, y = (np.array(v, np.uint32) for v in (0xFFFFFFFE, 2))
    assert apply(divide.format("ui32"), ("ui32", np.array(0, np.uint32)), ("ui32", x), ("ui32", y)) == 0x7FFFFFFF
    signed = [("i32", v.view(I32)) for v in (x, y)]
    assert apply(divide.format("i32"), ("i32", np.array(0, I32)), *signed) == -1


# Pointers and memory


def test_pointer_arithmetic_casts_selects_and_comparisons(execute: Execute) -> None:
    """``r[0] = (c ? x + 2 : y)[0]`` through int64 and back; ``r[1]``: x lies before x + 2; -1 steps back."""
    x, y, r = np.array([1, 2, 3], np.int16), np.array([9], np.int16), np.zeros(3, np.int16)
    body = """
      %two = tile.constant 2 : ui8
      %far = tile.addptr %x, %two : !tile.ptr<i16>, ui8 to !tile.ptr<i16>
      %chosen = tile.select %c, %far, %y : i1, !tile.ptr<i16>
      %number = tile.bitcast %chosen : !tile.ptr<i16> to i64
      %back = tile.bitcast %number : i64 to !tile.ptr<i16>
      %v = tile.load %back : !tile.ptr<i16> to i16
      tile.store %r, %v : !tile.ptr<i16>, i16
      %one = tile.constant 1 : i64
      %less = tile.compare "lt" %x, %far : !tile.ptr<i16> to i1
      %word = tile.cast %less : i1 to i16
      %r1 = tile.addptr %r, %one : !tile.ptr<i16>, i64 to !tile.ptr<i16>
      tile.store %r1, %word : !tile.ptr<i16>, i16
      %minus = tile.constant -1 : i32
      %middle = tile.addptr %far, %minus : !tile.ptr<i16>, i32 to !tile.ptr<i16>
      %m = tile.load %middle : !tile.ptr<i16> to i16
      %r2 = tile.addptr %r, %two : !tile.ptr<i16>, ui8 to !tile.ptr<i16>
      tile.store %r2, %m : !tile.ptr<i16>, i16
    """
    parameters = "%x: !tile.ptr<i16>, %y: !tile.ptr<i16>, %r: !tile.ptr<i16>, %c: i1"
    execute(parameters, body, [x, y, r, True])
    assert r.tolist() == [3, 1, 2]
    execute(parameters, body, [x, y, r, False])
    assert r.tolist() == [9, 1, 2]


def test_masked_load_with_and_without_other(apply: Apply) -> None:
    x, mask = np.array([1.0, 2.0], F32), np.array([False, True])
    pointers = """
      %i = tile.arange 0 2 : tensor<2xi32>
      %s = tile.splat %a0 : !tile.ptr<f32> to tensor<2x!tile.ptr<f32>>
      %p = tile.addptr %s, %i : tensor<2x!tile.ptr<f32>>, tensor<2xi32> to tensor<2x!tile.ptr<f32>>
    """
    load = "%r = tile.load %p mask %b : tensor<2xi1>{} : tensor<2x!tile.ptr<f32>> to tensor<2xf32>"
    operands = [("f32", x), ("i1", mask), ("f32", np.array([8.0, 9.0], F32))]
    other = load.format(" other %c : tensor<2xf32>")
    assert apply(pointers + other, ("f32", np.ones(2, F32)), *operands).tolist() == [8.0, 2.0]
    assert apply(pointers + load.format(""), ("f32", np.ones(2, F32)), *operands[:2]).tolist() == [0.0, 2.0]


ATOMIC = """
  %s = tile.splat %x : !tile.ptr<f16> to tensor<4x!tile.ptr<f16>>
  %i = tile.arange 0 4 : tensor<4xi32>
  %two = tile.constant 2 : tensor<4xi32>
  %j = tile.binary "div" %i, %two : tensor<4xi32>
  %p = tile.addptr %s, %j : tensor<4x!tile.ptr<f16>>, tensor<4xi32> to tensor<4x!tile.ptr<f16>>
  %v = tile.cast %i : tensor<4xi32> to tensor<4xf16>
  %zero = tile.constant 0 : tensor<4xi32>
  %m = tile.compare "ne" %i, %zero : tensor<4xi32> to tensor<4xi1>
  %before = tile.atomic_rmw "add" %p, %v mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f16>>, tensor<4xf16> to tensor<4xf16>
  %t = tile.splat %y : !tile.ptr<f16> to tensor<4x!tile.ptr<f16>>
  %q = tile.addptr %t, %i : tensor<4x!tile.ptr<f16>>, tensor<4xi32> to tensor<4x!tile.ptr<f16>>
  tile.store %q, %before : tensor<4x!tile.ptr<f16>>, tensor<4xf16>
"""


def test_atomic_add_takes_effect_for_each_element(execute: Execute) -> None:
    """x[0] += 1 (its 0 is masked off); x[1] += 2, then += 3, whose result is what the 2 left there."""
    x, y = np.array([10, 20], np.float16), np.ones(4, np.float16)
    execute("%x: !tile.ptr<f16>, %y: !tile.ptr<f16>", ATOMIC, [x, y])
    assert x.tolist() == [11, 25]
    assert y.tolist() == [0, 10, 20, 22]


def test_an_atomic_outside_touches_nothing(execute: Execute) -> None:
    x, y = np.array([10, 20], np.float16), np.ones(4, np.float16)
    with pytest.raises(reference.OutOfBoundsError, match="^tile.atomic_rmw at an unknown position"):
        execute("%x: !tile.ptr<f16>, %y: !tile.ptr<f16>", ATOMIC, [x[:1], y])
    assert x.tolist() == [10, 20]


# Collectives


def reduction(shape: str, axis: int, result: str, body: str, element: str = "i32") -> str:
    return (
        f"%r = tile.reduce %a axis {axis} : tensor<{shape}x{element}> to {result} {{\n"
        f"^bb0(%p: {element}, %q: {element}):\n{body}\n}}"
    )


def test_reduce_along_each_axis(apply: Apply) -> None:
    body = '%s = tile.binary "add" %p, %q : i32\ntile.yield %s : i32'
    x = ("i32", ints(2, 3))
    assert apply(reduction("2x3", 0, "tensor<3xi32>", body), ("i32", ints(3)), x).tolist() == [3, 5, 7]
    assert apply(reduction("2x3", 1, "tensor<2xi32>", body), ("i32", ints(2)), x).tolist() == [3, 12]
    assert apply(reduction("4", 0, "i32", body), ("i32", np.array(0, I32)), ("i32", ints(4))) == 6
    assert apply(reduction("1", 0, "i32", body), ("i32", np.array(0, I32)), ("i32", ints(1) + 5)) == 5


def test_reduce_begins_with_the_first_element_in_the_regions_type(apply: Apply) -> None:
    """2048 + 1 is 2048 in float16 (a tie to even), so three ones are lost; other orders would keep them."""
    body = '%s = tile.binary "add" %p, %q : f16\ntile.yield %s : f16'
    x = np.array([2048, 1, 1, 1], np.float16)
    assert apply(reduction("4", 0, "f16", body, "f16"), ("f16", np.array(0, np.float16)), ("f16", x)) == 2048


def test_reduce_of_several_tensors(execute: Execute) -> None:
    """argmax along axis 1, the first of equal ones; and a region that uses a constant."""
    x, r = np.array([[3, 9, 9], [7, 1, 2]], I32), np.zeros((2, 2), I32)
    body = """
      %i = tile.arange 0 6 : tensor<6xi32>
      %j = tile.reshape %i : tensor<6xi32> to tensor<2x3xi32>
      %s = tile.splat %x : !tile.ptr<i32> to tensor<2x3x!tile.ptr<i32>>
      %p = tile.addptr %s, %j : tensor<2x3x!tile.ptr<i32>>, tensor<2x3xi32> to tensor<2x3x!tile.ptr<i32>>
      %v = tile.load %p : tensor<2x3x!tile.ptr<i32>> to tensor<2x3xi32>
      %best, %where = tile.reduce %v, %j axis 1 : tensor<2x3xi32>, tensor<2x3xi32> to tensor<2xi32>, tensor<2xi32> {
      ^bb0(%a: i32, %ai: i32, %b: i32, %bi: i32):
        %less = tile.compare "lt" %a, %b : i32 to i1
        %m = tile.select %less, %b, %a : i1, i32
        %mi = tile.select %less, %bi, %ai : i1, i32
        tile.yield %m, %mi : i32, i32
      }
      %k = tile.arange 0 2 : tensor<2xi32>
      %rs = tile.splat %r : !tile.ptr<i32> to tensor<2x!tile.ptr<i32>>
      %r0 = tile.addptr %rs, %k : tensor<2x!tile.ptr<i32>>, tensor<2xi32> to tensor<2x!tile.ptr<i32>>
      tile.store %r0, %best : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
      %two = tile.constant 2 : tensor<2xi32>
      %r2 = tile.addptr %r0, %two : tensor<2x!tile.ptr<i32>>, tensor<2xi32> to tensor<2x!tile.ptr<i32>>
      tile.store %r2, %where : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
    """
    execute("%x: !tile.ptr<i32>, %r: !tile.ptr<i32>", body, [x, r])
    assert r.tolist() == [[9, 7], [1, 3]]


def test_reduce_with_control_flow_in_the_region(apply: Apply) -> None:
    """``p < q ? q : p + 1``, chosen element by element."""
    body = """
      %less = tile.compare "lt" %p, %q : i32 to i1
      %s = scf.if %less -> (i32) {
        scf.yield %q : i32
      } else {
        %one = tile.constant 1 : i32
        %t = tile.binary "add" %p, %one : i32
        scf.yield %t : i32
      }
      tile.yield %s : i32
    """
    x = np.array([[1, 5, 2], [9, 3, 4]], I32)
    assert apply(reduction("2x3", 1, "tensor<2xi32>", body), ("i32", ints(2)), ("i32", x)).tolist() == [6, 11]


def test_reduce_whose_region_ignores_its_arguments(apply: Apply) -> None:
    body = "%s = tile.constant 4 : i32\ntile.yield %s : i32"
    assert apply(reduction("2x3", 1, "tensor<2xi32>", body), ("i32", ints(2)), ("i32", ints(2, 3))).tolist() == [4, 4]


def test_scan_along_each_axis_and_from_the_end(apply: Apply) -> None:
    """``p + 2 q`` does not commute: the order of operands is seen."""
    body = """^bb0(%p: i32, %q: i32):
      %two = tile.constant 2 : i32
      %d = tile.binary "mul" %q, %two : i32
      %s = tile.binary "add" %p, %d : i32
      tile.yield %s : i32
    }"""
    x = ("i32", np.array([[1, 2, 3], [4, 5, 6]], I32))
    expected = {
        (0, ""): [[1, 2, 3], [9, 12, 15]],
        (1, ""): [[1, 5, 11], [4, 14, 26]],
        (0, " reverse"): [[6, 9, 12], [4, 5, 6]],
        (1, " reverse"): [[9, 7, 3], [24, 16, 6]],
    }
    for (axis, reverse), values in expected.items():
        text = f"%r = tile.scan %a axis {axis}{reverse} : tensor<2x3xi32> to tensor<2x3xi32> {{\n{body}"
        assert apply(text, ("i32", ints(2, 3)), x).tolist() == values


def test_gather_along_each_axis(apply: Apply) -> None:
    """An index outside of the axis gives 0."""
    x = ("i32", np.array([[1, 2, 3], [4, 5, 6]], I32))
    text = "%r = tile.gather %a, %b axis 1 : tensor<2x3xi32>, tensor<2x4xi32> to tensor<2x4xi32>"
    index = ("i32", np.array([[2, 2, 0, 3], [1, -1, 0, 2]], I32))
    assert apply(text, ("i32", ints(2, 4)), x, index).tolist() == [[3, 3, 1, 0], [5, 0, 4, 6]]
    text = "%r = tile.gather %a, %b axis 0 : tensor<2x3xi32>, tensor<1x3xi32> to tensor<1x3xi32>"
    assert apply(text, ("i32", ints(1, 3)), x, ("i32", np.array([[1, 0, 1]], I32))).tolist() == [[4, 2, 6]]


def dot(a: str, b: str, acc: str, m: int = 2, k: int = 2, n: int = 2) -> str:
    return f"%r = tile.dot %a, %b, %c : tensor<{m}x{k}x{a}>, tensor<{k}x{n}x{b}> to tensor<{m}x{n}x{acc}>"


def test_dot_of_integers_wraps(apply: Apply) -> None:
    a, b = np.array([[127, -128], [1, 2]], np.int8), np.array([[100, -1], [3, 4]], np.int8)
    acc = np.array([[2**31 - 1, 0], [0, -5]], I32)
    result = apply(dot("i8", "i8", "i32"), ("i32", acc * 0), ("i8", a), ("i8", b), ("i32", acc))
    exact = [[2**31 - 1 + 12700 - 384, -127 - 512], [100 + 6, -5 - 1 + 8]]
    assert result.tolist() == [[exact[0][0] - 2**32, exact[0][1]], exact[1]]


def test_dot_rounds_the_sum_once(apply: Apply) -> None:
    """2**24 + 1 + 1 in float32: one by one each 1 is lost to the tie; the exact sum 2**24 + 2 is a number."""
    a, b = np.array([[2.0**12, 1, 1]], F32), np.array([[2.0**12], [1], [1]], F32)
    out = ("f32", np.zeros((1, 1), F32))
    text = dot("f32", "f32", "f32", 1, 3, 1)
    assert apply(text, out, ("f32", a), ("f32", b), ("f32", np.zeros((1, 1), F32))).item() == 2.0**24 + 2


def test_dot_in_float64(apply: Apply) -> None:
    """2**40 * 1 + 1 needs 41 bits."""
    one = ("f64", np.ones((1, 1)))
    out = ("f64", np.zeros((1, 1)))
    assert apply(dot("f64", "f64", "f64", 1, 1, 1), out, ("f64", np.array([[2.0**40]])), one, one).item() == 2**40 + 1


def test_dot_of_narrow_floats(apply: Apply) -> None:
    bf16, e5m2 = dtypes.bfloat16.numpy, dtypes.float8_e5m2.numpy
    a, b = np.array([[1.5, 2.0], [0.0, -1.0]]), np.array([[3.0, 1.0], [0.5, 2.0]])
    acc = np.ones((2, 2), F32)
    out = ("f32", np.zeros((2, 2), F32))
    expected = [[1.5 * 3 + 2 * 0.5 + 1, 1.5 + 4 + 1], [-0.5 + 1, -2.0 + 1]]
    text = dot("bf16", "f8E5M2", "f32")
    assert apply(text, out, ("bf16", a.astype(bf16)), ("f8E5M2", b.astype(e5m2)), ("f32", acc)).tolist() == expected


# Control flow and the grid

I32_ARRAY = "%x: !tile.ptr<i32>"


def append(value: str) -> str:
    """``x[x[0]] = value; x[0] += 1``: what programs and iterations do, in order."""
    return f"""
      %at = tile.load %x : !tile.ptr<i32> to i32
      %slot = tile.addptr %x, %at : !tile.ptr<i32>, i32 to !tile.ptr<i32>
      tile.store %slot, {value} : !tile.ptr<i32>, i32
      %unit = tile.constant 1 : i32
      %next = tile.binary "add" %at, %unit : i32
      tile.store %x, %next : !tile.ptr<i32>, i32
    """


def trace(execute: Execute, parameters: str, body: str, *arguments: Any, grid: tuple[int, ...] = (1,)) -> list[int]:
    """The values appended."""
    x = np.zeros(40, I32)
    x[0] = 1
    execute(", ".join(filter(None, (I32_ARRAY, parameters))), body, [x, *arguments], grid)
    return x[1 : x[0]].tolist()


def test_programs_run_with_x_fastest(execute: Execute) -> None:
    """Each appends 100 * x + 10 * y + z."""
    body = """
      %px = tile.program_id 0
      %py = tile.program_id 1
      %pz = tile.program_id 2
      %ten = tile.constant 10 : i32
      %xx = tile.binary "mul" %px, %ten : i32
      %xy = tile.binary "add" %xx, %py : i32
      %xy10 = tile.binary "mul" %xy, %ten : i32
      %v = tile.binary "add" %xy10, %pz : i32
    """
    expected = [0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121]
    assert trace(execute, "", body + append("%v"), grid=(2, 3, 2)) == expected
    assert trace(execute, "", body + append("%v"), grid=(2, 0)) == []


def test_num_programs(execute: Execute) -> None:
    for axis, size in enumerate((3, 2, 1)):
        body = f"%v = tile.num_programs {axis}" + append("%v")
        assert trace(execute, "", body, grid=(3, 2)) == [size] * 6


def for_loop(type_: str) -> str:
    """Appends the induction value of each iteration."""
    cast = f"%v = tile.cast %i : {type_} to i32"
    return f"scf.for %i = %lb to %ub step %step : {type_} {{\n{cast}\n{append('%v')}}}\n"


@pytest.mark.parametrize(
    ("type_", "bounds", "expected"),
    [
        ("i32", (0, 5, 2), [0, 2, 4]),
        ("i32", (-3, 3, 3), [-3, 0]),
        ("i32", (2, 2, 1), []),
        ("i32", (5, -5, 1), []),
        ("i64", (2**40, 2**40 + 2, 1), [0, 1]),
        ("i32", (2**31 - 3, 2**31 - 1, 4), [2**31 - 3]),  # the next value would wrap
    ],
)
def test_for(type_: str, bounds: tuple[int, ...], expected: list[int], execute: Execute) -> None:
    parameters = f"%lb: {type_}, %ub: {type_}, %step: {type_}"
    assert trace(execute, parameters, for_loop(type_), *bounds) == expected


def test_for_carries_values(execute: Execute) -> None:
    """Fibonacci; without an iteration the initial values come out."""
    body = """
      %lb = tile.constant 0 : i32
      %one = tile.constant 1 : i32
      %a, %b = scf.for %i = %lb to %n step %one iter_args(%p = %lb, %q = %one) -> (i32, i32) : i32 {
        %s = tile.binary "add" %p, %q : i32
        scf.yield %q, %s : i32, i32
      }
    """
    assert [trace(execute, "%n: i32", body + append("%a"), n)[0] for n in (0, 1, 2, 10)] == [0, 1, 1, 55]


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_that_is_not_positive(step: int, execute: Execute) -> None:
    with pytest.raises(reference.UndefinedBehaviourError) as error:
        trace(execute, "%lb: i32, %ub: i32, %step: i32", for_loop("i32"), 0, 4, step)
    assert str(error.value) == (f"scf.for at an unknown position, program (0, 0, 0): the step is {step}, not positive")


def test_while(execute: Execute) -> None:
    """Collatz steps: the condition's operands reach the body and the results."""
    body = """
      %zero = tile.constant 0 : i32
      %one = tile.constant 1 : i32
      %two = tile.constant 2 : i32
      %three = tile.constant 3 : i32
      %last, %steps = scf.while (%v = %n, %count = %zero) : (i32, i32) -> (i32, i32) {
        %go = tile.compare "ne" %v, %one : i32 to i1
        scf.condition(%go) %v, %count : i32, i32
      } do {
      ^bb0(%v: i32, %count: i32):
        %odd = tile.binary "and" %v, %one : i32
        %is_odd = tile.cast %odd : i32 to i1
        %next = scf.if %is_odd -> (i32) {
          %u = tile.binary "mul" %v, %three : i32
          %t = tile.binary "add" %u, %one : i32
          scf.yield %t : i32
        } else {
          %half = tile.binary "div" %v, %two : i32
          scf.yield %half : i32
        }
        %more = tile.binary "add" %count, %one : i32
        scf.yield %next, %more : i32, i32
      }
    """
    assert trace(execute, "%n: i32", body + append("%steps"), 6) == [8]  # 6 3 10 5 16 8 4 2 1
    assert trace(execute, "%n: i32", body + append("%steps"), 1) == [0]


def test_if_without_results_or_else(execute: Execute) -> None:
    body = "scf.if %c {\n" + append("%n") + "}\n"
    assert trace(execute, "%c: i1, %n: i32", body, True, 5) == [5]
    assert trace(execute, "%c: i1, %n: i32", body, False, 5) == []


def test_assume(execute: Execute) -> None:
    execute("%c: i1", "tile.assume %c", [True])
    with pytest.raises(reference.UndefinedBehaviourError) as error:
        execute("%c: i1", "tile.assume %c", [False], (1, 1, 1))
    assert str(error.value) == ("tile.assume at an unknown position, program (0, 0, 0): the assumption does not hold")


# Arguments


def test_scalar_arguments_take_the_parameters_type(execute: Execute) -> None:
    r = np.zeros(1, dtypes.bfloat16.numpy)
    store = "tile.store %r, %v : !tile.ptr<bf16>, bf16"
    execute("%r: !tile.ptr<bf16>, %v: bf16", store, [r, 1 + 2**-8 + 2**-52])
    assert float(r[0]) == 1 + 2**-7
    i = np.zeros(1, np.uint64)
    execute("%r: !tile.ptr<ui64>, %v: ui64", "tile.store %r, %v : !tile.ptr<ui64>, ui64", [i, 2**64 - 1])
    assert int(i[0]) == 2**64 - 1


@pytest.mark.parametrize(
    ("parameter", "argument", "kind", "message"),
    [
        ("!tile.ptr<f32>", np.zeros(1), TypeError, "argument 0 is an array of float32, found float64"),
        ("!tile.ptr<f32>", 3, TypeError, "argument 0 is an array of float32, found int"),
        ("i32", np.zeros(1), TypeError, "argument 0 is a number, int32, found an array"),
        ("i8", 128, ValueError, "argument 0: 128 is out of range for int8"),
        ("ui8", -1, ValueError, "argument 0: -1 is out of range for uint8"),
        ("i1", 2, ValueError, "argument 0: 2 is out of range for bool"),
        ("i32", 1.5, TypeError, "argument 0 is an integer, int32, found 1.5"),
    ],
)
def test_arguments_that_do_not_fit(
    parameter: str, argument: Any, kind: type[Exception], message: str, execute: Execute
) -> None:
    with pytest.raises(kind) as error:
        execute(f"%a: {parameter}", "", [argument])
    assert str(error.value) == message


def test_calls_that_do_not_fit(execute: Execute) -> None:
    with pytest.raises(TypeError) as error:
        execute("%a: i32", "", [])
    assert str(error.value) == "kernel takes 1 arguments, found 0"
    for grid in ((), (1, 1, 1, 1)):
        with pytest.raises(ValueError) as error_:
            execute("", "", [], grid)
        assert str(error_.value) == f"a grid has one to three sizes, found {grid}"
    with pytest.raises(ValueError) as error_:
        reference.run(ModuleOp([]), [], (1,))
    assert str(error_.value) == "expected a module of one func.func, found 0"


# What has no meaning


def test_an_op_without_a_meaning_is_named_with_its_line() -> None:
    op = test.TestOp(result_types=[scalar(dtypes.int32)])
    op.location = FileLineColLoc(StringAttr("k.py"), IntAttr(3), IntAttr(0))
    block = Block([op, func.ReturnOp()], arg_types=[pointer(dtypes.int32)])
    module = ModuleOp([func.FuncOp("k", ([pointer(dtypes.int32)], []), Region(block))])
    with pytest.raises(NotImplementedError) as error:
        reference.run(module, [np.zeros(1, I32)], (1,))
    assert str(error.value) == "the reference does not define test.op at k.py:3:1 in ?"


def test_an_op_of_the_dialect_without_a_meaning_fails_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile, "Tile", type(tile.Tile)("tile", [*tile.Tile.operations, test.TestOp]))
    spec = importlib.util.find_spec("weft.reference.interpreter")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ValueError) as error:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert str(error.value) == "weft.reference: no meaning for test.op"
