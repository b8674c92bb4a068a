"""A kernel file and what it takes to run it: arguments, the two executions, the comparison.

A file is a Python module with the kernel (the function `kernel`), its ``GRID``, the ``SEED`` of its data and its
``ARGUMENTS``, one entry for each parameter in order::

    "in0": ("input", "float32", 512)              random data, never written
    "out0": ("output", "int32", 64)               compared bit by bit (a NaN is a NaN)
    "out1": ("output", "float32", 64, "ulps", 3)  at most 3 representable numbers apart
    "out4": ("output", "float32", 64, "ulps", 3, "exp")  and more where the machine approximates exp
    "out2": ("output", "float32", 64, "within", "out3", 1e-6)   at most 1e-6 * out3 apart
    "out3": ("bound", "float64", 64)              magnitudes for another output, not compared itself
    "in1": ("input", "float32", 64, "signs")      mostly zeros of both signs and NaN
    "in2": ("input", "float16", 64, "small")      whole numbers from -4 to 3
    "in3": ("alias", "float32", 16, "in1", 8)     16 elements of the memory of in1, from its element 8 on
    "sum0": ("counter", "int32", 16)              small integers to begin with, compared bit by bit
    "lock0": ("zeros", "int32", 1)                zeros to begin with, compared bit by bit
    "trap0": ("trap", "int8", 1)                  zeros, before and after
    "n0": ("number", 37)                          a run-time scalar
    "COLS": ("constant", 16)                      a tl.constexpr

``MACHINES``, if it is there, names where a regression runs (default: native).

What the kernel prints is compared, too, but for the order of the lines.
Both executions start from the same contents, so what neither writes compares equal. Kernels whose programs are joined on a CPU
run a third time with bounds checks, which run programs one by one: the bits are equal, also of what may be off above.
"""

from __future__ import annotations

import importlib.util
import io
import itertools
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import dtypes, reference
from weft import target as targets
from weft.codegen import lay_out
from weft.dtypes import DType
from weft.frontend import Argument, KernelFunction
from weft.ir.unsupported import UnsupportedOpError
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.jit import JITFunction
from weft.target import APPROXIMATIONS
from weft.transforms.join_programs import joined_of

Array = NDArray[Any]
NATIVE: Final = "native"
LAUNCHES: Final = 16
"""How often native code runs a kernel whose programs synchronise (it has ``zeros``): threads meet in other ways each time."""
ARRAYS: Final = frozenset({"input", "output", "bound", "counter"})


@dataclass(frozen=True)
class Case:
    """A kernel file, loaded."""

    kernel: JITFunction
    grid: tuple[int, ...]
    seed: int
    arguments: dict[str, tuple[Any, ...]]
    machines: tuple[str, ...] = (NATIVE,)


@dataclass(frozen=True)
class Mismatch:
    """The elements of one output on which native code and the reference disagree."""

    output: str
    rule: str
    index: tuple[int, ...]
    native: Any
    reference: Any
    count: int
    size: int
    machine: str = NATIVE

    def __str__(self) -> str:
        return (
            f"{self.output} ({self.rule}): {self.count} of {self.size} elements differ, the first at {self.index[0]}: "
            f"{self.machine} {self.native!r}, reference {self.reference!r}"
        )


def load(path: Path) -> Case:
    """Imports a kernel file under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"weft_fuzz_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Case(module.kernel, module.GRID, module.SEED, module.ARGUMENTS, getattr(module, "MACHINES", (NATIVE,)))


def values_for(case: Case) -> list[Any]:
    """Fresh arguments, one for each parameter; the same ones at each call."""
    made: list[Any] = []
    for name, (kind, *rest) in case.arguments.items():
        # Seeded by name, so that the data stay when a shrunk kernel has fewer arguments.
        random = np.random.default_rng([case.seed, zlib.crc32(name.encode())])
        if kind == "alias":
            dtype, size, base, first = rest
            known = dict(zip(case.arguments, made, strict=False))  # a shrunk kernel may have lost the other name
            made.append(known[base][first : first + size] if base in known else data(random, dtypes.parse(dtype), size))
        elif kind == "counter":
            start = random.integers(0, 4, size=int(rest[1]), dtype=np.int64)
            made.append(start.astype(dtypes.parse(rest[0]).numpy))
        elif kind in ("zeros", "trap"):
            made.append(np.zeros(rest[1], dtypes.parse(rest[0]).numpy))
        elif kind == "bound":
            made.append(np.full(rest[1], np.inf))
        elif rest[2:] == ["small"]:
            made.append(np.asarray(random.integers(-4, 4, rest[1]), dtypes.parse(rest[0]).numpy))
        elif rest[2:] == ["signs"]:
            made.append(signs(random, dtypes.parse(rest[0]), rest[1]))
        elif kind in ARRAYS:
            made.append(data(random, dtypes.parse(rest[0]), rest[1]))
        else:
            made.append(rest[0])
    return made


def data(random: np.random.Generator, dtype: DType, size: int) -> Array:
    """Random elements: small whole numbers, ordinary numbers, any bits at all, and the type's landmarks."""
    anything = random.integers(0, 1 << 64, size, dtype=np.uint64)
    if dtype.is_bool:
        return (anything & 1).astype(np.bool_)
    small = random.integers(-8 if dtype.signed else 0, 9, size)
    bits = anything.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    if dtype.is_float:
        largest = float(dtype.largest)
        marks = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, largest, -largest]).astype(dtype.numpy)
        ordinary = random.normal(0, 10.0, size).astype(dtype.numpy)
    else:
        marks = np.array([dtype.min, dtype.max, 0, 1, dtype.max - 1], object).astype(dtype.numpy)
        ordinary = random.integers(-100 if dtype.signed else 0, 101, size).astype(dtype.numpy)
    choice = random.choice(4, size, p=[0.3, 0.45, 0.15, 0.1])
    return np.choose(choice, [small.astype(np.float64).astype(dtype.numpy), ordinary, bits, random.choice(marks, size)])


