"""Random programs over the public arrays, native against the reference.

``WEFT_ARRAY_PROGRAMS=5000`` runs so many in place of 60; ``tests/array_programs.py`` names the seeds of those that differ.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from array_programs import Program, close, differences, same
from sampling import every
from weft.semantics import SYSTEMS

pytestmark = pytest.mark.jit

COUNT = int(os.environ.get("WEFT_ARRAY_PROGRAMS", "60"))


def check(seeds: range) -> None:
    for seed in seeds:
        program = Program(seed)
        assert not (found := differences(program)), f"seed {seed}: {found}\n{program.text}"


@pytest.mark.parametrize("first", every(2, range(0, COUNT, 10)))
def test_random_programs_agree_with_the_reference(first: int) -> None:
    check(range(first, min(first + 10, COUNT)))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(COUNT, COUNT + 600, 10))
def test_many_random_programs_agree_with_the_reference(first: int) -> None:
    check(range(first, first + 10))


def test_the_programs_cover_systems_and_types() -> None:
    programs = [Program(seed) for seed in range(300)]
    assert {p.system for p in programs} == set(SYSTEMS)
    dtypes = {str(m.array.dtype) for p in programs for m in p.made}
    assert {"bool", "uint64", "float8_e5m2", "bfloat16", "float16", "float64", "complex64"} <= dtypes
    text = "\n".join(p.text for p in programs)
    missing = [
        word
        for word in (
            "@",
            "where(",
            ".cumsum(",
            ".broadcast_to(",
            "reshape",
            "**",
            "//",
            "concatenate",
            "sort(",
            ".at[",
            "pad(",
            "take(",
        )
        if word not in text
    ]
    assert not missing
    assert sum(len(p.made) for p in programs) / len(programs) > 6


def test_what_counts_as_close() -> None:
    one, nan = np.float32(1), np.float32("nan")
    ulp = np.float32(2) ** -23
    assert close(np.array(one + 4 * ulp), np.array(one)) and not close(np.array(one + 5 * ulp), np.array(one))
    assert same(np.array(nan), np.array(nan)) and not same(np.array(nan), np.array(one))
    half = np.float16(1)
    assert close(np.array(half + np.float16(2**-10)), np.array(half))
    assert not close(np.array(half + np.float16(2**-9)), np.array(half))
