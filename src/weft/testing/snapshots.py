"""Profiles stored beside tests: what is stored, and how two of them differ.

A snapshot has a kernel's totals and the counts of each source line, and nothing that depends on where or when it was made:
files by their names, no texts. It is JSON, one line a counter, so that a version-control diff of it reads as what changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from weft.emulator.profile import Profile

VERSION: Final = 1
"""Of the form."""

LISTED: Final = 60
"""Differences that are listed."""

UPDATE: Final = "--update-profiles"
"""The option that stores profiles."""


def snapshot(profile: Profile) -> dict[str, Any]:
    """What is stored of a profile."""
    from weft.emulator.profile import METRICS

    launch = profile.launch
    names = _names(profile.files)
    lines: dict[str, dict[str, int]] = {}
    if profile.lines:
        lines = {f"{names[row.file]}:{row.line}": dict(row.counts) for row in profile.lines}
    else:
        lines = {f"PTX {row.line}": dict(row.counts) for row in profile.instructions if row.counts}
    return {
        "version": VERSION,
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "totals": {name: profile.total(name) for name in METRICS if profile.total(name)},
        "lines": lines,
    }


def _names(files: tuple[str, ...]) -> dict[str, str]:
    """The shortest ends of paths that tell the files apart."""
    from weft.emulator.profile.sources import parts

    split = {file: parts(file) for file in files}
    names: dict[str, str] = {}
    for file, own in split.items():
        depth = 1
        while depth < len(own) and sum(other[-depth:] == own[-depth:] for other in split.values()) > 1:
            depth += 1
        names[file] = "/".join(own[-depth:])
    return names


def read(path: Path) -> dict[str, Any]:
    """A stored snapshot. Raises: ValueError for a file that is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} is no JSON: {error}; write it anew with {UPDATE}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION:  # pyright: ignore[reportUnknownMemberType]
        raise ValueError(f"{path.name} is no profile snapshot of version {VERSION}; write it anew with {UPDATE}")
    return data  # pyright: ignore[reportUnknownVariableType]


def read_or_none(path: Path) -> dict[str, Any] | None:
    """A stored snapshot, None where the file is none."""
    try:
        return read(path)
    except ValueError:
        return None


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Stores a snapshot, in a folder that is made if it is missing."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """How a snapshot differs from the one that was stored, a line each; [] where it does not."""
    rows = list(_differences(old, new))
    if not rows:
        return []
    width = max(len(place) for place, _, _, _ in rows)
    named = max(len(metric) for _, metric, _, _ in rows)
    lines: list[str] = []
    last = ""
    for place, metric, before, after in rows[:LISTED]:
        lines.append(f"  {place if place != last else '':<{width}}  {metric:<{named}}  {before} -> {after}")
        last = place
    if len(rows) > LISTED:
        lines.append(f"  and {len(rows) - LISTED} more")
    return lines


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(place, metric, before, after)."""
    for name in ("kernel", "grid", "block"):
        if old[name] != new[name]:
            yield "launch", name, str(old[name]), str(new[name])
    yield from _counts("total", old["totals"], new["totals"])
    for line in sorted({**old["lines"], **new["lines"]}, key=_position):
        yield from _counts(line, old["lines"].get(line, {}), new["lines"].get(line, {}))


def _counts(place: str, old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[tuple[str, str, str, str]]:
    from weft.emulator.profile import METRICS

    known = [name for name in METRICS if name in old or name in new]
    for name in (*known, *sorted({*old, *new} - METRICS.keys())):
        before, after = old.get(name, 0), new.get(name, 0)
        if before != after:
            yield place, name, f"{before:,}", f"{after:,}"


def _position(line: str) -> tuple[str, int]:
    file, _, number = line.replace(" ", ":").rpartition(":")
    return file, int(number)
