"""XLA's foreign function interface for code without a C++ compiler: the structs of ``xla/ffi/api/c_api.h`` that a handler reads.

A handler is a C function ``XLA_FFI_Error *handler(XLA_FFI_CallFrame *frame)``. XLA keeps the layout of these structs within a
major version (0), and says in each frame which version it has. New fields come last, and ``struct_size`` says how much of a
struct there is. `read` looks at both before it touches another field. `tests/jax_calls/test_jax_frame.py` compares the structs
with the header of the jaxlib that is installed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Final, NamedTuple

MAJOR: Final = 0
MINOR: Final = 1
"""The version of the interface that handlers say they were written for: the oldest with these structs."""

METADATA: Final = 1
"""The extension with which XLA asks a handler for its version."""
EXECUTE: Final = 3
BUFFER: Final = 1
INTERNAL: Final = 13
"""XLA_FFI_ExecutionStage_EXECUTE, XLA_FFI_ArgType_BUFFER (and its RetType), XLA_FFI_Error_Code_INTERNAL."""


class Extension(ctypes.Structure):
    """XLA_FFI_Extension_Base"""

    _fields_ = (("struct_size", c_size_t), ("type", c_int), ("next", c_void_p))


class Version(ctypes.Structure):
    """XLA_FFI_Api_Version"""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("major_version", c_int),
        ("minor_version", c_int),
    )


class Metadata(ctypes.Structure):
    """XLA_FFI_Metadata, as far as all versions have it."""

    _fields_ = (("struct_size", c_size_t), ("api_version", Version), ("traits", c_uint32))


class MetadataExtension(ctypes.Structure):
    """XLA_FFI_Metadata_Extension"""

    _fields_ = (("extension_base", Extension), ("metadata", POINTER(Metadata)))


class Buffer(ctypes.Structure):
    """XLA_FFI_Buffer"""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )


class Values(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets"""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("values", POINTER(c_void_p)),
    )


class Attributes(ctypes.Structure):
    """XLA_FFI_Attrs"""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("names", POINTER(c_void_p)),
        ("attrs", POINTER(c_void_p)),
    )


class Scalar(ctypes.Structure):
    """XLA_FFI_Scalar, of 64 bits"""

    _fields_ = (("dtype", c_int), ("value", POINTER(c_int64)))


class ErrorCreate(ctypes.Structure):
    """XLA_FFI_Error_Create_Args"""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("message", c_char_p),
        ("errc", c_int),
    )


ERROR_CREATE: Final = ctypes.CFUNCTYPE(c_void_p, POINTER(ErrorCreate))


class Api(ctypes.Structure):
    """XLA_FFI_Api, as far as it is used."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", c_void_p),
        ("api_version", Version),
        ("internal_api", c_void_p),
        ("XLA_FFI_Error_Create", ERROR_CREATE),
    )


class CallFrame(ctypes.Structure):
    """XLA_FFI_CallFrame, without its last field, which early versions do not have."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(Extension)),
        ("api", POINTER(Api)),
        ("ctx", c_void_p),
        ("stage", c_int),
        ("args", Values),
        ("rets", Values),
        ("attrs", Attributes),
    )


HANDLER: Final = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Array(NamedTuple):
    """A buffer of XLA: row-major elements at ``address``."""

    address: int
    shape: tuple[int, ...]


class Call(NamedTuple):
    """What a frame asks for: the number of the call (its only attribute), arguments and results."""

    number: int
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]


class FrameError(RuntimeError):
    """This jaxlib's call frames are not those that weft reads."""


def answer_metadata(frame: Any) -> bool:
    """Whether the frame only asks which version of the interface the handler knows; it is answered then."""
    extension = frame.extension_start
    if not extension or extension.contents.type != METADATA:
        return False
    asked = ctypes.cast(extension, POINTER(MetadataExtension)).contents.metadata.contents
    asked.api_version.major_version = MAJOR
    asked.api_version.minor_version = MINOR
    asked.traits = 0
    return True


def read(frame: Any) -> Call | None:
    """The call of a frame, None where its stage is not that of execution. Raises `FrameError` for another layout."""
    if frame.struct_size < ctypes.sizeof(CallFrame) or frame.api.contents.api_version.major_version != MAJOR:
        version = frame.api.contents.api_version
        raise FrameError(
            f"XLA's foreign function interface is version {version.major_version}.{version.minor_version}, and weft reads "
            f"version {MAJOR}; please report this with the version of jaxlib"
        )
    if frame.stage != EXECUTE:
        return None
    if frame.attrs.size != 1:
        raise FrameError(f"a call of weft has one attribute, found {frame.attrs.size}")
    number = ctypes.cast(frame.attrs.attrs[0], POINTER(Scalar)).contents.value[0]
    return Call(number, _arrays(frame.args), _arrays(frame.rets))


def _arrays(values: Any) -> tuple[Array, ...]:
    if any(values.types[i] != BUFFER for i in range(values.size)):
        raise FrameError("found an argument that is no buffer")
    buffers: Sequence[Any] = [ctypes.cast(values.values[i], POINTER(Buffer)).contents for i in range(values.size)]
    return tuple(Array(b.data or 0, tuple(b.dims[: b.rank])) for b in buffers)


def error(frame: Any, message: str) -> int:
    """XLA's error object for a message, which XLA raises and frees."""
    arguments = ErrorCreate(ctypes.sizeof(ErrorCreate), None, message.encode(), INTERNAL)
    return frame.api.contents.XLA_FFI_Error_Create(ctypes.byref(arguments))
