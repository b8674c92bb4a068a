"""``triton.compiler``: compiling without launching, and the errors of it."""

from __future__ import annotations

from weft.triton.compiler import errors
from weft.triton.compiler.compiler import (
    ASTSource,
    CompiledKernel,
    IRSource,
    LazyDict,
    compile,
    get_cache_key,
    make_backend,
    max_shared_mem,
)
from weft.triton.compiler.errors import CompilationError

__all__ = [
    "ASTSource", "CompilationError", "CompiledKernel", "IRSource", "LazyDict", "compile", "errors", "get_cache_key",
    "make_backend", "max_shared_mem",
]  # fmt: skip
