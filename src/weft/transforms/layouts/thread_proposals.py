"""Layouts that ops of a GPU propose to the solver: accesses, reductions, dots, gathers.

op           proposals
access       vectors of each width; then lanes along the run, with warps or registers above; or lanes to the end of a
             sector or line, then across rows
two accesses vectors of both in registers, lanes that complete the sectors of both
reduction    the axis in registers, in lanes, in both: bits trade places with the preferred layout's others
dot          each division of the warps into rows and columns
gather       the axis in lanes: a shuffle reads one register for all lanes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.layout import LinearLayout, broadcast
from weft.layout.families.distributed import dimension_units, tensor_outputs
from weft.transforms.layouts.preferences import contiguity
from weft.transforms.layouts.rules import LayoutFacts

LANE_BITS = 5
_SECTOR, _LINE, _VECTOR = 32, 128, 16
"""Bytes."""

Access = tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp | tile.AtomicCasOp


def element_bytes(op: Access) -> int:
    """The bytes of an element in memory."""
    return dtype_of(op.result if isinstance(op, tile.LoadOp) else op.value).itemsize


def dealt(
    shape: Sequence[int], first: Sequence[int], lanes: Sequence[int], rest: Sequence[int], warp_bits: int, *, high: bool
) -> LinearLayout:
    """A layout from units of a tensor: ``first`` go to registers, ``lanes`` to lanes, as far as they fit. Of the ``rest``, in
    their order, lanes take what they lack; then warps take theirs, the last ones if ``high``; registers take the others."""
    left = [unit for unit in rest if unit not in first and unit not in lanes]
    lane = [unit for unit in lanes if unit not in first][:LANE_BITS]
    left = [unit for unit in lanes if unit not in lane and unit not in first] + left
    missing = LANE_BITS - len(lane)
    lane, left = [*lane, *left[:missing]], left[missing:]
    warp = left[-warp_bits:] if high and warp_bits else left[:warp_bits]
    registers = [*first, *(unit for unit in left if unit not in warp)]
    # A thread keeps what lanes and warps lack only where there are threads without elements of their own.
    lacking = (LANE_BITS - len(lane)) + (warp_bits - len(warp))
    while lacking and registers:
        unit = registers.pop()
        if len(lane) < LANE_BITS:
            lane.append(unit)
        else:
            warp.append(unit)
        lacking -= 1
    columns = {
        "register": tuple(registers),
        "lane": (*lane, *(0 for _ in range(LANE_BITS - len(lane)))),
        "warp": (*warp, *(0 for _ in range(warp_bits - len(warp)))),
    }
    return LinearLayout.from_columns(columns, tensor_outputs(shape))


def access_layouts(op: Access, warps: int, facts: LayoutFacts) -> Iterator[LinearLayout]:
    """Layouts for an access alone."""
    shape, size = shape_of(op.pointer), element_bytes(op)
    runs = contiguity(op.pointer, facts)
    order = sorted(range(len(shape)), key=lambda d: (-runs[d], -d))
    units = dimension_units(tensor_outputs(shape))
    along = list(units[order[0]])
    across = [unit for axis in order[1:] for unit in units[axis]]
    run = runs[order[0]].bit_length() - 1
    warp_bits = warps.bit_length() - 1
    widest = min(run, (_VECTOR // size).bit_length() - 1)
    for vector in range(widest, max(-1, widest - 3), -1):
        for high in (False, True):
            yield dealt(shape, along[:vector], along[vector:], across, warp_bits, high=high)
        for end in (_SECTOR, _LINE):
            stop = max(vector, min(run, (end // size).bit_length() - 1))
            lanes = along[vector:stop]
            if across and len(lanes) < LANE_BITS:
                more = across[: LANE_BITS - len(lanes)]
                rest = [*along[stop:], *across[len(more) :]]
                for high in (True, False):
                    yield dealt(shape, along[:vector], [*lanes, *more], rest, warp_bits, high=high)


def gather_layouts(op: tile.GatherOp, warps: int) -> Iterator[tuple[LinearLayout, LinearLayout]]:
    """Layouts of a gather's source and index: the axis is in lanes, as far as they reach, then in registers."""
    axis, warp_bits = op.axis.value.data, warps.bit_length() - 1

    def along(shape: Sequence[int], *, high: bool) -> LinearLayout:
        units = dimension_units(tensor_outputs(shape))
        across = [unit for other in range(len(shape) - 1, -1, -1) if other != axis for unit in units[other]]
        lanes, rest = list(units[axis])[:LANE_BITS], list(units[axis])[LANE_BITS:]
        filled = across[: LANE_BITS - len(lanes)]
        return dealt(shape, rest, [*lanes, *filled], across[len(filled) :], warp_bits, high=high)

    for high in (True, False):
        yield along(shape_of(op.source), high=high), along(shape_of(op.index), high=high)


