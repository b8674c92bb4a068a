"""A compiler that assembles LLVM text, so that the runtime is tested without the real one.

`fake_compiler` replaces the step from kernel to `Artifact`. A test gives, for each kernel's name, the body of one
program in LLVM IR; the loop that claims programs is written here from the ABI's description, not taken from codegen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from weft.frontend.signature import Argument
from weft.frontend.source import KernelFunction
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.artifacts import Artifact
from weft.runtime.errors import Site
from weft.target import host

_ENTRY = """
define i32 @kernel(ptr %launch, ptr %thread) {
entry:
  %next = getelementptr i64, ptr %launch, i64 0
  %fault = getelementptr i64, ptr %launch, i64 64
  %total_at = getelementptr i64, ptr %launch, i64 74
  %chunk_at = getelementptr i64, ptr %launch, i64 75
  %nx_at = getelementptr i64, ptr %launch, i64 76
  %ny_at = getelementptr i64, ptr %launch, i64 77
  %args = getelementptr i64, ptr %launch, i64 79
  %scratch_at = getelementptr i64, ptr %thread, i64 3
  %total = load i64, ptr %total_at
  %chunk = load i64, ptr %chunk_at
  %nx64 = load i64, ptr %nx_at
  %ny64 = load i64, ptr %ny_at
  %scratch = load ptr, ptr %scratch_at
  br label %claim
claim:
  %first = atomicrmw add ptr %next, i64 %chunk monotonic
  %any = icmp slt i64 %first, %total
  br i1 %any, label %start, label %done
start:
  %last = add i64 %first, %chunk
  %over = icmp sgt i64 %last, %total
  %end = select i1 %over, i64 %total, i64 %last
  br label %loop
loop:
  %p = phi i64 [%first, %start], [%p1, %step]
  %x64 = srem i64 %p, %nx64
  %yz = sdiv i64 %p, %nx64
  %y64 = srem i64 %yz, %ny64
  %z64 = sdiv i64 %yz, %ny64
  %x = trunc i64 %x64 to i32
  %y = trunc i64 %y64 to i32
  %z = trunc i64 %z64 to i32
  %bad = call i32 @program(ptr %args, ptr %scratch, i32 %x, i32 %y, i32 %z, ptr %fault)
  %failed = icmp ne i32 %bad, 0
  br i1 %failed, label %fail, label %step
step:
  %p1 = add i64 %p, 1
  %more = icmp slt i64 %p1, %end
  br i1 %more, label %loop, label %claim
done:
  ret i32 0
fail:
  ret i32 1
}
define i32 @program(ptr %args, ptr %scratch, i32 %x, i32 %y, i32 %z, ptr %fault) {
"""


def assemble(program: str) -> bytes:
    """The object code of a kernel whose program has this body (blocks of LLVM IR; ``ret i32 0``)."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_ENTRY + program + "}\n")
    module.verify()
    reloc, code_model = host().addressing
    machine = llvm.Target.from_triple(host().triple).create_target_machine(opt=1, reloc=reloc, codemodel=code_model)
    return machine.emit_object(module)


@dataclass
class FakeCompiler:
    """Kernel name -> body of a program; what it was asked to compile is in ``calls``."""

    programs: dict[str, str] = field(default_factory=dict[str, str])
    written: tuple[str, ...] = ()
    sites: tuple[Site, ...] = ()
    scratch: int = 0
    calls: list[tuple[str, Mapping[str, Argument], Options]] = field(default_factory=list[Any])

    def build(
        self, kernel: KernelFunction, signature: Mapping[str, Argument], options: Options, stages: Any = None
    ) -> Artifact:
        self.calls.append((kernel.name, dict(signature), options))
        code = assemble(self.programs.get(kernel.name, "ret i32 0\n"))
        return Artifact(code, "kernel", self.scratch, self.written, self.sites)


@pytest.fixture
def fake_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCompiler:
    """Stands in for frontend and codegen; the disk cache is an empty directory of the test's own."""
    fake = FakeCompiler()
    monkeypatch.setattr(compiler, "build", fake.build)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return fake
