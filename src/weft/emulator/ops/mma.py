"""mma.sync and wmma.mma: products of small matrices in registers (PTX ISA 9.7.14.4.5, 9.7.14.5.14).

An instruction is a row of a table: which multiplicands, which shapes, which accumulators. Everything else follows from the
types: the fragments (`weft.emulator.arith.fragments`) and the arithmetic (`weft.emulator.arith.products`). Modifiers are
told apart by what they are, not by where they stand, as ptxas does.

Counted for each warp: ``mma``, 1, and ``matrix_flops``, 2 M N K (of the four products of Volta's m8n8k4 together, 2048; of a
sparse product with the K of its name, as if A were dense; multiplications of integers and logical operations on bits
count like those of floats).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import fragments
from weft.emulator.arith.fragments import Fragment
from weft.emulator.arith.products import (
    ELEMENTS,
    bit_product,
    double_product,
    float_product,
    integer_product,
)
from weft.emulator.machine.active import Active
from weft.emulator.ops.fragments import ACCUMULATORS, Warps, collective, reader, scratch, writer
from weft.emulator.ops.registry import Step

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Product: TypeAlias = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]
"""D of the bits of A, B and C."""

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Types of (D, C)."""

HALF: Final[Pairs] = (("f16", "f16"), ("f32", "f32"))
ANY_HALF: Final[Pairs] = (*HALF, ("f32", "f16"))
SINGLE: Final[Pairs] = (("f32", "f32"),)
DOUBLE: Final[Pairs] = (("f64", "f64"),)
INTEGER: Final[Pairs] = (("s32", "s32"),)


@dataclass(frozen=True)
class Row:
    """Instructions whose multiplicands are each one of ``types``, in these shapes."""

    types: tuple[str, ...]
    shapes: tuple[str, ...]
    accumulators: Pairs


MMA: Final = (
    Row(("f16",), ("m8n8k4",), ANY_HALF),
    Row(("f16",), ("m16n8k8", "m16n8k16"), HALF),
    Row(("bf16",), ("m16n8k8", "m16n8k16"), SINGLE),
    Row(("tf32",), ("m16n8k4", "m16n8k8"), SINGLE),
    Row(("e4m3", "e5m2"), ("m16n8k16", "m16n8k32"), HALF),
    Row(("f64",), ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), DOUBLE),
    Row(("u8", "s8"), ("m8n8k16", "m16n8k16", "m16n8k32"), INTEGER),
    Row(("u4", "s4"), ("m8n8k32", "m16n8k32", "m16n8k64"), INTEGER),
    Row(("b1",), ("m8n8k128", "m16n8k128", "m16n8k256"), INTEGER),
)
"""mma.sync of sm_70 to sm_90."""

FULL: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")
OPERATIONS: Final = ("xor", "and")
TYPE_NAMES: Final = frozenset((*ELEMENTS, *ACCUMULATORS))


@dataclass
class Form:
    """The modifiers of a matrix instruction, sorted."""

    name: str
    """What it is called in messages: mma, mma.sp, wmma.mma."""

    shape: str
    size: tuple[int, int, int]
    """M, N, K."""
    layouts: tuple[str, ...]
    types: tuple[str, ...]
    rest: frozenset[str]

    def one_of(self, *names: str) -> str:
        """The one of these modifiers that it has, or "" """
        return next((name for name in names if name in self.rest), "")


def form(b: Binding, name: str, *allowed: str) -> Form:
    """Sorts the modifiers; those that are neither a shape, a layout nor a type must be ``allowed``."""
    shapes = [m for m in b.modifiers if FULL.fullmatch(m)]
    layouts = tuple(m for m in b.modifiers if m in ("row", "col"))
    types = tuple(m for m in b.modifiers if m in TYPE_NAMES)
    rest = [m for m in b.modifiers if m not in shapes and m not in layouts and m not in types]
    for modifier in rest:
        if modifier not in allowed:
            b.unknown(f"'.{modifier}' of {name}")
    b.require(len(shapes) == 1, f"{b.instruction.name} has {len(shapes)} shapes, expected one")
    b.require("sync" in rest, f"{b.instruction.name} has no '.sync'")
    matched = FULL.fullmatch(shapes[0])
    m, n, k = map(int, matched.groups()) if matched else (0, 0, 0)
    return Form(name, shapes[0], (m, n, k), layouts, types, frozenset(rest))


def listed(b: Binding, table: tuple[Row, ...], f: Form, types: tuple[str, ...]) -> tuple[str, str, str, str]:
    """The types of D, A, B and C, if the table has them in this shape."""
    d, left, right, c = types if len(types) == 4 else ("",) * 4
    rows = [row for row in table if f.shape in row.shapes and left in row.types and right in row.types]
    named = "".join(f".{name}" for name in f.types)
    b.require(
        any((d, c) in row.accumulators for row in rows),
        f"{f.name} of shape .{f.shape} does not exist with {f'types {named}' if named else 'no types'}",
    )
    return d, left, right, c


def options(b: Binding, f: Form, family: str) -> None:
    """Refuses modifiers that mean something only to other types."""
    has = {
        "satfinite": family == "integer",
        **dict.fromkeys(ROUNDINGS, family == "double"),
        **dict.fromkeys((*OPERATIONS, "popc"), family == "bit"),
    }
    for modifier in sorted(f.rest):
        b.require(has.get(modifier, True), f"'.{modifier}' is not for {f.name} with these types")
    if family == "bit":
        needed = "popc" in f.rest and f.one_of(*OPERATIONS)
        b.require(needed, f"{f.name} of bits needs '.xor.popc' or '.and.popc'")


