"""Signatures as Triton spells them (``"*fp32"``, ``"i32"``, ``"constexpr"``), from and to weft's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.signature import (
    Argument,
    ConstantArgument,
    DescriptorBlock,
    PointerArgument,
    ScalarArgument,
    TupleParts,
    descriptor_names,
    part_names,
)
from weft.frontend.source import KernelFunction

_SHORT: Final[dict[str, DType]] = {
    **{f"{'i' if d.signed else 'u'}{d.bits}": d for d in dtypes.ALL if d.is_integer},
    **{"i1": dtypes.bool_, "u1": dtypes.bool_},
}
"""Spellings that `weft.dtypes.parse` does not know."""

DESCRIPTOR: Final = re.compile(r"tensordesc<(\w+)\[([\d, ]+)\]>")
"""A host's descriptor: the dtype and the sizes of its block."""

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
    found: dict[str, Argument] = {}
    for name in names:
        text = spelled.get(name, "constexpr")
        if (descriptor := DESCRIPTOR.fullmatch(text)) is not None:
            found |= _descriptor(name, dtype_of(descriptor[1]), tuple(map(int, descriptor[2].split(","))))
        else:
            found[name] = _argument(name, text, values, name in divisible)
    return found


def _descriptor(name: str, dtype: DType, block: tuple[int, ...]) -> dict[str, Argument]:
    """The arguments that a descriptor becomes."""
    base, *numbers = descriptor_names(name, len(block))
    return {
        name: ConstantArgument(DescriptorBlock(block, "zero")),
        base: PointerArgument(dtype, True),
        **{number: ScalarArgument(dtypes.int32) for number in numbers},
    }


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


def spelled(kernel: KernelFunction, signature: Mapping[str, Argument]) -> dict[str, Any]:
    """Triton's spelling of weft's signature: a text for each parameter, tuples of them for tuples. A number has the type that the
    parameter is annotated with."""
    found = {name: _spelling(name, signature) for name in signature if "." not in name}
    typed = {p.name: p.dtype for p in kernel.parameters if p.dtype is not None}
    numbers = {name for name in typed if isinstance(signature.get(name), ScalarArgument)}
    return found | {name: spelling_of(typed[name]) for name in numbers}


def _spelling(name: str, signature: Mapping[str, Argument]) -> Any:
    argument = signature[name]
    if isinstance(argument, ConstantArgument):
        if isinstance(argument.value, TupleParts):
            return tuple(_spelling(part, signature) for part in part_names(name, argument.value.count))
        if isinstance(argument.value, DescriptorBlock):
            base = signature[descriptor_names(name, 0)[0]]
            assert isinstance(base, PointerArgument)
            return f"tensordesc<{spelling_of(base.dtype)}{list(argument.value.block_shape)}>"
        return "constexpr"
    return f"{'*' if isinstance(argument, PointerArgument) else ''}{spelling_of(argument.dtype)}"


def _paths(signature: Mapping[str, Argument]) -> Iterator[tuple[tuple[int, ...], Argument]]:
    """Each argument with its place: the parameter's index and, in tuples, those of the items. Parts of descriptors have none."""
    heads = [name for name in signature if "." not in name]
    for name, argument in signature.items():
        head, *items = name.split(".")
        if all(item.isdigit() for item in items):
            yield (heads.index(head), *map(int, items)), argument


def constants_of(signature: Mapping[str, Argument]) -> dict[tuple[int, ...], Any]:
    """The compile-time values of weft's signature, by place."""
    return {
        path: argument.value
        for path, argument in _paths(signature)
        if isinstance(argument, ConstantArgument) and not isinstance(argument.value, (TupleParts, DescriptorBlock))
    }


def constant_parameters(names: list[str], signature: Mapping[str, Argument]) -> dict[str, Any]:
    """The parameters that are compile-time values as a whole."""
    found = ((name, argument.value) for name in names if isinstance(argument := signature[name], ConstantArgument))
    return {name: value for name, value in found if not isinstance(value, (TupleParts, DescriptorBlock))}


def attributes_of(signature: Mapping[str, Argument]) -> dict[tuple[int, ...], list[list[Any]]]:
    """The promises of weft's signature: which arguments are multiples of 16, by place."""
    return {
        path: [_DIVISIBILITY]
        for path, argument in _paths(signature)
        if (isinstance(argument, PointerArgument) and argument.aligned)
        or (isinstance(argument, ScalarArgument) and argument.divisible)
    }
