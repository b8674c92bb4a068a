"""Compiles small elementwise functions with LLVM, and whole kernels with weft, and runs them on NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Final

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from weft import dtypes, emulator, reference
from weft import target as targets
from weft.codegen import kernel as abi
from weft.codegen import lay_out, machine_for
from weft.codegen.llvm.arith import llvm_type, storage_type
from weft.codegen.llvm.pipeline import simplify
from weft.codegen.llvm.types import I1, I64, Module
from weft.codegen.machine import Emitted
from weft.dtypes import DType
from weft.frontend import (
    Argument,
    ConstantArgument,
    KernelFunction,
    PointerArgument,
    ScalarArgument,
    build_module,
)
from weft.ir import tile
from weft.ir.types import dtype_of
from weft.options import Options
from weft.runtime import exclusion, executor, loader
from weft.target import APPROXIMATIONS, GpuTarget, Target

Array = NDArray[Any]
Emit = Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value]


@dataclass(frozen=True)
class Compiler:
    """A CPU to compile for: ``cpu`` and ``features`` as LLVM spells them, of the host's triple or another."""

    cpu: str
    features: frozenset[str]
    triple: str

    def machine(self) -> llvm.TargetMachine:
        """LLVM's code generator for this CPU; an execution engine takes it over."""
        spelled = ",".join(f"+{name}" for name in sorted(self.features))
        return llvm.Target.from_triple(self.triple).create_target_machine(self.cpu, spelled, 2, jit=True)

    def module(self, emit: Emit, sources: Sequence[DType], target: DType, lanes: int | None) -> Module:
        """``void f(target *out, sources..., i64 n)``: applies ``emit`` to ``n`` elements, ``lanes`` at a time."""
        module = Module("test", self.triple, self.features)
        pointer = ir.PointerType()
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (len(sources) + 1) + [I64]), "f")
        entry, loop, exit_ = (function.append_basic_block(name) for name in ("entry", "loop", "exit"))
        ir.IRBuilder(entry).branch(loop)
        builder = ir.IRBuilder(loop)
        index = builder.phi(I64)
        index.add_incoming(I64(0), entry)
        out, *ins, count = function.args

        def address(base: ir.Value, dtype: DType) -> ir.Value:
            return builder.gep(base, [index], source_etype=storage_type(dtype, None))

        operands: list[ir.Value] = []
        for base, dtype in zip(ins, sources, strict=True):
            loaded = builder.load(address(base, dtype), typ=storage_type(dtype, lanes), align=1)
            operands.append(builder.trunc(loaded, llvm_type(dtype, lanes)))
        result = emit(builder, operands)
        stored = builder.zext(result, storage_type(target, lanes))
        builder.store(stored, address(out, target), align=1)
        following = builder.add(index, I64(lanes or 1))
        index.add_incoming(following, builder.block)
        more: ir.Value = builder.icmp_unsigned("<", following, count)
        assert more.type == I1
        builder.cbranch(more, loop, exit_)
        ir.IRBuilder(exit_).ret_void()
        return module

    def compile(self, module: ir.Module | str) -> llvm.ModuleRef:
        """The module parsed, verified and optimised as kernels are."""
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        simplify(parsed, self.machine(), loops=False)
        return parsed

    def assembly(self, emit: Emit, sources: Sequence[DType], target: DType, lanes: int | None = 16) -> str:
        """The machine code as text."""
        return self.machine().emit_assembly(self.compile(self.module(emit, sources, target, lanes)))

    def run(
        self, emit: Emit, sources: Sequence[DType], target: DType, arrays: Sequence[Array], lanes: int | None = 16
    ) -> Array:
        """``emit`` applied to the elements of ``arrays``, which have one length."""
        size = len(arrays[0])
        padded = -size % (lanes or 1)
        inputs = [
            np.concatenate([a, np.repeat(a[:1], padded)]).astype(s.numpy) for a, s in zip(arrays, sources, strict=True)
        ]
        out = np.zeros(size + padded, target.numpy)
        engine = _engine(self, str(self.module(emit, sources, target, lanes)))
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + 1), ctypes.c_int64)
        signature(engine.get_function_address("f"))(out.ctypes.data, *(a.ctypes.data for a in inputs), len(out))
        return out[:size]


