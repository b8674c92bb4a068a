"""The symbols that object files do not define, for the formats of the three systems.

Sources: System V ABI, chapter 4; Microsoft's PE and COFF specification, "COFF Symbol Table"; Apple's ``mach-o/loader.h`` and
``mach-o/nlist.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


def undefined(code: bytes) -> frozenset[str]:
    """The names, as the source spells them (Mach-O puts an underscore before them)."""
    if code.startswith(b"\x7fELF"):
        return frozenset(_elf(code))
    if code.startswith(b"\xcf\xfa\xed\xfe"):
        return frozenset(name.removeprefix("_") for name in _macho(code))
    return frozenset(_coff(code))


def _name(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _elf(code: bytes) -> Iterator[str]:
    (sections,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + size * i) for i in range(count)]
    for _, kind, _, _, start, length, link, _, _, entry in headers:
        if kind == 2:  # SHT_SYMTAB
            for at in range(start + entry, start + length, entry):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if section == 0:
                    yield _name(code, headers[link][4] + name)


def _macho(code: bytes) -> Iterator[str]:
    commands, at = struct.unpack_from("<I", code, 16)[0], 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:  # LC_SYMTAB
            symbols, count, strings, _ = struct.unpack_from("<IIII", code, at + 8)
            for i in range(count):
                name, kind = struct.unpack_from("<IB", code, symbols + 16 * i)
                if kind & 0x0F == 0x01:  # N_UNDF, external
                    yield _name(code, strings + name)
        at += size


def _coff(code: bytes) -> Iterator[str]:
    symbols, count = struct.unpack_from("<II", code, 8)
    i = 0
    while i < count:
        at = symbols + 18 * i
        section, _, storage, more = struct.unpack_from("<hHBB", code, at + 12)
        if section == 0 and storage == 2:  # IMAGE_SYM_UNDEFINED, IMAGE_SYM_CLASS_EXTERNAL
            short, long = struct.unpack_from("<II", code, at)
            yield _name(code, symbols + 18 * count + long) if short == 0 else code[at : at + 8].rstrip(b"\0").decode()
        i += 1 + more
