"""Programs that wait for each other: on native code with all threads, interleaved by the reference, and as PTX in the emulator.

`synchronised` has the kernels. One launch has 2,048 programs, that is hundreds of groups or thousands of hand-overs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synchronised import CASES, Case
from weft import dtypes, reference
from weft.frontend import Argument, ConstantArgument, PointerArgument, build_module
from weft.runtime import executor

pytestmark = pytest.mark.jit

PROGRAMS = 2048
LAUNCHES = 4
RESIDENT = 8
"""Programs of a launch in the emulator."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))


def assert_results(case: Case, before: dict[str, Any], after: dict[str, Any]) -> None:
    """``after`` is what the case expects; where the outcome depends on who came first, the kernel has left that behind."""
    expected = case.expected({**before, **{name: after[name] for name in ("order",) if name in after}})
    for name, value in expected.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, None, 4], ids=["1 thread", "all threads", "4 threads"])
def test_native(name: str, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    if threads is not None:
        pool = executor.Pool(threads)
        monkeypatch.setattr(executor, "pool", lambda: pool)
    before = case.arguments(PROGRAMS)
    for _ in range(LAUNCHES):
        after = {name: array.copy() for name, array in before.items()}
        case.kernel[(PROGRAMS,)](**after, **case.constants)
        assert_results(case, before, after)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["sm_90", pytest.param("sm_80", marks=pytest.mark.nightly)])
def test_emulated(name: str, target: str) -> None:
    """The blocks of a grid are resident together, and the emulator takes them in turns."""
    case = CASES[name]
    before = case.arguments(RESIDENT)
    after = {name: array.copy() for name, array in before.items()}
    case.kernel.on(target)[(RESIDENT,)](**after, **case.constants)
    assert_results(case, before, after)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [None, *range(8)])
def test_reference(name: str, seed: int | None) -> None:
    case = CASES[name]
    before = case.arguments(16)
    signature: dict[str, Argument] = {n: PointerArgument(dtypes.from_numpy(a.dtype)) for n, a in before.items()}
    signature |= {name: ConstantArgument(value) for name, value in case.constants.items()}
    module = build_module(case.kernel, signature)
    after = {name: array.copy() for name, array in before.items()}
    reference.run(module, list(after.values()), (16,), seed)
    assert_results(case, before, after)
