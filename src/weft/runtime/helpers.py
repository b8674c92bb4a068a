"""Native code that is part of weft itself: compiled once for a machine, kept with the kernels on disk.

`weft.emulator` stands below the runtime and asks for it through `weft.extensions`. Such code is a fixed text: it is compiled anew
for a new version of weft or LLVM, and for another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.runtime import cache, loader
from weft.runtime.artifacts import Artifact
from weft.runtime.compiler import llvm_key, machine_key

_HELD: Final[list[loader.LoadedCode]] = []
"""Code that is never unloaded."""


def native(symbol: str, version: str, text: Callable[[], str] | None) -> int | None:
    """The address of what `loaded` gives, which stays loaded."""
    code = loaded(symbol, version, text)
    if code is None:
        return None
    _HELD.append(code)
    return code.address


def loaded(symbol: str, version: str, text: Callable[[], str] | None) -> loader.LoadedCode | None:
    """The function ``symbol`` of some LLVM IR that ``version`` stands for. Where it is not on disk, ``text`` is compiled and
    stored; None where ``text`` is None, and where the object cannot be loaded."""
    key = cache.key_of(symbol, version, machine_key(), llvm_key())
    found = cache.load(key)
    if found is None:
        if text is None:
            return None
        found = Artifact(_compiled(text()), symbol, 0, ())
        cache.store(key, found)
    try:
        return loader.load(found.object, symbol)
    except RuntimeError:
        return None


def _compiled(text: str) -> bytes:
    from weft import target
    from weft.codegen.cpu.machine import target_machine
    from weft.codegen.llvm.pipeline import parsed, simplify

    machine = target_machine(target.host())
    with parsed(text) as module:
        simplify(module, machine, loops=False)
        return machine.emit_object(module)