@functools.lru_cache(maxsize=256)
def _engine(compiler: Compiler, module: str) -> llvm.ExecutionEngine:
    """The code of a module. Tests ask the same function about many values: LLVM runs once for equal IR."""
    engine = llvm.create_mcjit_compiler(compiler.compile(module), compiler.machine())
    engine.finalize_object()
    return engine


@pytest.fixture(scope="session")
def host() -> Compiler:
    """This machine's CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)
    return Compiler(llvm.get_host_cpu_name(), features, targets.object_triple(llvm.get_default_triple()))


@pytest.fixture(scope="session")
def plain(host: Compiler) -> Compiler:
    """The host as a CPU of the first generation of its architecture: on x86-64 no FMA, no float16."""
    return Compiler("x86-64" if host.triple.startswith("x86_64") else "generic", frozenset(), host.triple)


@pytest.fixture(autouse=True)
def edge_values() -> Iterator[None]:
    """NumPy does not warn: oracles overflow and meet signalling NaN on purpose. What a test compiled is forgotten."""
    with np.errstate(all="ignore"):
        yield
    _COMPILED.clear()


# ---- whole kernels: native code against the reference ---------------------------------------------------------------


def is_array(value: Any) -> bool:
    """Whether an argument is an array."""
    return isinstance(value, np.ndarray)


def is_number(value: Any) -> bool:
    """Whether an argument is a NumPy scalar, which kernels get at run time."""
    return isinstance(value, np.generic)


def argument_of(value: Any) -> Argument:
    """An array is a pointer, a NumPy scalar a run-time number, anything else a constant."""
    if is_array(value):
        return PointerArgument(dtypes.from_numpy(value.dtype))
    return ScalarArgument(dtypes.from_numpy(value.dtype)) if is_number(value) else ConstantArgument(value)


def copies(arguments: Sequence[Any]) -> list[Any]:
    """The arguments with arrays copied; one that is passed twice stays one."""
    known: dict[int, Any] = {}
    return [known.setdefault(id(a), a.copy()) if is_array(a) else a for a in arguments]


def ulps_apart(found: Array, expected: Array) -> NDArray[np.int64]:
    """For each element how many values of its type the two lie apart: 0 for equal ones and two NaNs, 1 for -0 and +0."""
    dtype = dtypes.from_numpy(found.dtype)
    if not dtype.is_float:
        return (found != expected).astype(np.int64)
    order = [a.view(f"i{dtype.itemsize}").astype(np.int64) for a in (found, expected)]
    low = -(1 << (dtype.bits - 1))
    counts = [np.where(bits < 0, low - bits, bits) for bits in order]
    nan = [np.isnan(a.astype(np.float64)) for a in (found, expected)]
    apart = np.abs(counts[0] - counts[1]) + ((counts[0] == counts[1]) & (np.signbit(found) != np.signbit(expected)))
    return np.where(nan[0] & nan[1], 0, np.where(nan[0] | nan[1], np.iinfo(np.int64).max, apart))


_COMPILED: Final[dict[tuple[str, Target, Options], Any]] = {}
"""What one test has compiled, by the text of the module. Another test may have changed a pass, or what emits code."""


def _compiled(module: ModuleOp, text: str, target: Target, options: Options) -> Any:
    """`compile_module` of a copy of the module, once for modules that differ in nothing but their lines. LLVM runs once for equal
    IR: of kernels that several cases launch, and where arrays that are disjoint change no line. ``text`` is the module's, if it
    is known."""
    key = text or str(module), target, options
    if (known := _COMPILED.get(key)) is None:
        copy = module.clone()
        lay_out(copy, target, options)
        emitted = machine_for(target).emit(next(op for op in copy.ops if isinstance(op, func.FuncOp)), options)
        known = _COMPILED[key] = _finished(target, replace(emitted, module=str(emitted.module)))
    return known


@functools.lru_cache(maxsize=128)
def _finished(target: Target, emitted: Emitted) -> Any:
    """What the runtime loads; LLVM takes modules as text."""
    return machine_for(target).finish(emitted)


@dataclass(frozen=True)
class Differential:
    """Runs kernels natively and through the reference, and compares what they leave in the arrays."""

    least_atomic_bits: ClassVar[int] = 8
    """Bits of the narrowest element that atomics reach; narrower ones are refused."""

    def approximated(self, dtype: DType) -> frozenset[str]:
        """The elementwise kinds of floats of which the machine gives approximations."""
        return frozenset()

    def build(self, kernel: KernelFunction, **arguments: Any) -> ModuleOp:
        """The frontend's module of a kernel for arguments by name."""
        module = build_module(kernel, {name: argument_of(value) for name, value in arguments.items()})
        module.verify()
        return module

    def native(
        self, module: ModuleOp, arguments: Sequence[Any], grid: tuple[int, ...] = (1,), disjoint: bool = False
    ) -> None:
        """Compiles a copy of the module and runs it."""
        self.launch(self.compiled(module, disjoint), arguments, grid)

    def compiled(self, module: ModuleOp, disjoint: bool = False, text: str = "") -> Any:
        """The code of a copy of the module, for `launch`; ``text`` is the module's, where it is known."""
        return _compiled(module, text, targets.host(), Options(disjoint=disjoint))

    def launch(self, compiled: Any, arguments: Sequence[Any], grid: tuple[int, ...] = (1,)) -> None:
        """Runs what `compiled` made on one thread, as the ABI in `weft.codegen.kernel` says."""
        code = loader.load(compiled.object, compiled.symbol)
        measured = [arguments[place] for place in compiled.measured]
        ends = [np.int64(end) for x in measured for end in (x.ctypes.data, x.ctypes.data + x.nbytes)]
        slots = list(map(_slot, [*arguments, *ends]))
        scratch = ctypes.create_string_buffer(compiled.scratch + compiled.copies + 64)
        aligned = -(-ctypes.addressof(scratch) // 64) * 64
        nx, ny, nz = (*grid, 1, 1)[:3]
        launch = (ctypes.c_int64 * (abi.SLOTS + len(slots)))()
        launch[abi.TOTAL] = nx * ny * nz
        launch[abi.CHUNK] = 1
        for word, size in zip(abi.SIZES, (nx, ny, nz), strict=True):
            launch[word] = size
        ctypes.memmove(ctypes.addressof(launch) + 8 * abi.SLOTS, b"".join(slots), 8 * len(slots))
        thread = (ctypes.c_int64 * 4)(0, 0, 0, aligned)
        status = executor.ENTRY(code.address)(ctypes.addressof(launch), ctypes.addressof(thread))
        assert status == 0

    def module(
        self,
        module: ModuleOp,
        arguments: Sequence[Any],
        grid: tuple[int, ...] = (1,),
        ulps: float = 0.0,
        promises: Sequence[bool] = (False, True),
    ) -> list[Any]:
        """Fails unless native code, without the promise that arrays are disjoint and with it, leaves what the reference
        leaves: floats within ``ulps``, zeros with their signs, NaN for NaN, everything else exactly. Returns the arguments as
        the reference left them."""
        expected = copies(arguments)
        reference.run(module, [a.item() if is_number(a) else a for a in expected], grid)
        arrays = [place for place, a in enumerate(arguments) if is_array(a)]
        aliased = len({id(arguments[place]) for place in arrays}) < len(arrays)
        text = str(module)
        codes = [(disjoint, self.compiled(module, disjoint, text)) for disjoint in ((False,) if aliased else promises)]
        for (disjoint, code), shared in product(codes, (False, True)[: 1 + _has_atomics(module)]):
            found = copies(arguments)
            with others_have_atomics(shared):
                self.launch(code, found, grid)
            for place in arrays:
                a, b = found[place], expected[place]
                off = ulps_apart(a, b) > ulps
                if off.any() and _chooses_zeros(module):
                    off &= ulps_apart(a, self.with_first_zeros(module, arguments, grid)[place]) > ulps
                wrong = np.argwhere(off)
                shown = [f"{tuple(map(int, w))}: {a[tuple(w)]!r}, expected {b[tuple(w)]!r}" for w in wrong[:8]]
                message = f"argument {place}, disjoint={disjoint}: {len(wrong)} of {a.size} differ: " + "; ".join(shown)
                assert not len(wrong), message
        return expected

    def with_first_zeros(self, module: ModuleOp, arguments: Sequence[Any], grid: tuple[int, ...]) -> list[Any]:
        """What the reference leaves where of two zeros minimum and maximum give the first: as right as the second."""
        after = copies(arguments)
        reference.run(module, [a.item() if is_number(a) else a for a in after], grid, first_zero=True)
        return after

    def __call__(
        self,
        kernel: KernelFunction,
        grid: tuple[int, ...] = (1,),
        ulps: float = 0.0,
        promises: Sequence[bool] = (False, True),
        **arguments: Any,
    ) -> dict[str, Any]:
        """`module` for the frontend's module of a kernel; returns the run-time arguments by name."""
        runtime = {n: v for n, v in arguments.items() if is_array(v) or is_number(v)}
        after = self.module(self.build(kernel, **arguments), list(runtime.values()), grid, ulps, promises)
        return dict(zip(runtime, after, strict=True))


@contextmanager
def others_have_atomics(shared: bool = True) -> Generator[None]:
    """As while another thread runs a kernel with atomics: native code then uses atomic instructions, else plain ones."""
    lock = ctypes.c_int64.from_address(exclusion.ADDRESS)
    lock.value += shared
    yield
    lock.value -= shared
    assert lock.value == 0


def _has_atomics(module: ModuleOp) -> bool:
    return any(isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp) for op in module.walk())


