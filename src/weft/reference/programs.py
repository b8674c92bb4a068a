"""The programs of a grid, one after the other or interleaved.

A program runs in *steps*: it stops before each access that other programs watch (``observed`` in the table of
`weft.ir.memory`), and whoever runs the grid decides which program makes the next step. Between two stops no other program
runs. For programs without races that shows every behaviour the memory model allows but those of relaxed order: what a
program does between two such accesses cannot be seen before the second.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, TypeAlias, TypeVar

PATIENCE: Final = 10_000
"""Steps for each running program in which no memory changes and no program ends, before the grid counts as stuck."""

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""A computation that stops now and then and returns a ``T``."""


class UndefinedBehaviourError(RuntimeError):
    """The kernel broke a promise whose breach the IR leaves undefined: `tile.assume`, a loop's positive step, the order in
    which programs may wait for each other."""


def finish(steps: Steps[T]) -> T:
    """Runs a computation to its end without a stop."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def run_all(programs: Iterable[Steps[object]], changes: Callable[[], int], seed: int | None) -> None:
    """Runs the programs of a grid, given in the order in which they start.

    Without ``seed`` each ends before the next starts. With it they are interleaved: before each step a program is drawn from
    those that run and the next one to start; equal seeds draw alike. ``changes`` counts how often memory has
    changed. Raises `UndefinedBehaviourError` when every running program only waits.
    """
    draw = random.Random(seed)
    waiting: Iterator[Steps[object]] = iter(programs)
    running: list[Steps[object]] = []
    following = next(waiting, None)
    seen, idle = changes(), 0
    while running or following is not None:
        start = following is not None and (not running or (seed is not None and draw.randrange(len(running) + 1) == 0))
        if start and following is not None:
            running.append(following)
            following = next(waiting, None)
            idle = 0
        chosen = draw.randrange(len(running)) if seed is not None and not start else len(running) - 1
        try:
            next(running[chosen])
        except StopIteration:
            del running[chosen]
            idle = 0
        seen, idle = (seen, idle + 1) if changes() == seen else (changes(), 0)
        if idle > PATIENCE * len(running) and running:
            raise UndefinedBehaviourError(
                f"{len(running)} running programs only wait: memory has not changed for {idle} steps; "
                "a program may wait for lower ones only"
            )
