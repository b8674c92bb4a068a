"""What axis analysis knows of integer and pointer tiles along each dimension, for all programs at once.

Look at a value along a dimension of size n (the other indices fixed, any) in groups of g, where g divides n: indices
0 .. g-1, g .. 2g-1, and so on.

- ``contiguity`` c: each group of c holds consecutive numbers a, a+1, .., a+c-1; of pointers, consecutive elements.
- ``constancy`` k: each group of k holds one number k times.
- ``divisibility``: divides the first number of each group of c; of pointers, its address in bytes.

All are powers of two and 1 says nothing; a scalar counts as one dimension of size 1. For
``x + (pid * 1024 + arange(0, 1024))``, with x a pointer to float32 whose address is a multiple of 16:

=============== ========== ========= ============
value           contiguity constancy divisibility
=============== ========== ========= ============
pid             1          1         1
pid * 1024      1          1         1024
splat of that   1          1024      1024
arange(0, 1024) 1024       1         2**62 (of 0)
their sum       1024       1         1024
x + sum         1024       1         16
=============== ========== ========= ============

The law that carries most rules: if g <= c, each group of g starts at a number divisible by min(divisibility, g), since
it is the c-group's first number plus a multiple of g. A group coarser than c starts where a c-group does
(`AxisInfo.at`).

Facts are named tuples: several are made for each op, and a frozen dataclass takes four times as long to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from xdsl.ir import Attribute

from weft.ir.direct import by_identity
from weft.ir.gpu import BufferType
from weft.ir.types import dtype_of, is_pointer, shape_of

MAX: Final = 1 << 62
"""The divisibility of 0."""


def lowest_bit(number: int) -> int:
    """The largest power of two that divides ``number``, at most `MAX`."""
    return min(number & -number, MAX) if number else MAX


class Box(NamedTuple):
    """What is known along all dimensions together; see `weft.transforms.axis_boxes`. ``steps`` are in elements, ``unit`` is the
    bytes of one for pointers."""

    steps: tuple[int, ...]
    groups: tuple[int, ...]
    divisor: int
    unit: int = 1

    @property
    def along(self) -> list[tuple[int, int]]:
        """Step and group of each dimension."""
        return list(zip(self.steps, self.groups, strict=True))

    def cut(self, groups: tuple[int, ...]) -> Box:
        """The same in smaller groups, powers of two: a box begins at any multiple of them."""
        if groups == self.groups:
            return self
        pairs = zip(self.steps, groups, self.groups, strict=True)
        starts = [lowest_bit(step * group * self.unit) for step, group, old in pairs if group < old]
        steps = tuple(step if group > 1 else 0 for step, group in zip(self.steps, groups, strict=True))
        return Box(steps, groups, min([self.divisor, *starts]), self.unit)

    def alignment(self, free: AbstractSet[tuple[int, int]]) -> int:
        """What divides the numbers where these bits of indices (dimension, place) are 0, whatever the others are."""
        fixed = [
            lowest_bit(step * self.unit) << place
            for d, (step, group) in enumerate(self.along)
            for place in range(group.bit_length() - 1)
            if step and (d, place) not in free
        ]
        return min([self.divisor, *fixed])

    def flat(self, sizes: Sequence[int]) -> tuple[list[int], int]:
        """The dimensions along which neighbours continue one another, the fastest first, and how many elements that makes."""
        order: list[int] = []
        run = 1
        while True:
            left = (d for d, (step, group) in enumerate(self.along) if d not in order and step == run and group > 1)
            d = next(left, None)
            if d is None:
                return order, run
            order.append(d)
            run *= min(self.groups[d], sizes[d])
            if self.groups[d] < sizes[d]:
                return order, run

    def join(self, other: Box) -> Box:
        """What holds of both."""
        pairs = zip(self.along, other.along, strict=True)
        groups = tuple(min(g, h) if s == t else 1 for (s, g), (t, h) in pairs)
        x, y = self.cut(groups), other.cut(groups)
        return x._replace(divisor=min(x.divisor, y.divisor))


class AxisInfo(NamedTuple):
    """What is known of one value; the module defines the three tuples, one entry a dimension.

    ``constant``: the number in every element, where known. ``nonnegative``: no element is below 0. ``unit``: what one
    step of contiguity adds, the itemsize for pointers. ``box``: what is known of all dimensions together, where that is more.
    """

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    constant: int | None = None
    nonnegative: bool = False
    unit: int = 1
    box: Box | None = None

    @property
    def rank(self) -> int:
        """How many dimensions the facts are about."""
        return len(self.contiguity)

    def at(self, dimension: int, group: int) -> int:
        """A divisor of the first number of each group of ``group`` along ``dimension``."""
        divisor = self.divisibility[dimension]
        if group >= self.contiguity[dimension]:
            return divisor
        return min(divisor, group * lowest_bit(self.unit))

    @property
    def everywhere(self) -> int:
        """A divisor of all elements."""
        return max(self.at(d, 1) for d in range(self.rank))

    def runs(self, dimension: int) -> int:
        """The largest group along ``dimension`` that is contiguous and starts at a multiple of its size."""
        return min(self.contiguity[dimension], self.divisibility[dimension])

    def cut(self, limit: int | None = None) -> AxisInfo:
        """The same with runs that neither exceed ``limit`` nor cross a multiple of a power of two above their size."""
        runs = [min(self.runs(d), limit or MAX) for d in range(self.rank)]
        return self._replace(contiguity=tuple(runs), divisibility=tuple(self.at(d, runs[d]) for d in range(self.rank)))

    def join(self, other: AxisInfo) -> AxisInfo:
        """What holds of both."""
        contiguity = tuple(map(min, self.contiguity, other.contiguity))
        return AxisInfo(
            contiguity,
            tuple(min(self.at(d, g), other.at(d, g)) for d, g in enumerate(contiguity)),
            tuple(map(min, self.constancy, other.constancy)),
            self.constant if self.constant == other.constant else None,
            self.nonnegative and other.nonnegative,
            self.unit,
            self.box.join(other.box) if self.box and other.box else None,
        )

    @property
    def forgotten(self) -> AxisInfo:
        """Nothing known of a value of the same type."""
        ones = (1,) * self.rank
        return AxisInfo(ones, ones, ones, unit=self.unit)


def sizes_of(type_: Attribute) -> tuple[int, ...]:
    """The dimensions that facts are about; a scalar has one of size 1."""
    return shape_of(type_) or (1,)


@by_identity
def unit_of(type_: Attribute) -> int:
    """What one step of contiguity adds: the bytes of an element for pointers, else 1."""
    return dtype_of(type_).itemsize if is_pointer(type_) else 1


@by_identity
def unknown(type_: Attribute) -> AxisInfo:
    """Nothing known; an unsigned integer or a bool is not negative. A buffer counts as a scalar."""
    if isinstance(type_, BufferType):
        return AxisInfo((1,), (1,), (1,))
    ones = (1,) * len(sizes_of(type_))
    pointer = is_pointer(type_)
    dtype = dtype_of(type_)
    return AxisInfo(ones, ones, ones, None, not pointer and not dtype.is_float and not dtype.signed, unit_of(type_))


def uniform(type_: Attribute, divisibility: int, constant: int | None, nonnegative: bool) -> AxisInfo:
    """One number everywhere."""
    sizes = sizes_of(type_)
    return AxisInfo(
        (1,) * len(sizes),
        (divisibility,) * len(sizes),
        tuple(map(lowest_bit, sizes)),
        constant,
        nonnegative,
        unit_of(type_),
    )


def constant_info(type_: Attribute, number: int) -> AxisInfo:
    """One known integer everywhere."""
    return uniform(type_, lowest_bit(number), number, number >= 0)
