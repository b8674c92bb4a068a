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
    CPUs ignores them, and results do not depend on them. A loop that ``break`` or ``return`` leaves ignores them everywhere."""
    ...


@stub
def condition(arg1: Tile, disable_licm: bool | constexpr = False) -> Any:
    """The condition of a ``while``, with advice: ``while tl.condition(x < n, disable_licm=True)``.

    Returns ``arg1``. ``disable_licm`` asks Triton to leave invariant loads in the loop; results do not depend on it, and weft
    ignores it."""
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
def static_print(
    *values: Any,
    sep: str | constexpr = " ",
    end: str | constexpr = "\n",
    file: Any = None,
    flush: bool | constexpr = False,
) -> None:
    """Print compile-time values, and the types of others, when the kernel is compiled; ``file`` is a stream, standard output by
    default."""
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
