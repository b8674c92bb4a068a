"""``triton.knobs``: the settings of Triton, each with its environment variable.

A setting reads its variable at each use. Assigning to it overrides the variable, deleting or ``knobs.env`` goes back to it.
Weft obeys those of `OBEYED`; the others can be read and set, and change nothing.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

OBEYED: Final = frozenset(
    {
        *("autotuning.cache", "autotuning.print", "autotuning.listener", "compilation.listener"),
        *("cache.dir", "cache.dump_dir", "cache.home_dir", "cache.manager_class", "cache.override_dir"),
        "cache.remote_manager_class",
        *("runtime.debug", "runtime.launch_enter_hook", "runtime.launch_exit_hook", "runtime.kernel_load_start_hook"),
        *("runtime.kernel_load_end_hook", "runtime.jit_cache_hook", "runtime.jit_post_compile_hook"),
    }
)
"""The settings that change what weft does."""


class Env:
    """Assigned to a setting, it makes the setting follow its variable again."""


env: Final = Env()

propagate_env = True
"""Whether an assignment sets the variable too."""

_TRUE: Final = frozenset({"1", "true", "yes", "on", "y"})


def _bool(text: str) -> bool:
    return text.strip().lower() in _TRUE


@dataclass(frozen=True)
class NvidiaTool:
    """A program of CUDA's: its ``path``, and the ``version`` that it says."""

    path: str

    @property
    def version(self) -> str:
        """The version of the CUDA release that weft's PTX asks for, where the tool is not there."""
        return "12.8"


def _class(text: str) -> Any:
    """The class of a text ``module:name``."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def _tool(name: str) -> Callable[[str], NvidiaTool]:
    return lambda text: NvidiaTool(text or shutil.which(name) or name)


@dataclass(frozen=True)
class CompileTimes:
    """What ``compilation.listener`` is told of a compilation, in microseconds: the frontend, what follows it (``obj`` of a CPU,
    ``ptx`` of a GPU), writing to the disk. Of a kernel that was compiled before, the first is the time to describe it."""

    ir_initialization: int
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @property
    def total_lowering(self) -> int:
        """What follows the frontend."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """All of it."""
        return self.ir_initialization + self.total_lowering + self.store_results


@dataclass(frozen=True)
class Setting:
    """A setting: its environment variable, how its text is read, and what it is without one (a function: computed at use)."""

    variable: str
    read: Callable[[str], Any] = str
    default: Any = None


def env_str(key: str, default: str | None = None) -> Setting:
    """A setting that is a text."""
    return Setting(key, str, default)


def env_bool(key: str, default: bool = False) -> Setting:
    """A setting that is a bool."""
    return Setting(key, _bool, default)


def env_int(key: str, default: int = 0) -> Setting:
    """A setting that is an integer."""
    return Setting(key, int, default)


def env_opt_str(key: str) -> Setting:
    """A text, or None without the variable."""
    return Setting(key)


def env_opt_bool(key: str) -> Setting:
    """A bool, or None without the variable."""
    return Setting(key, _bool)


class HookChain:
    """Functions that are called one after the other, or in reverse."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[Callable[..., Any]] = []
        self.reversed = reversed

    def add(self, func: Callable[..., Any]) -> None:
        """Adds a function, once."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Callable[..., Any]) -> None:
        """Removes a function, if it is there."""
        if func in self.calls:
            self.calls.remove(func)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        for call in self.calls[::-1] if self.reversed else self.calls:
            call(*args, **keywords)


class Knobs:
    """A group of settings, and of plain attributes such as hooks."""

    def __init__(self, settings: dict[str, Setting], plain: dict[str, Any] | None = None) -> None:
        self.__dict__["_settings"] = settings
        self.__dict__["_set"] = {}
        self.__dict__.update(plain or {})

    def __getattr__(self, name: str) -> Any:
        settings: dict[str, Setting] = self.__dict__.get("_settings", {})
        if name not in settings:
            raise AttributeError(f"triton.knobs has no setting '{name}' here; it has {', '.join(settings)}")
        if name in self._set:
            return self._set[name]
        setting = settings[name]
        text = os.environ.get(setting.variable)
        if text is None:
            return setting.default() if callable(setting.default) else setting.default
        return setting.read(text)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._settings:
            self.__dict__[name] = value
        elif value is env:
            self._set.pop(name, None)
        else:
            read = self._settings[name].read
            self._set[name] = read(value) if isinstance(value, str) and read is not str else value
            if propagate_env and isinstance(value, (bool, str, int)):
                os.environ[self._settings[name].variable] = str(int(value) if isinstance(value, bool) else value)

    def __delattr__(self, name: str) -> None:
        if name in self._settings:
            self._set.pop(name, None)
        else:
            del self.__dict__[name]

    @property
    def knobs(self) -> dict[str, Any]:
        """All settings with their values."""
        return {name: getattr(self, name) for name in self._settings}

    def copy(self) -> Knobs:
        """The group as it is, apart from this one."""
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__ | {"_set": dict(self._set)})
        return result

    def reset(self) -> Knobs:
        """All settings follow their variables again; returns the group."""
        self._set.clear()
        return self

    @contextmanager
    def scope(self) -> Generator[None]:
        """Restores settings, attributes and variables at the end."""
        before = {s.variable: os.environ.get(s.variable) for s in self._settings.values()}
        held = self.__dict__ | {"_set": dict(self._set)}
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(held)
            for variable, text in before.items():
                if text is None:
                    os.environ.pop(variable, None)
                else:
                    os.environ[variable] = text


class base_knobs(Knobs):
    """The base of groups that programs declare: settings are attributes of the class (``depth = knobs.env_int("DEPTH", 3)``)."""

    _declared: ClassVar[dict[str, Setting]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Setting)}
        for name in own:
            delattr(cls, name)
        cls._declared = cls._declared | own

    def __init__(self) -> None:
        super().__init__(dict(self._declared))


class _Build(Knobs):
    """The group of the C compiler."""

    @property
    def backend_dirs(self) -> set[str]:
        """The folders of CUDA that are set."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


