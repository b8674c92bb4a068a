"""What the names of entries on disk say of the machine and of LLVM, without importing LLVM."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft import target as targets
from weft.runtime import compiler

CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Xeon
stepping\t: 8
cpu MHz\t\t: 2600.000
flags\t\t: fpu sse2 avx2
bugs\t\t:

processor\t: 1
vendor_id\t: GenuineIntel
flags\t\t: fpu sse2
"""


@pytest.fixture(autouse=True)
def _linux(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(targets, "host", lambda: "the host")
    yield


def key(monkeypatch: pytest.MonkeyPatch, text: str | None, chosen: str = "", permitted: bool = True) -> str:
    """The key where Linux says ``text``, None for nothing."""

    def opened(path: Any, *rest: Any, **keywords: Any) -> Any:
        assert path == "/proc/cpuinfo"
        if text is None:
            raise FileNotFoundError(path)
        return io.StringIO(text)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", opened)
        patch.setattr(targets, "chosen", lambda: chosen)
        patch.setattr(targets, "tiles_permitted", lambda: permitted)
        return compiler.machine_key.__wrapped__()


def test_what_the_key_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = CPUINFO.replace("avx2", "avx2 amx_tile")
    different = [
        key(monkeypatch, CPUINFO),
        key(monkeypatch, CPUINFO.replace("avx2", "avx2 avx512f")),
        key(monkeypatch, CPUINFO.replace("143", "106")),
        key(monkeypatch, CPUINFO.replace("family\t: 6", "family\t: 25")),
        key(monkeypatch, CPUINFO.replace("GenuineIntel", "AuthenticAMD")),
        key(monkeypatch, CPUINFO, chosen="x86-64-v3"),
        key(monkeypatch, tiles),
        key(monkeypatch, tiles, permitted=False),
    ]
    assert len(set(different)) == len(different)
    assert "the host" not in "".join(different)
    same = key(monkeypatch, CPUINFO.replace("2600", "3100").replace("fpu sse2\n", "fpu\n"), permitted=False)
    assert same == different[0]


@pytest.mark.parametrize("text", [None, "", CPUINFO.replace("flags", "Features")])
def test_where_linux_does_not_say_llvm_is_asked(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert key(monkeypatch, text) == "'the host'"


@pytest.mark.parametrize(("system", "machine"), [("darwin", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64")])
def test_elsewhere_llvm_is_asked(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert key(monkeypatch, CPUINFO) == "'the host'"


def test_the_library_of_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place, size and time of change; and LLVM's version where it is not found."""
    found: list[str] = []
    for folder, text, time in (("a", "x", 5), ("a", "xy", 5), ("a", "xy", 6), ("b", "xy", 6)):
        library = tmp_path / folder / "binding" / "libllvmlite.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_text(text)
        os.utime(library, ns=(0, time))
        spec = SimpleNamespace(submodule_search_locations=[str(tmp_path / folder)])
        with monkeypatch.context() as patch:
            patch.setattr(importlib.util, "find_spec", {"llvmlite": spec}.get)
            found.append(compiler.llvm_key.__wrapped__())
    assert len(set(found)) == 4
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", dict[str, Any]().get)
        import llvmlite.binding as llvm

        assert compiler.llvm_key.__wrapped__() == repr(llvm.llvm_version_info)


def test_the_real_library_is_found() -> None:
    assert "llvmlite" in compiler.llvm_key()
