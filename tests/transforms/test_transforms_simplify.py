"""`Simplify`: expected text, and the same memory before and after under the reference."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import scalar, tensor
from weft.reference import elementwise, numbers, run
from weft.transforms import Dce, Simplify, identities
from weft.transforms.constants import number_of

Array = NDArray[Any]
Kernel = Callable[[str, str], ModuleOp]
Body = Callable[[ModuleOp], str]

SIGNATURE = "%px: !tile.ptr<{t}>, %py: !tile.ptr<{t}>, %out: !tile.ptr<{u}>, %n: i32, %flag: i1"
# %a and %b are tiles of the arguments, %s is the scalar n as a tile, %f the flag as a tile.
HEAD = """%r = tile.arange 0 64 : tensor<64xi32>
%xs = tile.splat %px : !tile.ptr<{t}> to tensor<64x!tile.ptr<{t}>>
%ys = tile.splat %py : !tile.ptr<{t}> to tensor<64x!tile.ptr<{t}>>
%os = tile.splat %out : !tile.ptr<{u}> to tensor<64x!tile.ptr<{u}>>
%xp = tile.addptr %xs, %r : tensor<64x!tile.ptr<{t}>>, tensor<64xi32> to tensor<64x!tile.ptr<{t}>>
%yp = tile.addptr %ys, %r : tensor<64x!tile.ptr<{t}>>, tensor<64xi32> to tensor<64x!tile.ptr<{t}>>
%op = tile.addptr %os, %r : tensor<64x!tile.ptr<{u}>>, tensor<64xi32> to tensor<64x!tile.ptr<{u}>>
%a = tile.load %xp : tensor<64x!tile.ptr<{t}>> to tensor<64x{t}>
%b = tile.load %yp : tensor<64x!tile.ptr<{t}>> to tensor<64x{t}>"""
TAIL = "tile.store %op, %v : tensor<64x!tile.ptr<{u}>>, tensor<64x{u}>"


def samples(dtype: DType, seed: int) -> Array:
    """64 values, the difficult ones first."""
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        edges = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-45, 3.5, 2.0**100]
        values = np.concatenate([edges, rng.normal(0, 100, 64 - len(edges))])
        with np.errstate(all="ignore"):
            return rng.permutation(values).astype(dtype.numpy)
    edges = [dtype.min, dtype.max, 0, 1, dtype.max - 1]
    rest = [int(x) for x in rng.integers(dtype.min, dtype.max, 59, endpoint=True, dtype=dtype.numpy)]
    return rng.permutation(np.array(edges + rest, dtype.numpy))


def outcome(module: ModuleOp, t: DType, u: DType, n: int, flag: bool) -> Array:
    """What the module stores; NaNs of one kind, since which NaN results is not specified."""
    arrays = [samples(t, 1), samples(t, 2), np.zeros(64, u.numpy)]
    run(module, [*arrays, n, flag], (1,))
    result = arrays[2]
    if u.is_float:
        result = np.where(np.isnan(result.astype(np.float64)), np.array(np.nan, u.numpy), result)
    return result.view(f"u{u.itemsize}")


def simplified(module: ModuleOp) -> ModuleOp:
    result = module.clone()
    Simplify().apply(Context(), result)
    result.verify()
    Dce().apply(Context(), result)
    result.verify()
    return result


SPELLING = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "ui32": "uint32",
    "i8": "int8",
    "ui8": "uint8",
    "i1": "bool",
}

# type of %a and %b, type of the result, lines that make %v, lines that are left, what is stored. T is the type of %a.
SAME: list[tuple[str, str, str, str, str]] = [
    ("f32", "f32", '%c = tile.constant -0.0 : T\n%v = tile.binary "add" %a, %c : T', "", "%a"),
    ("f32", "f32", '%c = tile.constant 0.0 : T\n%v = tile.binary "sub" %a, %c : T', "", "%a"),
    ("f32", "f32", '%c = tile.constant 1.0 : T\n%v = tile.binary "mul" %c, %a : T', "", "%a"),
    ("f32", "f32", '%c = tile.constant 1.0 : T\n%v = tile.binary "div" %a, %c : T', "", "%a"),
    ("f32", "f32", '%v = tile.binary "max" %a, %a : T', "", "%a"),
    ("f32", "f32", '%c = tile.unary "neg" %a : T\n%v = tile.unary "neg" %c : T', "", "%a"),
    ("i32", "i32", '%c = tile.constant 0 : T\n%v = tile.binary "add" %c, %a : T', "", "%a"),
    ("i32", "i32", '%c = tile.constant 0 : T\n%v = tile.binary "mul" %a, %c : T', "%c = tile.constant 0 : T", "%c"),
    ("i32", "i32", '%c = tile.constant -1 : T\n%v = tile.binary "and" %a, %c : T', "", "%a"),
    ("ui8", "ui8", '%c = tile.constant 255 : T\n%v = tile.binary "min" %a, %c : T', "", "%a"),
    ("i32", "i32", '%v = tile.binary "sub" %a, %a : T', "%v = tile.constant 0 : T", "%v"),
    ("i32", "i32", '%c = tile.constant 1 : T\n%v = tile.binary "rem" %a, %c : T', "%v = tile.constant 0 : T", "%v"),
    ("i32", "i32", '%c = tile.constant 0 : T\n%v = tile.binary "div" %c, %a : T', "%c = tile.constant 0 : T", "%c"),
    # integers reassociate
    (
        "i8", "i8",
        '%c = tile.constant 100 : T\n%d = tile.binary "add" %a, %c : T\n%v = tile.binary "add" %d, %c : T',
        '%0 = tile.constant -56 : T\n%v = tile.binary "add" %a, %0 : T', "%v",
    ),
    # constants fold with the reference's arithmetic, rounding included
    (
        "f16", "f16",
        '%c = tile.constant 2048.0 : T\n%d = tile.constant 1.0 : T\n%v = tile.binary "add" %c, %d : T',
        "%v = tile.constant 2048.0 : T", "%v",
    ),
    (
        "i8", "i8",
        '%c = tile.constant 100 : T\n%v = tile.binary "mul" %c, %c : T', "%v = tile.constant 16 : T", "%v",
    ),
    ("i32", "i32", "%c = tile.constant 5 : T\n%v = tile.hint %c divisibility [4] : T", "%c = tile.constant 5 : T", "%c"),
    ("f32", "f32", '%c = tile.constant 1.5 : T\n%v = tile.binary "mul" %c, %c : T', "%v = tile.constant 2.25 : T", "%v"),
    ("ui32", "ui32", '%c = tile.constant 4294967295 : T\n%v = tile.binary "and" %a, %c : T', "", "%a"),
    (
        "ui8", "ui8",
        '%c = tile.constant 255 : T\n%v = tile.binary "or" %a, %c : T', "%c = tile.constant 255 : T", "%c",
    ),
    # bits that are read as they were written
    ("i32", "i32", "%v = tile.bitcast %a : T to T", "", "%a"),
    (
        "i32", "ui32",
        "%c = tile.bitcast %a : T to tensor<64xf32>\n%v = tile.bitcast %c : tensor<64xf32> to tensor<64xui32>",
        "%v = tile.bitcast %a : T to tensor<64xui32>", "%v",
    ),
    ("i32", "ui32", "%v = tile.bitcast %a : T to tensor<64xui32>", "%v = tile.bitcast %a : T to tensor<64xui32>", "%v"),
    # elements that stay where they are
    (
        "i32", "i32",
        "%c = tile.reshape %a : T to tensor<8x8xi32>\n"
        "%d = tile.trans %c [0, 1] : tensor<8x8xi32> to tensor<8x8xi32>\n"
        "%v = tile.reshape %d : tensor<8x8xi32> to T",
        "%c = tile.reshape %a : T to tensor<8x8xi32>\n%v = tile.reshape %c : tensor<8x8xi32> to T", "%v",
    ),
    # where a mask lets nothing through and nothing else is given, the reference's value
    (
        "i32", "i32",
        "%m = tile.constant 0 : tensor<64xi1>\n"
        "%v = tile.load %xp mask %m : tensor<64xi1> : tensor<64x!tile.ptr<i32>> to T",
        "%v = tile.constant 0 : T", "%v",
    ),
    # a bool chosen by itself
    (
        "i32", "i1",
        '%c = tile.compare "lt" %a, %b : T to tensor<64xi1>\n%one = tile.constant 1 : tensor<64xi1>\n'
        "%zero = tile.constant 0 : tensor<64xi1>\n%v = tile.select %c, %one, %zero : tensor<64xi1>, tensor<64xi1>",
        '%c = tile.compare "lt" %a, %b : T to tensor<64xi1>', "%c",
    ),
    # comparisons
    (
        "i32", "i1",
        '%v = tile.compare "le" %a, %a : T to tensor<64xi1>', "%v = tile.constant 1 : tensor<64xi1>", "%v",
    ),
    (
        "i32", "i1",
        '%c = tile.constant 7 : T\n%v = tile.compare "lt" %c, %a : T to tensor<64xi1>',
        '%c = tile.constant 7 : T\n%v = tile.compare "gt" %a, %c : T to tensor<64xi1>', "%v",
    ),
    # select
    ("f32", "f32", "%c = tile.constant 1 : tensor<64xi1>\n%v = tile.select %c, %a, %b : tensor<64xi1>, T", "", "%a"),
    ("f32", "f32", "%c = tile.constant 0 : tensor<64xi1>\n%v = tile.select %c, %a, %b : tensor<64xi1>, T", "", "%b"),
    (
        "f32", "f32",
        '%c = tile.compare "lt" %a, %b : T to tensor<64xi1>\n%v = tile.select %c, %a, %a : tensor<64xi1>, T', "", "%a",
    ),
    # casts
    ("i8", "i8", "%c = tile.cast %a : T to tensor<64xi32>\n%v = tile.cast %c : tensor<64xi32> to T", "", "%a"),
    (
        "i32", "f32",
        "%c = tile.cast %a : T to tensor<64xf64>\n%v = tile.cast %c : tensor<64xf64> to tensor<64xf32>",
        "%v = tile.cast %a : T to tensor<64xf32>", "%v",
    ),
    # splats
    (
        "i32", "i32",
        '%s = tile.splat %n : i32 to T\n%c = tile.constant 3 : T\n%v = tile.binary "mul" %s, %c : T',
        '%0 = tile.constant 3 : i32\n%1 = tile.binary "mul" %n, %0 : i32\n%v = tile.splat %1 : i32 to T', "%v",
    ),
    (
        "i32", "i32",
        "%s = tile.splat %n : i32 to tensor<1x8xi32>\n"
        "%c = tile.broadcast %s : tensor<1x8xi32> to tensor<8x8xi32>\n"
        "%v = tile.reshape %c : tensor<8x8xi32> to T",
        "%v = tile.splat %n : i32 to T", "%v",
    ),
    (
        "f32", "f32",
        "%s = tile.constant 2.5 : f32\n%c = tile.splat %s : f32 to tensor<64x1xf32>\n"
        "%d = tile.trans %c [1, 0] : tensor<64x1xf32> to tensor<1x64xf32>\n"
        "%v = tile.reshape %d : tensor<1x64xf32> to T",
        "%v = tile.constant 2.5 : T", "%v",
    ),
    ("f32", "f32", "%v = tile.reshape %a : T to T", "", "%a"),
    # control flow
    (
        "f32", "f32",
        "%c = tile.constant 1 : i1\n%v = scf.if %c -> (T) {\n"
        '  %d = tile.binary "add" %a, %b : T\n  scf.yield %d : T\n} else {\n  scf.yield %b : T\n}',
        '%d = tile.binary "add" %a, %b : T', "%d",
    ),
    (
        "f32", "f32",
        "%lo = tile.constant 4 : i32\n%hi = tile.constant 4 : i32\n%v = scf.for %i = %lo to %hi step %lo "
        'iter_args(%x = %a) -> (T) : i32 {\n  %d = tile.binary "add" %x, %b : T\n  scf.yield %d : T\n}', "", "%a",
    ),
    (
        "i32", "i32",
        "%lo = tile.constant 4 : i32\n%hi = tile.constant 8 : i32\n%v = scf.for %i = %lo to %hi step %lo "
        "iter_args(%x = %a) -> (T) : i32 {\n  %s = tile.splat %i : i32 to T\n"
        '  %d = tile.binary "add" %x, %s : T\n  scf.yield %d : T\n}',
        '%s = tile.constant 4 : T\n%d = tile.binary "add" %a, %s : T', "%d",
    ),
    (
        "i32", "i32",
        "%lo = tile.constant 0 : i32\n%one = tile.constant 1 : i32\n"
        "%v, %w = scf.for %i = %lo to %n step %one iter_args(%x = %a, %y = %b) -> (T, T) : i32 {\n"
        '  %d = tile.binary "add" %x, %y : T\n  scf.yield %d, %y : T, T\n}',
        "%lo = tile.constant 0 : i32\n%one = tile.constant 1 : i32\n"
        "%v = scf.for %i = %lo to %n step %one iter_args(%x = %a) -> (T) : i32 {\n"
        '%d = tile.binary "add" %x, %b : T\nscf.yield %d : T\n}', "%v",
    ),
    # memory
    (
        "f32", "f32",
        "%c = tile.constant 1 : tensor<64xi1>\n%v = tile.load %xp mask %c : tensor<64xi1> other %b : T : "
        "tensor<64x!tile.ptr<f32>> to T",
        "%v = tile.load %xp : tensor<64x!tile.ptr<f32>> to T", "%v",
    ),
    (
        "f32", "f32",
        "%c = tile.constant 0 : tensor<64xi1>\n%v = tile.load %xp mask %c : tensor<64xi1> other %b : T : "
        "tensor<64x!tile.ptr<f32>> to T", "", "%b",
    ),
]  # fmt: skip

SAME.append(
    (
        "i32",
        "i32",
        (
            "%lo = tile.constant 0 : i32\n%one = tile.constant 1 : i32\n"
            "%v, %w = scf.for %i = %lo to %n step %one iter_args(%x = %a, %y = %b) -> (T, T) : i32 {\n"
            '  %d = tile.binary "add" %x, %y : T\n  scf.yield %d, %b : T, T\n}'
        ),
        (
            "%lo = tile.constant 0 : i32\n%one = tile.constant 1 : i32\n"
            "%v = scf.for %i = %lo to %n step %one iter_args(%x = %a) -> (T) : i32 {\n"
            '%d = tile.binary "add" %x, %b : T\nscf.yield %d : T\n}'
        ),
        "%v",
    )
)

# What looks alike and must stay: each changes some value (or has an effect).
STAY = [
    ("f32", "f32", '%c = tile.constant 0.0 : T\n%v = tile.binary "add" %a, %c : T'),  # -0 + 0 is +0
    ("f32", "f32", '%c = tile.constant -0.0 : T\n%v = tile.binary "sub" %a, %c : T'),
    ("f32", "f32", '%c = tile.constant 0.0 : T\n%v = tile.binary "mul" %a, %c : T'),
    ("f32", "f32", '%v = tile.binary "sub" %a, %a : T'),
    ("f32", "i1", '%v = tile.compare "eq" %a, %a : T to tensor<64xi1>'),
    ("f32", "f32", '%c = tile.constant 1.0 : T\n%v = tile.binary "div" %c, %a : T'),
    ("i32", "i32", '%c = tile.constant 0 : T\n%v = tile.binary "sub" %c, %a : T'),
    ("i32", "i8", "%c = tile.cast %a : T to tensor<64xf64>\n%v = tile.cast %c : tensor<64xf64> to tensor<64xi8>"),
    ("i32", "i32", "%c = tile.cast %a : T to tensor<64xi8>\n%v = tile.cast %c : tensor<64xi8> to T"),
    ("i32", "i32", '%c = tile.unary "not" %a : T\n%v = tile.unary "neg" %c : T'),  # a + 1
    (  # the transposition of a square tile has its type, and moves
        "i32", "i32",
        "%c = tile.reshape %a : T to tensor<8x8xi32>\n"
        "%d = tile.trans %c [1, 0] : tensor<8x8xi32> to tensor<8x8xi32>\n"
        "%v = tile.reshape %d : tensor<8x8xi32> to T",
    ),
    (
        "i32", "i1",
        '%c = tile.compare "lt" %a, %b : T to tensor<64xi1>\n%one = tile.constant 1 : tensor<64xi1>\n'
        "%zero = tile.constant 0 : tensor<64xi1>\n%v = tile.select %c, %zero, %one : tensor<64xi1>, tensor<64xi1>",
    ),
    (  # 1 and 0 are no bools here
        "i32", "i32",
        '%c = tile.compare "lt" %a, %b : T to tensor<64xi1>\n%one = tile.constant 1 : T\n%zero = tile.constant 0 : T\n'
        "%v = tile.select %c, %one, %zero : tensor<64xi1>, T",
    ),
    ("i1", "i1", '%c = tile.binary "xor" %a, %b : T\n%d = tile.constant 0 : T\n%v = tile.select %c, %a, %d : T, T'),
    ("i1", "i1", '%c = tile.binary "xor" %a, %b : T\n%d = tile.constant 1 : T\n%v = tile.select %c, %d, %a : T, T'),
    ("f32", "f32", '%c = tile.unary "exp" %a : T\n%v = tile.unary "exp" %c : T'),
    (  # an unknown step
        "i32", "i32",
        "%lo = tile.constant 0 : i32\n%hi = tile.constant 4 : i32\n%v = scf.for %i = %lo to %hi step %n "
        "iter_args(%x = %a) -> (T) : i32 {\n"
        '  %d = tile.binary "add" %x, %b : T\n  scf.yield %d : T\n}',
    ),
    (  # any number of iterations
        "i32", "i32",
        "%hi = tile.constant 4 : i32\n%v = scf.for %i = %n to %hi step %hi "
        "iter_args(%x = %a) -> (T) : i32 {\n"
        '  %d = tile.binary "add" %x, %b : T\n  scf.yield %d : T\n}',
    ),
    (  # two iterations
        "i32", "i32",
        "%lo = tile.constant 4 : i32\n%hi = tile.constant 9 : i32\n%v = scf.for %i = %lo to %hi step %lo "
        "iter_args(%x = %a) -> (T) : i32 {\n  %s = tile.splat %i : i32 to T\n"
        '  %d = tile.binary "add" %x, %s : T\n  scf.yield %d : T\n}',
    ),
    (
        "f32", "f32",
        '%c = tile.constant 0.10000000149011612 : T\n%d = tile.binary "add" %a, %c : T\n%v = tile.binary "add" %d, %c : T',
    ),
]  # fmt: skip


def spell(text: str, t: str, u: str) -> str:
    """The text with the types put in, T being the type of %a."""
    return re.sub(r"\bT\b", f"tensor<64x{t}>", text.replace("{t}", t).replace("{u}", u))


def build(kernel: Kernel, t: str, u: str, lines: str) -> ModuleOp:
    return kernel(spell(SIGNATURE, t, u), spell(f"{HEAD}\n{lines}\n{TAIL}", t, u))


def check_same_memory(before: ModuleOp, after: ModuleOp, t: str, u: str) -> None:
    for n, flag in ((0, False), (3, True), (-7, True)):
        types = dtypes.parse(SPELLING[t]), dtypes.parse(SPELLING[u])
        np.testing.assert_array_equal(outcome(before, *types, n, flag), outcome(after, *types, n, flag))


@pytest.mark.parametrize(("t", "u", "lines", "left", "stored"), SAME)
def test_rewrites(kernel: Kernel, body_of: Body, t: str, u: str, lines: str, left: str, stored: str) -> None:
    before = build(kernel, t, u, lines)
    after = simplified(before)
    head = spell(HEAD, t, u).splitlines()
    lines_left = [line for line in body_of(after).splitlines() if line not in head]
    assert lines_left == spell(f"{left}\n{TAIL}".strip(), t, u).replace("%v :", f"{stored} :").splitlines()
    check_same_memory(before, after, t, u)


@pytest.mark.parametrize(("t", "u", "lines"), STAY)
def test_what_must_stay(kernel: Kernel, t: str, u: str, lines: str) -> None:
    before = build(kernel, t, u, lines)
    after = simplified(before)
    dead = before.clone()
    Dce().apply(Context(), dead)
    assert str(after) == str(dead)


def test_assumptions_and_stores(kernel: Kernel, body_of: Body) -> None:
    text = """
        %t = tile.constant 1 : i1
        %f = tile.constant 0 : i1
        %z = tile.constant 0.5 : f32
        tile.assume %t
        tile.assume %flag
        tile.store %out, %z mask %t : i1 : !tile.ptr<f32>, f32
        tile.store %out, %z mask %f : i1 : !tile.ptr<f32>, f32
        tile.store %out, %z mask %flag : i1 : !tile.ptr<f32>, f32
    """
    assert body_of(simplified(kernel("%out: !tile.ptr<f32>, %flag: i1", text))).splitlines() == [
        "%z = tile.constant 0.5 : f32",
        "tile.assume %flag",
        "tile.store %out, %z : !tile.ptr<f32>, f32",
        "tile.store %out, %z mask %flag : i1 : !tile.ptr<f32>, f32",
    ]


def test_new_ops_keep_the_location_and_the_name() -> None:
    lhs, rhs = tile.ConstantOp(2, scalar(dtypes.int32)), tile.ConstantOp(3, scalar(dtypes.int32))
    op = tile.BinaryOp("mul", lhs.result, rhs.result)
    op.result.name_hint = "six"
    location = copy.copy(op.location)
    op.location = location
    keep = tile.CastOp(op.result, dtypes.float32)
    module = ModuleOp([lhs, rhs, op, keep])
    Simplify().apply(Context(), module)
    constant = list(module.ops)[-1]
    assert isinstance(constant, tile.ConstantOp) and constant.number == 6.0
    six = next(o for o in module.ops if isinstance(o, tile.ConstantOp) and o.result.name_hint == "six")
    assert six.number == 6
    assert six.location is location


# Exhaustive: every rule of the tables, on every value of the 8-bit types and every pattern of float16.


def every_value(dtype: DType) -> Array:
    if dtype.is_bool:
        return np.array([False, True])
    return np.arange(1 << dtype.bits, dtype=f"u{dtype.itemsize}").view(dtype.numpy)


def same_values(x: Array, y: Array) -> bool:
    """Equal bits, except that all NaNs count as one."""
    if x.dtype.kind in "biu":
        return bool(np.array_equal(x, y))
    wide, other = x.astype(np.float64), y.astype(np.float64)
    return bool(np.array_equal(wide, other, equal_nan=True) and np.array_equal(np.signbit(wide), np.signbit(other)))


def constants(dtype: DType) -> list[int | float]:
    if dtype.is_float:
        return [0.0, -0.0, 1.0, -1.0, 2.0]
    return sorted({dtype.min, dtype.max, 0, 1, ones if (ones := -1) >= dtype.min else dtype.max})


@pytest.mark.parametrize(
    "dtype",
    [dtypes.bool_, dtypes.int8, dtypes.uint8, dtypes.float8_e5m2, dtypes.float8_e4m3fn, dtypes.float16],
    ids=str,
)
def test_every_identity_holds_for_every_value(dtype: DType) -> None:
    values = every_value(dtype)
    fired = 0
    for kind, number, swap in product(
        [k for k, classes in tile.BINARY.items() if dtype.kind.name.lower() in classes], constants(dtype), (False, True)
    ):
        variable = Block(arg_types=[tensor(dtype, values.shape)]).args[0]
        constant = tile.ConstantOp(number, variable.type)
        operands = (constant.result, variable) if swap else (variable, constant.result)
        replacement = identities.binary(tile.BinaryOp(kind, *operands))
        if replacement is None:
            continue
        fired += 1
        result = replacement if isinstance(replacement, SSAValue) else replacement[-1].results[0]
        number_array = np.full(values.shape, number, dtype.numpy)
        sides = (number_array, values) if swap else (values, number_array)
        with np.errstate(all="ignore"):
            exact = elementwise.binary(kind, dtype, *sides)
        known = number_of(result)
        claimed = values if known is None else np.full(values.shape, known, dtype.numpy)
        assert (known is None) == (result is variable)
        assert same_values(exact, claimed), f"{kind} {number} {swap}"
    assert fired >= (6 if dtype.is_float else 10)


def interesting(dtype: DType) -> Array:
    if dtype.bits <= 16:
        return every_value(dtype) if dtype.bits <= 8 else every_value(dtype)[::7]
    return samples(dtype, 3)


@pytest.mark.parametrize("first", dtypes.ALL, ids=str)
def test_every_merged_pair_of_casts(first: DType) -> None:
    """All types in the middle and at the end; where the rule merges two casts they equal the one."""
    values = interesting(first)
    merged = 0
    for middle, last in product(dtypes.ALL, repeat=2):
        source = Block(arg_types=[scalar(first)]).args[0]
        inner = tile.CastOp(source, middle)
        replacement = identities.cast(tile.CastOp(inner.result, last))
        if replacement is None or replacement is inner.result:
            continue
        merged += 1
        with np.errstate(all="ignore"):
            two = numbers.cast(numbers.cast(values, first, middle), middle, last)
            one = numbers.cast(values, first, last)
        assert same_values(two, one), f"{first} -> {middle} -> {last}"
    assert merged > 10


def exactly(x: Array) -> Array:
    """As float64, integers through Python's correctly rounded conversion."""
    return (x.astype(object) if x.dtype.kind in "biu" else x).astype(np.float64)


