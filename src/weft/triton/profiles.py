"""What emulated launches did, kept for the report at the end of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from weft.emulator import Profile


class Launches:
    """Of each kernel, how often it was launched, and what the last launch did."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, Profile]] = {}

    def add(self, profile: Profile) -> None:
        """Notes a launch."""
        times, _ = self._last.get(profile.kernel, (0, profile))
        self._last[profile.kernel] = times + 1, profile

    @property
    def kernels(self) -> list[str]:
        """Their names."""
        return list(self._last)

    def clear(self) -> None:
        """Forgets them."""
        self._last.clear()

    def print(self, file: TextIO) -> None:
        """Prints them."""
        from rich.console import Console

        console = Console(file=file)
        for name, (times, profile) in self._last.items():
            console.print(f"\n{name}: launched {times} time{'s' * (times != 1)}; the last launch:", highlight=False)
            console.print(profile.render())


LAUNCHES: Final = Launches()
