"""``triton.profiler`` (Proton): accepted, and nothing is recorded. `weft.triton.profiler.viewer` says so where a program asks for
the times."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, Final

DEFAULT_PROFILE_NAME: Final = "proton"


def start(name: str | None = None, **settings: Any) -> int:
    """The number of the only session."""
    return 0


def activate(session: int | None = None) -> None:
    """Does nothing."""


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Does nothing."""


def finalize(session: int | None = None, output_format: str | None = "") -> None:
    """Does nothing: no file is written."""


def profile(func: Callable[..., Any] | None = None, **settings: Any) -> Any:
    """Returns the function as it is."""
    return (lambda function: function) if func is None else func  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]


class scope(ContextDecorator):
    """A context, or a decorator, that changes nothing."""

    def __init__(self, name: str, metrics: dict[str, Any] | None = None) -> None:
        self.name = name
        self.metrics = metrics

    def __enter__(self) -> scope:
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing."""


class cpu_timed_scope(scope):
    """As `scope`."""


class state(scope):
    """As `scope`."""


class metadata_state(scope):
    """As `scope`."""

    def __init__(self) -> None:
        super().__init__("metadata")


def enter_scope(name: str, *, metrics: dict[str, Any] | None = None) -> int:
    """The number of the only scope."""
    return 0


def exit_scope(name: str | None = None, *, metrics: dict[str, Any] | None = None) -> int:
    """The number of the only scope."""
    return 0


def enter_state(name: str) -> None:
    """Does nothing."""


def exit_state() -> None:
    """Does nothing."""
