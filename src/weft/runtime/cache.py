"""Compiled kernels on disk.

A cache must never be the reason that a program fails or computes something else. So an entry is one file that carries
the digest of its own contents; what does not check is not there. Writers make a temporary file beside it and rename it
over, so readers see an old entry, a new one, or none, without locks. Any `OSError` (read-only or full disk, no home)
costs the caching and nothing else.

File: magic, sha256 of the payload, payload. Payload: length of the metadata (4 bytes, little endian), the metadata
(JSON), the object code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import threading
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from weft.runtime.errors import Frame, Site

_MAGIC: Final = b"weft-kernel-1\n"
_DIGEST: Final = hashlib.sha256().digest_size
_OFF: Final = frozenset({"0", "off", "false", "no"})

_PLATFORM_DIRECTORY: Final[dict[str, tuple[str, str]]] = {
    "win32": ("LOCALAPPDATA", "~/AppData/Local"),
    "darwin": ("", "~/Library/Caches"),
}
_OTHER_DIRECTORY: Final = ("XDG_CACHE_HOME", "~/.cache")
"""`sys.platform` -> (environment variable, fallback) of the user's cache directory."""


@dataclass(frozen=True)
class Artifact:
    """What compiling a kernel leaves: a relocatable object, its entry point, bytes of scratch a thread needs, the
    memory accesses of a checked kernel, and the parameters it may write through."""

    object: bytes
    symbol: str
    scratch: int
    written: tuple[str, ...]
    sites: tuple[Site, ...] = ()


def directory() -> Path | None:
    """Where entries live: ``$WEFT_CACHE_DIR``, else ``weft`` in the platform's cache directory; None with
    ``WEFT_CACHE=0``."""
    if os.environ.get("WEFT_CACHE", "").lower() in _OFF:
        return None
    if chosen := os.environ.get("WEFT_CACHE_DIR"):
        return Path(chosen)
    variable, fallback = _PLATFORM_DIRECTORY.get(sys.platform, _OTHER_DIRECTORY)
    base = os.environ.get(variable, "") if variable else ""
    return Path(base or os.path.expanduser(fallback)) / "weft"


@cache
def fingerprint() -> str:
    """A digest of the path, size and time of change of each of weft's own source files, so that an edited checkout
    compiles anew."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        state = path.stat()
        digest.update(f"{path.relative_to(root)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def key_of(*parts: str) -> str:
    """The name of the entry that the parts, in order, determine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def load(key: str) -> Artifact | None:
    """The entry, or None where there is none that checks."""
    base = directory()
    if base is None:
        return None
    try:
        return _decode((base / key).read_bytes())
    except OSError:
        return None


def store(key: str, artifact: Artifact) -> bool:
    """Writes the entry, replacing any; False where the disk would not take it."""
    base = directory()
    if base is None:
        return False
    temporary = base / f".{key}-{os.getpid()}-{threading.get_ident()}"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_bytes(_encode(artifact))
        os.replace(temporary, base / key)
        return True
    except OSError:
        with contextlib.suppress(OSError):  # a disk that refuses the file may refuse this too
            temporary.unlink(missing_ok=True)
        return False


def _encode(artifact: Artifact) -> bytes:
    fields = asdict(artifact)
    code: bytes = fields.pop("object")
    metadata = json.dumps(fields).encode()
    payload = len(metadata).to_bytes(4, "little") + metadata + code
    return _MAGIC + hashlib.sha256(payload).digest() + payload


def _decode(data: bytes) -> Artifact | None:
    start = len(_MAGIC) + _DIGEST
    payload = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(payload).digest() != data[len(_MAGIC) : start]:
        return None
    size = int.from_bytes(payload[:4], "little")
    fields: dict[str, Any] = json.loads(payload[4 : 4 + size])
    sites = tuple(_site(**site) for site in fields["sites"])
    return Artifact(payload[4 + size :], fields["symbol"], fields["scratch"], tuple(fields["written"]), sites)


def _site(operation: str, argument: str | None, itemsize: int, frames: list[dict[str, Any]]) -> Site:
    return Site(operation, argument, itemsize, tuple(Frame(**frame) for frame in frames))
