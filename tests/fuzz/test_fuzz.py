"""Generated kernels: native code, PTX in the emulator and the reference leave the same in memory.

``make fuzz`` runs many more, in processes that may crash, and shrinks failures; a shrunk one becomes a file in ``regressions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.case import NATIVE, load
from fuzz.generator import generate
from fuzz.worker import AGREES, Verdict, few_collections, judge, judge_seed
from sampling import some

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.py"))

pytestmark = [pytest.mark.fuzz, pytest.mark.jit]


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with few_collections():
        yield


def covering(seeds: range) -> set[int]:
    """Seeds whose kernels call each function of the language that those of all seeds call: one after the other those that call
    most of what is left."""
    calls = {seed: set(re.findall(r"tl\.[\w.]+", generate(seed))) for seed in seeds}
    left = set[str]().union(*calls.values())
    chosen: set[int] = set()
    while left:
        best = max(seeds, key=lambda seed: len(calls[seed] & left))
        chosen.add(best)
        left -= calls[best]
    return chosen


SEEDS = range(400)


@pytest.mark.parametrize("seed", some(SEEDS, *(set(SEEDS) - covering(SEEDS))))
def test_generated(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Natively and as PTX: even seeds for one GPU, odd ones for another. ``make test`` has some 20 kernels, which call
    each function that the 400 call."""
    monkeypatch.setenv("WEFT_CACHE", "0")
    machines = (NATIVE, "sm_80" if seed % 2 else "sm_90")
    again = f"shrink it with: python tests/fuzz/campaign.py --on {' '.join(machines)} --seed {seed}"
    assert judge_seed(seed, tmp_path, machines) == Verdict(str(seed), AGREES), again


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_regression(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    assert judge(path.name, path, load(path).machines) == Verdict(path.name, AGREES)


def test_generation_is_deterministic() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)
