"""For all tests: less garbage collection, and a Hypothesis profile for ``make nightly``."""

from __future__ import annotations

import gc

from hypothesis import settings

settings.register_profile("nightly", max_examples=1_000)


def pytest_collection_finish() -> None:
    """Take what collection made out of the garbage collector's sight: every full collection would walk it again, which costs
    a seventh of the processor time of the generated kernels. And collect seldom: modules of IR are cycles of many small objects,
    and with Python's thresholds collections take 8 % of the time of tests that compile."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