def _chooses_zeros(module: ModuleOp) -> bool:
    """Whether an op of the module may give either of two zeros (`weft.ir.base.TIED_ZEROS`)."""
    binary = (op for op in module.walk() if isinstance(op, tile.BinaryOp))
    return any(op.kind.data in tile.TIED_ZEROS and dtype_of(op.result).is_float for op in binary)


def _slot(value: Any) -> bytes:
    """The 8 bytes by which the ABI passes an argument: an address, an integer extended to 64 bits, a float's own bits."""
    if is_array(value):
        return int(value.ctypes.data).to_bytes(8, "little")
    number: Any = np.asarray(value)
    if number.dtype.kind in "bui":
        number = number.astype(np.uint64 if number.dtype.kind == "u" else np.int64)
    return bytes(number.tobytes()).ljust(8, b"\0")


@dataclass(frozen=True)
class Emulated(Differential):
    """Runs kernels as PTX in the emulator, with all its checks, instead of natively."""

    least_atomic_bits: ClassVar[int] = 16

    target: GpuTarget
    warps: int = 4

    def approximated(self, dtype: DType) -> frozenset[str]:
        return frozenset(APPROXIMATIONS) if dtype.is_float and dtype.bits <= 32 else frozenset()

    def compiled(self, module: ModuleOp, disjoint: bool = False, text: str = "") -> Any:
        options = Options(disjoint=disjoint, launch=(("enable_fp_fusion", False), ("num_warps", self.warps)))
        return _compiled(module, text, self.target, options)

    def launch(self, compiled: Any, arguments: Sequence[Any], grid: tuple[int, ...] = (1,)) -> None:
        """Runs the PTX in the emulator."""
        values: list[Any] = [np.uint8(a.item()) if is_number(a) and a.dtype == np.bool_ else a for a in arguments]
        emulator.Module(compiled.ptx).launch(compiled.symbol, grid, compiled.threads, values, shared=compiled.shared)


MACHINES: Final[dict[str, Differential]] = {
    "native": Differential(),
    "sm_80": Emulated(GpuTarget(80)),
    "sm_90": Emulated(GpuTarget(90)),
}
"""What kernels of the differential tests run on."""


@pytest.fixture(
    scope="session", params=["native", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("sm_90", "sm_80"))]
)
def differ(request: pytest.FixtureRequest) -> Differential:
    """Compares compiled code with the reference; as PTX only nightly, where a module does not say otherwise."""
    return MACHINES[request.param]
