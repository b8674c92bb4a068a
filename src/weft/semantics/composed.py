"""Functions of array programs that are made of other operations: which system has them, and of which types it refuses them.

What they compute is composed of operators, reductions and views (`weft.array.api`), so that their types follow from the rules of
those. Where a package's own function is stricter than its parts, a row of `REFUSED` says so. Both tables were asked of the
packages (``tests/array/arrangements``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.dtypes import DType
from weft.semantics.arrangement import family, kinds
from weft.semantics.core import PromotionError, Semantics

_ALL: Final = ("numpy", "torch", "jax")
_ARRAYS: Final = ("numpy", "jax")
_NETWORKS: Final = ("torch", "jax")

_OF_ALL: Final = """
gcd lcm nextafter deg2rad rad2deg ldexp isclose allclose array_equal nan_to_num diff count_nonzero nansum nanmean median
nanmedian quantile trace diagonal diag tril triu meshgrid searchsorted bincount unique isin dot vdot inner kron cross vstack
hstack dstack column_stack atleast_1d atleast_2d atleast_3d rot90 flipud fliplr array_split argwhere sinc histogram
linalg.norm linalg.matrix_power
"""
_OF_ARRAYS: Final = """
divmod nanprod nanmax nanmin nanvar nanstd nanargmax nanargmin nancumsum nancumprod ptp average tri identity percentile
broadcast_arrays flatnonzero digitize interp
"""
_OF_NETWORKS: Final = "xlogy xlog1py softmax log_softmax relu relu6 silu gelu softplus leaky_relu elu"

HAS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_OF_ALL.split(), _ALL),
    **dict.fromkeys(_OF_ARRAYS.split(), _ARRAYS),
    **dict.fromkeys(_OF_NETWORKS.split(), _NETWORKS),
}
"""The systems that have each function, under this name."""

_TORCH_NARROW: Final = frozenset({"float8", "unsigned"})
_NO_INTEGERS: Final = frozenset({"bool", "integer"})
_NO_FLOATS: Final = frozenset({"float", "complex"})
_TORCH_ORDERED: Final = _TORCH_NARROW | {"bool", "complex"}
_ONLY_FLOATS: Final = _NO_INTEGERS | {"complex", "float8"}

REFUSED: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    **{(op, base): _NO_FLOATS for op in ("gcd", "lcm", "bincount") for base in _ARRAYS},
    **{(op, "torch"): _NO_FLOATS | _TORCH_NARROW for op in ("gcd", "lcm")},
    ("bincount", "torch"): _NO_FLOATS | _TORCH_NARROW | {"bool"},
    **{(op, "torch"): frozenset({"complex", "float8"}) for op in ("deg2rad", "rad2deg", "nansum", "unique")},
    **{(op, "torch"): frozenset({"complex", "float8"}) for op in ("xlogy", "xlog1py")},
    **{(op, "torch"): frozenset({"float8"}) for op in ("isclose", "allclose", "nan_to_num", "array_equal", "ldexp")},
    **{(op, "torch"): _TORCH_NARROW | {"bool"} for op in ("trace", "cross")},
    **{(op, "torch"): _TORCH_NARROW for op in ("count_nonzero", "tril", "triu")},
    **{(op, "torch"): _TORCH_ORDERED for op in ("median", "nanmedian", "searchsorted", "isin", "relu", "relu6")},
    **{(op, "torch"): _ONLY_FLOATS for op in ("nextafter", "nanmean", "softmax", "log_softmax", "gelu", "softplus")},
    **{(op, "torch"): _NO_INTEGERS | {"float8"} for op in ("silu", "elu", "leaky_relu")},
    **{
        (op, base): frozenset({"complex"}) for op in ("deg2rad", "rad2deg", "nextafter", "ldexp") for base in ("numpy",)
    },
    **{(op, "jax"): frozenset({"complex"}) for op in ("nextafter", "median", "nanmedian", "quantile", "percentile")},
    ("ldexp", "jax"): frozenset({"complex", "float8"}),
    ("quantile", "torch"): _ONLY_FLOATS | {"half"},
    **{(op, "numpy"): frozenset({"bool", "complex"}) for op in ("quantile", "percentile")},
    ("ptp", "numpy"): frozenset({"bool"}),
    ("silu", "jax"): _NO_INTEGERS,
    ("sinc", "torch"): frozenset({"float8"}),
    ("linalg.norm", "torch"): frozenset({"float8"}),
    ("histogram", "torch"): _ONLY_FLOATS | {"half"},
    ("histogram", "numpy"): frozenset({"complex"}),
    ("histogram", "jax"): frozenset({"complex"}),
    **{("digitize", base): frozenset({"complex"}) for base in _ARRAYS},
}
"""The kinds of types (`arrangement.kinds`, ``integer``, ``float`` and ``half``, floats of 16 bits) that a system's function
refuses."""

_INSTEAD: Final[Mapping[str, str]] = {
    "xlogy": "write where(x == 0, 0, x * log(y))",
    "xlog1py": "write where(x == 0, 0, x * log1p(y))",
    "softmax": "divide exp(x - max(x)) by its sum",
    "log_softmax": "write x - logsumexp of x - max(x)",
    "relu": "write maximum(x, 0)",
    "silu": "write x / (1 + exp(-x))",
    "divmod": "write x // y and x % y",
    "ptp": "write max(x) - min(x)",
    "average": "divide the sum of x * weights by that of the weights",
    "nanmax": "take the maximum of where(isnan(x), -inf, x)",
    "nanmin": "take the minimum of where(isnan(x), inf, x)",
    "identity": "use eye",
    "flatnonzero": "use nonzero of ravel(x)",
    "percentile": "use quantile",
    "digitize": "use searchsorted",
    "interp": "find places with searchsorted",
}


def refuse_missing(system: Semantics, op: str) -> None:
    """`ValueError` where the system has no such function."""
    if family(system) not in HAS[op]:
        systems = ", ".join(HAS[op])
        instead = f"; {_INSTEAD[op]}" if op in _INSTEAD else f"; {systems} have it"
        raise ValueError(f"{system.name} has no '{op}'{instead}")


def refuse_type(system: Semantics, op: str, dtype: DType) -> None:
    """`PromotionError` where the system's function does not take the type."""
    found = {
        *kinds(dtype),
        *(["integer"] if dtype.is_integer else []),
        *(["float"] if dtype.is_float else []),
        *(["half"] if dtype.is_float and dtype.bits == 16 else []),
    }
    if found & REFUSED.get((op, family(system)), frozenset()):
        raise PromotionError(f"{system.name}'s '{op}' does not take {dtype}", "convert it first")
