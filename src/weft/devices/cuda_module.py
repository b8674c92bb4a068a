"""``torch.cuda`` without a card: one device, whose work has ended when a call returns."""

# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from weft.devices.notice import say
from weft.runtime.events import Event

NAME: Final = "weft (this machine's CPU)"

_MEMORY: Final = 80 << 30
"""The bytes of memory that programs are told of, for those that size their work by it."""


class Stream:
    """A stream: what is given to it has been done when the call returns. Also a context."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    def __init__(self, device: Any = None, priority: int = 0, **keywords: Any) -> None:
        say("torch.cuda.Stream", "calls run in their order")
        self.priority = priority

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing: all work has ended."""

    def query(self) -> bool:
        """True."""
        return True

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: all work has ended."""

    def wait_event(self, event: Any) -> None:
        """Does nothing: all work has ended."""

    def record_event(self, event: Any = None) -> Event:
        """An event of now."""
        event = event or Event()
        event.record()
        return event


class CUDAGraph:
    """Refused: a graph would have to repeat calls that are not recorded."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise RuntimeError("weft: torch.cuda.CUDAGraph has no stand-in; call the function itself")


class Context:
    """A context that changes nothing: ``torch.cuda.device`` and the like. A class, since PyTorch asks for its instances."""

    def __init__(self, what: Any = None) -> None:
        self.stream = what

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, *error: object) -> None:
        """Does nothing."""


_ANSWERS: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (True, ("is_available", "is_initialized", "is_bf16_supported")),
    (1, ("device_count",)),
    (
        0,
        (
            *("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
            *("memory_cached", "max_memory_cached", "utilization", "clock_rate", "get_sync_debug_mode"),
        ),
    ),
    (
        None,
        (
            *("init", "synchronize", "set_device", "empty_cache", "reset_peak_memory_stats", "ipc_collect"),
            *("reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_stream", "set_sync_debug_mode"),
            *("set_per_process_memory_fraction", "_sleep", "_lazy_init"),
        ),
    ),
)
"""Functions that always give the same. Each name gets a function of its own: `torch.compile` has rules by function."""


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **keywords: value


def install(torch: Any, generator: Any) -> None:
    """Replaces the functions and classes of ``torch.cuda``; ``generator`` is the default one."""
    cuda = torch.cuda

    def capability(device: Any = None) -> tuple[int, int]:
        return torch._weft_cuda

    def properties(device: Any = None) -> SimpleNamespace:
        major, minor = torch._weft_cuda
        say("torch.cuda device properties", f"one device of capability {major}.{minor}; its sizes are made up")
        return SimpleNamespace(
            name=NAME,
            major=major,
            minor=minor,
            total_memory=_MEMORY,
            multi_processor_count=os.cpu_count() or 1,
            warp_size=32,
            max_threads_per_multi_processor=2048,
            max_threads_per_block=1024,
            regs_per_multiprocessor=65536,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=232448,
            shared_memory_per_multiprocessor=233472,
            L2_cache_size=50 << 20,
            gcnArchName="",
            is_integrated=True,
            is_multi_gpu_board=False,
        )

    def seed(value: int) -> None:
        generator.manual_seed(value)

    def seed_all(value: int) -> None:
        seed(value)

    replaced: dict[str, Any] = {
        **{name: _always(value) for value, names in _ANSWERS for name in names},
        "get_device_capability": capability,
        "get_device_properties": properties,
        "get_device_name": _always(NAME),
        "get_arch_list": lambda: ["sm_{}{}".format(*torch._weft_cuda)],
        "mem_get_info": _always((_MEMORY, _MEMORY)),
        "memory_stats": _always({}),
        "memory_summary": _always(""),
        "can_device_access_peer": _always(False),
        "is_current_stream_capturing": _always(False),
        "manual_seed": seed,
        "manual_seed_all": seed_all,
        "seed": lambda: generator.seed(),
        "seed_all": lambda: generator.seed(),
        "default_generators": (generator,),
        "initial_seed": lambda: generator.initial_seed(),
        "get_rng_state": lambda device=None: generator.get_state(),
        "set_rng_state": lambda state, device=None: generator.set_state(state),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state_all": lambda states: generator.set_state(states[0]),
        "Stream": Stream,
        "ExternalStream": type("ExternalStream", (Stream,), {}),
        "Event": Event,
        "CUDAGraph": CUDAGraph,
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "stream": lambda stream=None: Context(stream),
        "StreamContext": type("StreamContext", (Context,), {}),
        "device": type("device", (Context,), {"idx": 0, "prev_idx": 0}),
        "device_of": type("device_of", (Context,), {}),
    }
    for name, value in replaced.items():
        setattr(cuda, name, value)
        if not hasattr(torch.cpu, name):  # programs look up the module of a tensor's device
            setattr(torch.cpu, name, value)
    # With False CUDA graphs are left out, as for tensors of the CPU.
    torch._C._cuda_cudaCachingAllocator_is_enabled = _always(False)
    torch._C._cuda_getCurrentRawStream = _always(0)  # programs that launch by themselves take it from there
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(cuda.nvtx, name, _always(0))
    cuda.random.manual_seed = replaced["manual_seed"]
    cuda.random.manual_seed_all = replaced["manual_seed_all"]
    cuda.amp.autocast = lambda enabled=True, dtype=None, cache_enabled=None: torch.autocast(
        "cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled
    )

    @functools.cache  # PyTorch's is cached too, and the compiler looks at what it wraps
    def get_device_module(device: Any = None) -> Any:
        return cuda

    torch.get_device_module = get_device_module
