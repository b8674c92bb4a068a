"""Masks decided by their last element: the law, over random masks whose values the reference computes, and which are found."""

from __future__ import annotations

import functools
import itertools
import random
import re
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import builtin, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser

import weft.language as tl
from weft import dtypes, reference
from weft.codegen import emit_llvm
from weft.codegen.cpu.masks import decided_by_last, depends_on, is_prefix, last_is_highest
from weft.codegen.cpu.schedule import WHOLE, Columns
from weft.codegen.cpu.versions import ascend
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.tile import COMPARE, Tile
from weft.ir.types import dtype_of, pointer, scalar, shape_of, tensor
from weft.layout import LinearLayout
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.axis import analyse

SHAPE = (4, 8)


class RandomMask:
    """A function of an array of bools and two scalars that stores one random mask of `SHAPE`."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.block = Block(arg_types=[pointer(dtypes.bool_), scalar(dtypes.int32), scalar(dtypes.int32)])
        self.mask = self._mask(2)
        size = SHAPE[0] * SHAPE[1]
        index = self.emit(tile.ReshapeOp(self.emit(tile.ArangeOp(0, size)), SHAPE))
        base = self.emit(tile.SplatOp(self.block.args[0], SHAPE))
        self.block.add_op(tile.StoreOp(self.emit(tile.AddPtrOp(base, index)), self.mask))
        self.block.add_op(func.ReturnOp())
        results: list[Attribute] = []
        function = func.FuncOp("kernel", (list(self.block.arg_types), results), Region(self.block))
        self.module = ModuleOp([function])
        self.module.verify()
        self.decided = decided_by_last(self.mask, analyse(function))
        self.prefix = is_prefix(self.mask, analyse(function))

    def emit(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _number(self) -> SSAValue:
        """Integers of `SHAPE`: a vector along a row or a column, or one number, changed a few times."""
        kind = self.random.choice(["row", "column", "both", "scalar", "constant"])
        if kind == "scalar":
            value = self.emit(tile.SplatOp(self.random.choice(self.block.args[1:]), SHAPE))
        elif kind == "constant":
            value = self.emit(tile.ConstantOp(self.random.randint(-4, 12), tensor(dtypes.int32, SHAPE)))
        elif kind == "both":
            value = self.emit(tile.ReshapeOp(self.emit(tile.ArangeOp(0, 32)), SHAPE))
        else:
            axis = 1 if kind == "row" else 0
            start = self.random.choice([0, 0, 3, 8])
            vector = self.emit(tile.ArangeOp(start, start + SHAPE[axis]))
            value = self.emit(tile.ExpandDimsOp(self._changed(vector), 1 - axis))
            value = self.emit(tile.BroadcastOp(value, SHAPE))
        return self._changed(value)

    def _changed(self, value: SSAValue) -> SSAValue:
        """The number after up to two operations, and as int32 again."""
        for _ in range(self.random.randint(0, 2)):
            shape = shape_of(value)
            other = self.emit(tile.SplatOp(self.random.choice(self.block.args[1:]), shape))
            if self.random.random() < 0.6:
                other = self.emit(
                    tile.ConstantOp(self.random.choice([-1, 1, 2, 3, 4, 7, 8]), tensor(dtypes.int32, shape))
                )
            operands = [value, other]
            if self.random.random() < 0.3:
                operands.reverse()
            kind = self.random.choice(
                ["add", "add", "sub", "mul", "div", "rem", "and", "or", "shl", "shr", "min", "max"]
            )
            value = self.emit(tile.BinaryOp(kind, *operands))
        if self.random.random() < 0.3:
            narrow = self.random.choice([dtypes.int8, dtypes.uint8, dtypes.uint32, dtypes.int64])
            value = self.emit(tile.CastOp(value, narrow))
            if self.random.random() < 0.5:
                one = self.emit(tile.ConstantOp(self.random.choice([1, 3, 100]), value.type))
                value = self.emit(tile.BinaryOp(self.random.choice(["add", "sub"]), value, one))
            if self.random.random() < 0.7 or dtype_of(value) != dtypes.int32:
                value = self.emit(tile.CastOp(value, dtypes.int32))
        return value

    def _mask(self, depth: int) -> SSAValue:
        if depth and self.random.random() < 0.5:
            kind = self.random.choice(["and", "and", "and", "or", "xor"])
            return self.emit(tile.BinaryOp(kind, self._mask(depth - 1), self._mask(depth - 1)))
        if self.random.random() < 0.5:
            return self.emit(tile.CompareOp(self.random.choice(COMPARE), self._number(), self._number()))
        kind, flipped = self.random.choice(
            [("lt", "gt"), ("le", "ge"), ("lt", "gt"), ("le", "ge"), ("ne", "ne"), ("gt", "lt")]
        )
        axis = self.random.choice([0, 1])
        ascending = self.emit(tile.ExpandDimsOp(self.emit(tile.ArangeOp(0, SHAPE[axis])), 1 - axis))
        bound = self.emit(tile.SplatOp(self.random.choice(self.block.args[1:]), shape_of(ascending)))
        pair = (kind, ascending, bound) if self.random.random() < 0.5 else (flipped, bound, ascending)
        return self.emit(tile.BroadcastOp(self.emit(tile.CompareOp(*pair)), SHAPE))

    def values(self, m: int, n: int) -> Any:
        """What the mask is for these scalars."""
        out = np.zeros(SHAPE, np.bool_)
        reference.run(self.module, [out, m, n], (1,))
        return out


def test_the_last_element_decides() -> None:
    """If it is true, all are; and so for each element with those whose index has no other bits than its own. Over many masks
    and scalars, of both signs. Recognised are enough of them to mean something, and some of these are sometimes partly true."""
    index = np.arange(SHAPE[0] * SHAPE[1])
    below = index[:, None] & ~index[None, :] == 0
    recognised = partly = 0
    for seed in range(600):
        mask = RandomMask(seed)
        if not mask.decided:
            continue
        recognised += 1
        for m, n in ((0, 0), (5, 3), (-2, 7), (8, 32), (31, -5)):
            values = mask.values(m, n)
            assert values.all() or not values[-1, -1], f"seed {seed}, scalars {m}, {n}:\n{mask.module}"
            claimed = below & values.reshape(1, -1)
            assert not (claimed & ~values.reshape(-1, 1)).any(), f"seed {seed}, scalars {m}, {n}:\n{mask.module}"
            partly += bool(values.any() and not values.all())
    assert recognised > 50
    assert partly > 20


def test_prefixes_are_true_up_to_an_element_of_each_row_and_column() -> None:
    """Over many masks and scalars; most masks that are decided by the last are recognised."""
    recognised = decided = 0
    for seed in range(600):
        mask = RandomMask(seed)
        decided += mask.decided
        if not mask.prefix:
            continue
        recognised += 1
        for m, n in ((0, 0), (5, 3), (-2, 7), (8, 32), (31, -5)):
            values = mask.values(m, n)
            assert (values[:, :-1] >= values[:, 1:]).all(), f"seed {seed}, scalars {m}, {n}:\n{mask.module}"
            assert (values[:-1] >= values[1:]).all(), f"seed {seed}, scalars {m}, {n}:\n{mask.module}"
    assert decided * 0.9 < recognised <= decided


@KernelFunction
def cut_off(x: Any, n: Any, N: tl.constexpr, HOW: tl.constexpr) -> None:
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    inside = tl.broadcast_to(j < n, (N, N))
    if HOW == "turned":
        tl.store(x + j * N + i, 1, mask=tl.trans(inside))
    elif HOW == "flat":  # N of N * N lanes in a row: true and false in turns
        tl.store(x + tl.arange(0, N * N), 1, mask=tl.reshape(inside, (N * N,)))
    elif HOW == "behind":
        tl.store(x + i * N + j, 1, mask=j >= n)
    elif HOW == "both":
        tl.store(x + i * N + j, 1, mask=(j < n) & (i < n))
    else:
        tl.store(x + i * N + j, 1, mask=(j < n) | (i < n))


@pytest.mark.parametrize(
    ("how", "expected"), [("turned", True), ("flat", False), ("behind", False), ("both", True), ("either", False)]
)
def test_which_masks_are_prefixes(how: str, expected: bool) -> None:
    arguments = {"x": PointerArgument(dtypes.int32), "n": ScalarArgument(dtypes.int32)}
    module = build_module(cut_off, {**arguments, "N": ConstantArgument(8), "HOW": ConstantArgument(how)})
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    (store,) = (op for op in module.walk() if isinstance(op, tile.StoreOp))
    assert store.mask is not None
    assert is_prefix(store.mask, analyse(function)) is expected


@pytest.mark.parametrize(
    ("register", "lane", "expected"),
    [
        ((4, 8), (1, 2), True),
        ((1, 2), (4, 8), True),
        ((4, 0, 8), (1, 2, 0), True),  # duplicates
        ((4, 8), (1, 3), False),  # lane 3 holds element 2, and lane 2 holds element 3
        ((4, 12), (1, 2), False),
    ],
)
def test_where_the_last_lane_holds_the_highest_index(
    register: tuple[int, ...], lane: tuple[int, ...], expected: bool
) -> None:
    layout = LinearLayout.from_columns({"register": register, "lane": lane}, [("dim0", 4)])
    assert last_is_highest(layout) is expected
    if expected:
        for at in range(2 ** len(register)):
            held = [layout.flat(register=at, lane=j) for j in range(2 ** len(lane))]
            assert held[-1] == max(held) == functools.reduce(int.__or__, held)


# ---- which masks are recognised ---------------------------------------------------------------------------------------

KERNEL = """builtin.module {{
  func.func @k(%p: !tile.ptr<i1>, %q: !tile.ptr<i32>, %n: i32, %flag: i1) {{
    %i = tile.arange 0 8 : tensor<8xi32>
    %b = tile.splat %n : i32 to tensor<8xi32>
    %ps = tile.splat %p : !tile.ptr<i1> to tensor<8x!tile.ptr<i1>>
    %at = tile.addptr %ps, %i : tensor<8x!tile.ptr<i1>>, tensor<8xi32> to tensor<8x!tile.ptr<i1>>
    %qs = tile.splat %q : !tile.ptr<i32> to tensor<8x!tile.ptr<i32>>
    %qat = tile.addptr %qs, %i : tensor<8x!tile.ptr<i32>>, tensor<8xi32> to tensor<8x!tile.ptr<i32>>
    %loaded = tile.load %at : tensor<8x!tile.ptr<i1>> to tensor<8xi1>
    %x = tile.load %qat : tensor<8x!tile.ptr<i32>> to tensor<8xi32>
    %below = tile.compare "lt" %i, %b : tensor<8xi32> to tensor<8xi1>
    %above = tile.compare "gt" %i, %b : tensor<8xi32> to tensor<8xi1>
    %b2 = tile.splat %n : i32 to tensor<2x4xi32>
    %i2 = tile.reshape %i : tensor<8xi32> to tensor<2x4xi32>
    %r = tile.arange 0 4 : tensor<4xi32>
    %row = tile.expand_dims %r 0 : tensor<4xi32> to tensor<1x4xi32>
    %rows = tile.broadcast %row : tensor<1x4xi32> to tensor<2x4xi32>
    %mask = {0}
    func.return
  }}
}}"""


def parsed(mask: str, name: str = "mask") -> tuple[ModuleOp, SSAValue]:
    """The kernel and the value that has the name in it."""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, Tile):
        context.load_dialect(dialect)
    module = Parser(context, KERNEL.format(mask)).parse_module()
    module.verify()
    (found,) = (value for op in module.walk() for value in op.results if value.name_hint == name)
    return module, found


def compared(kind: str, a: str, b: str) -> str:
    return f'tile.compare "{kind}" %{a}, %{b} : tensor<8xi32> to tensor<8xi1>'


def both(kind: str, a: str, b: str) -> str:
    return f'tile.binary "{kind}" %{a}, %{b} : tensor<8xi1>'


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (compared("lt", "i", "b"), True),
        (compared("le", "i", "b"), True),
        (compared("gt", "b", "i"), True),
        (compared("ge", "b", "i"), True),
        (compared("lt", "b", "b"), True),  # equal elements ascend, too
        ("tile.splat %flag : i1 to tensor<8xi1>", True),
        ("tile.constant 1 : tensor<8xi1>", True),
        (both("and", "below", "below"), True),
        # the last is the first to be true
        (compared("gt", "i", "b"), False),
        (compared("ge", "i", "b"), False),
        (compared("lt", "b", "i"), False),
        (compared("le", "b", "i"), False),
        # the last says nothing of the others
        (compared("eq", "i", "b"), False),
        (compared("eq", "b", "i"), False),
        (compared("ne", "i", "b"), False),
        (compared("lt", "x", "b"), False),
        (compared("lt", "i", "x"), False),
        (compared("gt", "b", "x"), False),
        (compared("gt", "x", "i"), False),
        (compared("lt", "i", "i"), False),
        (both("and", "below", "above"), False),
        (both("and", "above", "below"), False),
        (both("or", "below", "below"), False),
        (both("xor", "below", "below"), False),
        (both("and", "loaded", "below"), False),
        # views show the same elements
        ("tile.reshape %below : tensor<8xi1> to tensor<2x4xi1>", True),
        ("tile.reshape %above : tensor<8xi1> to tensor<2x4xi1>", False),
        # along each dimension elements are consecutive or equal; those of the reshaped range are 4 apart along the first
        ('tile.compare "lt" %rows, %b2 : tensor<2x4xi32> to tensor<2x4xi1>', True),
        ('tile.compare "lt" %i2, %b2 : tensor<2x4xi32> to tensor<2x4xi1>', False),
        # the bound is equal along one dimension only
        ('tile.compare "lt" %b2, %rows : tensor<2x4xi32> to tensor<2x4xi1>', False),
        ('tile.compare "gt" %rows, %rows : tensor<2x4xi32> to tensor<2x4xi1>', False),
    ],
)
def test_which_masks_are_recognised(mask: str, expected: bool) -> None:
    module, value = parsed(mask)
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    assert decided_by_last(value, analyse(function)) is expected


def test_a_loaded_mask_is_not_recognised() -> None:
    module, value = parsed(compared("lt", "i", "b"), name="loaded")
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    assert not decided_by_last(value, analyse(function))
    assert not decided_by_last(value, {}), "nor is one without analysis"
    assert not decided_by_last(parsed(compared("lt", "i", "b"))[1], {})
    assert not decided_by_last(parsed(compared("gt", "b", "i"))[1], {})


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (compared("lt", "x", "b"), True),
        (compared("lt", "b", "x"), True),
        (both("and", "loaded", "below"), False),  # another load, which the loop does not contain
        (compared("lt", "i", "b"), False),
    ],
)
def test_a_mask_depends_on_the_loads_it_is_computed_from(mask: str, expected: bool) -> None:
    module, value = parsed(mask)
    roots = [op for op in module.walk() if isinstance(op, tile.LoadOp) and op.result.name_hint == "x"]
    assert len(roots) == 1
    assert depends_on(value, roots) is expected
    assert not depends_on(value, [])


# ---- the version of a loop that has the masks ---------------------------------------------------------------------------


def scaled(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    at = tl.arange(0, M * N)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)


def scaled_by_row(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = rows * N + columns
    mask = columns < n
    tl.store(out + at, tl.load(x + at, mask=mask) * tl.exp(tl.load(x + rows)), mask=mask)


def summed(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    at = tl.arange(0, M * N)
    tl.store(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))


@pytest.mark.parametrize(
    ("kernel", "rows", "plain", "masked"),
    [(scaled, 16, 2 + 1, 1), (scaled, 1, 4 + 1, 1), (scaled_by_row, 16, 1 + 1, 1), (summed, 16, 4, 4)],
    ids=["elementwise", "four registers", "by row", "accumulators"],
)
def test_copies_in_the_versions(kernel: Any, rows: int, plain: int, masked: int) -> None:
    """Plain loads of a whole group of registers, and of a whole register in a group that is not; masked loads in the version for
    registers that are not whole. Rows that end at one place have no groups, but a load of the rows' numbers. No access asks
    again. Accumulators belong to copies, which are not looped over."""
    types: dict[str, Any] = dict.fromkeys(("x", "out"), PointerArgument(dtypes.float32))
    types |= {"n": ScalarArgument(dtypes.int32), "M": ConstantArgument(rows), "N": ConstantArgument(64)}
    target = CpuTarget("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256)
    text = emit_llvm(build_module(KernelFunction(kernel), types), target, Options(disjoint=True))
    assert len(re.findall(r"call .*@\"llvm\.masked\.load", text)) == 2 * masked  # one for each register of AVX2
    assert len(re.findall(r"= load <16 x float>, .* align 4", text)) == plain
    assert "vector.reduce.and" not in text
    assert not re.search(r"undef, \w+ undef", text), "undefined vectors are spelled lane by lane"


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        ({(1, 2, 4, 0)}, True),
        ({(1, 0, 0, 0), (0, 2, 1, 0)}, True),
        ({(0, 0, 0, 0)}, True),  # the same register for all
        ({(0,)}, True),  # the mask's only register
        ({(1, 2, 4, 2)}, False),  # from the other end: a flip
        ({(1, 3, 4, 0)}, False),  # registers 1 and 2 of the loop together take 1 ^ 3 = 2
        ({(1, 1, 4, 0)}, False),  # registers 1 and 2 together take 0
        ({(1, 2, 4, 0), WHOLE}, False),
        ({()}, False),  # a scalar
        (set[Columns](), False),
    ],
)
def test_groups_end_with_the_last_register_of_a_mask(needed: set[Columns], expected: bool) -> None:
    assert ascend(needed) is expected


def test_a_group_that_ascends_takes_no_bits_that_its_last_register_has_not() -> None:
    """The law behind `ascend`, over all maps of two bits to two bits and what may be added."""
    for first, second, added in itertools.product(range(4), repeat=3):
        taken = [(first if at & 1 else 0) ^ (second if at & 2 else 0) ^ added for at in range(4)]
        if ascend({(first, second, added)}):
            assert all(at & ~taken[3] == 0 for at in taken), (first, second, added)
