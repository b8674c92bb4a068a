"""``triton.runtime.driver``: the driver in use. It is made at the first use; a program may set another."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from weft.triton.backends.driver import CpuDriver


class DriverConfig:
    """``default`` is weft's driver, ``active`` the one in use."""

    def __init__(self) -> None:
        self._active: Any = None

    @cached_property
    def default(self) -> CpuDriver:
        """Weft's driver."""
        return CpuDriver()

    @property
    def active(self) -> Any:
        """The driver in use."""
        return self.default if self._active is None else self._active

    def set_active(self, driver: Any) -> None:
        """Uses another driver's answers; launches stay weft's."""
        self._active = driver

    def reset_active(self) -> None:
        """Goes back to weft's driver."""
        self._active = None


driver: Final = DriverConfig()
