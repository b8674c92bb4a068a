"""The pytest plugin: ``--update-profiles`` and the fixture `profile_snapshot`.

It is loaded whenever pytest starts where weft is installed, so it imports nothing: NumPy and the emulator come with the first
test that has a profile to compare.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from weft.emulator.profile import Profile

FOLDER: Final = "__profiles__"
"""Where snapshots are, beside the test's file."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_.,+=\[\]-]")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    group = parser.getgroup("weft", "profiles of emulated kernels")
    group.addoption("--update-profiles", action="store_true", help="store the profiles that tests compare with")


def file_of(test: str) -> str:
    """The file of a test's snapshot; parameters may have characters that no file name should, and stay apart by a checksum."""
    clean = _ODD.sub("_", test)
    return f"{clean}.json" if clean == test else f"{clean}-{zlib.crc32(test.encode()):08x}.json"


class Snapshots:
    """The snapshots of a test: call it with a profile, and with a ``name`` for each beyond the first."""

    def __init__(self, test: str, folder: Path, update: bool) -> None:
        self._test = test
        self._folder = folder
        self._update = update
        self._used: set[str] = set()

    def __call__(self, profile: Profile, name: str = "") -> None:
        """Compares a profile with the stored one. Raises: AssertionError where they differ, or nothing is stored."""
        from weft.testing import snapshots

        file = file_of(f"{self._test}.{name}" if name else self._test)
        if file in self._used:
            hint = "a name of its own" if name else "a name: profile_snapshot(profile, name=...)"
            raise ValueError(f"profile_snapshot: {FOLDER}/{file} was compared already; give this profile {hint}")
        self._used.add(file)
        path = self._folder / file
        new = snapshots.snapshot(profile)
        if self._update:
            if not path.exists() or snapshots.read_or_none(path) != new:
                snapshots.write(path, new)
            return
        if not path.exists():
            message = f"no profile is stored in {FOLDER}/{file}; {snapshots.UPDATE} stores this one"
            raise AssertionError(message)
        if lines := snapshots.differences(snapshots.read(path), new):
            heading = f"profile of {profile.kernel} differs from {FOLDER}/{file} ({snapshots.UPDATE} stores this one):"
            raise AssertionError("\n".join([heading, *lines]))


@pytest.fixture
def profile_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares profiles with those stored beside the test: ``profile_snapshot(profile)``.

    They are in ``__profiles__/FILE.TEST.json``, ``FILE.CLASS.TEST.json`` for methods.
    """
    cls: type | None = request.node.cls
    parts = [request.path.stem, *([cls.__name__] if cls is not None else []), str(request.node.name)]
    test = ".".join(parts)
    return Snapshots(test, request.path.parent / FOLDER, bool(request.config.getoption("--update-profiles")))
