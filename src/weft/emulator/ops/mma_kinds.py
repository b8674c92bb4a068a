"""mma with a kind, of sm_120: elements of 4, 6 and 8 bits, and scales of blocks of them (PTX ISA 9.7.14.3, 9.7.14.5.14).

    kind           shape, sparse            elements                          types of the scales, scales of a row
    f8f6f4         m16n8k32, m16n8k64       e4m3, e5m2, e3m2, e2m3, e2m1      none
    mxf8f6f4       m16n8k32, m16n8k64       the same                          ue8m0, 1
    mxf4           m16n8k64, m16n8k128      e2m1                              ue8m0, 2
    mxf4nvf4       m16n8k64, m16n8k128      e2m1                              ue8m0, 2; ue4m3, 4

Elements have the fragments of bytes, and those of mxf4 and mxf4nvf4 the fragments of nibbles. In a byte e2m1 has bits 2 to 5,
types of 6 bits have bits 0 to 5.

A scale multiplies the elements of its part of K, exactly. The register of scales of A is asked of two of each four threads, that
of B of one, which ``thread-id`` chooses; the scales of a row begin at the byte ``byte-id``:

    row r of A       lane 4 (r % 8) + 2 thread-id + r / 8
    column c of B    lane 4 c + thread-id
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import fragments, tcgen05
from weft.emulator.arith.fragments import SPARSITY
from weft.emulator.arith.products import float_product
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP, Active
from weft.emulator.ops import mma, mma_sparse
from weft.emulator.ops.fragments import ACCUMULATORS, Warps, collective, reader, registers, writer
from weft.emulator.ops.mma import FULL, HALF, SINGLE, Pairs
from weft.emulator.ops.mma_sparse import dense_left
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Numbers = NDArray[Any]

NARROW: Final = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


@dataclass(frozen=True)
class Kind:
    """A kind: K of a dense product, the bits of an element's place, the types of A and B, those of (D, C), and how many scales of
    which type a row has, by modifier."""

    k: int
    bits: int
    types: tuple[str, ...]
    accumulators: Pairs
    scales: dict[str, tuple[str, int]]


_MX: Final = ("ue8m0", 2)

KINDS: Final = {
    "f8f6f4": Kind(32, 8, NARROW, HALF, {}),
    "mxf8f6f4": Kind(32, 8, NARROW, SINGLE, {"": ("ue8m0", 1), "scale_vec::1X": ("ue8m0", 1)}),
    "mxf4": Kind(64, 4, ("e2m1",), SINGLE, {"": _MX, "scale_vec::2X": _MX}),
    "mxf4nvf4": Kind(64, 4, ("e2m1",), SINGLE, {"scale_vec::2X": _MX, "scale_vec::4X": ("ue4m3", 4)}),
}

_SCALE_TYPES: Final = ("ue8m0", "ue4m3")


def _values(dtype: Any, codes: int) -> Numbers:
    return np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float64)


_BYTES: Final = np.arange(256)

BY_BYTE: Final = {
    "e4m3": _values(ml_dtypes.float8_e4m3fn, 256),
    "e5m2": _values(ml_dtypes.float8_e5m2, 256),
    "e3m2": _values(ml_dtypes.float6_e3m2fn, 64)[_BYTES & 63],
    "e2m3": _values(ml_dtypes.float6_e2m3fn, 64)[_BYTES & 63],
    "e2m1": _values(ml_dtypes.float4_e2m1fn, 16)[_BYTES >> 2 & 15],
}
"""The numbers of bytes that elements have to themselves."""

BY_NIBBLE: Final = _values(ml_dtypes.float4_e2m1fn, 16)


@dataclass(frozen=True)
class _Form:
    kind: str
    size: tuple[int, int, int]
    types: tuple[str, str, str, str]
    """Of D, A, B and C."""
    scale: str
    count: int
    """Scales of a row; 0 without."""


def _form(b: Binding, sparse: bool) -> _Form:
    name = b.instruction.name
    rest = [m for m in b.modifiers if m not in ("sync", "aligned", "sp", "sp::ordered_metadata")]
    kinds = [m.removeprefix("kind::") for m in rest if m.startswith("kind::")]
    b.require(len(kinds) == 1 and kinds[0] in KINDS, f"{name} has no kind that there is")
    kind = KINDS[kinds[0]]
    b.require("aligned" in b.modifiers and "sync" in b.modifiers, f"{name} must have '.sync.aligned'")
    b.require(not sparse or "sp::ordered_metadata" in b.modifiers, f"{name} must have '.sp::ordered_metadata'")
    b.require([m for m in rest if m in ("row", "col")] == ["row", "col"], f"{name} must have layouts .row.col")
    k = kind.k << sparse
    b.require([m for m in rest if FULL.fullmatch(m)] == [f"m16n8k{k}"], f"{name} must have the shape m16n8k{k}")
    types = [m for m in rest if m in (*NARROW, *ACCUMULATORS)]
    b.require(len(types) == 4, f"{name} has {len(types)} types of matrices, expected 4")
    d, left, right, c = types
    known = left in kind.types and right in kind.types and (d, c) in kind.accumulators
    b.require(known, f"{name}: kind::{kinds[0]} has no such types of matrices")
    given = [m for m in rest if m in _SCALE_TYPES]
    left_over = [
        m
        for m in rest
        if not (m.startswith("kind::") or m in ("row", "col", "block_scale") or FULL.fullmatch(m) or m in types)
    ]
    sizes = [m for m in left_over if m not in given]
    b.require(bool(kind.scales) == ("block_scale" in rest), f"kind::{kinds[0]} and '.block_scale' do not go together")
    if not kind.scales:
        if left_over:
            b.unknown(f"'.{left_over[0]}' of mma.kind::{kinds[0]}")
        return _Form(kinds[0], (16, 8, k), (d, left, right, c), "", 0)
    size = sizes[0] if sizes else ""
    if len(sizes) > 1 or size not in kind.scales:
        b.unknown(f"'.{(sizes or ['no scale_vec'])[-1]}' of mma.kind::{kinds[0]}")
    scale, count = kind.scales[size]
    b.require(given == [scale], f"{name}: scales of this kind are of type .{scale}")
    return _Form(kinds[0], (16, 8, k), (d, left, right, c), scale, count)


class _Scales:
    """The scales of A, or of B: a register and two numbers."""

    def __init__(self, b: Binding, operand: int, f: _Form, what: str, threads: int) -> None:
        self.execution, self.site, self.what = b.execution, b.site, what
        (self.words,) = registers(b, operand, 1, 32, write=False)
        elements = b.elements(operand + 1)
        b.require(len(elements) == 2, f"{b.instruction.name} has {len(elements)} numbers for {what}, expected 2")
        shape = (b.execution.threads,)
        self.ids = [np.broadcast_to(b.read(e, TYPES["u16"]), shape).reshape(-1, WARP)[:, 0] for e in elements]
        self.limits = (range(0, 4, f.count), range(threads))
        self.f = f

    def __call__(self, warps: Warps, lanes: NDArray[np.intp], step: int) -> Numbers:
        """(warps, rows, scales): ``lanes`` are those of the rows for thread-id 0, each of which is ``step`` lanes more."""
        which = np.arange(self.execution.warps) if warps is None else warps
        first, thread = (i[which].astype(np.int64) for i in self.ids)
        for name, values, known in zip(("byte-id", "thread-id"), (first, thread), self.limits, strict=True):
            if (bad := ~np.isin(values, list(known))).any():
                warp = int(which[bad.argmax()])
                may = " or ".join(map(str, known)) if len(known) < 3 else f"{known[0]} to {known[-1]}"
                message = f"{name} {values[bad.argmax()]} of {self.what}, expected {may}"
                raise self.execution.fault(Undefined, message, self.site, warp * WARP)
        words = np.take_along_axis(self.words[which], lanes[None, :] + step * thread[:, None], axis=1)
        places = 8 * (first[:, None] + np.arange(self.f.count)[None, :])
        raw = (words[:, :, None] >> places[:, None, :].astype(np.uint32)) & np.uint32(255)
        return tcgen05.scales(raw.astype(np.uint8), self.f.scale)


def _numbers(bits: Numbers, kind: Kind, name: str) -> Numbers:
    return (BY_NIBBLE if kind.bits == 4 else BY_BYTE[name])[bits]


def kinds(b: Binding, sparse: bool) -> Step:
    """``mma.kind  d, a, b, c, {metadata, selector,} {scale of A, {byte, thread}, scale of B, {byte, thread}}``."""
    f = _form(b, sparse)
    kind, (m, n, k) = KINDS[f.kind], f.size
    b.count(4 + 2 * sparse + 4 * bool(f.count))
    d, left, right, c = f.types
    rule = SPARSITY[kind.bits]
    stored = k * rule.kept // rule.group if sparse else k
    where = mma.Fragments(
        fragments.left(m, stored, kind.bits),
        fragments.right(k, n, kind.bits),
        fragments.accumulator(m, n, mma.accumulator_bits(c)),
        fragments.accumulator(m, n, mma.accumulator_bits(d)),
    )
    dense: Callable[[Numbers, Warps], Numbers] | None = dense_left(b, k, kind.bits, 4) if sparse else None
    scales = (
        (_Scales(b, 4 + 2 * sparse, f, "scales of A", 2), _Scales(b, 6 + 2 * sparse, f, "scales of B", 4))
        if f.count
        else None
    )
    members = collective(b)
    read_a = reader(b, 1, where.left, fragments.reading(where.left), "bits of A")
    read_b = reader(b, 2, where.right, fragments.reading(where.right, where.new), "bits of B")
    read_c = reader(b, 3, where.old, fragments.reading(where.old, where.new), "bits of C")
    write = writer(b, 0, where.new)
    counters, site, all_warps = b.execution.counters, b.site, b.execution.warps
    rows = np.arange(m)
    columns = fragments.ordered(where.new, np.arange(n)[None, None], n).ravel()

    def run(active: Active) -> None:
        warps = members(active)
        bits_of_a = read_a(warps)
        if dense is not None:
            bits_of_a = dense(bits_of_a, warps)
        x, y = _numbers(bits_of_a[:, 0], kind, left), _numbers(read_b(warps)[:, 0], kind, right)
        if scales is not None:
            of_a, of_b = scales
            by_row = of_a(warps, 4 * (rows % 8) + rows // 8, 2)
            by_column = of_b(warps, 4 * columns, 1)
            x = x * np.repeat(by_row, k // f.count, axis=2)
            y = y * np.repeat(by_column, k // f.count, axis=2).transpose(0, 2, 1)
        old = read_c(warps)[:, 0].view(ACCUMULATORS[c])
        result = np.empty(old.shape, ACCUMULATORS[d])
        float_product(x, y, old, np.empty(old.shape, np.float64), result)
        write(result[:, None], warps)
        count = all_warps if warps is None else int(warps.size)
        counters.add(site, "mma", count)
        counters.add(site, "matrix_flops", count * 2 * m * n * k)

    return run


@instruction("mma")
def _mma(b: Binding) -> Step:
    return kinds(b, False) if any(m.startswith("kind::") for m in b.modifiers) else mma.plain(b)


@instruction("mma.sp", "mma.sp::ordered_metadata")
def _mma_sp(b: Binding) -> Step:
    return kinds(b, True) if any(m.startswith("kind::") for m in b.modifiers) else mma_sparse.plain(b)
