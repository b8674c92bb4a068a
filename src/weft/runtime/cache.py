"""Compiled kernels on disk.

A cache must never be the reason that a program fails or computes something else:

1. An entry is one file that holds its own key and a digest of its contents. A file that does not check is no entry, nor is
   one whose metadata does not parse: the kernel is compiled.
2. Entries are machine code and PTX, which run with the user's rights, so the directory and each file must belong to the user,
   and no other user may write to them (POSIX). Otherwise nothing is read or written; for a directory, a warning says why and
   what to do.
3. Writers make a temporary file beside the entry and rename it over, so readers see an old entry, a new one, or none, without
   locks.
4. An `OSError` (read-only or full disk, no home) costs the caching and nothing else.

File: magic, sha256 of the payload, payload. Payload: length of the metadata (4 bytes, little endian), the metadata
(JSON), the code: an object file, or PTX as UTF-8.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from typing import Any, Final

from weft.ir.position import Position
from weft.ir.printing import Print
from weft.runtime.artifacts import Artifact, GpuArtifact
from weft.runtime.errors import Site

_MAGIC: Final = b"weft-kernel-4\n"
_DIGEST: Final = hashlib.sha256().digest_size
_OFF: Final = frozenset({"0", "off", "false", "no"})

_PLATFORM_DIRECTORY: Final[dict[str, tuple[str, str]]] = {
    "win32": ("LOCALAPPDATA", "~/AppData/Local"),
    "darwin": ("", "~/Library/Caches"),
}
_OTHER_DIRECTORY: Final = ("XDG_CACHE_HOME", "~/.cache")
"""`sys.platform` -> (environment variable, fallback) of the user's cache directory."""


def directory() -> str | None:
    """Where entries live: ``$WEFT_CACHE_DIR``, else ``weft`` in the platform's cache directory; None with
    ``WEFT_CACHE=0``."""
    if os.environ.get("WEFT_CACHE", "").lower() in _OFF:
        return None
    if chosen := os.environ.get("WEFT_CACHE_DIR"):
        return chosen
    variable, fallback = _PLATFORM_DIRECTORY.get(sys.platform, _OTHER_DIRECTORY)
    base = os.environ.get(variable, "") if variable else ""
    return os.path.join(base or os.path.expanduser(fallback), "weft")


APART: Final = frozenset({"array", "cli", "devices", "emulator", "jax", "report", "testing"})
"""The packages whose text no compiled code depends on, and which no compilation loads. They are two fifths of all files, and each
process asks for the times of all that count."""


@cache
def fingerprint() -> str:
    """A digest of the path, size and time of change of each of weft's own source files but those `APART`, so that an edited
    checkout compiles anew."""
    root = os.path.dirname(os.path.dirname(__file__))
    lines = [
        f"{entry.path[len(root) :]} {state.st_size} {state.st_mtime_ns}\n"
        for entry in _sources(root, APART)
        for state in (entry.stat(),)
    ]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _sources(folder: str, skipped: frozenset[str] = frozenset()) -> Iterator[os.DirEntry[str]]:
    """The Python files of a folder and those in it, without the folders ``skipped`` in it. `os.walk` takes six times as long, and
    every process asks."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry
            elif entry.name != "__pycache__" and entry.name not in skipped and entry.is_dir():
                yield from _sources(entry.path)


def key_of(*parts: str) -> str:
    """The name of the entry that the parts, in order, determine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def load(key: str) -> Artifact | None:
    """The entry of a CPU's kernel, or None where there is none that checks."""
    return _artifact(*found) if (found := _read(key)) is not None else None


def load_gpu(key: str) -> GpuArtifact | None:
    """The entry of a GPU's kernel, or None where there is none that checks."""
    return _gpu_artifact(*found) if (found := _read(key)) is not None else None


