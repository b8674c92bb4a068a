"""Registers, spills and shared memory of a kernel, as ptxas reports them: the only part of a profile that PTX does not
determine.

PTX has any number of registers; NVIDIA's assembler allocates the machine's. It needs no GPU, but weft may not distribute it.
Where it is not on PATH, `resources` says so and the profile has no such numbers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Resources:
    """What a kernel needs of the hardware, per thread or block."""

    registers: int
    """Of 32 bits, per thread."""
    spill_stores: int
    """Bytes per thread that stores of spilled registers write."""
    spill_loads: int
    stack: int
    """Bytes of local memory per thread, spills included."""
    shared: int
    """Bytes of static shared memory per block."""


MISSING: Final = "ptxas is not on PATH"

_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_FRAME: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_FUNCTION: Final = re.compile(r"Function properties for (\S+)")
_REGISTERS: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")


def parse(said: str) -> dict[str, Resources]:
    """The resources of each kernel in what ``ptxas -v`` says."""
    found: dict[str, Resources] = {}
    entry = ""
    frames: dict[str, tuple[int, int, int]] = {}
    about = ""
    for line in said.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
        elif match := _FUNCTION.search(line):
            about = match[1]
        elif match := _FRAME.search(line):
            stack, stores, loads = map(int, match.groups())
            frames[about] = (stack, stores, loads)
        elif (match := _REGISTERS.search(line)) and entry:
            stack, stores, loads = frames.get(entry, (0, 0, 0))
            shared = _SHARED.search(line)
            found[entry] = Resources(int(match[1]), stores, loads, stack, int(shared[1]) if shared else 0)
            entry = ""
    return found


@lru_cache(maxsize=64)
def resources(text: str, kernel: str, target: str) -> Resources | str:
    """What a kernel of a PTX module needs on a target (``sm_90a``), or why that is not known."""
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        return MISSING
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "module.ptx")
        source.write_text(text, encoding="utf-8")
        command = [ptxas, "-v", f"-arch={target}", "--output-file", str(Path(folder, "module.cubin")), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"ptxas did not run: {error}"
    said = done.stdout + done.stderr
    if done.returncode:
        first = next((line for line in said.splitlines() if "error" in line or "fatal" in line), said.strip())
        reason = " ".join(first.replace(str(source), "module.ptx").removeprefix("ptxas").split())
        return f"ptxas refuses the module: {reason}"
    return parse(said).get(kernel) or f"ptxas does not mention kernel '{kernel}'"
