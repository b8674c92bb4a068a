"""One kernel and a signature in, one module of tile IR out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from weft.dtypes import DType, int32, int64
from weft.frontend import calls, expressions, library, registry, statements
from weft.frontend.builder import Builder, Frame
from weft.frontend.descriptors import TensorDescriptor
from weft.frontend.errors import CompilationError
from weft.frontend.generator import Generator
from weft.frontend.promotion import converted, numbers_have_types
from weft.frontend.signature import (
    ConstantArgument,
    DescriptorBlock,
    PointerArgument,
    ScalarArgument,
    Signature,
    TupleParts,
    descriptor_names,
    part_names,
)
from weft.frontend.source import MISSING, KernelFunction, Parameter
from weft.frontend.values import Tensor, as_value, ir_type
from weft.options import Options
from weft.semantics import Semantics, triton

DIVISIBLE_BY = 16
"""What the signature's ``aligned`` (in bytes) and ``divisible`` promise."""

registry.check()
HANDLERS = (calls, expressions, library, statements)
"""The modules that fill the tables of handlers and implementations when they are imported."""


def build(kernel: KernelFunction, signature: Signature, semantics: Semantics | None, options: Options) -> ModuleOp:
    """See `weft.frontend.build_module`."""
    block = Block()
    builder = Builder(block, Frame(kernel, None), semantics or kernel.semantics or triton, options)
    attributes: list[DictionaryAttr] = []
    known = {p.name for p in kernel.parameters}

    def whole(parameter: Parameter) -> object:
        """The value of a parameter that may have parts, which are parameters, too."""
        value = _parameter(kernel, parameter, signature, block, attributes, builder.semantics)
        if isinstance(value, DescriptorBlock):
            names = descriptor_names(parameter.name, len(value.block_shape))
        elif isinstance(value, TupleParts):
            names = part_names(parameter.name, value.count)
        else:
            return value
        known.update(names)
        parts = [whole(Parameter(name, is_constexpr=False)) for name in names]
        if isinstance(value, DescriptorBlock):
            return _descriptor(builder, value, parts)
        return tuple(parts) if value.kind is None else value.kind._make(parts)

    for parameter in kernel.parameters:
        if parameter.is_constexpr and parameter.name in kernel.unspecialised:
            raise CompilationError(
                f"{parameter.name} marked as constexpr and listed in do_not_specialize/do_not_specialize_on_alignment. "
                "Remove constexpr designation to skip specialization.",
                [kernel.span(_node(kernel, parameter))],
            )
        value = whole(parameter)
        if parameter.dtype is not None and isinstance(value, Tensor) and not value.is_pointer:
            value = converted(builder, value, parameter.dtype)
        if parameter.is_const and isinstance(value, Tensor):
            builder.const.add(value.ssa)
        builder.frame.scope.assign(parameter.name, value, _node(kernel, parameter))
    unknown = signature.keys() - known
    if unknown:
        raise CompilationError(
            f"{kernel.name} has no parameter named {', '.join(sorted(unknown))}",
            [kernel.span(kernel.tree)],
            hint=f"its parameters are ({', '.join(p.name for p in kernel.parameters)})",
        )
    generator = Generator(builder)
    builder.inline = lambda callee, values, node: calls.inline(generator, callee, values, node)
    generator.function(builder.frame)
    builder.node = kernel.tree
    builder.emit(ReturnOp())
    function = FuncOp(kernel.name, (list(block.arg_types), []), Region(block), arg_attrs=ArrayAttr(attributes))
    function.location = builder.frame.location(kernel.tree)
    return ModuleOp([function])


def _node(kernel: KernelFunction, parameter: Parameter) -> ast.AST:
    """Where a parameter is declared."""
    arguments = kernel.tree.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return next((a for a in every if a.arg == parameter.name), kernel.tree)


def _parameter(
    kernel: KernelFunction,
    parameter: Parameter,
    signature: Signature,
    block: Block,
    attributes: list[DictionaryAttr],
    semantics: Semantics,
) -> object:
    """The value of a parameter in the kernel: a new argument of ``block``, or a compile-time value."""
    argument = signature.get(parameter.name)
    match argument:
        case PointerArgument():
            divisible, is_pointer = argument.aligned, True
        case ScalarArgument():
            divisible, is_pointer = argument.divisible, False
        case ConstantArgument():
            return argument.value if isinstance(argument.value, DescriptorBlock) else as_value(argument.value)
        case None:
            if parameter.default is MISSING:
                raise CompilationError(
                    f"{kernel.name} needs the argument '{parameter.name}'", [kernel.span(_node(kernel, parameter))]
                )
            return as_value(parameter.default)
    if parameter.is_constexpr:
        raise CompilationError(
            f"the parameter '{parameter.name}' of {kernel.name} is constexpr, but the signature passes it at run time",
            [kernel.span(_node(kernel, parameter))],
        )
    ssa: SSAValue = block.insert_arg(ir_type(argument.dtype, (), is_pointer), len(block.args))
    ssa.name_hint = parameter.name if parameter.name.isascii() else None
    entries: dict[str, Attribute] = {"tile.name": StringAttr(parameter.name)}
    if divisible:
        entries["tile.divisibility"] = IntegerAttr(DIVISIBLE_BY, i64)
    attributes.append(DictionaryAttr(entries))
    return Tensor(ssa, argument.dtype, (), is_pointer, weak=not is_pointer and _is_weak(semantics, argument.dtype))


def _descriptor(b: Builder, block: DescriptorBlock, values: Sequence[Any]) -> TensorDescriptor:
    """The descriptor of a parameter; sizes and strides that are 1 are known at compile time."""
    base, *numbers = values
    if not isinstance(base, Tensor):
        raise TypeError(f"the base of a descriptor is an array, found {base!r}")
    rank = len(block.block_shape)
    shape = [b.cast(n, int32) if isinstance(n, Tensor) else b.constant(n, int32) for n in numbers[:rank]]
    strides = [b.cast(n, int64) if isinstance(n, Tensor) else b.constant(n, int64) for n in numbers[rank:]]
    return TensorDescriptor(base, shape, strides, block.block_shape, block.padding)


def _is_weak(semantics: Semantics, dtype: DType) -> bool:
    """Whether an argument that is a Python number is weakly typed, as a literal of its kind is."""
    if not numbers_have_types(semantics):
        return False
    return semantics.literal(0.0 if dtype.is_float else 0).weak and not dtype.is_bool
