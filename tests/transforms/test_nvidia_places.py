"""Places of accesses beside the addresses that NumPy computes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, SSAValue

from sampling import at_night
from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import PointerType, dtype_of, scalar
from weft.transforms.nvidia.places import Place, place_of

SIZE = 8
SCALARS = (0, 1, -3, 1 << 20, 0x7FFFFFFF, -0x80000000)
NUMBERS = (0, 1, 2, 3, 5, 8, -1, -8, 16, 0x7FFFFFF0, -0x80000000)


@dataclass(frozen=True)
class Value:
    """An IR value, and its numbers for the scalars that a kernel is run with."""

    ssa: SSAValue
    numbers: NDArray[Any]


class Builder:
    """Random tiles of pointers, as IR and as numbers."""

    def __init__(self, rng: Random, scalars: tuple[int, int]):
        pointer = PointerType(scalar(dtypes.float32))
        self.function = func.FuncOp("k", ([pointer, scalar(dtypes.int32), scalar(dtypes.int32)], []))
        self.block: Block = self.function.body.block
        self.rng = rng
        self.base, *integers = self.block.args
        self.integers = [Value(a, np.array(n, np.int32)) for a, n in zip(integers, scalars, strict=True)]

    def add(self, op: Any, numbers: NDArray[Any]) -> Value:
        self.block.add_op(op)
        return Value(op.results[0], numbers)

    def number(self, like_: Value) -> Value:
        dtype = dtype_of(like_.ssa)
        number = self.rng.choice(NUMBERS)
        if dtype.bits == 16:
            number = number & 0x7FF
        number = number % (dtype.max + 1) if not dtype.signed else number
        return self.add(tile.ConstantOp(number, like_.ssa.type), np.full(like_.numbers.shape, number, dtype.numpy))

    def tile(self) -> Value:
        """A tile of integers."""
        leaf = self.rng.randrange(4)
        if leaf:
            value = self.add(tile.ArangeOp(0, SIZE), np.arange(SIZE, dtype=np.int32))
        else:
            value = self.integers[self.rng.randrange(2)]
            value = self.add(tile.SplatOp(value.ssa, (SIZE,)), np.full(SIZE, value.numbers))
        for _ in range(self.rng.randrange(5)):
            value = self.step(value)
        return value

    def step(self, x: Value) -> Value:
        """An operation on a tile."""
        kind = self.rng.choice(["add", "add", "add", "sub", "sub", "mul", "shl", "cast", "other"])
        if kind == "cast":
            dtype = (dtypes.int64, dtypes.int32, dtypes.uint32, dtypes.int16)[self.rng.randrange(4)]
            return self.add(tile.CastOp(x.ssa, dtype), x.numbers.astype(dtype.numpy))
        if kind == "other":
            kind, y = "add", self.integers[self.rng.randrange(2)]
            if dtype_of(x.ssa) != dtypes.int32:
                return x
            y = self.add(tile.SplatOp(y.ssa, (SIZE,)), np.full(SIZE, y.numbers))
        elif kind == "shl":
            amount = self.rng.randrange(4)
            y = self.add(tile.ConstantOp(amount, x.ssa.type), np.full(SIZE, amount, x.numbers.dtype))
        else:
            y = self.number(x)
        compute = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "shl": np.left_shift}[kind]
        with np.errstate(over="ignore"):
            return self.add(tile.BinaryOp(kind, x.ssa, y.ssa), compute(x.numbers, y.numbers))

    def access(self) -> tuple[Value, Value | None]:
        """Pointers, with addresses in elements modulo 2^62, and a mask."""
        first = self.integers[0]
        start = self.add(tile.AddPtrOp(self.base, first.ssa), first.numbers.astype(object))
        spread = self.add(tile.SplatOp(start.ssa, (SIZE,)), np.full(SIZE, start.numbers))
        offset = self.tile()
        pointer = self.add(
            tile.AddPtrOp(spread.ssa, offset.ssa), (spread.numbers + offset.numbers.astype(object)) % (1 << 62)
        )
        return pointer, self.mask(offset) if self.rng.randrange(2) else None

    def mask(self, offset: Value) -> Value:
        """One comparison or two of what the offset is made of."""
        todo = [offset]
        for op in self.block.ops:
            if isinstance(op, tile.ArangeOp):
                todo.append(Value(op.result, np.arange(SIZE, dtype=np.int32)))
        tested = todo[self.rng.randrange(len(todo))]
        found = self.compare(tested)
        if self.rng.randrange(2):
            other = self.compare(tested)
            found = self.add(tile.BinaryOp("and", found.ssa, other.ssa), found.numbers & other.numbers)
        return found

    def compare(self, tested: Value) -> Value:
        """A random comparison."""
        return self.compared(self.rng.choice(list(COMPARISONS)), tested, self.number(tested))

    def compared(self, kind: str, tested: Value, number: Value) -> Value:
        return self.add(tile.CompareOp(kind, tested.ssa, number.ssa), COMPARISONS[kind](tested.numbers, number.numbers))

    def moved(self, by: int, dtype: DType = dtypes.int32) -> tuple[Value, Value]:
        """A range, and pointers so far behind the array's start and it; the sum is of ``dtype``."""
        index = self.add(tile.ArangeOp(0, SIZE), np.arange(SIZE, dtype=np.int32))
        own = self.add(tile.CastOp(index.ssa, dtype), index.numbers.astype(dtype.numpy))
        distance = self.add(tile.ConstantOp(by, own.ssa.type), np.full(SIZE, by, dtype.numpy))
        offset = self.add(tile.BinaryOp("add", own.ssa, distance.ssa), own.numbers + distance.numbers)
        start = self.add(tile.SplatOp(self.base, (SIZE,)), np.zeros(SIZE, object))
        pointer = self.add(tile.AddPtrOp(start.ssa, offset.ssa), offset.numbers.astype(object))
        return index, pointer


