"""Atomics on global memory: PTX's instructions, and compare-and-swap loops where there is none.

    kind                 types with an instruction (PTX ISA, "atom")
    add                  integers of 32 and 64 bits, float32, float64, float16, bfloat16 from sm_90 on
    min, max             integers of 32 and 64 bits
    and, or, xor, xchg   32 and 64 bits
    cas                  16, 32 and 64 bits

No instruction reaches a byte: a loop on the word around it would touch memory beyond the array, so types of 8 bits are refused.
A float16 or bfloat16 sum is rounded once, subnormals included (``noftz``).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from weft.codegen.emit.element import element_of_value
from weft.codegen.llvm import arith
from weft.codegen.llvm.branches import where
from weft.codegen.llvm.types import I16, I32, I64, integer_width
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.threads import Threads
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of
from weft.ir.unsupported import UnsupportedOpError
from weft.target import GpuTarget

LEAST_BITS = 16
"""Bits of the narrowest element that an atomic reaches."""

_LETTERS = {16: "h", 32: "r", 64: "l"}
_INTEGERS = {16: I16, 32: I32, 64: I64}


def instruction_for(kind: str, dtype: DType, target: GpuTarget) -> str | None:
    """PTX's suffix of a read-modify-write: ``.add.u32``; None where a loop has to do it."""
    if dtype.is_float:
        if kind == "xchg" and dtype.bits >= 32:
            return f".exch.b{dtype.bits}"
        if kind != "add":
            return None
        if dtype.bits >= 32:
            return f".add.f{dtype.bits}"
        narrow = {"float16": ("f16", "atom.f16"), "bfloat16": ("bf16", "atom.bf16")}.get(dtype.name)
        return f".add.noftz.{narrow[0]}" if narrow is not None and target.has(narrow[1]) else None
    if dtype.bits < 32:
        return None
    if kind in ("min", "max"):
        return f".{kind}.{'s' if dtype.signed else 'u'}{dtype.bits}"
    return {"add": f".add.u{dtype.bits}", "xchg": f".exch.b{dtype.bits}"}.get(kind, f".{kind}.b{dtype.bits}")


def atomic(
    threads: Threads,
    op: tile.AtomicRmwOp | tile.AtomicCasOp,
    address: ir.Value,
    values: Sequence[ir.Value],
    condition: ir.Value | None,
) -> ir.Value:
    """The atomic on one element, where the condition holds; gives the old value, as a value in registers, else zero."""
    builder, dtype = threads.builder, dtype_of(op.value)
    if dtype.bits < LEAST_BITS:
        raise UnsupportedOpError(
            op,
            f"has no instruction for {dtype} on {threads.machine}",
            hint="use a type of 16, 32 or 64 bits; a GPU's atomics do not reach single bytes",
        )
    bits = _INTEGERS[dtype.bits]
    words = [builder.bitcast(value, bits) for value in values]
    order = f"atom.{op.sem.data}.{op.scope.data}.global"
    if isinstance(op, tile.AtomicCasOp):
        old = _instruction(builder, f"{order}.cas.b{dtype.bits}", address, words, condition)
    else:
        suffix = instruction_for(op.kind.data, dtype, threads.target)
        if suffix is not None:
            old = _instruction(builder, order + suffix, address, words, condition)
        else:
            zero = ir.Constant(bits, 0)
            old = where(builder, condition, lambda: _loop(builder, op, dtype, address, values[0]), zero)
    return builder.bitcast(old, element_of_value(op.value).register_type(None))


def _instruction(
    builder: ir.IRBuilder, name: str, address: ir.Value, values: Sequence[ir.Value], condition: ir.Value | None
) -> ir.Value:
    """One ``atom``; 0 where the condition is false."""
    width = integer_width(values[0])
    type_, letter = _INTEGERS[width], _LETTERS[width]
    operands = ", ".join(f"${2 + i}" for i in range(len(values)))
    text = f"{name} $0, [$1], {operands};"
    constraints = [f"=&{letter}", "l", *[letter] * len(values)]
    arguments = [address, *values]
    if condition is not None:
        text = f"mov.b{width} $0, 0;\n\t@${1 + len(arguments)} {text}"
        constraints.append("b")
        arguments.append(condition)
    return instructions.assembly(builder, type_, text, ",".join([*constraints, "~{memory}"]), arguments)


def _loop(builder: ir.IRBuilder, op: tile.AtomicRmwOp, dtype: DType, address: ir.Value, value: ir.Value) -> ir.Value:
    """Compare-and-swap until no other thread came between; gives the old value's bits."""
    bits = _INTEGERS[dtype.bits]
    letter = _LETTERS[dtype.bits]
    load = f"ld.relaxed.{op.scope.data}.global.b{dtype.bits} $0, [$1];"
    initial = instructions.assembly(builder, bits, load, f"=&{letter},l,~{{memory}}", [address])
    before = builder.block
    again, done = builder.append_basic_block("again"), builder.append_basic_block("updated")
    builder.branch(again)
    builder.position_at_end(again)
    expected = builder.phi(bits)
    expected.add_incoming(initial, before)
    if op.kind.data == "xchg":
        new = builder.bitcast(value, bits)
    else:
        new = builder.bitcast(
            arith.binary(builder, op.kind.data, dtype, builder.bitcast(expected, value.type), value), bits
        )
    name = f"atom.{op.sem.data}.{op.scope.data}.global.cas.b{dtype.bits}"
    found = _instruction(builder, name, address, [expected, new], None)
    expected.add_incoming(found, builder.block)
    builder.cbranch(builder.icmp_unsigned("==", found, expected), done, again)
    builder.position_at_end(done)
    return found
