"""Which known name a user may have meant.

One place asks `difflib`, for all messages. It is imported there when a message is written: no launch needs it.
"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar of ``names``, None where no name's similarity (0 to 1, `difflib.SequenceMatcher.ratio`) reaches the
    ``cutoff``."""
    import difflib

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """The question that proposes `nearest`, or ``otherwise``."""
    near = nearest(name, names, cutoff)
    return f"did you mean '{near}'?" if near else otherwise
