"""Kernels as functions of JAX arrays.

A call is an operation of the JAX program (`jax.ffi.ffi_call`). The kernel is compiled while JAX traces the program, so that
errors of its text are raised there. It is launched when XLA runs the operation (`weft.jax.handler`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.frontend.source import MISSING
from weft.jax import handler
from weft.jax.handler import Input, Output, Site, Specification
from weft.runtime.binding import LAUNCH_OPTIONS, GridLike, grid_of
from weft.runtime.jit import JITFunction

try:
    jax: Final[Any] = importlib.import_module("jax")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("weft.jax needs JAX: pip install 'weft[jax]'", name=error.name) from error


def call(
    kernel: Any,
    /,
    *args: Any,
    out_shape: Any,
    grid: GridLike,
    input_output_aliases: Mapping[int, int] | None = None,
    zeroed_outputs: Sequence[int] = (),
    has_side_effect: bool = False,
    **keywords: Any,
) -> Any:
    """Runs a kernel on JAX arrays and returns new arrays.

    Arguments are bound to the kernel's parameters as in a Python call. Arrays (also those without dimensions) are pointers to
    memory that the kernel reads, in tuples, too; everything else is a constant of the program. Parameters without argument,
    default and ``tl.constexpr`` are the outputs, in order.

    Parameters:
        kernel: a function decorated with `weft.jit`, or an autotuned one of ``import triton``, whose configurations are compiled
            and measured when XLA runs the operation for the first time.
        args, keywords: arguments for the kernel, and launch options such as ``num_warps``.
        out_shape: an object with ``shape`` and ``dtype`` (`jax.ShapeDtypeStruct`, an array), or a tree of them: the outputs.
            Their memory is not initialised.
        grid: as in ``kernel[grid]``; a function gets a dict of all arguments.
        input_output_aliases: which outputs are written over which inputs: {number of the input: number of the output}. Inputs
            are counted among the arrays. Such an output has no parameter of its own: the input's parameter is both. JAX copies an
            input that it needs afterwards.
        zeroed_outputs: the numbers of outputs that are filled with zeros first.
        has_side_effect: the call is run even if nothing uses its results.

    Returns the outputs, as the tree that ``out_shape`` is.

    Raises: `weft.CompilationError`, and `TypeError` or `ValueError` for arguments that do not fit. What the launch raises is
    `jax.errors.JaxRuntimeError`, with the original type and text in its message; the kernel writing to an input is among it.

    Under `jax.vmap` the kernel is launched for each element, on slices of the same memory. The call has no gradient: wrap it with
    `jax.custom_vjp`. Runs on CPUs.

    Example::

        def add(x, y):
            return weft.jax.call(add_kernel, x, y, x.size, out_shape=x, grid=(weft.cdiv(x.size, 128),), BLOCK=128)

    ``x.size`` is an argument for a parameter in front of the output's here.
    """
    plain = _kernel_of(kernel)
    leaves, tree = jax.tree_util.tree_flatten(out_shape)
    outputs = tuple(Specification(tuple(s.shape), np.dtype(jax.dtypes.canonicalize_dtype(s.dtype))) for s in leaves)
    options = {name: keywords.pop(name) for name in [*keywords] if name in LAUNCH_OPTIONS and name not in _names(plain)}
    aliases = dict(input_output_aliases or {})
    free = [i for i in range(len(outputs)) if i not in aliases.values()]
    values = _bound(plain, args, keywords, free, _configured(kernel))
    given, arrays = _numbered(plain, values, aliases)
    inputs = tuple(Specification(tuple(a.shape), np.dtype(a.dtype)) for a in arrays)
    _check(plain, inputs, outputs, aliases, zeroed_outputs)
    sizes: Any = grid
    if kernel is plain:  # else the configuration that is chosen at the first launch says the sizes
        examples = {Input: _examples(inputs), Output: _examples(outputs)}
        filled = {name: handler.filled(v, lambda part: examples[type(part)][part.number]) for name, v in given.items()}
        sizes = grid_of(plain.name, grid(filled) if callable(grid) else grid)
        plain.compile(*filled.values(), **options)  # by place: a parameter may be called 'target'
    site = Site(kernel, tuple(given), tuple(given.values()), sizes, options, inputs, outputs, tuple(zeroed_outputs))
    handler.register()
    operation = jax.ffi.ffi_call(
        handler.TARGET,
        [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in outputs],
        has_side_effect=has_side_effect,
        vmap_method="broadcast_all" if aliases else "expand_dims",
        input_output_aliases=aliases,
    )
    results: Any = operation(*arrays, call=np.int64(handler.number_of(site)))
    return jax.tree_util.tree_unflatten(tree, results)


def triton_call(
    *args: Any,
    kernel: Any,
    out_shape: Any = None,
    out_type: Any = None,
    grid: GridLike,
    zeroed_outputs: Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]] = (),
    name: str = "",
    debug: bool = False,
    compute_capability: int | None = None,
    serialized_metadata: bytes = b"",
    cost_estimate: Any = None,
    **keywords: Any,
) -> Any:
    """`call` under the name and with the keywords of jax-triton. ``out_type`` is its newer word for ``out_shape``. ``name``,
    ``debug``, ``compute_capability``, ``serialized_metadata`` and ``cost_estimate`` describe GPU code and change nothing."""
    shape = out_type if out_shape is None else out_shape
    if shape is None:
        raise TypeError("triton_call needs out_shape (or out_type): the shapes and dtypes of the results")
    zeroed = zeroed_outputs(keywords) if callable(zeroed_outputs) else zeroed_outputs
    return call(kernel, *args, out_shape=shape, grid=grid, zeroed_outputs=tuple(zeroed), **keywords)


def _names(kernel: JITFunction) -> list[str]:
    return [p.name for p in kernel.parameters]


def _is_array(value: Any) -> bool:
    """Whether a value is an array; NumPy's scalars are numbers, as in a launch."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _kernel_of(kernel: Any) -> JITFunction:
    """The kernel under autotuners and heuristics (`weft.triton`), or itself."""
    plain = kernel
    while not isinstance(plain, JITFunction) and hasattr(plain, "fn"):
        plain = plain.fn
    if not isinstance(plain, JITFunction):
        raise TypeError(
            f"weft.jax.call takes a kernel first, a function decorated with weft.jit, found {type(kernel).__name__}"
        )
    return plain


