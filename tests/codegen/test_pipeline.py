"""LLVM's passes leave nothing behind: pass managers and contexts are freed."""

from __future__ import annotations

import gc
import weakref

import llvmlite.binding as llvm
import pytest

from weft import target as targets
from weft.codegen.cpu.machine import target_machine
from weft.codegen.llvm.pipeline import free, optimise, parsed

TEXT = """
define i32 @twice(i32 %x) {
  %slot = alloca i32
  store i32 %x, ptr %slot
  %a = load i32, ptr %slot
  %b = add i32 %a, %a
  ret i32 %b
}
"""


def test_a_module_is_optimised_and_freed() -> None:
    with parsed(TEXT) as module:
        optimise(module, target_machine(targets.host()), unroll=True)
        assert "alloca" not in str(module)
        assert "shl" in str(module)
        gone = weakref.ref(module)
    assert module.closed
    del module
    gc.collect()
    assert gone() is None


def test_modules_have_contexts_of_their_own() -> None:
    named = "%pair = type { i32, i32 }\n@value = global %pair zeroinitializer\n"
    with parsed(named) as first, parsed(named) as second:
        assert str(first) == str(second)  # in one context the second type would be named %pair.0


def test_a_pass_manager_is_freed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where llvmlite frees it itself some day: the object is detached."""
    freed: list[object] = []
    dispose = llvm.NewPassManager._dispose

    def counted(manager: llvm.NewPassManager) -> None:
        freed.append(manager)
        dispose(manager)

    monkeypatch.setattr(llvm.NewPassManager, "_dispose", counted)
    manager = llvm.create_new_module_pass_manager()
    free(manager)
    manager.close()
    assert freed == [manager]
    assert manager.closed


def test_the_pipeline_frees_its_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[llvm.NewPassManager] = []
    dispose = llvm.NewPassManager._dispose

    def counted(manager: llvm.NewPassManager) -> None:
        seen.append(manager)
        dispose(manager)

    monkeypatch.setattr(llvm.NewPassManager, "_dispose", counted)
    with parsed(TEXT) as module:
        optimise(module, target_machine(targets.host()), unroll=False)
    assert len(seen) == 1
