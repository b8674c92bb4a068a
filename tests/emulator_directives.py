"""Directives, declarations and the grammar of PTX: modules that show them, and whether ptxas takes each.

``data/directives.txt`` has a module for each: ``### taken NAME`` or ``### refused NAME``, then its text, without its head unless
that matters.

    python tests/emulator_directives.py     asks the ptxas on PATH again, and writes the file
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

RECORD = Path(__file__).parent / "emulator" / "data" / "directives.txt"

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


@dataclass(frozen=True)
class Shown:
    """A module, and whether ptxas takes it."""

    name: str
    taken: bool
    text: str

    @property
    def module(self) -> str:
        """With a head, if it has none."""
        return self.text if self.text.startswith(".version") else HEAD + self.text


def recorded() -> list[Shown]:
    """What is in the file."""
    found: list[Shown] = []
    for part in RECORD.read_text().split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        verdict, _, name = title.partition(" ")
        found.append(Shown(name, verdict == "taken", text + "\n"))
    return found


def ask(shown: Shown) -> str:
    """What ptxas says against it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "shown.ptx"
        source.write_text(shown.module)
        command = ["ptxas", "-arch=sm_100a", "-c", "-o", str(Path(folder) / "shown.cubin"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return (done.stderr or done.stdout) if done.returncode else ""


def write() -> None:
    """Asks again, and writes the file."""
    comment = RECORD.read_text().partition("\n")[0]
    parts = [f"### {'refused' if ask(s) else 'taken'} {s.name}\n{s.text}" for s in recorded()]
    RECORD.write_text(comment + "\n" + "".join(parts))


if __name__ == "__main__":
    write()
