"""The environment variables that weft reads, as data. docs/runtime.md shows this table; a test compares the two."""

from __future__ import annotations

from typing import Final, NamedTuple


class Variable(NamedTuple):
    """An environment variable: its ``name``, the ``default`` in words, and its ``meaning``."""

    name: str
    default: str
    meaning: str


VARIABLES: Final = (
    Variable(
        "WEFT_CACHE", "on", "`0`, `off`, `false` or `no`: compiled kernels are neither read from disk nor written"
    ),
    Variable(
        "WEFT_CACHE_DIR",
        "`weft` in the platform's cache directory",
        "the directory of compiled kernels; it must be the user's own, and no other user may write to it",
    ),
    Variable("WEFT_CHECKED", "off", "`1`, `on`, `true` or `yes`: `checked=True` for kernels that do not say"),
    Variable("WEFT_NUM_THREADS", "the CPUs the process may use", "threads that run a grid, the caller among them"),
    Variable(
        "WEFT_PTXAS",
        "`ptxas` on PATH, else in `bin` of CUDA_HOME",
        "the path of ptxas, which says registers and spills; nvdisasm is looked for beside it",
    ),
    Variable(
        "WEFT_TARGET",
        "`native`, this CPU",
        "the CPU that kernels are compiled for: `native`, or `x86-64`, `x86-64-v2`, `x86-64-v3` (AVX2, FMA) or `x86-64-v4` "
        "(AVX-512); then features as LLVM names them, added or taken away: `native,-amx-tile`, `x86-64-v4,+avx512vnni`",
    ),
)
"""Read by the package."""

TEST_VARIABLES: Final = (
    Variable("WEFT_ARRAY_PROGRAMS", "60", "generated programs that `tests/array/test_array_fuzz_api.py` runs"),
    Variable("WEFT_EMULATOR_PROGRAMS", "those in the tree", "a folder of PTX programs for the emulator's tests"),
)
"""Read by tests only."""


def table(variables: tuple[Variable, ...]) -> str:
    """The variables as a Markdown table."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{v.name}` | {v.default} | {v.meaning} |" for v in variables])
