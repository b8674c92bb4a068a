"""Examples at the smallest sizes of Triton's tutorials: weft's native code beside Triton's interpreter.

``python benchmarks/interpreter.py --triton PYTHON``: PYTHON is of an environment with triton and NumPy; it needs no GPU and no
PyTorch. There the same files run with ``TRITON_INTERPRET=1``, with Triton under weft's name. Times are the least of some repeats
after a first launch, which compiles.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples"


class Size(int):
    """A number of elements, which is also a method that gives the shape, as PyTorch's."""

    shape: tuple[int, ...]

    def __call__(self) -> tuple[int, ...]:
        return self.shape


class Tensor:
    """A NumPy array with the methods of PyTorch's tensors that Triton's interpreter calls."""

    def __init__(self, array: Any):
        self.array = array
        self.size = Size(array.size)
        self.size.shape = array.shape

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def copy_(self, other: Tensor) -> None:
        assert other.array is self.array

    def new_empty(self, *_: Any, **__: Any) -> Tensor:
        return Tensor(np.empty(0, self.array.dtype))

    def storage_offset(self) -> int:
        return 0

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def set_(self, storage: Tensor, *_: Any) -> None:
        self.__init__(storage.array)


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Any]:
    """Random arrays."""
    return [np.random.default_rng(i).standard_normal(shape).astype(dtype) for i, shape in enumerate(shapes)]


def cases(wrap: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    """Name -> one run of an example; `wrap` makes arrays what the system takes."""

    def example(name: str, function: str) -> Any:
        return getattr(importlib.import_module(name), function)

    def given(*shapes: tuple[int, ...]) -> list[Any]:
        return list(map(wrap, arrays(*shapes)))

    x, y, out = given((4096,), (4096,), (4096,))
    rows, result = given((4096, 256), (4096, 256))
    wide, weight, bias, normal = given((4096, 1024), (1024,), (1024,), (4096, 1024))
    q, k, v, attended = given(*[(2, 1024, 64)] * 4)
    a, b, c = given((256, 256), (256, 256), (256, 256))
    return {
        "vector add, 4,096": lambda: example("vector_add", "add")(x, y, out, 1024),
        "softmax, 4,096 x 256": lambda: example("softmax", "softmax")(rows, result),
        "dropout, 4,096": lambda: example("dropout", "dropout")(x, out, 0.5, 123),
        "layer norm, 4,096 x 1,024": lambda: example("layer_norm", "layer_norm")(wide, weight, bias, normal),
        "matmul, 256 x 256 x 256": lambda: example("matmul", "matmul")(a, b, c),
        "attention, 2 x 1,024 x 64": lambda: example("flash_attention", "attention")(q, k, v, attended),
    }


def measured(repeats: int, wrap: Callable[[Any], Any]) -> dict[str, float]:
    """Seconds of each case."""
    result: dict[str, float] = {}
    for name, run in cases(wrap).items():
        run()
        times: list[float] = []
        for _ in range(repeats):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        result[name] = min(times)
    return result


def as_triton() -> None:
    """Puts Triton under weft's name."""
    triton: Any = importlib.import_module("triton")
    language: Any = importlib.import_module("triton.language")
    weft: Any = types.ModuleType("weft")
    weft.jit, weft.cdiv, weft.next_power_of_2, weft.language = triton.jit, triton.cdiv, triton.next_power_of_2, language
    sys.modules.update({"weft": weft, "weft.language": language, "ml_dtypes": types.ModuleType("ml_dtypes")})


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Examples beside Triton's interpreter.")
    parser.add_argument("--triton", metavar="PYTHON", help="the Python of an environment with triton and NumPy")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    agreement: Any = types.ModuleType("agreement")
    agreement.compare = None
    sys.modules["agreement"] = agreement
    sys.path.insert(0, str(EXAMPLES))
    if given.inside:
        as_triton()
        print(json.dumps(measured(1, Tensor)))
        return
    native = measured(20, lambda array: array)
    peer: dict[str, float] = {}
    if given.triton:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"TRITON_INTERPRET": "1"}
        command = [given.triton, __file__, "--inside"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        peer = json.loads(done.stdout.splitlines()[-1])
    print("| example | weft | Triton's interpreter | times |\n|---|--:|--:|--:|")
    for name, seconds in native.items():
        other = peer.get(name, float("nan"))
        print(f"| {name} | {1000 * seconds:.3f} ms | {1000 * other:,.0f} ms | {other / seconds:,.0f} |")


if __name__ == "__main__":
    main()
