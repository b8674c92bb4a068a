"""FileCheck without its command line: the CHECK lines of a file against a text."""

from __future__ import annotations

import io
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts


def assert_filecheck(path: Path, output: str, *, full_lines: bool = False) -> None:
    """FileCheck of ``output`` against the CHECK lines of ``path``; its report goes to stderr."""
    options = Options(str(path), match_full_lines=full_lines)
    checks = Parser(options, io.StringIO(path.read_text(encoding="utf-8")), *pattern_for_opts(options))
    assert Matcher(options, FInput(path.name, output), checks).run() == 0, output
