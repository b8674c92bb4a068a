"""What a launch looks at, once launches of its kind are known.

`arguments.bind` classifies the arguments of a launch one by one, in a loop with many cases. Most launches are of a kind that
was launched before: values of the same Python types. For such a kind there is a `Route`, a generated function without loops or
cases. It gives the *facts* that decide the classification (dtypes, what 16 divides, compile-time values, whether arrays overlap),
and the numbers that native code reads. Facts that were met before lead to the compiled code at once. Others go the long way
once, and are remembered with what it found.

A route takes only what it can judge; for anything else it gives None, and the long way decides:

- contiguous, writable NumPy arrays;
- contiguous tensors of PyTorch in the CPU's memory;
- ints of 32 bits, floats, bools, None;
- any compile-time value.

The function of a route for two arrays and an int, the last parameter a ``tl.constexpr``::

    def look(v0, v1, v2, v3):
        if not (v0.flags.carray and v1.flags.carray and -2147483648 <= v2 <= 2147483647):
            return None
        a0 = words[id(v0) >> 3]; a1 = words[id(v1) >> 3]
        return (
            (a0 + v0.nbytes <= a1 or apart([a0, a1], [a0 + v0.nbytes, a1 + v1.nbytes]),
             (a0 | a1) & 15 and (a0 & 15, a1 & 15), v0.dtype, v1.dtype, v2 == 1 or 2 * (v2 & 15 == 0), v3),
            (a0, a1, v2),
        )
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from weft.dtypes import DType
from weft.runtime import addresses
from weft.runtime.arguments import CONSTANT_TYPES, Parameter, Slot, Token, Wide, apart, constant_token
from weft.runtime.tensors import is_tensor

if TYPE_CHECKING:
    from weft.runtime.executable import Executable

Looked: TypeAlias = tuple[tuple[Hashable, ...], tuple[Slot, ...]]
"""Facts, and the slots that arguments have unless the facts make them compile-time values."""

_MOST_FACTS: Final = 4096
"""How many facts a route remembers; then it begins anew. Addresses that 16 does not divide are facts, so they may be many."""


class _Form(NamedTuple):
    """What a route reads of a value: ``guard``, what it has to pass; its ``fact`` and its ``slot``; and for arrays the ``size``
    in bytes. Empty for none. ``{v}`` is the value, ``{name}`` the parameter's."""

    guard: str = ""
    fact: str = ""
    slot: str = ""
    size: str = ""


_INT: Final = _Form("-2147483648 <= {v} <= 2147483647", "{v} == 1 or 2 * ({v} & 15 == 0)", "{v}")
_FORMS: Final[dict[type, _Form]] = {
    np.ndarray: _Form("{v}.flags.carray", "{v}.dtype", "words[id({v}) >> 3]", "{v}.nbytes"),
    int: _INT,
    bool: _Form(slot="{v}"),
    float: _Form(slot="{v}"),
    type(None): _Form(),
}
_WIDE: Final = _Form(slot="wide({v})")
_TENSOR: Final = _Form(
    "is_cpu({v}) and {v}.is_contiguous() and not {v}.is_neg()", "{v}.dtype", "{v}.data_ptr()", "{v}.nbytes"
)


def _form(parameter: Parameter, kind: type) -> _Form | None:
    """How a route reads a value of a type for a parameter; None where it does not."""
    if parameter.constexpr:
        return _Form(fact="{v}" if kind in CONSTANT_TYPES or kind is DType else "constant(kernel, {name!r}, {v})")
    if kind is float and parameter.wide:
        return _WIDE
    if kind is np.ndarray and addresses.WORDS is None:
        return None
    return _FORMS.get(kind) or (_TENSOR if is_tensor(kind) else None)


@dataclass(eq=False, slots=True)
class Known:
    """What facts lead to: the code, what chooses its slots among all (None: all of them), and the tokens of the parameters.
    ``calls`` are the ways in which launches wrote their arguments, for each of which a plan was asked once
    (`weft.runtime.plans`)."""

    executable: Executable
    pick: Callable[[Any], Any] | None
    key: tuple[Token, ...]
    calls: set[Hashable] = field(default_factory=set[Hashable])


@dataclass(eq=False)
class Route:
    """Launches of one kind: ``look`` is the generated function, ``known`` what its facts lead to. ``slots`` are the parameters
    that have one. ``text`` is that of `extents`, in its ``space``."""

    look: Callable[..., Looked | None]
    slots: tuple[int, ...]
    text: str = ""
    space: dict[str, Any] = field(default_factory=dict[str, Any])
    known: dict[Hashable, Known] = field(default_factory=dict[Hashable, "Known"])

    @cached_property
    def extents(self) -> Callable[..., tuple[tuple[int, int], ...]]:
        """A function that gives the first byte of each array and the one past its last. Few kernels ask."""
        exec(self.text, self.space)
        return self.space["extents"]

    def learn(self, facts: Hashable, executable: Executable, key: Sequence[Token]) -> None:
        """Remembers where facts lead, given the tokens of the parameters (`arguments`)."""
        if len(self.known) >= _MOST_FACTS:
            self.known.clear()
        chosen = [at for at, parameter in enumerate(self.slots) if isinstance(key[parameter], str)]
        self.known[facts] = Known(executable, None if len(chosen) == len(self.slots) else _picking(chosen), tuple(key))


_NOWHERE: Final = Route(lambda *values: None, ())
"""The route of kinds that have none."""