def _folder(name: str) -> Callable[[], str]:
    return lambda: os.path.join(cache.home_dir, ".triton", name)


build: Final = _Build(
    {
        "cc": Setting("CC"),
        "cudacrt_path": Setting("TRITON_CUDACRT_PATH"),
        "cudart_path": Setting("TRITON_CUDART_PATH"),
    },
    {"impl": None},
)
redis: Final = Knobs(
    {
        "key_format": Setting("TRITON_REDIS_KEY_FORMAT", default="triton:{key}:{filename}"),
        "host": Setting("TRITON_REDIS_HOST", default="localhost"),
        "port": Setting("TRITON_REDIS_PORT", int, 6379),
    }
)
cache: Final = Knobs(
    {
        "home_dir": Setting("TRITON_HOME", default=lambda: os.path.expanduser("~/")),
        "dump_dir": Setting("TRITON_DUMP_DIR", default=_folder("dump")),
        "override_dir": Setting("TRITON_OVERRIDE_DIR", default=_folder("override")),
        "dir": Setting("TRITON_CACHE_DIR", default=_folder("cache")),
        "manager_class": Setting("TRITON_CACHE_MANAGER", _class),
        "remote_manager_class": Setting("TRITON_REMOTE_CACHE_BACKEND", _class),
    }
)
compilation: Final = Knobs(
    {
        "override": env_bool("TRITON_KERNEL_OVERRIDE"),
        "dump_ir": env_bool("TRITON_KERNEL_DUMP"),
        "dump_ir_extract_di_local_variables": env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES"),
        "store_binary_only": env_bool("TRITON_STORE_BINARY_ONLY"),
        "always_compile": env_bool("TRITON_ALWAYS_COMPILE"),
        "use_ir_loc": Setting("USE_IR_LOC"),
        "enable_asan": env_bool("TRITON_ENABLE_ASAN"),
        "disable_line_info": env_bool("TRITON_DISABLE_LINE_INFO"),
        "front_end_debugging": env_bool("TRITON_FRONT_END_DEBUGGING"),
        "allow_non_constexpr_globals": env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"),
        "fpsan_homomorphic_casts": env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS"),
    },
    {"listener": None, "instrumentation_mode": ""},
)
autotuning: Final = Knobs(
    {"cache": env_bool("TRITON_CACHE_AUTOTUNING"), "print": env_bool("TRITON_PRINT_AUTOTUNING")}, {"listener": None}
)
runtime: Final = Knobs(
    {"interpret": env_bool("TRITON_INTERPRET"), "override_arch": Setting("TRITON_OVERRIDE_ARCH")},
    {
        "debug": _bool(os.environ.get("TRITON_DEBUG", "")),
        "launch_enter_hook": HookChain(),
        "launch_exit_hook": HookChain(reversed=True),
        "kernel_load_start_hook": HookChain(),
        "kernel_load_end_hook": HookChain(reversed=True),
        "kernel_unload_hook": HookChain(),
        "jit_cache_hook": None,
        "jit_post_compile_hook": None,
        "add_stages_inspection_hook": None,
    },
)
language: Final = Knobs(
    {
        "fp32_default": Setting("TRITON_F32_DEFAULT"),
        "default_fp_fusion": env_bool("TRITON_DEFAULT_FP_FUSION", True),
        "force_disable_fp_fusion": env_bool("TRITON_FORCE_DISABLE_FP_FUSION"),
    }
)
nvidia: Final = Knobs(
    {
        **{
            tool.replace("-", "_"): Setting(
                f"TRITON_{tool.upper().replace('-', '_')}_PATH", _tool(tool), lambda tool=tool: _tool(tool)("")
            )
            for tool in ("cuobjdump", "nvdisasm", "ptxas", "ptxas-blackwell")
        },
        "dump_nvptx": env_bool("NVPTX_ENABLE_DUMP"),
        "disable_ptxas_opt": env_bool("DISABLE_PTXAS_OPT"),
        "ptxas_options": Setting("PTXAS_OPTIONS"),
        "mock_ptx_version": Setting("TRITON_MOCK_PTX_VERSION"),
        "dump_ptxas_log": env_bool("TRITON_DUMP_PTXAS_LOG"),
        "libdevice_path": Setting("TRITON_LIBDEVICE_PATH"),
        "libcuda_path": Setting("TRITON_LIBCUDA_PATH"),
    }
)
amd: Final = Knobs(
    {
        "use_buffer_ops": env_bool("AMDGCN_USE_BUFFER_OPS", True),
        "use_buffer_atomics": env_bool("AMDGCN_USE_BUFFER_ATOMICS", True),
        "buffer_ops_analyze_small_tensor_range": env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE"),
        "dump_amdgcn": env_bool("AMDGCN_ENABLE_DUMP"),
        "scalarize_packed_fops": env_bool("AMDGCN_SCALARIZE_PACKED_FOPS"),
        "swap_mir_enable_misched": env_bool("TRITON_SWAP_MIR_ENABLE_MISCHED"),
        "codegen_path": Setting("TRITON_AMD_CODEGEN_PATH"),
        "libhip_path": Setting("TRITON_LIBHIP_PATH"),
        "dump_mir": Setting("TRITON_DUMP_MIR"),
        "swap_mir": Setting("TRITON_SWAP_MIR"),
        **{
            f"use_{name}": Setting(f"TRITON_HIP_USE_{name.upper()}", _bool)
            for name in (
                *("block_pingpong", "in_thread_transpose", "async_copy"),
                *("coexec_scheduler", "expert_scheduling"),
            )
        },
    }
)
proton: Final = Knobs(
    {
        "disable": env_bool("TRITON_PROTON_DISABLE"),
        "enable_nvtx": env_bool("TRITON_ENABLE_NVTX", True),
        "enable_hw_trace": env_bool("TRITON_ENABLE_HW_TRACE"),
        "cupti_lib_dir": Setting("TRITON_CUPTI_LIB_PATH"),
        "cupti_lib_blackwell_dir": Setting("TRITON_CUPTI_LIB_BLACKWELL_PATH"),
        "hsa_runtime_path": Setting("TRITON_HSA_RUNTIME_PATH"),
        "hsa_runtime_library": Setting("TRITON_HSA_RUNTIME_LIBRARY"),
        "rocprofiler_sdk_include_path": Setting("TRITON_ROCPROFILER_SDK_INCLUDE_PATH"),
        "rocprofiler_sdk_lib_path": Setting("TRITON_ROCPROFILER_SDK_LIB_PATH"),
        "rocprofiler_sdk_library": Setting("TRITON_ROCPROFILER_SDK_LIBRARY"),
        "roctracer_lib_path": Setting("TRITON_ROCTRACER_LIB_PATH"),
        "roctracer_library": Setting("TRITON_ROCTRACER_LIBRARY"),
        "roctx_lib_path": Setting("TRITON_ROCTX_LIB_PATH"),
        "roctx_library": Setting("TRITON_ROCTX_LIBRARY", default="libroctx64.so"),
        "profile_buffer_size": Setting("TRITON_PROFILE_BUFFER_SIZE", int, 64 << 20),
        "profile_metric_buffer_size": Setting("TRITON_PROFILE_METRIC_BUFFER_SIZE", int, 64 << 20),
    }
)

GROUPS: Final[dict[str, Knobs]] = {
    **{"amd": amd, "autotuning": autotuning, "build": build, "cache": cache, "compilation": compilation},
    **{"language": language, "nvidia": nvidia, "proton": proton, "redis": redis, "runtime": runtime},
}
"""Every group by name."""


def refresh_knobs() -> None:
    """Reads again what was read once: ``runtime.debug`` and ``compilation.instrumentation_mode``."""
    runtime.debug = _bool(os.environ.get("TRITON_DEBUG", ""))
    compilation.instrumentation_mode = os.environ.get("TRITON_INSTRUMENTATION_MODE", "")
