"""Signatures as Triton spells them (``"*fp32"``, ``"i32"``, ``"constexpr"``), from and to weft's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.signature import Argument, ConstantArgument, PointerArgument, ScalarArgument

_SHORT: Final[dict[str, DType]] = {
    **{f"{'i' if d.signed else 'u'}{d.bits}": d for d in dtypes.ALL if d.is_integer},
    **{"i1": dtypes.bool_, "u1": dtypes.bool_},
}
"""Spellings that `weft.dtypes.parse` does not know."""

_DIVISIBILITY: Final = ["tt.divisibility", 16]


def dtype_of(spelled: str) -> DType:
    """The type of a spelling such as ``i32`` or ``fp16``. Raises: `ValueError` for an unknown one."""
    return _SHORT.get(spelled) or dtypes.named(spelled)


def spelling_of(dtype: DType) -> str:
    """The short spelling of a type: ``i32``, ``u1``, ``fp16``."""
    if dtype.is_bool:
        return "u1"
    return f"{'i' if dtype.signed else 'u'}{dtype.bits}" if dtype.is_integer else dtype.triton


def read(
    names: list[str], signature: Mapping[Any, str], constants: Mapping[Any, Any], attributes: Mapping[Any, Any]
) -> dict[str, Argument]:
    """Weft's signature. Keys are names, indices, or tuples of an index. Parameters that are not mentioned are None."""
    spelled = {_name(names, key): value for key, value in signature.items()}
    values = {_name(names, key): value for key, value in constants.items()}
    divisible = {_name(names, key) for key, given in attributes.items() if _DIVISIBILITY in [list(a) for a in given]}
    return {name: _argument(name, spelled.get(name, "constexpr"), values, name in divisible) for name in names}


def _name(names: list[str], key: Any) -> str:
    if isinstance(key, tuple):
        key = key[0]  # pyright: ignore[reportUnknownVariableType]
    return names[key] if isinstance(key, int) else str(key)  # pyright: ignore[reportUnknownArgumentType]


def _argument(name: str, spelled: str, constants: Mapping[str, Any], divisible: bool) -> Argument:
    if name in constants or spelled == "constexpr":
        value = constants.get(name)
        return ConstantArgument(getattr(value, "value", value) if type(value).__name__ == "constexpr" else value)
    if spelled.startswith("*"):
        return PointerArgument(dtype_of(spelled[1:].removeprefix("k")), divisible)
    return ScalarArgument(dtype_of(spelled), divisible)


def spelled(signature: Mapping[str, Argument]) -> dict[str, str]:
    """Triton's spelling of weft's signature."""
    return {name: _spelling(argument) for name, argument in signature.items()}


def _spelling(argument: Argument) -> str:
    if isinstance(argument, ConstantArgument):
        return "constexpr"
    return f"{'*' if isinstance(argument, PointerArgument) else ''}{spelling_of(argument.dtype)}"


def attributes_of(signature: Mapping[str, Argument]) -> dict[tuple[int, ...], list[list[Any]]]:
    """The promises of weft's signature: which parameters are multiples of 16, by index."""
    return {
        (i,): [_DIVISIBILITY]
        for i, argument in enumerate(signature.values())
        if (isinstance(argument, PointerArgument) and argument.aligned)
        or (isinstance(argument, ScalarArgument) and argument.divisible)
    }
