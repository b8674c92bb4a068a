"""Saying once what a stand-in stands in for."""

from __future__ import annotations

import sys
from typing import Final

_SAID: Final[set[str]] = set()


class Settings:
    """Whether notices are printed."""

    quiet = False


def say(what: str, instead: str) -> None:
    """Prints, at its first use, that ``instead`` stands in for ``what``."""
    if what not in _SAID and not Settings.quiet:
        _SAID.add(what)
        sys.stderr.write(f"weft: {what}: {instead}\n")
