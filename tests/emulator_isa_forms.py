"""The instructions of the PTX ISA as a list of forms: what ptxas says of each, and whether the emulator takes it.

``data/isa.txt`` has the instructions that the ISA describes, each (``= mul``) with patterns of its forms. A pattern is a target
and an instruction in which

    (a|b|)      is one of these, or nothing;
    (int)       is one of a set that the file's head names;
    T0 U0 W0    are registers: of the last type that the instruction names, of the first, of twice the last's width;
    {r0:3}      is {r0, r1, r2, r3}.

Registers are named by width: b h r l q (8 to 128 bits), f d (.f32, .f64), p (predicates). `VARIABLES` are there too. Before its
pattern a line has ptxas's verdicts and the emulator's, one bit for each form, the first form the lowest bit, as hexadecimal
numbers; ``all`` and ``none`` stand for what they say.

    python tests/emulator_isa_forms.py      asks the ptxas on PATH and the emulator again, and writes the file
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weft.emulator import Checks, PTXError, ops
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse
from weft.emulator.ptx.types import TYPES

RECORD = Path(__file__).parent / "emulator" / "data" / "isa.txt"

VARIABLES = """.global .align 1024 .b8 gv[4096];
.const .align 16 .b8 cv[512];
.shared .align 1024 .b8 sv[8192];
.global .texref tx;
.global .surfref su;
"""
LOCAL = ".local .align 16 .b8 lv[512];"
_KINDS = {"b": "b8", "h": "b16", "r": "b32", "l": "b64", "q": "b128", "f": "f32", "d": "f64", "p": "pred"}
_BY_BITS = {1: "p", 8: "h", 16: "h", 32: "r", 64: "l", 128: "q"}


@dataclass(frozen=True)
class Pattern:
    """A line: the instruction it belongs to, and the verdicts on its forms."""

    instruction: str
    target: str
    taken: int
    """By ptxas."""
    bound: int
    """By the emulator."""
    text: str

    @property
    def forms(self) -> list[str]:
        """What it stands for, in order."""
        return list(expanded(self.text))


@dataclass
class Recorded:
    """What is in the file."""

    comment: str
    sets: dict[str, str]
    patterns: list[Pattern]


@cache
def _sets() -> dict[str, str]:
    return dict(line.split(" = ", 1) for line in RECORD.read_text().splitlines() if " = " in line)


def recorded() -> Recorded:
    """What is in the file."""
    lines = RECORD.read_text().splitlines()
    patterns: list[Pattern] = []
    name = ""
    for line in lines:
        if line.startswith("= "):
            name = line[2:]
        elif line.startswith("sm_"):
            target, taken, bound, text = line.split(" ", 3)
            count = len(list(expanded(text)))
            patterns.append(Pattern(name, target, _number(taken, count), _number(bound, count), text))
    return Recorded(lines[0], _sets(), patterns)


def _number(word: str, count: int) -> int:
    return {"all": (1 << count) - 1, "none": 0}[word] if word in ("all", "none") else int(word, 16)


def _word(number: int, count: int) -> str:
    return "all" if number == (1 << count) - 1 else f"{number:x}" if number else "none"


def expanded(pattern: str) -> Iterator[str]:
    """The instructions that a pattern stands for."""
    yield from dict.fromkeys(_registers(text) for text in _alternatives(pattern))


def _alternatives(pattern: str) -> Iterator[str]:
    """All choices. Innermost parentheses are opened first; those of an expression (``(1<<4)``) stay."""
    for match in re.finditer(r"\(([^()]*)\)", pattern):
        inside = match[1]
        words = _sets().get(inside, inside)
        if "|" in words:
            chosen = [w for word in words.split("|") for w in _sets().get(word, word).split("|")]
            for word in chosen:
                yield from _alternatives(pattern[: match.start()] + word + pattern[match.end() :])
            return
    yield pattern


def _registers(text: str) -> str:
    """With the registers' names written out."""
    types = [word for word in re.split(r"[.\s]", text.split(" ", maxsplit=1)[0]) if word in TYPES]
    bits = {"T": TYPES[types[-1]].bits, "U": TYPES[types[0]].bits} if types else {}
    bits |= {"W": 2 * bits["T"]} if types else {}
    text = re.sub(r"\b([TUW])(\d+)\b", lambda m: _BY_BITS[bits[m[1]]] + m[2], text)

    def run(match: re.Match[str]) -> str:
        first, last = int(match[2]), int(match[2]) + int(match[3])
        return ", ".join(f"{match[1]}{i}" for i in range(first, last + 1))

    return re.sub(r"\b([a-z])(\d+):(\d+)\b", run, text)


