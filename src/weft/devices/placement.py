"""Where tensors say they are: on ``cuda:0`` to programs, in the CPU's memory to PyTorch and weft.

Programs choose their kernels by ``x.is_cuda`` and ``x.device.type``. PyTorch's own Python code asks the same questions, and for a
card it would call functions that are not there. The answer depends on the module whose code asks (`from_inside`):

| question                          | programs           | PyTorch, weft |
|-----------------------------------|--------------------|---------------|
| ``x.device``                      | ``cuda:0``         | ``cpu``       |
| ``x.is_cuda``, ``x.is_cpu``       | True, False        | False, True   |
| ``x.get_device()``                | 0                  | -1            |
| ``torch.device("cuda")``          | ``cuda``, as asked | ``cpu``       |

Every tensor in the CPU's memory gives these answers, also one that the program made for the CPU. Devices are PyTorch's own
objects. Functions that take them have stand-ins (`weft.devices.torch_cuda`); others refuse them with PyTorch's message.
"""

# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any, Final

from weft.devices.notice import say
from weft.dropin import after_import
from weft.runtime.memory import Cards

INSIDE: Final = frozenset({"torch", "functorch", "torchgen", "weft"})
"""The packages that are told of the CPU."""

DEVICE: Final = "device 'cuda'"
CPU: Final = "tensors are in the CPU's memory"


@cache
def _is_inside(module: str | None) -> bool:
    return (module or "").partition(".")[0] in INSIDE


def from_inside() -> bool:
    """Whether the code that called our caller belongs to `INSIDE`."""
    return _is_inside(sys._getframe(2).f_globals.get("__name__"))  # pyright: ignore[reportPrivateUsage]


def _device_class(torch: Any) -> type:
    """``torch.device`` whose CUDA devices are the CPU to PyTorch's own code; devices are still instances of it."""
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
            given = args[0] if args else keywords.get("type")
            made = device("cuda", given) if isinstance(given, int) else device(*args, **keywords)
            if made.type != "cuda":
                return made
            say(DEVICE, CPU)
            return device("cpu") if from_inside() else made

    return Meta("device", (), {"__doc__": device.__doc__, "__module__": "torch"})


def _answering(theirs: Any, to_programs: Any, on_cpu: Callable[[Any], bool]) -> property:
    """An attribute of tensors: PyTorch's answer, and another for programs that ask about a tensor in the CPU's memory."""

    def answer(self: Any) -> Any:
        found = theirs.__get__(self)
        return found if from_inside() or not on_cpu(self) else to_programs

    return property(answer, doc=theirs.__doc__)


def install(torch: Any) -> None:
    """Replaces ``torch.device`` and what tensors say of their device."""
    tensor = torch.Tensor
    device, number = tensor.device, tensor.get_device

    def on_cpu(self: Any) -> bool:
        return device.__get__(self).type == "cpu"

    Cards.real = False  # objects of programs that imitate tensors say what they were told
    card = torch._weft_device = torch.device("cuda", 0)
    for name, to_programs in (("device", card), ("is_cuda", True), ("is_cpu", False)):
        setattr(tensor, name, _answering(getattr(tensor, name), to_programs, on_cpu))

    def get_device(self: Any) -> int:
        return number(self) if from_inside() or not on_cpu(self) else 0

    tensor.get_device = get_device
    torch.device = _device_class(torch)
    after_import("torch._dynamo.variables.tensor", lambda module: _install_compiled(module, card))


def _install_compiled(module: ModuleType, card: Any) -> None:
    """``torch.compile`` knows the attributes of tensors by itself: the same answers, by the module of the code that it traces."""
    traced: Any = module.__dict__["TensorVariable"]
    build: Any = module.__dict__["VariableTracker"].build

    def answering(theirs: Any, to_programs: Any) -> Any:
        @wraps(theirs)
        def method_attr(self: Any, tx: Any) -> Any:
            if self.device is None or self.device.type != "cpu" or _is_inside(tx.f_globals.get("__name__")):
                return theirs(self, tx)
            return build(tx, to_programs)

        return method_attr

    def is_cpu(self: Any, tx: Any) -> Any:
        return None if self.device is None else build(tx, self.device.type == "cpu")

    for name, theirs, to_programs in (
        ("device", traced.method_attr_device, card),
        ("is_cuda", traced.method_attr_is_cuda, True),
        ("is_cpu", getattr(traced, "method_attr_is_cpu", is_cpu), False),
    ):
        setattr(traced, f"method_attr_{name}", answering(theirs, to_programs))
