"""Measuring configurations: in order, with a progress bar where it takes long, and on disk where it is asked for."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from weft.triton.compiler.compiler import triton_key
from weft.triton.runtime.cache import get_cache_manager
from weft.triton.runtime.configs import Config
from weft.triton.runtime.driver import driver

PATIENCE: Final = 2.0
"""The seconds after which a sweep shows its progress, on a terminal."""

Timings = dict[Config, Any]


def measured(
    name: str, configs: Sequence[Config], bench: Callable[[Config], Any], same: Callable[[Config], object]
) -> Timings:
    """The time of each configuration. Those for which ``same`` gives equal values have one time."""
    first = {same(config): config for config in reversed(configs)}
    chosen = [config for config in configs if first[same(config)] is config]
    times = {same(config): bench(config) for config in _shown(f"autotuning {name}", chosen)}
    return {config: times[same(config)] for config in configs}


def _shown(what: str, configs: Sequence[Config]) -> Iterator[Config]:
    """The configurations, with a progress bar from `PATIENCE` seconds on."""
    if not sys.stderr.isatty():
        yield from configs
        return
    start, rest = time.monotonic(), iter(configs)
    for done, config in enumerate(rest, 1):
        yield config
        if time.monotonic() - start > PATIENCE:
            yield from _with_bar(what, rest, done, len(configs))


def _with_bar(what: str, rest: Iterable[Config], done: int, total: int) -> Iterator[Config]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total, completed=done)
        for config in rest:
            yield config
            progress.advance(task)


def entry(kernel: Any, key: tuple[Any, ...], configs: Sequence[Config]) -> tuple[Any, str]:
    """Where the times of a sweep are kept: the cache's files of its key, and the name of the file."""
    target = driver.active.get_current_target()
    parts = (triton_key(), repr(target), kernel.cache_key, str(key), *map(str, configs))
    digest = hashlib.sha256("-".join(parts).encode()).hexdigest()
    return get_cache_manager(digest), f"{kernel.__name__[:150]}.autotune.json"


def load(manager: Any, file: str) -> Timings | None:
    """The times that are kept, None where there are none."""
    path = manager.get_file(file)
    if path is None:
        return None
    with open(path, encoding="utf-8") as stored:
        return {Config(**config): timing for config, timing in json.load(stored)["configs_timings"]}


def store(manager: Any, file: str, key: tuple[Any, ...], timings: Timings) -> None:
    """Keeps the times."""
    rows = [[vars(config), timing] for config, timing in timings.items()]
    manager.put(json.dumps({"key": [str(part) for part in key], "configs_timings": rows}), file, binary=False)
