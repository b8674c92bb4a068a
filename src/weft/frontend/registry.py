"""The implementations of the language's ops, one for each stub, and the check that both agree.

Signature and meaning are two functions. The stub is what users read and type-check against; the
implementation takes the builder and the *bound* arguments, in the stub's order and without defaults, so that a default
is written once. `check` compares names and parameters of all of them when the frontend is imported: a stub without
meaning, or one renamed, stops the import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from weft.frontend.source import MISSING, Parameter, parameters_of
from weft.frontend.values import Value
from weft.language.core import STUBS

Stub = Callable[..., Any]
Implementation = Callable[..., Value]

IMPLEMENTATIONS: Final[dict[Stub, Implementation]] = {}
"""Stub -> ``implementation(builder, *arguments)``."""


def implements(stub: Stub) -> Callable[[Implementation], Implementation]:
    """Register the meaning of ``stub``: a function of the builder and the stub's parameters, in order."""

    def register(implementation: Implementation) -> Implementation:
        IMPLEMENTATIONS[stub] = implementation
        return implementation

    return register


@cache
def stub_parameters(stub: Stub) -> tuple[Parameter, ...]:
    """The parameters users may pass to ``stub``."""
    return parameters_of(getattr(stub, "__wrapped__", stub))


def implementation_of(stub: Stub) -> Implementation:
    """The meaning of ``stub``; that there is one, `check` has made sure."""
    return IMPLEMENTATIONS[stub]


def check() -> None:
    """Raise `TypeError` unless stubs and implementations have the same names and parameters."""
    for stub, name in STUBS.items():
        if stub not in IMPLEMENTATIONS:
            raise TypeError(f"weft.language.{name} has no implementation in weft.frontend.library")
        implementation = IMPLEMENTATIONS[stub]
        code = implementation.__code__
        found = code.co_varnames[1 : code.co_argcount]
        expected = tuple(p.name for p in stub_parameters(stub))
        if found != expected:
            raise TypeError(f"weft.language.{name} has parameters {expected}, its implementation has {found}")
    for stub in IMPLEMENTATIONS.keys() - STUBS.keys():
        raise TypeError(f"{stub.__module__}.{stub.__qualname__} is implemented but is no stub of weft.language")


__all__ = ["IMPLEMENTATIONS", "MISSING", "check", "implementation_of", "implements", "stub_parameters"]
