"""The disk cache: what comes back, what is ignored, what a bad disk costs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from weft.ir.position import Position
from weft.runtime import cache
from weft.runtime.artifacts import Artifact
from weft.runtime.errors import Site

ARTIFACT = Artifact(
    object=bytes(range(256)) * 3,
    symbol="kernel",
    scratch=128,
    written=("out",),
    sites=(
        Site("tile.load", "x", 4, (Position("a.py", 3, 4, "k"), Position("b.py", 9, 0, "m"))),
        Site("tile.store", None, 1, ()),
    ),
)


@pytest.fixture(autouse=True)
def _directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_CACHE", raising=False)


def test_an_entry_comes_back_equal(tmp_path: Path) -> None:
    assert cache.load("key") is None
    assert cache.store("key", ARTIFACT)
    assert cache.load("key") == ARTIFACT
    assert cache.load("other") is None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]


def test_entries_are_replaced() -> None:
    cache.store("key", ARTIFACT)
    newer = Artifact(b"code", "other", 0, ())
    cache.store("key", newer)
    assert cache.load("key") == newer


def test_a_flipped_bit_anywhere_is_no_entry(tmp_path: Path) -> None:
    cache.store("key", ARTIFACT)
    path = tmp_path / "cache" / "key"
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        assert cache.load("key") is None


def test_a_truncated_entry_is_no_entry(tmp_path: Path) -> None:
    cache.store("key", ARTIFACT)
    path = tmp_path / "cache" / "key"
    whole = path.read_bytes()
    for size in (0, 1, 13, 14, 40, 46, 47, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert cache.load("key") is None
    path.write_bytes(whole + b"x")
    assert cache.load("key") is None


def test_an_entry_under_another_name_is_no_entry(tmp_path: Path) -> None:
    cache.store("key", ARTIFACT)
    (tmp_path / "cache" / "key").rename(tmp_path / "cache" / "other")
    assert cache.load("other") is None
    assert cache.store("other", ARTIFACT)
    assert cache.load("other") == ARTIFACT


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"3",
        b"null",
        b'{"key": "key"}',
        b'{"key": "key", "symbol": "k", "scratch": "x", "written": [], "sites": []}',
        b'{"key": "key", "symbol": "k", "scratch": null, "written": [], "sites": []}',
        b'{"key": "key", "symbol": "k", "scratch": 0, "written": 1, "sites": []}',
        b'{"key": "key", "symbol": "k", "scratch": 0, "written": [], "sites": [3]}',
        b'{"key": "key", "symbol": "k", "scratch": 0, "written": [], "sites": [{"operation": "load"}]}',
        b'{"key": "key", "symbol": "k", "scratch": 0, "written": [], "sites": null}',
        b"[" * 100_000,
    ],
)
def test_metadata_that_does_not_parse_is_no_entry(tmp_path: Path, metadata: bytes) -> None:
    """With a digest that checks: such as another version of weft would write."""
    cache.store("key", ARTIFACT)
    path = tmp_path / "cache" / "key"
    magic = path.read_bytes().split(b"\n")[0] + b"\n"
    payload = len(metadata).to_bytes(4, "little") + metadata + b"code"
    path.write_bytes(magic + hashlib.sha256(payload).digest() + payload)
    assert cache.load("key") is None


posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@posix
@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (0o770, "its group may write to it"),
        (0o720, "its group may write to it"),
        (0o702, "all users may write to it"),
        (0o777, "all users may write to it"),
    ],
)
def test_a_directory_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int, reason: str) -> None:
    assert cache.store("key", ARTIFACT)
    folder = tmp_path / "cache"
    folder.chmod(mode)
    message = (
        f"kernels are not cached in '{folder}': {reason}; run 'chmod go-w' on a directory of your own, set WEFT_CACHE_DIR "
        "to another, or set WEFT_CACHE=0"
    )
    with pytest.warns(RuntimeWarning) as warned:
        assert cache.load("key") is None
        assert not cache.store("new", ARTIFACT)
    assert [str(w.message) for w in warned] == [message, message]
    folder.chmod(0o755)
    assert cache.load("key") == ARTIFACT
    assert [path.name for path in folder.iterdir()] == ["key"]


@posix
def test_a_directory_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.store("key", ARTIFACT)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(RuntimeWarning) as warned:
        assert cache.load("key") is None
    assert str(warned[0].message) == (
        f"kernels are not cached in '{tmp_path / 'cache'}': it belongs to user {owner}, and this process runs as user "
        f"{owner + 1}; run 'chmod go-w' on a directory of your own, set WEFT_CACHE_DIR to another, or set WEFT_CACHE=0"
    )


@posix
def test_a_file_that_others_may_write_to_is_no_entry(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert cache.store("key", ARTIFACT)
    finally:
        os.umask(before)
    path = tmp_path / "cache" / "key"
    assert path.stat().st_mode & 0o777 == 0o600
    for mode in (0o620, 0o602):
        path.chmod(mode)
        assert cache.load("key") is None
    path.chmod(0o644)
    assert cache.load("key") == ARTIFACT


@posix
def test_on_other_systems_owner_and_mode_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.store("key", ARTIFACT)
    (tmp_path / "cache").chmod(0o777)
    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "name", "nt")
        assert cache._danger((tmp_path / "cache").stat()) is None  # pyright: ignore[reportPrivateUsage]


def test_a_disk_that_refuses_costs_only_the_caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "file"))
    assert not cache.store("key", ARTIFACT)
    assert cache.load("key") is None


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, mode: str) -> Any:
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "open", full, raising=False)
    assert not cache.store("key", ARTIFACT)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_read_only_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: object, target: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refused)
    assert not cache.store("key", ARTIFACT)
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_cache_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("key", ARTIFACT)
    for word in ("0", "off", "False", "no"):
        monkeypatch.setenv("WEFT_CACHE", word)
        assert cache.directory() is None
        assert cache.load("key") is None
        assert not cache.store("new", ARTIFACT)
    monkeypatch.setenv("WEFT_CACHE", "1")
    assert cache.load("key") == ARTIFACT


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "HOME/.cache/weft"),
        ("linux", {"XDG_CACHE_HOME": "/var/xdg"}, "/var/xdg/weft"),
        ("darwin", {"XDG_CACHE_HOME": "/var/xdg"}, "HOME/Library/Caches/weft"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/weft"),
        ("win32", {}, "HOME/AppData/Local/weft"),
        ("freebsd14", {}, "HOME/.cache/weft"),
    ],
)
def test_the_platforms_directory(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEFT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.directory() == str(Path(expected.replace("HOME", os.path.expanduser("~"))))


def test_keys_depend_on_each_part_and_on_where_parts_end() -> None:
    keys = {cache.key_of(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("ab", "d"))}
    assert len(keys) == 5
    assert cache.key_of("ab", "c") == cache.key_of("ab", "c")


def test_the_fingerprint_is_of_all_source_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files in folders too, by their names, sizes and times; of nothing else, and not of weft's packages that are `APART`."""
    (tmp_path / "runtime").mkdir()
    (tmp_path / "other" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "runtime" / "cache.py"))
    files = [tmp_path / "a.py", tmp_path / "other" / "b.py"]
    seen: set[str] = set()

    def differs() -> bool:
        before = len(seen)
        seen.add(cache.fingerprint.__wrapped__())
        return len(seen) > before

    for file in files:
        file.write_text("x")
        assert differs()
    for file in files:
        file.write_text("xy")
        os.utime(file, ns=(0, 5))
        assert differs()
        os.utime(file, ns=(0, 6))
        assert differs()
    files[1].rename(tmp_path / "other" / "c.py")
    assert differs()
    (tmp_path / "other" / "__pycache__" / "c.py").write_text("x")
    (tmp_path / "other" / "c.txt").write_text("x")
    for folder in ("array", "emulator"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "d.py").write_text("x")
    assert not differs()
    (tmp_path / "other" / "array").mkdir()
    (tmp_path / "other" / "array" / "d.py").write_text("x")
    assert differs()


