"""Complex arrays: native kernels over the parts, against NumPy's complex numbers in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft.array as wa
from sampling import at_night, grid
from weft import dtypes, semantics
from weft.array.execution import backends
from weft.array.expression.nodes import Apply, Input, walk
from weft.semantics import ops

pytestmark = pytest.mark.jit


def numbers(*shape: int, seed: int) -> NDArray[Any]:
    draw = np.random.default_rng(seed)
    return (draw.standard_normal(shape) + 1j * draw.standard_normal(shape)).astype("complex64")


Z, W = numbers(5, 7, seed=0), numbers(7, seed=1)
R: NDArray[Any] = np.random.default_rng(2).standard_normal((5, 7)).astype("float32")

CASES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "a * b + c": lambda xp, a, b, c: a * b + c,
    "a - c": lambda xp, a, b, c: c - a,
    "a / b": lambda xp, a, b, c: a / b,
    "c / a": lambda xp, a, b, c: c / a,
    "-a": lambda xp, a, b, c: -a,
    "square": lambda xp, a, b, c: xp.square(a),
    "exp": lambda xp, a, b, c: xp.exp(a),
    "log": lambda xp, a, b, c: xp.log(a),
    "sqrt": lambda xp, a, b, c: xp.sqrt(a),
    "abs": lambda xp, a, b, c: abs(a),
    "real": lambda xp, a, b, c: xp.real(a),
    "literal": lambda xp, a, b, c: c * 1j + 2,
    "equal": lambda xp, a, b, c: (a == b) | (a != b),
    "where": lambda xp, a, b, c: xp.where(c > 0, a, b),
    "sum": lambda xp, a, b, c: xp.sum(a, 0),
    "mean": lambda xp, a, b, c: xp.mean(a),
    "matmul": lambda xp, a, b, c: a @ b,
    "views": lambda xp, a, b, c: (a.T[::2, ::-1] - 1).reshape(-1),
    "widened": lambda xp, a, b, c: a.astype("complex128") * b,
}


@pytest.mark.parametrize(("name", "system"), grid(2, [*CASES], ["numpy", "jax"]))
def test_agrees_with_numpy(name: str, system: str) -> None:
    exact = np.asarray(CASES[name](np, Z.astype("complex128"), W.astype("complex128"), R.astype("float64")))
    with semantics.use(system):
        for backend in ("native", "reference"):
            got = CASES[name](wa, *map(wa.asarray, (Z, W, R)))
            (value,) = wa.compute(got, backend=backend)
            assert value.shape == exact.shape
            assert value.dtype == got.dtype.numpy
            np.testing.assert_allclose(value, exact, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_quotients_and_moduli_do_not_overflow_on_the_way(scale: float) -> None:
    # |z| of 3 + 4i is 5, and z / z is 1, though the squares of the parts leave float32.
    z = np.array([3 + 4j, 4 - 3j, -3j, 5], "complex64") * np.float32(scale)
    a = wa.asarray(z, "numpy")
    np.testing.assert_allclose(abs(a).numpy(), np.array([5, 5, 3, 5]) * scale, rtol=1e-6)
    np.testing.assert_allclose((a / a).numpy(), np.ones(4), rtol=1e-6)


def test_roots_lie_in_the_right_half_plane() -> None:
    z = np.array([0, 4, -4, 2j, -2j, -3 + 4j, -3 - 4j], "complex64")
    expected = np.array([0, 2, 2j, 1 + 1j, 1 - 1j, 1 + 2j, 1 - 2j])
    np.testing.assert_allclose(wa.sqrt(wa.asarray(z, "numpy")).numpy(), expected, atol=1e-6)
    assert abs(wa.asarray(np.array([complex(np.inf, 1), 0j]), "numpy")).numpy().tolist() == [np.inf, 0]


def test_casts_to_real_types_take_the_real_part_and_to_bool_both() -> None:
    a = wa.asarray(np.array([0, 1j, 2.5, 2 + 1j], "complex64"), "numpy")
    assert a.astype("float32").numpy().tolist() == [0, 0, 2.5, 2]
    assert a.astype("bool").numpy().tolist() == [False, True, True, True]


def test_fused_functions_take_and_give_complex_arrays() -> None:
    @wa.fuse(semantics="jax")
    def twice(x: wa.Array) -> tuple[wa.Array, wa.Array]:
        return x * 2, abs(x)

    doubled, size = twice(Z[::2, ::-1])
    np.testing.assert_allclose(doubled.numpy(), Z[::2, ::-1] * 2, rtol=1e-6)
    np.testing.assert_allclose(size.numpy(), np.abs(Z[::2, ::-1]), rtol=1e-6)


def test_what_has_no_rule_is_named() -> None:
    z = Input((2,), dtypes.complex64, array=Z[0, :2])
    with pytest.raises(TypeError) as caught:
        backends.plan([Apply((2,), dtypes.complex64, "floor", (z,))], [z], "native")
    assert str(caught.value) == "weft has no 'floor' of complex numbers; compute it of the parts"


def built(op: str, system: str) -> wa.Array | None:
    """The operation on complex arrays of the system; None where it is refused."""
    operands = [wa.asarray(Z, system)] * (3 if op == "where" else ops.arity(op))
    if op == "where" and system == "torch":
        operands[0] = wa.asarray(R, system) > 0
    try:
        reduces = op in ops.REDUCTIONS or op in ops.FAMILY_REDUCTIONS
        return operands[0].reduce(op, 0) if reduces else wa.apply(op, *operands)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("system", [s for s in semantics.SYSTEMS if dtypes.complex64 in semantics.get(s).dtypes])
def test_what_is_not_computed_is_refused_when_it_is_built(system: str) -> None:
    computed: list[str] = []
    for op in ops.ALL:
        if op in (*ops.LOGICAL, "concat", "matmul") or (result := built(op, system)) is None:
            continue
        computed.append(op)
        backends.plan([result.node], [n for n in walk([result.node]) if isinstance(n, Input)], "native")
        (value,) = wa.compute(result, backend="reference")
        assert value.dtype == result.dtype
    assert {"+", "/", "==", "exp", "sum", "mean", "abs", "real"} <= {*computed}


REFUSED: list[tuple[Callable[[Any], Any], str, str]] = [
    (
        lambda x: wa.cummax(x, 0),
        "numpy",
        "weft does not compute 'cummax' of complex64; compare abs(x), or real(x) with real(y)",
    ),
    (
        lambda x: x.argmax(0),
        "jax",
        "jax gives 'argmax' of complex64 a type, and no package computes it; compare abs(x), or real(x) with real(y)",
    ),
    (
        lambda x: wa.logaddexp(x, x),
        "jax",
        "weft does not compute 'logaddexp' of complex64; write it with exp and log, or of the parts real(x) and imag(x)",
    ),
]


@pytest.mark.parametrize(("build", "system", "message"), REFUSED, ids=["cummax", "argmax", "logaddexp"])
def test_the_refusal_says_what_to_do(build: Callable[[Any], Any], system: str, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        build(wa.asarray(Z, system))
    assert str(raised.value) == message


FUNCTIONS = {
    **{
        name: name
        for name in ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh")
    },
    **{
        name: name
        for name in ("cosh", "tanh", "square", "reciprocal", "conj", "angle", "imag", "rint", "sign", "negative")
    },
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}


def far(dtype: Any) -> NDArray[Any]:
    """Numbers of several magnitudes in all quadrants."""
    draw = np.random.default_rng(3)
    scale = np.exp(draw.normal(size=(2, 120)))
    z = draw.normal(size=(2, 120)) * scale
    return (z[0] + 1j * z[1]).astype(dtype)


@pytest.mark.parametrize(("dtype", "unit"), [("complex64", 6e-8), ("complex128", 1.2e-16)])
def test_functions_are_near_the_exact_value(dtype: str, unit: float) -> None:
    """Distances from NumPy's value in complex128, by its modulus: at most 8 units of rounding, of ``z ** w`` as many times
    ``1 + |w log z|``. By day each type has every other function, and both have powers."""
    z, w = far(dtype), far(dtype)[::-1]
    functions = list(FUNCTIONS) if at_night() else list(FUNCTIONS)[dtype == "complex128" :: 2]
    made = {name: wa.apply(name, wa.asarray(z)) for name in functions} | {"power": wa.asarray(z) ** wa.asarray(w)}
    wide, other = z.astype("complex128"), w.astype("complex128")
    for name, got in zip(made, wa.compute(*made.values(), backend="native"), strict=True):
        exact = np.power(wide, other) if name == "power" else getattr(np, FUNCTIONS[name])(wide)
        error = np.abs(got - exact) / np.where(exact == 0, 1, np.abs(exact)) / unit
        most = 8 + 8 * np.abs(other * np.log(wide)) if name == "power" else np.full(z.shape, 8)
        assert (error <= most).all(), (name, (error - most).max())
        assert (
            got.dtype == exact.astype(dtype if exact.dtype.kind == "c" else f"f{np.dtype(dtype).itemsize // 2}").dtype
        )


def test_functions_near_branch_points() -> None:
    """Both sides of the cuts, by the signs of zeros, and next to 1, where the textbook formulas lose everything."""
    z = np.array([2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0), 1 + 1e-9, -1 + 1e-9j, 1e-9 + 1e-9j, 0.5 + 0j])
    for name in ("arcsin", "arccos", "arctanh", "arccosh", "sqrt", "log1p"):
        got = wa.compute(wa.apply(name, wa.asarray(z)), backend="native")[0]
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got, getattr(np, name)(z), rtol=1e-7, err_msg=name)


def test_powers_of_zero() -> None:
    z, w = np.zeros(4, complex), np.array([0, 2, -1, 1j])
    got = wa.compute(wa.asarray(z) ** wa.asarray(w), backend="native")[0]
    assert got[:2].tolist() == [1, 0] and np.isnan(got[2:]).all()


def test_order_and_questions() -> None:
    """NumPy's order: by the real parts, then by the imaginary ones."""
    draw = np.random.default_rng(5)
    z, w = ((draw.integers(-1, 2, 40) + 1j * draw.integers(-1, 2, 40)).astype("complex64") for _ in range(2))
    z[3], w[7], z[9] = complex(np.nan, 1), complex(1, np.nan), complex(np.inf, np.nan)
    a, b = wa.asarray(z), wa.asarray(w)
    names = ("less", "less_equal", "greater", "greater_equal", "equal", "minimum", "maximum", "fmin", "fmax")
    made = [wa.apply(name, a, b) for name in names] + [wa.apply(name, a) for name in ("isnan", "isinf", "isfinite")]
    with np.errstate(all="ignore"):
        exact = [getattr(np, name)(z, w) for name in names] + [np.isnan(z), np.isinf(z), np.isfinite(z)]
        for backend in ("native", "reference"):
            for got, want in zip(wa.compute(*made, backend=backend), exact, strict=True):
                np.testing.assert_array_equal(got, want)
