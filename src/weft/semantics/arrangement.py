"""Operations that make, move, order and combine whole arrays: which system has which, under what name, and its rules for types.

`weft.semantics.ops` has the operations that compute; their types come of promotion. Here most results keep their operand's
type, and systems differ in what they have, what they refuse, which types they choose for new arrays and indices, and what an
index out of bounds does. All of that is tables, one row an operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.core import Number, Operand, Promotion, PromotionError, Semantics, Step, Type

FAMILIES: Final = ("numpy", "torch", "jax", "max", "dali", "triton")
"""The systems, without their versions."""

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "concatenate": {
        "numpy": "np.concatenate",
        "torch": "torch.cat",
        "jax": "jnp.concatenate",
        "max": "ops.concat",
        "dali": "fn.cat",
        "triton": "tl.cat",
    },
    "stack": {
        "numpy": "np.stack",
        "torch": "torch.stack",
        "jax": "jnp.stack",
        "max": "ops.stack",
        "dali": "fn.stack",
        "triton": "tl.join",
    },
    "split": {"numpy": "np.split", "torch": "torch.split", "jax": "jnp.split", "max": "ops.split"},
    "flip": {"numpy": "np.flip", "torch": "torch.flip", "jax": "jnp.flip", "dali": "x[::-1]", "triton": "tl.flip"},
    "roll": {"numpy": "np.roll", "torch": "torch.roll", "jax": "jnp.roll"},
    "pad": {
        "numpy": "np.pad",
        "torch": "torch.nn.functional.pad",
        "jax": "jnp.pad",
        "max": "ops.pad",
        "dali": "fn.slice",
    },
    "tile": {"numpy": "np.tile", "torch": "torch.tile", "jax": "jnp.tile", "max": "ops.tile"},
    "repeat": {
        "numpy": "np.repeat",
        "torch": "torch.repeat_interleave",
        "jax": "jnp.repeat",
        "max": "ops.repeat_interleave",
    },
    "take": {"numpy": "np.take", "torch": "torch.index_select", "jax": "jnp.take", "max": "ops.gather"},
    "take_along_axis": {
        "numpy": "np.take_along_axis",
        "torch": "torch.take_along_dim",
        "jax": "jnp.take_along_axis",
        "triton": "tl.gather",
    },
    "index": {"numpy": "x[i]", "torch": "x[i]", "jax": "x[i]"},
    "at": {"jax": "x.at[i]"},
    "nonzero": {"numpy": "np.nonzero", "torch": "torch.nonzero", "jax": "jnp.nonzero"},
    "zeros": {
        "numpy": "np.zeros",
        "torch": "torch.zeros",
        "jax": "jnp.zeros",
        "dali": "fn.zeros",
        "triton": "tl.zeros",
    },
    "ones": {"numpy": "np.ones", "torch": "torch.ones", "jax": "jnp.ones", "dali": "fn.ones", "triton": "tl.full"},
    "full": {"numpy": "np.full", "torch": "torch.full", "jax": "jnp.full", "dali": "fn.full", "triton": "tl.full"},
    "zeros_like": {
        "numpy": "np.zeros_like",
        "torch": "torch.zeros_like",
        "jax": "jnp.zeros_like",
        "dali": "fn.zeros_like",
        "triton": "tl.zeros_like",
    },
    "ones_like": {
        "numpy": "np.ones_like",
        "torch": "torch.ones_like",
        "jax": "jnp.ones_like",
        "dali": "fn.ones_like",
    },
    "full_like": {
        "numpy": "np.full_like",
        "torch": "torch.full_like",
        "jax": "jnp.full_like",
        "dali": "fn.full_like",
    },
    "arange": {
        "numpy": "np.arange",
        "torch": "torch.arange",
        "jax": "jnp.arange",
        "max": "ops.range",
        "triton": "tl.arange",
    },
    "linspace": {"numpy": "np.linspace", "torch": "torch.linspace", "jax": "jnp.linspace"},
    "eye": {"numpy": "np.eye", "torch": "torch.eye", "jax": "jnp.eye"},
    "sort": {"numpy": "np.sort", "torch": "torch.sort", "jax": "jnp.sort", "triton": "tl.sort"},
    "argsort": {"numpy": "np.argsort", "torch": "torch.argsort", "jax": "jnp.argsort", "max": "ops.argsort"},
    "topk": {"torch": "torch.topk", "jax": "jax.lax.top_k", "max": "ops.top_k"},
    "einsum": {"numpy": "np.einsum", "torch": "torch.einsum", "jax": "jnp.einsum"},
    "tensordot": {"numpy": "np.tensordot", "torch": "torch.tensordot", "jax": "jnp.tensordot"},
    "outer": {"numpy": "np.outer", "torch": "torch.outer", "jax": "jnp.outer", "max": "ops.outer"},
}
"""What each system calls an operation. Where it is missing, the system has none."""

INSTEAD: Final[Mapping[tuple[str, str], str]] = {
    ("flip", "max"): "use an index of take",
    ("roll", "max"): "concatenate two slices",
    ("roll", "dali"): "concatenate two slices",
    ("topk", "numpy"): "use argsort, a slice and take_along_axis",
    ("topk", "triton"): "sort with descending=True and slice",
    ("sort", "max"): "take the elements at argsort",
    ("at", "numpy"): "choose with where, or write to array.numpy().copy()",
    ("at", "torch"): "choose with where, or write to array.numpy().copy()",
    ("index", "max"): "use take",
    ("index", "triton"): "use take_along_axis",
    ("zeros", "max"): "broadcast a number of a dtype",
    ("ones", "max"): "broadcast a number of a dtype",
    ("full", "max"): "broadcast a number of a dtype",
}
"""What to do where a system has no such operation."""

INDICES: Final[Mapping[tuple[str, str], tuple[DType, ...]]] = {
    ("index", "torch"): (dtypes.int32, dtypes.int64),
    ("take", "torch"): (dtypes.int32, dtypes.int64),
    ("take_along_axis", "torch"): (dtypes.int64,),
}
"""The integer types of indices, where not all are taken."""

OUTSIDE: Final[Mapping[tuple[str, str], str]] = {
    ("index", "jax"): "clip",
    ("take", "jax"): "fill",
    ("take_along_axis", "jax"): "fill",
    ("take", "torch"): "positive",
    ("take_along_axis", "torch"): "wrap",
    ("take_along_axis", "triton"): "positive",
}
"""What an index out of bounds does (`weft.array.execution.calls`), where it does not raise."""

_NARROW: Final = frozenset({"float8", "unsigned"})
"""What PyTorch has few operations of."""

REFUSED: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("sort", "torch"): frozenset({"complex", "float8"}),
    ("argsort", "torch"): frozenset({"complex", "float8"}),
    ("topk", "torch"): _NARROW | {"complex", "bool"},
    ("flip", "torch"): _NARROW,
    ("nonzero", "torch"): _NARROW,
    ("take", "torch"): frozenset({"unsigned"}),
    ("take_along_axis", "torch"): _NARROW,
    ("sort", "triton"): frozenset({"bool"}),
    ("topk", "jax"): frozenset({"complex"}),
    ("einsum", "numpy"): frozenset({"ml_dtypes"}),
}
"""The kinds of types (`kinds`) of which a system has no such operation."""

PRODUCTS: Final = _NARROW | {"bool"}
"""The kinds of which PyTorch sums no products."""


def kinds(dtype: DType) -> frozenset[str]:
    """The kinds by which systems refuse types: ``bool``, ``complex``, ``float8``, ``ml_dtypes`` (what NumPy itself has not) and
    ``unsigned`` (of 16 bits and more)."""
    found = {
        "bool": dtype.is_bool,
        "complex": dtype.is_complex,
        "float8": dtype.is_float8,
        "ml_dtypes": dtype.is_float8 or dtype == dtypes.bfloat16,
        "unsigned": dtype.is_integer and not dtype.signed and dtype.bits > 8,
    }
    return frozenset(kind for kind, holds in found.items() if holds)


def family(system: Semantics) -> str:
    """The system without its version."""
    return system.name.partition("@")[0].partition("-")[0]


def refuse_missing(system: Semantics, op: str, operands: Sequence[Operand] = ()) -> None:
    """`ValueError` where the system has no such operation, `PromotionError` where it has none of the operands' types."""
    base = family(system)
    if base not in NAMES[op]:
        instead = INSTEAD.get((op, base))
        raise ValueError(f"{system.name} has no '{op}'" + (f"; {instead}" if instead else ""))
    refused = REFUSED.get((op, base), frozenset())
    for operand in operands:
        if isinstance(operand, Type) and kinds(operand.dtype) & refused:
            raise PromotionError(f"{NAMES[op][base]} does not take {operand.dtype}", "convert it first")


