"""What becomes of the real and imaginary parts under each meaning that complex numbers have.

Each rule takes the parts ``(a, b)``, or ``(a, b), (c, d)``, as nodes and gives nodes. Formulas are written with `Real`, a node
with Python's operators.

Division scales by the larger part of the divisor (Smith, 1962) and the modulus by the larger part, so that neither overflows
where the result does not. Inverse functions are W. Kahan's ("Branch cuts for complex elementary functions", 1987): roots of
``1 - z`` and ``1 + z`` lose nothing near the branch points, and signs of zeros choose the side of a cut. ``x ** y`` is
``exp(y log x)``. Infinities and NaN may differ from NumPy's in the sign or the part they appear in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from weft import dtypes
from weft.array.expression.nodes import Apply, Node, Scalar
from weft.semantics.meanings import TRUTHS

Pair: TypeAlias = tuple[Node, Node]
"""Real and imaginary part."""

LN2: Final = 0.693147180559945309417232121458176568
LN10: Final = 2.302585092994045684017991454684364208


def apply(meaning: str, *arguments: Node) -> Apply:
    """The meaning of nodes of one type; a bool where it asks."""
    shape = np.broadcast_shapes(*(a.shape for a in arguments))
    return Apply(shape, dtypes.bool_ if meaning in TRUTHS else arguments[-1].dtype, meaning, arguments)


@dataclass(frozen=True, eq=False)
class Real:
    """A real node in formulas; numbers become constants of its type."""

    node: Node

    def _of(self, meaning: str, other: Real | float, reflected: bool = False) -> Real:
        side = other.node if isinstance(other, Real) else Scalar((), self.node.dtype, other)
        return Real(apply(meaning, *((side, self.node) if reflected else (self.node, side))))

    def __add__(self, other: Real | float) -> Real:
        return self._of("add", other)

    def __radd__(self, other: float) -> Real:
        return self._of("add", other, True)

    def __sub__(self, other: Real | float) -> Real:
        return self._of("sub", other)

    def __rsub__(self, other: float) -> Real:
        return self._of("sub", other, True)

    def __mul__(self, other: Real | float) -> Real:
        return self._of("mul", other)

    def __rmul__(self, other: float) -> Real:
        return self._of("mul", other, True)

    def __truediv__(self, other: Real | float) -> Real:
        return self._of("divide", other)

    def __rtruediv__(self, other: float) -> Real:
        return self._of("divide", other, True)

    def __neg__(self) -> Real:
        return self.to("neg")

    def to(self, meaning: str, *others: Real | float) -> Real:
        """``meaning(self, *others)``."""
        return self._of(meaning, others[0]) if others else Real(apply(meaning, self.node))

    def either(self, x: Real | float, y: Real) -> Real:
        """``x`` where this condition holds, else ``y``."""
        first = x.node if isinstance(x, Real) else Scalar((), y.node.dtype, x)
        return Real(apply("select", self.node, first, y.node))


Complex: TypeAlias = tuple[Real, Real]
"""Real and imaginary part in formulas."""


def _times(x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def _divide(x: Complex, y: Complex) -> Complex:
    """Smith's division: by the ratio of the divisor's smaller part to its larger one. By zero each part is."""
    (a, b), (c, d) = x, y
    wide = c.to("abs").to("less", d.to("abs"))
    large, small = wide.either(d, c), wide.either(c, d)
    first, second = wide.either(b, a), wide.either(a, b)
    ratio = small / large
    scale = large + small * ratio
    tilted = (second - first * ratio) / scale
    zero = large.to("equal", 0.0)
    real, imaginary = (first + second * ratio) / scale, wide.either(-tilted, tilted)
    return zero.either(a / large.to("abs"), real), zero.either(b / large.to("abs"), imaginary)


def _modulus(z: Complex) -> Real:
    """``large * sqrt(1 + (small / large)**2)``; 0 for 0."""
    x, y = z[0].to("abs"), z[1].to("abs")
    large, small = x.to("maximum_nan", y), x.to("minimum_nan", y)
    ratio = small / large
    plain = large.to("equal", 0.0).to("or", large.to("equal", float("inf")))
    return plain.either(large, large * (ratio * ratio + 1.0).to("sqrt"))


def _exp(z: Complex) -> Complex:
    """``exp(a) (cos b + i sin b)``; the imaginary part stays 0 where b is."""
    size = z[0].to("exp")
    return size * z[1].to("cos"), z[1].to("equal", 0.0).either(z[1], size * z[1].to("sin"))


def _log(z: Complex) -> Complex:
    return _modulus(z).to("log"), z[1].to("atan2", z[0])


def _sqrt(z: Complex) -> Complex:
    """The root in the right half plane: ``t = sqrt((|z| + |a|) / 2)`` and ``b / 2t``, in the order the sign of a asks for."""
    a, b = z
    t = ((_modulus(z) + a.to("abs")) * 0.5).to("sqrt")
    other = t.to("equal", 0.0).either(0.0, b.to("abs") / (t * 2.0))
    left = a.to("less", 0.0)
    return left.either(other, t), left.either(t, other).to("copysign", b)


def _scaled(factor: float) -> Callable[[Complex], Complex]:
    return lambda z: (z[0] * factor, z[1] * factor)


def _sinh(z: Complex) -> Complex:
    (a, b) = z
    return a.to("sinh") * b.to("cos"), a.to("cosh") * b.to("sin")


def _cosh(z: Complex) -> Complex:
    (a, b) = z
    return a.to("cosh") * b.to("cos"), a.to("sinh") * b.to("sin")


def _tanh(z: Complex) -> Complex:
    """Kahan's: with ``t = tan b`` and ``s = sinh a``, ``(1 + t t) sqrt(1 + s s) s + i t`` by ``1 + (1 + t t) s s``."""
    a, b = z
    t, s = b.to("tan"), a.to("sinh")
    beta = t * t + 1.0
    scale = beta * s * s + 1.0
    far = a.to("abs").to("greater", 20.0)
    size = a.to("abs")
    one = Real(apply("copysign", Scalar((), a.node.dtype, 1.0), a.node))
    flat = 4.0 * b.to("sin") * b.to("cos") * (size * -2.0).to("exp")
    return far.either(one, beta * (s * s + 1.0).to("sqrt") * s / scale), far.either(flat, t / scale)


