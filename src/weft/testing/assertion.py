"""`assert_profile`: what a kernel's counters must be, and where the difference comes from if they are not.

All counters are compared before the assertion fails. Each that differs is listed with the source lines that have it, the line
with the most first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from weft.emulator.profile import Counts, Profile

Expected: TypeAlias = "int | float | tuple[float, float] | Callable[[Any], bool]"
"""A number, the least and the most it may be, or a function that says whether it is right."""

LISTED: Final = 5
"""Lines that are listed for a counter."""


def assert_profile(profile: Profile, *, at: str | None = None, **expected: Expected) -> None:
    """Asserts counters of a launch, or of its source line ``at`` (``"kernel.cu:12"``).

    A counter is a metric (`weft.emulator.profile.METRICS`; ``bank_conflicts=0``, ``global_sectors=(0, 4096)``) or
    ``lane_efficiency``. Raises: AssertionError, which lists every counter that is not as expected and the lines that have it;
    ValueError for what is no metric or cannot be expected; KeyError for a line that has no instruction.
    """
    if not expected:
        raise ValueError("assert_profile: nothing is expected; name counters, such as bank_conflicts=0")
    counts = profile.totals if at is None else profile[at]
    rows: Sequence[Counts] = (profile.lines or profile.instructions) if at is None else profile[at].instructions
    wrong: list[str] = []
    for name, wanted in expected.items():
        value = _value(counts, name)
        if not _holds(name, wanted, value):
            wrong.append(f"  {name} is {_number(value)}, expected {_described(wanted)}\n{_causes(rows, name)}")
    if wrong:
        where = profile.kernel if at is None else f"{profile.kernel} at {at}"
        plural = "s are" if len(wrong) > 1 else " is"
        raise AssertionError(f"profile of {where}: {len(wrong)} counter{plural} not as expected\n" + "\n".join(wrong))


def _value(counts: Counts, name: str) -> float:
    return counts.lane_efficiency if name == "lane_efficiency" else counts[name]


def _holds(name: str, wanted: Any, value: float) -> bool:
    if callable(wanted):
        return bool(wanted(value))
    if isinstance(wanted, tuple):
        low, high = _bounds(name, wanted)  # pyright: ignore[reportUnknownArgumentType]
        return low <= value <= high
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return value == wanted
    raise _no_expectation(name, wanted)


def _bounds(name: str, wanted: tuple[Any, ...]) -> tuple[float, float]:
    if len(wanted) != 2 or not all(isinstance(bound, int | float) for bound in wanted):
        raise _no_expectation(name, wanted)
    return wanted[0], wanted[1]


def _no_expectation(name: str, wanted: Any) -> ValueError:
    return ValueError(f"assert_profile: {name}={wanted!r} is no number, (least, most) or function")


def _described(wanted: Any) -> str:
    if callable(wanted):
        return f"what {getattr(wanted, '__name__', repr(wanted))} accepts"
    if isinstance(wanted, tuple):
        low, high = wanted  # pyright: ignore[reportUnknownVariableType]
        return f"{_number(low)} to {_number(high)}"  # pyright: ignore[reportUnknownArgumentType]
    return _number(wanted)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _causes(rows: Sequence[Counts], name: str) -> str:
    """The lines that have a counter, the most first; for lanes those that waste the most."""
    if name == "lane_efficiency":
        measured = [(32 * row["executions"] - row["threads"], row) for row in rows]
        unit = " idle lanes"
    else:
        measured = [(row[name], row) for row in rows]
        unit = ""
    ranked = sorted((item for item in measured if item[0]), key=lambda item: -item[0])
    if not ranked:
        return "      no line has any"
    lines = [f"      {_place(row)}  {_number(number)}{unit}" for number, row in ranked[:LISTED]]
    if len(ranked) > LISTED:
        lines.append(f"      and {len(ranked) - LISTED} more")
    return "\n".join(lines)


def _place(row: Any) -> str:
    """A source line's name, or a PTX line and what stands there."""
    name = getattr(row, "name", None)
    return name if name is not None else f"PTX {row.line}: {row.text}"
