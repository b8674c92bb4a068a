"""Registers of a tile whose elements lie apart in memory by equal or known distances, such as every second one of a row.

Each lane's address as a vector, and a gather or scatter, is the general way (`weft.codegen.cpu.access`). Where all lanes are
active and their distances from lane 0 follow from the pointers, there are two better ones:

1. *Windows.* The distances are known and short: whole vectors are loaded, and shuffles pick from them. They are stored with
   masks, where the machine stores all sizes so (AVX-512). `weft.layout.memory.windows` says what windows may touch.
2. *Scalars.* Lane by lane, from one address and the distances. That is for elements, and CPUs (`weft.target.TUNING`), that have
   no fast gather: a gather of LLVM's would take the addresses out of a vector. The distances may be run-time numbers
   (`weft.transforms.affine`). Loops whose only effect are stores have a version whose loads go by every second element, in
   windows (`every_second`).

Elements between those that a register has are read, and not used: other programs may write them meanwhile. They are never
written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.far_ahead import bytes_of, fetch_windows
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.llvm.masked import concatenated, gathers, store_some, stores_some
from weft.codegen.llvm.types import I8, I32, I64, POINTER, Undefined, shuffle
from weft.ir import tile
from weft.ir.types import is_tile, layout_of
from weft.layout.memory.windows import Windows, distances_of_lanes, windows_of
from weft.transforms.affine import Product, Step, step_along
from weft.transforms.axis_boxes import box_of
from weft.transforms.distances import distances as distances_of

_SECOND: Final = tuple(range(0, 512, 2))
"""Where the elements of each lane are that go by every second element."""

_INSERTED: Final = 16
"""The bytes of a vector into which elements are inserted. LLVM inserts into wider ones by masks."""


def whole_load(
    registers: Registers, pointer: SSAValue, index: RegisterIndex, element: Element
) -> Callable[[], ir.Value] | None:
    """What loads one register, as it is in memory, all lanes of which are active; None where a gather is as good."""
    layout, places = layout_of(pointer), _places(registers, pointer, element.size)
    lanes = layout.in_size("lane")
    if pointer in registers.every_second:
        places = _SECOND[:lanes]
    if places is not None and (found := windows_of(places, element.size, _most(registers, lanes, element))) is not None:
        return lambda: _load_windows(registers, pointer, index, element, found)
    if _is_gathered(registers, element.size):
        return None
    distances = _distances(registers, pointer, places, element.size)
    return None if distances is None else lambda: _load_lanes(registers, pointer, index, element, distances)


def every_second(registers: Registers, loop: RegisterLoop) -> tuple[ir.Value, frozenset[SSAValue]] | None:
    """Whether lanes are two elements apart (i1) in those loads of a loop whose distances are known at run time, and the pointers
    of these loads. None where the loop has none, or does more than store."""
    if loop.kept or not all(isinstance(root, tile.StoreOp) for root in loop.roots):
        return None
    loads = [value.owner for value in loop.needs if is_tile(value) and value not in registers.buffers]
    found: dict[SSAValue, ir.Value] = {}
    for load in loads:
        if isinstance(load, tile.LoadOp) and (second := _is_second(registers, load)) is not None:
            found[load.pointer] = second
    if not found:
        return None
    return reduce(registers.builder.and_, found.values()), frozenset(found)


def _is_second(registers: Registers, load: tile.LoadOp) -> ir.Value | None:
    """Whether lanes are two elements apart (i1); None where that is known, or of no use."""
    element, layout, builder = element_of_value(load.result), layout_of(load.pointer), registers.builder
    lanes, size = layout.in_size("lane"), element.size
    if _places(registers, load.pointer, size) is not None or layout.duplicate_mask("lane"):
        return None
    distances = None if _is_gathered(registers, size) else _distances(registers, load.pointer, None, size)
    if distances is None or windows_of(_SECOND[:lanes], size, _most(registers, lanes, element)) is None:
        return None
    expected = [ir.Constant(I64, size * _SECOND[1 << bit]) for bit in range(len(distances))]
    pairs = zip(distances, expected, strict=True)
    return reduce(builder.and_, [builder.icmp_unsigned("==", bytes_of(registers, d), e) for d, e in pairs])


def whole_store(
    registers: Registers, pointer: SSAValue, index: RegisterIndex, element: Element, value: ir.Value
) -> Callable[[], None] | None:
    """What stores one register, all lanes of which are active; None where a scatter is as good, or lanes may meet."""
    layout, places = layout_of(pointer), _places(registers, pointer, element.size)
    lanes, builder = layout.in_size("lane"), registers.builder
    first = [lane for lane in range(lanes) if not lane & layout.duplicate_mask("lane")]
    if places is not None and len(set(places)) < len(first):
        return None
    if places is not None and stores_some(builder, element.size):
        found = windows_of(places, element.size, _most(registers, lanes, element))
        if found is not None:
            return lambda: _store_windows(registers, pointer, index, element, value, found, first)
    if _is_gathered(registers, element.size):
        return None
    distances = _distances(registers, pointer, places, element.size)
    if distances is None:
        return None

    def store() -> None:
        at = _addresses(registers, pointer, index, distances)
        for lane in first:  # in the order of the lanes, of which the last stays where several meet
            builder.store(builder.extract_element(value, ir.Constant(I32, lane)), at[lane], align=element.size)

    return store


def _most(registers: Registers, lanes: int, element: Element) -> int:
    """The elements of a window: a SIMD register of them, or a register of the tile."""
    return min(lanes, registers.target.vector_bits // (8 * element.size))


def _is_gathered(registers: Registers, size: int) -> bool:
    return gathers(registers.builder, size) and "slow-gathers" not in registers.target.enabled


def _places(registers: Registers, pointer: SSAValue, size: int) -> tuple[int, ...] | None:
    """Where each lane's element is, counted from lane 0's; None where that is not known."""
    bits = distances_of(layout_of(pointer), box_of(registers.facts.axis[pointer]), "lane").bytes
    known = [bit for bit in bits if bit is not None]
    if len(known) < len(bits) or any(bit % size for bit in known):
        return None
    return distances_of_lanes([bit // size for bit in known])


def _distances(registers: Registers, pointer: SSAValue, places: Sequence[int] | None, size: int) -> list[Step] | None:
    """How many bytes each bit of a lane's number moves it, in any register; None where that is not one number."""
    layout = layout_of(pointer)
    if places is not None:
        return [(Product(places[1 << bit] * size),) for bit in range(layout.in_bits("lane"))]
    columns = [column for dim in ("register", "lane") for column in layout.columns(dim) if column]
    if len(set(columns)) < len(columns) or any(column & (column - 1) for column in columns):
        return None
    found: list[Step] = []
    for column in layout.columns("lane"):
        moved = [(d, by) for d, by in enumerate(layout.unflatten(column)) if by]
        steps = [(step_along(pointer, d, registers.facts.axis), by) for d, by in moved]
        if any(step is None for step, _ in steps):
            return None
        found.append(tuple([Product(each.factor * by, each.uniform) for step, by in steps for each in step or ()]))
    return found


