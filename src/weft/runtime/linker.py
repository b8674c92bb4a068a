"""Links an object file into the process: places its sections in executable pages and patches addresses.

LLVM's linkers would do it too. JITLink and its library keep 31 KiB for each object that is loaded, and never give 8 of them back;
MCJIT keeps 25 KiB. Here a small kernel takes a page, and nothing is left of a kernel that is unloaded.

This linker refuses what it does not know (`LinkRefused`): other systems and machines, data that programs write to, thread-local
data. LLVM's linker takes those objects.

The image of an object is its sections and, behind them, an entry of 16 bytes for each symbol of another library::

    jmp *2(%rip); 2 bytes of padding; the address

A call jumps to the entry, which reaches any address. A load of the address reads the entry's second half.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from weft.runtime import exclusion, pages
from weft.runtime.elf import UNDEFINED, LinkRefused, Object, Relocation, Symbol, read

SUPPORTED: Final = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether objects of this machine can be linked here."""

LIBRARIES: Final = (None, "libm.so.6", "libmvec.so.1")
"""Where symbols of other libraries are looked up, in order; None is the process."""

_ENTRY: Final = b"\xff\x25\x02\x00\x00\x00\x90\x90"
_ENTRY_SIZE: Final = 16

_ABSOLUTE, _RELATIVE, _CALL, _SLOT = range(4)
_KINDS: Final[dict[int, tuple[int, int]]] = {
    1: (_ABSOLUTE, 8),  # R_X86_64_64
    2: (_RELATIVE, 4),  # R_X86_64_PC32
    4: (_CALL, 4),  # R_X86_64_PLT32
    9: (_SLOT, 4),  # R_X86_64_GOTPCREL
    41: (_SLOT, 4),  # R_X86_64_GOTPCRELX
    42: (_SLOT, 4),  # R_X86_64_REX_GOTPCRELX
}
"""Relocations: which address is stored, and in how many bytes."""


def link(code: bytes, symbol: str) -> tuple[int, pages.Pages]:
    """The address of a symbol, and the pages that hold it. Raises `LinkRefused`."""
    if not SUPPORTED:
        raise LinkRefused(f"weft links objects for Linux on x86-64, not for {sys.platform} on {platform.machine()}")
    given = read(code)
    starts, end = _starts(given)
    entries = _entries(given.relocations, end)
    size = end + _ENTRY_SIZE * len(entries)
    defined = {s.name: s for s in given.symbols if s.section in starts}
    if symbol not in defined:
        raise LinkRefused(f"the object does not define '{symbol}'")
    addresses = {s: _address_of(s.name) for s in entries if s.section == UNDEFINED}
    try:
        held = pages.place(size, lambda base: _image(given, base, starts, entries, addresses, size))
    except OSError as error:
        raise LinkRefused(f"no executable memory: {error}") from None
    wanted = defined[symbol]
    return held.address + starts[wanted.section] + wanted.value, held


def _starts(given: Object) -> tuple[dict[int, int], int]:
    """Where each section begins, and where the entries do."""
    starts: dict[int, int] = {}
    end = 0
    for section in given.sections:
        if section.align > pages.SIZE:
            raise LinkRefused(f"a section is aligned to {section.align} bytes")
        starts[section.number] = end = -(-end // section.align) * section.align
        end += len(section.data)
    return starts, -(-end // _ENTRY_SIZE) * _ENTRY_SIZE


def _entries(relocations: Sequence[Relocation], end: int) -> dict[Symbol, int]:
    """The entry of each symbol that needs one: those of other libraries, and those whose address is loaded."""
    entries: dict[Symbol, int] = {}
    for r in relocations:
        if r.kind not in _KINDS:
            raise LinkRefused(f"relocation {r.kind} of '{r.symbol.name}' is not known")
        if r.symbol not in entries and (r.symbol.section == UNDEFINED or _KINDS[r.kind][0] == _SLOT):
            entries[r.symbol] = end + _ENTRY_SIZE * len(entries)
    return entries


def _image(
    given: Object,
    base: int,
    starts: Mapping[int, int],
    entries: Mapping[Symbol, int],
    addresses: Mapping[Symbol, int],
    size: int,
) -> bytes:
    """The bytes for the pages at ``base``."""
    image = bytearray(size)
    for section in given.sections:
        start = starts[section.number]
        image[start : start + len(section.data)] = section.data

    def address(symbol: Symbol) -> int:
        if symbol in addresses:
            return addresses[symbol]
        if symbol.section not in starts:
            raise LinkRefused(f"symbol '{symbol.name}' is in a section that is not loaded")
        return base + starts[symbol.section] + symbol.value

    for symbol, entry in entries.items():
        image[entry : entry + _ENTRY_SIZE] = _ENTRY + struct.pack("<Q", address(symbol))
    for r in given.relocations:
        use, width = _KINDS[r.kind]
        at = starts[r.section] + r.offset
        if use == _SLOT:
            target = base + entries[r.symbol] + len(_ENTRY)
        elif use == _CALL and r.symbol in addresses:
            target = base + entries[r.symbol]
        else:
            target = address(r.symbol)
        value = target + r.addend - (0 if use == _ABSOLUTE else base + at)
        try:
            struct.pack_into("<q" if width == 8 else "<i", image, at, value)
        except struct.error:
            raise LinkRefused(f"relocation of '{r.symbol.name}' does not fit") from None
    return bytes(image)


@cache
def _address_of(name: str) -> int:
    """The address of weft's own symbol, or of one of the process or of a mathematics library. Raises `LinkRefused` where there is
    none."""
    if name == exclusion.SYMBOL:
        return exclusion.ADDRESS
    for library in LIBRARIES:
        try:
            found = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
        except (OSError, AttributeError):
            continue
        if found:
            return found
    raise LinkRefused(f"symbol '{name}' is in no library")
