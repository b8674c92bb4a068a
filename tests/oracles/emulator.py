"""Runs the emulator's program tests on what today's compilers make of the programs (``make oracles``).

The PTX in ``tests/emulator/programs`` is what nvcc and Triton once made of the sources beside it. Here NVRTC and the Triton
package, each from its environment under ``.oracles``, compile the same sources again, and the same tests run on their PTX:
other instructions and registers, in another order, with the same results, counts and faults. The exit status is pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracles import environments

TESTS: Final = Path(__file__).parents[1] / "emulator"
SUITES: Final = ("cuda", "hopper", "faults", "library", "triton")
"""``test_emu_programs_*.py``."""


def main() -> int:
    """Compiles into a folder that is then gone, and tests."""
    with tempfile.TemporaryDirectory() as folder:
        for package, command in (("nvrtc", ("make.py", "--nvrtc")), ("triton", ("make_triton.py", "--out"))):
            script = [str(environments.python(package)), str(TESTS / "programs" / command[0])]
            environment = {"PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run([*script, command[1], folder], check=True, env=os.environ | environment)
        tests = [str(TESTS / f"test_emu_programs_{suite}.py") for suite in SUITES]
        environment = {"WEFT_EMULATOR_PROGRAMS": folder}
        return subprocess.run(
            [sys.executable, "-m", "pytest", *tests], check=False, env=os.environ | environment
        ).returncode


if __name__ == "__main__":
    raise SystemExit(main())
