"""What ``torch.compile`` asks about the kernels that a program launches.

PyTorch traces a launch as an operation of its graph, for which it must know the tensors that the kernel reads and writes. It
finds them in Triton's IR, through Triton's native library, which weft does not have. `install` gives PyTorch weft's answer, read
off tile IR. Without it PyTorch takes every tensor for written, and gradients were wrong.

Kernels that are not weft's keep PyTorch's own answer.

PyTorch's compiler compiles Triton kernels in processes of its own, which know nothing of weft. `install` keeps them in this one.
And it takes weft's dtypes for constants, as it does Triton's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import wraps
from types import ModuleType
from typing import Any, Final, NamedTuple

from weft.dtypes import DType
from weft.frontend.source import MISSING
from weft.ir.errors import CompilationError
from weft.language.core import constexpr
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.descriptors import TensorDescriptor
from weft.triton.runtime.jit import JITFunction
from weft.triton.runtime.tensors import MockTensor

_SIZE = 16
"""Stands for the sizes and strides of descriptors, which PyTorch does not tell."""


class Accesses(NamedTuple):
    """The parameters through which a kernel may read and write."""

    read: tuple[str, ...]
    written: tuple[str, ...]


def accesses(kernel: Any, values: Mapping[str, Any], blocks: Mapping[str, Any]) -> Accesses:
    """What a kernel does with its parameters.

    ``values`` are what PyTorch knows of the arguments, by name: tensors without memory, symbolic sizes, compile-time values.
    ``blocks`` are the block shapes of those that are descriptors. Of an autotuned kernel the first configuration counts.
    """
    while not isinstance(kernel, JITFunction):
        if configs := getattr(kernel, "configs", None):
            values = {**values, **configs[0].kwargs}
        kernel = kernel.fn
    given = [
        value if p.is_constexpr else _stand_in(value, blocks.get(p.name))
        for p in kernel.parameters
        for value in [values.get(p.name, None if p.default is MISSING else p.default)]
    ]
    signature = kernel.specialised(given)
    module = compiler.tile_ir(kernel, signature, Options())
    read, written = compiler.read_parameters(module, signature), compiler.written_parameters(module, signature)
    return Accesses(_heads(read), _heads(written))


def _heads(names: tuple[str, ...]) -> tuple[str, ...]:
    """The parameters whose parts have the names."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in names))


_KNOWN: Final = (type(None), bool, int, float, str, tuple, constexpr, TensorDescriptor)
"""Classes of values that launches take while PyTorch traces."""


def _stand_in(value: Any, block: Any) -> Any:
    """A value with which a launch could be specialised as with the one that is traced."""
    if isinstance(value, _KNOWN):
        return value  # pyright: ignore[reportUnknownVariableType]
    if not hasattr(value, "dtype"):
        return 2.0 if type(value).__name__ == "SymFloat" else 2  # a symbolic number
    tensor = MockTensor(value.dtype)
    if block is None:
        return tensor
    sizes = [_SIZE] * len(block)
    return TensorDescriptor(tensor, sizes, [*sizes[:-1], 1], list(block))


def install(module: ModuleType) -> None:
    """Changes a module of PyTorch's, one of `weft.dropin`'s list, that has been imported."""
    _INSTALLED[module.__name__](module)


def _install_accesses(module: Any) -> None:
    """Earlier versions of PyTorch ask for the tensors that are written only."""
    for name, made in (("identify_accessed_tensors", _accessed), ("identify_mutated_tensors", _mutated)):
        if (theirs := getattr(module, name, None)) is not None:
            setattr(module, name, _answering(theirs, made))


def _install_constants(module: Any) -> None:
    module.common_constant_types.add(DType)


def _install_compilation(module: Any) -> None:
    module.AsyncCompile.use_process_pool = classmethod(lambda cls: False)


_INSTALLED: Final[dict[str, Callable[[Any], None]]] = {
    "torch._higher_order_ops.triton_kernel_wrap": _install_accesses,
    "torch._dynamo.utils": _install_constants,
    "torch._inductor.async_compile": _install_compilation,
}


def _answering(theirs: Callable[..., Any], made: Callable[[Accesses], Any]) -> Callable[..., Any]:
    @wraps(theirs)
    def answer(kernel: Any, kwargs: Mapping[str, Any], *rest: Any) -> Any:
        if not _is_ours(kernel):
            return theirs(kernel, kwargs, *rest)
        descriptors: Mapping[str, Any] = rest[0] if rest else {}
        blocks = {name: given[1][0] for name, given in descriptors.items()}
        try:
            return made(accesses(kernel, kwargs, blocks))
        except CompilationError:  # the launch raises it, with the user's lines
            return made(Accesses(*[tuple(n for n, v in kwargs.items() if hasattr(v, "dtype"))] * 2))

    return answer


def _is_ours(kernel: Any) -> bool:
    while not isinstance(kernel, JITFunction):
        kernel = getattr(kernel, "fn", None)
        if kernel is None:
            return False
    return True


def _accessed(found: Accesses) -> Any:
    """PyTorch's class for reads and writes. Nothing is fused into a kernel's stores."""
    dependencies: Any = importlib.import_module("torch._inductor.dependencies")
    wrapping: Any = importlib.import_module("torch._higher_order_ops.triton_kernel_wrap")
    ordered: Any = importlib.import_module("torch.utils._ordered_set").OrderedSet
    read, written = (ordered(map(dependencies.StarDep, names)) for names in found)
    return wrapping.TensorAccesses(
        dependencies.ReadWrites(reads=read, writes=written, index_exprs=ordered()), can_fuse_epilogue=False
    )


def _mutated(found: Accesses) -> list[str]:
    return list(found.written)
