"""Types of the language as hosts write them: ``tl.dtype("fp32")``, ``tl.const``, ``tl.void``."""

from __future__ import annotations

from typing import Any, Final

from weft import dtypes
from weft.dtypes import DType
from weft.language.core import const, constexpr_type, pointer_type

__all__ = ["const", "constexpr_type", "dtype", "str_to_ty", "void"]


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


def str_to_ty(name: Any, c: Any = None) -> Any:
    """The type of a spelling: ``fp32``, ``i32``, ``*fp16``, ``**i8``, ``constexpr`` (of the value ``c``); of a tuple of spellings
    the tuple. Pointers to const memory (``*kfp16``) are pointers."""
    from weft.frontend.values import is_tuple, tuple_like
    from weft.triton.compiler.signatures import dtype_of

    if is_tuple(name):
        return tuple_like(name, (str_to_ty(part, c) for part in name))
    if name.startswith("*"):
        return pointer_type(str_to_ty(name[1:].removeprefix("k")))
    return constexpr_type(c) if name.startswith("constexpr") else dtype_of(name)
