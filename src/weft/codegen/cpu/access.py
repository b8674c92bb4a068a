"""Memory accesses of a kernel: one register of a tile at a time, as wide as the layout and the pointers allow.

A register's lanes fall into runs whose addresses ascend by one element: as long as the layout walks one dimension and axis
analysis knows the pointers contiguous along it. One run covering all different lanes is one vector access; a few long runs are
one each; anything else is a gather or scatter. Lanes that only duplicate others are loaded once and never stored.

Atomics, volatile loads and stores with release order go element by element (`weft.codegen.llvm.atomics`).

A checked kernel compares every address with the bounds of the array its pointer was derived from, before touching memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu import updates
from weft.codegen.cpu.beyond import Beyond
from weft.codegen.cpu.masks import decided_by_last, is_prefix
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.rows_ahead import RowsAhead
from weft.codegen.cpu.streaming import is_long_row, row_bounds
from weft.codegen.cpu.strided import whole_load, whole_store
from weft.codegen.cpu.updates import Atomic
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import Element
from weft.codegen.kernel import AccessSite
from weft.codegen.llvm import atomics
from weft.codegen.llvm.masked import (
    concatenated,
    has_masked,
    masked_gather,
    masked_load,
    masked_scatter,
    masked_store,
    unknown_place,
)
from weft.codegen.llvm.pieces import PIECE, store_pieces, stream_pieces
from weft.codegen.llvm.types import I1, I32, I64, POINTER, all_lanes, any_lane, lanes_of, scalar_type, shuffle, splat
from weft.ir import tile
from weft.ir.location import positions
from weft.ir.types import dtype_of, layout_of
from weft.layout import LinearLayout, Runs, runs_of
from weft.transforms.pack_dots import LIKELY_RUNS

SHORTEST_RUN = 4
"""Runs of at least this many elements are worth a vector access each."""


class Accesses:
    """Emits loads, stores and atomics of a kernel."""

    def __init__(self, emitter: Registers):
        self._emitter = emitter
        self._ahead = RowsAhead(emitter)

    @property
    def _builder(self) -> ir.IRBuilder:
        return self._emitter.builder

    # -- tiles -----------------------------------------------------------------------------------------------------------

    def _shape(self, pointer: SSAValue) -> Runs:
        return runs_of(layout_of(pointer), self._emitter.facts.axis[pointer].contiguity)

    def _mask(self, mask: SSAValue | None, index: RegisterIndex) -> ir.Value | None:
        """The mask's vector; None where there is none or it is known to be true."""
        if mask is None or mask in self._emitter.true_masks:
            return None
        return self._emitter.vector(mask, index)

    def load(self, op: tile.LoadOp, index: RegisterIndex) -> ir.Value:
        """One register of a load."""
        emitter, builder = self._emitter, self._builder
        element = Element(dtype_of(op.result))
        if op.volatile is not None:
            return self._volatile(op, index, element)
        shape = self._shape(op.pointer)
        lanes = len(shape.lane_of)
        mask = self._mask(op.mask, index)
        other = None if op.other is None or mask is None else emitter.vector(op.other, index)
        self._check(op, index, mask)
        if shape.elements == 1:
            active, fill = self._first_lane(mask), self._first_lane(other)
            return emitter.splat(self._load_one(element, emitter.lane(op.pointer, index, 0), active, fill), lanes)
        storage = element.storage_type(shape.run)
        if len(shape.starts) > 1 and shape.run < SHORTEST_RUN:
            return element.from_storage(builder, self._load_apart(op, index, element, mask, other))
        parts: list[ir.Value] = []
        prefix = op.mask is not None and is_prefix(op.mask, emitter.facts.axis)
        for start in shape.starts:
            self._ahead.fetch(op, index, start, shape.run)
            address = builder.inttoptr(emitter.lane(op.pointer, index, start), POINTER)
            if mask is None:
                parts.append(builder.load(address, typ=storage, align=element.size))
                continue
            positions_ = [start + j for j in range(shape.run)]
            fill = splat(0, storage)
            if other is not None:
                fill = shuffle(builder, element.to_storage(builder, other), positions_)
            active = shuffle(builder, mask, positions_)
            bits = emitter.target.vector_bits
            if self._masked_at_once(op, element):
                parts.append(masked_load(builder, address, active, fill, element.size, bits, mapped=emitter.mapped))
                continue
            # processors fetch ahead for plain loads, not for masked ones: from memory they are several times faster
            with builder.if_else(all_lanes(builder, active), likely=True) as (whole, partial):
                with whole:
                    plain = builder.load(address, typ=storage, align=element.size)
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
        return self._either(
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
        addresses, lanes = emitter.vector(op.pointer, index), layout_of(op.pointer).in_size("lane")
        storage = element.storage_type(lanes)
        first = builder.extract_element(addresses, ir.Constant(I32, 0))
        steps = ir.Constant(ir.VectorType(I64, lanes), [element.size * lane for lane in range(lanes)])
        run = builder.icmp_unsigned("==", addresses, builder.add(emitter.splat(first, lanes), steps))
        whole = all_lanes(builder, run if mask is None else builder.and_(run, mask))
        with builder.if_else(whole, likely=True) as (plain, otherwise):
            with plain:
                loaded = builder.load(builder.inttoptr(first, POINTER), typ=storage, align=element.size)
                plain_end = builder.block
            with otherwise, emitter.scope():
                gathered = self._gather(op, index, element, mask, other)
                gather_end = builder.block
        phi = builder.phi(storage)
        phi.add_incoming(loaded, plain_end)
        phi.add_incoming(gathered, gather_end)
        return phi

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
            self._lane_by_lane(
                op, index, values, lambda at, v: atomics.release_store(self._builder, v[0], at, element.size)
            )
            return
        shape = self._shape(op.pointer)
        mask = self._mask(op.mask, index)
        value = element.to_storage(builder, emitter.vector(op.value, index))
        self._check(op, index, mask)
        if shape.elements == 1:
            one = builder.extract_element(value, ir.Constant(I32, 0))
            self._store_one(element, emitter.lane(op.pointer, index, 0), one, self._first_lane(mask))
            return
        if len(shape.starts) > 1 and shape.run < SHORTEST_RUN:
            self._store_apart(op, index, element, value, mask)
            return
        prefix = op.mask is not None and is_prefix(op.mask, emitter.facts.axis)
        for start in shape.starts:
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
        streams = self._emitter.streams.get(op)
        if streams is None or (lanes_of(value) or 1) * size < PIECE:
            store_pieces(builder, value, address, size, bits)
            return
        look, past, plain, end = (builder.append_basic_block(name) for name in ("look", "past", "plain", "stored"))
        builder.cbranch(streams, look, plain).set_weights([1, 99])
        builder.position_at_end(look)
        low = builder.and_(builder.ptrtoint(address, I64), ir.Constant(I64, PIECE - 1))
        may = builder.icmp_unsigned("==", low, ir.Constant(I64, 0))
        with self._emitter.scope():
            for bound in row_bounds(op, self._emitter.facts):
                number = self._emitter.lane(bound, RegisterIndex(), 0)
                may = builder.and_(may, is_long_row(builder, number, size))
        builder.cbranch(may, past, plain)
        builder.position_at_end(past)
        stream_pieces(builder, value, address, size)
        builder.branch(end)
        builder.position_at_end(plain)
        store_pieces(builder, value, address, size, bits)
        builder.branch(end)
        builder.position_at_end(end)

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
        mask = self._unique(layout_of(op.pointer), mask)
        addresses = builder.inttoptr(emitter.vector(op.pointer, index), pointers)
        masked_scatter(builder, value, addresses, mask, element.size)

    def _unique(self, layout: LinearLayout, mask: ir.Value | None) -> ir.Value:
        """The mask without the lanes that duplicate another."""
        lanes = layout.in_size("lane")
        duplicate = layout.duplicate_mask("lane")
        constant = ir.Constant(
            ir.VectorType(I1, lanes), [ir.Constant(I1, int(not lane & duplicate)) for lane in range(lanes)]
        )
        if mask is None:
            return constant
        return self._builder.and_(mask, constant) if duplicate else mask

    def atomic(self, op: Atomic, index: RegisterIndex) -> ir.Value:
        """One register of an atomic; gives the old values (in all lanes, duplicates too; 0 where masked off), or zeros where
        nothing uses them."""
        emitter, builder = self._emitter, self._builder
        values = [emitter.vector(v, index) for v in updates.operands(op)]
        zeros = ir.Constant(values[0].type, None)
        initial = None if op.result.first_use is None else zeros

        beyond = emitter.beyond.get(emitter.facts.base_of[op.pointer])

        def by_instructions() -> ir.Value:
            def one(at: ir.Value, v: Sequence[ir.Value]) -> ir.Value:
                return self._update(op, at if beyond is None else beyond.in_array(builder, at), v)

            return self._lane_by_lane(op, index, values, one, initial)

        if emitter.alone is None:
            old = by_instructions()
        else:
            plainly = self._plainly(op, index, values, initial)
            alone = whole = emitter.alone
            if beyond is not None:
                held = partial(self._is_in_copy, op, index, beyond)
                alone = self._either(beyond.copied, held, lambda: whole, I1)
            old = self._either(alone, plainly, by_instructions, None if initial is None else initial.type)
        return zeros if initial is None else old

    def _is_in_copy(self, op: Atomic, index: RegisterIndex, beyond: Beyond) -> ir.Value:
        """Whether the thread's copy has all elements that one register updates."""
        mask, addresses = self._mask(op.mask, index), self._emitter.vector(op.pointer, index)
        return beyond.holds(self._builder, addresses, dtype_of(op.value).itemsize, mask)

    def _plainly(
        self, op: Atomic, index: RegisterIndex, values: Sequence[ir.Value], initial: ir.Value | None
    ) -> Callable[[], ir.Value]:
        """What updates one register of an atomic by plain loads and stores, and gives the old values. What it needs is emitted
        now."""
        emitter, builder = self._emitter, self._builder
        shape, layout = self._shape(op.pointer), layout_of(op.pointer)
        mask = self._mask(op.mask, index)
        ordering = tile.ordering_of(op)
        type_ = None if initial is None else initial.type

        def ordered(update: Callable[[], ir.Value]) -> Callable[[], ir.Value]:
            def between() -> ir.Value:
                if ordering is not None and ordering.releases:
                    atomics.barrier(builder)
                old = update()
                if ordering is not None and ordering.acquires:
                    atomics.barrier(builder)
                return old

            return between

        if shape.run >= SHORTEST_RUN:
            starts = [builder.inttoptr(emitter.lane(op.pointer, index, start), POINTER) for start in shape.starts]
            bits = emitter.target.vector_bits
            return ordered(lambda: updates.update_runs(builder, op, shape, starts, mask, values, bits))

        def in_turn(some: ir.Value | None = None, unused: ir.Value | None = None) -> ir.Value:
            def element(value: SSAValue, lane: int) -> ir.Value:
                return emitter.lane(value, index, lane)

            old = updates.update_lanes(builder, op, layout, element, some, unused)
            return values[0] if old is None else old

        def diverted(some: ir.Value) -> ir.Value:
            element = scalar_type(values[0])
            place = unknown_place(builder, emitter.entry.alloca(ir.ArrayType(element, layout.in_size("lane"))))
            none = values[0] if initial is None else initial
            return self._either(any_lane(builder, some), lambda: in_turn(some, place), lambda: none, type_)

        def active_ones() -> ir.Value:
            return self._lane_by_lane(
                op, index, values, lambda at, v: updates.update_element(builder, op, at, v), initial
            )

        if mask is None:
            return ordered(in_turn)
        if op.mask is not None and not decided_by_last(op.mask, emitter.facts.axis):
            return ordered(lambda: diverted(mask))
        return ordered(lambda: self._either(all_lanes(builder, mask), in_turn, active_ones, type_))

    def _either(
        self,
        condition: ir.Value,
        then: Callable[[], ir.Value],
        otherwise: Callable[[], ir.Value],
        type_: ir.Type | None,
    ) -> ir.Value:
        """What one of two ways to emit gives, of a type; of no use where that is None."""
        builder = self._builder
        ways: list[tuple[ir.Value, ir.Block]] = []
        with builder.if_else(condition, likely=True) as branches:
            for branch, emit in zip(branches, (then, otherwise), strict=True):
                with branch, self._emitter.scope():
                    ways.append((emit(), builder.block))
        if type_ is None:
            return ir.Constant(I32, 0)
        result = builder.phi(type_)
        for value, block in ways:
            result.add_incoming(value, block)
        return result

    def _volatile(self, op: tile.LoadOp, index: RegisterIndex, element: Element) -> ir.Value:
        """One register of a volatile load."""
        emitter = self._emitter
        storage = element.storage_type(layout_of(op.pointer).in_size("lane"))
        other = None if op.other is None else element.to_storage(self._builder, emitter.vector(op.other, index))
        one = element.storage_type(None)
        loaded = self._lane_by_lane(
            op,
            index,
            [],
            lambda at, _: atomics.volatile_load(self._builder, at, one, element.size),
            ir.Constant(storage, None) if other is None else other,
        )
        return element.from_storage(self._builder, loaded)

    def _lane_by_lane(
        self,
        op: tile.Access,
        index: RegisterIndex,
        values: Sequence[ir.Value],
        one: Callable[[ir.Value, Sequence[ir.Value]], ir.Value | None],
        initial: ir.Value | None = None,
    ) -> ir.Value:
        """``one(address, elements of the values)`` for each active lane in order, duplicates left out. Gives the vector of
        the results: ``initial`` in the other lanes, in a duplicate what its original has; without ``initial`` nothing of
        use."""
        emitter, builder = self._emitter, self._builder
        layout = layout_of(op.pointer)
        lanes = layout.in_size("lane")
        mask = None if op.mask is None else emitter.vector(op.mask, index)
        addresses = emitter.vector(op.pointer, index)
        self._check(op, index, mask)
        mask = self._unique(layout, mask)
        result = ir.Constant(I32, 0) if initial is None else emitter.entry.alloca(initial.type)
        if initial is not None:
            builder.store(initial, result)
        with emitter.loop(lanes) as lane, builder.if_then(builder.extract_element(mask, lane)):
            address = builder.inttoptr(builder.extract_element(addresses, lane), POINTER)
            element = one(address, [builder.extract_element(value, lane) for value in values])
            if initial is not None and element is not None:
                builder.store(builder.insert_element(builder.load(result, typ=initial.type), element, lane), result)
        if initial is None:
            return result
        loaded = builder.load(result, typ=initial.type)
        duplicate = layout.duplicate_mask("lane")
        return shuffle(builder, loaded, [lane & ~duplicate for lane in range(lanes)]) if duplicate else loaded

    # -- scalars ---------------------------------------------------------------------------------------------------------

    def load_lane(self, op: tile.LoadOp, index: RegisterIndex, lane: int) -> ir.Value:
        """One lane of a load whose mask, if any, is true there."""
        return self._load_one(Element(dtype_of(op.result)), self._emitter.lane(op.pointer, index, lane), None, None)

    def load_scalar(self, op: tile.LoadOp) -> ir.Value:
        """A load through one pointer."""
        emitter = self._emitter
        element = Element(dtype_of(op.result))
        mask = None if op.mask is None else emitter.scalar(op.mask)
        self._check_scalar(op, mask)
        other = None if op.other is None else emitter.scalar(op.other)
        return self._load_one(element, emitter.scalar(op.pointer), mask, other, volatile=op.volatile is not None)

    def _load_one(
        self,
        element: Element,
        address: ir.Value,
        mask: ir.Value | None,
        other: ir.Value | None,
        *,
        volatile: bool = False,
    ) -> ir.Value:
        """One element; also of a tile that has no other, since LLVM's passes fail on vectors of one lane."""

        def load() -> ir.Value:
            place, type_ = self._builder.inttoptr(address, POINTER), element.storage_type(None)
            if volatile:
                value = atomics.volatile_load(self._builder, place, type_, element.size)
            else:
                value = self._builder.load(place, typ=type_, align=element.size)
            return element.from_storage(self._builder, value)

        return self._where(mask, load, ir.Constant(element.register_type(None), None) if other is None else other)

    def store_scalar(self, op: tile.StoreOp) -> None:
        """A store through one pointer."""
        emitter = self._emitter
        element = Element(dtype_of(op.value))
        mask = None if op.mask is None else emitter.scalar(op.mask)
        self._check_scalar(op, mask)
        value = element.to_storage(self._builder, emitter.scalar(op.value))
        self._store_one(element, emitter.scalar(op.pointer), value, mask, release=op.release is not None)

    def _store_one(
        self, element: Element, address: ir.Value, value: ir.Value, mask: ir.Value | None, *, release: bool = False
    ) -> None:
        with nullcontext() if mask is None else self._builder.if_then(mask):
            place = self._builder.inttoptr(address, POINTER)
            if release:
                atomics.release_store(self._builder, value, place, element.size)
            else:
                self._builder.store(value, place, align=element.size)

    def _first_lane(self, vector: ir.Value | None) -> ir.Value | None:
        return None if vector is None else self._builder.extract_element(vector, ir.Constant(I32, 0))

    def atomic_scalar(self, op: Atomic) -> ir.Value:
        """An atomic through one pointer; gives the old value."""
        emitter = self._emitter
        mask = None if op.mask is None else emitter.scalar(op.mask)
        self._check_scalar(op, mask)
        values = [emitter.scalar(v) for v in updates.operands(op)]

        beyond = emitter.beyond.get(emitter.facts.base_of[op.pointer])

        def update() -> ir.Value:
            address = emitter.scalar(op.pointer)
            place = self._builder.inttoptr(address, POINTER)
            if beyond is not None:
                held = beyond.holds(self._builder, address, dtype_of(op.value).itemsize)
                place = self._builder.select(held, place, beyond.in_array(self._builder, place))
            return self._update(op, place, values)

        return self._where(mask, update, ir.Constant(values[0].type, None))

    def _update(self, op: Atomic, address: ir.Value, values: Sequence[ir.Value]) -> ir.Value:
        """One element of an atomic; gives its old value."""
        if isinstance(op, tile.AtomicCasOp):
            return atomics.swap_if_equal(self._builder, op.sem.data, address, *values)
        dtype = dtype_of(op.value)
        return atomics.read_modify_write(self._builder, op.kind.data, dtype, op.sem.data, address, *values)

    def _where(self, mask: ir.Value | None, then: Callable[[], ir.Value], otherwise: ir.Value) -> ir.Value:
        if mask is None:
            return then()
        before = self._builder.block
        with self._builder.if_then(mask):
            value = then()
            inside = self._builder.block
        result = self._builder.phi(value.type)
        result.add_incoming(otherwise, before)
        result.add_incoming(value, inside)
        return result

    # -- bounds ----------------------------------------------------------------------------------------------------------

    def _check(self, op: tile.Access, index: RegisterIndex, mask: ir.Value | None) -> None:
        if self._emitter.options.checked:
            addresses = self._emitter.vector(op.pointer, index)
            self._require(op, addresses, self._unique(layout_of(op.pointer), mask))

    def _check_scalar(self, op: tile.Access, mask: ir.Value | None) -> None:
        if self._emitter.options.checked:
            self._require(op, self._emitter.scalar(op.pointer), ir.Constant(I1, 1) if mask is None else mask)

    def _require(self, op: tile.Access, addresses: ir.Value, mask: ir.Value) -> None:
        """Leaves the kernel, reporting the first offending address, unless all active ones are inside the arrays."""
        emitter, builder = self._emitter, self._builder
        base = emitter.facts.base_of.get(op.pointer)
        size = dtype_of(op.pointer).itemsize
        known = emitter.faults.bounds
        bounds = known if base is None else {base: known[base]}
        inside: ir.Value | None = None
        for low, high in bounds.values():
            lanes = lanes_of(addresses)
            last = builder.sub(high, ir.Constant(I64, size))
            low_, last_ = (v if lanes is None else emitter.splat(v, lanes) for v in (low, last))
            here = builder.and_(
                builder.icmp_unsigned(">=", addresses, low_),
                builder.and_(
                    builder.icmp_unsigned("<=", addresses, last_),
                    builder.icmp_unsigned("<=", low_, last_),
                ),
            )
            inside = here if inside is None else builder.or_(inside, here)
        outside = mask if inside is None else builder.and_(mask, builder.not_(inside))
        name = base.name_hint if base is not None else None
        site = emitter.faults.add(AccessSite(_operation(op), name, size, positions(op)))
        with builder.if_then(any_lane(builder, outside), likely=False):
            emitter.fault(site, _first(builder, addresses, outside))


def _operation(op: tile.Access) -> str:
    """What the language calls the access."""
    return f"atomic_{op.kind.data}" if isinstance(op, tile.AtomicRmwOp) else op.name.removeprefix("tile.")


def _first(builder: ir.IRBuilder, addresses: ir.Value, active: ir.Value) -> ir.Value:
    """The address in the first active lane."""
    lanes = lanes_of(addresses)
    if lanes is None:
        return addresses
    lane = builder.cttz(builder.bitcast(active, ir.IntType(lanes)), ir.Constant(I1, 1))
    return builder.extract_element(addresses, builder.zext(lane, I32) if lanes < 32 else lane)
