"""Ops that read and write memory through tiles of pointers. ``pointer + i`` counts elements."""

from __future__ import annotations

from typing import Any

from weft.dtypes import int32
from weft.language.compiletime import static_assert, to_tensor
from weft.language.core import Tile, composite, constexpr, stub, tensor
from weft.language.elementwise import meaning
from weft.language.reduction import min
from weft.language.registers import globaltimer


@stub
def load(
    pointer: tensor,
    mask: Tile | None = None,
    other: Tile | None = None,
    boundary_check: Any = (),
    padding_option: str | constexpr = "",
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
    volatile: bool | constexpr = False,
) -> tensor:
    """Load one element through each pointer and return them as a tile of the pointers' shape.

    Where ``mask`` (bools, broadcast to the pointers) is false no memory is touched and the element is ``other``
    (converted to the dtype pointed to), or unspecified without it.

    Through a block pointer (`make_block_ptr`) its block is loaded, without mask. ``boundary_check`` lists the dimensions along
    which the block may reach beyond the array. There elements are 0 or NaN as ``padding_option`` says (``zero``, ``nan``), or
    unspecified without it. Along other dimensions nothing is checked.

    A ``volatile`` load reads memory each time it is executed, and later accesses of the program come after it: use it to
    wait for a value that another program stores. ``cache_modifier`` (``.ca``, ``.cg``, ``.cv``) and ``eviction_policy``
    (``evict_first``, ``evict_last``) are advice; results do not depend on them.
    """
    ...


@stub
def store(
    pointer: tensor,
    value: Tile,
    mask: Tile | None = None,
    boundary_check: Any = (),
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
) -> None:
    """Write ``value`` (broadcast, converted to the dtype pointed to) where ``mask`` is true.

    Through a block pointer ``value`` has the block's shape and dtype (a number is converted), and is written where
    the dimensions in ``boundary_check`` say that the array has elements.

    In a kernel that waits for other programs (by a volatile load or an atomic) a store through one pointer comes after
    all accesses before it, so that it can raise a flag. ``cache_modifier`` (``.wb``, ``.cg``, ``.cs``, ``.wt``) and
    ``eviction_policy`` (``evict_first``, ``evict_last``) are advice; results do not depend on them.
    """
    ...


@stub
def atomic_add(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Add ``val`` to memory, each element indivisibly, and return what was there before.

    Elements of one tile that meet at an address all count. ``sem`` is the order that other accesses of the program keep:
    ``acquire`` (later ones stay after it), ``release`` (earlier ones stay before it), ``acq_rel`` (both, the default) or
    ``relaxed`` (neither). ``scope`` (``cta``, ``gpu``, ``sys``; default ``gpu``) says for which threads; a CPU always
    orders for all.
    """
    ...


@stub
def atomic_max(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Replace memory by the greater of it and ``val``, as `atomic_add` adds; return what was there before."""
    ...


@stub
def atomic_min(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Replace memory by the lesser of it and ``val``, as `atomic_add` adds; return what was there before."""
    ...


@stub
def atomic_and(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Replace memory by ``memory & val``, as `atomic_add` adds; return what was there before. For integers."""
    ...


@stub
def atomic_or(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Replace memory by ``memory | val``, as `atomic_add` adds; return what was there before. For integers."""
    ...


@stub
def atomic_xor(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Replace memory by ``memory ^ val``, as `atomic_add` adds; return what was there before. For integers."""
    ...


@stub
def atomic_xchg(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Store ``val`` as `atomic_add` adds, and return what was there before."""
    ...


@stub
def atomic_cas(
    pointer: tensor,
    cmp: Tile,
    val: Tile,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Store ``val`` where memory holds ``cmp``, each element indivisibly, and return what was there before.

    Elements are compared by their bits: NaN equals itself, and 0.0 is not -0.0. ``sem`` and ``scope`` are those of
    `atomic_add`; the order holds also where nothing is stored.
    """
    ...


@stub
def atomic_load(
    pointer: tensor,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Load each element indivisibly where ``mask`` is true; elsewhere it is unspecified.

    ``sem`` is ``acquire`` (the default: later accesses of the program stay after it) or ``relaxed``. A machine may give a
    stronger order and a wider scope than asked for; weft's give ``acquire`` and ``sys``.
    """
    ...


@stub
def atomic_store(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> None:
    """Store each element of ``val`` indivisibly where ``mask`` is true.

    ``sem`` is ``release`` (the default: earlier accesses of the program stay before it) or ``relaxed``. A machine may give a
    stronger order and a wider scope than asked for; weft's give ``release`` and ``sys``.
    """
    ...


@composite
def atomic_poll(
    pointer: tensor,
    expected_value: Tile,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
    timeout_ns: Tile | None = None,
) -> tensor:
    """Load the integers at ``pointer``, as `atomic_load` does, until each has been ``expected_value``; return which have.

    Without ``timeout_ns`` all have. With 0 each element is loaded once, else until so many nanoseconds have passed: on GPUs of
    their global timer, in the emulator so many instructions of all warps.
    """
    element = pointer.dtype.element_ty
    static_assert(
        element.is_int() and element.primitive_bitwidth in (16, 32, 64),
        "takes pointers to integers of 16, 32 or 64 bits",
    )
    expected = to_tensor(expected_value).to(element)
    found = meaning("equal", atomic_load(pointer, None, sem, scope), expected)
    static_assert(found.shape == pointer.shape, "'expected_value' does not broadcast to the shape of the pointers")
    if timeout_ns is None:
        if len(pointer.shape) == 0:
            while not found:
                found = meaning("equal", atomic_load(pointer, None, sem, scope), expected)
        else:
            while min(found.to(int32)) == 0:
                found = found | meaning("equal", atomic_load(pointer, ~found, sem, scope), expected)
    elif isinstance(timeout_ns, tensor) or timeout_ns != 0:
        start = globaltimer()
        if len(pointer.shape) == 0:
            while not found and globaltimer() - start < timeout_ns:
                found = meaning("equal", atomic_load(pointer, None, sem, scope), expected)
        else:
            while min(found.to(int32)) == 0 and globaltimer() - start < timeout_ns:
                found = found | meaning("equal", atomic_load(pointer, ~found, sem, scope), expected)
    return found


@stub
def debug_barrier() -> None:
    """Keep all accesses of the program before this point from all those after it."""
    ...
