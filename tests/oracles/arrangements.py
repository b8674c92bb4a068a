"""Asks the packages about the operations on whole arrays (`weft.semantics.arrangement`) and records their answers.

``python tests/oracles/arrangements.py --system jax`` asks one package about the cases of ``tests/array/arrangements/cases.txt``.
``--write`` records its answers there, which ``tests/array/test_array_arrangements.py`` compares with weft's. Without it the exit
status is 1 where an answer is not the recorded one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console

from oracles import environments
from oracles.probes.arrange_probe import TYPES

FOLDER: Final = Path(__file__).parents[1] / "array" / "arrangements"
PROBE: Final = Path(__file__).parent / "probes" / "arrange_probe.py"
PACKAGES: Final = {"numpy": "numpy", "torch": "torch", "jax": "jax", "jax-x32": "jax", "max": "max", "dali": "dali"}
"""The package that answers for a system."""


def cases(system: str) -> Iterator[str]:
    """The expressions for a system; those with ``$`` once for each type."""
    asked = False
    for line in (FOLDER / "cases.txt").read_text().splitlines():
        if line.startswith("["):
            asked = system in line.strip("[]").split()
        elif asked and line and not line.startswith("#"):
            yield from [line.replace("$", f"a_{name}") for name in TYPES] if "$" in line else [line]


def recorded(system: str) -> dict[str, str]:
    """What the package answered."""
    lines = (FOLDER / f"{system}.txt").read_text().splitlines()
    return dict(line.split(" => ", 1) for line in lines if not line.startswith("#"))


def ask(system: str) -> dict[str, str]:
    """What the package answers now."""
    questions = list(cases(system))
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "asked.json", Path(folder) / "answered.json"
        asked.write_text(json.dumps(questions))
        python = environments.python(PACKAGES[system])
        subprocess.run([str(python), "-W", "ignore", str(PROBE), system, str(asked), str(answered)], check=True)
        return dict(zip(questions, json.loads(answered.read_text()), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", choices=[*PACKAGES], action="append")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    console = Console(highlight=False, markup=False, soft_wrap=True)
    differences = 0
    for system in options.system or PACKAGES:
        found = ask(system)
        if options.write:
            lines = (f"{question} => {answer}" for question, answer in found.items())
            (FOLDER / f"{system}.txt").write_text("\n".join(lines) + "\n")
            continue
        known = recorded(system)
        for question, answer in found.items():
            before = known.get(question, "")
            if before != answer and not (before[:1] == answer[:1] == "!"):  # the words of refusals change between runs
                differences += 1
                console.print(f"{system}: {question}\n  now      {answer}\n  recorded {before}")
        console.print(f"{system}: {len(found)} expressions")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