def kept(op: str, operand: Type) -> Promotion:
    """An operation that gives elements of its operand as they are."""
    step = Step("kept", f"'{op}' of {operand} keeps the type")
    return Promotion(operand.dtype, operand.dtype, op, operand.weak, steps=(step,))


def meet(system: Semantics, op: str, operands: Sequence[Operand]) -> Promotion:
    """The type in which arrays are put together."""
    base = family(system)
    if base == "triton":
        found = [o.dtype for o in operands if isinstance(o, Type)]
        if len(found) != 2 or found[0] != found[1]:
            shown = " and ".join(map(str, operands))
            raise PromotionError(f"{NAMES[op][base]} takes two tiles of one type, found {shown}", "cast with .to()")
        return kept(op, Type(found[0]))
    first, *others = operands
    promotion = system.resolve("concat", first, others[0] if others else first)
    for other in others[1:]:
        promotion = system.resolve("concat", promotion.type, other).after(*promotion.steps)
    if base == "numpy" and len(operands) > 2:  # its search for a common type looks at all of them
        promotion = system.common(*operands)
    return Promotion(promotion.operands, promotion.result, op, promotion.weak, steps=promotion.steps)


def order(system: Semantics, op: str, operand: Type) -> Promotion:
    """``sort``, ``argsort`` and ``topk``: the latter's indices have their own type, see `index_type`."""
    if op != "argsort":
        return kept(op, operand)
    result = index_type(system, op)
    return Promotion(operand.dtype, result, op, steps=(Step("index", f"'{op}' gives indices of type {result}"),))


def index_type(system: Semantics, op: str) -> DType:
    """The type of the indices that ``argsort``, ``topk`` and ``nonzero`` give."""
    if family(system) != "jax":
        return dtypes.int64
    return dtypes.int32 if op == "topk" else system.literal(0).dtype


def check_index(system: Semantics, op: str, dtype: DType) -> None:
    """`IndexError` or `TypeError` for a type of indices that the system refuses."""
    base = family(system)
    allowed = INDICES.get((op, base))
    if dtype.is_integer and (allowed is None or dtype in allowed):
        return
    types = "integers" if allowed is None else " or ".join(map(str, allowed))
    kind = TypeError if base == "jax" else IndexError
    raise kind(f"{NAMES[op][base]} takes indices that are {types}, found {dtype}; convert them with .astype('int64')")


def default_type(system: Semantics, op: str, value: Number) -> Type:
    """The type of a new array whose dtype was not asked for; ``value`` is what fills it, or a number of its kind."""
    base = family(system)
    if base in ("max", "triton"):
        raise TypeError(f"{NAMES[op][base]} takes a dtype; {system.name} chooses none")
    found = system.literal(int(value.real) if base == "dali" and op in ("zeros", "ones") else value)
    return found if op == "full" else Type(found.dtype)
