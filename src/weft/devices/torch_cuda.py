"""``torch`` without a card, for programs that name ``cuda``: tensors are in the CPU's memory.

`install` replaces, in an imported ``torch``:

- factories (``torch.empty`` and the like) and methods that take a device: ``cuda`` becomes ``cpu``;
- what tensors and ``torch.device`` say of devices (`weft.devices.placement`);
- copies to the CPU: a tensor that is there is copied, because a program may overwrite the one on its card;
- what ``torch.cuda`` says of cards: one card, of the compute capability that is asked for;
- streams, events and graphs: all work has ended when a call returns;
- CUDA's generators (`weft.devices.generators`);
- autocast for ``cuda``: that of the CPU;
- operators that are registered for CUDA: they are registered for the CPU.

Everything else of ``torch`` stays. Each stand-in is named once on stderr, at its first use.
"""

# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from weft.devices import cuda_module, generators, library, placement
from weft.devices.notice import say
from weft.devices.placement import CPU, DEVICE, from_inside
from weft.dropin import after_import

FACTORIES: Final = {
    "": (
        *(
            "arange",
            "as_tensor",
            "asarray",
            "empty",
            "empty_like",
            "empty_permuted",
            "empty_quantized",
            "empty_strided",
        ),
        *(
            "eye",
            "from_file",
            "full",
            "full_like",
            "linspace",
            "load",
            "logspace",
            "normal",
            "ones",
            "ones_like",
            "rand",
        ),
        *("rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor"),
        *("set_default_device", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor"),
        *("sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices"),
        *("zeros", "zeros_like"),
        *(f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")),
    ),
    "fft": ("fftfreq", "rfftfreq"),
    "nested": ("as_nested_tensor", "nested_tensor"),
    "amp": ("custom_fwd", "custom_bwd"),
}
"""Functions that take a device, by the module of ``torch``."""

METHODS: Final = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "new_empty_strided")
"""Methods of tensors that take a device by name; `_moving` is about ``to``."""


def _kind(value: Any) -> Any:
    """The kind of a device, however it is spelled. It asks for no class: `torch.compile` traces this."""
    return value.partition(":")[0] if isinstance(value, str) else getattr(value, "type", None)


def _on_cpu(value: Any) -> Any:
    """``cpu`` for any spelling of a CUDA device; other values as they are."""
    if _kind(value) == "cuda":
        say(DEVICE, CPU)
        return "cpu"
    return value


_KEYWORDS: Final = {"device", "device_type", "map_location"}


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with CUDA devices among its arguments replaced."""

    @functools.wraps(function)
    def mapped(*args: Any, **keywords: Any) -> Any:
        if "device" in keywords and (isinstance(keywords["device"], int) and not isinstance(keywords["device"], bool)):
            keywords["device"] = "cpu"
        elif keywords.keys() & _KEYWORDS:
            keywords = {name: _on_cpu(value) for name, value in keywords.items()}
        args = tuple(map(_on_cpu, args))
        if keywords.get("pin_memory"):
            say("pinned memory", "ordinary memory")
            keywords["pin_memory"] = False
        return function(*args, **keywords)

    return mapped


def _moving(to: Callable[..., Any]) -> Callable[..., Any]:
    """The method ``to`` of tensors or modules, with CUDA devices replaced; a number that comes first is a device."""
    mapped = _mapped(to)

    @functools.wraps(to)
    def moved(self: Any, *args: Any, **keywords: Any) -> Any:
        if args and type(args[0]) is int:
            args = ("cpu", *args[1:])
        return mapped(self, *args, **keywords)

    return moved


def _copying(to: Callable[..., Any], is_compiling: Callable[[], bool]) -> Callable[..., Any]:
    """``Tensor.to`` or ``Tensor.cpu``: programs that name the CPU get a copy, as they do of a tensor on a card.

    PyTorch's own code keeps its tensors: it names the device that a tensor is on, for it the CPU. What `torch.compile` traces is
    copied, since there is no caller to be asked.
    """

    @functools.wraps(to)
    def copied(self: Any, *args: Any, **keywords: Any) -> Any:
        place = keywords.get("device", args[0] if args else "cpu" if to.__name__ == "cpu" else None)
        result = to(self, *args, **keywords)
        if result is self and _kind(place) == "cpu" and (is_compiling() or not from_inside()):
            return result.clone()
        return result

    return copied


_NOTICES: Final = "ignore_logging_functions"
"""The functions that `torch.compile` leaves out: a notice would end what it traces."""


def install(torch: Any, capability: tuple[int, int]) -> None:
    """Puts the stand-ins in; ``capability`` is that of the card that programs are told of. Twice is as once."""
    if getattr(torch, "_weft_cuda", None) is not None:
        torch._weft_cuda = capability
        return
    torch._weft_cuda = capability
    placement.install(torch)
    for module, names in FACTORIES.items():
        home = getattr(torch, module) if module else torch
        for name in names:
            setattr(home, name, _mapped(getattr(home, name)))
    tensor = torch.Tensor
    for name in METHODS:
        setattr(tensor, name, _mapped(getattr(tensor, name)))
    tensor.to = _copying(_moving(tensor.to), torch.compiler.is_compiling)
    tensor.cuda = _cuda_method
    tensor.cpu = _copying(tensor.cpu, torch.compiler.is_compiling)
    tensor.pin_memory = lambda self, *args, **keywords: self
    tensor.record_stream = lambda self, stream: None
    torch.nn.Module.to = _moving(torch.nn.Module.to)
    torch.nn.Module.cuda = lambda self, device=None: self
    torch.Generator, default = generators.classes(torch)
    torch.autocast = _autocast_class(torch)
    torch.amp.autocast = torch.amp.autocast_mode.autocast = torch.autocast
    torch.is_autocast_enabled = _on_first(torch.is_autocast_enabled)
    torch.get_autocast_dtype = _on_first(torch.get_autocast_dtype)
    after_import("torch._dynamo.config", lambda config: getattr(config, _NOTICES, set[Any]()).add(say))
    cuda_module.install(torch, default)
    library.install(torch)


def _cuda_method(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    """The tensor itself."""
    say("Tensor.cuda()", "the tensor itself, in the CPU's memory")
    return self


def _on_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with ``"cuda"`` as its first argument replaced; without arguments it is asked for the CPU."""

    @functools.wraps(function)
    def mapped(*args: Any) -> Any:
        return function(*(map(_on_cpu, args) if args else ("cpu",)))

    return mapped


def _autocast_class(torch: Any) -> Any:
    """``torch.autocast`` that takes ``"cuda"`` for ``"cpu"``; the default dtype is that of cards, float16."""
    autocast = torch.autocast

    class Autocast(autocast):
        def __init__(
            self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
        ) -> None:
            if device_type == "cuda":
                say("autocast('cuda')", "autocast('cpu')")
                dtype = torch.float16 if dtype is None else dtype
            autocast.__init__(self, _on_cpu(device_type), dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    Autocast.__name__ = "autocast"
    return Autocast
