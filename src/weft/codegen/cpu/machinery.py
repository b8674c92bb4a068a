"""What a kernel asks of the machine itself, on a CPU: the system's clock; inline PTX is refused."""

from __future__ import annotations

from typing import Final, NoReturn

from llvmlite import ir

from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I32, I64, POINTER
from weft.ir import tile
from weft.ir.assembly import needs_gpu
from weft.ir.unsupported import UnsupportedOpError

_MONOTONIC: Final = {"linux": 1, "darwin": 6, "macosx": 6}
"""``CLOCK_MONOTONIC`` of the systems whose C library has ``clock_gettime``."""
_SECOND: Final = 10**9


def refuse_assembly(registers: Registers, op: tile.AssemblyOp) -> NoReturn:
    """`UnsupportedOpError`: a CPU does not execute PTX."""
    raise needs_gpu(op)


def clock(registers: Registers, op: tile.ClockOp) -> None:
    """``clock_gettime(CLOCK_MONOTONIC)`` of the C library, in nanoseconds."""
    builder, triple = registers.builder, registers.target.triple
    number = next((n for system, n in _MONOTONIC.items() if system in triple), None)
    if number is None:
        raise UnsupportedOpError(op, f"is not supported for {triple}", hint="measure time outside of the kernel")
    module = builder.module
    function = module.globals.get("clock_gettime") or ir.Function(
        module, ir.FunctionType(I32, [I32, POINTER]), "clock_gettime"
    )
    time = registers.entry.alloca(ir.ArrayType(I64, 2))
    time.type = POINTER
    builder.call(function, [ir.Constant(I32, number), time])
    seconds = builder.load(time, typ=I64)
    rest = builder.load(builder.gep(time, [ir.Constant(I64, 1)], source_etype=I64), typ=I64)
    registers.scalars[op.result] = builder.add(builder.mul(seconds, ir.Constant(I64, _SECOND)), rest)


def processor(registers: Registers, op: tile.ProcessorOp) -> None:
    """0: a CPU has no multiprocessors."""
    registers.scalars[op.result] = ir.Constant(I32, 0)
