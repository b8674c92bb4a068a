"""Ops that touch memory."""

from __future__ import annotations

from typing import Final

from weft import language as tl
from weft.frontend.blocks import BlockPointer
from weft.frontend.builder import Builder
from weft.frontend.constness import refuse_const
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import flag, word
from weft.frontend.library.blocks import load_of, store_of
from weft.frontend.literals import represents
from weft.frontend.promotion import converted
from weft.frontend.registry import Stub, implements
from weft.frontend.values import Tensor, Value, describe, is_number
from weft.ir import tile
from weft.ir.tile import ATOMIC, EVICTIONS, LOAD_CACHES, SCOPES, SEMANTICS, STORE_CACHES, class_of


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
    if not element.is_pointer:
        return _fitted(b, pointer, converted(b, element, pointer.dtype), argument)
    if argument == "value" and pointer.dtype.is_integer and pointer.dtype.bits == 64:
        return _fitted(b, pointer, b.bitcast(element, pointer.dtype), argument)  # an address is its number
    raise CompilationError(f"'{argument}' is a tile of numbers, found {describe(element)}", argument=argument)


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


def _refuse_block_arguments(**given: Value) -> None:
    """Arguments that only block pointers take: other pointers know no shape."""
    for argument, value in given.items():
        if value not in (None, (), ""):
            raise CompilationError(
                f"'{argument}' is for block pointers, which know the shape of their array",
                hint="pass mask=, or make a block pointer with tl.make_block_ptr",
                argument=argument,
            )


@implements(tl.load)
def _load(
    b: Builder,
    pointer: Value,
    mask: Value,
    other: Value,
    boundary_check: Value,
    padding_option: Value,
    cache_modifier: Value,
    eviction_policy: Value,
    volatile: Value,
) -> Tensor:
    cache = word(cache_modifier, LOAD_CACHES, "cache_modifier")
    evict = word(eviction_policy, EVICTIONS, "eviction_policy")
    again = flag(volatile, "volatile")
    if isinstance(pointer, BlockPointer):
        pointers, bools, default = load_of(b, pointer, mask, other, boundary_check, padding_option)
    else:
        _refuse_block_arguments(boundary_check=boundary_check, padding_option=padding_option)
        pointers, bools = _mask(b, _pointer(pointer), mask, grows=True)
        if other is not None and mask is None:
            raise CompilationError(
                "'other' is what masked-off elements get, so it needs a mask", hint="pass mask=", argument="other"
            )
        default = None if other is None or bools is None else _value(b, pointers, other, "other")
    optional = [None if x is None else x.ssa for x in (b.reached(pointers.shape, bools), default)]
    op = b.emit(tile.LoadOp(pointers.ssa, *optional, volatile=again, cache=cache, evict=evict))
    return Tensor(op.result, pointers.dtype, pointers.shape)


@implements(tl.store)
def _store(
    b: Builder,
    pointer: Value,
    value: Value,
    mask: Value,
    boundary_check: Value,
    cache_modifier: Value,
    eviction_policy: Value,
) -> None:
    cache = word(cache_modifier, STORE_CACHES, "cache_modifier")
    evict = word(eviction_policy, EVICTIONS, "eviction_policy")
    if isinstance(pointer, BlockPointer):
        pointers, stored, bools = store_of(b, pointer, value, mask, boundary_check)
    else:
        _refuse_block_arguments(boundary_check=boundary_check)
        pointers, bools = _mask(b, _pointer(pointer), mask)
        stored = _value(b, pointers, value, "value")
    refuse_const(b, pointers)
    bools = b.reached(pointers.shape, bools)
    b.emit(tile.StoreOp(pointers.ssa, stored.ssa, None if bools is None else bools.ssa, cache=cache, evict=evict))


