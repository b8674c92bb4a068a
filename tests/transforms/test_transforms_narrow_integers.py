"""`NarrowIntegers`: the same bytes for all pairs of bytes under the reference, and each rule beside the case just beyond it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.ir import tile
from weft.reference import run
from weft.transforms.integer_ranges import Ranges
from weft.transforms.narrow_integers import NarrowIntegers

Array = NDArray[Any]
Kernel = Callable[[str, str], ModuleOp]
N = 1 << 16
"""All pairs of bytes."""

TYPES = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16}
SIGNATURE = "%px: !tile.ptr<{x}>, %py: !tile.ptr<{y}>, %out: !tile.ptr<{end}>, %w: {wide}"
HEAD = """%at = tile.arange 0 65536 : tensor<65536xi32>
%xs = tile.splat %px : !tile.ptr<{x}> to tensor<65536x!tile.ptr<{x}>>
%ys = tile.splat %py : !tile.ptr<{y}> to tensor<65536x!tile.ptr<{y}>>
%os = tile.splat %out : !tile.ptr<{end}> to tensor<65536x!tile.ptr<{end}>>
%xp = tile.addptr %xs, %at : tensor<65536x!tile.ptr<{x}>>, tensor<65536xi32> to tensor<65536x!tile.ptr<{x}>>
%yp = tile.addptr %ys, %at : tensor<65536x!tile.ptr<{y}>>, tensor<65536xi32> to tensor<65536x!tile.ptr<{y}>>
%op = tile.addptr %os, %at : tensor<65536x!tile.ptr<{end}>>, tensor<65536xi32> to tensor<65536x!tile.ptr<{end}>>
%xl = tile.load %xp : tensor<65536x!tile.ptr<{x}>> to tensor<65536x{x}>
%yl = tile.load %yp : tensor<65536x!tile.ptr<{y}>> to tensor<65536x{y}>
%less = tile.compare "lt" %xl, %xl : tensor<65536x{x}> to tensor<65536xi1>
%x = tile.cast %xl : tensor<65536x{x}> to tensor<65536x{wide}>
%y = tile.cast %yl : tensor<65536x{y}> to tensor<65536x{wide}>
%s = tile.splat %w : {wide} to tensor<65536x{wide}>
"""
TAIL = """
%e = tile.cast %v : tensor<65536x{wide}> to tensor<65536x{end}>
tile.store %op, %e : tensor<65536x!tile.ptr<{end}>>, tensor<65536x{end}>"""


def module_of(kernel: Kernel, steps: str, **types: str) -> ModuleOp:
    """A kernel that computes %v of %x, %y and %s by ``steps``, in which T is the wide type of tiles."""
    named = {"x": "ui8", "y": "ui8", "wide": "i32", "end": "ui8", **types}
    text = (HEAD + steps.replace(" T", " tensor<65536x{wide}>") + TAIL).format(**named)
    return kernel(SIGNATURE.format(**named), text)


def stored(module: ModuleOp, x: str, y: str, end: str, w: int) -> Array:
    """What the module stores of all pairs."""
    every = np.arange(N)
    arrays = [(every & 255).astype(np.uint8).view(TYPES[x]), (every >> 8).astype(np.uint8).view(TYPES[y])]
    out = np.zeros(N, TYPES[end])
    run(module, [*arrays, out, w], (1,))
    return out


def narrowed(module: ModuleOp) -> int | None:
    """The bits in which the pass computes the end; None where it changes nothing."""
    before = str(module)
    NarrowIntegers().apply(Context(), module)
    module.verify()
    if str(module) == before:
        return None
    found = {
        int(bits)
        for bits in re.findall(
            r"tile\.(?:binary|unary|select) [^:]*: (?:tensor<65536xi1>, )?tensor<65536xu?i(\d+)>", str(module)
        )
    }
    (bits,) = found
    return bits


SUM = '%v = tile.binary "add" %x, %y : T'
PRODUCT = '%p = tile.binary "mul" %x, %y : T\n'


def shifted(left: str, by: int) -> str:
    return f'%c = tile.constant {by} : T\n%v = tile.binary "shr" {left}, %c : T'


def times(number: int) -> str:
    return f'%f = tile.constant {number} : T\n%p = tile.binary "mul" %x, %f : T\n'


def and_more(number: int) -> str:
    return f'%g = tile.constant {number} : T\n%q = tile.binary "add" %p, %g : T\n'


def of_two_wants(first: str, second: str) -> str:
    """The lowest 8 bits of %q are wanted for itself, 8 more for %r."""
    return (
        '%p = tile.binary "mul" %x, %s : T\n%four = tile.constant 4 : T\n%eight = tile.constant 8 : T\n'
        '%q = tile.binary "shr" %p, %four : T\n%r = tile.binary "shr" %q, %eight : T\n'
        f'%v = tile.binary "add" {first}, {second} : T'
    )


@pytest.mark.parametrize(
    ("steps", "types", "bits"),
    [
        (SUM, {}, 8),
        (SUM, {"end": "i8", "y": "i8"}, 8),
        (SUM, {"end": "ui16"}, 16),
        (SUM, {"wide": "i16"}, 8),
        (SUM, {"wide": "i64", "end": "i16"}, 16),
        (PRODUCT + '%v = tile.unary "not" %p : T', {}, 16),
        ('%v = tile.binary "max" %x, %y : T', {}, 8),
        ('%v = tile.binary "max" %x, %y : T', {"x": "i8", "y": "i8"}, 8),
        ('%v = tile.binary "max" %x, %y : T', {"x": "i8"}, 16),
        ('%v = tile.binary "min" %x, %s : T', {}, None),
        ('%v = tile.binary "mul" %x, %s : T', {"end": "i16"}, 16),
        ('%v = tile.binary "div" %x, %y : T', {}, None),
        ('%v = tile.binary "shl" %x, %y : T', {}, None),
        (shifted("%x", 0), {}, 16),
        (PRODUCT + shifted("%p", 8), {}, 16),
        (PRODUCT + shifted("%p", 9), {}, 16),
        (PRODUCT + shifted("%p", 15), {}, 16),
        (PRODUCT + shifted("%p", 16), {}, None),
        (times(257) + shifted("%p", 9), {}, 16),
        (times(258) + shifted("%p", 9), {}, None),
        (times(256) + and_more(255) + shifted("%q", 9), {}, 16),
        (times(256) + and_more(256) + shifted("%q", 9), {}, None),
        (of_two_wants("%q", "%r"), {}, None),
        (of_two_wants("%r", "%q"), {}, None),
        (times(256) + shifted("%p", 9), {"x": "i8"}, 16),
        (times(257) + shifted("%p", 9), {"x": "i8"}, None),
        ('%p = tile.binary "mul" %x, %s : T\n' + shifted("%p", 8), {}, 16),
        ('%p = tile.binary "mul" %x, %s : T\n' + shifted("%p", 9), {}, None),
        (times(257) + '%n = tile.unary "abs" %p : T\n%v = tile.binary "min" %n, %y : T', {}, 16),
        (times(258) + '%n = tile.unary "abs" %p : T\n%v = tile.binary "min" %n, %y : T', {}, None),
        ('%d = tile.binary "sub" %x, %y : T\n%v = tile.unary "abs" %d : T', {}, 16),
        ("%v = tile.select %less, %x, %y : tensor<65536xi1>, T", {}, 8),
        ("%v = tile.select %less, %x, %s : tensor<65536xi1>, T", {}, 8),
    ],
)
def test_rules(kernel: Kernel, steps: str, types: dict[str, str], bits: int | None) -> None:
    module = module_of(kernel, steps, **types)
    x, y, end = (types.get(name, "ui8") for name in ("x", "y", "end"))
    expected = [stored(module, x, y, end, w) for w in (0, 77, -300)] if "div" not in steps else []
    assert narrowed(module) == bits
    for w, each in zip((0, 77, -300), expected, strict=False):
        np.testing.assert_array_equal(stored(module, x, y, end, w), each)


def test_values_with_other_users_stay(kernel: Kernel) -> None:
    """The wide sum would be computed beside the narrow one."""
    pointers = "tensor<65536x!tile.ptr<ui8>>"
    other = '%big = tile.compare "lt" %v, %s : T to tensor<65536xi1>'
    other += f"\n%q = tile.select %big, %op, %op : tensor<65536xi1>, {pointers}"
    assert narrowed(module_of(kernel, f"{SUM}\n{other}")) is None


KINDS = ["add", "sub", "mul", "and", "or", "xor", "min", "max", "shl", "shr", "abs", "neg", "not", "select", "constant"]


def tree(rng: random.Random, names: list[str], lines: list[str], depth: int) -> str:
    """A random value, as the lines that compute it."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([*names, "%x", "%y"])
    kind = rng.choice(KINDS)
    name = f"%v{len(lines)}"
    if kind == "constant":
        number = rng.choice([rng.randrange(16), rng.randrange(300), rng.randrange(1 << 15)])
        lines.append(f"{name} = tile.constant {number} : T")
        return name
    first = tree(rng, names, lines, depth - 1)
    name = f"%v{len(lines)}"
    if kind in ("abs", "neg", "not"):
        lines.append(f'{name} = tile.unary "{kind}" {first} : T')
    elif kind in ("shl", "shr"):
        lines.append(f"{name}c = tile.constant {rng.randrange(10)} : T")
        lines.append(f'{name} = tile.binary "{kind}" {first}, {name}c : T')
    else:
        second = tree(rng, names, lines, depth - 1)
        name = f"%v{len(lines)}"
        lines.append(
            f"{name} = tile.select %less, {first}, {second} : tensor<65536xi1>, T"
            if kind == "select"
            else f'{name} = tile.binary "{kind}" {first}, {second} : T'
        )
    names.append(name)
    return name