def test_the_fingerprint_is_of_wefts_own_files() -> None:
    assert len(cache.fingerprint()) == 64
    assert cache.fingerprint() == cache.fingerprint()


def test_readers_beside_writers_see_whole_entries() -> None:
    variants = [Artifact(bytes([i]) * 50_000, "kernel", i, ()) for i in range(4)]
    wrong: list[object] = []
    stop = threading.Event()

    def write(artifact: Artifact) -> None:
        while not stop.is_set():
            if not cache.store("key", artifact):
                wrong.append("refused")

    cache.store("key", variants[0])
    writers = [threading.Thread(target=write, args=(variant,)) for variant in variants]
    for writer in writers:
        writer.start()
    found = [cache.load("key") for _ in range(200)]
    stop.set()
    for writer in writers:
        writer.join()
    assert wrong == []
    assert all(entry in variants for entry in found)


PROCESS = """
import sys
from weft.runtime import cache
from weft.runtime.artifacts import Artifact
variants = [Artifact(bytes([i]) * 20_000, "kernel", i, ()) for i in range(3)]
for _ in range(100):
    stored = cache.store("key", variants[int(sys.argv[1])])
    assert stored and cache.load("key") in variants
"""


def test_concurrent_processes(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", PROCESS, str(i)] for i in range(3)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    assert [process.communicate()[1] for process in running] == ["", "", ""]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]
