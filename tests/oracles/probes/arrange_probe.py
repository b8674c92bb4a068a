"""Evaluates expressions of `weft.array` with a package's own functions: ``arrange_probe.py NAME`` reads them as JSON.

Only what a package spells otherwise is written here; the rest is its function of the same name. An answer is
``int8* (2,) [1, 2]`` (with ``*`` where the result is weak), several of them joined by ``;``, or ``!`` and the error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DATA = {
    "x": np.arange(3, dtype="int32"),
    "f": np.array([1.5, 2.5, 3.5], "float32"),
    "h": np.array([1.5, 2.5, 3.5], "float16"),
    "i8": np.array([1, 2, 3], "int8"),
    "u8": np.array([1, 2, 3], "uint8"),
    "b": np.array([True, False, True]),
    "M": np.arange(6, dtype="int32").reshape(2, 3),
    "F": np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -4.0]], "float32"),
    "R": np.arange(24, dtype="int32").reshape(2, 3, 4),
    "z": np.array([2.0, np.nan, 0.0, -0.0, 1.0], "float32"),
    "t": np.array([1, 0, 1, 2, 0], "int32"),
    "c": np.array([2 + 1j, 1 - 1j, 1 + 3j], "complex64"),
    "s": np.array(2, "int32"),
    "e": np.array([], "float32"),
}

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16")
TYPES += ("float32", "float64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128")


ACTIVATIONS = ("softmax", "relu", "silu", "gelu", "softplus", "leaky_relu", "elu", "relu6")


def typed(name: str) -> np.ndarray:
    """Three elements of a type."""
    import ml_dtypes

    return np.array([2, 0, 1]).astype(np.dtype(getattr(ml_dtypes, name, name)))


def widths(width: Any, rank: int) -> list[list[int]]:
    return np.broadcast_to(width, (rank, 2)).tolist()


def numpy_names() -> dict[str, Any]:
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    order = {"sort": lambda x, axis=-1: np.sort(x, axis, stable=True)}
    order["argsort"] = lambda x, axis=-1: np.argsort(x, axis, stable=True)
    pad = {
        "pad": lambda x, w, mode="constant", constant_values=0: np.pad(
            x, w, mode, **({"constant_values": constant_values} if mode == "constant" else {})
        )
    }
    names |= {f"a_{name}": typed(name) for name in TYPES}
    return names | order | pad | {"I": lambda *v, dtype="int64": np.array(v, dtype)} | DATA


def jax_names(wide: bool) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", wide)
    names = {name: getattr(jnp, name) for name in dir(jnp) if not name.startswith("_")}

    def topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
        if not largest:
            raise TypeError("top_k gives the largest")
        return jax.lax.top_k(x, k, axis=axis)

    names |= {name: getattr(jax.nn, name) for name in ACTIVATIONS} | {"log_softmax": jax.nn.log_softmax}
    names |= {name: getattr(jax.scipy.special, name) for name in ("xlogy", "xlog1py", "logsumexp")}
    names |= {name: jnp.asarray(value) for name, value in DATA.items()} | {"topk": topk}
    names["w"] = jnp.full((3,), 3)
    names |= {f"a_{name}": jnp.asarray(typed(name)) for name in TYPES}
    names["pad"] = lambda x, w, mode="constant", constant_values=0: jnp.pad(
        x, w, mode, **({"constant_values": constant_values} if mode == "constant" else {})
    )
    return names | {"I": lambda *v, dtype="int64": jnp.asarray(np.array(v, dtype))}


def torch_names() -> dict[str, Any]:
    import torch

    def axes(axis: Any) -> Any:
        return axis if isinstance(axis, (tuple, list)) else (axis,)

    def dtype(name: Any) -> Any:
        return None if name is None else getattr(torch, name)

    def pad(x: Any, w: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
        flat = [n for pair in widths(w, x.ndim)[::-1] for n in pair]
        mode = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
        if mode == "constant":
            return torch.nn.functional.pad(x, flat, value=constant_values)
        return torch.nn.functional.pad(x[None, None], flat, mode)[0, 0]

    def take(x: Any, i: Any, axis: Any = None, mode: Any = None) -> Any:
        if mode is not None:
            raise TypeError("no mode")
        return torch.take(x, i) if axis is None else torch.index_select(x, axis, i)

    def repeat(x: Any, n: Any, axis: Any = None) -> Any:
        return torch.repeat_interleave(x, torch.tensor(n) if isinstance(n, list) else n, dim=axis)

    def argsort(x: Any, axis: int = -1, descending: bool = False) -> Any:
        return torch.argsort(x, dim=axis, descending=descending, stable=True)

    def sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
        return torch.sort(x, dim=axis, descending=descending, stable=True)[0]

    def full(shape: Any, value: Any, **more: Any) -> Any:
        return torch.full(shape if isinstance(shape, tuple) else (shape,), value, **more)

    def made(function: Any) -> Any:
        return lambda *args, dtype=None, **more: function(*args, dtype=convert(dtype), **more)

    def first(function: Any) -> Any:
        """The values of a function that gives indices with them."""

        def values(*args: Any, **more: Any) -> Any:
            found = function(*args, **more)
            return found if isinstance(found, torch.Tensor) else found[0]

        return values

    def divmod(x: Any, y: Any) -> Any:
        raise TypeError("torch has no divmod")

    convert = dtype
    names = {name: getattr(torch, name) for name in dir(torch) if not name.startswith("_")}
    names |= {name: torch.from_numpy(value.copy()) for name, value in DATA.items()}
    numbers = torch.tensor([2, 0, 1])
    names |= {f"a_{name}": numbers.to(getattr(torch, name)) for name in TYPES}
    names |= {
        "concatenate": lambda xs, axis=0: torch.cat(list(xs), axis),
        "stack": lambda xs, axis=0: torch.stack(list(xs), axis),
        "split": lambda x, n, axis=0: torch.split(x, n, axis),
        "flip": lambda x, axis=None: torch.flip(x, axes(axis)),
        "roll": lambda x, n, axis=None: torch.roll(x, n, axis) if axis is not None else torch.roll(x, n),
        "pad": pad,
        "take": take,
        "take_along_axis": lambda x, i, axis=-1: torch.take_along_dim(x, i, axis),
        "repeat": repeat,
        "tile": lambda x, n: torch.tile(x, n if isinstance(n, tuple) else (n,)),
        "sort": sort,
        "argsort": argsort,
        **{name: first(getattr(torch, name)) for name in ("median", "nanmedian", "max", "min")},
        **{name: getattr(torch.nn.functional, name) for name in ACTIVATIONS},
        "softmax": lambda x, axis: torch.softmax(x, axis),
        "log_softmax": lambda x, axis: torch.log_softmax(x, axis),
        "xlog1py": torch.special.xlog1py,
        "array_equal": torch.equal,
        "vdot": lambda x, y: torch.vdot(x, y),
        "divmod": divmod,
        "array_split": torch.tensor_split,
        "topk": lambda x, k, axis=-1, largest=True: tuple(torch.topk(x, k, axis, largest)),
        "nonzero": lambda x: torch.nonzero(x, as_tuple=True),
        "tensordot": lambda x, y, axes=2: torch.tensordot(x, y, axes),
        "full": made(full),
        **{name: made(names[name]) for name in ("zeros", "ones", "arange", "linspace", "eye")},
        **{name: made(names[name]) for name in ("zeros_like", "ones_like", "full_like")},
        "I": lambda *v, dtype="int64": torch.from_numpy(np.array(v, dtype)),
    }
    return names


def dali_names() -> dict[str, Any]:
    import nvidia.dali.experimental.dynamic as ndd

    def pad(x: Any, w: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
        if mode != "constant" or isinstance(constant_values, tuple):
            raise TypeError("constants only")
        pairs = widths(w, x.ndim)
        return ndd.slice(
            x,
            start=[-a for a, _ in pairs],
            shape=[n + a + b for n, (a, b) in zip(x.shape, pairs, strict=True)],
            axes=list(range(x.ndim)),
            out_of_bounds_policy="pad",
            fill_values=constant_values,
        )

    def flip(x: Any, axis: Any = None) -> Any:
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        places = [range(x.ndim)[a] for a in axes]
        return x[tuple(slice(None, None, -1 if a in places else 1) for a in range(x.ndim))]

    def made(name: str) -> Any:
        function = getattr(ndd, name)
        kind = {} if name in ("full", "full_like") else {"dtype": None}

        def make(*args: Any, dtype: Any = None) -> Any:
            given = {"dtype": getattr(ndd, dtype)} if dtype else {}
            if not kind and given:
                raise TypeError("no dtype")
            if name.endswith("_like"):
                return function(*args, **given)
            shape, *rest = args
            return function(*rest, shape=list(shape) if isinstance(shape, tuple) else [shape], **given)

        return make

    names: dict[str, Any] = {name: ndd.as_tensor(value) for name, value in DATA.items() if name not in "ce"}
    names |= {name: made(name) for name in ("zeros", "ones", "full", "zeros_like", "ones_like", "full_like")}
    return names | {
        "concatenate": lambda xs, axis=0: ndd.cat(*xs, axis=axis),
        "stack": lambda xs, axis=0: ndd.stack(*xs, axis=axis),
        "flip": flip,
        "pad": pad,
        "I": lambda *v, dtype="int64": np.array(v, dtype),
    }


def max_names(inputs: dict[str, Any]) -> dict[str, Any]:
    """MAX's functions inside a graph that has these inputs."""
    from max.dtype import DType
    from max.graph import DeviceRef, ops

    cpu = DeviceRef.CPU()

    def pad(x: Any, w: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
        flat = [n for pair in widths(w, len(x.shape)) for n in pair]
        return ops.pad(x, flat, mode, constant_values)

    def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: str) -> Any:
        first, last = (0, start) if stop is None else (start, stop)
        return ops.range(first, last, step, dtype=getattr(DType, dtype), device=cpu)

    names: dict[str, Any] = {
        "concatenate": lambda xs, axis=0: ops.concat(xs, axis),
        "stack": lambda xs, axis=0: ops.stack(xs, axis),
        "split": lambda x, n, axis=0: ops.split(x, n, axis),
        "pad": pad,
        "tile": lambda x, n: ops.tile(x, n if isinstance(n, tuple) else (n,)),
        "repeat": lambda x, n, axis=None: ops.repeat_interleave(x, n, axis),
        "take": lambda x, i, axis: ops.gather(x, i, axis),
        "argsort": lambda x, axis=-1, descending=False: ops.argsort(x, not descending),
        "topk": lambda x, k, axis=-1, largest=True: (ops.top_k if largest else ops.bottom_k)(x, k, axis),
        "outer": ops.outer,
        "arange": arange,
        "I": lambda *v, dtype="int64": ops.constant(np.array(v, dtype), getattr(DType, dtype), cpu),
    }
    return names | inputs