def _turned(function: Callable[[Complex], Complex]) -> Callable[[Complex], Complex]:
    """``-i f(iz)``: sin of sinh, tan of tanh, asinh of asin, atan of atanh."""

    def turned(z: Complex) -> Complex:
        x, y = function((-z[1], z[0]))
        return y, -x

    return turned


def _cos(z: Complex) -> Complex:
    return _cosh((-z[1], z[0]))


def _roots(z: Complex) -> tuple[Complex, Complex]:
    """The roots of ``1 - z`` and ``1 + z``."""
    a, b = z
    return _sqrt((1.0 - a, -b)), _sqrt((a + 1.0, b))


def _cross(x: Complex, y: Complex) -> Real:
    """The imaginary part of ``conj(x) y``."""
    return x[0] * y[1] - x[1] * y[0]


def _asin(z: Complex) -> Complex:
    less, more = _roots(z)
    return z[0].to("atan2", _times(less, more)[0]), _cross(less, more).to("asinh")


def _acos(z: Complex) -> Complex:
    less, more = _roots(z)
    return less[0].to("atan2", more[0]) * 2.0, _cross(more, less).to("asinh")


def _acosh(z: Complex) -> Complex:
    a, b = z
    less, more = _sqrt((a - 1.0, b)), _sqrt((a + 1.0, b))
    real = (less[0] * more[0] + less[1] * more[1]).to("asinh")
    return real, less[1].to("atan2", more[0]) * 2.0


def _atanh(z: Complex) -> Complex:
    a, b = z[0].to("abs"), z[1] * Real(apply("copysign", _one(z)[0].node, z[0].node))  # of the right half plane
    less = 1.0 - a
    real = (a * 4.0 / (less * less + b * b)).to("log1p") * 0.25
    angle = (b * 2.0).to("atan2", less * (a + 1.0) - b * b) * 0.5
    return real.to("copysign", z[0]), angle * Real(apply("copysign", _one(z)[0].node, z[0].node))


def _log1p(z: Complex) -> Complex:
    """``log1p(a (2 + a) + b b) / 2``, which loses nothing for small z, and the angle of ``1 + z``."""
    a, b = z
    near = (a * (a + 2.0) + b * b).to("log1p") * 0.5
    far = _modulus((a + 1.0, b)).to("log")
    return a.to("abs").to("maximum_nan", b.to("abs")).to("less", 0.5).either(near, far), b.to("atan2", a + 1.0)


def _expm1(z: Complex) -> Complex:
    """``expm1(a) cos b - 2 sin(b / 2)**2 + i exp(a) sin b``."""
    a, b = z
    half = (b * 0.5).to("sin")
    return a.to("expm1") * b.to("cos") - 2.0 * half * half, a.to("exp") * b.to("sin")


def _power(x: Complex, y: Complex) -> Complex:
    """``exp(y log x)``; ``x ** 0`` is 1, 0 to a power with a positive real part 0, else NaN."""
    real, imaginary = _exp(_times(y, _log(x)))
    (a, b), (c, d) = x, y
    zero = a.to("equal", 0.0).to("and", b.to("equal", 0.0))
    none = c.to("equal", 0.0).to("and", d.to("equal", 0.0))
    nothing = zero.to("and", c.to("greater", 0.0))
    undefined = zero.to("and", c.to("less_equal", 0.0))
    real = undefined.either(float("nan"), nothing.either(0.0, real))
    imaginary = undefined.either(float("nan"), nothing.either(0.0, imaginary))
    return none.either(1.0, real), none.either(0.0, imaginary)


def _sign(z: Complex) -> Complex:
    """``z / |z|``; 0 for 0."""
    size = _modulus(z)
    zero = size.to("equal", 0.0)
    return zero.either(z[0], z[0] / size), zero.either(z[1], z[1] / size)


