"""How each system writes its dtypes: its own names first, then those with one meaning everywhere (`weft.dtypes.named`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from weft import dtypes
from weft.dtypes import DType

_TRITONS: Final[Mapping[str, DType]] = {"i1": dtypes.bool_, "u1": dtypes.bool_, "i8": dtypes.int8, "u8": dtypes.uint8}

_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "numpy": ("numpy.", "np."),
    "jax": ("jax.numpy.", "jnp."),
    "torch": ("torch.",),
    "triton": ("triton.language.", "tl."),
    "max": ("DType.",),
    "dali": ("nvidia.dali.types.", "dali.types.", "types.", "DALIDataType."),
}

_OWN: Final[Mapping[str, Mapping[str, DType]]] = {
    "torch": {
        **{"float": dtypes.float32, "int": dtypes.int32, "short": dtypes.int16, "long": dtypes.int64},
        **{"chalf": dtypes.complex32, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128},
    },
    "triton": _TRITONS,
    "max": {
        **{f"s{d.name[0]}{d.bits}": d for d in dtypes.KNOWN if d.name == f"int{d.bits}"},
        **{f"ui{d.bits}": d for d in dtypes.KNOWN if d.name == f"uint{d.bits}"},
        **{f"f8{d.name.removeprefix('float8_')}": d for d in dtypes.KNOWN if d.name.startswith("float8_")},
    },
    "dali": {
        **{"FLOAT": dtypes.float32, "BOOL": dtypes.bool_},
        **{d.name.upper(): d for d in dtypes.ALL if d.is_integer or d in (dtypes.float16, dtypes.float64)},
    },
}
"""Names that one system alone has, or reads in its own way."""


def in_system(system: str, text: str) -> DType:
    """The type that ``text`` names in the system of that name: by its own spellings, else as everywhere."""
    family = system.partition("@")[0].partition("-")[0]
    prefix = next((p for p in _PREFIXES.get(family, ()) if text.startswith(p)), "")
    name = text.removeprefix(prefix)
    own = _OWN.get(family, {})
    found = own.get(name) or own.get(name.upper())
    if found is None and family in ("numpy", "jax"):
        found = _numpys(name)
    try:
        return found or dtypes.named(name)
    except ValueError as error:
        raise ValueError(str(error).replace(f"'{name}'", f"'{text}'", 1)) from None


def _numpys(name: str) -> DType | None:
    """What NumPy reads ``name`` as; None for what it does not know, and for data that are no numbers in native order."""
    if name in dtypes.NAMES and name not in dtypes.SHORT:
        return dtypes.NAMES[name]
    try:
        read = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    found = dtypes.NAMES.get(read.name) if read.isnative else None
    if found is None and name in dtypes.SHORT:
        raise ValueError(
            f"NumPy reads '{name}' as {read.name}, which weft does not have; "
            f"write '{dtypes.SHORT[name]}' for {dtypes.SHORT[name].bits} bits"
        )
    return found
