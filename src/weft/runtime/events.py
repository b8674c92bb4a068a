"""Points in time with the methods of CUDA's events, for programs that time their launches."""

from __future__ import annotations

import time
from typing import Any


class Event:
    """A point in time of this machine's clock, as ``torch.cuda.Event`` is on a card. A launch has ended when it returns."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **rest: Any
    ) -> None:
        self.time = 0.0

    def record(self, stream: Any = None) -> None:
        """Notes the time."""
        self.time = time.perf_counter()

    def elapsed_time(self, end: Any) -> float:
        """The milliseconds to another event."""
        return (end.time - self.time) * 1e3

    def synchronize(self) -> None:
        """Does nothing: all work has ended."""

    def query(self) -> bool:
        """Whether all work has ended: always."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Does nothing: all work has ended."""