def signs(random: np.random.Generator, dtype: DType, size: int) -> Array:
    """Zeros of both signs, NaN and a few other numbers."""
    return random.choice(np.array([0.0, -0.0, 0.0, -0.0, np.nan, 1.0, -1.0, np.inf]), size).astype(dtype.numpy)


@contextmanager
def one_frontend() -> Generator[list[tuple[dict[str, Argument], ModuleOp]]]:
    """The frontend makes a kernel's module once for each signature: each compilation gets a copy. Yields what it made so far."""
    made: list[tuple[dict[str, Argument], ModuleOp]] = []
    original = compiler.tile_ir

    def tile_ir(kernel: KernelFunction, signature: Mapping[str, Argument], options: Options) -> ModuleOp:
        assert not options.asserts, "fuzz kernels are compiled without assertions"
        known = next((module for before, module in made if before == signature), None)
        if known is None:
            known = original(kernel, signature, options)
            made.append((dict(signature), known))
        return known.clone()

    compiler.tile_ir = tile_ir
    try:
        yield made
    finally:
        compiler.tile_ir = original


def run(case: Case, machines: Sequence[str] = (NATIVE,)) -> list[Mismatch]:
    """Executes the kernel by the reference and on each of the machines (`NATIVE`, or a GPU's name: in the emulator), and
    compares what they left in the arrays. A GPU that has no instruction for an op is left out. Returns the differences on
    the first machine that has any."""
    synchronises = any(kind == "zeros" for kind, *_ in case.arguments.values())
    with one_frontend() as made:
        expected: dict[str, Any] = {}
        lines = io.StringIO()
        for machine in machines:
            for _ in range(LAUNCHES if synchronises and machine == NATIVE else 1):
                values = values_for(case)
                try:
                    with redirect_stdout(io.StringIO()) as printed:
                        launch(case, values, machine)
                except UnsupportedOpError as error:
                    if machine == NATIVE or "has no instruction for" not in error.message:
                        raise
                    break
                if not expected:
                    with redirect_stdout(lines):
                        expected = by_reference(case, *made[0])
                found = mismatches(case, values, expected, machine)
                if machine == NATIVE and not found:
                    found = differing_alone(case, values, made[0][1])
                if found := found or differing_lines(printed.getvalue(), lines.getvalue()):
                    return [replace(mismatch, machine=machine) for mismatch in found]
    return []


def differing_alone(case: Case, values: Sequence[Any], module: ModuleOp) -> list[Mismatch]:
    """Compares the bits of what joined programs left with those of programs that run one by one, as they do with bounds checks;
    nothing where no programs are joined (`weft.transforms.join_programs`)."""
    copy = module.clone()
    lay_out(copy, targets.host(), Options(disjoint=True))
    if case.kernel.checked or joined_of(next(op for op in copy.ops if isinstance(op, func.FuncOp))) is None:
        return []
    single = values_for(case)
    weft.jit(checked=True)(case.kernel.fn)[case.grid](*single)
    with np.errstate(all="ignore"):  # signalling NaN are compared
        found = [
            compare(f"{name}, programs alone", case.arguments[name][:3], joined, alone, {})
            for name, joined, alone in zip(case.arguments, values, single, strict=True)
            if np.ndim(joined)
        ]
    return [mismatch for mismatch in found if mismatch]


def differing_lines(found: str, expected: str) -> list[Mismatch]:
    """Compares what was printed; programs print in any order."""
    pairs = list(itertools.zip_longest(*(sorted(text.splitlines()) for text in (found, expected))))
    bad = [place for place, (a, b) in enumerate(pairs) if a != b]
    if not bad:
        return []
    native, reference = pairs[bad[0]]
    return [Mismatch("printed", "exact", (bad[0],), native, reference, len(bad), len(pairs))]


