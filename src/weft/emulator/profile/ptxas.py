"""Registers, spills and shared memory of a kernel, as ptxas reports them: the only part of a profile that PTX does not
determine.

PTX has any number of registers; NVIDIA's assembler allocates the machine's. It needs no GPU, but weft may not distribute it.
Where it is not found, `resources` says so and the profile has no such numbers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from weft.emulator.errors import ToolError


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


def find(tool: str) -> str:
    """The path of ptxas or nvdisasm: WEFT_PTXAS (for nvdisasm, the folder it is in), on PATH, or in ``bin`` of CUDA_HOME.

    Raises: ToolError where it is in none of these.
    """
    chosen = os.environ.get("WEFT_PTXAS", "")
    home = os.environ.get("CUDA_HOME", "")
    if chosen and tool == "ptxas":
        return chosen
    folders = [os.path.dirname(chosen)] if chosen else []
    for path in (*folders, None, *([os.path.join(home, "bin")] if home else [])):
        if found := shutil.which(tool, path=path):
            return found
    raise ToolError(f"{tool} is not found: set WEFT_PTXAS to the path of ptxas, or CUDA_HOME, or put it on PATH")


@lru_cache(maxsize=64)
def _assembled(ptxas: str, text: str, target: str) -> tuple[str, bytes]:
    """What ``ptxas -v`` says, and the machine code. Raises: ToolError."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "module.ptx"), Path(folder, "module.cubin")
        source.write_text(text, encoding="utf-8")
        done = _run("ptxas", [ptxas, "-v", f"-arch={target}", "--output-file", str(binary), str(source)])
        said = done.stdout + done.stderr
        if done.returncode:
            first = next((line for line in said.splitlines() if "error" in line or "fatal" in line), said.strip())
            reason = " ".join(first.replace(str(source), "module.ptx").removeprefix("ptxas").split())
            raise ToolError(f"ptxas refuses the module: {reason}")
        return said, binary.read_bytes() if binary.exists() else b""


def _run(tool: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{tool} did not run: {error}") from None


def known_resources(text: str, kernel: str, target: str) -> Resources:
    """What a kernel of a PTX module needs on a target (``sm_90a``). Raises: ToolError with the reason why that is not known."""
    found = parse(_assembled(find("ptxas"), text, target)[0]).get(kernel)
    if found is None:
        raise ToolError(f"ptxas does not mention kernel '{kernel}'")
    return found


def resources(text: str, kernel: str, target: str) -> Resources | str:
    """As `known_resources`, or why that is not known."""
    try:
        return known_resources(text, kernel, target)
    except ToolError as error:
        return str(error)


def disassembly(text: str, target: str) -> str:
    """The machine code of a PTX module, as nvdisasm prints it. Raises: ToolError."""
    nvdisasm = find("nvdisasm")
    _, code = _assembled(find("ptxas"), text, target)
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder, "module.cubin")
        binary.write_bytes(code)
        done = _run("nvdisasm", [nvdisasm, "-c", str(binary)])
    if done.returncode:
        raise ToolError(f"nvdisasm refuses the module: {' '.join((done.stdout + done.stderr).split())}")
    return done.stdout
