"""LLVM's passes leave nothing behind: pass managers and contexts are freed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import pytest

from weft import target as targets
from weft.codegen.cpu.machine import target_machine
from weft.codegen.llvm.pipeline import free, optimise, parsed, simplify
from weft.codegen.llvm.types import Module

TEXT = """
define i32 @twice(i32 %x) {
  %slot = alloca i32
  store i32 %x, ptr %slot
  %a = load i32, ptr %slot
  %b = add i32 %a, %a
  ret i32 %b
}
"""


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(
    ("run", "twice"),
    [
        (optimise, "shl"),
        (partial(simplify, loops=False), "shl"),
        (partial(simplify, loops=True), "shl"),
        (partial(simplify, loops=False, products=True), "add"),
    ],
)
def test_a_module_is_optimised_and_freed(run: Callable[[Any, Any], None], twice: str) -> None:
    """``twice``: what doubles the number. Where panels are multiplied no instructions are combined."""
    with parsed(TEXT) as module:
        run(module, target_machine(targets.host()))
        assert "alloca" not in str(module)
        assert twice in str(module)
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


PROGRAM = """
define internal i32 @program(i32 %x) alwaysinline {
  %y = add i32 %x, %x
  ret i32 %y
}

define i32 @entry(i32 %x) {
  %y = call i32 @program(i32 %x)
  ret i32 %y
}
"""


def test_the_program_becomes_part_of_its_caller() -> None:
    with parsed(PROGRAM) as module:
        simplify(module, target_machine(targets.host()), loops=False)
        assert [function.name for function in module.functions] == ["entry"]
        assert "call" not in str(module)


LOOP = """
define i32 @powers(i32 %x, i32 %n) {
start:
  br label %loop
loop:
  %i = phi i32 [ 0, %start ], [ %next, %loop ]
  %y = phi i32 [ %x, %start ], [ %z, %loop ]
  %z = mul i32 %y, %x
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, %n
  br i1 %again, label %loop, label %done MARK
done:
  ret i32 %z
}
"""


@pytest.mark.parametrize(
    ("loops", "marked", "copied"),
    [(False, False, False), (True, True, False), (True, False, True)],
    ids=["off", "marked", "unrolled"],
)
def test_loops_that_are_not_marked_are_unrolled(loops: bool, marked: bool, copied: bool) -> None:
    mark = ", !llvm.loop !0\n", '!0 = !{ !0, !1 }\n!1 = !{ !"llvm.loop.unroll.disable" }'
    text = LOOP.replace(" MARK", mark[0]) + mark[1] if marked else LOOP.replace(" MARK", "")
    with parsed(text) as module:
        simplify(module, target_machine(targets.host()), loops=loops)
        assert (str(module).count(" mul ") > 1) == copied


def test_the_mark_of_a_loop_names_itself() -> None:
    made = Module("m", targets.host().triple, frozenset())
    assert made.unrolled is made.unrolled
    assert '!0 = !{ !0, !1 }\n!1 = !{ !"llvm.loop.unroll.disable" }' in str(made)


def test_the_pipeline_frees_its_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[llvm.NewPassManager] = []
    dispose = llvm.NewPassManager._dispose

    def counted(manager: llvm.NewPassManager) -> None:
        seen.append(manager)
        dispose(manager)

    monkeypatch.setattr(llvm.NewPassManager, "_dispose", counted)
    with parsed(TEXT) as module:
        optimise(module, target_machine(targets.host()))
    assert len(seen) == 1
    with parsed(TEXT) as module:
        simplify(module, target_machine(targets.host()), loops=True)
    assert len(seen) == 4
