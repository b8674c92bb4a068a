"""What is read from what ptxas says; and why there is nothing where there is nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from weft.emulator import ToolError
from weft.emulator.profile.ptxas import Resources, disassembly, find, parse, resources

# What ptxas 13.0 -v says of a module with a device function, and two kernels one of which spills.
SAID = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    512 bytes stack frame, 768 bytes spill stores, 11776 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 512 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 962.314 ms
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers, 256 bytes cumulative stack size
ptxas info    : Compile time = 23.599 ms
ptxas info    : Function properties for _Z6helperPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""

# The form that older releases have, with constants.
OLDER = """\
ptxas info    : Compiling entry function 'add' for 'sm_80'
ptxas info    : Function properties for add
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 128 bytes smem, 380 bytes cmem[0]
"""

KERNEL = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { .shared .align 4 .b8 t[96]; .reg .b32 %r<2>; ld.shared.u32 %r1, [t]; st.shared.u32 [t+4], %r1; ret; }
"""

needs_ptxas = pytest.mark.skipif(
    shutil.which("ptxas") is None, reason="ptxas, whose report is read, is not on the PATH"
)


def test_kernels_are_told_apart():
    assert parse(SAID) == {"second": Resources(32, 768, 11776, 512, 1024), "first": Resources(40, 0, 0, 256, 0)}


def test_frames_are_those_of_the_kernel():
    """A function's frame may be told between a kernel's and the kernel's registers."""
    lines = SAID.splitlines()
    moved = "\n".join([*lines[:4], "ptxas info    : Function properties for f", lines[7 + 1], *lines[4:]])
    assert parse(moved) == parse(SAID)


def test_older_releases():
    assert parse(OLDER) == {"add": Resources(12, 0, 0, 0, 128)}


def test_nothing_said():
    assert parse("") == {}


def test_without_ptxas_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WEFT_PTXAS", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    said = "ptxas is not found: set WEFT_PTXAS to the path of ptxas, or CUDA_HOME, or put it on PATH"
    assert resources(KERNEL, "k", "sm_80") == said
    with pytest.raises(ToolError) as raised:
        disassembly(KERNEL, "sm_80")
    assert str(raised.value) == said.replace("ptxas is", "nvdisasm is")


posix = pytest.mark.skipif(
    os.name != "posix", reason="the stand-ins for ptxas are shell scripts, which only POSIX runs as programs"
)


@posix
@pytest.mark.parametrize("tool", ["ptxas", "nvdisasm"])
def test_tools_are_looked_for_in_order(tool: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Beside the ptxas of WEFT_PTXAS, then on PATH, then in CUDA_HOME."""
    for folder in ("chosen", "path", "home/bin"):
        (tmp_path / folder).mkdir(parents=True)
        for name in ("ptxas", "nvdisasm"):
            (tmp_path / folder / name).write_text("#!/bin/sh\n")
            (tmp_path / folder / name).chmod(0o755)
    monkeypatch.setenv("WEFT_PTXAS", str(tmp_path / "chosen" / "ptxas"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find(tool) == str(tmp_path / "chosen" / tool)
    monkeypatch.delenv("WEFT_PTXAS")
    assert find(tool) == str(tmp_path / "path" / tool)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find(tool) == str(tmp_path / "home" / "bin" / tool)


@posix
def test_a_ptxas_that_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    broken = tmp_path / "ptxas"
    broken.write_text("#!/nowhere/at/all\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WEFT_PTXAS", raising=False)
    assert resources(KERNEL, "k", "sm_80") == f"ptxas did not run: [Errno 2] No such file or directory: '{broken}'"


@needs_ptxas
def test_a_kernel_is_assembled():
    found = resources(KERNEL, "k", "sm_80")
    assert isinstance(found, Resources)
    assert found.shared == 96
    assert found.registers > 0
    assert (found.spill_stores, found.spill_loads, found.stack) == (0, 0, 0)


@needs_ptxas
@pytest.mark.skipif(shutil.which("nvdisasm") is None, reason="nvdisasm, whose output is read, is not on the PATH")
def test_machine_code():
    assert ".text.k:" in disassembly(KERNEL, "sm_80")
    assert "EXIT" in disassembly(KERNEL, "sm_80")


@needs_ptxas
def test_a_kernel_that_is_not_there():
    assert resources(KERNEL, "other", "sm_80") == "ptxas does not mention kernel 'other'"


@needs_ptxas
def test_what_ptxas_refuses():
    said = resources(KERNEL.replace("ret;", "foo;"), "k", "sm_80")
    assert said == "ptxas refuses the module: module.ptx, line 4; error : Not a name of any known instruction: 'foo'"
    said = resources(KERNEL, "k", "sm_1")
    assert said == "ptxas refuses the module: fatal : Value 'sm_1' is not defined for option 'gpu-name'"
