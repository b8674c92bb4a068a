"""One virtual environment for each package, outside weft's own.

Each package is installed alone in ``.oracles/NAME``, without weft, and answers as a child process (`oracles.probe.ask`). They
pin different versions of NumPy and LLVM, and some of their failures end the process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2] / ".oracles"

_NUMBERS: Final = ("numpy==2.4.6", "ml_dtypes==0.6.0")

REQUIREMENTS: Final[dict[str, tuple[str, ...]]] = {
    "jax": ("jax==0.10.2", "jaxlib==0.10.2", *_NUMBERS),
    "dali": ("nvidia-dali-cuda120==2.4.0", *_NUMBERS),
    "triton": ("triton==3.9.0", *_NUMBERS),
    "torch": ("torch==2.13.0", *_NUMBERS),
    "max": ("max==26.7.0", *_NUMBERS),
    "numpy": _NUMBERS,
    "nvrtc": (
        *(f"nvidia-cuda-{part}==13.5.37" for part in ("nvrtc", "runtime", "crt")),
        "nvidia-cuda-cccl==13.3.5.0.6",
    ),
}
"""What is installed for each package; the only place where versions are named."""


def python(name: str) -> Path:
    """The interpreter that has the package; made where it is missing or of another version."""
    home = ROOT / name
    interpreter = home / "bin" / "python"
    stamp = home / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[name]) + "\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return interpreter
    sys.stderr.write(f"Installing {' '.join(REQUIREMENTS[name])} into {home.relative_to(ROOT.parent)} ...\n")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *REQUIREMENTS[name]], check=True)
    stamp.write_text(wanted)
    return interpreter
