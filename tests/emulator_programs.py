"""The compiled programs of tests/emulator/programs, read once. `oracles.emulator` lets tests read other compilations of them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from weft.emulator import Module

SOURCES = Path(__file__).parent / "emulator" / "programs"
PROGRAMS = Path(os.environ.get("WEFT_EMULATOR_PROGRAMS", SOURCES))
"""Where the PTX is."""


@cache
def program(name: str) -> Module:
    """The module of a fixture, by its file's name without the ending."""
    return Module((PROGRAMS / f"{name}.ptx").read_text())
