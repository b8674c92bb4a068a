"""How a kernel walks its domain: which dimensions merge, and which become the tile, a loop, or programs of the grid.

Neighbouring dimensions that every access steps through as one (``stride[i] == stride[j] * size[j]``) are merged first, so a
contiguous array of any rank is a run of elements. Of what is left,

========== ================================================================= =============================================
role       which                                                             index in the kernel
========== ================================================================= =============================================
columns    the last dimension (of the reduced ones, where there are any)     a vector along the tile's last dimension
rows       the last but one (where something is reduced: the last kept one)  a vector along the tile's first dimension
loop       the other reduced dimensions                                      a loop variable
program    the other kept dimensions                                         a number decoded from the program's id
========== ================================================================= =============================================

Where the kept dimension is the one that lies close in memory (``sum(x, axis=0)``), a tile of reduced elements would gather;
then the kept dimension gives the columns and all reduced ones are loops.

The extents of a tile are few, since each is another kernel: what is computed elementwise has a tile of `LINE` elements whatever
the size, and with two dimensions one of four shapes of `FLAT` elements. A part of a tile that lies outside costs a test, not the
work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["columns", "rows", "loop", "program"]

ROW: Final = 1 << 15
"""The longest reduced row that a kernel keeps at hand, so that what follows the reduction may use it again."""

FLAT: Final = 256
"""Elements of a tile of two dimensions that only computes elementwise: few, so that an array of 16 elements does not wait for the
rest of the tile. A program more costs some nanoseconds."""

LINE: Final = 1024
"""As `FLAT`, of one dimension. Of 256 floats programs would be joined (`weft.transforms.join_programs`), by a second function,
which takes as long to compile as the first."""

ACROSS: Final = 1024
"""Elements along the last dimension of a tile that loops over what is reduced."""

SQUARE: Final = 32
"""Elements along each dimension where memory is contiguous along both."""

ACCUMULATOR: Final = 512
"""Elements of a tile that a reduction accumulates in: few enough to stay in registers."""


@dataclass(frozen=True)
class Group:
    """Dimensions of the domain walked as one: their axes there, ascending, their number of elements, and what becomes of them.
    ``block`` is the extent of the tile for rows and columns."""

    axes: tuple[int, ...]
    size: int
    role: Role
    reduced: bool
    block: int = 1

    def stride(self, strides: Sequence[int]) -> int:
        """The step of an access whose strides along the domain's axes are given."""
        return strides[self.axes[-1]]


@dataclass(frozen=True)
class Domain:
    """The groups in order, kept ones first. ``strides`` that made them are not kept."""

    groups: tuple[Group, ...]
    wide: bool
    """Whether offsets need 64 bits."""

    def with_role(self, role: Role) -> tuple[Group, ...]:
        """The groups of a role, in order."""
        return tuple(g for g in self.groups if g.role == role)

    @property
    def rows(self) -> Group | None:
        """The group along the tile's first dimension, if it has two."""
        return next(iter(self.with_role("rows")), None)

    @property
    def columns(self) -> Group | None:
        """The group along the tile's last dimension; None for a domain of one element."""
        return next(iter(self.with_role("columns")), None)


def domain_of(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    accesses: Sequence[Sequence[int]],
    *,
    whole_rows: bool = False,
    serial: bool = False,
    wide: bool = False,
) -> Domain:
    """The walk over ``shape`` with ``axes`` reduced, for accesses given by their strides along all axes.

    ``whole_rows``: the reduced dimension must be one tile. ``serial``: the reduced elements must be met in order. ``wide``:
    offsets need 64 bits.
    """
    kept = _merge([a for a in range(len(shape)) if a not in axes], shape, accesses)
    reduced = _merge(axes, shape, accesses)

    def group(members: tuple[int, ...], role: Role, most: int = 1) -> Group:
        size = math.prod(shape[axis] for axis in members)
        return Group(members, size, role, members[0] in axes, min(_power(size), most))

    if not reduced:
        return Domain((*(group(m, "program") for m in kept[:-2]), *_tile(kept[-2:], shape, accesses)), wide)
    groups = [group(m, "program") for m in kept[:-1]]
    if serial or (not whole_rows and kept and _walks_kept(kept[-1], reduced[-1], accesses)):
        groups += [Group(m, math.prod(shape[a] for a in m), "columns", False, _across(m, shape)) for m in kept[-1:]]
        return Domain((*groups, *(group(m, "loop") for m in reduced)), wide)
    columns = group(reduced[-1], "columns", ROW if whole_rows else ACCUMULATOR)
    down = ACCUMULATOR // columns.block
    groups += [group(m, "rows" if down > 1 else "program", max(down, 1)) for m in kept[-1:]]
    groups += [group(m, "loop") for m in reduced[:-1]]
    return Domain((*groups, columns), wide)


def _tile(kept: Sequence[tuple[int, ...]], shape: tuple[int, ...], accesses: Sequence[Sequence[int]]) -> list[Group]:
    """The tile of a kernel that reduces nothing: `LINE` elements along one dimension, `FLAT` along two."""
    sizes = [math.prod(shape[axis] for axis in members) for members in kept]
    if len(kept) < 2:
        return [Group(members, size, "columns", False, LINE) for members, size in zip(kept, sizes, strict=True)]
    if _crosses(kept[0][-1], kept[1][-1], accesses):
        blocks = [min(_power_of_4(size), SQUARE) for size in sizes]
    else:
        columns = min(_power_of_4(sizes[1]), FLAT)
        blocks = [FLAT // columns, columns]
    return [
        Group(members, size, role, False, block)
        for members, size, role, block in zip(kept, sizes, _ROLES, blocks, strict=True)
    ]


_ROLES: Final[tuple[Role, Role]] = ("rows", "columns")


def _crosses(rows: int, columns: int, accesses: Sequence[Sequence[int]]) -> bool:
    """Whether an access is contiguous along the rows: square tiles let a line of memory serve all of them."""
    return any(abs(s[rows]) == 1 and abs(s[columns]) > 1 for s in accesses)


def _merge(axes: Sequence[int], shape: tuple[int, ...], accesses: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    merged: list[tuple[int, ...]] = []
    for axis in axes:
        if merged and all(s[merged[-1][-1]] == s[axis] * shape[axis] for s in accesses):
            merged[-1] = (*merged[-1], axis)
        else:
            merged.append((axis,))
    return merged


def _walks_kept(kept: tuple[int, ...], reduced: tuple[int, ...], accesses: Sequence[Sequence[int]]) -> bool:
    """Whether more accesses are contiguous along the kept dimension than along the reduced one."""
    closeness = [(abs(s[kept[-1]]) == 1) - (abs(s[reduced[-1]]) == 1) for s in accesses]
    return sum(closeness) > 0


def _power(n: int) -> int:
    """The least power of two that is not below ``n``."""
    return 1 << max(n - 1, 0).bit_length()


def _power_of_4(n: int) -> int:
    """The least power of four that is not below ``n``, 4 at least."""
    return 4 ** max(1, (max(n - 1, 0).bit_length() + 1) // 2)


def _across(members: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return min(_power_of_4(math.prod(shape[axis] for axis in members)), ACROSS)
