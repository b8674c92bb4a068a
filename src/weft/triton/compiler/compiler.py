"""``triton.compiler.compiler``: `compile`, what it takes and what it gives."""

from __future__ import annotations

import hashlib
import platform
import time
from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

from weft.frontend.signature import Argument
from weft.ir.errors import CompilationError as WeftCompilationError
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.artifacts import Artifact, GpuArtifact
from weft.runtime.binding import LAUNCH_OPTIONS
from weft.runtime.errors import OutOfResources
from weft.target import GpuTarget, host
from weft.triton import knobs
from weft.triton.backends.compiler import BaseBackend, GPUTarget, compiled_for
from weft.triton.compiler import signatures
from weft.triton.compiler.errors import CompilationError, translated
from weft.triton.errors import out_of_resources

__all__ = [
    "ASTSource", "AsmDict", "CompilationError", "CompiledKernel", "GPUTarget", "IRSource", "LazyDict", "compile",
    "get_cache_key", "make_backend", "max_shared_mem", "triton_key",
]  # fmt: skip


class ASTSource:
    """A kernel with the types of its arguments.

    ``signature`` maps parameters to types (``"*fp32"``, ``"i32"``, ``"constexpr"``), ``constexprs`` to compile-time values, by
    name or index, and ``attrs`` indices to promises (``{(0,): [["tt.divisibility", 16]]}``).
    """

    ext = "ttir"

    def __init__(
        self,
        fn: Any,
        signature: Mapping[Any, str],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Any, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.name: str = fn.__name__
        self.signature = dict(signature)
        self.constants = dict(constexprs or {})
        self.attrs = dict(attrs or {})

    @classmethod
    def of(cls, fn: Any, signature: Mapping[str, Argument]) -> ASTSource:
        """The source for weft's signature."""
        spelled, constants = signatures.spelled(fn, signature), signatures.constants_of(signature)
        return cls(fn, spelled, constants, signatures.attributes_of(signature))

    @property
    def arguments(self) -> dict[str, Argument]:
        """Weft's signature."""
        return signatures.read(list(self.fn.arg_names), self.signature, self.constants, self.attrs)

    def hash(self) -> str:
        """A text that differs for different code."""
        parts = (
            self.fn.cache_key,
            sorted(map(repr, self.signature.items())),
            sorted(map(repr, self.constants.items())),
        )
        return hashlib.sha256(repr((parts, sorted(map(repr, self.attrs.items())))).encode()).hexdigest()


class IRSource:
    """Refused: weft compiles kernels, not files of Triton's IR."""

    def __init__(self, path: str, context: Any = None, backend: Any = None) -> None:
        raise NotImplementedError(
            f"'{path}': weft does not read Triton's IR; compile the kernel, or use 'weft opt' on tile IR"
        )


class LazyDict:
    """A dict to which functions add items when it is read."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]] = []

    def add(self, func: Callable[..., dict[str, Any]], args: tuple[Any, ...]) -> None:
        """Adds a function of ``args`` that returns items."""
        self.extras.append((func, args))

    def get(self) -> dict[str, Any]:
        """The items."""
        for function, arguments in self.extras:
            self.data = self.data | function(*arguments)
        self.extras.clear()
        return self.data


class AsmDict(dict[str, Any]):
    """The texts of a compiled kernel; each is made when it is asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__()
        self._makers = makers

    def __missing__(self, key: str) -> Any:
        if key not in self._makers:
            raise KeyError(f"Unknown key: '{key}'; this kernel has {', '.join(self._makers)}")
        self[key] = value = self._makers[key]()
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def keys(self) -> Any:
        return self._makers.keys()

    def __iter__(self) -> Any:
        return iter(self._makers)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401  # `dict.get` makes nothing


_REGISTERS: Final = 32
_SHARED: Final = 1
"""What a CPU's kernel says of a thread's registers and a block's shared memory, since programs divide by both."""

_FIELDS: Final = [
    *(
        "arch",
        "backend_name",
        "cluster_dims",
        "debug",
        "enable_fp_fusion",
        "global_scratch_align",
        "global_scratch_size",
    ),
    *(
        "hash",
        "launch_cooperative_grid",
        "launch_pdl",
        "maxnreg",
        "name",
        "num_ctas",
        "num_stages",
        "num_warps",
        "shared",
    ),
    *("target", "tmem_size", "warp_size"),
]
KernelMetadata = namedtuple("KernelMetadata", _FIELDS)  # pyright: ignore[reportUntypedNamedTuple]


class CompiledKernel:
    """A kernel compiled for a signature: ``asm`` (texts by name), ``metadata``, ``n_regs``, ``n_spills``, and
    ``kernel[grid](...)``, which launches it with values for all parameters.

    ``asm`` has ``ttir`` (tile IR), ``llir``, and ``asm`` and ``obj`` of a CPU, ``ttgir`` (laid-out tile IR), ``ptx`` and, where
    ptxas is installed, ``cubin`` and ``sass`` of a GPU.
    """

    def __init__(
        self,
        src: ASTSource,
        signature: dict[str, Argument],
        options: Options,
        executable: Any,
        target: GpuTarget | None,
    ) -> None:
        self.src = src
        self.signature = signature
        self.options = options
        self.name = named(src)
        self.target = target
        artifact = getattr(executable, "artifact", None)
        self._gpu: GpuArtifact | None = artifact if isinstance(artifact, GpuArtifact) else None
        self.function = self.module = executable
        self.packed_metadata = ()
        self.metadata_group: dict[str, str] = {}

    @cached_property
    def hash(self) -> str:
        """A text that differs for different code."""
        return hashlib.sha256(f"{self.src.hash()}{self.options}{self.target}".encode()).hexdigest()

    @cached_property
    def metadata(self) -> Any:
        """How it was compiled: ``num_warps``, ``shared`` and others."""
        options, gpu = self.options, self._gpu
        known = {
            "backend_name": "cuda" if gpu else "cpu",
            "enable_fp_fusion": options.fusion is not False,  # Triton's default
            "hash": self.hash,
            "maxnreg": options.most_registers,
            "name": self.name,
            "num_ctas": options.blocks,
            "num_stages": options.stages,
            "num_warps": options.warps,
            "shared": gpu.shared if gpu else _SHARED,
            "target": GPUTarget("cuda", self.target.sm, 32)
            if self.target
            else GPUTarget("cpu", platform.machine(), 32),
            "warp_size": 32,
            "cluster_dims": (options.blocks, 1, 1),
            "global_scratch_size": 0,
            "global_scratch_align": 1,
            "debug": bool(options.asserts),
            "launch_cooperative_grid": False,
            "launch_pdl": False,
        }
        return KernelMetadata(**{field: known.get(field) for field in _FIELDS})

    @cached_property
    def asm(self) -> AsmDict:
        """The texts."""
        fn, signature, options, target = self.src.fn, self.signature, self.options, self.target or host()
        makers: dict[str, Callable[[], Any]] = {
            "source": lambda: fn.src,
            "ttir": lambda: str(compiler.tile_ir(fn, signature, options)),
            "ttgir": lambda: str(compiler.laid_out(fn, signature, options, target)),
            "llir": lambda: compiler.llvm_ir(fn, signature, options, target),
        }
        if (gpu := self._gpu) is not None:
            makers["ptx"] = lambda: gpu.ptx
            makers["sass"] = self._sass
        else:
            makers["asm"] = lambda: compiler.assembly(fn, signature, options, target)
            makers["obj"] = self._object
        return AsmDict(makers)

    @property
    def kernel(self) -> Any:
        """The code: PTX, or an object file's bytes."""
        return self._object() if self._gpu is None else self._gpu.ptx

    def _object(self) -> bytes:
        """The object file, from disk, or compiled again: loaded kernels do not keep it."""
        return compiler.artifact_for(self.src.fn, self.signature, self.options).object

    def _sass(self) -> str:
        from weft.emulator.profile import ptxas

        assert self.target is not None
        return ptxas.disassembly(self.kernel, self.target.name)

    @cached_property
    def _resources(self) -> tuple[int, int]:
        """Registers and spilled bytes, as ptxas says; `_REGISTERS` and 0 without ptxas and on the CPU."""
        if self._gpu is None or self.target is None:
            return _REGISTERS, 0
        from weft.emulator.errors import ToolError
        from weft.emulator.profile import ptxas

        try:
            known = ptxas.known_resources(self._gpu.ptx, self._gpu.symbol, self.target.name)
        except ToolError:
            return _REGISTERS, 0
        return known.registers, known.spill_stores

    @property
    def n_regs(self) -> int:
        """The registers of a thread; 32 where that is not known, since programs divide by it."""
        return self._resources[0]

    @property
    def n_spills(self) -> int:
        """The bytes of a thread's registers that are spilled; 0 where that is not known."""
        return self._resources[1]

    n_max_threads = 1024

    def _init_handles(self) -> None:
        """Does nothing: the code is loaded."""

    def loaded(self) -> None:
        """Calls the hooks around loading. The code is loaded before: both are told of it."""
        for chain in (knobs.runtime.kernel_load_start_hook, knobs.runtime.kernel_load_end_hook):
            if chain is not None and getattr(chain, "calls", True):
                chain(self.module, self.function, self.name, self.metadata_group, self.hash)

    @property
    def run(self) -> Callable[..., Any]:
        """The launcher, for code that looks for it."""

        def launch(x: int, y: int, z: int, *rest: Any) -> Any:
            return self[(x, y, z)](*rest[6:])  # behind stream, function, packed metadata, launch metadata and two hooks

        return launch

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> LazyDict:
        """What launch hooks are told."""
        result = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        if (extra := getattr(self.src.fn, "launch_metadata", None)) is not None:
            named = dict(zip(self.src.fn.arg_names, args, strict=False))
            result.add(extra, (grid, self.metadata, named))
        return result

    def announce(self, hook: Callable[[LazyDict], Any], grid: Any, values: Any) -> None:
        """Calls a launch hook."""
        hook(self.launch_metadata(grid, 0, *values))

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The launcher for a grid: takes values for all parameters, or for those that are not known at compile time. Values for
        the known ones count for nothing."""

        def launch(*args: Any, stream: Any = None) -> Any:
            names = list(self.src.fn.arg_names)
            constants = signatures.constant_parameters(names, self.signature)
            if len(args) < len(names):
                names = [name for name in names if name not in constants]
            keywords = dict(zip(names, args, strict=True)) | constants
            return self.src.fn.run(grid=grid, warmup=False, **keywords, **dict(self.options.launch))

        return launch


def named(src: ASTSource) -> str:
    """The kernel's name for profilers: what its ``repr`` makes of the types and constants, by parameter."""
    names: list[str] = src.fn.arg_names
    constants: dict[Any, Any] = {
        names[key[0]] if isinstance(key, tuple) else key: value
        for key, value in src.constants.items()
        if not isinstance(key, tuple) or len(key) == 1  # pyright: ignore[reportUnknownArgumentType]
    }
    return src.fn.repr(SimpleNamespace(signature=src.signature, constants=constants, fn=src.fn))


class _Made:
    """What `CompiledKernel` holds of a kernel that was not loaded."""

    def __init__(self, artifact: Artifact | GpuArtifact) -> None:
        self.artifact = artifact


def compile(
    src: ASTSource, target: GPUTarget | None = None, options: Mapping[str, Any] | None = None, _env_vars: Any = None
) -> CompiledKernel:
    """Compiles for a target (default: the one that launches run on); see `ASTSource`.

    Raises: `CompilationError`, `OutOfResources`.
    """
    from weft.triton.runtime.hooks import listened

    began = time.perf_counter_ns()
    gpu = compiled_for(target)
    known = {k: v for k, v in (options or {}).items() if k in LAUNCH_OPTIONS and v != LAUNCH_OPTIONS[k].default}
    chosen = Options(launch=tuple(sorted(known.items())))
    arguments = src.arguments
    try:
        if gpu is None:
            artifact: Artifact | GpuArtifact = compiler.artifact_for(src.fn, arguments, chosen)
        else:
            artifact = compiler.gpu_artifact_for(src.fn, arguments, chosen, gpu)
    except WeftCompilationError as error:
        made = translated(error, src.fn)
        raise made from made.__cause__
    except OutOfResources as error:
        raise out_of_resources(error) from None
    kernel = CompiledKernel(src, arguments, chosen, _Made(artifact), gpu)
    listened(kernel, began)
    return kernel


def make_backend(target: GPUTarget) -> BaseBackend:
    """The compiler for a target."""
    return BaseBackend(target)


def max_shared_mem(device: Any) -> int:
    """The bytes of shared memory that a block may have."""
    from weft.triton.backends.driver import properties

    return properties()["max_shared_mem"]


def triton_key() -> str:
    """A text that differs for different versions of the compiler."""
    import weft
    from weft.runtime import cache

    return f"weft-{weft.__version__}-{cache.fingerprint()}"


def get_cache_key(src: ASTSource, backend: BaseBackend, backend_options: Any, env_vars: Any) -> str:
    """A text that differs for different code."""
    return f"{triton_key()}-{src.hash()}-{backend.hash()}-{backend_options}-{env_vars or {}}"