def _configured(kernel: Any) -> set[str]:
    """The parameters that autotuners and heuristics give values for."""
    names: set[str] = set()
    while not isinstance(kernel, JITFunction):
        names.update(*(config.kwargs for config in getattr(kernel, "configs", ())), getattr(kernel, "values", ()))
        kernel = kernel.fn
    return names


def _bound(
    kernel: JITFunction, args: Sequence[Any], keywords: Mapping[str, Any], outputs: Sequence[int], configured: set[str]
) -> dict[str, Any]:
    """A value for each parameter that is not ``configured``: an argument, a default, or the next of the ``outputs``."""
    names = _names(kernel)
    if len(args) > len(names):
        raise TypeError(f"kernel '{kernel.name}' has {len(names)} parameters, found {len(args)} arguments")
    for name in keywords:
        if name not in names:
            raise TypeError(f"kernel '{kernel.name}' has no parameter '{name}'; its parameters are {', '.join(names)}")
        if name in names[: len(args)]:
            raise TypeError(f"kernel '{kernel.name}' got multiple values for argument '{name}'")
    given = dict(zip(names, args, strict=False)) | dict(keywords)
    needed = [p for p in kernel.parameters if p.name in given or p.name not in configured]
    missing = [p for p in needed if p.name not in given and p.default is MISSING]
    for parameter in missing:
        if parameter.is_constexpr:
            raise TypeError(f"kernel '{kernel.name}': the constexpr parameter '{parameter.name}' has no value")
    if len(missing) != len(outputs):
        raise TypeError(
            f"kernel '{kernel.name}': out_shape has {len(outputs)} outputs that are not aliased, and the parameters without an "
            f"argument are {len(missing)}: {', '.join(p.name for p in missing) or 'none'}"
        )
    given |= {parameter.name: Output(number) for parameter, number in zip(missing, outputs, strict=True)}
    return {p.name: given.get(p.name, p.default) for p in needed}


def _numbered(
    kernel: JITFunction, values: Mapping[str, Any], aliases: Mapping[int, int]
) -> tuple[dict[str, Any], list[Any]]:
    """The values with an `Input` or an `Output` for each array, and the arrays. Raises: `TypeError` for arrays in lists and
    dicts, which kernels do not take."""
    arrays: list[Any] = []

    def number(name: str, value: Any) -> Any:
        if _is_array(value):
            arrays.append(jax.numpy.asarray(value))
            i = len(arrays) - 1
            return Output(aliases[i]) if i in aliases else Input(i)
        kind = type(value).__name__
        if kind in {"list", "dict"} and any(map(_is_array, jax.tree_util.tree_leaves(value))):
            where = f"kernel '{kernel.name}': parameter '{name}' is a {kind} of arrays"
            raise TypeError(f"{where}; kernels take tuples and named tuples of them")
        return value

    return {name: handler.mapped(v, lambda part, name=name: number(name, part)) for name, v in values.items()}, arrays


def _check(
    kernel: JITFunction,
    inputs: Sequence[Specification],
    outputs: Sequence[Specification],
    aliases: Mapping[int, int],
    zeroed: Sequence[int],
) -> None:
    """Raises `ValueError` for numbers of arrays that there are not."""
    where = f"kernel '{kernel.name}'"
    if len(set(aliases.values())) != len(aliases):
        raise ValueError(f"{where}: input_output_aliases gives an output to two inputs: {dict(aliases)}")
    for source, target in aliases.items():
        if source not in range(len(inputs)) or target not in range(len(outputs)):
            raise ValueError(
                f"{where}: input_output_aliases has {source}: {target}, but there are {len(inputs)} inputs and {len(outputs)} "
                "outputs"
            )
        if inputs[source] != outputs[target]:
            raise ValueError(
                f"{where}: input {source} is {_spelled(inputs[source])} and cannot be output {target}, which is "
                f"{_spelled(outputs[target])}"
            )
    for number in zeroed:
        if number not in range(len(outputs)):
            raise ValueError(f"{where}: zeroed_outputs has {number}, but there are {len(outputs)} outputs")


def _spelled(specification: Specification) -> str:
    return f"{specification.dtype}{list(specification.shape)}"


def _examples(specifications: Sequence[Specification]) -> list[Any]:
    """Arrays that a kernel can be compiled for: memory that is never touched."""
    return [np.empty(s.shape or 1, s.dtype) for s in specifications]
