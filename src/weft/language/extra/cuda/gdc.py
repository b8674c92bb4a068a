"""Programmatic dependent launch: a kernel that begins while the one before it still runs.

weft starts a launch when the one before it is over, on every machine. So what these functions ask for holds already, and they do
nothing. Triton documents them as safe where dependent launch is off.
"""

from __future__ import annotations

from weft.language.core import composite


@composite
def gdc_wait() -> None:
    """Wait until the kernel before is over, and see what it wrote."""


@composite
def gdc_launch_dependents() -> None:
    """Let the next kernel begin."""
