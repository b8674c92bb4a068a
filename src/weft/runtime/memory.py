"""Arrays of any library as memory: an address, an element type and an extent.

Arrays are recognised by what they offer, so no library but NumPy is imported: `data_ptr()` (PyTorch, whose dtypes say
their name), `__array_interface__`, `__dlpack__` (JAX and others, read here rather than by NumPy, which refuses
bfloat16 and float8), and for memory of a card `__cuda_array_interface__` (CuPy, Numba). A function for each returns a
`Memory`, or raises `MemoryRefused` with the reason; the caller adds which kernel and parameter.

Work on a card is asynchronous, so such memory also says where it will be ready. ``stream`` is a stream whose work comes
before (the ``stream`` of the CUDA array interface; DLPack is asked to be ready on the legacy default stream). ``library`` is
the library whose current stream orders work on its arrays.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar, Final, NamedTuple, TypeGuard

import numpy as np

from weft import dtypes
from weft.dtypes import DType
from weft.runtime.addresses import address_of

_CPU: Final = 1
_CUDA: Final = frozenset({2, 13})
"""Memory of a card, and memory that the driver moves between card and CPU (kDLCUDA, kDLCUDAManaged)."""
_DEVICES: Final[dict[int, str]] = {
    2: "CUDA",
    3: "CUDA host",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    14: "oneAPI",
}
"""DLPack's device types (dlpack.h, DLDeviceType)."""

