"""Types of the language as hosts write them: ``tl.dtype("fp32")``, ``tl.const``, ``tl.void``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from weft import dtypes
from weft.dtypes import DType
from weft.language.core import block_type as _block_type
from weft.language.core import const, constexpr_type, pointer_type

__all__ = ["const", "constexpr_type", "dtype", "str_to_ty", "tensor_descriptor_type", "void"]


class _DtypeMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (DType, pointer_type))

    def __call__(cls, name: str) -> Any:
        return void if name == "void" else dtypes.named(name)


class dtype(metaclass=_DtypeMeta):
    """The class of dtypes, to test for and to annotate with; ``dtype("fp32")`` is `tl.float32`."""

    SINT_TYPES: Final = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: Final = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: Final = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES: Final = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: Final = ["void"]

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Whether a text is the name of a dtype."""
        return type_str in {*dtype.SINT_TYPES, *dtype.UINT_TYPES, *dtype.FP_TYPES, *dtype.OTHER_TYPES}


class _Void:
    """The type of no value."""

    name = "void"

    def __repr__(self) -> str:
        return "void"


void: Final = _Void()


@dataclass(frozen=True)
class tensor_descriptor_type:
    """The type of a tensor descriptor: that of its blocks, and those of its sizes and strides."""

    block_type: _block_type
    shape_type: tuple[DType, ...]
    strides_type: tuple[DType, ...]

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"


def str_to_ty(name: Any, c: Any = None) -> Any:
    """The type of a spelling: ``fp32``, ``i32``, ``*fp16``, ``**i8``, ``tensordesc<fp16[8, 8]>``, ``constexpr`` (of ``c``);
    of a tuple of spellings the tuple. Pointers to const memory (``*kfp16``) are pointers."""
    from weft.frontend.values import is_tuple, tuple_like
    from weft.triton.compiler.signatures import DESCRIPTOR, dtype_of

    if is_tuple(name):
        return tuple_like(name, (str_to_ty(part, c) for part in name))
    if name.startswith("*"):
        return pointer_type(str_to_ty(name[1:].removeprefix("k")))
    if (descriptor := DESCRIPTOR.fullmatch(name)) is not None:
        block = tuple(map(int, descriptor[2].split(",")))
        types = tuple([dtypes.int32] * len(block)), tuple([dtypes.int64] * len(block))
        return tensor_descriptor_type(_block_type(dtype_of(descriptor[1]), block), *types)
    return constexpr_type(c) if name.startswith("constexpr") else dtype_of(name)
