"""Ops that touch memory."""

from __future__ import annotations

from typing import Final

from weft import language as tl
from weft.frontend.builder import Builder
from weft.frontend.errors import fail
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe
from weft.ir import tile

CACHE_MODIFIERS: Final = (None, "", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt")
EVICTION_POLICIES: Final = (None, "", "evict_first", "evict_last", "evict_normal")
ORDERINGS: Final = (None, "relaxed", "acquire", "release", "acq_rel")
SCOPES: Final = (None, "gpu", "cta", "sys")


def _one_of(value: Value, allowed: tuple[str | None, ...], argument: str) -> None:
    """Refuse a misspelled piece of advice, which would otherwise be dropped silently."""
    if value not in allowed:
        names = ", ".join(repr(name) for name in allowed if name)
        fail(f"'{argument}' is one of {names}, found {describe(value)}", argument=argument)


def _pointer(value: Value) -> Tensor:
    if not isinstance(value, Tensor) or not value.is_pointer:
        fail(
            f"'pointer' is a pointer or a tile of pointers, found {describe(value)}",
            hint="add offsets to a pointer argument: ptr + offsets",
            argument="pointer",
        )
    return value


def _mask(b: Builder, pointer: Tensor, value: Value) -> tuple[Tensor, Tensor | None]:
    """The pointers in the shape of their mask, and the mask in the pointers'; a mask known to be true is none."""
    if value is None or value is True:
        return pointer, None
    mask = b.tensor(value, "mask")
    if mask.is_pointer or not mask.dtype.is_bool:
        fail(
            f"'mask' is a tile of bools, found {describe(value)}",
            hint="compare to get bools, for example offsets < n",
            argument="mask",
        )
    if mask.shape and not pointer.shape:
        fail(
            f"'mask' has shape {mask.shape}, but 'pointer' is one pointer",
            hint="add offsets to the pointer, or use a scalar mask",
            argument="mask",
        )
    pointer, mask = b.broadcast(pointer, mask)
    return pointer, mask


def _value(b: Builder, pointer: Tensor, value: Value, argument: str) -> Tensor:
    """What is stored, in the dtype pointed to and the shape of the pointers."""
    element = b.tensor(value, argument) if isinstance(value, Tensor) else None
    if element is None:
        b.semantics.literal(value) if isinstance(value, (bool, int, float)) else b.tensor(value, argument)
        if isinstance(value, int) and pointer.dtype.is_integer and not pointer.dtype.min <= value <= pointer.dtype.max:
            return b.broadcast_to(b.cast(b.tensor(value, argument), pointer.dtype), pointer.shape)
        if isinstance(value, float) and not pointer.dtype.is_float:
            return b.broadcast_to(b.cast(b.tensor(value, argument), pointer.dtype), pointer.shape)
        return b.constant(value, pointer.dtype, pointer.shape)
    if element.is_pointer:
        fail(f"'{argument}' is a tile of numbers, found {describe(element)}", argument=argument)
    rank = len(pointer.shape)
    fits = len(element.shape) <= rank and all(
        n in (1, m) for m, n in zip(pointer.shape[rank - len(element.shape) :], element.shape, strict=True)
    )
    if not fits:
        fail(
            f"'{argument}' has shape {element.shape}, which does not broadcast to the pointers' {pointer.shape}",
            hint="give pointers and values the same shape",
            argument=argument,
        )
    return b.broadcast_to(b.cast(element, pointer.dtype), pointer.shape)


@implements(tl.load)
def _load(
    b: Builder,
    pointer: Value,
    mask: Value,
    other: Value,
    cache_modifier: Value,
    eviction_policy: Value,
    volatile: Value,
) -> Tensor:
    _one_of(cache_modifier, CACHE_MODIFIERS, "cache_modifier")
    _one_of(eviction_policy, EVICTION_POLICIES, "eviction_policy")
    pointers, bools = _mask(b, _pointer(pointer), mask)
    if other is not None and mask is None:
        fail("'other' is what masked-off elements get, so it needs a mask", hint="pass mask=", argument="other")
    default = None if other is None or bools is None else _value(b, pointers, other, "other").ssa
    op = b.emit(tile.LoadOp(pointers.ssa, None if bools is None else bools.ssa, default))
    return Tensor(op.result, pointers.dtype, pointers.shape)


@implements(tl.store)
def _store(
    b: Builder, pointer: Value, value: Value, mask: Value, cache_modifier: Value, eviction_policy: Value
) -> None:
    _one_of(cache_modifier, CACHE_MODIFIERS, "cache_modifier")
    _one_of(eviction_policy, EVICTION_POLICIES, "eviction_policy")
    pointers, bools = _mask(b, _pointer(pointer), mask)
    stored = _value(b, pointers, value, "value")
    b.emit(tile.StoreOp(pointers.ssa, stored.ssa, None if bools is None else bools.ssa))


@implements(tl.atomic_add)
def _atomic_add(b: Builder, pointer: Value, val: Value, mask: Value, sem: Value, scope: Value) -> Tensor:
    _one_of(sem, ORDERINGS, "sem")
    _one_of(scope, SCOPES, "scope")
    pointers, bools = _mask(b, _pointer(pointer), mask)
    if pointers.dtype.is_bool or pointers.dtype.is_float8:
        fail(f"tl.atomic_add does not add {pointers.dtype}", hint="keep sums in a wider dtype", argument="pointer")
    added = _value(b, pointers, val, "val")
    op = b.emit(tile.AtomicRmwOp("add", pointers.ssa, added.ssa, None if bools is None else bools.ssa))
    return Tensor(op.result, pointers.dtype, pointers.shape)
