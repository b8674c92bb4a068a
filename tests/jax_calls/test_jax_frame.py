"""The structs of XLA's foreign function interface against the header of the jaxlib that is installed.

To run the tests of this folder: ``pip install -e '.[jax,test]'`` in an environment, then ``pytest tests/jax_calls``.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.jax, pytest.mark.jit]
jax: Any = pytest.importorskip("jax", reason="needs JAX: pip install 'weft[jax]'")

from weft.jax import frame  # noqa: E402

STRUCTS: dict[str, type[ctypes.Structure]] = {
    "XLA_FFI_Extension_Base": frame.Extension,
    "XLA_FFI_Api_Version": frame.Version,
    "XLA_FFI_Metadata": frame.Metadata,
    "XLA_FFI_Metadata_Extension": frame.MetadataExtension,
    "XLA_FFI_Buffer": frame.Buffer,
    "XLA_FFI_Args": frame.Values,
    "XLA_FFI_Rets": frame.Values,
    "XLA_FFI_Attrs": frame.Attributes,
    "XLA_FFI_Scalar": frame.Scalar,
    "XLA_FFI_Error_Create_Args": frame.ErrorCreate,
    "XLA_FFI_Api": frame.Api,
    "XLA_FFI_CallFrame": frame.CallFrame,
}
RENAMED = {"args": "values", "rets": "values"}
"""Fields that are named after their struct in the header."""


@pytest.fixture(scope="module")
def header() -> str:
    path = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    return re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", STRUCTS)
def test_fields_are_those_of_the_header_in_their_order(name: str, header: str) -> None:
    """As far as weft has them: further fields come behind."""
    found = re.search(rf"struct {name} \{{(.*?)\n\}}", header, re.DOTALL)
    assert found is not None
    text = re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", r"void *\1", found[1])
    fields = re.findall(r"(\w+)\s*;", text)
    if STRUCTS[name] is frame.Values:
        fields = [RENAMED.get(field, field) for field in fields]
    ours = [field[0] for field in STRUCTS[name]._fields_]
    assert fields[: len(ours)] == ours


def test_numbers_are_those_of_the_header(header: str) -> None:
    numbers = {
        "XLA_FFI_Extension_Metadata": frame.METADATA,
        "XLA_FFI_ExecutionStage_EXECUTE": frame.EXECUTE,
        "XLA_FFI_ArgType_BUFFER": frame.BUFFER,
        "XLA_FFI_RetType_BUFFER": frame.BUFFER,
        "XLA_FFI_Error_Code_INTERNAL": frame.INTERNAL,
    }
    for name, number in numbers.items():
        assert re.search(rf"\b{name} = {number}\b", header), name
    assert re.search(rf"#define XLA_FFI_API_MAJOR {frame.MAJOR}\b", header)


def test_another_version_is_refused() -> None:
    api = frame.Api(api_version=frame.Version(major_version=1, minor_version=5))
    call = frame.CallFrame(struct_size=ctypes.sizeof(frame.CallFrame), api=ctypes.pointer(api), stage=frame.EXECUTE)
    with pytest.raises(frame.FrameError) as caught:
        frame.read(call)
    assert str(caught.value) == (
        "XLA's foreign function interface is version 1.5, and weft reads version 0; please report this with the version of jaxlib"
    )


def test_a_shorter_frame_is_refused() -> None:
    api = frame.Api(api_version=frame.Version(major_version=0, minor_version=1))
    call = frame.CallFrame(struct_size=96, api=ctypes.pointer(api), stage=frame.EXECUTE)
    with pytest.raises(frame.FrameError, match=re.escape("interface is version 0.1, and weft reads version 0;")):
        frame.read(call)


def test_other_stages_run_nothing() -> None:
    api = frame.Api(api_version=frame.Version(major_version=0, minor_version=1))
    call = frame.CallFrame(struct_size=ctypes.sizeof(frame.CallFrame), api=ctypes.pointer(api), stage=0)
    assert frame.read(call) is None
