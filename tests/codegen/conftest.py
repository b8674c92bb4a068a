"""Compiles small elementwise functions with LLVM and runs them on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray

from weft.codegen.arith import llvm_type, storage_type
from weft.codegen.llvm import I1, I64, Module
from weft.dtypes import DType

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

    def compile(self, module: ir.Module) -> llvm.ModuleRef:
        """The module parsed, verified and optimised."""
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        passes = llvm.create_pass_builder(self.machine(), options)
        passes.getModulePassManager().run(parsed, passes)
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
        engine = llvm.create_mcjit_compiler(self.compile(self.module(emit, sources, target, lanes)), self.machine())
        engine.finalize_object()
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + 1), ctypes.c_int64)
        signature(engine.get_function_address("f"))(out.ctypes.data, *(a.ctypes.data for a in inputs), len(out))
        return out[:size]


@pytest.fixture(scope="session")
def host() -> Compiler:
    """This machine's CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)
    return Compiler(llvm.get_host_cpu_name(), features, llvm.get_default_triple())


@pytest.fixture(scope="session")
def plain(host: Compiler) -> Compiler:
    """The host as a CPU of the first generation of its architecture: on x86-64 no FMA, no float16."""
    return Compiler("x86-64" if host.triple.startswith("x86_64") else "generic", frozenset(), host.triple)


@pytest.fixture(autouse=True)
def edge_values() -> Iterator[None]:
    """NumPy does not warn: oracles overflow and meet signalling NaN on purpose."""
    with np.errstate(all="ignore"):
        yield
