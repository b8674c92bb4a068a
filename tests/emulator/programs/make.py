"""Compiles the CUDA C programs of this folder to the PTX beside them (``python tests/emulator/programs/make.py``; needs nvcc).

Each PTX says in its first line which compiler made it, and how. Paths in it are cut to file names, so that the same compiler
makes the same text anywhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """How a PTX fixture is made: of which source, for which architecture, with which names defined."""

    name: str
    architecture: str
    source: str = ""
    defines: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The source's name."""
        return f"{self.source or self.name}.cu"

    @property
    def flags(self) -> list[str]:
        """What the compiler is told beside the architecture."""
        return ["-lineinfo", *(f"-D{name}" for name in self.defines)]


RECIPES = (
    Recipe("elementwise", "sm_80"),
    Recipe("reduction", "sm_80"),
    Recipe("transpose", "sm_80"),
    Recipe("matmul", "sm_80"),
    Recipe("attention", "sm_80"),
    Recipe("hopper", "sm_90a"),
    Recipe("hopper_unfenced", "sm_90a", "hopper", ("WITHOUT_PROXY_FENCE",)),
    Recipe("calls", "sm_80"),
    Recipe("conversions", "sm_90"),
    Recipe("faults", "sm_80"),
    Recipe("faults_repaired", "sm_80", "faults", ("REPAIRED",)),
)


def without_paths(ptx: str) -> str:
    """The text with the directories of its ``.file`` lines cut off."""
    return re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"]*/', r"\1", ptx)


def compile_with_nvcc(recipe: Recipe, nvcc: str = "nvcc") -> str:
    """The PTX of a recipe."""
    version = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    (release,) = re.findall(r"release .*, V([\d.]+)", version)
    arguments = ["-ptx", f"-arch={recipe.architecture}", *recipe.flags, recipe.file]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.ptx"
        subprocess.run([nvcc, *arguments, "-o", str(output)], check=True, cwd=HERE, capture_output=True)
        ptx = output.read_text()
    return f"// Compiled by nvcc {release}: nvcc {' '.join(arguments)}\n{without_paths(ptx)}"


def main() -> None:
    """Writes every fixture, or those named."""
    for recipe in RECIPES:
        if len(sys.argv) == 1 or recipe.name in sys.argv[1:]:
            (HERE / f"{recipe.name}.ptx").write_text(compile_with_nvcc(recipe))


if __name__ == "__main__":
    main()