def _addresses(
    registers: Registers, pointer: SSAValue, index: RegisterIndex, distances: Sequence[Step]
) -> list[ir.Value]:
    """The pointer of each lane, by scalar arithmetic from lane 0's. The distances do not depend on the register, so that LLVM
    takes them out of loops."""
    builder = registers.builder
    found = [builder.inttoptr(registers.lane(pointer, index, 0), POINTER)]
    for distance in distances:
        moved = bytes_of(registers, distance)
        found += [builder.gep(each, [moved], source_etype=I8) for each in found]
    return found


def _load_lanes(
    registers: Registers,
    pointer: SSAValue,
    index: RegisterIndex,
    element: Element,
    distances: Sequence[Step],
) -> ir.Value:
    """Lane by lane, in vectors of `_INSERTED` bytes; duplicates are taken from the lane that they duplicate."""
    builder, layout = registers.builder, layout_of(pointer)
    lanes, duplicate = layout.in_size("lane"), layout.duplicate_mask("lane")
    at = _addresses(registers, pointer, index, distances)
    width = min(lanes, _INSERTED // element.size)
    parts: list[ir.Value] = []
    for first in range(0, lanes, width):
        part: ir.Value = Undefined(element.storage_type(width))
        for lane in range(first, first + width):
            if not lane & duplicate:
                one = builder.load(at[lane], typ=element.storage_type(None), align=element.size)
                part = builder.insert_element(part, one, ir.Constant(I32, lane - first))
        parts.append(part)
    result = concatenated(builder, parts)
    return shuffle(builder, result, [lane & ~duplicate for lane in range(lanes)]) if duplicate else result


def _load_windows(
    registers: Registers, pointer: SSAValue, index: RegisterIndex, element: Element, found: Windows
) -> ir.Value:
    """Each part of the register, as wide as a window, from those that hold its elements."""
    builder = registers.builder
    start = builder.inttoptr(registers.lane(pointer, index, found.lowest), POINTER)
    type_ = element.storage_type(found.width)
    span = (found.windows[-1].start + found.width - found.windows[0].start) * element.size
    fetch_windows(registers, pointer, index, start, span)
    loaded: list[ir.Value] = []
    for window in found.windows:
        at = builder.gep(start, [ir.Constant(I64, window.start * element.size)], source_etype=I8)
        loaded.append(builder.load(at, typ=type_, align=element.size))
    lanes = layout_of(pointer).in_size("lane")
    return picked(builder, loaded, found, lanes)


def picked(builder: ir.IRBuilder, loaded: Sequence[ir.Value], found: Windows, lanes: int) -> ir.Value:
    """The register of so many lanes that the windows hold the elements of."""
    width = found.width
    parts: list[ir.Value] = []
    for first in range(0, lanes, width):
        part: ir.Value | None = None
        filled: dict[int, int] = {}
        sources = [
            (vector, {lane - first: place for lane, place in window.places if first <= lane < first + width})
            for vector, window in zip(loaded, found.windows, strict=True)
        ]
        sources = [(vector, places) for vector, places in sources if places]
        while sources:
            vector, places = sources.pop(0)
            if part is None and not sources:
                part = shuffle(builder, vector, [places.get(lane, 0) for lane in range(width)])
                continue
            if part is None:
                part, filled = vector, places
                vector, places = sources.pop(0)
            at = [filled.get(lane, lane) for lane in range(width)]
            part = shuffle(
                builder, part, [width + places[lane] if lane in places else at[lane] for lane in range(width)], vector
            )
            filled = {}
        assert part is not None, "each lane is in a window"
        parts.append(part)
    return concatenated(builder, parts)


def _store_windows(
    registers: Registers,
    pointer: SSAValue,
    index: RegisterIndex,
    element: Element,
    value: ir.Value,
    found: Windows,
    first: Sequence[int],
) -> None:
    """Under masks that leave out what lies between."""
    builder = registers.builder
    start = builder.inttoptr(registers.lane(pointer, index, found.lowest), POINTER)
    for window in found.windows:
        places = {place: lane for lane, place in window.places if lane in first}
        at = builder.gep(start, [ir.Constant(I64, window.start * element.size)], source_etype=I8)
        spread = shuffle(builder, value, [places.get(place, 0) for place in range(found.width)])
        store_some(builder, spread, at, [place in places for place in range(found.width)], element.size)
