"""Python's calling rules, launch keywords and grids, with their messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import language as tl
from weft.runtime.binding import ParameterList, grid_of
from weft.runtime.jit import jit


@jit
def add(x: Any, y: Any, n: Any = 5, BLOCK: tl.constexpr = 64) -> None: ...  # pyright: ignore[reportArgumentType]


PARAMETERS = ParameterList(add)


@pytest.mark.parametrize(
    ("args", "keywords", "expected"),
    [
        ((1, 2, 3, 4), {}, [1, 2, 3, 4]),
        ((1, 2), {}, [1, 2, 5, 64]),
        ((1,), {"BLOCK": 8, "y": 2}, [1, 2, 5, 8]),
        ((), {"n": 3, "x": 1, "y": 2, "num_warps": 4, "num_stages": 2}, [1, 2, 3, 64]),
        ((1, 2), {"num_ctas": 1, "maxnreg": None, "enable_fp_fusion": True}, [1, 2, 5, 64]),
    ],
)
def test_values_in_the_order_of_parameters(
    args: tuple[Any, ...], keywords: dict[str, Any], expected: list[Any]
) -> None:
    assert list(PARAMETERS.values(args, keywords)) == expected


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, "add() missing 2 required arguments: 'x' and 'y'"),
        ((1,), {"n": 2}, "add() missing 1 required argument: 'y'"),
        ((1, 2, 3, 4, 5), {}, "add() takes 4 arguments but 5 were given"),
        ((1, 2), {"x": 3}, "add() got multiple values for argument 'x'"),
        (
            (1, 2),
            {"block": 3},
            "add() got an unexpected keyword argument 'block'; its parameters are x, y, n, BLOCK, and a launch takes "
            "num_warps, num_stages, num_ctas, maxnreg, enable_fp_fusion, enable_fp_reassociation, debug, sanitize_overflow",
        ),
        ((1, 2), {"num_warps": "4"}, "add(): num_warps must be a power of two, found '4'"),
        ((1, 2), {"num_warps": 3}, "add(): num_warps must be a power of two, found 3"),
        ((1, 2), {"num_warps": 0}, "add(): num_warps must be a power of two, found 0"),
        ((1, 2), {"num_warps": True}, "add(): num_warps must be a power of two, found True"),
        ((1, 2), {"num_ctas": 32}, "add(): num_ctas must be a power of two from 1 to 16, found 32"),
        ((1, 2), {"num_stages": -1}, "add(): num_stages must be an int that is not negative, found -1"),
        ((1, 2), {"maxnreg": 0}, "add(): maxnreg must be a positive int or None, found 0"),
        ((1, 2), {"enable_fp_fusion": 2}, "add(): enable_fp_fusion must be a bool or None, found 2"),
        ((1, 2), {"enable_fp_reassociation": None}, "add(): enable_fp_reassociation must be a bool, found None"),
        (
            (1, 2),
            {"launch_pdl": True},
            "add(): launch_pdl is an option of Triton's launch that weft does not have; leave it out",
        ),
        (
            (1, 2),
            {"waves_per_eu": 2},
            "add(): waves_per_eu is an option of Triton's launch that weft does not have; leave it out",
        ),
        ((1, 2), {"maxnreg": 1.5}, "add(): maxnreg must be a positive int or None, found 1.5"),
    ],
)
def test_calls_that_do_not_fit(args: tuple[Any, ...], keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        PARAMETERS.values(args, keywords)
    assert str(raised.value) == message


def test_a_parameter_named_like_a_launch_option_is_the_parameter() -> None:
    @jit
    def kernel(x: Any, num_warps: tl.constexpr) -> None: ...

    assert list(ParameterList(kernel).values((1,), {"num_warps": 8})) == [1, 8]


def test_do_not_specialize_takes_names_and_indices() -> None:
    chosen = ParameterList(add, ["n", 0], ["y"]).parameters
    assert [(p.name, p.constexpr, p.specialise, p.align) for p in chosen] == [
        ("x", False, False, False),
        ("y", False, True, False),
        ("n", False, False, False),
        ("BLOCK", True, True, True),
    ]


@pytest.mark.parametrize("unknown", ["m", 4, -1])
def test_do_not_specialize_names_a_stranger(unknown: Any) -> None:
    with pytest.raises(ValueError, match="do_not_specialize") as raised:
        ParameterList(add, [unknown])
    assert str(raised.value) == (
        f"kernel 'add': do_not_specialize names {unknown!r}, but the parameters are x, y, n, BLOCK"
    )


def test_variadic_kernels_cannot_be_launched() -> None:
    @jit
    def kernel(x: Any, *rest: Any) -> None: ...

    with pytest.raises(TypeError) as raised:
        ParameterList(kernel)
    assert str(raised.value) == "kernel 'kernel': parameter '*rest': a kernel takes a fixed list of parameters"


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        (3, (3, 1, 1)),
        ((3,), (3, 1, 1)),
        ([3, 4], (3, 4, 1)),
        ((3, 4, 5), (3, 4, 5)),
        ((np.int64(3), 0), (3, 0, 1)),
        (0, (0, 1, 1)),
        ((2**31 - 1, 2**31 - 1, 2), (2**31 - 1, 2**31 - 1, 2)),  # 2**63 - 2**33 + 2 programs
        ((2**31 - 1, 2**31 - 1, 0), (2**31 - 1, 2**31 - 1, 0)),
        (True, (1, 1, 1)),
    ],
)
def test_grids(grid: Any, expected: tuple[int, int, int]) -> None:
    assert grid_of("add", grid) == expected


@pytest.mark.parametrize(
    ("grid", "kind", "message"),
    [
        ((), ValueError, "kernel 'add': a grid has 1 to 3 dimensions, found 0: ()"),
        ((1, 2, 3, 4), ValueError, "kernel 'add': a grid has 1 to 3 dimensions, found 4: (1, 2, 3, 4)"),
        ((2, -1), ValueError, "kernel 'add': a grid dimension lies in 0 to 2147483647, found -1 in (2, -1)"),
        (2**31, ValueError, "kernel 'add': a grid dimension lies in 0 to 2147483647, found 2147483648 in 2147483648"),
        (
            (2**31 - 1, 2**31 - 1, 3),
            ValueError,
            "kernel 'add': a grid has at most 2**63 - 1 programs, found 2147483647 * 2147483647 * 3 = 13835058042397261827; "
            "give each program more work",
        ),
        (
            "12",
            TypeError,
            "kernel 'add': expected a grid of ints, or a function of the arguments that returns one, found '12'",
        ),
        (
            (1.5,),
            TypeError,
            "kernel 'add': expected a grid of ints, or a function of the arguments that returns one, found (1.5,)",
        ),
        (
            None,
            TypeError,
            "kernel 'add': expected a grid of ints, or a function of the arguments that returns one, found None",
        ),
    ],
)
def test_what_is_no_grid(grid: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as raised:
        grid_of("add", grid)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({}, ()),
        ({"x": 3, "num_warps": 8}, (("num_warps", 8),)),
        ({"num_stages": 2, "num_warps": 8}, (("num_stages", 2), ("num_warps", 8))),
        ({"num_warps": 8, "num_stages": 2}, (("num_stages", 2), ("num_warps", 8))),
        ({"num_warps": 4, "enable_fp_fusion": None, "maxnreg": None}, ()),
        ({"enable_fp_fusion": True}, (("enable_fp_fusion", True),)),
        ({"enable_fp_fusion": False}, (("enable_fp_fusion", False),)),
    ],
)
def test_launch_options_are_part_of_the_key(keywords: dict[str, Any], expected: tuple[tuple[str, Any], ...]) -> None:
    """In one order, without those that have their default."""
    assert ParameterList(add).options(keywords) == expected


def test_grids_that_are_equal_to_one_before() -> None:
    """1.0 is no grid after 1 was one, though equal to it; a bool is."""
    launcher = add[(1,)]
    assert add[(1,)] is launcher
    assert add[(True,)].args[0] == add[(1,)].args[0] == (1, 1, 1)
    wrong: list[Any] = [(1.0,), (2**31,), (-1,), ([1],)]
    for grid in wrong:
        with pytest.raises((TypeError, ValueError), match="^kernel 'add': "):
            add[grid]


def test_calling_a_kernel_without_a_grid() -> None:
    with pytest.raises(TypeError) as raised:
        add(1, 2)
    assert str(raised.value) == "kernel 'add' needs a grid: write add[grid](...), e.g. add[(1,)](...)"
