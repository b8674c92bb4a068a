"""PTX text to data."""

from weft.emulator.ptx.parser import parse as parse