class Compiled(dict[Hashable, Any]):
    """A kernel's compiled code by place, options and tokens, the ``routes`` to it by the types of values and options, and the
    ``ways`` of other launches. Where what leads there is forgotten, ``forgotten`` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.routes: dict[Hashable, Route] = {}
        self.ways = Ways()
        self.forgotten: Callable[[], None] = lambda: None
        self._seen: set[Hashable] = set()

    def clear(self) -> None:
        """Forgets all code, and what leads to it."""
        super().clear()
        self.forget_ways()

    def forget_ways(self) -> None:
        """Forgets what leads to the code, which remains."""
        self.routes.clear()
        self.ways.clear()
        self.forgotten()

    def add_route(self, kind: Hashable, kernel: str, parameters: Sequence[Parameter], values: Sequence[Any]) -> None:
        """Makes a route for a kind that has none, the second time: a kind that is launched once is not worth one."""
        if kind in self._seen:
            self.routes[kind] = route(kernel, parameters, values) or _NOWHERE
        self._seen.add(kind)


class Ways:
    """What launches had that took no route: all that decides their code, and how they were written. What is launched once is not
    worth a plan, and for no way a plan is asked twice."""

    def __init__(self) -> None:
        self._met: set[Hashable] = set()
        self._asked: set[Hashable] = set()

    def may_ask(self, way: Hashable) -> bool:
        """Whether a launch had this way before, and none was `add`ed."""
        if way in self._met:
            return way not in self._asked
        if len(self._met) >= _MOST_FACTS:
            self.clear()
        self._met.add(way)
        return False

    def add(self, way: Hashable) -> None:
        """Notes that a plan was asked for."""
        self._asked.add(way)

    def clear(self) -> None:
        """Forgets all."""
        self._met.clear()
        self._asked.clear()


def _picking(chosen: Sequence[int]) -> Callable[[Any], Any]:
    """What takes these items of a tuple, as a tuple."""
    if len(chosen) < 2:
        return lambda slots: tuple(slots[at] for at in chosen)
    return itemgetter(*chosen)


class _Array(NamedTuple):
    """An array in a route's text: its ``address``, where it ends, and where it is now."""

    address: str
    end: str
    now: int


def route(kernel: str, parameters: Sequence[Parameter], values: Sequence[Any]) -> Route | None:
    """The route for values of the types of these, one for each parameter; None where one of them is not for routes."""
    forms = [
        _form(parameter, cast("type[object]", type(value))) for parameter, value in zip(parameters, values, strict=True)
    ]
    guards: list[str] = []
    facts: list[str] = []
    lines: list[str] = []
    slots: dict[int, str] = {}
    arrays: list[_Array] = []
    for number, (parameter, form, value) in enumerate(zip(parameters, forms, values, strict=True)):
        if form is None:
            return None
        guard, fact, slot, size = (part.format(v=f"v{number}", name=parameter.name) for part in form)
        guards += [guard] if guard else []
        facts += [fact] if fact else []
        if size:
            now = value.data_ptr() if form is _TENSOR else addresses.address_of(value)
            arrays.append(_Array(f"a{number}", f"a{number} + {size}", now))
            lines.append(f"a{number} = {slot}")
            slot = f"a{number}"
        if slot:
            slots[number] = slot
    space: dict[str, Any] = {
        "apart": apart, "constant": constant_token, "kernel": kernel, "wide": Wide, "words": addresses.WORDS,
    }  # fmt: skip
    if _TENSOR in forms:  # what the class itself says may be a stand-in (`weft.devices`)
        space["is_cpu"] = sys.modules["torch"]._C.TensorBase.is_cpu.__get__
    names = [f"v{number}" for number in range(len(values))]
    exec(_text(names, guards, lines, [*_facts_of(arrays), *facts], slots.values()), space)
    return Route(space["look"], tuple(slots), _text_of_extents(names, lines, arrays), space)


def _facts_of(arrays: Sequence[_Array]) -> list[str]:
    """Whether arrays overlap, and what their addresses are multiples of. Arrays often keep the order in memory that they have
    now, which is then asked first."""
    facts: list[str] = []
    names = [array.address for array in arrays]
    if len(arrays) > 1:
        ordered = pairwise(sorted(arrays, key=lambda array: array.now))
        chain = " and ".join(f"{low.end} <= {high.address}" for low, high in ordered)
        facts.append(f"{chain} or apart([{', '.join(names)}], [{', '.join(array.end for array in arrays)}])")
    if arrays:
        facts.append(f"({' | '.join(names)}) & 15 and ({''.join(f'{name} & 15, ' for name in names)})")
    return facts


def _text_of_extents(names: Iterable[str], lines: Iterable[str], arrays: Iterable[_Array]) -> str:
    """The text of `Route.extents`."""
    body = [*lines, f"return ({''.join(f'({array.address}, {array.end}), ' for array in arrays)})"]
    return f"def extents({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in body)


def _text(
    names: Iterable[str], guards: Sequence[str], lines: Iterable[str], facts: Iterable[str], slots: Iterable[str]
) -> str:
    """The function's text."""
    body = [f"if not ({' and '.join(guards)}): return None"] if guards else []
    body += [*lines, f"return ({''.join(f'{fact}, ' for fact in facts)}), ({''.join(f'{slot}, ' for slot in slots)})"]
    return f"def look({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in body)
