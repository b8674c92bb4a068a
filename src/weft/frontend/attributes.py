"""``value.name``: the attributes of tiles, dtypes, types and modules, as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend import aggregates, registry
from weft.frontend.aggregates import Aggregate, PythonMethod
from weft.frontend.builder import Builder
from weft.frontend.compound import Compound
from weft.frontend.errors import CompilationError, nearest
from weft.frontend.source import MISSING
from weft.frontend.values import Method, Tensor, Value, as_value, describe, is_number, is_record, is_runtime, is_tuple
from weft.language import elementwise, shape
from weft.language.aggregates import is_aggregate
from weft.language.core import Absent, block_type, constexpr, constexpr_type, pointer_type

METHODS: Final[dict[str, Any]] = {
    "to": tl.cast,
    "item": shape.item,
    "logical_and": elementwise.logical_and,
    "logical_or": elementwise.logical_or,
    **{
        name: getattr(tl, name)
        for name in [
            "abs",
            "add",
            "advance",
            "argmax",
            "argmin",
            "associative_scan",
            "assume",
            "atomic_add",
            "atomic_and",
            "atomic_cas",
            "atomic_load",
            "atomic_max",
            "atomic_min",
            "atomic_or",
            "atomic_poll",
            "atomic_store",
            "atomic_xchg",
            "atomic_xor",
            "broadcast_to",
            "cast",
            "cdiv",
            "ceil",
            "clamp",
            "cos",
            "cumprod",
            "cumsum",
            "div_rn",
            "erf",
            "exp",
            "exp2",
            "expand_dims",
            "fdiv",
            "flip",
            "floor",
            "fma",
            "gather",
            "histogram",
            "log",
            "log2",
            "max",
            "max_constancy",
            "max_contiguous",
            "maximum",
            "min",
            "minimum",
            "mul",
            "multiple_of",
            "permute",
            "ravel",
            "reduce",
            "reduce_or",
            "reshape",
            "rsqrt",
            "sigmoid",
            "sin",
            "softmax",
            "sort",
            "split",
            "store",
            "sqrt",
            "sqrt_rn",
            "sub",
            "sum",
            "trans",
            "view",
            "where",
            "xor_sum",
        ]
    },
}
"""Functions of the language that are methods of tiles."""

_TENSOR: Final[dict[str, Callable[[Tensor], Value]]] = {
    "dtype": lambda x: x.element,
    "shape": lambda x: x.shape,
    "type": lambda x: block_type(x.element, x.shape) if x.shape else x.element,
    "numel": lambda x: math.prod(x.shape),
}

_DTYPE: Final[dict[str, Callable[[DType], Value]]] = {
    "name": lambda d: d.triton,
    "primitive_bitwidth": lambda d: d.itemsize * 8 if d.is_float else d.bits,
    "itemsize": lambda d: d.itemsize,
    "scalar": lambda d: d,
    "element_ty": lambda d: d,
    "value": lambda d: d,  # in Triton of a constexpr that has the dtype
}

_INTEGER: Final[dict[str, Callable[[DType], Value]]] = {"int_bitwidth": lambda d: d.bits}
_FLOAT: Final[dict[str, Callable[[DType], Value]]] = {
    "fp_mantissa_width": lambda d: d.mantissa,
    "exponent_bias": lambda d: d.bias,
}
"""Attributes of the dtypes of a kind alone."""

_POINTER: Final[dict[str, Callable[[pointer_type], Value]]] = {
    "element_ty": lambda p: p.element_ty,
    "scalar": lambda p: p,
    "primitive_bitwidth": lambda p: 64,
    "value": lambda p: p,
}
_POINTER_QUESTIONS: Final[dict[str, Callable[[pointer_type], Value]]] = {
    **dict.fromkeys(dtypes.QUESTIONS, lambda p: False),
    "is_ptr": lambda p: True,
    "codegen_name": str,
}

_BLOCK: Final[dict[str, Callable[[block_type], Value]]] = {
    "element_ty": lambda t: t.element_ty,
    "scalar": lambda t: t.element_ty,
    "shape": lambda t: t.shape,
    "value": lambda t: t,
    "nbytes": lambda t: math.prod(t.shape) * (t.element_ty.itemsize if isinstance(t.element_ty, DType) else 8),
}


_BLOCK_QUESTIONS: Final[dict[str, Callable[[block_type], Value]]] = {
    **dict.fromkeys(dtypes.QUESTIONS, lambda t: False),
    "is_block": lambda t: True,
    "codegen_name": str,
    "get_block_shapes": lambda t: t.shape,
}

_OF_NUMBERS: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "logical_and": lambda x, y: x and y,
    "logical_or": lambda x, y: x or y,
}
"""Methods of numbers known at compile time."""


def attribute(b: Builder, value: Value, name: str) -> Value:
    """``value.name``; `CompilationError` with the nearest name where there is none."""
    match value:
        case Tensor():
            return _tensor(b, value, name)
        case Aggregate():
            return aggregates.attribute(value, name)
        case Compound():
            return _compound(value, name)
        case ModuleType():
            return _module(value, name)
        case DType():
            own = _FLOAT if value.is_float else _INTEGER
            if not value.is_float and name in dtypes.BOUNDS:
                return Question(name, dtypes.BOUNDS[name](value))
            if name == "codegen_name":
                return Question(name, value.codegen_name())
            return _from_tables(value, name, {**_DTYPE, **own}, dtypes.QUESTIONS)
        case pointer_type():
            return _from_tables(value, name, _POINTER, _POINTER_QUESTIONS)
        case block_type():
            return _from_tables(value, name, _BLOCK, _BLOCK_QUESTIONS)
        case _ if is_aggregate(value) and (found := aggregates.member(value, name)) is not MISSING:
            return aggregates.function_of(found.__func__) if isinstance(found, staticmethod) else as_value(found)
        case _ if is_number(value) and name in _OF_NUMBERS:
            return PythonMethod(_OF_NUMBERS[name], (value,))
        case _ if name == "type" and is_number(value):
            return constexpr_type(value)
        case _ if name == "type" and is_tuple(value):
            return tuple(attribute(b, item, name) for item in value)
        case _ if is_record(value) and (found := getattr(value, name, MISSING)) is not MISSING:
            return as_value(found)
        case _ if name == "value" and not is_runtime(value):
            return value  # a constexpr is its value here
        case _ if hasattr(value, name) and not is_runtime(value):
            raise CompilationError(
                f"kernels do not read attributes of {describe(value)}, an object of the class {type(value).__name__}",
                hint="use a frozen dataclass, a NamedTuple or an enum, or pass the attribute as an argument",
            )
        case _:
            known = [n for n in dir(value) if not n.startswith("_")] if is_record(value) else []
            raise CompilationError(f"{describe(value)} has no attribute '{name}'", hint=nearest(name, known))


def _tensor(b: Builder, x: Tensor, name: str) -> Value:
    if (known := _TENSOR.get(name)) is not None:
        return known(x)
    if name == "T":
        return registry.implementation_of(tl.trans)(b, x, ())
    if (function := METHODS.get(name)) is not None:
        return Method(function, x)
    raise CompilationError(f"tiles have no attribute '{name}'", hint=nearest(name, [*_TENSOR, "T", *METHODS]))


def _compound(value: Compound, name: str) -> Value:
    if (known := value.attributes.get(name)) is not None:
        return known(value)
    if (function := value.methods.get(name)) is not None:
        return Method(function, value)
    raise CompilationError(
        f"{describe(value)} has no attribute '{name}'", hint=nearest(name, [*value.attributes, *value.methods])
    )


def _module(module: ModuleType, name: str) -> Value:
    value = getattr(module, name, MISSING)
    if isinstance(value, Absent):
        raise CompilationError(f"weft does not have tl.{value.name} yet")
    if value is not MISSING:
        return value.value if isinstance(value, constexpr) else value
    public = [n for n in dir(module) if not n.startswith("_")]
    raise CompilationError(f"the module {module.__name__} has no '{name}'", hint=nearest(name, public))


def _from_tables(
    value: Any,
    name: str,
    attributes: Mapping[str, Callable[[Any], Value]],
    questions: Mapping[str, Callable[[Any], Value]],
) -> Value:
    if (known := attributes.get(name)) is not None:
        return known(value)
    if (question := questions.get(name)) is not None:
        return Question(name, question(value))
    raise CompilationError(
        f"{describe(value)} has no attribute '{name}'", hint=nearest(name, [*attributes, *questions])
    )


class Question:
    """A method of a dtype, to be called without arguments; the answer is known already."""

    def __init__(self, name: str, answer: Value) -> None:
        self.name = name
        self.answer = answer

    def __repr__(self) -> str:
        return f"the method {self.name}"
