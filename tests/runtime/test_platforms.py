"""What the runtime does on systems other than this one, with their values passed in.

docs/platforms.md says what was run on which system. Windows' machine code runs in `test_windows_code`, symbols are compared in
`tests/codegen/test_object_symbols.py`, the cache's directories, owners and modes in `test_cache`.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import ast
import ctypes
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from weft import target
from weft.runtime import cache, linker, loader, watch
from weft.runtime.artifacts import Artifact
from weft.runtime.executor import thread_count

ROOT = Path(__file__).parents[2]


def test_threads_where_a_process_cannot_be_bound_to_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and Windows have no ``sched_getaffinity``; a system may not know its CPUs."""
    monkeypatch.delenv("WEFT_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for known, expected in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda known=known: known)
        assert thread_count() == expected


@pytest.mark.parametrize(
    ("system", "libraries", "jit_link"),
    [("linux", ["libm.so.6", "libmvec.so.1"], True), ("darwin", [], True), ("win32", [], False)],
)
def test_llvms_linker_by_system(
    system: str, libraries: list[str], jit_link: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llvmlite has no JITLink on Windows, and the C library is in the process outside of Linux."""
    loaded: list[str] = []
    made: list[bool] = []

    def make(machine: object, use_jit_link: bool) -> str:
        made.append(use_jit_link)
        return "the compiler"

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(llvm, "load_library_permanently", loaded.append)
    monkeypatch.setattr(llvm, "create_lljit_compiler", make)
    assert loader._jit.__wrapped__() == "the compiler"
    assert (loaded, made) == (libraries, [jit_link])


@pytest.mark.parametrize(("system", "machine"), [("win32", "AMD64"), ("darwin", "arm64"), ("linux", "aarch64")])
def test_wefts_linker_refuses_other_systems(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linker, "SUPPORTED", False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(linker.platform, "machine", lambda: machine)
    with pytest.raises(
        linker.LinkRefused, match=f"^weft links objects for Linux on x86-64, not for {system} on {machine}$"
    ):
        linker.link(b"", "kernel")


@pytest.mark.parametrize("system", ["win32", "darwin", "freebsd14"])
def test_no_system_call_is_made_outside_of_linux(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``CDLL(None)``, the process, is an error on Windows."""

    def refused(name: None) -> None:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")

    monkeypatch.setattr(ctypes, "CDLL", refused)
    monkeypatch.setattr(sys, "platform", system)
    assert target.tiles_permitted.__wrapped__() is False


@pytest.mark.parametrize(("system", "installed"), [("posix", 1), ("nt", 0)])
def test_no_signal_handler_is_installed_on_windows(
    system: str, installed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch still asks the launch to return to Python, where handlers run."""
    seen: list[str] = []
    done = threading.Event()

    class Launch:
        stop_word = 0

        def pause(self) -> None:
            watching.leading = None
            seen.append("pause")
            done.set()
            raise SystemExit  # ends the thread

    class Handler:
        installed = False

        def install(self, word: int) -> None:
            seen.append("install")

    watching: Any = watch.Watch(seconds=0.001)
    watching.handler = Handler()
    watching.leading = Launch()
    with monkeypatch.context() as patch:
        patch.setattr(watch.os, "name", system)
        watching.wake()
        assert done.wait(60)
    assert seen == ["install"] * installed + ["pause"]


ARTIFACT = Artifact(b"code", "kernel", 0, ())


def test_a_path_that_is_too_long_costs_only_the_caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows takes 260 characters, here a name has 255."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / ("x" * 300)))
    key = cache.key_of("kernel")
    assert not cache.store(key, ARTIFACT)
    assert cache.load(key) is None


def test_names_in_the_cache_have_some_hundred_characters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A temporary file has the longest: the key, and the greatest numbers that processes and threads have."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    names: list[str] = []
    monkeypatch.setattr(cache.os, "getpid", lambda: 2**32 - 1)
    monkeypatch.setattr(cache.threading, "get_ident", lambda: 2**64 - 1)

    def replace(source: str, to: str) -> None:
        names.extend(map(os.path.basename, (source, to)))

    monkeypatch.setattr(cache.os, "replace", replace)
    assert cache.store(cache.key_of("kernel"), ARTIFACT)
    assert [len(name) for name in names] == [97, 64]
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)


def test_an_entry_that_a_reader_has_open_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Windows refuses to replace it. It has the same key, and so the same code."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    assert cache.store("key", ARTIFACT)

    def refused(source: object, to: object) -> None:
        raise PermissionError(13, "Access is denied", str(source), 5, str(to))

    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "replace", refused)
        assert not cache.store("key", ARTIFACT)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]
    assert cache.load("key") == ARTIFACT


ABSENT = ("fork", "register_at_fork", "sched_getaffinity", "getuid", "mkfifo", "killpg", "setsid")
"""Functions of `os` that Windows lacks (Python Library Reference, os, "Availability: Unix")."""


@pytest.mark.jit
def test_a_launch_needs_no_function_that_windows_lacks() -> None:
    """Owners, modes and signal handlers, which ask `os.name`, apart."""
    program = f"""
import os, signal
for name in {ABSENT}:
    delattr(os, name)
for name in ("SIGALRM", "SIGUSR1", "setitimer", "pthread_kill", "pthread_sigmask"):
    delattr(signal, name)
import numpy as np, weft, weft.array as wa, weft.language as tl
x = wa.asarray(np.arange(8, dtype=np.float32), semantics="numpy")
print((x + 1).numpy().sum())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("36.0\n", "")


def _unnamed(path: Path) -> list[int]:
    """The lines of calls that open text and leave its encoding to the system."""
    lines: list[int] = []
    text = path.read_text(encoding="utf-8")
    for call in ast.walk(ast.parse(text)) if "open(" in text or "_text(" in text else ():
        if not isinstance(call, ast.Call) or any(k.arg in ("encoding", None) for k in call.keywords):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        modes = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        opened = isinstance(call.func, ast.Name) and name == "open" and not any("b" in mode for mode in modes)
        if name in ("read_text", "write_text") or opened:
            lines.append(call.lineno)
    return lines


@pytest.mark.parametrize("folder", ["src", "tools", "benchmarks", "examples"])
def test_text_has_an_encoding(folder: str) -> None:
    """Windows' is not UTF-8. ruff (PLW1514) sees the calls whose path it can follow."""
    found = {path: _unnamed(path) for path in sorted((ROOT / folder).rglob("*.py"))}
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}