@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_lossless_means_a_round_trip(source: DType) -> None:
    """Against conversion there and back; conversely what is lossy changes a value."""
    values = every_value(source) if source.bits <= 16 else samples(source, 4)
    for target in dtypes.ALL:
        with np.errstate(all="ignore"):
            there = numbers.cast(values, source, target)
            back = numbers.cast(there, target, source)
            kept = same_values(values, back) and same_values(exactly(values), exactly(there))
        assert dtypes.lossless(source, target) == kept, f"{source} -> {target}"


@pytest.mark.parametrize("dtype", [dtypes.bool_, dtypes.int8, dtypes.uint8], ids=str)
def test_comparisons_turn_around(dtype: DType) -> None:
    values = every_value(dtype)
    for kind, number in product(tile.COMPARE, constants(dtype)):
        variable = Block(arg_types=[tensor(dtype, values.shape)]).args[0]
        op = tile.CompareOp(kind, tile.ConstantOp(number, variable.type).result, variable)
        assert identities.compare(op) is None
        assert op.lhs is variable
        exact = elementwise.compare(kind, dtype, np.full(values.shape, number, dtype.numpy), values)
        turned = elementwise.compare(op.kind.data, dtype, values, np.full(values.shape, number, dtype.numpy))
        np.testing.assert_array_equal(exact, turned)
