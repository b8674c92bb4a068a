"""Loads and stores of tiles: one register at a time, as wide as the layout and the pointers allow.

One run of consecutive addresses that covers all different lanes (`weft.codegen.cpu.runs`) is one vector access; a few long runs
are one each; anything else is a gather or scatter. Lanes that only duplicate others are loaded once and never stored.

Volatile loads and stores with release order go element by element (`weft.codegen.llvm.atomics`).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.bounds import check
from weft.codegen.cpu.branches import either
from weft.codegen.cpu.far_ahead import fetch_ahead, fetch_below
from weft.codegen.cpu.halved_loads import BYTES, load_halves
from weft.codegen.cpu.lane_by_lane import lane_by_lane
from weft.codegen.cpu.likely_runs import deciding
from weft.codegen.cpu.masks import distinct, is_prefix
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.rows_ahead import RowsAhead
from weft.codegen.cpu.runs import SHORTEST_RUN, mask_of, runs
from weft.codegen.cpu.single_access import load_one, store_one
from weft.codegen.cpu.streaming import is_long_row, row_bounds
from weft.codegen.cpu.strided import whole_load, whole_store
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import Element
from weft.codegen.llvm import atomics
from weft.codegen.llvm.masked import (
    concatenated,
    has_masked,
    masked_gather,
    masked_load,
    masked_scatter,
    masked_store,
)
from weft.codegen.llvm.pieces import PIECE, store_pieces, stream_pieces
from weft.codegen.llvm.types import I1, I32, I64, POINTER, all_lanes, lanes_of, shuffle, splat
from weft.ir import tile
from weft.ir.cpu import PackOp
from weft.ir.direct import defining_op
from weft.ir.types import dtype_of, is_pointer, layout_of
from weft.transforms.pack_dots import LIKELY_RUNS


class Accesses:
    """Emits loads and stores of a kernel's tiles."""

    def __init__(self, emitter: Registers):
        self._emitter = emitter
        self._ahead = RowsAhead(emitter)
        self._past: dict[tile.StoreOp, ir.Value] = {}
        """Whether stores go past the caches, where that is known when the program begins, but for their alignment."""

    @property
    def _builder(self) -> ir.IRBuilder:
        return self._emitter.builder

    def load(self, op: tile.LoadOp, index: RegisterIndex) -> ir.Value:
        """One register of a load."""
        emitter, builder = self._emitter, self._builder
        element = Element(dtype_of(op.result))
        if op.volatile is not None:
            return self._volatile(op, index, element)
        shape = runs(emitter, op.pointer)
        lanes = len(shape.lane_of)
        mask = mask_of(emitter, op.mask, index)
        other = None if op.other is None or mask is None else emitter.vector(op.other, index)
        check(emitter, op, index, mask)
        if shape.elements == 1:
            active, fill = self._first_lane(mask), self._first_lane(other)
            return emitter.splat(load_one(builder, element, emitter.lane(op.pointer, index, 0), active, fill), lanes)
        storage = element.storage_type(shape.run)
        if len(shape.starts) > 1 and shape.run < SHORTEST_RUN:
            return element.from_storage(builder, self._load_apart(op, index, element, mask, other))
        parts: list[ir.Value] = []
        prefix = op.mask is not None and is_prefix(op.mask, emitter.facts.axis)
        for start in shape.starts:
            self._ahead.fetch(op, index, start, shape.run)
            address = builder.inttoptr(emitter.lane(op.pointer, index, start), POINTER)
            if mask is None:
                if (distance := emitter.far.get(op)) is not None:
                    fetch_ahead(builder, address, distance)
                fetch_below(emitter, op, address)
                parts.append(self._load_whole(address, storage, element.size))
                continue
            positions_ = [start + j for j in range(shape.run)]
            fill = splat(0, storage)
            if other is not None:
                fill = shuffle(builder, element.to_storage(builder, other), positions_)
            active = shuffle(builder, mask, positions_)
            bits = emitter.target.vector_bits
            if self._masked_at_once(op, element):
                mapped = None if op.mask in emitter.begun_masks else emitter.mapped
                parts.append(masked_load(builder, address, active, fill, element.size, bits, mapped=mapped))
                continue
            # processors fetch ahead for plain loads, not for masked ones: from memory they are several times faster
            with builder.if_else(all_lanes(builder, active), likely=True) as (whole, partial):
                with whole:
                    plain = self._load_whole(address, storage, element.size)
                    whole_end = builder.block
                with partial:
                    mapped = emitter.mapped if has_masked(builder, element.size) else None
                    masked = masked_load(
                        builder, address, active, fill, element.size, bits, prefix=prefix, mapped=mapped
                    )
                    partial_end = builder.block
            phi = builder.phi(storage)
            phi.add_incoming(plain, whole_end)
            phi.add_incoming(masked, partial_end)
            parts.append(phi)
        value = concatenated(builder, parts)
        if lanes != shape.elements or not shape.identity:
            value = shuffle(builder, value, shape.lane_of)
        return element.from_storage(builder, value)

    def _load_whole(self, address: ir.Value, type_: ir.Type, size: int) -> ir.Value:
        """A run without a mask."""
        if self._emitter.by_halves and isinstance(type_, ir.VectorType) and type_.count * size == BYTES:
            return load_halves(self._builder, address, type_, size, self._emitter.halves_apart)
        return self._builder.load(address, typ=type_, align=size)

    def _masked_at_once(self, op: tile.LoadOp | tile.StoreOp, element: Element) -> bool:
        """Whether a masked access does not look first whether all lanes are there: some are known not to be, and it takes one
        instruction."""
        return op.mask in self._emitter.ragged_masks and has_masked(self._builder, element.size)

    def _load_apart(
        self, op: tile.LoadOp, index: RegisterIndex, element: Element, mask: ir.Value | None, other: ir.Value | None
    ) -> ir.Value:
        """A register whose lanes are no runs: a gather, unless all lanes are active and there is a better way."""
        if LIKELY_RUNS in op.attributes:
            return self._run_or_gather(op, index, element, mask, other)
        ragged = op.mask in self._emitter.ragged_masks and mask is not None
        whole = None if ragged else whole_load(self._emitter, op.pointer, index, element)
        if whole is None:
            return self._gather(op, index, element, mask, other)
        if mask is None:
            return whole()
        return either(
            self._emitter,
            all_lanes(self._builder, mask),
            whole,
            lambda: self._gather(op, index, element, mask, other),
            element.storage_type(layout_of(op.pointer).in_size("lane")),
        )

    def _run_or_gather(
        self, op: tile.LoadOp, index: RegisterIndex, element: Element, mask: ir.Value | None, other: ir.Value | None
    ) -> ir.Value:
        """A gather, or a plain load where the addresses turn out to be a run: offsets that wrap around seldom do so
        within a register."""
        emitter, builder = self._emitter, self._builder
        lanes = layout_of(op.pointer).in_size("lane")
        storage = element.storage_type(lanes)
        if path := deciding(op.pointer, emitter.facts.axis):
            first = emitter.lane(op.pointer, index, 0)
            whole = self._is_whole_run(path, index, element.size)
            if mask is not None:
                whole = builder.and_(whole, all_lanes(builder, mask))
        else:
            addresses = emitter.vector(op.pointer, index)
            first = builder.extract_element(addresses, ir.Constant(I32, 0))
            steps = ir.Constant(ir.VectorType(I64, lanes), [element.size * lane for lane in range(lanes)])
            run = builder.icmp_unsigned("==", addresses, builder.add(emitter.splat(first, lanes), steps))
            whole = all_lanes(builder, run if mask is None else builder.and_(run, mask))
        with builder.if_else(whole, likely=True) as (plain, otherwise):
            with plain:
                loaded = builder.load(builder.inttoptr(first, POINTER), typ=storage, align=element.size)
                plain_end = builder.block
            with otherwise, emitter.scope():
                gathered = self._cut_off_or_gather(op, index, element, mask, other)
                gather_end = builder.block
        phi = builder.phi(storage)
        phi.add_incoming(loaded, plain_end)
        phi.add_incoming(gathered, gather_end)
        return phi

    def _is_whole_run(self, path: Sequence[SSAValue], index: RegisterIndex, size: int) -> ir.Value:
        """Whether a register of pointers, from which a ``path`` leads to what decides, is a run of elements of ``size`` bytes."""
        value, index, step = self._deciding(path, index, size)
        lanes = layout_of(value).in_size("lane")
        first, last = (self._emitter.lane(value, index, lane) for lane in (0, lanes - 1))
        return self._builder.icmp_unsigned(
            "==", self._builder.sub(last, first), ir.Constant(first.type, (lanes - 1) * step)
        )

    def _deciding(
        self, path: Sequence[SSAValue], index: RegisterIndex, size: int
    ) -> tuple[SSAValue, RegisterIndex, int]:
        """What decides whether a register is a run, its register, and by how much that ascends in a run. What is in memory is not
        computed again: on the way each value decides. Offsets of columns do for all rows."""
        decides = next((value for value in path if value in self._emitter.buffers), path[-1])
        for value in path[: path.index(decides)]:
            view = defining_op(value)
            if view is not None and tile.is_a(view, tile.View):
                index = self._emitter.through(view, index)
        return decides, index, size if is_pointer(decides) else 1

    def _cut_off_or_gather(
        self, op: tile.LoadOp, index: RegisterIndex, element: Element, mask: ir.Value | None, other: ir.Value | None
    ) -> ir.Value:
        """A register that is no run: what it has of one, if nothing else of it is wanted, as where columns wrap around behind
        those that are stored; else a gather."""
        emitter, builder = self._emitter, self._builder
        path, pack = deciding(op.pointer, emitter.facts.axis), _packed_by(op)
        size = None if pack is None else emitter.scalar(pack.size)
        if not path or mask is not None or size is None or isinstance(size, ir.Constant):
            return self._gather(op, index, element, mask, other)
        value, at, step = self._deciding(path, index, element.size)
        offsets, lanes = emitter.vector(value, at), layout_of(op.pointer).in_size("lane")
        in_a_run = ir.Constant(offsets.type, [lane * step for lane in range(lanes)])
        run = builder.icmp_unsigned(
            "==", offsets, builder.add(emitter.splat(emitter.lane(value, at, 0), lanes), in_a_run)
        )
        columns = [column & layout_of(op.pointer).shape[-1] - 1 for column in layout_of(op.pointer).columns("register")]
        left = builder.sub(size, index.through(columns).value(builder))
        numbers = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
        unwanted = builder.icmp_signed(">=", numbers, emitter.splat(left, lanes))
        address = builder.inttoptr(emitter.lane(op.pointer, index, 0), POINTER)
        storage, bits = element.storage_type(lanes), emitter.target.vector_bits
        return either(
            emitter,
            all_lanes(builder, builder.or_(run, unwanted)),
            lambda: masked_load(
                self._builder, address, run, splat(0, storage), element.size, bits, prefix=True, mapped=emitter.mapped
            ),
            lambda: self._gather(op, index, element, mask, other),
            storage,
        )

    def _gather(
        self, op: tile.LoadOp, index: RegisterIndex, element: Element, mask: ir.Value | None, other: ir.Value | None
    ) -> ir.Value:
        emitter, builder = self._emitter, self._builder
        addresses = emitter.vector(op.pointer, index)
        lanes = layout_of(op.pointer).in_size("lane")
        storage = element.storage_type(lanes)
        pointers = ir.VectorType(POINTER, lanes)
        fill = splat(0, storage) if other is None else element.to_storage(builder, other)
        mask = splat(1, ir.VectorType(I1, lanes)) if mask is None else mask
        return masked_gather(builder, builder.inttoptr(addresses, pointers), mask, fill, element.size)

    def store(self, op: tile.StoreOp, index: RegisterIndex) -> None:
        """One register of a store."""
        emitter, builder = self._emitter, self._builder
        element = Element(dtype_of(op.value))
        if op.release is not None:
            values = [element.to_storage(builder, emitter.vector(op.value, index))]
            lane_by_lane(
                emitter, op, index, values, lambda at, v: atomics.release_store(self._builder, v[0], at, element.size)
            )
            return
        shape = runs(emitter, op.pointer)
        mask = mask_of(emitter, op.mask, index)
        value = element.to_storage(builder, emitter.vector(op.value, index))
        check(emitter, op, index, mask)
        if shape.elements == 1:
            one = builder.extract_element(value, ir.Constant(I32, 0))
            store_one(builder, element, emitter.lane(op.pointer, index, 0), one, self._first_lane(mask))
            return
        if len(shape.starts) > 1 and shape.run < SHORTEST_RUN:
            self._store_apart(op, index, element, value, mask)
            return
        prefix = op.mask is not None and is_prefix(op.mask, emitter.facts.axis)
        for start in shape.starts:
            self._ahead.fetch(op, index, start, shape.run)
            address = builder.inttoptr(emitter.lane(op.pointer, index, start), POINTER)
            lanes = [start + j for j in range(shape.run)]
            part = shuffle(builder, value, lanes)
            if mask is None:
                self._store_whole(op, part, address, element.size)
                continue
            active = shuffle(builder, mask, lanes)
            if self._masked_at_once(op, element):
                masked_store(builder, part, address, active, element.size)
                continue
            with builder.if_else(all_lanes(builder, active), likely=True) as (whole, partial):
                with whole:
                    self._store_whole(op, part, address, element.size)
                with partial:
                    masked_store(builder, part, address, active, element.size, prefix=prefix)

    def _store_whole(self, op: tile.StoreOp, value: ir.Value, address: ir.Value, size: int) -> None:
        """A run without a mask: past the caches where the launch streams, the address is aligned, and the row is long or ends
        with a line; else plainly."""
        builder, bits = self._builder, self._emitter.target.vector_bits
        if op not in self._emitter.streams or (lanes_of(value) or 1) * size < PIECE:
            store_pieces(builder, value, address, size, bits)
            return
        streams, rows = self._streams(op, size)
        look, past, plain, end = (builder.append_basic_block(name) for name in ("look", "past", "plain", "stored"))
        builder.cbranch(streams, look, plain).set_weights([1, 99])
        builder.position_at_end(look)
        low = builder.and_(builder.ptrtoint(address, I64), ir.Constant(I64, PIECE - 1))
        may = builder.icmp_unsigned("==", low, ir.Constant(I64, 0))
        for number in rows:
            may = builder.and_(may, is_long_row(builder, number, size))
        builder.cbranch(may, past, plain)
        builder.position_at_end(past)
        stream_pieces(builder, value, address, size)
        builder.branch(end)
        builder.position_at_end(plain)
        store_pieces(builder, value, address, size, bits)
        builder.branch(end)
        builder.position_at_end(end)

    def _streams(self, op: tile.StoreOp, size: int) -> tuple[ir.Value, list[ir.Value]]:
        """Whether a store may go past the caches, and of how many elements the rows are that must be long for that. Rows whose
        length is known when the program begins are asked there."""
        if op in self._past:
            return self._past[op], []
        emitter, entry = self._emitter, self._emitter.entry
        streams = emitter.streams[op]
        with emitter.scope():
            rows = [emitter.lane(bound, RegisterIndex(), 0) for bound in row_bounds(op, emitter.facts)]
        if any(isinstance(number, ir.Instruction) and number.parent is not entry.block for number in rows):
            return streams, rows
        for number in rows:
            streams = entry.and_(streams, is_long_row(entry, number, size))
        self._past[op] = streams
        return streams, []

    def _store_apart(
        self, op: tile.StoreOp, index: RegisterIndex, element: Element, value: ir.Value, mask: ir.Value | None
    ) -> None:
        """As `_load_apart`, for stores."""
        ragged = op.mask in self._emitter.ragged_masks and mask is not None
        whole = None if ragged else whole_store(self._emitter, op.pointer, index, element, value)
        if whole is None:
            self._scatter(op, index, element, value, mask)
        elif mask is None:
            whole()
        else:
            with self._builder.if_else(all_lanes(self._builder, mask), likely=True) as (all_, some):
                with all_, self._emitter.scope():
                    whole()
                with some, self._emitter.scope():
                    self._scatter(op, index, element, value, mask)

    def _scatter(
        self, op: tile.StoreOp, index: RegisterIndex, element: Element, value: ir.Value, mask: ir.Value | None
    ) -> None:
        emitter, builder = self._emitter, self._builder
        lanes = layout_of(op.pointer).in_size("lane")
        pointers = ir.VectorType(POINTER, lanes)
        mask = distinct(builder, layout_of(op.pointer), mask)
        addresses = builder.inttoptr(emitter.vector(op.pointer, index), pointers)
        masked_scatter(builder, value, addresses, mask, element.size)

    def _volatile(self, op: tile.LoadOp, index: RegisterIndex, element: Element) -> ir.Value:
        """One register of a volatile load."""
        emitter = self._emitter
        storage = element.storage_type(layout_of(op.pointer).in_size("lane"))
        other = None if op.other is None else element.to_storage(self._builder, emitter.vector(op.other, index))
        one = element.storage_type(None)
        loaded = lane_by_lane(
            emitter,
            op,
            index,
            [],
            lambda at, _: atomics.volatile_load(self._builder, at, one, element.size),
            ir.Constant(storage, None) if other is None else other,
        )
        return element.from_storage(self._builder, loaded)

    def load_lane(self, op: tile.LoadOp, index: RegisterIndex, lane: int) -> ir.Value:
        """One lane of a load whose mask, if any, is true there."""
        address = self._emitter.lane(op.pointer, index, lane)
        return load_one(self._builder, Element(dtype_of(op.result)), address, None, None)

    def _first_lane(self, vector: ir.Value | None) -> ir.Value | None:
        return None if vector is None else self._builder.extract_element(vector, ir.Constant(I32, 0))


def _packed_by(op: tile.LoadOp) -> PackOp | None:
    """What packs a load, perhaps cast, into a right panel, if that is all that becomes of it."""
    value: SSAValue = op.result
    while value.has_one_use():
        (use,) = value.uses
        if isinstance(use.operation, PackOp):
            return use.operation if use.operation.geometry.axis == 0 else None
        if not isinstance(use.operation, tile.CastOp):
            break
        value = use.operation.result
    return None