_DLPACK_DTYPES: Final[dict[tuple[int, int], DType]] = {
    **{(0, bits): dtypes.parse(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{(1, bits): dtypes.parse(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{(2, bits): dtypes.parse(f"float{bits}") for bits in (16, 32, 64)},
    (4, 16): dtypes.bfloat16,
    (6, 8): dtypes.bool_,
    (10, 8): dtypes.float8_e4m3fn,
    (11, 8): dtypes.float8_e4m3fnuz,
    (12, 8): dtypes.float8_e5m2,
    (13, 8): dtypes.float8_e5m2fnuz,
}
"""DLPack's (type code, bits) -> dtype (dlpack.h, DLDataTypeCode)."""

_READ_ONLY_FLAG: Final = 1


class MemoryRefused(Exception):
    """Why a value cannot be a kernel's array, as the second half of a sentence."""


class Memory(NamedTuple):
    """Elements at ``address``; all of them lie in ``[low, high)``, which is None where the object does not say.
    ``owner`` keeps the memory alive. ``shape`` and ``strides`` (in bytes) are None where the object does not say. ``device``
    is the card's number, None for the CPU's memory and `ANY_CARD` where the driver has to be asked; ``stream`` and
    ``library``: see the module."""

    address: int
    dtype: DType
    extent: tuple[int, int] | None
    read_only: bool
    owner: object
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    device: int | None = None
    stream: int | None = None
    library: str = ""


ANY_CARD: Final = -1
"""The device of memory that is a card's, but does not say which."""


class Cards:
    """Whether memory that is said to be a card's is; False where the CPU stands in for one (`weft.devices`)."""

    real: ClassVar = True


LEGACY_STREAM: Final = 1
"""CU_STREAM_LEGACY, which also stands for the null stream."""


def is_numpy_array(value: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Whether the value is a NumPy array."""
    return isinstance(value, np.ndarray)


def is_numpy_scalar(value: Any) -> TypeGuard[np.generic[Any]]:
    """Whether the value is a NumPy scalar, which offers ``__array_interface__`` and is no array."""
    return isinstance(value, np.generic)


def extent_of(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """First byte, and one past the last, of a strided array; ``strides`` in bytes, of either sign."""
    if 0 in shape:
        return address, address
    low = high = address
    for size, stride in zip(shape, strides, strict=True):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + itemsize


def _row_major(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a contiguous array."""
    steps = accumulate(reversed(shape[1:]), operator.mul, initial=itemsize)
    return tuple(steps)[::-1][: len(shape)] if shape else ()


def numpy_memory(array: np.ndarray[Any, Any]) -> Memory:
    """A NumPy array of any strides. Refuses masked arrays, foreign byte order, and dtypes that weft has not."""
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise MemoryRefused("found a masked array, whose mask a kernel would ignore; pass .data or .filled()")
    if not array.dtype.isnative:
        raise MemoryRefused(f"found byte-swapped {array.dtype}; pass array.astype(array.dtype.newbyteorder('='))")
    try:
        dtype = dtypes.from_numpy(array.dtype)
    except ValueError:
        raise MemoryRefused(f"found a NumPy array of {array.dtype}; {_KNOWN}") from None
    address = address_of(array)
    extent = extent_of(address, array.shape, array.strides, array.itemsize)
    return Memory(address, dtype, extent, not array.flags.writeable, array, array.shape, array.strides)


_KNOWN: Final = f"weft has {', '.join(d.name for d in dtypes.ELEMENTS)}"


@cache
def _dtype_of_tensor(dtype: Any) -> DType | None:
    """The dtype by the name of PyTorch's, None for a name that weft has not. Cached: asked for every tensor of every launch."""
    try:
        return dtypes.parse(str(dtype).removeprefix("torch."))
    except ValueError:
        return None


@cache
def _is_strided(layout: Any) -> bool:
    return str(layout) == "torch.strided"


def _tensor_memory(tensor: Any) -> Memory:
    """An object with ``data_ptr()`` and ``dtype``: PyTorch's tensors, or anything that imitates them. Strides count
    elements."""
    place = getattr(tensor, "device", None)
    device = str(getattr(place, "type", "cpu"))
    if device == "meta":
        raise MemoryRefused("found a tensor on the meta device, which has no elements; pass one with data")
    if not _is_strided(layout := getattr(tensor, "layout", "torch.strided")):
        raise MemoryRefused(f"found a tensor with layout {layout}; pass tensor.to_dense(), or its indices and values")
    if callable(is_negated := getattr(tensor, "is_neg", None)) and is_negated():
        raise MemoryRefused("found a tensor whose negation is pending; pass tensor.resolve_neg()")
    if device not in ("cpu", "cuda"):
        raise MemoryRefused(
            f"found a tensor on device '{tensor.device}', expected memory of the CPU or a CUDA card; pass tensor.cpu()"
        )
    dtype = _dtype_of_tensor(tensor.dtype)
    if dtype is None:
        raise MemoryRefused(f"found a tensor of {tensor.dtype}; {_KNOWN}")
    try:
        address = int(tensor.data_ptr())
    except RuntimeError as error:  # a tensor of a tracer
        raise MemoryRefused(
            f"found a tensor of type {type(tensor).__name__} without memory: {str(error).splitlines()[0]}"
        ) from None
    card, library = None, ""
    if device == "cuda" and Cards.real:
        index = getattr(place, "index", None)
        card, library = ANY_CARD if index is None else int(index), library_of(tensor)
    if not (hasattr(tensor, "shape") and callable(getattr(tensor, "stride", None))):
        return Memory(address, dtype, None, False, tensor, None, None, card, None, library)
    itemsize = dtype.itemsize
    shape = tuple(map(int, tensor.shape))
    strides = tuple([int(stride) * itemsize for stride in tensor.stride()])
    extent = extent_of(address, shape, strides, itemsize)
    return Memory(address, dtype, extent, False, tensor, shape, strides, card, None, library)


def library_of(value: object) -> str:
    """The top-level package of an object's type."""
    return type(value).__module__.partition(".")[0]


def _interface_memory(value: Any) -> Memory:
    """An object with ``__array_interface__``, which NumPy reads."""
    return numpy_memory(np.asarray(value))


class DLTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h."""

    _fields_: ClassVar = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _VersionedTensor(ctypes.Structure):
    _fields_: ClassVar = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def dlpack_memory(value: Any, *, cards: bool = False) -> Memory:
    """An object with ``__dlpack__``; with ``cards``, on a CUDA card too. The capsule is borrowed, not consumed: its destructor
    frees what it holds."""
    kind, number = map(int, value.__dlpack_device__())
    card = number if cards and kind in _CUDA else None
    if card is None and kind != _CPU:
        found = _DEVICES.get(kind, f"type {kind}")
        expected = "memory of the CPU or a CUDA card" if cards else "memory of the CPU"
        raise MemoryRefused(f"found an array on a device of DLPack's kind {found}, expected {expected}")
    wanted = {} if card is None else {"stream": LEGACY_STREAM}
    try:
        capsule = value.__dlpack__(max_version=(1, 0), **wanted)
    except TypeError:  # a producer from before DLPack 1.0
        capsule = value.__dlpack__(**wanted)
    name: bytes = _capsule_name(capsule)
    pointer = capsule_pointer(capsule, name)
    read_only = False
    if name == b"dltensor_versioned":
        versioned = _VersionedTensor.from_address(pointer)
        tensor, read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY_FLAG)
    else:
        tensor = DLTensor.from_address(pointer)
    dtype = _DLPACK_DTYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise MemoryRefused(
            f"found an array of DLPack type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes; {_KNOWN}"
        )
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = _row_major(shape, dtype.itemsize)
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim))
    address = (tensor.data or 0) + tensor.byte_offset
    extent = extent_of(address, shape, strides, dtype.itemsize)
    stream = None if card is None else LEGACY_STREAM
    return Memory(address, dtype, extent, read_only, capsule, shape, strides, card, stream)


_INTERFACE_VERSIONS: Final = (2, 3)


def cuda_interface_memory(value: Any) -> Memory:
    """An object with ``__cuda_array_interface__`` of version 2 or 3, as Numba's documentation defines it. DLPack is read instead
    where the object has it and the interface names no stream, so that pending work is waited for, or cannot say the type."""
    interface: Any = value.__cuda_array_interface__
    if (version := interface.get("version")) not in _INTERFACE_VERSIONS:
        raise MemoryRefused(f"found version {version!r} of __cuda_array_interface__, expected 2 or 3")
    dlpack = callable(getattr(value, "__dlpack__", None))
    typestr = str(interface["typestr"])
    if dlpack and ("stream" not in interface or typestr[1:2] == "V"):
        return dlpack_memory(value, cards=True)
    if interface.get("mask") is not None:
        raise MemoryRefused("found a masked array, whose mask a kernel would ignore; pass its data")
    try:
        dtype = dtypes.from_numpy(np.dtype(typestr))
    except (TypeError, ValueError):
        raise MemoryRefused(f"found an array of type '{typestr}' on a card; {_KNOWN}") from None
    address, read_only = interface["data"]
    shape = tuple(map(int, interface["shape"]))
    given = interface.get("strides")
    strides = _row_major(shape, dtype.itemsize) if given is None else tuple(map(int, given))
    card = int(value.__dlpack_device__()[1]) if dlpack else ANY_CARD
    stream = interface.get("stream")
    extent = extent_of(int(address or 0), shape, strides, dtype.itemsize)
    return Memory(
        int(address or 0),
        dtype,
        extent,
        bool(read_only),
        value,
        shape,
        strides,
        card,
        None if stream is None else int(stream),
        library_of(value),
    )


def memory_of(value: Any) -> Memory | None:
    """The value as memory, None where it is no array at all, `MemoryRefused` where it is one that a kernel cannot
    use."""
    if is_numpy_array(value):
        memory = numpy_memory(value)
    elif callable(getattr(value, "data_ptr", None)) and hasattr(value, "dtype"):
        memory = _tensor_memory(value)
    elif hasattr(value, "__cuda_array_interface__"):
        memory = cuda_interface_memory(value)
    elif callable(getattr(value, "__dlpack__", None)):
        memory = dlpack_memory(value, cards=True)
    elif hasattr(value, "__array_interface__"):
        memory = _interface_memory(value)
    else:
        return None
    if memory.address % memory.dtype.itemsize:
        raise MemoryRefused(
            f"found {memory.dtype} elements at an address that is no multiple of {memory.dtype.itemsize}; pass a copy"
        )
    return memory
