"""``torch`` without a card, for programs that name ``cuda``: tensors are in the CPU's memory.

`install` replaces, in an imported ``torch``:

- factories (``torch.empty`` and the like) and methods that take a device: ``cuda`` becomes ``cpu``;
- ``torch.device``: ``torch.device("cuda")`` is the CPU's;
- what ``torch.cuda`` says of cards: one card, of the compute capability that is asked for;
- streams, events and graphs: all work has ended when a call returns;
- autocast for ``cuda``: that of the CPU;
- operators that are registered for CUDA: they are registered for the CPU.

Everything else of ``torch`` stays. Each stand-in is named once on stderr, at its first use.
"""

# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from weft.devices import cuda_module, library
from weft.devices.notice import say

FACTORIES: Final = (
    *("arange", "as_tensor", "asarray", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace"),
    *("load", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn"),
    *(
        "randn_like",
        "randperm",
        "scalar_tensor",
        "set_default_device",
        "sparse_coo_tensor",
        "sparse_csr_tensor",
        "tensor",
    ),
    *("tril_indices", "triu_indices", "zeros", "zeros_like", "hann_window", "hamming_window", "range"),
)
"""Functions of ``torch`` that take a device."""

METHODS: Final = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "new_empty_strided")
"""Methods of tensors that take a device by name; `_moving` is about ``to``."""

_DEVICE: Final = "device 'cuda'"
_CPU: Final = "tensors are in the CPU's memory"


def _on_cpu(value: Any) -> Any:
    """``cpu`` for any spelling of a CUDA device; other values as they are. It asks for no class: `torch.compile` traces this."""
    kind = value.partition(":")[0] if isinstance(value, str) else getattr(value, "type", None)
    if kind == "cuda":
        say(_DEVICE, _CPU)
        return "cpu"
    return value


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with CUDA devices among its arguments replaced."""

    @functools.wraps(function)
    def mapped(*args: Any, **keywords: Any) -> Any:
        if "device" in keywords and (isinstance(keywords["device"], int) and not isinstance(keywords["device"], bool)):
            keywords["device"] = "cpu"
        elif "device" in keywords or "map_location" in keywords:
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


def _device_class(torch: Any) -> type:
    """``torch.device`` whose CUDA devices are the CPU; devices are still instances of it."""
    device = torch.device

    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            return (
                other is cls or other is device
            )  # sets of classes, as `torch.compile` has them, find a device's class

        def __hash__(cls) -> int:
            return hash(device)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, device)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, device)

        def __call__(cls, *args: Any, **keywords: Any) -> Any:
            kind = args[0] if args else keywords.get("type")
            if kind == "cuda" or (isinstance(kind, str) and kind.startswith("cuda:")) or isinstance(kind, int):
                say(_DEVICE, _CPU)
                return device("cpu")
            return device(*args, **keywords)

    return Meta("device", (), {"__doc__": device.__doc__, "__module__": "torch"})


def install(torch: Any, capability: tuple[int, int]) -> None:
    """Puts the stand-ins in; ``capability`` is that of the card that programs are told of. Twice is as once."""
    if getattr(torch, "_weft_cuda", None) is not None:
        torch._weft_cuda = capability
        return
    torch._weft_cuda = capability
    for name in FACTORIES:
        setattr(torch, name, _mapped(getattr(torch, name)))
    torch.device = _device_class(torch)
    tensor = torch.Tensor
    for name in METHODS:
        setattr(tensor, name, _mapped(getattr(tensor, name)))
    tensor.to = _moving(tensor.to)
    tensor.cuda = _cuda_method
    tensor.is_cuda = property(lambda self: self.device.type == "cpu")
    tensor.pin_memory = lambda self, *args, **keywords: self
    tensor.record_stream = lambda self, stream: None
    torch.nn.Module.to = _moving(torch.nn.Module.to)
    torch.nn.Module.cuda = lambda self, device=None: self
    generator = torch.Generator
    torch.Generator = _generator_class(generator)
    torch.autocast = _autocast_class(torch)
    torch.amp.autocast = torch.amp.autocast_mode.autocast = torch.autocast
    torch.is_autocast_enabled = _on_first(torch.is_autocast_enabled)
    torch.get_autocast_dtype = _on_first(torch.get_autocast_dtype)
    cuda_module.install(torch)
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


def _generator_class(generator: Any) -> Any:
    """``torch.Generator`` that takes CUDA devices."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, generator)

        def __call__(cls, device: Any = "cpu") -> Any:
            return generator(device=_on_cpu(device))

    return Meta("Generator", (), {"__module__": "torch"})


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
