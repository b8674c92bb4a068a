"""``tile.inline_asm`` on a GPU: LLVM's inline assembly for each group of a thread's registers, and special registers.

An element is its bits: what shares a register is put together as an integer, which then has the type of its constraint. A thread
that holds fewer elements than one execution takes passes some of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.emit.element import element_of_value
from weft.codegen.llvm.types import I16, I32, I64
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.access import publish
from weft.codegen.nvidia.files import of_scalars, scalar, take
from weft.codegen.nvidia.threads import Threads
from weft.ir import tile
from weft.ir.assembly import bits_of, registers_of, shared_by
from weft.ir.types import layout_of, shape_of
from weft.ir.unsupported import UnsupportedOpError

_TYPES: Final[dict[str, ir.Type]] = {"h": I16, "r": I32, "l": I64, "f": ir.FloatType(), "d": ir.DoubleType()}
"""The types of LLVM's constraints for registers."""
_WIDTHS: Final = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}


def emit_assembly(threads: Threads, op: tile.AssemblyOp) -> None:
    """The lowering of ``tile.inline_asm``."""
    if not shape_of(op.results[0]):
        results = _execute(threads, op, [[threads.scalar(source)] for source in op.sources])
        threads.scalars.update(zip(op.results, (elements[0] for elements in results), strict=True))
        return
    layout = layout_of(op.results[0])
    copies = layout.duplicate_mask("register")
    registers = range(layout.in_size("register"))
    own = [register for register in registers if not register & copies]
    pack = op.pack.value.data
    found: list[list[ir.Value]] = [[] for _ in op.results]
    for first in range(0, len(own), pack):
        group = [own[i % len(own)] for i in range(first, first + pack)]
        taken = [[scalar(threads.builder, threads.files[source], r) for r in group] for source in op.sources]
        for elements, more in zip(found, _execute(threads, op, taken), strict=True):
            elements.extend(more)
    places = {register: place for place, register in enumerate(own)}
    for result, elements in zip(op.results, found, strict=True):
        file = of_scalars(threads.builder, elements[: len(own)])
        threads.files[result] = take(threads.builder, file, [places[r & ~copies] for r in registers])


def _execute(threads: Threads, op: tile.AssemblyOp, operands: Sequence[Sequence[ir.Value]]) -> list[list[ir.Value]]:
    """One execution: the elements of each operand to those of each result. Scalars are one element, passed ``pack`` times."""
    builder, pack = threads.builder, op.pack.value.data
    outputs, inputs = registers_of(op.constraints.data)
    letters = [outputs[int(word)] if word.isdigit() else word for word in inputs]
    for letter in (*outputs, *letters):
        if letter not in _TYPES:
            raise UnsupportedOpError(op, f"has the constraint '{letter}'", hint=f"use one of {', '.join(_TYPES)}")
    arguments: list[ir.Value] = []
    for source, elements in zip(op.sources, operands, strict=True):
        count = shared_by(source, pack)
        for first in range(0, pack, count):
            group = [elements[i % len(elements)] for i in range(first, first + count)]
            arguments.append(_register(builder, source, group, letters[len(arguments)]))
    types = [_TYPES[letter] for letter in outputs]
    kind = types[0] if len(types) == 1 else ir.LiteralStructType(types)
    text = op.text.data.replace("\\", "\\5C").replace('"', "\\22")
    given = instructions.assembly(
        builder,
        kind,
        text,
        op.constraints.data.replace(" ", ""),
        arguments,
        convergent=op.pure is None,
        effects=op.pure is None,
    )
    registers = [given] if len(types) == 1 else [builder.extract_value(given, i) for i in range(len(types))]
    results: list[list[ir.Value]] = []
    at = 0
    for result in op.results:
        count = shared_by(result, pack)
        found: list[ir.Value] = []
        for _ in range(0, pack, count):
            found += _elements(builder, result, registers[at], outputs[at], count)
            at += 1
        results.append(found)
    return results


def _register(builder: ir.IRBuilder, source: SSAValue, elements: Sequence[ir.Value], letter: str) -> ir.Value:
    """Elements as the value of a register: the first in the lowest bits, zeros above."""
    bits, element = bits_of(source), element_of_value(source)
    width = _WIDTHS[letter]
    whole = ir.IntType(width)
    value: ir.Value | None = None
    for place, each in enumerate(elements):
        stored = builder.bitcast(element.to_storage(builder, each), ir.IntType(bits))
        wide = _fitted(builder, stored, bits, width)
        wide = builder.shl(wide, ir.Constant(whole, place * bits)) if place else wide
        value = wide if value is None else builder.or_(value, wide)
    assert value is not None, "a register holds an element at least"
    return builder.bitcast(value, _TYPES[letter])


def _elements(builder: ir.IRBuilder, result: SSAValue, register: ir.Value, letter: str, count: int) -> list[ir.Value]:
    """The reverse of `_register`."""
    bits, element = bits_of(result), element_of_value(result)
    width = _WIDTHS[letter]
    whole = ir.IntType(width)
    value = builder.bitcast(register, whole)
    found: list[ir.Value] = []
    for place in range(count):
        shifted = builder.lshr(value, ir.Constant(whole, place * bits)) if place else value
        stored = builder.bitcast(_fitted(builder, shifted, width, bits), element.storage_type(None))
        found.append(element.from_storage(builder, stored))
    return found


def _fitted(builder: ir.IRBuilder, value: ir.Value, bits: int, wanted: int) -> ir.Value:
    """An integer of ``bits`` as one of ``wanted`` bits."""
    if bits < wanted:
        return builder.zext(value, ir.IntType(wanted))
    return builder.trunc(value, ir.IntType(wanted)) if bits > wanted else value


def clock(threads: Threads, op: tile.ClockOp) -> None:
    """The GPU's global timer, as one thread reads it: conditions on the time must not differ between threads."""
    time = instructions.assembly(threads.builder, I64, "mov.u64 $0, %globaltimer;", "=l", [])
    threads.scalars[op.result] = publish(threads, op, element_of_value(op.result), time)


def processor(threads: Threads, op: tile.ProcessorOp) -> None:
    """The streaming multiprocessor."""
    text = "mov.u32 $0, %smid;"
    threads.scalars[op.result] = instructions.assembly(threads.builder, I32, text, "=r", [], effects=False)
