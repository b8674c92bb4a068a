"""``triton.AsyncCompileMode``: accepted; kernels are compiled where they are launched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Self


class FutureKernel:
    """A kernel that will be compiled; `result` waits for it."""

    def __init__(
        self, finalize_compile: Callable[..., Any], cleanup_compile: Callable[..., Any], future: Future[Any]
    ) -> None:
        self.finalize_compile = finalize_compile
        self.cleanup_compile = cleanup_compile
        self.future = future

    def result(self, ignore_errors: bool = False) -> Any:
        """The kernel. Raises: what compiling raised, unless errors are ignored."""
        try:
            kernel = self.future.result()
        except Exception:
            self.cleanup_compile(self)
            if ignore_errors:
                return None
            raise
        self.finalize_compile(kernel)
        return kernel


class AsyncCompileMode:
    """A context in which Triton compiles in an executor. Weft compiles one kernel at a time, so it does so at once."""

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Does nothing: all kernels are compiled."""
