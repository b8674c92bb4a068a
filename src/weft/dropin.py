"""`weft.as_triton`: ``import triton`` gives weft.

The modules of `weft.triton` are entered under Triton's names by a finder of Python's import system, so Triton need not be
installed. Where it is installed, its modules are put aside, and stand again when the context ends. Modules of PyTorch that know
Triton get weft's answers when they are imported (`after_import`).
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from weft.dtypes import DType

_NAME: Final = "triton"
_PREFIX: Final = f"{_NAME}."
_HOME: Final = "weft.triton"


def _is_ours(name: str) -> bool:
    return name == _NAME or name.startswith(_PREFIX)


class _Loader:
    """Gives the module of `weft.triton`, as it is."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module of the same name in `weft.triton`."""
        module = importlib.import_module(_HOME + spec.name.removeprefix(_NAME))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Puts back what importing the module under this name changed, and enters all that is loaded of `weft.triton`.

        A module that were found later would be bound in its parent, where ``triton.runtime.driver`` is an object.
        """
        module.__spec__ = self._spec
        for name in [name for name in sys.modules if name.startswith(f"{_HOME}.")]:
            sys.modules.setdefault(_NAME + name.removeprefix(_HOME), sys.modules[name])


class _Finder:
    """Finds ``triton`` and its modules in `weft.triton`."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of a module of Triton's name; None for others, and for modules that weft has not."""
        if not _is_ours(name):
            return None
        home = _HOME + name.removeprefix(_NAME)
        found = importlib.util.find_spec(home)
        if found is None:
            return None  # the finders behind this look in weft's folders, and find nothing either
        package = found.submodule_search_locations is not None
        loader: Any = _Loader()
        return importlib.machinery.ModuleSpec(name, loader, origin=found.origin, is_package=package)


FINDER: Final = _Finder()


class _Watcher:
    """Finds one module as the other finders do, and adds a call to its execution."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of the module that is waited for; None for others."""
        if name != self._name:
            return None
        self.close()
        spec = importlib.util.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return spec
        execute = loader.exec_module

        def execute_then(module: ModuleType) -> None:
            execute(module)
            self._then(module)

        loader.exec_module = execute_then
        return spec

    def close(self) -> None:
        """Waits no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def after_import(name: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Calls ``then`` with the module: now if it is imported, else once it has been. Imports nothing. Returns a function that ends
    the waiting."""
    watcher = _Watcher(name, then)
    if (module := sys.modules.get(name)) is not None:
        then(module)
    else:
        sys.meta_path.insert(0, watcher)
    return watcher.close


_ANSWERED: Final = (
    "torch._higher_order_ops.triton_kernel_wrap",
    "torch._dynamo.utils",
    "torch._inductor.async_compile",
)
"""Modules of PyTorch in which ``torch.compile`` asks Triton about kernels."""


def _answer(module: ModuleType) -> None:
    """Lets ``torch.compile`` ask weft about weft's kernels."""
    from weft.triton import torch_compile

    torch_compile.install(module)


def _spelled(dtype: DType) -> str:
    """Triton's `repr` of a dtype, an expression that gives it: ``triton.language.float32``."""
    return f"{_PREFIX}language.{dtype.codegen_name()}"


class AsTriton:
    """A context in which ``import triton`` gives weft. Without ``with``, it lasts to the end of the process, or to `close`."""

    def __init__(self) -> None:
        self._aside: dict[str, ModuleType] = {}
        self._open = FINDER not in sys.meta_path
        if self._open:
            self._aside = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
            sys.meta_path.insert(0, FINDER)
            DType.spelled = staticmethod(_spelled)
            self._endings = [after_import(name, _answer) for name in _ANSWERED]

    def close(self) -> None:
        """``import triton`` gives what it gave before. Modules that were imported meanwhile keep what they have."""
        if self._open:
            self._open = False
            DType.spelled = None
            for end in self._endings:
                end()
            sys.meta_path.remove(FINDER)
            for name in [name for name in sys.modules if _is_ours(name)]:
                del sys.modules[name]
            sys.modules.update(self._aside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def as_triton() -> AsTriton:
    """``import triton`` gives weft from now on, or inside a ``with``::

    with weft.as_triton():
        import triton
        import triton.language as tl
    """
    return AsTriton()
