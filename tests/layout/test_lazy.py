"""Properties that are computed once."""

from __future__ import annotations

from dataclasses import dataclass

from weft.layout.algebra.lazy import lazy


@dataclass(frozen=True)
class _Counted:
    asked: list[str]

    @lazy
    def value(self) -> int:
        """How often it was asked for."""
        self.asked.append("value")
        return len(self.asked)


def test_a_lazy_property_is_computed_once_for_each_instance() -> None:
    first, second = _Counted([]), _Counted([""])
    assert [first.value, first.value, second.value, second.value] == [1, 1, 2, 2]
    assert first.asked == ["value"]


def test_a_lazy_property_has_the_docstring_of_its_method() -> None:
    assert _Counted.value.__doc__ == "How often it was asked for."