def _one(z: Complex) -> Complex:
    part = z[0].node.dtype
    return Real(Scalar((), part, 1.0)), Real(Scalar((), part, 0.0))


def _sigmoid(z: Complex) -> Complex:
    real, imaginary = _exp((-z[0], -z[1]))
    return _divide(_one(z), (real + 1.0, imaginary))


def _after(kind: str, x: Complex, y: Complex) -> Real:
    """NumPy's order: by the real parts, where those are equal by the imaginary ones. False where a part is NaN."""
    strict = kind.removesuffix("_equal")
    numbers = x[1].to("equal", x[1]).to("and", y[1].to("equal", y[1]))
    return x[0].to(strict, y[0]).to("and", numbers).to("or", x[0].to("equal", y[0]).to("and", x[1].to(kind, y[1])))


def _compared(kind: str) -> Callable[[Complex, Complex], Real]:
    return lambda x, y: _after(kind, x, y)


def _extreme(kind: str, passes: bool) -> Callable[[Complex, Complex], Complex]:
    """The first where it comes before (after) the second; where a side is NaN that side, or the other if it ``passes``."""

    def rule(x: Complex, y: Complex) -> Complex:
        nan = _any("not_equal", y if passes else x)
        first = nan.to("or", _after(kind, x, y))
        return first.either(x[0], y[0]), first.either(x[1], y[1])

    return rule


def _any(meaning: str, z: Complex) -> Real:
    """Whether ``meaning`` of a part with itself holds for one of them."""
    return z[0].to(meaning, z[0]).to("or", z[1].to(meaning, z[1]))


def _asked(meaning: str, joined: str) -> Callable[[Complex], Real]:
    return lambda z: z[0].to(meaning).to(joined, z[1].to(meaning))


def _each(meaning: str) -> Callable[[Complex], Complex]:
    """The meaning of each part by itself."""
    return lambda z: (z[0].to(meaning), z[1].to(meaning))


def _pairwise(meaning: str) -> Callable[[Complex, Complex], Complex]:
    """The meaning of the real parts, and of the imaginary parts."""
    return lambda x, y: (x[0].to(meaning, y[0]), x[1].to(meaning, y[1]))


_UNARY: Final[dict[str, Callable[[Complex], Complex | Real]]] = {
    **{meaning: _each(meaning) for meaning in ("neg", "rint")},
    "identity": lambda z: z,
    "square": lambda z: _times(z, z),
    "reciprocal": lambda z: _divide(_one(z), z),
    "abs": _modulus,
    "real": lambda z: z[0],
    "imag": lambda z: z[1],
    "conj": lambda z: (z[0], -z[1]),
    "angle": lambda z: z[1].to("atan2", z[0]),
    "sign": _sign,
    "isnan": _asked("isnan", "or"),
    "isinf": _asked("isinf", "or"),
    "isfinite": _asked("isfinite", "and"),
    "exp": _exp,
    "exp2": lambda z: _exp(_scaled(LN2)(z)),
    "expm1": _expm1,
    "log": _log,
    "log2": lambda z: _scaled(1 / LN2)(_log(z)),
    "log10": lambda z: _scaled(1 / LN10)(_log(z)),
    "log1p": _log1p,
    "sqrt": _sqrt,
    "rsqrt": lambda z: _divide(_one(z), _sqrt(z)),
    "sigmoid": _sigmoid,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _turned(_sinh),
    "cos": _cos,
    "tan": _turned(_tanh),
    "asin": _asin,
    "acos": _acos,
    "atan": _turned(_atanh),
    "asinh": _turned(_asin),
    "acosh": _acosh,
    "atanh": _atanh,
}

_BINARY: Final[dict[str, Callable[[Complex, Complex], Complex | Real]]] = {
    **{meaning: _pairwise(meaning) for meaning in ("add", "sub")},
    "mul": _times,
    "divide": _divide,
    "power": _power,
    "equal": lambda x, y: x[0].to("equal", y[0]).to("and", x[1].to("equal", y[1])),
    "not_equal": lambda x, y: x[0].to("not_equal", y[0]).to("or", x[1].to("not_equal", y[1])),
    **{kind: _compared(kind) for kind in ("less", "less_equal", "greater", "greater_equal")},
    "minimum_nan": _extreme("less", False),
    "maximum_nan": _extreme("greater", False),
    "minimum": _extreme("less", True),
    "maximum": _extreme("greater", True),
}

_TERNARY: Final[dict[str, Callable[[Complex, Complex, Complex], Complex]]] = {
    "clamp": lambda x, low, high: _extreme("less", False)(_extreme("greater", False)(x, low), high),
}


def _rule(formula: Callable[..., Complex | Real]) -> Callable[..., Node | Pair]:
    def rule(*parts: Node) -> Node | Pair:
        given = [(Real(a), Real(b)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        made = formula(*given)
        return made.node if isinstance(made, Real) else (made[0].node, made[1].node)

    return rule


RULES: Final[dict[str, Callable[..., Node | Pair]]] = {
    name: _rule(formula) for table in (_UNARY, _BINARY, _TERNARY) for name, formula in table.items()
}
"""What becomes of the parts under each meaning that complex numbers have here."""
