"""Functions of elements, mapped over tiles (``tl.map_elementwise``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from fuzz import expressions
from fuzz.typed import Shape, Typed, cast, common_shape, spelling
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.generator import Generator
    from fuzz.scope import Scope

FORMS: Final[Sequence[expressions.Form]] = (
    expressions.arithmetic,
    expressions.arithmetic,
    expressions.comparison,
    expressions.negation,
    expressions.conjunction,
    expressions.choice,
    expressions.conversion,
    expressions.multiply_add,
    expressions.limit,
    expressions.branch,
)
"""What the functions compute."""

FAR: Final = 100_000_000
"""An offset that no array has."""


class Elements:
    """The inside of a function of elements: a `Scope` of scalars that are parameters or its own."""

    def __init__(self, outer: Scope, values: list[Typed]) -> None:
        self.outer = outer
        self.random = outer.random
        self.values = values

    def pick(self, accept: Callable[[Typed], bool] = lambda _: True) -> Typed | None:
        found = [v for v in self.values if accept(v)]
        return self.random.choice(found) if found else None

    def constant(self, value: int) -> str:
        return str(value)

    def combine(self, dtype: DType) -> str | None:
        return None

    def maps(self) -> str:
        raise ValueError("functions of elements do not scan")

    def write_function(self, prefix: str, text: str) -> str:
        return self.outer.write_function(prefix, text)


def elementwise(g: Generator) -> None:
    """``tl.map_elementwise`` of a new function over values of any types. Its branches depend on elements. Of the last element the
    function is called, too, which takes branches where the map chooses."""
    r = g.random
    given = [v for v in (g.pick() for _ in range(r.randint(1, 3))) if v]
    shape = common_shape(*(v.shape for v in given))
    if not given or not shape:
        return
    pack = r.choice((1, 1, 1, 2)) if math.prod(shape) > 1 else 1
    parameters = [[Typed(f"p{i}_{k}", v.dtype) for k in range(pack)] for i, v in enumerate(given)]
    inside = Elements(g, [p for several in parameters for p in several])
    lines = _body(inside)
    results = [inside.values[-1]]
    dtype = results[0].dtype
    if pack == 2:
        results.append(inside.pick(lambda v: v.dtype == dtype) or results[0])
    elif (other := inside.pick(lambda v: v.dtype == dtype)) and r.random() < 0.4:
        lines += [f"if {_test(inside)}:", f"    return {other.text}"]
    names = ", ".join(p.text for several in parameters for p in several)
    lines.append(f"return {', '.join(v.text for v in results)}")
    name = g.write_function("element_", "\n".join([f"({names}):", *(f"    {line}" for line in lines), ""]))
    passed = ", ".join(v.text for v in given) + (f", pack={pack}" if pack > 1 else "")
    value = g.define(Typed(f"tl.map_elementwise({name}, {passed}){'[0]' if pack > 1 else ''}", dtype, shape))
    if pack == 1:
        scalars = [last_element(g, v, shape) for v in given]
        called = g.define(Typed(f"{name}({', '.join(scalars)})", dtype))
        g.alike(called, last_element(g, value, shape))


def access(g: Generator) -> None:
    """A function of elements that loads, and perhaps stores or counts, where a condition on them holds. Elsewhere the pointers
    lie outside of the arrays."""
    r = g.random
    index = g.pick(lambda v: v.dtype.is_integer and v.size > 1)
    if index is None:
        return
    shape = index.shape
    condition = g.pick(lambda v: v.dtype.is_bool and v.shape == shape)
    holds = condition.text if condition else f"({index.text} > 3)"
    dtype = r.choice([d for d in dtypes.ALL if not d.is_bool])
    source, size = g.new("far"), r.choice((1, 8, 64))
    name = g.array("input", dtype, size, None)
    g.emit(f"{source} = {name} + tl.where({holds}, {cast(index, dtypes.int32).text} & {size - 1}, {FAR})")
    place = g.place(shape, injective=True)
    out = g.argument("out", "output", dtype.name, place.span * g.programs)
    sums = g.argument("sum", "counter", "int32", 1)
    target, count = g.new("far"), f"{sums} + tl.where({holds}, 0, {FAR})"
    g.emit(f"{target} = {out} + tl.where({holds}, {place.offsets.text}, {FAR})")
    acts = ["x = tl.load(p)", "tl.store(o, x)", "tl.atomic_add(s, 1)"]
    lines = [f"x = (i * 0).to(tl.{spelling(dtype)})", "if c:", *(f"    {line}" for line in acts[: r.randint(1, 3)])]
    if r.random() < 0.4:
        lines += ["    if x == x and i > 1:", "        return x"]
    name = g.write_function(
        "element_", "\n".join(["(p, o, s, i, c):", *(f"    {each}" for each in (*lines, "return x")), ""])
    )
    text = f"tl.map_elementwise({name}, {source}, {target}, {count}, {cast(index, dtypes.int32).text}, {holds})"
    g.define(Typed(text, dtype, shape))


def last_element(g: Generator, value: Typed, shape: Shape) -> str:
    """The last element of a value in a tile of this shape, in a variable."""
    size, name = math.prod(shape), g.new("last")
    if not value.shape:
        return value.text
    if value.dtype.is_bool:
        last = f"{value.text}.to(tl.int32)"
    else:
        last = f"{value.text}.to(tl.int{value.dtype.bits}, bitcast=True)" if value.dtype.is_float else value.text
    last = f"tl.ravel(tl.broadcast_to({last}, {shape}))"
    kind = "int32" if value.dtype.is_bool else f"int{value.dtype.bits}" if value.dtype.is_float else value.dtype.name
    g.emit(f"{name} = tl.sum(tl.where(tl.arange(0, {size}) == {size - 1}, {last}, 0)).to(tl.{kind})")
    if value.dtype.is_float:
        g.emit(f"{name} = {name}.to(tl.{value.dtype.name}, bitcast=True)")
    return f"({name} != 0)" if value.dtype.is_bool else name


def _body(inside: Elements) -> list[str]:
    """Assignments, branches, loops and early returns; what they define is among the values afterwards."""
    r = inside.random
    lines: list[str] = []
    for i in range(r.randint(1, 4)):
        value = next((v for _ in range(5) if (v := r.choice(FORMS)(inside))), None)
        if value is None:
            continue
        name = f"e{i}"
        lines.append(f"{name} = {value.text}")
        other = inside.pick(lambda v, dtype=value.dtype: v.dtype == dtype)
        if other and (kind := r.choice(("plain", "branch", "branch", "loop"))) != "plain":
            test, change = _test(inside), f"{name} = {other.text}"
            lines += [f"if {test}:", f"    {change}"] if kind == "branch" else _loop(f"k{i}", test, change)
        inside.values.append(value.called(name))
    return lines


def _loop(counter: str, test: str, change: str) -> list[str]:
    return [f"for {counter} in range(3):", f"    if ({test}) & ({counter} > 0):", "        continue", f"    {change}"]


def _test(inside: Elements) -> str:
    """A condition on elements."""
    value = inside.random.choice(inside.values)
    return value.text if value.dtype.is_bool else f"{value.text} > 1"
