"""The compiled programs of tests/emulator/programs, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from weft.emulator import Module

PROGRAMS = Path(__file__).parent / "emulator" / "programs"


@cache
def program(name: str) -> Module:
    """The module of a fixture, by its file's name without the ending."""
    return Module((PROGRAMS / f"{name}.ptx").read_text())
