"""Which value belongs to which parameter: Python's rules for calls, and which keywords of a launch are not the
kernel's.

`inspect.Signature.bind` would do, at 10 us a call and with messages that do not name the kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from weft import dtypes
from weft.frontend.source import MISSING, KernelFunction
from weft.runtime.arguments import Parameter

Grid: TypeAlias = tuple[int, int, int]
GridLike: TypeAlias = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]

LaunchOptions: TypeAlias = tuple[tuple[str, Any], ...]
"""Names and values of the options that a launch changes, in the order of names. Part of the key of compiled code."""


@dataclass(frozen=True)
class LaunchOption:
    """A keyword of a launch that is not the kernel's: its ``default``, and which values are ``allowed``, in words too."""

    default: Any
    allowed: Callable[[Any], bool]
    words: str


def _power_of_two(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 1 <= value <= most and not value & (value - 1)


LAUNCH_OPTIONS: Final[dict[str, LaunchOption]] = {
    "num_warps": LaunchOption(4, _power_of_two(2**10), "a power of two"),
    "num_stages": LaunchOption(3, lambda v: type(v) is int and v >= 0, "an int that is not negative"),
    "num_ctas": LaunchOption(1, _power_of_two(16), "a power of two from 1 to 16"),
    "maxnreg": LaunchOption(None, lambda v: v is None or (type(v) is int and v > 0), "a positive int or None"),
    "enable_fp_fusion": LaunchOption(None, lambda v: v is None or type(v) is bool, "a bool or None"),
    "enable_fp_reassociation": LaunchOption(False, lambda v: v is True or v is False, "a bool"),
    "debug": LaunchOption(None, lambda v: v is None or type(v) is bool, "a bool or None"),
    "sanitize_overflow": LaunchOption(True, lambda v: v is True or v is False, "a bool"),
}
"""Triton's launch keywords, and weft's own ``enable_fp_reassociation``. Each reaches the compiler's options, and so the keys of
code in memory and on disk. ``debug`` compiles assertions, or leaves them out; ``sanitize_overflow=False`` leaves out those that
integers do not overflow. ``enable_fp_fusion`` is True on GPUs and False on CPUs where it is None. ``enable_fp_reassociation``
lets CPUs add up floats in any order. Whatever the others are, the CPU backend makes the same code: they tune code for GPUs."""

NOT_OPTIONS: Final = frozenset(
    {
        "allow_fp8e4b15",
        "allowed_dot_input_precisions",
        "arch",
        "backend_name",
        "cluster_dims",
        "default_dot_input_precision",
        "deprecated_fp8_dot_operand_dtypes",
        "extern_libs",
        "generate_line_info",
        "instrumentation_mode",
        "ir_override",
        "kpack",
        "launch_cooperative_grid",
        "launch_pdl",
        "matrix_instr_nonkdim",
        "max_num_imprecise_acc_default",
        "minRegAutoWS",
        "maxRegAutoWS",
        "optimize_epilogue",
        "pingpong_schedule",
        "ptx_options",
        "ptx_version",
        "schedule_hint",
        "stream",
        "supported_fp8_dtypes",
        "warp_size",
        "waves_per_eu",
    }
)
"""Options of Triton's launches, on any of its machines, that are refused by name."""

_MAX_DIMENSION: Final = 2**31 - 1
_MAX_PROGRAMS: Final = 2**63 - 1
"""Programs are counted in int64."""


class ParameterList:
    """A kernel's parameters in order: ``names``, ``defaults`` and the ``parameters`` as `arguments.bind` wants them."""

    def __init__(
        self,
        kernel: KernelFunction,
        do_not_specialize: Iterable[str | int] = (),
        do_not_specialize_on_alignment: Iterable[str | int] = (),
    ):
        self.kernel = kernel.name
        self.names = tuple(p.name for p in kernel.parameters)
        self._known = frozenset(self.names)
        for p in kernel.parameters:
            if p.variadic:
                raise TypeError(
                    f"kernel '{kernel.name}': parameter '*{p.name}': a kernel takes a fixed list of parameters"
                )
        self.defaults: dict[str, Any] = {p.name: p.default for p in kernel.parameters if p.default is not MISSING}
        general = self._named("do_not_specialize", do_not_specialize)
        self.unspecialised = unaligned = general | self._named(
            "do_not_specialize_on_alignment", do_not_specialize_on_alignment
        )
        self.parameters = tuple(
            Parameter(
                p.name,
                p.is_constexpr,
                p.dtype is None and p.name not in general,
                p.name not in unaligned,
                p.dtype == dtypes.float64,
            )
            for p in kernel.parameters
        )

    def _named(self, option: str, chosen: Iterable[str | int]) -> frozenset[str]:
        result: set[str] = set()
        for item in chosen:
            if isinstance(item, int) and 0 <= item < len(self.names):
                result.add(self.names[item])
            elif item in self.names:
                result.add(str(item))
            else:
                raise ValueError(
                    f"kernel '{self.kernel}': {option} names {item!r}, but the parameters are {', '.join(self.names)}"
                )
        return frozenset(result)

    def values(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Sequence[Any]:
        """One value for each parameter, from positions, keywords and defaults; launch options are checked and left
        out."""
        if not keywords and len(args) == len(self.names):
            return args
        if len(args) > len(self.names):
            raise TypeError(f"{self.kernel}() takes {len(self.names)} arguments but {len(args)} were given")
        values = list(args)
        missing: list[str] = []
        used = 0
        for name in self.names[len(args) :]:
            if name in keywords:
                values.append(keywords[name])
                used += 1
            elif name in self.defaults:
                values.append(self.defaults[name])
            else:
                missing.append(name)
        if used != len(keywords):
            self._check_rest(keywords, len(args))
        if missing:
            raise TypeError(f"{self.kernel}() missing {_listed(missing)}")
        return values

    def _check_rest(self, keywords: Mapping[str, Any], positional: int) -> None:
        taken = self.names[:positional]
        for name, value in keywords.items():
            if name in taken:
                raise TypeError(f"{self.kernel}() got multiple values for argument '{name}'")
            if name in self.names:
                continue
            if name in NOT_OPTIONS:
                raise TypeError(
                    f"{self.kernel}(): {name} is an option of Triton's launch that weft does not have; leave it out"
                )
            if name not in LAUNCH_OPTIONS:
                raise TypeError(
                    f"{self.kernel}() got an unexpected keyword argument '{name}'; its parameters are "
                    f"{', '.join(self.names)}, and a launch takes {', '.join(LAUNCH_OPTIONS)}"
                )
            option = LAUNCH_OPTIONS[name]
            if not option.allowed(value):
                raise TypeError(f"{self.kernel}(): {name} must be {option.words}, found {value!r}")

    @cached_property
    def arranged(self) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
        """`values` and the remaining keywords, unchecked, by Python's own rules for calls; `TypeError` where a call does not fit,
        or where Python has no function with such parameters."""
        return self._function(f"(({''.join(f'{name}, ' for name in self.names)}), {self._rest})")

    @cached_property
    def named(self) -> Callable[..., dict[str, Any]]:
        """As `arranged`: the dict of all values by name, as a function that gives a grid takes it."""
        return self._function(f"{{{''.join(f'{name!r}: {name}, ' for name in self.names)}}}")

    @property
    def _rest(self) -> str:
        """A name that no parameter has."""
        return "_" * (1 + max(map(len, self.names), default=0))

    def _function(self, result: str) -> Callable[..., Any]:
        """A function with the kernel's parameters, and with any other keywords, given the text of its result."""
        given = {f"_default_{name}": value for name, value in self.defaults.items()}
        listed = [f"{name}=_default_{name}" if name in self.defaults else name for name in self.names]
        try:
            return eval(f"lambda {', '.join([*listed, f'**{self._rest}'])}: {result}", given)
        except SyntaxError:  # a default before a parameter without one, as keyword-only parameters may have it
            return _fits_nothing

    def options(self, keywords: Mapping[str, Any]) -> LaunchOptions:
        """The launch options among keywords that `values` has checked, without those that have their default."""
        if keywords.keys() <= self._known:  # in every launch: one look in C
            return ()
        return tuple(
            (name, keywords[name])
            for name in sorted(keywords)
            if name not in self.names and keywords[name] != LAUNCH_OPTIONS[name].default
        )


def _fits_nothing(*args: Any, **keywords: Any) -> Any:
    raise TypeError("see ParameterList.values")


def _listed(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) == 1:
        return f"1 required argument: {quoted[0]}"
    return f"{len(quoted)} required arguments: {', '.join(quoted[:-1])} and {quoted[-1]}"


def grid_of(kernel: str, grid: int | Sequence[int]) -> Grid:
    """The grid's three sizes, missing ones 1; `TypeError` or `ValueError` for what is no grid."""
    if type(grid) is tuple and len(found := cast("tuple[object, ...]", grid)) == 1:  # as in most launches
        first = found[0]
        if type(first) is int and 0 <= first <= _MAX_DIMENSION:
            return first, 1, 1
    sizes: list[Any] = [*grid] if isinstance(grid, (tuple, list)) else [grid]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"kernel '{kernel}': a grid has 1 to 3 dimensions, found {len(sizes)}: {grid!r}")
    try:
        numbers = [operator.index(size) for size in sizes]
    except TypeError:
        raise TypeError(
            f"kernel '{kernel}': expected a grid of ints, or a function of the arguments that returns one, "
            f"found {grid!r}"
        ) from None
    for number in numbers:
        if not 0 <= number <= _MAX_DIMENSION:
            raise ValueError(
                f"kernel '{kernel}': a grid dimension lies in 0 to {_MAX_DIMENSION}, found {number} in {grid!r}"
            )
    x, y, z = (*numbers, 1, 1)[:3]
    if x * y * z > _MAX_PROGRAMS:
        raise ValueError(
            f"kernel '{kernel}': a grid has at most 2**63 - 1 programs, found {x} * {y} * {z} = {x * y * z}; give each "
            "program more work"
        )
    return x, y, z
