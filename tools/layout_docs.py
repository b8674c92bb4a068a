"""Makes the pictures of docs/layouts: runs the commands on its pages that write one.

A page shows ``$ weft layout ... --svg NAME.svg`` above each picture, so a reader can make it too; here the same commands are
the only list of pictures there is. Run without arguments to write them; with ``--check`` nothing is written and it fails where a
picture is not what its command draws (a test does that).
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

from weft.cli import main as weft

DOCS = Path(__file__).parents[1] / "docs" / "layouts"


def commands(page: str) -> list[tuple[list[str], str]]:
    """The arguments of each command that a page shows, and the output it shows for it."""
    shown = re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    found: list[tuple[list[str], str]] = []
    for block in shown:
        for command, output in re.findall(r"^\$ weft (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            found.append((shlex.split(command), output))
    return found


def pictures() -> dict[Path, str]:
    """Every picture and what its command draws."""
    found: dict[Path, str] = {}
    for page in sorted(DOCS.glob("*.md")):
        for arguments, _ in commands(page.read_text(encoding="utf-8")):
            if "--svg" in arguments:
                at = arguments.index("--svg") + 1
                drawn = io.StringIO()
                with contextlib.redirect_stdout(drawn):
                    code = weft([*arguments[:at], "-", *arguments[at + 1 :]])
                if code:
                    raise ValueError(f"{page.name}: weft {shlex.join(arguments)} exits with {code}")
                found[DOCS / arguments[at]] = drawn.getvalue()
    return found


def stale() -> dict[Path, str]:
    """The pictures that are not what their commands draw."""
    return {p: svg for p, svg in pictures().items() if not p.exists() or p.read_text(encoding="utf-8") != svg}


def main() -> int:
    found = stale()
    for path, svg in found.items():
        if "--check" in sys.argv:
            sys.stderr.write(f"{path} is not what its command draws; run tools/layout_docs.py\n")
        else:
            path.write_text(svg, encoding="utf-8")
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
