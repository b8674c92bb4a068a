"""The parameters of a kernel, as ``kernel.params`` shows them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class KernelParam:
    """A parameter: its number, Python's description of it, and what launches shall not specialise it for."""

    num: int
    param: inspect.Parameter
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool

    @property
    def name(self) -> str:
        """Its name."""
        return self.param.name

    @cached_property
    def annotation(self) -> str:
        """The annotation as text; empty without one."""
        given = self.param.annotation
        if not given or given is inspect.Parameter.empty:
            return ""
        return given if isinstance(given, str) else inspect.formatannotation(given)

    @property
    def is_constexpr(self) -> bool:
        """Whether it is a compile-time value."""
        return "constexpr" in self.annotation

    @property
    def is_const(self) -> bool:
        """Whether the kernel may not store through it."""
        return "const" in self.annotation and not self.is_constexpr

    @property
    def default(self) -> Any:
        """Its default, or ``inspect.Parameter.empty``."""
        return self.param.default

    @property
    def has_default(self) -> bool:
        """Whether it has one."""
        return self.param.default is not inspect.Parameter.empty