def joint_layouts(own: LinearLayout, other: LinearLayout, size: int) -> Iterator[LinearLayout]:
    """Layouts that suit two accesses of elements of ``size`` bytes, each of which has its own."""
    a, b = _vector(own, size), _vector(other, size)
    warp_bits = len(own.columns("warp"))
    room = own.out_bits - LANE_BITS - warp_bits
    b = [unit for unit in b if unit not in a]
    if not b or room < 2:
        return
    while len(a) + len(b) > room:
        longer = a if len(a) >= len(b) else b
        longer.pop()
    lanes = [*_sector(own, len(a), size), *_sector(other, len(b), size)]
    for main, second in ((own, other), (other, own)):
        rest = [*_units(main), *_units(second)]
        yield dealt(own.shape, [*a, *b], list(dict.fromkeys(lanes)), list(dict.fromkeys(rest)), warp_bits, high=False)


def _units(layout: LinearLayout) -> list[int]:
    names = ("lane", "warp", "register")
    return [unit for name in names for unit in layout.columns(name) if unit]


def _vector(layout: LinearLayout, size: int) -> list[int]:
    """The first registers, as far as each is twice the one before and a vector reaches."""
    found: list[int] = []
    for unit in layout.columns("register"):
        if (found and unit != 2 * found[-1]) or size << len(found) >= _VECTOR:
            break
        found.append(unit)
    return found


def _sector(layout: LinearLayout, vector: int, size: int) -> list[int]:
    """The units along an access's run that complete the sector of a vector of 2^``vector`` elements."""
    first = layout.columns("register")[:1]
    if not first:
        return []
    return [
        first[0] << bit
        for bit in range(vector, (_SECTOR // size).bit_length() - 1)
        if first[0] << bit in _units(layout)
    ]


def reduction_layouts(source: LinearLayout, axis: int) -> Iterator[LinearLayout]:
    """Layouts of a reduction's source in which the axis's bits have traded places with others."""
    below = sum(bits for _, bits in source.outputs[axis + 1 :])
    mask = (source.shape[axis] - 1) << below
    for moved, places in ((("warp",), ("register",)), (("warp",), ("lane",)), (("warp", "lane"), ("register",))):
        found = _traded(source, mask, moved, places)
        if found != source:
            yield found


def _traded(source: LinearLayout, mask: int, moved: Sequence[str], places: Sequence[str]) -> LinearLayout:
    """The axis's bits in ``moved`` change places with other bits in ``places``, the highest first."""
    columns = {name: list(source.columns(name)) for name in ("register", "lane", "warp")}
    for name in moved:
        for place, unit in enumerate(columns[name]):
            if not unit & mask:
                continue
            free = [(n, at) for n in places for at, u in enumerate(columns[n]) if u and not u & mask]
            if free:
                where, at = free[-1]
                columns[name][place], columns[where][at] = columns[where][at], unit
    return LinearLayout.from_columns({name: tuple(each) for name, each in columns.items()}, source.outputs)


def filled(layout: LinearLayout, units: Sequence[int]) -> LinearLayout:
    """The layout with new units in the zero columns of lanes and warps; registers take those that are left."""
    waiting = list(units)
    columns = {name: list(layout.columns(name)) for name in ("register", "lane", "warp")}
    for name in ("lane", "warp"):
        for place, unit in enumerate(columns[name]):
            if not unit and waiting:
                columns[name][place] = waiting.pop(0)
    columns["register"] += waiting
    return LinearLayout.from_columns({name: tuple(each) for name, each in columns.items()}, layout.outputs)


def grown(layout: LinearLayout, shape: Sequence[int]) -> list[LinearLayout]:
    """What a broadcast to ``shape`` may give without a move: new elements in registers, or in copies first."""
    plain = broadcast(layout, shape)
    before = len(layout.columns("register"))
    new = plain.columns("register")[before:]
    rest = plain.with_columns({"register": plain.columns("register")[:before]})
    other = filled(rest, new)
    return [plain] if other == plain else [plain, other]


def scattered(layout: LinearLayout) -> LinearLayout:
    """The layout whose copies in lanes, and then those in warps, hold the elements of the highest registers instead."""
    columns = {name: list(layout.columns(name)) for name in ("register", "lane", "warp")}
    for name in ("lane", "warp"):
        for place, unit in enumerate(columns[name]):
            if not unit and columns["register"]:
                columns[name][place] = columns["register"].pop()
    return LinearLayout.from_columns({name: tuple(each) for name, each in columns.items()}, layout.outputs)
