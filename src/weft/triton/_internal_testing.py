"""``triton._internal_testing``: what Triton's own tests ask about the machine, and how they make arrays.

Tests of other kernels use it too. The machine is neither a card of NVIDIA's nor of AMD's, unless launches are emulated.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from weft.triton.backends.compiler import current
from weft.triton.compiler.signatures import dtype_of
from weft.triton.names import CANONICAL
from weft.triton.runtime.tensors import TensorWrapper, reinterpret

int_dtypes: Final = ["int8", "int16", "int32", "int64"]
uint_dtypes: Final = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes: Final = int_dtypes + uint_dtypes
float_dtypes: Final = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16: Final = [*float_dtypes, "bfloat16"]
dtypes: Final = integral_dtypes + float_dtypes
dtypes_with_bfloat16: Final = [*dtypes, "bfloat16"]
torch_float8_dtypes: Final = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes: Final = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes: Final = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})


def is_interpreter() -> bool:
    """Whether Triton would interpret kernels."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def is_compile_warmup() -> bool:
    """False: tests run."""
    return False


def random_int(low: int, high: int, *, warmup_value: Any = None, **keywords: Any) -> int:
    """A random integer below ``high``."""
    return int(np.random.randint(low, high))


def random_float(*, warmup_value: float = 0.5, **keywords: Any) -> float:
    """A random number below 1."""
    return float(np.random.rand())


def get_current_target() -> Any:
    """The machine that launches run on."""
    return current()


def is_cuda() -> bool:
    """Whether launches are emulated on a card of NVIDIA's."""
    return current().backend == "cuda"


def _capability() -> int:
    return int(current().arch) if is_cuda() else 0


def is_ampere_or_newer() -> bool:
    """Whether that card has capability 8.0."""
    return _capability() >= 80


def is_hopper_or_newer() -> bool:
    """Whether it has 9.0."""
    return _capability() >= 90


def is_hopper() -> bool:
    """Whether it is one of 9.0."""
    return _capability() == 90


def _false() -> bool:
    """False: weft has no such machine."""
    return False


is_blackwell = is_blackwell_ultra = is_rubin = is_sm12x = is_xpu = _false
is_hip = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = is_hip_cdna3_or_newer = _false
is_hip_rdna = is_hip_rdna3 = is_hip_rdna4 = is_hip_rdna4m = is_hip_gfx1250 = supports_clc = _false


def get_hip_lds_size() -> int:
    """The shared memory of AMD's cards."""
    return 65536


def skip_if_unsupported_cluster_size(num_ctas: int) -> None:
    """Skips nothing."""


def supports_tma(byval_only: bool = False) -> bool:
    """True: descriptors work on every machine of weft."""
    return True


def supports_ws() -> bool:
    """True: hints of warp specialisation are accepted."""
    return True


def tma_skip_msg(byval_only: bool = False) -> str:
    """The reason why tests of descriptors would be skipped."""
    return "needs descriptors"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


def numpy_random(shape: Any, dtype_str: str, rs: Any = None, low: Any = None, high: Any = None) -> Any:
    """A random array of a type by its name, the same in every run unless ``rs`` is given. Integers are never zero."""
    rs = np.random.RandomState(seed=17) if rs is None else rs
    shape = (shape,) if isinstance(shape, int) else shape
    if dtype_str in integral_dtypes:
        info = np.iinfo(dtype_str)
        low = info.min if low is None else max(low, info.min)
        high = info.max if high is None else min(high, info.max)
        found = rs.randint(low, high, shape, dtype=dtype_str)
        found[found == 0] = 1
        return found
    if "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in {"bool", "int1", "bool_"}:
        return rs.normal(0, 1, shape) > 0.0
    normal = rs.normal(0, 1, shape)
    if dtype_str == "bfloat16":
        return (normal.astype("float32").view("uint32") & np.uint32(0xFFFF0000)).view("float32")
    if dtype_str in float_dtypes:
        return normal.astype(dtype_str)
    raise RuntimeError(f"Unknown dtype {dtype_str}")


def to_triton(x: Any, device: Any, dst_type: str | None = None) -> Any:
    """The array as a tensor of PyTorch's, under a type that PyTorch may lack (``dst_type``, default: the array's)."""
    torch: Any = importlib.import_module("torch")
    name = x.dtype.name
    if name in uint_dtypes:
        return reinterpret(torch.tensor(x.astype(name.lstrip("u")), device=device), dtype_of(name))
    if dst_type and "float8" in dst_type:
        return reinterpret(torch.tensor(x, device=device), dtype_of(dst_type))
    tensor: Any = torch.tensor(x, device=device)
    return tensor.bfloat16() if name == "float32" and dst_type == "bfloat16" else tensor


def str_to_triton_dtype(x: str) -> Any:
    """The type of a name."""
    return dtype_of(CANONICAL[x])


def torch_dtype_name(dtype: Any) -> str:
    """The name of a type of PyTorch's or of the language."""
    return str(dtype).rpartition(".")[2]


def to_numpy(x: Any) -> Any:
    """The tensor as an array; bfloat16 as float32."""
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    x = x.cpu()
    return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()


def unwrap_tensor(t: Any) -> Any:
    """The tensor itself."""
    return t.base if isinstance(t, TensorWrapper) else t


def default_alloc_fn(size: int, align: int, stream: Any) -> Any:
    """Memory for a kernel."""
    torch: Any = importlib.import_module("torch")
    return torch.empty(size, dtype=torch.int8)


@contextmanager
def preserve_float_order() -> Generator[None]:
    """A context that changes nothing."""
    yield


class ProcessResult(NamedTuple):
    """What `run_in_process` found: the exception that the function raised, None without one, and what was written to stderr."""

    exc: BaseException | None
    driver_stderr_output: str


def run_in_process(
    client_fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> ProcessResult:
    """Calls a function in a copy of this process, with other environment variables. Raises: `TimeoutError` after
    TRITON_TEST_PROCESS_TIMEOUT seconds, `RuntimeError` where the process ends without a result."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    limit = os.environ.get("TRITON_TEST_PROCESS_TIMEOUT")
    with tempfile.NamedTemporaryFile() as log:
        process = context.Process(target=_called, args=(theirs, log.name, client_fn, args, kwargs or {}, env or {}))
        with warnings.catch_warnings():  # Python 3.12 warns of threads; weft makes its own anew
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        try:
            if not ours.poll(None if limit is None else float(limit)):
                raise TimeoutError(f"test subprocess {client_fn.__name__} exceeded its {limit}-second timeout")
            error = ours.recv()
        except EOFError:
            process.join()
            raise RuntimeError(f"the process ended with code {process.exitcode} and without a result") from None
        finally:
            process.kill()
            process.join()
        return ProcessResult(error, log.read().decode(errors="replace"))


def _called(
    pipe: Any,
    log: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    variables: Mapping[str, str],
) -> None:
    """What the copy does: it calls the function and sends the exception, as a `RuntimeError` where it cannot be sent."""
    os.environ.update(variables)
    error: BaseException | None = None
    with open(log, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 2)
    try:
        function(*args, **keywords)
    except BaseException as raised:
        error = raised
    sys.stderr.flush()
    try:
        sent = pickle.dumps(error)
        pickle.loads(sent)
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    pipe.send(error)
    os._exit(0)  # the copy has no business with what this process does at its end


@contextmanager
def use_process_pool(preload_module: str) -> Generator[None]:
    """A context that changes nothing: a copy of a process is quick to make."""
    yield
