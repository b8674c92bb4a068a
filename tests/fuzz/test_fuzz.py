"""Generated kernels: native code and the reference leave the same in memory.

``make fuzz`` runs many more, in processes that may crash, and shrinks failures; a shrunk one becomes a file in ``regressions``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.case import load
from fuzz.generator import generate
from fuzz.worker import AGREES, Verdict, few_collections, judge, judge_seed
from sampling import some

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.py"))

pytestmark = [pytest.mark.fuzz, pytest.mark.jit]


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with few_collections():
        yield


@pytest.mark.parametrize("seed", some(range(200), *range(80, 200)))
def test_generated(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    verdict = judge_seed(seed, tmp_path)
    assert verdict == Verdict(str(seed), AGREES), f"shrink it with: python tests/fuzz/campaign.py --seed {seed}"


@pytest.mark.parametrize(
    "seed", [*range(16), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(16, 300))]
)
def test_generated_as_ptx(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even seeds run on one GPU, odd ones on another."""
    monkeypatch.setenv("WEFT_CACHE", "0")
    machine = "sm_80" if seed % 2 else "sm_90"
    again = f"run it with: python tests/fuzz/campaign.py --on {machine} --seed {seed}"
    assert judge_seed(seed, tmp_path, [machine]) == Verdict(str(seed), AGREES), again


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_regression(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")
    assert judge(path.name, path, load(path).machines) == Verdict(path.name, AGREES)


def test_generation_is_deterministic() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)