def launch(case: Case, values: Sequence[Any], machine: str) -> None:
    """Runs the compiled kernel. GPUs may not fuse: an exact value would not be the reference's."""
    if machine == NATIVE:
        case.kernel[case.grid](*values)
    else:
        case.kernel.on(machine)[case.grid](*values, enable_fp_fusion=False)


def by_reference(case: Case, signature: Mapping[str, Argument], module: ModuleOp) -> dict[str, Any]:
    """The arguments by name, after the reference has run the module on them."""
    values = dict(zip(case.arguments, values_for(case), strict=True))
    runtime = [value for name, value in values.items() if hasattr(signature.get(name), "dtype")]
    reference.run(module, runtime, case.grid)
    return values


def mismatches(case: Case, values: Sequence[Any], expected: dict[str, Any], machine: str = NATIVE) -> list[Mismatch]:
    """Compares what a launch left in the arrays with what the reference left."""
    compared = {"output", "counter", "input", "zeros", "trap"}
    expected |= {name: np.zeros(rest[1], np.int8) for name, (kind, *rest) in case.arguments.items() if kind == "trap"}
    with np.errstate(all="ignore"):  # NaNs of any bits are compared, infinities subtracted
        found = [
            compare(name, case.arguments[name], native, expected[name], expected, machine)
            for name, native in zip(case.arguments, values, strict=True)
            if case.arguments[name][0] in compared
        ]
    return [mismatch for mismatch in found if mismatch]


def compare(
    name: str, argument: Sequence[Any], native: Array, expected: Array, arrays: dict[str, Array], machine: str = NATIVE
) -> Mismatch | None:
    """Applies the argument's rule; None where it holds everywhere."""
    dtype = dtypes.parse(argument[1])
    rule, *parameters = argument[3:] or ("exact",)
    if rule == "within":
        magnitude = arrays[parameters[0]].astype(np.float64)
        good = _within(dtype, native, expected, magnitude * parameters[1], magnitude)
    elif rule == "ulps":
        bound = parameters[0] + (0.0 if machine == NATIVE else _approximation(dtype, parameters[1:]))
        good = ulps_apart(dtype, native, expected) <= bound
    else:
        good = np.zeros(native.size, np.bool_)
    good |= _bits(native) == _bits(expected)
    if dtype.is_float:
        good |= np.isnan(native.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    if good.all():
        return None
    bad = np.flatnonzero(~good)
    shown = " ".join(map(str, (rule, *parameters)))
    return Mismatch(name, shown, (int(bad[0]),), native[bad[0]], expected[bad[0]], bad.size, good.size)


def _approximation(dtype: DType, kinds: Sequence[str]) -> float:
    """The units by which a GPU's approximations of float32 may be off. Beyond operands of 104 ``exp`` is infinite or 0."""
    if dtype != dtypes.float32:
        return 0.0
    known = [APPROXIMATIONS[kind] for kind in kinds if kind in APPROXIMATIONS]
    return sum(a.ulps + a.slope * 104 + a.relative * 2.0**24 for a in known)


def _bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def ulps_apart(dtype: DType, x: Array, y: Array) -> Array:
    """How many steps from ``x`` to ``y`` on the line of ``dtype``'s numbers, where infinity follows the largest and the
    zeros are one. Among numbers next to the subnormal ones, where libraries flush or round twice, none."""

    def position(values: Array) -> tuple[Array, Array]:
        """The distance from zero, and whether it is below."""
        bits, half = _bits(values).astype(np.uint64), np.uint64(1 << (dtype.bits - 1))
        return bits & (half - np.uint64(1)), bits >= half

    tiny = 4 * 2.0 ** (1 - dtype.compute.bias)
    wide = [values.astype(np.float64) for values in (x, y)]
    near_zero = (np.abs(wide[0]) < tiny) & (np.abs(wide[1]) < tiny)
    (far_x, below_x), (far_y, below_y) = position(x), position(y)
    between = np.maximum(far_x, far_y) - np.minimum(far_x, far_y)
    apart = np.where(below_x == below_y, between, far_x + far_y).astype(np.float64)
    return np.where(near_zero, 0, np.where(np.isnan(wide[0]) != np.isnan(wide[1]), np.inf, apart))


def _within(dtype: DType, native: Array, expected: Array, bound: Array, magnitude: Array) -> Array:
    """Whether results differ by no more than ``bound``; everything goes where sums of ``magnitude`` may overflow."""
    apart = np.abs(native.astype(np.float64) - expected.astype(np.float64))
    overflow = ~(magnitude < float(dtype.largest) / 4)
    return overflow | (apart <= bound + _step(dtype) + 1024 * _step(dtype.compute))


def _step(dtype: DType) -> float:
    """The distance between subnormal numbers."""
    return 2.0 ** (1 - dtype.bias - dtype.mantissa)
