"""Register files: what one thread holds of a tile, as LLVM vectors.

A thread's registers are a tuple of vectors of up to `CHUNK` elements, register 0 first. Vectors keep the LLVM module short:
an elementwise op is one instruction for 16 registers, and LLVM takes vectors apart when it selects instructions. The functions
here move registers about; none computes.

Data travels in *words* of 32 bits. Elements narrower than a word are packed in the order of their registers, lowest bits first;
wider ones take several words, the lowest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from llvmlite import ir

from weft.codegen.llvm.types import F64, I32, intrinsic, lanes_of, scalar_type, shuffle

CHUNK: Final = 16
"""Elements of a vector. Measured: longer ones compile no faster."""
WORD: Final = 32

File: TypeAlias = tuple[ir.Value, ...]


def length(chunk: ir.Value) -> int:
    """The elements of a vector."""
    count = lanes_of(chunk)
    assert count is not None, f"expected a vector, found {chunk.type}"
    return count


def count_of(file: File) -> int:
    """How many registers a file has."""
    return sum(map(length, file))


def element_type(file: File) -> ir.Type:
    """The LLVM type of a register."""
    return scalar_type(file[0])


def chunk_sizes(registers: int) -> list[int]:
    """The lengths of a file's vectors."""
    return [min(CHUNK, registers)] * max(1, registers // CHUNK)


def of_scalars(builder: ir.IRBuilder, scalars: Sequence[ir.Value]) -> File:
    """A file from its registers one by one."""
    chunks: list[ir.Value] = []
    for first in range(0, len(scalars), CHUNK):
        part = scalars[first : first + CHUNK]
        vector: ir.Value = ir.Constant(ir.VectorType(part[0].type, len(part)), ir.Undefined)
        for place, value in enumerate(part):
            vector = builder.insert_element(vector, value, ir.Constant(I32, place))
        chunks.append(vector)
    return tuple(chunks)


def scalar(builder: ir.IRBuilder, file: File, register: int) -> ir.Value:
    """One register."""
    size = length(file[0])
    return builder.extract_element(file[register // size], ir.Constant(I32, register % size))


def scalars(builder: ir.IRBuilder, file: File) -> list[ir.Value]:
    """All registers one by one."""
    return [scalar(builder, file, register) for register in range(count_of(file))]


def take(builder: ir.IRBuilder, file: File, registers: Sequence[int]) -> File:
    """The file whose registers are these of ``file``, in their order. Its vectors are as `chunk_sizes` says, also where those of
    ``file`` are shorter."""
    size = length(file[0])
    if list(registers) == list(range(count_of(file))) and size == chunk_sizes(len(registers))[0]:
        return file
    chunks: list[ir.Value] = []
    for first in range(0, len(registers), CHUNK):
        chunks.append(_gathered(builder, file, registers[first : first + CHUNK], size))
    return tuple(chunks)


def _gathered(builder: ir.IRBuilder, file: File, registers: Sequence[int], size: int) -> ir.Value:
    homes = sorted({register // size for register in registers})
    if len(homes) > 2:
        return of_scalars(builder, [scalar(builder, file, register) for register in registers])[0]
    shift = {home: place * size for place, home in enumerate(homes)}
    lanes = [shift[register // size] + register % size for register in registers]
    return shuffle(builder, file[homes[0]], lanes, *(file[home] for home in homes[1:]))


def words_of(builder: ir.IRBuilder, file: File) -> list[ir.Value]:
    """The file as words of 32 bits; registers that do not fill a word are followed by zeros."""
    bits = width_of(element_type(file))
    if count_of(file) * bits < WORD:
        lanes = WORD // bits
        chunk = file[0]
        places = [min(lane, length(chunk)) for lane in range(lanes)]
        file = (shuffle(builder, chunk, places, ir.Constant(chunk.type, None)),)
    words: list[ir.Value] = []
    for chunk in file:
        number = length(chunk) * bits // WORD
        cast = builder.bitcast(chunk, ir.VectorType(I32, number))
        words += [builder.extract_element(cast, ir.Constant(I32, place)) for place in range(number)]
    return words


def from_words(builder: ir.IRBuilder, words: Sequence[ir.Value], element: ir.Type, registers: int) -> File:
    """The file of ``registers`` elements that these words hold."""
    bits = width_of(element)
    if bits == 2 * WORD:
        return of_scalars(builder, [_joined(builder, words[2 * r : 2 * r + 2], element) for r in range(registers)])
    chunks: list[ir.Value] = []
    at = 0
    for size in chunk_sizes(registers):
        number = max(1, size * bits // WORD)
        (vector,) = of_scalars(builder, words[at : at + number]) if number <= CHUNK else (None,)
        if vector is None:
            low, high = of_scalars(builder, words[at : at + number])
            vector = shuffle(builder, low, range(number), high)
        at += number
        held = number * WORD // bits
        cast = builder.bitcast(vector, ir.VectorType(element, held))
        chunks.append(cast if held == size else shuffle(builder, cast, range(size)))
    return tuple(chunks)


def _joined(builder: ir.IRBuilder, words: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    """Two words as one element of 64 bits, the low one first. Neighbours in one vector are taken from it together, so that a load
    of words becomes one of elements; others are joined by ``mov.b64``, where a bitcast becomes four instructions."""
    (vector, low), (other, high) = map(_place_of, words)
    if vector is not None and vector is other and low % 2 == 0 and high == low + 1:
        wide = builder.bitcast(vector, ir.VectorType(element, length(vector) // 2))
        return builder.extract_element(wide, ir.Constant(I32, low // 2))
    return builder.bitcast(intrinsic(builder, "nvvm.lohi.i2d", list(words), F64, []), element)


def _place_of(word: ir.Value) -> tuple[ir.Value | None, int]:
    """The vector that a word is extracted from, and where."""
    if isinstance(word, ir.Instruction) and word.opname == "extractelement":
        vector, place = word.operands
        if isinstance(place, ir.Constant):
            return vector, int(place.constant)
    return None, 0


def vector_of(builder: ir.IRBuilder, file: File, registers: Sequence[int]) -> ir.Value:
    """These registers as one vector, of any length up to `CHUNK`."""
    return _gathered(builder, file, registers, length(file[0]))


def width_of(type_: ir.Type) -> int:
    """The bits of an element as it travels."""
    if isinstance(type_, ir.IntType):
        return type_.width
    return 64 if isinstance(type_, ir.DoubleType) else 32