def max_answers(expressions: list[str]) -> list[str]:
    """The answers of one graph, which takes half a minute to compile; of its halves where that ends the process."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            text = json.dumps(in_a_graph(expressions))
        except BaseException as error:
            text = json.dumps([refusal(error)]) if len(expressions) == 1 else ""
        with os.fdopen(write, "w") as stream:
            stream.write(text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    if text:
        return json.loads(text)
    if len(expressions) == 1:
        return ["!killed"]
    middle = len(expressions) // 2
    return max_answers(expressions[:middle]) + max_answers(expressions[middle:])


def in_a_graph(expressions: list[str]) -> list[str]:
    """Values of MAX, and what it refuses while the graph is made."""
    from max import driver
    from max.dtype import DType
    from max.engine import InferenceSession
    from max.graph import DeviceRef, Graph, TensorType

    data = {name: np.array(array, order="C") for name, array in DATA.items() if array.dtype.kind != "c"}
    types = [TensorType(DType.from_numpy(a.dtype), a.shape, DeviceRef.CPU()) for a in data.values()]
    refused: dict[str, str] = {}
    for expression in expressions:
        try:
            with Graph("alone", input_types=types) as graph:
                found = eval(expression, max_names(dict(zip(data, (v.tensor for v in graph.inputs), strict=True))))
                graph.output(*(found if isinstance(found, (tuple, list)) else (found,)))
        except Exception as error:
            refused[expression] = refusal(error)
    counts: dict[str, int] = {}
    with Graph("oracle", input_types=types) as graph:
        names = max_names(dict(zip(data, (value.tensor for value in graph.inputs), strict=True)))
        outputs: list[Any] = []
        for expression in expressions:
            if expression not in refused:
                found = eval(expression, dict(names))
                parts = found if isinstance(found, (tuple, list)) else (found,)
                counts[expression] = len(parts)
                outputs += parts
        graph.output(*outputs)
    model = InferenceSession(devices=[driver.CPU()]).load(graph)
    results = model.execute(*map(driver.Buffer.from_numpy, data.values()))
    values = iter([shown(result.to_numpy()) for result in results])
    return [refused.get(e) or "; ".join(next(values) for _ in range(counts[e])) for e in expressions]


def shown(value: Any) -> str:
    """One array."""
    weak = "*" if getattr(value, "weak_type", False) else ""
    if type(value).__module__.startswith("nvidia"):
        value = value.cpu()
    if str(getattr(value, "dtype", "")) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2"):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} {value.double().tolist()}"
    array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    values = array if array.dtype.isbuiltin == 1 else array.astype(np.float64)
    return f"{array.dtype}{weak} {array.shape} {values.tolist()}"


def refusal(error: BaseException) -> str:
    """What a package raises, in one line."""
    return f"!{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def answer(names: dict[str, Any], expression: str) -> str:
    """What an expression gives."""
    try:
        result = eval(expression, dict(names))
        return "; ".join(map(shown, result)) if isinstance(result, (tuple, list)) else shown(result)
    except Exception as error:
        return refusal(error)


def main() -> None:
    warnings.simplefilter("ignore")
    name, asked, answered = sys.argv[1:]
    questions = json.loads(Path(asked).read_text(encoding="utf-8"))
    if name == "max":
        answers = max_answers(questions)
    else:
        kinds = {"numpy": numpy_names, "torch": torch_names, "dali": dali_names}
        names = kinds[name]() if name in kinds else jax_names(name == "jax")
        answers = [answer(names, q) for q in questions]
    Path(answered).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
