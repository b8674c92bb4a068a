"""``pytest --ptxas``: ptxas is asked about every kernel that a test compiles for a GPU, for that target and for all others.

Kernels in the cache on disk are compiled again. A target that has no instruction for an op is left out.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

import weft
from weft.emulator.profile import ptxas
from weft.runtime import compiler
from weft.target import gpu

TARGETS: Final = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a")


def assemble_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a kernel that ptxas refuses does not compile for a GPU: `weft.emulator.ToolError`."""
    build = compiler.build_gpu

    def checked(kernel: Any, signature: Any, options: Any, target: Any, stages: Any = None) -> Any:
        artifact = build(kernel, signature, options, target, stages)
        ptxas.known_resources(artifact.ptx, artifact.symbol, target.name)
        for other in map(gpu, TARGETS):
            if other == target:
                continue
            try:
                found = build(kernel, signature, options, other)
            except weft.CompilationError:
                continue
            if found.shared <= other.model.scratch:
                ptxas.known_resources(found.ptx, found.symbol, other.name)
        return artifact

    monkeypatch.setattr(compiler, "build_gpu", checked)
    monkeypatch.setenv("WEFT_CACHE", "0")
