"""Doing something to a module right after it has been imported, without importing it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _Watcher:
    """Finds one module as the other finders do, and adds a call to its execution."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of the module that is waited for; None for others."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
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


def after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Calls ``then`` with the module: now if it is imported, else once it has been."""
    if (module := sys.modules.get(name)) is not None:
        then(module)
    else:
        sys.meta_path.insert(0, _Watcher(name, then))
