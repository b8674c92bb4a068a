"""Tensors of PyTorch, by what they are like: contiguous ones, which routes take, and others. For where PyTorch is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

torch: Any = import_module("torch")

BASE: Any = torch.arange(256, dtype=torch.uint8)
ALIGNED: Any = BASE[-BASE.data_ptr() % 64 :]

TAKEN: dict[str, Callable[[], Any]] = {
    "whole": lambda: ALIGNED[:32],
    "behind it": lambda: ALIGNED[64:96],
    "by one further": lambda: ALIGNED[33:64],
    "bfloat16": lambda: ALIGNED[64:96].view(torch.bfloat16),
    "float8": lambda: ALIGNED[64:96].view(torch.float8_e4m3fn),
    "two dimensions": lambda: ALIGNED[64:96].reshape(4, 8),
    "empty": lambda: ALIGNED[:0],
    "no dimension": lambda: torch.tensor(3, dtype=torch.uint8),
    "a parameter": lambda: torch.nn.Parameter(torch.zeros(5)),
    "with a gradient": lambda: torch.zeros(5, requires_grad=True),
}


class Subclass(torch.Tensor):
    """May be anything."""


NOT_TAKEN: dict[str, Callable[[], Any]] = {
    "transposed": lambda: ALIGNED[:32].reshape(4, 8).T,
    "with steps": lambda: ALIGNED[:32:2],
    "broadcast": lambda: ALIGNED[:1].expand(4),
    "negated": lambda: torch.ones(1, dtype=torch.complex64).conj().imag,
    "meta": lambda: torch.empty(3, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "a subclass": lambda: torch.zeros(3).as_subclass(Subclass),
}