def random_case(kernel: Kernel, seed: int) -> tuple[ModuleOp, dict[str, str]]:
    """A module, whose constants are of the wide type, and the types of its arrays."""
    rng = random.Random(seed)
    types = {
        "x": rng.choice(["i8", "ui8"]),
        "y": rng.choice(["i8", "ui8"]),
        "end": rng.choice(["i8", "ui8", "i16", "ui16"]),
    }
    lines: list[str] = []
    top = tree(rng, [], lines, 4)
    zero = '%zero = tile.constant 0 : T\n%v = tile.binary "add" ' + top + ", %zero : T"
    return module_of(kernel, "\n".join([*lines, zero]), wide=rng.choice(["i32", "ui32", "i64"]), **types), types


def test_random_trees_of_all_bytes(kernel: Kernel) -> None:
    """120 trees; the pass rewrites most of them, and intervals hold all values that there are."""
    count = 0
    for seed in range(120):
        module, types = random_case(kernel, seed)
        expected = stored(module, **types, w=77)
        rewritten = module.clone()
        NarrowIntegers().apply(Context(), rewritten)
        rewritten.verify()
        count += str(rewritten) != str(module)
        np.testing.assert_array_equal(stored(rewritten, **types, w=77), expected, err_msg=f"seed {seed}")
    assert count > 40


