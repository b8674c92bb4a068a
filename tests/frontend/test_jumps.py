"""``break``, ``continue`` and ``return`` in loops: random programs against Python, through the reference interpreter.

`codegen/test_jumps_differential.py` compares the machines with that interpreter.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.conftest import execute
from frontend.jump_programs import LENGTH, Program, compiled, traced
from sampling import every


@pytest.mark.parametrize("seed", every(150, range(250)))
def test_traces(seed: int, tmp_path: Path) -> None:
    """Eight programs for each seed."""
    for k in range(8):
        program = Program(seed * 8 + k).text()
        kernel = compiled(program, tmp_path, f"jumps_{seed}_{k}").kernel
        for n in (0, 3):
            out = np.zeros(LENGTH, np.int32)
            execute(kernel, out=out, n=np.int32(n))
            assert out.tolist() == traced(program, n), f"seed {seed * 8 + k}, n {n}:\n{program}"