def kernel(number: int, form: str) -> str:
    """A kernel with the registers that a form of instruction names. Its lines are two, the form is the second."""
    names = sorted(set(re.findall(r"(?<![\w.:%])[bhrlqfdp]\d+\b", form)))
    declared = " ".join(f".reg .{_KINDS[name[0]]} {name};" for name in names)
    return f".visible .entry kernel_{number}(.param .align 16 .b8 pv[64]) {{ {declared} {LOCAL}\nHERE: {form};\nret; }}"


def module(forms: Sequence[str], target: str) -> str:
    """A module of a kernel for each form; form i is on line ``first_line + 3 i``."""
    kernels = "\n".join(kernel(i, form) for i, form in enumerate(forms))
    return f".version 9.0\n.target {target}\n.address_size 64\n{VARIABLES}{kernels}\n"


def together(forms: Sequence[str], target: str) -> str:
    """A module whose one kernel, ``test``, has all of these, guarded so that no thread executes them."""
    registers = " ".join(f".reg .{kind} {letter}<200>;" for letter, kind in _KINDS.items())
    body = "\n".join(f"@p9 {form};" for form in forms)
    head = f".version 9.0\n.target {target}\n.address_size 64\n{VARIABLES}.visible .entry kernel_0() {{ ret; }}\n"
    return f"{head}.visible .entry test(.param .align 16 .b8 pv[64]) {{ {registers} {LOCAL}\nHERE:\n{body}\nret; }}\n"


FIRST_LINE = 3 + VARIABLES.count("\n") + 2
_AT_ONCE = 250


def ask(forms: Sequence[str], target: str) -> list[bool]:
    """Which of these ptxas takes."""
    taken = [True] * len(forms)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "forms.ptx"
        command = ["ptxas", f"-arch={target}", "-O0", "-o", str(Path(folder) / "forms.cubin"), str(source)]
        for start in range(0, len(forms), _AT_ONCE):
            part = list(forms[start : start + _AT_ONCE])
            while True:  # errors of one kind hide others: what is refused is taken out, and it is asked again
                source.write_text(module(part, target))
                said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
                wrong = {int(n) for n in re.findall(r"line (\d+); (?:error|fatal)", said)}
                if not wrong:
                    if "error" in said or "fatal" in said:
                        raise ValueError(said)
                    break
                for line in wrong:
                    at, rest = divmod(line - FIRST_LINE, 3)
                    if not 0 <= at < len(part) or rest > 1:
                        raise ValueError(said)
                    part[at], taken[start + at] = "ret", False
    return taken


def binds(forms: Sequence[str], target: str) -> str:
    """What the emulator says to the first of these that it refuses, or ""."""
    ops.load()
    try:
        program = Program(parse(together(forms, target)))
        launch(program, "test", (1, 1, 1), (128, 1, 1), [b"\0" * 64], 0, Checks.none())
    except PTXError as error:
        return str(error)
    return ""


def bound(forms: Sequence[str], target: str) -> list[str]:
    """What the emulator says to each: "" if it would execute it, else its refusal."""
    said = binds(forms, target)
    if not said or len(forms) == 1:
        return [said] * len(forms)
    half = len(forms) // 2
    return bound(forms[:half], target) + bound(forms[half:], target)


def _answers(patterns: Sequence[Pattern]) -> Iterator[Pattern]:
    for target in sorted({pattern.target for pattern in patterns}):
        ours = [pattern for pattern in patterns if pattern.target == target]
        forms = [form for pattern in ours for form in pattern.forms]
        taken = ask(forms, target)
        binds = [not said for said in bound(forms, target)]
        verdicts = iter(zip(taken, binds, strict=True))
        for pattern in ours:
            part = list(itertools.islice(verdicts, len(pattern.forms)))
            bits = [sum(int(verdict[which]) << i for i, verdict in enumerate(part)) for which in (0, 1)]
            yield Pattern(pattern.instruction, target, bits[0], bits[1], pattern.text)


def write() -> None:
    """Asks both again, and writes the file. A new line has ``? ?`` for verdicts."""
    lines = RECORD.read_text().splitlines()
    at = [i for i, line in enumerate(lines) if line.startswith("sm_")]
    patterns = [Pattern("", target, 0, 0, text) for target, _, _, text in (lines[i].split(" ", 3) for i in at)]
    found = {(p.target, p.text): p for p in _answers(patterns)}
    for i, pattern in zip(at, patterns, strict=True):
        answer, count = found[pattern.target, pattern.text], len(pattern.forms)
        lines[i] = f"{pattern.target} {_word(answer.taken, count)} {_word(answer.bound, count)} {pattern.text}"
    RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
