"""tcgen05.mma: products of matrices in shared and tensor memory, begun by a thread (PTX ISA 9.7.16.10).

Computed when it is issued; D is in tensor memory. What it reads of shared memory belongs to the operation until an mbarrier
that tcgen05.commit names completes its phase, and accesses are of the async proxy, as for wgmma. Products are those of
`weft.emulator.arith.products`: exact, summed with D in float64, rounded once. Scales multiply the elements of A and B, exactly.

Refused: a sparse A (``.sp``), ``.ashift``, two blocks (``.cta_group::2``), a mask of columns (``.ws`` with a descriptor that is
not 0). Where A stays (``.collector``) has no meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import tcgen05
from weft.emulator.arith.descriptors import UNIT
from weft.emulator.arith.products import ELEMENTS, float_product, integer_product
from weft.emulator.arith.tcgen05 import KINDS, ROW, Malformed, Product
from weft.emulator.arith.tensor_memory import LANES, Cells, result_lanes
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.memory.order import Agent
from weft.emulator.ops.async_groups import Groups
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.tensor_memory import GROUP, QUARTER, TensorMemory, addresses, one_block, split_address
from weft.emulator.ptx.syntax import Address, Vector
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

PENDING: Final = "tcgen05"
"""What `Groups` calls operations that have not been committed."""

BLOCKS: Final = {
    "mxf8f6f4": {"": 32, "block32": 32, "scale_vec::1X": 32},
    "mxf4": {"": 32, "block32": 32, "scale_vec::2X": 32},
    "mxf4nvf4": {"block32": 32, "scale_vec::2X": 32, "block16": 16, "scale_vec::4X": 16},
}
"""Elements along K that have a scale, by kind and modifier."""

_COLLECTORS: Final = frozenset(
    f"collector::{buffer}::{use}"
    for buffer in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)


@dataclass(frozen=True)
class _Form:
    """The modifiers."""

    kind: str
    stationary: bool
    block: int
    """Elements that have a scale; 0 without scales."""


def _form(b: Binding) -> _Form:
    name = b.instruction.name
    rest = [m for m in b.modifiers[1:] if m not in _COLLECTORS]
    for refused, why in (("sp", "a sparse A"), ("ashift", "A shifted by a row")):
        if refused in rest:
            b.unknown(f"'.{refused}' of tcgen05.mma: {why}")
    kinds = [m.removeprefix("kind::") for m in rest if m.startswith("kind::")]
    groups = [m for m in rest if m in GROUP.split()]
    b.require(len(kinds) == 1 and kinds[0] in KINDS, f"{name} has no kind that there is")
    b.require(len(groups) == 1, f"{name} has {len(groups)} groups of blocks, expected one")
    one_block(b, groups[0])
    rest = [m for m in rest if m not in groups and not m.startswith("kind::")]
    kind, scaled, stationary = KINDS[kinds[0]], "block_scale" in rest, "ws" in rest
    b.require(scaled == kind.scaled, f"kind::{kind.name} and '.block_scale' do not go together")
    b.require(not (scaled and stationary), "'.ws' has no '.block_scale'")
    sizes = [m for m in rest if m not in ("ws", "block_scale")]
    known = BLOCKS[kind.name] if scaled else {"": 0}
    size = sizes[0] if sizes else ""
    if len(sizes) > 1 or size not in known:
        b.unknown(f"'.{(sizes or ['no block size'])[-1]}' of tcgen05.mma.kind::{kind.name}")
    return _Form(kind.name, stationary, known[size])


@dataclass(frozen=True)
class Operand:
    """A or B of one product in shared memory: the addresses of its units of 16 bytes, and how they become numbers."""

    units: NDArray[np.uint64]
    rows: int
    depth: int
    kind: str
    transposed: bool
    dense: bool

    def numbers(self, words: NDArray[np.uint64]) -> NDArray[Any]:
        """(rows, K), of the units' words (units, 2)."""
        raw = np.ascontiguousarray(words).view(np.uint8)
        if self.transposed:
            return tcgen05.numbers(raw.reshape(self.depth, -1), self.kind).T
        return tcgen05.numbers(raw.reshape(self.rows, -1), self.kind, dense=self.dense)


