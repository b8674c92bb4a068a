"""Relocatable objects of x86-64 ELF, as data: what the linker (`weft.runtime.linker`) has to place and to patch.

Sources: the System V ABI, chapters 4 and 5 of the generic part, and its x86-64 supplement. Names are those of ``elf.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")

_IDENT: Final = b"\x7fELF\x02\x01\x01"
"""64 bits, little endian, version 1."""
_ET_REL: Final = 1
_EM_X86_64: Final = 62

PROGBITS: Final = 1
_SYMTAB: Final = 2
_RELA: Final = 4
_NOTE: Final = 7
_REL: Final = 9
_UNWIND: Final = 0x70000001

WRITE: Final = 1
ALLOC: Final = 2
TLS: Final = 0x400

_UNUSED: Final = frozenset({_NOTE, _UNWIND})
"""Types of sections that occupy memory and that no kernel uses: notes, and tables for unwinding."""

UNDEFINED: Final = 0
_RESERVED: Final = 0xFF00
"""Section numbers from here on are no sections: absolute and common symbols."""


class LinkRefused(Exception):
    """Why an object cannot be linked by weft."""


class Section(NamedTuple):
    """A section that is loaded: its ``number`` in the object, its contents and its alignment."""

    number: int
    data: bytes
    align: int


class Symbol(NamedTuple):
    """A name, the number of its section (`UNDEFINED`: of another library), and the offset in it."""

    name: str
    section: int
    value: int


class Relocation(NamedTuple):
    """Patch the ``offset`` of a section with the address of a symbol plus ``addend``, as ``kind`` says."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int


class Object(NamedTuple):
    """A relocatable object."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def read(data: bytes) -> Object:
    """The object of the bytes of a file. Raises `LinkRefused` for what is no object of x86-64, is cut short, or has data that
    programs write to."""
    try:
        return _read(data)
    except (struct.error, LookupError, ValueError) as error:
        raise LinkRefused(f"the object is malformed: {error}") from None


class _Header(NamedTuple):
    """The header of a section, with the fields of ``Elf64_Shdr``."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int


def _read(data: bytes) -> Object:
    fields: tuple[Any, ...] = _HEADER.unpack_from(data)
    wanted: list[int] = [fields[i] for i in (1, 2, 6, 11, 12, 13)]
    kind, machine, start, size, count, names = wanted
    if not data.startswith(_IDENT) or (kind, machine, size) != (_ET_REL, _EM_X86_64, _SECTION.size):
        raise LinkRefused("this is no relocatable object of x86-64")
    headers = [_Header(*_SECTION.unpack_from(data, start + i * _SECTION.size)) for i in range(count)]
    bodies: list[bytes] = [data[header.offset : header.offset + header.size] for header in headers]
    loaded = tuple(_loaded(headers, bodies, bodies[names]))
    numbers = {section.number for section in loaded}
    tables = {i: tuple(_symbols(bodies[i], bodies[h.link])) for i, h in enumerate(headers) if h.type == _SYMTAB}
    relocations: list[Relocation] = []
    for header, body in zip(headers, bodies, strict=True):
        if header.type == _RELA and header.info in numbers:
            relocations += _relocations(body, header.info, tables[header.link])
        elif header.type == _REL:
            raise LinkRefused("the object has relocations without addends")
    return Object(loaded, tuple(symbol for table in tables.values() for symbol in table), tuple(relocations))


def _loaded(headers: list[_Header], bodies: list[bytes], names: bytes) -> Iterator[Section]:
    for number, (header, body) in enumerate(zip(headers, bodies, strict=True)):
        if not header.flags & ALLOC or header.type in _UNUSED or not header.size:
            continue
        name = _text(names, header.name)
        constant = not header.flags & WRITE or name.startswith(
            ".data.rel.ro"
        )  # patched when linked, constant afterwards
        if header.type != PROGBITS or header.flags & TLS or not constant or len(body) != header.size:
            raise LinkRefused(f"section '{name}' is neither code nor constants")
        yield Section(number, body, max(1, header.addralign))


def _symbols(body: bytes, names: bytes) -> Iterator[Symbol]:
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(body):
        yield Symbol(_text(names, name), section, value)


def _relocations(body: bytes, section: int, symbols: tuple[Symbol, ...]) -> Iterator[Relocation]:
    for offset, info, addend in _RELOCATION.iter_unpack(body):
        symbol = symbols[int(info) >> 32]
        if symbol.section >= _RESERVED:
            raise LinkRefused(f"symbol '{symbol.name}' is in no section")
        yield Relocation(section, offset, info & 0xFFFFFFFF, symbol, addend)


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()
