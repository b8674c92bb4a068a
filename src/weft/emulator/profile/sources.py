"""The text of the source files that a profile refers to, where it can be found.

PTX names files as the compiler was given them, on the machine that compiled. They are looked for there, in a directory that the
caller names, or taken from a mapping. A file that is not found is no error: its text is missing from the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.emulator.profile.profile import Profile


def parts(path: str) -> list[str]:
    """The parts of a path as the PTX has it: of POSIX or of Windows, whatever this system is."""
    return re.split(r"[/\\]", path)


def ends(path: str, end: str) -> bool:
    """Whether a path ends with the whole parts of ``end``."""
    wanted = parts(end.lstrip("/\\"))
    return path == end or parts(path)[-len(wanted) :] == wanted


class Sources:
    """Lines of files by the name the PTX has for the file."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._lines = {name: text.splitlines() for name, text in texts.items()}

    @classmethod
    def of(cls, profile: Profile, given: Mapping[str, str] | str | Path | None = None) -> Sources:
        """The files of a profile. ``given``: their text by (the end of) their name, or the directory they are in."""
        found: dict[str, str] = {}
        for name in profile.files:
            text = _given(name, given) if isinstance(given, Mapping) else _read(name, given)
            if text is not None:
                found[name] = text
        return cls(found)

    def line(self, file: str, number: int) -> str:
        """A line's text, "" where it is not known."""
        lines = self._lines.get(file, [])
        return lines[number - 1] if 1 <= number <= len(lines) else ""

    def lines(self, file: str) -> list[str]:
        """A file's lines, [] where it was not found."""
        return self._lines.get(file, [])

    def __bool__(self) -> bool:
        return bool(self._lines)


def _given(name: str, texts: Mapping[str, str]) -> str | None:
    if name in texts:
        return texts[name]
    return next((text for key, text in texts.items() if ends(name, key)), None)


def _read(name: str, folder: str | Path | None) -> str | None:
    places = [Path(name)] if folder is None else [Path(folder, name), Path(folder, parts(name)[-1])]
    for place in places:
        try:
            return place.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return None
