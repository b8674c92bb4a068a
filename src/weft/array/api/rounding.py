"""Functions of more than one step: ``round`` to decimals and ``clip`` by one bound, as each system builds them."""

from __future__ import annotations

from typing import Any, Final

from weft.array.api.lazy import Array, apply, as_argument, system_of
from weft.array.building import operations
from weft.semantics import PromotionError

_DECIMALS: Final = frozenset(("numpy", "jax", "torch"))
"""The systems that round to decimals."""


def family(array: Array) -> str:
    """The system of an array without its version."""
    name = array.semantics.name.partition("@")[0]
    return "jax" if name.startswith("jax") else name


def rounded(array: Array, decimals: int) -> Array:
    """``array`` to so many decimals."""
    if not decimals:
        return apply("round", array)
    name = family(array)
    if name not in _DECIMALS:
        raise PromotionError(
            f"{array.semantics.name} rounds to whole numbers, found decimals={decimals}",
            f"write round(x * {10.0 ** abs(decimals)}) / {10.0 ** abs(decimals)}",
        )
    apply("round", array)  # refuses what it refuses without decimals
    dtype = array.dtype
    if dtype.is_bool:
        raise PromotionError(f"round to {decimals} decimals takes no bool", "convert with .astype('float32') first")
    if dtype.is_integer:
        if name == "numpy" and decimals < 0:
            scaled = apply("rint", array / 10.0**-decimals) * 10.0**-decimals
            return scaled.astype(dtype)
        if name == "torch" or decimals < 0:
            way = "convert with .to(torch.float32)" if name == "torch" else "convert with .astype(jnp.float32)"
            raise PromotionError(f"round of {dtype} to {decimals} decimals is not implemented in {name}", way)
        return apply("round", array)
    through = name == "torch" and dtype.bits == 16 or name == "jax" and dtype.name == "float16"
    wide = array.astype("float32") if through else array
    factor: Any = 10.0 ** abs(decimals)
    if decimals > 0 or name == "jax":
        scale = factor if decimals > 0 else 10.0**decimals
        found = apply("round", wide * scale) / scale
    else:
        found = apply("round", wide / factor) * factor
    return found if found.dtype == dtype else found.astype(dtype)


def clip_one(x: Any, bound: Any, op: str) -> Array:
    """``x`` limited from one side (``maximum``: not below ``bound``), with the types of a ``clamp`` by that bound twice."""
    system = system_of("clamp", (x, bound))
    sides = [as_argument(system, "clamp", side) for side in (x, bound)]
    for side, found in zip(sides, (x, bound), strict=True):
        if side is None:
            raise TypeError(f"'clamp' takes arrays and numbers, found {type(found).__name__}")
    given = [side for side in sides if side is not None]
    return Array(operations.clamp_one(system, op, *given), system)
