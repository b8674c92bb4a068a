"""``triton.profiler.viewer``: there are no times to show. weft's profiles are those of the emulator (``kernel.profile``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_NOTHING: Final = (
    "weft records no times for triton.profiler; measure with triton.testing.do_bench, or count with 'weft run --device'"
)


def parse(metrics: Sequence[str], filename: str, *filters: Any, **more: Any) -> tuple[None, list[str]]:
    """No tree, and the names of the metrics."""
    return None, list(metrics)


def print_tree(tree: Any, metrics: Sequence[str], *settings: Any, **more: Any) -> None:
    """Prints that there is nothing to show."""
    print(_NOTHING)  # noqa: T201  # printing is what the program asks for


def show_metrics(file_name: str) -> None:
    """Prints that there is nothing to show."""
    print(_NOTHING)  # noqa: T201  # as above
