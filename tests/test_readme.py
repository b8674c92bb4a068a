"""What the README shows, done: its program run as a user would run it, its commands and links looked up."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


KERNEL, ARRAYS = blocks("python")


@pytest.mark.jit
@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (KERNEL, "agrees with NumPy: True\n"),
        (ARRAYS, "numpy uint8 [ 44 170]\njax uint8 [ 44 170]\ndali int32 [300 -86]\n"),
    ],
    ids=["kernel", "arrays"],
)
def test_the_examples_run_from_a_file(
    program: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "program.py").write_text(program)
    run = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, printed, "")
    for line in printed.splitlines():
        assert line in program or f"`{line}`" in README or "agrees" in line


def test_the_example_is_on_the_first_screen() -> None:
    assert README.index("```python") < 300
    assert README[: README.index("```\n")].count("\n") < 40


def test_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = set(re.findall(r"make (\w+) ", README)) | set(re.findall(r"`make (\w+)`", README))
    assert {"demo", "test", "fuzz", "bench"} <= commands <= targets


@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md"))],
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]+`", "", text)  # `kernel[grid](...)` is no link
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [link for link in links if not (path.parent / link).exists()] == []