COMPARISONS: dict[str, Any] = {
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}


def reached(pointer: Value, mask: Value | None = None) -> set[int]:
    """The addresses under the mask, in elements."""
    on = [True] * SIZE if mask is None else mask.numbers
    return {int(number) for number, inside in zip(pointer.numbers, on, strict=True) if inside}


def place(pointer: Value, mask: Value | None = None) -> Place:
    found = place_of(pointer.ssa, None if mask is None else mask.ssa)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["ge", "gt", "le", "lt", "eq", "ne"])
def test_masks_by_comparison_with_a_number(kind: str) -> None:
    """Beside a plain access of the first elements, a moved one that has a mask is apart where no address is in common."""
    for by, number in itertools.product((-SIZE, -5, -1, 0, 1, 5, SIZE), range(-2, SIZE + 2)):
        builder = Builder(Random(0), (0, 0))
        _, plain = builder.moved(0)
        index, pointer = builder.moved(by)
        limit = builder.add(tile.ConstantOp(number, index.ssa.type), np.full(SIZE, number, np.int32))
        mask = builder.compared(kind, index, limit)
        if kind == "ne":
            mask = None
        if addresses := reached(pointer, mask):
            want = not addresses & reached(plain)
            assert place(plain).apart(place(pointer, mask)) == want, (by, number)


@pytest.mark.parametrize(
    ("dtype", "by", "apart"),
    [
        (dtypes.int32, SIZE, True),
        (dtypes.int32, SIZE - 1, False),
        (dtypes.int64, -SIZE, True),
        (dtypes.int64, 1 << 32, False),  # equal modulo 2^32
        (dtypes.int64, (1 << 32) + SIZE, False),
    ],
)
def test_distances(dtype: DType, by: int, apart: bool) -> None:
    builder = Builder(Random(0), (0, 0))
    (_, plain), (_, pointer) = builder.moved(0), builder.moved(by, dtype)
    assert place(plain).apart(place(pointer)) == apart


def test_numbers_that_wrap_below_32_bits_are_not_followed() -> None:
    builder = Builder(Random(0), (0, 0))
    _, pointer = builder.moved(0x7FFF, dtypes.int16)
    assert place_of(pointer.ssa) is None


