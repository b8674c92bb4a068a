"""The pytest plugin ``-p weft.pytest_triton``: tests of Triton kernels run on weft.

``import triton`` gives weft, and torch's ``cuda`` the CPU, before any test module is imported. ``--weft-device sm_90`` runs the
kernels in the emulator. The fixtures are those that Triton's own tests take from its plugin.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from weft.devices.choice import Device, device_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    group = parser.getgroup("weft", "tests of Triton kernels")
    group.addoption(
        "--weft-device",
        default="cpu",
        metavar="DEVICE",
        help="what stands in for cuda: cpu (default), none, or a GPU such as sm_90, which is emulated",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Installs the stand-ins."""
    _device(early_config).install(quiet=True)


def _device(config: pytest.Config) -> Device:
    try:
        return device_of(config.known_args_namespace.weft_device)
    except ValueError as error:
        raise pytest.UsageError(f"--weft-device: {error}") from None


@pytest.fixture(autouse=True)
def _weft_emulated(request: pytest.FixtureRequest) -> Generator[None]:
    """Emulates the launches of a test, where a GPU is asked for."""
    gpu = _device(request.config).gpu
    if gpu is None:
        yield
        return
    from weft.runtime.emulated import emulate

    with emulate(gpu):
        yield


@pytest.fixture
def device() -> str:
    """The name of the device that tests put their tensors on."""
    return "cuda"


@pytest.fixture
def fresh_triton_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty cache of compiled kernels, weft's and that of ``triton.knobs``; its folder."""
    folder = tmp_path / ".triton"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    monkeypatch.setenv("WEFT_CACHE_DIR", str(folder))
    return str(folder)


@pytest.fixture
def process_pool() -> None:
    """Does nothing: `run_in_process` copies this process."""


@pytest.fixture
def with_allocator() -> Generator[None]:
    """An allocator is set during the test."""
    from weft.triton._internal_testing import default_alloc_fn
    from weft.triton.runtime.allocation import NullAllocator, set_allocator

    set_allocator(default_alloc_fn)
    yield
    set_allocator(NullAllocator())


def _fresh(monkeypatch: pytest.MonkeyPatch, groups: Any) -> Generator[Any]:
    from weft.triton import knobs

    monkeypatch.setattr(knobs, "propagate_env", True)
    with ExitStack() as stack:
        for name, group in knobs.GROUPS.items():
            stack.enter_context(group.scope())
            if name in groups:
                for setting in group._settings.values():
                    monkeypatch.delenv(setting.variable, raising=False)
            group.reset()
        yield knobs


@pytest.fixture
def fresh_knobs(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """``triton.knobs`` with no setting made; what a test sets ends with it."""
    yield from _fresh(monkeypatch, {"autotuning", "cache", "compilation", "language", "runtime"})


@pytest.fixture
def fresh_knobs_including_libraries(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """As `fresh_knobs`, with the paths of tools and libraries too."""
    from weft.triton import knobs

    yield from _fresh(monkeypatch, set(knobs.GROUPS))