def interval_of(kernel: Kernel, steps: str, **types: str) -> tuple[int, int]:
    module = module_of(kernel, steps, **types)
    (end,) = (op for op in module.walk() if isinstance(op, tile.CastOp) and op.result.name_hint == "e")
    return Ranges().of(end.source)


@pytest.mark.parametrize(
    ("steps", "interval"),
    [
        (SUM, (0, 510)),
        ('%v = tile.binary "sub" %x, %y : T', (-255, 255)),
        (PRODUCT + '%v = tile.unary "neg" %p : T', (-65025, 0)),
        ('%d = tile.binary "sub" %x, %y : T\n%v = tile.unary "abs" %d : T', (0, 255)),
        ('%c = tile.constant 3 : T\n%d = tile.binary "add" %x, %c : T\n%v = tile.unary "abs" %d : T', (3, 258)),
        ('%v = tile.binary "and" %x, %s : T', (0, 255)),
        (times(3) + '%v = tile.binary "or" %p, %y : T', (0, 1023)),
        (times(3) + '%v = tile.binary "xor" %p, %s : T', (-(2**31), 2**31 - 1)),
        (times(-3) + shifted("%p", 1), (-383, 0)),
        ('%c = tile.constant 23 : T\n%v = tile.binary "shl" %x, %c : T', (0, 255 << 23)),
        ('%c = tile.constant 24 : T\n%v = tile.binary "shl" %x, %c : T', (-(2**31), 2**31 - 1)),
        (times(1 << 23) + '%v = tile.binary "add" %p, %x : T', (0, 255 * ((1 << 23) + 1))),
        (times(1 << 24) + '%v = tile.binary "min" %p, %x : T', (-(2**31), 255)),
        ("%v = tile.select %less, %x, %at : tensor<65536xi1>, T", (0, 65535)),
        ('%d = tile.binary "sub" %x, %y : T\n%v = tile.binary "max" %d, %x : T', (0, 255)),
    ],
)
def test_intervals(kernel: Kernel, steps: str, interval: tuple[int, int]) -> None:
    assert interval_of(kernel, steps) == interval


def test_an_and_of_negative_numbers_may_be_any(kernel: Kernel) -> None:
    steps = '%v = tile.binary "and" %x, %y : T'
    assert interval_of(kernel, steps, x="i8", y="i8") == (-(2**31), 2**31 - 1)
    assert interval_of(kernel, steps, x="i8") == (0, 255)
