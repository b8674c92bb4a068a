"""What happens while a kernel is compiled: loops, checks, messages, and the user's word about values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.language.core import Tile, constexpr, stub, tensor


@stub
def range(
    arg1: Any,
    arg2: Any = None,
    step: Any = None,
    num_stages: int | constexpr | None = None,
    loop_unroll_factor: int | constexpr | None = None,
    disallow_acc_multi_buffer: bool | constexpr = False,
    flatten: bool | constexpr = False,
    warp_specialize: bool | constexpr = False,
    disable_licm: bool | constexpr = False,
) -> Iterable[Any]:
    """Python's range for a ``for`` loop at run time.

    The keywords are advice for GPUs. They become attributes of the loop in tile IR (``tile.num_stages`` and so on); code for
    CPUs ignores them, and results do not depend on them."""
    ...


@stub
def static_range(
    arg1: int | constexpr, arg2: int | constexpr | None = None, step: int | constexpr | None = None
) -> Iterable[Any]:
    """A compile-time range: the loop is unrolled and its variable is a compile-time int."""
    ...


@stub
def static_assert(cond: bool | constexpr, msg: str | constexpr = "") -> None:
    """Fail to compile with ``msg`` unless the compile-time ``cond`` is true."""
    ...


@stub
def static_print(*values: Any, sep: str | constexpr = " ", end: str | constexpr = "\n") -> None:
    """Print compile-time values, and the types of others, when the kernel is compiled."""
    ...


@stub
def assume(cond: Tile) -> None:
    """The scalar ``cond`` holds: the compiler may use it. Where it does not, anything may happen."""
    ...


@stub
def multiple_of(input: Any, values: Any) -> Any:
    """``input``, whose contiguous runs start at multiples of ``values`` (one a dimension)."""
    ...


@stub
def max_contiguous(input: Any, values: Any) -> Any:
    """``input``, in which runs of ``values`` (one a dimension) elements increase by 1."""
    ...


@stub
def max_constancy(input: Any, values: Any) -> Any:
    """``input``, in which runs of ``values`` (one a dimension) elements are equal."""
    ...


@stub
def to_tensor(x: Tile) -> tensor:
    """A compile-time number as a scalar of the run time; tiles pass unchanged."""
    ...
