"""Tests of code for several targets, as far as this machine runs it."""

from __future__ import annotations

import pytest

from weft import target as targets
from weft.runtime import compiler
from weft.target import CpuTarget


def compiled_for(text: str, monkeypatch: pytest.MonkeyPatch) -> CpuTarget:
    """The target that ``WEFT_TARGET`` spells so, as what a test's kernels are compiled for, unless they were compiled
    before. Skips the test on a CPU that does not have its instructions."""
    try:
        chosen = targets.made_of(targets.host(), text)
    except ValueError as lacks:
        pytest.skip(f"this CPU does not run the instructions of the target: {lacks}")
    monkeypatch.setattr(targets, "host", lambda: chosen)
    monkeypatch.setattr(compiler, "machine_key", lambda: repr(chosen))  # of kernels on disk
    return chosen
