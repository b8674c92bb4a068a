"""Where a command prints: a terminal as wide as it is, or a file or pipe of 120 columns.

Colours are rich's: none where the output is no terminal or ``NO_COLOR`` is set. Lines are drawn in ASCII where the output's
encoding has no others.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rich.console import Console

WIDTH = 120
"""Columns where nothing says how many there are."""


def console() -> Console:
    """A console on stdout."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(file=sys.stdout, width=None if known else WIDTH, highlight=False, emoji=False, markup=False)


def print_json(data: Any) -> None:
    """Prints data as JSON, in ASCII."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")
