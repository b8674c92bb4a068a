"""Ops that touch memory."""

from __future__ import annotations

from typing import Final

from weft import language as tl
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.literals import represents
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe, is_number
from weft.ir import tile

CACHE_MODIFIERS: Final = (None, "", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt")
EVICTION_POLICIES: Final = (None, "", "evict_first", "evict_last", "evict_normal")
ORDERINGS: Final = (None, "relaxed", "acquire", "release", "acq_rel")
SCOPES: Final = (None, "gpu", "cta", "sys")


def _one_of(value: Value, allowed: tuple[str | None, ...], argument: str) -> None:
    """Refuse a misspelled piece of advice, which would otherwise be dropped silently."""
    if value not in allowed:
        names = ", ".join(repr(name) for name in allowed if name)
        raise CompilationError(f"'{argument}' is one of {names}, found {describe(value)}", argument=argument)


def _pointer(value: Value) -> Tensor:
    if not isinstance(value, Tensor) or not value.is_pointer:
        raise CompilationError(
            f"'pointer' is a pointer or a tile of pointers, found {describe(value)}",
            hint="add offsets to a pointer argument: ptr + offsets",
            argument="pointer",
        )
    return value


def _mask(b: Builder, pointer: Tensor, value: Value, grows: bool = False) -> tuple[Tensor, Tensor | None]:
    """The pointers, and the mask in their shape; a mask known to be true is none. Where the pointers may grow to the shape
    of the mask, as in Triton's loads, ``grows`` says so: an access that writes would write an element twice."""
    if value is None or value is True:
        return pointer, None
    mask = b.tensor(value, "mask")
    if mask.is_pointer or not mask.dtype.is_bool:
        raise CompilationError(
            f"'mask' is a tile of bools, found {describe(value)}",
            hint="compare to get bools, for example offsets < n",
            argument="mask",
        )
    if mask.shape and not pointer.shape:
        raise CompilationError(
            f"'mask' has shape {mask.shape}, but 'pointer' is one pointer",
            hint="add offsets to the pointer, or use a scalar mask",
            argument="mask",
        )
    if not grows:
        return pointer, _fitted(b, pointer, mask, "mask")
    pointer, mask = b.broadcast(pointer, mask)
    return pointer, mask


def _value(b: Builder, pointer: Tensor, value: Value, argument: str) -> Tensor:
    """What is stored, in the dtype pointed to and the shape of the pointers."""
    if is_number(value) and represents(pointer.dtype, value):
        return b.constant(value, pointer.dtype, pointer.shape)
    element = b.tensor(value, argument)
    if element.is_pointer:
        raise CompilationError(f"'{argument}' is a tile of numbers, found {describe(element)}", argument=argument)
    return _fitted(b, pointer, b.cast(element, pointer.dtype), argument)


def _fitted(b: Builder, pointer: Tensor, x: Tensor, argument: str) -> Tensor:
    """``x`` in the shape of the pointers: a scalar, or a tile of as many dimensions whose sizes of 1 grow. What a load
    returns where it is masked off may have fewer dimensions, as in Triton."""
    missing = len(pointer.shape) - len(x.shape)
    if x.shape and missing > 0 and argument != "other":
        hint = f"give it {len(pointer.shape)} dimensions: insert them with [:, None] or [None, :] where they belong"
    elif missing < 0 or any(n not in (1, m) for m, n in zip(pointer.shape[missing:], x.shape, strict=True)):
        hint = "give pointers and values the same shape"
    else:
        return b.broadcast_to(x, pointer.shape)
    raise CompilationError(
        f"'{argument}' has shape {x.shape}, which does not broadcast to the pointers' {pointer.shape}",
        hint=hint,
        argument=argument,
    )


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
    pointers, bools = _mask(b, _pointer(pointer), mask, grows=True)
    if other is not None and mask is None:
        raise CompilationError(
            "'other' is what masked-off elements get, so it needs a mask", hint="pass mask=", argument="other"
        )
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
        raise CompilationError(
            f"tl.atomic_add does not add {pointers.dtype}", hint="keep sums in a wider dtype", argument="pointer"
        )
    added = _value(b, pointers, val, "val")
    op = b.emit(tile.AtomicRmwOp("add", pointers.ssa, added.ssa, None if bools is None else bools.ssa))
    return Tensor(op.result, pointers.dtype, pointers.shape)
