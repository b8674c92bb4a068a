"""Random programs over the public arrays: every system and type, literals, broadcasting, views, reductions, products.

Each value knows whether it is *exact*: whether the definition leaves no rounding to choose. Values that functions of calculus
made are not, by an ulp or so; they are read, moved and chosen, and never computed with, so that an ulp stays one. Sums,
products and means of floats are made of whole numbers between -4 and 4, of which every order gives the same.

Run as a program, it runs programs from a seed on: ``python tests/array_programs.py FIRST COUNT``.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import weft.array as wa
from weft.array import Array
from weft.array.expression.support import COMPUTED
from weft.dtypes import DType
from weft.semantics import SYSTEMS, ops
from weft.semantics.systems.max import FUNCTIONS

REFUSED: Final = (TypeError, ValueError, OverflowError, IndexError)
"""What building an expression raises where a system does not have it."""

FAULTS: Final = (ArithmeticError, ValueError, IndexError)
"""What computing one raises."""

UNKNOWN: Final = "what complex numbers do not have"

CALCULUS: Final = frozenset(
    ("**", "atan2", "logaddexp", "fpow", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "log", "log2", "log10")
    + ("sin", "cos", "tan", "tanh", "erf", "sigmoid")
)
BINARY: Final = tuple(op for op in ops.BINARY if op not in ("where", "matmul", "concat"))
SIZES: Final = (1, 2, 3, 5, 17, 40)
LITERALS: Final = (0, 1, 2, 3, -1, -2, 100, 0.5, -1.5, 2.0, True, np.float32(2), np.int8(3), np.float64(0.25))


@dataclass(frozen=True, eq=False)
class Made:
    """An array, whether it is exact, and how it came about."""

    array: Array
    exact: bool
    text: str


class Program:
    """One program: ``outputs`` under one system, and ``text``, what was done, for a person."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.system = self.random.choice(SYSTEMS)
        self.made: list[Made] = []
        self.shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(0, 3)))
        while len(self.made) < 3:
            self.attempt(self.input)
        kinds: tuple[Callable[[], Made | None], ...] = (
            *(self.binary,) * 6,
            *(self.view,) * 3,
            *(self.reduce,) * 3,
            *(self.unary,) * 2,
            *(self.cast,) * 2,
            self.where,
            self.matmul,
            self.reshape,
            *(self.moved,) * 2,
            self.ordered,
            self.updated,
        )
        for _ in range(self.random.randint(3, 12)):
            self.attempt(self.random.choice(kinds))
        extra = self.random.sample(self.made, self.random.randint(0, 2))
        self.outputs = [self.made[-1], *extra]

    @property
    def text(self) -> str:
        return "\n".join([self.system, *(f"v{i} = {m.text}" for i, m in enumerate(self.made))])

    def attempt(self, make: Callable[[], Made | None]) -> None:
        try:
            made = make()
        except (*REFUSED, *FAULTS):  # masks are computed at once
            return
        if made is not None and made.array.dtype in COMPUTED and made.array.size <= 100_000:
            self.made.append(made)

    def pick(self, exact: bool = True) -> Made:
        return self.random.choice([m for m in self.made if m.exact or not exact])

    def name(self, made: Made) -> str:
        return f"v{self.made.index(made)}"

    # ---- what programs are made of

    def input(self) -> Made:
        dtype = self.random.choice(COMPUTED)
        shape = tuple(n if self.random.random() < 0.7 else 1 for n in self.shape)
        shape = shape[self.random.choice((0, 0, len(shape) // 2)) :]
        data = self.data(dtype, tuple(2 * n for n in shape))
        layout = self.random.randrange(4)
        if layout == 0:
            data = np.asarray(data[..., *(slice(n) for n in shape)], order="F")
        elif layout == 1:
            data = data[..., *(slice(None, None, 2) for _ in shape)]
        elif layout == 2:
            data = data[..., *(slice(n - 1, None, -1) if n > 1 else slice(1) for n in shape)]
        else:
            data = data[..., *(slice(n) for n in shape)].copy()
        if data.shape != shape:
            raise AssertionError(f"an input of shape {data.shape} in place of {shape}")
        return Made(wa.asarray(data, self.system), True, f"{dtype}{shape}")

    def data(self, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
        draw = np.random.default_rng(self.random.randrange(1 << 30))
        values = draw.integers(-4 if dtype.signed else 0, 5, shape).astype(dtype.numpy)
        wild = draw.random(shape) < (0.15 if self.random.random() < 0.3 else 0)
        if dtype.is_complex:
            return values + (1j * draw.integers(-4, 5, shape)).astype(dtype.numpy)
        if dtype.is_integer:
            return np.where(wild, np.array([dtype.min, dtype.max], dtype.numpy)[draw.integers(0, 2, shape)], values)
        if dtype.is_float:
            with np.errstate(all="ignore"):
                special = np.array([np.inf, -np.inf, np.nan, -0.0, 1e30, 300.7, -0.3, 1e-7]).astype(dtype.numpy)
            return np.where(wild, special[draw.integers(0, len(special), shape)], values).astype(dtype.numpy)
        return values

    def tame(self, array: Array, most: int) -> Array:
        """Whole numbers up to ``most``, of the same type."""
        if array.dtype.is_complex:
            raise TypeError("complex numbers have no order")
        least = -most if array.dtype.signed else 0
        small = wa.maximum(wa.minimum(array.astype("float32"), float(most)), float(least))
        return small.astype("int8").astype(array.dtype)

    def binary(self) -> Made | None:
        op, x = self.random.choice(BINARY), self.pick()
        if self.random.random() < 0.3:
            literal = self.random.choice(LITERALS)
            flip = self.random.random() < 0.4
            sides: tuple[Any, Any] = (literal, x.array) if flip else (x.array, literal)
            return self.result(
                op, sides, f"{literal!r} {op} {self.name(x)}" if flip else f"{self.name(x)} {op} {literal!r}"
            )
        y = self.pick()
        return self.result(op, (x.array, y.array), f"{self.name(x)} {op} {self.name(y)}")

    def unary(self) -> Made | None:
        op, x = self.random.choice(ops.UNARY), self.pick()
        if self.system.startswith("max") and op in FUNCTIONS and not x.array.dtype.is_float:
            raise TypeError("MAX accepts it, and its compiler fails")
        return self.result(op, (x.array,), f"{op} {self.name(x)}")

    def result(self, op: str, sides: Sequence[Any], text: str) -> Made:
        array = wa.apply(op, *sides)
        complex_ = any(isinstance(s, Array) and s.dtype.is_complex for s in sides)
        rounds = op in CALCULUS or (complex_ and op in ("*", "/", "abs", "square"))
        exact = not rounds or (array.dtype.is_integer and not complex_)
        return Made(array, exact, f"{text}: {array.dtype}{array.shape}")

    def where(self) -> Made:
        mask, x, y = self.pick(), self.pick(exact=False), self.pick(exact=False)
        array = wa.where(mask.array, x.array, y.array)
        same = array.dtype == x.array.dtype == y.array.dtype
        if not same and not (x.exact and y.exact):
            raise TypeError("an inexact value is not converted")
        names = ", ".join(map(self.name, (mask, x, y)))
        return Made(array, x.exact and y.exact, f"where({names}): {array.dtype}{array.shape}")

    def cast(self) -> Made:
        x, dtype = self.pick(), self.random.choice(COMPUTED)
        return Made(x.array.astype(dtype), True, f"{self.name(x)}.astype({dtype})")

    def view(self) -> Made:
        x = self.pick(exact=False)
        key: list[Any] = []
        for n in x.array.shape:
            step = self.random.choice((1, 1, 2, -1, -2))
            low, high = sorted((self.random.randint(0, n), self.random.randint(0, n)))
            one = self.random.randrange(n) if n else slice(None)
            spans: tuple[Any, ...] = (slice(None), slice(None, None, step), slice(low, high + 1), one)
            key.append(self.random.choices(spans, (4, 3, 2, 1))[0])
            if self.random.random() < 0.1:
                key.append(None)
        array = x.array[tuple(key)]
        text = f"{self.name(x)}[{key}]"
        if array.ndim > 1 and self.random.random() < 0.4:
            order = self.random.sample(range(array.ndim), array.ndim)
            array, text = array.transpose(order), f"{text}.transpose({order})"
        if array.ndim < 3 and self.random.random() < 0.3:
            shape = (self.random.choice(SIZES), *array.shape)
            array, text = array.broadcast_to(shape), f"{text}.broadcast_to({shape})"
        return Made(array, x.exact, text)

    def reshape(self) -> Made:
        x = self.pick(exact=False)
        shape = (-1,) if self.random.random() < 0.5 or x.array.ndim < 2 else (x.array.shape[0], -1, 1)
        return Made(x.array.reshape(shape), x.exact, f"{self.name(x)}.reshape({shape})")

    def moved(self) -> Made | None:
        x, y = self.pick(exact=False), self.pick()
        a = x.array
        if not a.ndim:
            return None
        axis = self.random.randrange(a.ndim)
        places = [self.random.randrange(-n, n) if n else 0 for n in [a.shape[axis]] * self.random.randint(1, 6)]
        index = np.array(places, self.random.choice(("int32", "int64")))
        key = (slice(None),) * axis + (index,)
        widths = [(self.random.randint(0, 2), self.random.randint(0, 2)) for _ in a.shape]
        like = y.array.astype(a.dtype).reshape(-1)[: a.size].broadcast_to((2, min(a.size, y.array.size)))
        forms: dict[str, Callable[[], Array]] = {
            f"concatenate([{self.name(x)}[:1], {self.name(x)}], {axis})": lambda: wa.concatenate([a[:1], a], 0),
            f"concatenate with {self.name(y)}": lambda: wa.concatenate([a.flatten(), like[0], like[1]]),
            f"stack({self.name(x)}, {self.name(x)}[::-1], {axis})": lambda: wa.stack([a, wa.flip(a, 0)], axis),
            f"{self.name(x)}[{key}]": lambda: a[key],
            f"take({self.name(x)}, {places}, {axis})": lambda: wa.take(a, index, axis),
            f"pad({self.name(x)}, {widths})": lambda: wa.pad(a, widths, constant_values=1),
            f"pad({self.name(x)}, edge)": lambda: wa.pad(a, widths, mode="edge"),
            f"roll({self.name(x)}, {places[0]}, {axis})": lambda: wa.roll(a, places[0], axis),
            f"repeat({self.name(x)}, 2, {axis})": lambda: wa.repeat(a, 2, axis),
            f"tile({self.name(x)}, 2)": lambda: wa.tile(a, (2,) * a.ndim),
            f"{self.name(x)}[{self.name(x)} != 1]": lambda: a[a != wa.ones_like(a)] if x.exact else a,
        }
        text = self.random.choice(sorted(forms))
        array = forms[text]()
        return Made(array, x.exact, f"{text}: {array.dtype}{array.shape}")

    def ordered(self) -> Made | None:
        x = self.pick()
        if not x.array.ndim:
            return None
        axis = self.random.randrange(x.array.ndim)
        down = self.random.random() < 0.5
        name, order = self.random.choice((("sort", wa.sort), ("argsort", wa.argsort)))
        array = order(x.array, axis, down)
        return Made(array, True, f"{name}({self.name(x)}, {axis}, {down}): {array.dtype}{array.shape}")

    def updated(self) -> Made | None:
        x, y = self.pick(), self.pick()
        if not x.array.ndim or x.array.dtype.is_complex:
            return None
        n = x.array.shape[0]
        index = np.array([self.random.randint(-n - 1, n) for _ in range(3)])
        key = (index, ..., slice(None, None, -2)) if x.array.ndim > 1 else index
        op = self.random.choice(("set", "min", "max", "add"))
        source, value = x.array, y.array.flatten()[0]
        if op == "add":
            source, value = self.tame(source, 4), self.tame(value, 4)
        array = getattr(source.at[key], op)(value)
        return Made(array, True, f"{self.name(x)}.at[{key}].{op}({self.name(y)}[0]): {array.dtype}{array.shape}")

    def reduce(self) -> Made | None:
        x, op = self.pick(), self.random.choice(tuple(ops.REDUCTIONS))
        axis: Any = None
        if self.random.random() < 0.7 and x.array.ndim:
            axis = self.random.randrange(x.array.ndim)
        keep = self.random.random() < 0.4
        source = x.array
        if op in ("sum", "prod", "mean", "cumsum") and (not source.dtype.is_integer or op == "mean"):
            source = self.tame(source, 1 if op == "prod" else 4)
        array = source.reduce(op, axis, keep)
        if source.dtype.is_integer and array.dtype.is_float and op != "mean":
            return None
        return Made(array, True, f"{self.name(x)}.{op}({axis}, {keep}): {array.dtype}{array.shape}")

    def matmul(self) -> Made | None:
        x, y = self.pick(), self.pick()
        if not x.array.ndim or not y.array.ndim:
            return None
        left, right = self.tame(x.array, 4), self.tame(y.array, 4)
        if y.array.ndim > 1 and left.shape[-1] != right.shape[-2]:
            right = right.transpose((*range(right.ndim - 2), right.ndim - 1, right.ndim - 2))
        array = left @ right
        return Made(array, True, f"{self.name(x)} @ {self.name(y)}: {array.dtype}{array.shape}")


def run(program: Program, backend: str) -> Sequence[NDArray[Any]] | str:
    """The outputs, or the name of the error, under a backend; the program's arrays stay what they are."""
    copies = [Array(m.array.value, m.array.semantics) for m in program.outputs]
    try:
        with np.errstate(all="ignore"):
            return wa.compute(*copies, backend=backend)
    except FAULTS as error:
        return f"{type(error).__name__}: {error}"
    except TypeError as error:
        if str(error).startswith("weft has no '"):  # of complex numbers, in kernels
            return UNKNOWN
        raise


def differences(program: Program) -> str:
    """What the two backends do not agree about; empty where they agree."""
    native = run(program, "native")
    if native == UNKNOWN:
        return ""
    reference = run(program, "reference")
    if isinstance(native, str) or isinstance(reference, str):
        return "" if type(native) is type(reference) else f"{native} against {reference}"
    for made, got, want in zip(program.outputs, native, reference, strict=True):
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            return f"{program.name(made)}: {got.dtype}{got.shape} against {want.dtype}{want.shape}"
        bad = ~(close(got, want) if not made.exact else same(got, want))
        if bad.any():
            at = tuple(int(i[0]) for i in np.nonzero(bad)) if bad.ndim else ()
            return f"{program.name(made)}{list(at)}: {got[at]} against {want[at]} ({int(bad.sum())} of {bad.size})"
    return ""


def same(got: NDArray[Any], want: NDArray[Any]) -> NDArray[Any]:
    """Where two arrays are equal, or both NaN."""
    return np.asarray((got == want) | (np.isnan(got) & np.isnan(want)))


def close(got: NDArray[Any], want: NDArray[Any]) -> NDArray[Any]:
    """Where they are within four ulps, of the narrow types one; of finite complex numbers, sixteen of the modulus."""
    if got.dtype.kind == "c":
        size = 16 * np.finfo(got.dtype).eps * (np.abs(want) + 1)
        return np.asarray((np.abs(got - want) <= size) | ~np.isfinite(want) | ~np.isfinite(got))
    with np.errstate(all="ignore"):
        if got.dtype.itemsize >= 4:
            return same(got, want) | np.asarray(np.abs(got - want) <= 4 * np.abs(np.spacing(want)))
        wide = want.astype("float32")
        step = np.abs(_next(want).astype("float32") - wide)
        return same(got, want) | np.asarray(np.abs(got.astype("float32") - wide) <= step)


def _next(values: NDArray[Any]) -> NDArray[Any]:
    """The neighbour of each value that is further from zero, by its bits."""
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return (bits + np.asarray(1, bits.dtype)).view(values.dtype).reshape(values.shape)


def main(first: int, count: int) -> None:
    for seed in range(first, first + count):
        program = Program(seed)
        try:
            found = differences(program)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            sys.stdout.write(f"seed {seed}: {found}\n{program.text}\n\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count} programs\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