@dataclass(frozen=True)
class Fragments:
    """Where the matrices of an instruction lie."""

    left: Fragment
    right: Fragment
    old: Fragment
    new: Fragment


def accumulator_bits(name: str) -> int:
    """Of an accumulator's type."""
    return np.dtype(ACCUMULATORS[name]).itemsize * 8


def picture(f: Form, types: tuple[str, str, str, str], stored: int, least: int = 0) -> Fragments:
    """Fragments of the general picture; ``stored`` columns of A are in registers, and A and B have at least ``least`` of these.
    Bits go in words of 32."""
    d, left, right, c = types
    m, n, k = f.size
    narrow, wide = ELEMENTS[left].bits, ELEMENTS[right].bits
    if left == "b1":
        stored, k, narrow, wide = stored // 32, k // 32, 32, 32
    return Fragments(
        fragments.left(m, stored, narrow, least),
        fragments.right(k, n, wide, least),
        fragments.accumulator(m, n, accumulator_bits(c)),
        fragments.accumulator(m, n, accumulator_bits(d)),
    )


def volta(f: Form, d: str, c: str) -> Fragments:
    """Fragments of m8n8k4 with f16."""
    return Fragments(
        fragments.volta_left(f.layouts[0]),
        fragments.volta_right(f.layouts[1]),
        fragments.volta_accumulator(accumulator_bits(c)),
        fragments.volta_accumulator(accumulator_bits(d)),
    )


def product(b: Binding, f: Form, where: Fragments, types: tuple[str, str, str, str]) -> Product:
    """The arithmetic of ``types`` (D, A, B, C) on the bits of A, B and C; the result lives until the next product."""
    d, left, right, c = types
    first, second, old = ELEMENTS[left], ELEMENTS[right], np.dtype(ACCUMULATORS[c])
    matrices, m, n = where.new.matrices, where.new.rows, where.new.columns
    k = where.right.rows

    def room(role: str, rows: int, columns: int, dtype: Any) -> NDArray[Any]:
        return scratch(b.execution, role, (matrices, rows, columns), dtype)

    if first.family == "double":
        rounding = f.one_of(*ROUNDINGS) or "rn"
        return lambda x, y, z: double_product(x.view(old), y.view(old), z.view(old), rounding)
    result = room("D", m, n, ACCUMULATORS[d])
    if first.family == "bit":
        operation = f.one_of(*OPERATIONS)

        def bits(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
            bit_product(x, y, z.view(old), result[: len(x)], operation)
            return result[: len(x)]

        return bits
    a, e = room("A", m, k, first.number), room("B", k, n, second.number)
    total, wide = room("sum", m, n, first.number), room("wide sum", m, n, np.int64)
    spare = room("spare", max(m, n), k, np.uint64).reshape(-1)
    integers, saturate = first.family == "integer", "satfinite" in f.rest

    def numbers(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        count = len(x)
        first.decode(x, a[:count], spare)
        second.decode(y, e[:count], spare)
        new, parts = result[:count], (a[:count], e[:count], z.view(old), total[:count])
        if integers:
            integer_product(*parts, wide[:count], new, saturate)
        else:
            float_product(*parts, new)
        return new

    return numbers


def step(
    b: Binding,
    f: Form,
    where: Fragments,
    types: tuple[str, str, str, str],
    dense: Callable[[NDArray[Any], Warps], NDArray[Any]] | None = None,
) -> Step:
    """The instruction d, a, b, c; ``dense`` makes a sparse A whole."""
    m, n, k = f.size
    work = 2 * m * n * k * where.left.matrices
    members = collective(b)
    multiply = product(b, f, where, types)
    read_a = reader(b, 1, where.left, fragments.reading(where.left), "bits of A")
    read_b = reader(b, 2, where.right, fragments.reading(where.right, where.new), "bits of B")
    read_c = reader(b, 3, where.old, fragments.reading(where.old, where.new), "bits of C")
    write = writer(b, 0, where.new)
    counters, site, all_warps = b.execution.counters, b.site, b.execution.warps

    def run(active: Active) -> None:
        warps = members(active)
        left = read_a(warps)
        if dense is not None:
            left = dense(left, warps)
        write(multiply(left, read_b(warps), read_c(warps)), warps)
        count = all_warps if warps is None else int(warps.size)
        counters.add(site, "mma", count)
        counters.add(site, "matrix_flops", count * work)

    return run


def plain(b: Binding) -> Step:
    """``mma.sync.aligned.shape.row.col.d.a.b.c  d, a, b, c``, without a kind (`weft.emulator.ops.mma_kinds`)."""
    f = form(b, "mma", "sync", "aligned", "satfinite", "popc", *ROUNDINGS, *OPERATIONS)
    b.require("aligned" in f.rest, f"{b.instruction.name} has no '.aligned'")
    types = listed(b, MMA, f, f.types)
    d, left, _, c = types
    options(b, f, ELEMENTS[left].family)
    b.count(4)
    four = f.shape == "m8n8k4" and left == "f16"
    b.require(len(f.layouts) == 2, f"{b.instruction.name} has {len(f.layouts)} layouts, expected two")
    if not four:
        b.require(f.layouts == ("row", "col"), f"{b.instruction.name} must have layouts .row.col")
    return step(b, f, volta(f, d, c) if four else picture(f, types, f.size[2]), types)
