"""Every form of the float instructions that the assembler knows, the emulator knows."""

from __future__ import annotations

from pathlib import Path

from emulator_harness import run
from weft.emulator.ptx import parse

FORMS = Path(__file__).parent / "data" / "float_forms.ptx"


def test_every_form_that_is_assembled_is_executed() -> None:
    text = FORMS.read_text()
    names = [instruction.name for instruction in parse(text).functions["test"].instructions]
    run(text, [])  # what is not known is refused before the first step
    assert len(names) == 1138 and len({n.partition(".")[0] for n in names}) == 22
