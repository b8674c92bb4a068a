"""Checks and prints at run time."""

from __future__ import annotations

from weft.language.core import Tile, constexpr, stub, tensor


@stub
def device_print(prefix: str | constexpr, *args: Tile, hex: bool | constexpr = False) -> None:
    """Print each element of each of ``args`` on a line of its own, behind the program's ids, the index and ``prefix``::

        pid (0, 0, 0) idx ( 3) x: 7

    Without ``args`` a line has the ids and the prefix. A scalar is printed once for each program. ``hex`` prints integers in
    hexadecimal, floats as C's ``%a``. Launches on the CPU and in the emulator write to ``sys.stdout``; a card's driver to the
    process's standard output. Python's ``print`` is the same. Programs print in any order.
    """
    ...


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