def _read(key: str) -> tuple[dict[str, Any], bytes] | None:
    """The metadata and the code of an entry."""
    base = directory()
    if base is None or not _is_safe(base):
        return None
    try:
        with open(os.path.join(base, key), "rb") as file:
            return _decode(file.read(), key) if _danger(os.fstat(file.fileno())) is None else None
    except OSError:
        return None


def _danger(state: os.stat_result) -> str | None:
    """Why a file or directory may hold what another user wrote; None where it cannot."""
    if os.name != "posix":
        return None
    if state.st_uid != os.geteuid():
        return f"it belongs to user {state.st_uid}, and this process runs as user {os.geteuid()}"
    if mode := state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{'all users' if mode & stat.S_IWOTH else 'its group'} may write to it"
    return None


def _is_safe(base: str) -> bool:
    """Whether the directory may be used; a warning where it may not. True where there is none yet."""
    try:
        danger = _danger(os.stat(base))
    except OSError:
        return True
    if danger is not None:
        warnings.warn(
            f"kernels are not cached in '{base}': {danger}; run 'chmod go-w' on a directory of your own, set WEFT_CACHE_DIR "
            "to another, or set WEFT_CACHE=0",
            RuntimeWarning,
            stacklevel=2,
        )
    return danger is None


def store(key: str, artifact: Artifact | GpuArtifact) -> bool:
    """Writes the entry, replacing any; False where the disk would not take it."""
    base = directory()
    if base is None or not _is_safe(base):
        return False
    temporary = os.path.join(base, f".{key}-{os.getpid()}-{threading.get_ident()}")
    try:
        os.makedirs(base, mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_encode(artifact, key))
        os.replace(temporary, os.path.join(base, key))
        return True
    except OSError:
        with contextlib.suppress(OSError):  # a disk that refuses the file may refuse this too
            os.unlink(temporary)
        return False


def _encode(artifact: Artifact | GpuArtifact, key: str) -> bytes:
    fields = artifact._asdict()
    code: bytes = fields.pop("object") if isinstance(artifact, Artifact) else fields.pop("ptx").encode()
    metadata = json.dumps(fields | {"key": key}, default=asdict).encode()
    payload = len(metadata).to_bytes(4, "little") + metadata + code
    return _MAGIC + hashlib.sha256(payload).digest() + payload


_MALFORMED: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What metadata that are no entry's can raise, whatever JSON they are."""


def _decode(data: bytes, key: str) -> tuple[dict[str, Any], bytes] | None:
    start = len(_MAGIC) + _DIGEST
    payload = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(payload).digest() != data[len(_MAGIC) : start]:
        return None
    size = int.from_bytes(payload[:4], "little")
    try:
        fields: dict[str, Any] = json.loads(payload[4 : 4 + size])
        return (fields, payload[4 + size :]) if fields["key"] == key else None
    except _MALFORMED:
        return None


def _artifact(fields: dict[str, Any], code: bytes) -> Artifact | None:
    try:
        sites = tuple(_site(*site) for site in fields["sites"])
        prints = tuple(_print(*each) for each in fields["prints"])
        written = tuple(map(str, fields["written"]))
        return Artifact(
            code,
            str(fields["symbol"]),
            int(fields["scratch"]),
            written,
            sites,
            prints,
            int(fields["sums"]),
            str(fields["order"]),
            int(fields["copies"]),
            tuple(map(int, fields["measured"])),
        )
    except _MALFORMED:
        return None


def _gpu_artifact(fields: dict[str, Any], code: bytes) -> GpuArtifact | None:
    try:
        written = tuple(map(str, fields["written"]))
        return GpuArtifact(code.decode(), str(fields["symbol"]), int(fields["threads"]), int(fields["shared"]), written)
    except _MALFORMED:
        return None


def _site(operation: str, argument: str | None, itemsize: int, frames: list[dict[str, Any]]) -> Site:
    return Site(operation, argument, itemsize, tuple(Position(**frame) for frame in frames))


def _print(prefix: str, hex: bool, type: str, shape: list[int], columns: list[int]) -> Print:
    return Print(prefix, hex, type, tuple(shape), tuple(columns))
