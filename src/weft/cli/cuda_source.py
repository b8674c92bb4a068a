"""CUDA sources on the command line: nvcc makes them PTX with the lines of the source, where it is installed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path


def compiled(path: Path, target: str) -> str:
    """The PTX of a CUDA source for a target (``sm_90a``). Raises: ValueError without nvcc, and where nvcc refuses the source."""
    from weft.emulator import ToolError
    from weft.emulator.profile.ptxas import find

    try:
        nvcc = find("nvcc")
    except ToolError:
        raise ValueError(
            f"{path.name} is CUDA source, and nvcc is not found: set CUDA_HOME, or put nvcc on PATH, "
            f"or give the PTX that nvcc -ptx -lineinfo makes of {path.name} elsewhere"
        ) from None
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "module.ptx")
        command = [nvcc, "-ptx", "-lineinfo", "-std=c++17", f"-arch={target}", "-o", str(made), str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise ValueError(f"nvcc did not run: {error}") from None
        if done.returncode:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            first = next((line for line in said if "error" in line), said[0] if said else "no message")
            raise ValueError(f"nvcc refuses {path.name}: {first.strip()}")
        return made.read_text(encoding="utf-8", errors="replace")
