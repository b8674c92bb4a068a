"""What each instruction does: a module per family, each filling `weft.emulator.ops.registry.TABLE`.

A new family is a new file here: `load` imports them all.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil


@functools.cache
def load() -> None:
    """Imports every family, so that the table is complete."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
