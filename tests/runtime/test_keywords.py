"""Every keyword of `weft.jit` has an effect, is refused, or is ignored for a reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.runtime.arguments import Parameter
from weft.runtime.binding import LAUNCH_OPTIONS, NOT_OPTIONS
from weft.runtime.jit import JITFunction
from weft.runtime.keywords import JIT_KEYWORDS

KEYWORDS = [name for name, p in inspect.signature(weft.jit).parameters.items() if p.kind is p.KEYWORD_ONLY]


def plain(x: Any, n: Any) -> None: ...


def test_the_table_has_the_keywords_of_jit_in_order() -> None:
    assert list(JIT_KEYWORDS) == KEYWORDS
    of_class = inspect.signature(JITFunction).parameters
    used = [name for name, keyword in JIT_KEYWORDS.items() if not keyword.ignored]
    assert [name for name, p in of_class.items() if p.kind is p.KEYWORD_ONLY] == used


def test_the_documentation_has_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "runtime.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `") and line.split("`")[1] in JIT_KEYWORDS]
    assert rows == [
        f"| `{name}` | {k.words} | {'ignored: ' if k.ignored else ''}{k.use} |" for name, k in JIT_KEYWORDS.items()
    ]


def parameters(kernel: JITFunction) -> tuple[Parameter, ...]:
    return kernel._list.parameters  # pyright: ignore[reportPrivateUsage]


EFFECTS: dict[str, tuple[Any, Callable[[JITFunction], Any]]] = {
    "semantics": ("jax", lambda kernel: kernel.semantics),
    "checked": (True, lambda kernel: kernel.checked),
    "do_not_specialize": (["n"], lambda kernel: parameters(kernel)[1].specialise),
    "do_not_specialize_on_alignment": ([1], lambda kernel: parameters(kernel)[1].align),
    "debug": (True, lambda kernel: kernel.asserts),
}
"""Keyword -> a value, and what of a kernel it changes."""

IGNORED: dict[str, tuple[Any, ...]] = {
    "version": (1, "2"),
    "repr": (str,),
    "launch_metadata": (dict,),
    "noinline": (True, False),
}


def test_keywords_with_an_effect() -> None:
    assert list(EFFECTS) == [name for name, keyword in JIT_KEYWORDS.items() if not keyword.ignored]
    for name, (value, observed) in EFFECTS.items():
        assert observed(weft.jit(**{name: value})(plain)) != observed(weft.jit(plain)), name


def test_keywords_that_are_ignored(fake_compiler: Any) -> None:
    assert list(IGNORED) == [name for name, keyword in JIT_KEYWORDS.items() if keyword.ignored]
    for name, values in IGNORED.items():
        for value in (None, *values):
            weft.jit(**{name: value})(plain)[(1,)](np.zeros(1, np.int32), 5)
    assert len({(name, *signature, options) for name, signature, options in fake_compiler.calls}) == 1


NAMES = "an iterable of names and indices, or None"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("checked", 1, "jit(): checked must be a bool or None, found 1"),
        ("checked", "no", "jit(): checked must be a bool or None, found 'no'"),
        ("do_not_specialize", "n", f"jit(): do_not_specialize must be {NAMES}, found 'n'"),
        ("do_not_specialize", 0, f"jit(): do_not_specialize must be {NAMES}, found 0"),
        ("do_not_specialize_on_alignment", "n", f"jit(): do_not_specialize_on_alignment must be {NAMES}, found 'n'"),
        ("repr", "name", "jit(): repr must be a function or None, found 'name'"),
        ("launch_metadata", {}, "jit(): launch_metadata must be a function or None, found {}"),
        (
            "debug",
            1,
            "jit(): debug must be a bool or None, found 1",
        ),
        ("noinline", 1, "jit(): noinline must be a bool or None, found 1"),
    ],
)
def test_values_that_a_keyword_does_not_take(name: str, value: Any, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        weft.jit(**{name: value})
    assert str(raised.value) == message


def test_kernels_name_their_parameters() -> None:
    def kernel(**keywords: Any) -> None: ...

    with pytest.raises(TypeError) as raised:
        weft.jit(kernel)
    assert str(raised.value) == "JIT functions do not support **kwargs: name the parameters of 'kernel'"


def test_unknown_keywords_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'maxnreg'"):
        weft.jit(maxnreg=3)(plain)  # pyright: ignore


def test_every_keyword_of_a_launch_is_used_or_refused(fake_compiler: Any) -> None:
    """Keywords of `jit` are none of a launch, except debug; options of a launch are part of the key of compiled code."""
    kernel = weft.jit(plain)
    calls: list[Callable[..., Any]] = [kernel[(1,)], kernel.compile, kernel.warmup]
    assert not NOT_OPTIONS & set(LAUNCH_OPTIONS)
    for name in sorted((set(KEYWORDS) - set(LAUNCH_OPTIONS)) | NOT_OPTIONS):
        for call in calls:
            with pytest.raises(TypeError, match=name):
                call(np.zeros(1, np.int32), 5, **{name: None})
    values = {"num_warps": 8, "num_stages": 1, "num_ctas": 2, "maxnreg": 64, "enable_fp_fusion": False, "debug": False}
    values |= {"sanitize_overflow": False, "enable_fp_reassociation": True}
    assert set(values) == set(LAUNCH_OPTIONS)
    for name, value in values.items():
        kernel[(1,)](np.zeros(1, np.int32), 5, **{name: value})
        assert fake_compiler.calls[-1][2].launch == ((name, value),)