def test_a_mask_of_a_number_that_has_wrapped_says_nothing() -> None:
    """The range less 4 as an unsigned number is at least 4 from index 0 on, and not from 8 on."""
    builder = Builder(Random(0), (0, 0))
    index, _ = builder.moved(0)
    four = builder.add(tile.ConstantOp(4, index.ssa.type), np.full(SIZE, 4, np.int32))
    less = builder.add(tile.BinaryOp("sub", index.ssa, four.ssa), index.numbers - 4)
    for dtype in (dtypes.uint32, dtypes.int64):
        narrow = builder.add(tile.CastOp(less.ssa, dtypes.uint32), less.numbers.astype(np.uint32))
        wrapped = builder.add(tile.CastOp(narrow.ssa, dtype), narrow.numbers.astype(dtype.numpy))
        limit = builder.add(tile.ConstantOp(4, wrapped.ssa.type), np.full(SIZE, 4, dtype.numpy))
        mask = builder.compared("ge", wrapped, limit)
        start = builder.add(tile.SplatOp(builder.base, (SIZE,)), np.zeros(SIZE, object))
        pointer = builder.add(tile.AddPtrOp(start.ssa, wrapped.ssa), wrapped.numbers.astype(object))
        found = place(pointer, mask)
        assert (found.low, found.high) == (-4, 3)
        assert mask.numbers.tolist() == [True] * 4 + [False] * 4


def test_a_mask_of_a_sum_that_wraps_says_nothing() -> None:
    """Numbers from 2^31 - 1 on are negative behind the first."""
    builder = Builder(Random(0), (0, 0))
    _, pointer = builder.moved(0x7FFFFFFF)
    op = pointer.ssa.owner
    assert isinstance(op, tile.AddPtrOp)
    zero = builder.add(tile.ConstantOp(0, op.offset.type), np.zeros(SIZE, np.int32))
    mask = builder.add(tile.CompareOp("lt", op.offset, zero.ssa), pointer.numbers < 0)
    assert mask.numbers.tolist() == [False] + [True] * (SIZE - 1)
    found = place(pointer, mask)
    assert (found.low, found.high) == (0x7FFFFFFF, 0x7FFFFFFF + SIZE - 1)


def test_either_of_two_comparisons_says_nothing() -> None:
    builder = Builder(Random(0), (0, 0))
    index, pointer = builder.moved(0)
    limit = builder.add(tile.ConstantOp(4, index.ssa.type), np.full(SIZE, 4, np.int32))
    both = [builder.compared(kind, index, limit) for kind in ("ge", "le")]
    for kind, want in (("and", (4, 4)), ("or", (0, SIZE - 1))):
        mask = builder.add(tile.BinaryOp(kind, both[0].ssa, both[1].ssa), np.zeros(SIZE, bool))
        found = place(pointer, mask)
        assert (found.low, found.high) == want


def test_a_mask_says_nothing_of_a_transposed_tile() -> None:
    """Where rows are 4 or more, columns are any."""
    builder = Builder(Random(0), (0, 0))
    index, _ = builder.moved(0)
    row = builder.add(tile.ExpandDimsOp(index.ssa, 1), index.numbers[:, None])
    rows = builder.add(tile.BroadcastOp(row.ssa, (SIZE, SIZE)), np.broadcast_to(row.numbers, (SIZE, SIZE)))
    columns = builder.add(tile.TransOp(rows.ssa, (1, 0)), rows.numbers.T)
    limit = builder.add(tile.ConstantOp(4, rows.ssa.type), np.full((SIZE, SIZE), 4))
    mask = builder.compared("ge", rows, limit)
    start = builder.add(tile.SplatOp(builder.base, (SIZE, SIZE)), np.zeros((SIZE, SIZE), object))
    for offset, low in ((rows, 4), (columns, 0)):
        pointer = builder.add(tile.AddPtrOp(start.ssa, offset.ssa), offset.numbers.astype(object))
        found = place(pointer, mask)
        assert (found.low, found.high) == (low, SIZE - 1)


def test_accesses_that_are_apart_have_no_address_in_common() -> None:
    """Pairs of random tiles, scalars at the ends of their range among them. Enough of the pairs are told apart."""
    told = 0
    for seed in range(15_000 if at_night() else 300):
        rng = Random(seed)
        scalars = rng.choice(SCALARS), rng.choice(SCALARS)
        builder = Builder(rng, scalars)
        accesses = [builder.access() for _ in range(2)]
        first, second = (place_of(pointer.ssa, mask.ssa if mask else None) for pointer, mask in accesses)
        if first is None or second is None or not first.apart(second):
            continue
        one, other = (reached(*access) for access in accesses)
        told += bool(one and other)
        assert not one & other, (seed, scalars)
    assert told > 10
