"""Checks at run time."""

from __future__ import annotations

from weft.language.core import Tile, constexpr, stub, tensor


@stub
def device_assert(cond: Tile, msg: str | constexpr = "", mask: Tile | None = None) -> None:
    """Fail unless all elements of ``cond`` (where ``mask`` is true) hold. Kernels check it with ``@weft.jit(debug=True)`` or the
    environment variable ``TRITON_DEBUG=1``; in others it does nothing.

    A launch on the CPU raises `weft.DeviceAssertionError`, with the message and the line. In the emulator and on a card the
    failure ends the launch with an error that has both. Python's ``assert`` is the same.
    """
    ...


@stub
def expect_zero(x: Tile, mask: Tile) -> tensor:
    """``x``, of which the elements under ``mask`` are expected to be zero. Kernels with ``debug=True`` check it."""
    ...
