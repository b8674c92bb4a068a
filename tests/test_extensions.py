"""Extension points: lower packages reach their implementations in higher ones, and load them only when asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from weft import extensions


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_every_implementation_exists() -> None:
    points = extensions._IMPLEMENTATIONS  # pyright: ignore[reportPrivateUsage]
    assert sorted(points) == [
        "comparison.drawn",
        "comparison.page",
        "comparison.text",
        "diff.tables",
        "diff.text",
        "emulator.native",
        "layout.notebook",
        "semantics.compare",
    ]
    for point in points:
        assert callable(extensions.extension(point))


def test_an_unknown_point_is_an_error() -> None:
    with pytest.raises(LookupError) as raised:
        extensions.extension("layout.song")
    assert raised.value.args == ("nothing implements the extension point 'layout.song'",)


def test_what_is_at_hand() -> None:
    """An implementation whose package has been imported; asking imports nothing."""
    program = (
        "import weft.emulator; from weft.extensions import is_at_hand as at_hand; print(at_hand('emulator.native'));"
        "import weft.runtime; print(at_hand('emulator.native'), at_hand('layout.song'))"
    )
    assert run(program) == "False\nTrue False\n"


@pytest.mark.parametrize("package", ["weft.layout", "weft.semantics"])
def test_a_package_alone_loads_no_implementation(package: str) -> None:
    program = f"import sys, {package}; print([m for m in sys.modules if m.startswith(('weft.report', 'weft.array'))])"
    assert run(program) == "[]\n"


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("import weft.semantics as s; print(s.compare.__module__)", "weft.array.comparing.check\n"),
        ("import weft.semantics as s; print(str(s.diff('numpy', 'torch', ['+'])).splitlines()[0][:5])", "numpy\n"),
        ("from weft.layout import LinearLayout as L; print(L.identity(4, 'lane', 'dim0')._repr_html_()[:4])", "<div\n"),
    ],
)
def test_a_package_alone_finds_its_implementation(program: str, shown: str) -> None:
    assert run(program) == shown
