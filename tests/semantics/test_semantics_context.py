"""The system that arrays belong to where they do not say."""

from __future__ import annotations

import re
import sys
import threading

import pytest

from weft import semantics


def test_the_default_is_numpy() -> None:
    assert semantics.current() is semantics.get("numpy")


def test_blocks_nest_and_restore() -> None:
    with semantics.use("jax") as chosen:
        assert chosen is semantics.current() is semantics.get("jax")
        with semantics.use(semantics.get("dali")):
            assert semantics.current().name == "dali"
        assert semantics.current().name == "jax"
    assert semantics.current().name == "numpy"


def test_an_error_restores_too() -> None:
    with pytest.raises(KeyError), semantics.use("jax"):
        raise KeyError
    assert semantics.current().name == "numpy"


def test_other_threads_are_not_concerned() -> None:
    seen: list[str] = []
    begun = threading.Event()

    def ask() -> None:
        begun.wait(10)
        seen.append(semantics.current().name)

    before = threading.Thread(target=ask)
    before.start()
    with semantics.use("jax"):
        begun.set()
        before.join()
        within = threading.Thread(target=ask)
        within.start()
        within.join()
    assert seen == ["numpy", "jax" if getattr(sys.flags, "thread_inherit_context", False) else "numpy"]


def test_an_unknown_system_has_a_nearest_spelling() -> None:
    with pytest.raises(ValueError, match=re.escape("unknown semantics 'dalli'; did you mean 'dali'?")):
        semantics.use("dalli").__enter__()
