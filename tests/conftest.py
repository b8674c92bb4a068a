"""For all tests: a cache of kernels of their own, less garbage collection, and a Hypothesis profile for ``make nightly``."""

from __future__ import annotations

import gc
import os
import tempfile
from typing import cast

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

settings.register_profile("nightly", max_examples=1_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ptxas",
        action="store_true",
        help="ask ptxas about every kernel that a test compiles for a GPU, for every target",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """With ``--ptxas``: kernels that ptxas refuses fail their test."""
    if session.config.getoption("--ptxas"):
        from assembling import assemble_everything

        assemble_everything(pytest.MonkeyPatch())


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled kernels in pytest's cache, which ``make clean`` removes, and not among the user's. All workers share it.
    Their products of NumPy's start no threads: each core has a worker."""
    cache = cast("pytest.Cache | None", getattr(config, "cache", None))  # none where that plugin is off
    if "WEFT_CACHE_DIR" not in os.environ:
        os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp() if cache is None else str(cache.mkdir("kernels"))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_finish() -> None:
    """Take what collection made out of the garbage collector's sight: every full collection would walk it again, which costs
    a seventh of the processor time of the generated kernels. And collect seldom: modules of IR are cycles of many small objects,
    and with Python's thresholds collections take 8 % of the time of tests that compile."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Collect garbage once. At its end pytest collects five times, to find what is raised in finalisers; the first finds it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def apart() -> None:
    """What there is before the first test of a module that asks for this stays out of sight of the garbage collector: each
    ``gc.collect()`` of its tests would walk all that a worker has kept so far, which takes up to a second. Garbage
    is kept, too: to find it takes as long."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker of xdist: report a test's call, and its setup and teardown only where they fail or skip. pytest sends five
    messages a test, which cost 0.4 ms of processor time, a third of it in the process that all workers report to."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
