"""What users read when something is wrong, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft.array as wa
from weft.semantics import PromotionError

KNOWN = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, complex64, complex128, "
    "int2, uint2, int4, uint4, float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, "
    "float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu"
)


def ints(system: str = "numpy", dtype: str = "int32") -> wa.Array:
    """Shape (2, 3)."""
    return wa.asarray(np.ones((2, 3), dtype), system)


def floats(system: str = "jax") -> wa.Array:
    """Shape (3,)."""
    return wa.asarray(np.ones(3, np.float32), system)


def narrow(system: str) -> wa.Array:
    """uint8, shape (1,)."""
    return wa.asarray(np.ones(1, np.uint8), system)


def of(dtype: Any) -> wa.Array:
    """NumPy data of any dtype."""
    return wa.asarray(np.ones(2, dtype))


def assign() -> None:
    """Writes into an array."""
    ints()[0] = 1


MIXED = "move one over with weft.array.asarray(array, semantics='numpy')"
CASES: list[tuple[str, type[Exception], str, Callable[[], Any]]] = [
    # systems and dtypes
    ("system", ValueError, "unknown semantics 'jaxx'; did you mean 'jax'?", lambda: wa.asarray([1], "jaxx")),
    ("dtype", ValueError, "unknown dtype 'flot32'; did you mean 'float32'?", lambda: wa.asarray([1], dtype="flot32")),
    ("cast", ValueError, "unknown dtype 'flot32'; did you mean 'float32'?", lambda: ints().astype("flot32")),
    ("no dtype", TypeError, "expected a dtype like 'float32' or numpy.float32, found 3", lambda: ints().astype(3)),
    (
        "absent dtype",
        ValueError,
        "dali has no dtype bfloat16; "
        "it has bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64",
        lambda: wa.asarray(np.ones(2, ml_dtypes.bfloat16), "dali"),
    ),
    # types that are not computed with
    (
        "tensor_float32",
        wa.UnsupportedDType,
        "max converts to tensor_float32, which weft does not compute with; cast to float32 first",
        lambda: floats("max").astype("tensor_float32"),
    ),
    (
        "complex",
        wa.UnsupportedDType,
        "torch converts to complex32, which weft does not compute with; cast to complex64 first",
        lambda: floats("torch").astype("complex32"),
    ),
    (
        "byte order",
        wa.UnsupportedDType,
        "the array has byte-swapped >f4 elements; pass array.astype(array.dtype.newbyteorder('='))",
        lambda: of(">f4"),
    ),
    (
        "text",
        wa.UnsupportedDType,
        f"the array has <U1 elements; weft computes with {KNOWN}",
        lambda: wa.asarray(np.array(["a"])),
    ),
    (
        "a function of integers under MAX",
        PromotionError,
        "max@26 gives 'sqrt' of int32 a type, and no package computes it; convert with .astype('float32') first",
        lambda: wa.sqrt(wa.asarray(np.arange(3, dtype="int32"), "max@26")),
    ),
    # what is no data
    ("str", TypeError, "asarray takes arrays, numbers and nested lists of numbers, found str", lambda: wa.asarray("x")),
    (
        "masked",
        TypeError,
        "asarray found a masked array, whose mask it would ignore; pass .data or .filled()",
        lambda: wa.asarray(np.ma.masked_array(np.ones(2))),
    ),
    ("ragged", ValueError, "asarray takes lists of equal lengths at each depth", lambda: wa.asarray([[1], [1, 2]])),
    (
        "great integers",
        TypeError,
        "asarray cannot hold [1, 18446744073709551616]: its integers have no common 64-bit type",
        lambda: wa.asarray([1, 2**64]),
    ),
    ("operand", TypeError, "unsupported operand type(s) for +: 'Array' and 'str'", lambda: floats() + "x"),
    ("list", TypeError, "unsupported operand type(s) for +: 'Array' and 'list'", lambda: floats() + [1.0]),
    ("compared", TypeError, "'==' compares arrays with arrays and numbers, found str", lambda: floats() == "x"),
    ("argument", TypeError, "'exp' takes arrays and numbers, found NoneType", lambda: wa.exp(None)),
    # mixed systems
    ("mixed", wa.MixedSemantics, f"'+' mixes arrays of numpy and jax; {MIXED}", lambda: ints() + ints("jax")),
    (
        "mixed where",
        wa.MixedSemantics,
        f"'where' mixes arrays of numpy and jax; {MIXED}",
        lambda: wa.where(ints() > 0, ints("jax"), 1),
    ),
    (
        "versions",
        wa.MixedSemantics,
        "'matmul' mixes arrays of jax and jax@0.10; move one over with weft.array.asarray(array, semantics='jax')",
        lambda: ints("jax") @ ints("jax@0.10"),
    ),
    # literals
    (
        "numpy literal",
        PromotionError,
        "Python integer 300 out of bounds for uint8; convert the other side with .astype(np.int16)",
        lambda: narrow("numpy") + 300,
    ),
    (
        "triton literal",
        PromotionError,
        "Scalar 300 is out of range for type uint8; cast the other operand to tl.uint16",
        lambda: narrow("triton") + 300,
    ),
    (
        "jax literal",
        PromotionError,
        "the Python int 1180591620717411303424 overflows int64, the type it is parsed as; write it as a float",
        lambda: floats() + 2**70,
    ),
    (
        "typed number",
        OverflowError,
        "Python integer 300 out of bounds for uint8",
        lambda: wa.asarray(300, dtype="uint8"),
    ),
    # shapes
    (
        "broadcast",
        ValueError,
        "'+' cannot broadcast shapes (2, 3), (2, 4): axis -1 has 3 and 4 elements",
        lambda: ints() + np.ones((2, 4)),
    ),
    (
        "broadcast three",
        ValueError,
        "'where' cannot broadcast shapes (2, 3), (), (4, 3): axis -2 has 2 and 4 elements",
        lambda: wa.where(ints() > 0, 0.5, np.ones((4, 3))),
    ),
    (
        "matmul",
        ValueError,
        "'matmul' cannot multiply shapes (2, 3) and (2, 3): rows of 3 elements, columns of 2",
        lambda: ints() @ ints(),
    ),
    (
        "matmul of a scalar",
        ValueError,
        "'matmul' needs dimensions on both sides; multiply by a scalar with '*'",
        lambda: ints() @ np.array(1),
    ),
    (
        "reshape",
        ValueError,
        "'reshape' cannot give 6 elements of shape (2, 3) the shape (4, -1)",
        lambda: ints().reshape(4, -1),
    ),
    (
        "broadcast_to",
        ValueError,
        "'broadcast_to' cannot give an array of shape (2, 3) the shape (2, 4)",
        lambda: ints().broadcast_to(2, 4),
    ),
    (
        "squeeze",
        ValueError,
        "'squeeze' removes axes of size 1, and axis 0 of shape (2, 3) has 2",
        lambda: ints().squeeze(0),
    ),
    (
        "transpose",
        ValueError,
        "'transpose' needs each of the 2 axes once, found (0, 0)",
        lambda: ints().transpose(0, 0),
    ),
    # axes
    ("axis", IndexError, "'sum': axis 2 is out of range for an array of 2 dimensions", lambda: ints().sum(2)),
    ("axis twice", ValueError, "'sum': axis 0 is named twice", lambda: ints().sum((0, -2))),
    ("two axes", ValueError, "'argmax' goes along one axis, found 2", lambda: ints().reduce("argmax", (0, 1))),
    (
        "nothing to compare",
        ValueError,
        "'max' over no elements has no value; axes (0,) of shape (0, 3) are empty",
        lambda: wa.asarray(np.ones((0, 3))).max(0),
    ),
    ("not elementwise", ValueError, "'sum' is not elementwise", lambda: wa.apply("sum", ints())),
    ("arity", TypeError, "'exp' takes 1 operand, found 2", lambda: wa.apply("exp", floats(), 2)),
    # indices
    ("too many", IndexError, "3 indices for an array of 2 dimensions", lambda: ints()[0, 0, 0]),
    ("out of range", IndexError, "index 2 is out of range for axis 0 with 2 elements", lambda: ints()[2]),
    ("below the range", IndexError, "index -4 is out of range for axis 1 with 3 elements", lambda: ints()[:, -4]),
    (
        "mask of another shape",
        IndexError,
        "the mask has shape (3,), and the dimensions it selects from have (2,)",
        lambda: ints()[np.array([True, False, True])],
    ),
    (
        "bool",
        IndexError,
        "one bool is no index here; use expand_dims, and a slice where it is False",
        lambda: ints()[True],
    ),
    (
        "index of floats",
        IndexError,
        "x[i] takes indices that are integers, found float32; convert them with .astype('int64')",
        lambda: ints()[floats()],
    ),
    (
        "kind of index",
        IndexError,
        "arrays are indexed by integers, slices, '...', None, arrays of integers and masks, found str",
        lambda: ints()["a"],
    ),
    ("gather", IndexError, "index 7 is out of bounds for axis 0 with size 2", lambda: ints()[[0, 7]].numpy()),
    (
        "list in jax",
        TypeError,
        "jax takes no list as an index; use array[numpy.array(list)]",
        lambda: wa.asarray(np.arange(3), "jax")[[0, 1]],
    ),
    (
        "uint8 in torch",
        IndexError,
        "torch takes an index of uint8 for a mask; convert it with .astype('bool') or .astype('int64')",
        lambda: wa.asarray(np.arange(3), "torch")[wa.asarray(np.zeros(3, np.uint8), "torch")],
    ),
    (
        "backwards in torch",
        ValueError,
        "torch takes slices of positive steps; reverse with flip where it has that",
        lambda: wa.asarray(np.arange(3), "torch")[::-1],
    ),
    # whole arrays
    (
        "no such operation",
        ValueError,
        "dali@2 has no 'sort'",
        lambda: wa.sort(wa.asarray(np.arange(3), "dali@2")),
    ),
    (
        "what to do instead",
        ValueError,
        "max has no 'sort'; take the elements at argsort",
        lambda: wa.sort(wa.asarray(np.arange(3), "max")),
    ),
    (
        "at",
        ValueError,
        "numpy has no 'at'; choose with where, or write to array.numpy().copy()",
        lambda: ints().at[0].set(1),
    ),
    (
        "at of bools",
        TypeError,
        "jax's at[].add does not take bool; convert with .astype('int32')",
        lambda: wa.asarray(np.array([True]), "jax").at[0].add(True),
    ),
    (
        "at of complex numbers",
        TypeError,
        "weft has no at[].mul of complex numbers; update the parts",
        lambda: wa.asarray(np.ones(1, np.complex64), "jax").at[0].mul(2),
    ),
    (
        "array for a number",
        TypeError,
        "'tile' takes Python's numbers there, found an array; read it with int(array) or array.tolist()",
        lambda: wa.tile(ints(), ints()[0, 0]),
    ),
    (
        "tl.gather",
        ValueError,
        "tl.gather takes indices like the source but for axis 1, found (1, 2)",
        lambda: wa.take_along_axis(wa.asarray(np.ones((2, 3)), "triton"), np.zeros((1, 2), int), axis=1),
    ),
    (
        "tl.cat",
        TypeError,
        "tl.cat takes two tiles of one type, found int32 and float32; cast with .to()",
        lambda: wa.concatenate([wa.asarray(np.ones(2, d), "triton") for d in (np.int32, np.float32)]),
    ),
    (
        "tl.join",
        ValueError,
        "tl.join stacks along a new last dimension; use axis=-1",
        lambda: wa.stack([wa.asarray(np.ones(2), "triton")] * 2),
    ),
    ("nothing to join", ValueError, "'concatenate' takes at least one array", lambda: wa.concatenate([])),
    (
        "number to join",
        TypeError,
        "'concatenate' takes arrays, found 1.5; make it an array",
        lambda: wa.concatenate([ints(), 1.5]),
    ),
    (
        "other sizes",
        ValueError,
        "'concatenate' along axis 0 takes arrays that are alike but for it, found (2, 3), (2, 2)",
        lambda: wa.concatenate([ints(), ints()[:, :2]]),
    ),
    (
        "other shapes",
        ValueError,
        "'stack' takes arrays of one shape, found (2, 3), (2, 2)",
        lambda: wa.stack([ints(), ints()[:, :2]]),
    ),
    (
        "types to join",
        TypeError,
        "fn.cat takes inputs of one type, found int8 and float32; cast the second with fn.cast(x, dtype=types.INT8)",
        lambda: wa.concatenate([wa.asarray(np.zeros(2, d), "dali@2") for d in (np.int8, np.float32)]),
    ),
    (
        "padding",
        ValueError,
        "max pads with constant, edge, reflect, found 'wrap'",
        lambda: wa.pad(wa.asarray(np.arange(3), "max"), 1, mode="wrap"),
    ),
    ("filling", OverflowError, "300 is out of bounds for int8", lambda: wa.full(2, 300, "int8")),
    (
        "no default",
        TypeError,
        "tl.zeros takes a dtype; triton chooses none",
        lambda: wa.zeros(2, semantics="triton"),
    ),
    (
        "pieces",
        ValueError,
        "'split' cannot divide 3 elements into 2 equal pieces",
        lambda: wa.split(ints(), 2, axis=1),
    ),
    (
        "einsum",
        ValueError,
        "'einsum': the axes 'j' have 3 and 2 elements",
        lambda: wa.einsum("ij,jk->ik", ints(), ints()),
    ),
    (
        "einsum of types",
        TypeError,
        "torch.einsum sums products of numbers of one type, found int8 and float32; convert with .to()",
        lambda: wa.einsum("i,i", *(wa.asarray(np.zeros(2, d), "torch") for d in (np.int8, np.float32))),
    ),
    (
        "too many",
        ValueError,
        "'topk' takes at most the 3 elements along axis 0, found k=4",
        lambda: wa.topk(wa.asarray(np.arange(3), "torch"), 4),
    ),
    ("ellipses", IndexError, "an index may hold one Ellipsis ('...')", lambda: ints()[..., ...]),
    # values
    (
        "truth",
        ValueError,
        "an array of 6 elements is neither true nor false; use .any() or .all()",
        lambda: bool(ints()),
    ),
    ("float", TypeError, "only an array of one element is a float, this one has shape (2, 3)", lambda: float(ints())),
    ("item", TypeError, "only an array of one element is an item, this one has shape (2, 3)", lambda: ints().item()),
    (
        "index",
        TypeError,
        "only integer arrays without dimensions are indices, found float32[] of shape ()",
        lambda: [1, 2][floats().sum()],
    ),
    ("length", TypeError, "an array without dimensions has no length", lambda: len(ints().sum())),
    (
        "iteration",
        TypeError,
        "an array without dimensions has nothing to iterate over",
        lambda: list(ints().sum()),
    ),
    (
        "assignment",
        TypeError,
        "arrays are immutable; build another one, for example weft.array.where(mask, value, array)",
        assign,
    ),
    ("hash", TypeError, "unhashable type: 'Array'", lambda: hash(ints())),
    # NumPy's functions
    (
        "absent ufunc",
        TypeError,
        "numpy.spacing has no counterpart in weft.array; pass array.numpy() to compute with NumPy, outside jax",
        lambda: np.spacing(floats()),
    ),
    (
        "DLPack",
        BufferError,
        "NumPy exports no bfloat16 through DLPack; pass array.numpy()",
        lambda: wa.asarray(np.ones(2, ml_dtypes.bfloat16)).__dlpack__(),
    ),
    (
        "backend",
        ValueError,
        "unknown backend 'gpu'; weft.array has native, reference",
        lambda: wa.compute(ints() + 1, backend="gpu"),
    ),
    (
        "compute",
        TypeError,
        "compute takes arrays of weft.array, found int; make one with asarray",
        lambda: wa.compute(ints(), 3),  # pyright: ignore[reportArgumentType]
    ),
    (
        "kernels",
        TypeError,
        "kernels takes arrays of weft.array, found ndarray; make one with asarray",
        lambda: wa.kernels(np.ones(3)),  # pyright: ignore[reportArgumentType]
    ),
]


@pytest.mark.parametrize(("kind", "message", "fails"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_message(kind: type[Exception], message: str, fails: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        fails()
