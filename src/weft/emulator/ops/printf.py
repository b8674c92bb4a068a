"""The formats of C's printf (ISO C 7.21.6.1), as CUDA's device printf has them: no %n, no long double, no wide characters."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Final

_DIRECTIVE: Final = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|j|z|t)?([a-zA-Z%])")

_WIDE: Final = ("l", "ll", "j", "z", "t")
"""Lengths that make an integer 8 bytes wide."""

_NARROW: Final = {"hh": 8, "h": 16}
"""Bits that are left of an int."""


def printf(text: str, take: Callable[[int], bytes], string: Callable[[int], str]) -> tuple[str, int]:
    """What is printed, and how many arguments it took. ``take`` gives the next argument's bytes, 4 or 8, ``string`` the text at
    an address. What is no directive is printed as it stands."""
    taken = 0

    def next_of(size: int) -> bytes:
        nonlocal taken
        taken += 1
        return take(size)

    def integer(length: str, signed: bool) -> int:
        size = 8 if length in _WIDE else 4
        value = int.from_bytes(next_of(size), "little", signed=signed)
        if (bits := _NARROW.get(length)) is not None:
            value &= (1 << bits) - 1
            value -= (value >> (bits - 1) << bits) if signed else 0
        return value

    def replace(match: re.Match[str]) -> str:
        flags, width, precision, length, conversion = match.groups()
        if conversion == "%":
            return "%"
        if conversion not in "diouxXcspeEfFgGaA":
            return match.group()
        dotted = "." in match.group()
        if width == "*":
            number = integer("", True)
            flags, width = (flags + "-", str(-number)) if number < 0 else (flags, str(number))
        if precision == "*":
            precision = str(integer("", True))
            dotted = not precision.startswith("-")
        digits = int(precision or 0) if dotted else None
        body, zeros = _convert(conversion, length or "", flags, digits, integer, next_of, string)
        wide = int(width or 0)
        if "-" in flags:
            return body.ljust(wide)
        if "0" in flags and zeros:
            sign = re.match(r"[-+ ]?(0[xX])?", body)
            lead = sign.group() if sign else ""
            return lead + body[len(lead) :].rjust(wide - len(lead), "0")
        return body.rjust(wide)

    return _DIRECTIVE.sub(replace, text), taken


def _convert(
    conversion: str,
    length: str,
    flags: str,
    digits: int | None,
    integer: Callable[[str, bool], int],
    take: Callable[[int], bytes],
    string: Callable[[int], str],
) -> tuple[str, bool]:
    """An argument as text, and whether it may be filled with zeros."""
    if conversion == "c":
        return chr(integer("", False) & 0xFF), False
    if conversion == "s":
        address = int.from_bytes(take(8), "little")
        return (string(address) if address else "(null)")[:digits], False
    if conversion == "p":
        address = int.from_bytes(take(8), "little")
        return f"0x{address:x}" if address else "(nil)", False
    if conversion in "diouxX":
        signed = conversion in "di"
        value = integer(length, signed)
        text = {"o": f"{abs(value):o}", "x": f"{value:x}", "X": f"{value:X}"}.get(conversion, str(abs(value)))
        text = "" if digits == 0 and value == 0 else text.rjust(digits or 0, "0")
        if "#" in flags and value and conversion in "xX":
            text = "0" + conversion + text
        if "#" in flags and conversion == "o" and not text.startswith("0"):
            text = "0" + text
        return (_sign(value < 0, flags) if signed else "") + text, digits is None
    (value,) = struct.unpack("<d", take(8))
    negative = struct.pack(">d", value)[0] >= 0x80
    if conversion in "aA":
        text = _hexadecimal(abs(value), digits, "#" in flags)
        text = text.upper() if conversion == "A" else text
    else:
        precision = "" if digits is None else f".{digits}"
        text = f"%{'#' if '#' in flags else ''}{precision}{conversion}" % abs(value)
    if math.isnan(value):
        text = "NAN" if conversion.isupper() else "nan"
    return _sign(negative, flags) + text, math.isfinite(value)


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _hexadecimal(value: float, digits: int | None, point: bool) -> str:
    """%a: one digit before the point, as many after it as are needed or asked for; ``point``: the point even without any."""
    if not math.isfinite(value):
        return str(value)
    mantissa, exponent = value.hex()[2:].split("p")
    lead, fraction = mantissa.split(".")
    if digits is None:
        fraction = fraction.rstrip("0")
    else:
        whole = int(lead + fraction, 16)
        shift = 4 * (len(fraction) - digits)
        if shift > 0:
            half, rest = 1 << (shift - 1), whole & ((1 << shift) - 1)
            whole >>= shift
            whole += rest > half or (rest == half and whole & 1)
        else:
            whole <<= -shift
        lead, fraction = f"{whole >> 4 * digits:x}", f"{whole & ((1 << 4 * digits) - 1):0{digits}x}" if digits else ""
    return f"0x{lead}{'.' if fraction or point else ''}{fraction}p{int(exponent):+d}"
