"""Arrays of other libraries: DLPack, `data_ptr()`, `__array_interface__`; imitated where the library is not
installed."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from weft import dtypes
from weft.runtime.memory import Memory, MemoryRefused, extent_of, memory_of


class OnlyDLPack:
    """An array of which DLPack is all one can see. ``versioned`` False imitates a producer from before DLPack 1.0."""

    def __init__(self, array: np.ndarray[Any, Any], versioned: bool = True, device: tuple[int, int] = (1, 0)):
        self.array = array
        self.versioned = versioned
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **keywords: Any) -> Any:
        if not self.versioned and keywords:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**keywords)


def known(value: Any) -> Memory:
    memory = memory_of(value)
    assert memory is not None
    return memory


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", ["bool", "int8", "int64", "uint16", "float16", "float32", "float64"])
def test_dlpack(name: str, versioned: bool) -> None:
    dtype = dtypes.parse(name)
    base = np.zeros((4, 6), dtype.numpy)
    for array in (base, base[1:, ::2], base.T, base[::-1]):
        memory = known(OnlyDLPack(array, versioned))
        assert memory.dtype == dtype
        assert memory.address == array.__array_interface__["data"][0]
        assert memory.extent == np.lib.array_utils.byte_bounds(array)
        assert not memory.read_only


def test_dlpack_keeps_the_array_alive_and_lets_it_go() -> None:
    released: list[int] = []

    class Watched(np.ndarray[Any, Any]):
        def __del__(self) -> None:
            released.append(1)

    memory = known(OnlyDLPack(np.zeros(4, np.float32).view(Watched)))
    assert not released
    del memory
    assert released


def test_dlpack_says_what_is_read_only() -> None:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    assert known(OnlyDLPack(array)).read_only


def interface(**changes: Any) -> Any:
    """An array on a card, by its ``__cuda_array_interface__``."""
    entries = {"version": 3, "typestr": "<f4", "data": (4096, False), "shape": (2, 3), "strides": None, "stream": None}
    return types.SimpleNamespace(__cuda_array_interface__=entries | changes)


def test_arrays_on_a_card() -> None:
    memory = known(interface(shape=(2, 0, 3), data=(0, True), stream=7))
    assert (memory.extent, memory.strides, memory.read_only, memory.stream) == ((0, 0), (0, 12, 4), True, 7)
    memory = known(interface())
    assert (memory.extent, memory.strides, memory.device, memory.stream) == ((4096, 4120), (12, 4), -1, None)
    memory = known(interface(strides=(4, -8), version=2))
    assert (memory.extent, memory.strides) == ((4096 - 16, 4096 + 4 + 4), (4, -8))
    assert known(interface(shape=())).strides == ()
    assert known(interface(shape=(0,), data=(None, False))).extent == (0, 0)


def test_an_array_on_a_card_of_a_type_that_weft_has_not() -> None:
    for typestr in ("<c8", "<V2", ">f4", "nonsense"):
        with pytest.raises(MemoryRefused) as raised:
            memory_of(interface(typestr=typestr))
        assert str(raised.value).startswith(f"found an array of type '{typestr}' on a card; weft has bool, int8,")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            OnlyDLPack(np.zeros(2), device=(10, 0)),
            "found an array on a device of DLPack's kind ROCm, expected memory of the CPU or a CUDA card",
        ),
        (
            OnlyDLPack(np.zeros(2), device=(99, 0)),
            "found an array on a device of DLPack's kind type 99, expected memory of the CPU or a CUDA card",
        ),
        (
            types.SimpleNamespace(__cuda_array_interface__={"version": 1}),
            "found version 1 of __cuda_array_interface__, expected 2 or 3",
        ),
        (
            interface(mask=object()),
            "found a masked array, whose mask a kernel would ignore; pass its data",
        ),
        (interface(data=(6, False)), "found float32 elements at an address that is no multiple of 4; pass a copy"),
    ],
)
def test_memory_of_other_devices(value: Any, message: str) -> None:
    with pytest.raises(MemoryRefused) as raised:
        memory_of(value)
    assert str(raised.value) == message


def test_dlpack_of_a_type_that_weft_has_not() -> None:
    with pytest.raises(MemoryRefused) as raised:
        memory_of(OnlyDLPack(np.zeros(2, np.complex64)))
    assert str(raised.value).startswith("found an array of DLPack type code 5, 64 bits, 1 lanes; weft has bool, int8,")


class Tensor:
    """What a kernel sees of a PyTorch tensor: dtypes that print as ``torch.float32``, strides in elements."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: str = "", device: str = "cpu"):
        self.array = array
        self.dtype = f"torch.{dtype or array.dtype}"
        self.device = types.SimpleNamespace(type=device)
        self.shape = array.shape

    def data_ptr(self) -> int:
        return self.array.__array_interface__["data"][0]

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


