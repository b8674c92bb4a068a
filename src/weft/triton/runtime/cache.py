"""``triton.runtime.cache``: files that programs keep beside compiled kernels. Weft's own kernels are in its own cache."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weft.triton import knobs
from weft.triton.compiler.compiler import triton_key

__all__ = ["CacheManager", "FileCacheManager", "RedisRemoteCacheBackend", "RemoteCacheBackend", "RemoteCacheManager",
           "get_cache_manager", "get_dump_manager", "get_override_manager", "triton_key"]  # fmt: skip


class CacheManager:
    """The base of caches."""


class FileCacheManager(CacheManager):
    """Files under a key, in ``knobs.cache.dir``."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key
        root = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else knobs.cache.dir
        self.cache_dir = str(Path(root) / key)
        if not override:
            os.makedirs(self.cache_dir, exist_ok=True)

    def _path(self, filename: str) -> Path:
        return Path(self.cache_dir) / filename

    def has_file(self, filename: str) -> bool:
        """Whether the file is there."""
        return self._path(filename).exists()

    def get_file(self, filename: str) -> str | None:
        """The path of the file, None where it is not there."""
        return str(self._path(filename)) if self.has_file(filename) else None

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        """Writes the file at once, for readers in other processes; its path."""
        content = data.encode() if isinstance(data, str) else data
        handle, temporary = tempfile.mkstemp(dir=self.cache_dir)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        try:
            os.replace(temporary, self._path(filename))
        except PermissionError:  # on Windows while a reader has the file of before open: it stays
            os.unlink(temporary)
            if not self.has_file(filename):
                raise
        return str(self._path(filename))

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group by name, None unless all are there."""
        path = self.get_file(f"__grp__{filename}")
        if path is None:
            return None
        children: dict[str, str] = json.loads(Path(path).read_text(encoding="utf-8")).get("child_paths", {})
        found = {name: file for name, file in children.items() if os.path.exists(file)}
        return found if len(found) == len(children) else None

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Names files as a group."""
        return self.put(json.dumps({"child_paths": group}), f"__grp__{filename}")


class RemoteCacheBackend:
    """The base of stores on other machines, for `RemoteCacheManager`; weft has none of its own."""

    def __init__(self, key: str) -> None:
        self.key = key

    def get(self, filenames: Iterable[str]) -> dict[str, bytes]:
        """The contents of files."""
        raise NotImplementedError

    def put(self, filename: str, data: bytes) -> None:
        """Keeps a file."""
        raise NotImplementedError


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Refused: weft keeps files on this machine only."""

    def __init__(self, key: str) -> None:
        raise NotImplementedError("weft keeps compiled kernels on this machine only; it has no Redis client")


class RemoteCacheManager(FileCacheManager):
    """Files in a store of the program's, ``knobs.cache.remote_manager_class``; each that is read or written is also kept here.

    Overrides and dumps stay on this machine. Raises: `RuntimeError` where no store is set.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        backend = knobs.cache.remote_manager_class
        if backend is None:
            raise RuntimeError(
                "Unable to instantiate RemoteCacheManager, TRITON_REMOTE_CACHE_BACKEND doesn't point to a valid class"
            )
        super().__init__(key, override, dump)
        self._backend = None if override or dump else backend(key)

    def get_file(self, filename: str) -> str | None:
        """The path of the file's copy, None where the store has no such file. The store is always asked."""
        if self._backend is None:
            return super().get_file(filename)
        found = self._backend.get([filename])
        return super().put(found[filename], filename) if filename in found else None

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        """Gives the file to the store; the path of the copy."""
        content = data.encode() if isinstance(data, str) else data
        if self._backend is not None:
            self._backend.put(filename, content)
        return super().put(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group by name, None unless the store has all."""
        if self._backend is None:
            return super().get_group(filename)
        path = self.get_file(f"__grp__{filename}")
        if path is None:
            return None
        names: list[str] = list(json.loads(Path(path).read_text(encoding="utf-8")).get("child_paths", ()))
        found = self._backend.get(names)
        copies = {name: FileCacheManager.put(self, data, name) for name, data in found.items()}
        return copies if len(copies) == len(names) else None


def get_cache_manager(key: str) -> Any:
    """The files of a key, of the manager that ``knobs.cache.manager_class`` is set to."""
    return (knobs.cache.manager_class or FileCacheManager)(key)


def get_dump_manager(key: str) -> FileCacheManager:
    """The files of a key where dumps are kept."""
    return FileCacheManager(key, dump=True)


def get_override_manager(key: str) -> FileCacheManager:
    """The files of a key where overrides are looked for."""
    return FileCacheManager(key, override=True)
