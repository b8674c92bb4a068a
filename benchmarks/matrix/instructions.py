"""How weft and its peers are held to fewer instructions than the machine has: what a laptop without AVX-512 would show.

Each package reads a variable of its own when it is loaded. Caches, memory and the clock stay those of this machine, and C's
compiler tunes for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

VARIABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "x86-64-v3": {
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+popcnt",
    },
}
"""By level of x86-64: NumPy (the names of 2.4, and those of versions before it; it ignores what it does not know) and its
OpenBLAS, PyTorch with its oneDNN and MKL, JAX, Numba."""


def hold_to(level: str) -> None:
    """Holds this process to a level of `VARIABLES`; before any package is imported. weft keeps the tuning that it has on any
    machine of the architecture (`weft.target.TUNING`)."""
    os.environ.update(VARIABLES[level])
    from weft.target import TUNING

    tuning = [name for name, cpus in TUNING.items() if "x86_64" in cpus]
    os.environ["WEFT_TARGET"] = ",".join([level, *(f"+{name}" for name in tuning)])
