"""``triton.runtime.errors``: what a launch or a tuning run can raise."""

from __future__ import annotations

from weft.triton.errors import AutotunerError, InterpreterError, OutOfResources, PTXASError

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