def test_tensors() -> None:
    base = np.zeros((4, 6), np.float32)
    for array in (base, base[1:, ::2], base.T):
        memory = known(Tensor(array))
        assert memory.dtype == dtypes.float32
        assert memory.address == array.__array_interface__["data"][0]
        assert memory.extent == np.lib.array_utils.byte_bounds(array)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "bool", "uint8"])
def test_tensor_dtypes_by_name(name: str) -> None:
    dtype = dtypes.parse(name)
    assert known(Tensor(np.zeros(4, dtype.numpy), name)).dtype == dtype


def test_tensors_of_other_devices_and_types() -> None:
    with pytest.raises(MemoryRefused) as raised:
        memory_of(Tensor(np.zeros(4), device="mps"))
    assert str(raised.value) == (
        "found a tensor on device 'namespace(type='mps')', expected memory of the CPU or a CUDA card; pass tensor.cpu()"
    )
    with pytest.raises(MemoryRefused) as raised:
        memory_of(Tensor(np.zeros(4), "complex64"))
    assert str(raised.value).startswith("found a tensor of torch.complex64; weft has bool, int8,")


class Unusual(Tensor):
    """A tensor with more of PyTorch's attributes."""

    def __init__(self, layout: str = "torch.strided", device: str = "cpu", negated: bool = False, error: str = ""):
        super().__init__(np.zeros(4, np.float32), device=device)
        self.layout = layout
        self.negated = negated
        self.error = error

    def is_neg(self) -> bool:
        return self.negated

    def data_ptr(self) -> int:
        if self.error:
            raise RuntimeError(self.error)
        return super().data_ptr()


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (
            Unusual("torch.sparse_coo", error="sparse"),
            "found a tensor with layout torch.sparse_coo; pass tensor.to_dense(), or its indices and values",
        ),
        (Unusual(device="meta"), "found a tensor on the meta device, which has no elements; pass one with data"),
        (Unusual(negated=True), "found a tensor whose negation is pending; pass tensor.resolve_neg()"),
        (
            Unusual(error="Cannot access data pointer\nmore"),
            "found a tensor of type Unusual without memory: Cannot access data pointer",
        ),
    ],
)
def test_tensors_without_plain_memory(tensor: Any, message: str) -> None:
    with pytest.raises(MemoryRefused) as raised:
        memory_of(tensor)
    assert str(raised.value) == message


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state:UserWarning")  # once a process
def test_torch_tensors_without_plain_memory() -> None:
    torch = pytest.importorskip("torch")
    for tensor in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.empty(3, device="meta")):
        with pytest.raises(MemoryRefused):
            memory_of(tensor)
    assert memory_of(torch.zeros(3, requires_grad=True)) is not None


def test_bare_pointers_have_no_extent() -> None:
    array = np.zeros(4, np.float32)
    address = array.__array_interface__["data"][0]
    pointer = types.SimpleNamespace(data_ptr=lambda: address, dtype="float32")
    assert known(pointer) == Memory(address, dtypes.float32, None, False, pointer)


def test_array_interface() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)[:, 1:]
    array.flags.writeable = False
    memory = known(types.SimpleNamespace(__array_interface__=array.__array_interface__, keep=array))
    assert (memory.address, memory.dtype, memory.read_only) == (
        array.__array_interface__["data"][0],
        dtypes.int16,
        True,
    )
    assert memory.extent == np.lib.array_utils.byte_bounds(array)


def test_what_is_no_array() -> None:
    for value in ([1], "x", object(), 3):
        assert memory_of(value) is None


def test_extents_by_hand() -> None:
    """100 + 2 rows of stride 24 back, 3 columns of stride 8: the first byte is 100 - 24, the last 100 + 16 + 3."""
    assert extent_of(100, (2, 3), (-24, 8), 4) == (76, 120)
    assert extent_of(100, (), (), 8) == (100, 108)
    assert extent_of(100, (3, 0), (8, 8), 8) == (100, 100)
    assert extent_of(100, (5,), (0,), 2) == (100, 102)


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 6, dtype=torch.bfloat16)
    memory = known(tensor[:, 1:])
    assert (memory.address, memory.dtype) == (tensor.data_ptr() + 2, dtypes.bfloat16)
    assert memory.extent == (tensor.data_ptr() + 2, tensor.data_ptr() + 48)
