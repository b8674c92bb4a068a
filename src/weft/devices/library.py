"""``torch.library`` without a card: what is registered for CUDA is called for tensors in the CPU's memory.

Without it an operator that a program replaces for CUDA alone would silently stay PyTorch's own.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Final

from weft.devices.notice import say

KEYS: Final = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU", "AutocastCUDA": "AutocastCPU"}
"""Dispatch keys, and what stands in for them."""


def _key(key: str) -> str:
    if key in KEYS:
        say(f"operators for dispatch key {key}", f"they are registered for {KEYS[key]}")
    return KEYS.get(key, key)


def _type(device_type: Any) -> Any:
    if device_type == "cuda":
        say("operators for device type cuda", "they are registered for cpu")
        return "cpu"
    return device_type


def _types(device_types: Any) -> Any:
    """Each type once: a function for ``cpu`` and ``cuda`` is registered for ``cpu``."""
    if device_types is None or isinstance(device_types, str):
        return _type(device_types)
    return list(dict.fromkeys(map(_type, device_types)))


def install(torch: Any) -> None:
    """Replaces the methods of ``torch.library`` that register an operator; of two functions for one key the later counts."""
    library, operator = torch.library.Library, torch._library.custom_ops.CustomOpDef
    opened, registered, of_operator = library.__init__, library.impl, operator.register_kernel

    @functools.wraps(opened)
    def init(self: Any, ns: str, kind: str, dispatch_key: str = "") -> None:
        opened(self, ns, kind, _key(dispatch_key))

    @functools.wraps(registered)
    def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **keywords: Any) -> Any:
        if dispatch_key not in KEYS:
            return registered(self, op_name, fn, dispatch_key, **keywords)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="(?s)Warning only once.*Overriding a previously registered kernel"
            )
            return registered(self, op_name, fn, _key(dispatch_key), **keywords)

    @functools.wraps(of_operator)
    def register_kernel(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        return of_operator(self, _types(device_types), fn)

    library.__init__, library.impl, operator.register_kernel = init, impl, register_kernel
