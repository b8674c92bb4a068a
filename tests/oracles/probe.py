"""Asks a package in its own process, and survives it: what ends the process is an answer too."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oracles import environments

Question = tuple[str, ...]
"""An operation and its operands, as text (``probes/common.py``)."""

PROBES: Final = Path(__file__).parent / "probes"
_ALONE: Final = 16
"""How many questions follow one by one where a batch has ended the process, before batches are tried again."""


def ask(package: str, variant: str, questions: Sequence[Question], batch: int) -> list[str]:
    """The answer to each question. A question that ends the process, asked alone, is answered ``!killed by signal N``."""
    interpreter = environments.python(package)
    answers: list[str] = []
    alone = 0
    while len(answers) < len(questions):
        waiting = questions[len(answers) : len(answers) + alone] if alone else questions[len(answers) :]
        found, signal = _run(package, interpreter, variant, waiting, 1 if alone else batch)
        answers += found
        if len(found) == len(waiting):
            alone = 0
        elif alone or batch == 1:
            answers.append(f"!killed by signal {signal}")
            alone = min(alone, len(questions) - len(answers))
        else:
            alone = min(max(batch, _ALONE), len(questions) - len(answers))
    return answers


def _run(
    package: str, interpreter: Path, variant: str, questions: Sequence[Question], batch: int
) -> tuple[list[str], int]:
    """The answers that one process gave, and the signal that ended it (0: none)."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "questions.json", Path(folder) / "answers"
        asked.write_text(json.dumps({"variant": variant, "batch": batch, "questions": questions}))
        command = [str(interpreter), "-W", "ignore", str(PROBES / f"{package}_probe.py"), str(asked), str(answered)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        found = [json.loads(line) for line in answered.read_text().splitlines()] if answered.exists() else []
    if len(found) < len(questions) and ended.returncode >= 0:
        raise RuntimeError(f"the probe of {package} failed after {len(found)} answers:\n{ended.stderr[-4000:]}")
    return found, -ended.returncode