def _atomic(b: Builder, kind: str, pointer: Value, val: Value, mask: Value, sem: Value, scope: Value) -> Tensor:
    """A read-modify-write op of a kind; the dtypes it takes are in the kind's row of `ATOMIC`."""
    order, between = word(sem, SEMANTICS, "sem", "acq_rel"), word(scope, SCOPES, "scope", "gpu")
    pointers, bools = _mask(b, _pointer(pointer), mask)
    dtype = pointers.dtype
    if b.follows_triton and (dtype.bits < 16 or (dtype.is_integer and dtype.bits == 16)):
        raise CompilationError(
            f"atomic_{kind} does not support {dtype.triton}", hint=_HINTS.get(kind, _HINT), argument="pointer"
        )
    if class_of(dtype) not in ATOMIC[kind] or (dtype.is_float8 and kind != "xchg"):
        raise CompilationError(
            f"tl.atomic_{kind} does not take {dtype}", hint=_HINTS.get(kind, _HINT), argument="pointer"
        )
    refuse_const(b, pointers)
    operand = _value(b, pointers, val, "val")
    bools = b.reached(pointers.shape, bools)
    active = None if bools is None else bools.ssa
    op = b.emit(tile.AtomicRmwOp(kind, pointers.ssa, operand.ssa, active, sem=order, scope=between))
    return Tensor(op.result, dtype, pointers.shape)


_HINT: Final = "keep the value in an integer array"
_HINTS: Final = {
    "add": "keep sums in a wider dtype",
    "min": "keep it in a wider dtype",
    "max": "keep it in a wider dtype",
}


def _register(stub: Stub, kind: str) -> None:
    @implements(stub)
    def _(b: Builder, pointer: Value, val: Value, mask: Value, sem: Value, scope: Value) -> Tensor:
        return _atomic(b, kind, pointer, val, mask, sem, scope)


for _kind in ATOMIC:
    _register(getattr(tl, f"atomic_{_kind}"), _kind)


def _weaker_order(sem: Value, scope: Value, strong: str) -> None:
    """Check the words of a plain atomic access: each machine gives the strongest order that it takes, and the widest scope."""
    word(sem, ("relaxed", strong), "sem", strong)
    word(scope, SCOPES, "scope", "gpu")


@implements(tl.atomic_load)
def _atomic_load(b: Builder, pointer: Value, mask: Value, sem: Value, scope: Value) -> Tensor:
    _weaker_order(sem, scope, "acquire")
    pointers, bools = _mask(b, _pointer(pointer), mask, grows=True)
    bools = b.reached(pointers.shape, bools)
    op = b.emit(tile.LoadOp(pointers.ssa, None if bools is None else bools.ssa, volatile=True))
    return Tensor(op.result, pointers.dtype, pointers.shape)


@implements(tl.atomic_store)
def _atomic_store(b: Builder, pointer: Value, val: Value, mask: Value, sem: Value, scope: Value) -> None:
    _weaker_order(sem, scope, "release")
    pointers, bools = _mask(b, _pointer(pointer), mask)
    refuse_const(b, pointers)
    stored, bools = _value(b, pointers, val, "val"), b.reached(pointers.shape, bools)
    b.emit(tile.StoreOp(pointers.ssa, stored.ssa, None if bools is None else bools.ssa, release=True))


@implements(tl.atomic_cas)
def _atomic_cas(b: Builder, pointer: Value, cmp: Value, val: Value, sem: Value, scope: Value) -> Tensor:
    order, between = word(sem, SEMANTICS, "sem", "acq_rel"), word(scope, SCOPES, "scope", "gpu")
    pointers = _pointer(pointer)
    if pointers.dtype.is_bool:
        raise CompilationError(f"tl.atomic_cas does not take {pointers.dtype}", hint=_HINT, argument="pointer")
    refuse_const(b, pointers)
    expected, new = _value(b, pointers, cmp, "cmp"), _value(b, pointers, val, "val")
    op = b.emit(tile.AtomicCasOp(pointers.ssa, expected.ssa, new.ssa, sem=order, scope=between))
    return Tensor(op.result, pointers.dtype, pointers.shape)


@implements(tl.debug_barrier)
def _debug_barrier(b: Builder) -> None:
    b.emit(tile.BarrierOp())
