"""How long the parts of a kernel's compilation took: the last one of each thread, until it is asked for."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final


class Stages:
    """The microseconds of each part of a compilation of ``kernel``, in their order; a part took at least one. The kernel is not
    kept alive."""

    def __init__(self, kernel: object) -> None:
        self.kernel = weakref.ref(kernel)
        self.times: dict[str, int] = {}

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """What runs inside is the part."""
        started = time.perf_counter_ns()
        yield
        self.times[name] = max(1, (time.perf_counter_ns() - started) // 1000)


class _Last(threading.local):
    stages: Stages | None = None


_LAST: Final = _Last()


def begun(kernel: object) -> Stages:
    """The stages of a compilation that begins in this thread."""
    _LAST.stages = stages = Stages(kernel)
    return stages


def taken(kernel: object) -> dict[str, int] | None:
    """The times of the last compilation in this thread; None where it was another kernel's, or has been taken."""
    last, _LAST.stages = _LAST.stages, None
    return last.times if last is not None and last.kernel() is kernel else None