@lru_cache(maxsize=4096)
def operand(bits: int, rows: int, depth: int, kind: str, transposed: bool, dense: bool) -> Operand:
    """The operand with this matrix descriptor. Raises `Malformed`."""
    found = tcgen05.descriptor(bits)
    units = found.mn_major(rows, depth, ELEMENTS[kind].bits // 8) if transposed else found.k_major(rows, ROW // UNIT)
    return Operand(units.ravel().astype(np.uint64), rows, depth, kind, transposed, dense)


def read_shared(execution: Execution, site: int, thread: int, units: NDArray[np.uint64], agent: Agent | None) -> Any:
    """The words (units, 2) of units of 16 bytes, which an operation of the thread reads."""
    threads = np.full(units.size, thread)
    addresses = execution.memory.own_shared(threads, units)
    access = AccessBatch(site, Space.SHARED, Kind.READ, threads, addresses, UNIT, Proxy.ASYNC, agent=agent)
    execution.counters.access(access)
    return execution.memory.load(access, 8).reshape(-1, 2)


class _Mma:
    """One instruction, and what its threads compute."""

    def __init__(self, b: Binding) -> None:
        self.form = f = _form(b)
        self.execution, self.site, self.name = b.execution, b.site, b.instruction.name
        threads = b.execution.threads

        def wide(place: int, name: str) -> NDArray[Any]:
            return np.broadcast_to(b.read(place, TYPES[name]), (threads,))

        self.d = addresses(b, 0)
        self.in_memory = isinstance(b.operand(1), Address)
        self.a: Callable[[], NDArray[Any]] = addresses(b, 1) if self.in_memory else lambda: left
        left = wide(1, "b64") if not self.in_memory else np.zeros(0)
        self.b, self.descriptor = wide(2, "b64"), wide(3, "b32")
        place = 4
        self.scales: Sequence[Callable[[], NDArray[Any]]] = ()
        self.disabled: Sequence[NDArray[Any]] = ()
        if f.block:
            self.scales, place = (addresses(b, 4), addresses(b, 5)), 6
        elif len(b.operands) > 4 and isinstance(b.operand(4), Vector):
            elements = b.elements(4)
            b.require(len(elements) == 4, f"{self.name} has {len(elements)} masks of lanes, expected 4")
            b.require(not f.stationary, "'.ws' has no masks of lanes")
            self.disabled = [np.broadcast_to(b.read(e, TYPES["b32"]), (threads,)) for e in elements]
            place = 5
        b.count(place + 1, place + 2)
        self.enable = b.predicate(place)
        self.shift, self.mask = 0, None
        if len(b.operands) > place + 1:
            if f.stationary:
                self.mask = wide(place + 1, "b64")
            else:
                self.shift = b.constant(place + 1)
                b.require(f.kind in ("f16", "tf32"), f"kind::{f.kind} has no scale of D")
                b.require(0 <= self.shift <= 15, f"D is scaled by 2^-{self.shift}, expected 0 to 15")

    def step(self, active: Active) -> None:
        """Each thread begins a product."""
        execution = self.execution
        agent = Groups.of(execution, PENDING).begin(active) if execution.order.active else None
        enable, d, a = self.enable(), self.d(), self.a()
        for thread in active.index.tolist():
            self._compute(thread, int(d[thread]), int(a[thread]), bool(enable[thread]), agent)

    def _wrong(self, error: Malformed, what: str, thread: int) -> Exception:
        return self.execution.fault(Undefined, f"the {what} of {self.name} {error}", self.site, thread)

    def _compute(self, thread: int, d: int, a: int, accumulate: bool, agent: Agent | None) -> None:
        execution, site, f = self.execution, self.site, self.form
        if self.mask is not None and self.mask[thread]:
            raise execution.fault(
                Undefined, f"{self.name} with a mask of columns, which the emulator does not know", site, thread
            )
        try:
            p = tcgen05.product(int(self.descriptor[thread]), f.kind, f.stationary)
        except Malformed as error:
            raise self._wrong(error, "instruction descriptor", thread) from None
        left, right = self._operands(thread, a, p, agent)
        lanes = result_lanes(p.m, f.stationary)
        parts = int(lanes.shape[1])
        lane, column = split_address(d)
        lanes = (lanes + lane)[:, :, None]
        offsets: Cells = np.arange(p.n // parts)
        columns = (column + offsets)[None, None, :]
        memory = TensorMemory.of(execution)
        before: Any = np.array(0)
        if accumulate:
            words = memory.read(site, thread, lanes, columns, "D: ").reshape(p.m, p.n)
            before = _values(words, p.d)
            if self.shift:
                before = before.astype(np.float64) * 2.0**-self.shift
        result = self._scaled(thread, p, left, right, before) if self.scales else _product(left, right.T, before, p)
        written = _words(result, p.d).reshape(p.m, parts, -1)
        if self.disabled:
            off = np.array([int(word[thread]) for word in self.disabled], np.uint32)
            keep = np.unpackbits(off.view(np.uint8), bitorder="little")[lanes[:, 0, 0]] == 0
            lanes, written = lanes[keep], written[keep]
        if written.size:
            memory.write(site, thread, lanes, columns, written)
        execution.counters.add(site, "tcgen05", 1)
        execution.counters.add(site, "matrix_flops", p.work)

    def _operands(self, thread: int, a: int, p: Product, agent: Agent | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """A (M, K) and B (N, K); A negated where the product is."""
        dense = p.kind.k == 64
        left = self._from_tensor_memory(thread, a, p, dense) if self.in_memory else None
        try:
            b = operand(int(self.b[thread]), p.n, p.kind.k, p.b, p.b_transposed, dense)
            shared = [b]
            if left is None:
                shared.insert(0, operand(a, p.m, p.kind.k, p.a, p.a_transposed, dense))
        except Malformed as error:
            raise self._wrong(error, "matrix descriptor", thread) from None
        words = read_shared(self.execution, self.site, thread, np.concatenate([m.units for m in shared]), agent)
        right = b.numbers(words[words.shape[0] - b.units.size :])
        if left is None:
            left = shared[0].numbers(words[: shared[0].units.size])
        return (-left if p.negated else left), right

    def _from_tensor_memory(self, thread: int, a: int, p: Product, dense: bool) -> NDArray[Any]:
        if p.a_transposed or (self.form.stationary and p.m != LANES):
            what = "MN-major" if p.a_transposed else f"of {p.m} rows with .ws"
            raise self.execution.fault(
                Undefined, f"A in tensor memory is {what}, which there is not", self.site, thread
            )
        lane, column = split_address(a)
        lanes, columns = lane + result_lanes(p.m, False), column + np.arange(ROW // 4)[None, :]
        words = TensorMemory.of(self.execution).read(self.site, thread, lanes, columns, "A: ")
        return tcgen05.contained(np.ascontiguousarray(words).view(np.uint8), p.a, dense=dense)

    def _scaled(self, thread: int, p: Product, left: Any, right: Any, before: Any) -> NDArray[Any]:
        """The products of each 32 lanes, which have a copy of the scales of their own."""
        block, memory = self.form.block, TensorMemory.of(self.execution)
        count = p.kind.k // block
        self._check_scales(thread, p, count)
        (a_lane, a_column), (b_lane, b_column) = (split_address(int(s()[thread])) for s in self.scales)
        result = np.empty((p.m, p.n), np.float32)
        for first in range(0, p.m, QUARTER):
            rows = np.arange(first, first + QUARTER)
            a_words = memory.read(self.site, thread, a_lane + rows, a_column + rows // QUARTER, "scales of A: ")
            n = np.arange(p.n)
            b_words = memory.read(
                self.site, thread, b_lane + first + n % QUARTER, b_column + n // QUARTER, "scales of B: "
            )
            by_row = _bytes(a_words, p.a_scale, count, p.scale)
            by_column = _bytes(b_words, p.b_scale, count, p.scale)
            scaled_a = left[rows] * np.repeat(by_row, block, axis=1)
            scaled_b = right * np.repeat(by_column, block, axis=1)
            part = before[rows] if before.ndim else before
            result[rows] = _product(scaled_a, scaled_b.T, part, p)
        return result

    def _check_scales(self, thread: int, p: Product, count: int) -> None:
        for first in (p.a_scale, p.b_scale):
            if first % count or (p.scale == "ue4m3") > (self.form.block == 16):
                message = f"scales of .{p.scale} from byte {first} on, of which {self.name} has none"
                raise self.execution.fault(Undefined, message, self.site, thread)


def _bytes(words: NDArray[np.uint32], first: int, count: int, kind: str) -> NDArray[np.float64]:
    """The scales (rows, count) in words, from a byte on."""
    raw = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 4)
    return tcgen05.scales(raw[:, first : first + count], kind)


_DTYPES: Final = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


def _values(words: NDArray[np.uint32], kind: str) -> NDArray[Any]:
    """D's numbers: those of 16 bits are the lower halves of cells."""
    return words.astype(np.uint16).view(np.float16) if kind == "f16" else words.view(_DTYPES[kind])


def _words(numbers: NDArray[Any], kind: str) -> NDArray[np.uint32]:
    return numbers.view(np.uint16).astype(np.uint32) if kind == "f16" else numbers.view(np.uint32)


def _product(a: NDArray[Any], b: NDArray[Any], before: NDArray[Any], p: Product) -> NDArray[Any]:
    """A B + D, of A (M, K) and B (K, N), in D's type."""
    shape = (a.shape[0], b.shape[1])
    total, result = np.empty(shape, a.dtype), np.empty(shape, _DTYPES[p.d])
    if p.d == "s32":
        integer_product(a, b, before, total, np.empty(shape, np.int64), result, p.saturate)
    else:
        float_product(a, b, before, total, result)
    return result


@instruction("tcgen05.mma")
def mma(b: Binding) -> Step:
    """``tcgen05.mma{.ws}.cta_group::1.kind{.block_scale}  [d], a, b-desc, i-desc, ..., enable-d``."""
    return _Mma(b).step
